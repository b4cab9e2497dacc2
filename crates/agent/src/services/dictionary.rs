//! Numbers and names of the entities that events refer to, such as classes, modules and threads.
//!
//! The runtime reuses its identifiers after an unload, so each entity gets a number of our own when
//! it is first seen. A record with its name follows: at once or, where the runtime can't be asked,
//! from the next callback that can ask it.

use std::collections::HashMap;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use clr_profiler::{
    AppDomainId, AssemblyId, ClassId, EventPipeProviderId, FunctionId, ModuleId, ObjectId, ProfilerInfo,
};
use clrscope_agent_base::functions::{Functions, KnownFunction};
use clrscope_recording::events::{EntityRef, Kind, Tag};

use crate::services::event_log::EventLog;

/// Entities that wait for their names at most.
const MOST_WAITING: usize = 1 << 16;

/// When a name is looked up. This depends on whether the current callback may query the runtime.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Resolve {
    /// At once: this callback may query the runtime.
    Now,
    /// In a later callback: the runtime is suspended, holds locks, or can't answer yet.
    Deferred,
}

/// The dictionary of one instrument.
pub(crate) struct Dictionary {
    info: ProfilerInfo,
    functions: Arc<Functions>,
    log: &'static EventLog,
    tables: Mutex<Tables>,
    any_waiting: AtomicBool,
}

#[derive(Default)]
struct Tables {
    entities: HashMap<(Tag, usize), Entry>,
    last: u32,
    waiting: Vec<(Tag, usize)>,
}

#[derive(Clone, Copy)]
struct Entry {
    index: u32,
    named: bool,
    waiting: bool,
}

impl Dictionary {
    pub(crate) fn new(info: &ProfilerInfo, functions: &Arc<Functions>, log: &'static EventLog) -> Self {
        Self {
            info: info.clone(),
            functions: Arc::clone(functions),
            log,
            tables: Mutex::default(),
            any_waiting: AtomicBool::new(false),
        }
    }

    fn tables(&self) -> MutexGuard<'_, Tables> {
        self.tables.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Number of a function, whose name is noted in the recording. With [`Resolve::Deferred`], only
    /// a function that was noted before has a number.
    pub(crate) fn function(&self, function: FunctionId, resolve: Resolve) -> EntityRef {
        let index = match resolve {
            Resolve::Now => self.functions.noted(function).index,
            Resolve::Deferred => self.functions.known(function).map_or(0, |known| known.index),
        };
        EntityRef { id: function.as_raw() as u64, index }
    }

    /// What is known about a function: whether the filters select it.
    pub(crate) fn known(&self, function: FunctionId) -> KnownFunction {
        self.functions.get(function)
    }

    /// The runtime's identifier of a class, and its number.
    pub(crate) fn class(&self, class: ClassId, resolve: Resolve) -> EntityRef {
        self.entity(Tag::CLASS, class.as_raw(), resolve)
    }

    /// Number of the class of an object. To be called only in the callback that received the
    /// object, and where the runtime may be queried.
    pub(crate) fn class_of(&self, object: ObjectId<'_>) -> EntityRef {
        self.class_id_of(object).map_or(EntityRef::default(), |class| self.class(class, Resolve::Now))
    }

    /// The runtime's identifier of an object's class. To be called only in the callback that
    /// received the object.
    pub(crate) fn class_id_of(&self, object: ObjectId<'_>) -> Option<ClassId> {
        if object.address() == 0 { None } else { self.info.class_of_object(object).ok() }
    }

    /// Number of an entity that is not a function.
    pub(crate) fn entity(&self, tag: Tag, id: usize, resolve: Resolve) -> EntityRef {
        if id == 0 {
            return EntityRef::default();
        }
        let (index, named) = {
            let mut tables = self.tables();
            let tables = &mut *tables;
            let entry = tables.entities.entry((tag, id)).or_insert_with(|| {
                tables.last += 1;
                Entry { index: tables.last, named: false, waiting: false }
            });
            if resolve == Resolve::Deferred && !entry.named && !entry.waiting && tables.waiting.len() < MOST_WAITING {
                entry.waiting = true;
                tables.waiting.push((tag, id));
                self.any_waiting.store(true, Ordering::Release);
            }
            (entry.index, entry.named)
        };
        let entity = EntityRef { id: id as u64, index };
        if resolve == Resolve::Now && !named {
            self.ask(tag, id);
        }
        entity
    }

    /// Looks up the names that were deferred. Call only where calls into the runtime are allowed.
    pub(crate) fn settle(&self) {
        if self.any_waiting.load(Ordering::Relaxed) && self.any_waiting.swap(false, Ordering::AcqRel) {
            let waiting = std::mem::take(&mut self.tables().waiting);
            for (tag, id) in waiting {
                self.ask(tag, id);
            }
        }
    }

    /// No lock is held while the runtime is asked.
    fn ask(&self, tag: Tag, id: usize) {
        if let Some(name) = self.name_of(tag, id) {
            self.name(tag, id, &name);
        }
    }

    fn name_of(&self, tag: Tag, id: usize) -> Option<String> {
        let info = &self.info;
        macro_rules! id {
            ($kind:ident) => {
                // SAFETY: a callback of the runtime was given the number as an identifier of the
                // kind that `tag` names, and the dictionary forgets it in the callback about the
                // end of what it names.
                unsafe { $kind::from_raw(id) }
            };
        }
        let name = match tag {
            Tag::CLASS => self.functions.names().class(info, id!(ClassId)).to_string(),
            Tag::MODULE => self.module_name(id!(ModuleId))?,
            Tag::ASSEMBLY => info.assembly_info(id!(AssemblyId)).ok()?.name,
            Tag::PROVIDER => info.event_pipe_provider_name(id!(EventPipeProviderId)).ok()?,
            Tag::APP_DOMAIN => info.app_domain_info(id!(AppDomainId)).ok()?.name,
            _ => return None,
        };
        Some(name).filter(|name| !name.is_empty() && name != "?")
    }

    fn module_name(&self, module: ModuleId) -> Option<String> {
        let found = self.info.module_info(module).ok()?;
        let file = Path::new(&found.path).file_name().map(|name| name.to_string_lossy().into_owned());
        file.or_else(|| Some(self.functions.names().assembly(&self.info, module).ok()?.to_string()))
    }

    /// Notes a name. The first name is kept, except for threads, whose names may change.
    pub(crate) fn name(&self, tag: Tag, id: usize, name: &str) {
        let index = {
            let mut tables = self.tables();
            let Some(entry) = tables.entities.get_mut(&(tag, id)) else { return };
            if entry.named && tag != Tag::THREAD {
                return;
            }
            entry.named = true;
            entry.index
        };
        self.log.write(Kind::NAME, &[(tag, EntityRef { id: id as u64, index }.into()), (Tag::NAME, name.into())]);
    }

    /// Whether the entity has a name.
    pub(crate) fn is_named(&self, tag: Tag, id: usize) -> bool {
        self.tables().entities.get(&(tag, id)).is_some_and(|entry| entry.named)
    }

    /// Call it when an entity is gone, as the runtime may reuse its identifier.
    pub(crate) fn forget(&self, tag: Tag, id: usize) {
        self.tables().entities.remove(&(tag, id));
    }

    /// Call it when a module is unloading, as the identifiers of its classes will be reused. Only
    /// the runtime could tell which classes these are, so all classes get new numbers when they are
    /// seen again.
    pub(crate) fn module_unloads(&self, module: ModuleId) {
        let mut tables = self.tables();
        tables.entities.retain(|&(tag, id), _| tag != Tag::CLASS && (tag, id) != (Tag::MODULE, module.as_raw()));
        tables.waiting.retain(|&(tag, _)| tag != Tag::CLASS);
    }
}
