//! Lines for people at a terminal: about a recording that goes on, and its probes, rewritten each
//! second, and about work that takes long.

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use clrscope_analysis::Query;
use clrscope_recording::layout::instrument;
use clrscope_recording::model::Process;

use crate::background::{Background, End};
use crate::live_probes::LiveProbes;
use crate::terminal::{Status, messages_on_terminal};

/// Between two lines; work that takes no longer than this has none.
pub(crate) const BETWEEN: Duration = Duration::from_secs(1);
/// After a look at the recording that took so long, because it is large, the next one waits for so
/// many times as long.
const LONG: (Duration, u32) = (Duration::from_millis(500), 20);

/// The line about a recording, while it is shown.
#[derive(Debug)]
pub(crate) struct Progress {
    is_shown: bool,
    began: Instant,
    next: Instant,
    /// Words about the end.
    ending: &'static str,
    probes: LiveProbes,
    status: Status,
}

impl Progress {
    /// The line, or nothing at all; `ending` says what ends the recording.
    pub(crate) fn new(is_shown: bool, ending: &'static str) -> Self {
        let now = Instant::now();
        let (probes, status) = Default::default();
        Self { is_shown, began: now, next: now + BETWEEN, ending, probes, status }
    }

    /// Shows the line when it is due.
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

    /// Takes the line away.
    pub(crate) fn end(&mut self) {
        if self.is_shown {
            self.status.clear();
        }
    }
}

/// A thread that shows something until this goes.
#[derive(Debug)]
pub(crate) struct Shown(#[expect(dead_code, reason = "it is there to go")] Option<Background>);

impl Shown {
    /// The line about the recording in a folder, while other code waits for the program's end;
    /// nothing unless `is_wanted` and stderr is a terminal.
    pub(crate) fn recording(is_wanted: bool, folder: PathBuf) -> Self {
        Self::start(is_wanted, move |end| {
            let mut line = Progress::new(true, "the program's end ends the recording");
            while end.is_not_within(BETWEEN) {
                line.update(&folder);
            }
            line.end();
        })
    }

    /// A line about work, once that has taken a second; nothing unless stderr is a terminal.
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
