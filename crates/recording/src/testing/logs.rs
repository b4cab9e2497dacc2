//! Recording directories with logs of any size. The made-up program throws, allocates and calls all
//! the time.

use std::io;
use std::path::Path;
use std::sync::atomic::Ordering::Relaxed;

use crate::events::{Encoder, EntityRef, Kind, Tag};
use crate::layout::{flow, function, instrument, thread};
use crate::model::{Exit, Function, Module, StackFrame};
use crate::writer::{EventStore, Keep, ProcessRecord, ProcessWriter, RunWriter, monotonic_ns};

/// Threads of the program; the chunks of an instrument are assigned to them in turn.
const THREADS: u32 = 3;
/// Bytes of a chunk, the same as for threads that record many events.
const CHUNK: usize = 64 << 10;
/// Functions of the program.
const FUNCTIONS: u32 = 16;

/// Makes the recording directory `folder`, which must not exist, with `bytes` bytes of records for
/// each of the instruments `events`, `exceptions` and `flow`.
///
/// # Errors
/// Errors of writing files.
pub fn write_logs(folder: &Path, bytes: usize) -> io::Result<()> {
    let run = RunWriter::create(folder, &["logs".to_owned()], "events;exceptions;flow", 1_000_000_000)?;
    let process = ProcessRecord { pid: 7, mono_ns: monotonic_ns(), unix_ns: 1, ..ProcessRecord::default() };
    let writer = ProcessWriter::create(folder, &process)?;
    writer.module(1, Module { name: "App".to_owned(), ..Module::default() });
    for index in 0..FUNCTIONS {
        let name = format!("App.Type::Method{index}");
        writer.function(function::FIRST + index, Function { name, module: 1, ..Function::default() });
    }
    for _ in 0..THREADS {
        writer.threads().keep_ahead();
        let record = writer.threads().allocate_record(monotonic_ns()).ok_or(io::ErrorKind::OutOfMemory)?;
        record.u64(thread::CREATED).store(monotonic_ns(), Relaxed);
    }
    let table = writer.create_stacks()?;
    let frame = |number: u32| StackFrame::method(function::FIRST + number, None);
    let stack = table.intern(&[frame(2), frame(1), frame(0)], false).ok_or(io::ErrorKind::OutOfMemory)?;
    fill(&writer, instrument::EVENTS, bytes, events)?;
    fill(&writer, instrument::EXCEPTIONS, bytes, |log, round| exceptions(log, round, stack))?;
    let store = writer.create_events(instrument::FLOW, (bytes * 2) as u64, Keep::First)?;
    for number in 0..bytes.div_ceil(CHUNK) {
        append(&store, number, &calls(number))?;
    }
    writer.state().alive(monotonic_ns(), 1 << 40, 5);
    writer.state().ended();
    run.ended(7, Exit::Code(0));
    Ok(())
}

/// Records of a chunk; the first holds the time since the start.
struct Log {
    bytes: Vec<u8>,
    delta_ns: u64,
}

impl Log {
    fn put(&mut self, kind: Kind, write: impl FnOnce(&mut Encoder<'_>)) {
        let mut buffer = [0; 128];
        let mut encoder = Encoder::new(&mut buffer, kind, self.delta_ns);
        write(&mut encoder);
        self.bytes.extend_from_slice(encoder.finish().0);
        self.delta_ns = 1_000;
    }
}

/// Fills the log of an instrument with records from repeated calls of `round`.
fn fill(writer: &ProcessWriter, name: &str, bytes: usize, round: impl Fn(&mut Log, u64)) -> io::Result<()> {
    let store = writer.create_events(name, (bytes * 2) as u64, Keep::First)?;
    let mut rounds = 0;
    for number in 0..bytes.div_ceil(CHUNK) {
        // Threads run side by side: chunks that are handed out together are of the same time.
        let start_ns = (number as u64 / u64::from(THREADS)) * 1_000 * CHUNK as u64;
        let mut log = Log { bytes: Vec::with_capacity(CHUNK), delta_ns: start_ns };
        while log.bytes.len() < CHUNK - 1_000 {
            round(&mut log, rounds);
            rounds += 1;
        }
        append(&store, number, &log.bytes)?;
    }
    Ok(())
}

fn append(store: &EventStore, number: usize, bytes: &[u8]) -> io::Result<()> {
    let serial = number as u32 % THREADS + 1;
    store.keep_ahead_at_least(4 * CHUNK).map_err(|_| io::ErrorKind::StorageFull)?;
    let chunk = store.allocate_chunk(serial, CHUNK, monotonic_ns()).ok_or(io::ErrorKind::OutOfMemory)?;
    if !chunk.append(bytes, monotonic_ns()) {
        return Err(io::Error::other(format!("{} bytes are too many", bytes.len())));
    }
    Ok(())
}

fn entity(number: u64) -> EntityRef {
    EntityRef { id: 0x7f00_0000 + number * 8, index: number as u32 }
}

/// Allocated objects, and from time to time a JIT compilation, whose end may lie in another chunk,
/// or a garbage collection, whose end may be recorded on another thread.
fn events(log: &mut Log, round: u64) {
    if round < 40 {
        log.put(Kind::NAME, |e| {
            e.entity(Tag::CLASS, entity(round)).text(Tag::NAME, "App.Thing");
        });
    }
    let kind = match round % 1_000 {
        100 => Kind::JIT_COMPILATION_STARTED,
        900 => Kind::JIT_COMPILATION_FINISHED,
        300 => Kind::GARBAGE_COLLECTION_STARTED,
        310 => Kind::GARBAGE_COLLECTION_FINISHED,
        500 => Kind::EXCEPTION_UNWIND_FUNCTION_ENTER,
        _ => Kind::OBJECT_ALLOCATED,
    };
    log.put(kind, |e| {
        e.entity(Tag::CLASS, entity(round % 40)).number(Tag::OBJECT, 0x10_0000 + round % 5_000 * 24);
    });
}

/// An exception with a message, which a function two frames above catches.
fn exceptions(log: &mut Log, round: u64, stack: u32) {
    let method = |number: u32| EntityRef { id: 0x100 + u64::from(number), index: function::FIRST + number };
    if round == 0 {
        log.put(Kind::NAME, |e| {
            e.entity(Tag::CLASS, entity(1)).text(Tag::NAME, "System.Exception");
        });
    }
    log.put(Kind::EXCEPTION_THROWN, |e| {
        e.entity(Tag::CLASS, entity(1)).number(Tag::OBJECT, 0x10_0000 + round * 128 % (1 << 30));
        e.text(Tag::MESSAGE, "no such thing").number(Tag::STACK_NODE, stack.into());
    });
    for number in (0..3).rev() {
        log.put(Kind::EXCEPTION_SEARCH_FUNCTION_ENTER, |e| {
            e.entity(Tag::FUNCTION, method(number));
        });
    }
    for (kind, number) in [(Kind::EXCEPTION_SEARCH_CATCHER_FOUND, 0), (Kind::EXCEPTION_UNWIND_FUNCTION_ENTER, 2)] {
        log.put(kind, |e| {
            e.entity(Tag::FUNCTION, method(number));
        });
    }
    log.put(Kind::EXCEPTION_CATCHER_ENTER, |e| {
        e.entity(Tag::FUNCTION, method(0)).number(Tag::OBJECT, 0x10_0000 + round * 128 % (1 << 30));
    });
    log.put(Kind::EXCEPTION_CATCHER_LEAVE, |_| ());
}

/// A chunk of calls three deep.
fn calls(number: usize) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(CHUNK);
    let mut ticks = (number / THREADS as usize * CHUNK) as u64;
    while bytes.len() < CHUNK - 256 {
        for (kind, depth) in
            [(flow::ENTER, 0), (flow::ENTER, 1), (flow::ENTER, 2), (flow::LEAVE, 2), (flow::LEAVE, 1), (flow::LEAVE, 0)]
        {
            ticks += 10;
            bytes.extend_from_slice(&u64::to_le_bytes(ticks));
            bytes.extend_from_slice(&(kind | (function::FIRST + depth)).to_le_bytes());
            bytes.extend_from_slice(&(0x8000 - depth * 64).to_le_bytes());
        }
    }
    bytes
}
