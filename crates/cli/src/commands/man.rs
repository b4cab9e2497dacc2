//! `clrscope man`: generated from the description of the command line.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use clap_mangen::Man;

use crate::errors::{Failure, reason, shown};

/// Options of `man`.
#[derive(Debug)]
pub(crate) struct ManOptions {
    /// A folder for one page per command. When `None`, only the main page is printed, on stdout.
    pub(crate) directory: Option<PathBuf>,
    /// Description of the command line.
    pub(crate) command_line: clap::Command,
}

/// Prints the main page, or writes all pages.
///
/// # Errors
/// When they can't be written.
pub(crate) fn perform(options: ManOptions) -> Result<(), Failure> {
    match &options.directory {
        Some(folder) => write_all(folder, options.command_line).map_err(|error| {
            Failure::new(
                format!("cannot write the pages to {}", shown(folder)),
                reason(&error),
                "choose a folder that you can write",
            )
        }),
        None => super::print(&page(options.command_line)?),
    }
}

fn page(command: clap::Command) -> Result<String, Failure> {
    rendered(command).map_err(|error| super::cannot_print(&error))
}

fn rendered(command: clap::Command) -> io::Result<String> {
    let mut page = Vec::new();
    Man::new(command).render(&mut page)?;
    // clap names the section after the options "Extra"; it has examples here.
    let page = String::from_utf8_lossy(&page);
    Ok(page.replace(".SH EXTRA\nExamples:\n", ".SH EXAMPLES\n").replace(".SH EXTRA\nExample:\n", ".SH EXAMPLES\n"))
}

/// The main page and one for each command.
fn write_all(folder: &Path, command: clap::Command) -> io::Result<()> {
    fs::create_dir_all(folder)?;
    let mut command = command.disable_help_subcommand(true);
    command.build();
    let pages = command.get_subcommands().filter(|one| !one.is_hide_set()).cloned().collect::<Vec<_>>();
    for page in pages.into_iter().chain([command]) {
        let name = page.get_display_name().unwrap_or_else(|| page.get_name()).to_owned();
        fs::write(folder.join(format!("{name}.1")), rendered(page)?)?;
    }
    Ok(())
}
