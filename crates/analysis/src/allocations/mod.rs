//! Allocations: the records of the instrument `alloc`, and the metrics along the allocating stacks.

mod bounds;
mod live;
mod metric;
mod records;
mod type_leaves;

pub(crate) use bounds::{BoundedAmount, Estimate};
pub(crate) use live::Live;
pub use metric::{BYTES, OBJECTS};
pub(crate) use records::{each_record, is_wanted, time_ns, type_and_module, type_of};
pub(crate) use type_leaves::with_type_leaves;
