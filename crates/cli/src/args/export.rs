//! `clrscope export`.

use std::path::PathBuf;

use clap::Args;
use clap::builder::{PossibleValue, PossibleValuesParser};
use clrscope_analysis::{Metric, Query};
use clrscope_export::{ExportOptions, dataset, formats_that};
use clrscope_report::exporters;

use super::filters::{Filters, metrics, whole};
use super::unless_stdout;
use crate::commands::export::ExportTask;
use crate::errors::Failure;

const EXAMPLES: &str = "\
Examples:
  clrscope export app.clrs --to flamegraph -o app.svg
  clrscope export app.clrs --to hst > app.hst
  clrscope export app.clrs --to collapsed --metric calls | sort -k2 -n
  clrscope export app.clrs --to heapsnapshot -o app.heapsnapshot
  clrscope export runs/ --to parquet -o tables/        each recording in runs/
  clrscope export runs/ --to dataset -o fleet/         all of them into a new or existing data set

For a folder, every recording in it is exported: NAME.clrs, or NAME.clrs.d if there is no such file,
becomes NAME with the format's extension in the folder of -o. If a recording can't be exported,
clrscope names it, exports the others, and exits with code 1.";

/// Write a recording in the format of another program
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(super) struct Export {
    /// The recording: NAME.clrs or NAME.clrs.d; or a folder of recordings
    #[arg(value_name = "REC")]
    recording: PathBuf,

    /// The format
    #[arg(long, value_name = "FORMAT", value_parser = formats())]
    to: String,

    /// File to write [default: stdout]; for a folder of recordings or a data set, the folder to
    /// write to
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,

    /// Overwrite the file if it exists
    #[arg(long, requires = "output")]
    force: bool,

    /// Metric of call paths [default: the first that was recorded]
    #[arg(long, visible_alias = "weight", value_name = "METRIC", value_parser = metrics())]
    metric: Option<&'static Metric>,

    /// Smallest share of the metric that is drawn, 0 to 1
    #[arg(long, value_name = "SHARE", value_parser = share, help = min_share_help())]
    min_share: Option<f64>,

    /// Number of the snapshot of the heap
    #[arg(long, value_name = "NUMBER", value_parser = whole::<u32>, help = snapshot_help())]
    snapshot: Option<u32>,

    #[command(flatten)]
    filters: Filters,
}

fn formats() -> PossibleValuesParser {
    let one = exporters().map(|e| PossibleValue::new(e.name()).help(e.description()));
    one.chain([PossibleValue::new(dataset::NAME).help(dataset::DESCRIPTION)]).collect::<Vec<_>>().into()
}

fn min_share_help() -> String {
    let formats = formats_that(|format| format.takes_min_share());
    format!("Smallest share of the metric that is drawn, 0 to 1 ({formats}) [default: the format's own]")
}

fn snapshot_help() -> String {
    let formats = formats_that(|format| format.shows_heap());
    format!("Number of the snapshot of the heap ({formats}) [default: the last complete one]")
}

fn share(text: &str) -> Result<f64, String> {
    let share = text.parse().ok().filter(|share| (0.0..=1.0).contains(share));
    share.ok_or_else(|| "it takes a number from 0 to 1".to_owned())
}

impl Export {
    pub(super) fn into_options(self) -> Result<ExportTask, Failure> {
        Ok(ExportTask {
            recording: self.recording,
            format: self.to,
            output: unless_stdout(self.output),
            force: self.force,
            export: ExportOptions {
                query: Query { metric: self.metric, ..self.filters.into_query()? },
                min_share: self.min_share,
                snapshot: self.snapshot,
            },
        })
    }
}
