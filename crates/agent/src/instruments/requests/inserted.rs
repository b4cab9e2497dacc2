//! Pieces of inserted code.

use clr_profiler::il::{Code, NewLocal, Opcode};

/// The variable has no object.
pub(super) fn null(code: Code, local: NewLocal) -> Code {
    code.plain(Opcode::Ldnull).store(local)
}

/// Whether an instruction loads a variable.
pub(super) fn loads_variable(opcode: Opcode) -> bool {
    matches!(opcode, Opcode::Ldloc | Opcode::LdlocS | Opcode::Ldloc0 | Opcode::Ldloc1 | Opcode::Ldloc2 | Opcode::Ldloc3)
}
