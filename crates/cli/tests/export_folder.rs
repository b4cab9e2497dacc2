//! A folder of recordings, exported at once.

mod common;

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use clrscope_recording::testing::synthetic::{Shape, write_directory};
use common::{TestFolder, sample, write_packed};

fn names(folder: &Path) -> BTreeSet<String> {
    let entries = fs::read_dir(folder).expect("a folder").flatten();
    entries.map(|entry| entry.file_name().to_string_lossy().into_owned()).collect()
}

fn small() -> Shape {
    Shape { tree_bytes: 1 << 16, threads: 2, functions: 50, ..Shape::default() }
}

#[test]
fn each_recording_of_a_folder_has_its_export_and_a_broken_one_is_named() {
    let place = TestFolder::new();
    let runs = place.file("runs");
    fs::create_dir(&runs).expect("a folder");
    write_packed(&sample(), &runs.join("a.clrs"));
    write_packed(&sample(), &runs.join("b.1.clrs"));
    // A directory that also exists as a packed file is the same recording. A directory alone, whose
    // name begins as folders of processes do, is a recording of its own.
    write_directory(&runs.join("a.clrs.d"), &small()).expect("a recording");
    write_directory(&runs.join("p7.clrs.d"), &small()).expect("a recording");
    fs::write(runs.join("notes.txt"), "none").expect("a file");
    let run = |line: &str| {
        let output = place.run(line);
        (output.status.code(), String::from_utf8_lossy(&output.stderr).into_owned())
    };
    assert_eq!(run("export runs --to pprof -o out"), (Some(0), String::new()));
    assert_eq!(names(&place.file("out")), ["a.pb.gz", "b.1.pb.gz", "p7.pb.gz"].map(str::to_owned).into());
    // What the folder has is what each recording has alone.
    assert_eq!(run("export runs/a.clrs --to pprof -o alone"), (Some(0), String::new()));
    assert_eq!(fs::read(place.file("out/a.pb.gz")).expect("a file"), fs::read(place.file("alone")).expect("a file"));
    // Nothing is overwritten unasked, and nothing is said twice.
    let (code, said) = run("export runs --to pprof -o out");
    assert_eq!((code, said.lines().count()), (Some(1), 3 + 3), "{said}");
    assert!(said.contains("a.pb.gz' exists") && said.contains("cannot export 3 of 3 recordings"), "{said}");
    assert_eq!(run("export runs --to pprof -o out --force"), (Some(0), String::new()));
    // A broken one, in the middle.
    fs::write(runs.join("b.0.clrs"), "no recording").expect("a file");
    let (code, said) = run("export runs --to pprof -o more/deep");
    assert_eq!((code, said.lines().count()), (Some(1), 1 + 3), "{said}");
    assert!(said.lines().next().is_some_and(|line| line.contains("b.0.clrs")), "{said}");
    assert!(said.contains("cannot export 1 of 4 recordings"), "{said}");
    assert_eq!(names(&place.file("more/deep")), ["a.pb.gz", "b.1.pb.gz", "p7.pb.gz"].map(str::to_owned).into());
    // A directory of a recording is still one recording.
    assert_eq!(run("export runs/p7.clrs.d --to pprof -o one"), (Some(0), String::new()));
    assert!(place.file("one").is_file());
    // What can't be is refused in three lines.
    for (line, code, why) in [
        ("export runs --to pprof", 2, "hint: write -o FOLDER"),
        ("export runs --to pprof -o runs/notes.txt", 1, "choose another folder with -o"),
        ("export out --to pprof -o x", 1, "hint:"),
    ] {
        let (found, said) = run(line);
        assert_eq!((found, said.lines().count()), (Some(code), 3), "{line}: {said}");
        assert!(said.contains(why), "{line}: {said}");
    }
}
