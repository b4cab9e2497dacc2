//! Recognises calls and jumps in machine code by their bytes.

/// Longest instruction that [`follows_call`] knows, in bytes.
pub const LONGEST_CALL: usize = 7;

/// Whether the bytes right before an address end with a call instruction.
pub fn follows_call(before: &[u8]) -> bool {
    shortest_call(before).is_some()
}

/// Length in bytes of the shortest call instruction that may end with these bytes; `None` if no
/// call does.
pub fn shortest_call(before: &[u8]) -> Option<usize> {
    let is_call = |bytes: &usize| {
        let start = before.len().checked_sub(*bytes);
        start.is_some_and(|start| match before[start..] {
            [0xE8, _, _, _, _] => true,
            [0xFF, 0x10..=0x13 | 0x16..=0x17 | 0xD0..=0xD7] => true,
            [0xFF, 0x50..=0x53 | 0x55..=0x57, _] => true,
            // call [base + index * scale]; without a base four bytes of an address follow.
            [0xFF, 0x14, form] => form & 7 != 5,
            [0xFF, 0x14, form, _, _, _, _] => form & 7 == 5,
            [0xFF, 0x15 | 0x90..=0x93 | 0x95..=0x97, _, _, _, _] => true,
            [0xFF, 0x54, _, _] | [0xFF, 0x94, _, _, _, _, _] => true,
            _ => false,
        })
    };
    (2..=LONGEST_CALL).find(is_call)
}

/// Bytes before a return address that [`called`] reads.
pub const BEFORE_CALL: usize = 12;
/// Bytes of code that [`jump`] reads.
pub const LONGEST_JUMP: usize = 24;

/// Where a call or jump leads.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Destination {
    /// To this address.
    Code(usize),
    /// To the address that is stored in the word at this address.
    Cell(usize),
}

/// The destination of the call that returns to an address, given the bytes before that address.
/// `None` if the instruction alone does not give the destination, or is no call.
pub fn called(before: &[u8; BEFORE_CALL], return_address: usize) -> Option<Destination> {
    match *before {
        // mov rax, imm64; call [rax] or call rax
        [0x48, 0xB8, ref rest @ .., 0xFF, 0x10] => Some(Destination::Cell(wide(rest))),
        [0x48, 0xB8, ref rest @ .., 0xFF, 0xD0] => Some(Destination::Code(wide(rest))),
        [.., 0xFF, 0x15, a, b, c, d] => Some(Destination::Cell(relative(return_address, [a, b, c, d]))),
        // The last bytes may be a short call by a register behind another instruction.
        [.., 0xFF, 0x10..=0x17 | 0xD0..=0xD7] | [.., 0xFF, 0x14 | 0x50..=0x57, _] => None,
        [.., 0xE8, a, b, c, d] => Some(Destination::Code(relative(return_address, [a, b, c, d]))),
        _ => None,
    }
}

/// The destination of a runtime stub that forwards a call: a jump, or a call counter followed by a
/// jump.
pub fn jump(code: &[u8; LONGEST_JUMP], address: usize) -> Option<Destination> {
    let at = |offset: usize| match code[offset..] {
        [0xFF, 0x25, a, b, c, d, ..] => Some(Destination::Cell(relative(address + offset + 6, [a, b, c, d]))),
        _ => None,
    };
    match *code {
        [0xE9, a, b, c, d, ..] => Some(Destination::Code(relative(address + 5, [a, b, c, d]))),
        // mov rax, imm64; jmp rax
        [0x48, 0xB8, ref rest @ ..] if rest[8..10] == [0xFF, 0xE0] => Some(Destination::Code(wide(&rest[..8]))),
        // mov r10, [rip + n]; jmp
        [0x4C, 0x8B, 0x15, ..] => at(7),
        // mov rax, [rip + n]; dec word ptr [rax]; je near or short; jmp
        [0x48, 0x8B, 0x05, _, _, _, _, 0x66, 0xFF, 0x08, 0x0F, 0x84, ..] => at(16),
        [0x48, 0x8B, 0x05, _, _, _, _, 0x66, 0xFF, 0x08, 0x74, ..] => at(12),
        _ => at(0),
    }
}

/// Addresses of the jumps in `code` that lead to one of `places`; `code` begins at `address`. Bytes
/// that only look like such jumps may be included.
pub fn jumps_to<'a>(code: &'a [u8], address: usize, places: &'a [usize]) -> impl Iterator<Item = usize> + use<'a> {
    let leads_there = move |at: &usize| {
        let (start, bytes) = (address + at, &code[*at..]);
        let short = |end: usize, distance: u8| (start + end).wrapping_add_signed(isize::from(distance.cast_signed()));
        let destination = match *bytes {
            [0x70..=0x7F | 0xEB, distance, ..] => short(2, distance),
            [0xE9, a, b, c, d, ..] => relative(start + 5, [a, b, c, d]),
            [0x0F, 0x80..=0x8F, a, b, c, d, ..] => relative(start + 6, [a, b, c, d]),
            _ => return false,
        };
        places.contains(&destination)
    };
    (0..code.len()).filter(leads_there).map(move |at| address + at)
}

/// Possible start addresses of the direct call (or call through a fixed memory cell) that returns
/// to `return_address`. `before` holds the bytes before that address.
pub fn call_starts(before: &[u8], return_address: usize) -> Vec<usize> {
    let is_call = |bytes: &usize| {
        let start = before.len().checked_sub(*bytes);
        start.is_some_and(|start| matches!(before[start..], [0xE8, ..] | [0xFF, 0x15, ..]))
    };
    [5, 6].into_iter().filter(is_call).map(|bytes| return_address - bytes).collect()
}

/// Whether a call never returns, judging by the bytes after it: a trap, or further calls that end
/// in a trap.
pub fn ends_in_trap(mut behind: &[u8]) -> bool {
    loop {
        behind = match *behind {
            [0xCC, ..] => return true,
            [0xE8, _, _, _, _, ref rest @ ..] | [0xFF, 0x15, _, _, _, _, ref rest @ ..] => rest,
            _ => return false,
        }
    }
}

/// Whether code certainly runs on from its first byte to its end. No byte may be the beginning of
/// an unconditional jump, a return, a trap, or a call (which may not return). A byte within another
/// instruction may look like such a beginning; the answer is then `false`.
pub fn runs_on(code: &[u8]) -> bool {
    let may_leave = |at: usize| match code[at..] {
        [0xC2 | 0xC3 | 0xCC | 0xE8 | 0xE9 | 0xEB, ..] => true,
        // call and jmp by a register or memory are numbers 2 and 4 of this group.
        [0xFF, form, ..] => matches!(form >> 3 & 7, 2 | 4),
        _ => false,
    };
    !(0..code.len()).any(may_leave)
}

fn wide(bytes: &[u8]) -> usize {
    bytes.iter().rev().fold(0, |sum, byte| sum << 8 | usize::from(*byte))
}

fn relative(from: usize, distance: [u8; 4]) -> usize {
    from.wrapping_add_signed(i32::from_le_bytes(distance) as isize)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn destinations_of_calls_and_jumps_are_read_where_the_bytes_say_them() {
        let call = |end: &[u8]| {
            let mut before = [0x90; BEFORE_CALL];
            before[BEFORE_CALL - end.len()..].copy_from_slice(end);
            called(&before, 0x1000)
        };
        assert_eq!(call(&[0xE8, 0xFC, 0xFF, 0xFF, 0xFF]), Some(Destination::Code(0xFFC)));
        assert_eq!(call(&[0xFF, 0x15, 8, 1, 0, 0]), Some(Destination::Cell(0x1108)));
        let wide = [0x48, 0xB8, 1, 2, 3, 4, 5, 6, 0, 0, 0xFF];
        assert_eq!(call(&[&wide[..], &[0x10]].concat()), Some(Destination::Cell(0x0605_0403_0201)));
        assert_eq!(call(&[&wide[..], &[0xD0]].concat()), Some(Destination::Code(0x0605_0403_0201)));
        // By a register and by a table of methods, one behind a byte that looks like a call.
        let others: [&[u8]; 4] =
            [&[0xFF, 0xD0], &[0xFF, 0x50, 8], &[0xE8, 0, 0, 0xFF, 0xD0], &[0xFF, 0x90, 8, 0, 0, 0]];
        assert!(others.iter().all(|end| call(end).is_none()));

        let jump = |start: &[u8]| {
            let mut code = [0xCC; LONGEST_JUMP];
            code[..start.len()].copy_from_slice(start);
            jump(&code, 0x1000)
        };
        assert_eq!(jump(&[0xE9, 0, 1, 0, 0]), Some(Destination::Code(0x1105)));
        assert_eq!(jump(&[0xFF, 0x25, 0xFA, 0x0F, 0, 0]), Some(Destination::Cell(0x2000)));
        assert_eq!(jump(&[0x48, 0xB8, 1, 0, 0, 0, 0, 0, 0, 0, 0xFF, 0xE0]), Some(Destination::Code(1)));
        assert_eq!(jump(&[0x4C, 0x8B, 0x15, 0, 0, 0, 0, 0xFF, 0x25, 3, 0, 0, 0]), Some(Destination::Cell(0x1010)));
        let count = [0x48, 0x8B, 0x05, 0, 0, 0, 0, 0x66, 0xFF, 0x08];
        let ends: [&[u8]; 2] = [&[0x74, 6, 0xFF, 0x25, 0, 0, 0, 0], &[0x0F, 0x84, 6, 0, 0, 0, 0xFF, 0x25, 0, 0, 0, 0]];
        let counted = ends.map(|end| jump(&[&count[..], end].concat()));
        assert_eq!(counted, [0x1012, 0x1016].map(|cell| Some(Destination::Cell(cell))));
        assert_eq!(jump(&[0x55]), None);
    }

    #[test]
    fn jumps_to_a_call_that_never_returns_are_found_near_and_far() {
        // jae +6, jmp +1 and je to the call at 0x100D; the trap behind it.
        let code = [0x73, 0x0B, 0xEB, 0x01, 0x90, 0x0F, 0x84, 2, 0, 0, 0, 0x73, 2, 0xE8, 1, 2, 3, 4, 0xCC];
        let places = call_starts(&code[..18], 0x1012);
        assert_eq!(places, [0x100D]);
        assert_eq!(Vec::from_iter(jumps_to(&code, 0x1000, &places)), [0x1000, 0x1005]);
        assert!(ends_in_trap(&code[18..]) && ends_in_trap(&code[13..]));
        assert!(!ends_in_trap(&code[..13]) && !ends_in_trap(&[]));
        assert!(call_starts(&[0xFF, 0xD0], 0x1000).is_empty());
    }

    #[test]
    fn code_runs_on_where_no_byte_may_leave_it() {
        // mov rdi, rax; test rdi, rdi; je +5; inc dword ptr [rax]
        let plain = [0x48, 0x8B, 0xF8, 0x48, 0x85, 0xFF, 0x74, 0x05, 0xFF, 0x00];
        assert!(runs_on(&plain) && runs_on(&[]));
        let leaving: [&[u8]; 8] = [
            &[0xC3],
            &[0xCC],
            &[0xE8, 0, 0],
            &[0xE9, 0],
            &[0xEB, 1],
            &[0xFF, 0xD0],
            &[0xFF, 0x25, 0],
            &[0xFF, 0x50, 8],
        ];
        assert!(leaving.iter().all(|end| !runs_on(&[&plain[..], end].concat())));
    }

    #[test]
    fn calls_are_told_from_other_instructions() {
        assert!(
            follows_call(&[0xE8, 0, 0, 0, 0]) && follows_call(&[0xFF, 0xD0]) && follows_call(&[0xFF, 0x15, 0, 0, 0, 0])
        );
        // call [rax + rdx * 8]; call [rdx * 8 + 0x1000]
        assert!(follows_call(&[0xFF, 0x14, 0xD0]) && follows_call(&[0xFF, 0x14, 0xD5, 0, 0x10, 0, 0]));
        assert!(!follows_call(&[0xFF, 0x14, 0xD5]));
        assert!(!follows_call(&[0x90; 8]) && !follows_call(&[]));
        // The ends of methods: a return, a jump to another method, padding up to the next method.
        let ends = [[0x48, 0x83, 0xC4, 0x10, 0x5B, 0x5D, 0xC3], [0x48, 0xFF, 0x25, 0x12, 0x34, 0x56, 0x00], [0xCC; 7]];
        assert!(ends.iter().all(|end| !follows_call(end)));
    }
}
