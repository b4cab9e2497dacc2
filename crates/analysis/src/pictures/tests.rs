//! Pictures against changes that are made path by path, one change after another.

use std::collections::BTreeMap;

use clrscope_recording::model::{Recording, ThreadRole, ThreadState};
use clrscope_recording::testing::samples::{HandSampled, STEP_NS};

use super::{ChangedTree, PictureChange, PictureFunction, PictureMeasure, PictureRow, Pictures};
use crate::forest::Forest;
use crate::query::{NativeCode, Query};
use crate::samples::{SAMPLED_CPU, SAMPLED_WALL};
use crate::stack_trees::StateTimes;
use crate::waits::TimeState;

/// Names of functions: own ones of two assemblies, the framework's, and nameless ones of a library.
const NAMES: [&str; 8] = [
    "App::Main",
    "App::Work",
    "App.Deep::Recurse",
    "Lib.Store::Get",
    "Lib.Store::Put",
    "System.Text::Join",
    "libcoreclr.so!libcoreclr.so+0x10",
    "libcoreclr.so!libcoreclr.so+0x20",
];

type Path = Vec<String>;

/// Paths that look like chance, with the steps of each.
fn paths(seed: u64, count: usize) -> Vec<(Vec<usize>, u64)> {
    let mut state = seed;
    let mut below = |most: u64| {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        (state >> 11) % most
    };
    let mut path = || (0..1 + below(7)).map(|_| below(NAMES.len() as u64) as usize).collect::<Vec<_>>();
    let all: Vec<_> = (0..count).map(|_| path()).collect();
    all.into_iter().zip(1..).collect()
}

fn recording(paths: &[(Vec<usize>, u64)]) -> Recording {
    let mut sampled = HandSampled::default();
    let main = sampled.thread("main", ThreadRole::Main);
    for (step, (path, steps)) in (1..).zip(paths) {
        let path: Vec<&str> = path.iter().map(|name| NAMES[*name]).collect();
        sampled.cpu(main, step % 900, &path.join(" > ")).weight_ns = steps * STEP_NS;
    }
    sampled.recording()
}

/// Calls a visitor with the pictures of a recording.
fn with<T>(recording: &Recording, visit: impl FnOnce(&Pictures<'_>) -> T) -> T {
    let query = Query { metric: Some(&SAMPLED_CPU), native_code: Some(NativeCode::Places), ..Query::default() };
    let forest = Forest::open(recording, &query).expect("a forest");
    visit(&Pictures::new(&forest, PictureMeasure::Metric))
}

fn label(tree: &ChangedTree<'_>, function: u32) -> String {
    let one = &tree.functions.list()[function as usize];
    one.function.map_or_else(|| one.library_name.clone(), |function| function.name().to_owned())
}

/// Own steps by path of rows in preorder.
fn by_path(tree: &ChangedTree<'_>, rows: &[PictureRow]) -> BTreeMap<Path, u64> {
    let (mut found, mut path) = (BTreeMap::new(), Path::new());
    for row in rows {
        path.truncate(row.depth as usize);
        path.push(label(tree, row.function));
        if row.own > 0 {
            assert!(found.insert(path.clone(), row.own / STEP_NS).is_none(), "{path:?} stands there twice");
        }
    }
    found
}

/// A change of one path of names; `None` where it leaves the path out.
fn changed(path: &Path, change: &PictureChange, number: &dyn Fn(u32) -> String) -> Option<Path> {
    let module = |name: &str| name.split(['.', ':']).next().unwrap_or_default().to_owned();
    let code = |name: &str| match module(name).as_str() {
        "System" | "Lib" => "framework",
        "App" => "own",
        _ => "native",
    };
    let is = |wanted: &u32| {
        let wanted = number(*wanted);
        move |name: &String| *name == wanted
    };
    let whole = |wanted: &Vec<u32>| wanted.iter().map(|one| number(*one)).collect::<Path>();
    match change {
        PictureChange::Focus(function) => Some(path[path.iter().position(is(function))?..].to_vec()),
        PictureChange::FocusPath(wanted) => path.starts_with(&whole(wanted)).then(|| path[wanted.len() - 1..].to_vec()),
        PictureChange::Merge(function) => Some(path.iter().filter(|name| !is(function)(name)).cloned().collect()),
        PictureChange::MergePath(wanted) => {
            let mut path = path.clone();
            if path.starts_with(&whole(wanted)) {
                path.remove(wanted.len() - 1);
            }
            Some(path)
        }
        PictureChange::Drop(function) => (!path.iter().any(|name| is(function)(name))).then(|| path.clone()),
        PictureChange::Collapse(function) => {
            let end = path.iter().position(is(function)).map_or(path.len(), |at| at + 1);
            Some(path[..end].to_vec())
        }
        PictureChange::CollapseLibrary(function) => {
            let wanted = module(&number(*function));
            let mut path = path.clone();
            path.dedup_by(|next, one| module(next) == wanted && module(one) == wanted);
            Some(path)
        }
        PictureChange::Recursion(function) => {
            let first = path.iter().position(is(function));
            let last = path.iter().rposition(is(function));
            let (Some(first), Some(last)) = (first, last) else { return Some(path.clone()) };
            Some([&path[..=first], &path[last + 1..]].concat())
        }
        PictureChange::MergeKinds(kinds) => {
            let is_left = |name: &&String| !kinds.iter().any(|kind| kind == code(name));
            Some(path.iter().filter(is_left).cloned().collect())
        }
        PictureChange::DropKinds(kinds) => {
            let is_gone = |name: &String| kinds.iter().any(|kind| kind == code(name));
            (!path.iter().any(is_gone)).then(|| path.clone())
        }
        PictureChange::OwnCode => Some(path.iter().filter(|name| code(name) == "own").cloned().collect()),
    }
}

fn folded(path: &Path) -> Path {
    let library = |name: &String| if name.contains("+0x") { "[libcoreclr.so]".to_owned() } else { name.clone() };
    let mut path: Path = path.iter().map(library).collect();
    path.dedup_by(|next, one| next == one && next.starts_with('['));
    path
}

/// Every change, each about something in the paths.
fn every_change(number: &dyn Fn(&str) -> u32) -> Vec<PictureChange> {
    let [main, recurse, get, join] =
        ["App::Main", "App.Deep::Recurse", "Lib.Store::Get", "System.Text::Join"].map(number);
    vec![
        PictureChange::Focus(recurse),
        PictureChange::FocusPath(vec![main, get]),
        PictureChange::Merge(get),
        PictureChange::MergePath(vec![main, recurse]),
        PictureChange::Drop(join),
        PictureChange::Collapse(get),
        PictureChange::CollapseLibrary(get),
        PictureChange::Recursion(recurse),
        PictureChange::MergeKinds(vec!["framework".to_owned()]),
        PictureChange::DropKinds(vec!["framework".to_owned(), "kernel".to_owned()]),
        PictureChange::OwnCode,
    ]
}

#[test]
fn every_change_and_every_two_of_them_give_what_they_do_to_each_path() {
    let plain = paths(0x9E37_79B9, 700);
    let recording = recording(&plain);
    with(&recording, |pictures| {
        let list = pictures.functions().list();
        let name_of = |number: u32| {
            let one = &list[number as usize];
            one.function.map_or_else(|| one.library_name.clone(), |function| function.name().to_owned())
        };
        let number = |name: &str| (0..list.len() as u32).find(|at| name_of(*at) == name).expect("a function");
        let all = every_change(&number);
        let mut chains: Vec<Vec<PictureChange>> = vec![Vec::new()];
        chains.extend(all.iter().map(|one| vec![one.clone()]));
        chains.extend(all.iter().flat_map(|one| all.iter().map(|two| vec![one.clone(), two.clone()])));
        // What was dropped between two recursions came back by the second.
        let recursions = [number("App.Deep::Recurse"), number("App::Work")].map(PictureChange::Recursion);
        chains.extend(all.iter().map(|one| vec![recursions[0].clone(), one.clone(), recursions[1].clone()]));
        for folds in [false, true] {
            for chain in &chains {
                let mut expected: BTreeMap<Path, u64> = BTreeMap::new();
                for (path, steps) in &plain {
                    // The names of functions are those behind the library's.
                    let path: Path = path
                        .iter()
                        .map(|name| NAMES[*name].rsplit('!').next().unwrap_or_default().to_owned())
                        .collect();
                    let path = if folds { folded(&path) } else { path };
                    let left = chain.iter().try_fold(path, |path, change| changed(&path, change, &name_of));
                    *expected.entry(left.unwrap_or_else(|| vec!["gone".to_owned()])).or_default() += steps;
                }
                expected.remove(&vec!["gone".to_owned()]);
                let total: u64 = expected.values().sum();
                let of_threads = expected.remove(&Path::new()).unwrap_or(0);
                let tree = pictures.changed(chain, folds);
                assert_eq!(tree.total(), total * STEP_NS, "{chain:?}");
                let upright = tree.upright(0.0, &[]);
                assert_eq!(by_path(&tree, &upright), expected, "{chain:?} {folds}");
                let roots: u64 = upright.iter().filter(|row| row.depth == 0).map(|row| row.total).sum();
                assert_eq!(roots, (total - of_threads) * STEP_NS, "{chain:?}");
                let mut reversed: BTreeMap<Path, u64> = BTreeMap::new();
                for (path, steps) in &expected {
                    *reversed.entry(path.iter().rev().cloned().collect()).or_default() += steps;
                }
                assert_eq!(by_path(&tree, &tree.inverted(0.0, &[])), reversed, "{chain:?} {folds}, inverted");
            }
        }
    });
}

#[test]
fn small_nodes_are_left_out_of_the_picture_and_not_of_its_sums() {
    let plain = paths(0x5DEE_CE66, 700);
    let recording = recording(&plain);
    with(&recording, |pictures| {
        let tree = pictures.changed(&[], true);
        let total: u64 = plain.iter().map(|(_, steps)| steps * STEP_NS).sum();
        assert_eq!(tree.total(), total);
        for rows in [tree.upright(0.05, &[]), tree.inverted(0.05, &[])] {
            let is_large = |row: &PictureRow| row.depth == 0 || row.total as f64 >= 0.05 * total as f64;
            assert!(rows.len() > 5 && rows.iter().all(is_large), "{rows:?}");
        }
        // A closer look at the second of the root's children has what the whole has there, and more
        // of it.
        let (all, upside_down) = (tree.upright(0.0, &[]), tree.inverted(0.0, &[]));
        for (all, below) in [(&all, tree.upright(0.0, &[1, 0])), (&upside_down, tree.inverted(0.0, &[1, 0]))] {
            let roots: Vec<usize> = (0..all.len()).filter(|at| all[*at].depth == 0).collect();
            let begin = roots[1] + 1;
            let end = (begin + 1..all.len()).find(|at| all[*at].depth <= 1).unwrap_or(all.len());
            let expected: Vec<PictureRow> =
                all[begin..end].iter().map(|row| PictureRow { depth: row.depth - 1, ..*row }).collect();
            assert_eq!(below, expected);
        }
        assert!(tree.upright(0.0, &[99]).is_empty() && tree.inverted(0.0, &[0, 99]).is_empty(), "no such node");
    });
}

#[test]
fn sums_by_function_and_of_neighbours_and_of_what_matches_are_those_of_all_paths() {
    let plain = paths(0xB529_7A4D, 700);
    let recording = recording(&plain);
    with(&recording, |pictures| {
        let tree = pictures.changed(&[], false);
        let list = pictures.functions().list();
        let number = |name: &str| {
            let is = |at: &u32| list[*at as usize].function.is_some_and(|function| function.name() == name);
            (0..list.len() as u32).find(is).expect("a function")
        };
        let (main, work) = (number("App::Main"), number("App::Work"));
        let steps = |is: &dyn Fn(&Vec<usize>) -> bool| -> u64 {
            plain.iter().filter(|(path, _)| is(path)).map(|(_, steps)| steps * STEP_NS).sum()
        };
        let sums = tree.by_function();
        assert_eq!(sums[work as usize].own, steps(&|path| path.last() == Some(&1)));
        assert_eq!(sums[work as usize].total, steps(&|path| path.contains(&1)));
        let marked: Vec<bool> = (0..list.len() as u32).map(|at| at == main || at == work).collect();
        assert_eq!(tree.matched(&marked), steps(&|path| path.contains(&0) || path.contains(&1)));
        let found = tree.neighbours(work);
        let of = |wanted: Option<u32>| found.callers.iter().find(|(caller, _)| *caller == wanted).map(|(_, sum)| *sum);
        let calls =
            |path: &Vec<usize>, caller: usize, callee: usize| path.windows(2).any(|two| two == [caller, callee]);
        assert_eq!(of(None), Some(steps(&|path| path.first() == Some(&1))));
        assert_eq!(of(Some(main)), Some(steps(&|path| calls(path, 0, 1))));
        let below = found.callees.iter().find(|(callee, _)| *callee == main).map(|(_, sum)| *sum);
        assert_eq!(below, Some(steps(&|path| calls(path, 1, 0))));
    });
}

/// The paths by the clock, each with threads in states that look like chance.
fn by_the_clock(paths: &[(Vec<usize>, u64)]) -> Recording {
    const STATES: [ThreadState; 4] =
        [ThreadState::Running, ThreadState::Lock, ThreadState::Sleeping, ThreadState::Unknown];
    let mut sampled = HandSampled::default();
    let user = sampled.thread("user", ThreadRole::User);
    for (step, (path, steps)) in (1..).zip(paths) {
        let path: Vec<&str> = path.iter().map(|name| NAMES[*name]).collect();
        let sample = sampled.wall(user, step % 900, &path.join(" > "));
        (sample.weight_ns, sample.state) = (steps * STEP_NS, STATES[step as usize * 7 % 5 % STATES.len()]);
    }
    sampled.recording()
}

/// Own amounts and totals by path of rows in preorder, those that are 0 left out.
fn amounts_by_path(
    tree: &ChangedTree<'_>,
    rows: &[PictureRow],
    amounts: impl Fn(usize) -> [u64; 2],
) -> BTreeMap<Path, [u64; 2]> {
    let (mut found, mut path) = (BTreeMap::new(), Path::new());
    for (at, row) in rows.iter().enumerate() {
        path.truncate(row.depth as usize);
        path.push(label(tree, row.function));
        if amounts(at) != [0; 2] {
            found.insert(path.clone(), amounts(at));
        }
    }
    found
}

#[test]
fn rows_of_pictures_have_the_times_that_a_picture_of_one_state_has() {
    let recording = by_the_clock(&paths(11, 300));
    let asked = |states: Vec<TimeState>| Query {
        metric: Some(&SAMPLED_WALL),
        native_code: Some(NativeCode::Places),
        states,
        ..Query::default()
    };
    let forests = |states| Forest::open(&recording, &asked(states)).expect("a forest");
    let all = Pictures::new(&forests(Vec::new()), PictureMeasure::Metric);
    let number = |name: &str| {
        let is_it = |one: &PictureFunction<'_>| one.function.is_some_and(|function| function.name() == name);
        all.functions().list().iter().position(is_it).expect("a function") as u32
    };
    for change in every_change(&number).into_iter().map(|change| vec![change]).chain([Vec::new()]) {
        let tree = all.changed(&change, true);
        let of_all = tree.state_times().expect("times");
        assert_eq!(of_all.each().map(|(_, ns)| ns).sum::<u64>(), tree.total(), "{change:?}");
        for state in TimeState::ALL {
            let alone = Pictures::new(&forests(vec![*state]), PictureMeasure::Metric);
            let of_one = alone.changed(&change, true);
            assert_eq!(of_all.ns_in(*state), of_one.total(), "{change:?} {state:?}");
            for inverted in [false, true] {
                let rows = |tree: &ChangedTree<'_>| match inverted {
                    true => tree.inverted(0.0, &[]),
                    false => tree.upright(0.0, &[]),
                };
                let (expected, shown) = (rows(&of_one), rows(&tree));
                let times = tree.states_of_rows(&shown, inverted, &[]);
                let expected = amounts_by_path(&of_one, &expected, |at| [expected[at].own, expected[at].total]);
                let found = amounts_by_path(&tree, &shown, |at| times[at].map(|times| times.ns_in(*state)));
                assert_eq!(found, expected, "{change:?} {state:?} inverted: {inverted}");
            }
        }
        // A node that is looked at, with what it calls.
        let below = tree.upright(0.0, &[0, 0]);
        let times = tree.states_of_rows(&below, false, &[0, 0]);
        for (row, [own, total]) in below.iter().zip(times) {
            let sum = |times: StateTimes| times.each().map(|(_, ns)| ns).sum::<u64>();
            assert_eq!((sum(own), sum(total)), (row.own, row.total), "{change:?}");
        }
    }
}
