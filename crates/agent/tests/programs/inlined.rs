//! Methods that the compiler put into others, in the stacks of samples: a program says which
//! methods its source has on the way to where time goes, and what the runtime's own stack trace has
//! there.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

use crate::support::{Run, record_command, under_agent};
use clrscope_recording::model::{Inlining, Process, Sample, StackFrame, Tier};
use clrscope_testkit::{
    Runtime, Sdk, Service, attempted, each_runtime, each_web_runtime, fixture, get, not_run, run, samples, scratch,
};

/// Shape of a call, as the program tells it.
#[derive(Default)]
struct Shape {
    /// Methods of the source between the shape's own and the leaf, outermost first; `?` where two
    /// ways lead there.
    source: Vec<String>,
    /// Frames of the runtime's stack trace, the shape's own first.
    frames: Vec<String>,
}

/// Shapes by their names, as the program tells them.
fn shapes(text: &str) -> BTreeMap<String, Shape> {
    let mut shapes: BTreeMap<String, Shape> = BTreeMap::new();
    for line in text.lines() {
        let mut words = line.split(' ').map(str::to_owned);
        let (Some(kind), Some(name)) = (words.next(), words.next()) else { continue };
        match kind.as_str() {
            "SHAPE" => shapes.entry(name).or_default().source = words.collect(),
            "FRAMES" => shapes.entry(name).or_default().frames = words.collect(),
            _ => {}
        }
    }
    shapes
}

/// Methods of a stack from the outermost on, each with whether it was put into its caller:
/// `Type::Method`.
fn methods(process: &Process, stack: u32) -> Vec<(String, bool)> {
    let method = |frame| match frame {
        StackFrame::Method { function, tier, .. } => {
            let name = process.functions.get(function as usize)?.name.as_str();
            let (of, method) = name.split_once("::")?;
            Some((format!("{}::{method}", of.rsplit(['.', '+']).next()?), tier == Tier::Inlined))
        }
        _ => None,
    };
    let mut methods: Vec<_> = process.stacks.frames(stack).filter_map(method).collect();
    methods.reverse();
    methods
}

/// Judgement of the samples of all shapes.
#[derive(Debug, Default)]
struct Judged {
    /// Shapes whose samples all have the methods of the source.
    whole: BTreeSet<String>,
    /// Stacks that are neither the source's nor lack a method of it that was put into another one.
    wrong: BTreeSet<String>,
    /// Samples by what is said of inlined methods.
    said: BTreeMap<Inlining, u64>,
}

/// Stacks of the samples of an instrument that are certain.
fn sampled_by(instrument: &str, process: &Process) -> Vec<(u32, Inlining)> {
    let certain = samples(process, instrument).filter(Sample::is_certain);
    certain.map(|sample| (sample.stack, sample.inlining)).collect()
}

fn sampled(process: &Process) -> Vec<(u32, Inlining)> {
    sampled_by("cpu", process)
}

/// All stacks of a recording, with what each of them begins with.
fn all(process: &Process) -> Vec<(u32, Inlining)> {
    (0..process.stacks.len()).map(|place| (process.stacks.number(place), Inlining::Unknown)).collect()
}

fn judge(process: &Process, stacks: Vec<(u32, Inlining)>, shapes: &BTreeMap<String, Shape>) -> Judged {
    let (mut judged, mut partly) = (Judged::default(), BTreeSet::new());
    for (stack, inlining) in stacks {
        let frames = stack;
        let stack = methods(process, stack);
        let Some(at) = stack.iter().position(|(name, _)| name.starts_with("Shapes::")) else { continue };
        let name = stack[at].0.trim_start_matches("Shapes::").to_owned();
        // The leaf calls others too, where it asks for the runtime's stack trace.
        let is_leaf = |(name, _): &(String, bool)| name == "Work::Leaf";
        let ends_in_leaf = stack.iter().position(is_leaf) == Some(stack.len() - 1);
        let Some(shape) = shapes.get(&name).filter(|_| ends_in_leaf) else { continue };
        let between = &stack[at + 1..stack.len() - 1];
        // What is said of the sample is what its frames say; methods of the framework are not
        // asked.
        let is_inlined = |frames: &[(String, bool)]| frames.iter().any(|(_, is_inlined)| *is_inlined);
        let all: Vec<&str> = between.iter().map(|(name, _)| name.as_str()).collect();
        let is_ambiguous = shape.source == ["?"];
        let is_odd = match inlining {
            Inlining::Unknown => false,
            // Where all is known the stack is whole.
            Inlining::Named => !is_inlined(&stack) || (!is_ambiguous && all != shape.source),
            _ => is_inlined(between) || (!is_ambiguous && all != shape.source),
        };
        if is_odd {
            let frames: Vec<_> = process.stacks.frames(frames).collect();
            judged.wrong.insert(format!("{inlining:?} of {stack:?}: {frames:?}"));
        }
        *judged.said.entry(inlining).or_default() += 1;
        if all == shape.source {
            judged.whole.insert(name);
            continue;
        }
        partly.insert(name);
        // What is missing must be what the runtime has no frame of either.
        let mut source = shape.source.iter();
        let in_order = all.iter().all(|name| source.any(|one| one == name));
        let lacks_frame =
            shape.frames.iter().skip(1).any(|frame| !frame.starts_with('<') && !all.contains(&frame.as_str()));
        // Where two ways lead there, none may be taken; what is called in code that is not
        // optimised has frames of its own.
        let is_wrong = match shape.source.as_slice() {
            [unknown] if unknown == "?" => between.iter().any(|(_, is_inlined)| *is_inlined),
            _ => !in_order || lacks_frame,
        };
        if is_wrong {
            judged.wrong.insert(format!("{stack:?} for {:?}", shape.source));
        }
    }
    judged.whole.retain(|name| !partly.contains(name));
    judged
}

/// The words behind the instrument that have the runtime's debug information as well.
const EXACT: &str = ";inlined=exact";

/// A run of the fixture with these words, `tiers` on (1) or off (0).
fn recorded(runtime: &Runtime, request: &str, words: &[&str], tiers: &str) -> Run {
    recorded_with(runtime, request, words, ("DOTNET_TieredCompilation", tiers))
}

/// A run of the fixture with these words, and a variable of its environment.
fn recorded_with(runtime: &Runtime, request: &str, words: &[&str], (variable, value): (&str, &str)) -> Run {
    let mut command = runtime.command(&fixture("Inlinees"));
    command.args(words).env(variable, value);
    if request.ends_with(EXACT) {
        command.env("DOTNET_RichDebugInfo", "1");
    }
    record_command(runtime, "Inlinees", request, command)
}

/// Checks the samples of all shapes: at least so many must have each method of the source. What
/// they say of inlining.
fn check_shapes(
    runtime: &Runtime,
    request: &str,
    (rounds, tiers): (&str, &str),
    at_least: usize,
) -> BTreeMap<Inlining, u64> {
    check_run(runtime, request, &recorded(runtime, request, &[rounds], tiers), at_least)
}

fn check_run(runtime: &Runtime, request: &str, run: &Run, at_least: usize) -> BTreeMap<Inlining, u64> {
    let shapes = shapes(&run.finished.stdout_text());
    let process = &run.recording.processes[0];
    let judged = judge(process, sampled(process), &shapes);
    assert!(judged.wrong.is_empty(), "{} {request}: {:#?}", runtime.version, judged.wrong);
    let missed: Vec<&String> = shapes.keys().filter(|name| !judged.whole.contains(*name)).collect();
    let (whole, said) = (judged.whole.len(), judged.said);
    assert!(whole >= at_least, "{} {request}: {whole} shapes, not {missed:?}", runtime.version);
    assert!(!said.is_empty() && !said.contains_key(&Inlining::Unsaid), "{} {request}: {said:?}", runtime.version);
    said
}

#[test]
fn methods_that_were_put_into_others_are_named_where_a_call_tells_them() {
    each_runtime(|runtime| {
        check_shapes(runtime, "cpu", ("1", "0"), 100);
    });
}

/// With all tiers, and interfaces that the compiler has seen one class of: methods that are called
/// in one tier are put into others in the next.
#[test]
fn no_tier_has_a_method_that_the_compiler_refused() {
    each_runtime(|runtime| {
        check_shapes(runtime, "cpu", ("40", "1"), 80);
    });
}

/// A stack that differs from the source's in anything fails this where inlining is said to be
/// known.
#[test]
fn with_debug_information_inlining_is_known_nearly_everywhere() {
    each_runtime(|runtime| {
        let said = check_shapes(runtime, &format!("cpu{EXACT}"), ("40", "1"), 100);
        assert_mostly_known(runtime, &said);
    });
}

/// At most a tenth of the samples may say that inlining is not known.
fn assert_mostly_known(runtime: &Runtime, said: &BTreeMap<Inlining, u64>) {
    let (unknown, all) = (said.get(&Inlining::Unknown).copied().unwrap_or(0), said.values().sum::<u64>());
    assert!(unknown * 100 <= all * 10, "{}: {said:?}", runtime.version);
}

/// Without a guess about the delegate's method the call of a lambda says nothing of its callee, and
/// the block with that call has no statement: the method that was put into another one around it
/// was said not to be there.
#[test]
fn a_call_without_a_statement_is_not_said_to_be_in_no_inlined_method() {
    each_runtime(|runtime| {
        let request = format!("cpu:rate=10000{EXACT}");
        let run = recorded_with(runtime, &request, &["40"], ("DOTNET_JitEnableGuardedDevirtualization", "0"));
        assert_mostly_known(runtime, &check_run(runtime, &request, &run, 90));
    });
}

/// Where the words of the outermost frames were read later once, at the start, each stack that went
/// on from them was called a guess for as long as the thread stood on them: 415 of 29,900 samples
/// were left as certain (10, without instructions that need a new processor, five of eight runs).
#[test]
fn a_guess_at_the_start_of_a_thread_does_not_last() {
    each_runtime(|runtime| {
        let no_new_instructions = ("DOTNET_EnableHWIntrinsic", "0");
        let run = recorded_with(runtime, "cpu:rate=10000", &["40"], no_new_instructions);
        let process = &run.recording.processes[0];
        let is_in_shape = |stack: u32| methods(process, stack).iter().any(|(name, _)| name.starts_with("Shapes::"));
        let in_shapes: Vec<Sample> = samples(process, "cpu").filter(|sample| is_in_shape(sample.stack)).collect();
        let certain = in_shapes.iter().filter(|sample| sample.is_certain()).count();
        assert!(in_shapes.len() > 100, "{}: {} samples", runtime.version, in_shapes.len());
        assert!(certain * 100 >= in_shapes.len() * 95, "{}: {certain} of {}", runtime.version, in_shapes.len());
    });
}

/// Two methods that call nothing, the one through a third; the program clocks them in their caller,
/// and prints nanoseconds of both.
const CLOCKED: &str = r#"
using System;
using System.Diagnostics;
using System.Runtime.CompilerServices;

static class Clocked
{
    static long sink, slow, quick;

    [MethodImpl(MethodImplOptions.AggressiveInlining)]
    static long Slow(long n) { long s = 1; for (long i = 0; i < n * 3; i++) s = s * 31 + (s >> 7); return s; }

    [MethodImpl(MethodImplOptions.AggressiveInlining)]
    static long Quick(long n) { long s = 2; for (long i = 0; i < n; i++) s = s * 31 + (s >> 7); return s; }

    [MethodImpl(MethodImplOptions.AggressiveInlining)]
    static long Middle(long n) { long a = Slow(n); return a + 1; }

    [MethodImpl(MethodImplOptions.NoInlining)]
    static long Outer(long n)
    {
        long begin = Stopwatch.GetTimestamp();
        long a = Middle(n);
        long between = Stopwatch.GetTimestamp();
        long b = Quick(n);
        long end = Stopwatch.GetTimestamp();
        slow += between - begin;
        quick += end - between;
        return a ^ b;
    }

    static void Main()
    {
        var all = Stopwatch.StartNew();
        while (all.ElapsedMilliseconds < 3000) sink += Outer(100_000);
        Console.WriteLine($"{slow} {quick} {sink & 1}");
    }
}
"#;

/// Compiles the program into a folder; `None` where there is no compiler.
fn clocked(folder: &Path) -> Option<PathBuf> {
    let sdk = Sdk::find()?;
    let [source, program] = ["Clocked.cs", "Clocked.dll"].map(|name| folder.join(name));
    fs::write(&source, CLOCKED).expect("a file");
    let mut compiler = sdk.compiler_to(&program);
    compiler.args(["-optimize", "-debug:embedded"]).arg(&source);
    run(compiler).expect_success();
    let config = fixture("Inlinees").with_extension("runtimeconfig.json");
    fs::copy(config, program.with_extension("runtimeconfig.json")).expect("copied");
    Some(program)
}

/// Samples whose innermost method of the program is this one, and those of them in which it is
/// inlined.
fn innermost(process: &Process, name: &str) -> (u64, u64) {
    let stacks = sampled(process).into_iter().map(|(stack, _)| methods(process, stack));
    let own = stacks.filter_map(|stack| stack.into_iter().rev().find(|(name, _)| name.starts_with("Clocked::")));
    let of_it: Vec<_> = own.filter(|(found, _)| found == name).collect();
    (of_it.len() as u64, of_it.iter().filter(|(_, is_inlined)| *is_inlined).count() as u64)
}

#[test]
fn time_of_inlined_methods_that_call_nothing_is_what_the_program_clocked() {
    let folder = scratch();
    let Some(program) = clocked(folder.path()) else { return not_run("there is no .NET SDK") };
    each_runtime(|runtime| attempted(|| as_clocked(runtime, &program)).unwrap_or_else(|fault| panic!("{fault}")));
}

/// Compares the samples of one run with what the program clocked in it.
fn as_clocked(runtime: &Runtime, program: &Path) -> Result<(), String> {
    let mut command = runtime.command(program);
    command.env("DOTNET_RichDebugInfo", "1");
    let run = record_command(runtime, "Clocked", &format!("cpu{EXACT}"), command);
    let text = run.finished.stdout_text();
    let numbers: Vec<f64> = text.split_whitespace().filter_map(|word| word.parse().ok()).collect();
    let share = numbers[0] / (numbers[0] + numbers[1]);
    let process = &run.recording.processes[0];
    let [(slow, slow_inlined), (quick, _), (middle, _), (outer, _)] =
        ["Slow", "Quick", "Middle", "Outer"].map(|name| innermost(process, &format!("Clocked::{name}")));
    let all = slow + quick + middle + outer;
    // Four times the deviation of a share of so many samples.
    let limit = 4.0 * (share * (1.0 - share) / all as f64).sqrt();
    let is_right = all >= 1_000
        && (slow as f64 / all as f64 - share).abs() <= limit
        && slow_inlined * 100 >= slow * 80
        && (middle + outer) * 100 <= all;
    let counts = format!("{slow} ({slow_inlined} inlined), {quick}, {middle}, {outer}, clocked {share}");
    if is_right { Ok(()) } else { Err(format!("{}: {counts}", runtime.version)) }
}

/// The handlers of a web program were in no view: the server's method around each is made at run
/// time, and the compiler puts the handler into it.
#[test]
fn methods_that_are_put_into_dynamic_methods_are_named() {
    each_runtime(|runtime| {
        let run = recorded(runtime, "cpu", &["1"], "0");
        let shapes = shapes(&run.finished.stdout_text());
        let process = &run.recording.processes[0];
        let judged = judge(process, sampled(process), &shapes);
        for name in ["ByExpression", "OfTarget", "ByIl", "ByIlBesideOther", "ByIlRefused"] {
            assert!(
                judged.whole.contains(name),
                "{} {name}: {:?}",
                runtime.version,
                shapes.get(name).map(|it| &it.source)
            );
        }
        let unknown = sampled(process).into_iter().map(|(stack, _)| methods(process, stack));
        let mut both = unknown.filter(|stack| stack.iter().any(|(name, _)| name == "DynamicClass::ByIlTwice"));
        assert!(both.next().is_some(), "{}", runtime.version);
        assert!(
            both.all(|stack| stack.iter().all(|(_, is_inlined)| !is_inlined)),
            "{}: two ways lead there",
            runtime.version
        );
    });
}

/// A class implements an interface by a method of another name, and a method that was refused calls
/// one of that name.
#[test]
fn a_method_that_implements_another_name_proves_no_refused_caller() {
    each_runtime(|runtime| {
        let run = recorded(runtime, "cpu", &["1"], "0");
        let process = &run.recording.processes[0];
        let stacks: Vec<_> = sampled(process).into_iter().map(|(stack, _)| methods(process, stack)).collect();
        let of_shape = |stack: &&Vec<(String, bool)>| stack.iter().any(|(name, _)| name == "Shapes::ByAnotherName");
        assert!(stacks.iter().any(|stack| of_shape(&stack)), "{}", runtime.version);
        let refused = |stack: &&Vec<(String, bool)>| stack.iter().any(|(name, _)| name == "Careful::Refuse");
        assert_eq!(stacks.iter().find(refused), None, "{}", runtime.version);
    });
}

#[test]
fn stacks_of_exceptions_and_allocations_have_methods_that_were_put_into_others() {
    each_runtime(|runtime| {
        for (does, request) in [("throw", "exceptions"), ("allocate", "alloc"), ("throw", "exceptions;inlined=exact")] {
            let run = recorded(runtime, request, &["1", does], "0");
            let mut shapes = shapes(&run.finished.stdout_text());
            // The runtime's own walk in callbacks leaves dynamic methods out.
            shapes.retain(|_, shape| !shape.source.iter().any(|name| name.starts_with("DynamicClass::")));
            let process = &run.recording.processes[0];
            let judged = judge(process, all(process), &shapes);
            assert!(judged.wrong.is_empty(), "{} {request}: {:#?}", runtime.version, judged.wrong);
            let missed: Vec<&String> = shapes.keys().filter(|name| !judged.whole.contains(*name)).collect();
            assert!(judged.whole.len() >= 100, "{} {request}: not {missed:?}", runtime.version);
        }
    });
}

#[test]
fn the_lambda_that_handles_requests_is_on_the_stacks_of_a_web_program() {
    each_web_runtime(|runtime| {
        let folder = scratch();
        let out = folder.path().join("web.clrs.d");
        let mut command = runtime.command(&fixture("Web"));
        under_agent(&mut command, "cpu;wall", &out);
        let service = Service::start(command);
        let address = service.address().to_owned();
        for _ in 0..60 {
            assert_eq!(get(&address, "/wait"), 200, "{}", runtime.version);
        }
        service.stop("TERM").expect_success();
        let recording = clrscope_recording::open(&out).expect("a recording");
        let process = &recording.processes[0];
        for (instrument, callee) in [("cpu", "Program::Busy"), ("wall", "Task::InternalWait")] {
            let stacks = sampled_by(instrument, process).into_iter().map(|(stack, _)| methods(process, stack));
            let in_handler: Vec<_> = stacks
                .filter(|stack| {
                    stack
                        .windows(2)
                        .any(|two| two[0].0.starts_with("DynamicClass::lambda_method") && two[1].0 == callee)
                        || stack.iter().any(|(name, is_inlined)| *is_inlined && name == "Handlers::Map")
                })
                .collect();
            let is_named = |stack: &&Vec<(String, bool)>| stack.iter().any(|(name, _)| name == "Handlers::Map");
            let (named, all) = (in_handler.iter().filter(is_named).count(), in_handler.len());
            assert!(all >= 10 && named * 100 >= all * 95, "{} {instrument}: {named} of {all}", runtime.version);
        }
    });
}
