//! Names and purposes of threads.
//!
//! The program names its threads through the runtime, mostly before they run. The runtime names its
//! own threads only for the system, and only after they run.

use std::collections::HashMap;
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use clr_profiler::{Callbacks, ProfilerInfo, ThreadId};
use clrscope_recording::layout::thread;
use clrscope_recording::model::ThreadRole;
use clrscope_recording::writer::{ProcessWriter, ThreadRecord};

use crate::helper::Task;
use crate::os::threads::{name_of, thread_id};
use crate::threads;

/// Pause between two questions to the system about one thread.
const PAUSE_NS: u64 = 300_000_000;
/// Most questions to the system about one thread.
const MOST_ASKED: u32 = 3;

/// Names that the program gave to its threads.
pub struct Names {
    info: ProfilerInfo,
    writer: &'static ProcessWriter,
    given: Arc<Given>,
}

/// Names that the program gave, and the system's threads that have them.
#[derive(Default)]
struct Given(Mutex<HashMap<ThreadId, GivenName>>);

#[derive(Default)]
struct GivenName {
    name: String,
    /// The system's id of the thread; 0 before it has one.
    os_id: u32,
}

impl Given {
    fn names(&self) -> MutexGuard<'_, HashMap<ThreadId, GivenName>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The name of the thread with this id of the system.
    fn of_os_thread(&self, os_id: u32) -> Option<String> {
        let names = self.names();
        let found = names.values().find(|given| given.os_id == os_id && !given.name.is_empty());
        found.map(|given| given.name.clone())
    }
}

impl Names {
    /// Creates an empty list of names.
    pub fn new(info: &ProfilerInfo, writer: &'static ProcessWriter) -> Self {
        Self { info: info.clone(), writer, given: Arc::default() }
    }

    fn give(&self, thread: ThreadId, change: impl FnOnce(&mut GivenName)) -> String {
        let mut names = self.given.names();
        let given = names.entry(thread).or_default();
        change(given);
        given.name.clone()
    }
}

impl Callbacks for Names {
    /// A managed thread got a name, often before it has a thread of the system.
    fn thread_name_changed(&self, thread: ThreadId, name: &str) {
        let os_id = self.info.os_thread(thread).unwrap_or(0);
        self.give(thread, |given| *given = GivenName { name: name.to_owned(), os_id });
        if let Some(record) = Some(os_id).filter(|&id| id != 0).and_then(|id| self.writer.threads().find(id)) {
            self.writer.thread_name(record.serial(), name, None);
        }
    }

    fn thread_assigned_to_os_thread(&self, thread: ThreadId, os_thread: u32) {
        let is_here = thread_id() == os_thread;
        let record = if is_here { threads::current() } else { self.writer.threads().find(os_thread) };
        let name = self.give(thread, |given| given.os_id = os_thread);
        if let Some(record) = record.filter(|_| !name.is_empty()) {
            self.writer.thread_name(record.serial(), &name, None);
        }
    }

    /// A managed thread is gone, and its id may be reused.
    fn thread_destroyed(&self, thread: ThreadId) {
        self.given.names().remove(&thread);
    }
}

/// One thread whose name in the system is not known yet.
struct UnnamedThread {
    record: ThreadRecord,
    due_ns: u64,
    asked: u32,
    /// Whether the name that the program gave was looked up.
    is_looked_up: bool,
}

/// The task that asks the system for the names of threads, on the helper thread.
pub struct SystemNames {
    writer: &'static ProcessWriter,
    given: Arc<Given>,
    /// The agent was attached after threads were named. Only the system's names are left, which are
    /// cut after 15 bytes.
    is_late: bool,
    seen: usize,
    unnamed: Vec<UnnamedThread>,
}

impl SystemNames {
    /// `names` has the names that the program gave to threads without a record so far. `is_late`:
    /// the agent was attached to a program that was running already.
    pub fn new(writer: &'static ProcessWriter, names: &Names, is_late: bool) -> Self {
        Self { writer, given: Arc::clone(&names.given), is_late, seen: 0, unnamed: Vec::new() }
    }

    fn meet_new_threads(&mut self, now: u64) {
        while let Some(record) = self.writer.threads().begun_at(&mut self.seen) {
            self.seen += 1;
            self.unnamed.push(UnnamedThread { record, due_ns: now, asked: 0, is_looked_up: false });
        }
    }
}

impl Task for SystemNames {
    fn slow_tick(&mut self, now: u64) {
        self.meet_new_threads(now);
        let (writer, given, is_late) = (self.writer, &self.given, self.is_late);
        self.unnamed.retain_mut(|thread| thread.due_ns > now || !thread.ask(writer, given, is_late, now));
    }
}

impl UnnamedThread {
    fn is_main(&self) -> bool {
        self.record.u32(thread::ROLE).load(Ordering::Relaxed) == ThreadRole::Main as u32
    }

    /// Asks for the name. Returns whether no more questions are needed.
    fn ask(&mut self, writer: &ProcessWriter, given: &Given, is_late: bool, now: u64) -> bool {
        self.asked += 1;
        self.due_ns = now + PAUSE_NS;
        let os_id = self.record.u32(thread::OS_ID).load(Ordering::Relaxed);
        if os_id != 0 {
            // The program may have named it while nothing was recorded. Where both sources have the
            // name, they agree.
            let is_first = !std::mem::replace(&mut self.is_looked_up, true);
            let named = if is_first { given.of_os_thread(os_id) } else { None };
            let name = name_of(os_id);
            // Threads without a name of their own have the name of the process.
            let is_name = || is_first && is_late && !name.is_empty() && name != name_of(std::process::id());
            let named = named.or_else(|| is_name().then(|| name.clone()));
            named.into_iter().for_each(|name| writer.thread_name(self.record.serial(), &name, None));
            if let Some(role) = role_of(&name).filter(|_| !self.is_main()) {
                self.record.set_role(role);
                writer.thread_name(self.record.serial(), &name, Some(role));
                return true;
            }
        }
        let ended = self.record.u64(thread::ENDED).load(Ordering::Relaxed) != 0;
        ended || self.asked > MOST_ASKED
    }
}

/// The role of a thread that the runtime or the framework has named. Such names begin with `.NET `
/// and are cut after 15 bytes.
fn role_of(name: &str) -> Option<ThreadRole> {
    let rest = name.strip_prefix(".NET ")?;
    Some(match rest {
        // Tasks with a thread of their own, which the framework names while they run.
        _ if rest.starts_with("Long") => ThreadRole::User,
        _ if rest.starts_with("Finalizer") => ThreadRole::Finalizer,
        _ if rest.starts_with("Tiered") => ThreadRole::Tiering,
        _ if rest.starts_with("TP") || rest.starts_with("ThreadPool") || rest.starts_with("Timer") => ThreadRole::Pool,
        _ if rest.contains("GC") => ThreadRole::Gc,
        _ => ThreadRole::Runtime,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The first screen of `wall` was once full of idle threads of the runtime.
    #[test]
    fn threads_that_the_runtime_names_serve_it_unless_they_run_a_task() {
        let runtime = ["SynchManag", "EventPipe", "DebugPipe", "Debugger", "SigHandler", "Sockets", "File Watch"];
        for name in runtime {
            assert_eq!(role_of(&format!(".NET {name}")), Some(ThreadRole::Runtime), "{name}");
        }
        let others = [("Long Runni", ThreadRole::User), ("TP Worker", ThreadRole::Pool), ("Server GC", ThreadRole::Gc)];
        for (name, role) in others {
            assert_eq!(role_of(&format!(".NET {name}")), Some(role), "{name}");
        }
        assert_eq!([role_of("dotnet"), role_of("Kestrel Timer")], [None; 2]);
    }
}
