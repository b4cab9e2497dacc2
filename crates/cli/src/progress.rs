//! One line about a recording that goes on, rewritten each second: for people at a terminal.

use std::path::Path;
use std::time::{Duration, Instant};

use clrscope_recording::layout::instrument;
use clrscope_recording::model::Process;

use crate::terminal::{clear_status, status};

/// Between two lines.
const BETWEEN: Duration = Duration::from_secs(1);

/// The line, while it is shown.
#[derive(Debug)]
pub(super) struct Progress {
    is_shown: bool,
    began: Instant,
    next: Instant,
}

impl Progress {
    /// The line, or nothing at all.
    pub(super) fn new(is_shown: bool) -> Self {
        let now = Instant::now();
        Self { is_shown, began: now, next: now + BETWEEN }
    }

    /// Shows the line when it is due.
    pub(super) fn update(&mut self, folder: &Path) {
        let now = Instant::now();
        if !self.is_shown || now < self.next {
            return;
        }
        self.next = now + BETWEEN;
        if let Ok(recording) = clrscope_recording::open(folder) {
            status(&line(self.began.elapsed(), &recording.processes));
        }
    }

    /// Takes the line away.
    pub(super) fn end(&self) {
        if self.is_shown {
            clear_status();
        }
    }
}

fn line(elapsed: Duration, processes: &[Process]) -> String {
    let is_sampled = |name: &str| name == instrument::CPU || name == instrument::WALL;
    let arenas = || processes.iter().flat_map(|process| &process.events);
    let bytes = |sampled: bool| -> usize {
        let wanted = arenas().filter(|arena| is_sampled(&arena.instrument) == sampled);
        wanted.flat_map(|arena| &arena.chunks).map(|chunk| chunk.bytes.load().len()).sum()
    };
    let lost: u64 = processes.iter().flat_map(|process| &process.losses).map(|loss| loss.count).sum();
    let mut parts = vec![format!("{} s", elapsed.as_secs())];
    if arenas().any(|arena| is_sampled(&arena.instrument)) {
        parts.push(format!("{} samples", bytes(true) / clrscope_recording::layout::sample::BYTES));
    }
    if arenas().any(|arena| !is_sampled(&arena.instrument)) {
        parts.push(format!("{:.1} MB of events", bytes(false) as f64 / 1e6));
    }
    parts.push(format!("{lost} lost"));
    format!("clrscope: {}; Ctrl-C ends the recording", parts.join(", "))
}
