//! Development commands of clrscope.
fn main() {}
