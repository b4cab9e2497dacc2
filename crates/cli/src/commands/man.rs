//! `clrscope man`: generated from the description of the command line.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use clap_mangen::Man;

use crate::errors::{Failure, reason, shown};

/// Where the pages go.
#[derive(Debug)]
pub(crate) struct ManOptions {
    /// A folder for a page per command; stdout, with the main page alone, when `None`.
    pub(crate) directory: Option<PathBuf>,
    /// The description.
    pub(crate) command_line: clap::Command,
}

/// Prints the main page or writes them all.
///
/// # Errors
/// When they can't be written.
pub(crate) fn perform(options: ManOptions) -> Result<(), Failure> {
    match &options.directory {
        Some(folder) => write_all(folder, options.command_line).map_err(|error| {
            Failure::new(
                format!("cannot write the pages to {}", shown(folder)),
                reason(&error),
                "choose a folder of yours",
            )
        }),
        None => super::print(&page(options.command_line)?),
    }
}

fn page(command: clap::Command) -> Result<String, Failure> {
    let mut page = Vec::new();
    Man::new(command).render(&mut page).map_err(|error| super::cannot_print(&error))?;
    Ok(String::from_utf8_lossy(&page).into_owned())
}

fn write_all(folder: &Path, command: clap::Command) -> io::Result<()> {
    fs::create_dir_all(folder)?;
    let mut command = command.disable_help_subcommand(true);
    command.build();
    clap_mangen::generate_to(command, folder)
}
