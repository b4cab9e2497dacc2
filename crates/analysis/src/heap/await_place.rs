//! Places of awaits in the code of async methods.

use clrscope_recording::model::{Module, Process};

use crate::code_place::CodePlace;

/// Place in the code of an async method where it awaits something.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct AwaitPlace {
    /// Index into [`Process::modules`] of the module with the code.
    pub module: u32,
    /// Token of the code, `MoveNext` of the state machine.
    pub token: u32,
    /// Offset in its IL.
    pub il_offset: u32,
}

impl AwaitPlace {
    /// The module with the code, in the process that it is of.
    #[must_use]
    pub fn module_in<'a>(&self, process: &'a Process) -> Option<&'a Module> {
        process.modules.get(self.module as usize)
    }

    /// What the line is looked up by.
    #[must_use]
    pub fn code_place(&self) -> CodePlace<'static> {
        CodePlace { il_offset: Some(self.il_offset), is_unoptimised: true, ..CodePlace::default() }
    }
}
