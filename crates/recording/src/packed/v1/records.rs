//! Dictionary sections: records as in a log (`u32 length`, `u16 kind`, `u16 version`, payload), so that
//! a later clrscope can add fields at the end of a payload and records of new kinds.

use crate::model::{
    CallsInfo, Clock, Exit, Function, Loss, LossReason, Module, PairCost, Problem, Process, Remark, Run, Thread,
    TickClock,
};
use crate::payload::{PayloadReader, PayloadWriter};
use crate::reader::numbers;

/// Kinds of records.
pub(super) mod record {
    /// The run.
    pub(in super::super) const RUN: u16 = 1;
    /// A process.
    pub(in super::super) const PROCESS: u16 = 2;
    /// Settings of `calls`.
    pub(in super::super) const CALLS: u16 = 3;
    /// A loss.
    pub(in super::super) const LOSS: u16 = 4;
    /// The name of an arena of events.
    pub(in super::super) const ARENA: u16 = 5;
    /// A function.
    pub(in super::super) const FUNCTION: u16 = 6;
    /// A module.
    pub(in super::super) const MODULE: u16 = 7;
    /// A thread.
    pub(in super::super) const THREAD: u16 = 8;
    /// A remark.
    pub(in super::super) const REMARK: u16 = 9;
    /// A problem.
    pub(in super::super) const PROBLEM: u16 = 10;
    /// The patterns that have matched something.
    pub(in super::super) const MATCHED: u16 = 11;
}

/// Appends a record.
pub(super) fn put(bytes: &mut Vec<u8>, kind: u16, payload: &PayloadWriter) {
    let payload = payload.bytes();
    let length = payload.len().max(1);
    bytes.extend_from_slice(&(length as u32).to_le_bytes());
    bytes.extend_from_slice(&(u32::from(kind) | 1 << 16).to_le_bytes());
    bytes.extend_from_slice(payload);
    bytes.resize(bytes.len() + length.next_multiple_of(4) - payload.len(), 0);
}

fn put_option(p: &mut PayloadWriter, value: Option<u64>) {
    p.u32(u32::from(value.is_some())).u64(value.unwrap_or(0));
}

fn take_option(p: &mut PayloadReader<'_>) -> Option<u64> {
    let there = p.u32() == 1;
    let value = p.u64();
    there.then_some(value)
}

fn put_exit(p: &mut PayloadWriter, exit: Option<Exit>) {
    let (kind, number) = match exit {
        None => (0, 0),
        Some(Exit::Code(code)) => (1, code),
        Some(Exit::Signal(signal)) => (2, signal),
    };
    p.u32(kind).u32(number as u32);
}

fn take_exit(p: &mut PayloadReader<'_>) -> Option<Exit> {
    let (kind, number) = (p.u32(), p.u32() as i32);
    match kind {
        1 => Some(Exit::Code(number)),
        2 => Some(Exit::Signal(number)),
        _ => None,
    }
}

pub(super) fn put_run(bytes: &mut Vec<u8>, run: &Run) {
    let mut p = PayloadWriter::default();
    p.texts(&run.command).u64(run.started_unix_ns).u64(run.duration_ns);
    put_exit(&mut p, run.exit);
    p.text(run.given.text()).text(run.filled.text()).text(&run.clrscope_version);
    put(bytes, record::RUN, &p);
}

pub(super) fn take_run(mut p: PayloadReader<'_>) -> Run {
    Run {
        command: p.texts(),
        started_unix_ns: p.u64(),
        duration_ns: p.u64(),
        exit: take_exit(&mut p),
        given: p.text().into(),
        filled: p.text().into(),
        clrscope_version: p.text(),
    }
}

pub(super) fn put_process(bytes: &mut Vec<u8>, process: &Process) {
    let mut p = PayloadWriter::default();
    p.u32(process.pid).u32(process.parent_pid).texts(&process.command).text(&process.runtime);
    p.u64(process.started_ns).u64(process.duration_ns);
    put_option(&mut p, process.cpu_ns);
    put_exit(&mut p, process.exit);
    p.u32(u32::from(process.complete));
    p.u64(process.ticks.start).u64(process.ticks.ns_per_tick.to_bits());
    put(bytes, record::PROCESS, &p);
    if let Some(calls) = &process.calls {
        put_calls(bytes, calls);
    }
    process.losses.iter().for_each(|loss| put_loss(bytes, loss));
    for arena in &process.events {
        let mut p = PayloadWriter::default();
        p.text(&arena.instrument);
        put(bytes, record::ARENA, &p);
    }
    if !process.matched_patterns.is_empty() {
        let mut p = PayloadWriter::default();
        p.texts(&process.matched_patterns);
        put(bytes, record::MATCHED, &p);
    }
}

/// Fills in what a `PROCESS` record says.
pub(super) fn take_process(process: &mut Process, mut p: PayloadReader<'_>) {
    process.pid = p.u32();
    process.parent_pid = p.u32();
    process.command = p.texts();
    process.runtime = p.text();
    process.started_ns = p.u64();
    process.duration_ns = p.u64();
    process.cpu_ns = take_option(&mut p);
    process.exit = take_exit(&mut p);
    process.complete = p.u32() == 1;
    process.ticks = TickClock { start: p.u64(), ns_per_tick: p.nanoseconds() };
}

fn put_calls(bytes: &mut Vec<u8>, calls: &CallsInfo) {
    let mut p = PayloadWriter::default();
    p.u32(u32::from(calls.clock == Clock::Tsc));
    for switch in [calls.noinline, calls.native, calls.helpers, calls.trivial, calls.cpu_measured] {
        p.u32(u32::from(switch));
    }
    p.u64(calls.interval_ns);
    p.cost(&calls.hook_cost);
    // Files made before have nothing here, which reads as none.
    p.u32(calls.pair_costs.len() as u32);
    for measured in &calls.pair_costs {
        p.u32(measured.caller).u32(measured.callee).cost(&measured.cost);
    }
    put(bytes, record::CALLS, &p);
}

/// By caller, in ascending order, and no more than the record holds.
fn take_pair_costs(p: &mut PayloadReader<'_>) -> Vec<PairCost> {
    let mut costs: Vec<PairCost> = Vec::new();
    for _ in 0..p.u32() {
        if p.is_at_end() {
            break;
        }
        costs.push(PairCost { caller: p.u32(), callee: p.u32(), cost: p.cost() });
    }
    costs.sort_by_key(|measured| measured.caller);
    costs.dedup_by_key(|measured| measured.caller);
    costs
}

pub(super) fn take_calls(mut p: PayloadReader<'_>) -> CallsInfo {
    let mut switch = || p.u32() == 1;
    let tsc = switch();
    let (noinline, native, helpers, trivial, cpu_measured) = (switch(), switch(), switch(), switch(), switch());
    CallsInfo {
        clock: if tsc { Clock::Tsc } else { Clock::Sampled },
        noinline,
        native,
        helpers,
        trivial,
        cpu_measured,
        interval_ns: p.u64(),
        hook_cost: p.cost(),
        pair_costs: take_pair_costs(&mut p),
    }
}

fn put_loss(bytes: &mut Vec<u8>, loss: &Loss) {
    let mut p = PayloadWriter::default();
    p.u32(loss.reason as u32).u64(loss.count).u64(loss.first_ns).u64(loss.last_ns).texts(&loss.details);
    put(bytes, record::LOSS, &p);
}

/// `None` for a reason this version has no words for.
pub(super) fn take_loss(mut p: PayloadReader<'_>) -> Option<Loss> {
    Some(Loss {
        reason: LossReason::from_number(p.u32())?,
        count: p.u64(),
        first_ns: p.u64(),
        last_ns: p.u64(),
        details: p.texts(),
    })
}

pub(super) fn put_function(bytes: &mut Vec<u8>, function: &Function) {
    let mut p = PayloadWriter::default();
    p.text(&function.name).text(&function.signature).text(&function.raw_name);
    p.u32(function.module).u32(function.token);
    p.u32(function.kind as u32).u32(function.source as u32);
    p.u32(u32::from(function.flags.dynamic) | u32::from(function.flags.unloaded) << 1);
    put(bytes, record::FUNCTION, &p);
}

pub(super) fn take_function(mut p: PayloadReader<'_>) -> Function {
    let mut function = Function {
        name: p.text(),
        signature: p.text(),
        raw_name: p.text(),
        module: p.u32(),
        token: p.u32(),
        kind: numbers::function_kind(p.u32()),
        source: numbers::source_kind(p.u32()),
        ..Function::default()
    };
    let flags = p.u32();
    function.flags.dynamic = flags & 1 != 0;
    function.flags.unloaded = flags & 2 != 0;
    function
}

pub(super) fn put_module(bytes: &mut Vec<u8>, module: &Module) {
    let mut p = PayloadWriter::default();
    p.text(&module.name).text(&module.path).text(&module.version).u32(u32::from(module.framework));
    put(bytes, record::MODULE, &p);
}

pub(super) fn take_module(mut p: PayloadReader<'_>) -> Module {
    Module { name: p.text(), path: p.text(), version: p.text(), framework: p.u32() == 1 }
}

pub(super) fn put_thread(bytes: &mut Vec<u8>, thread: &Thread) {
    let mut p = PayloadWriter::default();
    p.u32(thread.id).u32(thread.os_id).text(&thread.name).u32(thread.role as u32).u64(thread.created_ns);
    put_option(&mut p, thread.ended_ns);
    put_option(&mut p, thread.cpu_ns);
    put(bytes, record::THREAD, &p);
}

pub(super) fn take_thread(mut p: PayloadReader<'_>) -> Thread {
    Thread {
        id: p.u32(),
        os_id: p.u32(),
        name: p.text(),
        role: numbers::thread_role(p.u32()).unwrap_or_default(),
        created_ns: p.u64(),
        ended_ns: take_option(&mut p),
        cpu_ns: take_option(&mut p),
        ..Thread::default()
    }
}

pub(super) fn put_remark(bytes: &mut Vec<u8>, remark: &Remark) {
    let mut p = PayloadWriter::default();
    p.remark(remark);
    put(bytes, record::REMARK, &p);
}

pub(super) fn take_remark(mut p: PayloadReader<'_>) -> Remark {
    p.remark()
}

/// Whether the remark was written before remarks had kinds.
pub(super) fn is_without_kind(mut p: PayloadReader<'_>) -> bool {
    let _ = (p.u64(), p.text());
    p.is_at_end()
}

pub(super) fn put_problem(bytes: &mut Vec<u8>, problem: &Problem) {
    let mut p = PayloadWriter::default();
    p.text(&problem.place).text(&problem.what);
    put(bytes, record::PROBLEM, &p);
}

pub(super) fn take_problem(mut p: PayloadReader<'_>) -> Problem {
    Problem { place: p.text(), what: p.text() }
}
