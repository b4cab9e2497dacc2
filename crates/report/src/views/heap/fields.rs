//! Source lines that assign static fields.

use std::collections::HashMap;

use clrscope_analysis::{GrownPath, HeapPath};
use clrscope_recording::model::{Module, ModuleKind, Process};
use clrscope_symbols::{Lines, SourceLine};

use crate::views::sources::line_behind;

/// Finds the lines that assign static fields, if the modules and PDBs are on this machine. Reads
/// each module once.
pub(super) struct FieldLines<'a> {
    modules: Vec<&'a Module>,
    lines: Lines,
    /// Lines by field name, kept because many rows have the same fields.
    known: HashMap<String, Option<SourceLine>>,
}

impl<'a> FieldLines<'a> {
    /// Creates an index of the static fields of these processes' own code: lines of framework
    /// fields would not help the reader.
    pub(super) fn new(processes: &'a [Process]) -> Self {
        let is_searched =
            |module: &&Module| !module.framework && module.kind == ModuleKind::Managed && !module.path.is_empty();
        let mut modules: Vec<&Module> = processes.iter().flat_map(|of| &of.modules).filter(is_searched).collect();
        modules.sort_by_key(|module| &module.path);
        modules.dedup_by_key(|module| &module.path);
        Self { modules, lines: Lines::default(), known: HashMap::new() }
    }

    fn find(&mut self, field: &str) -> Option<&SourceLine> {
        let Self { modules, lines, known } = self;
        let find = || modules.iter().find_map(|module| lines.static_field(&module.path, field));
        known.entry(field.to_owned()).or_insert_with(find).as_ref()
    }

    /// ` (Cart.cs:12)`, to follow the name of a field; empty if no line is known.
    fn behind(&mut self, field: Option<&str>) -> String {
        let found = field.and_then(|field| self.find(field));
        line_behind(found)
    }

    /// A root path in one line of text, with the source line that assigns its static field.
    pub(super) fn way(&mut self, way: &HeapPath<'_>) -> String {
        format!("{}{}{}", way.root_label(), self.behind(way.static_field()), way.steps_label())
    }

    /// A root path that holds more than before, in one line of text, with the source line that
    /// assigns its static field.
    pub(super) fn grown_way(&mut self, way: &GrownPath) -> String {
        format!("{}{}{}", way.root, self.behind(way.static_field.as_deref()), way.steps)
    }
}
