//! Maps the runtime's types to kinds of values. All of this runs when a function is compiled or a
//! class has been loaded, or on a thread of the agent's own. Hooks may use only the [`table`].
//!
//! | module | what it holds |
//! |---|---|
//! | `signatures` | types in signatures and declarations |
//! | `layout` | shapes of classes, from the runtime's layout and the metadata |
//! | `shape` | the description of a class in the recording |
//! | `primitives` | numbers, characters, booleans |
//! | [`loading`] | which types are found, which are loaded, and on which threads |
//! | `shared` | the classes of code that instantiations share |
//! | `tasks` | tasks, which are shown by state and result |
//! | `builders` | the builders of the tasks of `async` methods |
//! | [`table`] | the classes as hooks find them |

mod builders;
mod layout;
pub mod loading;
pub(crate) mod primitives;
mod shape;
mod shared;
mod signatures;
pub mod table;
mod tasks;

use std::cell::RefCell;
use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

use clr_profiler::metadata::MetadataImport;
use clr_profiler::metadata::signature::{Primitive, Type};
use clr_profiler::{ClassId, Events, FunctionId, ModuleId, NameCache, ProfilerInfo, Token};
use clrscope_agent_base::code_owner::{RunAddress, function_at};
use clrscope_agent_base::functions::Functions;
use clrscope_agent_base::patterns::Redaction;
use clrscope_agent_base::recording_lifetime::keep;
use clrscope_recording::layout::value;
use clrscope_recording::payload::PayloadWriter;
use clrscope_recording::writer::{Chunk, EventStore, monotonic_ns};

use super::arch::Convention;
use super::kinds::{Class, Form, Kind, Shape};
use super::{collections, delegates, source_names};
use builders::Completions;
use layout::Base;
use primitives::{CORE_TYPES, core_kind, primitive_kind};
pub(super) use shape::{Member, Names};
use table::Insertion;

/// Most fields of a class.
const MOST_FIELDS: usize = 64;
/// Most constants of an enumeration.
const MOST_CONSTANTS: usize = 1024;
const CORE: &str = "System.Private.CoreLib";
/// Most addresses that wait for their method to be known.
const MOST_WAITING: usize = 128;

thread_local! {
    /// First words of objects of the classes whose shapes this thread is finding.
    static IN_PROGRESS: RefCell<Vec<usize>> = const { RefCell::new(Vec::new()) };
}

/// Marks that this thread is finding the shape of a class, until the mark is dropped: a class may
/// have fields of its own class.
struct InProgress(usize);

impl InProgress {
    /// `None` if this thread is already finding the shape of this class.
    fn begin(id: usize) -> Option<Self> {
        IN_PROGRESS.with_borrow_mut(|all| {
            let is_new = !all.contains(&id);
            is_new.then(|| {
                all.push(id);
                Self(id)
            })
        })
    }
}

impl Drop for InProgress {
    fn drop(&mut self) {
        IN_PROGRESS.with_borrow_mut(|all| all.retain(|id| *id != self.0));
    }
}

/// Events of the runtime that keep the types up to date.
pub const EVENTS: Events = Events::CLASS_LOADS.union(Events::JIT_COMPILATION).union(Events::BASIC_GC);

/// A type's declaration and type arguments, to which its signatures refer.
pub(crate) struct Scope<'s> {
    pub module: ModuleId,
    pub metadata: &'s MetadataImport,
    pub(crate) type_arguments: &'s [ClassId],
    pub(crate) method_arguments: &'s [ClassId],
    /// Names of the type's parameters, for code that several instantiations share and that does not
    /// tell all arguments.
    pub(crate) type_parameters: &'s [String],
    /// Names of the method's parameters, for the same case.
    pub(crate) method_parameters: &'s [String],
    /// Whether the types of values, and their type arguments, are loaded together with the member
    /// that has the signature.
    pub(crate) loads_values: bool,
}

/// The program's types whose values are recorded.
pub struct Types {
    info: ProfilerInfo,
    names: NameCache,
    store: EventStore,
    chunk: Mutex<Option<Chunk>>,
    functions: Arc<Functions>,
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
    /// Types that are not generic and were found to be loaded.
    found_loaded: Mutex<HashMap<(ModuleId, Token), ClassId>>,
    completions: Completions,
}

/// Drops the classes when the recording is over.
pub fn let_go() {
    table::let_go();
}

impl Types {
    /// Makes the types known to hooks. `store` receives their descriptions. Parameters and fields
    /// whose name matches one of `redact` are never read.
    pub fn publish(
        info: &ProfilerInfo,
        store: EventStore,
        functions: Arc<Functions>,
        redact: Arc<Redaction>,
        takes_values: bool,
    ) -> &'static Self {
        // Collections before this point were not reported.
        collections::begin_anew();
        table::prepare();
        delegates::prepare();
        keep(Self {
            info: info.clone(),
            names: NameCache::new(),
            store,
            chunk: Mutex::new(None),
            functions,
            modules: Mutex::default(),
            core: OnceLock::new(),
            redact,
            // A runtime that does not report its version is not an old one.
            convention: Convention::for_runtime(info.runtime_version().map_or(u16::MAX, |version| version.major)),
            takes_values,
            knows_primitives: AtomicBool::new(false),
            declared_arrays: Mutex::default(),
            instantiations: shared::Instantiations::default(),
            found_loaded: Mutex::default(),
            completions: Completions::default(),
        })
    }

    /// Access to the runtime.
    pub fn info(&self) -> &ProfilerInfo {
        &self.info
    }

    /// Drops the runtime's metadata when the recording is over.
    pub(crate) fn forget_names(&self) {
        self.names.forget_all();
    }

    /// The store that holds the descriptions of classes.
    pub fn store(&self) -> &EventStore {
        &self.store
    }

    /// The calling convention of the runtime.
    pub(super) fn convention(&self) -> Convention {
        self.convention
    }

    /// Whether a module is the core library, which holds the types that the runtime itself knows.
    pub(super) fn is_core(&self, module: ModuleId) -> bool {
        self.core.get() == Some(&module)
    }

    /// The metadata of a module.
    pub(super) fn metadata(&self, module: ModuleId) -> clr_profiler::Result<MetadataImport> {
        self.names.metadata(&self.info, module)
    }

    /// The type of the core library that has this name.
    pub(super) fn core_class(&self, name: &str) -> Option<&'static Class> {
        self.class(self.core_id(name)?)
    }

    fn core_id(&self, name: &str) -> Option<ClassId> {
        let core = *self.core.get()?;
        let token = self.metadata(core).ok()?.find_type_def(name, None).ok()??;
        if loading::keeps_from_loading() {
            return self.loaded_named(core, token, true);
        }
        self.info.class_from_token(core, token).ok()
    }

    /// The name of a class in its metadata.
    pub(super) fn declared_name(&self, about: &clr_profiler::ClassInfo) -> Option<String> {
        Some(self.metadata(about.module).ok()?.type_def(about.token).ok()?.name)
    }

    /// Whether values are recorded; otherwise only types are.
    pub fn takes_values(&self) -> bool {
        self.takes_values
    }

    /// Whether values with this name must not be read. All names that it may have in the source are
    /// checked.
    pub fn hides(&self, name: &str) -> bool {
        source_names::all(name).any(|name| self.redact.hides(name))
    }

    /// Whether there are any names whose values must not be read.
    pub(crate) fn hides_something(&self) -> bool {
        self.redact.hides_something()
    }

    fn modules(&self) -> MutexGuard<'_, Vec<(ModuleId, bool)>> {
        self.modules.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Call it when a module has been loaded.
    pub fn module_loaded(&self, module: ModuleId) {
        if self.names.assembly(&self.info, module).is_ok_and(|name| &*name == CORE) {
            let _ = self.core.set(module);
        }
        let framework = self.info.module_info(module).is_ok_and(|info| info.path.contains("/shared/Microsoft."));
        let mut modules = self.modules();
        if !modules.iter().any(|(known, _)| *known == module) {
            modules.push((module, framework));
        }
    }

    /// Call it when a class is loaded. Finds the memory layout of the program's classes, and of
    /// framework generics over them, at once, since any hook may see their objects. Other layouts
    /// are found when a signature or hook first needs them.
    pub fn class_loaded(&self, class: ClassId) {
        let Ok(about) = self.info.class_info(class) else { return };
        let mut from = self.note_instantiation(class, &about);
        from.push(about.module);
        let is_own = from.iter().any(|module| self.modules().contains(&(*module, false)));
        table::announce(class.as_raw(), from);
        let is_wanted = |name: String| is_known_by_another_form(&name) || is_of_framework(&name);
        if is_own || self.declared_name(&about).is_some_and(is_wanted) {
            self.class(class);
        }
    }

    /// Finds the layouts of strings and boxed numbers, which may be in places that signatures call
    /// `object`.
    pub(crate) fn know_primitives(&self) {
        if self.knows_primitives.swap(true, Ordering::AcqRel) {
            return;
        }
        for (name, _) in CORE_TYPES {
            self.core_class(name);
        }
        self.know_canceling();
        self.know_arrays();
        self.know_values();
    }

    /// Checks whether the place that we read in a class really holds its base class.
    fn know_arrays(&self) {
        let id = |name| self.core_id(name).map(|id| id.as_raw());
        if let (Some(arrays), Some(string), Some(object)) =
            (id("System.Array"), id("System.String"), id("System.Object"))
        {
            table::know_arrays(arrays, string, object);
        }
    }

    /// Checks whether the place that we read in a class really says whether it is a value type.
    fn know_values(&self) {
        let ids = |names: [&str; 4]| names.map(|name| self.core_id(name).map_or(0, |id| id.as_raw()));
        let of_values = ids(["System.Int32", "System.Double", "System.Guid", "System.DayOfWeek"]);
        table::know_values(&of_values, &ids(["System.Object", "System.String", "System.Array", "System.IDisposable"]));
    }

    /// Finds the memory layouts of the value types that are type arguments of a function, so that
    /// they are known when the function's hooks see their values.
    pub fn know_type_arguments(&self, function: FunctionId) {
        let Ok(about) = self.info.function_info(function) else { return };
        let of_class = about.class.and_then(|class| self.info.class_info(class).ok());
        let of_class = of_class.into_iter().flat_map(|class| class.type_arguments).chain(about.class);
        let all = about.type_arguments.into_iter().chain(of_class);
        for argument in all.filter(|argument| !argument.is_null() && !self.is_shared(*argument)) {
            self.class(argument);
        }
    }

    /// Call it when a module is about to unload. No objects of its classes are left, so their
    /// layouts are no longer searched for.
    pub fn module_unloads(&self, module: ModuleId) {
        delegates::forget();
        table::forget(module);
    }

    /// Call it when a module has been unloaded, because its ids may be used again.
    pub fn module_unloaded(&self, module: ModuleId) {
        self.names.module_unloaded(module);
        self.modules().retain(|(other, _)| *other != module);
        self.module_unloads(module);
        table::forget_recent();
        self.declared_arrays().retain(|(of, _), _| *of != module);
        self.instantiations.module_unloaded(module);
        self.found_loaded().retain(|(of, _), _| *of != module);
    }

    /// Whether hooks have seen classes or delegates that are not described yet.
    pub fn has_pending(&self) -> bool {
        table::has_pending() || delegates::is_time()
    }

    /// Finds the memory layouts of classes that were unknown when hooks saw their objects. The
    /// values that were written name these classes by number.
    pub fn look_into_pending(&self) {
        for id in table::pending() {
            // SAFETY: hooks have read it as the class of a live object; shapes of classes in
            // unloadable modules are not looked for.
            self.class(unsafe { ClassId::from_raw(id) });
            self.look_into_referred();
            table::no_longer_pending(id);
        }
    }

    /// Finds the methods of delegates seen by hooks, for compiled methods.
    pub fn name_delegates(&self) {
        let pending = delegates::pending();
        if pending.is_empty() {
            return;
        }
        let done: Vec<usize> = pending.iter().copied().filter(|address| self.name_delegate(*address)).collect();
        delegates::no_longer_pending(&done);
        // Stubs without a method of their own would occupy places for ever.
        let rest = pending.len() - done.len();
        if rest > MOST_WAITING {
            let waiting = pending.iter().copied().filter(|address| !done.contains(address));
            delegates::no_longer_pending(&waiting.take(rest - MOST_WAITING).collect::<Vec<_>>());
        }
    }

    /// Describes the method at an address; returns whether the address needs no further work.
    fn name_delegate(&self, address: usize) -> bool {
        let method = match delegates::method_of_stub(address) {
            // SAFETY: only compared with the identifiers of known functions.
            Some(method) => unsafe { FunctionId::from_raw(method) },
            None => match function_at(&self.info, RunAddress::called(address)) {
                Some((method, _)) => method,
                None => return true,
            },
        };
        if self.functions.known(method).is_none() {
            return false;
        }
        // After an unload another method may lie at the same address.
        let module = self.info.function_info(method).map(|function| function.module);
        let stays = module
            .and_then(|module| self.info.module_info(module))
            .is_ok_and(|info| !info.flags.is_collectible() && !info.flags.is_dynamic());
        let is_dynamic = self.functions.names().function(&self.info, method).token.as_raw() == 0;
        if stays && !is_dynamic {
            let mut payload = PayloadWriter::default();
            payload.u32(value::METHOD).u64(address as u64).u32(self.functions.noted(method).index);
            self.describe(&payload);
        }
        true
    }

    /// Writes a description into the recording.
    pub fn describe(&self, payload: &PayloadWriter) {
        let bytes = payload.bytes();
        let mut record = (bytes.len() as u32).to_le_bytes().to_vec();
        record.extend_from_slice(bytes);
        record.resize(record.len().next_multiple_of(4), 0);
        let mut chunk = self.chunk.lock().unwrap_or_else(PoisonError::into_inner);
        let now = monotonic_ns();
        if chunk.is_some_and(|chunk| chunk.append(&record, now)) {
            return;
        }
        // Not a hook: space may be allocated here.
        let _ = self.store.keep_ahead();
        *chunk = self.store.allocate_chunk(0, (record.len() + 64).max(64 << 10), now);
        if let Some(chunk) = *chunk {
            chunk.append(&record, now);
        }
    }

    /// The class with this id. For a new class, also finds its memory layout, unless this thread is
    /// already doing that.
    pub fn class(&self, id: ClassId) -> Option<&'static Class> {
        Some(match self.enter(id)? {
            Insertion::Known(class) => {
                if class.shape.get().is_none() {
                    self.find_shape(class, id);
                }
                class
            }
            Insertion::New(class) => {
                self.look_into(class, id);
                class
            }
        })
    }

    /// Enters the class with this id into the table.
    fn enter(&self, id: ClassId) -> Option<Insertion> {
        if let Some(known) = table::known(id.as_raw()) {
            return Some(Insertion::Known(known));
        }
        if self.info.array_class(id).ok()?.is_none() {
            self.info.class_info(id).ok()?;
        }
        let mut modules = Vec::new();
        self.modules_of(id, &mut modules, shared::NESTED);
        table::insert(id.as_raw(), modules)
    }

    /// Finds the shape of a class that is new in the table, and describes the class.
    fn look_into(&self, class: &'static Class, id: ClassId) {
        let mut names = self.find_shape(class, id);
        let mut payload = PayloadWriter::default();
        let name = names.name.take().unwrap_or_else(|| self.name_of(id));
        payload.u32(value::CLASS).u32(class.index).text(&name);
        payload.u32(u32::from(names.is_value)).texts(&names.fields).texts(&names.types);
        payload.u32(names.constants.len() as u32);
        for (name, number) in &names.constants {
            payload.text(name).u64(*number);
        }
        payload.u32(class.object_bytes());
        self.describe(&payload);
    }

    /// Finds and sets the shape of a class. Another thread may do the same at the same time.
    /// Neither waits for the other: both query the runtime, so waiting could deadlock.
    fn find_shape(&self, class: &'static Class, id: ClassId) -> Names {
        let mut names = Names::default();
        let Some(_mark) = InProgress::begin(class.id) else { return names };
        let shape = match (self.info.array_class(id), self.info.class_info(id)) {
            (Ok(Some(array)), _) => {
                // Elements of an enumeration are of its underlying type too.
                let primitive = || Primitive::from_element_type(array.element_type).and_then(primitive_kind);
                let element = array.element.map(|element| self.kind_of(element)).or_else(primitive);
                let form = Form::Array { element: element.unwrap_or(Kind::Opaque(8)), rank: array.rank };
                Shape { form, size: 8, ..Shape::default() }
            }
            (_, Ok(about)) => self.shape(id, &about, &mut names),
            _ => Shape::default(),
        };
        let _ = class.shape.set(shape);
        names
    }

    /// The class of arrays that a signature names, for arrays whose own class no hook has met yet.
    fn array(&self, ty: &Type, element: &Type, rank: u32, scope: &Scope<'_>) -> Option<&'static Class> {
        if loading::keeps_from_loading()
            && matches!(element, Type::Named { is_value: true, .. } | Type::Generic { is_value: true, .. })
        {
            // The signature does not show that the element type is loaded; an array object does.
            return None;
        }
        // The array type can be loaded without its element type.
        let kind = self.kind(element, &Scope { loads_values: false, ..*scope });
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

    /// A class that is only described and never found by an object. It has a name and the names of
    /// its fields.
    pub(super) fn declared_class(&self, name: String, names: Names) -> &'static Class {
        let index = table::new_number();
        let class: &'static Class = Box::leak(Box::new(Class { index, id: 0, shape: OnceLock::new() }));
        let mut payload = PayloadWriter::default();
        payload.u32(value::CLASS).u32(index).text(&name);
        payload.u32(u32::from(names.is_value)).texts(&names.fields).texts(&names.types).u32(0);
        self.describe(&payload);
        class
    }

    fn found_loaded(&self) -> MutexGuard<'_, HashMap<(ModuleId, Token), ClassId>> {
        self.found_loaded.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn declared_arrays(&self) -> MutexGuard<'_, HashMap<(ModuleId, String), &'static Class>> {
        self.declared_arrays.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The name of a class in C# notation.
    pub fn name_of(&self, id: ClassId) -> String {
        self.names.class(&self.info, id).to_string()
    }

    /// Whether a type argument represents all reference types that share code, or itself has such a
    /// type argument.
    pub(crate) fn is_shared(&self, id: ClassId) -> bool {
        id.is_null() || self.names.class(&self.info, id).contains("__Canon")
    }

    /// Names of the parameters of a generic type or method, if some arguments are unknown;
    /// otherwise empty.
    pub(crate) fn parameter_names(&self, metadata: &MetadataImport, of: Token, arguments: &[ClassId]) -> Vec<String> {
        if !arguments.iter().any(|id| self.is_shared(*id)) {
            return Vec::new();
        }
        let parameters = metadata.generic_params(of).unwrap_or_default();
        parameters.into_iter().map(|parameter| parameter.name).collect()
    }

    /// The kind as which a value of this class is read: value types by their fields, all others by
    /// reference.
    pub(crate) fn kind_of(&self, id: ClassId) -> Kind {
        if matches!(self.info.array_class(id), Ok(Some(_))) {
            return Kind::Reference(self.reference_to(id));
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
            Base::Other => Kind::Reference(self.reference_to(id)),
        }
    }

    fn reference_to(&self, id: ClassId) -> Option<&'static Class> {
        if loading::keeps_from_loading() { self.referred_to(id) } else { self.class(id) }
    }
}

/// Generic value types of the framework whose values are handed over by typed reference; names
/// without the number of parameters. For types of other assemblies this is not looked up.
const OF_FRAMEWORK: [&str; 8] = [
    "System.ArraySegment",
    "System.Collections.Generic.KeyValuePair",
    "System.Collections.Immutable.ImmutableArray",
    "System.Memory",
    "System.Nullable",
    "System.ReadOnlyMemory",
    "System.Threading.Tasks.ValueTask",
    "System.ValueTuple",
];

/// Whether values of the framework type with this name are passed by typed reference, if known.
pub(crate) fn is_of_framework(name: &str) -> bool {
    name.split_once('`').is_some_and(|(name, _)| OF_FRAMEWORK.contains(&name))
}

/// Whether a type's values have a well-known form other than their fields. The shape of such a type
/// is needed from its first value on.
fn is_known_by_another_form(name: &str) -> bool {
    const TYPES: [&str; 16] = [
        "DateOnly",
        "DateTime",
        "DateTimeOffset",
        "DayOfWeek",
        "Decimal",
        "Guid",
        "Half",
        "Int128",
        "Numerics.BigInteger",
        "RuntimeType",
        "TimeOnly",
        "TimeSpan",
        "UInt128",
        "Uri",
        "Version",
        "ValueTuple",
    ];
    let Some(name) = name.strip_prefix("System.") else { return false };
    let plain = name.split('`').next().unwrap_or(name);
    TYPES.contains(&plain) || plain.strip_prefix("Collections.Generic.").is_some_and(|name| !name.contains("Comparer"))
}
