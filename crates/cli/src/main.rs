//! The `clrscope` command.
fn main() {}
