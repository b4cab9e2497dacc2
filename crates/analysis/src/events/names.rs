//! Names of what events are about.

use clrscope_recording::events::{EntityRef, Kind, Record, Records, Tag, Value};
use clrscope_recording::model::{EventArena, Function, Process};
use rustc_hash::FxHashMap;

/// The names in one process.
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

    /// No names but those of functions.
    pub(super) fn new(process: &'a Process) -> Self {
        Self { process, names: FxHashMap::default() }
    }

    /// Reads the dictionary of an arena. Where an entity got several names the last counts.
    pub(crate) fn read(process: &'a Process, arena: &EventArena) -> Self {
        let mut names = Self::new(process);
        for chunk in &arena.chunks {
            Records::new(&chunk.bytes.load()).for_each(|record| names.learn(&record));
        }
        names
    }

    /// Takes the name that the record gives, if it gives one.
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

    /// The function, where the entity is one that is known.
    #[must_use]
    pub fn function(&self, tag: Tag, entity: EntityRef) -> Option<&'a Function> {
        if !matches!(tag, Tag::FUNCTION | Tag::CALLEE) || entity.index == 0 {
            return None;
        }
        self.process.functions.get(entity.index as usize).filter(|function| !function.name.is_empty())
    }

    /// The name of the function's module, or empty.
    #[must_use]
    pub fn module_of(&self, function: &Function) -> &'a str {
        self.process.modules.get(function.module as usize).map_or("", |module| &module.name)
    }

    /// The name of anything; a function's signature.
    #[must_use]
    pub fn name(&self, tag: Tag, entity: EntityRef) -> Option<&str> {
        if matches!(tag, Tag::FUNCTION | Tag::CALLEE) {
            let function = self.function(tag, entity)?;
            return Some(if function.signature.is_empty() { &function.name } else { &function.signature });
        }
        self.names.get(&entity.index).map(AsRef::as_ref)
    }
}
