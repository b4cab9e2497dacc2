//! Linux, with the C library of GNU.

pub(crate) mod clock;
pub(crate) mod descriptors;
pub(crate) mod memory;
pub(crate) mod process;
pub(crate) mod signals;
pub(crate) mod sockets;
pub(crate) mod threads;
