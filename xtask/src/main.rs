//! Development commands of clrscope: `cargo xtask COMMAND`.

use std::env;
use std::process::ExitCode;

mod fixtures;
mod soak;

const USAGE: &str = "usage: cargo xtask COMMAND

commands:
  fixtures    compile the programs in dotnet/ and write dotnet/sources.sha256
  soak        feed damaged recordings and requests to the readers for a while";

#[expect(clippy::print_stderr, reason = "a command line tool")]
fn main() -> ExitCode {
    let arguments: Vec<String> = env::args().skip(1).collect();
    let result = match arguments.first().map(String::as_str) {
        Some("fixtures") => fixtures::run(),
        Some("soak") => soak::run(&arguments[1..]),
        _ => Err(USAGE.to_owned()),
    };
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(message) => {
            eprintln!("{message}");
            ExitCode::FAILURE
        }
    }
}
