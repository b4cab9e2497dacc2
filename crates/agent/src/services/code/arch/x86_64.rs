//! Compiled code of x86-64: where the caller of the innermost method is found, instruction by instruction.
//!
//! The runtime keeps `rbp` for frames in all its code on Unix. A method either pushes it first and points it at the pushed
//! word, or leaves it alone; between two instructions of a prolog or epilog something in between holds.

/// Bytes of a method's beginning that [`leaf_step`] looks at.
pub(crate) const FIRST_BYTES: usize = 64;

/// Code that handlers of signals return to, by which alone debuggers know it, too: `mov rax, 15; syscall` (rt_sigreturn).
pub(crate) const SIGNAL_RETURN: [u8; 9] = [0x48, 0xC7, 0xC0, 0x0F, 0, 0, 0, 0x0F, 0x05];

/// Step from an interrupted instruction to its caller.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum LeafStep {
    /// By the frame pointer: `[rbp]` is the caller's, `[rbp + 8]` the return address.
    FramePointer,
    /// The return address lies so many bytes above the stack pointer. The caller's frame pointer lies as many bytes above
    /// the stack pointer as the second number says, or is still in its register.
    StackPointer(u32, Option<u32>),
}

/// Effect of one instruction of a prolog.
enum Prolog {
    /// Pushes a register; whether that is the frame pointer.
    Push(bool),
    /// Takes bytes off the stack pointer.
    Take(u32),
    /// Points the frame pointer at its frame.
    Frame,
    /// Nothing that matters.
    Other,
}

/// The step from an instruction `offset` bytes into a method whose first bytes are `first`; `rest` are the bytes from that
/// instruction on.
pub(crate) fn leaf_step(first: &[u8], offset: usize, rest: &[u8]) -> LeafStep {
    if let Some(step) = epilog(rest) {
        return step;
    }
    let (mut at, mut depth, mut pushed, mut framed) = (0, 0_u32, None, false);
    while at < offset {
        let Some((bytes, what)) = prolog(&first[at.min(first.len())..]) else { break };
        at += bytes;
        match what {
            Prolog::Push(is_frame_pointer) => {
                depth += 8;
                if is_frame_pointer {
                    pushed = Some(depth);
                }
            }
            Prolog::Take(bytes) => depth += bytes,
            Prolog::Frame => framed = true,
            Prolog::Other => {}
        }
    }
    match framed {
        true => LeafStep::FramePointer,
        false => LeafStep::StackPointer(depth, pushed.map(|pushed| depth - pushed)),
    }
}

/// The first instruction of `code` with its length, if it may stand in a prolog.
fn prolog(code: &[u8]) -> Option<(usize, Prolog)> {
    Some(match *code {
        [0x55, ..] => (1, Prolog::Push(true)),
        // mov rax, [rbp]; push rax: what takes over a running frame keeps its caller's frame pointer.
        [0x48, 0x8B, 0x45, 0x00, 0x50, ..] => (5, Prolog::Push(true)),
        [0x50..=0x57, ..] => (1, Prolog::Push(false)),
        [0x41, 0x50..=0x57, ..] => (2, Prolog::Push(false)),
        [0x48, 0x83, 0xEC, bytes @ 0..0x80, ..] => (4, Prolog::Take(bytes.into())),
        [0x48, 0x81, 0xEC, a, b, c, d, ..] => (7, Prolog::Take(u32::from_le_bytes([a, b, c, d]))),
        // vzeroupper
        [0xC5, 0xF8, 0x77, ..] => (3, Prolog::Other),
        // mov rbp, rsp; lea rbp, [rsp + n]
        [0x48, 0x8B, 0xEC, ..] | [0x48, 0x89, 0xE5, ..] => (3, Prolog::Frame),
        [0x48, 0x8D, 0x6C, 0x24, _, ..] => (5, Prolog::Frame),
        [0x48, 0x8D, 0xAC, 0x24, _, _, _, _, ..] => (8, Prolog::Frame),
        _ => return None,
    })
}

/// The step where the instructions from here on are the rest of an epilog: stack pointer, pops, return or jump.
fn epilog(mut rest: &[u8]) -> Option<LeafStep> {
    let (mut depth, mut popped) = (0_u32, None);
    loop {
        rest = match rest {
            [0x48, 0x83, 0xC4, bytes @ 0..0x80, rest @ ..] => {
                depth += u32::from(*bytes);
                rest
            }
            [0x48, 0x81, 0xC4, a, b, c, d, rest @ ..] => {
                depth = depth.checked_add(u32::from_le_bytes([*a, *b, *c, *d]))?;
                rest
            }
            // vzeroupper
            [0xC5, 0xF8, 0x77, rest @ ..] => rest,
            [0x5D, rest @ ..] => {
                popped = Some(depth);
                depth += 8;
                rest
            }
            [0x58..=0x5B | 0x5E..=0x5F, rest @ ..] | [0x41, 0x58..=0x5F, rest @ ..] => {
                depth += 8;
                rest
            }
            // ret; after pops a jump, by which the method is replaced by what it calls last
            [0xC3, ..] => return Some(LeafStep::StackPointer(depth, popped)),
            [0xE9, ..] | [0xFF, 0x25, ..] | [0x48, 0xFF, 0xE0, ..] if depth > 0 => {
                return Some(LeafStep::StackPointer(depth, popped));
            }
            _ => return None,
        };
    }
}

/// Whether a method with these first bytes took over a running frame (on-stack replacement).
pub(crate) fn takes_over_frame(first: &[u8]) -> bool {
    first.starts_with(&[0x48, 0x8B, 0x45, 0x00, 0x50])
}

/// Whether code counts how often its blocks run, for the optimiser: an address in a register and an increment there.
pub(crate) fn is_counting(code: &[u8]) -> bool {
    code.windows(12).any(|code| matches!(code, [0x48, 0xB8..=0xBF, .., 0xFF, register] if *register < 8))
}

/// Whether the instruction before is a call of the kernel, given the bytes that end there.
pub(crate) fn follows_system_call(before: &[u8]) -> bool {
    before.ends_with(&[0x0F, 0x05])
}

#[cfg(test)]
mod tests {
    use super::*;
    use LeafStep::{FramePointer, StackPointer};

    /// push rbp; push r15; push rbx; sub rsp, 0x10; lea rbp, [rsp+0x20]; mov rbx, rdi; ...; add rsp, 0x10; pop rbx; pop r15;
    /// pop rbp; ret
    const FRAMED: [u8; 27] = [
        0x55, 0x41, 0x57, 0x53, 0x48, 0x83, 0xEC, 0x10, 0x48, 0x8D, 0x6C, 0x24, 0x20, 0x48, 0x8B, 0xDF, 0x90, 0x48,
        0x83, 0xC4, 0x10, 0x5B, 0x41, 0x5F, 0x5D, 0xC3, 0xCC,
    ];

    fn at(code: &[u8], offset: usize) -> LeafStep {
        leaf_step(code, offset, &code[offset..])
    }

    #[test]
    fn the_caller_is_found_at_each_instruction_of_a_framed_method() {
        let expected = [
            (0, StackPointer(0, None)),
            (1, StackPointer(8, Some(0))),
            (3, StackPointer(16, Some(8))),
            (4, StackPointer(24, Some(16))),
            (8, StackPointer(40, Some(32))),
            (13, FramePointer),
            (16, FramePointer),
            (17, StackPointer(40, Some(32))),
            (21, StackPointer(24, Some(16))),
            (22, StackPointer(16, Some(8))),
            (24, StackPointer(8, Some(0))),
            (25, StackPointer(0, None)),
        ];
        for (offset, step) in expected {
            assert_eq!(at(&FRAMED, offset), step, "at {offset}");
        }
    }

    #[test]
    fn a_method_without_a_frame_leaves_its_return_address_above_what_it_took() {
        // push rax; mov eax, edi; imul eax, esi; add rsp, 8; ret
        let code = [0x50, 0x8B, 0xC7, 0x0F, 0xAF, 0xC6, 0x48, 0x83, 0xC4, 0x08, 0xC3];
        assert_eq!(
            [at(&code, 0), at(&code, 1), at(&code, 3)],
            [StackPointer(0, None), StackPointer(8, None), StackPointer(8, None)]
        );
        assert_eq!([at(&code, 6), at(&code, 10)], [StackPointer(8, None), StackPointer(0, None)]);
        // lea eax, [rdi+rsi]; ret
        assert_eq!(at(&[0x8D, 0x04, 0x37, 0xC3], 0), StackPointer(0, None));
        // pop rbp; jmp: replaced by what it calls last. A jump alone is a loop.
        assert_eq!(epilog(&[0x5D, 0x48, 0xFF, 0xE0]), Some(StackPointer(8, Some(0))));
        assert_eq!((epilog(&[0xE9, 0, 0, 0, 0]), epilog(&[])), (None, None));
    }

    #[test]
    fn kinds_of_code_are_told_apart() {
        assert!(takes_over_frame(&[0x48, 0x8B, 0x45, 0, 0x50, 0x48]) && !takes_over_frame(&FRAMED));
        // mov rdi, address; inc dword ptr [rdi]
        assert!(is_counting(&[0x90, 0x48, 0xBF, 1, 2, 3, 4, 5, 6, 7, 8, 0xFF, 0x07]) && !is_counting(&FRAMED));
        assert!(follows_system_call(&[0xB8, 0x0F, 0x05]) && !follows_system_call(&[0x05]));
    }
}
