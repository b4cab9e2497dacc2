//! The view `modules`.

use std::io;

use clrscope_analysis::{Amount, Conditions, ModuleRow, Modules, Sort, Totals, modules};

use clrscope_recording::model::Recording;

use super::sampled::{SampledRow, sampled_columns, sampled_text};
use super::{REQUESTS, SELECTION, nothing};
use crate::cell::{Cell, Kind};
use crate::column::{Column, Row, RowKind, Sheet, shown};
use crate::render::{Layout, Renderer, Section, Style, Tail};
use crate::request::{Flag, Request};
use crate::view::{Answer, View};

/// The view `modules`.
pub(super) static VIEW: View = View {
    name: "modules",
    about: "Every assembly and library with its totals",
    takes: &[
        SELECTION,
        REQUESTS,
        &[Flag::Limit, Flag::Raw, Flag::Verbose, Flag::JustMyCode, Flag::NoInlined, Flag::Paths],
    ],
    sorts: &[Sort::Exclusive, Sort::ExclusiveCpu, Sort::Calls, Sort::Name, Sort::Module],
    text_rows: |_| Some(30),
    has_head: true,
    layout: Layout::Pretty,
    columns: |_| sheet(true, true, true).infos(),
    open: |recording, request, _| {
        let view = modules(recording, &request.query)?;
        Ok(Box::new(OpenView { view, request: request.clone(), recording }))
    },
};

struct ModuleRows;

impl RowKind for ModuleRows {
    type Row<'a> = ModuleEntry<'a>;
}

/// A row, and the sums for its shares.
struct ModuleEntry<'a> {
    row: &'a ModuleRow<'a>,
    totals: &'a Totals,
    conditions: &'a Conditions<'a>,
}

impl Row for ModuleEntry<'_> {}

impl SampledRow for ModuleEntry<'_> {
    fn amount(&self) -> Amount {
        self.row.amount
    }

    fn conditions(&self) -> &Conditions<'_> {
        self.conditions
    }
}

fn sheet<'c>(processes: bool, cpu: bool, samples: bool) -> Sheet<'c, ModuleRows> {
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
    let columns = [
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
    ];
    Sheet::new(columns.into_iter().chain(sampled_columns(samples)))
}

/// Columns in text; the flags tell whether there are several processes, and CPU time.
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

struct OpenView<'a> {
    view: Modules<'a>,
    request: Request,
    recording: &'a Recording,
}

impl Answer for OpenView<'_> {
    fn conditions(&self) -> Option<Conditions<'_>> {
        Some(self.view.conditions.clone())
    }

    fn sections(&self, renderer: &mut dyn Renderer) -> io::Result<()> {
        let Modules { rows, left_out, conditions } = &self.view;
        let cpu = rows.iter().any(|row| row.exclusive_cpu_ns.is_some());
        let sampled = conditions.metric.is_sampled();
        let sheet = sheet(self.recording.processes.len() > 1, cpu, sampled);
        let text = match sampled {
            true => sampled_text(conditions, &[("functions", 1), ("version", 3), ("module", 0)]),
            false => text(conditions.processes.len() > 1, cpu),
        };
        let section = Section {
            nothing: nothing("module"),
            what: "modules",
            ..sheet.main(&self.request, "rows", Style::Table, &text)
        };
        renderer.section(&section, &mut |visit| {
            let totals = &conditions.totals;
            rows.iter().try_for_each(|row| visit(&sheet.entry(&ModuleEntry { row, totals, conditions })))?;
            Ok(Tail { left_out: *left_out as u64, note: super::thread_time(self.recording, conditions) })
        })
    }
}
