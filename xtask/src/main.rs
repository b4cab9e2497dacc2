//! Development commands of clrscope: `cargo xtask COMMAND`.

use std::env;
use std::process::ExitCode;

mod accuracy;
mod agents;
mod async_chains;
mod attaches;
mod bench;
#[cfg(test)]
mod comments;
mod dist;
#[cfg(test)]
mod documents;
mod findings;
mod fixtures;
mod fleet;
mod growth;
mod json_docs;
mod large;
mod layers;
mod machine;
mod measured;
mod notices;
mod periods;
mod picture;
mod probes;
mod programs;
mod published;
mod rare;
mod reference;
mod sampling;
mod soak;
mod tables;
mod triages;
mod verdict;
mod watches;

const USAGE: &str = "usage: cargo xtask COMMAND

commands:
  accuracy    compare reports with programs that know their answer, into docs/accuracy.md
  bench       measure what profiling costs, into docs/benchmarks.md
  dist        build what is published for glibc 2.17 and for musl, and pack it, into target/dist
  fixtures    compile the programs in dotnet/ and write dotnet/sources.sha256
  large       write a recording of ten million samples, or of as many as you like
  layers      compare the layers of crates and modules with layers.toml
  notices     gather the licences of what is linked, into THIRD-PARTY-NOTICES.txt
  picture     make docs/page.png, the demo's page as README shows it
  reference   list instruments, views, metrics, exports and losses, into docs/reference.md
  soak        feed damaged recordings and requests to the readers for a while; run real programs with all values read;
              sample hostile programs; try what is published";

#[expect(clippy::print_stderr, reason = "a command line tool")]
fn main() -> ExitCode {
    let arguments: Vec<String> = env::args().skip(1).collect();
    let result = match arguments.first().map(String::as_str) {
        Some("accuracy") => accuracy::run(&arguments[1..]),
        Some("bench") => bench::run(&arguments[1..]),
        Some("dist") => dist::run(&arguments[1..]),
        Some("fixtures") => fixtures::run(),
        Some("large") => large::run(&arguments[1..]),
        Some("layers") => layers::run(),
        Some("notices") => notices::run(),
        Some("picture") => picture::run(),
        Some("reference") => reference::run().and_then(|()| json_docs::run()),
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
