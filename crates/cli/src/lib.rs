//! What the `clrscope` binary is made of, as a library: the binary is glue around it, and the tests use the same code.

pub mod dotnet;
