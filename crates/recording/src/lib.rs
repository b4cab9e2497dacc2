//! The clrscope recording: what is written inside the profiled process and read outside it.

pub mod model;
pub mod request;
