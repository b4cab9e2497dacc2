//! Helpers for tests, benches and fuzzing, behind the feature `testing`; not part of the product.

pub mod allocator;
pub mod ascii_trees;
pub mod chunk;
pub mod fuzzing;
pub mod heap;
mod instruments;
pub mod logs;
pub mod many;
pub mod many_calls;
pub mod mutate;
pub mod samples;
pub mod synthetic;
