//! Pieces of inserted code.

use clr_profiler::il::element::I4;
use clr_profiler::il::{Code, Mark, NewLocal, Opcode};

use super::recorder::Recorder;
use crate::services::code_address::function_address;

/// Signature of [`wants_urls`].
pub(super) const WANTS: &[u8] = &[0, 0, I4];

/// Code that branches to `mark`, unless names of requests contain whole URLs. `signature` is the
/// token of [`WANTS`].
pub(super) fn unless_urls(code: Code, signature: u32, mark: Mark) -> Code {
    let code = code.address(function_address(wants_urls as *const ())).call(Opcode::Calli, signature, 1, 1);
    code.branch(Opcode::Brfalse, mark)
}

/// Whether names contain whole URLs.
unsafe extern "C" fn wants_urls() -> u32 {
    Recorder::current().is_some_and(|recorder| recorder.has_urls).into()
}

/// Code that sets the variable `local` to null.
pub(super) fn null(code: Code, local: NewLocal) -> Code {
    code.plain(Opcode::Ldnull).store(local)
}

/// Whether an instruction loads a variable.
pub(super) fn loads_variable(opcode: Opcode) -> bool {
    matches!(opcode, Opcode::Ldloc | Opcode::LdlocS | Opcode::Ldloc0 | Opcode::Ldloc1 | Opcode::Ldloc2 | Opcode::Ldloc3)
}
