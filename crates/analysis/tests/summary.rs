//! `summary` and the conditions of a recording.

use clrscope_analysis::{Query, conditions, summary};
use clrscope_recording::model::{Exit, HookCost, Loss, LossReason, Recording};
use clrscope_recording::testing::ascii_trees::{recording, recording_with};

fn sentences(recording: &Recording, query: &Query) -> Vec<(String, u64)> {
    let findings = summary(recording, query).expect("a summary").findings;
    findings.into_iter().map(|f| (f.text, (f.share * 1000.0).round() as u64)).collect()
}

#[test]
fn it_says_what_stands_out() {
    let r = recording(
        "thread 1\n  Main 1 10 10\n    Load 1 10 10\n      Parse 900 500 400\n      libc!read 3 100 1\n    [JIT] 50 250 250\n    [suspended: GC] 2 130\n    (truncated) 46\n",
    );
    let expected = [
        ("Parse has 50.0 % of the time to itself", 500),
        ("Load and what it calls take 61.0 %", 610),
        ("52.0 % of the time is in functions of Shop", 520),
        ("Parse was called 900 times, 94.6 % of all calls", 946),
        ("in 19.9 % of the time threads waited or slept rather than ran", 199),
        ("25.0 % of the time the runtime compiled, part of it only because of the profiler", 250),
        ("13.0 % of the time threads stood suspended, mostly for garbage collection", 130),
        ("4.8 % of the calls ended in (truncated): the memory limit was reached", 48),
    ];
    assert_eq!(sentences(&r, &Query::default()), expected.map(|(text, share)| (text.to_owned(), share)));
}

#[test]
fn it_says_what_the_profiler_took() {
    let cost = HookCost { enter_ns: 2.0, leave_ns: 1.0, pair_low_ns: 2.0, pair_high_ns: 4.0 };
    let r = recording_with("thread 1\n  Main 1 1000 1000\n    A 100 200 200\n", cost);
    let last = |query: &Query| sentences(&r, query).last().cloned();
    let taken = last(&Query::default());
    assert_eq!(taken, Some(("25.1 % of the measured time was the profiler's own and has been taken out".into(), 251)));
    let left = last(&Query { raw: true, ..Query::default() });
    assert_eq!(left, Some(("25.1 % of the measured time was the profiler's own and is left in".into(), 251)));
}

#[test]
fn it_names_who_works_while_others_wait() {
    let r = recording("thread 1\n  Main 1 10 10\n    Sleep 1 900 1\n    Work 1 90 89\n");
    let found = sentences(&r, &Query::default());
    assert_eq!(found[0], ("Sleep has 90.0 % of the time to itself".into(), 900));
    assert_eq!(found[1], ("Work used 89.0 % of the processor time itself".into(), 890));
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
