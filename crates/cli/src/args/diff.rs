//! `clrscope diff`.

use std::path::PathBuf;

use clap::Args;
use clrscope_report::{Refusal, Request};

use super::filters::Filters;
use super::report::{self, HeapFlags};
use crate::commands::diff::DiffOptions;
use crate::errors::Failure;

const EXAMPLES: &str = "\
Examples:
  clrscope diff before.clrs after.clrs         the last snapshots of two recordings
  clrscope diff app.clrs                       the first and the last snapshot of one recording
  clrscope diff app.clrs --against 2 --snapshot 3
  clrscope diff before.clrs after.clrs --type 'Shop.*' --format json";

/// Compare two snapshots of the heap, of one recording or of two
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(super) struct Diff {
    /// The recording with the earlier snapshot: NAME.clrs or NAME.clrs.d
    #[arg(value_name = "BEFORE")]
    before: PathBuf,

    /// The recording with the later snapshot [default: the same]
    #[arg(value_name = "AFTER")]
    after: Option<PathBuf>,

    /// Format of the output
    #[arg(long, value_name = "FORMAT", default_value = "text", value_parser = report::formats_of_rows())]
    format: String,

    /// As --format json
    #[arg(long, conflicts_with = "format")]
    json: bool,

    /// Columns to show, in this order, by their headings or their keys in JSON
    #[arg(long, value_name = "KEY,...", value_delimiter = ',')]
    columns: Vec<String>,

    #[command(flatten)]
    heap: HeapFlags,

    #[command(flatten)]
    filters: Filters,
}

impl Diff {
    pub(super) fn into_options(self) -> Result<DiffOptions, Failure> {
        let format = report::format(if self.json { "json" } else { &self.format })?;
        let view = report::view_named("heap-diff")?;
        let mut request = Request { query: self.filters.into_query()?, ..Request::default() };
        self.heap.put_into(&mut request);
        request.columns = report::column_keys(view, &request, self.columns);
        view.check(&request, format).map_err(|Refusal { what, why, hint }| Failure::usage(what, why, hint))?;
        Ok(DiffOptions { before: self.before, after: self.after, view, format, request })
    }
}
