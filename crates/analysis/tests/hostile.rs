//! Hostile contents of recordings: the views of events neither panic nor hang, and give equal rows
//! each time.

use std::sync::Arc;

use clrscope_analysis::{
    EventLog, EventQuery, ExceptionLog, ExceptionQuery, FlowLog, Metric, ProbeCallers, ProbeLog, Query, awaits,
    counters, each_request, functions, loads, memory, requests,
};
use clrscope_recording::events::{Encoder, EntityRef, Field, Kind, Tag, Value};
use clrscope_recording::layout::{flow, value};
use clrscope_recording::model::{
    EventArena, EventChunk, Function, ProbeCallEnd, ProbeCallRecord, ProbeCaller, ProbedMethod, Process, Recording,
    StackFrame, Stacks, StacksBuilder, Thread, TickClock,
};
use proptest::collection::vec;
use proptest::prelude::*;

const FUNCTIONS: u32 = 8;

/// A stack table with functions that do not exist, native code and a stack that was cut.
fn stacks() -> Stacks {
    let mut builder = StacksBuilder::default();
    for function in 0..FUNCTIONS + 3 {
        let method = StackFrame::method(function, function.checked_sub(4));
        builder.stack(&[method, StackFrame::Native { module: function, offset: 9 }, method], function % 3 == 0);
    }
    builder.finish()
}

fn recording(arenas: Vec<(&str, Vec<u8>)>) -> Recording {
    let function = |at: u32| Function { name: format!("App.Type::Method{at}"), ..Function::default() };
    let thread = |id| Thread { id, ..Thread::default() };
    let events = arenas.into_iter().map(|(instrument, bytes)| {
        let chunks = vec![EventChunk { thread: 0, sequence: 1, bytes: bytes.into() }];
        EventArena { instrument: instrument.to_owned(), chunks }
    });
    let process = Process {
        functions: (0..FUNCTIONS).map(function).collect(),
        threads: vec![thread(1), thread(2)],
        ticks: TickClock { start: 0, ns_per_tick: 0.5 },
        events: events.collect(),
        stacks: Arc::new(stacks()),
        ..Process::default()
    };
    Recording { processes: vec![process], ..Recording::default() }
}

/// Everything that the views say.
fn all_views(recording: &Recording) -> String {
    let mut text = String::new();
    for interleave in [false, true] {
        let Ok(log) = EventLog::open(recording, &EventQuery { interleave, ..EventQuery::default() }) else { continue };
        for row in &log.rows().0 {
            let subjects: Vec<_> = row.subjects().map(|subject| (subject.id, subject.name)).collect();
            text += &format!("{} {} {} {:?} {subjects:?}\n", row.event(), row.phase(), row.depth, row.duration_ns);
        }
    }
    if let Ok(log) = ExceptionLog::open(recording, &ExceptionQuery::default()) {
        let (each, _) = log.rows();
        text += &format!("{} exceptions in {} groups\n", each.len(), log.groups().0.len());
        for exception in &each {
            let frames: Vec<_> = exception.stack.iter().map(|frame| (frame.function.name(), frame.il_offset)).collect();
            assert_eq!((exception.stack.len(), exception.stack.is_empty()), (frames.len(), frames.is_empty()));
            text += &format!("{frames:?} {}\n", exception.stack_cut);
        }
    }
    if let Ok((rows, _)) = requests(recording, &Query::default()) {
        for row in &rows {
            text += &format!("{} {} {} {:?}\n", row.route, row.count, row.partial, row.percentile_ns(99));
        }
        let each = each_request(recording, &Query::default()).map(|(all, _)| all.len());
        text += &format!("{each:?}\n");
        for curve in loads(recording, &Query::default()).expect("requests were recorded") {
            text += &format!("{} {:?} {:?}\n", curve.route, curve.levels, curve.knee().map(|level| level.load));
        }
    }
    if let Ok(view) = memory(recording, &Query::default()) {
        text += &format!("{:?} {:?}\n", view.rows.len(), view.rows.first().map(|row| row.resident_bytes));
    }
    if let Ok((rows, _)) = counters(recording, &Query::default(), &[]) {
        for row in &rows {
            text +=
                &format!("{} {:?} {} {} {:?}\n", row.full_name(), row.kind, row.value(), row.mean(), row.percentiles);
        }
    }
    if let Ok((rows, _)) = awaits(recording, &Query::default()) {
        for row in &rows {
            let frames: Vec<usize> = row.paths.iter().map(|path| path.frames().count()).collect();
            text += &format!("{} {} {:?} {frames:?}\n", row.frame.function.name(), row.count, row.percentile_ns(99));
        }
        let metric = Metric::parse("awaited");
        let amounts = functions(recording, &Query { metric, ..Query::default() }).map(|view| view.conditions.total);
        text += &format!("{amounts:?}\n");
    }
    if let Ok(log) = FlowLog::open(recording, &Query::default(), None) {
        let walked = log.walk(|row| -> Result<(), std::convert::Infallible> {
            text += &format!("{:?} {} {} {:?}\n", row.kind, row.depth, row.call_count, row.captured());
            Ok(())
        });
        let Ok((functions, _)) = walked;
        text += &format!("{} functions\n", functions.len());
    }
    if let Ok(log) = ProbeLog::open(recording, &Query::default()) {
        let Ok(_) = log.walk(|call| -> Result<(), std::convert::Infallible> {
            let values = (&call.arguments, &call.results);
            text += &format!("{} {:?} {:?} {values:?}\n", call.time_ns, call.duration_ns, call.failed);
            Ok(())
        });
    }
    if let Ok(callers) = ProbeCallers::open(recording, &Query::default()) {
        let Ok(_) = callers.walk(0.0, |node| -> Result<(), std::convert::Infallible> {
            text += &format!("{} {} {:?}\n", node.depth, node.function.name(), node.sums);
            Ok(())
        });
    }
    text
}

fn check(recording: &Recording) -> Result<(), TestCaseError> {
    prop_assert_eq!(all_views(recording), all_views(recording));
    Ok(())
}

fn field() -> impl Strategy<Value = (u8, u64, u32, String)> {
    (any::<u8>(), any::<u64>(), 0..FUNCTIONS + 2, "[a-z]{0,6}")
}

/// Records that are whole, of any kind and with any fields.
fn records() -> impl Strategy<Value = Vec<u8>> {
    vec((any::<u8>(), 0..10_000_u64, vec(field(), 0..5)), 0..60).prop_map(|all| {
        let mut chunk = Vec::new();
        for (kind, delta, fields) in all {
            let mut buffer = [0; 1024];
            let mut encoder = Encoder::new(&mut buffer, Kind(kind), delta);
            for (tag, number, index, text) in &fields {
                let value = match tag {
                    0..64 => Value::Number(*number),
                    64..112 => Value::Text(text),
                    112..128 => Value::Bytes(text.as_bytes()),
                    _ => Value::Entity(EntityRef { id: *number, index: *index }),
                };
                encoder.put(Field { tag: Tag(*tag), value });
            }
            chunk.extend_from_slice(encoder.finish().0);
        }
        chunk
    })
}

/// Events of a kind at stacks of the table and at numbers that are none.
fn at_stacks(kind: Kind) -> impl Strategy<Value = Vec<u8>> {
    vec(0..40_u64, 0..20).prop_map(move |all| {
        let mut chunk = Vec::new();
        for number in all {
            let mut buffer = [0; 64];
            let mut encoder = Encoder::new(&mut buffer, kind, 1);
            encoder.number(Tag::STACK_NODE, if number == 39 { u64::MAX } else { number });
            chunk.extend_from_slice(encoder.finish().0);
        }
        chunk
    })
}

/// Events of `flow` in any order, with registers and values where they may stand and where not.
fn calls() -> impl Strategy<Value = Vec<u8>> {
    let what = prop_oneof![
        (0..3_u32, 0..FUNCTIONS + 2, 0..3_u32).prop_map(|(kind, f, pairs)| kind << 30 | pairs << flow::REGISTERS | f),
        prop_oneof![Just(flow::BLOCK), Just(flow::FILTER_ENTER), Just(flow::FILTER_LEAVE), Just(flow::VALUES)],
        any::<u32>(),
    ];
    vec((any::<u64>(), what, 0..2_000_u32, vec(0..16_u8, 0..40)), 0..80).prop_map(|all| {
        let mut chunk = Vec::new();
        for (ticks, what, sp, values) in all {
            chunk.extend_from_slice(&ticks.to_le_bytes());
            chunk.extend_from_slice(&what.to_le_bytes());
            let last = if what == flow::VALUES { values.len() as u32 } else { sp };
            chunk.extend_from_slice(&last.to_le_bytes());
            if what == flow::VALUES {
                chunk.extend_from_slice(&values);
                chunk.resize(chunk.len().next_multiple_of(flow::BYTES), 0);
            }
        }
        chunk
    })
}

/// Begins and ends of calls of probed methods in any order, with any values.
fn probe_calls() -> impl Strategy<Value = Vec<u8>> {
    let end = proptest::option::of((0..5_u64, any::<bool>()));
    vec((0..5_u32, 0..9_u64, end, vec(any::<u8>(), 0..20)), 0..30).prop_map(|all| {
        let record = |(method, ticks, end, values): &(u32, u64, Option<(u64, bool)>, Vec<u8>)| {
            let end = end.map(|(began, has_failed)| ProbeCallEnd { began, has_failed });
            ProbeCallRecord { method: *method, ticks: *ticks, end, values }.to_bytes()
        };
        all.iter().flat_map(record).collect()
    })
}

/// Callers of probed methods by any stacks, more or fewer than the methods have calls.
fn probe_callers() -> impl Strategy<Value = Vec<u8>> {
    vec((0..5_u32, 0..50_u32, any::<u64>(), 0..4_u64), 0..30).prop_map(|all| {
        let record = |(method, stack, ticks, calls): &(u32, u32, u64, u64)| {
            let (method, stack, ticks, calls) = (*method, *stack, *ticks, *calls);
            ProbeCaller { method, stack, ticks, calls, ended: calls + 1, ..ProbeCaller::default() }.to_bytes()
        };
        all.iter().flat_map(record).collect()
    })
}

/// Probed methods, of modules that are not there.
fn probed() -> Vec<u8> {
    (1..4).flat_map(|number| ProbedMethod { token: 7, number, ..ProbedMethod::default() }.to_empty_bytes(1)).collect()
}

/// The dictionary of types: right at the beginning of each record, anything behind.
fn types() -> impl Strategy<Value = Vec<u8>> {
    let kind = prop_oneof![Just(value::CLASS), Just(value::FUNCTION), Just(value::PROBED), any::<u32>()];
    vec((kind, 0..FUNCTIONS, vec(0..6_u32, 0..24)), 0..20).prop_map(|all| {
        let mut chunk = Vec::new();
        for (kind, index, words) in all {
            let payload: Vec<u8> = [kind, index].iter().chain(&words).flat_map(|word| word.to_le_bytes()).collect();
            chunk.extend_from_slice(&(payload.len() as u32).to_le_bytes());
            chunk.extend_from_slice(&payload);
        }
        chunk
    })
}

proptest! {
    #[test]
    fn any_bytes_are_survived(bytes in vec(any::<u8>(), 0..600)) {
        let arenas = ["events", "exceptions", "awaits", "requests", "counters", "memory", "flow", "flow-types", "probes", "probe-calls", "probe-callers"].map(|name| (name, bytes.clone()));
        check(&recording(arenas.into()))?;
    }

    #[test]
    fn whole_records_in_any_order_are_survived(log in records(), thrown in records()) {
        check(&recording(vec![("events", log), ("exceptions", thrown.clone()), ("awaits", thrown.clone()), ("requests", thrown.clone()), ("counters", thrown.clone()), ("memory", thrown)]))?;
    }

    #[test]
    fn throws_and_awaits_at_any_number_of_the_stack_table_are_survived(
        thrown in at_stacks(Kind::EXCEPTION_THROWN),
        awaited in at_stacks(Kind::AWAIT_ENDED),
    ) {
        check(&recording(vec![("exceptions", thrown), ("awaits", awaited)]))?;
    }

    #[test]
    fn calls_and_values_in_any_order_are_survived(calls in calls(), types in types()) {
        check(&recording(vec![("flow", calls), ("flow-types", types)]))?;
    }

    #[test]
    fn calls_of_probed_methods_in_any_order_are_survived(calls in probe_calls(), types in types()) {
        check(&recording(vec![("probes", probed()), ("probe-calls", calls), ("flow-types", types)]))?;
    }

    #[test]
    fn callers_of_probed_methods_are_survived_whatever_their_stacks(callers in probe_callers()) {
        check(&recording(vec![("probes", probed()), ("probe-callers", callers)]))?;
    }
}
