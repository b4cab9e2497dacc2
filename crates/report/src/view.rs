//! Views: what each is made of, and reports, which are views of one recording.

use std::io::{self, Write};

use clrscope_analysis::{Heaps, Metric, Query, QueryProblem, Sort};
use clrscope_contract::instruments;
use clrscope_recording::model::Recording;

use crate::cell::ColumnInfo;
use crate::render::{About, Layout, Renderer, text};
use crate::request::{Flag, REQUESTS, Request};

/// In text, nodes with a smaller share of the time are left out of a tree.
const LEAST_SHARE: f64 = 0.005;

/// A view: everything about it that does not depend on a recording.
pub struct View {
    /// Name on the command line and in schemas.
    pub name: &'static str,
    /// Content of the view, in one line.
    pub about: &'static str,
    /// Options that it takes, besides those of every view and `--sort`, which views with
    /// [`sorts`](Self::sorts) take.
    pub(crate) takes: &'static [&'static [Flag]],
    /// Sort keys of its rows; empty where their order is given.
    pub sorts: &'static [Sort],
    /// Rows in text when no number is asked for.
    pub(crate) text_rows: fn(&Request) -> Option<usize>,
    /// Whether its text begins with the head of a report.
    pub has_head: bool,
    /// Layout of its JSON document.
    pub(crate) layout: Layout,
    /// Columns that a row has.
    pub(crate) columns: fn(&Request) -> Vec<ColumnInfo>,
    /// The answer to a request about a recording.
    pub(crate) open: Open,
}

/// Function that answers a request about a recording, whose snapshots of the heap other views may
/// look at as well.
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

    /// The request with the metric that its columns are of: where none is asked for, and a column
    /// is picked that only rows of one metric have, it is that metric.
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

    /// Refuses picked columns that rows of this recording don't have.
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

    /// Key of the column that a word names: by its key in JSON or by its heading in text, in any
    /// case and with blanks, hyphens or underscores. `None` where there is no such column, or more
    /// than one.
    #[must_use]
    pub fn column_key(&self, request: &Request, word: &str) -> Option<&'static str> {
        let plain = |text: &str| text.replace(['-', '_'], " ").to_lowercase();
        let columns = self.columns(request);
        let by_key = columns.iter().find(|column| column.key == word).map(|column| column.key);
        let mut by_title = columns.iter().filter(|column| plain(column.title) == plain(word)).map(|column| column.key);
        by_key.or_else(|| by_title.next().filter(|_| by_title.next().is_none()))
    }

    /// The instruments that feed the view; none for views of every recording.
    #[must_use]
    pub fn instruments(&self) -> Vec<&'static str> {
        instruments::ALL.iter().filter(|spec| spec.views.contains(&self.name)).map(|spec| spec.name).collect()
    }

    /// Whether the rows are made of requests alone. Such a view chooses them itself: a recording
    /// that was reduced to their work says nothing more of them.
    #[must_use]
    pub fn is_of_requests(&self) -> bool {
        self.instruments() == [instruments::requests::SPEC.name]
    }

    /// Reason why an option makes no sense for the view; `None` where the view takes it.
    #[must_use]
    pub fn why_not(&self, flag: Flag) -> Option<&'static str> {
        let takes = match flag {
            Flag::Sort => !self.sorts.is_empty(),
            _ => self.takes.iter().any(|flags| flags.contains(&flag)),
        };
        flag.why().filter(|_| !takes)
    }

    /// [`why_not`](Self::why_not) where single calls or events are shown (`--each`), or not: those
    /// have a thread and a time, whatever sums of them refuse.
    #[must_use]
    pub fn why_not_with(&self, each: bool, flag: Flag) -> Option<&'static str> {
        const OF_EACH: [Flag; 4] = [Flag::Thread, Flag::Since, Flag::Until, Flag::Part];
        let has_each = each && self.why_not(Flag::Each).is_none();
        let is_of_each = OF_EACH.contains(&flag) || REQUESTS.contains(&flag);
        self.why_not(flag).filter(|_| !(has_each && is_of_each))
    }

    /// The words by which an option can be had, if it can: the view's name, or that with `--each`.
    #[must_use]
    pub fn words_to_have(&self, flag: Flag) -> Option<String> {
        match (self.why_not(flag), self.why_not_with(true, flag)) {
            (None, _) => Some(self.name.to_owned()),
            (Some(_), None) => Some(format!("{} --each", self.name)),
            (Some(_), Some(_)) => None,
        }
    }

    /// The request as text answers it: with the view's own limit where the request has none, and
    /// without the smallest nodes of trees.
    #[must_use]
    pub fn for_people(&self, request: &Request) -> Request {
        let mut request = Request { min_share: LEAST_SHARE, ..request.clone() };
        if !request.follow && !request.files {
            request.query.limit = request.query.limit.or((self.text_rows)(&request));
        }
        request
    }

    /// Answers a request about a recording.
    ///
    /// # Errors
    /// When nothing of the recording is meant, or what the view shows was not recorded.
    pub fn open<'a>(&'static self, recording: &'a Recording, request: &Request) -> Result<Report<'a>, QueryProblem> {
        self.open_with(recording, request, &Heaps::new(recording))
    }

    /// As [`open`](Self::open), one of several views: what it reads of snapshots of the heap, the
    /// others need not.
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

    /// Hands every section to `renderer`.
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
    /// The answer of a view to a request about this recording, among others.
    pub(crate) fn new(
        view: &'static View,
        recording: &'a Recording,
        answer: Box<dyn Answer + 'a>,
        request: &Request,
    ) -> Self {
        Self { view, recording, metric: None, answer, request: request.clone() }
    }

    /// The report, whose rows are measured by a metric.
    pub(crate) fn by(self, metric: Option<&'static Metric>) -> Self {
        Self { metric, ..self }
    }
}

impl Report<'_> {
    /// Hands the whole report to a renderer.
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

    /// Writes what `state` has not seen of a log yet, and remembers it.
    ///
    /// # Errors
    /// Errors of `out`.
    pub fn write_news(&self, state: &mut text::FollowState, out: &mut dyn Write) -> io::Result<()> {
        self.answer.sections(&mut text::News::new(out, state))
    }
}
