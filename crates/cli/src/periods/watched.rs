//! The part of `clrscope watch` that records one program: a separate process, which ends with the
//! watch and reports events to it on standard output.

use std::fmt;
use std::process;
use std::str::FromStr;

use jiff::Timestamp;
use rustix::process::{Pid, Signal, getppid, set_parent_process_death_signal};

use super::Clock;
use crate::errors::{Failure, one_line, reason};
use crate::terminal;

/// The `clrscope watch` that a recording process works for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Watched {
    /// Process id of the watch.
    pid: u32,
    /// The watch's clock, which gives the names and ages of all its recordings.
    pub(super) clock: Clock,
}

impl Watched {
    /// Describes this process as the watch.
    pub(crate) fn by_this_process(clock: Clock) -> Self {
        Self { pid: process::id(), clock }
    }

    /// Makes the system end this process in an orderly way when the watch ends, even if the watch
    /// is killed.
    ///
    /// # Errors
    /// When the watch has ended already, or the system refuses.
    pub(crate) fn end_with_it(self) -> Result<(), Failure> {
        let failed = |why: String| Failure::new("cannot record for 'clrscope watch'", why, "start 'clrscope watch'");
        set_parent_process_death_signal(Some(Signal::TERM)).map_err(|error| failed(reason(&error.into())))?;
        match getppid() == i32::try_from(self.pid).ok().and_then(Pid::from_raw) {
            true => Ok(()),
            false => Err(failed(format!("process {} has ended, or did not start this one", self.pid))),
        }
    }
}

impl fmt::Display for Watched {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{},{},{}", self.pid, self.clock.began.as_nanosecond(), self.clock.began_ns)
    }
}

impl FromStr for Watched {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let parsed = || {
            let mut parts = text.split(',');
            let pid = parts.next()?.parse().ok()?;
            let began = Timestamp::from_nanosecond(parts.next()?.parse().ok()?).ok()?;
            let began_ns = parts.next()?.parse().ok()?;
            parts.next().is_none().then_some(Self { pid, clock: Clock { began, began_ns } })
        };
        parsed().ok_or("only 'clrscope watch' gives this option")
    }
}

/// An event in a recording process, which that process reports to the watch.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Event {
    /// The agent has started to record.
    Attached,
    /// A recording was written; holds its size in bytes.
    Recorded(u64),
    /// The program can't be attached to; holds the reason.
    Refused(String),
    /// The program ended before the agent could record.
    Gone,
}

impl Event {
    /// Reports the event to the watch, on standard output.
    pub(crate) fn tell(&self) {
        // A watch that has ended hears nothing.
        let _ = terminal::print(&format!("{self}\n"));
    }

    /// Parses a line that a recording process printed; `None` if the line is no event.
    pub(crate) fn parse(line: &str) -> Option<Self> {
        let (kind, rest) = line.split_once(' ').unwrap_or((line, ""));
        match kind {
            "attached" => Some(Self::Attached),
            "recorded" => rest.parse().ok().map(Self::Recorded),
            "refused" => Some(Self::Refused(rest.to_owned())),
            "gone" => Some(Self::Gone),
            _ => None,
        }
    }
}

impl fmt::Display for Event {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Attached => f.write_str("attached"),
            Self::Recorded(bytes) => write!(f, "recorded {bytes}"),
            Self::Refused(why) => write!(f, "refused {}", one_line(why)),
            Self::Gone => f.write_str("gone"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_told_is_read_back() {
        for event in [Event::Attached, Event::Recorded(7), Event::Refused("it is stopped".to_owned()), Event::Gone] {
            assert_eq!(Event::parse(&event.to_string()), Some(event));
        }
        assert_eq!(Event::parse("other"), None);
        let watched = Watched::by_this_process(Clock::start());
        assert_eq!(watched.to_string().parse(), Ok(watched));
        assert!("7,8".parse::<Watched>().is_err() && "7,8,9,10".parse::<Watched>().is_err());
    }

    #[test]
    fn a_process_that_the_watch_did_not_start_records_nothing_for_it() {
        let failure = Watched::by_this_process(Clock::start()).end_with_it().expect_err("it is not its own parent");
        assert!(failure.to_string().contains("did not start this one"), "{failure}");
        set_parent_process_death_signal(None).expect("as it was");
    }
}
