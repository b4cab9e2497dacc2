//! Waits for locks, by waiting method, with their duration; from EventPipe events of the runtime.
//!
//! The file's name comes from `LOCKS_PROFILER_OUTPUT`: a profiler must not write to the program's
//! own output. An empty file appears as soon as the profiler counts waits.

use std::collections::HashMap;
use std::fmt::Write as _;
use std::ops::ControlFlow;
use std::path::PathBuf;
use std::sync::{Mutex, MutexGuard, PoisonError};

use clr_profiler::callback_args::EventPipeEvent;
use clr_profiler::{
    Callbacks, Events, FunctionId, ModuleId, NameCache, OwnThread, Profiler, ProfilerInfo, ProviderConfig, Result,
    Setup, ThreadId,
};

// The class identifier is how the runtime finds a profiler: each has its own.
clr_profiler::export_profiler!(Locks, "{9754FACF-377E-48AB-AF30-AD3E50437A82}");

/// The runtime's own provider, and its keyword for contention.
const RUNTIME: &str = "Microsoft-Windows-DotNETRuntime";
const CONTENTION: u64 = 0x4000;
/// Event numbers: a thread begins to wait, and a thread has waited.
const START: u32 = 81;
const STOP: u32 = 91;

/// The profiler the runtime makes when it loads this library.
struct Locks {
    info: ProfilerInfo,
    names: NameCache,
    output: PathBuf,
    waits: Mutex<Waits>,
}

#[derive(Default)]
struct Waits {
    /// Stacks at the begin of current waits, by thread: the functions, innermost first.
    begun: HashMap<ThreadId, Vec<FunctionId>>,
    /// Sums by stack, while its functions are loaded.
    live: HashMap<Vec<FunctionId>, Sum>,
    /// Sums by name, of waits before a module was unloaded.
    gone: HashMap<String, Sum>,
}

#[derive(Default, Clone, Copy)]
struct Sum {
    waits: u64,
    nanoseconds: f64,
}

impl Sum {
    fn add(&mut self, other: Self) {
        self.waits += other.waits;
        self.nanoseconds += other.nanoseconds;
    }
}

impl Profiler for Locks {
    fn initialize(info: &ProfilerInfo) -> Result<(Self, Setup)> {
        let output = PathBuf::from(std::env::var_os("LOCKS_PROFILER_OUTPUT").unwrap_or_else(|| "locks.txt".into()));
        let (asked, begun) = (info.clone(), output.clone());
        // The runtime accepts sessions after its startup, for which threads of this kind wait.
        OwnThread::start(info, "locks", move |_thread| {
            let contention = ProviderConfig { name: RUNTIME.into(), keywords: CONTENTION, level: 4, filter: None };
            let session = asked.event_pipe_start_session(&[contention], false);
            // A failure is ignored: the program's output is not ours.
            drop(std::fs::write(begun, session.map_or_else(|error| format!("{error}\n"), |_| String::new())));
        })?;
        let profiler = Self { info: info.clone(), names: NameCache::new(), output, waits: Mutex::default() };
        Ok((profiler, Setup::new(Events::EVENT_PIPE | Events::ENABLE_STACK_SNAPSHOT | Events::MODULE_LOADS)))
    }
}

impl Callbacks for Locks {
    fn event_pipe_event_delivered(&self, event: &EventPipeEvent<'_>) {
        // Events arrive on the thread that they describe.
        let Ok(thread) = self.info.current_thread() else { return };
        match event.event_id {
            START => {
                let mut functions = Vec::new();
                // A stack that can't be walked has no frames: the wait's function is unknown.
                let _ = self.info.stack_here(|frame| {
                    functions.push(frame.function);
                    ControlFlow::Continue(())
                });
                self.waits().begun.insert(thread, functions);
            }
            STOP => {
                // A byte of flags, two of the runtime's number, and the nanoseconds.
                let Some(bytes) = event.data.get(3..11).and_then(|bytes| bytes.try_into().ok()) else { return };
                let waits = &mut *self.waits();
                let place = waits.begun.remove(&thread).unwrap_or_default();
                let sum = Sum { waits: 1, nanoseconds: f64::from_le_bytes(bytes) };
                waits.live.entry(place).or_default().add(sum);
            }
            _ => {}
        }
    }

    // The runtime reuses identifiers, so they are turned into names while they are valid.
    fn module_unload_started(&self, module: ModuleId) {
        let live = std::mem::take(&mut self.waits().live);
        // No lock is held while the runtime is queried for names.
        let named: Vec<_> = live.into_iter().map(|(place, sum)| (self.name(&place), sum)).collect();
        self.names.module_unloaded(module);
        let gone = &mut self.waits().gone;
        named.into_iter().for_each(|(name, sum)| gone.entry(name).or_default().add(sum));
    }

    fn shutdown(&self) {
        drop(std::fs::write(&self.output, self.report()));
    }
}

impl Locks {
    fn waits(&self) -> MutexGuard<'_, Waits> {
        self.waits.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Name of the innermost function that is not in the libraries of .NET.
    fn name(&self, place: &[FunctionId]) -> String {
        let names: Vec<_> = place.iter().map(|function| self.names.function(&self.info, *function)).collect();
        let own = names.iter().find(|name| !name.name.starts_with("System.")).or(names.first());
        own.map_or_else(|| "?".to_owned(), |name| name.name.clone())
    }

    /// Waits, milliseconds and method, a line per method; the longest sum first.
    fn report(&self) -> String {
        let (live, mut sums) = {
            let waits = self.waits();
            (waits.live.clone(), waits.gone.clone())
        };
        for (place, sum) in live {
            sums.entry(self.name(&place)).or_default().add(sum);
        }
        let mut rows: Vec<_> = sums.into_iter().collect();
        rows.sort_by(|(_, one), (_, other)| other.nanoseconds.total_cmp(&one.nanoseconds));
        rows.iter().fold(String::new(), |mut text, (name, sum)| {
            let _ = writeln!(text, "{}\t{:.1}\t{name}", sum.waits, sum.nanoseconds / 1e6);
            text
        })
    }
}

#[cfg(test)]
mod tests;
