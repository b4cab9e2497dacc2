//! Every view and every format of a recording, made and thrown away.

use std::convert::Infallible;
use std::hint::black_box;
use std::io::{self, Write};
use std::slice::from_ref;

use clrscope_analysis::{
    CodePlace, EventLog, EventQuery, ExceptionLog, ExceptionQuery, FlowLog, Forest, FoundPlace, HeapQuery, Heaps,
    METRICS, Query, TreeOptions, allocations, call_graph, callees, callers, conditions, dominator_tree, functions,
    heap, heap_changes, heap_summary, heap_waste, heap_ways, lines, losses, modules, name_native_code, summary,
    threads, tree,
};
use clrscope_contract::request::Pattern;
use clrscope_export::{ExportOptions, exporters};
use clrscope_recording::model::Recording;

/// No format may write more of what is tested here. A deep tree with long names is long as text, and that is not what
/// is looked for.
const MOST_TEXT: usize = 16 << 20;

/// Asks everything that can be asked of a recording. An answer may be that there is none.
pub(crate) fn everything(recording: &Recording) {
    let plain = Query::default();
    let by_thread = Query { raw: true, per_thread: true, ..Query::default() };
    for query in [&plain, &by_thread] {
        tables(recording, query);
        for format in exporters() {
            let options = ExportOptions { query: query.clone(), ..ExportOptions::default() };
            // Output beyond the limit is an error, which is fine here.
            let _ = black_box(format.write(recording, &options, &mut Limited(MOST_TEXT)));
        }
    }
    heaps(recording);
    for metric in METRICS {
        paths(recording, &Query { metric: Some(metric), ..Query::default() });
    }
    logs(recording);
    let mut named = recording.clone();
    name_native_code(&mut named);
    paths(&named, &Query { just_my_code: true, ..Query::default() });
}

fn tables(recording: &Recording, query: &Query) {
    black_box(conditions(recording, query)).ok();
    black_box(summary(recording, query)).ok();
    black_box(modules(recording, query)).ok();
    black_box(threads(recording, query)).ok();
    black_box(losses(recording, query)).ok();
    black_box(allocations(recording, query)).ok();
    let mut line = |_: &str, method: u32, place: CodePlace<'_>| match place.il_offset {
        Some(line) => FoundPlace::Line { file: format!("{method}.cs"), line, by_call: false },
        None => FoundPlace::Unknown { file: format!("{method}.cs") },
    };
    black_box(lines(recording, query, &mut line)).ok();
    paths(recording, query);
}

/// Runs every view of snapshots of the heap.
fn heaps(recording: &Recording) {
    let (heaps, query) = (Heaps::of(recording), HeapQuery::default());
    black_box(heap(&heaps, &query)).ok();
    black_box(heap_ways(&heaps, &query)).ok();
    black_box(heap_waste(&heaps, &query)).ok();
    black_box(heap_summary(&heaps, &query)).ok();
    black_box(heap_changes((from_ref(&heaps), &query), (from_ref(&heaps), &query))).ok();
    if let Ok(tree) = dominator_tree(&heaps, &query) {
        black_box(tree.walk(0.01, |node| Ok(_ = black_box(node.retained_bytes)))).ok();
    }
}

/// Runs every view and format of paths.
fn paths(recording: &Recording, query: &Query) {
    let named = Query { functions: vec![Pattern::parse("*").expect("a pattern")], ..query.clone() };
    black_box(functions(recording, query)).ok();
    black_box(callers(recording, &named)).ok();
    black_box(callees(recording, &named)).ok();
    black_box(call_graph(recording, query)).ok();
    let shown = TreeOptions { min_share: 0.01, max_depth: None };
    black_box(tree(recording, query, &shown)).ok();
    if let Ok(forest) = Forest::open(recording, query) {
        let whole = TreeOptions { min_share: 0.0, max_depth: None };
        let walked = forest.walk(&whole, |node| -> Result<(), Infallible> {
            black_box((node.depth, node.function.name()));
            Ok(())
        });
        black_box(walked).ok();
    }
}

fn logs(recording: &Recording) {
    for interleave in [false, true] {
        let Ok(log) = EventLog::open(recording, &EventQuery { interleave, ..EventQuery::default() }) else { break };
        let walked = log.walk(|row| -> Result<(), Infallible> {
            black_box((row.event(), row.reason(), row.result(), row.given_name()));
            black_box((row.details().count(), row.subjects().count()));
            Ok(())
        });
        black_box(walked).ok();
    }
    if let Ok(log) = ExceptionLog::open(recording, &ExceptionQuery::default()) {
        black_box(log.groups());
        let walked = log.walk(|one| -> Result<(), Infallible> {
            one.stack.iter().for_each(|frame| drop(black_box(log.captured(one, &frame))));
            Ok(())
        });
        black_box(walked).ok();
    }
    if let Ok(log) = FlowLog::open(recording, &Query::default(), None) {
        let walked = log.walk(|row| -> Result<(), Infallible> {
            black_box((row.depth, row.function.name(), row.captured()));
            Ok(())
        });
        black_box(walked).ok();
    }
}

/// Takes so many bytes and no more.
struct Limited(usize);

impl Write for Limited {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0 = self.0.checked_sub(bytes.len()).ok_or(io::ErrorKind::FileTooLarge)?;
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
