//! Recordings made by an earlier version show what they showed then, or are refused; see
//! `old/README.md`.

mod common;

use std::fs;
use std::path::{Path, PathBuf};

use common::TestFolder;
use serde_json::Value;

fn stored(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/old").join(name)
}

fn decompressed(name: &str) -> Vec<u8> {
    let compressed = fs::read(stored(name)).expect("a file");
    zstd::decode_all(&compressed[..]).expect("zstd")
}

/// Every view of the recording `name` in `place` equals what the stored `views` say, keys that were
/// added since aside.
fn compare(place: &TestFolder, name: &str, views: &str) {
    let text = decompressed(views);
    let Value::Object(then) = serde_json::from_slice(&text).expect("JSON") else { panic!("{views} is no object") };
    assert_eq!(then.len(), 11, "views");
    for (view, mut then) in then {
        let function = if view.starts_with("call") { " --function *Program::*Main*" } else { "" };
        let output = place.run(&format!("report {name} --view {view} --format json{function}"));
        assert!(output.status.success(), "{view}: {}", String::from_utf8_lossy(&output.stderr));
        assert!(output.stderr.is_empty(), "{view}: {}", String::from_utf8_lossy(&output.stderr));
        let mut now: Value = serde_json::from_slice(&output.stdout).expect("JSON");
        if view == "summary" {
            // Sentences for people, which name other things than they did then.
            for document in [&mut now, &mut then] {
                let findings = document.as_object_mut().expect("a document").remove("findings");
                assert!(findings.is_some_and(|findings| findings.is_array()), "{name}");
            }
        }
        without_new_keys(&mut now, &then);
        // As text, so that the order of keys counts.
        assert_eq!(format!("{now:#}"), format!("{then:#}"), "{name}, view {view}");
    }
}

/// Takes keys away that were added since: nothing else may differ.
fn without_new_keys(now: &mut Value, then: &Value) {
    match (now, then) {
        (Value::Object(now), Value::Object(then)) => {
            now.retain(|key, _| then.contains_key(key));
            now.iter_mut().for_each(|(key, now)| without_new_keys(now, &then[key]));
        }
        (Value::Array(now), Value::Array(then)) => {
            now.iter_mut().zip(then).for_each(|(now, then)| without_new_keys(now, then));
        }
        _ => {}
    }
}

/// Unpacks a tar archive of plain files and folders (ustar).
fn unpack(archive: &[u8], into: &Path) {
    let mut at = 0;
    while archive[at] != 0 {
        let head = &archive[at..at + 512];
        let text =
            |from: usize, to: usize| String::from_utf8_lossy(&head[from..to]).trim_end_matches(['\0', ' ']).to_owned();
        let path = into.join(text(0, 100));
        let bytes = usize::from_str_radix(&text(124, 136), 8).expect("an octal number");
        match head[156] {
            b'5' => fs::create_dir(&path).expect("a folder"),
            b'0' => fs::write(&path, &archive[at + 512..at + 512 + bytes]).expect("a file"),
            kind => panic!("an entry of type {kind}"),
        }
        at += 512 + bytes.next_multiple_of(512);
    }
}

#[test]
fn a_packed_recording_of_an_earlier_version_shows_what_it_showed() {
    let place = TestFolder::new();
    fs::copy(stored("packed.clrs"), place.file("packed.clrs")).expect("a copy");
    compare(&place, "packed.clrs", "packed.json.zst");
    // Packed again it is a recording of this version.
    let again = clrscope_recording::pack::pack(&place.file("packed.clrs"), &place.file("again.clrs"), &mut |_| ());
    again.expect("a packed file");
    compare(&place, "again.clrs", "packed.json.zst");
}

#[test]
fn a_recording_directory_of_an_unreleased_version_is_refused_with_its_number() {
    let place = TestFolder::new();
    unpack(&decompressed("directory.tar.zst"), place.path());
    for command in ["report directory.clrs.d", "pack directory.clrs.d"] {
        let output = place.run(command);
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(output.status.code(), Some(1), "{command}: {said}");
        assert!(said.contains("\nwhy: it has version 1 of the format, and this clrscope reads 2\n"), "{said}");
        assert!(said.contains("\nhint: use the clrscope that made it, or record again\n"), "{said}");
    }
    assert!(place.file("directory.clrs.d").is_dir(), "nothing is lost");
}
