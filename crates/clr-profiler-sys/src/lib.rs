//! The ABI of the .NET profiling interfaces: interfaces, identifiers, flags, structures and result codes.
