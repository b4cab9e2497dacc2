//! First words of doc comments: each names the thing documented, so that a list of items reads as an index.

use std::fs;
use std::path::{Path, PathBuf};

use clrscope_testkit::workspace_root;

/// Folders with sources of our own.
const FOLDERS: [&str; 4] = ["crates", "examples", "fuzz", "xtask"];

/// Words that point at the thing documented, or at another item, or ask for it, and don't name it.
const RIDDLES: [&str; 34] = [
    "He",
    "It",
    "Its",
    "She",
    "Such",
    "Their",
    "Them",
    "They",
    "That",
    "These",
    "This",
    "Those",
    "How",
    "What",
    "When",
    "Where",
    "Which",
    "Whichever",
    "Who",
    "Whoever",
    "Whom",
    "Whose",
    "Why",
    "Whatever",
    "Something",
    "Somebody",
    "Someone",
    "As above",
    "As below",
    "Ditto",
    "Likewise",
    "The other",
    "The rest",
    "The same",
];

/// Line numbers, from 1, and texts of the doc comments that begin with a riddle.
fn riddles(source: &str) -> Vec<(usize, &str)> {
    let mut found = Vec::new();
    let mut before = None;
    for (number, line) in (1..).zip(source.lines()) {
        let marker = ["///", "//!"].into_iter().find(|marker| line.trim_start().starts_with(marker));
        let begins = marker.filter(|_| marker != before);
        let text = begins.and_then(|marker| line.trim_start().strip_prefix(marker)).map(str::trim_start);
        found.extend(text.filter(|text| is_riddle(text)).map(|text| (number, text)));
        before = marker;
    }
    found
}

fn is_riddle(text: &str) -> bool {
    let ends = |rest: &str| !rest.starts_with(|c: char| c.is_alphanumeric() || c == '_');
    RIDDLES.iter().any(|riddle| text.strip_prefix(riddle).is_some_and(ends))
}

fn sources(folder: &Path, into: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(folder).into_iter().flatten().flatten().map(|entry| entry.path()) {
        if entry.is_dir() && !entry.ends_with("target") {
            sources(&entry, into);
        } else if entry.extension().is_some_and(|extension| extension == "rs") {
            into.push(entry);
        }
    }
}

#[test]
fn doc_comments_name_what_they_document() {
    let mut files = Vec::new();
    FOLDERS.iter().for_each(|folder| sources(&workspace_root().join(folder), &mut files));
    assert!(files.len() > 500, "{} sources", files.len());
    let mut wrong = Vec::new();
    for file in files {
        let source = fs::read_to_string(&file).expect("a source");
        let place = file.strip_prefix(workspace_root()).unwrap_or(&file).display();
        wrong.extend(riddles(&source).iter().map(|(line, text)| format!("{place}:{line}: {text}")));
    }
    assert!(wrong.is_empty(), "name the thing first:\n{}", wrong.join("\n"));
}

#[test]
fn riddles_are_found_at_the_beginning_of_a_comment_only() {
    let source = "//! It is.\n\n/// A thing.\n/// Those of it.\nfn a() {}\n    /// Its end.\n/// Italics, Thisbe.\n// It goes on\n/// The same, again.\nfn b() {}\n/// Where it lies.\nfn c() {}\n/// Whereabouts.\n";
    let found: Vec<usize> = riddles(source).into_iter().map(|(line, _)| line).collect();
    assert_eq!(found, [1, 6, 9, 11]);
}
