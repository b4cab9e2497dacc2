//! A method's instructions in the form that the branch rules need: short forms are converted to
//! long forms.

use std::collections::HashSet;

use clr_il::{Body, Clause, Flow, Label, Opcode, Operand};
use clr_metadata::{Assembly, FieldFact, MemberFact};

/// An instruction of a method.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Step {
    pub(crate) offset: u32,
    /// Opcode in its long form: `brtrue.s` as `brtrue`, `ldloc.1` as `ldloc`, `ldc.i4.m1` as
    /// `ldc.i4`.
    pub(crate) opcode: Opcode,
    /// The instruction's operand: a variable's number, a constant or a token; 0 for instructions
    /// without one.
    pub(crate) number: i64,
    /// Offsets of the branch targets.
    pub(crate) targets: Vec<u32>,
}

impl Step {
    pub(crate) fn is(&self, opcode: Opcode) -> bool {
        self.opcode == opcode
    }

    /// Whether the instruction chooses the next instruction by a value.
    pub(crate) fn is_condition(&self) -> bool {
        self.opcode.flow() == Flow::Condition
    }

    pub(crate) fn is_one_of(&self, opcodes: &[Opcode]) -> bool {
        opcodes.contains(&self.opcode)
    }
}

/// A method's instructions, with the assembly that resolves their tokens.
pub(crate) struct Code<'m> {
    pub(crate) steps: Vec<Step>,
    pub(crate) clauses: Vec<Clause>,
    assembly: &'m Assembly,
    /// Rows of the compiler-generated types.
    generated: &'m HashSet<u32>,
}

impl<'m> Code<'m> {
    pub(crate) fn new(body: &Body, assembly: &'m Assembly, generated: &'m HashSet<u32>) -> Self {
        let steps = body.instructions().iter().map(|instruction| {
            let (opcode, number) = long_form(instruction.opcode(), instruction.operand());
            let targets = instruction.operand().targets().iter().filter_map(|label| label.offset()).collect();
            Step { offset: instruction.label().offset().unwrap_or(0), opcode, number, targets }
        });
        Self { steps: steps.collect(), clauses: body.clauses().to_vec(), assembly, generated }
    }

    /// Index of the instruction at an offset.
    pub(crate) fn at(&self, offset: u32) -> Option<usize> {
        self.steps.binary_search_by_key(&offset, |step| step.offset).ok()
    }

    /// Index of the instruction at a clause's bound. A bound after the last instruction gives the
    /// number of instructions.
    pub(crate) fn bound(&self, label: Label) -> usize {
        label.offset().and_then(|offset| self.at(offset)).unwrap_or(self.steps.len())
    }

    /// The instruction `back` places before the instruction `number`.
    pub(crate) fn before(&self, number: usize, back: usize) -> Option<&Step> {
        self.steps.get(number.checked_sub(back)?)
    }

    /// The instruction `on` places after the instruction `number`.
    pub(crate) fn after(&self, number: usize, on: usize) -> Option<&Step> {
        self.steps.get(number.checked_add(on)?)
    }

    pub(crate) fn is_before(&self, number: usize, back: usize, opcode: Opcode) -> bool {
        self.before(number, back).is_some_and(|step| step.is(opcode))
    }

    pub(crate) fn is_after(&self, number: usize, on: usize, opcode: Opcode) -> bool {
        self.after(number, on).is_some_and(|step| step.is(opcode))
    }

    /// The field that an instruction loads or stores.
    pub(crate) fn field(&self, step: &Step) -> Option<FieldFact> {
        let is_field = step.is_one_of(&[Opcode::Ldfld, Opcode::Ldsfld, Opcode::Stfld, Opcode::Stsfld, Opcode::Ldflda]);
        self.assembly.field(u32::try_from(step.number).ok().filter(|_| is_field)?)
    }

    /// The field that an instruction loads or stores, if the compiler generated the field's type.
    pub(crate) fn generated_field(&self, step: &Step) -> Option<FieldFact> {
        self.field(step).filter(|field| field.owner.is_some_and(|owner| self.generated.contains(&owner)))
    }

    /// Token of the method that an instruction calls, without type arguments.
    pub(crate) fn called(&self, step: &Step) -> Option<u32> {
        let is_call = step.is_one_of(&[Opcode::Call, Opcode::Callvirt]);
        u32::try_from(step.number).ok().filter(|_| is_call).map(|token| self.assembly.method_definition(token))
    }

    /// The method that an instruction calls.
    pub(crate) fn callee(&self, step: &Step) -> Option<MemberFact> {
        let is_call = step.is_one_of(&[Opcode::Call, Opcode::Callvirt]);
        self.assembly.method(u32::try_from(step.number).ok().filter(|_| is_call)?)
    }

    /// Whether an instruction calls `ExceptionDispatchInfo.Throw`.
    pub(crate) fn throws_again(&self, step: &Step) -> bool {
        let of = |callee: MemberFact| {
            callee.owner == "System.Runtime.ExceptionServices.ExceptionDispatchInfo" && callee.name == "Throw"
        };
        step.is(Opcode::Callvirt) && self.callee(step).is_some_and(of)
    }

    /// Whether an instruction tests if an object is an exception.
    pub(crate) fn asks_for_exception(&self, step: &Step) -> bool {
        let name = |step: &Step| u32::try_from(step.number).map(|token| self.assembly.type_name(token));
        step.is(Opcode::Isinst) && name(step).is_ok_and(|name| name == "System.Exception")
    }
}

/// The state machine that a method belongs to; all `false` if there is none.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub(crate) struct Machine {
    /// The method runs an `async` method.
    pub(crate) is_async: bool,
    /// The method runs an `async` iterator.
    pub(crate) is_async_iterator: bool,
    /// The method runs an iterator.
    pub(crate) is_iterator: bool,
}

impl Machine {
    /// Finds out which state machine a method belongs to. `owner` is the row of the method's type.
    /// `is_generated`: the compiler generated the type or an enclosing one.
    pub(crate) fn of_method(assembly: &Assembly, method: u32, owner: u32, is_generated: bool) -> Self {
        if !is_generated || assembly.method_name(method) != "MoveNext" {
            return Self::default();
        }
        let mut machine = Self::default();
        for interface in assembly.interfaces(owner) {
            match interface.as_str() {
                "System.Runtime.CompilerServices.IAsyncStateMachine" => machine.is_async = true,
                "System.Collections.Generic.IAsyncEnumerator`1" => machine.is_async_iterator = true,
                "System.Collections.IEnumerator" => machine.is_iterator = true,
                _ => {}
            }
        }
        machine
    }
}

fn long_form(opcode: Opcode, operand: &Operand) -> (Opcode, i64) {
    use Opcode as O;
    let number = match *operand {
        Operand::Byte(number) if opcode == O::LdcI4S => i64::from(number.cast_signed()),
        Operand::Byte(number) => i64::from(number),
        Operand::Word(number) => i64::from(number),
        Operand::Int(number) => i64::from(number),
        Operand::Long(number) => number,
        Operand::Token(token) => i64::from(token),
        _ => 0,
    };
    match opcode {
        O::Ldarg0 => (O::Ldarg, 0),
        O::Ldarg1 => (O::Ldarg, 1),
        O::Ldarg2 => (O::Ldarg, 2),
        O::Ldarg3 => (O::Ldarg, 3),
        O::LdargS => (O::Ldarg, number),
        O::Ldloc0 => (O::Ldloc, 0),
        O::Ldloc1 => (O::Ldloc, 1),
        O::Ldloc2 => (O::Ldloc, 2),
        O::Ldloc3 => (O::Ldloc, 3),
        O::LdlocS => (O::Ldloc, number),
        O::Stloc0 => (O::Stloc, 0),
        O::Stloc1 => (O::Stloc, 1),
        O::Stloc2 => (O::Stloc, 2),
        O::Stloc3 => (O::Stloc, 3),
        O::StlocS => (O::Stloc, number),
        O::LdcI4M1 => (O::LdcI4, -1),
        O::LdcI4_0 => (O::LdcI4, 0),
        O::LdcI4_1 => (O::LdcI4, 1),
        O::LdcI4_2 => (O::LdcI4, 2),
        O::LdcI4_3 => (O::LdcI4, 3),
        O::LdcI4_4 => (O::LdcI4, 4),
        O::LdcI4_5 => (O::LdcI4, 5),
        O::LdcI4_6 => (O::LdcI4, 6),
        O::LdcI4_7 => (O::LdcI4, 7),
        O::LdcI4_8 => (O::LdcI4, 8),
        O::LdcI4S => (O::LdcI4, number),
        other => (other.long_form(), number),
    }
}
