//! Converts clrscope's analysis to the formats of other programs.
//!
//! Each format is a module that implements the trait [`Exporter`]; [`exporters`] lists the formats.
//! All of them stream their output: large data, such as the paths of a call tree, are never held in
//! memory as text.
//!
//! The crate inferno (CDDL-1.0) draws the format `flamegraph`; without the feature `flamegraph`,
//! the format and the crate are missing.

mod calllog;
mod chrome;
mod collapsed;
mod counters;
mod coverage;
pub mod dataset;
pub mod delimited;
#[cfg(feature = "flamegraph")]
mod differential;
mod dot;
pub mod fields;
mod firefox;
#[cfg(feature = "flamegraph")]
mod flamegraph;
mod fnv;
mod frames;
mod heapsnapshot;
mod hst;
mod json;
mod locations;
mod origin;
mod otlp;
mod parquet;
mod pprof;
mod protobuf;
mod refusals;
mod resource;
mod speedscope;
mod split;
mod stacks;
mod threads;
mod weighed;

use std::fmt;
use std::io::{self, Write};
use std::sync::LazyLock;

use clrscope_analysis::{Query, QueryProblem};
use clrscope_recording::model::Recording;

#[cfg(feature = "flamegraph")]
pub use differential::DifferentialFlameGraph;
pub use pprof::metrics_of_profiles;
pub use split::{Malformed, Part, PartLimits, split_otlp, split_pprof};

/// Options of an export.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct ExportOptions {
    /// Selection of processes, threads, functions and metric. Order, limit and compensation have
    /// the same meaning as in reports.
    pub query: Query,
    /// Smallest share of the metric that is drawn, 0 to 1, for formats with
    /// [`Exporter::takes_min_share`]. `None` for the format's own default: 0, except for `dot` and
    /// `flamegraph`.
    pub min_share: Option<f64>,
    /// Number of the heap snapshot; `None` for the last complete one. If set, the stacks come from
    /// the heap.
    pub snapshot: Option<u32>,
}

/// Reason why an export failed.
#[derive(Debug)]
#[non_exhaustive]
pub enum ExportError {
    /// The output could not be written.
    Io(io::Error),
    /// The query can't be answered.
    Query(QueryProblem),
    /// The format has nothing to show.
    Empty(&'static str),
}

impl fmt::Display for ExportError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Io(error) => error.fmt(f),
            Self::Query(problem) => problem.fmt(f),
            Self::Empty(why) => f.write_str(why),
        }
    }
}

impl std::error::Error for ExportError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::Io(error) => Some(error),
            Self::Query(problem) => Some(problem),
            Self::Empty(_) => None,
        }
    }
}

impl From<io::Error> for ExportError {
    fn from(error: io::Error) -> Self {
        Self::Io(error)
    }
}

impl From<QueryProblem> for ExportError {
    fn from(problem: QueryProblem) -> Self {
        Self::Query(problem)
    }
}

/// An export format.
pub trait Exporter: Sync {
    /// Name of the format on the command line.
    fn name(&self) -> &'static str;

    /// Description in one line.
    fn description(&self) -> &'static str;

    /// Usual file extension, without the dot.
    fn extension(&self) -> &'static str;

    /// Whether the format shows heap snapshots, and therefore accepts a snapshot number.
    fn shows_heap(&self) -> bool {
        false
    }

    /// Whether the format can leave out parts below a smallest share.
    fn takes_min_share(&self) -> bool {
        false
    }

    /// Whether the format shows native code, and therefore accepts the option that says how to show
    /// it.
    fn shows_native_code(&self) -> bool {
        false
    }

    /// Writes a recording. `out` should be buffered; it is not flushed.
    ///
    /// # Errors
    /// When the output can't be written, the query can't be answered, or there is nothing to show.
    fn write(&self, recording: &Recording, options: &ExportOptions, out: &mut dyn Write) -> Result<(), ExportError>;
}

static SHOW_HEAP: LazyLock<String> = LazyLock::new(|| {
    format!("it shows no snapshot of the heap; others do: {}", formats_that(|format| format.shows_heap()))
});
static TAKE_MIN_SHARE: LazyLock<String> = LazyLock::new(|| {
    format!("it leaves nothing out for its size; others do: {}", formats_that(|format| format.takes_min_share()))
});

/// Names of the formats that satisfy `holds`, joined by commas.
pub fn formats_that(holds: impl Fn(&dyn Exporter) -> bool) -> String {
    let names: Vec<&str> = exporters().iter().filter(|format| holds(**format)).map(|format| format.name()).collect();
    names.join(", ")
}

/// Refuses options that the format can't use: a snapshot number for a format without snapshots, an
/// option about native code for a format that does not show such code, and a smallest share for a
/// format that always writes everything.
///
/// # Errors
/// If `options` has an option that the format does not accept.
pub fn check(format: &dyn Exporter, options: &ExportOptions) -> Result<(), ExportError> {
    let (option, why) = if options.snapshot.is_some() && !format.shows_heap() {
        ("--snapshot", SHOW_HEAP.as_str())
    } else if options.query.native_code.is_some() && !format.shows_native_code() {
        ("--native-code", "it shows no native code")
    } else if options.query.symbols.is_some() && !format.shows_native_code() {
        ("--symbols", "it shows no native code")
    } else if options.query.no_inlined && !format.shows_native_code() {
        ("--no-inlined", "it shows no stacks of samples")
    } else if options.query.paths.is_some() && !format.shows_native_code() {
        ("--paths", "it shows no call stacks")
    } else if options.min_share.is_some() && !format.takes_min_share() {
        ("--min-share", TAKE_MIN_SHARE.as_str())
    } else {
        return Ok(());
    };
    Err(QueryProblem::NotAvailable { option, view: format.name(), why }.into())
}

/// Every format, in the order of the help text.
#[must_use]
pub fn exporters() -> &'static [&'static dyn Exporter] {
    &[
        #[cfg(feature = "flamegraph")]
        &flamegraph::FlameGraph,
        &hst::Hst,
        &calllog::CallLog,
        &dot::Dot,
        &collapsed::Collapsed,
        &speedscope::Speedscope,
        &firefox::Firefox,
        &chrome::Chrome,
        &pprof::Pprof,
        &otlp::Otlp,
        &counters::OtlpMetrics,
        &counters::Prometheus,
        &parquet::Paths,
        &parquet::Samples,
        &heapsnapshot::HeapSnapshot,
        &coverage::Cobertura,
        &coverage::Lcov,
        &coverage::OpenCover,
    ]
}

/// No format has this name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UnknownFormat {
    /// The requested name.
    pub name: String,
}

impl fmt::Display for UnknownFormat {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let known: Vec<_> = exporters().iter().map(|e| e.name()).collect();
        write!(f, "no format is called '{}'; there are {}", self.name, known.join(", "))
    }
}

impl std::error::Error for UnknownFormat {}

/// The format with this name.
///
/// # Errors
/// If there is none; the error lists the known formats.
pub fn exporter(name: &str) -> Result<&'static dyn Exporter, UnknownFormat> {
    let found = exporters().iter().find(|e| e.name() == name);
    found.copied().ok_or_else(|| UnknownFormat { name: name.to_owned() })
}
