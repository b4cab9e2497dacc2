//! A profiler for .NET programs: exact call trees with one command.

use std::process::ExitCode;

fn main() -> ExitCode {
    clrscope::main()
}
