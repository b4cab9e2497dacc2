//! Linux, with the C library of GNU.

pub mod clock;
pub mod descriptors;
pub mod memory;
pub mod process;
pub mod signals;
pub mod sockets;
pub mod threads;
