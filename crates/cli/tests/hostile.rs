//! Reports and exports of recordings that were made to do harm, by the tool itself: an answer or
//! three lines, in bounded time and memory, and never a panic.

mod common;

use std::fs;
use std::process::Command;
use std::time::Duration;

use clrscope_export::exporters;
use clrscope_recording::model::{CallTreeBuilder, Node, NodeFlags, NodeValues, TreeSource};
use clrscope_recording::testing::fuzzing::{Target, heap_seed, seeds};
use clrscope_recording::testing::mutate::{lie, mutate};
use clrscope_recording::testing::synthetic::Numbers;
use clrscope_report::{Flag, VIEWS, View};
use clrscope_testkit as testkit;
use common::{TestFolder, sample, write_packed};

const FORMATS: [&str; 3] = ["text", "json", "csv"];

/// Far more than a file of some hundred KiB should need, and far less than a machine has. In KiB of
/// address space, stacks of worker threads included.
const MOST_MEMORY: u32 = 2 << 20;
const PATIENCE: Duration = Duration::from_secs(60);

/// Runs the tool within limits; whether it had an answer.
fn answers(place: &TestFolder, line: &str) -> bool {
    let script = format!("ulimit -v {MOST_MEMORY}; exec \"$0\" \"$@\"");
    let mut shell = Command::new("bash");
    shell.args(["-c", &script, env!("CARGO_BIN_EXE_clrscope")]).args(line.split_whitespace());
    let finished = testkit::run_within(
        {
            shell.current_dir(place.path());
            shell
        },
        PATIENCE,
    );
    // Damage that shows only while a view or an export reads the data has no other place to be
    // said.
    let said = finished.stderr_text();
    let is_damage = |line: &&str| line.starts_with("clrscope: unreadable: ");
    let said: String = said.lines().filter(|line| !is_damage(line)).map(|line| format!("{line}\n")).collect();
    match finished.status.code() {
        Some(0) => assert_eq!(said, "", "{line}"),
        Some(1 | 2) => assert!(said.starts_with("error: ") && said.lines().count() == 3, "{line}: {said}"),
        _ => panic!("{line}: {:?}: {said}", finished.status),
    }
    finished.status.success()
}

/// Every view as words of `report`, once more with `--each` where that is another.
fn views() -> Vec<String> {
    let words = |view: &&View| {
        let function = if ["callers", "callees"].contains(&view.name) { " --function *" } else { "" };
        let each = (view.name != "flow" && view.why_not(Flag::Each).is_none()).then(|| format!("{} --each", view.name));
        [format!("{}{function}", view.name)].into_iter().chain(each)
    };
    VIEWS.iter().flat_map(words).collect()
}

#[test]
fn whatever_a_file_holds_a_report_of_it_ends() {
    let place = TestFolder::new();
    let (views, exports) = (views(), exporters());
    assert!(views.len() > 20 && exports.len() > 8, "{views:?}");
    let mut seeds = seeds(Target::OpenPacked).expect("seeds");
    seeds.push(heap_seed().expect("a seed"));
    let mut numbers = Numbers::new(8);
    let mut answered = 0;
    for number in 0..3 * views.len() {
        let mut bytes = lie(&seeds[number % seeds.len()], &mut numbers);
        if number % 5 == 0 {
            mutate(&mut bytes, &mut numbers);
        }
        fs::write(place.file("lie.clrs"), bytes).expect("a file");
        let (view, format) = (&views[number % views.len()], FORMATS[number / views.len()]);
        answered += usize::from(answers(&place, &format!("report lie.clrs --view {view} --format {format}")));
        let export = exports[number % exports.len()].name();
        answered += usize::from(answers(&place, &format!("export lie.clrs --to {export}")));
    }
    // Most have something to show, or this would test nothing.
    assert!(answered > 60, "{answered}");
}

/// As deep as a program gets that ends by overflowing its stack.
#[test]
fn a_path_of_100_000_calls_is_shown_in_every_way() {
    let mut recording = sample();
    let mut tree = CallTreeBuilder::new(NodeValues::default());
    for number in 1..100_000_u32 {
        let time = NodeValues { metric: 1_000, cpu_ns: 900 };
        let (parent, function) = (number - 1, 1 + number % 5);
        tree.push(Node { parent, function, calls: 1, values: time, flags: NodeFlags::default() });
    }
    recording.processes[0].threads[0].tree = TreeSource::ready(tree.finish());
    let place = TestFolder::new();
    write_packed(&recording, &place.file("deep.clrs"));
    for (view, format) in
        [("summary", "text"), ("functions", "csv"), ("tree", "text"), ("tree", "json"), ("tree", "csv")]
    {
        assert!(answers(&place, &format!("report deep.clrs --view {view} --format {format}")), "{view} {format}");
    }
    for export in ["flamegraph", "hst", "dot", "collapsed", "csv"] {
        assert!(answers(&place, &format!("export deep.clrs --to {export} -o out --force")), "{export}");
    }
}
