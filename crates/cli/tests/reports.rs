//! Reports of a recording made by hand: layouts word for word, and the keys of the documented
//! schemas.

mod common;

use std::collections::BTreeSet;

use clrscope_recording::model::{Loss, LossReason};
use common::{TestFolder, sample, write_packed};
use insta::assert_snapshot;
use serde_json::Value;

const VIEWS: [&str; 7] = ["summary", "functions", "tree", "threads", "modules", "losses", "conditions"];

fn text(place: &TestFolder, line: &str, width: &str) -> String {
    let mut command = place.clrscope(line.split_whitespace());
    let output = command.env("COLUMNS", width).output().expect("the tool starts");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).expect("UTF-8")
}

fn json(place: &TestFolder, line: &str) -> Value {
    serde_json::from_str(&text(place, &format!("{line} --format json"), "100")).expect("JSON")
}

#[test]
fn layouts_at_three_widths() {
    let place = TestFolder::new().with_sample();
    for width in ["60", "100", "160"] {
        for view in VIEWS {
            let report = text(&place, &format!("report sample.clrs --view {view}"), width);
            let limit = width.parse().expect("a number");
            for line in report.lines() {
                assert!(line.chars().count() <= limit, "{view} at {width}: {line}");
            }
            assert_snapshot!(format!("{view}_{width}"), report);
        }
        for view in ["callers", "callees"] {
            let report = text(&place, &format!("report sample.clrs --view {view} --function Shop.Cart::*"), width);
            assert_snapshot!(format!("{view}_{width}"), report);
        }
    }
}

#[test]
fn colours_only_where_they_are_wanted() {
    let place = TestFolder::new().with_sample();
    let with = |name: &str| {
        let output = place.clrscope(["report", "sample.clrs"]).env(name, "1").output().expect("the tool starts");
        output.stdout.contains(&0x1b)
    };
    assert!(!text(&place, "report sample.clrs", "100").contains('\u{1b}'), "a pipe gets none");
    assert!(with("CLICOLOR_FORCE"), "unless it asks for it");
    let mut both = place.clrscope(["report", "sample.clrs"]);
    let output = both.env("NO_COLOR", "1").output().expect("the tool starts");
    assert!(!output.stdout.contains(&0x1b));
}

const FUNCTION: &str = "name signature module token kind calls inclusive_ns exclusive_ns callee_ns suspended_ns \
                        profiler_ns profiler_low_ns profiler_high_ns inclusive_cpu_ns exclusive_cpu_ns \
                        exclusive_low_ns exclusive_high_ns exclusive_cpu_low_ns exclusive_cpu_high_ns";

fn assert_keys(value: &Value, keys: &str) {
    let found: BTreeSet<&str> = value.as_object().expect("an object").keys().map(String::as_str).collect();
    assert_eq!(found, keys.split_whitespace().collect::<BTreeSet<_>>());
}

#[test]
fn documents_have_the_documented_keys() {
    let place = TestFolder::new().with_sample();
    let functions = json(&place, "report sample.clrs --view functions");
    assert_keys(&functions, "schema recording rows");
    assert_eq!(functions["schema"], "clrscope.functions/1");
    assert_keys(
        &functions["recording"],
        "id command started duration_ns since_ns until_ns instruments complete processes losses",
    );
    assert_keys(&functions["recording"]["processes"][0], "pid command runtime complete exit_code resource");
    assert_keys(&functions["recording"]["losses"][0], "reason count first_ns last_ns");
    assert_keys(&functions["rows"][0], &format!("{FUNCTION} max_recursion threads"));

    let threads = json(&place, "report sample.clrs --view functions --per-thread");
    assert_keys(&threads["rows"][0], &format!("{FUNCTION} max_recursion threads thread"));
    assert_keys(&threads["rows"][0]["thread"], "id os_id name role");

    let summary = json(&place, "report sample.clrs");
    assert_eq!(summary["schema"], "clrscope.summary/1");
    assert_keys(&summary, "schema recording findings top own framework elsewhere");
    assert_keys(&summary["findings"][0], "text kind function file line metric share share_low share_high command");
    assert_keys(&summary["top"][0], &format!("{FUNCTION} max_recursion threads"));
    assert_keys(&summary["own"][0], &format!("{FUNCTION} max_recursion threads work_ns work_share waited_ns"));
    assert_keys(&summary["framework"][0], &format!("{FUNCTION} max_recursion threads work_share"));
    assert_keys(&summary["elsewhere"][0], "kind time_ns count text most_ns most_below");

    let tree = json(&place, "report sample.clrs --view tree");
    assert_keys(&tree, "schema recording roots");
    assert_eq!(tree["schema"], "clrscope.tree/1");
    assert_keys(&tree["roots"][0], &format!("{FUNCTION} children"));

    for view in ["callers", "callees"] {
        let document = json(&place, &format!("report sample.clrs --view {view} --function Shop.Cart::Total"));
        assert_keys(&document, "schema recording function rows");
        assert_keys(&document["function"], &format!("{FUNCTION} max_recursion threads"));
        assert_keys(&document["rows"][0], FUNCTION);
    }

    let threads = json(&place, "report sample.clrs --view threads");
    let keys = "id os_id name role created_ns ended_ns running_ns outside_ns cpu_ns suspended_ns profiler_ns \
                profiler_low_ns profiler_high_ns calls max_depth";
    assert_keys(&threads["rows"][0], keys);
    let modules = json(&place, "report sample.clrs --view modules");
    assert_keys(&modules["rows"][0], "module path version functions calls exclusive_ns exclusive_cpu_ns");
    let losses = json(&place, "report sample.clrs --view losses");
    assert_keys(&losses["rows"][0], "reason count first_ns last_ns");
}

#[test]
fn what_is_known_of_a_loss_is_a_line_of_its_own_and_a_field_of_its_row() {
    let mut recording = sample();
    let detail = "panicked at slow.rs:7:9: no";
    let panics = Loss { details: vec![detail.to_owned()], ..Loss::new(LossReason::PanicCaught, 2, 5_000, 9_000) };
    recording.processes[0].losses.insert(0, panics);
    let place = TestFolder::new();
    write_packed(&recording, &place.file("sample.clrs"));
    let losses = json(&place, "report sample.clrs --view losses");
    assert_keys(&losses["rows"][0], "reason count first_ns last_ns details");
    assert_eq!(losses["rows"][0]["details"], serde_json::json!([detail]));
    assert_eq!(losses["recording"]["losses"][0]["details"], serde_json::json!([detail]));
    assert_keys(&losses["rows"][1], "reason count first_ns last_ns");
    let text = String::from_utf8(place.run("report sample.clrs --view losses").stdout).expect("text");
    assert!(text.lines().any(|line| line.trim() == detail), "{text}");
}

#[test]
fn values_are_the_recordings() {
    let place = TestFolder::new().with_sample();
    let document = json(&place, "report sample.clrs --view functions --raw");
    let recording = &document["recording"];
    assert_eq!(recording["command"], serde_json::json!(["dotnet", "shop.dll", "--day", "7"]));
    assert_eq!(recording["started"], "2026-11-18T11:06:40Z");
    assert_eq!(recording["duration_ns"], 2_001_000_000_u64);
    assert_eq!(recording["instruments"]["given"], "calls");
    assert_eq!(recording["complete"], true);
    assert_eq!(recording["processes"][0]["exit_code"], 3);
    let row = |name: &str| {
        let rows = document["rows"].as_array().expect("rows");
        rows.iter().find(|row| row["name"] == name).expect(name).clone()
    };
    assert_eq!(row("Shop.Cart::Total")["calls"], 50);
    assert_eq!(row("Shop.Cart::Total")["max_recursion"], 2);
    assert_eq!(row("Shop.Cart::Total")["suspended_ns"], 9_000_000);
    assert_eq!(row("Shop.Cart::Total")["inclusive_ns"], 359_000_000);
    assert_eq!(row("System.String::Equals")["calls"], 1_235_566);
    assert_eq!(row("System.String::Equals")["threads"], 2);
    assert_eq!(row("[JIT]")["kind"], "runtime");
}

#[test]
fn text_json_and_csv_have_the_same_rows_in_the_same_order() {
    let place = TestFolder::new().with_sample();
    for line in ["report sample.clrs --view functions --sort calls", "report sample.clrs --view modules"] {
        let rows = json(&place, line);
        let key = if line.contains("modules") { "module" } else { "name" };
        let names: Vec<&str> = rows["rows"].as_array().expect("rows").iter().filter_map(|r| r[key].as_str()).collect();
        let csv = text(&place, &format!("{line} --format csv"), "100");
        let in_csv: Vec<&str> = csv.lines().skip(1).map(|l| l.split(',').next().expect("a cell")).collect();
        assert_eq!(names, in_csv);
        let report = text(&place, line, "400");
        let positions: Vec<usize> =
            names.iter().filter(|n| !n.is_empty()).map(|n| report.rfind(n).expect("in the text")).collect();
        assert!(positions.is_sorted(), "{names:?}\n{report}");
    }
}

#[test]
fn the_same_recording_gives_the_same_bytes() {
    let place = TestFolder::new().with_sample();
    for view in VIEWS {
        let line = format!("report sample.clrs --view {view}");
        assert_eq!(
            text(&place, &format!("{line} --format json"), "100"),
            text(&place, &format!("{line} --format json"), "60")
        );
        assert_eq!(text(&place, &line, "90"), text(&place, &line, "90"));
    }
}

#[test]
fn several_processes_are_listed_and_told_apart() {
    let place = TestFolder::new();
    let mut recording = sample();
    let mut second = recording.processes[0].clone();
    second.pid = 4800;
    second.complete = false;
    second.exit = None;
    second.command = vec!["csc.dll".to_owned()];
    recording.processes.push(second);
    write_packed(&recording, &place.file("two.clrs"));
    let report = text(&place, "report two.clrs", "100");
    assert!(report.contains("2 processes on .NET 8.0.33") && report.contains("most in shop "), "{report}");
    let conditions = text(&place, "report two.clrs --view conditions", "100");
    let part = "50.0 % of the thread time";
    assert!(
        conditions.contains(&format!("4711, {part}")) && conditions.contains(&format!("4800, {part}")),
        "{conditions}"
    );
    let document = json(&place, "report two.clrs --view functions");
    assert_keys(&document["rows"][0], &format!("{FUNCTION} max_recursion threads pid"));
    assert_eq!(document["recording"]["processes"][1]["complete"], false);
    let one = json(&place, "report two.clrs --view functions --process *csc*");
    assert!(one["rows"].as_array().expect("rows").iter().all(|row| row["pid"] == 4800));
}

#[test]
fn a_reader_that_has_seen_enough_is_no_error() {
    let place = TestFolder::new().with_sample();
    let tool = env!("CARGO_BIN_EXE_clrscope");
    let script = format!("{tool} report sample.clrs --view functions | true; echo ${{PIPESTATUS[0]}}");
    let output =
        std::process::Command::new("bash").args(["-c", &script]).current_dir(place.path()).output().expect("a shell");
    assert_eq!(String::from_utf8_lossy(&output.stdout).trim(), "0");
    assert!(output.stderr.is_empty(), "{}", String::from_utf8_lossy(&output.stderr));
}

#[test]
fn exports_go_to_stdout_or_to_a_file() {
    let place = TestFolder::new().with_sample();
    for (format, part) in [
        (
            "hst",
            "Thread ID;Function;Times Called;Exclusive Time;Inclusive Time;Callee Time;Suspended Time;Profiler Time",
        ),
        ("dot", "digraph"),
        ("collapsed", "Shop.Program::Main;Shop.Cart::Total"),
        ("flamegraph", "<svg"),
        ("csv", "inclusive_ns"),
    ] {
        let output = text(&place, &format!("export sample.clrs --to {format}"), "100");
        assert!(output.contains(part), "{format}: {output}");
        assert!(place.run(&format!("export sample.clrs --to {format} -o out.file --force")).status.success());
        assert_eq!(std::fs::read_to_string(place.file("out.file")).expect("a file"), output);
    }
    assert!(place.run("export sample.clrs --to csv -o /dev/null").status.success());
}

#[test]
fn an_export_overwrites_nothing_unless_forced() {
    let place = TestFolder::new().with_sample();
    std::fs::write(place.file("mine"), "mine").expect("a file");
    std::os::unix::fs::symlink("mine", place.file("link")).expect("a link");
    for name in ["mine", "link"] {
        let refused = place.run(&format!("export sample.clrs --to csv -o {name}"));
        let expected = format!(
            "error: cannot write '{name}'\nwhy: '{name}' exists\nhint: choose another name with -o, or overwrite it with --force\n"
        );
        assert_eq!((refused.status.code(), String::from_utf8_lossy(&refused.stderr).into_owned()), (Some(1), expected));
    }
    assert_eq!(std::fs::read_to_string(place.file("mine")).expect("a file"), "mine");
}
