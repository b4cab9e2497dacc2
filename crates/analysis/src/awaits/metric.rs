//! The metric `awaited`: time that async methods waited, by who awaited them.
//!
//! A method that awaits one that waits itself waits for what that one waits for: its time is that
//! of the inner one, and counts there. So the sum below a method is the time that it waited, once,
//! but for methods that wait side by side.

use clrscope_recording::events::{Kind, Records, Tag};
use clrscope_recording::layout::instrument;
use clrscope_recording::model::{EventArena, FunctionKind, Process, StackFrame};
use rustc_hash::{FxHashMap, FxHashSet};

use crate::metric::{Metric, Source, StackEvent, StackEvents, Unit};

/// Time of awaits. Several methods may wait at once, so that sums may exceed the clock.
pub(crate) static AWAITED: Metric = Metric {
    name: "awaited",
    title: "awaited time",
    unit: Unit::Nanoseconds,
    instrument: instrument::AWAITS,
    exclusive: false,
    second: None,
    source: Source::Stacks { read, keys: ["self_awaited_ns", "total_awaited_ns"] },
    others: &[],
};

/// A method at an await: the index of its function, and the offset in its IL.
type Place = (u32, Option<u32>);

fn read(process: &Process, arena: &EventArena) -> StackEvents {
    let mut events = Vec::new();
    for chunk in &arena.chunks {
        let bytes = chunk.bytes.load();
        let ended = Records::new(&bytes).filter(|record| record.kind == Kind::AWAIT_ENDED);
        events.extend(ended.map(|record| {
            let number = |tag| record.number(tag).unwrap_or(0);
            let (time_ns, ns) = (process.started_ns.saturating_add(record.time_ns), number(Tag::DURATION));
            StackEvent {
                thread: chunk.thread,
                time_ns: time_ns.saturating_sub(ns),
                stack: u32::try_from(number(Tag::STACK_NODE)).unwrap_or(0),
                lasted_ns: ns,
                amount: ns,
                ..StackEvent::default()
            }
        }));
    }
    let outer = OuterAwaits::new(process, &events);
    let is_outer: FxHashMap<u32, bool> = outer.paths.iter().map(|(stack, path)| (*stack, outer.has(path))).collect();
    events.retain(|event| !is_outer.get(&event.stack).copied().unwrap_or(false));
    StackEvents { table: process.stacks.clone(), events }
}

/// Awaits of methods that wait themselves.
#[derive(Default)]
struct OuterAwaits {
    /// The paths of all awaits, by their stacks: the method that waits first.
    paths: FxHashMap<u32, Vec<Place>>,
    /// Paths of those that await a method that waits.
    awaiters: FxHashSet<Vec<Place>>,
    /// Where these await.
    places: FxHashSet<Place>,
}

impl OuterAwaits {
    fn new(process: &Process, events: &[StackEvent]) -> Self {
        let mut outer = Self::default();
        for event in events {
            if outer.paths.contains_key(&event.stack) {
                continue;
            }
            let path = path_of(process, event.stack);
            for at in 1..path.len() {
                outer.places.insert(path[at]);
                // Whoever has this path has the rest of it, too.
                if !outer.awaiters.insert(path[at..].to_vec()) {
                    break;
                }
            }
            outer.paths.insert(event.stack, path);
        }
        outer
    }

    /// Whether a method awaits one that waits itself. Of one of which it is not known who awaits
    /// it, the place decides.
    fn has(&self, path: &[Place]) -> bool {
        self.awaiters.contains(path) || matches!(path, [place] if self.places.contains(place))
    }
}

/// The method of a stack that waits, and who awaits it; without what stands for the root.
fn path_of(process: &Process, stack: u32) -> Vec<Place> {
    let awaiters = process.stacks.awaiters(stack).map(|(frames, _)| frames).unwrap_or_default();
    let frames = process.stacks.frames(stack).chain(awaiters);
    let place = |frame| match frame {
        StackFrame::Method { function, il_offset, .. } => Some((function, il_offset)),
        _ => None,
    };
    let is_root = |(function, _): &Place| {
        process.functions.get(*function as usize).is_some_and(|function| function.kind == FunctionKind::Runtime)
    };
    frames.filter_map(place).filter(|place| !is_root(place)).collect()
}
