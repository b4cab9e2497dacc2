//! For tests, benches and fuzzing, behind the feature `testing`; no part of the product.

pub mod allocator;
pub mod chunk;
pub mod drawn;
pub mod fuzzing;
mod instruments;
pub mod mutate;
pub mod synthetic;
