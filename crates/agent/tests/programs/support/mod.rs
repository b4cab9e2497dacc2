//! Runs a program under the agent without the launcher, and asks the recording.

pub(crate) mod counted;
pub(crate) mod flow;
pub(crate) mod known;
pub(crate) mod said;

use std::collections::BTreeMap;
use std::fmt::Debug;
use std::path::{Path, PathBuf};
use std::process::Command;

use clrscope_contract::request::{AGENT_CLSID, AGENT_VARIABLE, NOTIFICATION_CLSID};
use clrscope_recording::model::{CallTree, Process, Recording};
use clrscope_testkit::{
    Expectations, Finished, Runtime, agent, fixture, load_profiler, run, scratch, start_of_process,
};

/// One finished run: what the program did and what was recorded.
pub(crate) struct Run {
    pub(crate) finished: Finished,
    pub(crate) recording: Recording,
    folder: tempfile::TempDir,
}

impl Run {
    /// Start of the one process by the monotonic clock, nanoseconds: the name of its folder ends
    /// with it (`pPID-START`).
    pub(crate) fn start_ns(&self) -> u64 {
        start_of_process(&self.folder.path().join(RECORDING)).expect("a folder of the process")
    }
}

/// Name of the recording directory of a run.
const RECORDING: &str = "run.clrs.d";

/// Variable that has the agent of these tests run as a notification-only profiler, with another
/// profiler in the main slot: the library of that one, `=` and its class id.
pub(crate) const MAIN_PROFILER: &str = "CLRSCOPE_TEST_MAIN_PROFILER";

/// Whether another profiler has the main slot in these tests.
pub(crate) fn is_notification_only() -> bool {
    std::env::var_os(MAIN_PROFILER).is_some()
}

/// Sets the variables that load the agent into whatever `command` starts.
pub(crate) fn under_agent(command: &mut Command, request: &str, out: &Path) {
    match std::env::var(MAIN_PROFILER) {
        Err(_) => load_profiler(command, agent(), AGENT_CLSID),
        Ok(main) => {
            let (library, class) = main.split_once('=').expect("a library and its class");
            load_profiler(command, Path::new(library), class);
            notify_agent(command);
        }
    }
    // Test folders may lie where others can write; what that means has tests of its own.
    command.env(AGENT_VARIABLE, format!("{request};trust-writable;out={}", out.display()));
}

/// Sets the variable that loads the agent as a notification-only profiler.
pub(crate) fn notify_agent(command: &mut Command) {
    command.env("CORECLR_ENABLE_NOTIFICATION_PROFILERS", "1");
    // Without the semicolon .NET 9 and later load nothing.
    command.env("CORECLR_NOTIFICATION_PROFILERS", format!("{}={NOTIFICATION_CLSID};", agent().display()));
}

/// The program does what it does without us.
pub(crate) fn assert_unchanged(with: &Finished, bare: &Finished, place: &str) {
    // One comparison of everything: a program that died shows how.
    let all = |run: &Finished| (run.status, run.stdout_text(), run.stderr_text());
    assert_eq!(all(with), all(bare), "{place}: exit status, stdout, stderr, with the agent and bare");
}

/// Runs a fixture under the agent.
pub(crate) fn record(runtime: &Runtime, name: &str, request: &str) -> Run {
    record_with(runtime, name, request, &[])
}

/// Runs a fixture with arguments under the agent.
pub(crate) fn record_with(runtime: &Runtime, name: &str, request: &str, arguments: &[&str]) -> Run {
    let mut command = runtime.command(&fixture(name));
    command.args(arguments);
    record_command(runtime, name, request, command)
}

/// Runs a fixture under the agent with variables in its environment.
pub(crate) fn record_in(runtime: &Runtime, name: &str, request: &str, environment: &[(&str, &str)]) -> Run {
    let mut command = runtime.command(&fixture(name));
    command.envs(environment.iter().copied());
    record_command(runtime, name, request, command)
}

/// Runs a fixture where [`confine`](clrscope_testkit::confine) puts its command; nothing where it
/// can't.
pub(crate) fn record_confined(
    runtime: &Runtime,
    name: &str,
    request: &str,
    confine: impl FnOnce(&Command) -> Option<Command>,
) -> Option<Run> {
    let command = confine(&runtime.command(&fixture(name)))?;
    Some(record_command(runtime, name, request, command))
}

/// Runs a command under the agent.
pub(crate) fn record_command(runtime: &Runtime, name: &str, request: &str, mut command: Command) -> Run {
    let folder = scratch();
    let out: PathBuf = folder.path().join(RECORDING);
    under_agent(&mut command, request, &out);
    let finished = run(command);
    let recording = clrscope_recording::open(&out)
        .unwrap_or_else(|error| panic!("{name} on {}: {error}\n{}", runtime.version, finished.stderr_text()));
    Run { finished, recording, folder }
}

/// Sums over all threads of a process, by name.
#[derive(Default)]
pub(crate) struct Sums {
    pub(crate) calls: BTreeMap<String, u64>,
    pub(crate) edges: BTreeMap<(String, String), u64>,
    pub(crate) under: BTreeMap<(String, String), u64>,
    pub(crate) thread_calls: BTreeMap<(String, String), u64>,
    pub(crate) max_recursion: BTreeMap<String, u64>,
}

impl Sums {
    /// Adds up a process; `module` is the fixture's own assembly.
    pub(crate) fn of_process(process: &Process, module: &str) -> Self {
        let mut sums = Self::default();
        for thread in &process.threads {
            sums.add(process, module, &thread.name, &thread.tree.load());
        }
        sums
    }

    fn add(&mut self, process: &Process, module: &str, thread: &str, tree: &CallTree) {
        let name = |node: u32| process.functions[tree.functions()[node as usize] as usize].name.clone();
        let own = |node: u32| {
            let function = &process.functions[tree.functions()[node as usize] as usize];
            process.modules.get(function.module as usize).is_some_and(|m| m.name == module)
        };
        // Preorder: the path to a node is what is left of the path to the node before it.
        let (mut path, mut on_path) = (Vec::<u32>::new(), BTreeMap::<String, u64>::new());
        let mut nearest = vec![0; tree.len()];
        for node in 1..tree.len() as u32 {
            let (calls, parent) = (tree.calls(node), tree.parents()[node as usize]);
            while path.last().is_some_and(|&top| top != parent) {
                let left = path.pop().map(name);
                *left.and_then(|left| on_path.get_mut(&left)).expect("on the path") -= 1;
            }
            nearest[node as usize] = if parent != 0 && own(parent) { parent } else { nearest[parent as usize] };
            *self.calls.entry(name(node)).or_default() += calls;
            *self.edges.entry((name(parent), name(node))).or_default() += calls;
            *self.thread_calls.entry((thread.to_owned(), name(node))).or_default() += calls;
            if nearest[node as usize] != 0 {
                *self.under.entry((name(nearest[node as usize]), name(node))).or_default() += calls;
            }
            let depth = on_path.entry(name(node)).or_default();
            *depth += 1;
            let deepest = self.max_recursion.entry(name(node)).or_default();
            *deepest = (*depth).max(*deepest);
            path.push(node);
        }
    }
}

/// Differences between the recording and what the fixture expects.
pub(crate) fn compare(expected: &Expectations, sums: &Sums) -> Vec<String> {
    let mut wrong = Vec::new();
    let mut differ = |what: &str, subject: &dyn Debug, truth: u64, found: Option<&u64>| {
        if found.copied().unwrap_or(0) != truth {
            wrong.push(format!("{what} {subject:?}: {truth} in truth, {found:?} recorded"));
        }
    };
    for (name, truth) in &expected.calls {
        differ("calls", name, *truth, sums.calls.get(name));
    }
    for (edge, truth) in &expected.edges {
        differ("edge", edge, *truth, sums.edges.get(edge));
    }
    for (edge, truth) in &expected.under {
        differ("under", edge, *truth, sums.under.get(edge));
    }
    for row in &expected.thread_calls {
        let key = (row.thread.clone(), row.name.clone());
        differ("thread calls", &key, row.count, sums.thread_calls.get(&key));
    }
    for (name, truth) in &expected.max_recursion {
        differ("recursion", name, *truth, sums.max_recursion.get(name));
    }
    wrong
}
