//! The views `callers` and `callees`.

use std::io;

use clrscope_analysis::{
    Amount, Conditions, EdgeRow, FunctionRef, Neighbours, NeighboursView, Sort, Times, callees, callers,
};
use clrscope_recording::model::Recording;
use rustc_hash::{FxHashMap, FxHashSet};

use super::functions::{self, FunctionEntry};
use super::timed::{Present, TimedRow, metric_columns, name_columns, second_keys};
use super::{FOLDING, REQUESTS, SELECTION};
use crate::cell::{Cell, Kind};
use crate::column::{Column, Row, RowKind, Sheet};
use crate::render::{Layout, Renderer, Section, Style, Tail, Title};
use crate::request::{Flag, Request};
use crate::view::{Answer, Open, View};

/// The view `callers`.
pub(super) static CALLERS: View =
    edges("callers", "Callers of the functions of --function", |recording, request, _| {
        let view = callers(recording, &request.query)?;
        Ok(Box::new(OpenView::new(view, "callers", request, recording)))
    });

/// The view `callees`.
pub(super) static CALLEES: View =
    edges("callees", "Callees of the functions of --function", |recording, request, _| {
        let view = callees(recording, &request.query)?;
        Ok(Box::new(OpenView::new(view, "callees", request, recording)))
    });

const fn edges(name: &'static str, about: &'static str, open: Open) -> View {
    View {
        name,
        about,
        takes: &[SELECTION, REQUESTS, FOLDING, &[Flag::Limit, Flag::Raw, Flag::Metric, Flag::Verbose, Flag::Type]],
        sorts: &SORTS,
        text_rows: |_| Some(20),
        has_head: true,
        layout: Layout::Pretty,
        columns: |request| sheet(Present::all(request.query.metric)).infos(),
        open,
    }
}

const SORTS: [Sort; 12] = [
    Sort::Own,
    Sort::Total,
    Sort::Exclusive,
    Sort::Inclusive,
    Sort::Callee,
    Sort::Suspended,
    Sort::Profiler,
    Sort::ExclusiveCpu,
    Sort::InclusiveCpu,
    Sort::Calls,
    Sort::Name,
    Sort::Module,
];

struct Edges;

impl RowKind for Edges {
    type Row<'a> = EdgeEntry<'a>;
}

/// A caller or callee with the function it belongs to.
struct EdgeEntry<'a> {
    row: &'a EdgeRow<'a>,
    of: &'a Neighbours<'a>,
    /// Whether the metric is one of `calls`, with times.
    of_calls: bool,
}

impl Row for EdgeEntry<'_> {}

impl TimedRow for EdgeEntry<'_> {
    fn function(&self) -> Option<FunctionRef<'_>> {
        self.row.function
    }

    fn times(&self) -> &Times {
        &self.row.times
    }

    fn amount(&self) -> Amount {
        self.row.amount
    }

    /// The share of a neighbour's amount in the total of the function.
    fn share(&self, amount: u64) -> f64 {
        let all = if self.of_calls { self.of.function.times.inclusive_ns } else { self.of.function.amount.total };
        (amount as f64 / all.max(1) as f64).min(1.0)
    }

    fn samples_in_all(&self) -> u64 {
        self.of.function.amount.samples.total
    }
}

fn sheet<'c>(present: Present) -> Sheet<'c, Edges> {
    let function = Column::new("function", "of", Kind::Text, |row: &EdgeEntry<'_>| {
        Cell::text(row.of.function.function.signature())
    });
    let mut columns = vec![function.not_in_json()];
    columns.extend(name_columns("function"));
    columns.extend(metric_columns(present));
    Sheet::new(columns)
}

/// Columns in text.
fn text(conditions: &Conditions<'_>) -> Vec<(&'static str, u8)> {
    let mut shown = match conditions.metric.keys() {
        None => vec![("inclusive_ns", 0), ("inclusive_share", 0), ("exclusive_ns", 2), ("calls", 1)],
        Some([own, total]) => vec![(total, 0), ("inclusive_share", 0), (own, 2)],
    };
    if let Some([own, total]) = second_keys(conditions) {
        shown.extend([(total, 0), (own, 2)]);
    }
    shown.extend([("module", 3), ("name", 0)]);
    shown
}

struct OpenView<'a> {
    view: NeighboursView<'a>,
    side: &'static str,
    request: Request,
    processes: bool,
    /// Names that several functions share, with different signatures.
    overloaded: FxHashSet<&'a str>,
}

fn overloaded<'a>(view: &NeighboursView<'a>) -> FxHashSet<&'a str> {
    let mut signatures = FxHashMap::default();
    let functions = view.items.iter().map(|of| of.function.function);
    let of_several = functions.filter(|function| {
        let signature = function.plain_signature();
        *signatures.entry(function.name()).or_insert(signature) != signature
    });
    of_several.map(|function| function.name()).collect()
}

impl<'a> OpenView<'a> {
    fn new(view: NeighboursView<'a>, side: &'static str, request: &Request, recording: &Recording) -> Self {
        let (overloaded, processes) = (overloaded(&view), recording.processes.len() > 1);
        Self { view, side, request: request.clone(), processes, overloaded }
    }

    fn block(&self, block: usize, of: &Neighbours<'_>, renderer: &mut dyn Renderer) -> io::Result<()> {
        let conditions = &self.view.conditions;
        let (cpu, metric) = (conditions.totals.cpu_ns.is_some(), conditions.metric);
        let resolution = conditions.resolution();
        let samples = conditions.samples > 0;
        let present = Present {
            processes: self.processes,
            threads: false,
            cpu,
            metric,
            resolution,
            samples,
            allocated: false,
            tail_recursive: false,
        };
        let function = functions::sheet(present);
        let shown = functions::text(std::iter::once(&of.function), conditions);
        let section = Section { block, ..function.section("function", Style::Single, &shown) };
        renderer.section(&section, &mut |visit| {
            let has_namesakes = self.overloaded.contains(of.function.function.name());
            visit(&function.entry(&FunctionEntry { row: &of.function, conditions, has_namesakes }))?;
            Ok(Tail::default())
        })?;
        let (rows, of_calls) = (sheet(present), metric.is_of_calls());
        let section = Section {
            block,
            title: Title::Faint(format!("{}:", self.side)),
            nothing: format!("no {}", self.side),
            what: self.side,
            ..rows.main(&self.request, "rows", Style::Table, &text(conditions))
        };
        renderer.section(&section, &mut |visit| {
            of.rows.iter().try_for_each(|row| visit(&rows.entry(&EdgeEntry { row, of, of_calls })))?;
            Ok(Tail { left_out: of.left_out as u64, note: None })
        })
    }
}

impl Answer for OpenView<'_> {
    fn conditions(&self) -> Option<Conditions<'_>> {
        Some(self.view.conditions.clone())
    }

    fn sections(&self, renderer: &mut dyn Renderer) -> io::Result<()> {
        self.view.items.iter().enumerate().try_for_each(|(block, of)| self.block(block, of, renderer))
    }
}
