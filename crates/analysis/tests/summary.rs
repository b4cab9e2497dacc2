//! `summary` and the conditions of a recording.

use clrscope_analysis::{Query, TreeOptions, conditions, functions, summary, tree};
use clrscope_recording::model::{Clock, Exit, HookCost, Loss, LossReason, Module, Recording};
use clrscope_recording::testing::ascii_trees::{recording, recording_with};

fn sentences(recording: &Recording, query: &Query) -> Vec<(String, u64)> {
    let findings = summary(recording, query).expect("a summary").findings;
    findings.into_iter().map(|f| (f.text, (f.share * 1000.0).round() as u64)).collect()
}

/// The recording with clocks that are as fine as its times, which are nanoseconds: the bounds of
/// those are as wide as of milliseconds by a clock that steps a thousand times a second.
fn finely(mut recording: Recording) -> Recording {
    recording.processes.iter_mut().filter_map(|process| process.calls.as_mut()).for_each(|calls| calls.interval_ns = 1);
    recording
}

#[test]
fn it_says_what_stands_out() {
    let r = finely(recording(
        "thread 1\n  Main 1 10 10\n    Load 1 10 10\n      Parse 900 500 400\n      libc!read 3 100 1\n    [JIT] 50 250 250\n    [suspended: GC] 2 130\n    (truncated) 46\n",
    ));
    let expected = [
        ("Parse and the framework code that it calls used 59.6 % of the CPU time", 596),
        ("Parse was called 900 times, 94.6 % of all calls", 946),
        ("4.8 % of the calls ended in (truncated): the memory limit was reached", 48),
    ];
    assert_eq!(sentences(&r, &Query::default()), expected.map(|(text, share)| (text.to_owned(), share)));
    let view = summary(&r, &Query::default()).expect("a summary");
    let found: Vec<_> = view.elsewhere.iter().map(|row| (row.kind.name(), row.time_ns, row.count)).collect();
    let expected = [("other", Some(199), None), ("compilation", Some(250), Some(50)), ("suspension", Some(130), None)];
    assert_eq!(found, expected);
}

#[test]
fn it_says_what_the_profiler_took() {
    let cost = HookCost { enter_ns: 2.0, leave_ns: 1.0, pair_low_ns: 2.0, pair_high_ns: 4.0 };
    let r = recording_with("thread 1\n  Main 1 1000 1000\n    A 100 200 200\n", cost);
    let last = |query: &Query| sentences(&r, query).last().cloned();
    let taken = last(&Query::default());
    let what = "25.1 % of the measured thread time was the profiler's own and";
    assert_eq!(taken, Some((format!("{what} has been taken out"), 251)));
    let left = last(&Query { raw: true, ..Query::default() });
    assert_eq!(left, Some((format!("{what} is left in"), 251)));
}

/// A recording whose functions called `System.` are of the framework.
fn with_framework(trees: &str) -> Recording {
    let mut r = recording(trees);
    let process = &mut r.processes[0];
    process.modules.push(Module { name: "System.Private.CoreLib".into(), framework: true, ..Module::default() });
    let module = process.modules.len() as u32 - 1;
    process.functions.iter_mut().filter(|f| f.name.starts_with("System.")).for_each(|f| f.module = module);
    r
}

/// The summary of a program that loses its time in its own code, with the framework code it calls,
/// and in its locks; not in the threads of the pool that wait for work, which once came first.
#[test]
fn own_code_comes_first_and_idle_threads_are_no_finding() {
    let mut r = finely(with_framework(
        "thread 1\n  Main 1 10 10\n    Work 1 50 50\n      System.Sort 9 300 300\n        Compare 90 40 40\n    Pay 1 5 5\n      \
         System.Threading.Monitor::Enter 1 1 1\n        System.Threading.Monitor::Enter_Slowpath 1 600 0\n\
         thread 2\n  System.Threading.PortableThreadPool+WorkerThread::WorkerThreadStart 1 1 1\n    \
         System.Threading.LowLevelLifoSemaphore::Wait 1 9000 0\n      System.Threading.LowLevelLifoSemaphore::WaitNative 1 9000 0\n",
    ));
    r.run.duration_ns = 10_000;
    let view = summary(&r, &Query::default()).expect("a summary");
    let own: Vec<_> = view.own.iter().map(|own| (own.row.function.name(), own.work_ns, own.waited_ns)).collect();
    assert_eq!(own, [("Work", 350, 0), ("Compare", 40, 0), ("Main", 10, 0), ("Pay", 6, 600)]);
    assert_eq!(view.framework[0].function.name(), "System.Sort");
    let waits: Vec<_> = view
        .elsewhere
        .iter()
        .map(|row| (row.kind.name(), row.time_ns, row.most.map(|(f, ns)| (f.name(), ns))))
        .collect();
    assert_eq!(waits, [("lock", Some(600), Some(("Pay", 600))), ("idle", Some(18_000), None)]);
    let found = sentences(&r, &Query::default());
    // 600 ns of a lock are more than 350 ns of work.
    assert_eq!(found[0].0, "in calls from Pay, threads spent 600 ns waiting for locks");
    assert_eq!(found[1].0, "Work and the framework code that it calls used 86.0 % of the CPU time");
    assert!(found.iter().all(|(text, _)| !text.contains("LowLevel")), "{found:?}");
}

/// A static constructor of 1.33 ms, charged with 78.8 ms of CPU time by one late sample, was the
/// first line of a summary: "used 18.1 % of the CPU time". Its bounds went from 0 to 278 ms.
#[test]
fn a_call_that_one_late_sample_charged_is_no_finding() {
    let ms = 1_000_000;
    let (constructor, work) = (format!("{} {}", 1_330_000, 788 * ms / 10), format!("{} {}", 900 * ms, 356 * ms));
    let mut r = recording(&format!("thread 1\n  Main 1 {ms} {ms}\n    .cctor 1 {constructor}\n    Work 300 {work}\n"));
    let calls = r.processes[0].calls.as_mut().expect("calls");
    (calls.sample_steps.cpu_ns, calls.clock) = (20 * ms, Clock::Tsc);
    let view = summary(&r, &Query::default()).expect("a summary");
    let texts: Vec<&str> = view.findings.iter().map(|finding| finding.text.as_str()).collect();
    assert!(texts.iter().all(|text| !text.contains(".cctor and")), "{texts:?}");
    assert_eq!(texts[0], "Work and the framework code that it calls used 99.5 % of the CPU time");
    let row = view.own.iter().find(|own| own.row.function.name() == ".cctor").expect("a row").row;
    assert_eq!((row.times.exclusive_ns, row.times.exclusive_cpu_ns), (1_330_000, Some(1_330_000)));
    assert_eq!(row.times.exclusive_cpu_bounds_ns, Some((0, 1_330_000)), "as wide as its wall time");
    assert_eq!(view.conditions.totals.cpu_ns, Some(ms + 788 * ms / 10 + 356 * ms), "no CPU time is lost");
    let of_low = view.findings.iter().filter(|finding| finding.bounds.0 <= 0.0);
    assert_eq!(of_low.count(), 0, "{:?}", view.findings);
}

/// A thread works or waits: rows of each function of one thread, and all paths of its tree, have at
/// most as much CPU time as wall time.
#[test]
fn cpu_time_of_one_thread_is_never_more_than_its_wall_time() {
    let r = recording(
        "thread 1\n  Main 1 100 900\n    Parse 9 50 10\n      Read 1 500 20\n    Load 1 40 90\n      Parse 2 900 700\n",
    );
    let rows = functions(&r, &Query { per_thread: true, ..Query::default() }).expect("rows").rows;
    let times: Vec<_> = rows.iter().map(|row| (row.function.name(), row.times)).collect();
    assert_eq!(times.len(), 4);
    for (name, times) in times {
        assert!(times.exclusive_cpu_ns <= Some(times.exclusive_ns), "{name} {times:?}");
        assert!(times.inclusive_cpu_ns <= Some(times.inclusive_ns), "{name} {times:?}");
        let highest = times.exclusive_cpu_bounds_ns.map(|bounds| bounds.1);
        assert!(highest <= Some(times.exclusive_bounds_ns.1), "{name} {times:?}");
    }
    let tree = tree(&r, &Query::default(), &TreeOptions::default()).expect("a tree");
    for node in &tree.nodes {
        let times = node.times;
        assert!(times.exclusive_cpu_ns <= Some(times.exclusive_ns), "{} {times:?}", node.function.name());
        assert!(times.inclusive_cpu_ns <= Some(times.inclusive_ns), "{} {times:?}", node.function.name());
    }
    let all =
        tree.nodes.iter().filter(|node| node.depth == 0).filter_map(|node| node.times.inclusive_cpu_ns).sum::<u64>();
    assert_eq!(all, 1_590, "all that the thread used, of 1,590 ns");
}

/// A lock that holds a tenth of the run up is said however many idle threads there are: a share of
/// all thread time was lost among theirs.
#[test]
fn waits_are_measured_by_the_run_and_not_by_its_threads() {
    let mut r = with_framework(
        "thread 1\n  Pay 1 5 5\n    System.Threading.Monitor::Enter 1 1200000000 0\n    \
         System.Threading.Thread::Sleep 1 11900000000 0\n\
         thread 2\n  System.Threading.TimerQueue::TimerThread 1 900000000000 0\n",
    );
    r.run.duration_ns = 12_000_000_000;
    let found: Vec<_> = sentences(&r, &Query::default());
    let expected = [
        ("in calls from Pay, threads spent 1.20 s waiting for locks", 100),
        ("in calls from Pay, threads spent 11.9 s sleeping", 992),
    ];
    assert!(expected.iter().all(|(text, share)| found.contains(&((*text).to_owned(), *share))), "{found:?}");
}

/// A service whose requests waited 218 ms for a lock said nothing: it ran for nine seconds and was
/// asked for less than half of them.
#[test]
fn waits_of_requests_are_said_where_a_service_is_idle_most_of_the_time() {
    let lasting = |ns: u64| {
        let mut r = with_framework(&format!("thread 1\n  Pay 1 5 5\n    System.Threading.Monitor::Enter 1 {ns} 0\n"));
        r.run.duration_ns = 9_000_000_000;
        sentences(&r, &Query::default()).into_iter().filter(|(text, _)| text.contains("waiting for locks")).count()
    };
    assert_eq!((lasting(218_000_000), lasting(90_000_000)), (1, 0));
}

/// Threads of the pool spin before they sleep: 11.7 % of the CPU time of a small program was its
/// only finding.
#[test]
fn the_spinning_of_idle_threads_is_no_finding() {
    let r = with_framework(
        "thread 1\n  Main 1 1 1\n    System.Sort 9 30 30\n\
         thread 2\n  System.Threading.LowLevelLifoSemaphore::WaitNative 9 500 500\n",
    );
    let found = sentences(&r, &Query::default());
    assert!(found.iter().all(|(text, _)| !text.contains("LowLevel")), "{found:?}");
}

#[test]
fn own_functions_without_work_are_no_rows_beside_others() {
    let r = with_framework("thread 1\n  Main 1 10 10\n    Empty 5\n    Work 1 9 9\n");
    let names = |r: &Recording| -> Vec<String> {
        let view = summary(r, &Query::default()).expect("a summary");
        assert!(view.own_functions > view.own.len() || view.own.iter().all(|own| own.work_ns == 0));
        view.own.iter().map(|own| own.row.function.name().to_owned()).collect()
    };
    assert_eq!(names(&r), ["Main", "Work"]);
    assert_eq!(names(&with_framework("thread 1\n  Main 1\n    Empty 5\n")), ["Empty", "Main"]);
}

#[test]
fn a_count_that_is_a_lower_bound_is_said_to_be_one() {
    let mut r = recording("thread 1\n  Main 1 10 10\n    Get 90\n");
    let get = r.processes[0].functions.iter_mut().find(|function| function.name == "Get");
    get.expect("the function").flags.inlined = true;
    let found = sentences(&r, &Query::default());
    let text = "Get was called at least 90 times, 98.9 % of all calls";
    assert!(found.iter().any(|(found, _)| found == text), "{found:?}");
}

/// 1,200 exceptions of a service were not to be seen in a recording of calls, although their
/// constructors had been called.
#[test]
fn calls_of_constructors_show_exceptions() {
    let throwing = "  Parse 400 5 5\n    System.Number::Throw 150\n      System.FormatException::.ctor 150\n        \
                    System.Exception::.ctor 150\n          System.Exception::.ctor 150\n    System.Number::Parse 9 900 900\n";
    let r = with_framework(&format!(
        "thread 1\n{throwing}thread 2\n  System.Threading.Thread::Start 1\n    System.Exception::.ctor 7\n"
    ));
    let view = summary(&r, &Query::default()).expect("a summary");
    let row = view.elsewhere.iter().find(|row| row.kind.name() == "exceptions_made").expect("a row");
    let most = row.exceptions.as_ref().map(|most| (most.count, most.place.map(|place| place.name())));
    assert_eq!((row.count, most), (Some(157), Some((150, Some("Parse")))));
    let text = "157 exceptions were created, 150 of them in calls from Parse: clrscope run -i exceptions shows types, \
                stacks and catchers";
    assert!(sentences(&r, &Query::default()).contains(&(text.to_owned(), 955)));
    let few = with_framework(&throwing.replace("150", "99").replacen("  Parse", "thread 1\n  Parse", 1));
    assert!(sentences(&few, &Query::default()).iter().all(|(text, _)| !text.contains("exceptions")));
}

/// Under `dotnet test` the code of the build was own code before that of the tests.
#[test]
fn code_of_the_sdks_tools_is_not_own_beside_the_users_program() {
    let mut r = recording("thread 1\n  Build 1 500 500\n");
    let mut tests = recording("thread 1\n  Test 1 10 10\n").processes.remove(0);
    let command = |text: &str| text.split(' ').map(str::to_owned).collect();
    (tests.pid, tests.command) = (8, command("dotnet exec /p/testhost.dll"));
    r.processes[0].command = command("dotnet test");
    r.processes.push(tests);
    let own = |query: &Query| -> Vec<String> {
        let view = summary(&r, query).expect("a summary");
        view.own.iter().map(|own| own.row.function.name().to_owned()).collect()
    };
    assert_eq!(own(&Query::default()), ["Test"]);
    let tool = Query { pid: Some(r.processes[0].pid), ..Query::default() };
    assert_eq!(own(&tool), ["Build"]);
}

#[test]
fn ten_rows_unless_told_otherwise() {
    let lines: String = (0..15).map(|n| format!("  F{n:02} {n} {n}\n")).collect();
    let r = recording(&format!("thread 1\n{lines}"));
    let view = summary(&r, &Query::default()).expect("a summary");
    assert_eq!((view.top.len(), view.functions), (10, 14));
    assert_eq!(view.top[0].function.name(), "F14");
    let three = summary(&r, &Query { limit: Some(3), ..Query::default() }).expect("a summary");
    assert_eq!(three.top.len(), 3);
}

#[test]
fn nothing_recorded_means_nothing_found() {
    assert!(summary(&Recording::default(), &Query::default()).expect("a summary").findings.is_empty());
}

#[test]
fn conditions_go_process_by_process() {
    let mut r = recording("thread 1\n  Main 1 30\n");
    let mut second = recording("thread 1\n  Main 1 70\n    [JIT] 1 20\n").processes.remove(0);
    second.pid = 8;
    second.exit = Some(Exit::Code(3));
    let loss = |reason, count| Loss::new(reason, count, 0, 0);
    second.losses = vec![loss(LossReason::TreeFull, 4), loss(LossReason::AbruptEnd, 1), loss(LossReason::StackFull, 2)];
    r.processes.push(second);
    r.run.filled = "calls:clock=sampled".into();
    let found = conditions(&r, &Query::default()).expect("conditions");
    let each: Vec<_> =
        found.processes.iter().map(|p| (p.process.pid, (p.share * 1000.0) as u32, p.lost, p.totals.jit_ns)).collect();
    assert_eq!(each, [(7, 250, 0, 0), (8, 750, 6, 20)]);
    assert_eq!((found.recorded, found.totals.functions_ns, found.raw), ("calls:clock=sampled", 120, false));
    assert_eq!(found.instruments.iter().map(ToString::to_string).collect::<Vec<_>>(), ["calls:clock=sampled"]);
    assert_eq!(found.processes[0].calls.map(|c| c.interval_ns), Some(1_000_000));
    let one = conditions(&r, &Query { pid: Some(8), ..Query::default() }).expect("conditions");
    assert_eq!((one.processes.len(), one.totals.functions_ns), (1, 90));
}
