//! Native code without names in recordings of real programs: one frame of its library in whatever
//! people read.

mod common;

use std::collections::BTreeMap;
use std::ffi::OsString;

use clrscope_testkit as testkit;
use common::TestFolder;
use serde_json::Value;
use testkit::{Runtime, each_runtime, fixture};

fn recorded(place: &TestFolder, runtime: &Runtime) {
    let words = ["run", "-i", "cpu:rate=10000", "-o", "c.clrs", "--"];
    let mut words: Vec<OsString> = words.iter().map(OsString::from).collect();
    words.extend(runtime.words(&fixture("Sampled")));
    words.extend(["collections", "400"].map(OsString::from));
    let mut command = place.clrscope(words);
    runtime.prepare(&mut command);
    let output = command.output().expect("the tool starts");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
}

fn printed(place: &TestFolder, line: &str) -> String {
    let output = place.run(line);
    assert!(output.status.success(), "{line}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).expect("UTF-8")
}

/// Samples in functions themselves, by module and signature, of a view of functions.
fn functions(place: &TestFolder, options: &str) -> BTreeMap<(String, String), u64> {
    let document = printed(place, &format!("report c.clrs --view functions --json {options}"));
    let document: Value = serde_json::from_str(&document).expect("JSON");
    let text = |row: &Value, key: &str| row[key].as_str().expect("a text").to_owned();
    let rows = document["rows"].as_array().expect("rows").iter();
    let row =
        |row: &Value| ((text(row, "module"), text(row, "signature")), row["self_samples"].as_u64().expect("a number"));
    let all: Vec<_> = rows.map(row).collect();
    let by_name: BTreeMap<_, _> = all.iter().cloned().collect();
    assert_eq!(by_name.len(), all.len(), "a row for each function");
    by_name
}

/// A report of a program that collected garbage had a row for each place in the runtime: only pages
/// folded them.
#[test]
fn a_library_without_names_is_one_row_of_functions() {
    each_runtime(|runtime| {
        let place = TestFolder::new();
        recorded(&place, runtime);
        let places = functions(&place, "--native-code places");
        let mut expected: BTreeMap<String, (usize, u64)> = BTreeMap::new();
        for ((module, name), samples) in &places {
            if name.starts_with(&format!("{module}+0x")) {
                let of = expected.entry(module.clone()).or_default();
                *of = (of.0 + 1, of.1 + samples);
            }
        }
        let rows = expected.get("libcoreclr.so").map_or(0, |of| of.0);
        assert!(rows > 5, "{rows} places in the runtime: {places:?}");
        let folded = functions(&place, "");
        assert!(folded.keys().all(|(module, name)| !name.starts_with(&format!("{module}+0x"))), "{folded:?}");
        for (module, (_, samples)) in &expected {
            assert_eq!(folded.get(&(module.clone(), format!("[{module}]"))), Some(samples), "{module}: {folded:?}");
        }
        // Functions that have names are as they were.
        let named = |all: &BTreeMap<(String, String), u64>| {
            let named = all.iter().filter(|((module, name), _)| {
                !name.starts_with(&format!("{module}+0x")) && *name != format!("[{module}]")
            });
            named.map(|(key, samples)| (key.clone(), *samples)).collect::<Vec<_>>()
        };
        assert_eq!(named(&folded), named(&places));
        for line in ["report c.clrs", "report c.clrs --view tree", "report c.clrs --view flame", "diff c.clrs c.clrs"] {
            assert!(!printed(&place, line).contains(".so+0x"), "{line}");
        }
        for view in ["tree", "flame"] {
            let shown = printed(&place, &format!("report c.clrs --view {view} --json --native-code places"));
            assert!(shown.contains("libcoreclr.so+0x"), "{view}");
        }
        // Half of a fleet's own time stood in two thousand functions without names, which told the
        // reader nothing.
        for (format, options, has_places) in [
            ("collapsed", "", false),
            ("collapsed", "--native-code places", true),
            ("speedscope", "", false),
            ("speedscope", "--native-code places", true),
            ("firefox", "", false),
            ("firefox", "--native-code places", true),
            ("otlp", "", false),
            ("otlp", "--native-code places", true),
        ] {
            let line = format!("export c.clrs --to {format} {options}");
            let output = place.run(line.trim());
            assert!(output.status.success(), "{line}: {}", String::from_utf8_lossy(&output.stderr));
            let text = String::from_utf8_lossy(&output.stdout).into_owned();
            assert_eq!(text.contains("libcoreclr.so+0x"), has_places, "{line}");
            assert!(has_places || text.contains("[libcoreclr.so]"), "{line}");
        }
    });
}

#[test]
fn what_has_no_native_code_refuses_to_show_it_otherwise() {
    let place = TestFolder::new().with_sample();
    for line in [
        "report sample.clrs --view threads --native-code places",
        "report sample.clrs --format html -o x.html --native-code places",
        "export sample.clrs --to hst --native-code places",
        "export sample.clrs --to chrome --native-code places",
    ] {
        let said = place.transcript(line);
        assert!(said.contains("exit 2") && said.contains("--native-code") && said.contains("hint: "), "{line}: {said}");
    }
}
