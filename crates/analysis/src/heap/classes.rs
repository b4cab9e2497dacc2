//! Classes of a snapshot: their names, and the layout of their objects.

use std::sync::Arc;

use clrscope_recording::model::{HeapType, Process};
use rustc_hash::FxHashMap;

use super::root_paths::Member;

/// The name of an unknown class.
const UNKNOWN: &str = "(unknown)";

/// Classes, by the type numbers of the snapshot.
#[derive(Debug)]
pub(crate) struct Classes<'a> {
    process: &'a Process,
    /// The types. There is at least one: the type of objects with an unknown class.
    types: Vec<HeapType>,
    names: Vec<Arc<str>>,
    /// For each class, the first class of the same name and module: they share a row of a view.
    kind: Vec<u32>,
    /// For each class, the number of the field name at each slot: slots before the elements, and
    /// slots within an element.
    slots: Vec<[Vec<u32>; 2]>,
    /// Names of fields, without duplicates; the first is empty.
    fields: Vec<Arc<str>>,
}

impl<'a> Classes<'a> {
    pub(crate) fn new(process: &'a Process, mut types: Vec<HeapType>) -> Self {
        if types.is_empty() {
            types.push(HeapType::default());
        }
        let mut fields: Vec<Arc<str>> = vec!["".into()];
        let mut known: FxHashMap<Arc<str>, u32> = FxHashMap::from_iter([(fields[0].clone(), 0)]);
        let mut number = |name: &String| {
            *known.entry(name.as_str().into()).or_insert_with_key(|name| {
                fields.push(name.clone());
                fields.len() as u32 - 1
            })
        };
        let mut numbers = |names: &[String]| names.iter().map(&mut number).collect();
        let slots = types.iter().map(|found| [numbers(&found.fields), numbers(&found.element_fields)]).collect();
        let name = |found: &HeapType| if found.name.is_empty() { UNKNOWN.into() } else { found.name.clone() };
        let names = types.iter().map(name).collect();
        let mut classes = Self { process, types, names, kind: Vec::new(), slots, fields };
        let mut known = FxHashMap::default();
        let kind = |class: u32| *known.entry((classes.name(class), classes.module(class))).or_insert(class);
        let kinds: Vec<u32> = (0..classes.len() as u32).map(kind).collect();
        classes.kind = kinds;
        classes
    }

    /// Number of classes, including the unknown one.
    pub(crate) fn len(&self) -> usize {
        self.types.len()
    }

    /// The types by their numbers, for reading snapshots.
    pub(crate) fn types(&self) -> &[HeapType] {
        &self.types
    }

    /// The type of a class.
    pub(crate) fn get(&self, class: u32) -> &HeapType {
        &self.types[class as usize]
    }

    /// First class of the same name and module.
    pub(crate) fn kind(&self, class: u32) -> u32 {
        self.kind[class as usize]
    }

    /// Name in C# syntax.
    pub(crate) fn name(&self, class: u32) -> Arc<str> {
        self.names[class as usize].clone()
    }

    /// Name of the module.
    pub(crate) fn module(&self, class: u32) -> &'a str {
        let module = self.process.modules.get(self.get(class).module as usize);
        module.map_or("", |module| module.name.as_str())
    }

    /// Whether a class is declared by the program itself.
    pub(crate) fn is_own(&self, class: u32) -> bool {
        let module = self.get(class).module;
        module != 0 && self.process.modules.get(module as usize).is_some_and(|module| !module.framework)
    }

    /// The member at a slot in objects of a class. If the member is an element or lies in one, also
    /// returns the element's index.
    pub(crate) fn member(&self, class: u32, slot: u32) -> (Member, Option<u64>) {
        let [fixed, each] = &self.slots[class as usize];
        match (slot as usize).checked_sub(fixed.len()) {
            None => (named(fixed[slot as usize]), None),
            Some(behind) => {
                let field = each.get(behind % each.len().max(1)).copied().unwrap_or(0);
                (if field == 0 { Member::Element } else { named(field) }, Some((behind / each.len().max(1)) as u64))
            }
        }
    }

    /// Name of a field by its number.
    pub(crate) fn field(&self, number: u32) -> Arc<str> {
        self.fields[number as usize].clone()
    }
}

fn named(field: u32) -> Member {
    if field == 0 { Member::Unknown } else { Member::Field(field) }
}
