//! Values on a method's evaluation stack at the places where code is to be inserted.

use clr_il::{Body, Instruction, Opcode, Operand, method_shape};
use clr_metadata::Assembly;

use super::CounterPlace;

/// Whether a method has values on the stack at each of these places. Returns `false` for every
/// place if the body can't be followed.
#[must_use]
pub fn has_values(places: &[CounterPlace], body: &Body, assembly: &Assembly) -> Vec<bool> {
    // The value that a method returns does not matter: no instruction follows.
    let amounts = |instruction: &Instruction| match instruction.opcode() {
        Opcode::Ret => Some((0, 0)),
        _ => amounts(instruction, assembly),
    };
    let Ok(depths) = body.stack_depths(amounts) else { return vec![false; places.len()] };
    let offsets = body.instructions().iter().map(|instruction| instruction.label().offset().unwrap_or(0));
    let offsets: Vec<u32> = offsets.collect();
    let is_above = |place: &CounterPlace| {
        let number = offsets.binary_search(&place.offset()).ok()?;
        let taken = match place {
            CounterPlace::Before(_) => 0,
            CounterPlace::Way { .. } => body.instructions()[number].opcode().pops().unwrap_or(0),
        };
        Some(*depths.get(number)? > u32::from(taken))
    };
    places.iter().map(|place| is_above(place).unwrap_or(false)).collect()
}

/// Number of values that a call pops and pushes.
fn amounts(instruction: &Instruction, assembly: &Assembly) -> Option<(u16, u16)> {
    let Operand::Token(token) = *instruction.operand() else { return None };
    let shape = method_shape(assembly.signature_of_call(token)?).ok()?;
    let (takes, gives) = (u16::try_from(shape.takes).ok()?, u16::from(shape.result.is_some()));
    Some(match instruction.opcode() {
        // The caller does not push the new object as an argument.
        Opcode::Newobj => (takes.saturating_sub(1), 1),
        Opcode::Calli => (takes + 1, gives),
        _ => (takes, gives),
    })
}
