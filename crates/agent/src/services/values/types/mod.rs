//! From the runtime's types to kinds. Everything here runs where a function is compiled or a class has
//! been loaded; only [`class_of`] is for hooks.
//!
//! | module | what it holds |
//! |---|---|
//! | [`signatures`] | types as signatures and declarations name them |
//! | [`shape`] | the description of a class in the recording |
//! | [`primitives`] | numbers, characters, booleans |
//! | [`shared`] | the classes of code that instantiations share |
//! | [`tasks`] | tasks, which are shown as what they come to |
//! | [`builders`] | what builds the tasks of `async` methods |

mod builders;
pub(crate) mod primitives;
mod shape;
mod shared;
mod signatures;
mod tasks;

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, AtomicPtr, AtomicU32, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError, RwLock};

use clr_profiler::metadata::MetadataImport;
use clr_profiler::metadata::signature::{self, Primitive, Type};
use clr_profiler::{ClassId, ModuleId, NameCache, ProfilerInfo, Token};
use clrscope_recording::layout::value;
use clrscope_recording::payload::PayloadWriter;
use clrscope_recording::writer::{Chunk, EventStore, monotonic_ns};

use crate::os::memory::copy_if_there;
use crate::services::patterns::Redaction;

use super::arch::Convention;
use super::kinds::{Class, Field, Form, Kind, Shape};
use builders::Completions;
use primitives::{CORE_TYPES, core_kind, primitive_kind};
pub(super) use shape::{Member, Names};
use shape::{enumeration, repeat, source_name, value_end};

/// Classes whose objects were met before the runtime announced the class; resolved where queries are allowed.
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

struct Known {
    class: &'static Class,
    /// With any of these it goes.
    modules: Vec<ModuleId>,
}

/// First words of objects whose classes the runtime announced as loaded, with the modules they unload with.
static ANNOUNCED: RwLock<Option<HashMap<usize, Vec<ModuleId>>>> = RwLock::new(None);
/// The class that all arrays are derived from: nobody tells of theirs. 0 while it is not known where a class says
/// what it is derived from.
static ARRAYS: AtomicUsize = AtomicUsize::new(0);
/// Where a class says what it is derived from, on all runtimes seen; looked at before it is relied on.
const PARENT: usize = 16;

/// Whether the runtime announced a class whose objects begin with this word. For hooks: the word may be anything.
pub(crate) fn is_told(id: usize) -> bool {
    ANNOUNCED
        .read()
        .unwrap_or_else(PoisonError::into_inner)
        .as_ref()
        .is_some_and(|announced| announced.contains_key(&id))
        || is_array(id)
}

fn is_array(id: usize) -> bool {
    let arrays = ARRAYS.load(Ordering::Relaxed);
    arrays != 0 && id.is_multiple_of(8) && parent_of(id) == Some(arrays)
}

/// Parent of a class, by the field of its method table. `id` may be no class.
fn parent_of(id: usize) -> Option<usize> {
    let mut word = [0; 8];
    copy_if_there(id.checked_add(PARENT)?, &mut word).then(|| usize::from_ne_bytes(word))
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
    if let Some(class) = found {
        slot.store(std::ptr::from_ref(class).cast_mut(), Ordering::Release);
    }
    found
}

/// Queues a class to be resolved where queries are allowed. `class` must be one: the first word of a live object, or announced.
pub(crate) fn remember_unknown(id: usize) {
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
    /// Names of the type's parameters, where code that several instantiations share does not tell all arguments.
    pub(crate) type_parameters: &'s [String],
    /// Names of the method's parameters, likewise.
    pub(crate) method_parameters: &'s [String],
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
    convention: Convention,
    takes_values: bool,
    knows_primitives: AtomicBool,
    /// Array types as signatures in a module write them.
    declared_arrays: Mutex<HashMap<(ModuleId, String), &'static Class>>,
    instantiations: shared::Instantiations,
    completions: Completions,
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
        *ANNOUNCED.write().unwrap_or_else(PoisonError::into_inner) = Some(HashMap::new());
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
            // One that does not say its version is not an old one.
            convention: Convention::of(info.runtime_version().map_or(u16::MAX, |version| version.major)),
            takes_values,
            knows_primitives: AtomicBool::new(false),
            declared_arrays: Mutex::default(),
            instantiations: shared::Instantiations::default(),
            completions: Completions::default(),
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

    /// The calling convention of the runtime.
    pub(super) fn convention(&self) -> Convention {
        self.convention
    }

    /// Whether a module is the one that holds the types the runtime itself knows.
    pub(super) fn is_core(&self, module: ModuleId) -> bool {
        self.core.get() == Some(&module)
    }

    /// The metadata of a module.
    pub(super) fn metadata(&self, module: ModuleId) -> clr_profiler::Result<MetadataImport> {
        self.names.metadata(&self.info, module)
    }

    /// A type of that module by its name.
    pub(super) fn core_class(&self, name: &str) -> Option<&'static Class> {
        self.class(self.core_id(name)?)
    }

    fn core_id(&self, name: &str) -> Option<ClassId> {
        let core = *self.core.get()?;
        let token = self.metadata(core).ok()?.find_type_def(name, None).ok()??;
        self.info.class_from_token(core, token).ok()
    }

    /// The name of a class in its metadata.
    pub(super) fn declared_name(&self, about: &clr_profiler::ClassInfo) -> Option<String> {
        Some(self.metadata(about.module).ok()?.type_def(about.token).ok()?.name)
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

    /// A class is there. Those of the program, and what the framework makes of them, are looked into at once, so
    /// that their objects are known wherever they turn up; others when a signature names them or a hook meets them.
    pub(crate) fn class_loaded(&self, class: ClassId) {
        let Ok(about) = self.info.class_info(class) else { return };
        let mut from = self.note_instantiation(class, &about);
        from.push(about.module);
        let is_own = from.iter().any(|module| self.modules().contains(&(*module, false)));
        if let Some(announced) = ANNOUNCED.write().unwrap_or_else(PoisonError::into_inner).as_mut() {
            announced.insert(class.as_raw(), from);
        }
        if is_own {
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
        self.know_canceling();
        self.know_arrays();
    }

    /// Finds out whether classes say what they are derived from where we look.
    fn know_arrays(&self) {
        let id = |name| self.core_id(name).map(|id| id.as_raw());
        if let (Some(arrays), Some(string), Some(object)) =
            (id("System.Array"), id("System.String"), id("System.Object"))
            && parent_of(string) == Some(object)
            && parent_of(arrays) == Some(object)
        {
            ARRAYS.store(arrays, Ordering::Relaxed);
        }
    }

    /// A module is about to go: no object of its classes is left, so none of them is looked into any more.
    pub(crate) fn module_unloads(&self, module: ModuleId) {
        if let Some(announced) = ANNOUNCED.write().unwrap_or_else(PoisonError::into_inner).as_mut() {
            announced.retain(|_, from| !from.contains(&module));
        }
        if let Some(table) = TABLE.write().unwrap_or_else(PoisonError::into_inner).as_mut() {
            table.retain(|_, known| !known.modules.contains(&module));
        }
        PENDING.lock().unwrap_or_else(PoisonError::into_inner).clear();
    }

    /// A module is gone, and its ids may be used again.
    pub(crate) fn module_unloaded(&self, module: ModuleId) {
        self.names.module_unloaded(module);
        self.modules().retain(|(other, _)| *other != module);
        self.module_unloads(module);
        RECENT.iter().for_each(|slot| slot.store(std::ptr::null_mut(), Ordering::Release));
        self.declared_arrays().retain(|(of, _), _| *of != module);
        self.instantiations.module_unloaded(module);
    }

    /// Looks into the classes that hooks have met and did not know.
    pub(crate) fn look_into_pending(&self) {
        let pending: Vec<usize> = match PENDING.try_lock() {
            Ok(mut pending) if !pending.is_empty() => pending.drain(..).collect(),
            _ => return,
        };
        for id in pending {
            // SAFETY: hooks have read it as the class of a live object; classes of modules that may be unloaded are not looked into.
            self.class(unsafe { ClassId::from_raw(id) });
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
        if let Some(known) = TABLE.read().unwrap_or_else(PoisonError::into_inner).as_ref()?.get(&id.as_raw()) {
            return Some(known.class);
        }
        let array = self.info.array_class(id).ok()?;
        let about = match array {
            Some(_) => None,
            None => Some(self.info.class_info(id).ok()?),
        };
        let mut modules = Vec::new();
        self.modules_of(id, &mut modules, shared::NESTED);
        let class = {
            let mut table = TABLE.write().unwrap_or_else(PoisonError::into_inner);
            let table = table.as_mut()?;
            if let Some(known) = table.get(&id.as_raw()) {
                return Some(known.class);
            }
            let index = self.next.fetch_add(1, Ordering::Relaxed);
            let class: &'static Class = Box::leak(Box::new(Class { index, id: id.as_raw(), shape: OnceLock::new() }));
            table.insert(id.as_raw(), Known { class, modules });
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
        let class = self.declared_class(key.1.clone(), Names::default());
        let form = Form::Array { element: kind, rank };
        let _ = class.shape.set(Shape { form, size: 8, ..Shape::default() });
        known.insert(key, class);
        Some(class)
    }

    /// A class that no object is asked for: its name and those of its fields.
    pub(super) fn declared_class(&self, name: String, names: Names) -> &'static Class {
        let index = self.next.fetch_add(1, Ordering::Relaxed);
        let class: &'static Class = Box::leak(Box::new(Class { index, id: 0, shape: OnceLock::new() }));
        let mut payload = PayloadWriter::default();
        payload.u32(value::CLASS).u32(index).text(&name);
        payload.u32(u32::from(names.is_value)).texts(&names.fields).texts(&names.types).u32(0);
        self.describe(&payload);
        class
    }

    fn declared_arrays(&self) -> MutexGuard<'_, HashMap<(ModuleId, String), &'static Class>> {
        self.declared_arrays.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The fields of a class with their names and types, inherited ones first.
    pub(super) fn members(&self, id: ClassId) -> Option<Vec<Member>> {
        let about = self.info.class_info(id).ok()?;
        let metadata = self.metadata(about.module).ok()?;
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

    /// Names of the parameters of a generic type or method where the arguments leave some open.
    pub(crate) fn parameter_names(&self, metadata: &MetadataImport, of: Token, arguments: &[ClassId]) -> Vec<String> {
        if !arguments.iter().any(|id| self.is_shared(*id)) {
            return Vec::new();
        }
        let parameters = metadata.generic_params(of).unwrap_or_default();
        parameters.into_iter().map(|parameter| parameter.name).collect()
    }

    /// How a value of this class is read: value types by their fields, others by reference.
    pub(crate) fn kind_of(&self, id: ClassId) -> Kind {
        if matches!(self.info.array_class(id), Ok(Some(_))) {
            return Kind::Reference(self.class(id));
        }
        let Ok(about) = self.info.class_info(id) else { return Kind::Reference(None) };
        let Ok(metadata) = self.metadata(about.module) else { return Kind::Reference(None) };
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
        let name = self.metadata(parent.module).and_then(|m| m.type_def(parent.token)).map(|t| t.name);
        match name.as_deref() {
            // The class of all enumerations is none, and its objects are boxes.
            Ok("System.ValueType") if self.declared_name(about).as_deref() != Some("System.Enum") => Base::Value,
            Ok("System.Enum") => Base::Enum,
            _ => Base::Other,
        }
    }

    fn shape(&self, id: ClassId, about: &clr_profiler::ClassInfo, names: &mut Names) -> Shape {
        let Ok(metadata) = self.metadata(about.module) else { return Shape::default() };
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
        if name.contains("e__FixedBuffer") || is_inline_array(&metadata, about.token) {
            repeat(&mut shape, names);
        }
        shape.is_vector = is_core && is_vector(&name);
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
            && let Ok(of_base) = self.metadata(base.module)
        {
            self.fields(parent, &base, &of_base, fields, names, depth + 1);
        }
        let Ok(layout) = self.info.class_layout(id) else { return 8 };
        let parameters = self.parameter_names(metadata, about.token, &about.type_arguments);
        let scope = Scope {
            module: about.module,
            metadata,
            type_arguments: &about.type_arguments,
            method_arguments: &[],
            type_parameters: &parameters,
            method_parameters: &[],
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
        // A value's size ends with its padding, so that it is also the distance of one to the next in an array.
        if names.is_value { layout.size.max(value_end(fields)) } else { layout.size }
    }
}

fn is_inline_array(metadata: &MetadataImport, declared: Token) -> bool {
    let attribute = metadata.custom_attribute(declared, "System.Runtime.CompilerServices.InlineArrayAttribute");
    attribute.is_ok_and(|attribute| attribute.is_some())
}

/// Whether a value type of the framework is a vector of the processor.
fn is_vector(name: &str) -> bool {
    let rest =
        name.strip_prefix("System.Runtime.Intrinsics.Vector").or_else(|| name.strip_prefix("System.Numerics.Vector"));
    rest.is_some_and(|rest| rest.ends_with("`1"))
}

enum Base {
    Value,
    Enum,
    Other,
}
