//! Changes of the request that a thread works for. The code is inserted into the methods of the
//! runtime's own library that give a thread another `ExecutionContext`. All changes go through
//! these methods.

use clr_profiler::il::element::{OBJECT, VOID};
use clr_profiler::il::{Body, Code, Edits, Instruction, Opcode, Operand};
use clr_profiler::metadata::MetadataImport;
use clr_profiler::{Error, ModuleId, ProfilerInfo, Token};
use clrscope_agent_base::boundary::guard;
use clrscope_agent_base::hooks::is_stopped;

use super::locals;
use super::members::{Members, Reason};
use super::recorder::Recorder;
use crate::services::code_address::function_address;

/// Names of the types and members that are used here.
const CONTEXT: &str = "System.Threading.ExecutionContext";
const METHODS: [&str; 4] =
    ["RestoreChangedContextToThread", "ResetThreadPoolThread", "RunForThreadPoolUnsafe", "SetLocalValue"];
const THREAD: &str = "System.Threading.Thread";
const CURRENT: &str = "get_CurrentThread";
const FIELD: &str = "_executionContext";

/// Signature of [`switched`].
const SWITCHES: &[u8] = &[0, 1, VOID, OBJECT];

/// The methods whose code is changed.
///
/// # Errors
/// The reason why the methods can't be found, in words.
pub(super) fn methods(metadata: &MetadataImport) -> Result<Vec<Token>, Reason> {
    let members = Members(metadata);
    let context = members.own_type(CONTEXT, None)?;
    METHODS.into_iter().map(|name| members.own(context, name)).collect()
}

/// Tokens, in the library, of the members that inserted code names.
#[derive(Debug, Clone, Copy)]
pub(super) struct Tokens {
    current: u32,
    field: u32,
    switches: u32,
}

impl Tokens {
    /// Finds the tokens, and makes the signature.
    ///
    /// # Errors
    /// The runtime's error, or the reason why the tokens can't be found.
    pub(super) fn find(info: &ProfilerInfo, module: ModuleId, metadata: &MetadataImport) -> clr_profiler::Result<Self> {
        let switches = info.signature_token(module, SWITCHES)?.as_raw();
        let members = Members(metadata);
        let find = || {
            let thread = members.own_type(THREAD, None)?;
            let current = members.own(thread, CURRENT)?.as_raw();
            Ok(Self { current, field: members.field(thread, FIELD)?, switches })
        };
        find().map_err(|why: Reason| Error::refused("requests", why))
    }

    /// The edits of one of the methods: after each store of a thread's context the thread reports
    /// its new context.
    pub(super) fn edits(self, body: &Body) -> Edits {
        let mut edits = Edits::new();
        let is_store = |instruction: &&Instruction| {
            instruction.opcode() == Opcode::Stfld && *instruction.operand() == Operand::Token(self.field)
        };
        for store in body.instructions().iter().filter(is_store) {
            let code = Code::new().call(Opcode::Call, self.current, 0, 1);
            let code = code.with(Opcode::Ldfld, Operand::Token(self.field));
            let code = code.address(function_address(switched as *const ())).call(Opcode::Calli, self.switches, 2, 0);
            edits.after(store.label(), code);
        }
        edits
    }
}

/// The calling thread has another context now.
unsafe extern "C" fn switched(context: usize) {
    guard(|| {
        let Some(recorder) = Recorder::current() else { return };
        if is_stopped() {
            return recorder.works_unseen();
        }
        // SAFETY: the value that the code of `edits` passes: the thread's context or null.
        recorder.works_for(unsafe { locals::request_in(context) });
    });
}
