//! Values of counters by time, which the timeline of a page draws.

use clrscope_analysis::{CounterPoint, counters};
use clrscope_recording::model::Recording;
use serde_json::{Value, json};

use super::plan::PlannedView;

/// Maximum number of values of all counters of a page.
const MOST_VALUES: usize = 60_000;
/// Number of values per counter, if there is not enough room for all counters.
const LEAST_VALUES: usize = 60;

/// Returns the values of each row of the view `counters`, in the order of rows; null for other
/// views. Each value has its interval in microseconds (the time since the end of the previous
/// interval, and the length), and its mean, minimum and maximum. If there is no room for single
/// values, neighbouring values are merged.
pub(super) fn values_by_time(planned: &PlannedView, recording: &Recording) -> Value {
    if planned.view.name != "counters" {
        return Value::Null;
    }
    let Ok((rows, _)) = counters(recording, &planned.request.query, &planned.request.names) else {
        return Value::Null;
    };
    let most = (MOST_VALUES / rows.len().max(1)).max(LEAST_VALUES);
    let told = |points: &[CounterPoint]| packed(points, most);
    Value::Array(rows.iter().map(|row| told(&row.points)).collect())
}

fn packed(points: &[CounterPoint], most: usize) -> Value {
    let together = points.len().div_ceil(most).max(1);
    let mut times: Vec<u64> = Vec::new();
    let [mut means, mut least, mut greatest]: [Vec<f64>; 3] = Default::default();
    let mut before_us = 0;
    for group in points.chunks(together) {
        let [from_us, to_us] = [group[0].since_ns(), group[group.len() - 1].time_ns].map(|ns| ns / 1_000);
        // The recorded time of an interval is a little later than its end.
        let from_us = from_us.clamp(before_us, to_us.max(before_us));
        times.extend([from_us - before_us, to_us.saturating_sub(from_us)]);
        before_us = from_us.max(to_us);
        let values = || group.iter().map(|point| point.value);
        let weight: f64 = group.iter().map(|point| point.count as f64).sum();
        let sum: f64 = group.iter().map(|point| point.value * point.count as f64).sum();
        means.push(if together == 1 || weight == 0.0 { group[0].value } else { sum / weight });
        least.push(values().fold(f64::INFINITY, f64::min));
        greatest.push(values().fold(f64::NEG_INFINITY, f64::max));
    }
    match together {
        1 => json!({ "times": times, "values": means }),
        _ => json!({ "times": times, "values": means, "least": least, "greatest": greatest }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn point(since_ms: u64, ms: u64, value: f64) -> CounterPoint {
        let (time_ns, interval_ns) = (ms * 1_000_000, (ms - since_ms) * 1_000_000);
        CounterPoint { time_ns, value, count: 1, interval_ns, total: None, total_count: 0, percentiles: None }
    }

    #[test]
    fn values_have_their_intervals_and_are_joined_where_there_is_no_room() {
        let points = [point(0, 1_000, 3.0), point(999, 2_000, 5.0), point(4_000, 5_000, 1.0)];
        let all = json!({ "times": [0, 1_000_000, 0, 1_000_000, 2_000_000, 1_000_000], "values": [3.0, 5.0, 1.0] });
        assert_eq!(packed(&points, 3), all);
        let joined = json!({
            "times": [0, 2_000_000, 2_000_000, 1_000_000], "values": [4.0, 1.0], "least": [3.0, 1.0],
            "greatest": [5.0, 1.0],
        });
        assert_eq!(packed(&points, 2), joined);
        assert_eq!(packed(&[], 2), json!({ "times": [], "values": [] }));
    }
}
