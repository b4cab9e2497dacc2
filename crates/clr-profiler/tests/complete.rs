//! Every method of the runtime's information interfaces is wrapped, or the documentation of
//! `ProfilerInfo` says why not.

use std::collections::BTreeSet;
use std::path::Path;

/// The texts of the source files of a folder of the crate, one after another.
fn sources(folder: &str) -> String {
    texts(&Path::new(env!("CARGO_MANIFEST_DIR")).join(folder))
}

/// The texts of all files in a folder and in the folders below.
fn texts(folder: &Path) -> String {
    let entries = std::fs::read_dir(folder).unwrap_or_else(|error| panic!("{}: {error}", folder.display()));
    let text = |path: &Path| if path.is_dir() { texts(path) } else { std::fs::read_to_string(path).unwrap() };
    entries.map(|entry| text(&entry.unwrap().path())).collect()
}

/// The names after `mark`, up to an opening parenthesis.
fn names(text: &str, mark: &str) -> BTreeSet<String> {
    let after = text.split(mark).skip(1);
    after.filter_map(|rest| rest.split_once('(')).map(|(name, _)| name.trim().to_owned()).collect()
}

#[test]
fn each_question_to_the_runtime_is_wrapped_or_named() {
    let declared = names(&sources("../clr-profiler-sys/src/info"), "pub fn ");
    assert!(declared.len() > 110, "{}", declared.len());
    let ours = sources("src/info") + &sources("src/hooks");
    let asked: BTreeSet<String> = names(&ours, ".").intersection(&declared).cloned().collect();
    let named: BTreeSet<String> = ours
        .lines()
        .filter_map(|line| line.trim().strip_prefix("/// | `")?.split_once('`'))
        .map(|(name, _)| name.to_owned())
        .collect();
    let covered: BTreeSet<String> = asked.union(&named).cloned().collect();
    let missing: Vec<_> = declared.difference(&covered).collect();
    assert!(missing.is_empty(), "neither wrapped nor named: {missing:?}");
    let both: Vec<_> = asked.intersection(&named).collect();
    assert!(both.is_empty(), "wrapped, and named as not wrapped: {both:?}");
    let unknown: Vec<_> = named.difference(&declared).collect();
    assert!(unknown.is_empty(), "named, but not declared: {unknown:?}");
}
