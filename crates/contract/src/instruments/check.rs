//! Checks a user's request. The launcher makes this check before a program starts, and the agent
//! makes the same check inside the program.

use std::fmt;

use super::checked::{CheckedInstrument, Setting};
use super::spec::{ALL_MEMBERS, AT_END, BY_COMMAND, Moment, OptionSpec, Rule, Spec, Value, With};
use super::{ALL, find, probes};
use crate::request::{InstrumentRequest, Request, Trigger, parse_duration, parse_size};
use crate::words::nearest;

/// Refusal of a request, with reason and hint.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Refusal {
    /// Reason of the refusal, in one line.
    pub why: String,
    /// Hint about what to write instead, in one line.
    pub hint: String,
}

impl fmt::Display for Refusal {
    /// Both on one line.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}; {}", self.why, self.hint)
    }
}

impl std::error::Error for Refusal {}

/// Checks the instruments of a request one by one and together.
///
/// # Errors
/// A refusal for the first error in the request.
pub fn check_all(request: &Request) -> Result<Vec<CheckedInstrument>, Refusal> {
    let checked: Vec<_> = request.instruments.iter().map(check).collect::<Result<_, _>>()?;
    for (at, one) in checked.iter().enumerate() {
        if checked[..at].iter().any(|other| other.spec().name == one.spec().name) {
            return Err(Refusal {
                why: "an instrument is named twice".to_owned(),
                hint: "name it once, with all its options".to_owned(),
            });
        }
    }
    if request.has_probes() && checked.iter().all(|one| one.spec().name != probes::SPEC.name) {
        return Err(Refusal {
            why: "--probe and --probe-at need the instrument 'probes', which is not requested".to_owned(),
            hint: "add it: -i probes".to_owned(),
        });
    }
    if request.inlined_exact && !checked.iter().any(|one| one.spec().has_code) {
        let names = ALL.iter().filter(|spec| spec.has_code).map(|spec| spec.name);
        return Err(Refusal {
            why: "inlined=exact needs an instrument that records stacks, but none is requested".to_owned(),
            hint: format!("leave it out, or add one of these: {}", list(names)),
        });
    }
    check_last(request, &checked)?;
    check_every(request, &checked)?;
    let has = |with| match with {
        With::NoInclude => request.filter.include.is_empty(),
        With::NoProbe => !request.has_probes(),
        With::Period => request.last_ms.is_some() || request.every_ms.is_some(),
        With::Instrument(name) => checked.iter().any(|other| other.spec().name == name),
        With::Member(name, option, word) => {
            checked.iter().any(|other| other.spec().name == name && other.has(option, word))
        }
    };
    let conflicts = checked.iter().flat_map(|one| one.spec().conflicts.iter().map(move |conflict| (one, conflict)));
    let mut met = conflicts
        .filter(|(one, conflict)| conflict.option.is_none_or(|option| one.is_on(option)) && has(conflict.with));
    match met.next() {
        Some((_, conflict)) => Err(Refusal { why: conflict.why.to_owned(), hint: conflict.hint.to_owned() }),
        None => Ok(checked),
    }
}

/// Checks the request for the last events (`--last` and triggers): each instrument can drop older
/// events, and the request has the instrument that sees each trigger.
fn check_last(request: &Request, checked: &[CheckedInstrument]) -> Result<(), Refusal> {
    let refuse = |why: String, hint: String| Err(Refusal { why, hint });
    if let (None, Some(trigger)) = (request.last_ms, request.triggers.first()) {
        return refuse(
            format!("'{trigger}' writes out the last events, but without --last all events are kept"),
            "say how much to keep: --last 60s".to_owned(),
        );
    }
    let missing = |trigger: &&Trigger| checked.iter().all(|one| one.spec().name != trigger.instrument());
    if let Some(trigger) = request.triggers.iter().find(missing) {
        let instrument = trigger.instrument();
        return refuse(
            format!("'{trigger}' needs the instrument '{instrument}', which is not requested"),
            format!("add it: -i {instrument}"),
        );
    }
    // Readers of a live recording use differences of sums, so all instruments are possible.
    let keeps = |one: &&CheckedInstrument| one.spec().keeps_last || request.is_live;
    let sums = request.last_ms.and_then(|_| checked.iter().find(|one| !keeps(one)));
    if let Some(one) = sums {
        let names = ALL.iter().filter(|spec| spec.keeps_last).map(|spec| spec.name);
        return refuse(
            format!("'{}' covers the whole recording, so it can't keep only the latest part (--last)", one.spec().name),
            format!("instruments that work with --last: {}", list(names)),
        );
    }
    Ok(())
}

/// Checks the request for periods (`--every`): each instrument can be recorded in periods.
fn check_every(request: &Request, checked: &[CheckedInstrument]) -> Result<(), Refusal> {
    let refuse = |why: String, hint: String| Err(Refusal { why, hint });
    if request.every_ms.is_none() {
        return Ok(());
    }
    if request.last_ms.is_some() {
        return refuse(
            "each period is recorded whole, so --last does not apply".to_owned(),
            "leave out --last, or --every".to_owned(),
        );
    }
    if let Some(one) = checked.iter().find(|one| !one.spec().rotates) {
        let names = ALL.iter().filter(|spec| spec.rotates).map(|spec| spec.name);
        return refuse(
            format!("'{}' covers the whole recording, so it can't be recorded in periods", one.spec().name),
            format!("instruments that can be recorded in periods: {}", list(names)),
        );
    }
    Ok(())
}

/// Checks the options of one instrument and fills in the defaults.
///
/// # Errors
/// A refusal if there is no such instrument or option, if an option does not accept its value, or
/// if two options can't be combined.
pub fn check(request: &InstrumentRequest) -> Result<CheckedInstrument, Refusal> {
    let spec = find(&request.name).ok_or_else(|| {
        let names = || ALL.iter().map(|spec| spec.name);
        let known = format!("known instruments: {}", list(names()));
        Refusal {
            why: format!("there is no instrument '{}'", request.name),
            hint: with_nearest(&request.name, names(), known),
        }
    })?;
    let mut checked = CheckedInstrument::with_defaults(spec);
    let mut given = Vec::new();
    let mut sets: Vec<(&OptionSpec, Vec<&str>)> = Vec::new();
    for (name, value) in &request.options {
        let (option, value) = spec.understand(name, value.as_deref())?;
        match option.value {
            Value::Set { members, .. } => {
                let named = option.read_members(members, value).ok_or_else(|| spec.refuse_value(option, value))?;
                match sets.iter_mut().find(|(known, _)| known.name == option.name) {
                    Some((_, all)) => all.extend(named),
                    None => sets.push((option, named)),
                }
            }
            Value::Names { is_name, .. } => {
                let names = value
                    .and_then(|value| read_names(value, is_name))
                    .ok_or_else(|| spec.refuse_value(option, value))?;
                checked.add_names(option, names);
            }
            _ => {
                let setting = option.read(value).ok_or_else(|| spec.refuse_value(option, value))?;
                if setting != Setting::Switch(false) {
                    given.push(option.name);
                }
                checked.set(option, setting);
            }
        }
    }
    for (option, named) in sets {
        checked.set(option, option.members_in_order(&named));
    }
    let broken = |rule: &&Rule| rule.is_broken(&checked, &given);
    match spec.rules.iter().find(broken) {
        Some(rule) => Err(rule.refuse(spec)),
        None => Ok(checked),
    }
}

impl Spec {
    /// The option for a written word, and its value. A member of a set may be written without the
    /// option's name.
    fn understand<'v>(
        &self,
        name: &'v str,
        value: Option<&'v str>,
    ) -> Result<(&'static OptionSpec, Option<&'v str>), Refusal> {
        if let Some(option) = self.option(name) {
            return Ok((option, value));
        }
        match (self.options.iter().find(|option| option.bare_words().any(|word| word == name)), value) {
            (Some(option), None | Some("on")) => Ok((option, Some(name))),
            (Some(_), Some(value)) => Err(Refusal {
                why: format!("option '{name}' of '{}' does not take '{value}'", self.name),
                hint: format!("write {name}"),
            }),
            (None, _) => Err(Refusal {
                why: format!("instrument '{}' has no option '{name}'", self.name),
                hint: with_nearest(name, self.words(), format!("its options: {}", list(self.words()))),
            }),
        }
    }

    fn refuse_value(&self, option: &OptionSpec, value: Option<&str>) -> Refusal {
        let why = match value {
            Some(value) => format!("option '{}' of '{}' does not take '{value}'", option.name, self.name),
            None => format!("option '{}' of '{}' needs a value", option.name, self.name),
        };
        Refusal { why, hint: with_nearest(value.unwrap_or_default(), option.value_words(), option.wanted()) }
    }
}

impl OptionSpec {
    /// The words that the option accepts as its value.
    fn value_words(&self) -> impl Iterator<Item = &'static str> {
        let words: Vec<&'static str> = match self.value {
            Value::Switch { .. } => vec!["on", "off"],
            Value::Extra { words } => words.iter().copied().chain(["on", "off"]).collect(),
            Value::OneOf { words, .. } => words.to_vec(),
            Value::Set { .. } => self.bare_words().collect(),
            Value::Moments { .. } => vec![AT_END, BY_COMMAND],
            Value::Size { .. } | Value::Count { .. } | Value::Names { .. } => Vec::new(),
        };
        words.into_iter()
    }

    /// Setting for a value; `None` if the option does not accept the value.
    fn read(&self, value: Option<&str>) -> Option<Setting> {
        let one_of =
            |words: &'static [&'static str]| words.iter().copied().find(|word| Some(*word) == value).map(Setting::Word);
        match (&self.value, value) {
            (Value::Switch { .. }, None | Some("on")) => Some(Setting::Switch(true)),
            (Value::Switch { .. } | Value::Extra { .. }, Some("off")) => Some(Setting::Switch(false)),
            (Value::Extra { words }, None | Some("on")) => {
                Some(words.first().map_or(Setting::Switch(true), |first| Setting::Word(first)))
            }
            (Value::Extra { words } | Value::OneOf { words, .. }, _) => one_of(words),
            (Value::Size { least, most, .. }, Some(value)) => {
                let bytes = parse_size(value).ok().filter(|bytes| bytes >= least)?;
                Some(Setting::Number(most.map_or(bytes, |most| bytes.min(most))))
            }
            (Value::Count { least, most, .. }, Some(value)) => {
                let number = value.parse::<u32>().ok().filter(|number| (least..=most).contains(&number))?;
                Some(Setting::Number(u64::from(number)))
            }
            (Value::Moments { .. }, Some(value)) => read_moments(value).map(Setting::Moments),
            _ => None,
        }
    }

    /// The members that the value names; `None` if it names an unknown member.
    fn read_members(&self, members: &'static [super::spec::Member], value: Option<&str>) -> Option<Vec<&'static str>> {
        let mut named = Vec::new();
        for word in value?.split('+') {
            match word {
                ALL_MEMBERS => named.extend(members.iter().map(|member| member.name)),
                _ => named.push(members.iter().find(|member| member.name == word)?.name),
            }
        }
        Some(named)
    }

    /// Members of the set that are among `named`.
    fn members_in_order(&self, named: &[&str]) -> Setting {
        let all = self.bare_words().filter(|word| *word != ALL_MEMBERS);
        Setting::Members(all.filter(|member| named.contains(member)).collect())
    }
}

impl Rule {
    /// Whether the options break the rule. `given` are the options that the request contains and
    /// that are not off.
    fn is_broken(&self, checked: &CheckedInstrument, given: &[&str]) -> bool {
        match *self {
            Self::Either(options) => given.iter().filter(|name| options.contains(name)).count() > 1,
            Self::Needs { option, value, other, word } => {
                let needs = match value {
                    Some(value) => checked.has(option, value),
                    None => given.contains(&option),
                };
                needs && !checked.has(other, word)
            }
            Self::NeedsOneOf { option, others } => {
                given.contains(&option) && !others.iter().any(|other| checked.is_on(other))
            }
        }
    }

    fn refuse(&self, spec: &Spec) -> Refusal {
        let name = spec.name;
        match *self {
            Self::Either(options) => {
                let quoted: Vec<_> = options.iter().map(|option| format!("'{option}'")).collect();
                Refusal {
                    why: format!("instrument '{name}' takes either {}, and once", quoted.join(" or ")),
                    hint: "write one of them".to_owned(),
                }
            }
            Self::Needs { option, value, other, word } => {
                let needed = spec.option(other).map_or(word, |other| other.shortest(word));
                let needing = match (value, spec.option(option)) {
                    (Some(value), _) => format!("{option}={value}"),
                    (None, needing) => needing.map_or_else(|| option.to_owned(), OptionSpec::spelled),
                };
                Refusal {
                    why: format!("option '{option}' of '{name}' needs {name}:{needed}"),
                    hint: format!("write {name}:{needed},{needing}"),
                }
            }
            Self::NeedsOneOf { option, others } => {
                let all: Vec<_> = others.iter().map(|other| format!("{name}:{other}")).collect();
                let needing = spec.option(option).map_or_else(|| option.to_owned(), OptionSpec::spelled);
                Refusal {
                    why: format!("option '{option}' of '{name}' needs {}", all.join(" or ")),
                    hint: format!("write {},{needing}", all.first().map_or(name, String::as_str)),
                }
            }
        }
    }
}

/// The moments that a value names, in ascending order; `None` if the value is not valid.
fn read_moments(value: &str) -> Option<Vec<Moment>> {
    if value == BY_COMMAND {
        return Some(Vec::new());
    }
    let moment = |word| match word {
        AT_END => Some(Moment::End),
        _ => parse_duration(word).ok().map(Moment::After).or_else(|| read_resident(word)),
    };
    let mut moments: Vec<Moment> = value.split('+').map(moment).collect::<Option<_>>()?;
    moments.sort_by_key(|moment| match moment {
        Moment::After(ms) => (0, *ms),
        Moment::Resident(bytes) => (1, *bytes),
        Moment::End => (2, 0),
    });
    moments.dedup();
    Some(moments)
}

/// Reads a size with its unit. A number without a unit is refused, because it may be meant as a
/// time. Sizes below a megabyte are refused, because every process has more memory.
fn read_resident(word: &str) -> Option<Moment> {
    let has_unit = word.ends_with(|last: char| last.is_ascii_alphabetic());
    parse_size(word).ok().filter(|bytes| has_unit && *bytes >= 1 << 20).map(Moment::Resident)
}

/// The names in a value; `None` if one of them is no such name.
fn read_names(value: &str, is_name: impl Fn(&str) -> bool) -> Option<Vec<String>> {
    value.split('+').map(|name| Some(name).filter(|name| is_name(name)).map(str::to_owned)).collect()
}

/// Whether a word can be the name of a type; the namespace may be missing.
#[must_use]
pub fn is_type_name(name: &str) -> bool {
    let is_begin = |letter: char| letter == '_' || letter.is_alphabetic();
    let is_word =
        |word: &str| word.starts_with(is_begin) && word.chars().all(|letter| is_begin(letter) || letter.is_numeric());
    name.split('.').all(is_word)
}

/// The hint, preceded by the nearest known word if there is a similar one.
fn with_nearest(word: &str, known: impl Iterator<Item = &'static str>, hint: String) -> String {
    match nearest(word, known) {
        Some(near) => format!("did you mean '{near}'? {hint}"),
        None => hint,
    }
}

fn list(names: impl Iterator<Item = &'static str>) -> String {
    names.collect::<Vec<_>>().join(", ")
}
