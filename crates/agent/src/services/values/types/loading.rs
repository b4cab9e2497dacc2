//! Types that are looked into on a thread of the agent's own: there nothing is loaded for it that the program has not loaded.
//!
//! In a callback about the program's own loading or compiling, on its own thread, the runtime may load what a signature names. A
//! thread of the agent's is none that the runtime knows: where it loads a type there it goes by the data of a managed thread, which
//! are not there, and ends the program. So the runtime [adopts](ProfilerInfo::adopt_current_thread) the thread first, which lets it look
//! up generic value types; it refuses such questions where it did not. Still nothing new is asked for, since what is loaded
//! may bring assemblies along, and with them code of the program that answers where they are. What a field refers to is
//! found where it is loaded, and otherwise described from metadata; the type of a value that lies in a loaded class is loaded itself.

use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::sync::Arc;

use clr_profiler::metadata::signature::Type;
use clr_profiler::{ClassId, HResult, ModuleId, ProfilerInfo, Token};

use super::shared::NESTED;
use super::table::Inserted;
use super::{Names, Scope, Types};
use crate::services::values::arguments::depth;
use crate::services::values::kinds::{Class, Kind};

thread_local! {
    static KEEPS: Cell<bool> = const { Cell::new(false) };
    /// Classes that fields refer to and that are still to be looked into, each with how many references lead there from an object
    /// that a hook has met.
    static REFERRED: RefCell<VecDeque<(&'static Class, ClassId, u32)>> = const { RefCell::new(VecDeque::new()) };
    /// That number for the class that is being looked into.
    static LEVEL: Cell<u32> = const { Cell::new(0) };
}

/// Runs work on a thread of the agent's own during which types are looked into without loading more.
pub(crate) fn without_loading(info: &ProfilerInfo, work: impl FnOnce()) -> clr_profiler::Result<()> {
    struct Back(bool);
    impl Drop for Back {
        fn drop(&mut self) {
            KEEPS.set(self.0);
        }
    }
    // Where it fails, values whose type is generic or has no methods are unknown.
    let adopted = info.adopt_current_thread();
    let _back = Back(KEEPS.replace(true));
    work();
    adopted
}

/// Whether nothing is to be loaded here.
pub(super) fn keeps_from_loading() -> bool {
    KEEPS.get()
}

/// Error of the runtime about methods that are generic, or of generic types.
const IS_PARAMETERIZED: HResult = HResult(0x8013_135d_u32 as i32);

impl Types {
    /// A class that a field refers to: looked into later, so that the stack stays flat, and not at all where no object of it would be
    /// opened.
    pub(super) fn referred_to(&self, id: ClassId) -> Option<&'static Class> {
        let level = LEVEL.get() + 1;
        if level > depth() {
            return None;
        }
        Some(match self.enter(id)? {
            Inserted::Known(class) => class,
            Inserted::New(class) => {
                REFERRED.with_borrow_mut(|all| all.push_back((class, id, level)));
                class
            }
        })
    }

    /// Looks into the classes that fields refer to.
    pub(super) fn look_into_referred(&self) {
        while let Some((class, id, level)) = REFERRED.with_borrow_mut(VecDeque::pop_front) {
            LEVEL.set(level);
            self.look_into(class, id);
        }
        LEVEL.set(0);
    }

    /// Class of a type that is not generic, where it is loaded and has methods: the runtime knows the functions of loaded types
    /// only, and says so without loading one.
    fn loaded(&self, module: ModuleId, token: Token) -> Option<ClassId> {
        if let Some(known) = self.found_loaded().get(&(module, token)) {
            return Some(*known);
        }
        let methods = self.metadata(module).ok()?.methods(token).ok()?;
        let is_generic = |error: &clr_profiler::Error| error.hresult() == IS_PARAMETERIZED;
        let function = methods.into_iter().find_map(|method| match self.info.function_from_token(module, method) {
            Err(error) if is_generic(&error) => None,
            found => Some(found),
        });
        let (class, ..) = self.info.function_place(function?.ok()?).ok()?;
        // One that is still being loaded says nothing of itself.
        let class = class.filter(|class| self.info.class_info(*class).is_ok())?;
        self.found_loaded().insert((module, token), class);
        Some(class)
    }

    /// The class of a named type without loading one, except that a value type is known to be loaded by the caller.
    pub(super) fn loaded_named(&self, module: ModuleId, token: Token, is_value: bool) -> Option<ClassId> {
        let of_value = || self.info.class_from_token(module, token).ok().and_then(ClassId::non_null);
        self.loaded(module, token).or_else(|| is_value.then(of_value).flatten())
    }

    /// The class of a generic value type, which the caller knows to be loaded; of others nobody can tell whether they are.
    pub(super) fn loaded_generic(&self, ty: &Type, scope: &Scope<'_>) -> Option<ClassId> {
        let Type::Generic { token, is_value: true, arguments } = ty else { return None };
        let (module, token) = self.find(*token, scope.module, scope.metadata)?;
        let arguments: Option<Vec<_>> = arguments.iter().map(|ty| self.class_id(ty, scope)).collect();
        let found = self.info.class_from_token_and_type_args(module, token, &arguments?);
        found.ok().and_then(ClassId::non_null)
    }

    /// Kind of a generic value whose type arguments are not all loaded. Its code is that of every class, and so is its
    /// layout, which is loaded with the class that the value lies in.
    pub(super) fn value_of_any_class(&self, ty: &Type, scope: &Scope<'_>) -> Kind {
        let found = || {
            let shared = self.shared_form(ty, scope, NESTED)?;
            let key = (scope.module, self.type_text(ty, scope));
            if let Some(class) = self.declared_arrays().get(&key) {
                return Some(Kind::Struct(class));
            }
            let about = self.info.class_info(shared).ok()?;
            let mut names = Names::default();
            let shape = self.shape(shared, &about, &mut names);
            let class: &'static Class = self.declared_class(key.1.clone(), names);
            let _ = class.shape.set(shape);
            self.declared_arrays().insert(key, class);
            Some(Kind::Struct(class))
        };
        found().unwrap_or(Kind::Opaque(0))
    }

    /// The class of a type in code and layouts that instantiations share: `__Canon` for every class.
    fn shared_form(&self, ty: &Type, scope: &Scope<'_>, depth: u32) -> Option<ClassId> {
        let depth = depth.checked_sub(1)?;
        match ty {
            Type::Generic { token, is_value: true, arguments } => {
                let (module, token) = self.find(*token, scope.module, scope.metadata)?;
                let arguments: Option<Vec<_>> =
                    arguments.iter().map(|argument| self.shared_form(argument, scope, depth)).collect();
                self.info.class_from_token_and_type_args(module, token, &arguments?).ok().and_then(ClassId::non_null)
            }
            Type::TypeParameter(_) | Type::MethodParameter(_) => self.stand_in(self.class_id(ty, scope)?, depth),
            Type::Primitive(_) | Type::Named { is_value: true, .. } => self.class_id(ty, scope),
            _ => self.any_class(),
        }
    }

    /// A type as C# writes it, by metadata alone.
    pub(super) fn declared_text(&self, ty: &Type, scope: &Scope<'_>) -> Option<String> {
        let names = |arguments: &[ClassId], parameters: &[String]| -> Vec<Arc<str>> {
            let count = arguments.len().max(parameters.len());
            let name = |number: usize| match (arguments.get(number), parameters.get(number)) {
                (Some(id), _) if !self.is_shared(*id) => self.name_of(*id).into(),
                (_, Some(name)) => name.as_str().into(),
                _ => "?".into(),
            };
            (0..count).map(name).collect()
        };
        let of_type = names(scope.type_arguments, scope.type_parameters);
        let of_method = names(scope.method_arguments, scope.method_parameters);
        self.names.type_in_signature(&self.info, scope.module, ty, &of_type, &of_method).ok()
    }
}
