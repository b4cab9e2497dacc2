//! The export format `csv`, with the columns of the view `functions`; an addition to the formats of
//! `clrscope-export`.

use std::io::Write;

use clrscope_analysis::{BYTES, Metric, OBJECTS, Query, SAMPLES};
use clrscope_export::{ExportError, ExportOptions, Exporter};
use clrscope_recording::model::Recording;

use crate::render::Format;
use crate::request::Request;
use crate::views::view;

/// Every format, in the order of the help text.
pub fn exporters() -> impl Iterator<Item = &'static dyn Exporter> {
    clrscope_export::exporters().iter().copied().chain([&Csv as &dyn Exporter])
}

/// The rows of `functions` as a file for other programs. The columns are the same for every
/// recording, plus columns of samples and allocations where the recording has them.
struct Csv;

impl Exporter for Csv {
    fn name(&self) -> &'static str {
        "csv"
    }

    fn description(&self) -> &'static str {
        "the rows of the report 'functions', comma-separated"
    }

    fn extension(&self) -> &'static str {
        "csv"
    }

    fn write(&self, recording: &Recording, options: &ExportOptions, out: &mut dyn Write) -> Result<(), ExportError> {
        let Some(functions) = view("functions") else { return Err(ExportError::Empty("there is no such view")) };
        let metric = Some(Metric::for_query(recording, &options.query)?);
        let mut request = Request { query: Query { metric, ..options.query.clone() }, ..Request::default() };
        let columns = functions.columns(&request);
        let sampled = SAMPLES.is_recorded(recording);
        let is_of_samples = |key: &str| key.ends_with("_samples") || key.starts_with("self_share") || key == "tiers";
        let allocated = BYTES.is_recorded(recording);
        let is_of_objects =
            |key: &str| [&BYTES, &OBJECTS].iter().filter_map(|of| of.keys()).flatten().any(|known| known == key);
        let is_shown = |key: &str| match key {
            "pid" => false,
            "thread" => options.query.per_thread,
            _ => (sampled || !is_of_samples(key)) && (allocated || !is_of_objects(key)),
        };
        let columns = columns.iter().filter(|column| column.in_csv && is_shown(column.key)).map(|column| column.key);
        request.columns = Some(["pid"].into_iter().chain(columns).map(str::to_owned).collect());
        functions.open(recording, &request)?.write(Format::Csv, 0, out)?;
        Ok(())
    }
}
