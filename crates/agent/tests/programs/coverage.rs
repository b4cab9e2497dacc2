//! `coverage` against a program whose source says how often each line runs, and against those that
//! do all they should not.

use std::time::Duration;

use crate::support::counted::{covered, hits_by_line, said_hits, source};
use crate::support::{Run, assert_unchanged, record, under_agent};
use clrscope_recording::model::LossReason;
use clrscope_testkit::{Runtime, Sdk, Service, each_runtime, fixture, not_run, pause, random_pause, run, scratch};

fn compare(runtime: &Runtime, counts_hits: bool) {
    let (program, place) = (fixture("Counted"), format!("{}, hits {counts_hits}", runtime.version));
    let bare = run(runtime.command(&program)).expect_success();
    let request = format!("coverage:hits={};include=[Counted]*", if counts_hits { "on" } else { "off" });
    let Run { finished, recording, .. } = record(runtime, "Counted", &request);
    assert_unchanged(&finished, &bare, &place);
    let process = &recording.processes[0];
    assert!(process.losses.is_empty() && recording.problems.is_empty(), "{place}: {:?}", process.losses);
    let methods = covered(process);
    assert!(methods.iter().all(|method| method.counted == counts_hits), "{place}");
    let modules: Vec<_> = methods.iter().map(|method| &*process.modules[method.module as usize].name).collect();
    assert!(modules.iter().all(|module| *module == "Counted"), "{place}: {modules:?}");
    let source = source("Counted");
    let (seen, said) = (hits_by_line(&program, &methods), said_hits(&source));
    assert!(said.len() > 40, "{}", said.len());
    for (line, hits) in said {
        let expected = if counts_hits { hits } else { hits.min(1) };
        let seen = seen.get(&line).map(|hits| if counts_hits { *hits } else { (*hits).min(1) });
        assert_eq!(
            seen,
            Some(expected),
            "{place}: line {line}: {}",
            source.lines().nth(line as usize - 1).unwrap_or("")
        );
    }
}

#[test]
fn every_line_has_as_many_hits_as_it_runs_in_every_tier_and_the_program_does_what_it_did() {
    each_runtime(|runtime| [true, false].into_iter().for_each(|counts_hits| compare(runtime, counts_hits)));
}

/// Whenever a program is killed, what it did until then is counted.
#[test]
fn killed_at_any_moment_a_program_has_all_its_hits() {
    const BATCH: u64 = 20_000;
    each_runtime(|runtime| {
        let folder = scratch();
        let out = folder.path().join("run.clrs.d");
        let mut command = runtime.command(&fixture("Counter"));
        command.args(["1000000000000", &BATCH.to_string()]);
        under_agent(&mut command, "coverage;include=[Counter]*", &out);
        let service = Service::start(command);
        pause(random_pause(Duration::from_millis(300)));
        let finished = service.stop("KILL");
        let said = finished.stdout_text().lines().filter_map(|line| line.strip_prefix("count ")?.parse().ok()).max();
        let said: u64 = said.expect("a number");
        let recording = clrscope_recording::open(&out).expect("a recording");
        assert_eq!(recording.problems, [], "{}", runtime.version);
        let most = covered(&recording.processes[0]).into_iter().flat_map(|method| method.hits).max();
        // The condition of the loop is looked at once more than its body runs.
        let most = most.expect("a counter");
        assert!((said..=said + said / BATCH + 2 * BATCH).contains(&most), "{most} of {said} on {}", runtime.version);
    });
}

/// Collectible contexts, dynamic methods, threads, exceptions of all kinds, children, little stack.
#[test]
fn programs_with_counters_in_all_their_methods_do_what_they_did() {
    each_runtime(|runtime| {
        for name in
            ["Exceptions", "Filters", "Async", "Iterators", "Generics", "Dynamic", "Loading", "TailCalls", "Threads"]
        {
            let place = format!("{name} on {}", runtime.version);
            let bare = run(runtime.command(&fixture(name)));
            let Run { finished, recording, .. } = record(runtime, name, "coverage;include=*");
            assert_unchanged(&finished, &bare, &place);
            let process = &recording.processes[0];
            let refused = process.losses.iter().find(|loss| loss.reason == LossReason::NotCovered);
            assert_eq!(refused.map(|loss| &loss.details), None, "{place}");
            let methods = covered(process);
            assert!(methods.iter().any(|method| method.hits.iter().any(|hits| *hits > 0)), "{place}: {methods:?}");
        }
    });
}

const PLUG: &str = "namespace Plug;
public static class Work
{
    public static int Run(int number) => Step(number) + 1;
    static int Step(int number) => number * 2;
}
";

/// Loads the assembly that is named first in the way that is named second, three times.
const LOADER: &str = "using System;
using System.IO;
using System.Reflection;
using System.Runtime.Loader;

static class Loader
{
    static Assembly Load(string path, string way)
    {
        byte[] bytes = File.ReadAllBytes(path), symbols = File.ReadAllBytes(Path.ChangeExtension(path, \".pdb\"));
        var context = new AssemblyLoadContext(null, isCollectible: way == \"collectible\");
        return way switch
        {
            \"bytes\" => Assembly.Load(bytes),
            \"symbols\" => Assembly.Load(bytes, symbols),
            \"file\" => context.LoadFromAssemblyPath(path),
            _ => context.LoadFromStream(new MemoryStream(bytes), new MemoryStream(symbols)),
        };
    }

    static void Main(string[] args)
    {
        int sum = 0;
        for (int round = 0; round < 3; round++)
        {
            var method = Load(args[0], args[1]).GetType(\"Plug.Work\").GetMethod(\"Run\");
            sum += (int)method.Invoke(null, new object[] { round });
        }
        Console.WriteLine(sum);
    }
}
";

/// Nothing was said of them, or that their pattern matched no function that ran.
#[test]
fn coverage_of_assemblies_from_memory_is_counted_as_lost() {
    let Some(sdk) = Sdk::find() else { return not_run("no .NET SDK is at hand") };
    let place = scratch();
    let file = |name: &str| place.path().join(name);
    for (name, target, source) in [("Plug", "library", PLUG), ("Loader", "exe", LOADER)] {
        let path = file(&format!("{name}.cs"));
        std::fs::write(&path, source).expect("a file");
        let mut compiler = sdk.compiler_to(&file(&format!("{name}.dll")));
        compiler.args(["-debug:portable", "-optimize-"]).arg(format!("-target:{target}")).arg(path);
        run(compiler).expect_success();
    }
    // Where the program's own folder has none of that name.
    std::fs::create_dir(file("plugins")).expect("a folder");
    for name in ["Plug.dll", "Plug.pdb"] {
        std::fs::rename(file(name), file("plugins").join(name)).expect("moved");
    }
    let config = fixture("Counted").with_extension("runtimeconfig.json");
    std::fs::copy(config, file("Loader.runtimeconfig.json")).expect("copied");
    each_runtime(|runtime| {
        for way in ["bytes", "symbols", "stream", "collectible", "file"] {
            for (filter, is_meant) in [(";include=[Plug]*", true), ("", true), (";include=[Other]*", false)] {
                let place = format!("{way}{filter} on {}", runtime.version);
                let mut command = runtime.command(&file("Loader.dll"));
                command.arg(file("plugins").join("Plug.dll")).arg(way);
                let folder = scratch();
                let out = folder.path().join("loader.clrs.d");
                under_agent(&mut command, &format!("coverage{filter}"), &out);
                assert_eq!(run(command).expect_success().stdout_text(), "9\n", "{place}");
                let recording = clrscope_recording::open(&out).expect("a recording");
                let process = &recording.processes[0];
                let lost = process.losses.iter().find(|loss| loss.reason == LossReason::NotCovered);
                let lost = lost.map(|loss| (loss.count, loss.details.clone()));
                let said = "Plug: it was loaded from memory, not from a file that has symbols".to_owned();
                let expected = (way != "file" && is_meant).then(|| (6, vec![said]));
                assert_eq!(lost, expected, "{place}");
                let has_matched = process.matched_patterns.iter().any(|pattern| pattern == "include=[Plug]*");
                assert_eq!(has_matched, filter.contains("Plug"), "{place}: {:?}", process.matched_patterns);
                let methods = covered(process);
                let of_plug = methods.iter().filter(|of| &*process.modules[of.module as usize].name == "Plug").count();
                assert_eq!(of_plug, if way == "file" && is_meant { 6 } else { 0 }, "{place}");
            }
        }
    });
}
