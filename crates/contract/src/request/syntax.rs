//! Parses and formats requests.

use std::fmt;

use super::error::RequestError;
use super::glob::Glob;
use super::pattern::{Filter, Pattern};
use super::programs::Programs;
use super::source_line::SourceLine;
use super::time::{parse_duration, parse_last};
use super::trigger::Trigger;
use crate::labels::{Label, LabelError, check_together};

/// A request: everything the agent gets from the launcher.
#[derive(Debug, Clone, PartialEq)]
pub struct Request {
    /// The recording directory (`NAME.clrs.d`); `None` for the agent's own default.
    pub out: Option<String>,
    /// Instruments to run; at least one.
    pub instruments: Vec<InstrumentRequest>,
    /// Functions to include and to exclude.
    pub filter: Filter,
    /// Methods whose calls `probes` records.
    pub probes: Vec<Pattern>,
    /// Lines of source files that `probes` counts.
    pub probe_lines: Vec<SourceLine>,
    /// Parameters and fields whose values are never recorded, as names with `*` and `?`.
    pub redact: Vec<String>,
    /// Leaves out all framework code.
    pub just_my_code: bool,
    /// Asks the runtime for its exact debug information about inlined methods.
    pub inlined_exact: bool,
    /// Samples per second of the helper thread.
    pub rate_hz: u32,
    /// Milliseconds from the start of the program until the recording begins; `None` to begin at
    /// once.
    pub delay_ms: Option<u64>,
    /// Milliseconds after which the recording ends, while the program continues; `None` for no such
    /// limit.
    pub duration_ms: Option<u64>,
    /// Length in milliseconds of the last part of the run whose events are kept; `None` to keep all
    /// events.
    pub last_ms: Option<u64>,
    /// Length in milliseconds of the periods that the launcher writes, each as a separate
    /// recording; `None` for no periods.
    pub every_ms: Option<u64>,
    /// Whether the recording is read while it grows, and not kept. Such a recording may have totals
    /// in addition to the latest events.
    pub is_live: bool,
    /// Conditions in the program that make the agent write out the kept events.
    pub triggers: Vec<Trigger>,
    /// Maximum size in bytes of the recording with all its processes; `None` for [`MAX_SIZE`].
    pub max_size: Option<u64>,
    /// Also records .NET programs that the program starts.
    pub children: bool,
    /// The programs to record; the agent does nothing in all others.
    pub programs: Programs,
    /// Records only while the directory exists: a launcher created it, and the recording ends once
    /// it is gone.
    pub join: bool,
    /// Accepts an agent file and folders that other users can write.
    pub trust_writable: bool,
    /// Leaves program arguments out of the recording.
    pub no_command_line: bool,
    /// Labels of the recording; keys are unique.
    pub labels: Vec<Label>,
    /// Level of the agent's developer log, for a process whose environment can't be set; `None` for
    /// the level in the environment.
    pub log: Option<String>,
}

impl Default for Request {
    fn default() -> Self {
        Self {
            out: None,
            instruments: Vec::new(),
            filter: Filter::default(),
            probes: Vec::new(),
            probe_lines: Vec::new(),
            redact: Vec::new(),
            just_my_code: false,
            inlined_exact: false,
            rate_hz: 1000,
            delay_ms: None,
            duration_ms: None,
            last_ms: None,
            every_ms: None,
            is_live: false,
            triggers: Vec::new(),
            max_size: None,
            children: true,
            programs: Programs::default(),
            join: false,
            trust_writable: false,
            no_command_line: false,
            labels: Vec::new(),
            log: None,
        }
    }
}

/// An instrument with its options, before the instrument has checked them.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct InstrumentRequest {
    /// Name of the instrument, for instance `calls`.
    pub name: String,
    /// Options in the order given; a bare option has no value.
    pub options: Vec<(String, Option<String>)>,
}

impl InstrumentRequest {
    /// The instrument with this name, without options.
    #[must_use]
    pub fn named(name: &str) -> Self {
        Self { name: name.to_owned(), options: Vec::new() }
    }

    /// Reads `NAME[:OPTION[=VALUE],...]`. Blanks around options are ignored.
    ///
    /// # Errors
    /// When the name or an option is empty or contains characters other than letters, digits, `-`
    /// and `_`.
    pub fn parse(text: &str) -> Result<Self, RequestError> {
        let (name, options) = match text.split_once(':') {
            Some((name, options)) => (name, options),
            None => (text, ""),
        };
        if !is_word(name) {
            return Err(RequestError(format!("'{text}' does not start with the name of an instrument")));
        }
        let mut parsed = Self { name: name.to_owned(), options: Vec::new() };
        for option in options.split(',').map(str::trim).filter(|option| !option.is_empty()) {
            let (key, value) = match option.split_once('=') {
                Some((key, value)) => (key, Some(decode(value)?)),
                None => (option, None),
            };
            if !is_word(key) {
                return Err(RequestError(format!("'{option}' is not an option of the form KEY or KEY=VALUE")));
            }
            parsed.options.push((key.to_owned(), value));
        }
        Ok(parsed)
    }
}

impl fmt::Display for InstrumentRequest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.name)?;
        for (index, (key, value)) in self.options.iter().enumerate() {
            f.write_str(if index == 0 { ":" } else { "," })?;
            f.write_str(key)?;
            if let Some(value) = value {
                write!(f, "={}", encode(value))?;
            }
        }
        Ok(())
    }
}

impl Request {
    /// Whether the request names methods or lines for `probes`.
    #[must_use]
    pub fn has_probes(&self) -> bool {
        !self.probes.is_empty() || !self.probe_lines.is_empty()
    }

    /// How long the agent keeps events, in milliseconds; `None` for ever. For recordings in
    /// periods, longer than two periods, so that the launcher may be late in writing a period
    /// during the next one.
    #[must_use]
    pub fn kept_ms(&self) -> Option<u64> {
        /// Delay of the launcher that a short period allows for.
        const LATE_MS: u64 = 10_000;
        self.last_ms.or(self.every_ms.map(|every| every * 2 + LATE_MS))
    }

    /// Reads the value of [`AGENT_VARIABLE`](super::AGENT_VARIABLE). Empty parts are ignored.
    ///
    /// # Errors
    /// A sentence about the first part that can't be parsed.
    pub fn parse(text: &str) -> Result<Self, RequestError> {
        let mut request = Self::default();
        for part in text.split(';').map(str::trim).filter(|p| !p.is_empty()) {
            request.parse_part(part)?;
        }
        Ok(request)
    }

    /// Parses a text that a later version may have written. Parts that this version does not
    /// understand are ignored.
    #[must_use]
    pub fn understood(text: &str) -> Self {
        let mut request = Self::default();
        for part in text.split(';').map(str::trim).filter(|p| !p.is_empty()) {
            // A part that fails here comes from a later version.
            let _ = request.parse_part(part);
        }
        request
    }

    /// Returns the recording directory that a text names, even if the text is otherwise not a valid
    /// request.
    #[must_use]
    pub fn recording_directory(text: &str) -> Option<String> {
        let value = text.split(';').find_map(|part| part.trim().strip_prefix("out="))?;
        decode(value).ok()
    }

    fn parse_part(&mut self, part: &str) -> Result<(), RequestError> {
        match part {
            "just-my-code" => self.just_my_code = true,
            "live" => self.is_live = true,
            "join" => self.join = true,
            "trust-writable" => self.trust_writable = true,
            "no-command-line" => self.no_command_line = true,
            _ => match part.split_once('=') {
                Some((key, value)) if is_word(key) => self.take_key(key, &decode(value)?)?,
                _ => self.instruments.push(InstrumentRequest::parse(part)?),
            },
        }
        Ok(())
    }

    fn take_key(&mut self, key: &str, value: &str) -> Result<(), RequestError> {
        match key {
            "out" => self.out = Some(value.to_owned()),
            "include" => self.filter.include.push(Pattern::parse(value)?),
            "exclude" => self.filter.exclude.push(Pattern::parse(value)?),
            "probe" => self.probes.push(Pattern::parse(value)?),
            "probe-at" => self.probe_lines.push(value.parse()?),
            "redact" => self.redact.push(value.to_owned()),
            "inlined" if value == "exact" => self.inlined_exact = true,
            "inlined" => return Err(RequestError(format!("inlined={value}: it takes 'exact'"))),
            "rate" => self.rate_hz = parse_rate(value)?,
            "delay" => self.delay_ms = Some(parse_duration(value)?),
            "duration" => self.duration_ms = Some(parse_duration(value)?),
            "last" => self.last_ms = Some(parse_last(value)?),
            "every" => self.every_ms = Some(parse_last(value)?),
            "on" => self.triggers.push(value.parse()?),
            "max-size" => self.max_size = Some(parse_max_size(value)?),
            "children" => self.children = parse_switch(key, value)?,
            "only" => self.programs.only.push(parse_program(value)?),
            "only-from" => self.programs.only_from.push(value.to_owned()),
            "label" => {
                self.take_label(value).map_err(|LabelError(why)| RequestError(format!("label={value}: {why}")))?
            }
            "log" => self.log = Some(value.to_owned()),
            _ => return Err(RequestError(format!("'{key}' is neither a setting nor an instrument"))),
        }
        Ok(())
    }

    fn take_label(&mut self, text: &str) -> Result<(), LabelError> {
        self.labels.push(Label::parse(text)?);
        check_together(&self.labels).inspect_err(|_| {
            self.labels.pop();
        })
    }
}

impl fmt::Display for Request {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let defaults = Self::default();
        let mut parts: Vec<String> = self.instruments.iter().map(ToString::to_string).collect();
        parts.extend(self.out.iter().map(|out| format!("out={}", encode(out))));
        parts.extend(self.filter.include.iter().map(|p| format!("include={}", encode(p.as_str()))));
        parts.extend(self.filter.exclude.iter().map(|p| format!("exclude={}", encode(p.as_str()))));
        parts.extend(self.probes.iter().map(|p| format!("probe={}", encode(p.as_str()))));
        parts.extend(self.probe_lines.iter().map(|line| format!("probe-at={}", encode(&line.to_string()))));
        parts.extend(self.redact.iter().map(|name| format!("redact={}", encode(name))));
        if self.just_my_code {
            parts.push("just-my-code".to_owned());
        }
        if self.inlined_exact {
            parts.push("inlined=exact".to_owned());
        }
        if self.rate_hz != defaults.rate_hz {
            parts.push(format!("rate={}", self.rate_hz));
        }
        parts.extend(self.delay_ms.map(|ms| format!("delay={ms}ms")));
        parts.extend(self.duration_ms.map(|ms| format!("duration={ms}ms")));
        parts.extend(self.last_ms.map(|ms| format!("last={ms}ms")));
        parts.extend(self.every_ms.map(|ms| format!("every={ms}ms")));
        parts.extend(self.triggers.iter().map(|trigger| format!("on={}", encode(&trigger.to_string()))));
        parts.extend(self.max_size.map(|bytes| format!("max-size={bytes}")));
        if !self.children {
            parts.push("children=off".to_owned());
        }
        parts.extend(self.programs.only.iter().map(|glob| format!("only={}", encode(glob.as_str()))));
        parts.extend(self.programs.only_from.iter().map(|file| format!("only-from={}", encode(file))));
        parts.extend(self.labels.iter().map(|label| format!("label={}", encode(&label.to_string()))));
        parts.extend(self.log.iter().map(|level| format!("log={}", encode(level))));
        if self.is_live {
            parts.push("live".to_owned());
        }
        if self.join {
            parts.push("join".to_owned());
        }
        if self.trust_writable {
            parts.push("trust-writable".to_owned());
        }
        if self.no_command_line {
            parts.push("no-command-line".to_owned());
        }
        f.write_str(&parts.join(";"))
    }
}

fn is_word(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'-' || b == b'_')
}

fn parse_switch(key: &str, value: &str) -> Result<bool, RequestError> {
    match value {
        "on" => Ok(true),
        "off" => Ok(false),
        _ => Err(RequestError(format!("{key}={value}: it takes 'on' or 'off'"))),
    }
}

/// A pattern of programs. An empty pattern would match no program, which is never intended.
fn parse_program(value: &str) -> Result<Glob, RequestError> {
    match value.trim() {
        "" => Err(RequestError("only=: the pattern is empty".to_owned())),
        pattern => Ok(Glob::new(pattern)),
    }
}

fn parse_rate(value: &str) -> Result<u32, RequestError> {
    match value.parse() {
        Ok(rate @ 1..=10_000) => Ok(rate),
        _ => Err(RequestError(format!("rate={value}: it takes a whole number from 1 to 10000"))),
    }
}

/// Reads a size such as `64KiB`, `512MiB` or `1GiB`; a bare number means bytes.
///
/// # Errors
/// A sentence, when the text is not a size.
pub fn parse_size(value: &str) -> Result<u64, RequestError> {
    let digits = value.trim_end_matches(|c: char| c.is_ascii_alphabetic());
    let shift = match value[digits.len()..].to_ascii_lowercase().as_str() {
        "" | "b" => Some(0),
        "k" | "kib" => Some(10),
        "m" | "mib" => Some(20),
        "g" | "gib" => Some(30),
        _ => None,
    };
    shift
        .and_then(|shift| digits.parse::<u64>().ok()?.checked_mul(1 << shift))
        .ok_or_else(|| RequestError(format!("'{value}' is not a size such as 64KiB, 512MiB or 1GiB")))
}

/// Maximum size of a recording in bytes, unless the request sets one.
pub const MAX_SIZE: u64 = 10 << 30;
/// Size that a recording needs before it holds any data.
const LEAST_MAX_SIZE: u64 = 64 << 20;

/// Reads the maximum size of a recording: a [size](parse_size) of at least 64 MiB.
///
/// # Errors
/// A sentence, when the text is not such a size.
pub fn parse_max_size(value: &str) -> Result<u64, RequestError> {
    match parse_size(value)? {
        bytes @ LEAST_MAX_SIZE.. => Ok(bytes),
        _ => Err(RequestError(format!("'{value}' is less than 64MiB, which even an empty recording takes"))),
    }
}

fn encode(value: &str) -> String {
    // Escape blanks at both ends: the parser trims each part.
    let inner = value.trim_start().len()..value.trim_end().len();
    let inner = value.len() - inner.start..inner.end;
    let mut out = String::with_capacity(value.len());
    for (at, c) in value.char_indices() {
        if matches!(c, ';' | ',' | '%') || c.is_ascii_control() || !inner.contains(&at) {
            let mut bytes = [0; 4];
            c.encode_utf8(&mut bytes).bytes().for_each(|byte| out.push_str(&format!("%{byte:02X}")));
        } else {
            out.push(c);
        }
    }
    out
}

fn decode(value: &str) -> Result<String, RequestError> {
    let mut out = Vec::with_capacity(value.len());
    let mut bytes = value.bytes();
    while let Some(byte) = bytes.next() {
        if byte != b'%' {
            out.push(byte);
            continue;
        }
        let digit = |b: Option<u8>| b.and_then(|b| char::from(b).to_digit(16));
        match (digit(bytes.next()), digit(bytes.next())) {
            (Some(high), Some(low)) => out.push((high * 16 + low) as u8),
            _ => return Err(RequestError(format!("'{value}': '%' is not followed by two hexadecimal digits"))),
        }
    }
    String::from_utf8(out).map_err(|_| RequestError(format!("'{value}' is not UTF-8 once decoded")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_whole_request_comes_back_as_written() {
        let text = "calls:clock=tsc,noinline;out=/tmp/a%3Bb.clrs.d;include=[A]*;exclude=*::x;probe=Shop.*;probe-at=src/a%3Bb.cs:42;just-my-code;inlined=exact;rate=200;delay=2500ms;duration=1500ms;last=60000ms;every=2000ms;on=request>2000ms;on=exception:Shop.*;max-size=104857600;children=off;only=Shop*;only-from=/etc/programs;label=team=a%3Bb%2C c%25;log=debug;join";
        let request = Request::parse(text).expect("a request");
        assert_eq!(request.out.as_deref(), Some("/tmp/a;b.clrs.d"));
        assert_eq!(request.instruments[0].options[1], ("noinline".to_owned(), None));
        assert_eq!(request.programs.only, [Glob::new("Shop*")]);
        assert_eq!(request.programs.only_from, ["/etc/programs"]);
        assert_eq!(request.to_string(), text);
        assert_eq!(Request::parse(&request.to_string()), Ok(request));
    }

    #[test]
    fn bad_requests_say_which_part() {
        for (bad, part) in [
            ("speed=9", "speed"),
            ("calls:clo ck=1", "clo ck"),
            ("rate=0;calls", "rate=0"),
            ("inlined=guessed", "inlined=guessed"),
            ("duration=soon", "soon"),
            ("delay=later", "later"),
            ("last=10ms", "10ms"),
            ("every=10ms", "10ms"),
            ("on=never", "never"),
            ("max-size=1MiB", "1MiB"),
            ("max-size=much", "much"),
            ("children=maybe", "maybe"),
            ("only=", "only"),
            ("label=team", "label=team"),
            ("label=a=1;label=a=2", "key a is given twice"),
            ("out=%zz", "%zz"),
            ("include=[A", "[A"),
            ("probe-at=Cart.cs", "Cart.cs"),
        ] {
            let error = Request::parse(bad).expect_err("not a request");
            assert!(error.0.contains(part), "{error}");
        }
        assert_eq!(Request::recording_directory("speed=9;out=/tmp/a%3Bb;rate=0").as_deref(), Some("/tmp/a;b"));
    }

    #[test]
    fn blanks_around_a_value_come_back() {
        for out in [" ", " a b ", "\u{2003}x\u{2003}", "\n", ""] {
            let request = Request { out: Some(out.to_owned()), ..Request::default() };
            assert_eq!(Request::parse(&request.to_string()), Ok(request), "{out:?}");
        }
    }

    #[test]
    fn sizes_and_times() {
        assert_eq!(parse_size("1GiB"), Ok(1 << 30));
        assert_eq!(parse_size("64k"), Ok(64 << 10));
        assert!(parse_size("99999999999GiB").is_err());
        assert_eq!(parse_duration("10"), Ok(10_000));
        assert_eq!(parse_duration("2m"), Ok(120_000));
        assert!(parse_duration("0s").is_err());
    }
}
