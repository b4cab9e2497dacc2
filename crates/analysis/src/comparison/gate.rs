//! Gates: limits on a metric of some functions, as a text such as `Shop.*:calls>+5%`.

use std::fmt;

use clrscope_contract::request::{PATTERN_HELP, Pattern};
use clrscope_contract::words::nearest;

use crate::metric::{Metric, Unit};
use crate::metrics::METRICS;

/// A gate: a limit that a metric of some functions must not exceed.
#[derive(Debug, Clone, PartialEq)]
pub struct Gate {
    /// The text of the gate.
    pub text: String,
    /// The functions that the gate measures. If totals are measured, only the outermost of these
    /// functions on each stack counts.
    pub pattern: Pattern,
    /// The metric.
    pub metric: &'static Metric,
    /// Whether own amounts are measured. Otherwise totals are measured, which include the callees.
    pub is_own: bool,
    /// Whether shares of the whole are limited, rather than amounts.
    pub is_share: bool,
    /// The limit that must not be exceeded.
    pub limit: Limit,
}

/// The limit of a gate, for the amount on the side after.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Limit {
    /// Growth by this part of the amount before: 0.05 for 5 %.
    Growth(f64),
    /// Growth by this amount: nanoseconds, bytes, a number, or a share of the whole.
    More(f64),
    /// The amount after exceeds this amount, whatever the amount before.
    Above(f64),
}

/// Reason why a text is not a valid gate.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GateError {
    /// Reason why the text is not valid, as part of a sentence.
    pub why: String,
    /// Advice: what to write instead.
    pub hint: String,
}

/// Syntax of a gate, for hints.
const FORM: &str = "write PATTERN:METRIC>+5%, PATTERN:METRIC>+5 or PATTERN:METRIC>5, such as 'Shop.*:calls>+5%'";

fn error(why: impl Into<String>, hint: impl Into<String>) -> GateError {
    GateError { why: why.into(), hint: hint.into() }
}

impl Gate {
    /// Parses a gate.
    ///
    /// # Errors
    /// When the text is not a gate, names no metric, or has a limit that does not fit the metric.
    pub fn parse(text: &str) -> Result<Self, GateError> {
        let text = text.trim();
        // Names of generic methods contain such a sign as well: the limit follows the last one.
        let (left, limit) = text.rsplit_once('>').ok_or_else(|| error("it has no limit", FORM))?;
        let (pattern, metric) = left.rsplit_once(':').ok_or_else(|| error("it names no metric", FORM))?;
        if pattern.ends_with(':') {
            return Err(error(format!("it names no metric behind '{left}'"), FORM));
        }
        let (metric, is_own, is_share) = measure(metric.trim())?;
        let pattern = Pattern::parse(pattern).map_err(|found| error(found.why, format!("write {PATTERN_HELP}")))?;
        let limit = limit_of(limit.trim(), metric, is_share)?;
        Ok(Self { text: text.to_owned(), pattern, metric, is_own, is_share, limit })
    }

    /// The metric as text: `calls`, `own CPU time`, `share of bytes`.
    #[must_use]
    pub fn measured(&self) -> String {
        let own = if self.is_own && !self.metric.exclusive { "own " } else { "" };
        let share = if self.is_share { "share of " } else { "" };
        format!("{share}{own}{}", self.metric.title)
    }
}

impl fmt::Display for Gate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

/// The metric that a word names, whether the word selects own amounts, and whether it selects
/// shares.
fn measure(word: &str) -> Result<(&'static Metric, bool, bool), GateError> {
    let (rest, is_share) = word.strip_suffix("-share").map_or((word, false), |rest| (rest, true));
    let (name, is_own) = rest.strip_suffix("-self").map_or((rest, false), |rest| (rest, true));
    match Metric::parse(name) {
        Some(metric) => Ok((metric, is_own, is_share)),
        None => {
            let names: Vec<&str> = METRICS.iter().map(|metric| metric.name).collect();
            let known = format!("metrics are {}, each with -self, -share or -self-share behind it", names.join(", "));
            let hint = nearest(name, names.iter().copied()).map_or(known, |near| format!("did you mean '{near}'?"));
            Err(error(format!("there is no metric '{name}'"), hint))
        }
    }
}

fn limit_of(text: &str, metric: &Metric, is_share: bool) -> Result<Limit, GateError> {
    let (number, is_growth) = text.strip_prefix('+').map_or((text, false), |rest| (rest, true));
    let of = |number: &str| {
        let digits = number.trim();
        let is_plain = !digits.is_empty() && digits.chars().all(|c| c.is_ascii_digit() || c == '.');
        digits.parse::<f64>().ok().filter(|value| is_plain && value.is_finite())
    };
    if text.starts_with(['-', '=', '<']) {
        let why = format!("'>{text}' is not a limit that an amount can exceed");
        return Err(error(why, "a gate fails if there is more: write >+5%, >+5 or >5"));
    }
    if let Some(percent) = number.strip_suffix('%') {
        let Some(value) = of(percent) else { return Err(error(format!("'{text}' is not a limit"), FORM)) };
        return match (is_growth, is_share) {
            (true, _) => Ok(Limit::Growth(value / 100.0)),
            (false, true) => Ok(Limit::Above(value / 100.0)),
            (false, false) => {
                let hint = format!("write >+{number} for growth, or {}-share for a part of the whole", metric.name);
                Err(error(format!("'{text}' is a part of nothing"), hint))
            }
        };
    }
    let amount = match (is_share, metric.unit) {
        (true, _) => number.strip_suffix("pt").and_then(of).map(|points| points / 100.0),
        (false, Unit::Count) => of(number),
        (false, Unit::Nanoseconds) => with_unit(number, &[("ns", 1.0), ("us", 1e3), ("ms", 1e6), ("s", 1e9)]),
        (false, Unit::Bytes) => {
            let units = [("kB", 1e3), ("MB", 1e6), ("GB", 1e9), ("KiB", 1024.0), ("MiB", 1_048_576.0), ("B", 1.0)];
            with_unit(number, &units).or_else(|| of(number))
        }
    };
    match amount {
        Some(amount) if is_growth => Ok(Limit::More(amount)),
        Some(amount) => Ok(Limit::Above(amount)),
        None => {
            let hint = match (is_share, metric.unit) {
                (true, _) => "a limit of a share is >+5% of what it was, >+2pt for two points more, or >30%",
                (_, Unit::Nanoseconds) => "a limit of a time is >+5%, >+20ms or >2s: write the unit",
                (_, Unit::Bytes) => "a limit of bytes is >+5%, >+4096, >+1MB or >64MiB",
                (_, Unit::Count) => "a limit of a number is >+5%, >+5 or >5",
            };
            Err(error(format!("'{text}' is not a limit of {}", metric.title), hint))
        }
    }
}

fn with_unit(number: &str, units: &[(&str, f64)]) -> Option<f64> {
    let (digits, scale) = units.iter().find_map(|(unit, scale)| {
        let digits = number.strip_suffix(unit)?.trim_end();
        digits.ends_with(|c: char| c.is_ascii_digit() || c == '.').then_some((digits, *scale))
    })?;
    let is_plain = digits.chars().all(|c| c.is_ascii_digit() || c == '.');
    digits.parse::<f64>().ok().filter(|_| is_plain).map(|value| value * scale)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> (String, String, Limit) {
        let gate = Gate::parse(text).expect("a gate");
        (gate.pattern.as_str().to_owned(), gate.measured(), gate.limit)
    }

    #[test]
    fn gates_are_a_pattern_a_metric_and_a_limit() {
        let gate = |pattern: &str, measured: &str, limit| (pattern.to_owned(), measured.to_owned(), limit);
        assert_eq!(read("Shop.*:calls>+5%"), gate("Shop.*", "calls", Limit::Growth(0.05)));
        assert_eq!(read("Shop.Cart::Total:calls>+0"), gate("Shop.Cart::Total", "calls", Limit::More(0.0)));
        assert_eq!(read("[Shop]*:bytes>1MB"), gate("[Shop]*", "bytes", Limit::Above(1e6)));
        assert_eq!(read(" *:bytes-self > +4096 "), gate("*", "own bytes", Limit::More(4096.0)));
        assert_eq!(read("*:cpu>+1.5ms"), gate("*", "CPU time", Limit::More(1.5e6)));
        assert_eq!(read("*:cpu-share>30%"), gate("*", "share of CPU time", Limit::Above(0.3)));
        assert_eq!(read("*:samples-self-share>+2pt"), gate("*", "share of own samples", Limit::More(0.02)));
        assert_eq!(read("Shop.Pool<T>::Take:objects>64"), gate("Shop.Pool<T>::Take", "objects", Limit::Above(64.0)));
        assert_eq!(read("*:bytes>64MiB").2, Limit::Above(67_108_864.0));
        assert_eq!(read("*:exceptions>0").2, Limit::Above(0.0));
    }

    #[test]
    fn what_is_no_gate_is_refused_with_a_hint() {
        let why = |text: &str| {
            let GateError { why, hint } = Gate::parse(text).expect_err("no gate");
            assert!(!hint.is_empty() && !why.contains('\n'), "{text}");
            (why, hint)
        };
        assert_eq!(why("Shop.*:calls").0, "it has no limit");
        assert_eq!(why("Shop>+5%").0, "it names no metric");
        assert_eq!(why("Shop.Cart::Total>+5%").0, "it names no metric behind 'Shop.Cart::Total'");
        assert_eq!(why("*:callls>+5%"), ("there is no metric 'callls'".to_owned(), "did you mean 'calls'?".to_owned()));
        assert_eq!(why(":calls>+5%").0, "it is empty");
        assert_eq!(why("*:calls>5%").0, "'5%' is a part of nothing");
        assert_eq!(why("*:calls>-5%").0, "'>-5%' is not a limit that an amount can exceed");
        assert_eq!(why("*:calls>=5").0, "'>=5' is not a limit that an amount can exceed");
        assert_eq!(why("*:cpu>+5").0, "'+5' is not a limit of CPU time");
        assert_eq!(why("*:bytes>+5x").0, "'+5x' is not a limit of bytes");
        assert_eq!(why("*:cpu-share>+5").0, "'+5' is not a limit of CPU time");
        for text in ["", "*:calls>", "*:calls>+", "*:calls>+%", "*:calls>inf", "*:calls>1e5", "*:cpu>ms", "*:cpu>+-1ms"]
        {
            why(text);
        }
    }
}
