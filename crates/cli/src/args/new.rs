//! `clrscope new`.

use std::path::PathBuf;

use clap::Args;

use crate::commands::new::{CrateName, NewOptions};
use crate::errors::{Failure, quoted};

const EXAMPLES: &str = "\
Examples:
  clrscope new shop-watch
  cd shop-watch; cargo test
  clrscope new shop-watch --path ~/tools/watch --framework ~/clrscope

The new crate counts the calls of each function; change what you like. It takes the crate
clr-profiler from the checkout of clrscope around the current folder or around this program,
else by version.";

/// Make a crate for a profiler of your own, ready to build and with a test that passes
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(super) struct New {
    /// Name of the crate
    name: String,

    /// Folder of the crate, which must not exist [default: ./NAME]
    #[arg(long, value_name = "DIR")]
    path: Option<PathBuf>,

    /// Take clr-profiler from this checkout of clrscope, or from this folder of the crate itself
    #[arg(long, value_name = "DIR")]
    framework: Option<PathBuf>,
}

impl New {
    pub(super) fn into_options(self) -> Result<NewOptions, Failure> {
        let name = CrateName::parse(&self.name).map_err(|why| {
            let hint = "write a name such as shop-watch: small letters, digits, - and _";
            Failure::usage(format!("{} is no name for a crate", quoted(&self.name)), why, hint)
        })?;
        let folder = self.path.unwrap_or_else(|| PathBuf::from(&self.name));
        Ok(NewOptions { name, folder, framework: self.framework })
    }
}
