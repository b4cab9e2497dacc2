//! Recordings of the moment, which are not kept.

use std::path::PathBuf;

use clrscope_contract::request::Request;
use tempfile::TempDir;

use super::recording::{AttachPlan, Until};
use super::target::Target;
use crate::errors::{Failure, reason};

/// A folder for a recording of the moment: only this user sees it, and it is removed with the
/// value.
///
/// # Errors
/// When it can't be made.
pub(crate) fn moment_folder(command: &str) -> Result<TempDir, Failure> {
    tempfile::Builder::new().prefix(&format!("clrscope-{command}-")).tempdir().map_err(|error| {
        Failure::new("cannot make a folder for the moment", reason(&error), "set TMPDIR to a folder with space")
    })
}

impl<'a> AttachPlan<'a> {
    /// The plan of a recording of the moment, which prints nothing but errors.
    pub(crate) fn for_moment(target: &'a Target, request: Request, output: PathBuf, until: Until) -> Self {
        Self {
            target,
            request,
            instruments_given: "",
            output: Some(output),
            force: false,
            progress: false,
            quiet: true,
            until,
            view: false,
        }
    }
}
