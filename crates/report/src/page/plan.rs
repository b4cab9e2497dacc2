//! Plan of a page: the views, each with the requests that the page answers.

use std::sync::Arc;

use clrscope_analysis::{
    CPU, Column, Forest, METRICS, Metric, NativeCode, PathKind, Query, RequestFilter, Source, Unit,
};
use clrscope_recording::model::Recording;
use serde_json::{Value, json};

use crate::request::{Flag, Request};
use crate::view::View;
use crate::views::VIEWS;

/// Limits on the data that a page takes from a recording.
#[derive(Debug, Clone, Copy)]
pub(super) struct Budget {
    /// Maximum number of nodes of each tree.
    pub(super) nodes: usize,
    /// Rows of each table or log.
    rows: usize,
    /// Maximum number of amounts of nodes per time interval, for each tree.
    pub(super) moments: usize,
}

impl Budget {
    /// The initial budget, enough for nearly all recordings.
    pub(super) const FIRST: Self = Self { nodes: 150_000, rows: 50_000, moments: 300_000 };
    /// Budget of a served page, which requests each document when it shows it. Its trees are
    /// limited to nodes that are large enough to be seen.
    pub(super) const SERVED: Self = Self { nodes: usize::MAX, rows: 10_000, moments: 0 };

    /// A smaller budget for data of `found` characters; `None` if the data have at most `most`
    /// characters or no smaller budget exists.
    pub(super) fn smaller(self, found: usize, most: usize) -> Option<Self> {
        let part = |of: usize| (of as f64 * most as f64 / found as f64 * 0.8) as usize;
        let smaller = Self { nodes: part(self.nodes), rows: part(self.rows), moments: part(self.moments) };
        (found > most && smaller.rows > 0).then_some(smaller)
    }
}

/// A view and one request to it.
pub(super) struct PlannedView {
    pub(super) view: &'static View,
    pub(super) request: Request,
    /// The measures of the rows, in the form that the page reads.
    pub(super) measures: Vec<Value>,
    /// The command line options that give the same document, without filters.
    pub(super) options: Vec<String>,
}

impl PlannedView {
    /// Name of the document on its page, such as `tree.cpu` or `exceptions.each`. It does not
    /// depend on which other data were recorded.
    pub(super) fn key(&self) -> String {
        let part = match &self.request {
            Request { query: Query { metric: Some(metric), .. }, .. } => format!(".{metric}"),
            Request { each: true, .. } => ".each".to_owned(),
            Request { callers: true, .. } => ".callers".to_owned(),
            _ => String::new(),
        };
        let paths = if self.is_physical() { ".physical" } else { "" };
        format!("{}{part}{paths}", self.view.name)
    }

    /// Whether the document's paths are the physical stacks of threads; another document has the
    /// logical paths.
    pub(super) fn is_physical(&self) -> bool {
        self.request.query.paths == Some(PathKind::Physical)
    }

    /// The recording from which the document is made, on a page about `recording`.
    pub(super) fn recording<'a>(&self, recording: &'a Recording) -> &'a Recording {
        recording.physical.as_deref().filter(|_| self.is_physical()).unwrap_or(recording)
    }

    /// The same view, with the physical stacks of threads.
    fn physical(&self) -> Self {
        let query = Query { paths: Some(PathKind::Physical), ..self.request.query.clone() };
        let options = self.options.iter().cloned().chain(["--paths", "physical"].map(str::to_owned));
        Self {
            view: self.view,
            request: Request { query, ..self.request.clone() },
            measures: self.measures.clone(),
            options: options.collect(),
        }
    }

    /// The members of the document that do not depend on its rows, as JSON.
    pub(super) fn head(&self) -> Value {
        let Self { view, measures, options, .. } = self;
        json!({
            "key": self.key(), "view": view.name, "about": view.about, "options": options, "measures": measures,
            "physical": self.is_physical(),
        })
    }
}

/// All documents that a page has of a recording under the filters of `asked`, the requested metric
/// first. Documents made from logical call stacks appear once more at the end, with the physical
/// stacks of threads.
pub(super) fn planned(recording: &Recording, asked: &Request, budget: Budget) -> Vec<PlannedView> {
    let mut all = Vec::new();
    // The page draws flame graphs of the tree itself.
    for &view in VIEWS.iter().filter(|view| view.name != "flame") {
        let takes = |flag: Flag| view.why_not(flag).is_none();
        let request = Request {
            query: filters_for(asked, Some((view, false))),
            interleave: takes(Flag::Interleave),
            // For views of lines, a page includes the sources where the request wants them.
            source: takes(Flag::Source) && (asked.source || takes(Flag::Lines)),
            source_root: asked.source_root.clone(),
            ..Request::default()
        };
        if takes(Flag::Metric) {
            let measured = measured(recording, asked.query.metric);
            all.extend(measured.into_iter().map(|one| by_metric(view, &request, one, asked.query.metric, budget)));
            continue;
        }
        let words = [("--interleave", request.interleave), ("--source", request.source)];
        let options = words.iter().filter(|(_, is_asked)| *is_asked).map(|(word, _)| (*word).to_owned()).collect();
        let plain = limited(PlannedView { view, request, measures: Vec::new(), options }, budget);
        // Rows of single calls take filters that sums do not.
        let query = Query { limit: plain.request.query.limit, ..filters_for(asked, Some((view, true))) };
        let further = [
            (Flag::Each, Request { each: true, query, ..plain.request.clone() }, "--each"),
            (Flag::Callers, Request { callers: true, ..plain.request.clone() }, "--callers"),
        ];
        all.push(plain);
        let further = further.into_iter().filter(|(flag, ..)| takes(*flag));
        all.extend(further.map(|(_, request, word)| PlannedView {
            view,
            request,
            measures: Vec::new(),
            options: vec![word.to_owned()],
        }));
    }
    if recording.physical.is_some() {
        let physical = |planned: &PlannedView| {
            let has_paths = planned.view.why_not_with(planned.request.each, Flag::Paths).is_none();
            has_paths.then(|| planned.physical())
        };
        let physical: Vec<_> = all.iter().filter_map(physical).collect();
        all.extend(physical);
    }
    all
}

/// The filters of a request, without those that the view refuses; the second value of `view` tells
/// whether the view shows single calls.
pub(super) fn filters_for(asked: &Request, view: Option<(&View, bool)>) -> Query {
    // Frames of inlined methods are left out of the recording itself.
    let mut query = Query {
        sort: None,
        limit: None,
        metric: None,
        per_thread: false,
        no_inlined: false,
        paths: None,
        ..asked.query.clone()
    };
    let refuses = |flag: Flag| view.is_some_and(|(view, each)| view.why_not_with(each, flag).is_some());
    let Query {
        pid, process, threads, functions, modules, types, since_ns, until_ns, raw, just_my_code, requests, ..
    } = &mut query;
    let drop: [(Flag, &mut dyn FnMut()); 11] = [
        (Flag::Pid, &mut || *pid = None),
        (Flag::Process, &mut || *process = None),
        (Flag::Thread, &mut || threads.clear()),
        (Flag::Function, &mut || functions.clear()),
        (Flag::Module, &mut || modules.clear()),
        (Flag::Type, &mut || types.clear()),
        (Flag::Since, &mut || *since_ns = None),
        (Flag::Until, &mut || *until_ns = None),
        (Flag::Request, &mut || *requests = RequestFilter::default()),
        (Flag::Raw, &mut || *raw = false),
        (Flag::JustMyCode, &mut || *just_my_code = false),
    ];
    drop.into_iter().filter(|(flag, _)| refuses(*flag)).for_each(|(_, clear)| clear());
    query
}

/// The planned document, limited to the rows in the budget. A summary is not limited, because it
/// has few rows.
fn limited(mut planned: PlannedView, budget: Budget) -> PlannedView {
    if planned.view.why_not(Flag::Limit).is_none() && planned.view.name != "summary" {
        planned.request.query.limit = Some(budget.rows);
    }
    planned
}

/// Metrics that share the same rows: all metrics of `calls` together, any other metric alone.
type Measured = Vec<&'static Metric>;

/// The metrics of a recording. The first is the one in `asked`, or else the default metric of
/// views.
fn measured(recording: &Recording, asked: Option<&'static Metric>) -> Vec<Measured> {
    let of = |metric: &'static Metric| {
        Metric::for_query(recording, &Query { metric: Some(metric), ..Query::default() }).ok()
    };
    let (of_calls, others): (Vec<_>, Vec<_>) =
        METRICS.into_iter().filter_map(of).partition(|metric| metric.is_of_calls());
    // Rows of sampled times have the numbers of samples as well.
    let is_beside = |metric: &Metric| {
        let same = |other: &&Metric| other.is_sampled() && other.instrument == metric.instrument;
        metric.counts_samples() && others.iter().any(|other| same(other) && *other != metric)
    };
    let mut all: Vec<Measured> = if of_calls.is_empty() { Vec::new() } else { vec![of_calls] };
    all.extend(others.iter().filter(|metric| !is_beside(metric)).map(|metric| vec![*metric]));
    let first = asked.or_else(|| Metric::for_query(recording, &Query::default()).ok());
    all.sort_by_key(|metrics| !first.is_some_and(|first| metrics.contains(&first)));
    all
}

fn by_metric(
    view: &'static View,
    request: &Request,
    metrics: Measured,
    first: Option<&'static Metric>,
    budget: Budget,
) -> PlannedView {
    let mut request = request.clone();
    request.query.metric = metrics.first().copied();
    let mut measures: Vec<Measure> = metrics.iter().flat_map(|metric| Measure::all(metric)).collect();
    // Without a requested metric, CPU time comes before wall time.
    measures.sort_by_key(|measure| measure.name != first.map_or(CPU.name, |metric| metric.name));
    let mut options: Vec<String> =
        metrics.first().iter().flat_map(|m| ["--metric".to_owned(), m.name.to_owned()]).collect();
    options.extend(request.source.then(|| "--source".to_owned()));
    // A page folds native code itself, so that its reader can turn folding off.
    if view.why_not(Flag::NativeCode).is_none() {
        request.query.native_code = Some(NativeCode::Places);
        options.extend(["--native-code", "places"].map(str::to_owned));
    }
    let measures_of_rows = measures.iter().map(Measure::to_json).collect();
    if view.name != "tree" {
        return limited(PlannedView { view, request, measures: measures_of_rows, options }, budget);
    }
    request.query.per_thread = true;
    request.query.type_leaves = true;
    let names = ["name", "signature", "module", "kind", "code", "folded_into", "thread", "pid"].map(str::to_owned);
    let keys = measures.iter().flat_map(|measure| [Some(measure.own), measure.total]).flatten().map(str::to_owned);
    let columns: Vec<String> = names.into_iter().chain(keys).collect();
    options.extend(["--per-thread".to_owned(), "--columns".to_owned(), columns.join(",")]);
    request.columns = Some(columns);
    PlannedView { view, request, measures: measures_of_rows, options }
}

/// A measure of rows.
struct Measure {
    name: &'static str,
    title: &'static str,
    unit: Unit,
    /// Key of the row's own amount.
    own: &'static str,
    /// Key of the total; `None` if rows have none.
    total: Option<&'static str>,
}

impl Measure {
    fn all(metric: &'static Metric) -> Vec<Self> {
        let Metric { name, title, unit, .. } = *metric;
        let (own, total) = match metric.source {
            Source::Calls(Column::Wall) => ("exclusive_ns", Some("inclusive_ns")),
            Source::Calls(Column::Cpu) => ("exclusive_cpu_ns", Some("inclusive_cpu_ns")),
            Source::Calls(Column::Calls) => ("calls", None),
            Source::Stacks { keys: [own, total], .. } => (own, Some(total)),
        };
        let mut all = vec![Self { name, title, unit, own, total }];
        if metric.is_sampled() && unit != Unit::Count {
            let (own, total) = ("self_samples", Some("total_samples"));
            all.push(Self { name: "samples", title: "samples", unit: Unit::Count, own, total });
        }
        all
    }

    fn to_json(&self) -> Value {
        let unit = match self.unit {
            Unit::Nanoseconds => "time",
            Unit::Count => "count",
            Unit::Bytes => "bytes",
        };
        json!({ "name": self.name, "title": self.title, "unit": unit, "own": self.own, "total": self.total })
    }
}

/// The open forest of a tree's document; `None` for other documents, or if there is nothing to
/// show.
pub(super) fn forest_of<'a>(planned: &PlannedView, recording: &'a Recording) -> Option<Arc<Forest<'a>>> {
    let open = || Forest::open(planned.recording(recording), &planned.request.query).ok().map(Arc::new);
    (planned.view.name == "tree").then(open).flatten()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_budget_shrinks_until_the_data_have_room() {
        assert!(Budget::FIRST.smaller(100, 100).is_none());
        let smaller = Budget::FIRST.smaller(200, 100).expect("a smaller one");
        assert_eq!((smaller.nodes, smaller.rows, smaller.moments), (60_000, 20_000, 120_000));
        let mut budget = Some(Budget::FIRST);
        for _ in 0..40 {
            budget = budget.and_then(|budget| budget.smaller(usize::MAX, 1_000));
        }
        assert!(budget.is_none(), "it ends");
    }
}
