//! Requests to a view.

use std::path::PathBuf;

use clrscope_analysis::{Query, TreePlace};
use clrscope_contract::request::Glob;
use clrscope_recording::events::Group;

/// A request to a view. The default asks for everything the view has.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Request {
    /// Selection and order of the recording's data.
    pub query: Query,
    /// Keys of the columns to show, in this order; the view's own choice when `None`.
    pub columns: Option<Vec<String>>,
    /// Calls deeper than this are left out.
    pub max_depth: Option<u32>,
    /// Only events of these groups; none means all.
    pub groups: Vec<Group>,
    /// Only events that are called, or are about something called, like one of these; only exceptions of such a type.
    pub names: Vec<Glob>,
    /// Each exception, rather than exceptions by type and throwing method.
    pub each: bool,
    /// Callers of probed methods, rather than the methods alone.
    pub callers: bool,
    /// All threads together by time, rather than one after another.
    pub interleave: bool,
    /// The recording still grows, and whoever asks goes on asking.
    pub follow: bool,
    /// A file per thread is wanted.
    pub files: bool,
    /// The head of text with everything that is known of how the numbers came about.
    pub verbose: bool,
    /// The source of each line beside its numbers.
    pub source: bool,
    /// Folder in which sources are looked for that are not where they were compiled.
    pub source_root: Option<PathBuf>,
    /// Each line, rather than sums of lines.
    pub lines: bool,
    /// Number of the snapshot of the heap; the last complete one when `None`.
    pub snapshot: Option<u32>,
    /// Number of the snapshot that the other one is compared with; the first complete one when `None`.
    pub against: Option<u32>,
    /// Nodes of a tree with a smaller share of the time are left out, 0 to 1.
    pub min_share: f64,
    /// Only this node of a tree, with what lies below it; `min_share` is then a share of the node.
    pub below: Option<TreePlace>,
    /// Text goes to a terminal, where somebody sees box characters and colours; other text is ASCII where it is drawn.
    pub on_terminal: bool,
}

/// An option of a report: what a view either takes, or refuses with a reason.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Flag {
    /// `--pid`
    Pid,
    /// `--process`
    Process,
    /// `--thread`
    Thread,
    /// `--function`
    Function,
    /// `--module`
    Module,
    /// `--part`
    Part,
    /// `--since`
    Since,
    /// `--until`
    Until,
    /// `--limit`
    Limit,
    /// `--sort`
    Sort,
    /// `--raw`
    Raw,
    /// `--per-thread`
    PerThread,
    /// `--columns`
    Columns,
    /// `--metric`
    Metric,
    /// `--depth`
    Depth,
    /// `--follow`
    Follow,
    /// `--group`
    Group,
    /// `--name`
    Name,
    /// `--each`
    Each,
    /// `--callers`
    Callers,
    /// `--interleave`
    Interleave,
    /// `--output`
    Output,
    /// `--verbose`
    Verbose,
    /// `--just-my-code`
    JustMyCode,
    /// `--native-code`
    NativeCode,
    /// `--no-inlined`
    NoInlined,
    /// `--source`
    Source,
    /// `--lines`
    Lines,
    /// `--snapshot`
    Snapshot,
    /// `--against`
    Against,
    /// `--type`
    Type,
}

impl Flag {
    /// Every option with its name on the command line.
    pub const ALL: [(&'static str, Self); 31] = [
        ("--pid", Self::Pid),
        ("--process", Self::Process),
        ("--thread", Self::Thread),
        ("--function", Self::Function),
        ("--module", Self::Module),
        ("--part", Self::Part),
        ("--since", Self::Since),
        ("--until", Self::Until),
        ("--limit", Self::Limit),
        ("--sort", Self::Sort),
        ("--raw", Self::Raw),
        ("--per-thread", Self::PerThread),
        ("--columns", Self::Columns),
        ("--metric", Self::Metric),
        ("--depth", Self::Depth),
        ("--follow", Self::Follow),
        ("--group", Self::Group),
        ("--name", Self::Name),
        ("--each", Self::Each),
        ("--callers", Self::Callers),
        ("--interleave", Self::Interleave),
        ("--output", Self::Output),
        ("--verbose", Self::Verbose),
        ("--just-my-code", Self::JustMyCode),
        ("--native-code", Self::NativeCode),
        ("--no-inlined", Self::NoInlined),
        ("--source", Self::Source),
        ("--lines", Self::Lines),
        ("--snapshot", Self::Snapshot),
        ("--against", Self::Against),
        ("--type", Self::Type),
    ];

    /// The name on the command line.
    #[must_use]
    pub fn name(self) -> &'static str {
        Self::ALL.iter().find(|(_, flag)| *flag == self).map_or("", |(name, _)| name)
    }

    /// Whether a request has the option.
    #[must_use]
    pub fn is_in(self, request: &Request) -> bool {
        let Request {
            query,
            columns,
            max_depth,
            groups,
            names,
            each,
            callers,
            interleave,
            follow,
            files,
            verbose,
            source,
            source_root: _,
            lines,
            snapshot,
            against,
            min_share: _,
            below: _,
            on_terminal: _,
        } = request;
        match self {
            Self::Pid => query.pid.is_some(),
            Self::Process => query.process.is_some(),
            Self::Thread => !query.threads.is_empty(),
            Self::Function => !query.functions.is_empty(),
            Self::Module => !query.modules.is_empty(),
            Self::Part => !query.parts.is_empty(),
            Self::Since => query.since_ns.is_some(),
            Self::Until => query.until_ns.is_some(),
            Self::Limit => query.limit.is_some(),
            Self::Sort => query.sort.is_some(),
            Self::Raw => query.raw,
            Self::PerThread => query.per_thread,
            Self::Columns => columns.is_some(),
            Self::Metric => query.metric.is_some(),
            Self::Depth => max_depth.is_some(),
            Self::Follow => *follow,
            Self::Group => !groups.is_empty(),
            Self::Name => !names.is_empty(),
            Self::Each => *each,
            Self::Callers => *callers,
            Self::Interleave => *interleave,
            Self::Output => *files,
            Self::Verbose => *verbose,
            Self::JustMyCode => query.just_my_code,
            Self::NativeCode => query.native_code.is_some(),
            Self::NoInlined => query.no_inlined,
            Self::Source => *source,
            Self::Lines => *lines,
            Self::Snapshot => snapshot.is_some(),
            Self::Against => against.is_some(),
            Self::Type => !query.types.is_empty(),
        }
    }
}
