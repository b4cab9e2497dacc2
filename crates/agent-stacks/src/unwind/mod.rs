//! The step from a place in a compiled method to its caller, by the unwind information of the
//! compilers: for all that walks stacks.
//!
//! | module | what it holds |
//! |---|---|
//! | `tables` | where unwind information lies, and the step from each address of a body |
//! | `frame_shapes` | the same for those who ask about single addresses and have no map of code |
//! | `images` | precompiled code with its table of pieces |
//! | `arch` | the format of unwind information, and what instructions do to the stack |

pub mod arch;
#[cfg(test)]
mod checks;
mod frame_shapes;
pub(crate) mod images;
pub mod tables;

pub(crate) use arch::bytes_to_stored_this;
pub use frame_shapes::FrameShape;
pub(crate) use frame_shapes::FrameShapes;
pub(crate) use tables::BodyStep;
