//! What the program `Pending` says of its operations, and what rows of them say.

use std::collections::BTreeMap;

use serde_json::Value;

/// Words of the program for what is waited for, and those of the view.
const WAITS: [(&str, &str); 7] = [
    ("delay", "Task.Delay"),
    ("semaphore", "SemaphoreSlim.WaitAsync"),
    ("source", "a TaskCompletionSource"),
    ("channel", "a channel"),
    ("socket", "a socket"),
    ("periodic timer", "PeriodicTimer"),
    ("itself", "itself"),
];

/// Operations by what they wait for and their methods, the one that waits first.
pub type Operations = BTreeMap<(String, String), u64>;

/// What the program says: `PENDING 3 Pay, Order <- delay`.
pub fn said(text: &str) -> Operations {
    let mut all = Operations::new();
    for line in text.lines().filter_map(|line| line.strip_prefix("PENDING ")) {
        let (count, rest) = line.split_once(' ').expect("a number");
        let (methods, what) = rest.split_once(" <- ").expect("what it waits for");
        let words = WAITS.iter().find(|(word, _)| *word == what).expect("a known word").1;
        *all.entry((words.to_owned(), methods.to_owned())).or_default() += count.parse::<u64>().expect("a number");
    }
    all
}

/// The rows of the view, without the names of types; frames that stand for threads are left out.
pub fn shown(rows: &[Value]) -> Operations {
    let mut all = Operations::new();
    for row in rows {
        let frames =
            row["frames"].as_array().expect("frames").iter().map(|frame| frame["name"].as_str().expect("a name"));
        let methods: Vec<&str> = frames.filter_map(|name| Some(name.split_once("::")?.1)).collect();
        let waits_for = row["waits_for"].as_str().expect("a text").to_owned();
        *all.entry((waits_for, methods.join(", "))).or_default() += row["count"].as_u64().expect("a number");
    }
    all
}
