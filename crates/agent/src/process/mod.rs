//! Whether this process is to be recorded, its identity, and the treatment of its children.

pub(crate) mod child_process;
pub(crate) mod fork;
pub(crate) mod identity;
pub(crate) mod trust;
