//! The contract between the launcher, the agent inside the profiled process and the readers of recordings.
//!
//! - [`request`] is the grammar in which a user says what is to be recorded.
//! - [`trust`] says whether others could change a file that launcher and agent rely on.
//! - [`command`] reads command lines as the `dotnet` host does.

pub mod command;
pub mod request;
pub mod trust;
