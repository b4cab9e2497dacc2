//! Views, and reports: a report is a view applied to one recording.

use std::io::{self, Write};

use clrscope_analysis::{Heaps, Metric, Query, QueryProblem, Sort};
use clrscope_contract::instruments;
use clrscope_recording::model::Recording;

use crate::cell::ColumnInfo;
use crate::render::{About, Layout, Renderer, text};
use crate::request::{Flag, REQUESTS, Request};

/// Nodes with a smaller share of the time are left out of a tree in text output.
const LEAST_SHARE: f64 = 0.005;

/// A view: all its properties that do not depend on a recording.
pub struct View {
    /// Name of the view on the command line and in schemas.
    pub name: &'static str,
    /// One line that describes the view's content.
    pub about: &'static str,
    /// Options of the view, in addition to the options of every view and to `--sort`, which all
    /// views with [`sorts`](Self::sorts) take.
    pub(crate) takes: &'static [&'static [Flag]],
    /// Sort keys of the view's rows; empty if the order is fixed.
    pub sorts: &'static [Sort],
    /// Default number of rows in text output; `None` for no limit.
    pub(crate) text_rows: fn(&Request) -> Option<usize>,
    /// Whether the view's text output begins with the head of a report.
    pub has_head: bool,
    /// Layout of the view's JSON document.
    pub(crate) layout: Layout,
    /// Columns that a row has.
    pub(crate) columns: fn(&Request) -> Vec<ColumnInfo>,
    /// The answer to a request about a recording.
    pub(crate) open: Open,
}

/// Function that answers a request about a recording. Other views may share the recording's heap
/// snapshots.
pub(crate) type Open = for<'a> fn(&'a Recording, &Request, &Heaps<'a>) -> Result<Box<dyn Answer + 'a>, QueryProblem>;

impl std::fmt::Debug for View {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("View").field("name", &self.name).finish_non_exhaustive()
    }
}

impl PartialEq for View {
    fn eq(&self, other: &Self) -> bool {
        self.name == other.name
    }
}

impl View {
    /// Columns that a row has, in the order of JSON.
    #[must_use]
    pub fn columns(&self, request: &Request) -> Vec<ColumnInfo> {
        (self.columns)(request)
    }

    /// The request with the metric of its columns. If the request has no metric and selects a
    /// column that exists for one metric only, the result has that metric.
    #[must_use]
    pub fn with_metric_of_columns(&self, request: &Request) -> Request {
        let mut request = request.clone();
        if let Some(picked) = &request.columns
            && request.query.metric.is_none()
            && self.why_not(Flag::Metric).is_none()
        {
            let lacks = |request: &Request| {
                let columns = self.columns(request);
                picked.iter().any(|key| columns.iter().all(|column| column.key != key))
            };
            let by = |metric| Request { query: Query { metric, ..request.query.clone() }, ..request.clone() };
            if lacks(&request) {
                request.query.metric = Metric::each().find(|metric| !lacks(&by(Some(*metric))));
            }
        }
        request
    }

    /// Refuses selected columns that rows of this recording don't have.
    fn check_columns_of(&self, recording: &Recording, request: &Request) -> Result<(), QueryProblem> {
        let (Some(picked), None) = (&request.columns, self.why_not(Flag::Metric)) else { return Ok(()) };
        let metric = Some(Metric::for_query(recording, &request.query)?);
        let columns = self.columns(&Request { query: Query { metric, ..request.query.clone() }, ..request.clone() });
        match picked.iter().find(|key| columns.iter().all(|column| column.key != *key)) {
            Some(column) => {
                let instruments = Metric::each().filter(|metric| {
                    let query = Query { metric: Some(*metric), ..request.query.clone() };
                    let columns = self.columns(&Request { query, ..request.clone() });
                    columns.iter().any(|known| known.key == column)
                });
                let mut instruments: Vec<&'static str> = instruments.map(|metric| metric.instrument).collect();
                instruments.dedup();
                Err(QueryProblem::ColumnNotRecorded { column: column.clone(), instruments })
            }
            None => Ok(()),
        }
    }

    /// Key of the column with this name: its exact key in JSON, or its heading in text output. In a
    /// heading, upper and lower case count as equal, and so do spaces, hyphens and underscores.
    /// `None` if no column matches, or several do.
    #[must_use]
    pub fn column_key(&self, request: &Request, word: &str) -> Option<&'static str> {
        let plain = |text: &str| text.replace(['-', '_'], " ").to_lowercase();
        let columns = self.columns(request);
        let by_key = columns.iter().find(|column| column.key == word).map(|column| column.key);
        let mut by_title = columns.iter().filter(|column| plain(column.title) == plain(word)).map(|column| column.key);
        by_key.or_else(|| by_title.next().filter(|_| by_title.next().is_none()))
    }

    /// The instruments that feed the view; empty for views of every recording.
    #[must_use]
    pub fn instruments(&self) -> Vec<&'static str> {
        instruments::ALL.iter().filter(|spec| spec.views.contains(&self.name)).map(|spec| spec.name).collect()
    }

    /// Whether the rows come only from requests. Such a view filters requests itself: a recording
    /// reduced to the work for some requests has no other data about requests.
    #[must_use]
    pub fn is_of_requests(&self) -> bool {
        self.instruments() == [instruments::requests::SPEC.name]
    }

    /// Reason why the view refuses an option; `None` if the view takes it.
    #[must_use]
    pub fn why_not(&self, flag: Flag) -> Option<&'static str> {
        let takes = match flag {
            Flag::Sort => !self.sorts.is_empty(),
            _ => self.takes.iter().any(|flags| flags.contains(&flag)),
        };
        flag.why().filter(|_| !takes)
    }

    /// Like [`why_not`](Self::why_not), with or without `--each`. Single calls and events have a
    /// thread and a time, so they take options that totals refuse.
    #[must_use]
    pub fn why_not_with(&self, each: bool, flag: Flag) -> Option<&'static str> {
        const OF_EACH: [Flag; 4] = [Flag::Thread, Flag::Since, Flag::Until, Flag::Part];
        let has_each = each && self.why_not(Flag::Each).is_none();
        let is_of_each = OF_EACH.contains(&flag) || REQUESTS.contains(&flag);
        self.why_not(flag).filter(|_| !(has_each && is_of_each))
    }

    /// How to name the view so that it takes an option: its name, or its name with `--each`. `None`
    /// if it never takes the option.
    #[must_use]
    pub fn words_to_have(&self, flag: Flag) -> Option<String> {
        match (self.why_not(flag), self.why_not_with(true, flag)) {
            (None, _) => Some(self.name.to_owned()),
            (Some(_), None) => Some(format!("{} --each", self.name)),
            (Some(_), Some(_)) => None,
        }
    }

    /// The request for text output: with the view's default limit if the request has none, and
    /// without the smallest nodes of trees. In text output, paths of allocations end in types; in
    /// JSON they do not, because methods would then have no own amounts.
    #[must_use]
    pub fn for_people(&self, request: &Request) -> Request {
        let mut request = Request { min_share: LEAST_SHARE, ..request.clone() };
        request.query.type_leaves = true;
        if !request.follow && !request.files {
            request.query.limit = request.query.limit.or((self.text_rows)(&request));
        }
        request
    }

    /// Answers a request about a recording.
    ///
    /// # Errors
    /// If the request selects nothing of the recording, or the view's data were not recorded.
    pub fn open<'a>(&'static self, recording: &'a Recording, request: &Request) -> Result<Report<'a>, QueryProblem> {
        self.open_with(recording, request, &Heaps::new(recording))
    }

    /// Like [`open`](Self::open), for several views that share the heap snapshots that were read.
    ///
    /// # Errors
    /// As [`open`](Self::open).
    pub(crate) fn open_with<'a>(
        &'static self,
        recording: &'a Recording,
        request: &Request,
        heaps: &Heaps<'a>,
    ) -> Result<Report<'a>, QueryProblem> {
        let request = &self.with_metric_of_columns(request);
        self.check_columns_of(recording, request)?;
        let answer = (self.open)(recording, request, heaps)?;
        let is_default = |asked: &&'static Metric| Metric::for_query(recording, &Query::default()) == Ok(asked);
        let metric = request.query.metric.filter(|asked| !is_default(asked));
        Ok(Report { view: self, recording, metric, answer, request: request.clone() })
    }
}

/// The answer to a request: sections of rows for a renderer.
pub(crate) trait Answer {
    /// Conditions of the answer, for the head of text.
    fn conditions(&self) -> Option<clrscope_analysis::Conditions<'_>> {
        None
    }

    /// Passes every section to `renderer`.
    ///
    /// # Errors
    /// Errors of the renderer.
    fn sections(&self, renderer: &mut dyn Renderer) -> io::Result<()>;
}

/// A view of a recording.
pub struct Report<'a> {
    pub(crate) view: &'static View,
    pub(crate) recording: &'a Recording,
    pub(crate) request: Request,
    metric: Option<&'static Metric>,
    answer: Box<dyn Answer + 'a>,
}

impl<'a> Report<'a> {
    /// A report with the answer of a view to a request. `recording` is the recording; if there are
    /// several, one of them.
    pub(crate) fn new(
        view: &'static View,
        recording: &'a Recording,
        answer: Box<dyn Answer + 'a>,
        request: &Request,
    ) -> Self {
        Self { view, recording, metric: None, answer, request: request.clone() }
    }

    /// The report, with `metric` as the metric of its rows.
    pub(crate) fn by(self, metric: Option<&'static Metric>) -> Self {
        Self { metric, ..self }
    }
}

impl Report<'_> {
    /// Passes the whole report to a renderer.
    ///
    /// # Errors
    /// Errors of the renderer.
    pub fn render(&self, renderer: &mut dyn Renderer) -> io::Result<()> {
        let conditions = || self.answer.conditions();
        let Self { view, recording, metric, ref request, .. } = *self;
        let verbose = request.verbose;
        renderer.begin(&About { view: view.name, recording, metric, conditions: &conditions, verbose })?;
        self.answer.sections(renderer)?;
        renderer.end()
    }

    /// Writes the rows of a log that `state` has not seen yet, and adds them to `state`.
    ///
    /// # Errors
    /// Errors of `out`.
    pub fn write_news(&self, state: &mut text::FollowState, out: &mut dyn Write) -> io::Result<()> {
        self.answer.sections(&mut text::News::new(out, state))
    }
}
