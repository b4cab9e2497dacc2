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
    /// Keys of the columns to show, in this order; `None` for the view's own choice.
    pub columns: Option<Vec<String>>,
    /// Largest depth of calls; deeper calls are left out. `None` for no limit.
    pub max_depth: Option<u32>,
    /// Shows only events of these groups; an empty list selects all groups.
    pub groups: Vec<Group>,
    /// Shows only events whose own name or whose subject's name matches one of these patterns, and
    /// only exceptions of a matching type. An empty list selects all.
    pub names: Vec<Glob>,
    /// Shows each exception, rather than exceptions by type and throwing method.
    pub each: bool,
    /// Shows the callers of probed methods, rather than only the methods.
    pub callers: bool,
    /// Shows all threads merged by time, rather than one after another.
    pub interleave: bool,
    /// Whether the recording still grows and the caller polls.
    pub follow: bool,
    /// Whether to write a file for each thread.
    pub files: bool,
    /// Whether text output has a head with all facts about how the numbers came about.
    pub verbose: bool,
    /// Shows the source code of each line next to its numbers.
    pub source: bool,
    /// Folder to search for source files that are not at their original paths.
    pub source_root: Option<PathBuf>,
    /// Shows each line, rather than totals of lines.
    pub lines: bool,
    /// Number of the snapshot of the heap; `None` for the last complete one.
    pub snapshot: Option<u32>,
    /// Number of the snapshot to compare with; `None` for the first complete one.
    pub against: Option<u32>,
    /// Minimum share of the time, 0 to 1; nodes of a tree with a smaller share are left out.
    pub min_share: f64,
    /// Shows only this node of a tree and the nodes below it; `min_share` is then a share of the
    /// node.
    pub below: Option<TreePlace>,
    /// Whether text output goes to a terminal, which shows box characters and colours; without a
    /// terminal, drawings are ASCII.
    pub on_terminal: bool,
}

/// Declares the options of a report, without duplicates: its variant, its name on the command line,
/// whether a request has it, and the reason with which a view refuses it (`None` if every view
/// takes it).
macro_rules! flags {
    ($($flag:ident, $name:literal, |$request:ident| $is_in:expr, $why:expr;)*) => {
        /// An option of a report. A view either takes the option or refuses it with a reason.
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

            /// Reason why a view refuses the option, if it does not take it; `None` if every view
            /// takes it.
            pub(crate) fn why(self) -> Option<&'static str> {
                match self { $(Self::$flag => $why,)* }
            }
        }
    };
}

flags! {
    Pid, "--pid", |request| request.query.pid.is_some(), None;
    Process, "--process", |request| request.query.process.is_some(), None;
    Thread, "--thread", |request| !request.query.threads.is_empty(), Some("its numbers cover the whole process");
    Function, "--function", |request| !request.query.functions.is_empty(), Some("its rows can't be selected by \
                                                                                 function");
    Module, "--module", |request| !request.query.modules.is_empty(), Some("its rows can't be selected by module");
    Part, "--part", |request| !request.query.parts.is_empty(), Some("its numbers cover the whole run, or one moment");
    Since, "--since", |request| request.query.since_ns.is_some(), Some("its numbers cover the whole run, or one \
                                                                        moment");
    Until, "--until", |request| request.query.until_ns.is_some(), Some("its numbers cover the whole run, or one \
                                                                        moment");
    Limit, "--limit", |request| request.query.limit.is_some(), Some("it has few rows");
    Sort, "--sort", |request| request.query.sort.is_some(), Some("its rows have a fixed order");
    Raw, "--raw", |request| request.query.raw, Some("its times are as measured anyway");
    PerThread, "--per-thread", |request| request.query.per_thread, Some("its rows cover all threads, or name their \
                                                                         thread");
    Columns, "--columns", |request| request.columns.is_some(), None;
    Metric, "--metric", |request| request.query.metric.is_some(), Some("its rows have no metric to choose");
    Depth, "--depth", |request| request.max_depth.is_some(), Some("its rows are not nested calls");
    Follow, "--follow", |request| request.follow, Some("it does not follow a growing recording");
    Group, "--group", |request| !request.groups.is_empty(), Some("its rows are not events");
    Name, "--name", |request| !request.names.is_empty(), Some("its rows can't be selected by name");
    Each, "--each", |request| request.each, Some("it has sums or single calls, not both");
    Callers, "--callers", |request| request.callers, Some("its rows are not probed methods");
    Interleave, "--interleave", |request| request.interleave, Some("it is not a log of several threads");
    Output, "--output", |request| request.files, Some("it is not a log of several threads");
    Verbose, "--verbose", |request| request.verbose, Some("it has no header; the view conditions has everything about \
                                                           the recording");
    JustMyCode, "--just-my-code", |request| request.query.just_my_code, Some("its rows are not call paths");
    NativeCode, "--native-code", |request| request.query.native_code.is_some(), Some("its rows are not native \
                                                                                      functions");
    Symbols, "--symbols", |request| request.query.symbols.is_some(), Some("its rows are not native functions");
    NoInlined, "--no-inlined", |request| request.query.no_inlined, Some("its rows do not come from samples");
    Paths, "--paths", |request| request.query.paths.is_some(), Some("its rows do not come from call stacks");
    Source, "--source", |request| request.source, Some("its rows are not lines");
    Lines, "--lines", |request| request.lines, Some("its rows are not totals of lines");
    Snapshot, "--snapshot", |request| request.snapshot.is_some(), Some("it does not show a snapshot of the heap");
    Against, "--against", |request| request.against.is_some(), Some("it does not compare snapshots of the heap");
    Request, "--request", |request| !request.query.requests.routes.is_empty(), Some("its numbers are not recorded per \
                                                                                     request");
    SlowerThan, "--slower-than", |request| request.query.requests.slower_than_ns.is_some(), Some("its numbers are not recorded per request");
    Failed, "--failed", |request| request.query.requests.failed, Some("its numbers are not recorded per request");
    Trace, "--trace", |request| request.query.requests.trace.is_some(), Some("its numbers are not recorded per \
                                                                              request");
    Type, "--type", |request| !request.query.types.is_empty(), Some("its rows can't be selected by type of object");
}

/// Options that choose requests.
pub(crate) const REQUESTS: &[Flag] = &[Flag::Request, Flag::SlowerThan, Flag::Failed, Flag::Trace];
