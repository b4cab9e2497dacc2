//! From the runtime's types to kinds. Everything here runs where a function is compiled or a class has
//! been loaded; only [`class_of`] is for hooks.

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, AtomicPtr, AtomicU32, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError, RwLock};

use clr_profiler::metadata::MetadataImport;
use clr_profiler::metadata::signature::{self, Primitive, Type};
use clr_profiler::{ClassId, ModuleId, NameCache, ProfilerInfo, Token};
use clrscope_recording::layout::value;
use clrscope_recording::payload::PayloadWriter;
use clrscope_recording::writer::{Chunk, EventStore, monotonic_ns};

use crate::patterns::Redaction;

use super::kinds::{Class, Field, Form, Kind, Shape};

/// Classes whose objects were met before anybody had told of them; looked into where that is allowed.
const MOST_PENDING: usize = 256;
/// Fields of a class at most.
const MOST_FIELDS: usize = 64;
/// Constants of an enumeration at most.
const MOST_CONSTANTS: usize = 1024;
const CORE: &str = "System.Private.CoreLib";

/// The classes that hooks find by the first word of an object.
static TABLE: RwLock<Option<HashMap<usize, Known>>> = RwLock::new(None);
static PENDING: Mutex<Vec<usize>> = Mutex::new(Vec::new());
/// Classes that were asked for a moment ago, each where its first word leads to.
static RECENT: [AtomicPtr<Class>; 1024] = [const { AtomicPtr::new(std::ptr::null_mut()) }; 1024];

#[derive(Clone, Copy)]
struct Known {
    class: &'static Class,
    module: ModuleId,
}

/// The class of an object by its first word, if it is known. For hooks: the lock is only ever held for
/// a look or an insertion.
pub(crate) fn class_of(id: usize) -> Option<&'static Class> {
    // The first words are addresses of aligned structures.
    let slot = &RECENT[(id >> 3 ^ id >> 13) % RECENT.len()];
    // SAFETY: null, or a class, which is never freed.
    let recent: Option<&'static Class> = unsafe { slot.load(Ordering::Acquire).as_ref() };
    if let Some(class) = recent.filter(|class| class.id == id) {
        return Some(class);
    }
    let found = TABLE.read().unwrap_or_else(PoisonError::into_inner).as_ref()?.get(&id).map(|known| known.class);
    match found {
        Some(class) => slot.store(std::ptr::from_ref(class).cast_mut(), Ordering::Release),
        None => remember_unknown(id),
    }
    found
}

/// Has a class looked into where that is allowed.
fn remember_unknown(id: usize) {
    if let Ok(mut pending) = PENDING.try_lock()
        && pending.len() < MOST_PENDING
        && !pending.contains(&id)
    {
        // The memory was reserved when the types were made.
        pending.push(id);
    }
}

/// A type's declaration and its arguments: what signatures in it refer to.
pub(crate) struct Scope<'s> {
    pub(crate) module: ModuleId,
    pub(crate) metadata: &'s MetadataImport,
    pub(crate) type_arguments: &'s [ClassId],
    pub(crate) method_arguments: &'s [ClassId],
    /// Names of the type's parameters, where code that several instantiations share does not tell the arguments.
    pub(crate) shared: &'s [String],
}

/// The types.
pub(crate) struct Types {
    info: ProfilerInfo,
    names: NameCache,
    store: EventStore,
    chunk: Mutex<Option<Chunk>>,
    next: AtomicU32,
    /// Each with whether it belongs to the framework.
    modules: Mutex<Vec<(ModuleId, bool)>>,
    core: OnceLock<ModuleId>,
    redact: Arc<Redaction>,
    takes_values: bool,
    knows_primitives: AtomicBool,
    /// Array types as signatures in a module write them.
    declared_arrays: Mutex<HashMap<(ModuleId, String), &'static Class>>,
}

impl Types {
    /// Makes the types known to hooks. `store` takes their descriptions; parameters and fields whose name
    /// matches one of `redact` are never read.
    pub(crate) fn publish(
        info: &ProfilerInfo,
        store: EventStore,
        redact: Arc<Redaction>,
        takes_values: bool,
    ) -> &'static Self {
        *TABLE.write().unwrap_or_else(PoisonError::into_inner) = Some(HashMap::new());
        PENDING.lock().unwrap_or_else(PoisonError::into_inner).reserve(MOST_PENDING);
        Box::leak(Box::new(Self {
            info: info.clone(),
            names: NameCache::new(),
            store,
            chunk: Mutex::new(None),
            next: AtomicU32::new(1),
            modules: Mutex::default(),
            core: OnceLock::new(),
            redact,
            takes_values,
            knows_primitives: AtomicBool::new(false),
            declared_arrays: Mutex::default(),
        }))
    }

    /// The runtime.
    pub(crate) fn info(&self) -> &ProfilerInfo {
        &self.info
    }

    /// Where descriptions go.
    pub(crate) fn store(&self) -> &EventStore {
        &self.store
    }

    /// Whether a module is the one that holds the types the runtime itself knows.
    pub(super) fn is_core(&self, module: ModuleId) -> bool {
        self.core.get() == Some(&module)
    }

    /// A type of that module by its name.
    pub(super) fn core_class(&self, name: &str) -> Option<&'static Class> {
        let core = *self.core.get()?;
        let token = self.info.module_metadata(core).ok()?.find_type_def(name, None).ok()??;
        self.class(self.info.class_from_token(core, token).ok()?)
    }

    /// The name of a class in its metadata.
    pub(super) fn declared_name(&self, about: &clr_profiler::ClassInfo) -> Option<String> {
        Some(self.info.module_metadata(about.module).ok()?.type_def(about.token).ok()?.name)
    }

    /// Whether values are taken, not types alone.
    pub(crate) fn takes_values(&self) -> bool {
        self.takes_values
    }

    /// Whether values of this name are not to be read.
    pub(crate) fn hides(&self, name: &str) -> bool {
        self.redact.hides(name)
    }

    fn modules(&self) -> MutexGuard<'_, Vec<(ModuleId, bool)>> {
        self.modules.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A module is there.
    pub(crate) fn module_loaded(&self, module: ModuleId) {
        if self.names.assembly(&self.info, module).is_ok_and(|name| &*name == CORE) {
            let _ = self.core.set(module);
        }
        let framework = self.info.module_info(module).is_ok_and(|info| info.path.contains("/shared/Microsoft."));
        let mut modules = self.modules();
        if !modules.iter().any(|(known, _)| *known == module) {
            modules.push((module, framework));
        }
    }

    /// A class is there. Those of the program are looked into at once, so that their objects are known
    /// wherever they turn up; those of the framework when a signature names them or a hook meets them.
    pub(crate) fn class_loaded(&self, class: ClassId) {
        let Ok(about) = self.info.class_info(class) else { return };
        if self.modules().contains(&(about.module, false)) {
            self.class(class);
        }
    }

    /// Strings and boxed numbers turn up where signatures say `object`.
    pub(crate) fn know_primitives(&self) {
        if self.knows_primitives.swap(true, Ordering::AcqRel) {
            return;
        }
        for (name, _) in CORE_TYPES {
            self.core_class(name);
        }
    }

    /// A module is gone, and its ids may be used again.
    pub(crate) fn module_unloaded(&self, module: ModuleId) {
        self.names.module_unloaded(module);
        self.modules().retain(|(other, _)| *other != module);
        if let Some(table) = TABLE.write().unwrap_or_else(PoisonError::into_inner).as_mut() {
            table.retain(|_, known| known.module != module);
        }
        RECENT.iter().for_each(|slot| slot.store(std::ptr::null_mut(), Ordering::Release));
        self.declared_arrays().retain(|(of, _), _| *of != module);
    }

    /// Looks into the classes that hooks have met and did not know.
    pub(crate) fn look_into_pending(&self) {
        let pending: Vec<usize> = match PENDING.try_lock() {
            Ok(mut pending) if !pending.is_empty() => pending.drain(..).collect(),
            _ => return,
        };
        for id in pending {
            self.class(ClassId(id));
        }
    }

    /// Describes something in the recording.
    pub(crate) fn describe(&self, payload: &PayloadWriter) {
        let bytes = payload.bytes();
        let mut record = (bytes.len() as u32).to_le_bytes().to_vec();
        record.extend_from_slice(bytes);
        record.resize(record.len().next_multiple_of(4), 0);
        let mut chunk = self.chunk.lock().unwrap_or_else(PoisonError::into_inner);
        let now = monotonic_ns();
        if chunk.is_some_and(|chunk| chunk.append(&record, now)) {
            return;
        }
        // Not a hook: space may be asked for right here.
        let _ = self.store.keep_ahead();
        *chunk = self.store.take(0, (record.len() + 64).max(64 << 10), now);
        if let Some(chunk) = *chunk {
            chunk.append(&record, now);
        }
    }

    /// The class with this id; looked into when it is new.
    pub(crate) fn class(&self, id: ClassId) -> Option<&'static Class> {
        if let Some(known) = TABLE.read().unwrap_or_else(PoisonError::into_inner).as_ref()?.get(&id.0) {
            return Some(known.class);
        }
        let array = self.info.array_class(id).ok()?;
        let (module, about) = match array {
            Some(_) => (ModuleId(0), None),
            None => {
                let about = self.info.class_info(id).ok()?;
                (about.module, Some(about))
            }
        };
        let class = {
            let mut table = TABLE.write().unwrap_or_else(PoisonError::into_inner);
            let table = table.as_mut()?;
            if let Some(known) = table.get(&id.0) {
                return Some(known.class);
            }
            let index = self.next.fetch_add(1, Ordering::Relaxed);
            let class: &'static Class = Box::leak(Box::new(Class { index, id: id.0, shape: OnceLock::new() }));
            table.insert(id.0, Known { class, module });
            class
        };
        let mut names = Names::default();
        let shape = match (array, about) {
            (Some(array), _) => {
                // Elements of an enumeration are of its underlying type too.
                let primitive = || Primitive::from_element_type(array.element_type).and_then(primitive_kind);
                let element = array.element.map(|element| self.kind_of(element)).or_else(primitive);
                let form = Form::Array { element: element.unwrap_or(Kind::Opaque(8)), rank: array.rank };
                Shape { form, size: 8, ..Shape::default() }
            }
            (None, Some(about)) => self.shape(id, &about, &mut names),
            (None, None) => Shape::default(),
        };
        let _ = class.shape.set(shape);
        let mut payload = PayloadWriter::default();
        let name = names.name.take().unwrap_or_else(|| self.name_of(id));
        payload.u32(value::CLASS).u32(class.index).text(&name);
        payload.u32(u32::from(names.is_value)).texts(&names.fields).texts(&names.types);
        payload.u32(names.constants.len() as u32);
        for (name, number) in &names.constants {
            payload.text(name).u64(*number);
        }
        self.describe(&payload);
        Some(class)
    }

    /// The class of arrays that a signature names: for those whose own class no hook has met before.
    fn array(&self, ty: &Type, element: &Type, rank: u32, scope: &Scope<'_>) -> Option<&'static Class> {
        let kind = self.kind(element, scope);
        if matches!(kind, Kind::Opaque(_)) {
            return None;
        }
        let key = (scope.module, self.type_text(ty, scope));
        let mut known = self.declared_arrays();
        if let Some(class) = known.get(&key) {
            return Some(class);
        }
        let index = self.next.fetch_add(1, Ordering::Relaxed);
        let class: &'static Class = Box::leak(Box::new(Class { index, id: 0, shape: OnceLock::new() }));
        let form = Form::Array { element: kind, rank };
        let _ = class.shape.set(Shape { form, size: 8, ..Shape::default() });
        let mut payload = PayloadWriter::default();
        payload.u32(value::CLASS).u32(index).text(&key.1).u32(0).texts(&[]).texts(&[]).u32(0);
        self.describe(&payload);
        known.insert(key, class);
        Some(class)
    }

    fn declared_arrays(&self) -> MutexGuard<'_, HashMap<(ModuleId, String), &'static Class>> {
        self.declared_arrays.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The fields of a class with their names and types, inherited ones first.
    pub(super) fn members(&self, id: ClassId) -> Option<Vec<Member>> {
        let about = self.info.class_info(id).ok()?;
        let metadata = self.info.module_metadata(about.module).ok()?;
        let mut names = Names { is_value: matches!(self.base_of(&about), Base::Value), ..Names::default() };
        let mut fields = Vec::new();
        self.fields(id, &about, &metadata, &mut fields, &mut names, 0);
        let all = fields.into_iter().zip(names.fields.into_iter().zip(names.types));
        let member =
            |(field, (name, type_name)): (Field, _)| Member { name, type_name, offset: field.offset, kind: field.kind };
        Some(all.map(member).collect())
    }

    /// The name of a class as C# writes it.
    pub(crate) fn name_of(&self, id: ClassId) -> String {
        self.names.class(&self.info, id).to_string()
    }

    /// Whether a type argument stands for all reference types that share code, or holds one that does.
    pub(crate) fn is_shared(&self, id: ClassId) -> bool {
        id.is_null() || self.names.class(&self.info, id).contains("__Canon")
    }

    /// How a value of this class is read: value types by their fields, others by reference.
    pub(crate) fn kind_of(&self, id: ClassId) -> Kind {
        if matches!(self.info.array_class(id), Ok(Some(_))) {
            return Kind::Reference(self.class(id));
        }
        let Ok(about) = self.info.class_info(id) else { return Kind::Reference(None) };
        let Ok(metadata) = self.info.module_metadata(about.module) else { return Kind::Reference(None) };
        let Ok(declared) = metadata.type_def(about.token) else { return Kind::Reference(None) };
        if self.core.get() == Some(&about.module) {
            if let Some(kind) = core_kind(&declared.name) {
                return kind;
            }
            if declared.name == "System.__Canon" {
                return Kind::Reference(None);
            }
        }
        match self.base_of(&about) {
            Base::Value | Base::Enum => self.class(id).map_or(Kind::Opaque(8), Kind::Struct),
            Base::Other => Kind::Reference(self.class(id)),
        }
    }

    fn base_of(&self, about: &clr_profiler::ClassInfo) -> Base {
        let Some(parent) = about.parent else { return Base::Other };
        let Ok(parent) = self.info.class_info(parent) else { return Base::Other };
        if self.core.get() != Some(&parent.module) {
            return Base::Other;
        }
        let name = self.info.module_metadata(parent.module).and_then(|m| m.type_def(parent.token)).map(|t| t.name);
        match name.as_deref() {
            Ok("System.ValueType") => Base::Value,
            Ok("System.Enum") => Base::Enum,
            _ => Base::Other,
        }
    }

    fn shape(&self, id: ClassId, about: &clr_profiler::ClassInfo, names: &mut Names) -> Shape {
        let Ok(metadata) = self.info.module_metadata(about.module) else { return Shape::default() };
        let name = metadata.type_def(about.token).map(|declared| declared.name).unwrap_or_default();
        let is_core = self.core.get() == Some(&about.module);
        if is_core && name == "System.String" {
            return Shape { form: Form::String, size: 22, ..Shape::default() };
        }
        if is_core && let Some(kind) = core_kind(&name) {
            names.is_value = true;
            return Shape { form: Form::Primitive(kind), size: kind.size(), ..Shape::default() };
        }
        let base = self.base_of(about);
        names.is_value = !matches!(base, Base::Other);
        if matches!(base, Base::Enum) {
            return enumeration(&metadata, about.token, names);
        }
        let mut shape = Shape { is_value: names.is_value, ..Shape::default() };
        shape.size = self.fields(id, about, &metadata, &mut shape.fields, names, 0);
        match (names.is_value, is_core) {
            (true, true) => self.special(&name, about, &mut shape, names),
            (true, false) => {}
            (false, _) => self.as_task(id, about, &mut shape, names),
        }
        shape
    }

    /// Value types of the framework that are shown as what they mean.
    fn special(&self, name: &str, about: &clr_profiler::ClassInfo, shape: &mut Shape, names: &mut Names) {
        match (name, about.type_arguments.as_slice()) {
            ("System.Threading.Tasks.ValueTask" | "System.Threading.Tasks.ValueTask`1", _) => {
                self.as_value_task(shape, names);
            }
            ("System.Nullable`1", _) if shape.fields.len() == 2 => shape.form = Form::Nullable,
            ("System.Span`1" | "System.ReadOnlySpan`1", [element]) if !element.is_null() => {
                shape.form = Form::Span { element: self.kind_of(*element) };
                shape.size = 16;
            }
            _ => {}
        }
    }

    /// Adds the instance fields, inherited ones first; gives the size.
    fn fields(
        &self,
        id: ClassId,
        about: &clr_profiler::ClassInfo,
        metadata: &MetadataImport,
        fields: &mut Vec<Field>,
        names: &mut Names,
        depth: u32,
    ) -> u32 {
        if let Some(parent) = about.parent.filter(|_| depth < 32 && !names.is_value)
            && let Ok(base) = self.info.class_info(parent)
            && let Ok(of_base) = self.info.module_metadata(base.module)
        {
            self.fields(parent, &base, &of_base, fields, names, depth + 1);
        }
        let Ok(layout) = self.info.class_layout(id) else { return 8 };
        let scope = Scope {
            module: about.module,
            metadata,
            type_arguments: &about.type_arguments,
            method_arguments: &[],
            shared: &[],
        };
        for (token, offset) in layout.fields {
            let Ok(field) = metadata.field(token) else { continue };
            if field.is_static() || field.is_literal() || fields.len() >= MOST_FIELDS {
                continue;
            }
            let Ok(ty) = signature::field(field.signature) else { continue };
            let name = source_name(&field.name);
            let kind = if self.hides(name) { Kind::Redacted } else { self.kind(&ty, &scope) };
            names.fields.push(name.to_owned());
            names.types.push(self.type_text(&ty, &scope));
            fields.push(Field { offset, kind });
        }
        // The runtime counts an object's header too.
        if names.is_value { layout.size.saturating_sub(16).max(value_end(fields)) } else { layout.size }
    }

    /// How a value of a type in a signature is read.
    pub(crate) fn kind(&self, ty: &Type, scope: &Scope<'_>) -> Kind {
        match ty {
            Type::Primitive(primitive) => primitive_kind(*primitive).unwrap_or(Kind::Opaque(16)),
            Type::Pointer(_) | Type::FunctionPointer(_) | Type::ByRef(_) | Type::Internal(_) => Kind::Pointer,
            Type::Vector(element) => Kind::Reference(self.array(ty, element, 1, scope)),
            Type::Array { element, rank } => Kind::Reference(self.array(ty, element, *rank, scope)),
            Type::Named { is_value, .. } | Type::Generic { is_value, .. } => match self.class_id(ty, scope) {
                Some(id) => self.kind_of(id),
                None if *is_value => Kind::Opaque(0),
                None => Kind::Reference(None),
            },
            // Code is shared over references only; with one parameter it is the one.
            Type::TypeParameter(_) if scope.shared.len() == 1 => Kind::Reference(None),
            Type::TypeParameter(number) => self.argument(scope.type_arguments, *number),
            Type::MethodParameter(number) => self.argument(scope.method_arguments, *number),
        }
    }

    fn argument(&self, arguments: &[ClassId], number: u32) -> Kind {
        match arguments.get(number as usize) {
            Some(id) if !id.is_null() => self.kind_of(*id),
            _ => Kind::Opaque(0),
        }
    }

    /// The class of a type in a signature, where the runtime has one loaded or can load it.
    pub(crate) fn class_id(&self, ty: &Type, scope: &Scope<'_>) -> Option<ClassId> {
        match ty {
            Type::Primitive(primitive) => {
                let core = *self.core.get()?;
                let metadata = self.info.module_metadata(core).ok()?;
                let token = metadata.find_type_def(core_name(*primitive)?, None).ok()??;
                self.info.class_from_token(core, token).ok()
            }
            Type::Named { token, .. } => {
                let (module, token) = self.find(*token, scope.module, scope.metadata)?;
                self.info.class_from_token(module, token).ok().and_then(ClassId::non_null)
            }
            Type::Generic { token, arguments, .. } => {
                let (module, token) = self.find(*token, scope.module, scope.metadata)?;
                let arguments: Option<Vec<_>> = arguments.iter().map(|ty| self.class_id(ty, scope)).collect();
                let found = self.info.class_from_token_and_type_args(module, token, &arguments?);
                found.ok().and_then(ClassId::non_null)
            }
            Type::TypeParameter(number) => scope.type_arguments.get(*number as usize)?.non_null(),
            Type::MethodParameter(number) => scope.method_arguments.get(*number as usize)?.non_null(),
            _ => None,
        }
    }

    /// Where a type is declared: references lead to other modules by name.
    fn find(&self, token: Token, module: ModuleId, metadata: &MetadataImport) -> Option<(ModuleId, Token)> {
        if token.table() == Token::TYPE_DEF {
            return Some((module, token));
        }
        let mut path = Vec::new();
        let mut at = token;
        while at.table() == Token::TYPE_REF && path.len() < 16 {
            let reference = metadata.type_ref(at).ok()?;
            path.push(reference.name);
            at = reference.scope;
        }
        let core = self.core.get().copied();
        let others = self.modules().clone();
        core.into_iter().chain(others.into_iter().map(|(module, _)| module)).find_map(|module| {
            let metadata = self.info.module_metadata(module).ok()?;
            let mut found = None;
            for name in path.iter().rev() {
                found = Some(metadata.find_type_def(name, found).ok()??);
            }
            Some((module, found?))
        })
    }

    /// A type as C# writes it.
    pub(crate) fn type_text(&self, ty: &Type, scope: &Scope<'_>) -> String {
        match ty {
            Type::Primitive(primitive) => primitive.csharp().to_owned(),
            Type::Vector(element) => self.type_text(element, scope) + "[]",
            Type::Array { element, rank } => {
                let commas = ",".repeat(*rank as usize - 1);
                format!("{}[{commas}]", self.type_text(element, scope))
            }
            Type::Pointer(inner) => self.type_text(inner, scope) + "*",
            Type::ByRef(inner) => format!("ref {}", self.type_text(inner, scope)),
            Type::FunctionPointer(_) => "delegate*".to_owned(),
            Type::TypeParameter(number) if !scope.shared.is_empty() => {
                scope.shared.get(*number as usize).cloned().unwrap_or_else(|| "?".to_owned())
            }
            _ => match self.class_id(ty, scope) {
                Some(id) => self.names.class(&self.info, id).to_string(),
                None => "?".to_owned(),
            },
        }
    }
}

enum Base {
    Value,
    Enum,
    Other,
}

/// What the recording is told of a class.
#[derive(Default)]
pub(super) struct Names {
    /// Another name than its own.
    pub(super) name: Option<String>,
    is_value: bool,
    fields: Vec<String>,
    types: Vec<String>,
    constants: Vec<(String, u64)>,
}

impl Names {
    /// A field by its name, with the name of its type.
    pub(super) fn field(&self, name: &str, shape: &Shape) -> Option<(String, Field)> {
        let at = self.fields.iter().position(|field| field == name)?;
        Some((self.types.get(at)?.clone(), *shape.fields.get(at)?))
    }

    /// What a task shows instead of its fields.
    pub(super) fn become_task(&mut self, result: Option<String>) {
        self.fields = ["Status".to_owned()].into_iter().chain(result.as_ref().map(|_| "Result".to_owned())).collect();
        self.types = ["System.Threading.Tasks.TaskStatus".to_owned()].into_iter().chain(result).collect();
    }
}

/// A field with its names.
pub(super) struct Member {
    pub(super) name: String,
    pub(super) type_name: String,
    /// From the object's or value's beginning.
    pub(super) offset: u32,
    pub(super) kind: Kind,
}

/// An auto-property's field goes by the property's name.
fn source_name(name: &str) -> &str {
    name.strip_prefix('<').and_then(|rest| rest.strip_suffix(">k__BackingField")).unwrap_or(name)
}

fn value_end(fields: &[Field]) -> u32 {
    fields.iter().map(|field| field.offset + field.kind.size()).max().unwrap_or(1)
}

fn enumeration(metadata: &MetadataImport, token: Token, names: &mut Names) -> Shape {
    let mut form = Form::Enum { bytes: 4, signed: true };
    for field in metadata.fields(token).unwrap_or_default() {
        let Ok(field) = metadata.field(field) else { continue };
        if !field.is_static() {
            let underlying = signature::field(field.signature).ok();
            let kind = underlying.and_then(|ty| match ty {
                Type::Primitive(primitive) => primitive_kind(primitive),
                _ => None,
            });
            form = match kind {
                Some(Kind::Int(bytes)) => Form::Enum { bytes, signed: true },
                Some(Kind::UInt(bytes)) => Form::Enum { bytes, signed: false },
                _ => form,
            };
        } else if field.is_literal() && field.constant_address != 0 && names.constants.len() < MOST_CONSTANTS {
            let bytes: usize = match field.constant_type {
                0x02 | 0x04 | 0x05 => 1,
                0x03 | 0x06 | 0x07 => 2,
                0x0a | 0x0b => 8,
                _ => 4,
            };
            let mut raw = [0; 8];
            // SAFETY: the metadata holds a constant of that type at this address while the module is loaded.
            unsafe {
                std::ptr::copy_nonoverlapping(field.constant_address as *const u8, raw.as_mut_ptr(), bytes);
            }
            let unused = 64 - bytes as u32 * 8;
            let is_signed = matches!(field.constant_type, 0x04 | 0x06 | 0x08 | 0x0a);
            let raw = u64::from_le_bytes(raw);
            let number = if is_signed { (((raw << unused) as i64) >> unused) as u64 } else { raw };
            names.constants.push((field.name, number));
        }
    }
    let size = if let Form::Enum { bytes, .. } = form { u32::from(bytes) } else { 4 };
    Shape { form, size, ..Shape::default() }
}

/// How a primitive is read; `None` for what has no value.
pub(crate) fn primitive_kind(primitive: Primitive) -> Option<Kind> {
    Some(match primitive {
        Primitive::Bool => Kind::Bool,
        Primitive::Char => Kind::Char,
        Primitive::SByte => Kind::Int(1),
        Primitive::Short => Kind::Int(2),
        Primitive::Int => Kind::Int(4),
        Primitive::Long | Primitive::NInt => Kind::Int(8),
        Primitive::Byte => Kind::UInt(1),
        Primitive::UShort => Kind::UInt(2),
        Primitive::UInt => Kind::UInt(4),
        Primitive::ULong | Primitive::NUInt => Kind::UInt(8),
        Primitive::Float => Kind::Float,
        Primitive::Double => Kind::Double,
        Primitive::String => Kind::String,
        Primitive::Object => Kind::Reference(None),
        Primitive::Void | Primitive::TypedReference => return None,
    })
}

const CORE_TYPES: [(&str, Primitive); 16] = [
    ("System.Boolean", Primitive::Bool),
    ("System.Char", Primitive::Char),
    ("System.SByte", Primitive::SByte),
    ("System.Byte", Primitive::Byte),
    ("System.Int16", Primitive::Short),
    ("System.UInt16", Primitive::UShort),
    ("System.Int32", Primitive::Int),
    ("System.UInt32", Primitive::UInt),
    ("System.Int64", Primitive::Long),
    ("System.UInt64", Primitive::ULong),
    ("System.Single", Primitive::Float),
    ("System.Double", Primitive::Double),
    ("System.String", Primitive::String),
    ("System.Object", Primitive::Object),
    ("System.IntPtr", Primitive::NInt),
    ("System.UIntPtr", Primitive::NUInt),
];

/// The kind of a primitive by the name of its class.
fn core_kind(name: &str) -> Option<Kind> {
    let found = CORE_TYPES.iter().find(|(known, _)| *known == name && *known != "System.Object");
    found.and_then(|(_, primitive)| primitive_kind(*primitive))
}

fn core_name(primitive: Primitive) -> Option<&'static str> {
    CORE_TYPES.iter().find(|(_, known)| *known == primitive).map(|(name, _)| *name)
}
