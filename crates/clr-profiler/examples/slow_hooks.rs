//! Records the arguments, results and exact type arguments of an assembly's methods through hooks
//! with information. `SLOW_HOOKS_ASSEMBLY` names the assembly. The file named by
//! `SLOW_HOOKS_OUTPUT` gets a line per event and a line per instantiation.

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::sync::{Arc, Mutex, PoisonError};

use clr_profiler::{
    Callbacks, ClassId, ClientId, HookedCall, Hooks, InfoHooks, NamedFunctions, Profiler, ProfilerInfo, Result, Setup,
};

clr_profiler::export_profiler!(SlowHooks, "{6F0E8E6B-2C8E-4B6B-9A55-5D1E3B1F7C0B}");

struct SlowHooks(Arc<Lines>);

/// Function, class and the function's own type arguments.
type Instantiation = (ClientId, Option<ClassId>, Vec<ClassId>);

struct Lines {
    info: ProfilerInfo,
    functions: Arc<NamedFunctions>,
    text: Mutex<String>,
    /// The instantiations. They are named at the end, because a hook must not query the runtime.
    exact: Mutex<BTreeSet<Instantiation>>,
}

impl Lines {
    fn line(&self, id: ClientId, what: &str, values: Result<Vec<&[u8]>>) {
        let name = self.functions.get(id).map_or("?", |name| &name.name);
        // A 32-bit number, or the whole word of any other value of that length.
        let number = |bytes: &[u8]| match bytes {
            [a, b, c, d, ..] => i32::from_le_bytes([*a, *b, *c, *d]).to_string(),
            other => format!("{other:?}"),
        };
        let values = values.map(|values| values.into_iter().map(number).collect::<Vec<_>>());
        let mut text = self.text.lock().unwrap_or_else(PoisonError::into_inner);
        let _ = match values {
            Ok(values) => writeln!(text, "{what} {name} {}", values.join(" ")),
            Err(error) => writeln!(text, "{what} {name} failed: {error}"),
        };
    }
}

impl Lines {
    fn name_instantiations(&self) {
        let names = self.functions.names();
        for (id, class, arguments) in self.exact.lock().unwrap_or_else(PoisonError::into_inner).iter() {
            let name = |class: &ClassId| names.class(&self.info, *class).to_string();
            let function = self.functions.get(*id).map_or("?", |name| &name.name);
            let (class, own) = (class.as_ref().map(name).unwrap_or_default(), arguments.iter().map(name));
            let own = own.collect::<Vec<_>>().join(", ");
            let mut text = self.text.lock().unwrap_or_else(PoisonError::into_inner);
            let _ = writeln!(text, "instantiation {function} in {class} of <{own}>");
        }
    }
}

impl InfoHooks for Lines {
    fn enter(&self, id: ClientId, call: &HookedCall<'_>) {
        self.line(id, "enter", call.arguments());
        match call.exact() {
            Ok(exact) => {
                let mut known = self.exact.lock().unwrap_or_else(PoisonError::into_inner);
                known.insert((id, exact.class, exact.type_arguments));
            }
            Err(error) => self.line(id, "exact", Err(error)),
        }
    }

    fn leave(&self, id: ClientId, call: &HookedCall<'_>) {
        self.line(id, "leave", call.result().map(|bytes| if bytes.is_empty() { vec![] } else { vec![bytes] }));
        if call.arguments().is_ok() {
            self.line(id, "arguments in leave", Ok(vec![]));
        }
    }
}

impl Profiler for SlowHooks {
    fn initialize(info: &ProfilerInfo) -> Result<(Self, Setup)> {
        let assembly = std::env::var("SLOW_HOOKS_ASSEMBLY").unwrap_or_default();
        let functions = Arc::new(NamedFunctions::new(info, move |function| *function.module == *assembly));
        let lines = Arc::new(Lines {
            info: info.clone(),
            functions: functions.clone(),
            text: Mutex::default(),
            exact: Mutex::default(),
        });
        let hooks = Hooks::with_info(lines.clone(), functions);
        Ok((Self(lines), Setup::default().with_hooks(hooks).without_inlining()))
    }
}

impl Callbacks for SlowHooks {
    fn shutdown(&self) {
        if let Some(path) = std::env::var_os("SLOW_HOOKS_OUTPUT") {
            self.0.name_instantiations();
            let _ = std::fs::write(path, &*self.0.text.lock().unwrap_or_else(PoisonError::into_inner));
        }
    }
}
