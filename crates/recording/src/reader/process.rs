//! One process's folder.

use std::collections::HashMap;
use std::path::Path;
use std::sync::Arc;

use super::blocks::{EdgeTimes, TreeRoot, TreeSources, decode};
use super::log::LogRecords;
use super::numbers::{self, function_kind, source_kind, thread_role};
use super::segment::SegmentBytes;
use crate::layout::{block, function, kind, record, state, thread, u32_at, u64_at};
use crate::model::{
    CallsInfo, Clock, Fact, Function, FunctionKind, HookCost, Loss, LossReason, Module, PairCost, Problem, Process,
    Thread, ThreadRole, TickClock, TreeSource,
};
use crate::payload::PayloadReader;

/// The least a log record of a function or module takes.
const LEAST_RECORD: usize = 16;
/// Indices are given out before records are written, so that a record may come early.
const EARLY_RECORDS: usize = 64;

/// A process with the absolute times that place it within the run.
pub(super) struct ReadProcess {
    pub(super) process: Process,
    pub(super) mono_start: u64,
    /// Monotonic nanoseconds of the last sign of life; `None` when the state could not be read.
    pub(super) mono_last: Option<u64>,
    pub(super) unix_start: u64,
    /// The agent said that it no longer records.
    pub(super) stopped: bool,
    pub(super) instruments_given: String,
    pub(super) instruments: String,
}

/// Reads the folder; problems are appended to `problems`.
pub(super) fn read(folder: &Path, problems: &mut Vec<Problem>) -> Option<ReadProcess> {
    let place = folder.file_name().map(|n| n.to_string_lossy().into_owned()).unwrap_or_default();
    let inside = format!("{place}/");
    let mut open = |name: &str, kind: u32| SegmentBytes::open(folder, name, kind, &inside, problems);
    let log = open("process.log", kind::LOG);
    let state = open("state.seg", kind::STATE);
    let threads = open("threads.seg", kind::THREADS);
    if log.is_none() && state.is_none() && threads.is_none() {
        return None;
    }
    let log = log.unwrap_or_else(SegmentBytes::empty);
    let mut dictionary = Dictionary::new(log.len());
    let mut records = LogRecords::new(&log);
    for (kind, payload) in &mut records {
        dictionary.take(kind, payload);
    }
    // Where the log grew meanwhile, the record is whole but its end lies beyond what we look at.
    let cut = records.was_cut() && !log.has_grown();
    let (arena, times) = match dictionary.process.calls {
        Some(_) => (open("tree.seg", kind::TREE), open("times.seg", kind::TIMES)),
        None => (None, None),
    };
    let mut problem = |file: &str, what: &str| {
        problems.push(Problem { place: format!("{place}/{file}"), what: what.to_owned() });
    };
    if cut {
        problem("process.log", "ends in the middle of a record; what stood before is here");
    }
    if dictionary.process.calls.is_none() && folder.join("tree.seg").exists() {
        problem("process.log", "does not say how calls were recorded; the trees can't be read");
    }
    let state = state.unwrap_or_else(SegmentBytes::empty);
    let clocks = Clocks::read(&state);
    let mut read = dictionary.finish(&clocks);
    read.process.losses = read_losses(&state, clocks.mono_start);
    read_threads(
        &mut read,
        &threads.unwrap_or_else(SegmentBytes::empty),
        &clocks,
        arena.unwrap_or_else(SegmentBytes::empty),
        &times.unwrap_or_else(SegmentBytes::empty),
        dictionary_carries(&log),
        dictionary_names(&log),
    );
    read.process.events = super::events::read(folder, &place, read.process.threads.len(), clocks.ended, problems);
    Some(read)
}

/// The clocks of a process.
struct Clocks {
    mono_start: u64,
    mono_last: u64,
    unix_start: u64,
    ticks_start: u64,
    ns_per_tick: f64,
    cpu_ns: u64,
    pid: u32,
    ended: bool,
    stopped: bool,
}

impl Clocks {
    fn read(state: &[u8]) -> Self {
        let (mono_start, mono_last) = (u64_at(state, state::MONO_START), u64_at(state, state::MONO_LAST));
        let ticks_start = u64_at(state, state::TICKS_START);
        let ticks = u64_at(state, state::TICKS_LAST).saturating_sub(ticks_start);
        let elapsed = mono_last.saturating_sub(mono_start);
        Self {
            mono_start,
            mono_last: mono_last.max(mono_start),
            unix_start: u64_at(state, state::UNIX_START),
            ticks_start,
            ns_per_tick: if ticks == 0 { 0.0 } else { elapsed as f64 / ticks as f64 },
            cpu_ns: u64_at(state, state::CPU),
            pid: u32_at(state, state::PID),
            ended: u32_at(state, state::FLAGS) & state::FLAG_ENDED != 0,
            stopped: u32_at(state, state::STOPPED) != 0,
        }
    }
}

fn read_losses(state: &[u8], mono_start: u64) -> Vec<Loss> {
    let of = |reason: LossReason| {
        let at = state::LOSSES + reason as usize * state::LOSS_BYTES;
        Loss {
            reason,
            count: u64_at(state, at),
            first_ns: u64_at(state, at + 8).saturating_sub(mono_start),
            last_ns: u64_at(state, at + 16).saturating_sub(mono_start),
        }
    };
    LossReason::ALL.into_iter().map(of).filter(|loss| loss.count > 0).collect()
}

/// What the log says, gathered record by record.
#[derive(Default)]
struct Dictionary {
    process: Process,
    instruments_given: String,
    instruments: String,
    /// Indices from here on are not believed: the log could not hold as many records.
    most: usize,
}

impl Dictionary {
    fn new(log_bytes: usize) -> Self {
        let most = function::FIRST as usize + EARLY_RECORDS + log_bytes / LEAST_RECORD;
        Self { most, ..Self::default() }
    }

    fn take(&mut self, kind: u16, mut p: PayloadReader<'_>) {
        match kind {
            record::PROCESS => {
                self.process.pid = p.u32();
                self.process.parent_pid = p.u32();
                self.process.command = p.texts();
                self.process.runtime = p.text();
            }
            record::INSTRUMENTS => {
                self.instruments_given = p.text();
                self.instruments = p.text();
            }
            record::MODULE => self.take_module(p),
            record::FUNCTION => self.take_function(p),
            record::FUNCTION_UNLOADED => {
                if let Some(function) = self.process.functions.get_mut(p.u32() as usize) {
                    function.flags.unloaded = true;
                }
            }
            record::FACT => {
                let time_ns = p.u64();
                self.process.facts.push(Fact { time_ns, text: p.text() });
            }
            record::PATTERN_MATCHED => self.process.matched_patterns.push(p.text()),
            record::CALLS => self.take_calls(p),
            record::HOOK_COST => self.take_hook_cost(p),
            record::PAIR_COST => self.take_pair_cost(p),
            // Thread names and carries are read by those who need them; the rest is from the future.
            _ => {}
        }
    }

    fn take_module(&mut self, mut p: PayloadReader<'_>) {
        let index = p.u32();
        if let Some(slot) = slot(&mut self.process.modules, index, self.most) {
            *slot = Module { name: p.text(), path: p.text(), version: p.text(), framework: p.u32() != 0 };
        }
    }

    fn take_function(&mut self, mut p: PayloadReader<'_>) {
        let index = p.u32();
        let Some(slot) = slot(&mut self.process.functions, index, self.most) else { return };
        slot.name = p.text();
        slot.signature = p.text();
        slot.raw_name = p.text();
        slot.module = p.u32();
        slot.token = p.u32();
        slot.kind = function_kind(p.u32());
        slot.source = source_kind(p.u32());
        slot.flags.dynamic = p.u32() != 0;
    }

    fn take_calls(&mut self, mut p: PayloadReader<'_>) {
        let clock = if p.u32() == 1 { Clock::Tsc } else { Clock::Sampled };
        let mut switch = || p.u32() != 0;
        let (noinline, native, helpers, trivial) = (switch(), switch(), switch(), switch());
        let calls = self.process.calls.get_or_insert_default();
        *calls = CallsInfo {
            clock,
            noinline,
            native,
            helpers,
            trivial,
            interval_ns: p.u64(),
            hook_cost: calls.hook_cost,
            pair_costs: std::mem::take(&mut calls.pair_costs),
            cpu_measured: false,
        };
    }

    fn take_hook_cost(&mut self, mut p: PayloadReader<'_>) {
        let mut value = || numbers::cost(p.u64());
        let cost = HookCost { enter_ns: value(), leave_ns: value(), pair_low_ns: value(), pair_high_ns: value() };
        self.process.calls.get_or_insert_default().hook_cost = cost;
    }

    fn take_pair_cost(&mut self, mut p: PayloadReader<'_>) {
        let (caller, callee) = (p.u32(), p.u32());
        let mut value = || numbers::cost(p.u64());
        let cost = HookCost { enter_ns: value(), leave_ns: value(), pair_low_ns: value(), pair_high_ns: value() };
        let costs = &mut self.process.calls.get_or_insert_default().pair_costs;
        match costs.binary_search_by_key(&caller, |known| known.caller) {
            Ok(at) => costs[at] = PairCost { caller, callee, cost },
            Err(at) => costs.insert(at, PairCost { caller, callee, cost }),
        }
    }

    fn finish(self, clocks: &Clocks) -> ReadProcess {
        let mut process = self.process;
        name_fixed_functions(&mut process.functions);
        process.duration_ns = clocks.mono_last - clocks.mono_start;
        process.cpu_ns = Some(clocks.cpu_ns).filter(|&ns| ns > 0);
        process.complete = clocks.ended;
        process.ticks = TickClock { start: clocks.ticks_start, ns_per_tick: clocks.ns_per_tick };
        if process.pid == 0 {
            process.pid = clocks.pid;
        }
        for fact in &mut process.facts {
            fact.time_ns = fact.time_ns.saturating_sub(clocks.mono_start);
        }
        ReadProcess {
            process,
            mono_start: clocks.mono_start,
            mono_last: (clocks.mono_start > 0).then_some(clocks.mono_last),
            unix_start: clocks.unix_start,
            stopped: clocks.stopped,
            instruments_given: self.instruments_given,
            instruments: self.instruments,
        }
    }
}

/// The entry at `index`, making room for it; `None` for an index no writer would use.
fn slot<T: Default + Clone>(table: &mut Vec<T>, index: u32, most: usize) -> Option<&mut T> {
    let index = index as usize;
    if index >= most {
        return None;
    }
    if table.len() <= index {
        table.resize(index + 1, T::default());
    }
    table.get_mut(index)
}

/// Gives the indices with a fixed meaning their names.
fn name_fixed_functions(functions: &mut Vec<Function>) {
    let fixed = function::FIRST as usize;
    if functions.len() < fixed {
        functions.resize(fixed, Function::default());
    }
    let mut set = |index: u32, name: &str, kind| {
        let slot = &mut functions[index as usize];
        slot.name = name.to_owned();
        slot.signature = name.to_owned();
        slot.raw_name = name.to_owned();
        slot.kind = kind;
    };
    set(function::JIT, "[JIT]", FunctionKind::Runtime);
    set(function::TRUNCATED, "(truncated)", FunctionKind::Runtime);
    for (number, reason) in SUSPENSIONS.iter().enumerate() {
        set(function::SUSPENDED + number as u32, &format!("[suspended: {reason}]"), FunctionKind::Suspended);
    }
}

/// Reasons of a suspension by the runtime's numbers (corprof.idl, `COR_PRF_SUSPEND_REASON`).
const SUSPENSIONS: [&str; 10] = [
    "other",
    "GC",
    "app domain shutdown",
    "code pitching",
    "shutdown",
    "reason 5",
    "debugger",
    "GC preparation",
    "ReJIT",
    "profiler",
];

fn dictionary_carries(log: &[u8]) -> Vec<(u32, u32)> {
    let of_carries = LogRecords::new(log).filter(|(kind, _)| *kind == record::CARRY);
    let mut edges: Vec<u32> = of_carries.map(|(_, mut payload)| payload.u32()).collect();
    edges.sort_unstable();
    edges.chunk_by(|a, b| a == b).map(|same| (same[0], same.len() as u32)).collect()
}

fn dictionary_names(log: &[u8]) -> HashMap<u32, (String, Option<ThreadRole>)> {
    let mut names: HashMap<u32, (String, Option<ThreadRole>)> = HashMap::new();
    for (kind, mut payload) in LogRecords::new(log) {
        if kind == record::THREAD_NAME {
            let entry = names.entry(payload.u32()).or_default();
            entry.0 = payload.text();
            entry.1 = thread_role(payload.u32()).or(entry.1);
        }
    }
    names
}

fn read_threads(
    read: &mut ReadProcess,
    records: &[u8],
    clocks: &Clocks,
    arena: SegmentBytes,
    times: &[u8],
    carries: Vec<(u32, u32)>,
    names: HashMap<u32, (String, Option<ThreadRole>)>,
) {
    let tsc = read.process.calls.as_ref().is_some_and(|calls| calls.clock == Clock::Tsc);
    let stride = if tsc { block::STRIDE_TSC } else { block::STRIDE_SAMPLED };
    let mut blocks_left = u32::try_from(arena.len() / stride).unwrap_or(u32::MAX);
    let edge_times = EdgeTimes::read(times, arena.len());
    let sources = Arc::new(TreeSources { arena, stride, times: edge_times, carries, ns_per_tick: clocks.ns_per_tick });
    let mut cpu_measured = false;
    for bytes in records.chunks_exact(thread::BYTES) {
        let id = u32_at(bytes, thread::SERIAL);
        if id == 0 {
            break;
        }
        cpu_measured |= u32_at(bytes, thread::CPU_KNOWN) != 0;
        let mut found = read_thread(bytes, id, clocks);
        if let Some((name, role)) = names.get(&id) {
            found.name.clone_from(name);
            found.role = role.unwrap_or(found.role);
        }
        // Threads share the arena, so their claims together can't exceed it.
        let blocks = u32_at(bytes, thread::BLOCKS).min(blocks_left);
        blocks_left -= blocks;
        let root = TreeRoot { offset: u32_at(bytes, thread::ROOT), blocks };
        if root.offset != 0 {
            let sources = Arc::clone(&sources);
            found.tree = TreeSource::lazy(move || decode(&sources, root));
        }
        read.process.threads.push(found);
    }
    if let Some(calls) = &mut read.process.calls {
        calls.cpu_measured = cpu_measured;
    }
}

fn read_thread(bytes: &[u8], id: u32, clocks: &Clocks) -> Thread {
    let ended = u64_at(bytes, thread::ENDED);
    Thread {
        id,
        os_id: u32_at(bytes, thread::OS_ID),
        name: String::new(),
        role: thread_role(u32_at(bytes, thread::ROLE)).unwrap_or_default(),
        created_ns: u64_at(bytes, thread::CREATED).saturating_sub(clocks.mono_start),
        ended_ns: (ended != 0).then(|| ended.saturating_sub(clocks.mono_start)),
        cpu_ns: (u32_at(bytes, thread::CPU_KNOWN) != 0).then(|| u64_at(bytes, thread::CPU)),
        tree: TreeSource::default(),
    }
}
