//! A framework to write .NET profilers in safe Rust.
