//! Interleaved pairs of runs.

use std::process::Command;
use std::time::Duration;

use crate::measured::{Measured, Spread, run};

/// A base half slower than the fastest by more than this is noise: the pair is repeated.
const NOISE: f64 = 1.20;

/// Prepares one run. It is called for each run, so that every run gets a new place to record into.
pub(super) type Prepare<'a> = &'a dyn Fn() -> Result<Command, String>;

/// Results of the pairs of one series.
pub(super) struct Series {
    /// User CPU time of the subject divided by that of the base.
    pub(super) ratio: Spread,
    /// Additional CPU time of the subject in milliseconds, in user mode and in the kernel.
    pub(super) more_ms: Spread,
    /// Additional CPU time of the subject in milliseconds, in user mode only.
    pub(super) more_user_ms: Spread,
    /// Median user CPU time of subject and base, in seconds.
    pub(super) seconds: (f64, f64),
    /// Median wall time of subject and base, in seconds.
    pub(super) wall: (f64, f64),
    pub(super) pairs: usize,
    pub(super) repeated: usize,
}

/// Runs `subject` and `base` in turn, `pairs` times. Repeats pairs whose base run was disturbed, at
/// most `pairs` times.
///
/// # Errors
/// When a run fails, or when the two print different things.
pub(super) fn measure(subject: Prepare<'_>, base: Prepare<'_>, pairs: usize) -> Result<Series, String> {
    let (mut done, mut repeated): (Vec<(Measured, Measured)>, usize) = (Vec::new(), 0);
    loop {
        while done.len() < pairs {
            done.push(pair(subject, base, done.len() + repeated)?);
        }
        let best = done.iter().map(|(_, base)| base.user).min().unwrap_or(Duration::ZERO);
        let good = |base: &Measured| base.user.as_secs_f64() <= best.as_secs_f64() * NOISE;
        let before = done.len();
        if repeated < pairs {
            done.retain(|(_, base)| good(base));
        }
        repeated += before - done.len();
        if done.len() == before {
            return Ok(summary(&done, repeated));
        }
    }
}

/// Every other pair the other way round, so that neither half always follows the same.
fn pair(subject: Prepare<'_>, base: Prepare<'_>, number: usize) -> Result<(Measured, Measured), String> {
    let (first, second) = if number.is_multiple_of(2) { (base, subject) } else { (subject, base) };
    let (first, second) = (run(&mut first()?)?, run(&mut second()?)?);
    if first.stdout != second.stdout {
        return Err(format!("a run printed\n{}\nand another\n{}", first.stdout, second.stdout));
    }
    Ok(if number.is_multiple_of(2) { (second, first) } else { (first, second) })
}

fn summary(pairs: &[(Measured, Measured)], repeated: usize) -> Series {
    let of = |value: &dyn Fn(&(Measured, Measured)) -> f64| {
        Spread::from_values(&pairs.iter().map(value).collect::<Vec<_>>())
    };
    let cpu = |m: &Measured| (m.user + m.system).as_secs_f64() * 1e3;
    Series {
        ratio: of(&|(a, b)| a.user.as_secs_f64() / b.user.as_secs_f64().max(1e-9)),
        more_ms: of(&|(a, b)| cpu(a) - cpu(b)),
        more_user_ms: of(&|(a, b)| a.user.as_secs_f64() * 1e3 - b.user.as_secs_f64() * 1e3),
        seconds: (of(&|(a, _)| a.user.as_secs_f64()).median, of(&|(_, b)| b.user.as_secs_f64()).median),
        wall: (of(&|(a, _)| a.wall.as_secs_f64()).median, of(&|(_, b)| b.wall.as_secs_f64()).median),
        pairs: pairs.len(),
        repeated,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shell(script: &'static str) -> impl Fn() -> Result<Command, String> {
        move || {
            let mut command = Command::new("sh");
            command.args(["-c", script]);
            Ok(command)
        }
    }

    fn took(user_ms: u64, system_ms: u64) -> Measured {
        let (user, system) = (Duration::from_millis(user_ms), Duration::from_millis(system_ms));
        Measured { user, system, wall: user + system, stdout: String::new() }
    }

    #[test]
    fn a_series_is_summed_up_pair_by_pair() {
        let pairs = [(took(30, 0), took(10, 0)), (took(40, 5), took(20, 3)), (took(50, 0), took(40, 0))];
        let series = summary(&pairs, 2);
        assert_eq!((series.pairs, series.repeated), (3, 2));
        assert_eq!((series.ratio.median, series.ratio.low, series.ratio.high), (2.0, 1.25, 3.0));
        assert_eq!((series.more_ms.low, series.more_ms.high), (10.0, 22.0));
        assert_eq!(series.more_user_ms.median, 20.0);
        assert_eq!((series.seconds, series.wall), ((0.04, 0.02), (0.045, 0.023)));
    }

    #[test]
    fn as_many_pairs_are_run_as_were_asked_for() {
        assert_eq!(measure(&shell("echo 1"), &shell("echo 1"), 3).map(|series| series.pairs), Ok(3));
    }

    #[test]
    fn different_output_is_an_error() {
        assert!(measure(&shell("echo 1"), &shell("echo 2"), 1).is_err());
    }
}
