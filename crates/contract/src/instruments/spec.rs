//! Specification of an instrument: its name, options and rules.

/// One instrument: its name, its options and what belongs to them.
///
/// The check on both sides, the canonical form, help, completions and hints all follow from it.
#[derive(Debug)]
pub struct Spec {
    /// The name, as `-i` and recordings have it.
    pub name: &'static str,
    /// Summary of what the instrument records, in one line.
    pub about: &'static str,
    /// The options, in the order of help and of the canonical form.
    pub options: &'static [OptionSpec],
    /// Rules that must hold among the options.
    pub rules: &'static [Rule],
    /// With what else in a request the instrument can't run.
    pub conflicts: &'static [Conflict],
    /// Whether the instrument can be attached to a program that runs.
    pub attach: Limit,
    /// Whether the instrument works in a notification-only profiler, while another profiler has the
    /// main slot of the runtime.
    pub notification_only: Limit,
    /// Whether it gives methods other code while the program runs: after that the runtime does not
    /// detach an agent.
    pub changes_methods: bool,
    /// The views of reports that show what the instrument recorded; the first is the one to begin
    /// with.
    pub views: &'static [&'static str],
    /// Whether its events have times of their own, so that those of the last time can be kept
    /// alone.
    pub keeps_last: bool,
    /// Whether it looks at compiled code on stacks, in which other methods may be inlined.
    pub has_code: bool,
}

/// One option of an instrument.
#[derive(Debug)]
pub struct OptionSpec {
    /// The name, before the `=`.
    pub name: &'static str,
    /// Values that may stand behind the `=`, and the default.
    pub value: Value,
    /// Effect of the option, in one line without its default and its bounds.
    pub about: &'static str,
}

/// The values that an option takes.
#[derive(Debug)]
pub enum Value {
    /// `on` or `off`; the bare name means `on`.
    Switch {
        /// Whether it is on where it is not given.
        default: bool,
    },
    /// An addition, `off` where it is not given: one of these words, or just `on` where there are
    /// none. The bare name, like `on`, means the first word. In the canonical form it stands only
    /// where it is on.
    Extra {
        /// The words besides `on` and `off`.
        words: &'static [&'static str],
    },
    /// One of these words.
    OneOf {
        /// The words.
        words: &'static [&'static str],
        /// The word that holds where none is given.
        default: &'static str,
    },
    /// A [size](crate::request::parse_size) in bytes.
    Size {
        /// Less is refused.
        least: u64,
        /// More is taken as this much.
        most: Option<u64>,
        /// Default: what holds where none is given.
        default: u64,
    },
    /// A whole number.
    Count {
        /// Less is refused.
        least: u32,
        /// More is refused.
        most: u32,
        /// Default: what holds where none is given.
        default: u32,
    },
    /// Moments, joined by `+`: times after the start of the recording such as `10s`, sizes such as
    /// `2GiB`, [`AT_END`], or [`BY_COMMAND`].
    Moments {
        /// Moments that hold where none is given.
        default: &'static [Moment],
    },
    /// Some of these, joined by `+`, or [`ALL_MEMBERS`]. Each may also stand bare, as an option of
    /// its own.
    Set {
        /// All there are, in their order.
        members: &'static [Member],
        /// Members that hold where none is given.
        default: &'static [&'static str],
    },
    /// Names of types, joined by `+`, none where the option is not given; given again, it adds to
    /// them. In the canonical form it stands only where there are some.
    Names,
}

/// The word for the end of the recording among [moments](Value::Moments).
pub const AT_END: &str = "end";
/// The word for no [moment](Value::Moments) but those that a command names while the program runs.
pub const BY_COMMAND: &str = "command";

/// One of the [moments](Value::Moments) of an option.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Moment {
    /// So many milliseconds after the start of the recording.
    After(u64),
    /// So many bytes of the process are in memory for the first time.
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

/// A rule that must hold among the options of an instrument.
#[derive(Debug)]
pub enum Rule {
    /// At most one of these is given, and once.
    Either(&'static [&'static str]),
    /// One option needs another.
    Needs {
        /// The option that needs the other one.
        option: &'static str,
        /// The value with which it does; `None` for any: then the option means nothing without the
        /// other one.
        value: Option<&'static str>,
        /// The option that is needed.
        other: &'static str,
        /// The word or the member that the other one must have.
        word: &'static str,
    },
    /// An option means nothing where none of these is on.
    NeedsOneOf {
        /// The option.
        option: &'static str,
        /// Switches and extras.
        others: &'static [&'static str],
    },
}

/// What the runtime allows of an instrument in a profiler that it gives less than others.
#[derive(Debug, Clone, Copy)]
pub enum Limit {
    /// Nothing, and why.
    Never(&'static str),
    /// All but these.
    Without(&'static [LimitedPart]),
}

/// Part of an instrument that the runtime does not allow everywhere.
#[derive(Debug, Clone, Copy)]
pub struct LimitedPart {
    /// The option.
    pub option: &'static str,
    /// The word or member of the option; `None` where the option must not be on at all.
    pub word: Option<&'static str>,
    /// Reason, in one line.
    pub why: &'static str,
}

/// Conflict of an instrument with another part of the request.
#[derive(Debug)]
pub struct Conflict {
    /// The option that conflicts where it is on; `None` for the instrument itself.
    pub option: Option<&'static str>,
    /// With what.
    pub with: With,
    /// Reason, in one line.
    pub why: &'static str,
    /// Cure: what to do instead, in one line.
    pub hint: &'static str,
}

/// Another part of a request, with which an instrument can't run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum With {
    /// No function is named by `--include`.
    NoInclude,
    /// No method is named by `--probe`, and no line by `--probe-at`.
    NoProbe,
    /// The instrument of this name.
    Instrument(&'static str),
    /// The instrument of this name, where this option of it has this word or member.
    Member(&'static str, &'static str, &'static str),
}

impl Spec {
    /// The option of this name.
    #[must_use]
    pub fn option(&self, name: &str) -> Option<&'static OptionSpec> {
        self.options.iter().find(|option| option.name == name)
    }

    /// All that may stand before an `=` or bare: the names of the options, then those of the
    /// members of sets.
    pub fn words(&self) -> impl Iterator<Item = &'static str> {
        let members = self.options.iter().flat_map(OptionSpec::bare_words);
        self.options.iter().map(|option| option.name).chain(members)
    }
}

impl OptionSpec {
    /// The members of a set, which may stand bare, and the word for all of them.
    pub(super) fn bare_words(&self) -> impl Iterator<Item = &'static str> + use<> {
        let members = match self.value {
            Value::Set { members, .. } => members,
            _ => &[],
        };
        let all = (!members.is_empty()).then_some(ALL_MEMBERS);
        members.iter().map(|member| member.name).chain(all)
    }
}
