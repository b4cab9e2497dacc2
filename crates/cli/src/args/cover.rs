//! `clrscope cover`.

use std::ffi::OsString;
use std::path::PathBuf;

use clap::Args;
use clrscope_contract::instruments::coverage::{DOES_NOT_RETURN, SKIP_AUTO_PROPS, SPEC};
use clrscope_contract::instruments::is_type_name;

use super::recording::{ProbeArgs, ResultArgs, of_coverage};
use crate::commands::cover::{CoverOptions, CoverageSubject};
use crate::errors::Failure;

const EXAMPLES: &str = "\
Examples:
  clrscope cover -- dotnet test
  clrscope cover --cobertura coverage.xml --fail-under 80 -- dotnet test
  clrscope cover --include '[Shop]*' -- dotnet run
  clrscope cover --does-not-return-attribute DoesNotReturn --skip-auto-props -- dotnet test
  clrscope cover --probe 'Shop.Cart::*' -- dotnet test
  clrscope cover --merge unit.clrs web.clrs --cobertura coverage.xml
  clrscope report app.clrs --view coverage --lines

Coverage is of assemblies with symbols (PDB) whose sources are on this machine, without test
projects and without code that has [ExcludeFromCodeCoverage] or [GeneratedCode]. The exit code is
the program's; 1 instead of 0 if less than --fail-under was run; 125 if clrscope itself failed.

Stack traces that the program writes keep their line numbers. In optimised code they may show
methods that are inlined without clrscope.";

/// Run a program and show which lines and branches were run
#[derive(Debug, Args)]
#[command(
    override_usage = "clrscope cover [OPTIONS] [--] PROGRAM [ARGS]...\n       clrscope cover [OPTIONS] --merge REC...",
    after_help = EXAMPLES
)]
pub(super) struct Cover {
    /// Only functions that match, such as '[MyApp]*' or 'Shop.Cart::*'; assemblies named here are
    /// covered wherever their sources are; can be repeated
    #[arg(long, value_name = "PATTERN", conflicts_with = "merge")]
    include: Vec<String>,

    /// Leave out functions that match, and the nested types of types that match; wins over
    /// --include; can be repeated
    #[arg(long, value_name = "PATTERN", conflicts_with = "merge")]
    exclude: Vec<String>,

    /// Leave out code after calls to methods with this attribute, such as DoesNotReturn, which
    /// never return; can be repeated
    #[arg(long, value_name = "NAME", value_parser = attribute, conflicts_with = "merge")]
    does_not_return_attribute: Vec<String>,

    /// Leave out properties that the compiler implements, such as { get; set; }, and their initial
    /// values
    #[arg(long, conflicts_with = "merge")]
    skip_auto_props: bool,

    #[command(flatten)]
    probes: ProbeArgs,

    /// Write the coverage to this file as Cobertura XML
    #[arg(long, value_name = "FILE")]
    cobertura: Option<PathBuf>,

    /// Exit with code 1 if less than this percentage of the lines was run
    #[arg(long, value_name = "PERCENT", value_parser = percent)]
    fail_under: Option<f64>,

    /// Add up the coverage of these recordings instead of running a program
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

fn attribute(text: &str) -> Result<String, String> {
    let name = Some(text).filter(|text| is_type_name(text)).map(str::to_owned);
    name.ok_or_else(|| "it takes the name of an attribute, such as DoesNotReturn".to_owned())
}

impl Cover {
    pub(super) fn into_options(self) -> Result<CoverOptions, Failure> {
        let ResultArgs { output, force, quiet } = self.result;
        let measured = match self.merge.is_empty() {
            false => CoverageSubject::Recordings(self.merge),
            true => {
                let instrument = instrument(&self.does_not_return_attribute, self.skip_auto_props);
                let recording = of_coverage(instrument, self.include, self.exclude, self.probes);
                let given = recording.instruments_given();
                let request = Box::new(recording.into_request()?);
                CoverageSubject::Program { request, given, command: self.command, output, quiet }
            }
        };
        Ok(CoverOptions { measured, cobertura: self.cobertura, fail_under: self.fail_under, force })
    }
}

/// The instrument `coverage` with its options, as `-i` takes it.
fn instrument(does_not_return: &[String], skips_auto_props: bool) -> String {
    let names = (!does_not_return.is_empty()).then(|| format!("{DOES_NOT_RETURN}={}", does_not_return.join("+")));
    let options: Vec<String> = names.into_iter().chain(skips_auto_props.then(|| SKIP_AUTO_PROPS.to_owned())).collect();
    if options.is_empty() { SPEC.name.to_owned() } else { format!("{}:{}", SPEC.name, options.join(",")) }
}
