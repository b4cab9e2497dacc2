//! The work done for requests: columns, and lines below a row in text output.

use clrscope_analysis::RequestWork;

use crate::cell::{Cell, Kind};
use crate::column::{Column, RowKind};
use crate::render::text::units::{bytes, count, share, time};

/// A row with the work done for its requests.
pub(super) trait HasWork {
    fn work(&self) -> Option<&RequestWork>;
}

/// A column with one value of the work.
struct WorkColumn {
    key: &'static str,
    title: &'static str,
    kind: Kind,
    value: fn(&RequestWork) -> Option<u64>,
}

/// Shares of the time below this are not mentioned.
const LEAST: f64 = 0.0005;

/// Amounts of work, and where the time of the requests went.
const COLUMNS: [WorkColumn; 9] = [
    WorkColumn { key: "cpu_ns", title: "cpu", kind: Kind::Time, value: |work| work.cpu_ns },
    WorkColumn { key: "allocated_bytes", title: "allocated", kind: Kind::Bytes, value: |work| work.allocated_bytes },
    WorkColumn { key: "exceptions", title: "exceptions", kind: Kind::Count, value: |work| work.exceptions },
    WorkColumn { key: "running_ns", title: "running", kind: Kind::Time, value: RequestWork::running_ns },
    WorkColumn { key: "ready_ns", title: "ready", kind: Kind::Time, value: RequestWork::ready_ns },
    WorkColumn { key: "lock_ns", title: "lock", kind: Kind::Time, value: RequestWork::lock_ns },
    WorkColumn { key: "blocked_ns", title: "blocked", kind: Kind::Time, value: RequestWork::blocked_ns },
    WorkColumn { key: "awaited_ns", title: "awaited", kind: Kind::Time, value: |work| Some(work.awaited_ns) },
    WorkColumn { key: "gc_ns", title: "gc", kind: Kind::Time, value: RequestWork::gc_ns },
];

/// Returns the columns.
pub(super) fn columns<'c, K: RowKind>() -> impl Iterator<Item = Column<'c, K>>
where
    for<'a> K::Row<'a>: HasWork,
{
    COLUMNS.iter().map(|column| {
        Column::new(column.key, column.title, column.kind, |row: &K::Row<'_>| {
            let cell = |value| match column.kind {
                Kind::Time => Cell::Time(value),
                Kind::Bytes => Cell::Bytes(value),
                _ => Cell::Count(value),
            };
            row.work().and_then(column.value).map_or(Cell::Null, cell)
        })
    })
}

/// Describes the work in words: where the time went, and the amounts of work.
pub(super) fn words(work: &RequestWork) -> Vec<String> {
    let all_ns = work.awaited_ns.saturating_add(work.on_threads_ns);
    let part = |(ns, what): (Option<u64>, &str)| {
        let of_all = ns? as f64 / all_ns as f64;
        (of_all >= LEAST).then(|| (ns, format!("{} {what}", share(of_all))))
    };
    let states = [
        (work.running_ns(), "running"),
        (work.ready_ns(), "waiting for a processor"),
        (work.lock_ns(), "waiting for locks"),
        (work.blocked_ns(), "blocked"),
        (work.gc_ns(), "stopped for collections"),
    ];
    // Without samples of the clock nothing tells what threads did.
    let is_sampled = states.iter().any(|(ns, _)| ns.is_some());
    let on_threads = [(Some(work.on_threads_ns).filter(|_| !is_sampled), "on threads")];
    let awaited = [(Some(work.awaited_ns), "awaited")];
    let mut parts: Vec<(Option<u64>, String)> =
        states.into_iter().chain(on_threads).chain(awaited).filter_map(part).collect();
    parts.sort_by_key(|(ns, _)| std::cmp::Reverse(*ns));
    let amounts = [
        work.cpu_ns.map(|ns| format!("{} of CPU time", time(ns))),
        work.allocated_bytes.map(|all| format!("{} allocated", bytes(all))),
        work.exceptions.filter(|thrown| *thrown > 0).map(|thrown| match thrown {
            1 => "1 exception".to_owned(),
            _ => format!("{} exceptions", count(thrown)),
        }),
    ];
    let lines = [parts.into_iter().map(|(_, text)| text).collect(), amounts.into_iter().flatten().collect()];
    lines.into_iter().map(|parts: Vec<String>| parts.join(", ")).filter(|line| !line.is_empty()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn time_without_samples_is_on_threads_or_awaited() {
        let work = RequestWork { awaited_ns: 75, on_threads_ns: 25, exceptions: Some(0), ..RequestWork::default() };
        assert_eq!(words(&work), ["75.0 % awaited, 25.0 % on threads"]);
        let more = RequestWork { cpu_ns: Some(2_000_000), exceptions: Some(1), ..work };
        assert_eq!(words(&more)[1], "2.00 ms of CPU time, 1 exception");
        assert_eq!(words(&RequestWork::default()), [""; 0]);
    }
}
