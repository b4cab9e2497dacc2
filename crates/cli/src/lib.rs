//! A profiler for .NET programs: exact call trees with one command.
