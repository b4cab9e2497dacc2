//! Names of what events are about.

use clrscope_recording::events::{EntityRef, Kind, Records, Tag, Value};
use clrscope_recording::model::{EventArena, Function, Process};
use rustc_hash::FxHashMap;

/// The names in one process.
#[derive(Debug, Clone)]
pub struct EventNames<'a> {
    process: &'a Process,
    names: FxHashMap<u32, &'a str>,
}

impl<'a> EventNames<'a> {
    /// Reads the dictionary of an arena. Where an entity got several names the last counts.
    pub(crate) fn read(process: &'a Process, arena: &'a EventArena) -> Self {
        let mut names = FxHashMap::default();
        let records = arena.chunks.iter().flat_map(|chunk| Records::new(&chunk.bytes));
        for record in records.filter(|record| record.kind == Kind::NAME) {
            let entity = record.fields().find_map(|field| match field.value {
                Value::Entity(entity) => Some(entity),
                _ => None,
            });
            if let (Some(entity), Some(name)) = (entity, record.text(Tag::NAME)) {
                names.insert(entity.index, name);
            }
        }
        Self { process, names }
    }

    /// The function, where the entity is one that is known.
    #[must_use]
    pub fn function(&self, tag: Tag, entity: EntityRef) -> Option<&'a Function> {
        if !matches!(tag, Tag::FUNCTION | Tag::CALLEE | Tag::FRAME) || entity.index == 0 {
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
    pub fn name(&self, tag: Tag, entity: EntityRef) -> Option<&'a str> {
        if matches!(tag, Tag::FUNCTION | Tag::CALLEE | Tag::FRAME) {
            let function = self.function(tag, entity)?;
            return Some(if function.signature.is_empty() { &function.name } else { &function.signature });
        }
        self.names.get(&entity.index).copied()
    }
}
