//! The goals that are ratios of two runs, and other figures that are measured in the same way.

use super::programs::Program::{
    self, Beside, Callees, Collects, Compiler, CompilerUntiered, Hello, Library, Numbers, Quiet, Throws, Tiny,
};
use super::programs::Under::{
    self, Agent, Bare, BareClocks, DotnetTrace, EmptyAllocationCallback, EmptyCallbacks, EmptyHooks, EventPipe,
    Framework, GcVerbose, NoPrecompiled,
};

/// Limit that a goal sets.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum Limit {
    /// Maximum ratio of user CPU time.
    Ratio(f64),
    /// Maximum additional CPU time in milliseconds.
    MoreMs(f64),
    /// Maximum ratio, as a multiple of the ratio of the first comparison with this id.
    OfFirst(f64),
    /// No limit: measured for comparison.
    None,
}

/// One comparison.
#[derive(Debug, Clone, Copy)]
pub(super) struct Goal {
    pub(super) id: &'static str,
    pub(super) what: &'static str,
    pub(super) program: Program,
    pub(super) subject: Under,
    pub(super) base: Under,
    pub(super) limit: Limit,
}

const SAMPLED: Under = Agent("calls");
const TSC: Under = Agent("calls:clock=tsc,max=3GiB");

const FLOW: Under = Agent("flow;include=[Numbers]*::Traced*");
const FLOW_ARGS: Under = Agent("flow:args;include=[Numbers]*::Traced*");

const COVERAGE: Under = Agent("coverage;include=[Tiny]*");
const COVERED: Under = Agent("coverage:hits=off;include=[Tiny]*");

const EXCEPTIONS: Under = Agent("exceptions");

const fn goal(
    id: &'static str,
    what: &'static str,
    program: Program,
    subject: Under,
    base: Under,
    limit: Limit,
) -> Goal {
    Goal { id, what, program, subject, base, limit }
}

/// Hooks that the framework offers to other profilers.
const fn framework(what: &'static str, which: &'static str) -> Goal {
    goal("framework", what, Tiny(100), Framework(which), EmptyHooks, Limit::None)
}

/// Samples next to threads that do nothing: a sampler that stops all threads for each sample pays
/// for each of these.
const fn beside(what: &'static str, threads: u32, subject: Under, limit: Limit) -> Goal {
    goal("P4", what, Beside(1_500, threads), subject, Bare, limit)
}

/// Demand on `cpu`: so little of a program's speed.
const LITTLE: Limit = Limit::Ratio(1.01);

/// All comparisons, in the order of the report. The compiler, which takes longest, comes last.
pub(super) const GOALS: [Goal; 49] = [
    goal("P1", "tiny functions, `clock=tsc` / two bare clock reads", Tiny(400), TSC, BareClocks, Limit::Ratio(1.10)),
    goal("P2", "tiny functions, `clock=sampled` / empty hooks", Tiny(2_000), SAMPLED, EmptyHooks, Limit::Ratio(1.15)),
    goal("P2", "tiny functions, empty hooks / bare", Tiny(2_000), EmptyHooks, Bare, Limit::None),
    goal("callees", "1 callee in turn, `calls` / bare", Callees(1, 200_000_000), SAMPLED, Bare, Limit::None),
    goal(
        "callees",
        "5,000 callees in turn, `calls` / bare",
        Callees(5_000, 200_000_000),
        SAMPLED,
        Bare,
        Limit::OfFirst(3.0),
    ),
    goal(
        "callees",
        "200,000 callees in turn, `calls` / bare",
        Callees(200_000, 100_000_000),
        SAMPLED,
        Bare,
        Limit::OfFirst(3.0),
    ),
    goal("P6", "1 number, `flow:args` / `flow`", Numbers(1, 200), FLOW_ARGS, FLOW, Limit::Ratio(1.5)),
    goal("P6", "3 numbers, `flow:args` / `flow`", Numbers(3, 200), FLOW_ARGS, FLOW, Limit::Ratio(1.5)),
    goal(
        "P6",
        "6 numbers, 3 of them doubles, `flow:args` / `flow`",
        Numbers(6, 200),
        FLOW_ARGS,
        FLOW,
        Limit::Ratio(1.5),
    ),
    goal(
        "P6",
        "functions that are not traced beside some that are / bare",
        Numbers(0, 10_000),
        FLOW_ARGS,
        Bare,
        Limit::None,
    ),
    goal("gc", "3 GB allocated by two threads, `gc` / bare", Collects(3_000), Agent("gc"), Bare, Limit::Ratio(1.01)),
    goal("P5", "3 GB allocated, `alloc` / bare", Collects(3_000), Agent("alloc"), Bare, Limit::Ratio(1.01)),
    goal(
        "P5",
        "3 GB allocated, `alloc:exact` by type / empty allocation callback",
        Collects(3_000),
        Agent("alloc:exact,frames=0"),
        EmptyAllocationCallback,
        Limit::Ratio(1.1),
    ),
    goal(
        "P5",
        "3 GB allocated, `alloc:exact` with paths / empty allocation callback",
        Collects(3_000),
        Agent("alloc:exact"),
        EmptyAllocationCallback,
        Limit::Ratio(1.5),
    ),
    goal(
        "P5",
        "3 GB allocated, empty allocation callback / bare",
        Collects(3_000),
        EmptyAllocationCallback,
        Bare,
        Limit::None,
    ),
    goal("P5", "3 GB allocated, events of `gc-verbose` / bare", Collects(3_000), GcVerbose, Bare, Limit::None),
    goal("P8", "tiny functions, `coverage` / bare", Tiny(2_000), COVERAGE, Bare, Limit::Ratio(2.0)),
    goal("P8", "tiny functions, `coverage:hits=off` / bare", Tiny(2_000), COVERED, Bare, Limit::Ratio(1.1)),
    framework("tiny functions, safe hooks of the framework / empty hooks", "safe"),
    framework("tiny functions, its `CallStacks` / empty hooks", "stacks"),
    framework("tiny functions, its hooks with information / empty hooks", "info"),
    framework("tiny functions, these with the arguments of each call / empty hooks", "arguments"),
    goal("P11", "hello world, `calls` less precompiled code off", Hello, SAMPLED, NoPrecompiled, Limit::MoreMs(30.0)),
    goal("P3b", "libraries, `clock=sampled` / no profiler", Library(2_000), SAMPLED, Bare, Limit::Ratio(1.15)),
    goal(
        "P3b",
        "libraries, `clock=sampled` / precompiled code off",
        Library(2_000),
        SAMPLED,
        NoPrecompiled,
        Limit::None,
    ),
    goal("P3b", "libraries, `clock=sampled` / empty hooks", Library(2_000), SAMPLED, EmptyHooks, Limit::None),
    goal("peer", "libraries, EventPipe's sampler (200 Hz) / no profiler", Library(2_000), EventPipe, Bare, Limit::None),
    beside("libraries and 1 idle thread, `cpu` / bare", 1, Agent("cpu"), LITTLE),
    beside("libraries and 1 idle thread, `cpu:engine=timer` / bare", 1, Agent("cpu:engine=timer"), LITTLE),
    beside("libraries and 1 idle thread, EventPipe's sampler / bare", 1, EventPipe, Limit::None),
    beside("libraries and 1 idle thread, `dotnet-trace` / bare", 1, DotnetTrace, Limit::None),
    beside("libraries and 500 idle threads, `cpu` / bare", 500, Agent("cpu"), LITTLE),
    beside("libraries and 500 idle threads, EventPipe's sampler / bare", 500, EventPipe, Limit::None),
    beside("libraries and 500 idle threads, `dotnet-trace` / bare", 500, DotnetTrace, Limit::None),
    beside("libraries and 2,000 idle threads, `cpu` / bare", 2_000, Agent("cpu"), LITTLE),
    beside("libraries and 2,000 idle threads, `cpu:engine=timer` / bare", 2_000, Agent("cpu:engine=timer"), LITTLE),
    beside("libraries and 2,000 idle threads, EventPipe's sampler / bare", 2_000, EventPipe, Limit::None),
    beside("libraries and 2,000 idle threads, `dotnet-trace` / bare", 2_000, DotnetTrace, Limit::None),
    goal("counters", "libraries, `counters` / bare", Library(2_000), Agent("counters"), Bare, Limit::None),
    goal("memory", "libraries, `memory` / bare", Library(2_000), Agent("memory"), Bare, Limit::None),
    goal("rates", "compiler, `cpu` at 100 Hz / bare", Compiler, Agent("cpu:rate=100"), Bare, Limit::None),
    goal("rates", "compiler, `cpu` at 1 kHz / bare", Compiler, Agent("cpu"), Bare, Limit::None),
    goal("rates", "compiler, `cpu` at 10 kHz / bare", Compiler, Agent("cpu:rate=10000"), Bare, Limit::None),
    goal("last", "compiler, `cpu` with `--last 1s` / `cpu`", Compiler, Agent("cpu;last=1s"), Agent("cpu"), LITTLE),
    goal("P3", "compiler, `clock=sampled` / empty hooks", Compiler, SAMPLED, EmptyHooks, Limit::Ratio(1.3)),
    goal(
        "P3",
        "compiler without tiers, `clock=sampled` / empty hooks",
        CompilerUntiered,
        SAMPLED,
        EmptyHooks,
        Limit::None,
    ),
    goal("P3", "compiler, `clock=tsc` / empty hooks", Compiler, TSC, EmptyHooks, Limit::Ratio(2.3)),
    goal("P3", "compiler, `helpers=on` / empty hooks", Compiler, Agent("calls:helpers=on"), EmptyHooks, Limit::None),
    goal("P3", "compiler, empty hooks / precompiled code off", Compiler, EmptyHooks, NoPrecompiled, Limit::None),
];

/// Goals that are measured on each available runtime, because runtimes throw in different ways.
pub(super) const ON_EACH: [Goal; 3] = [
    goal("exceptions", "throw and catch, `exceptions` / bare", Throws(400_000), EXCEPTIONS, Bare, Limit::Ratio(1.30)),
    goal("exceptions", "throw and catch, empty callbacks / bare", Throws(400_000), EmptyCallbacks, Bare, Limit::None),
    goal("exceptions", "nothing thrown, `exceptions` / bare", Quiet(600_000), EXCEPTIONS, Bare, Limit::None),
];
