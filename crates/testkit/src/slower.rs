//! The fixture `Slower`, in which one method is made slower. The method's samples must grow by the
//! program's additional time, and samples of other methods must not grow.

use std::collections::BTreeMap;

/// The phase with which others are compared.
const BASE: &str = "Base";
/// Parts of a round, each with its methods. The time of an inlined method may appear under its own
/// name or under its caller's.
const PARTS: [(&str, &[&str]); 6] = [
    ("Framed", &["Work::Framed"]),
    ("Inlined", &["Work::Inlined", "Work::Host"]),
    ("Frameless", &["By1::Tiny", "By2::Tiny", "By3::Tiny", "By5::Tiny"]),
    ("their callers", &["Work::Rounds", "Work::Caller"]),
    ("what forwards", &["By1::Pass", "By2::Pass", "By3::Pass", "By5::Pass"]),
    ("another", &["Work::Other"]),
];
/// Allowed random difference between a sampled time and the true time, in standard deviations.
const DEVIATIONS: f64 = 4.0;
/// Share of a phase's time by which the duration of the same work may vary, because its code is
/// placed differently.
const UNEVEN: f64 = 0.03;

/// Sampled times of the parts, by phase.
#[derive(Debug, Clone, Default)]
pub struct Slower {
    /// CPU nanoseconds of each phase, measured by the program.
    phases: BTreeMap<String, f64>,
    /// Sampled time by phase and part.
    sampled: BTreeMap<(String, usize), f64>,
    /// Time of samples in phases whose innermost own method is not in a round, or whose path to it
    /// is incomplete.
    odd: f64,
}

/// The time of a part in a phase, in nanoseconds.
#[derive(Debug, Clone, PartialEq)]
pub struct PartTime {
    /// Phase of the time.
    pub phase: String,
    /// Part of a round.
    pub part: &'static str,
    /// Whether this part was made slower.
    pub is_slower: bool,
    /// Predicted time in nanoseconds: the time in the base phase, plus the program's additional
    /// time for the slower part.
    pub predicted: f64,
    /// Time that the part's samples represent, in nanoseconds.
    pub sampled: f64,
    /// Maximum allowed difference between predicted and sampled time, in nanoseconds.
    pub bound: f64,
}

impl PartTime {
    /// Whether the sampled time agrees with the prediction.
    pub fn is_met(&self) -> bool {
        (self.sampled - self.predicted).abs() <= self.bound
    }
}

impl Slower {
    /// Reads the output of the program.
    ///
    /// # Panics
    /// When `stdout` is not the program's output.
    pub fn parse(stdout: &str) -> Self {
        let lines = stdout.lines().filter_map(|line| line.strip_prefix("PHASE ")?.split_once(' '));
        let phases: BTreeMap<String, f64> =
            lines.filter_map(|(name, time)| Some((name.to_owned(), time.parse().ok()?))).collect();
        assert!(phases.len() == 10 && phases.contains_key(BASE), "no phases in {stdout}");
        Self { phases, ..Self::default() }
    }

    /// Adds a sample: its recorded method names, innermost first, and the CPU time that it
    /// represents.
    pub fn add(&mut self, names: &[&str], weight_ns: u64) {
        let own: Vec<&str> = names.iter().filter_map(|name| name.strip_prefix("Slower.")).collect();
        let Some(phase) = own.iter().find_map(|name| name.strip_prefix("Phases::")) else { return };
        let part = own.first().and_then(|inner| PARTS.iter().position(|(_, methods)| methods.contains(inner)));
        // The method that computes was called by the round, and the round by the phase.
        let is_whole = own.windows(2).any(|pair| pair[0] == "Work::Rounds" && pair[1].starts_with("Phases::"));
        match part.filter(|_| is_whole) {
            Some(part) => *self.sampled.entry((phase.to_owned(), part)).or_default() += weight_ns as f64,
            None => self.odd += weight_ns as f64,
        }
    }

    /// Share of the sampled time whose stacks are not in a round, in percent.
    pub fn odd_percent(&self) -> f64 {
        100.0 * self.odd / (self.odd + self.sampled.values().sum::<f64>()).max(1.0)
    }

    /// All parts in all phases except the base phase; `step_ns` is the time per sample.
    pub fn parts(&self, step_ns: f64) -> Vec<PartTime> {
        let phases = self.phases.iter().filter(|(phase, _)| *phase != BASE);
        phases.flat_map(|(phase, time)| (0..PARTS.len()).map(|part| self.part(phase, *time, part, step_ns))).collect()
    }

    fn part(&self, phase: &str, time: f64, part: usize, step_ns: f64) -> PartTime {
        let sampled = |phase: &str| self.sampled.get(&(phase.to_owned(), part)).copied().unwrap_or(0.0);
        let (base, now) = (sampled(BASE), sampled(phase));
        let name = PARTS[part].0;
        let is_slower = phase.trim_end_matches(char::is_numeric) == name;
        let longer = if is_slower { time - self.phases[BASE] } else { 0.0 };
        let chance = DEVIATIONS * ((base + now).max(step_ns) * step_ns).sqrt();
        PartTime {
            phase: phase.to_owned(),
            part: name,
            is_slower,
            predicted: base + longer,
            sampled: now,
            bound: chance + UNEVEN * time,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: u64 = 1_000_000;

    fn program() -> Slower {
        let phase = |kind: &str, times: [u64; 3]| {
            let lines = [1, 2, 4].iter().zip(times).map(|(k, time)| format!("PHASE {kind}{k} {}\n", time * MS));
            lines.collect::<String>()
        };
        let others: String = ["Framed", "Inlined", "Frameless"].map(|kind| phase(kind, [1_200, 1_400, 1_800])).concat();
        Slower::parse(&format!("PHASE Base {}\n{others}", 1_000 * MS))
    }

    fn add(slower: &mut Slower, phase: &str, inner: &str, ms: u64) {
        let names =
            [inner, "Work::Rounds", &format!("Phases::{phase}"), "Program::Main"].map(|name| format!("Slower.{name}"));
        slower.add(&names.each_ref().map(String::as_str), ms * MS);
    }

    #[test]
    fn the_slower_one_rises_by_what_the_program_takes_longer_and_nobody_else() {
        let mut slower = program();
        for (phase, framed, host) in [("Base", 200, 400), ("Framed1", 400, 400), ("Framed4", 410, 800)] {
            add(&mut slower, phase, "Work::Framed", framed);
            add(&mut slower, phase, "Work::Host", host);
        }
        slower.add(&["Slower.Work::Framed", "Slower.Phases::Base"], 100 * MS);
        slower.add(&["Slower.Program::Main"], 100 * MS);
        assert!((slower.odd_percent() - 100.0 * 100.0 / 2_710.0).abs() < 1e-6, "{}", slower.odd_percent());
        let parts = slower.parts(100_000.0);
        let part =
            |phase: &str, part: &str| parts.iter().find(|one| one.phase == phase && one.part == part).expect("a part");
        assert!(part("Framed1", "Framed").is_met() && part("Framed1", "Framed").is_slower);
        assert!(part("Framed1", "Inlined").is_met() && !part("Framed1", "Inlined").is_slower);
        assert!(!part("Framed4", "Framed").is_met() && !part("Framed4", "Inlined").is_met(), "given to another");
        assert_eq!(part("Framed4", "Framed").predicted, 1_000e6);
    }
}
