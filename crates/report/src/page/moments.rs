//! Amounts of a page tree's nodes over time, so that a reader can select a part of the time without
//! the recording.

use clrscope_analysis::{Forest, NodePiece, TreeOptions, timeline_pieces};
use clrscope_recording::model::Recording;
use serde_json::{Value, json};

/// Minimum number of time intervals; fewer are useless.
const LEAST_PIECES: u64 = 15;

/// Returns the own amounts of the tree's rows per time interval. The intervals are those of the
/// timeline, joined until the result fits. `counts` has the number of rows of each interval. `rows`
/// has the distance of each row from the previous one in the interval. `states` has the index of
/// each row's state, if states are known. Null if the result can't be made to fit, and for sums
/// over the whole run.
pub(super) fn amounts_over_time(forest: &Forest<'_>, recording: &Recording, min_share: f64, most: usize) -> Value {
    let options = TreeOptions { min_share, max_depth: None };
    let mut pieces = timeline_pieces(recording);
    let mut found = forest.over_time(recording, &options, pieces);
    while found.len() > most && pieces.count > LEAST_PIECES {
        found = halved(found);
        (pieces.count, pieces.piece_ns) = (pieces.count / 2, pieces.piece_ns * 2);
    }
    if found.is_empty() || found.len() > most {
        return Value::Null;
    }
    let (mut counts, mut rows, mut amounts) = (vec![0_u32; pieces.count as usize], Vec::new(), Vec::new());
    let mut states = Vec::new();
    let mut before = (u32::MAX, 0);
    for NodePiece { node, piece, state, amount } in found {
        states.extend(state.map(|state| state as usize));
        counts[piece as usize] += 1;
        rows.push(if before.0 == piece { node - before.1 } else { node });
        amounts.push(amount);
        before = (piece, node);
    }
    let (start_ns, piece_ns) = (pieces.start_ns, pieces.piece_ns);
    json!({ "start_ns": start_ns, "piece_ns": piece_ns, "counts": counts, "rows": rows, "amounts": amounts, "states": states })
}

/// Joins each two adjacent intervals.
fn halved(mut found: Vec<NodePiece>) -> Vec<NodePiece> {
    found.iter_mut().for_each(|one| one.piece /= 2);
    found.sort_unstable_by_key(|one| (one.piece, one.node, one.state));
    found.dedup_by(|next, one| {
        let is_same = (one.piece, one.node, one.state) == (next.piece, next.node, next.state);
        if is_same {
            one.amount = one.amount.saturating_add(next.amount);
        }
        is_same
    });
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn two_pieces_become_one_with_the_amounts_of_both() {
        let one = |node, piece, amount| NodePiece { node, piece, state: None, amount };
        let found = vec![one(3, 0, 5), one(1, 1, 7), one(3, 1, 1), one(3, 2, 9)];
        assert_eq!(halved(found), [one(1, 0, 7), one(3, 0, 6), one(3, 1, 9)]);
    }
}
