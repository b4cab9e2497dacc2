//! `clrscope completions`: generated from the description of the command line.

use clap_complete::Shell;

use crate::errors::Failure;

/// Options of `completions`.
#[derive(Debug)]
pub(crate) struct CompletionsOptions {
    /// Shell to generate for.
    pub(crate) shell: Shell,
    /// Description of the command line.
    pub(crate) command_line: clap::Command,
}

/// Prints the completions.
///
/// # Errors
/// When they can't be written.
pub(crate) fn perform(mut options: CompletionsOptions) -> Result<(), Failure> {
    let mut script = Vec::new();
    clap_complete::generate(options.shell, &mut options.command_line, "clrscope", &mut script);
    super::print(&String::from_utf8_lossy(&script))
}
