//! Overhead advice: if reading values slows a program down, a remark in the recording names the
//! methods and the `--exclude` that avoids the cost.

use std::collections::HashMap;

use clrscope_agent_base::helper::Task;
use clrscope_recording::model::{Advice, RemarkKind};
use clrscope_recording::writer::ProcessWriter;

use super::plans::samples;

/// Most methods that are named, and the least share of each.
const NAMED: usize = 3;
const LEAST: f64 = 0.1;
/// Growth factor of the number of samples after which the advice is repeated.
const AGAIN: u64 = 8;
/// Rounds of the helper thread between two checks: about a second.
const ROUNDS: u32 = 50;

/// The task that writes the advice to the recording once there are enough samples.
pub struct AdviseOverhead {
    writer: &'static ProcessWriter,
    /// The instrument's name for `-i`.
    instrument: &'static str,
    /// Number of samples for the next remark.
    next: u64,
    rounds: u32,
}

impl AdviseOverhead {
    /// Creates the task, which gives advice once there are `samples` samples.
    pub fn new(writer: &'static ProcessWriter, instrument: &'static str, samples: u64) -> Self {
        Self { writer, instrument, next: samples, rounds: 0 }
    }
}

impl Task for AdviseOverhead {
    fn slow_tick(&mut self, now_ns: u64) {
        self.rounds += 1;
        if !self.rounds.is_multiple_of(ROUNDS) {
            return;
        }
        let (all, costly) = shares(samples());
        if all >= self.next {
            self.next = all.saturating_mul(AGAIN);
            let (kind, text) = remark(self.instrument, &costly);
            self.writer.remark(now_ns, kind, &text);
        }
    }
}

/// Number of samples, and the methods with the largest shares. Overloads are counted together.
fn shares<'p>(samples: impl Iterator<Item = (&'p str, u64)>) -> (u64, Vec<(&'p str, f64)>) {
    let mut by_pattern: HashMap<&str, u64> = HashMap::new();
    samples.for_each(|(pattern, count)| *by_pattern.entry(pattern).or_default() += count);
    let all: u64 = by_pattern.values().sum();
    let share = |count: u64| count as f64 / all.max(1) as f64;
    let mut shares: Vec<_> = by_pattern.into_iter().map(|(pattern, count)| (pattern, share(count))).collect();
    shares.retain(|(pattern, share)| !pattern.is_empty() && *share >= LEAST);
    shares.sort_by(|a, b| b.1.total_cmp(&a.1).then(a.0.cmp(b.0)));
    shares.truncate(NAMED);
    (all, shares)
}

/// Remark about methods with these shares.
fn remark(instrument: &str, costly: &[(&str, f64)]) -> (RemarkKind, String) {
    let slow = format!("{instrument} slows the program down: it reads the values of too many calls");
    if costly.is_empty() {
        // There is no pattern to suggest: a note.
        return (RemarkKind::Note, format!("{slow}; use fewer or narrower --include patterns"));
    }
    let of: Vec<_> = costly.iter().map(|(pattern, share)| format!("{:.0} % of {pattern}", share * 100.0)).collect();
    let spared = costly.iter().map(|(pattern, _)| (*pattern).to_owned()).collect();
    (RemarkKind::Advice(Advice::Exclude(spared)), format!("{slow}, {}", of.join(", ")))
}

#[cfg(test)]
mod tests {
    use clrscope_recording::model::Remark;

    use super::*;

    #[test]
    fn the_largest_shares_are_named_with_what_spares_them() {
        let samples = [("[A]B::C", 40), ("[A]B::D", 50), ("", 2), ("[A]B::C", 6), ("[A]B::E", 2)];
        let (all, costly) = shares(samples.into_iter());
        assert_eq!(all, 100);
        let (kind, text) = remark("flow:args", &costly);
        let text = Remark { time_ns: 0, kind, text }.to_string();
        assert!(text.ends_with(
            "50 % of [A]B::D, 46 % of [A]B::C; to reduce the overhead: --exclude '[A]B::D' --exclude '[A]B::C'"
        ));
    }

    #[test]
    fn many_small_shares_are_not_named() {
        let patterns: Vec<String> = (0..20).map(|number| format!("[A]B::M{number}")).collect();
        let (all, costly) = shares(patterns.iter().map(|pattern| (pattern.as_str(), 5)));
        assert_eq!((all, costly.len()), (100, 0));
        assert!(remark("flow:args", &costly).1.contains("narrower --include"));
    }
}
