//! The stacks of all threads, a hundred times a second, as collapsed stacks: `main;Work;Step 42`.
//!
//! The file's name comes from `SAMPLER_PROFILER_OUTPUT`: a profiler must not write to the program's
//! own output.

use std::collections::HashMap;
use std::fmt::Write as _;
use std::ops::ControlFlow;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use clr_profiler::{
    Callbacks, Events, FunctionId, ModuleId, NameCache, OwnThread, Profiler, ProfilerInfo, Result, Setup, StackWalk,
    ThreadId,
};

// The class identifier is how the runtime finds a profiler: each has its own.
clr_profiler::export_profiler!(Sampler, "{9A36C0D4-57E8-4F1B-8B02-61D7E94A3C5D}");

const INTERVAL: Duration = Duration::from_millis(10);
/// Maximum time that a sample waits for a running garbage collection.
const PATIENCE: Duration = Duration::from_millis(100);

/// Random pauses, uniformly distributed between half and one and a half of the interval. At a
/// regular interval, a loop whose rounds take as long as the interval, or a third of it, would
/// always be sampled at the same places.
fn pauses() -> impl Iterator<Item = Duration> {
    // The fractions of the multiples of the golden ratio fill the range from 0 to 1 without gaps.
    (0_u32..).map(|number| INTERVAL / 2 + INTERVAL.mul_f64((f64::from(number) * 0.618_033_988_749_895).fract()))
}

/// The profiler the runtime makes when it loads this library.
struct Sampler(Arc<State>);

/// State shared with the thread that takes the samples.
struct State {
    info: ProfilerInfo,
    names: NameCache,
    samples: Mutex<Samples>,
}

#[derive(Default)]
struct Samples {
    threads: HashMap<ThreadId, String>,
    /// Counts by thread name and frames, outermost first.
    stacks: HashMap<String, u64>,
    taken: u64,
    /// Samples that were not taken, for instance because the runtime was busy for longer than
    /// [`PATIENCE`].
    missed: u64,
}

/// A thread and the functions on its stack, innermost first.
type Stack = (ThreadId, Vec<FunctionId>);

impl Profiler for Sampler {
    fn initialize(info: &ProfilerInfo) -> Result<(Self, Setup)> {
        let state = Arc::new(State { info: info.clone(), names: NameCache::new(), samples: Mutex::default() });
        let own = Arc::clone(&state);
        OwnThread::start(info, "sampler", move |thread| {
            for pause in pauses() {
                if !thread.sleep(pause) {
                    break;
                }
                own.sample();
            }
        })?;
        // Other events would be requested here, and arrive in other methods of `Callbacks`.
        Ok((Self(state), Setup::new(Events::ENABLE_STACK_SNAPSHOT | Events::THREADS | Events::MODULE_LOADS)))
    }
}

impl Callbacks for Sampler {
    fn thread_name_changed(&self, thread: ThreadId, name: &str) {
        self.0.samples().threads.insert(thread, name.to_owned());
    }

    // The runtime reuses identifiers, so data stored under them must be removed with the thread or
    // the module.
    fn thread_destroyed(&self, thread: ThreadId) {
        self.0.samples().threads.remove(&thread);
    }

    fn module_unload_started(&self, module: ModuleId) {
        self.0.names.module_unloaded(module);
    }

    fn shutdown(&self) {
        if let Some(path) = std::env::var_os("SAMPLER_PROFILER_OUTPUT") {
            // A failure is ignored: the program's output is not ours.
            drop(std::fs::write(path, self.0.report()));
        }
    }
}

impl State {
    fn samples(&self) -> MutexGuard<'_, Samples> {
        self.samples.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn sample(&self) {
        let Ok(stacks) = self.stacks() else {
            self.samples().missed += 1;
            return;
        };
        // The program runs again: now names may be looked up.
        for (thread, functions) in stacks {
            let names: Vec<_> = functions.iter().rev().map(|f| self.names.function(&self.info, *f)).collect();
            let mut samples = self.samples();
            let mut stack = samples.threads.get(&thread).cloned().unwrap_or_else(|| "thread".to_owned());
            for name in &names {
                stack += ";";
                stack += &name.name;
            }
            *samples.stacks.entry(stack).or_default() += 1;
        }
        self.samples().taken += 1;
    }

    /// The stacks of all threads that run managed code, taken while the program is suspended.
    fn stacks(&self) -> Result<Vec<Stack>> {
        let suspended = self.info.suspend_within(PATIENCE)?;
        let mut stacks = Vec::new();
        for thread in self.info.threads()? {
            let mut functions = Vec::new();
            let walk = suspended.stack_of(thread, |frame| {
                functions.push(frame.function);
                ControlFlow::Continue(())
            });
            if walk == Ok(StackWalk::Complete) {
                stacks.push((thread, functions));
            }
        }
        Ok(stacks)
    }

    fn report(&self) -> String {
        let samples = self.samples();
        let mut rows: Vec<_> = samples.stacks.iter().collect();
        rows.sort_by(|a, b| (b.1, a.0).cmp(&(a.1, b.0)));
        let mut text = String::new();
        for (stack, count) in rows {
            let _ = writeln!(text, "{stack} {count}");
        }
        let _ = writeln!(text, "# {} samples, {} missed", samples.taken, samples.missed);
        text
    }
}

#[cfg(test)]
mod tests;
