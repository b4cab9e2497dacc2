//! The page for browsers, written by the tool and looked at in headless Chromium: `ui/tests/page.test.mjs` has the clicks.

mod common;

use std::env;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use clrscope_recording::model::{
    CallTreeBuilder, Node, NodeFlags, NodeValues, ROOT, Recording, ThreadRole, ThreadState, TreeSource,
};
use clrscope_recording::testing::samples::HandSampled;
use clrscope_testkit as testkit;
use common::{TestFolder, sample, write_packed};

/// Names under which distributions install Chromium.
const BROWSERS: [&str; 4] = ["chromium", "chromium-browser", "google-chrome", "google-chrome-stable"];
const PATIENCE: Duration = Duration::from_secs(600);
/// Text that would be a program where somebody forgot that it is text.
const EVIL: &str = "</script><script>alert(1)</script><img src=x onerror=alert(2)>\u{2028}\"'";

/// A program on the path.
fn found(name: &str) -> Option<PathBuf> {
    env::split_paths(&env::var_os("PATH")?).map(|folder| folder.join(name)).find(|path| path.is_file())
}

/// Samples of two threads over a second.
fn sampled() -> Recording {
    let mut sampled = HandSampled::default();
    let (main, worker) = (sampled.thread("main", ThreadRole::Main), sampled.thread("mailer", ThreadRole::User));
    for step in 0..400 {
        let path =
            ["App::Main > App.Cart::Total > System.String::Concat > libc.so!memcpy", "App::Main > App.Cart::Total"];
        sampled.cpu(main, step, path[usize::from(step % 3 == 0)]);
        if step % 4 == 0 {
            sampled.cpu(worker, 2 * step, "System.Threading.Thread::Start > App.Mail::Send > App.Mail::Send");
        }
    }
    for step in 0..200 {
        sampled.wall(worker, 5 * step, "System.Threading.Thread::Start > System.Threading.Thread::Sleep").state =
            ThreadState::Sleeping;
    }
    sampled.recording()
}

/// Names that are programs, a path of 100,000 calls, and 100,000 callees of one function.
fn hostile() -> Recording {
    let mut recording = sample();
    recording.run.command = vec![EVIL.to_owned()];
    let node = |parent, function| {
        let values = NodeValues { metric: 1_000_000, cpu_ns: 900_000 };
        Node { parent, function, calls: 1, values, flags: NodeFlags::default() }
    };
    for process in &mut recording.processes {
        process.command = vec![EVIL.to_owned()];
        for (number, function) in process.functions.iter_mut().enumerate() {
            function.name = format!("{EVIL}{number}::{EVIL}");
            function.signature = format!("{EVIL}{number}()");
        }
        process.threads.iter_mut().for_each(|thread| thread.name = EVIL.to_owned());
        process.modules.iter_mut().for_each(|module| module.name = EVIL.to_owned());
    }
    let process = &mut recording.processes[0];
    let first = process.functions.len() as u32;
    let model = process.functions[1].clone();
    for number in 0..100_000 {
        let mut function = model.clone();
        function.name = format!("App.Wide::Callee{number}");
        function.signature = format!("App.Wide.Callee{number}()");
        process.functions.push(function);
    }
    let mut deep = CallTreeBuilder::new(NodeValues::default());
    for number in 1..100_000_u32 {
        deep.push(node(number - 1, 1 + number % 5));
    }
    process.threads[0].tree = TreeSource::ready(deep.finish());
    let mut wide = CallTreeBuilder::new(NodeValues::default());
    let root = wide.push(node(ROOT, 2));
    for number in 0..100_000 {
        wide.push(node(root, first + number));
    }
    process.threads[1].tree = TreeSource::ready(wide.finish());
    recording
}

/// Writes the page of a recording into the folder.
fn write_page(place: &TestFolder, name: &str, recording: &Recording) {
    let file = format!("{name}.clrs");
    write_packed(recording, &place.file(&file));
    page_of(place, &file, name);
}

fn page_of(place: &TestFolder, file: &str, name: &str) {
    let output = place.run(&format!("report {file} --format html -o {name}.html"));
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
}

#[test]
fn a_page_is_written_once_and_only_to_a_file_that_is_free() {
    let place = TestFolder::new().with_sample();
    page_of(&place, "sample.clrs", "page");
    let again = place.transcript("report sample.clrs --format html -o page.html");
    assert!(again.contains("exit 1") && again.contains("hint: ") && again.contains("--force"), "{again}");
    assert!(place.run("report sample.clrs --format html -o page.html --force").status.success());
    let itself = place.transcript("report sample.clrs --format html -o sample.clrs --force");
    assert!(itself.contains("exit 2") && itself.contains("the recording itself"), "{itself}");
    let refused = place.transcript("report sample.clrs --format html --sort calls");
    assert!(refused.contains("'--sort' is not for '--format html'"), "{refused}");
    let misplaced = place.transcript("report sample.clrs -o page.txt");
    assert!(misplaced.contains("exit 2") && misplaced.contains("--format html"), "{misplaced}");
    let printed = place.run("report sample.clrs --format html --view functions");
    assert!(printed.stdout.starts_with(b"<!doctype html>"), "without -o it goes to stdout");
}

#[test]
fn browsers_show_pages_as_they_should() {
    let ui = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../ui");
    let Some(node) = found("node") else {
        return testkit::not_run("pages in a browser: there is no Node");
    };
    let Some(browser) = BROWSERS.into_iter().find_map(found) else {
        return testkit::not_run("pages in a browser: there is no Chromium");
    };
    if !ui.join("node_modules/playwright-core").is_dir() {
        return testkit::not_run("pages in a browser: run `npm ci` in ui/");
    }
    let place = TestFolder::new();
    write_page(&place, "sampled", &sampled());
    write_page(&place, "hostile", &hostile());
    let recorded = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/old/packed.clrs");
    std::fs::copy(recorded, place.file("recorded.clrs")).expect("a recording");
    page_of(&place, "recorded.clrs", "recorded");
    for (file, options) in [
        ("exceptions.json", "--format json"),
        ("exceptions-each.json", "--each --format json"),
        ("exceptions.csv", "--format csv"),
    ] {
        let printed = place.run(&format!("report recorded.clrs --view exceptions {options}"));
        std::fs::write(place.file(file), printed.stdout).expect("a file");
    }
    let mut command = Command::new(node);
    command.current_dir(&ui).args(["--test", "--test-reporter=spec", "tests/"]);
    command.env("PAGES", place.path()).env("CHROMIUM", browser);
    let finished = testkit::run_within(command, PATIENCE);
    let (said, complained) = (finished.stdout_text(), finished.stderr_text());
    assert!(finished.status.success(), "{said}\n{complained}");
    assert!(said.contains("pass 1"), "tests ran: {said}");
}
