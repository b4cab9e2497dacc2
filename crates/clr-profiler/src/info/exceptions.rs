//! The exception clause of a callback.

use clr_profiler_sys::structs::COR_PRF_EX_CLAUSE_INFO;

use super::ProfilerInfo;
use crate::Result;
use crate::error::check;

/// A block that the runtime runs because of an exception.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub struct ExceptionClause {
    /// Kind of block.
    pub kind: ClauseKind,
    /// Address at which its code begins.
    pub code: usize,
    /// The frame pointer of the activation that owns the block. It is below the caller's stack
    /// pointer of that activation, and at or above the caller's stack pointers of its callees.
    pub frame_pointer: usize,
}

/// Kind of a protected block.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
#[non_exhaustive]
pub enum ClauseKind {
    /// No block.
    None,
    /// A filter, in the first pass.
    Filter,
    /// A catch block.
    Catch,
    /// A finally or fault block, in the second pass.
    Finally,
}

impl ProfilerInfo {
    /// The block that is about to run, or has just run. Only in these callbacks: filter enter and
    /// leave, finally enter and leave, catcher enter and leave.
    ///
    /// # Errors
    /// The runtime's error.
    pub fn exception_clause(&self) -> Result<ExceptionClause> {
        let runtime = self.base("GetNotifiedExceptionClauseInfo")?;
        let mut clause = COR_PRF_EX_CLAUSE_INFO::default();
        // SAFETY: a valid out-parameter.
        let answer = unsafe { runtime.GetNotifiedExceptionClauseInfo(&mut clause) };
        check(answer, "GetNotifiedExceptionClauseInfo")?;
        let kind = match clause.clause_type.0 {
            1 => ClauseKind::Filter,
            2 => ClauseKind::Catch,
            3 => ClauseKind::Finally,
            _ => ClauseKind::None,
        };
        Ok(ExceptionClause { kind, code: clause.program_counter, frame_pointer: clause.frame_pointer })
    }
}
