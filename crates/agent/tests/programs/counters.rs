//! Counters, against what a program adds itself and what its own listeners hear.

use std::collections::{BTreeMap, BTreeSet};

use clrscope_analysis::{CounterKind, CounterRow, Query, counters};
use clrscope_recording::model::Recording;
use clrscope_testkit::{attempted, each_runtime, fixture, run};

use crate::support::record_with;

/// What the program prints behind a word: names and numbers.
fn printed(output: &str, word: &str) -> BTreeMap<String, f64> {
    let parse = |line: &str| {
        let (name, number) = line.strip_prefix(word)?.strip_prefix(' ')?.rsplit_once(' ')?;
        Some((name.to_owned(), number.parse().expect("a number")))
    };
    output.lines().filter_map(parse).collect()
}

fn rows(recording: &Recording) -> BTreeMap<String, CounterRow<'_>> {
    let (rows, _) = counters(recording, &Query::default(), &[]).expect("counters");
    rows.into_iter().map(|row| (row.full_name(), row)).collect()
}

/// Event counters of each kind from their first value on; meters from a moment behind their making.
#[test]
fn counters_have_what_the_program_adds_to_them() {
    each_runtime(|runtime| {
        let outcome = attempted(|| {
            let run = record_with(runtime, "Counts", "counters", &["30"]);
            let added = printed(&run.finished.expect_success().stdout_text(), "ADDED");
            let rows = rows(&run.recording);
            let total = |name: &str| rows.get(name).and_then(|row| row.total);
            for name in ["sales", "steps"] {
                assert_eq!(total(&format!("Counts.Source/{name}")), Some(added[name]), "on {}", runtime.version);
            }
            let [sizes, level] = ["sizes", "level"].map(|name| &rows[&format!("Counts.Source/{name}")]);
            assert_eq!((sizes.kind, sizes.count, sizes.mean()), (CounterKind::Gauge, added["sizes"] as u64, 15.0));
            assert_eq!((sizes.unit.as_str(), level.unit.as_str(), level.value()), ("MB", "cm", 42.5));
            let of_runtime = ["cpu-usage", "working-set", "gc-heap-size", "threadpool-thread-count", "assembly-count"];
            for name in of_runtime {
                assert!(rows.contains_key(&format!("System.Runtime/{name}")), "{name}: {:?}", rows.keys());
            }
            let loaded = &rows["System.Runtime/working-set"];
            assert!((10.0..500.0).contains(&loaded.value()), "{loaded:?}");

            // On a busy machine the listener may come later than the program waits for it.
            let meters = [("orders{kind=new}", "orders/new"), ("orders{kind=old}", "orders/old"), ("prices", "prices")];
            for (name, printed) in meters.into_iter().chain([("open", "open")]) {
                if total(&format!("Counts.Shop/{name}")) != Some(added[printed]) {
                    return Err(format!("{name}: {:?} of {added:?}", total(&format!("Counts.Shop/{name}"))));
                }
            }
            let [prices, open, level] = ["prices", "open", "level"].map(|name| &rows[&format!("Counts.Shop/{name}")]);
            assert_eq!((prices.kind, prices.count), (CounterKind::Histogram, added["prices/count"] as u64));
            assert_eq!((open.kind, open.value()), (CounterKind::UpDownCounter, added["open"]));
            assert_eq!((level.kind, level.value(), level.unit.as_str()), (CounterKind::Gauge, 7.25, "cm"));
            assert!(prices.percentiles.is_some_and(|[half, _, most]| half <= most && most <= 9.5), "{prices:?}");
            Ok(())
        });
        assert_eq!(outcome, Ok(()), "on {}", runtime.version);
    });
}

/// Intervals and sums of the program's own listeners are as bare.
#[test]
fn listeners_of_the_program_hear_their_counters_as_without_us() {
    each_runtime(|runtime| {
        let heard = |output: &str| -> BTreeSet<String> {
            let lines = output.lines().filter(|line| line.starts_with("HEARD") || line.starts_with("METER"));
            lines.map(str::to_owned).collect()
        };
        let mut bare = runtime.command(&fixture("Counts"));
        bare.args(["40", "listen"]);
        let bare = heard(&run(bare).expect_success().stdout_text());
        let recorded = record_with(runtime, "Counts", "counters", &["40", "listen"]);
        let output = recorded.finished.expect_success().stdout_text();
        assert!(bare.iter().any(|line| line.contains("Counts.Source/sales Interval=2000 2")), "{bare:#?}");
        assert_eq!(heard(&output), bare, "on {}", runtime.version);
        let (added, sums) = (printed(&output, "ADDED"), printed(&output, "SUM"));
        for name in ["sales", "steps"] {
            assert_eq!(sums[&format!("Counts.Source/{name}")], added[name], "on {}", runtime.version);
        }
        // What we get is what the listener gets then.
        let rows = rows(&recorded.recording);
        assert_eq!(rows["Counts.Source/sales"].total, Some(added["sales"]), "on {}", runtime.version);
    });
}
