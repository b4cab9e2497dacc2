//! Positions of the awaits in the code of an async method.
//!
//! Before the method waits it stores the number of the `await` in its state, as a constant: `ldc.i4
//! N; dup; stloc; stfld <>1__state` (Roslyn's `AsyncMethodToStateMachineRewriter`). The last call
//! before that asks whether the awaited operation is complete, and belongs to the statement with
//! the `await`.

use clr_profiler::Token;
use clr_profiler::il::{Flow, Opcode, raw_instructions};
use clr_profiler::metadata::MetadataImport;

/// Names of the field that holds the number of the await, in C# and Visual Basic.
pub const STATES: [&str; 2] = ["<>1__state", "$State"];
/// Number of the metadata table with fields of other modules and of generic types (ECMA-335,
/// II.22.25).
const MEMBER_REF: u32 = 0x0A;
/// Most awaits of a method that are used.
const MOST_AWAITS: usize = 4096;

/// IL offsets of the awaits of a method, indexed by await number. `body` includes the header.
/// `None` for numbers that no code stores. Empty if the body can't be parsed.
pub(super) fn awaits_in(body: &[u8], metadata: &MetadataImport) -> Vec<Option<u32>> {
    find(body, |field| {
        // The runtime reads a row of the table that it is asked for, even if the token names
        // another table.
        let name = match field.as_raw() >> 24 {
            MEMBER_REF => metadata.member_ref(field).ok().map(|named| named.name),
            _ => metadata.field(field).ok().map(|field| field.name),
        };
        name.is_some_and(|name| STATES.contains(&&*name))
    })
}

fn find(body: &[u8], is_state: impl Fn(Token) -> bool) -> Vec<Option<u32>> {
    let (mut awaits, mut constant, mut last_call) = (Vec::new(), None, None);
    let Ok(code) = raw_instructions(body) else { return awaits };
    for instruction in code {
        let Ok(instruction) = instruction else { return Vec::new() };
        match instruction.opcode {
            // Instructions between the constant and the store: a copy for the method's local
            // variable.
            Opcode::Dup | Opcode::Nop | Opcode::Stloc | Opcode::StlocS => {}
            Opcode::Stloc0 | Opcode::Stloc1 | Opcode::Stloc2 | Opcode::Stloc3 => {}
            Opcode::Stfld => {
                let token = instruction.operand.try_into().ok().map(|bytes| Token::new(u32::from_le_bytes(bytes)));
                let number = constant.take().filter(|_| token.is_some_and(&is_state));
                if let Some(number) = number.filter(|number| *number < MOST_AWAITS) {
                    if awaits.len() <= number {
                        awaits.resize(number + 1, None);
                    }
                    awaits[number] = last_call;
                }
            }
            opcode if opcode.flow() == Flow::Call => (constant, last_call) = (None, Some(instruction.offset)),
            _ => constant = instruction.constant().and_then(|number| usize::try_from(number).ok()),
        }
    }
    awaits
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn awaits_are_found_by_the_numbers_that_are_stored() {
        let code = [
            // ldarg.0; ldc.i4.m1; dup; stloc.0; stfld state
            vec![0x02, 0x15, 0x25, 0x0A, 0x7D, 1, 0, 0, 4],
            // 9: call; ldarg.0; ldc.i4.1; dup; stloc.0; stfld state
            vec![0x28, 1, 0, 0, 6, 0x02, 0x17, 0x25, 0x0A, 0x7D, 1, 0, 0, 4],
            // 23: callvirt; ldarg.0; ldc.i4.s 3; dup; stloc.s 9; stfld state
            vec![0x6F, 1, 0, 0, 6, 0x02, 0x1F, 3, 0x25, 0x13, 9, 0x7D, 1, 0, 0, 4],
            // Another field, a number that is not a constant, and the end.
            vec![0x02, 0x16, 0x7D, 2, 0, 0, 4, 0x02, 0x03, 0x7D, 1, 0, 0, 4, 0x2A],
        ]
        .concat();
        // A large header, without locals.
        let mut body = vec![0x03, 0x30, 8, 0];
        body.extend((code.len() as u32).to_le_bytes());
        body.extend([0; 4]);
        body.extend(&code);
        let found = find(&body, |field| field == Token::new(0x0400_0001));
        assert_eq!(found, [None, Some(9), None, Some(23)]);
        assert_eq!(find(&body[..20], |_| true), []);
    }
}
