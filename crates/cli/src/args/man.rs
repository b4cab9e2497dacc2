//! `clrscope man`.

use std::path::PathBuf;

use clap::Args;

use crate::commands::man::ManOptions;

const EXAMPLES: &str = "\
Examples:
  clrscope man | man -l -
  clrscope man --directory ~/.local/share/man/man1   one page per command";

/// Print the man page
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(super) struct Man {
    /// Write a page per command into this folder
    #[arg(long, value_name = "DIR")]
    directory: Option<PathBuf>,
}

impl Man {
    pub(super) fn into_options(self, command_line: clap::Command) -> ManOptions {
        ManOptions { directory: self.directory, command_line }
    }
}
