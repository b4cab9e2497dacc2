//! Frames of methods that the compiler put into others, where a call tells that the thread is in them.
//!
//! A call instruction says by itself where it leads: to a method's code, or to a piece of the runtime's that hands the call on. Which method's
//! IL that call stands in, [`ways`](super::ways) finds out. Of an instruction that was interrupted nobody says which method it belongs to, nor of a call
//! by a table of methods: these have no frames here.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use clr_profiler::il::{Flow, Opcode, raw_instructions};
use clr_profiler::metadata::MetadataImport;
use clr_profiler::{FunctionId, ProfilerInfo, Token};
use clrscope_recording::model::{Inlining, StackFrame, Tier};

use super::ways::{IlCall, Methods, Station, only_way};
use super::{Body, CodeMap, Contents};
use crate::arch::{BEFORE_CALL, Destination, LONGEST_JUMP, called, jump};
use crate::os::memory::copy_if_there;
use crate::services::functions::Functions;

/// Jumps from a call to the code of the method.
const MOST_JUMPS: usize = 6;
/// Methods whose calls are remembered.
const MOST_METHODS: usize = 1 << 14;

/// Frames at one place of compiled code.
#[derive(Debug, Clone, Copy)]
pub(crate) struct FramesThere {
    /// The frame of the method whose code it is.
    pub(crate) frame: StackFrame,
    /// Methods that were put into that, for [`CodeMap::inlined`].
    pub(crate) inlined: InlinedFrames,
    /// Whether it is known which those are.
    pub(crate) inlining: Inlining,
    /// Whether that will be the same next time.
    pub(crate) lasts: bool,
}

impl FramesThere {
    /// A frame of something that is no method.
    pub(crate) fn of(frame: StackFrame) -> Self {
        Self { frame, inlined: InlinedFrames::default(), inlining: Inlining::Unsaid, lasts: true }
    }
}

/// Frames of methods that were put into another one; none by default.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct InlinedFrames(u32);

/// Knowledge of calls in methods, and frames that were found.
#[derive(Default)]
pub(super) struct Inlined {
    calls: HashMap<FunctionId, Option<Arc<[IlCall]>>>,
    names: HashMap<FunctionId, Option<Arc<str>>>,
    /// Frames by their numbers less one, innermost first.
    found: Vec<Box<[StackFrame]>>,
}

impl Inlined {
    /// Code is gone, and identifiers may be used again.
    pub(super) fn forget(&mut self) {
        *self = Self::default();
    }
}

/// A method as the search asks for it.
struct Known<'a> {
    info: &'a ProfilerInfo,
    functions: &'a Functions,
    known: &'a mut Inlined,
}

impl Methods for Known<'_> {
    type Id = FunctionId;

    fn calls(&mut self, method: FunctionId) -> Option<Arc<[IlCall]>> {
        if self.known.calls.len() >= MOST_METHODS {
            self.known.calls.clear();
            self.known.names.clear();
        }
        let Self { info, functions, known } = self;
        known.calls.entry(method).or_insert_with(|| calls_of(info, functions, method)).clone()
    }

    fn name(&mut self, method: FunctionId) -> Option<Arc<str>> {
        let Self { info, functions, known } = self;
        known.names.entry(method).or_insert_with(|| name_of(info, functions, method)).clone()
    }
}

impl CodeMap {
    /// The frames at a place in a method that an address on a stack is of. `is_return`: the address is where a call returns to.
    pub(crate) fn frames_there(
        &mut self,
        body: &Arc<Body>,
        address: usize,
        is_return: bool,
        time_ns: u64,
    ) -> FramesThere {
        let frame = self.frame(&super::Place::Method(Arc::clone(body)), address, is_return);
        let inlining = if body.holds_no_other() { Inlining::None } else { Inlining::Unknown };
        let alone = FramesThere { inlining, ..FramesThere::of(frame) };
        if !is_return || body.candidates().is_empty() {
            return alone;
        }
        let Some(destination) = destination_before(address) else { return alone };
        let Some(callee) = self.method_called(destination, time_ns) else {
            // The runtime may not have put the method's address there yet.
            return FramesThere { lasts: false, ..alone };
        };
        let Self { info, functions, inlined, .. } = self;
        let mut methods = Known { info, functions, known: inlined };
        let way = methods.name(callee).and_then(|name| only_way(body.id(), body.candidates(), &name, &mut methods));
        match way.as_deref() {
            Some([root, others @ ..]) if !others.is_empty() => self.frames_of(alone, root, others),
            // The call is the method's own.
            Some(_) => FramesThere { inlining: Inlining::None, ..alone },
            None => alone,
        }
    }

    fn frames_of(&mut self, alone: FramesThere, root: &Station, others: &[Station]) -> FramesThere {
        let functions = &self.functions;
        // Where methods have code that is not their own, offsets of calls are in that.
        let is_own = !self.has_changed_code.load(Ordering::Acquire);
        let offset = |station: &Station| station.offset.filter(|_| is_own);
        let frame = |station: &Station| StackFrame::Method {
            function: functions.noted(station.method).index,
            il_offset: offset(station),
            il_span: 0,
            tier: Tier::Inlined,
        };
        let frames: Box<[StackFrame]> = others.iter().rev().map(frame).collect();
        let outer = match (alone.frame, offset(root)) {
            (StackFrame::Method { function, tier, .. }, Some(il_offset)) => {
                StackFrame::Method { function, il_offset: Some(il_offset), il_span: 0, tier }
            }
            (unchanged, _) => unchanged,
        };
        self.inlined.found.push(frames);
        let inlined = InlinedFrames(self.inlined.found.len() as u32);
        FramesThere { frame: outer, inlined, inlining: Inlining::Named, lasts: alone.lasts }
    }

    /// The frames of methods that were put into another one, innermost first.
    pub(crate) fn inlined(&self, frames: InlinedFrames) -> &[StackFrame] {
        let index = (frames.0 as usize).checked_sub(1);
        index.and_then(|index| self.inlined.found.get(index)).map_or(&[], |frames| frames)
    }

    /// The method that a call leads to.
    fn method_called(&mut self, mut destination: Destination, time_ns: u64) -> Option<FunctionId> {
        for _ in 0..MOST_JUMPS {
            let address = match destination {
                Destination::Code(address) => address,
                Destination::Cell(cell) => word_at(cell)?,
            };
            if let Some(body) = self.bodies.find(address, u64::MAX) {
                return Some(body.id());
            }
            let mut code = [0; LONGEST_JUMP];
            if !copy_if_there(address, &mut code) {
                return None;
            }
            destination = match jump(&code, address) {
                Some(destination) => destination,
                None => return self.method_at(address, time_ns),
            };
        }
        None
    }

    /// The method that a call has led to.
    fn method_at(&mut self, address: usize, time_ns: u64) -> Option<FunctionId> {
        let Some(Contents::Runtime { is_image }) = self.native.at(address).cloned() else { return None };
        self.ask(address, super::Known::Interrupted, is_image, time_ns).map(|body| body.id())
    }
}

fn destination_before(return_address: usize) -> Option<Destination> {
    let mut before = [0; BEFORE_CALL];
    let start = return_address.checked_sub(BEFORE_CALL)?;
    copy_if_there(start, &mut before).then(|| called(&before, return_address))?
}

fn word_at(address: usize) -> Option<usize> {
    let mut word = [0; size_of::<usize>()];
    copy_if_there(address, &mut word).then(|| usize::from_ne_bytes(word))
}

/// The calls in a method's IL.
fn calls_of(info: &ProfilerInfo, functions: &Functions, method: FunctionId) -> Option<Arc<[IlCall]>> {
    let about = info.function_info(method).ok()?;
    let body = info.il_function_body(about.module, about.token).ok()?;
    let metadata = functions.names().metadata(info, about.module).ok()?;
    let mut calls = Vec::new();
    for instruction in raw_instructions(&body).ok()? {
        let instruction = instruction.ok()?;
        let is_call = instruction.opcode.flow() == Flow::Call || instruction.opcode == Opcode::Jmp;
        if !is_call {
            continue;
        }
        let name = match instruction.opcode {
            Opcode::Calli => None,
            _ => {
                let token = Token::new(u32::from_le_bytes(instruction.operand.try_into().ok()?));
                Some(simple_name(&metadata, token)?).filter(|name| name != "Invoke").map(Arc::from)
            }
        };
        calls.push(IlCall { offset: instruction.offset, name });
    }
    Some(calls.into())
}

/// The simple name of a method by its token.
fn simple_name(metadata: &MetadataImport, token: Token) -> Option<String> {
    const METHOD: u32 = 0x06;
    const MEMBER: u32 = 0x0A;
    const GENERIC: u32 = 0x2B;
    match token.as_raw() >> 24 {
        METHOD => Some(metadata.method(token).ok()?.name),
        MEMBER => Some(metadata.member_ref(token).ok()?.name),
        GENERIC => simple_name(metadata, metadata.method_spec(token).ok()?.method),
        _ => None,
    }
}

fn name_of(info: &ProfilerInfo, functions: &Functions, method: FunctionId) -> Option<Arc<str>> {
    let about = info.function_info(method).ok()?;
    let metadata = functions.names().metadata(info, about.module).ok()?;
    Some(metadata.method(about.token).ok()?.name.into())
}
