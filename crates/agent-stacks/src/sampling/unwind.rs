//! Unwinding: from a sample's registers and words to the frames of its stack, innermost first, up
//! to the start of the thread.
//!
//! Each frame is unwound with information about its own code. Compiled methods have the unwind
//! information of the compilers ([`BodyStep`]). Libraries have unwind data in their files, which
//! the crate `framehop` reads. For code that a signal interrupted, the kernel has put the registers
//! on the stack. Only if all of these fail, the walk goes on by guessing: with the frame pointer,
//! with the next place that looks like a frame, or with return addresses of unknown frames. A
//! guessed frame is marked, and so is its sample. Facts about an address are kept, so that each
//! frame costs one look-up.

use std::collections::{HashMap, HashSet};
use std::hash::BuildHasherDefault;
use std::num::NonZeroU64;
use std::sync::Arc;

use clrscope_agent_base::os::memory::copy_if_there;
use clrscope_recording::model::{Inlining, StackFrame, Stacks};
use framehop::x86_64::{CacheX86_64, UnwindRegsX86_64, UnwinderX86_64};
use framehop::{ExplicitModuleSectionInfo, FrameAddress, Module, Unwinder as _};

use super::hijack::Hijacks;
use super::last_stacks::Comparison;
use super::raw::{RawSample, Registers, UNKNOWN_FRAME};
use super::type_loads::TypeLoaders;
use super::walked::{Marks, WalkedFrame};
use crate::awaiters::AsyncPart;
use crate::code::{CodeMap, FramesThere, Library, Place};
use crate::inlined::InlinedFrames;
use crate::stacks::Mix;
use crate::unwind::BodyStep;
use crate::unwind::arch::{
    Base, FrameStep, LINKAGE_BYTES, SIGNAL_RETURN, STOP_ON_RETURN_BYTES, THREAD_EXIT, bytes_to_frame_pointer,
    interrupted_by_signal, is_linkage, stop_on_return_step, stops_on_return,
};

/// Largest stack in bytes: a frame pointer further up is not one.
const MOST_STACK: usize = 64 << 20;
/// Most bytes of a library's function that are searched for its prolog's effects.
const LONGEST_FUNCTION: usize = 64 << 10;
/// Most addresses that are remembered.
const MOST_MET: usize = 1 << 17;

/// How a walk ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Ending {
    /// The walk reached the start of the thread.
    Complete,
    /// The stack has more frames than may be recorded.
    Cut,
    /// The next frame was not found.
    Lost,
}

/// Hasher of addresses.
type ByAddress = BuildHasherDefault<Mix>;

/// Unwinds stacks.
pub(crate) struct StackUnwinder {
    native: UnwinderX86_64<Vec<u8>>,
    cache: CacheX86_64,
    /// Libraries whose unwind data is known, by load address.
    known: HashMap<usize, Arc<Library>, ByAddress>,
    /// Addresses with the facts found about them.
    met: HashMap<usize, AddressFacts, ByAddress>,
    /// Distance in bytes from the stack pointer to the frame pointer at return addresses in
    /// libraries; `None` if the code does not determine it.
    to_frame_pointers: HashMap<usize, Option<usize>, ByAddress>,
    /// Return addresses in the functions of the C library in which threads start. Learnt only from
    /// our own thread: other walks may have read a changing stack, and later walks that reach a
    /// wrong address would end there as if complete.
    roots: HashSet<usize, ByAddress>,
    /// Return addresses in the C library that the last walk found after all others.
    outermost: Vec<usize>,
    /// The address to which signal handlers return; `None` until seen.
    signal_return: Option<usize>,
    /// Load address of the agent itself.
    own: Option<usize>,
    /// Functions of the runtime that load types.
    pub(super) type_loaders: TypeLoaders,
    /// Return addresses that the runtime has replaced.
    pub(super) hijacks: Hijacks,
    /// Frames of the last walk, innermost first.
    pub(super) walked: Vec<WalkedFrame>,
    /// The registers at the point where the last walk failed.
    pub lost: Registers,
}

/// Facts about an address.
#[derive(Clone, Copy)]
struct AddressFacts {
    frame: StackFrame,
    inlined: InlinedFrames,
    part: AsyncPart,
    marks: Marks,
    way: CallerRule,
    /// Whether it is in the C library.
    is_c_library: bool,
    /// Monotonic nanoseconds since which this code is there.
    born_ns: u64,
}

/// The rule that leads from a frame to its caller.
#[derive(Clone, Copy)]
enum CallerRule {
    /// By the unwind data of a library.
    Library,
    /// By the unwind information of a method, or by the instructions of the function that stops
    /// threads at a return.
    Method(BodyStep),
    /// By the registers that a signal saved on the stack: this is the code to which signal handlers
    /// return.
    Signal,
    /// None: this is the code that ends a thread, and its function has no caller.
    Start,
    /// The address is the start of a function, and no call returns there. The runtime may have
    /// replaced the true return address by it.
    Replaced,
    /// By the word at the stack pointer: code of the runtime outside of methods usually has no
    /// frame.
    Bare,
    /// No rule is known.
    Unknown,
}

/// Position of a walk.
#[derive(Clone, Copy)]
struct Position {
    registers: Registers,
    /// Whether the instruction is a return address, not one that was interrupted.
    is_return: bool,
}

/// Outcome of a step.
enum Next {
    Frame(Position, Certainty),
    /// There is no caller.
    End,
    /// The sample lacks the words that the step needs.
    Lacking,
    /// There is no way to find the caller.
    Unknown,
}

/// Whether a step is certain or guessed.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Certainty {
    Certain,
    Guessed,
}

impl StackUnwinder {
    pub(super) fn new(hijacks: Hijacks) -> Self {
        Self {
            native: UnwinderX86_64::new(),
            cache: CacheX86_64::new(),
            known: HashMap::default(),
            met: HashMap::default(),
            to_frame_pointers: HashMap::default(),
            roots: HashSet::default(),
            outermost: Vec::new(),
            signal_return: None,
            own: None,
            type_loaders: TypeLoaders::default(),
            hijacks,
            walked: Vec::new(),
            lost: Registers::default(),
        }
    }

    /// Forgets facts about addresses, as code was unloaded and they may be wrong.
    pub(super) fn forget(&mut self) {
        self.met.clear();
        self.to_frame_pointers.clear();
    }

    /// Takes the calling thread's own stack, to learn in which code threads start.
    pub(crate) fn learn_start_of_threads(&mut self, map: &mut CodeMap, sample: &RawSample) {
        self.own = match map.place_at(Self::new as *const () as usize, u64::MAX) {
            Place::Native(library, _) => Some(library.base),
            _ => None,
        };
        let (ending, _) = self.walk(map, sample, None, OnMissingWords::Guessed);
        if ending == Ending::Complete {
            self.roots.extend(self.outermost.drain(..));
        }
    }

    /// Takes the stack of a callback about a type, to learn which functions of the runtime load
    /// types.
    pub(super) fn learn_type_load(&mut self, map: &mut CodeMap, sample: &RawSample) {
        self.walk(map, sample, None, OnMissingWords::Guessed);
        let callers = self.walked.iter().skip_while(|walked| walked.marks.agent);
        let (mut run, mut runtime) = (Vec::new(), None);
        for walked in callers {
            let function = map.native_function(walked.registers.ip - 1);
            let function = function.filter(|(library, _)| *runtime.get_or_insert(library.base) == library.base);
            let Some((_, addresses)) = function else {
                self.type_loaders.learn(&run);
                // The marks of frames were made with earlier knowledge.
                self.met.clear();
                break;
            };
            run.push(addresses);
        }
    }

    /// Moves a sample that was taken at the first instruction of a signal handler to the
    /// interrupted code. Other signals that are due together with a timer's signal are delivered
    /// first, so a tick often finds their handlers just begun. Those handlers have taken no time
    /// yet.
    pub(super) fn leave_handlers_that_begin(&self, map: &CodeMap, sample: &mut RawSample) {
        let Registers { ip, sp, .. } = sample.registers;
        let returns_to_kernel = self.signal_return.is_some() && sample.word(sp) == self.signal_return;
        if !returns_to_kernel || !map.begins_function(ip) {
            return;
        }
        let Some(context) = sp.checked_add(8) else { return };
        if let Some([ip, sp, bp]) = interrupted_by_signal(context, |address| sample.word(address)) {
            sample.interrupted_at(Registers { ip, sp, bp });
        }
    }

    /// Walks the stack of a sample, and stores the frames in [`walked`](Self::walked). If the walk
    /// reaches a frame of the stack in `last`, it ends there and returns the index of the next
    /// frame in that stack.
    pub(super) fn walk(
        &mut self,
        map: &mut CodeMap,
        sample: &RawSample,
        mut last: Option<Comparison<'_>>,
        rest: OnMissingWords,
    ) -> (Ending, Option<usize>) {
        self.walked.clear();
        let mut at = Position { registers: sample.registers, is_return: false };
        let mut certainty = Certainty::Certain;
        self.outermost.clear();
        let mut main_called = false;
        loop {
            let mut met = self.meet(map, at, sample.time_ns);
            if matches!(met.way, CallerRule::Replaced) && self.put_back(map, sample, &mut at, &mut certainty) {
                met = self.meet(map, at, sample.time_ns);
            }
            self.note(met, at, certainty);
            self.lost = at.registers;
            if at.is_return && met.is_c_library {
                self.outermost.push(at.registers.ip);
            } else {
                self.outermost.clear();
            }
            if self.is_start(&met, at, main_called) {
                return (Ending::Complete, None);
            }
            if self.walked.len() > Stacks::DEEPEST {
                return (Ending::Cut, None);
            }
            sample.took_later();
            let next = match self.next(map, sample, at, &met) {
                Next::Lacking if rest == OnMissingWords::ToBeRead => return (Ending::Lost, None),
                Next::Lacking => Self::noted(map, sample, at),
                Next::Unknown => self.guess(map, sample, at),
                found => found,
            };
            (at, certainty) = match next {
                Next::Frame(next, _) if sample.took_later() => (next, Certainty::Guessed),
                Next::Frame(next, certainty) => (next, certainty),
                Next::End => return (Ending::Complete, None),
                Next::Lacking | Next::Unknown => match self.follow_chain(map, sample, at.registers, main_called) {
                    Ok(registers) => (Position { registers, is_return: true }, Certainty::Guessed),
                    Err(ending) => return (ending, None),
                },
            };
            // A signal handler may have a stack of its own, anywhere.
            let may_go_anywhere = matches!(met.way, CallerRule::Signal);
            if at.registers.ip == 0 || at.registers.sp <= self.lost.sp && !may_go_anywhere {
                return (Ending::Lost, None);
            }
            let joined = last.as_mut().filter(|_| at.is_return).and_then(|last| last.joins(at.registers));
            if joined.is_some() {
                return (Ending::Complete, joined);
            }
            main_called = met.marks.main_program;
        }
    }

    /// The facts about the address of a frame that existed at a time.
    fn meet(&mut self, map: &mut CodeMap, at: Position, time_ns: u64) -> AddressFacts {
        let (ip, is_return) = (at.registers.ip, at.is_return);
        let key = ip << 1 | usize::from(is_return);
        if let Some(met) = self.met.get(&key).filter(|met| met.born_ns <= time_ns) {
            return *met;
        }
        let (met, lasts) = self.look_up(map, ip, is_return, time_ns);
        if lasts {
            if self.met.len() >= MOST_MET {
                self.met.clear();
            }
            self.met.insert(key, met);
        }
        met
    }

    /// Looks up the facts about an address. Also returns whether they stay valid.
    fn look_up(&mut self, map: &mut CodeMap, ip: usize, is_return: bool, time_ns: u64) -> (AddressFacts, bool) {
        let mut place = if is_return { map.place_of_call(ip, time_ns) } else { map.place_at(ip, time_ns) };
        let mut ends_call = is_return;
        let mut way = match &place {
            Place::Method(body) => CallerRule::Method(map.step(body, ip, is_return)),
            Place::Native(library, _) => {
                self.know(library);
                let call = ip - usize::from(is_return);
                match stop_on_return(map, call, ip) {
                    Some(way) => way,
                    None if CodeMap::has_unwind_data(library, call) => CallerRule::Library,
                    None if !is_return && leads_to_library(ip) => CallerRule::Method(ENTRY),
                    None => CallerRule::Unknown,
                }
            }
            Place::Stub | Place::Nowhere if !is_return => CallerRule::Bare,
            Place::Stub | Place::Nowhere => CallerRule::Unknown,
        };
        let is_c_library = matches!(&place, Place::Native(library, _) if is_c_library(library));
        if is_return && is_c_library && returns_from_signal(ip) {
            self.signal_return = Some(ip);
            // No call ends there: the instruction before may belong to another function.
            (way, ends_call) = (CallerRule::Signal, false);
            place = map.place_at(ip, time_ns);
        } else if is_return && is_c_library && ends_thread(ip) {
            way = CallerRule::Start;
        } else if is_return && map.begins_function(ip) && map.follows_no_call(ip) {
            way = CallerRule::Replaced;
        }
        let FramesThere { frame, inlined, inlining, lasts } = match &place {
            Place::Method(body) => map.frames_there(body, ip, ends_call, time_ns),
            _ => FramesThere::from_frame(map.frame(&place, ip, ends_call)),
        };
        let own_inlining = |marks: &Marks| if marks.own_code { inlining } else { Inlining::Unsaid };
        let (marks, born_ns) =
            (self.marks(&place, ip), if let Place::Method(body) = &place { body.born_ns() } else { 0 });
        let marks = Marks { inlining: own_inlining(&marks), ..marks };
        let part =
            if let Place::Method(body) = &place { map.async_part(body, ip, ends_call) } else { AsyncPart::Other };
        (AddressFacts { frame, inlined, part, marks, way, is_c_library, born_ns }, lasts && map.lasts(&place))
    }

    fn marks(&self, place: &Place, ip: usize) -> Marks {
        let mut marks = Marks::default();
        match place {
            Place::Native(library, _) => {
                marks.agent = Some(library.base) == self.own;
                marks.compiler = library.name.starts_with("libclrjit");
                marks.collector = library.name.starts_with("libclrgc");
                marks.main_program = library.is_main;
                marks.other_library = !library.is_main && !is_of_runtime(library);
                marks.loads_types = self.type_loaders.hold(ip);
            }
            Place::Method(body) => (marks.method, marks.own_code) = (true, !body.is_framework()),
            Place::Stub | Place::Nowhere => {}
        }
        marks
    }

    /// Adds a frame to the walked frames.
    fn note(&mut self, met: AddressFacts, at: Position, certainty: Certainty) {
        let marks = Marks { guessed: certainty == Certainty::Guessed, ..met.marks };
        self.walked.push(WalkedFrame {
            registers: at.registers,
            frame: met.frame,
            inlined: met.inlined,
            part: met.part,
            marks,
        });
    }

    /// Whether the frame is one in which threads start.
    fn is_start(&self, met: &AddressFacts, at: Position, main_called: bool) -> bool {
        at.is_return && met.is_c_library && (main_called || self.roots.contains(&at.registers.ip))
    }

    /// The step from a frame to its caller, by the known rule.
    fn next(&mut self, map: &mut CodeMap, sample: &RawSample, at: Position, met: &AddressFacts) -> Next {
        let Registers { sp, bp, .. } = at.registers;
        match met.way {
            CallerRule::Library => match self.native_step(sample, at) {
                Next::Lacking | Next::Unknown if bp == UNKNOWN_FRAME => {
                    self.step_without_frame_pointer(map, sample, at)
                }
                found => found,
            },
            CallerRule::Method(BodyStep { step, is_certain }) => {
                let certainty = if is_certain { Certainty::Certain } else { Certainty::Guessed };
                match by_step(sample, at.registers, step) {
                    Ok(registers) => Next::Frame(Position { registers, is_return: true }, certainty),
                    Err(next) => next,
                }
            }
            CallerRule::Signal => match interrupted_by_signal(sp, |address| sample.word(address)) {
                Some([ip, sp, bp]) => {
                    let registers = Registers { ip, sp, bp };
                    Next::Frame(Position { registers, is_return: false }, Certainty::Certain)
                }
                None => Next::Lacking,
            },
            CallerRule::Bare => {
                let mut at =
                    |bytes: usize| sample.word(sp + bytes).filter(|ip| Self::is_return_address(map, sample, *ip));
                let called = |ip: usize, sp: usize, certainty: Certainty| {
                    Next::Frame(Position { registers: Registers { ip, sp, bp }, is_return: true }, certainty)
                };
                match (at(0), at(8)) {
                    (Some(ip), _) => called(ip, sp + 8, Certainty::Certain),
                    // Stubs that look for a method push one register in between.
                    (None, Some(ip)) => called(ip, sp + 16, Certainty::Guessed),
                    (None, None) if sample.word(sp).is_none() => Next::Lacking,
                    (None, None) => Next::Unknown,
                }
            }
            CallerRule::Start => Next::End,
            CallerRule::Replaced | CallerRule::Unknown => Next::Unknown,
        }
    }

    /// Replaces a return address that the runtime has put on the stack of a thread it waits for by
    /// the true one. Returns whether the true address is certain.
    #[cold]
    fn put_back(
        &mut self,
        map: &mut CodeMap,
        sample: &RawSample,
        at: &mut Position,
        certainty: &mut Certainty,
    ) -> bool {
        let is_return_address = |ip: usize| Self::is_return_address(map, sample, ip);
        let place = at.registers.sp.wrapping_sub(8);
        let replaced = self.hijacks.replaced(sample, place, is_return_address);
        if !replaced.is_some_and(|(_, is_certain)| is_certain) {
            *certainty = Certainty::Guessed;
        }
        if let Some((ip, _)) = replaced {
            at.registers.ip = ip;
        }
        replaced.is_some()
    }

    /// The step by a library's unwind data.
    fn native_step(&mut self, sample: &RawSample, at: Position) -> Next {
        let Registers { ip, sp, bp } = at.registers;
        let mut registers = UnwindRegsX86_64::new(ip as u64, sp as u64, bp as u64);
        let address = match at.is_return {
            true => NonZeroU64::new(ip as u64).map(FrameAddress::ReturnAddress),
            false => Some(FrameAddress::InstructionPointer(ip as u64)),
        };
        let Some(address) = address else { return Next::Unknown };
        let mut lacks = false;
        let mut read = |address: u64| {
            let word = sample.word(address as usize).map(|word| word as u64);
            lacks |= word.is_none();
            word.ok_or(())
        };
        match self.native.unwind_frame(address, &mut registers, &mut self.cache, &mut read) {
            Ok(Some(ip)) => {
                let registers = Registers { ip: ip as usize, sp: registers.sp() as usize, bp: registers.bp() as usize };
                Next::Frame(Position { registers, is_return: true }, Certainty::Certain)
            }
            Ok(None) => Next::End,
            Err(_) if lacks => Next::Lacking,
            Err(_) => Next::Unknown,
        }
    }

    /// The step by a library's unwind data if that needs the frame pointer, which is unknown, and
    /// the function's code determines it.
    fn step_without_frame_pointer(&mut self, map: &mut CodeMap, sample: &RawSample, at: Position) -> Next {
        let Registers { ip, sp, .. } = at.registers;
        if self.to_frame_pointers.len() >= MOST_MET {
            self.to_frame_pointers.clear();
        }
        let bytes = *self.to_frame_pointers.entry(ip).or_insert_with(|| to_frame_pointer(map, at));
        let Some(bp) = bytes.and_then(|bytes| sp.checked_add(bytes)) else { return Next::Unknown };
        match self.native_step(sample, Position { registers: Registers { bp, ..at.registers }, ..at }) {
            Next::Frame(next, _) if !Self::is_return_address(map, sample, next.registers.ip) => Next::Unknown,
            found => found,
        }
    }

    /// Registers the unwind data of a library.
    fn know(&mut self, library: &Arc<Library>) {
        if self.known.get(&library.base).is_some_and(|known| Arc::ptr_eq(known, library)) {
            return;
        }
        if self.known.insert(library.base, Arc::clone(library)).is_some() {
            self.native.remove_module(library.base as u64);
        }
        let (elf, addresses) = (&library.elf, library.addresses());
        let (frames, header) = (elf.eh_frame.clone(), elf.eh_frame_header.clone());
        let sections = ExplicitModuleSectionInfo {
            base_svma: elf.loaded.start,
            text_svma: Some(elf.text.clone()),
            eh_frame_svma: frames.as_ref().map(|section| section.addresses.clone()),
            eh_frame: frames.map(|section| section.bytes),
            eh_frame_hdr_svma: header.as_ref().map(|section| section.addresses.clone()),
            eh_frame_hdr: header.map(|section| section.bytes),
            ..Default::default()
        };
        let addresses = addresses.start as u64..addresses.end as u64;
        self.native.add_module(Module::new(library.name.clone(), addresses, library.base as u64, sections));
    }

    /// The next frame where no rule leads on: the one at the frame pointer, or the first place that
    /// looks like a frame.
    fn guess(&mut self, map: &mut CodeMap, sample: &RawSample, at: Position) -> Next {
        let Registers { sp, bp, .. } = at.registers;
        let on_stack = bp >= sp && bp - sp < MOST_STACK;
        let by_frame = by_step(sample, at.registers, FrameStep::BY_FRAME_POINTER).ok().filter(|_| on_stack);
        let registers = by_frame.filter(|next| Self::is_return_address(map, sample, next.ip)).or_else(|| {
            let frame = self.find_frame(map, sample, sp)?;
            by_step(sample, Registers { bp: frame, ..at.registers }, FrameStep::BY_FRAME_POINTER).ok()
        });
        match registers {
            Some(registers) => Next::Frame(Position { registers, is_return: true }, Certainty::Guessed),
            None => Next::Unknown,
        }
    }

    /// The next frame where the sample lacks words: the first one that the engine noted beyond
    /// them.
    fn noted(map: &mut CodeMap, sample: &RawSample, at: Position) -> Next {
        let Registers { sp, .. } = at.registers;
        let frame = sample.frames_from(sp).find(|&(_, ip)| Self::is_return_address(map, sample, ip));
        let registers = frame.and_then(|(frame, _)| {
            by_step(sample, Registers { bp: frame, ..at.registers }, FrameStep::BY_FRAME_POINTER).ok()
        });
        match registers {
            Some(registers) => Next::Frame(Position { registers, is_return: true }, Certainty::Guessed),
            None => Next::Lacking,
        }
    }

    /// The first frame from `start` on that leads on, among the frames that the engine found and
    /// the words of the stack.
    fn find_frame(&mut self, map: &mut CodeMap, sample: &RawSample, start: usize) -> Option<usize> {
        let is_return_address = |ip| Self::is_return_address(map, sample, ip);
        let on_stack = sample.find_frame(start, is_return_address, |ip| self.roots.contains(&ip));
        let noted =
            sample.frames_from(start).find(|&(_, ip)| Self::is_return_address(map, sample, ip)).map(|noted| noted.0);
        on_stack.into_iter().chain(noted).min()
    }

    /// Whether a word of a stack is a return address.
    fn is_return_address(map: &mut CodeMap, sample: &RawSample, ip: usize) -> bool {
        ip >= 0x1_0000 && map.is_return_address(ip, sample.time_ns)
    }

    /// Goes on with return addresses of unknown frames, from the last position of the walk: to the
    /// start of the thread, or to registers from which a walk can go on.
    fn follow_chain(
        &mut self,
        map: &mut CodeMap,
        sample: &RawSample,
        last: Registers,
        mut main_called: bool,
    ) -> Result<Registers, Ending> {
        let chain = sample.chain_beyond(last).ok_or(Ending::Lost)?;
        let unknown = if sample.rest.is_some() { chain.len().saturating_sub(1) } else { chain.len() };
        for &ip in &chain[..unknown] {
            let at = Position { registers: Registers { ip, sp: 0, bp: 0 }, is_return: true };
            let met = self.meet(map, at, sample.time_ns);
            self.note(met, at, Certainty::Guessed);
            if self.is_start(&met, at, main_called) {
                return Err(Ending::Complete);
            }
            main_called = met.marks.main_program;
        }
        sample.rest.filter(|rest| rest.sp > last.sp).ok_or(Ending::Lost)
    }
}

/// What to do if a sample lacks words of the stack.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum OnMissingWords {
    /// End the walk. The caller then reads the words from the thread's stack.
    ToBeRead,
    /// Go on by guessing.
    Guessed,
}

/// The caller's registers after a step.
fn by_step(sample: &RawSample, registers: Registers, step: FrameStep) -> Result<Registers, Next> {
    let base = match step.base {
        Base::StackPointer => registers.sp,
        Base::FramePointer if registers.bp == UNKNOWN_FRAME || registers.bp < registers.sp => {
            return Err(Next::Unknown);
        }
        Base::FramePointer => registers.bp,
    };
    let at = |bytes: i32| base.checked_add_signed(bytes as isize).ok_or(Next::Unknown);
    let sp = at(step.to_caller)?;
    let ip = sample.word(sp.wrapping_sub(8)).ok_or(Next::Lacking)?;
    let bp = match step.frame_pointer {
        // A frame pointer that the sample lacks is unknown.
        Some(bytes) => sample.word(at(bytes)?).unwrap_or(UNKNOWN_FRAME),
        None => registers.bp,
    };
    Ok(Registers { ip, sp, bp })
}

/// The rule for an instruction of the function to which the runtime makes threads return when they
/// are to stop: the unwind data of that function is wrong. `None` for any other instruction.
fn stop_on_return(map: &CodeMap, call: usize, ip: usize) -> Option<CallerRule> {
    let (_, function) = map.native_function(call)?;
    let mut code = [0; STOP_ON_RETURN_BYTES];
    let code = &mut code[..function.len().min(STOP_ON_RETURN_BYTES)];
    if !copy_if_there(function.start, code) || !stops_on_return(code) {
        return None;
    }
    let step = stop_on_return_step(code, ip - function.start);
    Some(step.map_or(CallerRule::Unknown, |step| CallerRule::Method(BodyStep { step, is_certain: true })))
}

/// Distance in bytes from the stack pointer to the frame pointer at a place in a library's
/// function, if the function's code determines it.
fn to_frame_pointer(map: &CodeMap, at: Position) -> Option<usize> {
    let ip = at.registers.ip;
    let (_, function) = map.native_function(ip - usize::from(at.is_return))?;
    let mut code = vec![0; function.len().min(LONGEST_FUNCTION)];
    copy_if_there(function.start, &mut code).then(|| bytes_to_frame_pointer(&code, ip - function.start))?
}

/// The step at a function's first instruction: nothing lies above the return address yet.
const ENTRY: BodyStep = BodyStep { step: FrameStep::AT_ENTRY, is_certain: true };

/// Whether an address holds a jump to a function of another library (an entry of a procedure
/// linkage table), for which some linkers (lld) emit no unwind data.
fn leads_to_library(ip: usize) -> bool {
    let mut code = [0; LINKAGE_BYTES];
    copy_if_there(ip, &mut code) && is_linkage(&code)
}

/// Whether signal handlers return to an address.
fn returns_from_signal(ip: usize) -> bool {
    let mut code = [0; SIGNAL_RETURN.len()];
    copy_if_there(ip, &mut code) && code == SIGNAL_RETURN
}

/// Whether a thread ends when a function returns to an address. So it is in musl's function in
/// which threads start, which has no unwind data.
fn ends_thread(ip: usize) -> bool {
    let mut code = [0; THREAD_EXIT.len()];
    copy_if_there(ip, &mut code) && code == THREAD_EXIT
}

/// Whether a library is the runtime's, or one in which the runtime waits.
fn is_of_runtime(library: &Library) -> bool {
    is_c_library(library) || library.name.starts_with("libcoreclr") || library.name.starts_with("libclr")
}

fn is_c_library(library: &Library) -> bool {
    library.name.starts_with("libc.")
        || library.name.starts_with("libc-")
        || library.name.starts_with("libpthread")
        || library.name.starts_with("ld-")
}
