//! Calls by their bytes.

/// Longest instruction that [`follows_call`] knows, in bytes.
pub(crate) const LONGEST_CALL: usize = 7;

/// Whether the instruction before ends a call, given the bytes that end there.
pub(crate) fn follows_call(before: &[u8]) -> bool {
    let ends =
        |pattern: fn(&[u8]) -> bool, bytes: usize| before.len() >= bytes && pattern(&before[before.len() - bytes..]);
    ends(|code| code[0] == 0xE8, 5)
        || ends(|code| code[0] == 0xFF && matches!(code[1], 0x10..=0x13 | 0x16..=0x17 | 0xD0..=0xD7), 2)
        || ends(|code| code[0] == 0xFF && matches!(code[1], 0x50..=0x57), 3)
        // call [base + index * scale]; without a base four bytes of an address follow.
        || ends(|code| code[..2] == [0xFF, 0x14] && code[2] & 7 != 5, 3)
        || ends(|code| code[..2] == [0xFF, 0x14] && code[2] & 7 == 5, 7)
        || ends(|code| code[0] == 0xFF && (matches!(code[1], 0x15 | 0x90..=0x97)), 6)
        || ends(|code| code[0] == 0xFF && (code[1] == 0x54), 4)
        || ends(|code| code[0] == 0xFF && (code[1] == 0x94), 7)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn calls_are_told_from_other_instructions() {
        assert!(
            follows_call(&[0xE8, 0, 0, 0, 0]) && follows_call(&[0xFF, 0xD0]) && follows_call(&[0xFF, 0x15, 0, 0, 0, 0])
        );
        // call [rax + rdx * 8]; call [rdx * 8 + 0x1000]
        assert!(follows_call(&[0xFF, 0x14, 0xD0]) && follows_call(&[0xFF, 0x14, 0xD5, 0, 0x10, 0, 0]));
        assert!(!follows_call(&[0xFF, 0x14, 0xD5]));
        assert!(!follows_call(&[0x90; 8]) && !follows_call(&[]));
        // What methods end with: a return, a jump to another one, what fills the room up to the next.
        let ends = [[0x48, 0x83, 0xC4, 0x10, 0x5B, 0x5D, 0xC3], [0x48, 0xFF, 0x25, 0x12, 0x34, 0x56, 0x00], [0xCC; 7]];
        assert!(ends.iter().all(|end| !follows_call(end)));
    }
}
