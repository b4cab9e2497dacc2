//! Turns the addresses of a stack into functions and IL offsets, each looked up once.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use clr_profiler::internals::{CurrentStack, library_of};
use clr_profiler::{CodeRange, CodeStart, FunctionId, IlPlace, IlRange, ProfilerInfo, ReJitId, StackFrame};
use clrscope_agent_base::code_owner::{RunAddress, function_at, is_call_before};
use clrscope_agent_base::functions::Functions;
use clrscope_agent_base::il::{body_of, has_blocks};
use clrscope_recording::layout::stack;

use super::block_addresses::StackGap;
use super::throw_blocks::place_of_checks;
use crate::awaiters::{AsyncPart, Awaiters};
use crate::inlined::called::{CodeAt, called_before, called_by};
use crate::inlined::{CodeOffset, InlinedFrames, InlinedMethods, InlinedThere};
use crate::unwind::heaps::CodeHeaps;
use crate::unwind::{FrameShape, FrameShapes};

/// A frame, as it is recorded.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CodeLocation {
    /// Index of the function in the recording.
    pub function: u32,
    /// Offset in the method's IL; `None` if the instruction has none.
    pub il_offset: Option<u32>,
    /// Length in bytes of the IL range from `il_offset` on that may contain the instruction; see
    /// [`IlPlace`].
    pub(crate) il_span: u16,
    /// Inlined methods within the function that the thread is in.
    pub inlined: InlinedFrames,
    /// The role of the function in asynchronous code.
    pub(crate) part: AsyncPart,
}

impl CodeLocation {
    /// A function at an unknown position.
    pub(super) fn of_function(function: u32) -> Self {
        Self { function, il_offset: None, il_span: 0, inlined: InlinedFrames::default(), part: AsyncPart::Other }
    }
}

/// Code around an address.
#[derive(Debug, Default)]
struct Code {
    /// The pieces of the code version; empty if the runtime does not report them.
    pieces: Vec<CodeRange>,
    /// The layout of the method's frame, if its prolog is understood.
    shape: Option<FrameShape>,
    /// Whether the method is known to have catch, finally or filter blocks.
    has_blocks: bool,
}

impl Code {
    fn holds(&self, address: usize) -> bool {
        self.pieces.iter().any(|piece| piece.contains(address))
    }

    /// Whether an instruction of a block may be at an address: the method itself comes before its
    /// blocks. The method's first address is on the stack if the runtime's stub has just led to a
    /// new version of the code.
    fn may_have_block_at(&self, address: usize) -> bool {
        self.holds(address) && self.pieces.first().is_none_or(|first| first.start != address)
    }

    /// Whether a call in this code returns to an address.
    fn is_called_from(&self, address: usize) -> bool {
        address.checked_sub(1).is_some_and(|call| self.holds(call)) && is_call_before(address) != Some(false)
    }
}

/// An address, and whether it is a return address. If not, the instruction there has failed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
struct Instruction {
    address: usize,
    is_return: bool,
}

/// The locations of the addresses seen so far.
pub(super) struct CodeLocations {
    known: Mutex<LocationTable>,
    inlined: Arc<InlinedMethods>,
    awaiters: Arc<Awaiters>,
    pub(super) shapes: FrameShapes,
    /// Most addresses that are remembered.
    most: usize,
}

#[derive(Default)]
struct LocationTable {
    locations: HashMap<Instruction, CodeLocation>,
    /// Code by addresses that walks of the runtime have shown.
    code: HashMap<usize, Arc<Code>>,
    /// Counts unloads: a result of an earlier look-up is not stored after an unload.
    unloads: u64,
}

impl CodeLocations {
    /// Creates an empty table that remembers up to `most` locations.
    pub(super) fn new(most: usize, inlined: Arc<InlinedMethods>, awaiters: Arc<Awaiters>) -> Self {
        Self { known: Mutex::default(), inlined, awaiters, shapes: FrameShapes::default(), most }
    }

    /// Bytes of memory that the table takes.
    pub(super) fn own_bytes(&self) -> usize {
        let known = self.known();
        known.locations.capacity() * size_of::<(Instruction, CodeLocation)>()
            + known.code.capacity() * size_of::<(usize, Arc<Code>, Code, CodeRange)>()
    }

    fn known(&self) -> MutexGuard<'_, LocationTable> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns the location of a frame, as the runtime's walk gave it. Asks the runtime about new
    /// addresses.
    pub(super) fn location_of_frame(
        &self,
        info: &ProfilerInfo,
        functions: &Functions,
        frame: StackFrame,
    ) -> CodeLocation {
        self.at(info, functions, frame, Instruction { address: frame.address, is_return: true })
    }

    /// The true locations of the frames that the runtime's walk of the calling thread's stack gave.
    /// For a method in a block, that is the place where the block resumes. The stack begins at
    /// `start`. `may_fail`: the innermost instruction may have failed.
    pub(super) fn all(
        &self,
        (info, functions): (&ProfilerInfo, &Functions),
        (stack, start): (CurrentStack, usize),
        frames: &[StackFrame],
        may_fail: bool,
    ) -> Vec<CodeLocation> {
        let mut callee = None;
        let mut location = |frame: &StackFrame| {
            let code = self.code(info, *frame);
            let is_innermost = callee.is_none();
            let instruction = match code.has_blocks || (is_innermost && may_fail) {
                true => {
                    let between = StackGap::read(stack, start, callee.as_ref().map(|(frame, _)| *frame), *frame);
                    let shape = callee.as_ref().and_then(|(_, code): &(StackFrame, Arc<Code>)| code.shape);
                    instruction(&code, &between, shape, *frame, is_innermost && may_fail)
                }
                false => Some(Instruction { address: frame.address, is_return: true }),
            };
            callee = Some((*frame, code));
            match instruction {
                Some(instruction) => self.at(info, functions, *frame, instruction),
                None => CodeLocation::of_function(functions.noted(frame.function).index),
            }
        };
        frames.iter().map(&mut location).collect()
    }

    fn code(&self, info: &ProfilerInfo, frame: StackFrame) -> Arc<Code> {
        let (known, unloads) = {
            let known = self.known();
            (known.code.get(&frame.address).map(Arc::clone), known.unloads)
        };
        known.unwrap_or_else(|| {
            let code = Arc::new(self.look_up(info, frame).unwrap_or_default());
            let mut known = self.known();
            if known.unloads == unloads {
                if known.code.len() >= self.most {
                    known.code.clear();
                }
                known.code.insert(frame.address, Arc::clone(&code));
            }
            code
        })
    }

    fn look_up(&self, info: &ProfilerInfo, frame: StackFrame) -> Option<Code> {
        let at = RunAddress::of_frame(&frame)?;
        let (_, rejit) = function_at(info, at)?;
        let (start, pieces) = code_around(info, frame.function, rejit, at.address())?;
        let shape = self.shapes.of_method(info, frame.function, (start.address(), &pieces));
        let has_blocks = body_of(info, frame.function).is_ok_and(|body| has_blocks(&body));
        Some(Code { pieces, shape, has_blocks })
    }

    fn at(
        &self,
        info: &ProfilerInfo,
        functions: &Functions,
        frame: StackFrame,
        instruction: Instruction,
    ) -> CodeLocation {
        let (known, unloads) = {
            let known = self.known();
            (known.locations.get(&instruction).copied(), known.unloads)
        };
        if let Some(location) = known {
            return location;
        }
        let (location, lasts) = self.location(info, functions, frame.function, instruction);
        if !lasts {
            return location;
        }
        let mut known = self.known();
        if known.unloads == unloads {
            if known.locations.len() >= self.most {
                known.locations.clear();
            }
            known.locations.insert(instruction, location);
        }
        location
    }

    /// Looks up the location of an instruction of a function. Also returns whether the result stays
    /// the same.
    fn location(
        &self,
        info: &ProfilerInfo,
        functions: &Functions,
        function: FunctionId,
        instruction: Instruction,
    ) -> (CodeLocation, bool) {
        let mut location = CodeLocation::of_function(functions.noted(function).index);
        let start = call_address(instruction).and_then(|at| code_start(info, function, RunAddress::executed(at)));
        let Some(start) = start else { return (location, true) };
        location.part = self.awaiters.part(function, start.address());
        (location.il_offset, location.il_span) = recorded_place(statement_place(info, start, instruction));
        let candidates = self.inlined.told().of_body(start.address());
        if candidates.is_empty() {
            return (location, true);
        }
        let offset = call_address(instruction).unwrap_or_default().wrapping_sub(start.address()) as u32;
        let at = CodeOffset { start: start.address(), offset, is_call: instruction.is_return };
        let called = instruction.is_return.then(|| called_before(instruction.address, |at| code_at(info, at)));
        let calls = || {
            let pieces = info.code_info_at(start).unwrap_or_default();
            let range = |piece: &CodeRange| piece.start..piece.start + piece.bytes;
            let mut heaps = CodeHeaps::read();
            // These calls may never have been made.
            let mut code = |at| if heaps.holds(info, at) { code_at(info, at) } else { CodeAt::Unknown };
            pieces.iter().flat_map(|piece| called_by(&range(piece), &mut code)).collect()
        };
        let (there, lasts) = self.inlined.there((function, &candidates), (called, at), calls);
        (with_inlined(location, there), lasts)
    }

    /// Call it when code was unloaded, as other code may be placed at its addresses.
    pub(super) fn code_unloaded(&self) {
        let mut known = self.known();
        known.locations.clear();
        known.code.clear();
        known.unloads += 1;
        self.shapes.forget();
    }
}

/// The instruction of a frame; `None` if it may be at an unknown place in a block.
fn instruction(
    code: &Code,
    between: &StackGap,
    callee: Option<FrameShape>,
    frame: StackFrame,
    may_fail: bool,
) -> Option<Instruction> {
    if may_fail && let Some(failed) = between.failed(frame.address, |address| code.may_have_block_at(address)) {
        return Some(Instruction { address: failed, is_return: false });
    }
    match between.address(callee, |address| code.is_called_from(address)) {
        Some(address) => Some(Instruction { address, is_return: true }),
        None => (!code.has_blocks).then_some(Instruction { address: frame.address, is_return: true }),
    }
}

/// The location with the methods inlined into the function.
fn with_inlined(location: CodeLocation, there: Option<InlinedThere>) -> CodeLocation {
    let Some(InlinedThere { frames, offset, .. }) = there else { return location };
    let (il_offset, il_span) = offset.map_or((location.il_offset, location.il_span), |offset| (Some(offset), 0));
    CodeLocation { il_offset, il_span, inlined: frames, ..location }
}

/// IL offset and length of the IL range, in the form in which they are recorded.
pub(crate) fn recorded_place(place: Option<IlPlace>) -> (Option<u32>, u16) {
    let span = |place: IlPlace| place.span.and_then(|span| u16::try_from(span).ok()).unwrap_or(stack::TO_THE_END);
    place.map_or((None, 0), |place| (Some(place.offset), span(place)))
}

/// An address within the instruction itself. A return address follows the call, and the byte before
/// it belongs to the call.
fn call_address(instruction: Instruction) -> Option<usize> {
    instruction.address.checked_sub(instruction.is_return.into())
}

/// The code at an address to which a call leads.
fn code_at(info: &ProfilerInfo, address: usize) -> CodeAt {
    let Some((method, rejit)) = function_at(info, RunAddress::called(address)) else {
        return if library_of(address).is_some() { CodeAt::Library } else { CodeAt::Piece };
    };
    let code = |(start, _): (CodeStart, Vec<CodeRange>)| CodeAt::Method { method, start: start.address() };
    code_around(info, method, rejit, address).map_or(CodeAt::Unknown, code)
}

/// Returns the place of the current statement, in a version of code that begins at `start`.
fn statement_place(info: &ProfilerInfo, start: CodeStart, instruction: Instruction) -> Option<IlPlace> {
    let at = u32::try_from(call_address(instruction)?.checked_sub(start.address())?).ok()?;
    let map = info.il_map_at(start).ok()?;
    let checks = || {
        let pieces = info.code_info_at(start).ok().filter(|_| instruction.is_return)?;
        place_of_checks(&pieces, &map, instruction.address)
    };
    IlRange::statement_at(&map, at).or_else(checks)
}

/// Start of the code version that contains an address.
pub fn code_start(info: &ProfilerInfo, function: FunctionId, address: RunAddress) -> Option<CodeStart> {
    let (_, rejit) = function_at(info, address)?;
    code_around(info, function, rejit, address.address()).map(|(start, _)| start)
}

/// Start and pieces of the code version that contains an address.
pub(crate) fn code_around(
    info: &ProfilerInfo,
    function: FunctionId,
    rejit: ReJitId,
    address: usize,
) -> Option<(CodeStart, Vec<CodeRange>)> {
    let starts = info.code_starts(function, rejit).ok()?;
    let pieces = |start: CodeStart| {
        let ranges = info.code_info_at(start).ok()?;
        ranges.iter().any(|range| range.contains(address)).then_some((start, ranges))
    };
    starts.into_iter().find_map(pieces)
}
