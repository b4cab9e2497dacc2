//! The view `modules`.

use std::io;

use clrscope_analysis::{Conditions, ModuleRow, Modules, Sort, Totals, modules};

use clrscope_recording::model::Recording;

use super::{LOG_FLAGS, NO_METRIC, THREADS_APART, TIMES, nothing};
use crate::cell::{Cell, Kind};
use crate::column::{Column, Row, RowKind, Sheet, shown};
use crate::render::{Layout, Renderer, Section, Style, Tail};
use crate::request::Request;
use crate::view::{Answer, View};

/// The view `modules`.
pub(super) static VIEW: View = View {
    name: "modules",
    about: "Every assembly and library with its totals",
    refuses: &[LOG_FLAGS, NO_METRIC, TIMES, THREADS_APART],
    sorts: &[Sort::Exclusive, Sort::ExclusiveCpu, Sort::Calls, Sort::Name, Sort::Module],
    text_rows: |_| Some(30),
    has_head: true,
    layout: Layout::Pretty,
    columns: |_| sheet(true, true).infos(),
    open: |recording, request| {
        let view = modules(recording, &request.query)?;
        Ok(Box::new(Opened { view, request: request.clone(), recording }))
    },
};

struct ModuleRows;

impl RowKind for ModuleRows {
    type Row<'a> = ModuleEntry<'a>;
}

/// A row, and the sums that its times are parts of.
struct ModuleEntry<'a> {
    row: &'a ModuleRow<'a>,
    totals: &'a Totals,
}

impl Row for ModuleEntry<'_> {}

fn sheet<'c>(processes: bool, cpu: bool) -> Sheet<'c, ModuleRows> {
    let text = |key, of: for<'r> fn(&'r ModuleRow<'_>) -> &'r str| {
        Column::new(key, key, Kind::Text, move |row: &ModuleEntry<'_>| Cell::text(of(row.row)))
    };
    let name =
        Column::new("module", "module", Kind::Text, |row: &ModuleEntry<'_>| match row.row.module.name.as_str() {
            "" => Cell::text("").said("(the runtime itself)"),
            name => Cell::text(name),
        });
    let cpu = Column::new("exclusive_cpu_ns", "cpu", Kind::Time, |row: &ModuleEntry<'_>| {
        Cell::measured(row.row.exclusive_cpu_ns)
    })
    .only_if(cpu);
    let share = Column::new("exclusive_share", "share", Kind::Share, |row: &ModuleEntry<'_>| {
        Cell::Share(row.totals.share(row.row.exclusive_ns))
    });
    Sheet::new([
        name,
        text("path", |row| &row.module.path),
        text("version", |row| &row.module.version),
        Column::new("pid", "process", Kind::Number, |row: &ModuleEntry<'_>| Cell::Number(row.row.pid.into()))
            .only_if(processes),
        Column::new("functions", "functions", Kind::Count, |row: &ModuleEntry<'_>| Cell::Count(row.row.functions)),
        Column::new("calls", "calls", Kind::Count, |row: &ModuleEntry<'_>| Cell::Count(row.row.calls)),
        Column::new("exclusive_ns", "exclusive", Kind::Time, |row: &ModuleEntry<'_>| Cell::Time(row.row.exclusive_ns)),
        cpu,
        share.on_request(),
    ])
}

/// Columns in text, by whether there is more than one process, and CPU time.
fn text(processes: bool, cpu: bool) -> Vec<(&'static str, u8)> {
    shown(&[
        ("exclusive_ns", 0, true),
        ("exclusive_share", 0, true),
        ("exclusive_cpu_ns", 2, cpu),
        ("calls", 0, true),
        ("functions", 1, true),
        ("pid", 2, processes),
        ("version", 3, true),
        ("module", 0, true),
    ])
}

struct Opened<'a> {
    view: Modules<'a>,
    request: Request,
    recording: &'a Recording,
}

impl Answer for Opened<'_> {
    fn conditions(&self) -> Option<Conditions<'_>> {
        Some(self.view.conditions.clone())
    }

    fn sections(&self, renderer: &mut dyn Renderer) -> io::Result<()> {
        let Modules { rows, left_out, conditions } = &self.view;
        let cpu = rows.iter().any(|row| row.exclusive_cpu_ns.is_some());
        let sheet = sheet(self.recording.processes.len() > 1, cpu);
        let text = text(conditions.processes.len() > 1, cpu);
        let section = Section {
            nothing: nothing("module"),
            what: "modules",
            ..sheet.main(&self.request, "rows", Style::Table, &text)
        };
        renderer.section(&section, &mut |visit| {
            let totals = &conditions.totals;
            rows.iter().try_for_each(|row| visit(&sheet.entry(&ModuleEntry { row, totals })))?;
            Ok(Tail { left_out: *left_out as u64, note: super::thread_time(self.recording, conditions) })
        })
    }
}
