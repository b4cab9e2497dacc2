//! Bodies made at random: what can be read comes out as it was, what can't has an error.

use clr_il::fuzzing::{change_body, read_signatures};
use clr_il::{Body, Opcode, OperandKind};
use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::Index;

/// Code of any instructions, with targets at the beginnings of instructions, and these beginnings
/// with the end.
fn assemble(instructions: &[(Index, Index, u64)]) -> (Vec<u8>, Vec<usize>) {
    let mut code = Vec::new();
    let mut starts = Vec::new();
    let mut branches = Vec::new();
    for (opcode, target, value) in instructions {
        let opcode = *opcode.get(Opcode::ALL);
        starts.push(code.len());
        code.extend(&opcode.code().to_be_bytes()[2 - opcode.code_size()..]);
        let operand = code.len();
        match opcode.operand() {
            OperandKind::Targets => {
                let count = value % 3;
                code.extend((count as u32).to_le_bytes());
                code.resize(code.len() + 4 * count as usize, 0);
                let end = code.len();
                branches.extend((0..count as usize).map(|number| (operand + 4 + 4 * number, 4, end, *target)));
            }
            kind => {
                code.extend(&value.to_le_bytes()[..kind.size()]);
                if matches!(kind, OperandKind::Target | OperandKind::ShortTarget) {
                    branches.push((operand, kind.size(), code.len(), *target));
                }
            }
        }
    }
    for (at, size, end, target) in branches {
        let distance = *target.get(&starts) as i64 - end as i64;
        // A distance that is too long for the form goes to the branch itself.
        let distance = if size == 1 && i8::try_from(distance).is_err() { -2 } else { distance };
        code[at..at + size].copy_from_slice(&distance.to_le_bytes()[..size]);
    }
    starts.push(code.len());
    (code, starts)
}

type Bounds = (Index, Index, Index, Index, u8);

/// A section of clauses whose bounds are instructions; the last bound may be the end.
fn section(clauses: &[Bounds], starts: &[usize], is_fat: bool) -> Vec<u8> {
    let last = starts.len() - 1;
    let range = |from: &Index, to: &Index| {
        let (from, to) = (from.index(last), to.index(last + 1));
        let (from, to) = (from.min(to), from.max(to).min(from.min(to) + 60));
        (starts[from] as u32, (starts[to] - starts[from]) as u32)
    };
    let mut bytes = Vec::new();
    for (try_start, try_end, start, end, kind) in clauses {
        let (protected, handler) = (range(try_start, try_end), range(start, end));
        let kind = [0_u32, 1, 2, 4][usize::from(kind % 4)];
        let token = if kind == 1 { handler.0 } else { 0x0100_0001 };
        if is_fat {
            let words = [kind, protected.0, protected.1, handler.0, handler.1, token];
            bytes.extend(words.map(u32::to_le_bytes).as_flattened());
        } else {
            bytes.extend((kind as u16).to_le_bytes());
            for (from, length) in [protected, handler] {
                bytes.extend((from as u16).to_le_bytes());
                bytes.push(u8::try_from(length).unwrap_or(0));
            }
            bytes.extend(token.to_le_bytes());
        }
    }
    let size = (bytes.len() as u32 + 4).to_le_bytes();
    let header = if is_fat { [0x41, size[0], size[1], size[2]] } else { [1, size[0], 0, 0] };
    [&header[..], &bytes].concat()
}

fn body(instructions: &[(Index, Index, u64)], clauses: &[Bounds], is_fat: bool, padding: u8) -> Vec<u8> {
    let (code, starts) = assemble(instructions);
    let more = if clauses.is_empty() { 0 } else { 8 };
    let mut bytes = vec![3 | 0x10 | more, 0x30, 40, 0];
    bytes.extend((code.len() as u32).to_le_bytes());
    bytes.extend(0x1100_0001_u32.to_le_bytes());
    bytes.extend(&code);
    // A length of 256 or more has no place in a small clause.
    let is_short = starts.windows(2).all(|pair| pair[1] - pair[0] < 4) || starts.last().is_some_and(|end| *end < 256);
    if !clauses.is_empty() {
        bytes.resize(bytes.len().next_multiple_of(4), padding);
        bytes.extend(section(clauses, &starts, is_fat || !is_short));
    }
    bytes
}

fn instructions() -> impl Strategy<Value = Vec<(Index, Index, u64)>> {
    vec((any::<Index>(), any::<Index>(), any::<u64>()), 1..120)
}

fn clauses() -> impl Strategy<Value = Vec<Bounds>> {
    vec(any::<Bounds>(), 0..6)
}

proptest! {
    #[test]
    fn bodies_of_any_instructions_come_out_as_they_were_and_can_be_changed(
        instructions in instructions(),
        clauses in clauses(),
        is_fat in any::<bool>(),
        padding in any::<u8>(),
    ) {
        let bytes = body(&instructions, &clauses, is_fat, padding);
        prop_assert_eq!(Body::read(&bytes).and_then(|body| body.write()), Ok(bytes.clone()));
        change_body(&bytes);
    }

    #[test]
    fn damaged_bodies_are_read_without_a_panic(
        instructions in instructions(),
        clauses in clauses(),
        changes in vec((any::<Index>(), any::<u8>()), 1..8),
        end in any::<Index>(),
    ) {
        let mut bytes = body(&instructions, &clauses, true, 0);
        for (at, value) in changes {
            let at = at.index(bytes.len());
            bytes[at] = value;
        }
        change_body(&bytes);
        change_body(&bytes[..end.index(bytes.len())]);
    }

    #[test]
    fn any_bytes_are_read_without_a_panic(bytes in vec(any::<u8>(), 0..200)) {
        change_body(&bytes);
        read_signatures(&bytes);
        // The same as code behind a tiny header.
        let code = &bytes[..bytes.len().min(63)];
        change_body(&[&[(code.len() as u8) << 2 | 2], code].concat());
    }
}
