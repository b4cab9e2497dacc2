//! `clrscope diff`: two snapshots of the heap side by side.

use std::path::PathBuf;

use clrscope_report::{Format, Request, View, compare_heaps};

use super::report::print;
use crate::errors::Failure;
use crate::recording_file::{open_parts, query_failure, resolved};

/// Options of `diff`.
#[derive(Debug)]
pub(crate) struct DiffOptions {
    /// The recording with the earlier snapshot.
    pub(crate) before: PathBuf,
    /// The recording with the later snapshot; the same one when `None`.
    pub(crate) after: Option<PathBuf>,
    /// The view of changes.
    pub(crate) view: &'static View,
    /// The format.
    pub(crate) format: Format,
    /// Selection of snapshots and types, order and columns.
    pub(crate) request: Request,
}

/// Shows what changed.
///
/// # Errors
/// When a recording can't be opened, has no such snapshot, or the result can't be written.
pub(crate) fn perform(options: &DiffOptions) -> Result<(), Failure> {
    let DiffOptions { view, format, request, .. } = options;
    let before = open_parts(&options.before, &[])?;
    let after = options.after.as_deref().map(|path| open_parts(path, &[])).transpose()?;
    let last = after.as_ref().unwrap_or(&before);
    let asked = Request { query: resolved(last, &request.query)?, ..request.clone() };
    let request = if *format == Format::Text { view.for_people(&asked) } else { asked };
    let report = match &after {
        Some(after) => compare_heaps(&before, after, &request),
        None => view.open(&before, &request),
    };
    print(&report.map_err(|problem| query_failure(&problem))?, *format)
}
