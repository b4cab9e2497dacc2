//! Reads another thread while it runs: its current position, and counts of calls below it.

use std::sync::atomic::Ordering;

use clrscope_recording::layout::block;
use clrscope_recording::writer::ThreadRecord;
use clrscope_agent_base::hooks::own;

use super::super::frames::{Frame, words};
use super::super::shared::Shared;
use super::super::slow::top_of;

/// Frames on top of a thread's stack that are looked at.
const FRAMES_MOST: usize = 64;
/// Most blocks below a caller that are added up; callers with more are not measured.
const BLOCKS_MOST: usize = 96;

/// A function call that a thread is in.
#[derive(Debug, Clone, Copy)]
pub(super) struct Activation {
    at: *mut Frame,
    sp: usize,
    edge: *mut u32,
    /// Calls of the edge so far, modulo 2^32.
    entered: u32,
}

impl Activation {
    fn read(shared: &Shared, at: *mut Frame) -> Self {
        // SAFETY: frames between bottom and top lie in the thread's shadow stack.
        let (sp, word) = unsafe { words(at) };
        let (sp, word) = (sp.load(Ordering::Relaxed), word.load(Ordering::Relaxed));
        let edge = std::ptr::with_exposed_provenance_mut(word & !3);
        Self { at, sp, edge, entered: if edge.is_null() { 0 } else { shared.calls_of(edge) } }
    }

    /// Whether the thread is still in this activation.
    pub(super) fn lasts(&self, shared: &Shared, record: ThreadRecord) -> bool {
        if top_of(record).is_none_or(|top| top < self.at) {
            return false;
        }
        let now = Self::read(shared, self.at);
        now.sp == self.sp && now.edge == self.edge && now.entered == self.entered
    }

    /// The first block of the activation's calls; 0 if it has made none.
    pub(super) fn first_block(&self, shared: &Shared) -> u32 {
        shared.first_block(self.edge)
    }

    /// Changes the first block of the activation's calls. `first` = 0 changes nothing.
    ///
    /// # Safety
    /// `first` must be the block that was there before, or a block that was taken from the arena
    /// and leads to it. There must have been a first block: the activation's thread writes the
    /// field once, from 0.
    pub(super) unsafe fn set_first_block(&self, shared: &Shared, first: u32) {
        if first != 0 {
            // SAFETY: as the caller promises.
            unsafe { shared.set_first_block(self.edge, first) };
        }
    }
}

/// The functions that a thread is in, innermost first. Only a limited number is looked at.
pub(super) fn activations(shared: &Shared, record: ThreadRecord) -> Vec<Activation> {
    let Some(top) = top_of(record) else { return Vec::new() };
    let bottom = record.u64(own::FRAMES).load(Ordering::Relaxed) as usize;
    let depth = (top.addr() - bottom) / size_of::<Frame>();
    let all = (0..depth.min(FRAMES_MOST)).map(|down| Activation::read(shared, top.wrapping_sub(down)));
    all.filter(|activation| !activation.edge.is_null()).collect()
}

/// Numbers of calls of each edge below a caller, at one moment.
pub(super) struct Calls {
    edges: Vec<Edge>,
}

struct Edge {
    caller: u32,
    callee: u32,
    direct: bool,
    /// Modulo 2^32.
    calls: u32,
}

/// Calls between two samples.
pub(super) struct CallsBetween {
    /// Calls that the caller itself made.
    pub(super) direct: u32,
    /// Calls that the caller and everything below it made.
    pub(super) all: u32,
    /// The functions at the two ends of the edge that was called most.
    pub(super) busiest: (u32, u32),
}

/// Counts the calls below a caller, from its first block on; `None` if there are too many blocks.
pub(super) fn count_calls(shared: &Shared, caller: &Activation, first: u32) -> Option<Calls> {
    let mut edges = Vec::new();
    let mut chains = vec![(first, shared.key_of(caller.edge), true)];
    let mut blocks = 0;
    while let Some((mut at, caller, direct)) = chains.pop() {
        while at != 0 {
            blocks += 1;
            if blocks > BLOCKS_MOST {
                return None;
            }
            for slot in 0..block::EDGES {
                let callee = shared.key(at, slot);
                if callee == 0 {
                    break;
                }
                edges.push(Edge { caller, callee, direct, calls: shared.calls(at, slot) });
                chains.push((shared.first_block(shared.edge(at, slot)), callee, false));
            }
            at = shared.next(at);
        }
    }
    Some(Calls { edges })
}

impl Calls {
    /// Calls since `before`; `None` if there are new paths, or if nothing was called.
    pub(super) fn since(&self, before: &Self) -> Option<CallsBetween> {
        if self.edges.len() != before.edges.len() {
            return None;
        }
        let (mut direct, mut all, mut busiest) = (0_u32, 0_u32, None);
        for (now, then) in self.edges.iter().zip(&before.edges) {
            let calls = now.calls.wrapping_sub(then.calls);
            all = all.wrapping_add(calls);
            direct = direct.wrapping_add(if now.direct { calls } else { 0 });
            if busiest.is_none_or(|(most, _)| calls > most) {
                busiest = Some((calls, (now.caller, now.callee)));
            }
        }
        busiest.map(|(_, busiest)| CallsBetween { direct, all, busiest })
    }
}
