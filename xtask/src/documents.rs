//! Tests of the documents: their sizes, line widths and links, and whether the files and tests that
//! they name exist.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Component, Path, PathBuf};

use clrscope_testkit::workspace_root;

/// Documents with a greatest size, in characters.
const SIZES: [(&str, usize); 2] = [("README.md", 9_000), ("ARCHITECTURE.md", 12_000)];
/// The greatest width of lines, in characters.
const WIDTH: usize = 100;
/// Documents whose files and tests must exist, besides those in [`INTERNALS`].
const ABOUT_CODE: [&str; 3] = ["ARCHITECTURE.md", "CONTRIBUTING.md", "docs/runtime-facts.md"];
const INTERNALS: &str = "docs/internals";

/// Folders with what is built, or comes from elsewhere.
const NOT_OURS: [&str; 5] = [".git", "target", "node_modules", "release", "corpus"];

struct Document {
    /// Path from the root of the repository.
    path: String,
    text: String,
}

/// Files of the repository, as paths relative to its root.
pub(crate) fn files() -> Vec<String> {
    let mut files = Vec::new();
    gather(&workspace_root(), &mut files);
    files.sort();
    files
}

fn gather(folder: &Path, into: &mut Vec<String>) {
    for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
        let (path, name) = (entry.path(), entry.file_name());
        if path.is_dir() {
            if !NOT_OURS.iter().any(|other| name == *other) {
                gather(&path, into);
            }
        } else if let Some(path) = path.strip_prefix(workspace_root()).ok().and_then(Path::to_str) {
            into.push(path.to_owned());
        }
    }
}

fn documents() -> Vec<Document> {
    let is_document = |path: &String| path.ends_with(".md");
    let read = |path: String| {
        let text = fs::read_to_string(workspace_root().join(&path)).expect("a document");
        Document { path, text }
    };
    files().into_iter().filter(is_document).map(read).collect()
}

impl Document {
    /// Lines outside of code, with their numbers.
    fn prose(&self) -> impl Iterator<Item = (usize, &str)> {
        let mut in_code = false;
        self.text.lines().enumerate().filter_map(move |(at, line)| {
            let is_fence = line.trim_start().starts_with("```");
            in_code ^= is_fence;
            (!in_code && !is_fence).then_some((at + 1, line))
        })
    }

    /// Targets of links to files of the repository.
    fn links(&self) -> impl Iterator<Item = &str> {
        let targets = self.prose().flat_map(|(_, line)| line.split("](").skip(1));
        let targets = targets.filter_map(|rest| rest.split_once(')').map(|(target, _)| target));
        targets.filter(|target| !target.contains("://") && !target.is_empty())
    }

    /// Words in backticks.
    fn code(&self) -> impl Iterator<Item = &str> {
        self.prose().flat_map(|(_, line)| line.split('`').skip(1).step_by(2))
    }

    /// Anchors of its headings, as GitHub makes them.
    fn anchors(&self) -> BTreeSet<String> {
        let headings = self.prose().filter_map(|(_, line)| line.strip_prefix('#'));
        let is_kept = |c: &char| c.is_alphanumeric() || matches!(c, ' ' | '-' | '_');
        let anchor = |heading: &str| {
            let text: String = heading.trim_start_matches('#').trim().to_lowercase().chars().filter(is_kept).collect();
            text.replace(' ', "-")
        };
        headings.map(anchor).collect()
    }
}

/// A path without `.` and `..`.
fn plain(path: &Path) -> PathBuf {
    path.components().fold(PathBuf::new(), |mut plain, part| {
        match part {
            Component::ParentDir => {
                plain.pop();
            }
            Component::CurDir => {}
            part => plain.push(part),
        }
        plain
    })
}

/// Whether some file's path ends with this one.
fn is_named(files: &[String], path: &str) -> bool {
    files.iter().any(|file| file.strip_suffix(path).is_some_and(|before| before.is_empty() || before.ends_with('/')))
}

#[test]
fn readme_and_architecture_stay_small() {
    for (path, most) in SIZES {
        let size = fs::read_to_string(workspace_root().join(path)).expect("a document").chars().count();
        assert!(size <= most, "{path} has {size} characters, {most} at most: CONTRIBUTING.md says what goes where");
    }
}

#[test]
fn lines_of_documents_are_at_most_100_wide() {
    let may_be_wide = |line: &str| {
        let line = line.trim_start();
        // Tables and images can't be broken, nor can a single long word such as an address.
        line.starts_with('|') || line.starts_with("![") || !line.trim_start_matches("- ").contains(' ')
    };
    let wide: Vec<String> = documents()
        .iter()
        .flat_map(|document| {
            let wide = document.prose().filter(|(_, line)| line.chars().count() > WIDTH && !may_be_wide(line));
            wide.map(|(number, _)| format!("{}:{number}", document.path)).collect::<Vec<_>>()
        })
        .collect();
    assert_eq!(wide, [""; 0], "lines of more than {WIDTH} characters");
}

#[test]
fn documents_begin_with_a_sentence() {
    let begins_well = |document: &Document| {
        let mut lines = document.text.lines();
        let (title, blank, first) = (lines.next(), lines.next(), lines.next());
        let is_sentence = |line: &str| line.starts_with(|c: char| c.is_alphanumeric() || c == '`');
        title.is_some_and(|line| line.starts_with("# ")) && blank == Some("") && first.is_some_and(is_sentence)
    };
    let documents = documents();
    let wrong: Vec<&str> =
        documents.iter().filter(|document| !begins_well(document)).map(|document| document.path.as_str()).collect();
    assert_eq!(wrong, [""; 0], "a title, and a sentence that says what the document is for");
}

#[test]
fn links_lead_to_files_and_headings_that_are_there() {
    let documents = documents();
    let mut wrong = Vec::new();
    for document in &documents {
        let folder = Path::new(&document.path).parent().expect("a folder");
        for link in document.links() {
            let (file, anchor) = link.split_once('#').unwrap_or((link, ""));
            let path = if file.is_empty() { PathBuf::from(&document.path) } else { plain(&folder.join(file)) };
            let target = documents.iter().find(|other| Path::new(&other.path) == path);
            let has_anchor = target.is_none_or(|target| anchor.is_empty() || target.anchors().contains(anchor));
            if !workspace_root().join(&path).exists() || !has_anchor {
                wrong.push(format!("{}: {link}", document.path));
            }
        }
    }
    assert_eq!(wrong, [""; 0], "links that lead nowhere");
}

/// Documents about the code name files by the end of their paths, and tests by their names.
#[test]
fn files_and_tests_that_documents_name_are_there() {
    let files = files();
    let sources = files.iter().filter(|path| path.ends_with(".rs"));
    let sources: String =
        sources.map(|path| fs::read_to_string(workspace_root().join(path)).expect("a source")).collect();
    let is_about_code =
        |document: &&Document| ABOUT_CODE.contains(&document.path.as_str()) || document.path.starts_with(INTERNALS);
    let is_test = |word: &str| {
        word.matches('_').count() > 3 && word.chars().all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_')
    };
    // Names with a placeholder stand for many files.
    let is_file = |word: &str| {
        [".rs", ".ts", ".tsx", ".toml"].iter().any(|end| word.ends_with(end))
            && !word.contains(['*', ' '])
            && !word.contains("NAME")
    };
    let mut wrong = Vec::new();
    for document in documents().iter().filter(is_about_code) {
        for word in document.code() {
            let is_wrong =
                is_file(word) && !is_named(&files, word) || is_test(word) && !sources.contains(&format!("fn {word}("));
            if is_wrong {
                wrong.push(format!("{}: {word}", document.path));
            }
        }
    }
    assert_eq!(wrong, [""; 0], "names of files and tests that are not there");
}
