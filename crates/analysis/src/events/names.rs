//! Names of the entities that events are about.

use clrscope_recording::events::{EntityRef, Kind, Record, Records, Tag, Value};
use clrscope_recording::model::{EventArena, Function, Process};
use rustc_hash::FxHashMap;

/// The names of entities in one process.
#[derive(Debug, Clone)]
pub struct EventNames<'a> {
    process: &'a Process,
    names: FxHashMap<u32, Box<str>>,
}

impl<'a> EventNames<'a> {
    /// The process whose names these are.
    pub(super) fn process(&self) -> &'a Process {
        self.process
    }

    /// Starts with the names of functions only.
    pub(super) fn new(process: &'a Process) -> Self {
        Self { process, names: FxHashMap::default() }
    }

    /// Reads the dictionary of an arena. If an entity got several names, the last one counts.
    pub(crate) fn read(process: &'a Process, arena: &EventArena) -> Self {
        let mut names = Self::new(process);
        for chunk in &arena.chunks {
            Records::new(&chunk.bytes.load()).for_each(|record| names.learn(&record));
        }
        names
    }

    /// Notes the name that the record gives, if any.
    pub(super) fn learn(&mut self, record: &Record<'_>) {
        if record.kind != Kind::NAME {
            return;
        }
        let entity = record.fields().find_map(|field| match field.value {
            Value::Entity(entity) => Some(entity),
            _ => None,
        });
        if let (Some(entity), Some(name)) = (entity, record.text(Tag::NAME)) {
            self.names.insert(entity.index, name.into());
        }
    }

    /// The function, if the entity is a known function.
    #[must_use]
    pub fn function(&self, tag: Tag, entity: EntityRef) -> Option<&'a Function> {
        if !matches!(tag, Tag::FUNCTION | Tag::CALLEE) || entity.index == 0 {
            return None;
        }
        self.process.functions.get(entity.index as usize).filter(|function| !function.name.is_empty())
    }

    /// Name of the module that declares the function; empty if not known.
    #[must_use]
    pub fn module_of(&self, function: &Function) -> &'a str {
        self.process.modules.get(function.module as usize).map_or("", |module| &module.name)
    }

    /// The name of an entity; for a function, its signature.
    #[must_use]
    pub fn name(&self, tag: Tag, entity: EntityRef) -> Option<&str> {
        if matches!(tag, Tag::FUNCTION | Tag::CALLEE) {
            let function = self.function(tag, entity)?;
            return Some(if function.signature.is_empty() { &function.name } else { &function.signature });
        }
        self.names.get(&entity.index).map(AsRef::as_ref)
    }
}
