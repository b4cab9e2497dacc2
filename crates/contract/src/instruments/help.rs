//! Help about options.

use super::spec::{ALL_MEMBERS, AT_END, BY_COMMAND, OptionSpec, Rule, Spec, Value};

impl Spec {
    /// Lines for the help: the spelling of each option, and its effect with default and bounds.
    pub fn option_lines(&self) -> impl Iterator<Item = (String, String)> {
        let options = self.options.iter().map(|option| (option.spelled(), self.explained(option)));
        options.chain(self.options.iter().flat_map(OptionSpec::member_lines))
    }

    /// Explanation of the option, with its default, its bounds and required options in brackets.
    fn explained(&self, option: &OptionSpec) -> String {
        let needed = self.rules.iter().filter_map(|rule| match rule {
            Rule::Needs { option: needing, other, word, .. } if *needing == option.name => {
                Some(format!("needs {}", self.option(other)?.shortest(word)))
            }
            Rule::NeedsOneOf { option: needing, others } if *needing == option.name => {
                Some(format!("needs {}", others.join(" or ")))
            }
            _ => None,
        });
        let notes: Vec<_> = option.bounds().into_iter().chain(needed).collect();
        match notes[..] {
            [] => option.about.to_owned(),
            _ => format!("{} ({})", option.about, notes.join(", ")),
        }
    }
}

impl OptionSpec {
    /// Spelling of the option: `clock=sampled|tsc`, for instance.
    #[must_use]
    pub fn spelled(&self) -> String {
        let name = self.name;
        match self.value {
            Value::Switch { .. } | Value::Extra { words: [] } => format!("{name}[=on|off]"),
            Value::Extra { words } => format!("{name}[={}]", words.join("|")),
            Value::OneOf { words, .. } => format!("{name}={}", words.join("|")),
            Value::Size { .. } => format!("{name}=SIZE"),
            Value::Count { .. } => format!("{name}=N"),
            Value::Moments { .. } => format!("{name}={AT_END}|TIME+SIZE|{BY_COMMAND}"),
            Value::Set { .. } => format!("{name}={0}+{0}", name.trim_end_matches('s').to_uppercase()),
            Value::Names { .. } => format!("{name}=NAME+NAME"),
        }
    }

    /// Hint that lists the accepted values, for the message about a value that is not accepted.
    pub(super) fn wanted(&self) -> String {
        let spelled = self.spelled();
        match self.value {
            Value::Size { least, .. } => {
                format!("write {spelled} with at least {}, for instance 512MiB", size_text(least))
            }
            Value::Count { least, most, .. } => format!("write {spelled} with a number from {least} to {most}"),
            Value::Moments { .. } => format!("write {spelled}, for instance {}=10s+{AT_END}", self.name),
            Value::Set { .. } => {
                let members: Vec<_> = self.bare_words().collect();
                format!("write {spelled} with {} out of: {}", self.name, members.join(", "))
            }
            Value::Names { of, .. } => format!("write {spelled} with names of {of}"),
            _ => format!("write {spelled}"),
        }
    }

    /// Default of the option, and the bounds of its value.
    fn bounds(&self) -> Vec<String> {
        let default = |text: &str| format!("default {text}");
        match self.value {
            Value::Switch { default: on } => vec![default(on_off(on))],
            Value::Extra { .. } | Value::Names { .. } => Vec::new(),
            Value::OneOf { default: word, .. } => vec![default(word)],
            Value::Size { least, most, default: bytes } => {
                let least = format!("at least {}", size_text(least));
                let most = most.map(|most| format!("{} at most", size_text(most)));
                [default(&size_text(bytes)), least].into_iter().chain(most).collect()
            }
            Value::Count { most, default: number, .. } => vec![default(&number.to_string()), format!("at most {most}")],
            Value::Set { default: members, .. } => vec![default(&members.join("+"))],
            Value::Moments { default: moments } => {
                let words: Vec<_> = moments.iter().map(ToString::to_string).collect();
                vec![default(&words.join("+"))]
            }
        }
    }

    /// The shortest way to write the option with the value or member `word`.
    pub(super) fn shortest(&self, word: &'static str) -> &'static str {
        match self.value {
            Value::Extra { words } if words.first() == Some(&word) => self.name,
            _ => word,
        }
    }

    fn member_lines(&self) -> impl Iterator<Item = (String, String)> + use<> {
        let members = match self.value {
            Value::Set { members, .. } => members,
            _ => &[],
        };
        let all = (!members.is_empty()).then(|| (ALL_MEMBERS.to_owned(), "all of them".to_owned()));
        members.iter().map(|member| (member.name.to_owned(), member.about.to_owned())).chain(all)
    }
}

/// The word for the state of a switch.
pub(super) fn on_off(on: bool) -> &'static str {
    if on { "on" } else { "off" }
}

/// A size in the largest unit in which it is a whole number.
fn size_text(bytes: u64) -> String {
    let units = [(30, "GiB"), (20, "MiB"), (10, "KiB")];
    match units.into_iter().find(|(shift, _)| bytes >= 1 << shift && bytes.trailing_zeros() >= *shift) {
        Some((shift, unit)) => format!("{}{unit}", bytes >> shift),
        None => bytes.to_string(),
    }
}
