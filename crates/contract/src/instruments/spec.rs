//! Specification of an instrument: its name, options and rules.

/// One instrument: its name, options, rules, limits and views.
///
/// The checks of launcher and agent, the canonical form, help, completions and hints are all
/// derived from it.
#[derive(Debug)]
pub struct Spec {
    /// The name of the instrument, as in `-i` and in recordings.
    pub name: &'static str,
    /// Summary of what the instrument records, in one line.
    pub about: &'static str,
    /// The options, in the order of the help and of the canonical form.
    pub options: &'static [OptionSpec],
    /// Rules about which options can be combined.
    pub rules: &'static [Rule],
    /// Other parts of a request with which the instrument can't run.
    pub conflicts: &'static [Conflict],
    /// Whether the instrument can be attached to a running program.
    pub attach: Limit,
    /// Whether the instrument works in a notification-only profiler, while another profiler has the
    /// main slot of the runtime.
    pub notification_only: Limit,
    /// Whether the instrument changes the code of methods while the program runs. If so, the
    /// runtime does not detach the agent afterwards.
    pub changes_methods: bool,
    /// The views of reports that show the instrument's data. A report begins with the first one.
    pub views: &'static [&'static str],
    /// Whether the instrument's events have timestamps, so that only the most recent ones can be
    /// kept.
    pub keeps_last: bool,
    /// Whether the instrument can be recorded in consecutive periods (`--every`): it can keep its
    /// latest events, or knows its totals at the end of each period.
    pub rotates: bool,
    /// Whether the instrument records stacks with compiled code, which may contain inlined methods.
    pub has_code: bool,
}

/// One option of an instrument.
#[derive(Debug)]
pub struct OptionSpec {
    /// The name of the option, before the `=`.
    pub name: &'static str,
    /// Values allowed after the `=`, and the default.
    pub value: Value,
    /// Effect of the option, in one line without its default and its bounds.
    pub about: &'static str,
}

/// The values that an option takes.
#[derive(Debug)]
pub enum Value {
    /// `on` or `off`; the bare name means `on`.
    Switch {
        /// Whether the switch is on if the option is not given.
        default: bool,
    },
    /// An addition that is `off` by default: one of these words, or only `on` if there are no
    /// words. The bare name, like `on`, means the first word. The canonical form contains it only
    /// if it is on.
    Extra {
        /// The words that the option accepts in addition to `on` and `off`.
        words: &'static [&'static str],
    },
    /// One of these words.
    OneOf {
        /// The words.
        words: &'static [&'static str],
        /// The default word.
        default: &'static str,
    },
    /// A [size](crate::request::parse_size) in bytes.
    Size {
        /// Minimum; smaller values are refused.
        least: u64,
        /// Maximum; larger values are reduced to it.
        most: Option<u64>,
        /// The default.
        default: u64,
    },
    /// A whole number.
    Count {
        /// Minimum; smaller values are refused.
        least: u32,
        /// Maximum; larger values are refused.
        most: u32,
        /// The default.
        default: u32,
    },
    /// Moments, joined by `+`: times after the start of the recording such as `10s`, sizes such as
    /// `2GiB`, [`AT_END`], or [`BY_COMMAND`].
    Moments {
        /// The default moments.
        default: &'static [Moment],
    },
    /// Some of these members, joined by `+`, or [`ALL_MEMBERS`]. Each member may also be written
    /// alone, without the option's name.
    Set {
        /// All members, in their order.
        members: &'static [Member],
        /// The default members.
        default: &'static [&'static str],
    },
    /// Names, joined by `+`. The default is no names; giving the option again adds names. The
    /// canonical form contains the option only if there are names.
    Names {
        /// What kind of names these are, in words for people.
        of: &'static str,
        /// Whether a word is a valid name of this kind.
        is_name: fn(&str) -> bool,
    },
}

/// The word for the end of the recording, among [moments](Value::Moments).
pub const AT_END: &str = "end";
/// The value for no fixed [moments](Value::Moments): snapshots are taken only by command.
pub const BY_COMMAND: &str = "command";

/// One of the [moments](Value::Moments) of an option.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Moment {
    /// A time after the start of the recording, in milliseconds.
    After(u64),
    /// The moment when the process first has this many bytes in memory.
    Resident(u64),
    /// The end of the recording.
    End,
}

impl std::fmt::Display for Moment {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::After(ms) if ms.is_multiple_of(1_000) => write!(f, "{}s", ms / 1_000),
            Self::After(ms) => write!(f, "{ms}ms"),
            Self::Resident(bytes) if bytes.is_multiple_of(1 << 30) => write!(f, "{}GiB", bytes >> 30),
            Self::Resident(bytes) if bytes.is_multiple_of(1 << 20) => write!(f, "{}MiB", bytes >> 20),
            Self::Resident(bytes) => write!(f, "{bytes}b"),
            Self::End => f.write_str(AT_END),
        }
    }
}

/// The word for all members of a [set](Value::Set).
pub const ALL_MEMBERS: &str = "all";

/// One member of a [set](Value::Set).
#[derive(Debug)]
pub struct Member {
    /// The name.
    pub name: &'static str,
    /// Meaning of the member, in one line.
    pub about: &'static str,
}

/// A rule about which options of an instrument can be combined.
#[derive(Debug)]
pub enum Rule {
    /// At most one of these options is given, and only once.
    Either(&'static [&'static str]),
    /// One option needs another.
    Needs {
        /// The option that needs the other one.
        option: &'static str,
        /// The value that needs the other option; `None` if every value does, so that the option
        /// has no effect without the other.
        value: Option<&'static str>,
        /// The option that the first one needs.
        other: &'static str,
        /// The word or member that the other option must have.
        word: &'static str,
    },
    /// An option has no effect if none of the other options is on.
    NeedsOneOf {
        /// The option.
        option: &'static str,
        /// The other options: switches and extras.
        others: &'static [&'static str],
    },
}

/// Which parts of an instrument the runtime allows in a profiler with limited rights.
#[derive(Debug, Clone, Copy)]
pub enum Limit {
    /// No part, for this reason.
    Never(&'static str),
    /// All parts except these.
    Without(&'static [LimitedPart]),
}

/// Part of an instrument that the runtime does not allow in a profiler with limited rights.
#[derive(Debug, Clone, Copy)]
pub struct LimitedPart {
    /// The option.
    pub option: &'static str,
    /// The word or member of the option; `None` if the option must not be on at all.
    pub word: Option<&'static str>,
    /// Reason, in one line.
    pub why: &'static str,
}

/// Conflict of an instrument with another part of the request.
#[derive(Debug)]
pub struct Conflict {
    /// The option that conflicts if it is on; `None` for the instrument itself.
    pub option: Option<&'static str>,
    /// The other part of the request.
    pub with: With,
    /// Reason, in one line.
    pub why: &'static str,
    /// Hint about what to do instead, in one line.
    pub hint: &'static str,
}

/// Another part of a request, with which an instrument can't run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum With {
    /// No function is named by `--include`.
    NoInclude,
    /// No method is named by `--probe`, and no line by `--probe-at`.
    NoProbe,
    /// Only a period of the run is kept or written at a time: `--last` or `--every`.
    Period,
    /// The instrument with this name.
    Instrument(&'static str),
    /// The instrument with this name, if this option has this word or member.
    Member(&'static str, &'static str, &'static str),
}

impl Spec {
    /// The option with this name.
    #[must_use]
    pub fn option(&self, name: &str) -> Option<&'static OptionSpec> {
        self.options.iter().find(|option| option.name == name)
    }

    /// Whether any part of the instrument is possible in a program that runs already.
    #[must_use]
    pub fn may_attach(&self) -> bool {
        !matches!(self.attach, Limit::Never(_))
    }

    /// All words that may be written before an `=` or alone: the names of the options, then the
    /// names of the members of sets.
    pub fn words(&self) -> impl Iterator<Item = &'static str> {
        let members = self.options.iter().flat_map(OptionSpec::bare_words);
        self.options.iter().map(|option| option.name).chain(members)
    }
}

impl OptionSpec {
    /// The members of a set, which may be written alone, and the word for all members.
    pub(super) fn bare_words(&self) -> impl Iterator<Item = &'static str> + use<> {
        let members = match self.value {
            Value::Set { members, .. } => members,
            _ => &[],
        };
        let all = (!members.is_empty()).then_some(ALL_MEMBERS);
        members.iter().map(|member| member.name).chain(all)
    }
}
