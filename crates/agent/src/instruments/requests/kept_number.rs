//! The number of a request in the state of an async method, as long as the method waits: the
//! machine has a field with the number of its await, which has room for both. The code takes the
//! request's number out again before the method reads the field.

use clr_profiler::il::{Code, Mark, NewLocal, Opcode, Operand};
use clrscope_contract::async_code::{AWAIT_BITS, NUMBERED_WAIT};

/// Where the code of an async method has a request's number.
#[derive(Clone, Copy)]
pub(super) struct KeptNumber {
    /// Token of the field that has the number of the machine's await.
    pub(super) state: u32,
    /// Variable for what was in the field when the code began.
    pub(super) stored: NewLocal,
    /// Variable for the request's number; 0 where there is none.
    pub(super) number: NewLocal,
}

/// Loads a number.
pub(super) fn constant(code: Code, number: u32) -> Code {
    code.with(Opcode::LdcI4, Operand::Int(number.cast_signed()))
}

impl KeptNumber {
    fn field(self, code: Code, opcode: Opcode) -> Code {
        code.with(opcode, Operand::Token(self.state))
    }

    /// Reads the field, and goes on at the mark where it has a request's number.
    pub(super) fn read(self, code: Code, numbered: Mark) -> Code {
        let code = self.field(code.plain(Opcode::Ldarg0), Opcode::Ldfld).store(self.stored);
        constant(code.load(self.stored), NUMBERED_WAIT).branch(Opcode::Bge, numbered)
    }

    /// Takes the request's number out of the field.
    pub(super) fn take_out(self, code: Code) -> Code {
        let code = constant(code.load(self.stored), !NUMBERED_WAIT).plain(Opcode::And);
        let code = constant(code, AWAIT_BITS).plain(Opcode::Shr).store(self.number);
        let code = constant(code.plain(Opcode::Ldarg0).load(self.stored), (1 << AWAIT_BITS) - 1).plain(Opcode::And);
        self.field(code, Opcode::Stfld)
    }

    /// Stores the request's number together with that of an await, where there is one. `then` adds
    /// what else is done in that case.
    pub(super) fn put_in(self, await_number: u32, then: impl FnOnce(Code) -> Code) -> Code {
        let mut code = Code::new();
        let behind = code.new_mark();
        let code = code.load(self.number).branch(Opcode::Brfalse, behind).plain(Opcode::Ldarg0).load(self.number);
        let code = constant(code, AWAIT_BITS).plain(Opcode::Shl);
        let code = constant(code, NUMBERED_WAIT | await_number).plain(Opcode::Or);
        then(self.field(code, Opcode::Stfld)).mark(behind)
    }
}
