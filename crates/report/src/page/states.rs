//! Times of a page tree's rows by thread state: time running, and time waiting with the reason.

use std::convert::Infallible;

use clrscope_analysis::{Forest, StateTimes, TimeState, TreeNode, TreeOptions, TreePlace};
use serde_json::{Value, json};

/// Depth of a row, its own times, and the times of all rows below it.
type RowTimes = (u32, [StateTimes; 2]);

/// Process and thread; 0 if threads are merged.
type Threads = (u32, u32);

/// Returns the times by state of the rows of a walk; null if states are not known.
pub(super) fn times_by_state(forest: &Forest<'_>, min_share: f64, below: Option<&TreePlace>) -> Value {
    if !forest.has_states() {
        return Value::Null;
    }
    let mut rows: Vec<RowTimes> = Vec::new();
    let mut beside: Vec<(Threads, StateTimes)> = Vec::new();
    if below.is_none() {
        walk(forest, None, &TreeOptions { min_share: 0.0, max_depth: Some(1) }, |node, [_, total]| {
            if node.depth == 0 {
                *of_threads(&mut beside, node) += total;
            }
        });
    }
    walk(forest, below, &TreeOptions { min_share, max_depth: None }, |node, times| {
        rows.push((node.depth, times));
        if node.depth == 0 && below.is_none() {
            of_threads(&mut beside, node).subtract(&times[1]);
        }
    });
    packed(&rows, &beside)
}

/// Returns the times of a picture's rows, and the rest of `all`, which belongs to none of the rows.
pub(super) fn of_picture(rows: &[RowTimes], all: StateTimes) -> Value {
    let mut beside = all;
    rows.iter().filter(|row| row.0 == 0).for_each(|(_, [_, total])| beside.subtract(total));
    packed(rows, &[((0, 0), beside)])
}

fn walk(
    forest: &Forest<'_>,
    below: Option<&TreePlace>,
    options: &TreeOptions,
    mut visit: impl FnMut(&TreeNode<'_>, [StateTimes; 2]),
) {
    let walked = forest.walk_states(below, options, |node| -> Result<(), Infallible> {
        visit(node, node.states.as_deref().copied().unwrap_or_default());
        Ok(())
    });
    let Ok(_) = walked;
}

fn of_threads<'s>(all: &'s mut Vec<(Threads, StateTimes)>, node: &TreeNode<'_>) -> &'s mut StateTimes {
    let threads = (node.function.pid, node.thread.map_or(0, |thread| thread.id));
    let at = all.iter().position(|(known, _)| *known == threads).unwrap_or_else(|| {
        all.push((threads, StateTimes::default()));
        all.len() - 1
    });
    &mut all[at].1
}

/// Packs times into JSON. `rows` has the distance of each row with a time from the previous one,
/// `states` the index of the state in `names`, `own` the row's own time, and `rest` the time below
/// the row that no other row shows.
fn packed(rows: &[RowTimes], beside: &[(Threads, StateTimes)]) -> Value {
    let mut rests: Vec<StateTimes> = Vec::with_capacity(rows.len());
    let mut above: Vec<usize> = Vec::new();
    for (at, (depth, [own, total])) in rows.iter().enumerate() {
        above.truncate(*depth as usize);
        if let Some(caller) = above.last() {
            rests[*caller].subtract(total);
        }
        let mut rest = *total;
        rest.subtract(own);
        rests.push(rest);
        above.push(at);
    }
    let (mut distances, mut states, mut owns, mut below) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
    let mut before = 0;
    for (at, ((_, [own, _]), rest)) in rows.iter().zip(&rests).enumerate() {
        for (place, state) in TimeState::ALL.iter().enumerate() {
            if own.ns_in(*state) > 0 || rest.ns_in(*state) > 0 {
                distances.push(at - std::mem::replace(&mut before, at));
                states.push(place);
                owns.push(own.ns_in(*state));
                below.push(rest.ns_in(*state));
            }
        }
    }
    let beside = beside.iter().flat_map(|((pid, thread), times)| {
        times.each().map(move |(state, ns)| json!([pid, thread, state as usize, ns]))
    });
    let beside: Vec<Value> = beside.collect();
    let names: Vec<&str> = TimeState::ALL.iter().map(|state| state.name()).collect();
    json!({ "names": names, "rows": distances, "states": states, "own": owns, "rest": below, "beside": beside })
}

#[cfg(test)]
mod tests {
    use clrscope_analysis::{Query, SAMPLED_WALL};
    use clrscope_recording::model::{ThreadRole, ThreadState};
    use clrscope_recording::testing::samples::{HandSampled, STEP_NS};

    use super::*;

    #[test]
    fn the_page_has_names_and_colours_for_all_states() {
        let names: Vec<&str> = TimeState::ALL.iter().map(|state| state.name()).collect();
        let model = include_str!("../../../../ui/src/model/states.ts");
        assert!(model.contains(&format!("STATE_NAMES = {}", json!(names).to_string().replace(',', ", "))), "{names:?}");
        let colours = include_str!("../../../../ui/src/colours.ts");
        let known: Vec<(&str, &str)> = colours
            .lines()
            .skip_while(|line| !line.contains("STATES_OF_TIME"))
            .skip(1)
            .take_while(|line| !line.starts_with('}'))
            .filter_map(|line| Some((line.trim().split_once(':')?.0, line.split('"').nth(1)?)))
            .collect();
        let titled: Vec<(&str, &str)> = TimeState::ALL.iter().map(|state| (state.name(), state.title())).collect();
        assert_eq!(known, titled);
    }

    #[test]
    fn rows_have_their_own_times_by_state_and_those_of_what_was_left_out_below_them() {
        let mut sampled = HandSampled::default();
        let main = sampled.thread("main", ThreadRole::User);
        let add = |sampled: &mut HandSampled, steps: u64, path: &str, state| {
            let sample = sampled.wall(main, 1, path);
            (sample.weight_ns, sample.state) = (steps * STEP_NS, state);
        };
        add(&mut sampled, 60, "App::Main", ThreadState::Running);
        add(&mut sampled, 30, "App::Main > System.Threading.Thread::Sleep", ThreadState::Sleeping);
        add(&mut sampled, 1, "App::Main > App::Tiny", ThreadState::Lock);
        add(&mut sampled, 1, "App::Other", ThreadState::Ready);
        let recording = sampled.recording();
        let query = Query { metric: Some(&SAMPLED_WALL), ..Query::default() };
        let forest = Forest::open(&recording, &query).expect("a forest");
        let found = times_by_state(&forest, 0.05, None);
        let place = |name: &str| found["names"].as_array().expect("names").iter().position(|one| one == name);
        let [running, ready, lock, sleeping] = ["running", "ready", "lock", "sleeping"].map(place);
        assert_eq!(found["rows"], json!([0, 0, 1]));
        assert_eq!(found["states"], json!([running, lock, sleeping]));
        assert_eq!(found["own"], json!([60 * STEP_NS, 0, 30 * STEP_NS]));
        assert_eq!(found["rest"], json!([0, STEP_NS, 0]));
        assert_eq!(found["beside"], json!([[recording.processes[0].pid, 0, ready, STEP_NS]]));
    }
}
