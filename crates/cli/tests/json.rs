//! Documents of real recordings have no key that `docs/json.md` does not have.

mod common;

use std::collections::BTreeSet;

use clrscope_report::VIEWS;
use clrscope_testkit::{fixture, run, workspace_root};
use common::TestFolder;
use serde_json::Value;

/// Recordings that together have data for every view, with the program and its arguments.
const RECORDINGS: [(&str, &str, &[&str]); 4] = [
    ("samples.clrs", "cpu wall exceptions alloc gc locks counters memory heap", &["Troubles", "convoy", "1000"]),
    ("calls.clrs", "calls exceptions", &["Troubles", "exceptions", "300"]),
    ("flow.clrs", "flow events", &["Troubles", "exceptions", "100"]),
    ("requests.clrs", "requests awaits", &["Asks", "2"]),
];

/// Keys that the tables below a heading have.
fn documented(text: &str, heading: &str) -> BTreeSet<String> {
    let begin = text.find(&format!("\n{heading}\n")).unwrap_or_else(|| panic!("{heading} in docs/json.md"));
    let rest = &text[begin + heading.len() + 2..];
    let end = rest.find("\n#").unwrap_or(rest.len());
    let rows = rest[..end].lines().filter(|line| line.starts_with('|'));
    // Words in code: the keys, and the keys within them.
    rows.flat_map(|row| row.split('`').skip(1).step_by(2)).map(str::to_owned).collect()
}

fn keys(value: &Value) -> impl Iterator<Item = &String> {
    value.as_object().into_iter().flat_map(|object| object.keys())
}

#[test]
fn every_key_of_a_document_is_documented() {
    let text = std::fs::read_to_string(workspace_root().join("docs/json.md")).expect("the documents");
    let runtime = clrscope_testkit::runtimes().last().expect("a runtime");
    let (head, place) = (documented(&text, "## Every document of a recording"), TestFolder::new());
    let (mut missing, mut shown) = (BTreeSet::new(), BTreeSet::new());
    for (name, instruments, words) in RECORDINGS {
        let mut command = place.clrscope(["run", "-q", "-o", name]);
        command.args(instruments.split(' ').flat_map(|one| ["-i", one])).arg("--");
        command.args(runtime.words(&fixture(words[0]))).args(&words[1..]);
        runtime.prepare(&mut command);
        run(command).expect_success();
        for view in VIEWS {
            let output = place.run(&format!("report {name} --view {} --format json", view.name));
            let Ok(document) = serde_json::from_slice::<Value>(&output.stdout) else { continue };
            let known = documented(&text, &format!("### `{}`", view.name));
            let rows = document["rows"].as_array().or_else(|| document["roots"].as_array());
            let rows = rows.map(Vec::as_slice).unwrap_or_default();
            if !rows.is_empty() {
                shown.insert(view.name);
            }
            let in_rows = rows.iter().flat_map(keys).filter(|key| !known.contains(*key) && *key != "children");
            let in_head = keys(&document).chain(keys(&document["recording"]));
            let in_head = in_head.filter(|key| !head.contains(*key) && !known.contains(*key));
            missing.extend(in_rows.chain(in_head).map(|key| format!("{}: {key}", view.name)));
        }
    }
    assert_eq!(missing, BTreeSet::new(), "documents have these keys, and docs/json.md does not");
    assert!(shown.len() * 2 > VIEWS.len(), "only {shown:?} have rows");
}
