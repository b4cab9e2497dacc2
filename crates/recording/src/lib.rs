//! The clrscope recording: what is written inside the profiled process and read outside it.
