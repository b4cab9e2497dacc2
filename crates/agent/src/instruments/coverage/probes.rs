//! A method's counters, and the code that adds to them.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use clr_profiler::il::{Code, Edits, Label};
use clrscope_coverage::MethodPlan;
use clrscope_recording::writer::MethodCounters;

/// The probes of a method: where they are, and their counters.
pub(super) struct Probes {
    /// Offsets of the points in the method's own code.
    points: Box<[u32]>,
    branches: Box<[Way]>,
    /// Of the points, then of the branches.
    counters: MethodCounters,
    counts_hits: bool,
    is_compiled: AtomicBool,
    /// Number of counters that the method's body leaves out.
    left_out: AtomicUsize,
}

/// A way on from a branch.
#[derive(Clone, Copy)]
struct Way {
    /// Offset of the branch.
    branch: u32,
    /// 0 on to the next instruction, else the number of the target, from 1.
    path: u32,
}

impl Probes {
    pub(super) fn new(plan: &MethodPlan, counters: MethodCounters, counts_hits: bool) -> Self {
        Self {
            points: plan.points.iter().map(|point| point.il_offset).collect(),
            branches: plan.branches.iter().map(|branch| Way { branch: branch.il_offset, path: branch.path }).collect(),
            counters,
            counts_hits,
            is_compiled: AtomicBool::new(false),
            left_out: AtomicUsize::new(0),
        }
    }

    /// The code that the method needs now.
    pub(super) fn edits(&self) -> Edits {
        let mut edits = Edits::new();
        for (number, offset) in self.points.iter().enumerate() {
            edits.before(Label::at(*offset), self.code(number));
        }
        for (number, way) in (self.points.len()..).zip(&self.branches) {
            let (branch, code) = (Label::at(way.branch), self.code(number));
            match way.path.checked_sub(1) {
                Some(target) => edits.on_target(branch, target as usize, code),
                None => edits.after(branch, code),
            }
        }
        edits
    }

    /// Code for a counter. What has fired, where hits are not counted, is as long and does nothing: bodies of one method agree about
    /// the offsets of all instructions.
    fn code(&self, number: usize) -> Code {
        let address = self.counters.address(number);
        if self.counts_hits {
            return Code::add_one(address);
        }
        let code = Code::set_one(address);
        if self.counters.has_fired(number) { code.blanked() } else { code }
    }

    /// Whether the method is compiled for the first time.
    pub(super) fn is_compiled_first(&self) -> bool {
        !self.is_compiled.swap(true, Ordering::Relaxed)
    }

    /// Whether the method's body can leave out more than it does.
    pub(super) fn have_fired_since_written(&self) -> bool {
        if self.counts_hits || self.left_out.load(Ordering::Relaxed) == self.counters.len() {
            return false;
        }
        let fired = (0..self.counters.len()).filter(|number| self.counters.has_fired(*number)).count();
        self.left_out.swap(fired, Ordering::Relaxed) < fired
    }

    /// Takes the method's record back.
    pub(super) fn withdraw(&self) {
        self.counters.withdraw();
    }
}
