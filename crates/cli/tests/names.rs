//! Names on the command line: as reports print them, as people remember them, and misspelt.

mod common;

use common::{TestFolder, sample, write_packed};
use serde_json::Value;

fn write_recording() -> TestFolder {
    let place = TestFolder::new();
    let mut recording = sample();
    // As the agent writes it.
    let pay = &mut recording.processes[0].functions[4];
    pay.signature.push_str(" (async)");
    write_packed(&recording, &place.file("shop.clrs"));
    place
}

/// The names of the functions that a pattern finds; what stderr says where it finds none.
fn found(place: &TestFolder, pattern: &str) -> Result<Vec<String>, String> {
    let args = ["report", "shop.clrs", "--view", "functions", "--format", "json", "--function", pattern];
    let output = place.clrscope(args).output().expect("it runs");
    if !output.status.success() {
        assert_eq!(output.status.code(), Some(1), "{pattern}");
        return Err(String::from_utf8_lossy(&output.stderr).into_owned());
    }
    let json: Value = serde_json::from_slice(&output.stdout).expect("JSON");
    let rows = json["rows"].as_array().expect("rows").iter();
    Ok(rows.map(|row| row["name"].as_str().expect("a name").to_owned()).collect())
}

#[test]
fn a_function_is_found_by_any_name_that_a_report_prints_and_by_its_own_name_alone() {
    let place = write_recording();
    for pattern in [
        "Pay",
        "*Pay*",
        "Checkout.Pay",
        "Checkout::Pay",
        "Shop.Checkout.Pay",
        "Shop.Checkout::Pay",
        "Shop.Checkout.Pay(Order)",
        "Shop.Checkout.Pay(Order) (async)",
        "Shop.Checkout::Pay (async)",
        "[Shop]Pay",
        "pay",
        "shop.checkout::PAY",
    ] {
        assert_eq!(found(&place, pattern), Ok(vec!["Shop.Checkout::Pay".to_owned()]), "{pattern}");
    }
    assert_eq!(found(&place, "[JIT]"), Ok(vec!["[JIT]".to_owned()]));
    assert_eq!(found(&place, "System.Threading.*"), Ok(vec!["System.Threading.Monitor::Wait".to_owned()]));
}

#[test]
fn a_name_that_is_nowhere_is_the_same_error_in_every_view_with_the_nearest_names() {
    let place = write_recording();
    let said = found(&place, "Checkout.Pya").expect_err("nothing");
    assert!(said.contains("did you mean 'Shop.Checkout::Pay'?"), "{said}");
    for view in ["summary", "functions", "tree", "callers", "callees", "threads", "modules"] {
        for filter in ["--module Shpo", "--function Pya"] {
            let output = place.run(&format!("report shop.clrs --view {view} {filter}"));
            let said = String::from_utf8_lossy(&output.stderr);
            // Views that take no such filter refuse it; callers need a function to be about.
            let is_refused = output.status.code() == Some(2);
            assert!(is_refused || output.status.code() == Some(1), "{view} {filter}: {:?} {said}", output.status);
            assert!(output.stdout.is_empty() && said.lines().count() == 3, "{view} {filter}: {said}");
            assert!(is_refused || said.contains("did you mean 'Shop"), "{view} {filter}: {said}");
        }
    }
    for format in ["collapsed", "hst", "csv"] {
        let output = place.run(&format!("export shop.clrs --to {format} --function Pya"));
        assert_eq!(output.status.code(), Some(1), "{format}");
    }
}

#[test]
fn report_without_a_recording_takes_the_newest_here() {
    let place = TestFolder::new();
    let none = place.run("report");
    assert_eq!(none.status.code(), Some(2));
    assert!(String::from_utf8_lossy(&none.stderr).contains("this folder has no recording"));
    write_packed(&sample(), &place.file("older.clrs"));
    write_packed(&sample(), &place.file("newer.clrs"));
    let long_ago = std::time::SystemTime::UNIX_EPOCH;
    std::fs::File::options()
        .append(true)
        .open(place.file("older.clrs"))
        .and_then(|file| file.set_modified(long_ago))
        .expect("a time");
    let (given, newest) =
        (place.run("report newer.clrs -n 2 --view functions"), place.run("report -n 2 --view functions"));
    assert_eq!(String::from_utf8_lossy(&newest.stderr), "clrscope: the newest recording here is 'newer.clrs'\n");
    assert_eq!(given.stdout, newest.stdout);
    assert!(newest.status.success() && !newest.stdout.is_empty());
    let two = place.run("report older.clrs newer.clrs");
    let said = String::from_utf8_lossy(&two.stderr).into_owned();
    assert!(two.status.code() == Some(2) && said.contains("to compare recordings"), "{said}");
}

#[test]
fn json_is_format_json() {
    let place = write_recording();
    let (short, long) = (place.run("report shop.clrs --json"), place.run("report shop.clrs --format json"));
    assert!(short.status.success() && !short.stdout.is_empty());
    assert_eq!(short.stdout, long.stdout);
    assert_eq!(place.run("report shop.clrs --json --format csv").status.code(), Some(2));
}

#[test]
fn columns_are_named_as_tables_head_them_or_as_json_does() {
    let place = write_recording();
    let by = |columns: &str| place.run(&format!("report shop.clrs --view functions --format csv --columns {columns}"));
    let (keys, headings) = (by("name,calls,inclusive_cpu_ns,exclusive_ns"), by("function,Calls,cpu_total,exclusive"));
    assert!(keys.status.success(), "{}", String::from_utf8_lossy(&keys.stderr));
    assert_eq!(keys.stdout, headings.stdout);
    let several = String::from_utf8_lossy(&by("share").stderr).into_owned();
    assert!(several.contains("'--columns' does not take 'share'"), "two columns are headed so: {several}");
}

/// A part of the time was said to be for views of calls as well, which refused it then.
#[test]
fn views_of_sums_are_not_named_for_parts_of_the_time() {
    for view in ["summary", "functions", "tree", "threads"] {
        let output = write_recording().run(&format!("report shop.clrs --view {view} --since 1s"));
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(output.status.code(), Some(2), "{said}");
        let hint = said.lines().last().expect("three lines");
        assert!(hint.contains("it works in the views events, exceptions and flow"), "{said}");
        assert!(!["summary", "functions", "tree", "threads"].iter().any(|sum| hint.contains(sum)), "{said}");
    }
}

#[test]
fn misspelt_words_of_the_command_line_get_their_nearest() {
    let place = write_recording();
    for (line, meant) in [
        ("repot shop.clrs", "report"),
        ("report shop.clrs --veiw tree", "--view"),
        ("report shop.clrs --view functoins", "functions"),
        ("report shop.clrs --view functions --sort exclusiv", "exclusive"),
        ("report shop.clrs --view functions --sort clals", "calls"),
        ("report shop.clrs --view functions --sort cpuu", "cpu"),
        ("report shop.clrs --view functions --columns nmae", "name"),
        ("report shop.clrs --view events --group heep", "heap"),
        ("export shop.clrs --to flamegraf", "flamegraph"),
        ("run -i cals -- true", "calls"),
        ("run -i calls:clok=tsc -- true", "clock"),
        ("run -i calls:clock=tcs -- true", "tsc"),
        ("run -i events:groups=gv -- true", "gc"),
    ] {
        let said = String::from_utf8_lossy(&place.run(line).stderr).into_owned();
        assert!(said.contains(&format!("did you mean '{meant}'?")), "{line}: {said}");
    }
    let said = String::from_utf8_lossy(&place.run("report shop.clrs --top 5").stderr).into_owned();
    assert!(said.contains("hint: see 'clrscope report --help'"), "{said}");
}

#[test]
fn a_project_is_run_by_dotnet_run() {
    let place = TestFolder::new();
    std::fs::write(place.file("Batch.csproj"), "<Project/>").expect("a file");
    let output = place.run("run Batch.csproj");
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(126), "{said}");
    assert!(said.contains("hint: clrscope run -- dotnet run --project Batch.csproj"), "{said}");
}

#[test]
fn instruments_that_do_not_go_together_are_refused_before_the_program_starts() {
    let place = TestFolder::new();
    for instruments in ["events:groups=gc,allocations=on", "events:gc,allocations"] {
        let output = place.run(&format!("run -i {instruments} -o x.clrs -- touch started"));
        assert_eq!(output.status.code(), Some(125), "{instruments}");
        assert!(!place.file("started").exists() && !place.file("x.clrs.d").exists(), "{instruments}");
    }
}

#[test]
fn shells_complete_words_and_the_man_page_has_examples() {
    let place = TestFolder::new();
    let bash = String::from_utf8_lossy(&place.run("completions bash").stdout).into_owned();
    let completed = |option: &str| {
        let begin = format!("                {option})\n");
        let cases = bash.split(&begin).skip(1);
        cases.map(|case| case.lines().next().expect("a line").trim().to_owned()).collect::<Vec<_>>()
    };
    for (option, word) in [("--sort", "exclusive"), ("-i", "exceptions"), ("--instrument", "flow")] {
        let cases = completed(option);
        assert!(
            !cases.is_empty() && cases.iter().all(|case| case.contains("compgen -W") && case.contains(word)),
            "{option}: {cases:?}"
        );
    }
    let man = String::from_utf8_lossy(&place.run("man").stdout).into_owned();
    assert!(man.contains(".SH EXAMPLES") && !man.contains("EXTRA"), "{man}");
    assert!(place.run("man --directory pages").status.success());
    let report = std::fs::read_to_string(place.file("pages/clrscope-report.1")).expect("a page");
    assert!(report.contains(".SH EXAMPLES") && !report.contains("EXTRA"), "{report}");
}
