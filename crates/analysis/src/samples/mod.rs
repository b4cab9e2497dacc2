//! Samples of `cpu` and `wall`: their metrics along stacks, and their kinds of work.

mod folding;
mod kinds;
mod metric;
mod nameless;
mod taken;

pub(crate) use folding::{FoldedFunctions, NO_CALLER};
pub(crate) use kinds::{EventKinds, Kinds, kind_of_function};
pub use kinds::{SampleKind, kind_of_code};
pub use metric::{SAMPLED_CPU, SAMPLED_WALL, SAMPLES};
pub(crate) use metric::{WALL_SAMPLES, event_of, lasted_ns, thread_numbered};
pub use taken::{InliningKnowledge, SamplingConditions};
pub(crate) use taken::{each_sample, sampling_conditions};
