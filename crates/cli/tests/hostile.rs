//! Reports and exports of recordings that were made to do harm, by the tool itself: an answer or three lines, in
//! bounded time and memory, and never a panic.

mod common;

use std::fs;
use std::process::Command;
use std::time::Duration;

use clrscope_recording::model::{CallTreeBuilder, Node, NodeFlags, NodeValues, TreeSource};
use clrscope_recording::testing::fuzzing::{Target, seeds};
use clrscope_recording::testing::mutate::{lie, mutate};
use clrscope_recording::testing::synthetic::Numbers;
use clrscope_testkit as testkit;
use common::{TestFolder, sample, write_packed};

const VIEWS: [&str; 11] = [
    "summary",
    "functions",
    "tree",
    "callers --function *",
    "callees --function *",
    "threads",
    "modules",
    "losses",
    "flow",
    "events",
    "exceptions --each",
];
const FORMATS: [&str; 3] = ["text", "json", "csv"];
const EXPORTS: [&str; 6] = ["flamegraph", "hst", "calllog", "dot", "collapsed", "csv"];

/// Far more than a file of some hundred KiB should need, and far less than a machine has. In KiB of address space,
/// stacks of worker threads included.
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
    // Damage that shows only while a view or an export reads the data has no other place to be said.
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

#[test]
fn whatever_a_file_holds_a_report_of_it_ends() {
    let place = TestFolder::new();
    let seeds = seeds(Target::OpenPacked).expect("seeds");
    let mut numbers = Numbers::new(8);
    let mut answered = 0;
    for number in 0..60 {
        let mut bytes = lie(&seeds[number % seeds.len()], &mut numbers);
        if number % 5 == 0 {
            mutate(&mut bytes, &mut numbers);
        }
        fs::write(place.file("lie.clrs"), bytes).expect("a file");
        let (view, format) = (VIEWS[number % VIEWS.len()], FORMATS[number % FORMATS.len()]);
        answered += usize::from(answers(&place, &format!("report lie.clrs --view {view} --format {format}")));
        let export = EXPORTS[number % EXPORTS.len()];
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
