//! The step from a place in a compiled method to its caller, by the unwind information of the
//! compilers. Used by all code that walks stacks.
//!
//! | module | what it holds |
//! |---|---|
//! | `tables` | the location of unwind information, and the step from each address of a body |
//! | `frame_shapes` | frame layouts, for callers that ask about single addresses and have no map of code |
//! | `heaps` | where the runtime places compiled code: it may be asked about anything there |
//! | `images` | precompiled code with its table of pieces |
//! | `arch` | the format of unwind information, and the effects of instructions on the stack |

pub mod arch;
#[cfg(test)]
mod checks;
mod frame_shapes;
pub(crate) mod heaps;
pub(crate) mod images;
pub mod tables;

pub(crate) use arch::bytes_to_stored_this;
pub use frame_shapes::FrameShape;
pub(crate) use frame_shapes::FrameShapes;
pub(crate) use tables::BodyStep;
