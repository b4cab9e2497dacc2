//! Logical paths against stacks as threads have them.

use clrscope_analysis::{Query, SAMPLES, TreeOptions, conditions, make_paths_logical, tree};
use clrscope_recording::model::{Recording, ThreadRole};
use clrscope_recording::testing::samples::HandSampled;

const BUILDER: &str = "System.Runtime.CompilerServices.AsyncTaskMethodBuilder";

/// The stack on which .NET runs the rest of an async method below the one that completed what it
/// awaited.
fn resumed(below: &str, method: &str) -> String {
    format!(
        "{below} > {BUILDER}::SetExistingTaskResult > System.Threading.Tasks.Task::RunContinuations > \
         System.Threading.Tasks.AwaitTaskContinuation::RunOrScheduleAction > {BUILDER}+AsyncStateMachineBox::MoveNext > \
         System.Threading.ExecutionContext::RunInternal > {method}"
    )
}

const POOL: &str = "libc.so!clone > System.Threading.PortableThreadPool+WorkerThread::WorkerThreadStart > \
                    System.Threading.ThreadPoolWorkQueue::Dispatch";

fn recorded(paths: &[&str]) -> Recording {
    let mut taken = HandSampled::default();
    let main = taken.thread("", ThreadRole::Main);
    for (step, path) in (1..).zip(paths) {
        taken.cpu(main, step, path);
    }
    taken.recording()
}

/// The tree of samples, a line for each node: depth, name, own samples and all.
fn nodes(recording: &Recording) -> Vec<String> {
    let query = Query { metric: Some(&SAMPLES), ..Query::default() };
    let tree = tree(recording, &query, &TreeOptions::default()).expect("a tree");
    let line = |node: &clrscope_analysis::TreeNode<'_>| {
        let depth = node.depth as usize;
        format!("{}{} {} {}", "  ".repeat(depth), node.function.name(), node.amount.own, node.amount.total)
    };
    tree.nodes.iter().map(line).collect()
}

fn logical(paths: &[&str]) -> Vec<String> {
    let mut recording = recorded(paths);
    make_paths_logical(&mut recording);
    nodes(&recording)
}

/// `await ReadConfig(); sum += Price();` showed `Price` as called by `ReadConfig`, which does
/// nothing but wait.
#[test]
fn a_method_that_completes_an_await_has_nothing_of_what_goes_on_after_it() {
    let read = resumed(&format!("{POOL} > System.Threading.TimerQueueTimer::Fire"), "App.Shop::ReadConfig");
    let price = format!("{} > App.Shop::Price", resumed(&read, "App.Shop::Checkout"));
    assert_eq!(
        logical(&[&price, &price, &read, "App.P::Main > App.Shop::Checkout"]),
        [
            "[unknown awaiter] 0 3",
            "  App.Shop::Checkout 0 2",
            "    App.Shop::Price 2 2",
            "  App.Shop::ReadConfig 1 1",
            "App.P::Main 0 1",
            "  App.Shop::Checkout 1 1",
        ]
    );
}

#[test]
fn schedulers_and_builders_have_one_frame_below_the_method_that_they_work_for() {
    let start = format!("App.P::Main > {BUILDER}::Start > System.Threading.ExecutionContext::Run");
    let allocates = format!("{start} > libcoreclr.so!JIT_New");
    let method = format!("{start} > App.P::Begin");
    assert_eq!(
        logical(&[&start, &allocates, &method, &method, &method]),
        ["App.P::Main 0 5", "  App.P::Begin 3 3", "  [async machinery] 1 2", "    JIT_New 1 1",]
    );
}

#[test]
fn the_pool_and_timers_are_roots() {
    let task = format!("{POOL} > System.Threading.Tasks.Task::ExecuteWithThreadLocal > App.P::Work");
    let timer = format!("{POOL} > System.Threading.TimerQueueTimer::Fire > App.P::Tick");
    let waits = format!("{POOL} > System.Threading.LowLevelLifoSemaphore::Wait");
    assert_eq!(
        logical(&[&task, &task, &timer, &waits, &waits, POOL]),
        [
            "[pool] 1 5",
            "  App.P::Work 2 2",
            "  System.Threading.LowLevelLifoSemaphore::Wait 2 2",
            "[timer] 0 1",
            "  App.P::Tick 1 1",
        ]
    );
}

#[test]
fn a_task_that_runs_within_the_wait_for_it_stays_below_that() {
    let wait = "App.P::Main > System.Threading.Tasks.Task::InternalWait";
    let run = format!("{wait} > System.Threading.Tasks.Task::ExecuteEntry > App.P::Work");
    assert_eq!(
        logical(&[&run]),
        ["App.P::Main 0 1", "  System.Threading.Tasks.Task::InternalWait 0 1", "    App.P::Work 1 1"]
    );
}

#[test]
fn both_kinds_of_paths_have_the_same_sum_and_the_head_says_what_is_not_known() {
    let rest = resumed(POOL, "App.P::Rest");
    let mut recording = recorded(&[&rest, &rest, "App.P::Main", POOL]);
    let total = |recording: &Recording| nodes(recording).iter().filter(|node| !node.starts_with(' ')).count();
    let unknown = |recording: &Recording| {
        let conditions = conditions(recording, &Query::default()).expect("conditions");
        conditions.sampling.iter().map(|of| (of.samples, of.unknown_awaiter)).collect::<Vec<_>>()
    };
    assert_eq!((total(&recording), unknown(&recording)), (2, vec![(4, 0)]), "clone and Main");
    make_paths_logical(&mut recording);
    assert_eq!((total(&recording), unknown(&recording)), (3, vec![(4, 2)]));
}

#[test]
fn a_recording_without_async_code_stays_as_it_is() {
    let mut recording = recorded(&["App.P::Main > System.String::Concat > libc.so!memcpy"]);
    let (before, functions) = (nodes(&recording), recording.processes[0].functions.len());
    make_paths_logical(&mut recording);
    assert_eq!((nodes(&recording), recording.processes[0].functions.len()), (before, functions));
}
