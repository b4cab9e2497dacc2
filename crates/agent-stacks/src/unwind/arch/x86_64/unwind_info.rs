//! Unwind information of x86-64, as the just-in-time compiler and the build-time compiler emit it
//! for each piece of code.
//!
//! The runtime uses the Windows format on every system ("x64 exception handling", `UNWIND_INFO`),
//! with one additional operation: 11 sets the frame pointer with an offset of 32 bits
//! (`src/coreclr/inc/win64unwind.h`, `UWOP_SET_FPREG_LARGE`). Codes describe the effects of a
//! prolog. They determine the position of the caller's stack pointer and frame pointer for each
//! instruction inside and after the prolog. Epilogs have no codes: see `epilog_step`.

/// Register number of the frame pointer, `rbp`.
const FRAME_POINTER: u8 = 5;
/// Most bytes of unwind information: a head and 255 codes.
pub(crate) const LONGEST_INFO: usize = 4 + 2 * 255;

/// The register to which a step's offsets are relative.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Base {
    StackPointer,
    FramePointer,
}

/// The step from a frame to its caller's frame.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct FrameStep {
    pub base: Base,
    /// Bytes from the base to the caller's stack pointer. The return address lies right below that.
    pub(crate) to_caller: i32,
    /// Bytes from the base to the saved frame pointer of the caller; `None` if the caller's frame
    /// pointer is still in its register.
    pub frame_pointer: Option<i32>,
}

impl FrameStep {
    /// The step by the frame pointer, which points at the saved frame pointer of the caller, below
    /// the return address.
    pub(crate) const BY_FRAME_POINTER: Self = Self { base: Base::FramePointer, to_caller: 16, frame_pointer: Some(0) };
    /// The step at the first instruction of a function: the return address is at the stack pointer.
    pub(crate) const AT_ENTRY: Self = Self { base: Base::StackPointer, to_caller: 8, frame_pointer: None };
}

/// Effect of one instruction of a prolog.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Operation {
    Push(u8),
    Allocate(u32),
    /// Sets the frame pointer to this many bytes above the stack pointer.
    SetFramePointer(u32),
    /// Stores a register this many bytes above the stack pointer after the prolog.
    Save(u8, u32),
    /// Nothing that affects a step.
    Other,
}

/// Unwind information of one piece of code.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct UnwindInfo {
    /// Bytes that the prolog takes.
    pub prolog: u8,
    /// The operations, the prolog's last one first, each with the end offset of its instruction.
    operations: Vec<(u8, Operation)>,
}

impl UnwindInfo {
    /// Reads unwind information that begins with these bytes; `None` if it is truncated or not
    /// understood.
    pub(crate) fn decode(bytes: &[u8]) -> Option<Self> {
        /// Flag: the information continues elsewhere.
        const CHAINED: u8 = 4;
        let &[head, prolog, count, frame, ref codes @ ..] = bytes else { return None };
        let is_known = head & 7 == 1 && head >> 3 & CHAINED == 0 && matches!(frame & 0xF, 0 | FRAME_POINTER);
        let codes = codes.as_chunks::<2>().0.get(..usize::from(count)).filter(|_| is_known)?;
        let mut operations = Vec::with_capacity(codes.len());
        let mut rest = codes;
        while let [[at, code], tail @ ..] = rest {
            let (operation, slots) = operation(*code, frame, tail)?;
            operations.push((*at, operation));
            rest = tail.get(slots..)?;
        }
        Some(Self { prolog, operations })
    }

    /// Whether the code begins with the described pushes. Operations placed before the first
    /// instruction were done by other code.
    pub(crate) fn fits(&self, first: &[u8]) -> bool {
        let is_there = |(at, operation): &(u8, Operation)| {
            let Operation::Push(register) = *operation else { return true };
            let before = first.get(..usize::from(*at)).unwrap_or_default();
            match before {
                [] => *at == 0,
                // Code that takes over a frame pushes its caller's frame pointer from another
                // register.
                [.., 0x50] if register == FRAME_POINTER => true,
                [.., 0x41, byte] if register >= 8 => *byte == 0x50 | register & 7,
                [.., byte] => register < 8 && *byte == 0x50 | register,
            }
        };
        self.operations.iter().all(is_there)
    }

    /// The step to the caller from this offset in the piece; `None` if it can't be determined. The
    /// offset must not be in an epilog.
    pub(crate) fn step(&self, offset: u32) -> Option<FrameStep> {
        let done =
            || self.operations.iter().filter(|(at, _)| u32::from(*at) <= offset).map(|(_, operation)| *operation);
        let set = done().find_map(|operation| match operation {
            Operation::SetFramePointer(bytes) => Some(i32::try_from(bytes).ok()),
            _ => None,
        });
        let (base, bottom) = match set {
            Some(bytes) => (Base::FramePointer, -bytes?),
            None => (Base::StackPointer, 0),
        };
        let (mut depth, mut frame_pointer) = (bottom, None);
        for operation in done() {
            match operation {
                Operation::Push(register) => {
                    if register == FRAME_POINTER {
                        frame_pointer = Some(depth);
                    }
                    depth = depth.checked_add(8)?;
                }
                Operation::Allocate(bytes) => depth = depth.checked_add_unsigned(bytes)?,
                // Bytes reserved on the stack since then do not matter to the frame pointer.
                Operation::SetFramePointer(_) => depth = bottom,
                Operation::Save(FRAME_POINTER, at) => frame_pointer = Some(bottom.checked_add_unsigned(at)?),
                Operation::Save(..) | Operation::Other => {}
            }
        }
        Some(FrameStep { base, to_caller: depth.checked_add(8)?, frame_pointer })
    }
}

/// The operation of a code, and how many codes after it belong to it.
fn operation(code: u8, frame: u8, rest: &[[u8; 2]]) -> Option<(Operation, usize)> {
    let (kind, info) = (code & 0xF, code >> 4);
    let short = || Some(u32::from(u16::from_le_bytes(*rest.first()?)));
    let long = || Some(short()? | u32::from(u16::from_le_bytes(*rest.get(1)?)) << 16);
    Some(match (kind, info) {
        (0, register) => (Operation::Push(register), 0),
        (1, 0) => (Operation::Allocate(short()? * 8), 1),
        (1, 1) => (Operation::Allocate(long()?), 2),
        (2, eighths) => (Operation::Allocate(u32::from(eighths) * 8 + 8), 0),
        (3, _) if frame & 0xF == FRAME_POINTER => (Operation::SetFramePointer(u32::from(frame >> 4) * 16), 0),
        (4, register) => (Operation::Save(register, short()? * 8), 1),
        (5, register) => (Operation::Save(register, long()?), 2),
        (8, _) => (Operation::Other, 1),
        (9, _) => (Operation::Other, 2),
        (11, _) if frame & 0xF == FRAME_POINTER => (Operation::SetFramePointer(long()?.checked_mul(16)?), 2),
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const SP: Base = Base::StackPointer;

    fn info(bytes: &[u8]) -> UnwindInfo {
        UnwindInfo::decode(bytes).expect("unwind information")
    }

    #[test]
    fn a_method_with_a_frame_is_stepped_over_at_each_instruction_of_its_prolog() {
        // push rbp (1); push r15 (3); push rbx (4); sub rsp, 0x10 (8); lea rbp, [rsp+0x20]: without
        // a code.
        let info = info(&[1, 13, 4, 0, 8, 0x12, 4, 0x30, 3, 0xF0, 1, 0x50]);
        let step = |to_caller, frame_pointer| Some(FrameStep { base: SP, to_caller, frame_pointer });
        let found = [0, 1, 3, 4, 8, 13, 500].map(|at| info.step(at));
        let whole = step(48, Some(32));
        assert_eq!(
            found,
            [step(8, None), step(16, Some(0)), step(24, Some(8)), step(32, Some(16)), whole, whole, whole]
        );
    }

    #[test]
    fn a_method_that_moves_its_stack_pointer_is_stepped_over_by_its_frame_pointer() {
        // push rbp (1); sub rsp, 0x40 (5); lea rbp, [rsp+0x40] (10), with either code for that.
        let short = info(&[1, 10, 3, 0x45, 10, 0x03, 5, 0x72, 1, 0x50]);
        let long = info(&[1, 10, 5, 0x05, 10, 0x0B, 4, 0, 0, 0, 5, 0x72, 1, 0x50]);
        let expected = Some(FrameStep::BY_FRAME_POINTER);
        assert_eq!([short.step(10), long.step(10)], [expected; 2]);
        let before = Some(FrameStep { base: SP, to_caller: 80, frame_pointer: Some(64) });
        assert_eq!([short.step(9), long.step(9)], [before; 2]);
    }

    #[test]
    fn a_body_that_took_over_a_frame_leads_to_the_caller_of_that_frame() {
        // The frame that was taken over, as if done before the first instruction: push rbp, 0x60
        // bytes. Then push rbp (5), push rbx (6).
        let info = info(&[1, 6, 4, 0, 6, 0x30, 5, 0x50, 0, 0xB2, 0, 0x50]);
        assert_eq!(info.step(0), Some(FrameStep { base: SP, to_caller: 0x60 + 16, frame_pointer: Some(0x60) }));
        assert_eq!(info.step(6), Some(FrameStep { base: SP, to_caller: 0x70 + 16, frame_pointer: Some(0x70) }));
    }

    #[test]
    fn large_frames_and_registers_of_other_kinds_are_read() {
        // sub rsp by a short and a long number; floating-point registers, which do not matter.
        assert_eq!(info(&[1, 7, 2, 0, 7, 0x01, 0, 2]).step(7).map(|step| step.to_caller), Some(0x200 * 8 + 8));
        assert_eq!(info(&[1, 7, 3, 0, 7, 0x11, 8, 0, 1, 0]).step(7).map(|step| step.to_caller), Some(0x10008 + 8));
        let floats = info(&[1, 9, 4, 0, 9, 0x68, 2, 0, 4, 0x12, 4, 0x30]);
        assert_eq!(floats.step(9), Some(FrameStep { base: SP, to_caller: 32, frame_pointer: None }));
    }

    #[test]
    fn information_of_other_code_does_not_fit() {
        let framed = info(&[1, 13, 4, 0, 8, 0x12, 4, 0x30, 3, 0xF0, 1, 0x50]);
        assert!(framed.fits(&[0x55, 0x41, 0x57, 0x53, 0x48]));
        assert!(!framed.fits(&[0x55, 0x41, 0x56, 0x53, 0x48]) && !framed.fits(&[0x90; 8]) && !framed.fits(&[0x55]));
        // mov rax, [rbp]; push rax; and the operations before
        assert!(info(&[1, 6, 2, 0, 5, 0x50, 0, 0x50]).fits(&[0x48, 0x8B, 0x45, 0, 0x50]));
    }

    #[test]
    fn what_is_cut_or_not_understood_is_nothing() {
        for bytes in [
            &[1, 4][..],
            &[2, 4, 0, 0],
            &[1 | 4 << 3, 4, 0, 0],
            &[1, 4, 0, 3],
            &[1, 4, 1, 0],
            &[1, 4, 1, 0, 4, 0x01],
            &[1, 4, 1, 0, 4, 0x0A],
            &[1, 4, 1, 0, 4, 0x03],
        ] {
            assert_eq!(UnwindInfo::decode(bytes), None, "{bytes:?}");
        }
    }
}
