//! From a sample's registers and words to the frames of its stack, innermost first, up to the start of the thread.
//!
//! Compiled methods are stepped over by frame pointers, the innermost by its instructions ([`LeafStep`]); libraries by the
//! unwind data in their files, which the crate `framehop` reads. What is found out about libraries is kept as long as they
//! are loaded.

use std::collections::{HashMap, HashSet};
use std::hash::BuildHasherDefault;
use std::num::NonZeroU64;
use std::sync::Arc;

use clrscope_recording::model::Stacks;
use framehop::x86_64::{CacheX86_64, UnwindRegsX86_64, UnwinderX86_64};
use framehop::{ExplicitModuleSectionInfo, FrameAddress, Module, Unwinder as _};

use super::last_stacks::Comparison;
use super::raw::{RawSample, Registers};
use super::type_loads::TypeLoaders;
use super::walked::{Marks, WalkedFrame};
use crate::os::memory::copy_if_there;
use crate::services::code::arch::{LeafStep, SIGNAL_RETURN};
use crate::services::code::{Body, CodeMap, Library, Place};
use crate::services::stacks::Mix;

/// Bytes of a stack at most: a frame pointer further up is none.
const MOST_STACK: usize = 64 << 20;

/// End of a walk.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Ending {
    /// At the start of the thread.
    Complete,
    /// There are more frames than a stack may have.
    Cut,
    /// The next frame was not found.
    Lost,
}

/// Hasher of addresses.
type ByAddress = BuildHasherDefault<Mix>;

/// Walks stacks.
pub(crate) struct StackUnwinder {
    native: UnwinderX86_64<Vec<u8>>,
    cache: CacheX86_64,
    /// Libraries whose unwind data is known, by where they are loaded.
    known: HashMap<usize, Arc<Library>, ByAddress>,
    /// Return addresses in the functions of the C library that threads start in.
    roots: HashSet<usize, ByAddress>,
    /// Steps from the innermost instruction of methods.
    leaves: HashMap<usize, LeafStep, ByAddress>,
    /// Whether code of the C library is what handlers of signals return to.
    signal_returns: HashMap<usize, bool, ByAddress>,
    /// Address at which the agent itself is loaded.
    own: Option<usize>,
    /// Functions of the runtime in which types are loaded.
    pub(super) type_loaders: TypeLoaders,
    /// Frames of the last walk, innermost first.
    pub(super) walked: Vec<WalkedFrame>,
    /// The registers where the last walk was lost.
    pub(crate) lost: Registers,
    /// The framework's methods that the last walk met before any other method, innermost first.
    pub(crate) innermost: Vec<Arc<Body>>,
}

/// Position of a walk.
struct Step {
    registers: Registers,
    /// The instruction is where a call returns to.
    is_return: bool,
    /// The instruction is the one that handlers of signals return to; the kernel has put its address there, and the next frame was interrupted.
    ends_signal: bool,
    place: Place,
}

impl StackUnwinder {
    pub(crate) fn new() -> Self {
        Self {
            native: UnwinderX86_64::new(),
            cache: CacheX86_64::new(),
            known: HashMap::default(),
            roots: HashSet::default(),
            leaves: HashMap::default(),
            signal_returns: HashMap::default(),
            own: None,
            type_loaders: TypeLoaders::default(),
            walked: Vec::new(),
            lost: Registers::default(),
            innermost: Vec::new(),
        }
    }

    /// Code is gone: what was found out about addresses may be wrong.
    pub(crate) fn forget(&mut self) {
        self.leaves.clear();
        self.signal_returns.clear();
    }

    /// Learns where threads start from the calling thread's own stack.
    pub(crate) fn learn_start_of_threads(&mut self, map: &mut CodeMap, sample: &RawSample) {
        self.own = match map.place(Self::new as *const () as usize, u64::MAX) {
            Place::Native(library, _) => Some(library.base),
            _ => None,
        };
        self.walk(map, sample, None);
    }

    /// Learns from the stack of a callback about a type in which functions of the runtime such are loaded.
    pub(super) fn learn_type_load(&mut self, map: &mut CodeMap, sample: &RawSample) {
        self.walk(map, sample, None);
        let callers = self.walked.iter().skip_while(|walked| walked.marks.agent);
        let (mut run, mut runtime) = (Vec::new(), None);
        for walked in callers {
            let function = map.native_function(walked.registers.ip - 1);
            let function = function.filter(|(library, _)| *runtime.get_or_insert(library.base) == library.base);
            let Some((_, addresses)) = function else {
                self.type_loaders.learn(&run);
                break;
            };
            run.push(addresses);
        }
    }

    /// Walks the stack of a sample, whose frames are in [`walked`](Self::walked) then. A walk that meets the stack in `last` ends there:
    /// with the index of the frame that comes next in it.
    pub(super) fn walk(
        &mut self,
        map: &mut CodeMap,
        sample: &RawSample,
        mut last: Option<Comparison<'_>>,
    ) -> (Ending, Option<usize>) {
        self.walked.clear();
        self.innermost.clear();
        let place = map.place(sample.registers.ip, sample.time_ns);
        let mut step = Step { registers: sample.registers, is_return: false, ends_signal: false, place };
        // The addresses in the outermost library, which are where threads start if the walk ends there by itself.
        let mut outermost = Vec::new();
        let (mut main_called, mut own_code) = (false, false);
        loop {
            if let Place::Method(body) = &step.place {
                own_code |= !body.is_framework();
                if !own_code {
                    self.innermost.push(Arc::clone(body));
                }
            }
            self.note(map, &step);
            self.lost = step.registers;
            if self.is_start(&step, main_called) {
                return (Ending::Complete, None);
            }
            if self.walked.len() > Stacks::DEEPEST {
                return (Ending::Cut, None);
            }
            let next = match self.next(map, sample, &step) {
                Next::Frame(registers) => registers,
                Next::End => {
                    self.roots.extend(outermost);
                    return (Ending::Complete, None);
                }
                Next::Lost => match self.follow_chain(map, sample, step.registers, main_called) {
                    Ok(registers) => registers,
                    Err(ending) => return (ending, None),
                },
            };
            if next.ip == 0 || next.sp <= step.registers.sp {
                return (Ending::Lost, None);
            }
            let joined = last.as_mut().and_then(|last| last.joins(next));
            if joined.is_some() {
                return (Ending::Complete, joined);
            }
            main_called = matches!(&step.place, Place::Native(library, _) if library.is_main);
            step = self.caller(map, sample, &step, next);
            match &step.place {
                Place::Native(library, _) if is_c_library(library) => outermost.push(next.ip),
                _ => outermost.clear(),
            }
        }
    }

    /// The frame that the registers of a caller, or of what a signal interrupted, lead to.
    fn caller(&mut self, map: &mut CodeMap, sample: &RawSample, callee: &Step, registers: Registers) -> Step {
        let before = map.place_of_call(registers.ip, sample.time_ns);
        let ends_signal = self.ends_signal(&before, registers.ip);
        if !ends_signal && !callee.ends_signal {
            return Step { registers, is_return: true, ends_signal, place: before };
        }
        // No call ends there: the instruction before may be another function's.
        Step { registers, is_return: false, ends_signal, place: map.place(registers.ip, sample.time_ns) }
    }

    /// Whether handlers of signals return to an address, given the place of the byte before.
    fn ends_signal(&mut self, before: &Place, ip: usize) -> bool {
        let in_c_library = matches!(before, Place::Native(library, _) if is_c_library(library));
        in_c_library
            && *self.signal_returns.entry(ip).or_insert_with(|| {
                let mut code = [0; SIGNAL_RETURN.len()];
                copy_if_there(ip, &mut code) && code == SIGNAL_RETURN
            })
    }

    /// Adds a frame to those that were walked.
    fn note(&mut self, map: &mut CodeMap, step: &Step) {
        let mut marks = Marks::default();
        match &step.place {
            Place::Native(library, _) => {
                marks.agent = Some(library.base) == self.own;
                marks.compiler = library.name.starts_with("libclrjit");
                marks.collector = library.name.starts_with("libclrgc");
                marks.main_program = library.is_main;
                marks.other_library = !library.is_main && !is_of_runtime(library);
                marks.loads_types = self.type_loaders.hold(step.registers.ip);
            }
            Place::Method(body) => (marks.method, marks.own_code) = (true, !body.is_framework()),
            Place::Stub | Place::Nowhere => {}
        }
        let frame = map.frame(&step.place, step.registers.ip, step.is_return);
        self.walked.push(WalkedFrame { registers: step.registers, frame, marks });
    }

    /// Whether the frame is one of those in which threads start.
    fn is_start(&self, step: &Step, main_called: bool) -> bool {
        let in_c_library = matches!(&step.place, Place::Native(library, _) if is_c_library(library));
        step.is_return && in_c_library && (main_called || self.roots.contains(&step.registers.ip))
    }

    /// Goes on by return addresses whose frames are not known, from where the walk stood last: to the start of the thread, or to the registers from
    /// which a walk can go on.
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
            let place = map.place_of_call(ip, sample.time_ns);
            let registers = Registers { ip, sp: 0, bp: 0 };
            let step = Step { registers, is_return: true, ends_signal: false, place };
            self.note(map, &step);
            if self.is_start(&step, main_called) {
                return Err(Ending::Complete);
            }
            main_called = matches!(&step.place, Place::Native(library, _) if library.is_main);
        }
        sample.rest.filter(|rest| rest.sp > last.sp).ok_or(Ending::Lost)
    }

    fn next(&mut self, map: &mut CodeMap, sample: &RawSample, step: &Step) -> Next {
        let registers = step.registers;
        let found = match &step.place {
            Place::Native(library, _) => match self.native_step(sample, step, &Arc::clone(library)) {
                Ok(Some(next)) => Some(next),
                Ok(None) => return Next::End,
                Err(()) => None,
            },
            Place::Method(body) if body.took_over() && self.leaf(body, step) == LeafStep::FramePointer => {
                let taken = sample.taken_over_by(registers.bp, |ip| Self::is_return_address(map, sample, ip));
                taken.and_then(|frame| by_frame_pointer(sample, registers, frame))
            }
            Place::Method(body) => match self.leaf(body, step) {
                LeafStep::FramePointer => by_frame_pointer(sample, registers, registers.bp),
                LeafStep::StackPointer(bytes, pushed) => by_stack_pointer(sample, registers, bytes, pushed),
            },
            Place::Stub | Place::Nowhere => {
                let next = by_stack_pointer(sample, registers, 0, None).filter(|_| !step.is_return);
                next.filter(|next| Self::is_return_address(map, sample, next.ip))
                    .or_else(|| by_frame_pointer(sample, registers, registers.bp))
            }
        };
        // Where a library has used the frame pointer for something else, or nobody knows it, the next frame that leads on is
        // taken.
        let found = found.or_else(|| {
            let on_stack = registers.bp >= registers.sp && registers.bp - registers.sp < MOST_STACK;
            let frame = if on_stack { None } else { self.guess(map, sample, registers.sp) };
            by_frame_pointer(sample, registers, frame?)
        });
        found.map_or(Next::Lost, Next::Frame)
    }

    fn leaf(&mut self, body: &Body, step: &Step) -> LeafStep {
        if step.is_return {
            return LeafStep::FramePointer;
        }
        *self.leaves.entry(step.registers.ip).or_insert_with(|| body.leaf_step(step.registers.ip))
    }

    /// By the library's unwind data; `Ok(None)` where that says that there is no caller.
    fn native_step(
        &mut self,
        sample: &RawSample,
        step: &Step,
        library: &Arc<Library>,
    ) -> Result<Option<Registers>, ()> {
        self.know(library);
        let Registers { ip, sp, bp } = step.registers;
        let mut registers = UnwindRegsX86_64::new(ip as u64, sp as u64, bp as u64);
        let address = match step.is_return {
            true => FrameAddress::ReturnAddress(NonZeroU64::new(ip as u64).ok_or(())?),
            false => FrameAddress::InstructionPointer(ip as u64),
        };
        let mut read = |address: u64| sample.word(address as usize).map(|word| word as u64).ok_or(());
        let next = self.native.unwind_frame(address, &mut registers, &mut self.cache, &mut read).map_err(|_| ())?;
        let registers =
            |ip: u64| Registers { ip: ip as usize, sp: registers.sp() as usize, bp: registers.bp() as usize };
        Ok(next.map(registers))
    }

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

    /// The first frame from `start` on that leads on, of those that the engine found and of what lies on the stack.
    fn guess(&mut self, map: &mut CodeMap, sample: &RawSample, start: usize) -> Option<usize> {
        let is_return_address = |ip| Self::is_return_address(map, sample, ip);
        let on_stack = sample.find_frame(start, is_return_address, |ip| self.roots.contains(&ip));
        let noted =
            sample.frames_from(start).find(|&(_, ip)| Self::is_return_address(map, sample, ip)).map(|noted| noted.0);
        on_stack.into_iter().chain(noted).min()
    }

    /// Whether a word of a stack is where a call returns to.
    fn is_return_address(map: &mut CodeMap, sample: &RawSample, ip: usize) -> bool {
        ip >= 0x1_0000 && map.is_return_address(ip, sample.time_ns)
    }
}

enum Next {
    Frame(Registers),
    /// There is no caller.
    End,
    Lost,
}

fn by_frame_pointer(sample: &RawSample, registers: Registers, frame: usize) -> Option<Registers> {
    if frame < registers.sp {
        return None;
    }
    let ip = sample.word(frame.checked_add(8)?)?;
    // A frame whose word is not known leads no further than to its return address.
    Some(Registers { ip, sp: frame + 16, bp: sample.word(frame).unwrap_or(0) })
}

fn by_stack_pointer(sample: &RawSample, registers: Registers, bytes: u32, pushed: Option<u32>) -> Option<Registers> {
    let at = registers.sp.checked_add(bytes as usize)?;
    let bp = match pushed {
        Some(pushed) => sample.word(registers.sp.checked_add(pushed as usize)?)?,
        None => registers.bp,
    };
    Some(Registers { ip: sample.word(at)?, sp: at + 8, bp })
}

/// Whether a library is the runtime's, or what that waits in.
fn is_of_runtime(library: &Library) -> bool {
    is_c_library(library) || library.name.starts_with("libcoreclr") || library.name.starts_with("libclr")
}

fn is_c_library(library: &Library) -> bool {
    library.name.starts_with("libc.")
        || library.name.starts_with("libc-")
        || library.name.starts_with("libpthread")
        || library.name.starts_with("ld-")
}
