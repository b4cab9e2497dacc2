//! Sums over a whole tree that has more paths than a page has room for. What the sums of the page's
//! paths lack lies on omitted paths.

use std::convert::Infallible;

use clrscope_analysis::{Forest, TreeNode, TreeOptions};
use serde_json::{Value, json};

use crate::cell::Cell;
use crate::render::page::Pool;

/// Sums of a process or a thread.
struct Row {
    pid: u32,
    thread: Value,
    /// The sum for each measure.
    amounts: Vec<u64>,
}

/// Returns the sums by `measures`, as a section with one row for each process, or for each thread
/// if the forest separates threads. `again` keeps decoded trees, for a caller that queries the
/// forest several times.
pub(super) fn sums_section(forest: &Forest<'_>, measures: &[Value], pool: &mut Pool, again: bool) -> Value {
    let keys: Vec<(&str, bool)> = measures.iter().filter_map(key).collect();
    // Only own amounts have to be added up path by path.
    let max_depth = if keys.iter().any(|(_, is_own)| *is_own) { None } else { Some(1) };
    let mut rows: Vec<Row> = Vec::new();
    let add = |node: &TreeNode<'_>| -> Result<(), Infallible> {
        let thread = node.thread.and_then(|thread| Cell::Thread(thread).to_json()).unwrap_or(Value::Null);
        let is_same = |row: &Row| row.pid == node.function.pid && row.thread == thread;
        if node.depth == 0 && !rows.last().is_some_and(is_same) {
            rows.push(Row { pid: node.function.pid, thread, amounts: vec![0; keys.len()] });
        }
        let Some(row) = rows.last_mut() else { return Ok(()) };
        for (sum, (key, is_own)) in row.amounts.iter_mut().zip(&keys) {
            if *is_own || node.depth == 0 {
                *sum = sum.saturating_add(amount(node, key));
            }
        }
        Ok(())
    };
    let options = TreeOptions { min_share: 0.0, max_depth };
    let walked = if again { forest.walk_again(None, &options, add) } else { forest.walk(&options, add) };
    let Ok(_) = walked;
    section(&rows, &keys, pool)
}

/// Key of the column that holds a measure's sum, and whether it holds own amounts.
fn key(measure: &Value) -> Option<(&str, bool)> {
    let total = measure["total"].as_str().map(|key| (key, false));
    total.or_else(|| Some((measure["own"].as_str()?, true)))
}

fn amount(node: &TreeNode<'_>, key: &str) -> u64 {
    match key {
        "calls" => node.times.calls,
        "inclusive_ns" => node.times.inclusive_ns,
        "inclusive_cpu_ns" => node.times.inclusive_cpu_ns.unwrap_or(0),
        "total_samples" => node.amount.samples.total,
        _ => node.amount.total,
    }
}

fn section(rows: &[Row], keys: &[(&str, bool)], pool: &mut Pool) -> Value {
    let plain =
        |key: &str, values: Vec<Value>| json!({ "key": key, "kind": "number", "plain": true, "values": values });
    let mut columns = vec![plain("pid", rows.iter().map(|row| json!(row.pid)).collect())];
    if rows.iter().any(|row| !row.thread.is_null()) {
        let places: Vec<usize> = rows.iter().map(|row| pool.index_of(&row.thread)).collect();
        columns.push(json!({ "key": "thread", "kind": "thread", "values": places }));
    }
    let amounts = |at: usize| rows.iter().map(|row| json!(row.amounts[at])).collect();
    columns.extend(keys.iter().enumerate().map(|(at, (key, _))| plain(key, amounts(at))));
    json!({ "rows": rows.len(), "columns": columns })
}

#[cfg(test)]
mod tests {
    use clrscope_analysis::{Query, SAMPLED_CPU};
    use clrscope_recording::model::ThreadRole;
    use clrscope_recording::testing::samples::{HandSampled, STEP_NS};

    use super::*;

    #[test]
    fn everything_of_each_thread_is_summed_whatever_paths_there_is_room_for() {
        let mut sampled = HandSampled::default();
        let (main, other) = (sampled.thread("main", ThreadRole::Main), sampled.thread("other", ThreadRole::User));
        for (step, path) in [(1, "App::Main > App::Work"), (2, "App::Main"), (3, "App::Small")] {
            sampled.cpu(main, step, path);
        }
        sampled.cpu(other, 4, "App::Small");
        let recording = sampled.recording();
        let query = Query { metric: Some(&SAMPLED_CPU), per_thread: true, ..Query::default() };
        let forest = Forest::open(&recording, &query).expect("a forest");
        let measures =
            [json!({ "own": "self_cpu_ns", "total": "total_cpu_ns" }), json!({ "own": "calls", "total": null })];
        let mut pool = Pool::default();
        let found = sums_section(&forest, &measures, &mut pool, false);
        assert_eq!(found["rows"], 2);
        assert_eq!(found["columns"][2]["values"], json!([3 * STEP_NS, STEP_NS]));
        assert!(pool.to_json().contains("\"other\""));
    }
}
