//! Progress lines on a terminal: about a running recording and its probes, rewritten each second,
//! and about long work.

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use clrscope_analysis::Query;
use clrscope_recording::layout::instrument;
use clrscope_recording::model::Process;

use crate::background::{Background, End};
use crate::live_probes::LiveProbes;
use crate::terminal::{Status, messages_on_terminal};

/// Interval between two lines; shorter work has no line.
pub(crate) const BETWEEN: Duration = Duration::from_secs(1);
/// If reading a large recording takes at least this time, the next look waits this many times as
/// long.
const LONG: (Duration, u32) = (Duration::from_millis(500), 20);

/// The line about a recording, while it is shown.
#[derive(Debug)]
pub(crate) struct Progress {
    is_shown: bool,
    began: Instant,
    next: Instant,
    /// Text about how the recording ends.
    ending: &'static str,
    probes: LiveProbes,
    status: Status,
}

impl Progress {
    /// Creates the line; nothing is ever shown unless `is_shown`. `ending` says what ends the
    /// recording.
    pub(crate) fn new(is_shown: bool, ending: &'static str) -> Self {
        let now = Instant::now();
        let (probes, status) = Default::default();
        Self { is_shown, began: now, next: now + BETWEEN, ending, probes, status }
    }

    /// Updates the line if it is due.
    pub(crate) fn update(&mut self, folder: &Path) {
        let now = Instant::now();
        if !self.is_shown || now < self.next {
            return;
        }
        if let Ok(recording) = clrscope_recording::open(folder) {
            let mut lines = vec![line(self.began.elapsed(), &recording.processes, self.ending)];
            // A recording without probes has no rows.
            lines.extend(self.probes.lines(&recording, &Query::default()).unwrap_or_default());
            self.status.show(&lines);
        }
        let took = now.elapsed();
        self.next = now + if took < LONG.0 { BETWEEN } else { took * LONG.1 };
    }

    /// Removes the line.
    pub(crate) fn end(&mut self) {
        if self.is_shown {
            self.status.clear();
        }
    }
}

/// A thread that shows a line until this value is dropped.
#[derive(Debug)]
pub(crate) struct Shown(#[expect(dead_code, reason = "it is there to go")] Option<Background>);

impl Shown {
    /// Shows the line about the recording in a folder while other code waits for the program's end;
    /// only if `is_wanted` and stderr is a terminal.
    pub(crate) fn recording(is_wanted: bool, folder: PathBuf) -> Self {
        Self::start(is_wanted, move |end| {
            let mut line = Progress::new(true, "the program's end ends the recording");
            while end.is_not_within(BETWEEN) {
                line.update(&folder);
            }
            line.end();
        })
    }

    /// Shows a line about work that takes longer than a second; only if stderr is a terminal.
    pub(crate) fn work(what: &'static str) -> Self {
        Self::start(true, move |end| {
            let (began, mut status) = (Instant::now(), Status::default());
            while end.is_not_within(BETWEEN) {
                status.show(&[format!("clrscope: {what}, {} s", began.elapsed().as_secs())]);
            }
            if began.elapsed() >= BETWEEN {
                status.clear();
            }
        })
    }

    fn start(is_wanted: bool, show: impl FnOnce(&End) + Send + 'static) -> Self {
        // Without a thread there is no line.
        let begin = || Background::start("progress", show).ok();
        Self((is_wanted && messages_on_terminal()).then(begin).flatten())
    }
}

fn line(elapsed: Duration, processes: &[Process], ending: &str) -> String {
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
    format!("clrscope: {}; {ending}", parts.join(", "))
}
