//! Static fields and the places of their values.
//!
//! The runtime keeps the references of static fields in arrays of its own, which handles hold. Only
//! the address of an element of such an array shows that it is a static field.

use std::collections::{HashMap, HashSet};

use clr_profiler::metadata::signature::{self, Primitive, Type};
use clr_profiler::{AppDomainId, ClassId, ModuleId, NameCache, ProfilerInfo, StaticKind, ThreadId, Token};
use clrscope_recording::model::{HeapPlace, RootKind};

/// The static fields of a declaration that may hold references.
type Declared = Vec<(Token, String)>;

/// Static fields by module and class token, looked up once.
#[derive(Debug, Default)]
pub(super) struct StaticFields {
    modules: HashMap<ModuleId, HashMap<Token, Declared>>,
}

/// Static fields of loaded classes.
#[derive(Debug, Default)]
pub(super) struct Fields {
    all: Vec<(ClassId, ModuleId, Token, String)>,
    seen: HashSet<ClassId>,
}

impl StaticFields {
    /// Call it when a module has been unloaded, as its identifier may be used again.
    pub(super) fn module_unloaded(&mut self, module: ModuleId) {
        self.modules.remove(&module);
    }

    /// Adds the static fields of these classes and of their base classes, unless they were added
    /// before. Returns the added fields. Searches metadata, which takes time. The classes must be
    /// known to be loaded: the runtime loads a class that it is asked for by token, and crashes if
    /// it does so on a thread that is not managed.
    pub(super) fn add(
        &mut self,
        info: &ProfilerInfo,
        names: &NameCache,
        classes: impl IntoIterator<Item = ClassId>,
        fields: &mut Fields,
    ) -> Fields {
        let mut added = Fields::default();
        for class in classes {
            let mut next = Some(class);
            while let Some(class) = next.filter(|class| fields.seen.insert(*class)) {
                let Ok(about) = info.class_info(class) else { break };
                let declared = self.of_module(info, names, about.module).get(&about.token);
                let of_class = declared.into_iter().flatten();
                added.all.extend(of_class.map(|(token, name)| (class, about.module, *token, name.clone())));
                next = about.parent;
            }
        }
        added
    }

    /// The loaded classes with static fields, except generic classes. They are found through their
    /// methods, since the runtime does not list classes but knows only methods of loaded classes.
    /// Listing compiled code crashes the runtime while code is unloaded (8.0.33), and that
    /// unloading continues after the runtime has reported the module as unloaded.
    pub(super) fn loaded(&mut self, info: &ProfilerInfo, names: &NameCache) -> Vec<ClassId> {
        let mut found = Vec::new();
        for module in info.modules().unwrap_or_default() {
            let Ok(metadata) = names.metadata(info, module) else { continue };
            for class in self.of_module(info, names, module).keys() {
                let method = metadata.methods(*class).ok().and_then(|methods| methods.first().copied());
                let function = method.and_then(|method| info.function_from_token(module, method).ok());
                found.extend(function.and_then(|function| info.function_place(function).ok()?.0));
            }
        }
        found
    }

    /// Name of a static field of a class, `Shop.Cache<Shop.Order>.items`; `None` if the class has
    /// no static field with this token.
    pub(super) fn name(
        &mut self,
        info: &ProfilerInfo,
        names: &NameCache,
        class: ClassId,
        token: u32,
    ) -> Option<String> {
        let about = info.class_info(class).ok()?;
        let declared = self.of_module(info, names, about.module).get(&about.token)?;
        let (_, field) = declared.iter().find(|(known, _)| known.as_raw() == token)?;
        Some(format!("{}.{field}", names.class(info, class)))
    }

    fn of_module(&mut self, info: &ProfilerInfo, names: &NameCache, module: ModuleId) -> &HashMap<Token, Declared> {
        self.modules.entry(module).or_insert_with(|| declared_in(info, names, module).unwrap_or_default())
    }
}

fn declared_in(
    info: &ProfilerInfo,
    names: &NameCache,
    module: ModuleId,
) -> clr_profiler::Result<HashMap<Token, Declared>> {
    let metadata = names.metadata(info, module)?;
    let mut found = HashMap::new();
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
            found.insert(class, fields);
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

/// The name of a field in the source; the compiler names a property's field after the property.
fn source_name(name: &str) -> &str {
    name.strip_prefix('<').and_then(|name| name.strip_suffix(">k__BackingField")).unwrap_or(name)
}

impl Fields {
    /// The places of the fields that have a value, including thread-static fields. `serial` gives a
    /// thread's number in the recording. Call only where the runtime may be queried.
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
        for (class, module, token, field) in &self.all {
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
