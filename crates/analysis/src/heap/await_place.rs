//! Places of awaits in the code of async methods.

use clrscope_recording::model::{Module, Process};

use crate::code_place::CodePlace;

/// Place of an await in the code of an async method.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct AwaitPlace {
    /// Index into [`Process::modules`] of the module with the code.
    pub module: u32,
    /// Token of the state machine's method `MoveNext`, which contains the code.
    pub token: u32,
    /// Offset of the await in the IL of that method.
    pub il_offset: u32,
}

impl AwaitPlace {
    /// The module with the code; `process` must be the process of this await.
    #[must_use]
    pub fn module_in<'a>(&self, process: &'a Process) -> Option<&'a Module> {
        process.modules.get(self.module as usize)
    }

    /// The code location, from which the source line is found.
    #[must_use]
    pub fn code_place(&self) -> CodePlace<'static> {
        CodePlace { il_offset: Some(self.il_offset), is_unoptimised: true, ..CodePlace::default() }
    }
}
