//! The committed programs are what their sources say, and say the same on every runtime.

use std::fs;
use std::path::{Path, PathBuf};

use clrscope_testkit::{
    Expectations, Sdk, compile, each_runtime, fixture, manifest, run, scratch, target_folder, workspace_root,
};

/// Programs that know their own answer.
const KNOWN_ANSWERS: [&str; 14] = [
    "Async",
    "Delegates",
    "Dispatch",
    "Dynamic",
    "Exceptions",
    "Generics",
    "Inlining",
    "Iterators",
    "Native",
    "Recursion",
    "TailCalls",
    "Threads",
    "Times",
    "Within",
];

#[test]
fn committed_programs_match_their_sources() {
    let dotnet = workspace_root().join("dotnet");
    let committed = manifest::committed();
    let now = manifest::manifest_text(&dotnet, manifest::compiler(&committed));
    let stale: Vec<&str> = now.lines().filter(|line| !committed.lines().any(|known| known == *line)).collect();
    assert_eq!(now, committed, "run `cargo xtask fixtures`; changed or new: {stale:#?}");

    let Some(sdk) = Sdk::find().filter(|sdk| sdk.identity() == manifest::compiler(&committed)) else { return };
    rebuild_and_compare(&sdk, &dotnet, &committed);
}

/// Once per state of `dotnet/`: a stamp named after the manifest remembers that the bytes agreed.
fn rebuild_and_compare(sdk: &Sdk, dotnet: &Path, committed: &str) {
    let stamps = target_folder().join("fixtures-verified");
    let verified = fs::read_to_string(&stamps).is_ok_and(|text| text == committed);
    if verified {
        return;
    }
    let out = scratch();
    let written = compile::build_all(sdk, dotnet, out.path()).expect("everything compiles");
    for file in &written {
        let same = fs::read(out.path().join(file)).ok() == fs::read(dotnet.join(file)).ok();
        assert!(same, "{} is not what its source compiles to: run `cargo xtask fixtures`", file.display());
    }
    fs::write(&stamps, committed).expect("the target folder can be written");
}

#[test]
fn known_answers_are_the_same_on_every_runtime() {
    let answers: Vec<String> = each_runtime(|runtime| {
        let outputs = KNOWN_ANSWERS.map(|name| {
            let output = run(runtime.command(&fixture(name))).expect_success();
            Expectations::parse(&output.stdout_text());
            assert_eq!(output.stderr_text(), "", "{name}");
            output.stdout_text()
        });
        outputs.concat()
    });
    for other in &answers {
        assert_eq!(other, &answers[0]);
    }
}

fn dlls_in(folder: &Path) -> impl Iterator<Item = PathBuf> + use<> {
    let entries = fs::read_dir(folder).expect("readable").flatten().map(|entry| entry.path());
    entries.filter(|path| path.extension().is_some_and(|end| end == "dll"))
}

#[test]
fn no_path_of_a_machine_is_inside() {
    let root = workspace_root();
    let needle = root.to_str().expect("UTF-8");
    let demo = root.join("dotnet/demo/bin");
    for path in dlls_in(fixture("Hello").parent().expect("a folder")).chain(dlls_in(&demo)) {
        let name = path.display();
        let bytes = fs::read(&path).expect("readable");
        let text = String::from_utf8_lossy(&bytes);
        assert!(
            !text.contains(needle) && !text.contains("/home/") && !text.contains("/root/"),
            "{name} names a machine's path"
        );
    }
}

#[test]
fn the_demo_says_the_same_on_every_runtime() {
    let dll = workspace_root().join("dotnet/demo/bin/Demo.dll");
    let outputs = each_runtime(|runtime| run(runtime.command(&dll)).expect_success().stdout_text());
    for output in &outputs {
        assert_eq!(output, &outputs[0]);
        assert!(output.contains("orders paid ") && output.contains("\"total_in_cents\":"), "{output}");
    }
}
