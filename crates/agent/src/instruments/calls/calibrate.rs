//! Cost of a pair of hooks (enter and leave), measured in short bursts for as long as the program
//! runs.
//!
//! The helper thread calls the real hooks from a loop of its own, over a tree and a shadow stack
//! that no other code sees, and subtracts the cost of the same loop without hooks. The loop's
//! callee looks like compiled code: a frame, three saved registers, the hook's two arguments, the
//! call. Bursts are spread over the run, so that a busy sibling core or a slower clock affects them
//! as it affects the program. Medians exclude interrupted bursts.
//!
//! The cost of a pair depends on the code around it, so three loops give three numbers:
//!
//! - *overlapped*: alongside a chain of multiplications, which the processor executes meanwhile;
//! - *alone*: nothing but calls, each waiting for the stack pointer that the previous call has
//!   stored;
//! - *cold*: every call uses another block of a tree as large as the program's own, in scattered
//!   order.
//!
//! *Alone* is the cost for functions that do little else than call and be called. The cost matters
//! most there, so this number is reported for callers that could not be measured in the program
//! itself (see [`hook_cost`](super::hook_cost)). The bounds are the least and the largest of the
//! three numbers, with a margin.

use std::ffi::c_void;

use clrscope_recording::layout::{block, function, thread};
use clrscope_recording::model::HookCost;
use clrscope_agent_base::hooks::own;
use clrscope_agent_base::hooks::{current_record, set_current_record};
use clrscope_agent_base::clock;

use super::frames::{Frame, frame};
use super::hooks;
use super::recent::{self, Recent};
use crate::hook_sets::EntryPoints;

/// Number of padding blocks, which contain no callee, that are put before a caller's own blocks.
/// Used here and in experiments in the program itself.
pub(super) const PADDING_BLOCKS: usize = 3;
/// Pairs in a pass of one loop.
const PAIRS: usize = 400;
/// Passes of a loop in a burst. The fastest counts, since the first pass finds cold caches and
/// predictors after a sleep.
const PASSES: usize = 4;
/// The cold loop goes through as many blocks as the program's tree has, within these bounds.
const COLD_BLOCKS: (usize, usize) = (64, 32 << 10);
/// Bursts that are remembered; later ones replace the oldest.
const REMEMBERED: usize = 128;
/// Part of a pair's cost that falls on the caller's time where hooks have no clock. A thread's
/// position moves at the end of enter and close to the end of leave, so all of enter and the end of
/// leave belong to the caller.
const ENTER_PART: f64 = 0.6;
/// Factor by which a pair may cost more than measured: compiled code around hooks also moves values
/// out of registers, which the loop does not do.
const MARGIN: f64 = 1.5;
/// The one function of the private tree.
const FUNCTION: u32 = function::FIRST;

type Loop = unsafe extern "C" fn(usize, *const c_void, *const c_void, *mut u32, usize, *mut Frame);

// Defined in `arch`.
unsafe extern "C" {
    fn clrscope_walk_hooked(
        pairs: usize,
        enter: *const c_void,
        leave: *const c_void,
        edge: *mut u32,
        step: usize,
        frame: *mut Frame,
    );
    fn clrscope_walk_plain(
        pairs: usize,
        enter: *const c_void,
        leave: *const c_void,
        edge: *mut u32,
        step: usize,
        frame: *mut Frame,
    );
    fn clrscope_work_hooked(
        pairs: usize,
        enter: *const c_void,
        leave: *const c_void,
        edge: *mut u32,
        step: usize,
        frame: *mut Frame,
    );
    fn clrscope_work_plain(
        pairs: usize,
        enter: *const c_void,
        leave: *const c_void,
        edge: *mut u32,
        step: usize,
        frame: *mut Frame,
    );
}

/// Distance from a block to the block that its calls lead to: coprime to any number of blocks that
/// we use.
const STEP: usize = 12_289;

/// Number of the block that holds the loop's own calls, in a tree of `blocks` blocks.
fn first_of(blocks: usize) -> usize {
    1 + STEP % blocks
}

/// A thread's record, for the hooks alone.
#[repr(align(128))]
struct Record([u64; thread::BYTES / 8]);

/// A tree of `blocks` blocks, a shadow stack and a record that only bursts use.
struct Bench {
    tree: Vec<[u64; block::STRIDE_TSC / 8]>,
    /// Offset in `tree` of a multiple of 128, in bytes.
    start: usize,
    blocks: usize,
    stride: usize,
    frames: Vec<Frame>,
    record: Box<Record>,
    points: EntryPoints,
}

impl Bench {
    /// Every block's second edge leads to another block, far away; every block's first edge is
    /// `FUNCTION`.
    fn new(points: EntryPoints, stride: usize, blocks: usize) -> Self {
        let tree = vec![[0; block::STRIDE_TSC / 8]; (blocks + 2 + PADDING_BLOCKS) * stride / block::STRIDE_TSC + 2];
        let start = tree.as_ptr().addr().next_multiple_of(128) - tree.as_ptr().addr();
        let frames = vec![frame(usize::MAX, std::ptr::null_mut()); 8];
        let mut bench =
            Self { tree, start, blocks, stride, frames, record: Box::new(Record([0; thread::BYTES / 8])), points };
        for number in 1..=blocks {
            let other = 1 + (number * STEP) % blocks;
            bench.set(number, block::KEYS, FUNCTION);
            bench.set(number, block::CHILDREN + 4, (other * stride) as u32);
        }
        for padding in 0..PADDING_BLOCKS {
            let at = blocks + 1 + padding;
            (0..block::EDGES).for_each(|slot| bench.set(at, block::KEYS + slot * 4, function::PADDING));
            let next = if padding + 1 == PADDING_BLOCKS { first_of(blocks) } else { at + 1 };
            bench.set(at, block::NEXT, (next * stride) as u32);
        }
        bench
    }

    /// Puts the padding blocks before the block of the loop, or removes them.
    fn padding(&mut self, on: bool) {
        let first = if on { self.blocks + 1 } else { first_of(self.blocks) };
        self.set(1, block::CHILDREN + 4, (first * self.stride) as u32);
    }

    fn base(&mut self) -> *mut u8 {
        self.tree.as_mut_ptr().cast::<u8>().wrapping_add(self.start)
    }

    fn set(&mut self, number: usize, field: usize, value: u32) {
        let at = number * self.stride + field;
        // SAFETY: `new` made room for blocks 0 to `blocks`, the padding behind them, and one more.
        unsafe { self.base().add(at).cast::<u32>().write(value) };
    }

    /// Sets whether hooks with a clock skip it.
    fn clock_off(&mut self, off: bool) {
        self.record.0[own::CLOCK_OFF / 8] = u64::from(off) << (own::CLOCK_OFF % 8 * 8);
    }

    /// Ticks charged to `FUNCTION` in the first block.
    fn ticks(&mut self, number: usize) -> u64 {
        // SAFETY: as above; with a clock blocks are twice as large.
        unsafe { self.base().add(number * self.stride + block::TICKS).cast::<u64>().read() }
    }

    /// Ticks per call of `run`, hooks on.
    fn run(&mut self, run: Loop, pairs: usize, step: usize) -> f64 {
        let edge = self.base().wrapping_add(self.stride + block::CHILDREN + 4).cast::<u32>();
        let base = self.base() as u64;
        self.frames[0] = frame(usize::MAX, edge);
        let lowest = self.frames.as_mut_ptr();
        self.record.0[own::TOP / 8] = lowest as u64;
        self.record.0[own::BASE / 8] = base;
        self.record.0[own::LAST_TICKS / 8] = clock::ticks();
        let before = current_record();
        set_current_record((&raw mut self.record.0).cast());
        let began = clock::ticks();
        // SAFETY: the loops keep the C convention; hooks find a record whose top frame, whose edge
        // and whose blocks lie in this value, with an edge for `FUNCTION` in each block, so that no
        // hook leaves its fast path.
        unsafe { run(pairs, self.points.enter, self.points.leave, edge, step, lowest) };
        let took = clock::ticks().wrapping_sub(began);
        set_current_record(before);
        took as f64 / pairs as f64
    }

    /// Ticks that hooks add to a call, from the fastest of some passes.
    fn pair(&mut self, hooked: Loop, plain: Loop, pairs: usize, step: usize) -> f64 {
        let mut fastest = |run| (0..PASSES).map(|_| self.run(run, pairs, step)).fold(f64::INFINITY, f64::min);
        fastest(hooked) - fastest(plain)
    }
}

// SAFETY: the pointers lead to code and into the value's own memory, which moves with it.
unsafe impl Send for Bench {}

/// The last bursts of one loop, in ticks per call.
type Bursts = Recent<f64, REMEMBERED>;

/// Median of bursts, at least 0: hooks never save time.
fn median(bursts: &Bursts) -> f64 {
    recent::median(bursts.all().to_vec()).max(0.0)
}

/// Bursts until the numbers are good enough for comparisons.
const CONSTANTS_AFTER: u32 = 4;

/// Costs of a pair of hooks in the loop *alone*.
#[derive(Debug, Clone, Copy)]
pub(super) struct Constants {
    /// Nanoseconds of a pair of hooks that do not read the clock.
    pub(super) counting_ns: f64,
    /// Nanoseconds that the padding blocks add.
    pub(super) padding_ns: f64,
    /// Part of a pair's cost that is charged to the callee's time.
    pub(super) at_leave: f64,
}

/// The measurement of one process.
pub(super) struct Calibration {
    bench: Bench,
    alone: Bursts,
    overlapped: Bursts,
    /// Part of a pair that a clock in the hooks charges to the callee.
    callee: Bursts,
    /// A pair without its clock.
    counting: Bursts,
    /// Cost that padding blocks add to a pair without its clock.
    padding: Bursts,
    cold: f64,
    has_clock: bool,
    count: u32,
    report_at: u32,
    began_ticks: u64,
    pub(super) began_ns: u64,
}

impl Calibration {
    pub(super) fn new(has_clock: bool, now_ns: u64) -> Self {
        let points = if has_clock { hooks::tsc() } else { hooks::sampled() };
        let stride = if has_clock { block::STRIDE_TSC } else { block::STRIDE_SAMPLED };
        Self {
            bench: Bench::new(points, stride, 4),
            alone: Bursts::default(),
            overlapped: Bursts::default(),
            callee: Bursts::default(),
            counting: Bursts::default(),
            padding: Bursts::default(),
            cold: 0.0,
            has_clock,
            count: 0,
            report_at: 1,
            began_ticks: clock::ticks(),
            began_ns: now_ns,
        }
    }

    /// Runs one burst of each loop. Returns the costs if enough is new, otherwise `None`: costs are
    /// due after the first bursts, then each time the number of bursts has doubled. `tree_bytes` is
    /// the size of the program's tree.
    pub(super) fn burst(&mut self, now_ns: u64, tree_bytes: usize) -> Option<HookCost> {
        let charged = first_of(self.bench.blocks);
        let before = self.bench.ticks(charged);
        self.alone.add(self.bench.pair(clrscope_walk_hooked, clrscope_walk_plain, PAIRS, 0));
        let within = self.bench.ticks(charged).wrapping_sub(before) as f64 / (PASSES * PAIRS) as f64;
        self.callee.add(within);
        self.bench.clock_off(true);
        let counting = self.bench.pair(clrscope_walk_hooked, clrscope_walk_plain, PAIRS, 0);
        self.bench.padding(true);
        let padded = self.bench.pair(clrscope_walk_hooked, clrscope_walk_plain, PAIRS, 0);
        self.bench.padding(false);
        self.bench.clock_off(false);
        self.counting.add(counting);
        self.padding.add(padded - counting);
        self.overlapped.add(self.bench.pair(clrscope_work_hooked, clrscope_work_plain, PAIRS, 0));
        self.count += 1;
        // The length of a tick is known once some time has passed.
        if self.count < self.report_at || now_ns < self.began_ns + 1_000_000 {
            return None;
        }
        self.report_at = self.count * 2;
        self.cold = self.measure_cold(tree_bytes);
        Some(self.cost(self.ns_per_tick(now_ns)))
    }

    fn ns_per_tick(&self, now_ns: u64) -> f64 {
        (now_ns - self.began_ns) as f64 / clock::ticks().wrapping_sub(self.began_ticks).max(1) as f64
    }

    /// Constants for the measurements in the program itself; `None` until they are known.
    pub(super) fn constants(&self, now_ns: u64) -> Option<Constants> {
        if self.count < CONSTANTS_AFTER || now_ns < self.began_ns + 1_000_000 {
            return None;
        }
        let ns_per_tick = self.ns_per_tick(now_ns);
        Some(Constants {
            counting_ns: median(&self.counting) * ns_per_tick,
            padding_ns: median(&self.padding) * ns_per_tick,
            at_leave: self.at_leave(),
        })
    }

    fn measure_cold(&self, tree_bytes: usize) -> f64 {
        let stride = self.bench.stride;
        let blocks = (tree_bytes / stride).clamp(COLD_BLOCKS.0, COLD_BLOCKS.1);
        let mut bench = Bench::new(self.bench.points, stride, blocks);
        bench.pair(clrscope_walk_hooked, clrscope_walk_plain, blocks - 1, stride).max(0.0)
    }

    /// Part of a pair's cost that falls on the callee's time.
    fn at_leave(&self) -> f64 {
        let alone = median(&self.alone);
        if self.has_clock && alone > 0.0 { (median(&self.callee) / alone).clamp(0.0, 1.0) } else { 1.0 - ENTER_PART }
    }

    fn cost(&self, ns_per_tick: f64) -> HookCost {
        let (alone, overlapped) = (median(&self.alone), median(&self.overlapped));
        let at_leave = self.at_leave();
        HookCost {
            enter_ns: alone * (1.0 - at_leave) * ns_per_tick,
            leave_ns: alone * at_leave * ns_per_tick,
            pair_low_ns: alone.min(overlapped) * ns_per_tick,
            pair_high_ns: (alone * MARGIN).max(overlapped).max(self.cold) * ns_per_tick,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use clrscope_recording::writer::monotonic_ns;

    fn measured(has_clock: bool) -> HookCost {
        let mut calibration = Calibration::new(has_clock, monotonic_ns());
        let enough = monotonic_ns() + 20_000_000;
        let mut cost = None;
        for burst in 0.. {
            if burst >= 64 && monotonic_ns() >= enough {
                break;
            }
            cost = calibration.burst(monotonic_ns(), 1 << 20).or(cost);
        }
        cost.expect("enough bursts")
    }

    #[test]
    fn hooks_with_a_clock_cost_more_and_bounds_hold_the_likely_cost() {
        let (sampled, tsc) = (measured(false), measured(true));
        for cost in [sampled, tsc] {
            let pair = cost.enter_ns + cost.leave_ns;
            assert!(0.1 < pair && pair.is_finite(), "{cost:?}");
            assert!(cost.pair_low_ns <= pair * 1.001 && pair <= cost.pair_high_ns * 1.001, "{cost:?}");
        }
        // Two clock reads alone take longer than the rest of a pair.
        assert!(tsc.enter_ns + tsc.leave_ns > 2.0 * (sampled.enter_ns + sampled.leave_ns), "{sampled:?} {tsc:?}");
        assert!(current_record().is_null(), "the thread's own record was put back");
    }

    #[test]
    fn every_pair_is_counted_on_the_fast_path() {
        let mut bench = Bench::new(hooks::sampled(), block::STRIDE_SAMPLED, 4);
        bench.run(clrscope_walk_hooked, 1_000, 0);
        let at = first_of(4) * block::STRIDE_SAMPLED + block::COUNTS;
        // SAFETY: within the tree.
        let count = unsafe { bench.base().add(at).cast::<u32>().read() };
        assert_eq!(count, 1_000);
        assert_eq!(bench.record.0[own::TOP / 8], bench.frames.as_ptr() as u64, "every frame was popped");
    }
}
