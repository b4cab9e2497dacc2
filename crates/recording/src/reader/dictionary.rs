//! What the log of a process says: its names, its settings, its remarks.

use std::collections::HashMap;

use super::log::LogRecords;
use super::numbers::{function_kind, source_kind, thread_role};
use crate::layout::{function, record};
use crate::model::{
    CallsInfo, Clock, Function, FunctionKind, JIT_NAME, LossReason, Module, PairCost, Process, TRUNCATED_NAME,
    ThreadRole,
};
use crate::payload::PayloadReader;

/// The least a log record of a function or module takes.
const LEAST_RECORD: usize = 16;
/// Indices are given out before records are written, so that a record may come early.
const EARLY_RECORDS: usize = 64;

/// What the log says, gathered record by record.
#[derive(Default)]
pub(super) struct Dictionary {
    pub(super) process: Process,
    pub(super) given: String,
    pub(super) filled: String,
    /// What was said of threads, by serial number.
    pub(super) threads: HashMap<u32, ThreadWords>,
    /// A word for each time that an edge's count passed 2^32.
    carried: Vec<u32>,
    /// What was said of losses beyond their reasons, in order.
    pub(super) loss_details: Vec<(LossReason, String)>,
    /// Indices from here on are not believed: the log could not hold as many records.
    most: usize,
}

impl Dictionary {
    /// Reads the records of `log`; at the second place whether the last of them is cut off.
    pub(super) fn read(log: &[u8]) -> (Self, bool) {
        let mut dictionary = Self::new(log.len());
        let mut records = LogRecords::new(log);
        for (kind, payload) in &mut records {
            dictionary.take(kind, payload);
        }
        name_fixed_functions(&mut dictionary.process.functions);
        if let Some(calls) = &mut dictionary.process.calls {
            keep_last_words(&mut calls.pair_costs);
        }
        (dictionary, records.was_cut())
    }

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
                self.given = p.text();
                self.filled = p.text();
            }
            record::MODULE => self.take_module(p),
            record::FUNCTION => self.take_function(p),
            record::FUNCTION_UNLOADED => {
                if let Some(function) = self.process.functions.get_mut(p.u32() as usize) {
                    function.flags.unloaded = true;
                }
            }
            record::REMARK => self.process.remarks.push(p.remark()),
            record::PATTERN_MATCHED => self.process.matched_patterns.push(p.text()),
            record::CALLS => self.take_calls(p),
            record::HOOK_COST => self.process.calls.get_or_insert_default().hook_cost = p.cost(),
            record::PAIR_COST => self.take_pair_cost(p),
            record::THREAD_NAME => {
                let said = self.threads.entry(p.u32()).or_default();
                said.name = p.text();
                said.role = thread_role(p.u32()).or(said.role);
            }
            record::LOSS_DETAIL => {
                let reason = LossReason::from_number(p.u32());
                self.loss_details.extend(reason.map(|reason| (reason, p.text())));
            }
            record::CARRY => self.carried.push(p.u32()),
            // From the future.
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

    fn take_pair_cost(&mut self, mut p: PayloadReader<'_>) {
        let measured = PairCost { caller: p.u32(), callee: p.u32(), cost: p.cost() };
        self.process.calls.get_or_insert_default().pair_costs.push(measured);
    }

    /// Edges whose count passed 2^32, with how often, sorted by edge.
    pub(super) fn carries(&mut self) -> Vec<(u32, u32)> {
        let mut edges = std::mem::take(&mut self.carried);
        edges.sort_unstable();
        edges.chunk_by(|a, b| a == b).map(|same| (same[0], same.len() as u32)).collect()
    }
}

/// By caller, in ascending order; of several about one caller the last. At once, not one by one: a log that lists a
/// million callers downwards would take hours.
fn keep_last_words(costs: &mut Vec<PairCost>) {
    costs.reverse();
    costs.sort_by_key(|measured| measured.caller);
    costs.dedup_by_key(|measured| measured.caller);
}

/// What the log says of a thread.
#[derive(Default)]
pub(super) struct ThreadWords {
    pub(super) name: String,
    pub(super) role: Option<ThreadRole>,
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
    set(function::JIT, JIT_NAME, FunctionKind::Runtime);
    set(function::TRUNCATED, TRUNCATED_NAME, FunctionKind::Runtime);
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
