//! Inspection of a method's IL: whether the method is a tiny leaf or an accessor, and which
//! exception clauses surround an offset.

use clr_profiler::il::{Body, ClauseKind, Flow, Label, Opcode, raw_instructions};
use clr_profiler::{FunctionId, ProfilerInfo, Result, Token};

/// IL of at most this many bytes without calls counts as trivial (auto-properties, constants).
const TRIVIAL_BYTES: usize = 16;

/// The body of a function, including its header. Call only where calls into the runtime are
/// allowed.
///
/// # Errors
/// The runtime's error, for methods without IL among others.
pub fn body_of(info: &ProfilerInfo, function: FunctionId) -> Result<Vec<u8>> {
    let about = info.function_info(function)?;
    info.il_function_body(about.module, about.token)
}

/// Whether a method body, including its header, is a leaf of at most 16 bytes without calls. False
/// where the body can't be parsed.
pub(crate) fn is_trivial(body: &[u8]) -> bool {
    let is_quiet = |opcode: Opcode| opcode.flow() != Flow::Call && !matches!(opcode, Opcode::Jmp | Opcode::Switch);
    raw_instructions(body).is_ok_and(|mut code| {
        code.code_size() <= TRIVIAL_BYTES && code.all(|one| one.is_ok_and(|one| is_quiet(one.opcode)))
    })
}

/// Whether the body of an instance method only gets or sets a field of its object, like an
/// automatic property.
pub fn is_accessor(body: &[u8]) -> bool {
    const GET: [Opcode; 3] = [Opcode::Ldarg0, Opcode::Ldfld, Opcode::Ret];
    const SET: [Opcode; 4] = [Opcode::Ldarg0, Opcode::Ldarg1, Opcode::Stfld, Opcode::Ret];
    let is_made_of = |opcodes: &[Opcode]| {
        raw_instructions(body)
            .is_ok_and(|code| code.map(|one| one.map(|one| one.opcode)).eq(opcodes.iter().map(|one| Ok(*one))))
    };
    is_made_of(&GET) || is_made_of(&SET)
}

/// Whether a method body, including its header, ends with a call that `is_itself` accepts. The
/// compiler may turn such a call into a loop. False where the body can't be parsed.
pub(crate) fn calls_itself_last(body: &[u8], mut is_itself: impl FnMut(Token) -> bool) -> bool {
    let Ok(code) = raw_instructions(body) else { return false };
    let mut called = None;
    for instruction in code {
        let Ok(instruction) = instruction else { return false };
        match (instruction.opcode, called) {
            (Opcode::Ret, Some(token)) if is_itself(token) => return true,
            (Opcode::Call | Opcode::Callvirt, _) => {
                called = instruction.operand.try_into().ok().map(|bytes| Token::new(u32::from_le_bytes(bytes)));
            }
            (Opcode::Nop, _) => {}
            _ => called = None,
        }
    }
    false
}

/// Whether a method body, including its header, has exception clauses.
pub fn has_blocks(body: &[u8]) -> bool {
    /// Flags in the first byte of a body: a large header, and sections behind the code.
    const LARGE_WITH_SECTIONS: u8 = 0xB;
    body.first().is_some_and(|flags| flags & LARGE_WITH_SECTIONS == LARGE_WITH_SECTIONS)
}

/// Whether this offset of a method's code is in an exception filter, the code that decides whether
/// a clause catches an exception. False if the body can't be parsed.
pub fn is_in_filter(body: &[u8], il_offset: u32) -> bool {
    let Ok(body) = Body::read(body) else { return false };
    body.clauses().iter().any(|clause| {
        let ClauseKind::Filter(filter) = clause.kind() else { return false };
        let (handler, _) = clause.handler();
        // A filter ends where its clause's handler begins (ECMA-335, II.19).
        let (start, end) = (filter.offset(), handler.offset());
        start.zip(end).is_some_and(|(start, end)| (start..end).contains(&il_offset))
    })
}

/// Whether the innermost catch block around this offset of a method's code belongs to a clause with
/// a filter. `None` if there is no such block, or the body can't be parsed.
pub fn handler_has_filter(body: &[u8], il_offset: u32) -> Option<bool> {
    let body = Body::read(body).ok()?;
    let end = body.instructions().last().map_or(0, |last| last.size() as u32 + last.label().offset().unwrap_or(0));
    let place = |label: Label| label.offset().unwrap_or(end);
    let blocks = body.clauses().iter().filter_map(|clause| {
        let has_filter = match clause.kind() {
            ClauseKind::Catch(_) => false,
            ClauseKind::Filter(_) => true,
            _ => return None,
        };
        let (start, end) = clause.handler();
        Some((place(start)..place(end), has_filter))
    });
    let around = blocks.filter(|(block, _)| block.contains(&il_offset));
    around.min_by_key(|(block, _)| block.len()).map(|(_, has_filter)| has_filter)
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
    fn a_call_of_itself_counts_where_nothing_but_the_return_follows() {
        let last = |code: &[u8]| calls_itself_last(&tiny(code), |token| token == Token::new(0x0600_0001));
        // ldarg.0, call, ret; with a nop between; by callvirt.
        assert!(last(&[0x02, 0x28, 1, 0, 0, 6, 0x2A]));
        assert!(last(&[0x02, 0x28, 1, 0, 0, 6, 0x00, 0x2A]));
        assert!(last(&[0x02, 0x6F, 1, 0, 0, 6, 0x2A]));
        // Another method; an addition to the result; another call in between.
        assert!(!last(&[0x02, 0x28, 2, 0, 0, 6, 0x2A]));
        assert!(!last(&[0x02, 0x28, 1, 0, 0, 6, 0x17, 0x58, 0x2A]));
        assert!(!last(&[0x28, 1, 0, 0, 6, 0x28, 2, 0, 0, 6, 0x2A]));
        assert!(!last(&[0x02, 0x28, 1, 0]));
        assert!(!calls_itself_last(&[], |_| true));
    }

    #[test]
    fn accessors_move_a_field_and_nothing_else() {
        assert!(is_accessor(&tiny(&[0x02, 0x7B, 1, 0, 0, 4, 0x2A])));
        assert!(is_accessor(&tiny(&[0x02, 0x03, 0x7D, 1, 0, 0, 4, 0x2A])));
        // The field of another object, which may be null, and of a class, which may need
        // initialisation.
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
        // A header of 12 bytes, 8 bytes of code, a table: a filtered clause with its block at 2 to
        // 5, a plain one at 5 to 8.
        let body = |table: &[u8]| [&[0x0B, 0x30, 8, 0, 8, 0, 0, 0, 0, 0, 0, 0][..], &[0; 8], table].concat();
        let small: Vec<u8> =
            [[1, 28, 0, 0].as_slice(), &[1, 0, 0, 0, 2, 2, 0, 3, 0, 0, 0, 0], &[0, 0, 0, 0, 2, 5, 0, 3, 1, 0, 0, 1]]
                .concat();
        let fat_clause = |flags: u8, from: u8, last: [u8; 4]| {
            [[flags, 0, 0, 0], [0; 4], [2, 0, 0, 0], [from, 0, 0, 0], [3, 0, 0, 0], last].concat()
        };
        let fat = [vec![0x41, 52, 0, 0], fat_clause(1, 2, [0; 4]), fat_clause(0, 5, [1, 0, 0, 1])].concat();
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
