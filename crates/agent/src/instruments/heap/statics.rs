//! Static fields: which there are, and where their values lie.
//!
//! The runtime keeps what static fields refer to in arrays of its own, which handles hold. That an element of such an array is a
//! field only its address tells.

use std::collections::{HashMap, HashSet};

use clr_profiler::metadata::signature::{self, Primitive, Type};
use clr_profiler::{AppDomainId, ClassId, ModuleId, NameCache, ProfilerInfo, StaticKind, ThreadId, Token};
use clrscope_recording::model::{HeapPlace, RootKind};

/// The static fields of a declaration that may hold references.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Declared {
    class: Token,
    fields: Vec<(Token, String)>,
}

/// Static fields of modules, looked up once.
#[derive(Debug, Default)]
pub(super) struct StaticFields {
    modules: HashMap<ModuleId, Vec<Declared>>,
}

/// Fields of classes that are loaded.
#[derive(Debug, Default)]
pub(super) struct Fields(Vec<(ClassId, ModuleId, Token, String)>);

impl StaticFields {
    /// A module is gone, and its identifier may be used again.
    pub(super) fn module_unloaded(&mut self, module: ModuleId) {
        self.modules.remove(&module);
    }

    /// The static fields of all classes that are loaded, as far as they are known: those that are not generic, and those of
    /// `more`. Long before the program is stopped: looks through metadata.
    pub(super) fn of_program(&mut self, info: &ProfilerInfo, names: &NameCache, more: &HashSet<ClassId>) -> Fields {
        let mut fields = Fields::default();
        let mut seen = HashSet::new();
        for module in info.modules().unwrap_or_default() {
            for declared in self.of_module(info, names, module) {
                if let Ok(class) = info.class_from_token(module, declared.class) {
                    seen.insert(class);
                    fields.add(class, module, declared);
                }
            }
        }
        for class in more.difference(&seen) {
            let Ok(about) = info.class_info(*class) else { continue };
            let declared = self.of_module(info, names, about.module).iter().find(|one| one.class == about.token);
            declared.into_iter().for_each(|declared| fields.add(*class, about.module, declared));
        }
        fields
    }

    fn of_module(&mut self, info: &ProfilerInfo, names: &NameCache, module: ModuleId) -> &[Declared] {
        self.modules.entry(module).or_insert_with(|| declared_in(info, names, module).unwrap_or_default())
    }
}

fn declared_in(info: &ProfilerInfo, names: &NameCache, module: ModuleId) -> clr_profiler::Result<Vec<Declared>> {
    let metadata = names.metadata(info, module)?;
    let mut found = Vec::new();
    for class in metadata.type_defs()? {
        let mut fields = Vec::new();
        for token in metadata.fields(class)? {
            let Ok(field) = metadata.field(token) else { continue };
            let may_hold = || signature::field(&field.signature).is_ok_and(|ty| may_hold_references(&ty));
            if field.is_static() && !field.is_literal() && may_hold() {
                fields.push((token, source_name(&field.name).to_owned()));
            }
        }
        if !fields.is_empty() {
            found.push(Declared { class, fields });
        }
    }
    Ok(found)
}

/// Whether a value of the type may hold references: not numbers, and not pointers.
fn may_hold_references(ty: &Type) -> bool {
    match ty {
        Type::Primitive(primitive) => matches!(primitive, Primitive::String | Primitive::Object),
        Type::Pointer(_) | Type::FunctionPointer(_) | Type::ByRef(_) => false,
        _ => true,
    }
}

/// The name of a field in the source: what a property keeps, the compiler names after the property.
fn source_name(name: &str) -> &str {
    name.strip_prefix('<').and_then(|name| name.strip_suffix(">k__BackingField")).unwrap_or(name)
}

impl Fields {
    fn add(&mut self, class: ClassId, module: ModuleId, declared: &Declared) {
        self.0.extend(declared.fields.iter().map(|(token, name)| (class, module, *token, name.clone())));
    }

    /// The places of the fields that have a value, those of each thread among them. `serial` says which thread that is in
    /// the recording. Where the runtime may be asked.
    pub(super) fn places(
        &self,
        info: &ProfilerInfo,
        names: &NameCache,
        serial: impl Fn(ThreadId) -> u32,
    ) -> Vec<HeapPlace> {
        let threads: Vec<(ThreadId, u32)> =
            info.threads().unwrap_or_default().into_iter().map(|thread| (thread, serial(thread))).collect();
        let mut domains = HashMap::<ModuleId, AppDomainId>::new();
        let mut places = Vec::new();
        for (class, module, token, field) in &self.0 {
            let domain = *domains.entry(*module).or_insert_with(|| {
                let all = info.app_domains_of_module(*module).unwrap_or_default();
                all.first().copied().unwrap_or(AppDomainId::NULL)
            });
            let name = || format!("{}.{field}", names.class(info, *class));
            let mut add = |address: usize, kind, thread| {
                places.push(HeapPlace { address: address as u64, kind, name: name(), thread });
            };
            match info.static_kind(*class, *token) {
                // Before the class is initialized there is no place.
                Ok(StaticKind::AppDomain) => {
                    if let Ok(place) = info.static_address(*class, *token, domain) {
                        add(place.as_raw(), RootKind::Static, 0);
                    }
                }
                Ok(StaticKind::Thread) => {
                    for (thread, serial) in &threads {
                        if let Ok(place) = info.thread_static_address(*class, *token, domain, *thread) {
                            add(place.as_raw(), RootKind::ThreadStatic, *serial);
                        }
                    }
                }
                _ => {}
            }
        }
        places
    }
}
