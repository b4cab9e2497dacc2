//! Arbitrary recordings.

use std::sync::Arc;

use clrscope_contract::labels::Label;
use clrscope_recording::model::{
    Advice, AllocationEngine, AllocationSampling, CallTree, CallTreeBuilder, CallsInfo, Clock, CoveragePlan,
    CoverageSource, Derived, EntryAssembly, EventArena, EventChunk, Exit, Function, FunctionFlags, FunctionKind,
    HeapSnapshot, HookCost, Identity, Loss, LossReason, Module, ModuleKind, NativeSymbol, NearName, Node, NodeFlags,
    NodeValues, ObjectType, OwnMemory, PairCost, Part, PartTrees, PlannedBranch, PlannedMethod, PlannedPoint, Problem,
    Process, ROOT, Recording, Remark, RemarkKind, Run, SampleSteps, Sampler, SamplingEngine, SnapshotReason,
    SnapshotState, SourceKind, StackFrame, Stacks, StacksBuilder, Thread, ThreadRole, TickClock, Tier, TreeSource,
};
use proptest::collection::vec;
use proptest::option;
use proptest::prelude::*;
use proptest::sample::select;

/// Any recording.
pub(crate) fn recording() -> impl Strategy<Value = Recording> {
    (run(), vec(process(), 0..3), vec(problem(), 0..3)).prop_map(|(run, processes, problems)| Recording {
        run,
        processes,
        problems,
        physical: None,
    })
}

fn text() -> impl Strategy<Value = String> {
    prop_oneof![4 => "\\PC{0,12}", 1 => Just(String::new()), 1 => any::<String>(), 1 => "[a-c.:]{200,300}"]
}

fn exit() -> impl Strategy<Value = Option<Exit>> {
    option::of(prop_oneof![any::<i32>().prop_map(Exit::Code), any::<i32>().prop_map(Exit::Signal)])
}

prop_compose! {
    fn run()(
        command in vec(text(), 0..4), started_unix_ns: u64, duration_ns: u64, exit in exit(),
        given in text(), filled in text(), clrscope_version in text(), id in text(),
    ) -> Run {
        let (given, filled) = (given.into(), filled.into());
        Run { command, started_unix_ns, duration_ns, exit, given, filled, clrscope_version, id }
    }
}

prop_compose! {
    fn problem()(place in text(), what in text()) -> Problem { Problem { place, what } }
}

prop_compose! {
    fn identity()(
        id in text(), host in text(), container in text(), labels in vec((text(), text()), 0..4),
    ) -> Identity {
        let labels = labels.into_iter().map(|(key, value)| Label { key, value }).collect();
        Identity { id, host, container, labels }
    }
}

prop_compose! {
    fn process()(
        ids: (u32, u32), command in vec(text(), 0..4), runtime in text(), times: (u64, u64),
        cpu_ns: Option<u64>, exit in exit(), complete: bool, calls in option::of(calls()),
        tables in (vec(function(), 0..20), vec(module(), 0..5), vec(thread(), 0..5)),
        losses in vec(loss(), 0..4), remarks in vec(remark(), 0..4), events in vec(arena(), 0..3),
        ticks in (any::<u64>(), cost()), stacks in stacks(), matched_patterns in vec(text(), 0..3),
        near in vec((text(), text()), 0..3), samplers in vec(sampler(), 0..3), symbols in vec(symbol(), 0..9),
        parts in vec(part(), 0..3), types in vec((text(), any::<u32>()), 0..9),
        allocation_sampling in option::of(allocation_sampling()),
        snapshots in vec(snapshot(), 0..3), processors: u32, own_memory in vec((text(), any::<u64>()), 0..3), coverage_plans in vec(coverage_plan(), 0..3),
        identity in identity(), entry in (text(), text()),
    ) -> Process {
        let (functions, modules, threads) = tables;
        Process {
            pid: ids.0, parent_pid: ids.1, command, runtime, started_ns: times.0, duration_ns: times.1, cpu_ns, exit,
            complete, calls, functions, modules, threads, losses, remarks, events, matched_patterns, parts,
            near_names: near.into_iter().map(|(pattern, name)| NearName { pattern, name }).collect(),
            types: types.into_iter().map(|(name, module)| ObjectType { name, module }).collect(),
            allocation_sampling,
            own_memory: own_memory.into_iter().map(|(instrument, bytes)| OwnMemory { instrument, bytes }).collect(),
            samplers,
            snapshots,
            coverage_plans,
            shown: None,
            shown_work: None,
            native_symbols: in_order(symbols),
            stacks: Arc::new(stacks),
            ticks: TickClock { start: ticks.0, ns_per_tick: ticks.1 },
            processors,
            identity,
            entry_assembly: EntryAssembly { name: entry.0, version: entry.1 },
            derived: Derived::default(),
        }
    }
}

prop_compose! {
    fn part()(
        name in text(), since_ns: u64, until_ns: u64, begins in vec(text(), 0..3), ends in vec(text(), 0..3),
    ) -> Part {
        Part { name, since_ns, until_ns, begins, ends, trees: PartTrees::default() }
    }
}

prop_compose! {
    fn snapshot()(
        numbers in [any::<u64>(), any::<u64>(), any::<u64>(), any::<u64>()], texts in [text(), text()], collected: bool,
        reason in select(SnapshotReason::ALL), state in select(SnapshotState::ALL), chunks: (u64, u64, u64), number: u32,
        pauses: (u64, u64),
    ) -> HeapSnapshot {
        let ([objects, bytes, references, roots], [name, why]) = (numbers, texts);
        let (first_chunk, last_chunk, tail_chunk) = chunks;
        let (pause_ns, walk_ns) = pauses;
        HeapSnapshot {
            number, time_ns: objects, reason, name, collected, state, why, pause_ns, walk_ns, objects, bytes, references,
            roots, first_chunk, last_chunk, tail_chunk,
        }
    }
}

prop_compose! {
    fn coverage_plan()(
        module: u32, files in vec(text(), 0..3), source in text(), numbers in vec(any::<[u32; 6]>(), 0..4), print: u64,
        assembly in text(),
    ) -> CoveragePlan {
        let point = |of: &[u32; 6]| {
            let [il_offset, file, start_line, start_column, end_line, end_column] = *of;
            PlannedPoint { il_offset, file, start_line, start_column, end_line, end_column }
        };
        let branch = |of: &[u32; 6]| {
            let [il_offset, path, target_offset, file, line, _] = *of;
            PlannedBranch { il_offset, path, target_offset, file, line }
        };
        let (points, branches) = (numbers.iter().map(point).collect(), numbers.iter().map(branch).collect());
        let sources = vec![CoverageSource { class: source.clone(), name: source, parameters: "()".to_owned() }];
        let methods = vec![PlannedMethod { token: module, source: 0, fingerprint: print, points, branches }];
        CoveragePlan { module, files, sources, methods, assembly }
    }
}

fn in_order(mut symbols: Vec<NativeSymbol>) -> Vec<NativeSymbol> {
    symbols.sort_by_key(NativeSymbol::module_and_offset);
    symbols
}

prop_compose! {
    fn symbol()(module: u32, offset: u32, size: u32, name in text()) -> NativeSymbol {
        NativeSymbol { module, offset, size, name }
    }
}

prop_compose! {
    fn sampler()(
        texts in [text(), text(), text()], times: (u64, u64), kernel: bool,
        engine in select(vec![
            SamplingEngine::Unknown, SamplingEngine::Perf, SamplingEngine::Timer, SamplingEngine::Signals,
        ]),
    ) -> Sampler {
        let [instrument, why_engine, why_no_kernel] = texts;
        Sampler { instrument, engine, interval_ns: times.0, reached_ns: times.1, kernel, why_engine, why_no_kernel }
    }
}

prop_compose! {
    fn allocation_sampling()(
        numbers: [u64; 2], switches: [bool; 3], why_engine in text(),
        engine in select(vec![
            AllocationEngine::Unknown, AllocationEngine::Exact, AllocationEngine::Randomized, AllocationEngine::Ticks,
        ]),
    ) -> AllocationSampling {
        let ([mean_bytes, own_bytes], [large_exact, pinned_exact, follows]) = (numbers, switches);
        AllocationSampling { engine, mean_bytes, large_exact, pinned_exact, follows, own_bytes, why_engine }
    }
}

fn cost() -> impl Strategy<Value = f64> {
    prop_oneof![Just(0.0), 0.0..100.0, 0.0..f64::MAX]
}

prop_compose! {
    fn calls()(
        tsc: bool, switches: [bool; 5], pairs in prop::collection::btree_map(any::<u32>(), (any::<u32>(), cost()), 0..4), costs in [cost(), cost(), cost(), cost()], interval_ns: u64, steps: (u64, u64),
    ) -> CallsInfo {
        let [noinline, native, helpers, trivial, cpu_measured] = switches;
        let [enter_ns, leave_ns, pair_low_ns, pair_high_ns] = costs;
        CallsInfo {
            clock: if tsc { Clock::Tsc } else { Clock::Sampled },
            noinline, native, helpers, trivial, cpu_measured, interval_ns,
            hook_cost: HookCost { enter_ns, leave_ns, pair_low_ns, pair_high_ns },
            pair_costs: pairs.into_iter().map(|(caller, (callee, enter_ns))| {
                PairCost { caller, callee, cost: HookCost { enter_ns, ..HookCost::default() } }
            }).collect(),
            sample_steps: SampleSteps { wall_ns: steps.0, cpu_ns: steps.1 },
        }
    }
}

prop_compose! {
    fn function()(
        names in [text(), text(), text()], module: u32, token: u32,
        kind in select(vec![
            FunctionKind::Managed, FunctionKind::Native, FunctionKind::Runtime, FunctionKind::Suspended,
            FunctionKind::Kernel, FunctionKind::Stub,
        ]),
        source in select(vec![
            SourceKind::Plain, SourceKind::Async, SourceKind::Iterator, SourceKind::Lambda, SourceKind::LocalFunction,
        ]),
        flags: [bool; 4],
    ) -> Function {
        let [name, signature, raw_name] = names;
        let [dynamic, unloaded, inlined, tail_recursive] = flags;
        let flags = FunctionFlags { dynamic, unloaded, inlined, tail_recursive };
        Function { name, signature, raw_name, module, token, kind, source, flags }
    }
}

prop_compose! {
    fn module()(
        name in text(), path in text(), version in text(), framework: bool, build_id in text(),
        kind in select(vec![ModuleKind::Managed, ModuleKind::Native, ModuleKind::Kernel, ModuleKind::Stub]),
    ) -> Module {
        Module { name, path, version, framework, kind, build_id }
    }
}

prop_compose! {
    fn thread()(
        ids: (u32, u32), name in text(),
        role in select(ThreadRole::ALL.to_vec()),
        created_ns: u64, ended_ns: Option<u64>, cpu_ns: Option<u64>, out_of_stack_at: u32, tree in tree(),
    ) -> Thread {
        let tree = TreeSource::ready(tree);
        Thread { id: ids.0, os_id: ids.1, name, role, created_ns, ended_ns, cpu_ns, out_of_stack_at, tree }
    }
}

prop_compose! {
    fn loss()(
        reason in select(LossReason::ALL.to_vec()),
        count: u64, first_ns: u64, last_ns: u64, details in vec(text(), 0..3),
    ) -> Loss {
        Loss { reason, count, first_ns, last_ns, details }
    }
}

prop_compose! {
    fn remark()(time_ns: u64, kind in remark_kind(), text in text()) -> Remark { Remark { time_ns, kind, text } }
}

fn remark_kind() -> impl Strategy<Value = RemarkKind> {
    prop_oneof![
        Just(RemarkKind::Note),
        Just(RemarkKind::Refusal),
        Just(RemarkKind::NoAwaiters),
        vec(text(), 0..3).prop_map(|patterns| RemarkKind::Advice(Advice::Exclude(patterns))),
    ]
}

prop_compose! {
    fn arena()(instrument in text(), chunks in vec(event(), 0..3)) -> EventArena { EventArena { instrument, chunks } }
}

prop_compose! {
    fn event()(thread: u32, sequence: u64, bytes in vec(any::<u8>(), 0..200)) -> EventChunk {
        EventChunk { thread, sequence, bytes: bytes.into() }
    }
}

fn frame() -> impl Strategy<Value = StackFrame> {
    let method = (0..5_u32, option::of(0..u32::MAX), any::<u16>(), select(Tier::ALL.to_vec()));
    prop_oneof![
        4 => method.prop_map(|(function, il_offset, il_span, tier)| StackFrame::Method { function, il_offset, il_span, tier }),
        1 => any::<(u32, u32)>().prop_map(|(module, offset)| StackFrame::Native { module, offset }),
    ]
}

fn stacks() -> impl Strategy<Value = Stacks> {
    vec((vec(frame(), 0..9), any::<bool>()), 0..12).prop_map(|all| {
        let mut builder = StacksBuilder::default();
        all.iter().for_each(|(frames, cut)| _ = builder.stack(frames, *cut));
        builder.finish()
    })
}

fn time() -> impl Strategy<Value = NodeValues> {
    let any_time = (any::<u64>(), any::<u64>()).prop_map(|(metric, cpu_ns)| NodeValues { metric, cpu_ns });
    prop_oneof![3 => Just(NodeValues::default()), 1 => any_time]
}

fn count() -> impl Strategy<Value = u64> {
    prop_oneof![4 => 0..300_u64, 1 => any::<u64>()]
}

fn function_index() -> impl Strategy<Value = u32> {
    prop_oneof![8 => 0..40_u32, 1 => any::<u32>()]
}

/// Any tree in preorder; sometimes one without even a root.
pub(crate) fn tree() -> impl Strategy<Value = CallTree> {
    let nodes = vec((any::<usize>(), function_index(), count(), time(), any::<bool>()), 0..60);
    (time(), nodes, 0..8_u8).prop_map(|(root, nodes, rare)| {
        if rare == 0 {
            return CallTree::default();
        }
        let mut builder = CallTreeBuilder::new(root);
        let mut path = vec![ROOT];
        for (depth, function, calls, time, by_tail_call) in nodes {
            path.truncate(1 + depth % path.len());
            let parent = path[path.len() - 1];
            path.push(builder.push(Node { parent, function, calls, values: time, flags: NodeFlags { by_tail_call } }));
        }
        builder.finish()
    })
}
