//! `clrscope completions`.

use clap::Args;
use clap_complete::Shell;

use crate::commands::completions::CompletionsOptions;

const EXAMPLES: &str = "\
Example:
  clrscope completions bash > ~/.local/share/bash-completion/completions/clrscope";

/// Print the completions of a shell
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(super) struct Completions {
    /// The shell
    #[arg(value_name = "SHELL")]
    shell: Shell,
}

impl Completions {
    pub(super) fn into_options(self, command_line: clap::Command) -> CompletionsOptions {
        CompletionsOptions { shell: self.shell, command_line }
    }
}
