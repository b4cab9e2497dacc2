//! A checked request for an instrument: every option has a value.

use std::fmt;

use super::help::on_off;
use super::spec::{ALL_MEMBERS, AT_END, BY_COMMAND, Moment, OptionSpec, Rule, Spec, Value};

/// An instrument with all its options: the given ones, and the defaults of the others.
///
/// The text of a checked instrument is its canonical form: as an argument of `-i` it has the same
/// meaning.
#[derive(Debug, Clone)]
pub struct CheckedInstrument {
    spec: &'static Spec,
    /// In the order of the specification's options.
    settings: Vec<Setting>,
}

impl PartialEq for CheckedInstrument {
    fn eq(&self, other: &Self) -> bool {
        self.spec.name == other.spec.name && self.settings == other.settings
    }
}

impl Eq for CheckedInstrument {}

/// Setting of an option.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Setting {
    /// Value of a switch, or of an extra without words.
    Switch(bool),
    /// One of the option's words.
    Word(&'static str),
    /// A size in bytes or a count.
    Number(u64),
    /// Members of a set, in the set's order, without duplicates.
    Members(Vec<&'static str>),
    /// Moments in ascending order, without duplicates; empty if the instrument waits for a command.
    Moments(Vec<Moment>),
    /// Names in their given order, without duplicates.
    Names(Vec<String>),
}

impl Setting {
    /// Default setting of an option.
    fn default_of(option: &OptionSpec) -> Self {
        match option.value {
            Value::Switch { default } => Self::Switch(default),
            Value::Extra { .. } => Self::Switch(false),
            Value::OneOf { default, .. } => Self::Word(default),
            Value::Size { default, .. } => Self::Number(default),
            Value::Count { default, .. } => Self::Number(u64::from(default)),
            Value::Set { default, .. } => Self::Members(default.to_vec()),
            Value::Moments { default } => Self::Moments(default.to_vec()),
            Value::Names { .. } => Self::Names(Vec::new()),
        }
    }

    /// Whether this setting is `word`, or has it among its members.
    fn has(&self, word: &str) -> bool {
        match self {
            Self::Switch(on) => on_off(*on) == word,
            Self::Word(own) => *own == word,
            Self::Moments(moments) => word == AT_END && moments.contains(&Moment::End),
            Self::Number(_) | Self::Names(_) => false,
            Self::Members(members) => members.contains(&word),
        }
    }
}

impl CheckedInstrument {
    /// Creates the instrument with the default of each option.
    pub(super) fn with_defaults(spec: &'static Spec) -> Self {
        Self { spec, settings: spec.options.iter().map(Setting::default_of).collect() }
    }

    pub(super) fn set(&mut self, option: &OptionSpec, setting: Setting) {
        let at = self.position_of_option(option.name);
        self.settings[at] = setting;
    }

    /// The instrument's specification.
    #[must_use]
    pub fn spec(&self) -> &'static Spec {
        self.spec
    }

    /// Adds names to an option, except names that it already has.
    pub(super) fn add_names(&mut self, option: &OptionSpec, names: Vec<String>) {
        let at = self.position_of_option(option.name);
        if let Setting::Names(all) = &mut self.settings[at] {
            for name in names {
                if !all.contains(&name) {
                    all.push(name);
                }
            }
        }
    }

    /// Whether a switch or an extra is on.
    ///
    /// # Panics
    /// When the specification has no such option.
    #[must_use]
    pub fn is_on(&self, option: &str) -> bool {
        matches!(self.setting(option), Setting::Switch(true) | Setting::Word(_))
    }

    /// The word of an option, if the option takes words and is not off.
    ///
    /// # Panics
    /// When the specification has no such option.
    #[must_use]
    pub fn word(&self, option: &str) -> Option<&'static str> {
        match self.setting(option) {
            Setting::Word(word) => Some(word),
            _ => None,
        }
    }

    /// A size in bytes or a count; 0 for an option of another kind.
    ///
    /// # Panics
    /// When the specification has no such option.
    #[must_use]
    pub fn number(&self, option: &str) -> u64 {
        match self.setting(option) {
            Setting::Number(number) => *number,
            _ => 0,
        }
    }

    /// The members of a set, in the order of the specification; empty for an option of another
    /// kind.
    ///
    /// # Panics
    /// When the specification has no such option.
    #[must_use]
    pub fn members(&self, option: &str) -> &[&'static str] {
        match self.setting(option) {
            Setting::Members(members) => members,
            _ => &[],
        }
    }

    /// The moments of an option, times in ascending order and the end last; empty for an option of
    /// another kind.
    ///
    /// # Panics
    /// When the specification has no such option.
    #[must_use]
    pub fn moments(&self, option: &str) -> &[Moment] {
        match self.setting(option) {
            Setting::Moments(moments) => moments,
            _ => &[],
        }
    }

    /// The names of an option, in their given order; empty for an option of another kind.
    ///
    /// # Panics
    /// When the specification has no such option.
    #[must_use]
    pub fn names(&self, option: &str) -> &[String] {
        match self.setting(option) {
            Setting::Names(names) => names,
            _ => &[],
        }
    }

    /// Whether the option's value is `word`, or its members include `word`.
    pub(super) fn has(&self, option: &str, word: &str) -> bool {
        self.setting(option).has(word)
    }

    fn setting(&self, option: &str) -> &Setting {
        &self.settings[self.position_of_option(option)]
    }

    fn position_of_option(&self, option: &str) -> usize {
        let place = self.spec.options.iter().position(|known| known.name == option);
        place.unwrap_or_else(|| panic!("the specification of '{}' has no option '{option}'", self.spec.name))
    }

    /// Whether the option is part of the canonical form.
    fn is_meant(&self, option: &OptionSpec) -> bool {
        let is_said = match option.value {
            Value::Extra { .. } => self.is_on(option.name),
            Value::Names { .. } => !self.names(option.name).is_empty(),
            _ => true,
        };
        if !is_said {
            return false;
        }
        self.spec.rules.iter().all(|rule| match rule {
            Rule::Either(options) if options.contains(&option.name) => {
                let is_chosen = |other: &&str| self.is_extra(other) && self.is_on(other);
                options.iter().find(|other| is_chosen(other)).is_none_or(|chosen| *chosen == option.name)
            }
            Rule::Needs { option: needing, value: None, other, word } if *needing == option.name => {
                self.has(other, word)
            }
            Rule::NeedsOneOf { option: needing, others } if *needing == option.name => {
                others.iter().any(|other| self.is_on(other))
            }
            Rule::Either(_) | Rule::Needs { .. } | Rule::NeedsOneOf { .. } => true,
        })
    }

    fn is_extra(&self, option: &str) -> bool {
        self.spec.option(option).is_some_and(|option| matches!(option.value, Value::Extra { .. }))
    }
}

impl fmt::Display for CheckedInstrument {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.spec.name)?;
        let meant = self.spec.options.iter().zip(&self.settings).filter(|(option, _)| self.is_meant(option));
        for (at, (option, setting)) in meant.enumerate() {
            f.write_str(if at == 0 { ":" } else { "," })?;
            write_setting(f, option, setting)?;
        }
        Ok(())
    }
}

fn write_setting(f: &mut fmt::Formatter<'_>, option: &OptionSpec, setting: &Setting) -> fmt::Result {
    let name = option.name;
    match (setting, &option.value) {
        (Setting::Switch(_), Value::Extra { .. }) => f.write_str(name),
        (Setting::Switch(on), _) => write!(f, "{name}={}", on_off(*on)),
        (Setting::Word(word), _) => write!(f, "{name}={word}"),
        (Setting::Number(number), _) => write!(f, "{name}={number}"),
        (Setting::Members(all), Value::Set { members, .. }) if all.len() == members.len() => {
            write!(f, "{name}={ALL_MEMBERS}")
        }
        (Setting::Moments(moments), _) if moments.is_empty() => write!(f, "{name}={BY_COMMAND}"),
        (Setting::Moments(moments), _) => {
            let words: Vec<_> = moments.iter().map(ToString::to_string).collect();
            write!(f, "{name}={}", words.join("+"))
        }
        (Setting::Members(some), _) => write!(f, "{name}={}", some.join("+")),
        (Setting::Names(names), _) => write!(f, "{name}={}", names.join("+")),
    }
}
