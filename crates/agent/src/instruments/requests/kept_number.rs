//! The number of a request in the state of an async method, while the method waits. The state
//! machine has a field for the number of its await, which has room for both numbers. The inserted
//! code removes the request's number before the method reads the field.

use clr_profiler::il::{Code, Mark, NewLocal, Opcode, Operand};
use clrscope_contract::async_code::{AWAIT_BITS, NUMBERED_WAIT};

/// Where the code of an async method keeps a request's number: a field and variables.
#[derive(Clone, Copy)]
pub(super) struct KeptNumber {
    /// Token of the field that holds the number of the state machine's await.
    pub(super) state: u32,
    /// Variable for the value that the field had when the code began.
    pub(super) stored: NewLocal,
    /// Variable for the request's number; 0 if there is none.
    pub(super) number: NewLocal,
}

/// Code that loads a number.
pub(super) fn constant(code: Code, number: u32) -> Code {
    code.with(Opcode::LdcI4, Operand::Int(number.cast_signed()))
}

impl KeptNumber {
    fn field(self, code: Code, opcode: Opcode) -> Code {
        code.with(opcode, Operand::Token(self.state))
    }

    /// Code that reads the field, and branches to `numbered` if it holds a request's number.
    pub(super) fn read(self, code: Code, numbered: Mark) -> Code {
        let code = self.field(code.plain(Opcode::Ldarg0), Opcode::Ldfld).store(self.stored);
        constant(code.load(self.stored), NUMBERED_WAIT).branch(Opcode::Bge, numbered)
    }

    /// Code that removes the request's number from the field.
    pub(super) fn take_out(self, code: Code) -> Code {
        let code = constant(code.load(self.stored), !NUMBERED_WAIT).plain(Opcode::And);
        let code = constant(code, AWAIT_BITS).plain(Opcode::Shr).store(self.number);
        let code = constant(code.plain(Opcode::Ldarg0).load(self.stored), (1 << AWAIT_BITS) - 1).plain(Opcode::And);
        self.field(code, Opcode::Stfld)
    }

    /// Code that stores the request's number, if there is one, together with the number of an
    /// await. `then` adds further code for that case.
    pub(super) fn put_in(self, await_number: u32, then: impl FnOnce(Code) -> Code) -> Code {
        let mut code = Code::new();
        let behind = code.new_mark();
        let code = code.load(self.number).branch(Opcode::Brfalse, behind).plain(Opcode::Ldarg0).load(self.number);
        let code = constant(code, AWAIT_BITS).plain(Opcode::Shl);
        let code = constant(code, NUMBERED_WAIT | await_number).plain(Opcode::Or);
        then(self.field(code, Opcode::Stfld)).mark(behind)
    }
}
