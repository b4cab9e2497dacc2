//! `cpu` and `wall` against programs that know what they did, with both engines.

use std::collections::BTreeMap;

use crate::support::{Run, assert_unchanged, record_with, under_agent};
use clrscope_recording::model::{
    Activity, LossReason, Process, Sample, SamplingEngine, StackFrame, ThreadRole, ThreadState,
};
use clrscope_testkit::{Runtime, Service, attempted, each_runtime, not_run, scratch, wait_until};

/// The samples of an instrument.
fn samples(process: &Process, instrument: &str) -> Vec<Sample> {
    let arenas = process.events.iter().filter(|arena| arena.instrument == instrument);
    arenas
        .flat_map(|arena| &arena.chunks)
        .flat_map(|chunk| Sample::all(&chunk.bytes.load()).collect::<Vec<_>>())
        .collect()
}

fn engine(process: &Process) -> SamplingEngine {
    process.samplers.first().map(|sampler| sampler.engine).expect("how samples were taken")
}

/// Names of the methods of a stack, innermost first.
fn methods(process: &Process, stack: u32) -> Vec<&str> {
    let name = |frame| match frame {
        StackFrame::Method { function, .. } => Some(process.functions.get(function as usize)?.name.as_str()),
        _ => None,
    };
    process.stacks.frames(stack).filter_map(name).collect()
}

/// Nanoseconds that samples with each of `names` on their stacks stand for.
fn weights<'a>(process: &Process, samples: &[Sample], names: &[&'a str]) -> BTreeMap<&'a str, u64> {
    let mut weights: BTreeMap<&str, u64> = names.iter().map(|name| (*name, 0)).collect();
    for sample in samples {
        let methods = methods(process, sample.stack);
        for name in names.iter().filter(|name| methods.contains(name)) {
            *weights.get_mut(name).expect("a name") += sample.weight_ns;
        }
    }
    weights
}

/// Measurements of the program itself, nanoseconds of CPU time by name.
fn measured(run: &Run) -> BTreeMap<String, u64> {
    let text = run.finished.stdout_text();
    let lines = text.lines().filter_map(|line| line.strip_prefix("MEASURED cpu-ns "));
    lines.filter_map(|line| Some((line.split_once(' ')?.0.to_owned(), line.split_once(' ')?.1.parse().ok()?))).collect()
}

/// Whether the engine that was asked for is there; where not, that is said.
fn is_engine(run: &Run, wanted: &str) -> bool {
    let is = engine(&run.recording.processes[0]).name() == wanted;
    if !is {
        not_run(&format!("the engine {wanted} is not to be had here"));
    }
    is
}

/// Returns what `check` returned, runtime by runtime.
fn each_engine<T: Send>(check: impl Fn(&Runtime, &str) -> T + Sync) -> Vec<T> {
    each_runtime(|runtime| ["perf", "timer"].map(|engine| check(runtime, engine))).into_iter().flatten().collect()
}

#[test]
fn shares_of_cpu_time_are_those_that_the_program_measures() {
    each_engine(|runtime, engine| {
        let run = record_with(runtime, "Sampled", &format!("cpu:engine={engine}"), &["shares"]);
        if !is_engine(&run, engine) {
            return;
        }
        let place = format!("{engine} on {}", runtime.version);
        let process = &run.recording.processes[0];
        let (all, truth) = (samples(process, "cpu"), measured(&run));
        let names = ["Sampled.Program::One", "Sampled.Program::Three", "Sampled.Program::Deep"];
        let found = weights(process, &all, &names);
        let share = |one: u64, three: u64| one as f64 / (one + three) as f64;
        let (one, three) = (found[names[0]], found[names[1]]);
        let (found_share, true_share) = (share(one, three), share(truth[names[0]], truth[names[1]]));
        // With some hundred samples a standard deviation is two to three points.
        let samples_of = all.len() as f64;
        let bound = 4.0 * (true_share * (1.0 - true_share) / samples_of).sqrt() + 0.01;
        assert!(
            (found_share - true_share).abs() < bound,
            "{place}: {found_share} of {true_share}, {samples_of} samples"
        );
        let whole = truth.values().sum::<u64>() as f64;
        let sum = (one + three) as f64 / whole;
        assert!((0.85..1.15).contains(&sum), "{place}: {sum} of the CPU time that the program measured");
        assert!(found[names[2]] as f64 >= 0.97 * (one + three) as f64, "{place}: callers are lost, {found:?}");
        let deep = all.iter().map(|sample| methods(process, sample.stack));
        let right = deep
            .filter(|methods| methods.first() == Some(&names[1]))
            .map(|methods| methods.iter().filter(|name| **name == names[2]).count() == 21);
        let (right, wrong): (Vec<bool>, Vec<bool>) = right.partition(|right| *right);
        assert!(right.len() > 20 * wrong.len(), "{place}: {} stacks of {} are not whole", wrong.len(), right.len());
    });
}

/// The stacks that are not complete, the most frequent first, each with how often it is there.
fn incomplete(process: &Process, all: &[Sample]) -> String {
    let name = |frame| match frame {
        StackFrame::Method { function, .. } => {
            process.functions.get(function as usize).map_or_else(|| "?".to_owned(), |function| function.name.clone())
        }
        StackFrame::Native { module, offset } => {
            let module = process.modules.get(module as usize).map_or("?", |module| module.name.as_str());
            format!("{module}+{offset:#x}")
        }
        _ => "(lost)".to_owned(),
    };
    let mut stacks: BTreeMap<String, usize> = BTreeMap::new();
    for sample in all.iter().filter(|sample| !sample.complete) {
        let names: Vec<String> = process.stacks.frames(sample.stack).map(name).collect();
        *stacks.entry(names.join(" < ")).or_default() += 1;
    }
    let mut stacks: Vec<_> = stacks.into_iter().collect();
    stacks.sort_by_key(|(_, count)| std::cmp::Reverse(*count));
    stacks.iter().take(20).map(|(stack, count)| format!("{count}: {stack}\n")).collect()
}

/// Of each run all but few, whose number has nothing to do with the length of the run: they fall
/// into the runtime's start, which is deeper than a sample holds. Of all runs 99 of 100, with four
/// standard deviations of what is lost then.
#[test]
fn stacks_are_whole_from_the_innermost_frame_to_the_start_of_the_thread() {
    let losses = each_engine(|runtime, engine| {
        let mut losses = Vec::new();
        for arguments in [&["shares"][..], &["collections", "300"], &["threads", "300"]] {
            let run = record_with(runtime, "Sampled", &format!("cpu:engine={engine}"), arguments);
            if !is_engine(&run, engine) {
                break;
            }
            let process = &run.recording.processes[0];
            let all: Vec<_> = samples(process, "cpu").into_iter().filter(|sample| !sample.profiler).collect();
            let lost = all.iter().filter(|sample| !sample.complete).count();
            let place = format!("{engine} on {}, {arguments:?}: {lost} of {}", runtime.version, all.len());
            let which = format!("{place} are not whole\n{}", incomplete(process, &all));
            assert!(lost as f64 <= 0.03 * all.len() as f64 + 6.0, "{which}");
            losses.push((engine.to_owned(), lost, all.len(), which));
        }
        losses
    });
    let mut sums: BTreeMap<String, (usize, usize, String)> = BTreeMap::new();
    for (engine, lost, all, which) in losses.into_iter().flatten() {
        let sum = sums.entry(engine).or_default();
        *sum = (sum.0 + lost, sum.1 + all, sum.2.clone() + &which);
    }
    for (lost, all, which) in sums.into_values() {
        let expected = 0.01 * all as f64;
        // On a busy machine single programs get little CPU time.
        assert!(all > 100, "{which}");
        assert!(lost as f64 <= expected + 4.0 * expected.sqrt(), "{lost} of {all} are not whole: {which}");
    }
}

/// Kernels that may not be sampled have a time that is that of the clock beyond the samples.
#[test]
fn time_in_the_kernel_is_there_where_the_kernel_may_not_be_sampled() {
    each_engine(|runtime, engine| {
        let run = record_with(runtime, "Sampled", &format!("cpu:engine={engine},kernel=off"), &["calls", "600"]);
        if !is_engine(&run, engine) {
            return;
        }
        let process = &run.recording.processes[0];
        let all = samples(process, "cpu");
        let sum = |kernel: Option<bool>| {
            let chosen = all.iter().filter(|sample| sample.thread == 1 && kernel.is_none_or(|is| sample.kernel == is));
            chosen.map(|sample| sample.weight_ns).sum::<u64>() as f64
        };
        let truth = measured(&run)["Sampled.Program::Calls"] as f64;
        let place =
            format!("{engine} on {}: {} ns of {truth}, {} in the kernel", runtime.version, sum(None), sum(Some(true)));
        // The runtime's start is on this thread, too.
        assert!(sum(None) > 0.9 * truth && sum(None) < truth + 500e6, "{place}");
        assert!(sum(Some(true)) > 0.1 * truth, "{place}");
    });
}

/// Time of a thread below a method by state, the longest first: a wait that begins between two
/// looks is seen on another stack of the same methods.
fn waits_below(process: &Process, all: &[Sample], thread: &str, method: &str) -> Vec<(u64, ThreadState)> {
    let thread = process.threads.iter().find(|one| one.name == thread).map(|one| one.id).expect("a thread");
    let mut sums: BTreeMap<ThreadState, u64> = BTreeMap::new();
    for sample in
        all.iter().filter(|sample| sample.thread == thread && methods(process, sample.stack).contains(&method))
    {
        *sums.entry(sample.state).or_default() += sample.weight_ns;
    }
    let mut sums: Vec<_> = sums.into_iter().map(|(state, weight)| (weight, state)).collect();
    sums.sort_by(|a, b| b.cmp(a));
    sums
}

#[test]
fn threads_that_wait_are_seen_where_they_wait_and_for_what() {
    each_runtime(|runtime| {
        let run = record_with(runtime, "Sampled", "wall", &["waits"]);
        let process = &run.recording.processes[0];
        let all = samples(process, "wall");
        let expected = [
            ("sleeper", ThreadState::Sleeping, "Sampled.Program::Sleep"),
            ("waiter", ThreadState::Lock, "Sampled.Program::WaitForLock"),
            ("reader", ThreadState::Io, "Sampled.Program::Read"),
        ];
        for (thread, state, method) in expected {
            let found = waits_below(process, &all, thread, method);
            let place = format!("{thread} on {}: {found:?} below {method}", runtime.version);
            let (weight, longest) = *found.first().expect(&place);
            assert_eq!(longest, state, "{place}");
            // Of a thread that waits the frame pointer is not known, and functions of the runtime's
            // libraries are left by it.
            assert!((700_000_000..1_600_000_000).contains(&weight), "{place}");
        }
        // One record counts many samples of a thread that stands still.
        let records = all.len() as f64;
        let counts: u64 = all.iter().map(|sample| u64::from(sample.count)).sum();
        assert!(counts as f64 > 4.0 * records, "{counts} samples in {records} records");
        // No thread is in two places at once: the time of each is that of the run, at most.
        let longest = all.iter().map(|sample| sample.time_ns + sample.weight_ns).max().expect("samples");
        for thread in &process.threads {
            let sum: u64 = all.iter().filter(|sample| sample.thread == thread.id).map(|sample| sample.weight_ns).sum();
            assert!(sum as f64 <= 1.1 * longest as f64, "thread {} has {sum} ns of {longest}", thread.name);
        }
    });
}

/// The first rows of a report by the clock were threads of the runtime that wait for signals,
/// debuggers and diagnostics.
#[test]
fn threads_of_the_runtime_that_wait_are_idle_and_their_stacks_are_whole() {
    each_runtime(|runtime| {
        let run = record_with(runtime, "Sampled", "wall", &["waits"]);
        let process = &run.recording.processes[0];
        let all = samples(process, "wall");
        let waits = |sample: &&Sample| !matches!(sample.state, ThreadState::Running | ThreadState::Ready);
        let is_below = |sample: &Sample| methods(process, sample.stack).iter().any(|name| name.starts_with("Sampled."));
        let of = |role: ThreadRole| {
            let threads: Vec<u32> = process.threads.iter().filter(|one| one.role == role).map(|one| one.id).collect();
            all.iter().filter(waits).filter(move |sample| threads.contains(&sample.thread)).copied().collect::<Vec<_>>()
        };
        let (runtimes, users) = (of(ThreadRole::Runtime), of(ThreadRole::User));
        assert!(runtimes.len() > 3, "{} records on {}", runtimes.len(), runtime.version);
        assert!(runtimes.iter().all(|sample| sample.state == ThreadState::Idle), "on {}", runtime.version);
        let lost = incomplete(process, &runtimes);
        assert!(lost.is_empty(), "on {}: {lost}", runtime.version);
        let sum = |is_it: &dyn Fn(&Sample) -> bool| -> u64 {
            users.iter().filter(|sample| is_it(sample)).map(|sample| sample.weight_ns).sum()
        };
        // Of what is left the program's own threads wait, below its own code.
        let (own, others) = (sum(&is_below), sum(&|one| one.state != ThreadState::Idle && !is_below(one)));
        assert!(own > 2_000_000_000 && others < own / 20, "{own} and {others} ns on {}", runtime.version);
    });
}

/// The system reports no frame pointer for a thread that waits. Where a function needs it to be
/// left, and waits by a call of its own, it was searched for on the stack. Calls of native
/// functions that were compiled at build time were code without an owner. For these reasons a
/// quarter of a web service's samples had a guessed frame.
#[test]
fn threads_that_wait_in_libraries_are_seen_without_guesses() {
    each_runtime(|runtime| {
        let run = record_with(runtime, "Sampled", "wall:rate=1000", &["sockets", "1000"]);
        let process = &run.recording.processes[0];
        let all = samples(process, "wall");
        let waits: Vec<Sample> = all
            .into_iter()
            .filter(|sample| !matches!(sample.state, ThreadState::Running | ThreadState::Ready))
            .collect();
        let weight =
            |is_it: &dyn Fn(&&Sample) -> bool| waits.iter().filter(is_it).map(|one| one.weight_ns).sum::<u64>();
        let (whole, certain) = (weight(&|_| true), weight(&|sample| sample.is_certain()));
        let version = &runtime.version;
        assert!(certain as f64 > 0.98 * whole as f64, "{certain} of {whole} ns on {version}");
        let sockets =
            process.threads.iter().find(|one| one.name == ".NET Sockets").map(|one| one.id).expect("a thread");
        let below = |sample: &&Sample, method: &str| {
            sample.thread == sockets && methods(process, sample.stack).iter().any(|name| name.contains(method))
        };
        let (engine, call) = (
            weight(&|sample| below(sample, "SocketAsyncEngine::EventLoop")),
            weight(&|sample| below(sample, "Sys::WaitForSocketEvents")),
        );
        assert!(engine > 700_000_000, "{engine} ns below the loop of the engine for sockets on {version}");
        assert!(
            call as f64 > 0.98 * engine as f64,
            "{call} of {engine} ns in the call of the native function on {version}"
        );
        let is_stub = |frame| {
            let StackFrame::Native { module, .. } = frame else { return false };
            process.modules.get(module as usize).is_some_and(|module| module.name == "[stub]")
        };
        let stubs = weight(&|sample| sample.thread == sockets && process.stacks.frames(sample.stack).any(is_stub));
        assert!((stubs as f64) < 0.02 * engine as f64, "{stubs} of {engine} ns below code of nobody's on {version}");
    });
}

/// Between two looks that find a thread at work it waits, too, and a thread that waits for a
/// processor stands where it was seen last.
#[test]
fn waits_that_no_look_meets_have_a_stack() {
    // On a busy machine a thread that begins waits for a processor before it has a stack.
    each_runtime(|runtime| assert_eq!(attempted(|| waits_without_a_stack_are_few(runtime)), Ok(())));
}

/// Looks at one run; the fault in words.
fn waits_without_a_stack_are_few(runtime: &Runtime) -> Result<(), String> {
    let run = record_with(runtime, "Sampled", "wall:rate=1000", &["switches", "300"]);
    let process = &run.recording.processes[0];
    let all = samples(process, "wall");
    let weight = |is_it: &dyn Fn(&Sample) -> bool| -> u64 {
        all.iter().filter(|sample| is_it(sample)).map(|sample| sample.weight_ns).sum()
    };
    let lost = weight(&|sample| matches!(sample.state, ThreadState::Ready | ThreadState::Waiting) && !sample.complete);
    let whole = weight(&|_| true);
    if 100 * lost > whole {
        return Err(format!("{lost} ns of {whole} on {}: {}", runtime.version, incomplete(process, &all)));
    }
    Ok(())
}

/// The runtime's library has no symbols, and what it does to load a type happens before anybody is
/// told of the type. The program unloads the types again, and at the highest rate code was asked
/// about that was about to go.
#[test]
fn types_that_are_loaded_are_told_and_code_that_goes_is_not_asked_about() {
    each_runtime(|runtime| {
        let run = record_with(runtime, "Loading", "cpu:rate=20000,engine=perf", &["contexts"]);
        if !is_engine(&run, "perf") {
            return;
        }
        assert!(run.finished.status.success(), "{} on {}", run.finished.stderr_text(), runtime.version);
        let process = &run.recording.processes[0];
        let all = samples(process, "cpu");
        let mut of = BTreeMap::<&str, usize>::new();
        for sample in all.iter().filter(|sample| !sample.profiler) {
            *of.entry(sample.activity.name()).or_default() += 1;
        }
        let (loads, sum) = (of.get("type_loading").copied().unwrap_or(0), of.values().sum::<usize>());
        assert!(40 * loads > sum, "{of:?} on {}", runtime.version);
    });
}

/// A thread that gives its processor away all the time is ready, and hardly ever seen on one. Its
/// time was counted where it had been sampled last, which was other work: six threads had a
/// semaphore for four times as long as there was.
#[test]
fn threads_that_yield_are_not_where_they_were_sampled_last() {
    each_runtime(|runtime| {
        for engine in ["perf", "timer"] {
            // On a busy machine the thread is seldom seen where it works.
            assert_eq!(attempted(|| time_of_the_turn(runtime, engine)), Ok(()));
        }
    });
}

/// Looks at one run; the fault in words.
fn time_of_the_turn(runtime: &Runtime, engine: &str) -> Result<(), String> {
    let run = record_with(runtime, "Sampled", &format!("cpu:engine={engine};wall"), &["yields", "2000"]);
    if !is_engine(&run, engine) {
        return Ok(());
    }
    let process = &run.recording.processes[0];
    let text = run.finished.stdout_text();
    let had = text.lines().find_map(|line| line.strip_prefix("had ")?.parse::<u64>().ok());
    let had = had.expect("what the program measured");
    let wall = samples(process, "wall");
    let method = "Sampled.Program::HaveTurn";
    let seen = weights(process, &wall, &[method])[method];
    // Each of at most so many samples stands for an interval more or less.
    let ready = wall.iter().filter(|sample| sample.state == ThreadState::Ready).map(|sample| sample.weight_ns);
    let (ready, tolerance) = (ready.sum::<u64>(), had / 5);
    let is_true = (had / 3..=had + tolerance).contains(&seen);
    if is_true { Ok(()) } else { Err(format!("{} {engine}: {seen} ns of {had}, {ready} ns ready", runtime.version)) }
}

/// While one thread collects, the others stand still, each time for less than a millisecond; and
/// the collector's time is told from the runtime's other work. Looks at threads came every 10 ms
/// whatever the rate, and after other work of the draining thread: by then the thread that it had
/// taken the processor from was ready to run, what it waited for went unseen, and all its waits
/// were counted as one state.
#[test]
fn collections_and_threads_that_wait_for_their_end_are_told_apart() {
    each_runtime(|runtime| {
        let weight_in = |run: &Run, instrument: &str, is_it: &dyn Fn(&Sample) -> bool| -> u64 {
            let all = samples(&run.recording.processes[0], instrument);
            all.iter().filter(|sample| is_it(sample)).map(|sample| sample.weight_ns).sum()
        };
        let ready = |run: &Run| weight_in(run, "wall", &|sample| sample.state == ThreadState::Ready);
        let record = || record_with(runtime, "Sampled", "cpu;wall:rate=1000", &["collections", "800"]);
        // Where other tests take the processors, looks come late, and few: the recording with the
        // least of that counts.
        let run = (0..8).map(|_| record()).min_by_key(ready).expect("recordings");
        let weight = |instrument: &str, is_it: &dyn Fn(&Sample) -> bool| weight_in(&run, instrument, is_it);
        let collected = weight("cpu", &|sample| sample.activity == Activity::Gc);
        let all = weight("cpu", &|_| true);
        assert!(10 * collected > all, "{collected} ns of {all} on {}", runtime.version);
        let mut states = BTreeMap::<(u32, &str), u64>::new();
        for sample in samples(&run.recording.processes[0], "wall") {
            *states.entry((sample.thread, sample.state.name())).or_default() += sample.weight_ns;
        }
        let place = format!("on {}, nanoseconds by threads: {states:?}", runtime.version);
        let suspended = weight("wall", &|sample| sample.state == ThreadState::Suspended);
        let collectors = weight("wall", &|sample| sample.state == ThreadState::Suspended && sample.thread == 1);
        assert!(collectors < suspended, "{collectors} ns of {suspended} {place}");
        // The other thread allocates, or stands still.
        let other = states.keys().filter(|(_, state)| *state == "suspended").map(|(thread, _)| *thread).max();
        let stands = |sample: &Sample| !matches!(sample.state, ThreadState::Running | ThreadState::Ready);
        let stood = weight("wall", &|sample| Some(sample.thread) == other && stands(sample));
        if 8 * ready(&run) < all {
            assert!(2 * suspended > stood, "{suspended} ns of {stood} {place}");
        }
    });
}

/// The runtime's dumper stops and reads every thread of a program that crashes.
#[test]
fn a_crash_still_makes_its_dump() {
    let crash = |runtime: &Runtime, engine: Option<&str>| {
        let folder = clrscope_testkit::scratch();
        let dump = folder.path().join("dump");
        let mut command = runtime.command(&clrscope_testkit::fixture("Ends"));
        command.arg("failfast").env("DOTNET_DbgEnableMiniDump", "1").env("DOTNET_DbgMiniDumpType", "1");
        command.env("DOTNET_DbgMiniDumpName", &dump);
        if let Some(engine) = engine {
            under_agent(
                &mut command,
                &format!("cpu:engine={engine},rate=10000;wall"),
                &folder.path().join("run.clrs.d"),
            );
        }
        let finished = clrscope_testkit::run(command);
        let is_there = std::fs::read(&dump).is_ok_and(|bytes| bytes.starts_with(b"\x7fELF") && bytes.len() > 1 << 16);
        (is_there, finished)
    };
    let (can_dump, bare) = crash(clrscope_testkit::runtimes().first().expect("a runtime"), None);
    if !can_dump {
        return not_run("no dump can be made here, bare either");
    }
    each_runtime(|runtime| {
        let engine = if runtime.major().is_multiple_of(2) { "timer" } else { "perf" };
        let (is_there, finished) = crash(runtime, Some(engine));
        let place = format!("{engine} on {}: {}", runtime.version, finished.stderr_text());
        assert!(is_there, "{place}");
        assert_eq!(finished.status, bare.status, "{place}");
    });
}

/// Programs that are hard on signals and on stack walkers do at the highest rate what they do
/// without us.
#[test]
fn hostile_programs_are_unchanged_at_the_highest_rate() {
    let library = clrscope_testkit::native_library("Sampled/storage.c");
    let library = library.to_str().expect("a path in UTF-8");
    let programs: [&[&str]; 8] = [
        &["nulls", "400"],
        &["exceptions", "400"],
        &["threads", "400"],
        &["collections", "400"],
        &["loads", "400"],
        &["storage", "300", library],
        &["processes", "8"],
        &["signals", "200"],
    ];
    each_engine(|runtime, engine| {
        for arguments in programs {
            let mut bare = runtime.command(&clrscope_testkit::fixture("Sampled"));
            bare.args(arguments);
            let bare = clrscope_testkit::run(bare);
            let run =
                record_with(runtime, "Sampled", &format!("cpu:rate=20000,engine={engine};wall:rate=1000"), arguments);
            let place = format!("{engine} on {}, {arguments:?}", runtime.version);
            assert_unchanged(&run.finished, &bare, &place);
            let process = &run.recording.processes[0];
            let panics = process.has_lost(LossReason::PanicCaught);
            assert!(!panics && !samples(process, "cpu").is_empty(), "{place}: {:?}", process.losses);
        }
    });
}

/// Descriptors of a thread, by the files that they are of; empty once it is gone.
fn descriptors(pid: u32, os_id: u32) -> Vec<String> {
    let entries = std::fs::read_dir(format!("/proc/{pid}/task/{os_id}/fd")).into_iter().flatten().flatten();
    entries.filter_map(|entry| Some(std::fs::read_link(entry.path()).ok()?.to_string_lossy().into_owned())).collect()
}

/// A program that closed files by their numbers, and opened others, once found one of these closed
/// by the draining thread, which had had a file of the system open under that number.
#[test]
fn what_the_draining_thread_opens_does_not_stand_in_the_programs_table() {
    each_engine(|runtime, engine| {
        let place = scratch();
        let mut command = runtime.command(&clrscope_testkit::fixture("Sampled"));
        command.args(["idle", "3"]);
        under_agent(
            &mut command,
            &format!("cpu:rate=1000,engine={engine};wall:rate=1000"),
            &place.path().join("r.clrs.d"),
        );
        let program = Service::start_silent(command);
        let pid = program.id();
        let own = |file: &String| file.contains("perf_event") || file.contains("schedstat");
        let draining = || {
            let threads = std::fs::read_dir(format!("/proc/{pid}/task")).into_iter().flatten().flatten();
            let threads = threads.filter_map(|entry| entry.file_name().to_str()?.parse().ok());
            threads.filter(|&os_id| os_id != pid).find(|&os_id| descriptors(pid, os_id).iter().any(own))
        };
        wait_until("a table of its own", || {
            draining().is_some_and(|os_id| !descriptors(pid, os_id).iter().any(|file| file.contains("pipe:")))
        });
        wait_until("a table without it", || !descriptors(pid, pid).iter().any(own));
        program.stop("TERM");
    });
}

/// Threads that are switched tens of thousands of times in a second: a perf event is a timer that
/// is set at each switch.
#[test]
fn perf_events_that_are_dear_give_way_to_timers_unless_they_were_asked_for() {
    each_runtime(|runtime| {
        let engine_at_end = |request: &str| {
            let run = record_with(runtime, "Sampled", request, &["switches", "2500"]);
            let process = &run.recording.processes[0];
            let all = samples(process, "cpu");
            let sum: u64 = all.iter().map(|sample| sample.weight_ns).sum();
            assert!(sum > 1_500_000_000, "{request} on {}: {sum} ns", runtime.version);
            let why = process.samplers.last().map(|sampler| sampler.why_engine.clone()).unwrap_or_default();
            (engine(process), why)
        };
        if engine_at_end("cpu:engine=perf").0 != SamplingEngine::Perf {
            return not_run("the engine perf is not to be had here");
        }
        let (found, why) = engine_at_end("cpu");
        assert_eq!(found, SamplingEngine::Timer, "{why}");
        assert!(
            why.contains(
                "thread switches a second of CPU time, perf events take several percent; engine=perf keeps them"
            ),
            "{why}"
        );
    });
}

/// The runtime never returns from its handler of SIGSEGV: a signal that the handler's mask keeps
/// out must be let in by other code.
#[test]
fn threads_are_sampled_on_after_null_references() {
    each_runtime(|runtime| {
        let run = record_with(runtime, "Sampled", "cpu:engine=timer", &["nulls", "600"]);
        let process = &run.recording.processes[0];
        let all = samples(process, "cpu");
        let last = all.iter().map(|sample| sample.time_ns).max().expect("samples");
        let of = weights(process, &all, &["Sampled.Program::CatchNull"]);
        let late = all.iter().filter(|sample| sample.time_ns > last - 300_000_000).count();
        let place = format!("{late} samples at the end on {}, {} in all, {of:?}", runtime.version, all.len());
        assert!(late >= 3 && 10 * late > all.len(), "{place}");
    });
}

/// Run of `Signals`, which prints what it prints without us.
fn signals(runtime: &Runtime, way: &str) -> Run {
    let library = clrscope_testkit::native_library("Signals/signals.c");
    let arguments = [way, library.to_str().expect("a path in UTF-8")];
    let mut bare = runtime.command(&clrscope_testkit::fixture("Signals"));
    bare.args(arguments);
    let bare = clrscope_testkit::run(bare);
    let run = record_with(runtime, "Signals", "cpu:engine=timer", &arguments);
    assert_unchanged(&run.finished, &bare, &format!("{way} on {}", runtime.version));
    assert!(!samples(&run.recording.processes[0], "cpu").is_empty(), "{way} on {}", runtime.version);
    run
}

/// The program was ended by signal 62, with which timers took samples: it was unused when they
/// chose it.
#[test]
fn real_time_signals_may_be_set_to_their_default_action() {
    each_runtime(|runtime| {
        let run = signals(runtime, "defaults");
        let all = samples(&run.recording.processes[0], "cpu");
        let of = weights(&run.recording.processes[0], &all, &["Signals.Program::Work"])["Signals.Program::Work"];
        assert!(of > 50_000_000, "{of} ns of a second on {}", runtime.version);
    });
}

/// A handler of the program's for signal 62 was called for a timer.
#[test]
fn handlers_of_the_program_for_real_time_signals_get_none_of_timers() {
    each_runtime(|runtime| assert_eq!(signals(runtime, "handlers").finished.stdout_text(), "came 0\n"));
}

/// A signal that waited for a thread which blocks all was what that thread got when it waited for
/// signals.
#[test]
fn a_thread_that_blocks_and_awaits_all_signals_gets_none_of_timers() {
    if kernel_version() < (6, 13) {
        return not_run("signals that wait can't be taken back before Linux 6.13");
    }
    each_runtime(|runtime| {
        let run = signals(runtime, "waits");
        assert_eq!(run.finished.stdout_text(), "came 0\n", "{}", runtime.version);
        let losses = &run.recording.processes[0].losses;
        let unsampled = losses.iter().find(|loss| loss.reason == LossReason::ThreadUnsampled).map(|loss| loss.count);
        assert_eq!(unsampled, Some(1), "the thread used CPU time and has no samples, on {}", runtime.version);
    });
}

fn kernel_version() -> (u32, u32) {
    let text = std::fs::read_to_string("/proc/sys/kernel/osrelease").expect("a version");
    let mut numbers = text.split(|byte: char| !byte.is_ascii_digit()).map_while(|word| word.parse().ok());
    (numbers.next().expect("a number"), numbers.next().expect("a number"))
}
