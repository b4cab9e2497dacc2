//! Everything one process writes, in its own folder of the recording.

use std::fs::DirBuilder;
use std::io;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};

use super::clock::monotonic_ns;
use super::{Arena, LogWriter, StateWriter, ThreadTable};
use crate::codec;
use crate::model::{
    AllocationSampling, CallsInfo, EntryAssembly, Function, HeapSnapshot, HookCost, Identity, LossReason, Module,
    NearName, ObjectType, OwnMemory, PairCost, PartBoundary, Process, Remark, RemarkKind, SampleSteps, Sampler,
    ThreadRole,
};
use crate::records::{
    Carry, FunctionInlined, FunctionUnloaded, InLog, Indexed, Instruments, LossDetail, PatternMatched, ThreadName,
};

/// Description of a process at its start.
#[derive(Debug, Clone, Default)]
pub struct ProcessRecord {
    /// Process id.
    pub pid: u32,
    /// Process id of the parent.
    pub parent_pid: u32,
    /// Command line.
    pub command: Vec<String>,
    /// The runtime, for instance `.NET 8.0.33`.
    pub runtime: String,
    /// Number of processors that the process may use, given its affinity and its control group.
    pub processors: u32,
    /// Monotonic nanoseconds at the start.
    pub mono_ns: u64,
    /// Unix nanoseconds at the start.
    pub unix_ns: u64,
    /// Time stamp counter at the start.
    pub ticks: u64,
    /// Machine, container and labels.
    pub identity: Identity,
}

/// The writer. Any thread may call its methods. Hooks may call only methods that say so.
#[derive(Debug)]
pub struct ProcessWriter {
    folder: PathBuf,
    log: LogWriter,
    state: StateWriter,
    threads: ThreadTable,
}

impl ProcessWriter {
    /// Makes the folder `p<PID>-<START>` in `recording` with its log, state and thread table. If
    /// the recording directory does not exist, it is made too.
    ///
    /// # Errors
    /// Errors of making folders and files.
    pub fn create(recording: &Path, process: &ProcessRecord) -> io::Result<Self> {
        make_private(recording)?;
        Self::join(recording, process)
    }

    /// Like [`create`](Self::create), but the recording directory must exist.
    ///
    /// # Errors
    /// Errors of making folders and files.
    pub fn join(recording: &Path, process: &ProcessRecord) -> io::Result<Self> {
        let folder = recording.join(format!("p{}-{}", process.pid, process.mono_ns));
        make_private(&folder)?;
        // Half a process would only puzzle the reader.
        Self::create_in(folder.clone(), process).inspect_err(|_| discard(&folder))
    }

    fn create_in(folder: PathBuf, process: &ProcessRecord) -> io::Result<Self> {
        let state = StateWriter::create(&folder.join("state.seg"))?;
        let log = LogWriter::create(&folder.join("process.log"))?;
        let threads = ThreadTable::create(&folder.join("threads.seg"))?;
        state.start(process.pid, process.mono_ns, process.unix_ns, process.ticks);
        let start = Process {
            pid: process.pid,
            parent_pid: process.parent_pid,
            command: process.command.clone(),
            runtime: process.runtime.clone(),
            processors: process.processors,
            ..Process::default()
        };
        log.append(Process::LOG, codec::encode(&start).bytes());
        log.append(Identity::LOG, codec::encode(&process.identity).bytes());
        Ok(Self { folder, log, state, threads })
    }

    /// The process's folder.
    #[must_use]
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// Removes the folder, because the process will not be recorded after all.
    pub fn discard(&self) {
        discard(&self.folder);
    }

    /// The log.
    #[must_use]
    pub fn log(&self) -> &LogWriter {
        &self.log
    }

    /// The state.
    #[must_use]
    pub fn state(&self) -> &StateWriter {
        &self.state
    }

    /// The thread table.
    #[must_use]
    pub fn threads(&self) -> &ThreadTable {
        &self.threads
    }

    /// Makes the arena of the tree, at most `limit` bytes.
    ///
    /// # Errors
    /// Errors of making the file.
    pub fn create_arena(&self, limit: u64) -> io::Result<Arena> {
        Arena::create(&self.folder.join("tree.seg"), limit)
    }

    /// Makes the store for the events of `instrument` (a word of letters and digits), at most
    /// `limit` bytes.
    ///
    /// # Errors
    /// Errors of making the file.
    pub fn create_events(&self, instrument: &str, limit: u64, keep: super::Keep) -> io::Result<super::EventStore> {
        super::EventStore::create(&self.folder.join(format!("events-{instrument}.seg")), limit, keep)
    }

    /// Like [`create_events`](Self::create_events), for events that come slowly or whose writer can
    /// wait, such as samples.
    ///
    /// # Errors
    /// Errors of making the file.
    pub fn create_slow_events(&self, instrument: &str, limit: u64, keep: super::Keep) -> io::Result<super::EventStore> {
        super::EventStore::create_slow(&self.folder.join(format!("events-{instrument}.seg")), limit, keep)
    }

    /// Like [`create_slow_events`](Self::create_slow_events), but at
    /// [low](super::EventStore::create_low) addresses if there is room.
    ///
    /// # Errors
    /// Errors of making the file.
    pub fn create_low_events(&self, instrument: &str, limit: u64) -> io::Result<super::EventStore> {
        super::EventStore::create_low(&self.folder.join(format!("events-{instrument}.seg")), limit)
    }

    /// Makes the stack table.
    ///
    /// # Errors
    /// Errors of making the file. A process has only one stack table.
    pub fn create_stacks(&self) -> io::Result<super::StackTable> {
        super::StackTable::create(&self.folder.join("stacks.seg"))
    }

    /// Makes the table of sampled times.
    ///
    /// # Errors
    /// Errors of making the file.
    pub fn create_times(&self) -> io::Result<super::TimeTable> {
        super::TimeTable::create(&self.folder.join("times.seg"))
    }

    /// The log of the trees' gains up to each boundary between parts; its file is made with the
    /// first record.
    #[must_use]
    pub fn gains(&self) -> super::GainLog {
        super::GainLog::new(self.folder.join(crate::layout::PARTS))
    }

    /// Notes the program's entry assembly.
    pub fn entry_assembly(&self, entry: &EntryAssembly) {
        self.append(entry);
    }

    /// Notes the instruments, as given and with defaults filled in.
    pub fn instruments(&self, given: &str, filled: &str) {
        self.append(&Instruments { given: given.to_owned(), filled: filled.to_owned() });
    }

    /// Notes a module under `index` (from 1).
    pub fn module(&self, index: u32, module: Module) {
        self.append(&Indexed { index, entry: module });
    }

    /// Notes a function under `index`.
    pub fn function(&self, index: u32, function: Function) {
        self.append(&Indexed { index, entry: function });
    }

    /// Notes a type of objects under `index` (from 1). If an index is noted several times, the last
    /// record is valid.
    pub fn object_type(&self, index: u32, entry: ObjectType) {
        self.append(&Indexed { index, entry });
    }

    /// Notes that a function's code was unloaded.
    pub fn function_unloaded(&self, index: u32) {
        self.append(&FunctionUnloaded { index });
    }

    /// Notes that the compiler has inlined a function into another one.
    pub fn function_inlined(&self, index: u32) {
        self.append(&FunctionInlined { index });
    }

    /// Notes a thread's name and, if known, its role.
    pub fn thread_name(&self, serial: u32, name: &str, role: Option<ThreadRole>) {
        let role = role.map_or(u32::MAX, |role| role as u32);
        self.append(&ThreadName { serial, name: name.to_owned(), role });
    }

    /// Notes a remark of the kind [`RemarkKind::Note`], which reports show in their head. `mono_ns`
    /// is its time.
    pub fn note(&self, mono_ns: u64, text: &str) {
        self.remark(mono_ns, RemarkKind::Note, text);
    }

    /// Notes a remark of any kind. `mono_ns` is its time. `text` is one sentence, without facts
    /// that follow from the kind.
    pub fn remark(&self, mono_ns: u64, kind: RemarkKind, text: &str) {
        self.append(&Remark { time_ns: mono_ns, text: text.to_owned(), kind });
    }

    /// Notes a boundary between parts of the recording.
    pub fn part_boundary(&self, boundary: &PartBoundary) {
        self.append(boundary);
    }

    /// Notes a detail of a loss beyond its reason, in one line. The loss is counted in the
    /// [state](Self::state).
    pub fn loss_detail(&self, reason: LossReason, text: &str) {
        self.append(&LossDetail { reason, text: text.to_owned() });
    }

    /// Notes that a pattern of the request, for instance `include=PATTERN`, has matched something.
    pub fn pattern_matched(&self, pattern: &str) {
        self.append(&PatternMatched { pattern: pattern.to_owned() });
    }

    /// Notes a function whose name resembles `pattern`, a pattern of the request that has matched
    /// nothing so far.
    pub fn near_name(&self, pattern: &str, name: &str) {
        self.append(&NearName { pattern: pattern.to_owned(), name: name.to_owned() });
    }

    /// Notes that an edge's count passed 2^32. Returns whether there was room. Safe in a hook.
    pub fn carry_in_hook(&self, edge: u32) -> bool {
        // The bytes of the record, without memory of its own.
        self.log.append_in_hook(Carry::LOG, &edge.to_le_bytes())
    }

    /// Notes the settings of `calls`. [`hook_cost`](Self::hook_cost) and
    /// [`pair_cost`](Self::pair_cost) note the measured costs as they become known.
    pub fn calls(&self, settings: &CallsInfo) {
        self.append(settings);
    }

    /// Notes the measured cost of a hook pair. If noted several times, the last record is valid.
    pub fn hook_cost(&self, cost: &HookCost) {
        self.append(cost);
    }

    /// Notes the weights of the samples so far. If noted several times, the last record is valid.
    pub fn sample_steps(&self, steps: &SampleSteps) {
        self.append(steps);
    }

    /// Notes how a sampling instrument takes its samples. If noted several times for an instrument,
    /// the last record is valid.
    pub fn sampler(&self, sampler: &Sampler) {
        self.append(sampler);
    }

    /// Notes how `alloc` samples allocations. If noted several times, the last record is valid.
    pub fn allocation_sampling(&self, sampling: &AllocationSampling) {
        self.append(sampling);
    }

    /// Notes the memory that an instrument uses itself. If noted several times for an instrument,
    /// the largest value is valid.
    pub fn own_memory(&self, own: &OwnMemory) {
        self.append(own);
    }

    /// Notes a snapshot of the heap. If a number is noted several times, the last record is valid.
    pub fn snapshot(&self, snapshot: &HeapSnapshot) {
        self.append(snapshot);
    }

    /// Notes the measured cost of a hook pair for calls between two functions. If noted several
    /// times for a caller, the last record is valid.
    pub fn pair_cost(&self, measured: &PairCost) {
        self.append(measured);
    }

    fn append<R: InLog>(&self, record: &R) {
        if !self.log.append(R::LOG, codec::encode(record).bytes()) {
            self.state.lose(LossReason::DictionaryFull, 1, monotonic_ns());
        }
    }
}

/// Removes a folder. Files that can't be removed stay, because the reader can handle them.
fn discard(folder: &Path) {
    let _ = std::fs::remove_dir_all(folder);
}

/// Makes a folder that only the current user can enter. An existing folder is used as it is.
fn make_private(folder: &Path) -> io::Result<()> {
    match DirBuilder::new().mode(0o700).create(folder) {
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists && folder.is_dir() => Ok(()),
        other => other,
    }
}
