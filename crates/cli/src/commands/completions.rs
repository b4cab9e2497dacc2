//! `clrscope completions`: generated from the description of the command line.

use clap_complete::Shell;

use crate::args;
use crate::errors::Failure;

/// Prints the completions of `shell`.
///
/// # Errors
/// When they can't be written.
pub(crate) fn perform(shell: Shell) -> Result<(), Failure> {
    let mut script = Vec::new();
    clap_complete::generate(shell, &mut args::description(), "clrscope", &mut script);
    super::print(&String::from_utf8_lossy(&script))
}
