//! The .NET host for programs that are given as a library.

use std::path::PathBuf;

use crate::dotnet::{self, Origin};
use crate::errors::Failure;

/// Finds the `dotnet` that starts a user's program: the user's installation, never the one fetched
/// for the demo.
///
/// # Errors
/// The user has no `dotnet`.
pub(crate) fn host() -> Result<PathBuf, Failure> {
    let installs = dotnet::find::installs();
    installs.iter().find(|install| install.origin != Origin::Cache).map(dotnet::Install::host).ok_or_else(|| {
        Failure::new(
            "cannot start a .NET library without .NET",
            "no 'dotnet' with a runtime was found by DOTNET_ROOT, on PATH or in the usual places",
            "install .NET or set DOTNET_ROOT to its folder",
        )
    })
}

impl From<dotnet::Failure> for Failure {
    fn from(failure: dotnet::Failure) -> Self {
        Self::new(failure.what, failure.why, failure.hint)
    }
}
