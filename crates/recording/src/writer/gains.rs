//! Gains of the trees of a process up to each boundary between parts: `parts.log`.

use std::fs;
use std::path::PathBuf;

use super::LogWriter;
use crate::gains::{GainRecord, RECORD_BYTES, kind};
use crate::layout::PARTS_BEFORE;
use crate::varint::zigzag;

/// Address space for the log: marks may be many, and trees large.
const CAPACITY: usize = 16 << 30;

/// The log; its file is made at the first boundary with a gain. Used by one thread, which may wait
/// for the disk.
#[derive(Debug)]
pub struct GainLog {
    path: PathBuf,
    log: Option<LogWriter>,
    /// Number of the next boundary, from 1.
    boundary: u32,
    calls: GainRecord,
    ticks: GainRecord,
    times: GainRecord,
    /// Whether there was no room for a gain. From then on the gains of the parts are unknown.
    is_broken: bool,
}

impl GainLog {
    pub(super) fn new(path: PathBuf) -> Self {
        let [calls, ticks, times] = Default::default();
        Self { path, log: None, boundary: 1, calls, ticks, times, is_broken: false }
    }

    /// Notes that the count of an edge was `before` at the previous boundary and is `now`.
    pub fn calls(&mut self, edge: u32, before: u32, now: u32) {
        self.calls.add(self.boundary, edge, &[zigzag(i64::from(now) - i64::from(before))]);
        if self.calls.bytes.len() >= RECORD_BYTES {
            self.flush();
        }
    }

    /// Notes that an edge gained `gained` ticks since the previous boundary.
    pub fn ticks(&mut self, edge: u32, gained: u64) {
        self.ticks.add(self.boundary, edge, &[gained]);
        if self.ticks.bytes.len() >= RECORD_BYTES {
            self.flush();
        }
    }

    /// Notes that an edge gained this much time since the previous boundary.
    pub fn times(&mut self, edge: u32, wall_ns: u64, cpu_ns: u64) {
        self.times.add(self.boundary, edge, &[wall_ns, cpu_ns]);
        if self.times.bytes.len() >= RECORD_BYTES {
            self.flush();
        }
    }

    /// Notes that the gains of the parts are not known from now on.
    pub fn give_up(&mut self) {
        self.is_broken = true;
    }

    /// Ends the records of a boundary. Returns the boundary's number, or 0 if there was no room for
    /// all records.
    pub fn end_boundary(&mut self) -> u32 {
        self.flush();
        let number = self.boundary;
        self.boundary += 1;
        if self.is_broken { 0 } else { number }
    }

    /// Begins a new file after the end of a period; the previous file keeps the records of that
    /// period. There are never more than these two files.
    pub fn begin_another(&mut self) {
        let before = self.path.with_file_name(PARTS_BEFORE);
        let moved = match &self.log {
            Some(_) => fs::rename(&self.path, before),
            // No tree gained anything in this period.
            None => fs::remove_file(before),
        };
        // A missing file means the same. A file that can't be moved goes on to grow.
        if moved.is_ok() {
            self.log = None;
        }
    }

    /// Writes out the content held in private memory.
    pub fn write_out(&self) {
        // Tried again at the next round.
        let _ = self.log.as_ref().map(|log| log.segment().write_out());
    }

    fn flush(&mut self) {
        let records = [(kind::CALLS, &mut self.calls), (kind::TICKS, &mut self.ticks), (kind::TIMES, &mut self.times)];
        for (kind, record) in records.into_iter().filter(|(_, record)| !record.bytes.is_empty()) {
            if self.log.is_none() {
                self.log = LogWriter::create_with(&self.path, CAPACITY).ok();
            }
            self.is_broken |= !self.log.as_ref().is_some_and(|log| log.append(kind, &record.bytes));
            record.clear();
        }
    }
}
