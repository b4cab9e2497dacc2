//! Inspection of a method's IL: whether it is a tiny leaf, or even less, and which clauses its exception handlers are of.

/// IL of at most this many bytes without calls counts as trivial (auto-properties, constants).
const TRIVIAL_BYTES: usize = 16;

/// Whether a method body (header and code, ECMA-335 II.25.4) is a leaf of at most 16 bytes without
/// calls. A body that can't be understood is not trivial.
pub(crate) fn is_trivial(body: &[u8]) -> bool {
    code_of(body).is_some_and(|code| code.len() <= TRIVIAL_BYTES && !calls_something(code))
}

/// Whether the body of an instance method does nothing but get or set a field of its object, as automatic properties do.
pub(crate) fn is_accessor(body: &[u8]) -> bool {
    // ldarg.0, ldfld, ret; and ldarg.0, ldarg.1, stfld, ret
    matches!(code_of(body), Some([0x02, 0x7B, _, _, _, _, 0x2A] | [0x02, 0x03, 0x7D, _, _, _, _, 0x2A]))
}

fn code_of(body: &[u8]) -> Option<&[u8]> {
    let first = *body.first()?;
    if first & 3 == 2 {
        return body.get(1..1 + usize::from(first >> 2));
    }
    let header = usize::from(*body.get(1)? >> 4) * 4;
    let size = u32::from_le_bytes(body.get(4..8)?.try_into().ok()?) as usize;
    body.get(header..header.checked_add(size)?)
}

/// Whether the innermost catch block around this offset of a method's code belongs to a clause with a filter (ECMA-335
/// II.25.4.6); nothing where there is no such block, or the body can't be understood.
pub(crate) fn handler_has_filter(body: &[u8], il_offset: u32) -> Option<bool> {
    const FAT_FORMAT: u8 = 3;
    const MORE_SECTIONS: u8 = 8;
    const TABLE: u8 = 1;
    const FAT_SECTION: u8 = 0x40;
    const MORE: u8 = 0x80;
    let first = *body.first()?;
    if first & 3 != FAT_FORMAT || first & MORE_SECTIONS == 0 {
        return None;
    }
    let header = usize::from(*body.get(1)? >> 4) * 4;
    let mut at = (header + code_of(body)?.len()).next_multiple_of(4);
    let mut innermost: Option<(u32, bool)> = None;
    loop {
        let kind = *body.get(at)?;
        let word = |at: usize| Some(u32::from_le_bytes(body.get(at..at + 4)?.try_into().ok()?));
        let half = |at: usize| Some(u32::from(u16::from_le_bytes(body.get(at..at + 2)?.try_into().ok()?)));
        let is_fat = kind & FAT_SECTION != 0;
        let bytes = if is_fat { (word(at)? >> 8) as usize } else { usize::from(*body.get(at + 1)?) };
        body.get(at..at + bytes)?;
        let each = if is_fat { 24 } else { 12 };
        let clauses = if kind & 0x3F == TABLE { bytes.saturating_sub(4) / each } else { 0 };
        for clause in (0..clauses).map(|clause| at + 4 + clause * each) {
            let (flags, from, length) = match is_fat {
                true => (word(clause)?, word(clause + 12)?, word(clause + 16)?),
                false => (half(clause)?, half(clause + 5)?, u32::from(*body.get(clause + 7)?)),
            };
            let is_around = il_offset.checked_sub(from).is_some_and(|offset| offset < length);
            if flags <= 1 && is_around && innermost.is_none_or(|(least, _)| length < least) {
                innermost = Some((length, flags == 1));
            }
        }
        if kind & MORE == 0 || bytes == 0 {
            return innermost.map(|(_, has_filter)| has_filter);
        }
        at = (at + bytes).next_multiple_of(4);
    }
}

/// Walks the instructions; anything unknown counts as a call.
fn calls_something(code: &[u8]) -> bool {
    let mut at = 0;
    while let Some(&opcode) = code.get(at) {
        let step = match opcode {
            // jmp, call, calli, callvirt, newobj
            0x27 | 0x28 | 0x29 | 0x6F | 0x73 => return true,
            0xFE => match code.get(at + 1) {
                // two-byte opcodes with a token: ldftn, ldvirtftn, initobj, constrained., sizeof
                Some(0x06 | 0x07 | 0x15 | 0x16 | 0x1C) => 6,
                // with a two-byte variable number
                Some(0x09..=0x0E) => 4,
                // unaligned., no.
                Some(0x12 | 0x19) => 3,
                Some(_) => 2,
                None => return true,
            },
            // ldarg.s to stloc.s, ldc.i4.s, short branches, leave.s
            0x0E..=0x13 | 0x1F | 0x2B..=0x37 | 0xDE => 2,
            // ldc.i4, ldc.r4, branches, leave, and everything with a token
            0x20
            | 0x22
            | 0x38..=0x44
            | 0x70..=0x72
            | 0x74
            | 0x75
            | 0x79
            | 0x7B..=0x81
            | 0x8C
            | 0x8D
            | 0x8F
            | 0xA3..=0xA5
            | 0xC2
            | 0xC6
            | 0xD0
            | 0xDD => 5,
            // ldc.i8, ldc.r8
            0x21 | 0x23 => 9,
            // switch: too much for a trivial method
            0x45 => return true,
            _ => 1,
        };
        at += step;
    }
    false
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tiny(code: &[u8]) -> Vec<u8> {
        let mut body = vec![(code.len() as u8) << 2 | 2];
        body.extend_from_slice(code);
        body
    }

    #[test]
    fn a_getter_is_trivial_and_a_call_is_not() {
        // ldarg.0, ldfld, ret
        assert!(is_trivial(&tiny(&[0x02, 0x7B, 1, 0, 0, 4, 0x2A])));
        // A token whose bytes look like a call.
        assert!(is_trivial(&tiny(&[0x02, 0x7B, 0x28, 0x28, 0, 4, 0x2A])));
        // ldarg.0, call, ret
        assert!(!is_trivial(&tiny(&[0x02, 0x28, 1, 0, 0, 6, 0x2A])));
    }

    #[test]
    fn accessors_move_a_field_and_nothing_else() {
        assert!(is_accessor(&tiny(&[0x02, 0x7B, 1, 0, 0, 4, 0x2A])));
        assert!(is_accessor(&tiny(&[0x02, 0x03, 0x7D, 1, 0, 0, 4, 0x2A])));
        // Of another object, which may be null, and of a class, which may have to be initialised.
        assert!(!is_accessor(&tiny(&[0x03, 0x7B, 1, 0, 0, 4, 0x2A])));
        assert!(!is_accessor(&tiny(&[0x7E, 1, 0, 0, 4, 0x2A])));
        // ldarg.0, ldfld, ldfld, ret
        assert!(!is_accessor(&tiny(&[0x02, 0x7B, 1, 0, 0, 4, 0x7B, 2, 0, 0, 4, 0x2A])));
        assert!(!is_accessor(&[]));
    }

    #[test]
    fn size_counts_and_nonsense_is_not_trivial() {
        assert!(is_trivial(&tiny(&[0x00; 16])));
        assert!(!is_trivial(&tiny(&[0x00; 17])));
        assert!(!is_trivial(&[]));
        assert!(!is_trivial(&[0x0A]));
        let fat = [0x03, 0x30, 8, 0, 2, 0, 0, 0, 0, 0, 0, 0, 0x17, 0x2A];
        assert!(is_trivial(&fat));
        assert!(!is_trivial(&fat[..13]));
    }

    #[test]
    fn the_clause_of_a_catch_block_is_found_in_small_and_fat_tables() {
        // A header of 12 bytes, 8 bytes of code, a table: a filtered clause with its block at 2 to 5, a plain one at 5 to 8.
        let body = |table: &[u8]| [&[0x0B, 0x30, 8, 0, 8, 0, 0, 0, 0, 0, 0, 0][..], &[0; 8], table].concat();
        let small: Vec<u8> =
            [[1, 28, 0, 0].as_slice(), &[1, 0, 0, 0, 2, 2, 0, 3, 0, 0, 0, 0], &[0, 0, 0, 0, 2, 5, 0, 3, 1, 0, 0, 1]]
                .concat();
        let fat_clause = |flags: u8, from: u8| {
            [[flags, 0, 0, 0], [0; 4], [2, 0, 0, 0], [from, 0, 0, 0], [3, 0, 0, 0], [1, 0, 0, 1]].concat()
        };
        let fat = [vec![0x41, 52, 0, 0], fat_clause(1, 2), fat_clause(0, 5)].concat();
        for table in [small, fat] {
            let answers = [0, 2, 4, 5, 7, 8].map(|offset| handler_has_filter(&body(&table), offset));
            assert_eq!(answers, [None, Some(true), Some(true), Some(false), Some(false), None]);
            for length in 0..body(&table).len() {
                assert_eq!(handler_has_filter(&body(&table)[..length], 2), None, "cut after {length} bytes");
            }
        }
        assert_eq!(handler_has_filter(&tiny(&[0x2A]), 0), None);
    }
}
