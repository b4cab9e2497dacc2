//! A profiler that queries one method in every way that the framework offers. It checks the answers
//! against each other and against the known contents of the fixture `Names`, and writes a line per
//! check to the file named by `SELF_CHECK_OUTPUT`.

use std::fmt::{Debug, Write as _};
use std::sync::{Mutex, PoisonError};

use clr_profiler::metadata::signature::{self, Primitive, Type};
use clr_profiler::{
    Callbacks, CodeRange, Events, FunctionId, HResult, NameCache, Profiler, ProfilerInfo, ReJitId, Result, Setup, Token,
};

clr_profiler::export_profiler!(SelfCheck, "{6F0E8E6B-2C8E-4B6B-9A55-5D1E3B1F7C05}");

struct SelfCheck {
    info: ProfilerInfo,
    names: NameCache,
    lines: Mutex<String>,
}

impl Profiler for SelfCheck {
    fn initialize(info: &ProfilerInfo) -> Result<(Self, Setup)> {
        let checks = Self { info: info.clone(), names: NameCache::new(), lines: Mutex::default() };
        checks.check(
            "no managed thread yet",
            info.current_thread().map_err(|e| e.name()),
            Err(Some("CORPROF_E_NOT_MANAGED_THREAD")),
        );
        Ok((checks, Setup::new(Events::JIT_COMPILATION)))
    }
}

impl Callbacks for SelfCheck {
    fn jit_compilation_finished(&self, function: FunctionId, status: Result<()>, _is_safe_to_block: bool) {
        let info = &self.info;
        if self.names.function(info, function).signature
            != "Names.Shapes.Parameters.References(ref int, out string, in Names.Shapes.Money)"
        {
            return;
        }
        self.check("compiled", status, Ok(()));
        self.outcome("runtime", self.runtime(info));
        self.outcome("thread", self.thread(info));
        self.outcome("function", self.function(info, function));
        self.outcome("metadata", self.metadata(info, function));
        self.outcome("types", self.types(info, function));
        self.outcome("events", self.events(info));
        if let Some(path) = std::env::var_os("SELF_CHECK_OUTPUT") {
            let _ = std::fs::write(path, &*self.lines.lock().unwrap_or_else(PoisonError::into_inner));
        }
    }
}

impl SelfCheck {
    fn line(&self, line: &str) {
        let _ = writeln!(self.lines.lock().unwrap_or_else(PoisonError::into_inner), "{line}");
    }

    fn check<T: PartialEq + Debug>(&self, what: &str, saw: T, expected: T) {
        if saw == expected {
            self.line(&format!("ok {what}"));
        } else {
            self.line(&format!("WRONG {what}: saw {saw:?}, expected {expected:?}"));
        }
    }

    fn outcome(&self, what: &str, outcome: Result<()>) {
        self.check(what, outcome, Ok(()));
    }

    fn runtime(&self, info: &ProfilerInfo) -> Result<()> {
        let version = info.runtime_version()?;
        self.line(&format!("version {version}"));
        self.check("level", info.level(), if version.major < 9 { 14 } else { 15 });
        Ok(())
    }

    fn thread(&self, info: &ProfilerInfo) -> Result<()> {
        let thread = info.current_thread()?;
        // SAFETY: no arguments, no failure.
        let own = unsafe { libc::gettid() };
        self.check("os thread", info.os_thread(thread)?, own as u32);
        info.initialize_current_thread()
    }

    fn function(&self, info: &ProfilerInfo, function: FunctionId) -> Result<()> {
        let place = info.function_info(function)?;
        self.check("place", info.function_place(function)?, (place.class, place.module, place.token));
        self.check("no type arguments", place.type_arguments.len(), 0);
        self.check("from token", info.function_from_token(place.module, place.token)?, function);
        let again = info.function_from_token_and_type_args(place.module, place.token, place.class, &[])?;
        self.check("from token and type arguments", again, function);
        self.check("not dynamic", info.is_function_dynamic(function)?, false);
        self.check("no dynamic information", info.dynamic_function_info(function).is_err(), true);
        let code = info.code_info(function)?;
        self.check("has code", code.iter().any(|range| range.bytes > 0), true);
        let starts = info.code_starts(function, ReJitId::NULL)?;
        self.check("starts", starts.first().map(|start| start.address()), code.first().map(|range| range.start));
        for start in starts {
            // SAFETY: the function is compiled, or its precompiled code prepared, and the code
            // begins there.
            let (found, _) = unsafe { info.function_at(start.address()) }?;
            self.check("found by address", found, function);
            let has_start = |range: &CodeRange| range.contains(start.address());
            self.check("code by start", info.code_info_at(start)?.iter().any(has_start), true);
        }
        let module = info.module_info(place.module)?;
        self.check("path", module.path.ends_with("/Names.dll"), true);
        self.check(
            "kind",
            (module.flags.is_on_disk(), module.flags.is_dynamic(), module.flags.is_collectible()),
            (true, false, false),
        );
        let assembly = info.assembly_info(module.assembly)?;
        self.check("assembly", (assembly.name.as_str(), assembly.module), ("Names", place.module));
        self.check("domain has a name", info.app_domain_info(assembly.app_domain)?.name.is_empty(), false);
        self.check("has IL", info.il_function_body(place.module, place.token)?.len() > 1, true);
        Ok(())
    }

    fn metadata(&self, info: &ProfilerInfo, function: FunctionId) -> Result<()> {
        let place = info.function_info(function)?;
        let metadata = info.module_metadata(place.module)?;
        let method = metadata.method(place.token)?;
        self.check("name", (method.name.as_str(), method.attributes.is_static()), ("References", true));
        let parsed = signature::method(&method.signature).map(|s| (s.has_this, s.return_type, s.parameters.len()));
        self.check("signature", parsed, Ok((false, Type::Primitive(Primitive::Void), 3)));
        let params =
            metadata.params(place.token)?.into_iter().map(|param| metadata.param(param)).collect::<Result<Vec<_>>>()?;
        let named: Vec<_> = params
            .iter()
            .filter(|param| param.sequence > 0)
            .map(|param| (param.name.as_str(), param.attributes & 3))
            .collect();
        self.check("parameters", named, vec![("a", 0), ("b", 2), ("c", 1)]);
        self.check("overloads", metadata.methods_named(method.class, "Overload")?.len(), 2);
        self.check("none of that name", metadata.methods_named(method.class, "Nothing")?.len(), 0);
        self.check("no native function", metadata.pinvoke_map(place.token)?, None);
        let own = metadata.methods(method.class)?;
        self.check("methods", own.contains(&place.token), true);
        Ok(())
    }

    fn types(&self, info: &ProfilerInfo, function: FunctionId) -> Result<()> {
        let module = info.function_info(function)?.module;
        let metadata = info.module_metadata(module)?;
        let live = info.live_metadata(module)?;
        self.check("read from the image", (metadata.is_live(), live.is_live()), (false, true));
        self.check("the runtime has the same", live.type_defs()?, metadata.type_defs()?);
        self.check("a record there is not", metadata.contains(Token::new(0x0600_ffff)), false);
        let find = |name: &str| metadata.find_type_def(name, None);
        self.check("missing type", find("Names.Shapes.Nothing")?, None);
        let money = find("Names.Shapes.Money")?.unwrap_or_default();
        let fields = metadata.fields(money)?;
        let cents = fields.first().map(|field| metadata.field(*field)).transpose()?;
        let known = cents.map(|field| (field.name.clone(), field.is_static(), signature::field(&field.signature)));
        self.check("field", known, Some(("Cents".to_owned(), false, Ok(Type::Primitive(Primitive::Long)))));
        self.check("field by name", metadata.fields_named(money, "Cents")?, fields);
        let class = info.class_from_token(module, money)?;
        let known = info.class_info(class)?;
        self.check("class", (known.module, known.token, known.type_arguments.len()), (module, money, 0));
        self.check("class name", &*self.names.class(info, class), "Names.Shapes.Money");
        self.check("no array", info.array_class(class)?, None);
        let parent = known.parent.map(|parent| self.names.class(info, parent));
        self.check("base class", parent.as_deref(), Some("System.ValueType"));
        let bag = find("Names.Shapes.Bag")?.unwrap_or_default();
        let interfaces = metadata.interfaces(bag)?;
        let interface = interfaces.first().map(|token| metadata.type_def(*token)).transpose()?;
        let interface = interface.map(|ty| (ty.name.clone(), ty.is_interface()));
        self.check("interface", interface, Some(("Names.Shapes.IBag".to_owned(), true)));
        let boxed = find("Names.Shapes.Box`1")?.unwrap_or_default();
        let parameters = metadata.generic_params(boxed)?;
        self.check("generic", parameters.iter().map(|p| p.name.as_str()).collect::<Vec<_>>(), vec!["T"]);
        let lid = metadata.find_type_def("Lid`1", Some(boxed))?.unwrap_or_default();
        self.check("enclosing", metadata.enclosing_type(lid)?, Some(boxed));
        self.check("not enclosed", metadata.enclosing_type(boxed)?, None);
        self.check("nested", metadata.type_def(lid)?.is_nested(), true);
        self.check("type definitions", metadata.type_defs()?.contains(&lid), true);
        let sources = find("Names.Shapes.Sources")?.unwrap_or_default();
        let count = metadata.methods_named(sources, "Count")?.first().copied().unwrap_or_default();
        let attribute = "System.Runtime.CompilerServices.IteratorStateMachineAttribute";
        self.check("attribute", metadata.custom_attribute(count, attribute)?.is_some(), true);
        self.check("no attribute", metadata.custom_attribute(count, "System.ObsoleteAttribute")?, None);
        self.references(&metadata)
    }

    /// Checks the first row of each table of references.
    fn references(&self, metadata: &clr_profiler::metadata::MetadataImport) -> Result<()> {
        let first = |table: u8| Token::new(u32::from(table) << 24 | 1);
        self.check("type reference", metadata.type_ref(first(Token::TYPE_REF))?.name.is_empty(), false);
        self.check("member reference", metadata.member_ref(first(Token::MEMBER_REF))?.name.is_empty(), false);
        self.check(
            "type specification",
            signature::type_spec(&metadata.type_spec(first(Token::TYPE_SPEC))?).is_ok(),
            true,
        );
        let spec = metadata.method_spec(first(Token::METHOD_SPEC))?;
        self.check(
            "method specification",
            signature::method_instantiation(&spec.instantiation).is_ok_and(|a| !a.is_empty()),
            true,
        );
        self.check("no such row", metadata.type_def(Token::new(0x02ff_ffff)).is_err(), true);
        Ok(())
    }

    fn events(&self, info: &ProfilerInfo) -> Result<()> {
        let now = info.events()?;
        self.check("events", now.contains(Events::JIT_COMPILATION), true);
        info.set_events(now | Events::EXCEPTIONS)?;
        self.check("switched on", info.events()?, now | Events::EXCEPTIONS);
        info.set_events(now)?;
        let refused = info.set_events(now | Events::DISABLE_TIERED_COMPILATION);
        let reason = refused.as_ref().err().and_then(|error| error.reason()).unwrap_or_default().to_owned();
        self.check(
            "immutable",
            reason.as_str(),
            "DISABLE_TIERED_COMPILATION can only be set while the profiler initializes",
        );
        self.check("code of the refusal", refused.map_err(|error| error.hresult()), Err(HResult::FAIL));
        self.check("nothing changed", info.events()?, now);
        Ok(())
    }
}
