//! The page for browsers as a file: what it is made of, what it may do, what it leaves out, and
//! what nothing in a recording can make of it. Browsers look at it in the tests of the tool.

mod pages;

use std::fs;
use std::path::{Path, PathBuf};

use clrscope_recording::model::{
    CallTreeBuilder, Function, HookCost, Loss, LossReason, Node, NodeFlags, NodeValues, ROOT, Recording, TreeSource,
};
use clrscope_recording::testing::ascii_trees::{recording, recording_with};
use clrscope_report::{Request, view};
use pages::{array, between, count, data, page};
use sha2::{Digest, Sha256};

const TREES: &str = "
thread 1 main
  Main 1 1000 10
    Pay 3 3000 500
";

fn summary_of(recording: &Recording) -> String {
    page(view("summary").expect("the view"), recording, &Request::default())
}

/// Bytes as hexadecimal digits.
fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

#[test]
fn a_page_is_one_file_that_loads_nothing_and_runs_only_its_own_program() {
    let page = summary_of(&recording(TREES));
    assert!(page.starts_with("<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">"));
    let policy = between(&page, "Content-Security-Policy\" content=\"", "\">");
    assert!(policy.starts_with("default-src 'none'; script-src 'sha256-"), "{policy}");
    assert!(policy.ends_with("base-uri 'none'; form-action 'none'"), "{policy}");
    for lax in ["unsafe", "*", "http", "data:", "blob:", "self"] {
        assert!(!policy.contains(lax), "{policy}");
    }
    // The hashes are those of what stands in the page.
    for (name, begin, end) in [("script-src", "<script>", "</script>"), ("style-src", "<style>", "</style>")] {
        let hash = Sha256::digest(between(&page, begin, end).as_bytes());
        let base64 = between(policy, &format!("{name} 'sha256-"), "'");
        let decoded = pages::bytes_of(base64);
        assert_eq!(hex(&decoded), hex(&hash), "{name}: run `npm run build` in ui/");
    }
    let head = &page[..page.find("<style>").expect("a style")];
    let body = between(&page, "<body>", "id=\"data\"");
    for part in [head, body] {
        assert!(!part.contains(" src=") && !part.contains(" href=") && !part.contains("<link"), "{part}");
    }
}

/// The page of a period had the time since the start of the program, and did not know its end.
#[test]
fn a_page_says_of_the_run_what_a_text_report_says() {
    let mut recording = recording(TREES);
    let [process] = &mut recording.processes[..] else { panic!("one process") };
    process.complete = false;
    process.losses.push(Loss { reason: LossReason::Stopped, count: 1, first_ns: 0, last_ns: 0, details: Vec::new() });
    (recording.run.exit, recording.run.started_unix_ns) = (None, 1_800_000_000_000_000_000);
    let said = data(&summary_of(&recording))["run"].clone();
    let [length, since] = &array(&said)[..] else { panic!("{said}") };
    assert!(length.as_str().expect("text").ends_with(" recorded, the program ran on"), "{length}");
    assert_eq!(since, "from 2027-01-15 08:00:00 UTC");
}

#[test]
fn the_summary_is_there_without_script() {
    let page = summary_of(&recording(TREES));
    let plain = between(&page, "<div id=\"page\">", "</div>");
    assert!(plain.contains("<h2>") && plain.contains("<table>") && plain.contains("Main"), "{plain}");
}

#[test]
fn nothing_in_a_recording_becomes_a_part_of_the_page() {
    let mut recording = recording(TREES);
    let evil = "</script><script>alert(1)</script><img src=x onerror=alert(2)>\u{2028}<!--";
    recording.run.command = vec![evil.to_owned()];
    for process in &mut recording.processes {
        process.command = vec![evil.to_owned()];
        process.functions.iter_mut().for_each(|function| {
            function.name = format!("{evil}::{evil}");
            function.signature = format!("{evil}()");
        });
        process.threads.iter_mut().for_each(|thread| thread.name = evil.to_owned());
        process.modules.iter_mut().for_each(|module| module.name = evil.to_owned());
    }
    let page = summary_of(&recording);
    let program = between(&page, "<script>", "</script>").to_owned();
    let rest = page.replacen(&program, "", 1);
    assert_eq!(rest.matches("<script").count(), 2, "the data and the program");
    assert_eq!(rest.matches("</script").count(), 2);
    assert!(!rest.contains("<img") && !rest.contains("<!--") && !rest.contains('\u{2028}'));
    assert!(rest.contains("&lt;/script&gt;&lt;script&gt;alert(1)"), "it is shown as text");
    assert!(data(&page)["values"].to_string().contains("</script><script>alert(1)"), "and is there whole");
}

/// A node with so much time.
fn node(parent: u32, function: u32, time_ns: u64) -> Node {
    let values = NodeValues { metric: time_ns, cpu_ns: time_ns };
    Node { parent, function, calls: 1, values, flags: NodeFlags::default() }
}

#[test]
fn a_tree_without_room_loses_its_smallest_paths_and_says_so() {
    let mut recording = recording_with(TREES, HookCost::default());
    let process = &mut recording.processes[0];
    let (model, side) = (process.functions[1].clone(), 400_u32);
    for number in 0..side {
        let name = format!("Made.Up.Type{}::Method{number}", number % 97);
        process.functions.push(Function { signature: format!("{name}(int)"), name, ..model.clone() });
    }
    let first = process.functions.len() as u32 - side;
    let mut tree = CallTreeBuilder::new(NodeValues::default());
    for outer in 0..side {
        let above = tree.push(node(ROOT, first + outer, 1_000_000));
        for inner in 0..side {
            // A hundred are larger than all others.
            let time = if outer == 0 && inner < 100 { 50_000_000 } else { 1_000 + u64::from(inner) };
            tree.push(node(above, first + inner, time));
        }
    }
    process.threads[0].tree = TreeSource::ready(tree.finish());
    let page = summary_of(&recording);
    assert!(page.len() < 10_000_000, "{}", page.len());
    let data = data(&page);
    let tree = array(&data["documents"]).iter().find(|document| document["view"] == "tree").expect("a tree");
    let section = &tree["sections"][0];
    assert!((500..150_001).contains(&count(section)), "{}", count(section));
    let note = section["note"].as_str().expect("a note");
    assert!(note.contains("smaller paths with"), "{note}");
}

/// Files below a folder.
fn files(folder: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder).expect("a folder").map(|entry| entry.expect("an entry").path());
    entries.flat_map(|path| if path.is_dir() { files(&path) } else { vec![path] }).collect()
}

#[test]
fn the_committed_program_is_built_of_the_sources_beside_it() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../ui");
    let mut sources: Vec<PathBuf> = ["src", "build"].iter().flat_map(|folder| files(&root.join(folder))).collect();
    sources
        .extend(["package.json", "package-lock.json", "tsconfig.json", "vite.config.mjs"].map(|name| root.join(name)));
    let mut named: Vec<(String, PathBuf)> = sources
        .into_iter()
        .map(|path| (path.strip_prefix(&root).expect("below").to_string_lossy().into_owned(), path))
        .collect();
    named.sort();
    let mut hash = Sha256::new();
    for (name, path) in named {
        hash.update(format!("{name}\n"));
        hash.update(fs::read(path).expect("a source"));
        hash.update("\n");
    }
    let seal = include_str!("../src/page/built/seal.json");
    let seal: serde_json::Value = serde_json::from_str(seal).expect("JSON");
    assert_eq!(seal["sources"], hex(&hash.finalize()), "run `npm ci && npm run build` in ui/");
}
