//! The dictionary of object types, which the instruments that record memory share. It has the
//! number of each class, and its name and module in the recording.
//!
//! The runtime reuses identifiers of classes after an unload. So each class gets a number of our
//! own when it is first seen, and a number is never reused. Where the runtime must not be queried
//! (in a collection, for example) the class gets its number at once and its name in the next
//! callback that may ask. No lock is held while the runtime is asked.

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

use clr_profiler::callback_args::DynamicIl;
use clr_profiler::{Callbacks, ClassId, FunctionId, ModuleId, ProfilerInfo, Result};
use clrscope_agent_base::functions::Functions;
use clrscope_recording::model::{LossReason, ObjectType};
use clrscope_recording::writer::{ProcessWriter, monotonic_ns};

const CORE: &str = "System.Private.CoreLib";
/// Arrays that are nested deeper than this have no module.
const DEEPEST: usize = 32;
/// Classes that wait for their names at most.
const MOST_WAITING: usize = 1 << 20;

/// The dictionary of object types.
pub(crate) struct ObjectTypes {
    info: ProfilerInfo,
    writer: &'static ProcessWriter,
    functions: Arc<Functions>,
    /// The library with the types that the runtime itself knows.
    core: OnceLock<ModuleId>,
    tables: Mutex<Tables>,
    any_waiting: AtomicBool,
}

#[derive(Default)]
struct Tables {
    by_class: HashMap<ClassId, u32>,
    last: u32,
    /// Classes that have numbers but no names yet.
    waiting: Vec<(ClassId, u32)>,
}

impl ObjectTypes {
    pub(crate) fn new(info: &ProfilerInfo, writer: &'static ProcessWriter, functions: &Arc<Functions>) -> Self {
        Self {
            info: info.clone(),
            writer,
            functions: Arc::clone(functions),
            core: OnceLock::new(),
            tables: Mutex::default(),
            any_waiting: AtomicBool::new(false),
        }
    }

    fn tables(&self) -> MutexGuard<'_, Tables> {
        self.tables.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The number of a class; its name is in the recording when this returns. Call only where the
    /// runtime may be queried for names. The look-up may let a collection run, so ask about the
    /// object itself before.
    pub(crate) fn noted(&self, class: ClassId) -> u32 {
        let number = self.numbered(class, false);
        self.settle();
        if let (number, true) = number {
            self.note(class, number);
        }
        number.0
    }

    /// The number of a class; `None` if it has none yet. `class` is the runtime's identifier. Does
    /// not ask the runtime.
    pub(crate) fn known(&self, class: usize) -> Option<u32> {
        // SAFETY: a key to compare with; the runtime is never asked about it.
        let class = unsafe { ClassId::from_raw(class) };
        self.tables().by_class.get(&class).copied()
    }

    /// The number of a class. May be called even where the runtime must not be queried. The name
    /// follows later ([`settle`](Self::settle)).
    pub(crate) fn reserved(&self, class: ClassId) -> u32 {
        self.numbered(class, true).0
    }

    /// The number, and whether the class is new.
    fn numbered(&self, class: ClassId, waits: bool) -> (u32, bool) {
        if class.is_null() {
            return (0, false);
        }
        let mut tables = self.tables();
        if let Some(&number) = tables.by_class.get(&class) {
            return (number, false);
        }
        tables.last += 1;
        let number = tables.last;
        tables.by_class.insert(class, number);
        if waits && tables.waiting.len() < MOST_WAITING {
            tables.waiting.push((class, number));
            self.any_waiting.store(true, Ordering::Release);
        }
        (number, true)
    }

    /// Looks up the names that were deferred. Call only where calls into the runtime are allowed.
    pub(crate) fn settle(&self) {
        if self.any_waiting.load(Ordering::Relaxed) && self.any_waiting.swap(false, Ordering::AcqRel) {
            let waiting = std::mem::take(&mut self.tables().waiting);
            waiting.into_iter().for_each(|(class, number)| self.note(class, number));
        }
    }

    /// Whether no class waits for its name.
    pub(crate) fn is_settled(&self) -> bool {
        !self.any_waiting.load(Ordering::Acquire)
    }

    fn note(&self, class: ClassId, number: u32) {
        let name = self.functions.names().class(&self.info, class).to_string();
        if name == "?" {
            self.writer.state().lose(LossReason::NameUnknown, 1, monotonic_ns());
        }
        let module = self.module_of(class).map_or(0, |module| self.functions.module_index(module));
        self.writer.object_type(number, ObjectType { name, module });
    }

    /// The module that declares a class or, for an array, the class of its elements.
    fn module_of(&self, class: ClassId) -> Option<ModuleId> {
        let mut class = class;
        for _ in 0..DEEPEST {
            let Some(array) = self.info.array_class(class).ok()? else {
                return self.info.class_info(class).ok().map(|about| about.module);
            };
            match array.element {
                Some(element) => class = element,
                // Numbers: the runtime gives no class for them.
                None => return self.core(),
            }
        }
        None
    }

    fn core(&self) -> Option<ModuleId> {
        if let Some(core) = self.core.get() {
            return Some(*core);
        }
        let names = self.functions.names();
        let is_core = |module: &ModuleId| names.assembly(&self.info, *module).is_ok_and(|name| &*name == CORE);
        let core = self.info.modules().ok()?.into_iter().find(is_core)?;
        Some(*self.core.get_or_init(|| core))
    }

    /// Gives all classes new numbers, because only the runtime could tell which module a class
    /// belonged to. The reader merges classes of the same name.
    fn forget_all(&self) {
        let lost = {
            let mut tables = self.tables();
            tables.by_class.clear();
            std::mem::take(&mut tables.waiting).len()
        };
        if lost > 0 {
            self.writer.state().lose(LossReason::NameUnknown, lost as u64, monotonic_ns());
        }
    }
}

impl Callbacks for ObjectTypes {
    fn module_unload_finished(&self, _module: ModuleId, _status: Result<()>) {
        self.forget_all();
    }

    fn jit_compilation_started(&self, _function: FunctionId, _is_safe_to_block: bool) {
        self.settle();
    }

    fn dynamic_method_jit_compilation_started(
        &self,
        _function: FunctionId,
        _is_safe_to_block: bool,
        _il: DynamicIl<'_>,
    ) {
        self.settle();
    }

    fn shutdown(&self) {
        self.settle();
    }
}
