//! `clrscope cover`.

use std::ffi::OsString;
use std::path::PathBuf;

use clap::Args;

use super::recording::{ProbeArgs, ResultArgs, of_coverage};
use crate::commands::cover::{CoverOptions, Measured};
use crate::errors::Failure;

const EXAMPLES: &str = "\
Examples:
  clrscope cover -- dotnet test
  clrscope cover --cobertura coverage.xml --fail-under 80 -- dotnet test
  clrscope cover --include '[Shop]*' -- dotnet run
  clrscope cover --probe 'Shop.Cart::*' -- dotnet test
  clrscope cover --merge unit.clrs web.clrs --cobertura coverage.xml
  clrscope report app.clrs --view coverage --lines

Covered are assemblies with symbols (PDB) whose sources are on this machine; test projects, and what has
[ExcludeFromCodeCoverage] or [GeneratedCode], are left out. The exit code is the program's; 1 where it is 0
and less than --fail-under was run; 125 when clrscope itself failed.";

/// Run a program and show which lines and branches were run
#[derive(Debug, Args)]
#[command(
    override_usage = "clrscope cover [OPTIONS] [--] PROGRAM [ARGS]...\n       clrscope cover [OPTIONS] --merge REC...",
    after_help = EXAMPLES
)]
pub(super) struct Cover {
    /// Only functions that match, such as '[MyApp]*' or 'Shop.Cart::*'; assemblies named here are covered wherever their sources are; can be repeated
    #[arg(long, value_name = "PATTERN", conflicts_with = "merge")]
    include: Vec<String>,

    /// Leave out functions that match; wins over --include; can be repeated
    #[arg(long, value_name = "PATTERN", conflicts_with = "merge")]
    exclude: Vec<String>,

    #[command(flatten)]
    probes: ProbeArgs,

    /// Write the coverage as Cobertura's XML
    #[arg(long, value_name = "FILE")]
    cobertura: Option<PathBuf>,

    /// Exit code 1 where less than this share of the lines was run, in percent
    #[arg(long, value_name = "PERCENT", value_parser = percent)]
    fail_under: Option<f64>,

    /// Recordings whose coverage is added up, instead of running a program
    #[arg(long, value_name = "REC", num_args = 1.., conflicts_with_all = ["command", "output", "quiet", "probe", "probe_at"])]
    merge: Vec<PathBuf>,

    #[command(flatten)]
    result: ResultArgs,

    /// The program and its arguments; 'app.dll' means 'dotnet app.dll'
    #[arg(trailing_var_arg = true, required_unless_present = "merge", value_name = "PROGRAM")]
    command: Vec<OsString>,
}

fn percent(text: &str) -> Result<f64, String> {
    let share = text.trim_end_matches('%').parse().ok().filter(|share| (0.0..=100.0).contains(share));
    share.ok_or_else(|| "it takes a number from 0 to 100".to_owned())
}

impl Cover {
    pub(super) fn into_options(self) -> Result<CoverOptions, Failure> {
        let ResultArgs { output, force, quiet } = self.result;
        let measured = match self.merge.is_empty() {
            false => Measured::Recordings(self.merge),
            true => {
                let recording = of_coverage(self.include, self.exclude, self.probes);
                let given = recording.instruments_given();
                let request = Box::new(recording.into_request()?);
                Measured::Program { request, given, command: self.command, output, quiet }
            }
        };
        Ok(CoverOptions { measured, cobertura: self.cobertura, fail_under: self.fail_under, force })
    }
}
