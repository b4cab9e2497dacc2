//! Turns samples into numbers of stacks in the recording's table.

use std::collections::HashMap;

use clr_profiler::FunctionId;
use clrscope_agent_base::os::memory::{copy_if_there, copy_while_there};
use clrscope_recording::model::{StackFrame, Stacks, ThreadState};

use super::Sampler;
use super::hijack::Hijacks;
use super::last_stacks::LastStacks;
use super::object_copies::ObjectCopies;
use super::os::task::MOST_COPIED;
use super::raw::RawSample;
use super::unwind::{Ending, OnMissingWords, StackUnwinder};
use super::walked::{FrameMarks, WalkedFrame};
use crate::awaiters::{AsyncPart, Chain, ObjectMemory, Resumed, ResumedSearch};
use crate::code::{CodeMap, Place, look};
use crate::stacks::table::RecordedStacks;
use crate::unwind::arch::follows_system_call;

/// Turns samples into numbers of stacks.
pub(super) struct Frames {
    sampler: &'static Sampler,
    stacks: &'static RecordedStacks,
    pub(super) map: CodeMap,
    pub(super) unwinder: StackUnwinder,
    pub(super) kernel_start: Option<usize>,
    frames: Vec<StackFrame>,
    /// Numbers of the stacks that end at each of the frames.
    numbers: Vec<u32>,
    last: LastStacks,
    /// Numbers of stacks together with their awaiters, by the number of the stack alone and the
    /// hash of the chain.
    awaited: HashMap<(u32, u64), u32>,
    /// The copier of objects in signal handlers, if a signal handler takes the samples.
    copies: Option<&'static ObjectCopies>,
    /// Number of fields known to the copier.
    followed: usize,
    /// Chains that were read, by `this` of the resumed method.
    chains: HashMap<usize, KnownChain>,
}

/// A chain that was read.
struct KnownChain {
    function: FunctionId,
    /// Number of possible moves of objects before the chain was read.
    moves: u64,
    chain: Chain,
}

/// Most numbers of stacks with awaiters, and most chains, that are remembered.
const MOST_AWAITED: usize = 1 << 16;
const MOST_CHAINS: usize = 1 << 12;

/// A stack that was found.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct FoundStack {
    /// Number of the stack in the recording; 0 for none.
    pub(super) number: u32,
    pub(super) is_complete: bool,
    pub(super) touched: FrameMarks,
}

impl Frames {
    pub(super) fn new(sampler: &'static Sampler, map: CodeMap) -> Self {
        Self {
            sampler,
            stacks: sampler.stacks,
            map,
            unwinder: StackUnwinder::new(Hijacks::new(&sampler.threads)),
            kernel_start: None,
            frames: Vec::new(),
            numbers: Vec::new(),
            last: LastStacks::default(),
            awaited: HashMap::new(),
            copies: None,
            followed: 0,
            chains: HashMap::new(),
        }
    }

    /// Makes signal handlers copy objects with each sample. Earlier samples teach them where the
    /// objects are.
    pub(super) fn copy_objects(&mut self, copies: &'static ObjectCopies) {
        copies.begin(&self.sampler.moves);
        (self.copies, self.followed) = (Some(copies), 0);
    }

    /// Applies the changes of code that callbacks reported.
    pub(super) fn update(&mut self) {
        if self.map.update() {
            self.unwinder.forget();
            self.last.forget();
            self.awaited.clear();
            self.chains.clear();
            self.copies.iter().for_each(|copies| copies.forget());
            // Classes may have changed.
            self.followed = 0;
        }
        if let Some(copies) = self.copies
            && let Some(followed) = self.map.awaiters().followed_fields(self.followed)
        {
            copies.follow(&followed);
            self.followed = followed.others.len();
        }
    }

    /// Runs `look_at` with this value; the runtime may be queried in the meantime ([`look`]).
    pub(super) fn look<R>(&mut self, look_at: impl FnOnce(&mut Self) -> R) -> R {
        look(self, |frames| &mut frames.map, look_at)
    }

    /// The stack of a sample of a running thread. Frames that the thread has not returned from
    /// since its last sample are taken from that sample's stack. If the sample holds too little of
    /// the stack, the rest is read now.
    pub(super) fn of_running(&mut self, sample: &mut RawSample) -> FoundStack {
        self.look(|frames| frames.find_running(sample))
    }

    fn find_running(&mut self, sample: &mut RawSample) -> FoundStack {
        self.unwinder.leave_handlers_that_begin(&self.map, sample);
        let found = self.since_last(sample, OnMissingWords::ToBeRead);
        if found.is_complete || sample.registers.ip == 0 {
            return found;
        }
        sample.read_on(self.unwinder.lost, |start, bytes| {
            bytes.resize(MOST_COPIED, 0);
            let copied = copy_while_there(start, bytes);
            bytes.truncate(copied);
        });
        self.since_last(sample, OnMissingWords::Guessed)
    }

    /// The stack of a sample, walked up to where it equals the thread's last stack. A stack that is
    /// found completely becomes the thread's last stack.
    fn since_last(&mut self, sample: &RawSample, rest: OnMissingWords) -> FoundStack {
        if sample.registers.ip == 0 {
            return self.find_whole(sample);
        }
        let last = self.last.stack_of_thread(sample.os_id);
        let (ending, joined) = self.unwinder.walk(&mut self.map, sample, Some(last.compare(sample)), rest);
        let callers = joined.map_or(&[][..], |index| last.frames_to(index));
        let walked = &self.unwinder.walked;
        if ending != Ending::Complete {
            return self.of_walked(sample, ending);
        }
        if callers.len() + walked.len() + sample.kernel.len() >= Stacks::DEEPEST {
            last.forget();
            return self.find_whole(sample);
        }
        let marks = walked.iter().chain(callers.iter().rev().map(|(frame, _)| frame)).map(|frame| frame.marks);
        let touched = FrameMarks::by(marks);
        let callers = callers.last().map_or(0, |(_, number)| *number);
        self.frames.clear();
        add_walked(&mut self.frames, walked, &self.map);
        let number = self.stacks.number_above(callers, &self.frames, &mut self.numbers);
        match number {
            0 => last.forget(),
            _ if self.frames.len() > walked.len() => {
                keep_numbers(&mut self.numbers, walked, &self.map);
                last.replace_innermost(joined, walked, &self.numbers);
            }
            _ => last.replace_innermost(joined, walked, &self.numbers),
        }
        self.frames.clear();
        self.add_kernel(sample);
        let number = match self.frames.is_empty() || number == 0 {
            true => number,
            false => self.stacks.number_above(number, &self.frames, &mut self.numbers),
        };
        FoundStack { number: self.with_awaiters(number, joined, sample), is_complete: true, touched }
    }

    /// The number of the stack that was just walked, together with the chain of awaiters of the
    /// method resumed on it, if the chain is certain; otherwise `number`, the number of the stack
    /// alone. The walked frames are followed by the frames of the thread's last stack up to
    /// `joined`.
    fn with_awaiters(&mut self, number: u32, joined: Option<usize>, sample: &RawSample) -> u32 {
        let outer = joined.map_or(&[][..], |index| self.last.stack_of_thread(sample.os_id).frames_to(index));
        let walked = self.unwinder.walked.iter().chain(outer.iter().rev().map(|(frame, _)| frame));
        if number == 0 || !walked.clone().any(|frame| frame.part == AsyncPart::Resumption) {
            return number;
        }
        let walked: Vec<WalkedFrame> = walked.copied().collect();
        let Some(chain) = self.awaiters(&walked, sample).filter(|chain| !chain.is_unknown()) else {
            return number;
        };
        let key = (number, chain.mixed());
        if let Some(number) = self.awaited.get(&key) {
            return *number;
        }
        self.frames.clear();
        self.add_kernel(sample);
        add_walked(&mut self.frames, &walked, &self.map);
        let with = self.stacks.number_of_awaited(&self.frames, false, &chain);
        if with == 0 {
            return number;
        }
        if self.awaited.len() >= MOST_AWAITED {
            self.awaited.clear();
        }
        self.awaited.insert(key, with);
        with
    }

    /// The chain of awaiters of the method resumed on a stack: from the objects copied with the
    /// sample if there are any, otherwise from the objects as they are now.
    fn awaiters(&mut self, walked: &[WalkedFrame], sample: &RawSample) -> Option<Chain> {
        let mut search = ResumedSearch::default();
        for frame in walked {
            search.caller_at(frame.registers.sp);
            search.frame(frame.part, None);
        }
        let Resumed { function, this: place } = search.found()?;
        let this = sample.word_then(place)?;
        self.learn_place_of_this(walked, (function, place), sample.time_ns);
        let copied = self.copied_awaiters((function, this), sample);
        match copied {
            Some(chain) if chain.is_final() => Some(chain),
            _ => self.awaiters_now((function, this), sample).or(copied),
        }
    }

    /// Teaches signal handlers to find `this` of the resumed method, which lies at `place`.
    fn learn_place_of_this(&mut self, walked: &[WalkedFrame], (function, place): (FunctionId, usize), time_ns: u64) {
        let Some(copies) = self.copies else { return };
        let is_it = |frame: &&WalkedFrame| {
            matches!(frame.part, AsyncPart::Method { function: other, .. } if other == function)
                && frame.registers.sp < place
                && !frame.marks.guessed
        };
        let Some(registers) = walked.iter().rev().find(is_it).map(|frame| frame.registers) else { return };
        // If the method is at a call, its return address may be the first one after its code.
        let at = registers.ip - 1;
        if let Place::Method(body) = self.map.place_of_call(registers.ip, time_ns) {
            let builder = self.map.awaiters().builder(function, self.map.questions());
            copies.learn(&body.addresses, at, place + 8 - registers.sp, builder);
        }
    }

    /// The chain of awaiters of the method with this `this`, from the objects copied with a sample.
    fn copied_awaiters(&self, (function, this): (FunctionId, usize), sample: &RawSample) -> Option<Chain> {
        if sample.objects.this != this {
            return None;
        }
        if self.map.may_be_gone(sample.time_ns) {
            return None;
        }
        let memory = ObjectMemory::Copied(&sample.objects);
        let chain = self.map.awaiters().chain_in(memory, (function, this), self.map.questions());
        Some(chain).filter(|chain| !chain.is_unknown())
    }

    /// The chain of awaiters of the method with this `this`, which was read from a sample. The
    /// objects are read now, and trusted only if no object has moved since the sample. For a method
    /// that has ended since, the chain that was read for an earlier sample is used.
    fn awaiters_now(&mut self, (function, this): (FunctionId, usize), sample: &RawSample) -> Option<Chain> {
        let ((), moves) = self.sampler.moves.unmoved(sample.time_ns, || ())?;
        let known = self.chains.get(&this).filter(|known| known.function == function && known.moves == moves);
        if let Some(known) = known.filter(|known| known.chain.is_final()) {
            return Some(known.chain.clone());
        }
        let questions = self.map.questions();
        let look = || self.map.awaiters().chain_later(function, this, questions);
        let (chain, moves) = self.sampler.moves.unmoved(sample.time_ns, look)?;
        if chain.is_unknown() {
            return known.map(|known| known.chain.clone());
        }
        if self.chains.len() >= MOST_CHAINS {
            self.chains.clear();
        }
        self.chains.insert(this, KnownChain { function, moves, chain: chain.clone() });
        Some(chain)
    }

    /// Returns the stack of a sample.
    pub(super) fn stack_of_sample(&mut self, sample: &RawSample) -> FoundStack {
        self.look(|frames| frames.find_whole(sample))
    }

    fn find_whole(&mut self, sample: &RawSample) -> FoundStack {
        let ending = match sample.registers.ip {
            // A thread of the kernel, or one that is about to end: it has no user-mode frames.
            0 => {
                self.unwinder.walked.clear();
                Ending::Complete
            }
            _ => self.unwinder.walk(&mut self.map, sample, None, OnMissingWords::Guessed).0,
        };
        self.of_walked(sample, ending)
    }

    /// The stack of a sample whose frames were walked from the innermost outwards.
    fn of_walked(&mut self, sample: &RawSample, ending: Ending) -> FoundStack {
        self.frames.clear();
        self.add_kernel(sample);
        let walked: &[WalkedFrame] = &self.unwinder.walked;
        add_walked(&mut self.frames, walked, &self.map);
        let number = self.stacks.number_of(&self.frames, ending != Ending::Complete);
        let touched = FrameMarks::by(walked.iter().map(|walked| walked.marks));
        let is_complete = ending == Ending::Complete;
        let number = if is_complete { self.with_awaiters(number, None, sample) } else { number };
        FoundStack { number, is_complete, touched }
    }

    /// Adds the frames in the kernel.
    fn add_kernel(&mut self, sample: &RawSample) {
        for &address in &sample.kernel {
            let offset = self.kernel_start.and_then(|start| address.checked_sub(start)).unwrap_or(0);
            self.frames.push(self.map.kernel(u32::try_from(offset).unwrap_or(0)));
        }
        if sample.in_kernel && sample.kernel.is_empty() {
            self.frames.push(self.map.kernel(0));
        }
    }

    /// Returns the state of a thread that waits in a system call that locks, events and sleeps have
    /// in common. The state follows from the methods that
    /// [`stack_of_sample`](Self::stack_of_sample) found last. `is_suspended`: the runtime suspends
    /// other threads.
    pub(super) fn state_of_last(&mut self, stack: FoundStack, time_ns: u64, is_suspended: bool) -> ThreadState {
        self.look(|frames| frames.find_state(stack, time_ns, is_suspended))
    }

    fn find_state(&mut self, stack: FoundStack, time_ns: u64, is_suspended: bool) -> ThreadState {
        let outer = self.unwinder.walked.iter().take_while(|walked| !walked.marks.own_code);
        let addresses = outer.filter(|walked| walked.marks.method).map(|walked| walked.registers.ip);
        let places: Vec<Place> = addresses.map(|ip| self.map.place_of_call(ip, time_ns)).collect();
        let methods = places.iter().filter_map(|place| if let Place::Method(body) = place { Some(body) } else { None });
        let names: Option<Vec<String>> = methods.map(|body| self.map.name(body)).collect();
        names.map_or(ThreadState::Waiting, |names| state_by_names(names, stack.touched, is_suspended))
    }

    /// Takes the stack of a callback about a type, to learn which functions load types.
    pub(super) fn learn_type_load(&mut self, sample: &RawSample) {
        self.look(|frames| frames.unwinder.learn_type_load(&mut frames.map, sample));
    }

    /// Takes the calling thread's own stack, to learn in which code threads start.
    pub(super) fn learn_start_of_threads(&mut self, sample: &RawSample) {
        self.look(|frames| frames.unwinder.learn_start_of_threads(&mut frames.map, sample));
    }

    /// Whether more stacks of callbacks about types would teach nothing new.
    pub(super) fn knows_type_loads(&self) -> bool {
        self.unwinder.type_loaders.is_enough()
    }

    /// A stack of only the innermost frame in user mode.
    pub(super) fn of_leaf(&mut self, sample: &RawSample) -> FoundStack {
        let frame = self.look(|frames| {
            let place = frames.map.place_at(sample.registers.ip, sample.time_ns);
            frames.map.frame(&place, sample.registers.ip, false)
        });
        FoundStack { number: self.stacks.number_of(&[frame], false), ..FoundStack::default() }
    }

    /// Whether the sample's instruction follows a system call. If so, the signal became due in the
    /// kernel.
    pub(super) fn follows_system_call(&mut self, sample: &RawSample) -> bool {
        let ip = sample.registers.ip;
        let mut before = [0; 2];
        matches!(self.look(|frames| frames.map.place_at(ip, sample.time_ns)), Place::Native(..))
            && copy_if_there(ip.saturating_sub(before.len()), &mut before)
            && follows_system_call(&before)
    }
}

/// Adds walked frames, innermost first, each preceded by the frames of the methods inlined into it.
fn add_walked(frames: &mut Vec<StackFrame>, walked: &[WalkedFrame], map: &CodeMap) {
    for walked in walked {
        frames.extend_from_slice(map.inlined(walked.inlined));
        frames.push(walked.frame);
    }
}

/// Keeps one stack number for each walked frame, of numbers from the outermost inwards: that of the
/// stack whose innermost frame is the walked frame with its inlined methods.
fn keep_numbers(numbers: &mut Vec<u32>, walked: &[WalkedFrame], map: &CodeMap) {
    let mut end = 0;
    let last_of = walked.iter().rev().map(|walked| {
        end += 1 + map.inlined(walked.inlined).len();
        end - 1
    });
    let kept: Vec<u32> = last_of.filter_map(|index| numbers.get(index).copied()).collect();
    *numbers = kept;
}

/// The state of a thread that waits in these methods of the framework, innermost first, and perhaps
/// in code called by them. `is_suspended`: the runtime suspends other threads at this time. A
/// thread that began to wait for something else before that is then not looked at again.
fn state_by_names(names: Vec<String>, touched: FrameMarks, is_suspended: bool) -> ThreadState {
    /// The first match counts.
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
    // The runtime itself takes locks of objects, directly below the method that wants one. Other
    // libraries don't tell what they wait for.
    let otherwise = match !touched.called_library && (touched.own_code || !names.is_empty()) {
        true if !in_threading && is_suspended => ThreadState::Suspended,
        true if !in_threading => ThreadState::Lock,
        _ => ThreadState::Waiting,
    };
    names.iter().find_map(known).unwrap_or(otherwise)
}
