//! Temporary recordings, which are not kept.

use std::path::PathBuf;

use clrscope_contract::request::Request;
use tempfile::TempDir;

use super::recording::{AttachPlan, Until};
use super::target::Target;
use crate::errors::{Failure, reason};

/// A folder for a temporary recording: only this user can see it, and it is removed when the value
/// is dropped.
///
/// # Errors
/// When it can't be made.
pub(crate) fn moment_folder(command: &str) -> Result<TempDir, Failure> {
    tempfile::Builder::new().prefix(&format!("clrscope-{command}-")).tempdir().map_err(|error| {
        Failure::new("cannot make a folder for the moment", reason(&error), "set TMPDIR to a folder with space")
    })
}

impl<'a> AttachPlan<'a> {
    /// The plan of a temporary recording, which prints nothing but errors.
    pub(crate) fn for_moment(target: &'a Target, request: Request, output: PathBuf, until: Until) -> Self {
        Self {
            target,
            request,
            periods: None,
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
