//! Frame pointers of a library's functions, where only the stack pointer is known.
//!
//! For a waiting thread the system gives only the stack pointer, and no other register. Functions
//! of the C library save the frame pointer or leave it unchanged, so it is found on the stack as
//! soon as a function has saved it. But a function that needs the frame pointer may wait in a
//! system call of its own; then no function has saved it. In this case the instructions determine
//! it: the prolog has pushed and reserved a number of bytes, and the epilog must release exactly
//! these, provided that nothing in between moves the stack pointer.

use super::instructions::{EPILOG_BYTES, Prolog, epilog_step, prolog};

/// Beginnings of a function with a frame pointer: `push rbp; mov rbp, rsp`, in both encodings.
const BEGINNINGS: [[u8; 4]; 2] = [[0x55, 0x48, 0x89, 0xE5], [0x55, 0x48, 0x8B, 0xEC]];
/// `endbr64`, the mark of targets of indirect jumps.
const BRANCH_TARGET: [u8; 4] = [0xF3, 0x0F, 0x1E, 0xFA];

/// Distance in bytes from the stack pointer to the frame pointer at an instruction `offset` bytes
/// into a function with this code. `None` if the code does not guarantee that the distance is
/// constant after the prolog.
pub(crate) fn bytes_to_frame_pointer(code: &[u8], offset: usize) -> Option<usize> {
    let start = if code.starts_with(&BRANCH_TARGET) { BRANCH_TARGET.len() } else { 0 };
    let mut at = start + 4;
    BEGINNINGS.iter().any(|beginning| code[start.min(code.len())..].starts_with(beginning)).then_some(())?;
    let mut depth = 0_usize;
    while let Some((bytes, what)) = prolog(code.get(at..)?) {
        match what {
            Prolog::Push(_) => depth += 8,
            Prolog::Take(bytes) => depth = depth.checked_add(bytes as usize)?,
            Prolog::Frame | Prolog::Other => return None,
        }
        at += bytes;
    }
    let body = code.get(at..)?;
    let moves = body.windows(3).any(moves_stack_pointer);
    (offset >= at && !moves && given_back(body) == Some(depth)).then_some(depth)
}

/// Whether an instruction begins here that sets the stack pointer in another way than by adding a
/// constant. Bytes of other instructions may look like one.
fn moves_stack_pointer(code: &[u8]) -> bool {
    match *code {
        // sub, and: a number of bytes
        [0x48, 0x81 | 0x83, 0xEC | 0xE4] => true,
        // mov, sub, and: the stack pointer by a register
        [0x48 | 0x4C, 0x89 | 0x29 | 0x21, what] if what & 0xC7 == 0xC4 => true,
        // mov, sub, and, lea: the stack pointer by memory or a register
        [0x48..=0x4B, 0x8B | 0x2B | 0x23 | 0x8D, what] => what & 0x38 == 0x20,
        _ => false,
    }
}

/// Number of bytes that the longest epilog in this code releases before it restores the caller's
/// frame pointer. `None` if there is no epilog, or where stack is released elsewhere, for example
/// after calls with arguments on the stack.
fn given_back(code: &[u8]) -> Option<usize> {
    let epilog = |at: usize| {
        let rest = &code[at..];
        // Every jump is assumed to leave the function. If one does not, the pops before it have
        // another purpose.
        epilog_step(&rest[..EPILOG_BYTES.min(rest.len())], at, |_| false)
    };
    let gives = |at: usize| matches!(code[at..], [0x48, 0x81 | 0x83, 0xC4, ..]);
    let is_pop = |at: usize| matches!(code[at..], [0x58..=0x5F, ..]);
    let mut longest = None;
    for at in (0..code.len()).filter(|&at| gives(at) || is_pop(at)) {
        match epilog(at).map(|step| step.frame_pointer) {
            Some(Some(bytes)) => longest = longest.max(usize::try_from(bytes).ok()),
            _ if gives(at) => return None,
            _ => {}
        }
    }
    longest
}

#[cfg(test)]
mod tests {
    use super::*;

    /// push rbp; mov rbp, rsp; push r15; push rbx; sub rsp, 0x18; call; nop; add rsp, 0x18; pop
    /// rbx; pop r15; pop rbp; ret
    const PLAIN: [u8; 27] = [
        0x55, 0x48, 0x89, 0xE5, 0x41, 0x57, 0x53, 0x48, 0x83, 0xEC, 0x18, 0xE8, 0, 0, 0, 0, 0x90, 0x48, 0x83, 0xC4,
        0x18, 0x5B, 0x41, 0x5F, 0x5D, 0xC3, 0xCC,
    ];
    const RETURN: usize = 16;

    fn with(at: usize, bytes: &[u8]) -> Vec<u8> {
        let mut code = PLAIN.to_vec();
        code.splice(at..at, bytes.iter().copied());
        code
    }

    #[test]
    fn the_frame_pointer_lies_as_far_out_as_the_prolog_has_gone_and_the_epilog_goes_back() {
        assert_eq!(bytes_to_frame_pointer(&PLAIN, RETURN), Some(0x18 + 16));
        assert_eq!(bytes_to_frame_pointer(&with(0, &BRANCH_TARGET), RETURN + 4), Some(0x18 + 16));
        // push rbp; mov rbp, rsp; push rax; call; add rsp, 8; pop rbp; ret
        let aligned = [0x55, 0x48, 0x89, 0xE5, 0x50, 0xE8, 0, 0, 0, 0, 0x48, 0x83, 0xC4, 8, 0x5D, 0xC3];
        assert_eq!(bytes_to_frame_pointer(&aligned, 10), Some(8));
        // mov r12, rcx; mov rbp, rsp; mov rax, rsp: these set other registers
        let others = with(RETURN, &[0x49, 0x89, 0xCC, 0x48, 0x89, 0xE5, 0x48, 0x89, 0xE0]);
        assert_eq!(bytes_to_frame_pointer(&others, RETURN), Some(0x18 + 16));
        // push rbp; mov rbp, rsp; push rbx; call; pop rbx; pop rbp; jmp
        let last_call = [0x55, 0x48, 0x89, 0xE5, 0x53, 0xE8, 0, 0, 0, 0, 0x5B, 0x5D, 0xE9, 0, 1, 0, 0];
        assert_eq!(bytes_to_frame_pointer(&last_call, 10), Some(8));
    }

    #[test]
    fn a_function_that_may_move_its_stack_pointer_says_nothing() {
        assert_eq!(bytes_to_frame_pointer(&PLAIN, 7), None, "within the prolog");
        let moves: [&[u8]; 8] = [
            // sub rsp, rax; mov rsp, rax; lea rsp, [rbp - 0x10]; and rsp, -32; sub rsp, 8; mov rsp,
            // r8; sub rsp, [rax]
            &[0x48, 0x29, 0xC4],
            &[0x48, 0x89, 0xC4],
            &[0x48, 0x8D, 0x65, 0xF0],
            &[0x48, 0x83, 0xE4, 0xE0],
            &[0x48, 0x83, 0xEC, 8],
            &[0x4C, 0x89, 0xC4],
            &[0x48, 0x2B, 0x20],
            // add rsp, 16: arguments were there
            &[0x48, 0x83, 0xC4, 16],
        ];
        for bytes in moves {
            assert_eq!(bytes_to_frame_pointer(&with(RETURN, bytes), RETURN), None, "{bytes:x?}");
        }
        let mut less = PLAIN;
        less[20] = 0x10;
        assert_eq!(bytes_to_frame_pointer(&less, RETURN), None, "the epilog gives less back");
        assert_eq!(bytes_to_frame_pointer(&PLAIN[..17], RETURN), None, "no epilog");
        // leave; ret
        assert_eq!(bytes_to_frame_pointer(&[&PLAIN[..17], &[0xC9, 0xC3]].concat(), RETURN), None);
        assert_eq!(bytes_to_frame_pointer(&PLAIN[4..], RETURN), None, "no frame pointer");
        assert_eq!(bytes_to_frame_pointer(&[], 0), None);
    }
}
