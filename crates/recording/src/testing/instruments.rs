//! A few events of each instrument, as the instrument would store them.

use std::io;

use crate::events::{Encoder, EntityRef, Kind, Tag};
use crate::layout::{self, chunk, flow, function, instrument, value};
use crate::model::{
    Activity, Allocation, AllocationKind, AllocationSampling, CounterSums, Inlining, MethodHits, ObjectHeap,
    ObjectType, OwnMemory, ProbeCallEnd, ProbeCallRecord, ProbeCaller, Sample, StackFrame, ThreadState,
};
use crate::payload::PayloadWriter;
use crate::writer::{Keep, ProcessWriter, monotonic_ns};

/// Writes a segment for each instrument that stores events.
pub(super) fn write_events(writer: &ProcessWriter) -> io::Result<()> {
    let calls: Vec<Vec<u8>> = (1..=2).map(calls).collect();
    let every = event_records(Kind::all());
    let samples: Vec<u8> = (0..20).flat_map(sample).collect();
    let thrown = event_records([Kind::NAME, Kind::EXCEPTION_THROWN, Kind(250)].into_iter());
    let of_gc = (210..=218).map(Kind).chain([Kind::NAME, Kind::RUNTIME_SUSPEND_STARTED, Kind::RUNTIME_RESUME_FINISHED]);
    let collections = event_records(of_gc);
    let awaited = event_records((222..=224).map(Kind).chain([Kind::NAME]));
    let contended = event_records(
        [Kind::NAME, Kind::CONTENTION_STARTED, Kind::CONTENTION_ENDED].into_iter().chain((225..=226).map(Kind)),
    );
    let asked = event_records((227..=229).map(Kind));
    let counted = event_records((231..=232).map(Kind));
    let looked = event_records((233..=235).map(Kind));
    let all = [
        (instrument::FLOW, calls),
        (instrument::FLOW_TYPES, vec![types()]),
        (instrument::EVENTS, vec![every]),
        (instrument::EXCEPTIONS, vec![thrown]),
        (instrument::GC, vec![collections]),
        (instrument::LOCKS, vec![contended]),
        (instrument::AWAITS, vec![awaited]),
        (instrument::REQUESTS, vec![asked]),
        (instrument::COUNTERS, vec![counted]),
        (instrument::MEMORY, vec![looked]),
        (instrument::ALLOC, vec![(0..20).flat_map(allocation).collect()]),
        (instrument::CPU, vec![samples.clone()]),
        (instrument::COVERAGE, vec![(0..20).flat_map(method_hits).collect()]),
        (instrument::WALL, vec![samples]),
        (instrument::PROBE_CALLS, vec![(0..20).flat_map(probe_call).collect()]),
        (instrument::PROBE_CALLERS, vec![(0..20).flat_map(probe_caller).collect()]),
    ];
    for (instrument, chunks) in all {
        let store = writer.create_events(instrument, 64 << 10, Keep::First)?;
        for (thread, bytes) in (0..).zip(&chunks) {
            let chunk = store.allocate_chunk(thread, chunk::GRAIN, monotonic_ns()).ok_or(io::ErrorKind::OutOfMemory)?;
            if !chunk.append(bytes, monotonic_ns()) {
                return Err(io::Error::other(format!("{} bytes of {instrument} are too many", bytes.len())));
            }
        }
    }
    Ok(())
}

/// Calls of a probed method by callers; some have no stack.
fn probe_caller(number: u32) -> [u8; layout::probe_callers::BYTES] {
    let calls = u64::from(number) << (number % 40);
    let ended = calls / 2;
    let (thread, stack) = (number % 4, number * 3);
    ProbeCaller { method: number % 3, thread, stack, calls, ended, ticks: ended * 900, ..ProbeCaller::default() }
        .to_bytes()
}

/// A sample; some have no thread or no stack.
fn sample(number: u32) -> [u8; 32] {
    let bits = u64::from(number);
    let sample = Sample {
        time_ns: bits * 1_000_000,
        weight_ns: 1_000_000,
        thread: number % 4,
        stack: number * 3 % 50,
        count: 1 + number % 2,
        state: ThreadState::from_number(number % 9),
        activity: Activity::from_number(number % 6),
        complete: number.is_multiple_of(2),
        kernel: number.is_multiple_of(3),
        profiler: number.is_multiple_of(7),
        guessed: number.is_multiple_of(5),
        inlining: Inlining::from_number(number % 4),
    };
    sample.to_bytes()
}

/// A method with counters of either kind, its own or summed; some have no module.
fn method_hits(number: u32) -> Vec<u8> {
    let (points, branches, counted) = (number % 5, number % 3, number.is_multiple_of(2));
    let hit = |at: u32| if counted { u64::from(number) << (at * 7) } else { u64::from(at % 2) };
    let hits = (0..points + branches).map(hit).collect();
    let token = 0x0600_0001 + number;
    let method = MethodHits { module: number % 3, token, fingerprint: u64::MAX / 3, points, branches, counted, hits };
    if number % 4 < 3 {
        return method.to_bytes();
    }
    let sums = (0..points + branches).map(|at| (0..at % 3).collect::<Vec<_>>());
    method.to_bytes_with(&CounterSums::new(2, sums), 0)
}

/// The beginning or the end of a call of a probed method, with or without values.
fn probe_call(number: u8) -> Vec<u8> {
    let end = ProbeCallEnd { began: u64::from(number) << 33, has_failed: number.is_multiple_of(3) };
    let values = &[0xff; 40][..usize::from(number) * 2];
    let end = (number % 2 == 1).then_some(end);
    ProbeCallRecord { method: 1 + u32::from(number % 4), ticks: u64::MAX >> number, end, values }.to_bytes()
}

/// A record of allocations; some have no type or no stack.
fn allocation(number: u32) -> [u8; layout::allocation::BYTES] {
    let bits = u64::from(number);
    let allocation = Allocation {
        time_ns: bits * 1_000_000,
        objects: bits % 5,
        bytes: bits << (bits * 3 % 60),
        weight: u64::MAX >> (bits % 50),
        objects_weight: bits << 12,
        squares: bits << 40,
        object_type: number % 4,
        stack: number * 3 % 50,
        heap: ObjectHeap::from_number(number % 3),
        kind: AllocationKind::from_number(number % 4),
        object: number / 4,
        collections: bits,
    };
    allocation.to_bytes()
}

/// Writes types of objects, and the settings of allocation recording.
pub(super) fn write_types(writer: &ProcessWriter) {
    for (index, name) in (1..).zip(["App.Point", "System.Collections.Generic.List<App.Point>", ""]) {
        writer.object_type(index, ObjectType { name: name.to_owned(), module: index });
    }
    for bytes in [7, 1 << 20] {
        writer.own_memory(&OwnMemory { instrument: instrument::ALLOC.to_owned(), bytes });
    }
    writer.allocation_sampling(&AllocationSampling { follows: true, mean_bytes: 9, ..AllocationSampling::default() });
}

/// Writes a stack table: stacks that share frames, a stack of native code, and a truncated stack.
pub(super) fn write_stacks(writer: &ProcessWriter) -> io::Result<()> {
    let table = writer.create_stacks()?;
    let method = |number: u32| StackFrame::method(function::FIRST + number % 3, number.checked_sub(2));
    for depth in 1..20 {
        let mut frames: Vec<_> = (0..depth).map(method).collect();
        frames.insert(0, StackFrame::Native { module: 1, offset: depth });
        table.intern(&frames, depth % 5 == 0).ok_or(io::ErrorKind::OutOfMemory)?;
    }
    Ok(())
}

/// A record of each kind, with a field of each form.
pub(super) fn event_records(kinds: impl Iterator<Item = Kind>) -> Vec<u8> {
    let mut bytes = Vec::new();
    for (at, kind) in (0_u64..).zip(kinds) {
        let mut buffer = [0; 256];
        let mut encoder = Encoder::new(&mut buffer, kind, at * 1_000);
        encoder.number(Tag::COUNT, at << (at % 60)).text(Tag::REASON, "on purpose");
        encoder.entity(Tag::CLASS, EntityRef { id: 0x7f00_0000 + at, index: at as u32 }).number(Tag(63), u64::MAX);
        bytes.extend_from_slice(encoder.finish().0);
    }
    bytes
}

/// Events of `flow`: calls with registers and values, blocks and filters, and an exception's
/// unwinding.
fn calls(thread: u32) -> Vec<u8> {
    let mut bytes = Vec::new();
    let mut put = |what: u32, sp: u32| {
        let ticks = 1_000 + bytes.len() as u64;
        bytes.extend_from_slice(&ticks.to_le_bytes());
        bytes.extend_from_slice(&what.to_le_bytes());
        bytes.extend_from_slice(&sp.to_le_bytes());
    };
    let of = |number: u32| function::FIRST + number;
    for round in 0..10 {
        let sp = 0x8000 - round * 16 - thread;
        put(flow::ENTER | of(0), sp);
        put(flow::ENTER | 1 << flow::REGISTERS | of(1), sp - 64);
        put(7, 9);
        put(flow::LEAVE | of(1), sp - 64);
        put(flow::ENTER | of(2), sp - 64);
        put(flow::VALUES, 5);
        put(u32::from(value::INT), 0);
        put(flow::TAILCALL | of(2), sp - 64);
        put(flow::FILTER_ENTER, sp);
        put(flow::FILTER_LEAVE, sp);
        put(flow::BLOCK, sp - 32);
        put(flow::LEAVE | of(0), sp);
    }
    bytes
}

/// The dictionary of types: a class and a function with two parameters.
fn types() -> Vec<u8> {
    let mut class = PayloadWriter::default();
    let texts = |texts: [&str; 2]| texts.map(str::to_owned);
    class.u32(value::CLASS).u32(1).text("App.Point").u32(1);
    class.texts(&texts(["x", "y"])).texts(&texts(["int", "int"])).u32(1).text("Zero").u64(0);
    let mut of_function = PayloadWriter::default();
    of_function.u32(value::FUNCTION).u32(function::FIRST + 1).u32(2);
    for name in ["this", "count"] {
        of_function.text(name).text("int").u32(0);
    }
    of_function.text("int").u32(1);
    for tag in [value::OBJECT, value::INT, value::INT] {
        of_function.u32(u32::from(tag) | 4 << 8);
    }
    let mut bytes = Vec::new();
    for payload in [class, of_function] {
        bytes.extend_from_slice(&(payload.bytes().len() as u32).to_le_bytes());
        bytes.extend_from_slice(payload.bytes());
    }
    bytes
}
