//! Single instructions of x86-64: the effects of prologs and epilogs of compiled methods on the
//! stack.

use super::{Base, FrameStep};

/// Bytes at the beginning of a method that [`prolog_step`] reads.
pub(crate) const FIRST_BYTES: usize = 64;
/// Bytes from an instruction on that [`epilog_step`] reads.
pub(crate) const EPILOG_BYTES: usize = 48;

/// The code to which signal handlers return. Like debuggers, we recognise it by these bytes: `mov
/// rax, 15; syscall` (rt_sigreturn).
pub(crate) const SIGNAL_RETURN: [u8; 9] = [0x48, 0xC7, 0xC0, 0x0F, 0, 0, 0, 0x0F, 0x05];
/// `mov edi, eax; xor eax, eax; mov al, 60; syscall; hlt`: musl's code behind the call of a
/// thread's function (`src/thread/x86_64/clone.s`).
pub(crate) const THREAD_EXIT: [u8; 9] = [0x89, 0xC7, 0x31, 0xC0, 0xB0, 0x3C, 0x0F, 0x05, 0xF4];

/// The registers of the code that a signal interrupted: instruction, stack pointer, frame pointer.
/// They are read from the context that the kernel has put on the stack for [`SIGNAL_RETURN`]
/// (`ucontext_t`), which begins at the stack pointer there. `word` reads a word of the stack.
pub(crate) fn interrupted_by_signal(sp: usize, word: impl Fn(usize) -> Option<usize>) -> Option<[usize; 3]> {
    /// Offset of the registers in the context, after flags, link and the alternate stack.
    const REGISTERS: usize = 40;
    let register = |number: libc::c_int| word(sp.checked_add(REGISTERS + 8 * number as usize)?);
    Some([register(libc::REG_RIP)?, register(libc::REG_RSP)?, register(libc::REG_RBP)?])
}

/// Effect of one instruction of a prolog.
pub(super) enum Prolog {
    /// Pushes a register. `true` if that is the frame pointer.
    Push(bool),
    /// Subtracts bytes from the stack pointer.
    Take(u32),
    /// Points the frame pointer at its frame.
    Frame,
    /// An instruction that has no effect on the step.
    Other,
}

/// The step from an instruction `offset` bytes into a method whose first bytes are `first`, by the
/// effects of the instructions up to there. It is a guess, for methods whose unwind information is
/// unavailable. Not for epilogs.
pub(crate) fn prolog_step(first: &[u8], offset: usize) -> FrameStep {
    let (mut at, mut depth, mut pushed, mut framed) = (0, 0_i32, None, false);
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
            Prolog::Take(bytes) => depth = depth.saturating_add_unsigned(bytes),
            Prolog::Frame => framed = true,
            Prolog::Other => {}
        }
    }
    if framed {
        return FrameStep::BY_FRAME_POINTER;
    }
    let frame_pointer = pushed.map(|pushed| depth.saturating_sub(pushed));
    FrameStep { base: Base::StackPointer, to_caller: depth.saturating_add(8), frame_pointer }
}

/// The first instruction of `code` and its length, if it can be part of a prolog.
pub(super) fn prolog(code: &[u8]) -> Option<(usize, Prolog)> {
    Some(match *code {
        [0x55, ..] => (1, Prolog::Push(true)),
        // mov rax, [rbp]; push rax: code that takes over a running frame saves its caller's frame
        // pointer.
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

/// Beginning of the function to which the runtime makes a thread return that is to stop
/// (`OnHijackTripThread` in `src/coreclr/vm/amd64`, the same on 8, 9 and 10): room for the true
/// return address, then the registers that callers want preserved.
const STOP_ON_RETURN: [u8; 11] = [0x50, 0x55, 0x53, 0x41, 0x57, 0x41, 0x56, 0x41, 0x55, 0x41, 0x54];
/// Most bytes of the function to which the runtime makes threads return.
pub(crate) const STOP_ON_RETURN_BYTES: usize = 80;

/// Bytes needed to recognise the first instruction of an entry of a procedure linkage table.
pub(crate) const LINKAGE_BYTES: usize = 7;

/// Whether code looks like an entry of a procedure linkage table: it begins with a jump through a
/// table, perhaps after the mark of jump targets `endbr64` (System V ABI for AMD64, 5.2).
pub(crate) fn is_linkage(code: &[u8]) -> bool {
    let code = code.strip_prefix(&[0xF3, 0x0F, 0x1E, 0xFA]).unwrap_or(code);
    code.strip_prefix(&[0xF2]).unwrap_or(code).starts_with(&[0xFF, 0x25])
}

/// Whether code is that of the function to which the runtime makes threads return.
pub(crate) fn stops_on_return(code: &[u8]) -> bool {
    code.starts_with(&STOP_ON_RETURN)
}

/// The step from an instruction `offset` bytes into the function to which the runtime makes threads
/// return. Its instructions tell the step: the first pushed word is the return address. The
/// function's unwind data assumes one word more, as if it had been called. `None` if the word is
/// not pushed yet, or is popped again.
pub(crate) fn stop_on_return_step(code: &[u8], offset: usize) -> Option<FrameStep> {
    let (mut at, mut depth, mut pushed) = (0, 0_i32, None);
    while at < offset {
        let (bytes, more) = match *code.get(at..)? {
            [0x55, ..] => (1, 8),
            [0x50..=0x57, ..] => (1, 8),
            [0x41, 0x50..=0x57, ..] => (2, 8),
            [0x58..=0x5F, ..] => (1, -8),
            [0x41, 0x58..=0x5F, ..] => (2, -8),
            // lea rsp, [rsp + n]
            [0x48, 0x8D, 0x64, 0x24, bytes, ..] => (5, -i32::from(bytes as i8)),
            // mov rdi, rsp
            [0x48, 0x89, 0xE7, ..] => (3, 0),
            // movdqa, to the stack and from there
            [0x66, 0x0F, 0x6F | 0x7F, 0x04, 0x24, ..] => (5, 0),
            [0x66, 0x0F, 0x6F | 0x7F, 0x4C, 0x24, _, ..] => (6, 0),
            // call
            [0xE8, _, _, _, _, ..] => (5, 0),
            _ => return None,
        };
        match code[at] {
            0x55 => pushed = Some(depth + 8),
            0x5D => pushed = None,
            _ => {}
        }
        (at, depth) = (at + bytes, depth + more);
    }
    let frame_pointer = pushed.map(|pushed| depth - pushed);
    (at == offset && depth >= 8).then_some(FrameStep { base: Base::StackPointer, to_caller: depth, frame_pointer })
}

/// The last instruction of an epilog.
enum End {
    Return,
    /// A jump whose target is this many bytes from the end of the instruction.
    Near(i32),
    /// A jump through memory, or to an address in a register, in the form that only epilogs use.
    Far,
    /// A jump through memory or a register that may be a switch table.
    Computed,
}

/// The step to the caller if the instructions from `address` on are the rest of an epilog: they
/// change the stack pointer, pop, and then return or jump. `is_inside` says whether an address lies
/// in the same method: a jump out of the method, after its frame is gone, is a tail call that ends
/// it.
pub(crate) fn epilog_step(code: &[u8], address: usize, is_inside: impl Fn(usize) -> bool) -> Option<FrameStep> {
    let (mut rest, mut depth, mut popped) = (code, 0_i32, None);
    loop {
        rest = match rest {
            [0x48, 0x83, 0xC4, bytes @ 0..0x80, rest @ ..] => {
                depth += i32::from(*bytes);
                rest
            }
            [0x48, 0x81, 0xC4, a, b, c, d, rest @ ..] => {
                depth = depth.checked_add_unsigned(u32::from_le_bytes([*a, *b, *c, *d]))?;
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
            _ => break,
        };
    }
    let target = |bytes: i32, distance: i32| {
        let at = address + (code.len() - rest.len()) + bytes as usize;
        at.wrapping_add_signed(distance as isize)
    };
    let leaves = match end(rest)? {
        End::Return | End::Far => true,
        End::Near(distance) => !is_inside(target(5, distance)),
        End::Computed => depth > 0,
    };
    leaves.then_some(FrameStep { base: Base::StackPointer, to_caller: depth.checked_add(8)?, frame_pointer: popped })
}

fn end(code: &[u8]) -> Option<End> {
    /// Bits of the byte after `FF` that make the instruction a jump.
    const JUMP: u8 = 4;
    Some(match *code {
        // ret; rep ret
        [0xC3, ..] | [0xF3, 0xC3, ..] => End::Return,
        [0xE9, a, b, c, d, ..] => End::Near(i32::from_le_bytes([a, b, c, d])),
        // jmp [address]; the 64-bit prefix, which no such jump needs, marks ends of methods.
        [0xFF, 0x25, ..] => End::Far,
        [0x48..=0x4F, 0xFF, how, ..] if how >> 3 & 7 == JUMP => End::Far,
        [0xFF, how, ..] | [0x41, 0xFF, how, ..] if how >> 3 & 7 == JUMP => End::Computed,
        _ => return None,
    })
}

/// Number of bytes from the end of a handler block's prolog to the point at which the frame pointer
/// is that of the block's method. The block gets the frame pointer, or its address, as an argument.
pub(crate) fn bytes_to_own_frame_pointer(code: &[u8]) -> usize {
    let (mut at, mut end) = (0, 0);
    while let Some((bytes, sets)) = code.get(at..).and_then(frame_pointer_move) {
        at += bytes;
        if sets {
            end = at;
        }
    }
    end
}

/// Length of the first instruction, and whether it sets the frame pointer, for instructions with
/// which a block begins.
fn frame_pointer_move(code: &[u8]) -> Option<(usize, bool)> {
    /// Bits of the operand byte: the frame pointer is written, or stored.
    const FRAME_POINTER: u8 = 5 << 3;
    match *code {
        // vzeroupper
        [0xC5, 0xF8, 0x77, ..] => Some((3, false)),
        [0x48, operation @ (0x8B | 0x8D | 0x89), what, ..] if what & 0x38 == FRAME_POINTER => {
            let has_index = what & 7 == 4 && what < 0xC0;
            let displacement = [0, 1, 4, 0][usize::from(what >> 6)];
            Some((3 + usize::from(has_index) + displacement, operation != 0x89))
        }
        // mov rbp, rdi and similar ones, in the other encoding
        [0x48, 0x89, what, ..] if what & 0xC7 == 0xC5 => Some((3, true)),
        _ => None,
    }
}

/// Whether a method with these first bytes took over a running frame (on-stack replacement).
pub(crate) fn takes_over_frame(first: &[u8]) -> bool {
    first.starts_with(&[0x48, 0x8B, 0x45, 0x00, 0x50])
}

/// Whether code counts how often its blocks run, for the optimiser. Such code loads an address into
/// a register and increments the word there.
pub(crate) fn is_counting(code: &[u8]) -> bool {
    code.windows(12).any(|code| matches!(code, [0x48, 0xB8..=0xBF, .., 0xFF, register] if *register < 8))
}

/// Whether a system call instruction ends at the end of these bytes.
pub(crate) fn follows_system_call(before: &[u8]) -> bool {
    before.ends_with(&[0x0F, 0x05])
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The unwind data of the function in which a returning thread stops is off by one word: the
    /// walk of a thread waiting there ended early, and was reported as complete.
    #[test]
    fn an_entry_of_a_linkage_table_is_told() {
        let mut entry = [0xFF, 0x25, 0x9A, 0x80, 2, 0, 0x68];
        assert!(is_linkage(&entry) && entry.len() == LINKAGE_BYTES);
        assert!(is_linkage(&[0xF3, 0x0F, 0x1E, 0xFA, 0xF2, 0xFF, 0x25]) && is_linkage(&[0xF2, 0xFF, 0x25, 1]));
        // A call through a table, and the end of another instruction.
        entry[1] = 0x15;
        assert!(!is_linkage(&entry) && !is_linkage(&[0x68, 0x10, 0, 0, 0, 0xE9, 0xE0]) && !is_linkage(&[]));
    }

    #[test]
    fn a_thread_that_stops_when_it_returns_has_its_callers() {
        // As of .NET 8 and 9, and as of 10: pushes, room for registers, a call, and the reverse of
        // all these.
        let of_8 = "505553415741564155415452504889e7488d6424d8660f7f0424660f7f4c2410e807f6f0ff660f6f0424660f6f4c2410488d642428\
                    585a415c415d415e415f5b5dc3";
        let of_10 = "50555341574156415541545152504889e7488d6424e0660f7f0424660f7f4c2410e86aa9f1ff660f6f0424660f6f4c2410488d642420\
                     585a59415c415d415e415f5b5dc3";
        for (code, call_ends, saved) in [(of_8, 0x25, 8), (of_10, 0x26, 9)] {
            let byte = |at: usize| u8::from_str_radix(&code[at..at + 2], 16).expect("a byte");
            let code: Vec<u8> = (0..code.len()).step_by(2).map(byte).collect();
            assert!(stops_on_return(&code) && code.len() <= STOP_ON_RETURN_BYTES);
            let step =
                |to_caller, frame_pointer| Some(FrameStep { base: Base::StackPointer, to_caller, frame_pointer });
            let room = if saved == 8 { 0x28 } else { 0x20 };
            let all = room + 8 * saved + 8;
            assert_eq!(stop_on_return_step(&code, call_ends), step(all, Some(all - 16)));
            assert_eq!(stop_on_return_step(&code, 0), None, "the return address is nowhere on the stack");
            assert_eq!(stop_on_return_step(&code, 1), step(8, None));
            assert_eq!(stop_on_return_step(&code, code.len() - 1), step(8, None), "before its return");
            assert_eq!(stop_on_return_step(&code, call_ends + 1), None, "within an instruction");
        }
    }

    /// push rbp; push r15; push rbx; sub rsp, 0x10; lea rbp, [rsp+0x20]; mov rbx, rdi; ...; add
    /// rsp, 0x10; pop rbx; pop r15; pop rbp; ret
    const FRAMED: [u8; 27] = [
        0x55, 0x41, 0x57, 0x53, 0x48, 0x83, 0xEC, 0x10, 0x48, 0x8D, 0x6C, 0x24, 0x20, 0x48, 0x8B, 0xDF, 0x90, 0x48,
        0x83, 0xC4, 0x10, 0x5B, 0x41, 0x5F, 0x5D, 0xC3, 0xCC,
    ];

    const AT_RETURN_ADDRESS: FrameStep = FrameStep { base: Base::StackPointer, to_caller: 8, frame_pointer: None };

    fn by_stack_pointer(to_caller: i32, frame_pointer: Option<i32>) -> FrameStep {
        FrameStep { base: Base::StackPointer, to_caller, frame_pointer }
    }

    fn at(code: &[u8], offset: usize) -> FrameStep {
        let inside = 0x1000..0x1000 + code.len();
        epilog_step(&code[offset..], 0x1000 + offset, |at| inside.contains(&at))
            .unwrap_or_else(|| prolog_step(code, offset))
    }

    #[test]
    fn the_caller_is_found_at_each_instruction_of_a_framed_method() {
        let expected = [
            (0, by_stack_pointer(8, None)),
            (1, by_stack_pointer(16, Some(0))),
            (3, by_stack_pointer(24, Some(8))),
            (4, by_stack_pointer(32, Some(16))),
            (8, by_stack_pointer(48, Some(32))),
            (13, FrameStep::BY_FRAME_POINTER),
            (16, FrameStep::BY_FRAME_POINTER),
            (17, by_stack_pointer(48, Some(32))),
            (21, by_stack_pointer(32, Some(16))),
            (22, by_stack_pointer(24, Some(8))),
            (24, by_stack_pointer(16, Some(0))),
            (25, by_stack_pointer(8, None)),
        ];
        for (offset, step) in expected {
            assert_eq!(at(&FRAMED, offset), step, "at {offset}");
        }
    }

    #[test]
    fn a_method_without_a_frame_leaves_its_return_address_above_what_it_took() {
        // push rax; mov eax, edi; imul eax, esi; add rsp, 8; ret
        let code = [0x50, 0x8B, 0xC7, 0x0F, 0xAF, 0xC6, 0x48, 0x83, 0xC4, 0x08, 0xC3];
        let (whole, done) = (by_stack_pointer(16, None), AT_RETURN_ADDRESS);
        assert_eq!([0, 1, 3, 6, 10].map(|offset| at(&code, offset)), [done, whole, whole, whole, done]);
        // lea eax, [rdi+rsi]; ret
        assert_eq!(at(&[0x8D, 0x04, 0x37, 0xC3], 0), done);
    }

    #[test]
    fn jumps_that_leave_a_method_end_it_and_loops_and_tables_of_cases_do_not() {
        let step = |code: &[u8]| epilog_step(code, 0x1000, |at| (0xF00..0x1100).contains(&at));
        let done = Some(AT_RETURN_ADDRESS);
        // pop rbp; jmp rax, with and without the prefix
        let popped = Some(by_stack_pointer(16, Some(0)));
        assert_eq!([step(&[0x5D, 0x48, 0xFF, 0xE0]), step(&[0x5D, 0xFF, 0xE0])], [popped; 2]);
        assert_eq!([step(&[0x48, 0xFF, 0xE0]), step(&[0x49, 0xFF, 0xE3]), step(&[0xFF, 0x25, 0, 0, 0, 0])], [done; 3]);
        assert_eq!([step(&[0xFF, 0xE0]), step(&[0xFF, 0xD0])], [None; 2], "a table of cases, a call");
        // jmp to the next instruction, and to 0x1205
        assert_eq!([step(&[0xE9, 0, 0, 0, 0]), step(&[0xE9, 0, 2, 0, 0])], [None, done]);
        assert_eq!([step(&[]), step(&[0x90, 0xC3])], [None; 2]);
    }

    #[test]
    fn a_block_begins_by_taking_over_its_methods_frame_pointer() {
        // mov rbp, [rdi+0x20]; mov [rsp+8], rbp; lea rbp, [rbp+0x40]; nop
        let given = [0x48, 0x8B, 0x6F, 0x20, 0x48, 0x89, 0x6C, 0x24, 0x08, 0x48, 0x8D, 0x6D, 0x40, 0x90];
        assert_eq!(bytes_to_own_frame_pointer(&given), 13);
        // vzeroupper; mov rbp, rdi, in both encodings
        assert_eq!(bytes_to_own_frame_pointer(&[0xC5, 0xF8, 0x77, 0x48, 0x8B, 0xEF, 0x90]), 6);
        assert_eq!(bytes_to_own_frame_pointer(&[0x48, 0x89, 0xFD, 0x90]), 3);
        assert_eq!([bytes_to_own_frame_pointer(&[0x90]), bytes_to_own_frame_pointer(&[])], [0; 2]);
    }

    #[test]
    fn what_a_signal_interrupted_lies_in_its_context() {
        let word = |address: usize| Some(address);
        let found = interrupted_by_signal(0x1000, word);
        // Offsets of RIP, RSP and RBP in `ucontext_t` of the x86-64 ABI of Linux.
        assert_eq!(found, Some([0x1000 + 168, 0x1000 + 160, 0x1000 + 120]));
        assert_eq!(interrupted_by_signal(0x1000, |_| None), None);
    }

    #[test]
    fn kinds_of_code_are_told_apart() {
        assert!(takes_over_frame(&[0x48, 0x8B, 0x45, 0, 0x50, 0x48]) && !takes_over_frame(&FRAMED));
        // mov rdi, address; inc dword ptr [rdi]
        assert!(is_counting(&[0x90, 0x48, 0xBF, 1, 2, 3, 4, 5, 6, 7, 8, 0xFF, 0x07]) && !is_counting(&FRAMED));
        assert!(follows_system_call(&[0xB8, 0x0F, 0x05]) && !follows_system_call(&[0x05]));
    }
}
