//! The library that the .NET runtime loads: hooks and instruments.
