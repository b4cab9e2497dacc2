//! What the program `SyncOverAsync` says of its threads, and what JSON says of them.

use std::collections::BTreeMap;

use serde_json::Value;

/// Words of the program for what is waited for, and those of reports.
const WAITS: [(&str, &str); 3] =
    [("delay", "Task.Delay"), ("source", "a TaskCompletionSource"), ("semaphore", "SemaphoreSlim.WaitAsync")];

/// What a thread blocks on: `method:line` from the innermost method on, and what that waits for,
/// empty where it waits for several things.
pub type Blocks = (Vec<String>, String);

/// What the program says: `BLOCKS waits Query:7, Slow:3 <- delay`.
pub fn said(text: &str) -> BTreeMap<String, Blocks> {
    let lines = text.lines().filter_map(|line| line.strip_prefix("BLOCKS "));
    let parse = |line: &str| {
        let (thread, rest) = line.split_once(' ').expect("a name");
        let (frames, what) = rest.split_once("<- ").expect("what it waits for");
        let frames = frames.trim().split(", ").filter(|frame| !frame.is_empty()).map(str::to_owned).collect();
        let words = WAITS.iter().find(|(word, _)| *word == what).map_or("", |(_, words)| words);
        (thread.to_owned(), (frames, words.to_owned()))
    };
    lines.map(parse).collect()
}

/// Frames in JSON as `method:line`; without the line where there is none.
pub fn shown(frames: &Value) -> Vec<String> {
    let frame = |frame: &Value| {
        let name = frame["name"].as_str().expect("a name");
        let name = name.split_once("::").map_or(name, |(_, method)| method);
        match frame["line"].as_u64() {
            Some(line) => {
                assert!(frame["file"].as_str().is_some_and(|file| file.ends_with("SyncOverAsync.cs")), "{frame:#}");
                assert_eq!(frame["module"], "SyncOverAsync");
                format!("{name}:{line}")
            }
            None => name.to_owned(),
        }
    };
    frames.as_array().expect("frames").iter().map(frame).collect()
}
