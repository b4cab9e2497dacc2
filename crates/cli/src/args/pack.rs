//! `clrscope pack`.

use std::path::PathBuf;

use clap::Args;

use crate::commands::pack::PackOptions;

const EXAMPLES: &str = "\
Example:
  clrscope pack app.clrs.d                 writes app.clrs and leaves app.clrs.d as it is";

/// Pack a recording directory into one file, as run does at its end
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(super) struct Pack {
    /// The recording directory: NAME.clrs.d
    #[arg(value_name = "DIR")]
    directory: PathBuf,

    /// File to write [default: NAME.clrs next to the directory]
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,

    /// Overwrite the file if it exists
    #[arg(long)]
    force: bool,
}

impl Pack {
    pub(super) fn into_options(self) -> PackOptions {
        PackOptions { directory: self.directory, output: self.output, force: self.force }
    }
}
