//! `probes` against programs that know how often their methods are called, and against those that
//! do all they should not.

use std::collections::BTreeMap;

use crate::support::counted::{calls, miscounted, numbered, probed, probed_lines, refused, said_hits, source};
use crate::support::{Run, assert_unchanged, record, record_command};
use clrscope_analysis::Query;
use clrscope_recording::model::LossReason;
use clrscope_testkit::{Expectations, Runtime, Sdk, each_runtime, fixture, not_run, run, scratch};

/// Each method of the fixture is called as often as the fixture says, and each call ends.
fn compare(runtime: &Runtime, name: &str) {
    let place = format!("{name} on {}", runtime.version);
    let bare = run(runtime.command(&fixture(name))).expect_success();
    let Run { finished, recording, .. } = record(runtime, name, &format!("probes;probe=[{name}]*"));
    assert_unchanged(&finished, &bare, &place);
    let process = &recording.processes[0];
    let methods = probed(process);
    let (calls, refused) = (calls(&methods), refused(process, LossReason::NotProbed));
    let expected = Expectations::parse(&finished.stdout_text());
    assert_eq!(miscounted(&expected, &methods), [] as [String; 0], "{place}: refused {refused:#?}");
    let own = |name: &&String| calls.contains_key(name.as_str());
    assert!(expected.calls.keys().filter(own).count() > 3, "{place}: {calls:?}");
    for method in &methods {
        let ended: u64 = method.buckets.iter().sum();
        assert!(ended <= method.calls && method.failed <= ended, "{place}: {method:?}");
    }
}

#[test]
fn every_call_is_counted_whatever_kind_of_method_it_is_of() {
    each_runtime(|runtime| {
        for name in ["Generics", "Exceptions", "Async", "Threads"] {
            compare(runtime, name);
        }
    });
}

/// Constructors, references of all kinds, a stack trace that has its lines; contexts that are
/// unloaded; recursions that are endless tail calls. What can't be changed is named.
#[test]
fn programs_with_probes_in_all_their_methods_do_what_they_did() {
    each_runtime(|runtime| {
        for (name, wanted, not_changed) in [
            ("Counted", ("Counted.Program::Small", 800_000), None),
            ("Loading", ("Loading.Program::Target", 1_800), Some("Plugin.Work.Run(int): its assembly is collectible")),
            ("TailCalls", ("TailCalls.Program::Target", 2_000), Some("Ping.Play(long): it is always optimised")),
        ] {
            let place = format!("{name} on {}", runtime.version);
            let bare = run(runtime.command(&fixture(name)));
            let Run { finished, recording, .. } =
                record(runtime, name, "probes;probe=*;probe=[System.Console]System.Console::WriteLine");
            assert_unchanged(&finished, &bare, &place);
            let process = &recording.processes[0];
            let (methods, refused) = (probed(process), refused(process, LossReason::NotProbed));
            let calls = calls(&methods);
            let (method, wanted) = wanted;
            assert_eq!(calls.get(method), Some(&wanted), "{place}: {refused:#?}");
            assert!(
                calls.get("System.Console::WriteLine").is_some_and(|calls| *calls > 0),
                "{place}: precompiled code: {calls:?}"
            );
            let is_named = |why: &str| refused.iter().any(|refused| refused.contains(why));
            assert!(not_changed.is_none_or(is_named), "{place}: {refused:#?}");
            assert_eq!(not_changed.is_none(), refused.is_empty(), "{place}: {refused:#?}");
        }
    });
}

/// Every line of the fixture that says how often it runs, alone and in methods whose calls are
/// counted as well: constructors, iterators, async methods, filters, loops that are recompiled
/// while they run.
#[test]
fn lines_are_counted_as_often_as_they_run_beside_calls_of_their_methods() {
    let said = said_hits(&source("Counted"));
    let request: String = said.keys().map(|line| format!(";probe-at=Counted/Counted.cs:{line}")).collect();
    each_runtime(|runtime| {
        let bare = run(runtime.command(&fixture("Counted"))).expect_success();
        for beside in ["", ";probe=[Counted]*"] {
            let place = format!("{}{beside}", runtime.version);
            let Run { finished, recording, .. } = record(runtime, "Counted", &format!("probes{request}{beside}"));
            assert_unchanged(&finished, &bare, &place);
            let process = &recording.processes[0];
            assert!(process.losses.is_empty() && recording.problems.is_empty(), "{place}: {:?}", process.losses);
            let mut seen: BTreeMap<u32, u64> = BTreeMap::new();
            probed_lines(process).iter().for_each(|line| *seen.entry(line.line).or_default() += line.hits);
            assert_eq!(seen, said, "{place}");
            let methods = probed(process);
            let counted = calls(&methods).get("Counted.Program::Small").copied();
            assert_eq!(counted, (!beside.is_empty()).then_some(800_000), "{place}");
        }
    });
}

/// Eight threads in loops around one line, two hundred that come and go at another: no hit is lost.
#[test]
fn threads_that_reach_a_line_at_the_same_time_lose_no_hit() {
    let source = source("Threads");
    let line = |text: &str| {
        let found = numbered(&source, |line| line.trim_end().ends_with(text).then_some(()));
        let [(line, ())] = found.as_slice() else { panic!("{text}: {found:?}") };
        *line
    };
    let [called, short] =
        [line(" Work(i, ref count, ref innerCount);"), line("=> Interlocked.Increment(ref shortLived);")];
    each_runtime(|runtime| {
        let request = format!("probes;probe-at=Threads.cs:{called};probe-at=Threads.cs:{short}");
        let Run { finished, recording, .. } = record(runtime, "Threads", &request);
        let calls = Expectations::parse(&finished.stdout_text()).calls;
        let lines = probed_lines(&recording.processes[0]);
        let hits: BTreeMap<u32, u64> = lines.iter().map(|line| (line.line, line.hits)).collect();
        let said = [(called, calls["Threads.Program::Work"]), (short, calls["Threads.Program::Short"])];
        assert_eq!(hits, BTreeMap::from(said), "{}: {lines:?}", runtime.version);
    });
}

/// Methods that call themselves: alone, in turns, with an exception that leaves them, on two
/// threads at once. The program clocks the outermost calls, and prints the milliseconds that it
/// slept in each method and the nanoseconds of those calls.
const NESTED: &str = r#"
using System;
using System.Diagnostics;
using System.Threading;

static class Nested
{
    static void Deep(int n) { if (n == 0) Thread.Sleep(10); else Deep(n - 1); }
    static void Even(int n) { if (n == 0) Thread.Sleep(10); else Odd(n - 1); }
    static void Odd(int n) { if (n == 0) Thread.Sleep(10); else Even(n - 1); }
    static void Fail(int n) { Thread.Sleep(n == 0 ? 10 : 0); if (n == 0) throw new TimeoutException(); Fail(n - 1); }
    static void Flat(int n) { Thread.Sleep(10); }

    static void Clock(string name, Action<int> method)
    {
        long all = 0;
        void Rounds()
        {
            for (int i = 0; i < 5; i++)
            {
                long begin = Stopwatch.GetTimestamp();
                try { method(10); } catch (TimeoutException) { }
                Interlocked.Add(ref all, Stopwatch.GetTimestamp() - begin);
            }
        }
        var other = new Thread(Rounds);
        other.Start();
        Rounds();
        other.Join();
        Console.WriteLine($"{name} {all}");
    }

    static void Main()
    {
        Clock("Deep", Deep);
        Clock("Even", Even);
        Clock("Fail", Fail);
        Clock("Flat", Flat);
    }
}
"#;

/// The total had the time of the innermost call once for each call around it, and rows were sorted
/// by that.
#[test]
fn time_of_calls_of_a_method_within_itself_counts_once() {
    let Some(sdk) = Sdk::find() else { return not_run("there is no .NET SDK") };
    let folder = scratch();
    let [text, program] = ["Nested.cs", "Nested.dll"].map(|name| folder.path().join(name));
    std::fs::write(&text, NESTED).expect("a file");
    let mut compiler = sdk.compiler_to(&program);
    compiler.args(["-optimize", "-debug:embedded"]).arg(&text);
    run(compiler).expect_success();
    let config = fixture("Counted").with_extension("runtimeconfig.json");
    std::fs::copy(config, program.with_extension("runtimeconfig.json")).expect("copied");
    each_runtime(|runtime| {
        for instrument in ["probes", "probes:each", "probes:callers"] {
            let request = format!("{instrument};probe=Nested::*");
            let Run { finished, recording, .. } =
                record_command(runtime, "Nested", &request, runtime.command(&program));
            let (rows, _) = clrscope_analysis::probes(&recording, &Query::default()).expect("probes");
            for line in finished.stdout_text().lines() {
                let (name, clocked) = line.split_once(' ').expect("two words");
                let clocked: u64 = clocked.parse().expect("a number");
                let row = rows.iter().find(|row| row.name == format!("Nested::{name}")).expect("a row");
                let place = format!("{instrument} {} {name}: {row:?}, clocked {clocked}", runtime.version);
                // Ten outermost calls; each slept for ten milliseconds.
                assert!((100_000_000..=clocked).contains(&row.total_ns), "{place}");
                let each = match name {
                    "Flat" => 1,
                    "Even" => 6,
                    _ => 11,
                };
                assert_eq!((row.calls, row.ended()), (10 * each, 10 * each), "{place}");
                assert!(row.mean_ns().is_some_and(|mean| mean >= 10_000_000), "{place}");
            }
        }
    });
}
