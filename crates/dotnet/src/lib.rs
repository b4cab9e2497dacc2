//! Finds the .NET runtimes of this machine, and fetches one if there is none.
//!
//! [`find`] only looks; [`fetch`] downloads .NET 8 into a private cache, for the demo and the
//! tests, never for a program the user wants profiled.

pub mod fetch;
pub mod find;

mod failure;
mod version;

pub use failure::Failure;
pub use fetch::Fetcher;
pub use find::{Install, Origin};
pub use version::Version;
