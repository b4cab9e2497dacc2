//! `cargo xtask reference`, second file: `docs/json.md`, which describes the JSON documents of
//! views and commands.

use std::path::PathBuf;

use clrscope_analysis::{FindingKind, Metric, Query, Trouble};
use clrscope_report::{COMPARISONS, ColumnInfo, Kind, Request, VIEWS, View};
use clrscope_testkit::workspace_root;

use crate::tables::{code, codes, section, wrapped};

const HEAD: &str = "\
# JSON

The documents that `--format json` prints: their schemas, keys and units.

Written by `cargo xtask reference` from the registries of the code; do not edit. A test fails when
it is stale, and another one when a document of a real recording has a key that is not here.

## What you can rely on

- The first key of a document is `schema`, such as `clrscope.functions/1`. Within `/1` keys may be
  added; no key is removed, renamed, or given another unit or meaning. Where that is necessary, the
  number becomes `/2`.
- Documents are UTF-8 and one object each. Read them with any JSON library, and ignore keys that
  you don't know.
- A key that is not there means: this was not recorded, or the row has no such value. `null` means:
  it was recorded, and the value is not known. Both are different from `0`.
- Units: a key that ends with `_ns` has nanoseconds, one that ends with `bytes` has bytes, one that
  ends with `share` a part of a whole from 0 to 1. Times of events count from the start of the
  recording. All other numbers are counts, or identify something.
- Numbers that were sampled have bounds of 95 % (`share_low`, `share_high` with `share`). Exact
  numbers have none, or bounds that are equal to them.
- Exit codes are those of the command: a document is complete if the command ended with 0, or with
  3 for a gate that failed.

## Every document of a recording

| key | contents |
|---|---|
| `schema` | name of the view with the version of its keys |
| `recording` | where the numbers come from: see below |
| `metric` | name of the metric by which paths are measured, in views that have one |
| `rows` | the rows of the view; `roots` in views of trees, whose nodes have `children` |
| `others` | further blocks of a view that shows several, such as one for each process |

The object `recording`:

| key | contents |
|---|---|
| `id` | identifier of the recording, `null` in old ones |
| `command` | the command line of the program, as a list |
| `started` | time of the start, RFC 3339 in UTC |
| `duration_ns` | length of the run, from its start to the end of the recording |
| `since_ns`, `until_ns` | the recorded time, counted from the start of the run: of a period, or of the last seconds, when it began and ended; else the whole run |
| `instruments` | `given`: what was asked for; `filled`: the same with all defaults |
| `complete` | whether nothing is missing |
| `processes` | for each process `pid`, `command`, `runtime`, `complete`, `exit_code` or `signal`, `resource` (attributes named as OpenTelemetry has them), `sampling` (`instrument`, `period_ns`) |
| `losses` | what is missing, by `reason` ([reference.md](reference.md#losses)), with its count |
| `parts` | marked parts of the recording, with their times |
| `unmatched_patterns` | filters that matched nothing: `option`, `pattern`, `nearest` |
| `problems` | damage of the files: `place`, `what` |
";

const VIEWS_HEAD: &str = "\
Keys of a row, in their order. `--columns` picks keys. Where a view is measured by a metric, its
table has the keys of every metric; a document has those of its own.
";

const FINDINGS_HEAD: &str = "\
`report --view summary --format json` has `findings`: sentences, the costliest first. Each has a
`text` and a `kind`, and where they are known `share` with `share_low` and `share_high`, `function`,
`module`, `file`, `line`, `metric`, and `command`: the command that shows more. Sentences about the
thread pool have `pool`, its state once a second or at most a hundred times: `time_ns`, `threads`,
and `queue`, the most work items that waited in its queue since the time before (`null` where
`counters` did not measure it).
";

const TRIAGE_HEAD: &str = "\
`triage --format json` has `verdicts`, the costliest first, each with one of these kinds.
`confidence` is `certain` where the evidence excludes all others.
";

/// Schemas of documents that commands print, with their keys.
const COMMANDS: [(&str, &str, &str); 7] = [
    (
        "ps",
        "clrscope.ps/1",
        "`rows`: `pid`, `inner_pid` (in its container), `user`, `runtime`, `cpu_percent`, `rss_bytes`, `uptime_ns`, \
         `entry_assembly`, `command`, `agent`, `agent_sleeps`, `obstacle`",
    ),
    ("doctor", "clrscope.doctor/1", "`ok`; `rows`: `name`, `status`, `found`, `cure`"),
    (
        "top PID --once",
        "clrscope.top/1",
        "`pid`, `seconds`, `counters`; the rows of each page: `methods`, `allocations`, `requests`, `exceptions`, `pool`",
    ),
    ("counters PID --once", "clrscope.counters/1", "as the view `counters`"),
    (
        "triage",
        "clrscope.triage/1",
        "`pid` (`null` for a recording), `duration_ns`, `vitals`; `verdicts`: `kind`, `confidence` (`certain` or `likely`), `text`, \
         `threads`, `function`, `file`, `line`, `evidence`, `command`",
    ),
    (
        "stacks PID",
        "clrscope.stacks/1",
        "`threads`: `id`, `os_id`, `name`, `role`, `state`, `waits_for`, `frames`, `blocks_on`; `pending`: async methods",
    ),
    (
        "diff A B --view NAME",
        "clrscope.diff-NAME/1",
        "`recording` (the one after), `facts` (conditions that differ), `recordings`, `sides` (where labels chose them), `totals`, `rows`: see below",
    ),
];

/// Parts of documents beside their rows: the view, the key, and the contents.
const SECTIONS: [(&str, &str, &str); 21] = [
    ("summary", "findings", "sentences that stand out, see above; `list` is the place in the list"),
    ("summary", "top", "the functions with most time"),
    ("summary", "kinds", "time by kind of work: `kind`, `text`, `samples`, `share`, `time_ns`"),
    ("summary", "own", "own functions with the framework code that they call"),
    ("summary", "framework", "framework code that no own code calls"),
    ("summary", "states", "time of threads by state: `state`, `threads`, `samples`, `share`, `time_ns`"),
    ("summary", "threads", "the threads with most time"),
    ("summary", "allocated", "the types with most bytes"),
    ("summary", "heap", "the types that keep most bytes alive"),
    ("summary", "elsewhere", "what else was recorded: `kind`, `text`, `count`, `time_ns`"),
    ("allocations", "findings", "sentences about allocations"),
    ("gc", "findings", "sentences about collections"),
    (
        "heap",
        "snapshots",
        "the snapshots of the recording: `number`, `name`, `pid`, `time_ns`, `state`, `reason`, `objects`, `bytes`",
    ),
    ("roots", "snapshots", "as in `heap`"),
    ("dominators", "snapshots", "as in `heap`"),
    ("waste", "snapshots", "as in `heap`"),
    ("pending", "snapshots", "as in `heap`"),
    ("heap-diff", "before", "the snapshot before, as in `heap`"),
    ("heap-diff", "after", "the snapshot after, as in `heap`"),
    ("timeline", "threads", "time of each thread in steps"),
    ("flow", "functions", "the functions that rows name by `id`"),
];

/// Path of the file.
fn path() -> PathBuf {
    workspace_root().join("docs/json.md")
}

/// Writes the file.
///
/// # Errors
/// A sentence with the file, where it can't be written.
pub(crate) fn run() -> Result<(), String> {
    std::fs::write(path(), text()).map_err(|error| format!("{}: {error}", path().display()))
}

/// The whole file.
fn text() -> String {
    let kind = |name: &str, meaning: &str| vec![code(name), meaning.to_owned()];
    let mut sections = vec![
        HEAD.to_owned(),
        section(
            "## Kinds of findings",
            FINDINGS_HEAD,
            &["`kind`", "says"],
            FindingKind::ALL.into_iter().map(|one| kind(one.name(), one.meaning())),
        ),
        section(
            "## Kinds of verdicts",
            TRIAGE_HEAD,
            &["`kind`", "says"],
            Trouble::ALL.into_iter().map(|one| kind(one.name(), one.words())),
        ),
        section(
            "## Commands",
            "",
            &["command", "schema", "keys"],
            COMMANDS.into_iter().map(|(command, schema, keys)| vec![code(command), code(schema), keys.to_owned()]),
        ),
        format!("## Views\n\n{VIEWS_HEAD}"),
    ];
    sections.extend(VIEWS.iter().map(|view| of_view(&format!("### `{}`", view.name), view)));
    sections.push("## Comparisons\n\nKeys of a row of `diff --view NAME`. Of each number there is the one before and the one after, and\ntheir difference, each with its bounds.\n".to_owned());
    let comparisons = COMPARISONS.iter().map(|one| of_view(&format!("### `diff --view {}`", one.name), one.view));
    sections.extend(comparisons);
    sections.join("\n")
}

fn of_view(heading: &str, view: &View) -> String {
    let mut columns: Vec<ColumnInfo> = Vec::new();
    let by = |metric| Request { query: Query { metric, ..Query::default() }, ..Request::default() };
    let requests = std::iter::once(Request::default()).chain(Metric::each().map(|metric| by(Some(metric))));
    for column in requests.flat_map(|request| view.columns(&request)) {
        if columns.iter().all(|known| known.key != column.key) {
            columns.push(column);
        }
    }
    let row = |column: &ColumnInfo| vec![code(column.key), unit(column.kind).to_owned(), contents(column)];
    let parts = SECTIONS.iter().filter(|(of, ..)| *of == view.name);
    let part = |(_, key, contents): &(&str, &str, &str)| {
        vec![code(key), "part of the document".to_owned(), (*contents).to_owned()]
    };
    let rows = columns.iter().map(row).chain(parts.map(part));
    section(heading, &format!("{}.\n", wrapped(view.about)), &["key", "value", "contents"], rows)
}

fn contents(column: &ColumnInfo) -> String {
    let parts = if column.parts.is_empty() { String::new() } else { format!("; keys {}", codes(column.parts)) };
    format!("{}{parts}", column.title)
}

const fn unit(kind: Kind) -> &'static str {
    match kind {
        Kind::Text | Kind::Type | Kind::Counter => "text",
        Kind::Function => "name of a function",
        Kind::Count => "count",
        Kind::Number => "number",
        Kind::Time => "nanoseconds",
        Kind::Bytes => "bytes",
        Kind::Share => "0 to 1",
        Kind::Flag => "true or false",
        Kind::Thread => "object of a thread",
        _ => "object or list",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_documents_are_what_the_registries_say() {
        let there = std::fs::read_to_string(path()).unwrap_or_default();
        assert!(there == text(), "docs/json.md is stale: run `cargo xtask reference` and commit it");
    }
}
