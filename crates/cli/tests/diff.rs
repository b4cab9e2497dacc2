//! `diff`: real programs recorded with other arguments, whose counts, bytes and exceptions are
//! known, and gates.

mod common;

use std::fs;

use clrscope_testkit as testkit;
use common::{TestFolder, sample, write_packed};
use serde_json::Value;
use testkit::{each_runtime, fixture};

/// Records `Throws COUNT` on a runtime: three calls, an exception and a known object for each of
/// COUNT.
fn record(place: &TestFolder, runtime: &testkit::Runtime, file: &str, count: u64) {
    record_with(place, runtime, file, count, &["-i", "calls", "-i", "alloc:exact", "-i", "exceptions"]);
}

fn record_with(place: &TestFolder, runtime: &testkit::Runtime, file: &str, count: u64, options: &[&str]) {
    let mut words: Vec<std::ffi::OsString> = ["run", "--quiet", "-o", file].map(Into::into).into();
    words.extend(options.iter().map(Into::into));
    words.push("--".into());
    words.extend(runtime.words(&fixture("Throws")));
    words.push(count.to_string().into());
    let mut command = place.clrscope(words);
    runtime.prepare(&mut command);
    let output = testkit::run(command);
    assert!(output.status.success(), "{}", output.stderr_text());
}

/// The document of a comparison, and the exit code.
fn json(place: &TestFolder, line: &str) -> (Value, i32) {
    let output = place.run(&format!("diff --format json {line}"));
    let said = String::from_utf8_lossy(&output.stderr);
    (serde_json::from_slice(&output.stdout).unwrap_or_else(|_| panic!("{said}")), output.status.code().unwrap_or(-1))
}

/// The first row where the column has this text.
fn row<'v>(document: &'v Value, column: &str, text: &str) -> &'v Value {
    let rows = document["rows"].as_array().expect("rows");
    rows.iter().find(|row| row[column] == text).unwrap_or_else(|| panic!("{text} in {rows:?}"))
}

#[test]
fn counts_bytes_and_exceptions_of_two_runs_are_compared_exactly_and_gates_fail_with_3() {
    each_runtime(|runtime| {
        let place = TestFolder::new();
        record(&place, runtime, "a.clrs", 30);
        record(&place, runtime, "b.clrs", 42);
        let (calls, code) = json(&place, "a.clrs b.clrs --metric calls");
        assert_eq!(
            (code, &calls["schema"], &calls["metric"]),
            (0, &"clrscope.diff-functions/1".into(), &"calls".into())
        );
        for method in ["Throws.Program::Catch", "Throws.Program::Throw"] {
            let row = row(&calls, "name", method);
            let of = |key: &str| row[key].as_i64();
            assert_eq!([of("before"), of("after"), of("difference"), of("difference_low")], [30, 42, 12, 12].map(Some));
            assert_eq!((&row["change"], &row["growth"]), (&"more".into(), &0.4.into()));
        }
        assert_eq!(row(&calls, "name", "Throws.Program::Main")["change"], "same");

        let (thrown, _) = json(&place, "a.clrs b.clrs --view exceptions");
        let thrown = row(&thrown, "name", "Throws.Program::Throw");
        assert_eq!((&thrown["before"], &thrown["after"]), (&30.into(), &42.into()));
        assert_eq!(thrown["type"], "System.InvalidOperationException");

        let (types, _) = json(&place, "a.clrs b.clrs --view allocations");
        let objects = row(&types, "type", "System.InvalidOperationException");
        assert_eq!((&objects["objects_before"], &objects["objects_after"]), (&30.into(), &42.into()));
        let bytes = |key: &str| objects[key].as_u64().expect("bytes");
        assert_eq!(bytes("before_bytes") / 30 * 42, bytes("after_bytes"), "each object has the same size");
        assert_eq!(bytes("after_low_bytes"), bytes("after_high_bytes"), "every object was counted");

        let gates =
            "--fail-on *::Catch:calls>+40% --fail-on *::Catch:exceptions>+12 --fail-on *::Catch:objects>1000000";
        let output = place.run(&format!("diff a.clrs b.clrs {gates}"));
        let text = String::from_utf8_lossy(&output.stdout);
        assert_eq!(output.status.code(), Some(0), "{text}");
        assert_eq!(text.matches(" passed: ").count(), 3, "{text}");
        let (judged, code) = json(&place, "a.clrs b.clrs --fail-on *::Catch:calls>+39% --fail-on *::Catch:bytes>+0");
        assert_eq!(code, 3);
        let outcomes: Vec<&Value> =
            judged["gates"].as_array().expect("gates").iter().map(|gate| &gate["outcome"]).collect();
        assert_eq!(outcomes, ["failed", "failed"]);

        // Sets: medians of three runs on each side.
        fs::create_dir(place.file("after")).expect("a folder");
        for count in [29, 31] {
            record(&place, runtime, &format!("a{count}.clrs"), count);
            record(&place, runtime, &format!("after/b{count}.clrs"), count + 900);
        }
        fs::rename(place.file("b.clrs"), place.file("after/b.clrs")).expect("a move");
        let (sets, _) = json(&place, "a.clrs a29.clrs a31.clrs --metric calls -- after");
        let row = row(&sets, "name", "Throws.Program::Catch");
        assert_eq!((&row["before"], &row["after"]), (&30.into(), &929.into()), "medians");
        assert!(row["before_low"].as_u64() < Some(29) && row["before_high"].as_u64() > Some(31), "{row}");
        assert_eq!(sets["recordings"].as_array().map(Vec::len), Some(6));
    });
}

#[test]
fn probed_methods_of_two_runs_are_compared_by_calls_failures_and_times() {
    each_runtime(|runtime| {
        let place = TestFolder::new();
        let probes = ["--probe", "Throws.Program::Catch", "--probe", "Throws.Program::Throw"];
        record_with(&place, runtime, "a.clrs", 30, &probes);
        record_with(&place, runtime, "b.clrs", 42, &probes);
        let (compared, code) = json(&place, "a.clrs b.clrs");
        assert_eq!((code, &compared["schema"]), (0, &"clrscope.diff-probes/1".into()));
        for (method, failed) in [("Throws.Program::Catch", [0, 0]), ("Throws.Program::Throw", [30, 42])] {
            let row = row(&compared, "name", method);
            let of = |key: &str| row[key].as_i64();
            assert_eq!(["calls_before", "calls_after", "calls_difference"].map(of), [30, 42, 12].map(Some), "{row:#}");
            assert_eq!(["failed_before", "failed_after"].map(of), failed.map(Some), "{row:#}");
            let (mean, median) = (of("mean_after_ns").expect("a time"), of("p50_after_ns").expect("a time"));
            assert!(mean > 0 && median > 0 && of("after_ns") >= Some(mean), "{row:#}");
        }
        let text = place.transcript("diff a.clrs b.clrs --view probes --sort calls");
        assert!(text.contains("30 to 42") && text.contains("Throws.Program.Catch("), "{text}");
    });
}

/// A folder with the sample before, and after a change: more calls, other own time, a function by
/// another name.
fn changed() -> TestFolder {
    let place = TestFolder::new().with_sample();
    let mut after = sample();
    let process = &mut after.processes[0];
    process.functions[4].name = "Shop.Checkout::Settle".to_owned();
    process.functions[4].signature = "Shop.Checkout.Settle(Order)".to_owned();
    process.runtime = ".NET 9.0.22".to_owned();
    process.losses.clear();
    process.threads.truncate(1);
    write_packed(&after, &place.file("after.clrs"));
    place
}

#[test]
fn texts_say_what_is_compared_and_what_changed() {
    let place = changed();
    let mut all = String::new();
    for line in [
        "diff sample.clrs after.clrs --metric calls",
        "diff sample.clrs after.clrs --metric cpu -n 5",
        "diff sample.clrs after.clrs --metric calls --view tree --fail-on Shop.*:calls>+5% --fail-on *:wall-share>50%",
        "diff sample.clrs after.clrs --metric calls --columns change,name --format csv --fail-on Settle:calls>+5",
    ] {
        all.push_str(&place.transcript(line));
    }
    insta::assert_snapshot!(all);
}

#[test]
fn what_can_not_be_compared_is_refused_in_three_lines() {
    let place = changed();
    fs::create_dir(place.file("empty")).expect("a folder");
    let cases = [
        ("", 2),
        ("sample.clrs after.clrs sample.clrs", 2),
        ("sample.clrs sample.clrs -- after.clrs", 2),
        // Before anything is read.
        ("missing.clrs after.clrs --fail-on Shop.*:calls", 2),
        ("missing.clrs after.clrs --fail-on Shop.*:cals>+5%", 2),
        ("missing.clrs after.clrs --fail-on Shop.*:wall>+5", 2),
        ("missing.clrs after.clrs --view tree --sort recursion", 2),
        ("missing.clrs after.clrs -o x.html", 2),
        ("sample.clrs --fail-on *:calls>+5%", 2),
        ("missing.clrs after.clrs", 1),
        ("empty after.clrs", 1),
        ("sample.clrs after.clrs --view exceptions", 1),
        ("sample.clrs after.clrs --metric samples", 1),
        // A gate that means nothing would pass for ever.
        ("sample.clrs after.clrs --fail-on Shop.Cart::Totl:calls>+5%", 1),
        ("sample.clrs after.clrs --fail-on Shop.*:bytes>+5%", 1),
    ];
    let mut all = String::new();
    for (line, code) in cases {
        let output = place.run(&format!("diff {line}"));
        let said = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(code), "diff {line}: {said}");
        assert!(output.stdout.is_empty() && said.lines().count() == 3, "diff {line}: {said}");
        all.push_str(&format!("$ clrscope diff {line}\n{said}"));
    }
    insta::assert_snapshot!(all);
}

#[test]
fn pages_and_pictures_of_a_comparison_are_files() {
    let place = changed();
    let run = |line: &str| {
        let output = place.run(line);
        assert!(output.status.success(), "{line}: {}", String::from_utf8_lossy(&output.stderr));
    };
    run("diff sample.clrs after.clrs --metric calls --format html -o d.html");
    let page = fs::read_to_string(place.file("d.html")).expect("a page");
    assert!(page.contains("<title>sample.clrs and after.clrs - clrscope</title>"));
    assert!(
        page.contains("Shop.Checkout::Settle") && page.contains("id=\"data\""),
        "the table is there without script"
    );
    run("diff sample.clrs after.clrs --metric wall --format flamegraph -o d.svg");
    let picture = fs::read_to_string(place.file("d.svg")).expect("a picture");
    assert!(
        picture.contains("Shop.Checkout::Settle (async) (new)")
            && picture.contains("Shop.Checkout::Pay (async) (gone)")
    );
    let again = place.run("diff sample.clrs after.clrs --format html -o d.html");
    assert_eq!(again.status.code(), Some(1), "it is not overwritten");
    run("diff sample.clrs after.clrs --format html -o d.html --force");
    let itself = place.run("diff sample.clrs after.clrs --format html -o after.clrs --force");
    assert_eq!(itself.status.code(), Some(2), "a recording is never overwritten by its own comparison");
}
