//! `attach PID -i counters`: counters of a program that runs already.

use std::collections::BTreeMap;
use std::time::Duration;

use clrscope_testkit as testkit;

use crate::common::TestFolder;
use crate::server::{attach, kill};
use crate::waiting::{Waiting, is_following, rows};

/// Twice in a row, and the agent leaves each time.
#[test]
fn counters_of_a_running_program_are_those_that_it_adds_to() {
    testkit::each_runtime(|runtime| {
        let (place, mut program) = (TestFolder::new(), Waiting::start(runtime, "Counts", &["20", "wait"]));
        let pid = program.child.id();
        let mut recorder = attach(&place, pid, "-q -i counters -o first.clrs").spawn().expect("the tool starts");
        testkit::wait_until("it records", || is_following(&place, "first.clrs"));
        testkit::pause(Duration::from_secs(1));
        let output = program.go_on("DONE");
        kill(recorder.id(), "INT");
        assert!(recorder.wait().expect("it ends").success(), "{output:?} on {}", runtime.version);
        let added: BTreeMap<&str, f64> = output
            .iter()
            .filter_map(|line| line.strip_prefix("ADDED ")?.split_once(' '))
            .map(|(name, number)| (name, number.parse().expect("a number")))
            .collect();
        let rows = |name: &str| -> BTreeMap<String, f64> {
            let rows = rows(&place, name, "counters");
            let total = |row: &serde_json::Value| {
                let [provider, name, tags] = ["provider", "name", "tags"].map(|key| row[key].as_str().expect("a text"));
                Some((format!("{provider}/{name} {tags}"), row["total"].as_f64()?))
            };
            rows.iter().filter_map(total).collect()
        };
        let first = rows("first.clrs");
        let wanted = [
            ("Counts.Source/sales ", "sales"),
            ("Counts.Source/steps ", "steps"),
            ("Counts.Shop/orders kind=new", "orders/new"),
            ("Counts.Shop/orders kind=old", "orders/old"),
        ];
        for (row, name) in wanted {
            assert_eq!(first.get(row), added.get(name), "{row} on {}: {first:?}", runtime.version);
        }

        let output = attach(&place, pid, "-q -i counters -o second.clrs --duration 3s").output().expect("it runs");
        assert!(output.status.success(), "{output:?} on {}", runtime.version);
        // Nothing was added meanwhile.
        assert_eq!(rows("second.clrs").get("Counts.Source/sales "), Some(&0.0), "on {}", runtime.version);
        program.go_on("");
        assert!(program.child.wait().expect("it ends").success(), "on {}", runtime.version);
    });
}
