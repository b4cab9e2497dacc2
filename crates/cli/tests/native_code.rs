//! Native code without names in recordings of real programs: one frame of its library in whatever
//! people read.

mod common;

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fs;
use std::path::PathBuf;

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
        "report sample.clrs --view threads --symbols .",
        "export sample.clrs --to hst --symbols .",
    ] {
        let said = place.transcript(line);
        let option = if line.contains("--symbols") { "--symbols" } else { "--native-code" };
        assert!(said.contains("exit 2") && said.contains(option) && said.contains("hint: "), "{line}: {said}");
    }
}

/// A library whose symbols are in a file in the folder `symbols`. Its function `touch` spends all
/// its time in `count_down`, which it does not export.
fn touch_library(place: &TestFolder) -> PathBuf {
    let [library, symbols] = ["libtouch.so", "symbols"].map(|name| place.path().join(name));
    fs::create_dir(&symbols).expect("a folder");
    let code = "static __attribute__((noinline)) int count_down(volatile int n) { while (n > 0) n--; return n; }\n\
                int touch(int times) { return count_down(times * 20000) + times; }\n";
    testkit::stripped_library(code, &library, &symbols.join("libtouch.so.dbg"));
    library
}

/// The names come from the C source of the library, and the samples of all its functions together
/// are as without them.
#[test]
fn symbol_files_name_the_functions_of_stripped_libraries() {
    let runtime = &testkit::runtimes()[0];
    let place = TestFolder::new();
    let library = touch_library(&place);
    let words = ["run", "-i", "cpu:rate=1000", "-o", "c.clrs", "--"];
    let mut words: Vec<OsString> = words.iter().map(OsString::from).collect();
    words.extend(runtime.words(&fixture("Sampled")));
    words.extend(["storage", "400"].map(OsString::from));
    words.push(library.clone().into());
    let mut command = place.clrscope(words);
    runtime.prepare(&mut command);
    let output = command.output().expect("the tool starts");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    // Names are looked up by what was recorded: another machine has other libraries.
    fs::remove_file(&library).expect("removed");
    let of_library = |options: &str| -> BTreeMap<String, u64> {
        let own = functions(&place, options).into_iter().filter(|((module, _), _)| module == "libtouch.so");
        own.map(|((_, name), samples)| (name, samples)).collect()
    };
    let (before, after) = (of_library(""), of_library("--symbols symbols"));
    assert!(!before.keys().any(|name| name.contains("count_down")), "{before:?}");
    let busy = after.get("count_down").copied().unwrap_or(0);
    assert!(busy > 50 && busy * 10 > after.values().sum::<u64>() * 9, "{after:?}");
    assert_eq!(before.values().sum::<u64>(), after.values().sum::<u64>(), "{before:?} {after:?}");
    for line in
        ["report c.clrs --view flame", "export c.clrs --to collapsed", "diff c.clrs c.clrs --view functions --json"]
    {
        assert!(printed(&place, &format!("{line} --symbols symbols")).contains("count_down"), "{line}");
    }

    fs::create_dir(place.path().join("empty")).expect("a folder");
    let output = place.run("report c.clrs --symbols empty");
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(output.status.success() && said.contains("'empty' has no symbol file for "), "{said}");
    assert!(said.contains(".so (build id ") || said.contains(".so.6 (build id "), "{said}");
    let said = place.transcript("report c.clrs --symbols nowhere");
    assert!(said.contains("nowhere") && said.contains("hint: ") && !said.contains("exit 0"), "{said}");
}
