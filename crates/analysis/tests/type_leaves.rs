//! Paths of allocations that end in the types of the objects, from allocations made by hand.

use std::collections::BTreeMap;
use std::sync::Arc;

use clrscope_analysis::{
    BYTES, Forest, FunctionRef, Metric, OBJECTS, PictureChange, PictureMeasure, Pictures, Query, StackLog, TreeNode,
    TreeOptions, allocations, functions, tree,
};
use clrscope_contract::request::{Glob, Pattern};
use clrscope_recording::model::{
    Allocation, AllocationKind, EventArena, EventChunk, Function, FunctionKind, Module, ObjectType, Process, Recording,
    StackFrame, StacksBuilder, Thread,
};

/// Frames of a stack, the outermost first: `Main`, then `Fill` or `Copy`.
type Path = &'static [u32];

/// An allocation: the path, the type, and the bytes.
const ALLOCATED: [(Path, u32, u64); 7] = [
    (&[1, 2], 1, 100),
    (&[1, 2], 2, 30),
    (&[1, 2], 1, 1_000),
    (&[1, 3], 1, 7),
    (&[1], 2, 500),
    // No stack, and a type that is not known.
    (&[], 2, 11),
    (&[1, 3], 0, 13),
];

fn recording() -> Recording {
    let mut stacks = StacksBuilder::default();
    let mut record = |&(path, object_type, bytes): &(Path, u32, u64)| {
        let frames: Vec<_> = path.iter().rev().map(|function| StackFrame::method(*function, None)).collect();
        let stack = stacks.stack(&frames, false);
        let (objects, objects_weight) = (1, 1 << 10);
        let known = Allocation { objects, bytes, weight: bytes, objects_weight, ..Allocation::default() };
        Allocation { kind: AllocationKind::Allocated, time_ns: 1, object_type, stack, ..known }
    };
    let chunk = |thread: u32, of: &[(Path, u32, u64)], record: &mut dyn FnMut(&(Path, u32, u64)) -> Allocation| {
        let bytes: Vec<u8> = of.iter().flat_map(|one| record(one).to_bytes()).collect();
        EventChunk { thread, sequence: 1 + u64::from(thread), bytes: bytes.into() }
    };
    let (first, second) = ALLOCATED.split_at(3);
    let chunks = vec![chunk(0, first, &mut record), chunk(1, second, &mut record)];
    let named = |name: &str| Function { name: name.to_owned(), module: 1, ..Function::default() };
    let of_type = |name: &str| ObjectType { name: name.to_owned(), module: 1 };
    let process = Process {
        pid: 7,
        threads: [1, 2].map(|id| Thread { id, ..Thread::default() }).into(),
        modules: vec![Module::default(), Module { name: "Shop".to_owned(), ..Module::default() }],
        functions: vec![
            Function::default(),
            named("Shop.Cache::Main"),
            named("Shop.Cache::Fill"),
            named("Shop.C::Copy"),
        ],
        types: vec![ObjectType::default(), of_type("byte[]"), of_type("Shop.Order")],
        stacks: Arc::new(stacks.finish()),
        events: vec![EventArena { instrument: "alloc".into(), chunks }],
        ..Process::default()
    };
    Recording { processes: vec![process], ..Recording::default() }
}

fn by_type(metric: &'static Metric) -> Query {
    Query { metric: Some(metric), type_leaves: true, ..Query::default() }
}

/// Each path as text with own amount and total.
fn paths(query: &Query) -> Vec<(String, u64, u64)> {
    let recording = recording();
    let tree = tree(&recording, query, &TreeOptions::default()).expect("a tree");
    let mut path: Vec<String> = Vec::new();
    let text = |node: &TreeNode<'_>| {
        path.truncate(node.depth as usize);
        path.push(node.function.name().to_owned());
        (path.join(" > "), node.amount.own, node.amount.total)
    };
    tree.nodes.iter().map(text).collect()
}

fn row(path: &str, own: u64, total: u64) -> (String, u64, u64) {
    (
        path.replace("Main", "Shop.Cache::Main").replace("Fill", "Shop.Cache::Fill").replace("Copy", "Shop.C::Copy"),
        own,
        total,
    )
}

#[test]
fn each_method_has_the_types_that_it_allocates_below_it_and_the_same_total() {
    let plain = Query { metric: Some(&BYTES), ..Query::default() };
    assert_eq!(
        paths(&plain),
        [
            row("Main", 500, 1_650),
            row("Main > Fill", 1_130, 1_130),
            row("Main > Copy", 20, 20),
            row("(unknown)", 11, 11)
        ]
    );
    assert_eq!(
        paths(&by_type(&BYTES)),
        [
            row("Main", 0, 1_650),
            row("Main > Fill", 0, 1_130),
            row("Main > Fill > byte[]", 1_100, 1_100),
            row("Main > Fill > Shop.Order", 30, 30),
            row("Main > Shop.Order", 500, 500),
            row("Main > Copy", 0, 20),
            row("Main > Copy > (unknown type)", 13, 13),
            row("Main > Copy > byte[]", 7, 7),
            row("(unknown)", 0, 11),
            row("(unknown) > Shop.Order", 11, 11),
        ]
    );
    let objects = paths(&by_type(&OBJECTS));
    assert_eq!(objects[2], row("Main > Fill > byte[]", 2, 2));
}

#[test]
fn a_type_has_in_its_leaves_what_the_view_of_types_says() {
    let recording = recording();
    let said = allocations(&recording, &Query::default()).expect("allocations");
    let known = |name: &str| (if name.is_empty() { "(unknown type)" } else { name }).to_owned();
    let said: BTreeMap<String, u64> = said.rows.iter().map(|row| (known(row.type_name), row.bytes)).collect();
    let tree = tree(&recording, &by_type(&BYTES), &TreeOptions::default()).expect("a tree");
    let mut leaves: BTreeMap<String, u64> = BTreeMap::new();
    for node in tree.nodes.iter().filter(|node| node.function.kind() == FunctionKind::Type) {
        assert_eq!((node.children, node.amount.own), (0, node.amount.total), "a leaf");
        *leaves.entry(node.function.name().to_owned()).or_default() += node.amount.own;
    }
    assert_eq!(leaves, said);
    assert_eq!(leaves.values().sum::<u64>(), tree.conditions.total);
}

#[test]
fn filters_of_types_threads_and_functions_apply_to_paths_with_leaves() {
    let glob = |text: &str| Glob::new(text);
    let of_orders = Query { types: vec![glob("Shop.*")], ..by_type(&BYTES) };
    assert_eq!(
        paths(&of_orders),
        [
            row("Main", 0, 530),
            row("Main > Shop.Order", 500, 500),
            row("Main > Fill", 0, 30),
            row("Main > Fill > Shop.Order", 30, 30),
            row("(unknown)", 0, 11),
            row("(unknown) > Shop.Order", 11, 11),
        ]
    );
    // Patterns of functions are not about types, whatever their names are.
    let of_functions = Query { functions: vec![Pattern::parse("Shop.C*").expect("a pattern")], ..by_type(&BYTES) };
    let roots = paths(&of_functions).into_iter().filter(|(path, ..)| !path.contains('>'));
    assert_eq!(roots.collect::<Vec<_>>(), [row("Main", 0, 1_650)]);
    let apart = paths(&Query { per_thread: true, ..by_type(&BYTES) });
    assert_eq!(apart[..3].iter().map(|(.., total)| *total).collect::<Vec<_>>(), [1_130, 1_130, 1_100]);
}

#[test]
fn rows_of_functions_are_methods_with_what_they_allocate() {
    let recording = recording();
    let rows = |query: &Query| {
        let view = functions(&recording, query).expect("rows");
        let row = |row: &clrscope_analysis::FunctionRow<'_>| {
            (row.function.name().to_owned(), row.amount.own, row.amount.total, row.function.kind())
        };
        view.rows.iter().map(row).collect::<Vec<_>>()
    };
    let found = rows(&by_type(&BYTES));
    assert_eq!(found, rows(&Query { metric: Some(&BYTES), ..Query::default() }));
    assert!(found.contains(&("Shop.Cache::Fill".to_owned(), 1_130, 1_130, FunctionKind::Managed)), "{found:?}");
}

#[test]
fn events_one_by_one_end_in_their_types() {
    let recording = recording();
    let log = StackLog::open(&recording, &by_type(&BYTES), "test").expect("events");
    let mut found: BTreeMap<String, u64> = BTreeMap::new();
    for thread in log.threads() {
        let walked = thread.walk(|event| {
            let names: Vec<&str> = event.path.iter().map(FunctionRef::name).collect();
            *found.entry(names.join(" > ")).or_default() += event.amount;
            Ok::<(), ()>(())
        });
        walked.expect("no failure");
    }
    let of_tree = paths(&by_type(&BYTES)).into_iter().filter(|(_, own, _)| *own > 0);
    assert_eq!(found, of_tree.map(|(path, own, _)| (path, own)).collect());
}

#[test]
fn pictures_keep_types_below_own_code_and_a_method_owns_what_it_allocates() {
    let recording = recording();
    let forest = Forest::open(&recording, &by_type(&BYTES)).expect("paths");
    let pictures = Pictures::new(&forest, PictureMeasure::Metric);
    let functions = pictures.functions().list();
    let name = |number: u32| functions[number as usize].function.map_or("", |function| function.name());
    let number = |wanted: &str| (0..functions.len() as u32).find(|at| name(*at) == wanted).expect("a function");
    assert_eq!(functions[number("byte[]") as usize].code, "type");
    for changes in [&[][..], &[PictureChange::OwnCode]] {
        let sums = pictures.changed(changes, true).by_function();
        let of = |wanted: &str| (sums[number(wanted) as usize].own, sums[number(wanted) as usize].total);
        assert_eq!((of("Shop.Cache::Fill"), of("byte[]")), ((1_130, 1_130), (1_107, 1_107)), "{changes:?}");
        assert_eq!((of("Shop.Cache::Main"), of("Shop.Order")), ((500, 1_650), (541, 541)), "{changes:?}");
    }
    let inverted = pictures.changed(&[], true).inverted(0.0, &[]);
    let rows = inverted.iter().map(|row| (row.depth, name(row.function), row.total));
    let first: Vec<_> = rows.take(3).collect();
    assert_eq!(first, [(0, "byte[]", 1_107), (1, "Shop.Cache::Fill", 1_100), (2, "Shop.Cache::Main", 1_100)]);
}
