//! Every view, every comparison and every format of a recording, made and thrown away: by the
//! registries, so that a new one is among them.

use std::io::{self, Write};

use clrscope_analysis::{METRICS, NamedRecording, Query, Sides, ThreadSelector};
use clrscope_contract::request::Pattern;
use clrscope_export::ExportOptions;
use clrscope_recording::model::Recording;
use clrscope_report::{COMPARISONS, Flag, Format, Request, VIEWS, View, exporters};

/// No format may write more of what is tested here. A deep tree with long names is long as text,
/// and that is not what is looked for.
const MOST_TEXT: usize = 16 << 20;

/// Asks everything that can be asked of a recording. An answer may be that there is none.
pub(crate) fn everything(recording: &Recording) {
    for view in VIEWS {
        requests(view).iter().for_each(|request| show(view, recording, request));
    }
    let named = || vec![NamedRecording { name: "hostile".to_owned(), recording }];
    let sides = Sides { before: named(), after: named(), chosen: None };
    for comparison in COMPARISONS.iter().filter(|comparison| comparison.is_possible(&sides)) {
        if let Ok(report) = comparison.open(&sides, &[], &Request::default()) {
            drop(report.write(Format::Json, 80, &mut Limited(MOST_TEXT)));
        }
    }
    for exporter in exporters() {
        for per_thread in [false, true] {
            let query = Query { per_thread, raw: per_thread, ..Query::default() };
            let options = ExportOptions { query, ..ExportOptions::default() };
            // Output beyond the limit is an error, which is fine here.
            drop(exporter.write(recording, &options, &mut Limited(MOST_TEXT)));
        }
    }
}

/// The plain request, and one for each option that changes what a view reads.
fn requests(view: &View) -> Vec<Request> {
    let takes = |flag: Flag| view.why_not(flag).is_none();
    let functions = match view.name {
        "callers" | "callees" => vec![Pattern::parse("*").expect("a pattern")],
        _ => Vec::new(),
    };
    let plain = Request { query: Query { functions, ..Query::default() }, ..Request::default() };
    let with = |query: Query| Request { query, ..plain.clone() };
    let query = || plain.query.clone();
    let options = [
        (Flag::Each, Request { each: true, ..plain.clone() }),
        (Flag::Callers, Request { callers: true, ..plain.clone() }),
        (Flag::Interleave, Request { interleave: true, ..plain.clone() }),
        (Flag::Lines, Request { lines: true, ..plain.clone() }),
        (Flag::PerThread, with(Query { per_thread: true, raw: takes(Flag::Raw), ..query() })),
        (Flag::JustMyCode, with(Query { just_my_code: true, ..query() })),
        (Flag::Thread, with(Query { threads: vec![ThreadSelector::parse("1")], ..query() })),
    ];
    let metrics = METRICS.iter().copied().map(|metric| (Flag::Metric, with(Query { metric: Some(metric), ..query() })));
    let more = options.into_iter().chain(metrics).filter(|(flag, _)| takes(*flag)).map(|(_, request)| request);
    let more: Vec<Request> = more.collect();
    [plain.clone()].into_iter().chain(more).collect()
}

fn show(view: &'static View, recording: &Recording, request: &Request) {
    if let Ok(report) = view.open(recording, request) {
        drop(report.write(Format::Json, 80, &mut Limited(MOST_TEXT)));
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
