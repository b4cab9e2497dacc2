//! Unwind information of compiled methods: its location, and the step to the caller at each
//! address.
//!
//! A body consists of pieces: the method itself, and one for each handler block (a funclet). Each
//! piece has unwind information of its own. For precompiled code, the image's table of pieces leads
//! to this information. For code compiled at run time, the runtime keeps the information behind a
//! header, to which the word before the code points (`RealCodeHeader` in
//! `src/coreclr/vm/codeman.h`: the number of pieces at 32, the pieces from 36 on; the same on 8, 9
//! and 10).
//!
//! The runtime does not promise this header. So its contents are trusted only if they are
//! consistent: the pieces follow one another within the code, each has information that is
//! understood, and the prolog of the first piece does what the information says. Any other body has
//! no unwind information, and its steps are guesses.

use std::ops::Range;

use clrscope_agent_base::os::memory::copy_while_there;

use super::arch::{
    Base, EPILOG_BYTES, FIRST_BYTES, FrameStep, LONGEST_INFO, UnwindInfo, bytes_to_own_frame_pointer, epilog_step,
    prolog_step,
};
use super::images::{Image, ImagePiece};

/// Most bytes of a handler block in which it takes over its method's frame pointer.
const BLOCK_BYTES: usize = 32;
/// Most pieces of one body.
const MOST_PIECES: usize = 1 << 12;
/// Offsets in the runtime's header of a body: the number of pieces, and the first piece.
const COUNT_AT: usize = 32;
const PIECES_AT: usize = 36;

/// The memory from which code and its unwind information are read.
pub trait Memory {
    /// Copies memory up to the first unmapped page. Returns the number of bytes.
    fn copy_while_there(&self, address: usize, into: &mut [u8]) -> usize;

    /// Copies memory that may be unmapped. Returns whether all of it was mapped.
    fn copy(&self, address: usize, into: &mut [u8]) -> bool {
        self.copy_while_there(address, into) == into.len()
    }

    /// Returns the eight bytes at an address; `None` if they are not mapped.
    fn word(&self, address: usize) -> Option<usize> {
        let mut bytes = [0; 8];
        self.copy(address, &mut bytes).then(|| usize::from_le_bytes(bytes))
    }

    /// Returns the four bytes at an address; `None` if they are not mapped.
    fn number(&self, address: usize) -> Option<u32> {
        let mut bytes = [0; 4];
        self.copy(address, &mut bytes).then(|| u32::from_le_bytes(bytes))
    }
}

/// Memory of this process.
pub struct OwnMemory;

impl Memory for OwnMemory {
    fn copy_while_there(&self, address: usize, into: &mut [u8]) -> usize {
        copy_while_there(address, into)
    }
}

/// The code of a body and its location. They lead to the unwind information.
#[derive(Clone, Copy)]
pub(crate) struct BodyCode<'a> {
    pub code: &'a Range<usize>,
    /// The image that contains the code; `None` if it was compiled at run time.
    pub image: Option<&'a Image>,
    pub memory: &'a dyn Memory,
}

/// The step from a place in a body to the caller.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct BodyStep {
    pub step: FrameStep,
    /// Whether the step follows from unwind information; otherwise it is a guess.
    pub(crate) is_certain: bool,
}

/// A body's unwind information, as it is kept.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum BodyUnwind {
    /// The body has one piece, like most bodies.
    One(OnePiece),
    Many(Box<Box<[Piece]>>),
    /// There is no trusted information.
    Unknown,
}

/// The only piece of a body: the length of its prolog, and the step after the prolog. There is one
/// for each method that was ever seen, so a step takes only 12 bytes here instead of 16.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct OnePiece {
    prolog: u8,
    base: Base,
    to_caller: i32,
    /// [`NONE`](Self::NONE) if the frame pointer is unchanged.
    frame_pointer: i32,
}

impl OnePiece {
    /// A distance that no frame has.
    const NONE: i32 = i32::MIN;

    fn new(prolog: u8, step: FrameStep) -> Self {
        let FrameStep { base, to_caller, frame_pointer } = step;
        Self { prolog, base, to_caller, frame_pointer: frame_pointer.unwrap_or(Self::NONE) }
    }

    fn step(self) -> FrameStep {
        let frame_pointer = (self.frame_pointer != Self::NONE).then_some(self.frame_pointer);
        FrameStep { base: self.base, to_caller: self.to_caller, frame_pointer }
    }
}

/// A piece of a body.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Piece {
    /// Bytes from the beginning of the body.
    begin: u32,
    end: u32,
    prolog: u8,
    step: FrameStep,
}

/// A piece of code, with the address of its unwind information.
struct UnwindPiece {
    code: Range<usize>,
    info: usize,
}

fn unwind_piece(base: usize, piece: ImagePiece) -> UnwindPiece {
    let at = |number: u32| base.saturating_add(number as usize);
    UnwindPiece { code: at(piece.begin)..at(piece.end), info: at(piece.unwind_info) }
}

impl BodyCode<'_> {
    /// The body's pieces with the addresses of their unwind information; empty if there is no
    /// trusted information.
    #[cfg(test)]
    pub(crate) fn pieces_with_info(&self) -> Vec<(Range<usize>, usize)> {
        self.pieces().into_iter().flatten().map(|piece| (piece.code, piece.info)).collect()
    }

    fn pieces(&self) -> Option<Vec<UnwindPiece>> {
        let code = self.code;
        let found = match self.image {
            Some(image) => self.pieces_in_image(image)?,
            None => self.pieces_by_header()?,
        };
        let follow = found.windows(2).all(|pair| pair[0].code.end <= pair[1].code.start);
        let inside = |piece: &UnwindPiece| {
            code.start <= piece.code.start && piece.code.end <= code.end && !piece.code.is_empty()
        };
        let begins = found.first().is_some_and(|first| first.code.start == code.start);
        (begins && follow && found.iter().all(inside)).then_some(found)
    }

    fn pieces_by_header(&self) -> Option<Vec<UnwindPiece>> {
        let header = self.memory.word(self.code.start.checked_sub(8)?)?;
        let count = self.memory.number(header.checked_add(COUNT_AT)?)? as usize;
        if count == 0 || count > MOST_PIECES {
            return None;
        }
        let mut bytes = vec![0; count * ImagePiece::BYTES];
        self.memory.copy(header.checked_add(PIECES_AT)?, &mut bytes).then_some(())?;
        // Numbers are relative to the memory block in which the runtime has placed the code.
        let base = self.code.start.checked_sub(ImagePiece::all(&bytes).next()?.begin as usize)?;
        Some(ImagePiece::all(&bytes).map(|piece| unwind_piece(base, piece)).collect())
    }

    fn pieces_in_image(&self, image: &Image) -> Option<Vec<UnwindPiece>> {
        let base = image.addresses.start;
        let inside = |address: usize| u32::try_from(address.checked_sub(base)?).ok();
        let pieces = image.pieces_in(inside(self.code.start)?..inside(self.code.end)?);
        Some(pieces.iter().take(MOST_PIECES).map(|piece| unwind_piece(base, *piece)).collect())
    }

    fn info_at(&self, address: usize) -> Option<UnwindInfo> {
        let mut bytes = [0; LONGEST_INFO];
        let there = self.memory.copy_while_there(address, &mut bytes);
        UnwindInfo::decode(&bytes[..there])
    }

    /// The first bytes, as far as they can be read.
    fn first_bytes(&self) -> Vec<u8> {
        let mut first = vec![0; FIRST_BYTES.min(self.code.len())];
        let there = self.memory.copy_while_there(self.code.start, &mut first);
        first.truncate(there);
        first
    }

    /// Whether a handler block, whose prolog ends at `begin`, has its method's frame pointer at an
    /// address.
    fn has_own_frame_pointer(&self, begin: usize, address: usize) -> bool {
        let mut code = [0; BLOCK_BYTES];
        if address >= begin + code.len() {
            return true;
        }
        let there = self.memory.copy_while_there(begin, &mut code);
        address >= begin + bytes_to_own_frame_pointer(&code[..there])
    }

    /// The step by the effects of the first instructions, if the address is within those that are
    /// read; otherwise by the frame pointer.
    fn guess(&self, address: usize) -> FrameStep {
        prolog_step(&self.first_bytes(), address.saturating_sub(self.code.start))
    }
}

impl BodyUnwind {
    /// Finds the unwind information of a body.
    pub(crate) fn find(body: BodyCode<'_>) -> Self {
        let all = || {
            let found = body.pieces()?;
            if body.image.is_none() {
                body.info_at(found.first()?.info)?.fits(&body.first_bytes()).then_some(())?;
            }
            let piece = |found: &UnwindPiece| {
                let info = body.info_at(found.info)?;
                let at = |address: usize| u32::try_from(address - body.code.start).ok();
                let (begin, end) = (at(found.code.start)?, at(found.code.end)?);
                Some(Piece { begin, end, prolog: info.prolog, step: info.step(u32::MAX)? })
            };
            found.iter().map(piece).collect::<Option<Vec<Piece>>>()
        };
        match all().as_deref() {
            None | Some([]) => Self::Unknown,
            Some([Piece { prolog, step, .. }]) => Self::One(OnePiece::new(*prolog, *step)),
            Some(pieces) => Self::Many(Box::new(pieces.into())),
        }
    }

    /// The step to the caller behind the prolog, for the body itself and not its handler blocks.
    pub(crate) fn frame(&self) -> Option<FrameStep> {
        match self {
            Self::One(piece) => Some(piece.step()),
            Self::Many(pieces) => pieces.first().map(|piece| piece.step),
            Self::Unknown => None,
        }
    }

    /// The step to the caller from an address in the body. `is_return`: the address is a return
    /// address, not an interrupted instruction.
    pub(crate) fn step(&self, body: BodyCode<'_>, address: usize, is_return: bool) -> BodyStep {
        let code = body.code;
        if let Some(step) = self.of_given_frame(code, address, is_return) {
            return BodyStep { step, is_certain: true };
        }
        if !is_return {
            let mut rest = [0; EPILOG_BYTES];
            let left = EPILOG_BYTES.min(code.end.saturating_sub(address));
            let there = body.memory.copy_while_there(address, &mut rest[..left]);
            if let Some(step) = epilog_step(&rest[..there], address, |at| code.contains(&at)) {
                return BodyStep { step, is_certain: true };
            }
        }
        let found = self.behind_epilogs(body, address, is_return);
        found.unwrap_or_else(|| BodyStep { step: body.guess(address), is_certain: false })
    }

    /// The step from a handler block to the code that runs the block; `None` if the address is in
    /// no block.
    pub(crate) fn out_of_block(&self, body: BodyCode<'_>, address: usize, is_return: bool) -> Option<FrameStep> {
        let Self::Many(pieces) = self else { return None };
        let at = u32::try_from(address.checked_sub(body.code.start + usize::from(is_return))?).ok()?;
        let piece = pieces[1..].iter().find(|piece| (piece.begin..piece.end).contains(&at))?;
        let begin = body.code.start + piece.begin as usize;
        let offset = u32::try_from(address - begin).ok()?;
        if offset >= piece.prolog.into() {
            return Some(piece.step);
        }
        body.info_at(body.pieces()?.iter().find(|piece| piece.code.start == begin)?.info)?.step(offset)
    }

    /// The step from a handler block that keeps its method's frame pointer, which it is given, all
    /// the time. That is so from .NET 10 on.
    fn of_given_frame(&self, code: &Range<usize>, address: usize, is_return: bool) -> Option<FrameStep> {
        let Self::Many(pieces) = self else { return None };
        let at = u32::try_from(address.checked_sub(code.start + usize::from(is_return))?).ok()?;
        let piece = pieces[1..].iter().find(|piece| (piece.begin..piece.end).contains(&at))?;
        let keeps = piece.step.base == Base::StackPointer && piece.step.frame_pointer.is_none();
        if keeps { pieces[0].step.of_block() } else { None }
    }

    fn behind_epilogs(&self, body: BodyCode<'_>, address: usize, is_return: bool) -> Option<BodyStep> {
        let certain = |step: FrameStep| BodyStep { step, is_certain: true };
        let start = body.code.start;
        // A call may be the last instruction of a piece.
        let at = u32::try_from(address.checked_sub(start + usize::from(is_return))?).ok()?;
        let in_prolog = |begin: u32, prolog: u8| {
            let offset = u32::try_from(address - start).ok()?.checked_sub(begin)?;
            (offset < u32::from(prolog)).then_some(offset)
        };
        let exact = |begin: u32, offset: u32| {
            let start = start + begin as usize;
            body.info_at(body.pieces()?.iter().find(|piece| piece.code.start == start)?.info)?.step(offset)
        };
        match self {
            Self::Unknown => None,
            Self::One(piece) => {
                in_prolog(0, piece.prolog).map_or(Some(piece.step()), |offset| exact(0, offset)).map(certain)
            }
            Self::Many(pieces) => {
                let (first, after) = (pieces.first()?, pieces.partition_point(|piece| piece.begin <= at));
                let piece = pieces.get(after.checked_sub(1)?).filter(|piece| at < piece.end)?;
                if let Some(offset) = in_prolog(piece.begin, piece.prolog) {
                    return exact(piece.begin, offset).map(certain);
                }
                if piece.begin == 0 {
                    return Some(certain(piece.step));
                }
                // A handler block has its method's frame pointer, whose frame it works on, once it
                // has taken the pointer over. Before that, the step leads to the code that runs the
                // block.
                let begin = start + piece.begin as usize + usize::from(piece.prolog);
                if !is_return && !body.has_own_frame_pointer(begin, address) {
                    return Some(BodyStep { step: piece.step, is_certain: false });
                }
                first.step.of_block().map(certain)
            }
        }
    }
}

impl FrameStep {
    /// Whether the frame pointer points at the saved frame pointer of the caller, right below the
    /// return address (`genSPtoFPdelta` in `src/coreclr/jit/codegenxarch.cpp`), as in all methods
    /// with a frame pointer of their own.
    pub(crate) fn keeps_frame_pointer(self) -> bool {
        self.base == Base::FramePointer || self.frame_pointer.is_some_and(|at| at + 16 == self.to_caller)
    }

    /// The step to the caller of a method from one of its handler blocks, after the block's prolog.
    /// It uses the frame pointer, which is the method's own there; `None` for a method without one.
    fn of_block(self) -> Option<Self> {
        match self.base {
            Base::FramePointer => Some(self),
            Base::StackPointer => self.keeps_frame_pointer().then_some(Self::BY_FRAME_POINTER),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// push rbp; sub rsp, 0x20; lea rbp, [rsp+0x20]; nop; add rsp, 0x20; pop rbp; ret. Then a
    /// block: push rbp; nop; pop rbp; ret.
    const CODE: [u8; 22] = [
        0x55, 0x48, 0x83, 0xEC, 0x20, 0x48, 0x8D, 0x6C, 0x24, 0x20, 0x90, 0x48, 0x83, 0xC4, 0x20, 0x5D, 0xC3, //
        0x55, 0x90, 0x90, 0x5D, 0xC3,
    ];
    const BODY_INFO: [u8; 8] = [1, 10, 2, 0, 5, 0x32, 1, 0x50];
    const BLOCK_INFO: [u8; 6] = [1, 1, 1, 0, 1, 0x50];

    fn own<'a>(code: &'a Range<usize>, image: Option<&'a Image>) -> BodyCode<'a> {
        BodyCode { code, image, memory: &OwnMemory }
    }

    /// Memory with code, information and header as the runtime lays them out. Before the code are
    /// 16 bytes.
    fn memory(pieces: &[[u32; 3]]) -> (Vec<u64>, Range<usize>) {
        let mut words = vec![0_u64; 64];
        let base = words.as_ptr().expose_provenance();
        let mut bytes: Vec<u8> = words.iter().flat_map(|word| word.to_le_bytes()).collect();
        let mut put = |at: usize, new: &[u8]| bytes[at..at + new.len()].copy_from_slice(new);
        put(8, &(base as u64 + 0x100).to_le_bytes());
        put(16, &CODE);
        put(0x80, &BODY_INFO);
        put(0x90, &BLOCK_INFO);
        put(0x100 + COUNT_AT, &(pieces.len() as u32).to_le_bytes());
        for (index, piece) in pieces.iter().enumerate() {
            piece.iter().enumerate().for_each(|(at, number)| {
                put(0x100 + PIECES_AT + index * ImagePiece::BYTES + 4 * at, &number.to_le_bytes());
            });
        }
        words.copy_from_slice(&bytes.as_chunks().0.iter().map(|word| u64::from_le_bytes(*word)).collect::<Vec<_>>());
        (words, base + 16..base + 16 + CODE.len())
    }

    const AT_RETURN_ADDRESS: FrameStep = FrameStep { base: Base::StackPointer, to_caller: 8, frame_pointer: None };
    const PIECES: [[u32; 3]; 2] = [[16, 33, 0x80], [33, 38, 0x90]];

    #[test]
    fn a_body_that_was_compiled_a_moment_ago_is_stepped_over_by_what_its_header_leads_to() {
        let (_words, code) = memory(&PIECES);
        let unwind = BodyUnwind::find(own(&code, None));
        let step = |offset: usize, is_return| unwind.step(own(&code, None), code.start + offset, is_return);
        let by_sp = |to_caller, frame_pointer| BodyStep {
            step: FrameStep { base: Base::StackPointer, to_caller, frame_pointer },
            is_certain: true,
        };
        let by_frame_pointer = BodyStep { step: FrameStep::BY_FRAME_POINTER, is_certain: true };
        assert_eq!(
            [step(0, false), step(1, false), step(5, false)],
            [by_sp(8, None), by_sp(16, Some(0)), by_sp(48, Some(32))]
        );
        assert_eq!(
            [step(10, false), step(15, false), step(16, false)],
            [by_sp(48, Some(32)), by_sp(16, Some(0)), by_sp(8, None)]
        );
        assert_eq!(step(17, true), by_sp(48, Some(32)), "a call that is the last instruction");
        assert_eq!([step(17, false), step(18, false)], [by_sp(8, None), by_frame_pointer], "the block");
    }

    #[test]
    fn unwind_information_that_does_not_fit_is_none_and_steps_are_guesses() {
        let cases: [&[[u32; 3]]; 6] = [
            &[],
            &[[16, 60, 0x80]],
            &[[16, 33, 0x84]],
            &[[16, 33, 0x80], [30, 38, 0x90]],
            &[[16, 33, 0x90]],
            &[[16, 16, 0x80]],
        ];
        for pieces in cases {
            let (_words, code) = memory(pieces);
            let unwind = BodyUnwind::find(own(&code, None));
            let fits = pieces == [[16, 33, 0x90]];
            assert_eq!(unwind == BodyUnwind::Unknown, !fits, "{pieces:?}");
            assert!(fits || !unwind.step(own(&code, None), code.start + 10, false).is_certain, "{pieces:?}");
        }
        assert_eq!(BodyUnwind::find(own(&(0x1000..0x1010), None)), BodyUnwind::Unknown, "nothing can be read");
    }

    #[test]
    fn pieces_of_an_image_are_found_in_its_table() {
        let (mut words, code) = memory(&[]);
        let base = code.start - 16;
        let table = [[4, 16, 0x80], [16, 33, 0x80], [33, 38, 0x90], [40, 60, 0x80]];
        let numbers: Vec<u32> = table.into_iter().flatten().collect();
        words[32..38].copy_from_slice(
            &numbers.as_chunks().0.iter().map(|[a, b]| u64::from(*a) | u64::from(*b) << 32).collect::<Vec<_>>(),
        );
        let image = Image::from_ranges(base..base + 512, base + 256..base + 256 + 4 * ImagePiece::BYTES);
        let unwind = BodyUnwind::find(own(&code, Some(&image)));
        assert!(matches!(&unwind, BodyUnwind::Many(pieces) if pieces.len() == 2), "{unwind:?}");
        let at_return = BodyStep { step: AT_RETURN_ADDRESS, is_certain: true };
        assert_eq!(unwind.step(own(&code, Some(&image)), code.start, false), at_return);
    }
}
