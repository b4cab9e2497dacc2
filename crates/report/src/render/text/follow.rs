//! Logs that still grow: each poll shows the rows that no earlier poll has shown.

use std::collections::HashMap;
use std::io::{self, Write};

use crate::render::{About, Guard, LogGroup, Renderer, Rows, Section, Style, ThreadKey};

/// How much of a log has been shown.
#[derive(Debug, Default)]
pub struct FollowState {
    seen: ShownRows,
    group: Option<LogGroup>,
}

/// Writes the rows of a log that are new.
pub(crate) struct News<'o> {
    out: Guard<&'o mut dyn Write>,
    state: &'o mut FollowState,
}

impl<'o> News<'o> {
    /// Begins a new poll of the log.
    pub(crate) fn new(out: &'o mut dyn Write, state: &'o mut FollowState) -> Self {
        state.seen.look();
        Self { out: Guard::new(out), state }
    }
}

impl Renderer for News<'_> {
    fn begin(&mut self, _about: &About<'_>) -> io::Result<()> {
        Ok(())
    }

    fn section(&mut self, section: &Section, rows: &mut Rows<'_>) -> io::Result<()> {
        if section.style != Style::Log {
            return Ok(());
        }
        rows(&mut |entry| {
            let Some(row) = entry.log() else { return Ok(()) };
            let (thread, stamp) = row.order_key();
            if !self.state.seen.is_new(thread, stamp) {
                return Ok(());
            }
            if self.state.group.replace(row.group()) != Some(row.group()) {
                self.out.write_all(row.heading().as_bytes())?;
            }
            self.out.write_all(row.line().as_bytes())
        })?;
        Ok(())
    }

    fn end(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// The shown rows of each thread, by time stamp. Rows are only ever added at the end.
#[derive(Debug, Default)]
struct ShownRows {
    before: HashMap<ThreadKey, Mark>,
    now: HashMap<ThreadKey, Mark>,
}

/// The last time stamp, and the number of rows with it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord)]
struct Mark {
    stamp: u64,
    rows: u32,
}

impl ShownRows {
    /// Begins a new poll.
    fn look(&mut self) {
        for (thread, mark) in self.now.drain() {
            let known = self.before.entry(thread).or_default();
            *known = mark.max(*known);
        }
    }

    /// Takes the next row of a thread in this poll. Returns whether no earlier poll has shown it.
    fn is_new(&mut self, thread: ThreadKey, stamp: u64) -> bool {
        let at = self.now.entry(thread).or_default();
        at.rows = if at.stamp == stamp { at.rows + 1 } else { 1 };
        at.stamp = stamp;
        *at > self.before.get(&thread).copied().unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_row_is_new_once() {
        let mut seen = ShownRows::default();
        let mut look = |stamps: &[u64]| {
            seen.look();
            stamps.iter().map(|stamp| seen.is_new((1, 1), *stamp)).collect::<Vec<_>>()
        };
        assert_eq!(look(&[5, 7, 7]), [true, true, true]);
        assert_eq!(look(&[5, 7, 7, 7, 9]), [false, false, false, true, true]);
        assert_eq!(look(&[7]), [false], "older rows were overwritten");
        assert_eq!(look(&[9, 11]), [false, true]);
    }
}
