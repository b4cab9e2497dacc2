//! Cost of a pair of hooks in the program itself, measured while it runs.
//!
//! A pair costs almost nothing in a function that waits for memory or for its own multiplications,
//! and its full cost in a function that calls all the time. So a constant is wrong by a factor of
//! three even within one program. Where a thread stays with one caller for a while, the helper
//! thread changes the work of that caller's hooks, for a tenth of a millisecond at a time. It
//! counts how many calls the thread makes per nanosecond of its CPU time with and without the
//! change:
//!
//! - *More work*: blocks full of edges to [`PADDING`](function::PADDING) are put before the
//!   caller's own, so that every enter searches them first. The less spare capacity the processor
//!   has during a call, the more this slows the call down. The comparison with the cost of the same
//!   blocks in the [calibration](super::calibrate)'s loop shows which part of the pair's cost in
//!   that loop applies here.
//! - *No clock* (`clock=tsc`): hooks skip the clock. The clock is most of their cost and is
//!   measured directly.
//!
//! Counts stay exact meanwhile. Only one word of four bytes changes in the tree, and it is restored
//! at once; a reader that finds it changed skips the padding blocks. The time that a thread spends
//! without its clock is charged at its next event to its position then, which is still at or below
//! the same caller.
//!
//! | module | what it holds |
//! |---|---|
//! | [`watch`] | position of a thread, and counts of calls below it |
//! | [`estimate`] | estimate of a cost with bounds from windows |

mod estimate;
mod watch;

use std::collections::HashMap;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use clrscope_recording::layout::{block, function, thread};
use clrscope_recording::model::PairCost;
use clrscope_recording::writer::{Piece, ThreadRecord};
use clrscope_agent_base::hooks::own;
use clrscope_agent_base::os::threads::nap;
use clrscope_agent_base::clock;

use super::calibrate::{Constants, PADDING_BLOCKS};
use super::shared::Shared;
use estimate::{WindowCost, CallerWindows};
use watch::{Activation, Calls};

/// Length of a window; the system adds about the same time again. It is long compared with the few
/// microseconds in which the helper thread itself can disturb, and short enough for programs that
/// never stay anywhere for a millisecond.
const WINDOW: Duration = Duration::from_micros(70);
/// A window that took longer than this (first number) shows that the machine has no spare
/// processor, and that the samples of threads were delayed. There are no more visits for a multiple
/// (second number) of the time that the window took.
const OVERDUE: (Duration, u32) = (Duration::from_millis(2), 20);
/// Windows with fewer calls than this do not count.
const CALLS_LEAST: u32 = 400;
/// Callers that take longer than this from call to call need no measurement: hooks take a few
/// hundredths of their time.
const MOST_NS: f64 = 100.0;
/// Callers that are followed.
const CALLERS: usize = 256;
/// Least pause between two visits: nanoseconds, and a fraction (one in so many) of the time so far.
const GAP_NS: (u64, u64) = (2_000_000, 400);

/// Kind of work that the hooks do in a window.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum WindowKind {
    Plain,
    Padded,
    NoClock,
    NoClockPadded,
}

/// Caller whose calls are watched.
struct Target {
    record: ThreadRecord,
    activation: Activation,
    /// First block of the activation's own calls.
    first: u32,
}

/// Measurement of a window.
struct Window {
    seen: WindowCost,
    /// Most frequent pair of caller and callee.
    busiest: (u32, u32),
}

/// The measurement of the hooks' cost in one process.
pub(super) struct CostExperiment {
    shared: &'static Shared,
    has_clock: bool,
    callers: HashMap<u32, CallerWindows>,
    /// The first padding block of each caller, by the caller's first block. Each chain keeps its
    /// own padding for ever: a thread may be preempted in the middle of it.
    paddings: HashMap<u32, u32>,
    piece: Piece,
    turn: usize,
    /// Pause before the next visit on a machine without a spare processor.
    overdue_ns: u64,
    began_ns: u64,
    due_ns: u64,
}

impl CostExperiment {
    pub(super) fn new(shared: &'static Shared, has_clock: bool, now_ns: u64) -> Self {
        Self {
            shared,
            has_clock,
            callers: HashMap::new(),
            paddings: HashMap::new(),
            piece: Piece { next: 0, end: 0 },
            turn: 0,
            overdue_ns: 0,
            began_ns: now_ns,
            due_ns: now_ns,
        }
    }

    /// Does a visit (a few measurements at one busy thread), if one is due. Returns the new cost
    /// for a caller, if there is one.
    pub(super) fn visit(&mut self, now_ns: u64, busy: &[ThreadRecord], constants: &Constants) -> Option<PairCost> {
        if now_ns < self.due_ns || busy.is_empty() {
            return None;
        }
        self.turn += 1;
        let record = busy[self.turn % busy.len()];
        let cost = self.measure(record, now_ns, constants);
        let so_far = now_ns.saturating_sub(self.began_ns);
        self.due_ns = now_ns + GAP_NS.0.max(so_far / GAP_NS.1).max(std::mem::take(&mut self.overdue_ns));
        cost
    }

    fn measure(&mut self, record: ThreadRecord, now_ns: u64, constants: &Constants) -> Option<PairCost> {
        let (target, plain) = self.find(record)?;
        let (caller, callee) = plain.busiest;
        let known = self.callers.get(&caller);
        if known.is_some_and(|windows| windows.due_ns > now_ns) || known.is_none() && self.callers.len() >= CALLERS {
            return None;
        }
        let mut found = vec![(WindowKind::Plain, plain.seen)];
        for kind in self.changes(&target, &plain) {
            let Some(window) = self.window(&target, kind) else { break };
            found.push((kind, window.seen));
        }
        let windows = self.callers.entry(caller).or_default();
        windows.visited(now_ns, found);
        let cost = windows.report(self.has_clock, constants)?;
        Some(PairCost { caller, callee, cost })
    }

    /// Kinds of windows worth measuring: padding only where the caller itself makes most of the
    /// calls.
    fn changes(&self, target: &Target, plain: &Window) -> Vec<WindowKind> {
        let own = target.first != 0 && plain.seen.direct < plain.seen.all * 2.0;
        match (self.has_clock, own) {
            (false, true) => vec![WindowKind::Padded],
            (false, false) => Vec::new(),
            (true, true) => vec![WindowKind::NoClock, WindowKind::NoClockPadded],
            (true, false) => vec![WindowKind::NoClock],
        }
    }

    /// The innermost activation that lasts for a while, with a first window of its calls.
    fn find(&mut self, record: ThreadRecord) -> Option<(Target, Window)> {
        let activations = watch::activations(self.shared, record);
        let cpu_before = cpu(record)?;
        // Mostly it is one of the two activations on top; then this is a complete window.
        let before: Vec<_> =
            activations.iter().take(2).map(|on| watch::count_calls(self.shared, on, on.first_block(self.shared))).collect();
        self.nap()?;
        let at = activations.iter().position(|activation| activation.lasts(self.shared, record))?;
        let activation = activations[at];
        let target = Target { record, activation, first: activation.first_block(self.shared) };
        let window = match before.into_iter().nth(at) {
            Some(before) => self.compare(
                before?,
                watch::count_calls(self.shared, &target.activation, target.first)?,
                cpu(record)? - cpu_before,
            )?,
            None => self.window(&target, WindowKind::Plain)?,
        };
        Some((target, window))
    }

    /// Sleeps for a window; `None` if the sleep took much longer.
    fn nap(&mut self) -> Option<()> {
        let began = Instant::now();
        nap(WINDOW);
        let took = began.elapsed();
        if took > OVERDUE.0 {
            self.overdue_ns = (took * OVERDUE.1).as_nanos() as u64;
            return None;
        }
        Some(())
    }

    fn compare(&self, before: Calls, after: Calls, cpu_ns: u64) -> Option<Window> {
        let since = after.since(&before)?;
        let per = |calls: u32| if calls >= CALLS_LEAST { cpu_ns as f64 / f64::from(calls) } else { f64::INFINITY };
        let seen = WindowCost { direct: per(since.direct), all: per(since.all) };
        (seen.all <= MOST_NS).then_some(Window { seen, busiest: since.busiest })
    }

    /// Measures a window with changed hooks; `None` when the thread did not stay with the caller.
    fn window(&mut self, target: &Target, kind: WindowKind) -> Option<Window> {
        let padded = matches!(kind, WindowKind::Padded | WindowKind::NoClockPadded);
        let padding = if padded { self.padding(target.first)? } else { target.first };
        let no_clock = matches!(kind, WindowKind::NoClock | WindowKind::NoClockPadded);
        let before = watch::count_calls(self.shared, &target.activation, target.first)?;
        let off = target.record.u32(own::CLOCK_OFF);
        off.store(u32::from(no_clock), Ordering::Release);
        // SAFETY: the caller's first block, or those of `padding`, which lead to it; a target has a
        // first block.
        unsafe { target.activation.set_first_block(self.shared, padding) };
        let cpu_before = cpu(target.record);
        let napped = self.nap();
        let cpu_after = cpu(target.record);
        // SAFETY: the block that was there before.
        unsafe { target.activation.set_first_block(self.shared, target.first) };
        off.store(0, Ordering::Release);
        napped?;
        let after = watch::count_calls(self.shared, &target.activation, target.first)?;
        let stayed = target.activation.lasts(self.shared, target.record);
        let window = self.compare(before, after, cpu_after?.checked_sub(cpu_before?)?);
        window.filter(|_| stayed)
    }

    /// Returns the padding blocks that lead to the caller's first block.
    fn padding(&mut self, first: u32) -> Option<u32> {
        if let Some(&padding) = self.paddings.get(&first) {
            return Some(padding);
        }
        let stride = self.shared.stride;
        if self.piece.next + stride * PADDING_BLOCKS as u32 > self.piece.end {
            self.piece = self.shared.arena.allocate_piece(0)?;
        }
        let padding = self.piece.next;
        if padding + stride * PADDING_BLOCKS as u32 > self.piece.end {
            return None;
        }
        self.piece.next += stride * PADDING_BLOCKS as u32;
        for number in 0..PADDING_BLOCKS as u32 {
            let at = padding + number * stride;
            (0..block::EDGES).for_each(|slot| self.shared.set_key(at, slot, function::PADDING, false));
            // SAFETY: the next of the blocks that were just taken, or the caller's own.
            unsafe { self.shared.set_next(at, if number + 1 == PADDING_BLOCKS as u32 { first } else { at + stride }) };
        }
        self.paddings.insert(first, padding);
        Some(padding)
    }
}

fn cpu(record: ThreadRecord) -> Option<u64> {
    clock::thread_cpu_ns(record.u32(thread::OS_ID).load(Ordering::Relaxed))
}
