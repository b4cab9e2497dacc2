//! The individual awaits of one request.

use clrscope_recording::events::{Kind, Records, Tag};
use clrscope_recording::layout::instrument;
use clrscope_recording::model::Process;
use rustc_hash::FxHashMap;

use super::outer::{OuterAwaits, Place};
use super::rows::{place_of, stack_of};
use crate::exceptions::{CallStack, Frame};

/// An await of a request.
#[derive(Debug, Clone)]
pub(crate) struct RequestAwait<'a> {
    /// Start of the await, in nanoseconds since the start of the run.
    pub(crate) began_ns: u64,
    pub(crate) lasted_ns: u64,
    /// Whether the await was still pending at the end of the recording.
    pub(crate) is_pending: bool,
    /// The awaiting method, with the location of the await.
    pub(crate) frame: Option<Frame<'a>>,
    /// The awaited operation, as text.
    pub(crate) awaits: String,
}

/// Returns the awaits of one request of a process, in the order of the recording. `request` is the
/// request's id. An await of a method that itself waits is left out, because the inner await covers
/// that time.
pub(crate) fn awaits_of_request(process: &Process, request: u64) -> Vec<RequestAwait<'_>> {
    let mut awaited: FxHashMap<Place, String> = FxHashMap::default();
    let mut found: Vec<(u32, RequestAwait<'_>)> = Vec::new();
    for chunk in process.arenas(instrument::AWAITS).flat_map(|arena| &arena.chunks) {
        for record in Records::new(&chunk.bytes.load()) {
            let Some(stack) = stack_of(&record) else { continue };
            if record.kind == Kind::AWAIT_PLACE {
                let what = record.text(Tag::NAME).unwrap_or_default();
                awaited.insert(place_of(process, stack), what.to_owned());
            }
            let is_await = matches!(record.kind, Kind::AWAIT_ENDED | Kind::AWAIT_PENDING);
            if is_await && record.number(Tag::REQUEST) == Some(request) {
                let (ended_ns, lasted_ns) = (record.time_ns, record.number(Tag::DURATION).unwrap_or(0));
                found.push((
                    stack,
                    RequestAwait {
                        began_ns: process.started_ns.saturating_add(ended_ns).saturating_sub(lasted_ns),
                        lasted_ns,
                        is_pending: record.kind == Kind::AWAIT_PENDING,
                        frame: CallStack::new(process, &process.stacks, stack).innermost(),
                        awaits: String::new(),
                    },
                ));
            }
        }
    }
    let outer = OuterAwaits::new(process, found.iter().map(|(stack, _)| *stack));
    found.retain(|(stack, _)| !outer.has(*stack));
    for (stack, one) in &mut found {
        one.awaits = awaited.get(&place_of(process, *stack)).cloned().unwrap_or_default();
    }
    found.into_iter().map(|(_, one)| one).collect()
}
