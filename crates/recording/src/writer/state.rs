//! The state of a process: clocks, sign of life, losses.

use std::io;
use std::path::Path;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

use super::control::{Answer, Command};
use super::fields::Fields;
use super::mapping::Segment;
use crate::layout::{kind, state};
use crate::model::LossReason;

/// The state segment. Every method is an atomic store, so any thread may call it in any context,
/// also in hooks.
#[derive(Debug)]
pub struct StateWriter {
    segment: Segment,
    fields: Fields<{ state::BYTES }>,
}

impl StateWriter {
    /// Creates the file.
    ///
    /// # Errors
    /// Errors of [`Segment::create`].
    pub fn create(path: &Path) -> io::Result<Self> {
        let segment = Segment::create(path, kind::STATE, state::BYTES, state::BYTES)?;
        // SAFETY: the content is as large, backed from the start, begins at a page and stays
        // mapped.
        let fields = unsafe { Fields::at(segment.content()) };
        Ok(Self { segment, fields })
    }

    /// The mapped file.
    #[must_use]
    pub fn segment(&self) -> &Segment {
        &self.segment
    }

    fn u64(&self, at: usize) -> &AtomicU64 {
        self.fields.u64(at)
    }

    fn u32(&self, at: usize) -> &AtomicU32 {
        self.fields.u32(at)
    }

    /// Notes the start of the recording.
    pub fn start(&self, pid: u32, mono_ns: u64, unix_ns: u64, ticks: u64) {
        self.u32(state::PID).store(pid, Ordering::Relaxed);
        self.u64(state::MONO_START).store(mono_ns, Ordering::Relaxed);
        self.u64(state::UNIX_START).store(unix_ns, Ordering::Relaxed);
        self.u64(state::TICKS_START).store(ticks, Ordering::Relaxed);
        self.alive(mono_ns, ticks, 0);
    }

    /// Notes that only the events of the last `ns` nanoseconds are kept.
    pub fn keeps(&self, ns: u64) {
        self.u64(state::KEPT).store(ns, Ordering::Relaxed);
    }

    /// Notes that a trigger has fired, so that the recording is to be written out. The log
    /// describes the event.
    pub fn triggered(&self) {
        self.u32(state::TRIGGERED).fetch_add(1, Ordering::Release);
    }

    /// Notes a sign of life.
    pub fn alive(&self, mono_ns: u64, ticks: u64, cpu_ns: u64) {
        self.u64(state::TICKS_LAST).store(ticks, Ordering::Relaxed);
        self.u64(state::CPU).store(cpu_ns, Ordering::Relaxed);
        self.u64(state::MONO_LAST).store(mono_ns, Ordering::Release);
    }

    /// Notes that the process ended regularly.
    pub fn ended(&self) {
        self.u32(state::FLAGS).fetch_or(state::FLAG_ENDED, Ordering::Release);
    }

    /// Whether a stop was requested from outside.
    #[must_use]
    pub fn stop_requested(&self) -> bool {
        self.u32(state::STOP).load(Ordering::Acquire) != 0
    }

    /// Requests a stop, like a request from outside.
    pub fn request_stop(&self) {
        self.u32(state::STOP).store(1, Ordering::Release);
    }

    /// Notes that recording has stopped.
    pub fn stopped(&self) {
        self.u32(state::STOPPED).store(1, Ordering::Release);
    }

    /// Notes that the runtime has detached the agent, or that the agent sleeps: nothing uses the
    /// recording any more. Must be the last note.
    pub fn detached(&self) {
        self.u32(state::STOPPED).store(state::DETACHED, Ordering::Release);
    }

    /// Notes that the agent polls for commands from now on.
    pub fn listens(&self) {
        self.u32(state::LISTENS).store(1, Ordering::Release);
    }

    /// The last command from outside and its number, if the command has no [answer](Self::answer)
    /// yet. The second value is `None` for an unknown command. Allocates the name, so hooks must
    /// not call it.
    #[must_use]
    pub fn command(&self) -> Option<(u32, Option<Command>)> {
        let number = self.u32(state::COMMAND).load(Ordering::Acquire);
        if number == self.u32(state::ANSWERED).load(Ordering::Relaxed) {
            return None;
        }
        let length = self.u32(state::COMMAND_NAME_BYTES).load(Ordering::Relaxed) as usize;
        let words = (0..state::COMMAND_NAME_MOST / 4).map(|word| self.u32(state::COMMAND_NAME + word * 4));
        let bytes: Vec<u8> = words.flat_map(|word| word.load(Ordering::Relaxed).to_le_bytes()).collect();
        let name = String::from_utf8_lossy(&bytes[..length.min(bytes.len())]).into_owned();
        Some((number, Command::from_parts(self.u32(state::COMMAND_KIND).load(Ordering::Relaxed), name)))
    }

    /// Answers a command.
    pub fn answer(&self, number: u32, answer: Answer) {
        let (kind, about) = answer.numbers();
        self.u32(state::ANSWER).store(kind, Ordering::Relaxed);
        self.u32(state::ANSWER_NUMBER).store(about, Ordering::Relaxed);
        self.u32(state::ANSWERED).store(number, Ordering::Release);
    }

    /// Counts losses. `mono_ns` is their time.
    pub fn lose(&self, reason: LossReason, count: u64, mono_ns: u64) {
        let at = state::LOSSES + reason as usize * state::LOSS_BYTES;
        // The first writer sets the first time; a race between two firsts is a few nanoseconds.
        let _ = self.u64(at + 8).compare_exchange(0, mono_ns, Ordering::Relaxed, Ordering::Relaxed);
        self.u64(at + 16).store(mono_ns, Ordering::Relaxed);
        self.u64(at).fetch_add(count, Ordering::Relaxed);
    }

    /// Number of losses for this reason so far.
    #[must_use]
    pub fn lost(&self, reason: LossReason) -> u64 {
        self.u64(state::LOSSES + reason as usize * state::LOSS_BYTES).load(Ordering::Relaxed)
    }
}
