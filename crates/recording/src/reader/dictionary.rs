//! Contents of a process's log: names, settings, remarks.

use std::collections::HashMap;

use super::parts::{Boundary, count};
use crate::codec::decode;
use crate::layout::function;
use crate::log_records::LogRecords;
use crate::model::{
    AllocationSampling, CallsInfo, EntryAssembly, Function, FunctionKind, HeapSnapshot, HookCost, Identity, JIT_NAME,
    LossReason, Module, NearName, ObjectType, OwnMemory, PairCost, PartBoundary, Process, Remark, SampleSteps, Sampler,
    TRUNCATED_NAME, ThreadRole,
};
use crate::payload::PayloadReader;
use crate::records::{
    Carry, FunctionInlined, FunctionUnloaded, InLog, Indexed, Instruments, LossDetail, PatternMatched, ThreadName,
};

/// Minimum length in bytes of a log record of a function or module.
const LEAST_RECORD: usize = 16;
/// Indices accepted beyond those that the log could hold: the writer allocates indices before it
/// writes the records, so a record may come early.
const EARLY_RECORDS: usize = 64;

/// Contents of a log, gathered record by record.
#[derive(Default)]
pub(super) struct Dictionary {
    pub(super) process: Process,
    pub(super) given: String,
    pub(super) filled: String,
    /// Names and roles of threads, by the threads' serial numbers.
    pub(super) threads: HashMap<u32, ThreadWords>,
    /// One entry for each time that an edge's count passed 2^32, in the order of the log.
    pub(super) carried: Vec<u32>,
    /// The boundaries between parts, in order.
    pub(super) boundaries: Vec<Boundary>,
    /// Details of losses beyond their reasons, in order.
    pub(super) loss_details: Vec<(LossReason, String)>,
    /// Indices from this one on are rejected: the log is too small to hold that many records.
    most: usize,
}

impl Dictionary {
    /// Reads the records of `log`. The second value is `true` if the last record is cut off.
    pub(super) fn read(log: &[u8]) -> (Self, bool) {
        let mut dictionary = Self::new(log.len());
        let mut records = LogRecords::new(log);
        for (kind, payload) in &mut records {
            let _ = dictionary.read_record(kind, payload);
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

    /// Reads a record; `None` for a kind or a value that this version does not know.
    fn read_record(&mut self, kind: u16, payload: PayloadReader<'_>) -> Option<()> {
        match kind {
            Process::LOG => self.start(decode(payload)?),
            Identity::LOG => self.process.identity = decode(payload)?,
            EntryAssembly::LOG => self.process.entry_assembly = decode(payload)?,
            Instruments::LOG => {
                let Instruments { given, filled } = decode(payload)?;
                (self.given, self.filled) = (given, filled);
            }
            Indexed::<Module>::LOG => {
                let Indexed { index, entry } = decode(payload)?;
                *slot(&mut self.process.modules, index, self.most)? = entry;
            }
            Indexed::<Function>::LOG => {
                let Indexed { index, entry } = decode(payload)?;
                *slot(&mut self.process.functions, index, self.most)? = entry;
            }
            Indexed::<ObjectType>::LOG => {
                let Indexed { index, entry } = decode(payload)?;
                *slot(&mut self.process.types, index, self.most)? = entry;
            }
            FunctionUnloaded::LOG => {
                let FunctionUnloaded { index } = decode(payload)?;
                self.process.functions.get_mut(index as usize)?.flags.unloaded = true;
            }
            FunctionInlined::LOG => {
                let FunctionInlined { index } = decode(payload)?;
                self.process.functions.get_mut(index as usize)?.flags.inlined = true;
            }
            PartBoundary::LOG => {
                self.boundaries.push(Boundary { record: decode(payload)?, carries: self.carried.len() });
            }
            Remark::LOG => self.process.remarks.push(decode(payload)?),
            NearName::LOG => self.process.near_names.push(decode(payload)?),
            PatternMatched::LOG => self.process.matched_patterns.push(decode::<PatternMatched>(payload)?.pattern),
            CallsInfo::LOG => self.settings(decode(payload)?),
            SampleSteps::LOG => self.process.calls.get_or_insert_default().sample_steps = decode(payload)?,
            HookCost::LOG => self.process.calls.get_or_insert_default().hook_cost = decode(payload)?,
            Sampler::LOG => keep_last_word(&mut self.process.samplers, decode(payload)?),
            AllocationSampling::LOG => self.process.allocation_sampling = Some(decode(payload)?),
            OwnMemory::LOG => keep_most(&mut self.process.own_memory, decode(payload)?),
            HeapSnapshot::LOG => keep_last_state(&mut self.process.snapshots, decode(payload)?),
            PairCost::LOG => self.process.calls.get_or_insert_default().pair_costs.push(decode(payload)?),
            ThreadName::LOG => {
                let ThreadName { serial, name, role } = decode(payload)?;
                let said = self.threads.entry(serial).or_default();
                said.name = name;
                said.role = ThreadRole::from_number(role).or(said.role);
            }
            LossDetail::LOG => {
                let LossDetail { reason, text } = decode(payload)?;
                self.loss_details.push((reason, text));
            }
            Carry::LOG => self.carried.push(decode::<Carry>(payload)?.edge),
            // From the future.
            _ => {}
        }
        Some(())
    }

    /// Takes over the description of the process from its start record, except the times, which
    /// come from the state.
    fn start(&mut self, start: Process) {
        let process = &mut self.process;
        (process.pid, process.parent_pid) = (start.pid, start.parent_pid);
        (process.command, process.runtime, process.processors) = (start.command, start.runtime, start.processors);
    }

    /// Takes over the settings and keeps the measured values.
    fn settings(&mut self, settings: CallsInfo) {
        let calls = self.process.calls.get_or_insert_default();
        let pair_costs = std::mem::take(&mut calls.pair_costs);
        let (hook_cost, sample_steps) = (calls.hook_cost, calls.sample_steps);
        *calls = CallsInfo { hook_cost, pair_costs, sample_steps, cpu_measured: false, ..settings };
    }

    /// Edges whose count passed 2^32, each with how often that happened; sorted by edge.
    pub(super) fn carries(&self) -> Vec<(u32, u32)> {
        count(&self.carried)
    }
}

/// Keeps the last of several records about one instrument.
fn keep_last_word(samplers: &mut Vec<Sampler>, said: Sampler) {
    match samplers.iter_mut().find(|known| known.instrument == said.instrument) {
        Some(known) => *known = said,
        None => samplers.push(said),
    }
}

/// Keeps the largest of several records about an instrument's memory.
fn keep_most(memory: &mut Vec<OwnMemory>, said: OwnMemory) {
    match memory.iter_mut().find(|known| known.instrument == said.instrument) {
        Some(known) => known.bytes = known.bytes.max(said.bytes),
        None => memory.push(said),
    }
}

/// Keeps the last of several records about one snapshot. Records of one snapshot are adjacent,
/// because snapshots are taken one at a time.
fn keep_last_state(snapshots: &mut Vec<HeapSnapshot>, said: HeapSnapshot) {
    match snapshots.last_mut().filter(|known| known.number == said.number) {
        Some(known) => *known = said,
        None => snapshots.push(said),
    }
}

/// Sorts the costs by caller, ascending, and keeps the last of several for one caller. Sorts all of
/// them at once: insertion one by one would take hours for a log with a million callers in
/// descending order.
fn keep_last_words(costs: &mut Vec<PairCost>) {
    costs.reverse();
    costs.sort_by_key(|measured| measured.caller);
    costs.dedup_by_key(|measured| measured.caller);
}

/// A thread's entries in the log.
#[derive(Default)]
pub(super) struct ThreadWords {
    pub(super) name: String,
    pub(super) role: Option<ThreadRole>,
}

/// The entry at `index`; the table grows as needed. `None` for an index that no writer would use.
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

/// Sets the names of the functions whose indices have a fixed meaning.
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

/// Names of the reasons for a suspension, indexed by the runtime's numbers (corprof.idl,
/// `COR_PRF_SUSPEND_REASON`).
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
