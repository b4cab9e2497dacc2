//! Runs a program to its end and measures what it used; computes medians and spreads of several
//! runs.

use std::io;
use std::mem;
use std::process::{Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

/// Measurements of one finished run.
pub(crate) struct Measured {
    /// CPU time in user mode of the program and of the children that it waited for. If the last
    /// line of the output is `work 17 ns`, the program measured its work itself: then this is that
    /// time, and the output is without the line.
    pub(crate) user: Duration,
    /// CPU time in the kernel.
    pub(crate) system: Duration,
    pub(crate) wall: Duration,
    pub(crate) stdout: String,
}

/// Runs the command. This process must not run anything else meanwhile, because the time of all its
/// children is added up.
///
/// # Errors
/// A sentence with the program's output, if the program does not start or fails.
pub(crate) fn run(command: &mut Command) -> Result<Measured, String> {
    let before = children()?;
    let began = Instant::now();
    let output = command.stdin(Stdio::null()).output().map_err(|error| format!("{command:?}: {error}"))?;
    let wall = began.elapsed();
    let after = children()?;
    check(output.status, &output.stdout, &output.stderr)?;
    let (stdout, work) = split_work(String::from_utf8_lossy(&output.stdout).into_owned());
    Ok(Measured { user: work.unwrap_or(after.0 - before.0), system: after.1 - before.1, wall, stdout })
}

/// Output of a program without the line about its work, and what that says.
fn split_work(mut stdout: String) -> (String, Option<Duration>) {
    let number = |line: &str| line.strip_prefix("work ")?.strip_suffix(" ns")?.parse().ok().map(Duration::from_nanos);
    let before = stdout.trim_end().rfind('\n').map_or(0, |at| at + 1);
    let work = number(stdout[before..].trim_end());
    if work.is_some() {
        stdout.truncate(before);
    }
    (stdout, work)
}

fn check(status: ExitStatus, stdout: &[u8], stderr: &[u8]) -> Result<(), String> {
    if status.success() {
        return Ok(());
    }
    Err(format!("ended with {status}\n{}{}", String::from_utf8_lossy(stdout), String::from_utf8_lossy(stderr)))
}

/// CPU time in user mode and in the kernel of the children that have ended and were waited for.
fn children() -> Result<(Duration, Duration), String> {
    // SAFETY: `rusage` is plain numbers, and zeros are valid ones.
    let mut usage: libc::rusage = unsafe { mem::zeroed() };
    // SAFETY: `usage` is a local value of the type that the call fills, borrowed for the call
    // alone.
    if unsafe { libc::getrusage(libc::RUSAGE_CHILDREN, &mut usage) } != 0 {
        return Err(format!("the children's usage: {}", io::Error::last_os_error()));
    }
    Ok((duration(usage.ru_utime), duration(usage.ru_stime)))
}

fn duration(time: libc::timeval) -> Duration {
    Duration::from_secs(time.tv_sec.unsigned_abs()) + Duration::from_micros(time.tv_usec.unsigned_abs())
}

/// A median with minimum and maximum.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Spread {
    pub(crate) median: f64,
    pub(crate) low: f64,
    pub(crate) high: f64,
}

impl Spread {
    /// Returns the spread of `values`; all zero if there are none.
    pub(crate) fn from_values(values: &[f64]) -> Self {
        let mut sorted = values.to_vec();
        sorted.sort_by(f64::total_cmp);
        let at = |index: usize| sorted.get(index).copied().unwrap_or(0.0);
        let middle = sorted.len() / 2;
        let median = if sorted.len() % 2 == 1 { at(middle) } else { (at(middle.saturating_sub(1)) + at(middle)) / 2.0 };
        Self { median, low: at(0), high: at(sorted.len().saturating_sub(1)) }
    }

    /// Distance from minimum to maximum.
    pub(crate) fn width(&self) -> f64 {
        self.high - self.low
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn medians_of_odd_and_even_numbers() {
        assert_eq!(Spread::from_values(&[3.0, 1.0, 2.0]), Spread { median: 2.0, low: 1.0, high: 3.0 });
        assert_eq!(Spread::from_values(&[4.0, 1.0, 2.0, 3.0]).median, 2.5);
        assert_eq!(Spread::from_values(&[]).width(), 0.0);
    }

    #[test]
    fn a_program_may_say_what_its_work_took() {
        let split = |text: &str| split_work(text.to_owned());
        assert_eq!(split("7\nwork 12 ns\n"), ("7\n".to_owned(), Some(Duration::from_nanos(12))));
        assert_eq!(split("work 12 ns\n7\n"), ("work 12 ns\n7\n".to_owned(), None));
        assert_eq!(split(""), (String::new(), None));
    }

    #[test]
    fn a_program_that_works_uses_time_and_one_that_fails_says_so() {
        let mut busy = Command::new("sh");
        busy.args(["-c", "i=0; while [ $i -lt 100000 ]; do i=$((i+1)); done; echo done"]);
        let measured = run(&mut busy).expect("it ends well");
        assert_eq!(measured.stdout, "done\n");
        assert!(measured.user > Duration::from_millis(1) && measured.wall >= Duration::from_millis(1));
        assert!(measured.system < measured.wall + Duration::from_secs(1));
        let mut failing = Command::new("sh");
        failing.args(["-c", "echo because >&2; exit 3"]);
        assert!(run(&mut failing).is_err_and(|why| why.contains("because")));
    }
}
