//! Sentences about long awaits, if `awaits` was recorded.
//!
//! An awaiting method occupies no thread, and many methods await by design, such as background
//! loops and consumers of queues. Sentences are only about the remaining awaits.

use clrscope_recording::model::Recording;
use rustc_hash::FxHashSet;

use super::finding::FindingPlace;
use super::waiting::{MOST, MUCH};
use super::{Finding, FindingKind};
use crate::awaits::{AWAITED, AwaitActivity, AwaitRow, awaits};
use crate::numbers::{number, time};
use crate::parts::watched_ns;
use crate::query::Query;

/// Operations that consumers await by design: work, clients, the work of others, the end of the
/// program.
const OF_CONSUMERS: [&str; 17] = [
    "Microsoft.AspNetCore.Builder.WebApplication::RunAsync",
    "Microsoft.Extensions.Hosting.HostingAbstractionsHostExtensions::",
    "System.Diagnostics.Process::WaitForExitAsync",
    "System.IO.Pipes.NamedPipeServerStream::WaitForConnectionAsync",
    "System.Net.HttpListener::GetContextAsync",
    "System.Net.Sockets.Socket::AcceptAsync",
    "System.Net.Sockets.TcpListener::Accept",
    "System.Net.WebSockets.WebSocket::ReceiveAsync",
    "System.Threading.Channels.ChannelReader::",
    "System.Threading.Channels.ChannelReader`1::",
    "System.Threading.PeriodicTimer::WaitForNextTickAsync",
    "System.Threading.Tasks.Task::WhenAll",
    "System.Threading.Tasks.Task::WhenAny",
    "System.Threading.Tasks.Task::WhenEach",
    "System.Threading.Tasks.Task::Run",
    "System.Threading.Tasks.Parallel::",
    "System.Threading.Tasks.TaskFactory::StartNew",
];
/// The operation that timers await.
const DELAY: &str = "System.Threading.Tasks.Task::Delay";

/// Kind of method that an await belongs to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Waiter {
    /// Work that takes longer because of the await.
    Work,
    /// Possibly background work: a loop that waits for something all the time.
    Loop,
    /// Loops with a delay.
    Timer,
}

/// Returns the sentences about all processes that a query selects; none if awaits were not
/// recorded. Sentences about possible background work are included only if there are no other
/// findings (`others` is false).
pub(super) fn found(recording: &Recording, query: &Query, others: bool) -> Vec<Finding> {
    let query = Query { limit: None, sort: None, metric: None, ..query.clone() };
    let rows = awaits(recording, &query).map_or_else(|_| Vec::new(), |(rows, _)| rows);
    let waiting: FxHashSet<&str> = rows.iter().map(|row| row.frame.function.name()).collect();
    let is_candidate = |row: &&AwaitRow<'_>| {
        let waits_itself = waiting.contains(row.awaits.as_str());
        !waits_itself && !OF_CONSUMERS.iter().any(|name| row.awaits.starts_with(name)) && is_much(row, &query)
    };
    let candidates: Vec<&AwaitRow<'_>> = rows.iter().filter(is_candidate).collect();
    let activities = AwaitActivity::of_rows(&candidates).into_iter();
    let candidates: Vec<_> =
        candidates.into_iter().zip(activities).map(|(row, activity)| (waiter(row, activity, &query), row)).collect();
    let is_there = |wanted| candidates.iter().any(|(waiter, _)| *waiter == wanted);
    let said = match () {
        () if others || is_there(Waiter::Work) => Waiter::Work,
        () if is_there(Waiter::Loop) => Waiter::Loop,
        () => Waiter::Timer,
    };
    let said = candidates.iter().filter(|(waiter, _)| *waiter == said).map(|(_, row)| about(row, &query));
    said.take(MOST).collect()
}

fn methods_on_average(row: &AwaitRow<'_>, query: &Query) -> f64 {
    row.self_ns as f64 / watched_ns(row.process, query).max(1) as f64
}

fn is_much(row: &AwaitRow<'_>, query: &Query) -> bool {
    methods_on_average(row, query) >= MUCH
}

fn waiter(row: &AwaitRow<'_>, activity: AwaitActivity, query: &Query) -> Waiter {
    let is_constant = activity.is_constant(watched_ns(row.process, query));
    match is_constant {
        true if row.awaits == DELAY => Waiter::Timer,
        true if activity.most_at_once == 1 => Waiter::Loop,
        _ => Waiter::Work,
    }
}

/// The sentence about one await.
fn about(row: &AwaitRow<'_>, query: &Query) -> Finding {
    let methods = methods_on_average(row, query);
    let awaited = if row.awaits.is_empty() { "an await".to_owned() } else { format!("the await of {}", row.awaits) };
    let (function, mean) = (row.frame.function.label(), time(row.mean_ns().unwrap_or(0)));
    let [in_all, longest] = [row.self_ns, row.max_ns].map(time);
    let how_often = match row.count {
        1 => format!("took {longest}"),
        count => format!("took {mean} on average, {} times ({in_all} in all, {longest} at most)", number(count)),
    };
    let text = format!("in {function} {awaited} {how_often}");
    let found = Finding::exact(FindingKind::Await, text, methods.min(1.0)).by(AWAITED.name).shown_by("--view awaits");
    let found = found.at(&row.frame.function, FindingPlace::new(row.frame.place, ": "));
    // An await occupies no thread: code that blocks a thread, or uses a processor, matters more.
    found.costs(methods.min(f64::from(row.process.processors.max(1))) / 2.0)
}
