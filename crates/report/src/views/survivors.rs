//! The view `survivors`: objects that survived garbage collections, by type and generation.

use std::io;

use clrscope_analysis::{Conditions, GENERATION_NAMES, Sort, SurvivorQuery, SurvivorRow, conditions, survivors};
use clrscope_recording::model::Recording;

use super::nothing;
use crate::cell::{Cell, Kind};
use crate::column::{Column, Row, RowKind, Sheet, shown};
use crate::render::{Layout, Renderer, Section, Style, Tail};
use crate::request::{Flag, Request};
use crate::view::{Answer, View};

/// The view `survivors`.
pub(super) static VIEW: View = View {
    name: "survivors",
    about: "Objects that survived, were moved, or died young, by type and generation",
    takes: &[&[Flag::Module, Flag::Part, Flag::Since, Flag::Until, Flag::Limit, Flag::Name, Flag::Verbose]],
    sorts: &[Sort::Calls, Sort::Name, Sort::Module],
    text_rows: |_| Some(30),
    has_head: true,
    layout: Layout::Rows,
    columns: |_| sheet(true).infos(),
    open: |recording, request, _| {
        let query = SurvivorQuery { query: request.query.clone(), types: request.names.clone() };
        let (rows, left_out) = survivors(recording, &query)?;
        Ok(Box::new(OpenView { rows, left_out, request: request.clone(), recording }))
    },
};

struct Survivors;

impl RowKind for Survivors {
    type Row<'a> = SurvivorRow<'a>;
}

impl Row for SurvivorRow<'_> {}

fn sheet<'c>(processes: bool) -> Sheet<'c, Survivors> {
    let count = |key, title, of: fn(&SurvivorRow<'_>) -> Option<u64>| {
        Column::new(key, title, Kind::Count, move |row: &SurvivorRow<'_>| Cell::or_null(of(row), Cell::Count))
    };
    Sheet::new([
        Column::new("type", "type", Kind::Text, |row: &SurvivorRow<'_>| Cell::text(row.type_name)),
        Column::new("module", "module", Kind::Text, |row: &SurvivorRow<'_>| Cell::text(row.module)),
        Column::new("generation", "gen", Kind::Number, |row: &SurvivorRow<'_>| {
            let name = GENERATION_NAMES.get(row.generation as usize).map_or("", |name| name.trim_start_matches("gen"));
            Cell::Number(row.generation.into()).said(name)
        }),
        count("objects", "survived", |row| Some(row.objects)),
        Column::new("bytes", "bytes", Kind::Bytes, |row: &SurvivorRow<'_>| Cell::Bytes(row.bytes)),
        count("moved_objects", "moved", |row| Some(row.moved_objects)),
        count("died_objects", "died", |row| row.died_objects),
        Column::new("pid", "process", Kind::Number, |row: &SurvivorRow<'_>| Cell::Number(row.process.pid.into()))
            .only_if(processes),
    ])
}

struct OpenView<'a> {
    rows: Vec<SurvivorRow<'a>>,
    left_out: usize,
    request: Request,
    recording: &'a Recording,
}

impl Answer for OpenView<'_> {
    fn conditions(&self) -> Option<Conditions<'_>> {
        conditions(self.recording, &self.request.query).ok()
    }

    fn sections(&self, renderer: &mut dyn Renderer) -> io::Result<()> {
        let processes = self.recording.processes.len() > 1;
        let sheet = sheet(processes);
        let text = shown(&[
            ("objects", 0, true),
            ("bytes", 0, true),
            ("moved_objects", 2, true),
            ("died_objects", 1, true),
            ("generation", 0, true),
            ("pid", 2, processes),
            ("module", 3, true),
            ("type", 0, true),
        ]);
        let main = sheet.main(&self.request, "rows", Style::Table, &text);
        let section = Section { nothing: nothing("survivor"), what: "types", ..main };
        let note = "An object counts once for each collection that it survived; 'died' is known for generation 0 only. \
                    No collection ran in the background, because the runtime reports survivors of blocking ones only.";
        renderer.section(&section, &mut |visit| {
            self.rows.iter().try_for_each(|row| visit(&sheet.entry(row)))?;
            Ok(Tail { left_out: self.left_out as u64, note: (!self.rows.is_empty()).then(|| note.to_owned()) })
        })
    }
}
