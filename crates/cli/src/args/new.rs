//! `clrscope new`.

use std::path::PathBuf;

use clap::Args;
use clap::builder::PossibleValue;
use clap::builder::PossibleValuesParser;

use crate::commands::new::{CrateName, NewOptions, TEMPLATES, Template};
use crate::errors::{Failure, quoted};

const EXAMPLES: &str = "\
Examples:
  clrscope new shop-watch
  cd shop-watch; cargo test
  clrscope new who-allocates --template allocations
  clrscope new shop-watch --path ~/tools/watch --framework ~/clrscope

The new crate is a complete profiler with a README and a test; change what you like. Its
manifest asks for the version of clr-profiler that belongs to this program. That version
is not on crates.io yet, so the manifest also has the path of a checkout: the one that
contains the current folder or this program, or that of --framework; if there is none, the
command fails. The path is relative if the crate is inside the checkout; remove it once
the version is published.";

/// Make a crate for your own profiler, ready to build, with a test that passes
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(super) struct New {
    /// Name of the crate
    name: String,

    /// Template to begin with
    #[arg(long, value_name = "TEMPLATE", value_parser = templates(), default_value = TEMPLATES[0].name)]
    template: String,

    /// Folder of the crate, which must not exist [default: ./NAME]
    #[arg(long, value_name = "DIR")]
    path: Option<PathBuf>,

    /// Take clr-profiler from this checkout of clrscope, or from this folder of the crate
    #[arg(long, value_name = "DIR")]
    framework: Option<PathBuf>,
}

fn templates() -> PossibleValuesParser {
    PossibleValuesParser::new(TEMPLATES.iter().map(|one| PossibleValue::new(one.name).help(one.about)))
}

impl New {
    pub(super) fn into_options(self) -> Result<NewOptions, Failure> {
        let name = CrateName::parse(&self.name).map_err(|why| {
            let hint = "write a name such as shop-watch: small letters, digits, - and _";
            Failure::usage(format!("{} is not a name for a crate", quoted(&self.name)), why, hint)
        })?;
        let folder = self.path.unwrap_or_else(|| PathBuf::from(&self.name));
        // The parser has let no other name through.
        let template = Template::named(&self.template).unwrap_or(&TEMPLATES[0]);
        Ok(NewOptions { name, template, folder, framework: self.framework })
    }
}
