//! Stacks with weights for any recorded data: calls and events along their call stacks, or the heap
//! along its dominator tree.
//!
//! Stacks of the heap are paths of the dominator tree, from objects that no single object dominates
//! to the dominated objects. Frames are types, and the weight of a path is the bytes of the objects
//! at its end.

use clrscope_analysis::{HeapQuery, Heaps, Metric, QueryProblem, Unit, dominator_tree};
use clrscope_recording::layout::instrument;
use clrscope_recording::model::Recording;

use crate::refusals::refuse_all_but;
use crate::stacks::{push_frame, stacks};
use crate::{ExportError, ExportOptions};

/// Meaning of the weights.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Weight {
    /// Name of the metric.
    pub(crate) name: &'static str,
    /// Unit of the values, in pprof's spelling.
    pub(crate) unit: &'static str,
}

/// Options that apply to stacks of the heap.
const TAKEN: &[&str] = &["--pid", "--process", "--module", "--type", "--limit", "--min-share", "--snapshot"];
/// The weight of paths of the heap.
const HEAP: Weight = Weight { name: "heap", unit: "bytes" };

impl ExportOptions {
    /// The options that concern heap snapshots.
    pub(crate) fn heap_query(&self) -> HeapQuery {
        HeapQuery { query: self.query.clone(), snapshot: self.snapshot }
    }

    /// Whether a format's stacks are those of the heap: because the user asked for a snapshot, or
    /// because nothing else was recorded. Refuses options that such stacks can't use.
    pub(crate) fn is_of_heap(&self, recording: &Recording, format: &'static str) -> Result<bool, ExportError> {
        let has_snapshots = recording.processes.iter().any(|process| !process.snapshots.is_empty());
        let is_alone = || Metric::for_query(recording, &self.query).is_ok_and(|metric| !metric.is_recorded(recording));
        if self.snapshot.is_some() && !has_snapshots {
            return Err(QueryProblem::NotRecorded { view: format, instrument: instrument::HEAP }.into());
        }
        let is_meant = self.snapshot.is_some() || self.query.metric.is_none() && has_snapshots && is_alone();
        if is_meant {
            refuse_all_but(TAKEN, self, format, "its stacks are those of objects of the heap, at one moment")?;
        }
        Ok(is_meant)
    }
}

/// Passes each stack (`a;b;c`) that has a weight to `visit`, except stacks below the smallest
/// share. Returns the meaning of the weights.
pub(crate) fn weighed_stacks(
    recording: &Recording,
    options: &ExportOptions,
    (format, min_share): (&'static str, f64),
    visit: impl FnMut(&str, u64) -> Result<(), ExportError>,
) -> Result<Weight, ExportError> {
    if options.is_of_heap(recording, format)? {
        return of_heap(recording, options, min_share, visit).map(|()| HEAP);
    }
    stacks(recording, options, min_share, |_, _| (), visit).map(weight_of)
}

/// The weight of a metric's paths.
pub(crate) fn weight_of(metric: &'static Metric) -> Weight {
    let unit = match metric.unit {
        Unit::Nanoseconds => "nanoseconds",
        _ if metric.name == "bytes" => "bytes",
        _ => "count",
    };
    Weight { name: metric.name, unit }
}

fn of_heap(
    recording: &Recording,
    options: &ExportOptions,
    min_share: f64,
    mut visit: impl FnMut(&str, u64) -> Result<(), ExportError>,
) -> Result<(), ExportError> {
    let tree = dominator_tree(&Heaps::new(recording), &options.heap_query())?;
    let several = tree.snapshots.len() > 1;
    let mut text = String::new();
    // Length of the text in front of each frame of the path.
    let mut path: Vec<usize> = Vec::new();
    let mut failed = None;
    let walked = tree.walk(min_share, |node| {
        let depth = node.depth as usize;
        if let Some(&before) = path.get(depth) {
            text.truncate(before);
            path.truncate(depth);
        }
        path.push(text.len());
        if depth == 0 && several {
            push_frame(&mut text, &format!("process {}", node.process.pid));
        }
        push_frame(&mut text, &node.type_name);
        match visit(&text, node.bytes) {
            Ok(()) => Ok(()),
            Err(problem) => {
                failed = Some(problem);
                Err(std::io::Error::other("stopped"))
            }
        }
    });
    match (walked, failed) {
        (_, Some(problem)) => Err(problem),
        (walked, None) => Ok(walked.map(|_| ())?),
    }
}
