//! Views of snapshots of the heap, on heaps made by hand.

use clrscope_analysis::{
    HeapPath, HeapPathPlace, HeapQuery, Heaps, Query, QueryProblem, Sort, WasteKind, cut_snapshots, dominator_tree,
    heap, heap_changes, heap_paths, heap_summary, heap_waste, pending_operations, thread_stacks,
};
use clrscope_contract::request::Glob;
use clrscope_recording::model::{
    Function, HeapGeneration, HeapType, Module, Process, Recording, RootKind, SnapshotState, Thread, ThreadRole,
    ThreadState,
};
use clrscope_recording::testing::heap::HandmadeHeap;
use clrscope_recording::testing::samples::{HandSampled, STEP_NS};

fn recording(make: impl FnOnce(&mut Process)) -> Recording {
    let mut process = Process {
        pid: 7,
        functions: vec![Function::default(), Function { name: "Shop.Worker::Run".to_owned(), ..Function::default() }],
        modules: vec![Module::default(), Module { name: "Shop".to_owned(), ..Module::default() }],
        threads: vec![Thread { id: 3, name: "waits".to_owned(), ..Thread::default() }],
        ..Process::default()
    };
    make(&mut process);
    Recording { processes: vec![process], ..Recording::default() }
}

/// A cache in a static field with a list of orders, each with a name; a chain that a stack holds;
/// orders without a holder.
struct Shop {
    heap: HandmadeHeap,
    order: u32,
    array: u32,
}

fn shop(orders: u64) -> Shop {
    let mut heap = HandmadeHeap::default();
    let objects = heap.array("object[]", 8, &[""]);
    let cache = heap.class("Shop.Cache", 24, &["items"]);
    let list = heap.class("System.Collections.Generic.List<Shop.Order>", 32, &["_items"]);
    let array = heap.array("Shop.Order[]", 8, &[""]);
    let order = heap.class("Shop.Order", 32, &["Name", "Next"]);
    let text = heap.with_content("string", HeapType::STRING);
    heap.type_mut(order).module = 1;
    let statics = heap.object(objects, 4);
    heap.root(RootKind::PinnedHandle, statics, 0, 0);
    heap.static_field(statics, 2, "Shop.Program.cache", 0);
    let of_cache = heap.object(cache, 0);
    heap.refer(statics, 2, of_cache);
    let (of_list, of_array) = (heap.object(list, 0), heap.object(array, 2 * orders));
    heap.refer(of_cache, 0, of_list);
    heap.refer(of_list, 0, of_array);
    for at in 0..orders {
        let one = heap.object(order, 0);
        let name = heap.object_with(text, 5, 77);
        heap.refer(one, 0, name);
        heap.refer(of_array, at, one);
    }
    let chain: Vec<u32> = (0..4).map(|_| heap.object(order, 0)).collect();
    chain.windows(2).for_each(|pair| heap.refer(pair[0], 1, pair[1]));
    heap.root(RootKind::Stack, chain[0], 3, 1);
    // A weak handle holds nothing.
    let forgotten = heap.object(order, 0);
    heap.root(RootKind::WeakHandle, forgotten, 0, 0);
    Shop { heap, order, array }
}

fn query(name: &str) -> HeapQuery {
    HeapQuery { query: Query { types: vec![Glob::new(name)], ..Query::default() }, ..HeapQuery::default() }
}

#[test]
fn types_have_their_own_bytes_and_what_they_retain_together() {
    let Shop { heap: made, .. } = shop(10);
    let recording = recording(|process| _ = made.add_to(process));
    let view = heap(&Heaps::new(&recording), &HeapQuery::default()).unwrap();
    let row = |name: &str| {
        let found = view.rows.iter().find(|row| &*row.type_name == name).unwrap();
        (found.objects, found.bytes, found.retained_bytes)
    };
    // Orders are 32 bytes, names 22 and 10 characters in words, the array 24 and 20 elements.
    let (orders, names, array) = (10 * 32, 10 * 32, 24 + 160);
    assert_eq!(row("Shop.Cache"), (1, 24, 24 + 32 + array + orders + names));
    assert_eq!(row("Shop.Order[]"), (1, array, array + orders + names));
    // The chain's four and the forgotten one are outside the cache; a chain counts once.
    assert_eq!(row("Shop.Order"), (15, 15 * 32, 15 * 32 + names));
    assert_eq!(row("string"), (10, names, names));
    let order = view.rows.iter().find(|row| &*row.type_name == "Shop.Order").unwrap();
    assert_eq!((order.module, order.generations[HeapGeneration::Gen2 as usize].objects), ("Shop", 15));
    assert!(view.rows.windows(2).all(|pair| pair[0].retained_bytes >= pair[1].retained_bytes));
    let snapshot = view.snapshots[0];
    assert_eq!((snapshot.objects, snapshot.bytes), (29, snapshot.snapshot.bytes));
}

fn shown(way: &HeapPath<'_>) -> (String, Vec<(String, String)>) {
    let steps = way.steps.iter().map(|step| (step.place.label(), step.type_name.to_string()));
    (way.root_label(), steps.collect())
}

#[test]
fn ways_name_the_static_field_the_stack_and_every_field() {
    let Shop { heap: made, .. } = shop(10);
    let recording = recording(|process| _ = made.add_to(process));
    let view = heap_paths(&Heaps::new(&recording), &query("Shop.Order")).unwrap();
    let sums: Vec<_> = view.rows.iter().map(|row| (row.objects, row.root.as_ref().map(|root| root.kind))).collect();
    assert_eq!(
        sums,
        [(10, Some(RootKind::Static)), (3, Some(RootKind::Stack)), (1, Some(RootKind::Stack)), (1, None)]
            .map(|(objects, kind)| (objects, kind))
    );
    let (root, steps) = shown(&view.rows[0]);
    assert_eq!(root, "static field Shop.Program.cache");
    let expected = [
        ("", "Shop.Cache"),
        (".items", "System.Collections.Generic.List<Shop.Order>"),
        ("._items", "Shop.Order[]"),
        ("[0]", "Shop.Order"),
    ];
    assert_eq!(steps, expected.map(|(place, name)| (place.to_owned(), name.to_owned())));
    // The chain is held by its first element, and that by a variable.
    assert_eq!(view.rows[1].root_label(), "a variable of Shop.Worker::Run on thread waits");
    assert!(view.rows[1].steps[1].repeats);
    // What nothing holds stands alone.
    assert_eq!(view.rows[3].steps.len(), 1);
    let all: u64 = view.rows.iter().map(|row| row.objects).sum();
    assert_eq!(all, 15);
}

#[test]
fn values_of_weak_tables_live_by_their_keys_and_collectible_types_keep_their_context() {
    let recording = recording(|process| {
        let mut heap = HandmadeHeap::default();
        let (key, value) = (heap.class("Key", 24, &[]), heap.class("Value", 24, &[]));
        let (context, plugin) = (heap.class("Context", 24, &[]), heap.class("Plugin", 24, &[]));
        let (of_key, of_value) = (heap.object(key, 0), heap.object(value, 0));
        let (of_context, of_plugin) = (heap.object(context, 0), heap.object(plugin, 0));
        heap.type_mut(plugin).loader = heap.address(of_context);
        heap.dependent(of_key, of_value);
        heap.root(RootKind::Handle, of_key, 0, 0);
        heap.root(RootKind::Stack, of_plugin, 3, 1);
        heap.add_to(process);
    });
    let retained = |name: &str| heap(&Heaps::new(&recording), &query(name)).unwrap().rows[0].retained_bytes;
    assert_eq!((retained("Key"), retained("Plugin")), (48, 48));
    let place = |name: &str| heap_paths(&Heaps::new(&recording), &query(name)).unwrap().rows[0].steps[1].place.clone();
    assert_eq!((place("Value"), place("Context")), (HeapPathPlace::Dependent, HeapPathPlace::Loader));
}

#[test]
fn dominators_are_a_tree_of_types_and_a_chain_is_one_node() {
    let Shop { heap: made, .. } = shop(10);
    let recording = recording(|process| _ = made.add_to(process));
    let tree = dominator_tree(&Heaps::new(&recording), &HeapQuery::default()).unwrap();
    let mut nodes = Vec::new();
    let smaller = tree
        .walk(0.0, |node| {
            nodes.push((node.depth, node.type_name.to_string(), node.objects, node.retained_bytes));
            Ok(())
        })
        .unwrap();
    assert_eq!(smaller.nodes, 0);
    let orders = nodes.iter().find(|(_, name, ..)| name == "Shop.Order").unwrap();
    let cache = nodes.iter().position(|(_, name, ..)| name == "Shop.Cache").unwrap();
    let depths: Vec<_> = nodes[cache..cache + 5].iter().map(|(depth, _, objects, _)| (*depth, *objects)).collect();
    assert_eq!(depths, [(0, 1), (1, 1), (2, 1), (3, 10), (4, 10)]);
    assert_eq!(orders.0, 3);
    let chain = nodes.iter().find(|(depth, name, ..)| *depth == 0 && name == "Shop.Order").unwrap();
    assert_eq!((chain.2, chain.3), (5, 5 * 32));
    let top: u64 = nodes.iter().filter(|(depth, ..)| *depth == 0).map(|node| node.3).sum();
    assert_eq!(top, tree.snapshots[0].bytes);
    let mut large = 0;
    let smaller = tree
        .walk(0.2, |_| {
            large += 1;
            Ok(())
        })
        .unwrap();
    assert!(large < nodes.len() && smaller.nodes > 0);
}

#[test]
fn equal_strings_and_half_empty_lists_are_waste() {
    let Shop { heap: made, .. } = shop(10);
    let recording = recording(|process| _ = made.add_to(process));
    let view = heap_waste(&Heaps::new(&recording), &HeapQuery::default()).unwrap();
    let row = |kind| view.rows.iter().find(|row| row.kind == kind).unwrap();
    let strings = row(WasteKind::DuplicateStrings);
    assert_eq!((strings.objects, strings.bytes, strings.wasted_bytes, strings.length), (10, 320, 288, Some(5)));
    let (name, place) = strings.held_by.clone().unwrap();
    assert_eq!((&*name, place.label().as_str()), ("Shop.Order", ".Name"));
    // Ten of twenty elements of the list's array are null.
    let lists = row(WasteKind::SparseCollections);
    assert_eq!((&*lists.type_name, lists.wasted_bytes), ("System.Collections.Generic.List<Shop.Order>", 80));
    assert_eq!(row(WasteKind::SparseArrays).type_name.as_ref(), "object[]");
}

#[test]
fn growth_between_snapshots_is_found_with_what_holds_it() {
    let recording = recording(|process| {
        for orders in [1_000, 2_000, 3_000] {
            shop(orders).heap.add_to(process);
        }
    });
    let changes = |before, after| {
        let side = |number| HeapQuery { snapshot: Some(number), ..HeapQuery::default() };
        let heaps = [Heaps::new(&recording)];
        heap_changes((&heaps, &side(before)), (&heaps, &side(after))).unwrap()
    };
    let found = changes(1, 3);
    let orders = found.rows.iter().find(|row| &*row.type_name == "Shop.Order").unwrap();
    assert_eq!(orders.growth(), [2_000, 2_000 * 32, 2_000 * 64]);
    // Who holds what came, whichever elements these are.
    let held = orders.held_by.as_ref().expect("a holder");
    assert_eq!((held.objects, held.bytes), (2_000, 64_000));
    assert_eq!(held.label(), "static field Shop.Program.cache -> Cache.items -> List<Shop.Order>._items -> Order[][0]");
    assert!(changes(3, 1).rows.iter().all(|row| row.growth()[1] <= 0 && row.held_by.is_none()));
    assert!(changes(2, 2).rows.is_empty());
    let summary = heap_summary(&Heaps::new(&recording), &HeapQuery::default()).unwrap();
    let texts: Vec<&str> = summary.findings.iter().map(|finding| finding.text.as_str()).collect();
    assert_eq!(
        texts[0],
        "Shop.Order objects grow from snapshot to snapshot: 1,005, 2,005, 3,005, 64.0 kB more; held by static field \
         Shop.Program.cache -> Cache.items -> List<Shop.Order>._items -> Order[][0]"
    );
    assert!(
        texts[1].starts_with("static field Shop.Program.cache keeps 240 kB, 99.9 % of the heap: 3,000 "),
        "{texts:?}"
    );
    assert_eq!(&*summary.types[0].row.type_name, "Shop.Cache");
}

#[test]
fn the_second_leak_is_named_too() {
    let mut heap = HandmadeHeap::default();
    let objects = heap.array("object[]", 8, &[""]);
    let pixels = heap.array("byte[]", 1, &[""]);
    let statics = heap.object(objects, 4);
    heap.root(RootKind::PinnedHandle, statics, 0, 0);
    let fields = [("Shop.Program.Cache", 5_000), ("Shop.PriceFeed.Changed", 4_000), ("Shop.Program.Small", 500)];
    for (slot, (name, size)) in (0..).zip(fields) {
        heap.static_field(statics, slot, name, 0);
        let held = heap.object(pixels, size);
        heap.refer(statics, slot, held);
    }
    let recording = recording(|process| _ = heap.add_to(process));
    let summary = heap_summary(&Heaps::new(&recording), &HeapQuery::default()).unwrap();
    let texts: Vec<&str> = summary.findings.iter().map(|finding| finding.text.as_str()).collect();
    let [first, second] = texts.as_slice() else { panic!("{texts:?}") };
    assert!(first.starts_with("static field Shop.Program.Cache keeps 5.02 kB, 52.2 % of the heap"), "{first}");
    assert!(second.starts_with("static field Shop.PriceFeed.Changed keeps 4.02 kB, 41.8 % of the heap"), "{second}");
}

#[test]
fn snapshots_of_sets_have_medians_and_what_runs_differ_by_is_no_change() {
    let run = |orders: u64| recording(|process| _ = shop(orders).heap.add_to(process));
    let changes = |before: &[Recording], after: &[Recording]| {
        let (then, now): (Vec<_>, Vec<_>) =
            (before.iter().map(Heaps::new).collect(), after.iter().map(Heaps::new).collect());
        let found = heap_changes((&then, &HeapQuery::default()), (&now, &HeapQuery::default())).unwrap();
        assert_eq!((found.recordings, found.snapshots[0].len()), ([before.len(), after.len()], before.len()));
        let orders = found.rows.into_iter().find(|row| &*row.type_name == "Shop.Order").unwrap();
        let held = orders.held_by.map(|way| (way.objects, way.bytes));
        (orders.objects.before.median, orders.objects.after.median, orders.objects.verdict.name(), held)
    };
    let before = [run(1_000), run(1_002), run(1_001)];
    // Five more are held by a stack and two by nothing, on either side.
    let grown = changes(&before, &[run(3_000), run(3_002), run(3_001)]);
    assert_eq!(grown, (1_006.0, 3_006.0, "more", Some((2_000, 64_000))));
    let (_, after, verdict, _) = changes(&before, &[run(900), run(1_200), run(1_003)]);
    assert_eq!((after, verdict), (1_008.0, "unclear"));
    // Sets of another size, and one recording against several.
    assert_eq!(changes(&before[..1], &[run(3_000), run(3_002)]).2, "more");
    // Each recording has a snapshot to compare, or there is no answer.
    let none = Recording::default();
    let (some, query) = ([Heaps::new(&before[0])], HeapQuery::default());
    let lacking = [Heaps::new(&before[1]), Heaps::new(&none)];
    assert!(matches!(heap_changes((&some, &query), (&lacking, &query)), Err(QueryProblem::NotRecorded { .. })));
}

#[test]
fn a_cut_snapshot_is_named_and_the_last_complete_one_is_shown() {
    let recording = recording(|process| {
        shop(3).heap.add_to(process);
        let cut = shop(9).heap.add_to(process);
        (cut.state, cut.why) = (SnapshotState::Begun, String::new());
        // Nothing of it was written.
        process.events[0].chunks.retain(|chunk| chunk.sequence < process.snapshots[1].first_chunk);
    });
    let view = heap(&Heaps::new(&recording), &HeapQuery::default()).unwrap();
    assert_eq!(view.snapshots[0].snapshot.number, 1);
    let cut = cut_snapshots(&recording, &Query::default());
    assert_eq!((cut.len(), cut[0].snapshot.number, cut[0].is_there), (1, 2, false));
    let asked = |number| {
        heap(&Heaps::new(&recording), &HeapQuery { snapshot: Some(number), ..HeapQuery::default() }).unwrap_err()
    };
    assert_eq!(
        asked(2).to_string(),
        "snapshot 2 of the heap is not complete: the program or its recording ended too early"
    );
    assert_eq!(asked(5), QueryProblem::NoSnapshot { wanted: 5, known: vec![1, 2] });
}

#[test]
fn what_there_is_of_a_cut_snapshot_is_shown_where_no_other_is_complete() {
    let recording = recording(|process| {
        let snapshot = shop(9).heap.add_to(process);
        (snapshot.state, snapshot.why) = (SnapshotState::NoRoom, "No space left on device".to_owned());
        // Its last chunk was not written: places of static fields.
        process.events[0].chunks.pop();
    });
    let view = heap(&Heaps::new(&recording), &HeapQuery::default()).unwrap();
    let snapshot = view.snapshots[0];
    let why = snapshot.why_cut().expect("a reason");
    assert!(why.ends_with(": No space left on device"), "{why}");
    assert!(view.rows.iter().any(|row| &*row.type_name == "Shop.Order" && row.objects == 14));
    let ways = heap_paths(&Heaps::new(&recording), &query("Shop.Order")).unwrap();
    assert_eq!(ways.rows[0].root_label(), "pinned handle");
    assert!(cut_snapshots(&recording, &Query::default())[0].is_there);
}

#[test]
fn several_views_read_a_snapshot_once() {
    let recording = recording(|process| _ = shop(3).heap.add_to(process));
    let heaps = Heaps::new(&recording);
    let first = heap(&heaps, &HeapQuery::default()).unwrap();
    // All that follows is about objects that are in memory already: the recording's own are not
    // read again.
    let tree = dominator_tree(&heaps, &HeapQuery::default()).unwrap();
    assert_eq!(format!("{heaps:?}").matches("LoadedSnapshot {").count(), 1);
    heap_paths(&heaps, &query("Shop.Order")).unwrap();
    heap_waste(&heaps, &HeapQuery::default()).unwrap();
    heap_summary(&heaps, &HeapQuery::default()).unwrap();
    assert_eq!(format!("{heaps:?}").matches("LoadedSnapshot {").count(), 1);
    assert_eq!(first.snapshots[0].objects, tree.snapshots[0].objects);
}

#[test]
fn missing_pieces_are_counted_and_the_rest_is_shown() {
    let recording = recording(|process| {
        let Shop { mut heap, order, array } = shop(5);
        heap.row(HeapGeneration::Large);
        let far = heap.object(array, 2);
        let near = heap.object(order, 0);
        heap.refer(far, 0, 1);
        heap.refer(0, 0, far);
        heap.root(RootKind::Handle, near, 0, 0);
        heap.add_to(process);
        process.events[0].chunks.remove(1);
    });
    let view = heap(&Heaps::new(&recording), &HeapQuery::default()).unwrap();
    let missing = view.snapshots[0].missing;
    assert_eq!((missing.chunks, missing.references, missing.roots), (1, 1, 1));
    assert!(view.rows.iter().any(|row| &*row.type_name == "Shop.Cache"));
}

#[test]
fn orders_limits_and_modules_are_obeyed() {
    let Shop { heap: made, .. } = shop(10);
    let recording = recording(|process| _ = made.add_to(process));
    let first = |sort, limit| {
        let query = Query { sort: Some(sort), limit, ..Query::default() };
        let view = heap(&Heaps::new(&recording), &HeapQuery { query, ..HeapQuery::default() }).unwrap();
        (view.rows[0].type_name.to_string(), view.rows.len(), view.left_out)
    };
    assert_eq!(first(Sort::Own, Some(2)), ("Shop.Order".to_owned(), 2, 4));
    assert_eq!(first(Sort::Name, None), ("Shop.Cache".to_owned(), 6, 0));
    let query = Query { modules: vec![Glob::new("Shop")], ..Query::default() };
    let view = heap(&Heaps::new(&recording), &HeapQuery { query, ..HeapQuery::default() }).unwrap();
    assert_eq!(view.rows.iter().map(|row| row.module).collect::<Vec<_>>(), ["Shop"]);
    let none = Recording::default();
    assert!(matches!(heap(&Heaps::new(&none), &HeapQuery::default()), Err(QueryProblem::NotRecorded { .. })));
}

/// Two methods that await one task, a list that has itself as an element, and a circle.
#[test]
fn chains_of_awaits_end_whatever_the_heap_says() {
    let mut heap = HandmadeHeap::default();
    let builder = "System.Runtime.CompilerServices.AsyncTaskMethodBuilder<int>";
    let boxed = |method: &str| format!("{builder}.AsyncStateMachineBox<App.P.<{method}>d__0>");
    let fields = ["m_continuationObject", "StateMachine"];
    let [first, second, round] = ["First", "Second", "Round"].map(|method| heap.class(&boxed(method), 80, &fields));
    let task = heap.class("System.Threading.Tasks.Task<int>", 64, &["m_continuationObject"]);
    let list = heap.class("System.Collections.Generic.List<object>", 32, &["_items"]);
    let array = heap.array("object[]", 8, &[""]);
    let source = heap.object(task, 0);
    let (all, elements) = (heap.object(list, 0), heap.object(array, 4));
    heap.refer(source, 0, all);
    heap.refer(all, 0, elements);
    for (at, class) in [first, second].into_iter().enumerate() {
        let one = heap.object(class, 0);
        heap.refer(one, 1, one);
        heap.refer(elements, at as u64, one);
    }
    heap.refer(elements, 2, all);
    heap.refer(elements, 3, elements);
    let circle: Vec<u32> = (0..3).map(|_| heap.object(round, 0)).collect();
    for at in 0..3 {
        heap.refer(circle[at], 0, circle[(at + 1) % 3]);
        heap.refer(circle[at], 1, circle[at]);
    }
    let recording = recording(|process| _ = heap.add_to(process));
    let view = pending_operations(&Heaps::new(&recording), &HeapQuery::default()).unwrap();
    let row = |row: &clrscope_analysis::PendingOperation<'_>| {
        let frames: Vec<&str> = row.frames.iter().map(|frame| &*frame.name).collect();
        (row.count, row.waits_for.to_string(), frames.join(" < "))
    };
    let rows: Vec<_> = view.rows.iter().map(row).collect();
    let of = |count, waits_for: &str, frames: &str| (count, waits_for.to_owned(), frames.to_owned());
    let expected = [
        of(1, "a task", "App.P::First"),
        of(1, "a task", "App.P::Second"),
        of(1, "itself", "App.P::Round < App.P::Round < App.P::Round"),
    ];
    assert_eq!((rows, view.not_followed), (expected.to_vec(), 0));
}

/// A heap with threads that block: `waits` are objects that a thread puts behind the task that it
/// waits for, each with the threads on whose stacks it lies. The task of each is of a method of its
/// own, which awaits the same task.
fn blocked(waits: &[&[u32]]) -> HandmadeHeap {
    let mut heap = HandmadeHeap::default();
    let builder = "System.Runtime.CompilerServices.AsyncTaskMethodBuilder<int>";
    let wait = heap.class("System.Threading.Tasks.Task.SetOnInvokeMres", 48, &["m_lock"]);
    let task = heap.class("System.Threading.Tasks.Task.DelayPromise", 72, &["m_continuationObject"]);
    for (at, threads) in waits.iter().enumerate() {
        let boxed = |method: &str| format!("{builder}.AsyncStateMachineBox<App.P.<{method}{at}>d__0>");
        let [inner, outer] = ["Inner", "Outer"].map(|method| {
            let class = heap.class(&boxed(method), 80, &["m_continuationObject", "StateMachine"]);
            let object = heap.object(class, 0);
            heap.refer(object, 1, object);
            object
        });
        let (source, wait) = (heap.object(task, 0), heap.object(wait, 0));
        heap.refer(source, 0, inner);
        heap.refer(inner, 0, outer);
        heap.refer(outer, 0, wait);
        heap.awaits_at(outer, 1, 0x600_0007, 10 + at as u32);
        threads.iter().for_each(|thread| heap.root(RootKind::Stack, wait, *thread, 1));
    }
    heap
}

fn recording_of_threads(heap: &HandmadeHeap) -> Recording {
    recording(|process| {
        let thread = |id: u32| Thread { id, os_id: 100 + id, name: format!("t{id}"), ..Thread::default() };
        process.threads = (1..=4).map(thread).collect();
        heap.add_to(process);
    })
}

/// The methods that each thread blocks on, with the offset of the outer one's await.
#[test]
fn a_thread_blocks_on_the_method_whose_task_its_wait_is_behind() {
    let recording = recording_of_threads(&blocked(&[&[2, 2], &[1, 1, 1]]));
    let view = pending_operations(&Heaps::new(&recording), &HeapQuery::default()).unwrap();
    let found: Vec<_> = view
        .blocked
        .iter()
        .map(|one| {
            let names: Vec<&str> = one.frames.iter().map(|frame| &*frame.name).collect();
            let place = one.frames.last().and_then(|frame| frame.place).expect("a place");
            assert_eq!(place.module_in(one.process).map(|module| &*module.name), Some("Shop"));
            (one.thread.os_id, names.join(" < "), place.il_offset, one.waits_for.as_deref())
        })
        .collect();
    let expected = [
        (101, "App.P::Inner1 < App.P::Outer1".to_owned(), 11, Some("Task.Delay")),
        (102, "App.P::Inner0 < App.P::Outer0".to_owned(), 10, Some("Task.Delay")),
    ];
    assert_eq!(found, expected);
    let mut rows: Vec<_> = view
        .rows
        .iter()
        .map(|row| (row.blocked_threads.clone(), row.frames.last().unwrap().name.to_string()))
        .collect();
    rows.sort();
    assert_eq!(rows, [(vec![101], "[thread t1]".to_owned()), (vec![102], "[thread t2]".to_owned())]);
}

/// An object on two stacks, several on one, and one on none: it is not certain who waits.
#[test]
fn no_thread_blocks_where_that_is_not_certain() {
    let recording = recording_of_threads(&blocked(&[&[1, 2], &[3], &[3], &[], &[0], &[4, 0]]));
    let view = pending_operations(&Heaps::new(&recording), &HeapQuery::default()).unwrap();
    assert_eq!(view.blocked.len(), 0, "{:#?}", view.blocked);
    assert_eq!(view.rows.len(), 6);
    for row in &view.rows {
        assert_eq!((&*row.frames.last().unwrap().name, row.blocked_threads.len()), ("[thread]", 0), "{row:#?}");
    }
}

/// The snapshot is of one moment; a thread that came to its wait shortly before or later, or left
/// it meanwhile, may have waited for something else then.
#[test]
fn only_threads_that_stood_at_the_snapshot_as_they_are_shown_block_on_what_it_says() {
    let mut sampled = HandSampled::default();
    let names = ["stays", "comes early", "comes late", "comes later", "goes", "sleeps", "goes after"];
    let threads = names.map(|name| sampled.thread(name, ThreadRole::User));
    let waits = "App::Main > System.Threading.Tasks.Task::Wait";
    for (thread, from) in threads.into_iter().zip([0, 30, 80, 120, 0, 0, 0]) {
        for step in 0..200 {
            let path = if step < from { "App::Main > App::Other" } else { waits };
            let (path, state) = match names[thread as usize - 1] {
                "goes" if step > 102 => ("App::Main > App::Other", ThreadState::Waiting),
                "goes after" if step > 130 => ("App::Main > App::Other", ThreadState::Waiting),
                "sleeps" => ("App::Main > System.Threading.Thread::Sleep", ThreadState::Sleeping),
                _ => (path, ThreadState::Waiting),
            };
            sampled.wall(thread, step, path).state = state;
        }
    }
    let mut recording = sampled.recording();
    let heap = blocked(&[&[1], &[2], &[3], &[4], &[5], &[6], &[7]]);
    let snapshot = heap.add_to(&mut recording.processes[0]);
    (snapshot.time_ns, snapshot.pause_ns) = (100 * STEP_NS, 20 * STEP_NS);
    let view = pending_operations(&Heaps::new(&recording), &HeapQuery::default()).unwrap();
    assert_eq!(view.blocked.len(), 7, "each has a wait in the snapshot");
    let threads = thread_stacks(&recording, &Query::default()).unwrap();
    let mut found: Vec<_> = threads
        .iter()
        .filter_map(|thread| {
            let blocked = view.blocked_on(thread)?;
            Some((&*thread.thread.name, blocked.frames.last()?.name.to_string()))
        })
        .collect();
    found.sort_unstable();
    let expected = [("comes early", "App.P::Outer1"), ("goes after", "App.P::Outer6"), ("stays", "App.P::Outer0")];
    assert_eq!(found, expected.map(|(thread, method)| (thread, method.to_owned())));
    let after = threads.iter().find(|thread| thread.thread.name == "goes after").expect("the thread");
    assert_eq!(after.waits_for, Some("a task"), "it is shown as the snapshot met it");
}

/// Of a method that awaits several at once, what is below the branches is not said.
#[test]
fn a_thread_blocks_on_what_all_branches_have_in_common() {
    let mut heap = blocked(&[&[1]]);
    let class = heap.class("System.Threading.Tasks.Task<int>", 64, &["m_continuationObject"]);
    let builder = "System.Runtime.CompilerServices.AsyncTaskMethodBuilder<int>";
    let fields = ["m_continuationObject", "StateMachine"];
    let other = heap.class(&format!("{builder}.AsyncStateMachineBox<App.P.<Other>d__0>"), 80, &fields);
    let (source, other) = (heap.object(class, 0), heap.object(other, 0));
    heap.refer(source, 0, other);
    heap.refer(other, 1, other);
    // The outer method is the second object.
    heap.refer(other, 0, 1);
    let recording = recording_of_threads(&heap);
    let view = pending_operations(&Heaps::new(&recording), &HeapQuery::default()).unwrap();
    let [one] = &view.blocked[..] else { panic!("{:#?}", view.blocked) };
    let names: Vec<&str> = one.frames.iter().map(|frame| &*frame.name).collect();
    assert_eq!((names, one.waits_for.as_deref()), (vec!["App.P::Outer0"], None));
    assert!(view.rows.len() == 2 && view.rows.iter().all(|row| row.blocked_threads == [101]), "{:#?}", view.rows);
}

/// Methods in a queue of the pool wait for a thread; one that a thread has a variable of runs.
#[test]
fn methods_that_nothing_completes_are_ready_or_run() {
    let mut heap = HandmadeHeap::default();
    let builder = "System.Runtime.CompilerServices.AsyncTaskMethodBuilder<int>";
    let fields = ["m_continuationObject", "StateMachine"];
    let class = heap.class(&format!("{builder}.AsyncStateMachineBox<App.P.<Run>d__0>"), 80, &fields);
    let pool = heap.class("System.Threading.ThreadPoolWorkQueue", 64, &["workItems"]);
    let items = heap.class("System.Collections.Concurrent.ConcurrentQueue<object>", 32, &["_head"]);
    let slots = heap.array("System.Collections.Concurrent.ConcurrentQueueSegment<object>.Slot[]", 16, &["Item"]);
    let [pool, items, slots] = [heap.object(pool, 0), heap.object(items, 0), heap.object(slots, 2)];
    heap.refer(pool, 0, items);
    heap.refer(items, 0, slots);
    let boxes: Vec<u32> = (0..4).map(|_| heap.object(class, 0)).collect();
    boxes[..3].iter().for_each(|one| heap.refer(*one, 1, *one));
    heap.refer(slots, 1, boxes[0]);
    heap.root(RootKind::Stack, boxes[1], 3, 1);
    let recording = recording(|process| _ = heap.add_to(process));
    let view = pending_operations(&Heaps::new(&recording), &HeapQuery::default()).unwrap();
    let mut rows: Vec<_> = view.rows.iter().map(|row| (row.count, &*row.waits_for)).collect();
    rows.sort_unstable();
    assert_eq!(rows, [(1, "[not known]"), (1, "[running]"), (1, "a thread of the pool")], "what has ended is none");
}
