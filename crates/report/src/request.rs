//! Requests to a view.

use std::path::PathBuf;

use clrscope_analysis::{Query, TreePlace};
use clrscope_contract::request::Glob;
use clrscope_recording::events::Group;

/// A request to a view. The default asks for everything the view has.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Request {
    /// Selection and order of the data.
    pub query: Query,
    /// Keys of the columns to show, in this order; the view's own choice when `None`.
    pub columns: Option<Vec<String>>,
    /// Calls deeper than this are left out.
    pub max_depth: Option<u32>,
    /// Only events of these groups; none means all.
    pub groups: Vec<Group>,
    /// Only events whose name, or the name of whose subject, matches one of these; only exceptions
    /// of a matching type.
    pub names: Vec<Glob>,
    /// Each exception, rather than exceptions by type and throwing method.
    pub each: bool,
    /// Callers of probed methods, rather than the methods alone.
    pub callers: bool,
    /// All threads merged by time, rather than one after another.
    pub interleave: bool,
    /// The recording still grows, and the caller polls.
    pub follow: bool,
    /// A file per thread is wanted.
    pub files: bool,
    /// Text has a head with all facts about how the numbers came about.
    pub verbose: bool,
    /// The source of each line next to its numbers.
    pub source: bool,
    /// Folder to search for sources that are not at the paths where they were compiled.
    pub source_root: Option<PathBuf>,
    /// Each line, rather than sums of lines.
    pub lines: bool,
    /// Number of the snapshot of the heap; the last complete one when `None`.
    pub snapshot: Option<u32>,
    /// Number of the snapshot to compare with; the first complete one when `None`.
    pub against: Option<u32>,
    /// Nodes of a tree with a smaller share of the time are left out, 0 to 1.
    pub min_share: f64,
    /// Only this node of a tree, with the nodes below it; `min_share` is then a share of the node.
    pub below: Option<TreePlace>,
    /// Text goes to a terminal, which shows box characters and colours; without a terminal,
    /// drawings are ASCII.
    pub on_terminal: bool,
}

/// Declares the options of a report, each once: its variant, its name on the command line, whether
/// a request has it, and the reason with which a view refuses it (`None` where every view takes
/// it).
macro_rules! flags {
    ($($flag:ident, $name:literal, |$request:ident| $is_in:expr, $why:expr;)*) => {
        /// An option of a report, which a view either takes or refuses with a reason.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
        pub enum Flag {
            $(#[doc = concat!("`", $name, "`")] $flag,)*
        }

        impl Flag {
            /// Every option with its name on the command line.
            pub const ALL: [(&'static str, Self); [$($name),*].len()] = [$(($name, Self::$flag)),*];

            /// The name on the command line.
            #[must_use]
            pub fn name(self) -> &'static str {
                match self { $(Self::$flag => $name,)* }
            }

            /// Whether a request has the option.
            #[must_use]
            pub fn is_in(self, request: &Request) -> bool {
                match self { $(Self::$flag => { let $request = request; $is_in })* }
            }

            /// Reason why a view refuses the option, if it does not take it; `None` where every
            /// view takes it.
            pub(crate) fn why(self) -> Option<&'static str> {
                match self { $(Self::$flag => $why,)* }
            }
        }
    };
}

flags! {
    Pid, "--pid", |request| request.query.pid.is_some(), None;
    Process, "--process", |request| request.query.process.is_some(), None;
    Thread, "--thread", |request| !request.query.threads.is_empty(), Some("its numbers are of the whole process");
    Function, "--function", |request| !request.query.functions.is_empty(), Some("its rows are not chosen by function");
    Module, "--module", |request| !request.query.modules.is_empty(), Some("its rows are not chosen by module");
    Part, "--part", |request| !request.query.parts.is_empty(), Some("its numbers are of the whole run, or of one moment");
    Since, "--since", |request| request.query.since_ns.is_some(), Some("its numbers are of the whole run, or of one moment");
    Until, "--until", |request| request.query.until_ns.is_some(), Some("its numbers are of the whole run, or of one moment");
    Limit, "--limit", |request| request.query.limit.is_some(), Some("its rows are few");
    Sort, "--sort", |request| request.query.sort.is_some(), Some("its rows have an order of their own");
    Raw, "--raw", |request| request.query.raw, Some("its times are as measured anyway");
    PerThread, "--per-thread", |request| request.query.per_thread, Some("its rows are of all threads together, or name their thread");
    Columns, "--columns", |request| request.columns.is_some(), None;
    Metric, "--metric", |request| request.query.metric.is_some(), Some("its rows are not measured by one");
    Depth, "--depth", |request| request.max_depth.is_some(), Some("its rows are no calls within calls");
    Follow, "--follow", |request| request.follow, Some("its rows are not read on while a recording grows");
    Group, "--group", |request| !request.groups.is_empty(), Some("its rows are no events");
    Name, "--name", |request| !request.names.is_empty(), Some("its rows are not chosen by name");
    Each, "--each", |request| request.each, Some("it has sums or single calls, not both");
    Callers, "--callers", |request| request.callers, Some("its rows are no probed methods");
    Interleave, "--interleave", |request| request.interleave, Some("it is no log of several threads");
    Output, "--output", |request| request.files, Some("it is no log of several threads");
    Verbose, "--verbose", |request| request.verbose, Some("it has no head; the view conditions has everything about the recording");
    JustMyCode, "--just-my-code", |request| request.query.just_my_code, Some("its rows are not made of paths of functions");
    NativeCode, "--native-code", |request| request.query.native_code.is_some(), Some("its rows are no native functions");
    Symbols, "--symbols", |request| request.query.symbols.is_some(), Some("its rows are no native functions");
    NoInlined, "--no-inlined", |request| request.query.no_inlined, Some("its rows are not made of samples");
    Paths, "--paths", |request| request.query.paths.is_some(), Some("its rows are not made of call stacks");
    Source, "--source", |request| request.source, Some("its rows are no lines");
    Lines, "--lines", |request| request.lines, Some("its rows are no sums of lines");
    Snapshot, "--snapshot", |request| request.snapshot.is_some(), Some("its rows are not about a snapshot of the heap");
    Against, "--against", |request| request.against.is_some(), Some("it does not compare snapshots of the heap");
    Request, "--request", |request| !request.query.requests.routes.is_empty(), Some("its numbers are not known by request");
    SlowerThan, "--slower-than", |request| request.query.requests.slower_than_ns.is_some(), Some("its numbers are not known by request");
    Failed, "--failed", |request| request.query.requests.failed, Some("its numbers are not known by request");
    Trace, "--trace", |request| request.query.requests.trace.is_some(), Some("its numbers are not known by request");
    Type, "--type", |request| !request.query.types.is_empty(), Some("its rows are not chosen by type of object");
}

/// Options that choose requests.
pub(crate) const REQUESTS: &[Flag] = &[Flag::Request, Flag::SlowerThan, Flag::Failed, Flag::Trace];
