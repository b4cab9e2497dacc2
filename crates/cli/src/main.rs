//! A profiler for .NET programs: where time and memory go, by samples, exact call trees and
//! snapshots.

use std::process::ExitCode;

fn main() -> ExitCode {
    clrscope::main()
}
