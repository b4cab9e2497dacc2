//! From samples to numbers of stacks in the recording's table.

use clrscope_recording::model::{StackFrame, ThreadState};

use super::raw::RawSample;
use super::unwind::{Ending, StackUnwinder, Touched};
use crate::os::memory::copy_if_there;
use crate::services::code::arch::follows_system_call;
use crate::services::code::{CodeMap, Place};
use crate::services::stacks::table::RecordedStacks;

/// From samples to numbers of stacks.
pub(super) struct Frames {
    stacks: &'static RecordedStacks,
    pub(super) map: CodeMap,
    pub(super) unwinder: StackUnwinder,
    pub(super) kernel_start: Option<usize>,
    frames: Vec<StackFrame>,
}

/// A stack that was found.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct FoundStack {
    /// The number in the recording; 0 for none.
    pub(super) number: u32,
    pub(super) is_complete: bool,
    pub(super) touched: Touched,
}

impl Frames {
    pub(super) fn new(stacks: &'static RecordedStacks, map: CodeMap) -> Self {
        Self { stacks, map, unwinder: StackUnwinder::new(), kernel_start: None, frames: Vec::new() }
    }

    /// The stack of a sample.
    pub(super) fn of(&mut self, sample: &RawSample) -> FoundStack {
        self.frames.clear();
        for &address in &sample.kernel {
            let offset = self.kernel_start.and_then(|start| address.checked_sub(start)).unwrap_or(0);
            self.frames.push(self.map.kernel(u32::try_from(offset).unwrap_or(0)));
        }
        if sample.in_kernel && sample.kernel.is_empty() {
            self.frames.push(self.map.kernel(0));
        }
        let (ending, touched) = match sample.registers.ip {
            // A thread of the kernel's, or one that is about to end: there is no user mode to go on in.
            0 => (Ending::Complete, Touched::default()),
            _ => self.unwinder.walk(&mut self.map, sample, &mut self.frames),
        };
        let number = self.stacks.number_of(&self.frames, ending != Ending::Complete);
        FoundStack { number, is_complete: ending == Ending::Complete, touched }
    }

    /// State of a thread that waits in a call of the kernel that locks, events and sleeps are all made of, by the methods that
    /// [`of`](Self::of) met last.
    pub(super) fn state_of_last(&self, stack: FoundStack) -> ThreadState {
        let names = self.unwinder.innermost.iter().map(|body| self.map.name(body)).collect();
        state_by_names(names, stack.touched.own_code)
    }

    /// The innermost frame in user mode alone.
    pub(super) fn of_leaf(&mut self, sample: &RawSample) -> FoundStack {
        let place = self.map.place(sample.registers.ip, sample.time_ns);
        let frame = self.map.frame(&place, sample.registers.ip, false);
        FoundStack { number: self.stacks.number_of(&[frame], false), ..FoundStack::default() }
    }

    /// Whether the instruction before is a call of the kernel: a signal that comes there was due in the kernel.
    pub(super) fn follows_system_call(&mut self, sample: &RawSample) -> bool {
        let ip = sample.registers.ip;
        let mut before = [0; 2];
        matches!(self.map.place(ip, sample.time_ns), Place::Native(..))
            && copy_if_there(ip.saturating_sub(before.len()), &mut before)
            && follows_system_call(&before)
    }
}

/// The state of a thread that stands in these methods of the framework, innermost first, and perhaps in code that called
/// them.
fn state_by_names(names: Vec<String>, has_callers: bool) -> ThreadState {
    /// The first that fits counts.
    const METHODS: [(&str, ThreadState); 9] = [
        ("System.Threading.Thread::Sleep", ThreadState::Sleeping),
        ("System.Threading.Thread::Join", ThreadState::Waiting),
        ("System.Threading.Monitor::Wait", ThreadState::Waiting),
        ("System.Threading.Monitor::ObjWait", ThreadState::Waiting),
        ("System.Threading.Monitor::", ThreadState::Lock),
        ("System.Threading.Lock::", ThreadState::Lock),
        ("System.Threading.SpinLock::", ThreadState::Lock),
        ("System.Threading.ReaderWriterLockSlim::", ThreadState::Lock),
        ("System.Threading.Mutex::", ThreadState::Lock),
    ];
    let known = |name: &String| METHODS.iter().find(|(method, _)| name.starts_with(method)).map(|(_, state)| *state);
    let in_threading = names.first().is_some_and(|name| name.starts_with("System.Threading."));
    // The runtime itself takes locks of objects, right below the method that wants one.
    let otherwise = match has_callers || !names.is_empty() {
        true if !in_threading => ThreadState::Lock,
        _ => ThreadState::Waiting,
    };
    names.iter().find_map(known).unwrap_or(otherwise)
}
