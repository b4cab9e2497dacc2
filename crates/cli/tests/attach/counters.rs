//! `attach PID -i counters`: counters of a program that runs already.

use std::collections::BTreeMap;
use std::path::Path;
use std::process::Command;
use std::time::Duration;

use clrscope_testkit as testkit;

use crate::common::TestFolder;
use crate::server::{attach, kill, said};
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
        are_exported(&place, "first.clrs", &added);

        let output = attach(&place, pid, "-q -i counters -o second.clrs --duration 3s").output().expect("it runs");
        assert!(output.status.success(), "{output:?} on {}", runtime.version);
        // Nothing was added meanwhile.
        assert_eq!(rows("second.clrs").get("Counts.Source/sales "), Some(&0.0), "on {}", runtime.version);
        program.go_on("");
        assert!(program.child.wait().expect("it ends").success(), "on {}", runtime.version);
    });
}

/// Reads both exports by the official classes of the formats, and prints sums by name and labels.
const READ: &str = "
import json
from opentelemetry.proto.metrics.v1.metrics_pb2 import MetricsData
from prometheus_client.parser import text_string_to_metric_families
text, data = {}, MetricsData()
for family in text_string_to_metric_families(open('first.prom').read()):
    for of in family.samples:
        text[' '.join([of.name, *of.labels.values()])] = float(of.value)
data.ParseFromString(open('first.otlp', 'rb').read())
sums = {}
for scope in data.resource_metrics[0].scope_metrics:
    for metric in scope.metrics:
        for point in getattr(metric, metric.WhichOneof('data')).data_points:
            labels = [of.value.string_value for of in point.attributes]
            value = point.sum if metric.HasField('summary') else point.as_double
            sums[' '.join([scope.scope.name + '/' + metric.name, *labels])] = value
print(json.dumps([text, sums]))
";

/// What the program has added is what readers of others find in exports.
fn are_exported(place: &TestFolder, recording: &str, added: &BTreeMap<&str, f64>) {
    for (format, file) in [("prometheus", "first.prom"), ("otlp-metrics", "first.otlp")] {
        let output = place.run(&format!("export {recording} --to {format} --force -o {file}"));
        assert!(output.status.success(), "{}", said(&output));
    }
    let packages = ["prometheus-client==0.26.0", "opentelemetry-proto==1.45.2"];
    let of = |packages| testkit::from_pypi(packages, Path::new(env!("CARGO_TARGET_TMPDIR")));
    let (Some(prometheus), Some(opentelemetry)) = (of(packages[0]), of(packages[1])) else {
        return testkit::not_run("reading counters by libraries of others: pip can't install them here");
    };
    let places = format!("{}:{}", prometheus.display(), opentelemetry.display());
    let mut python = Command::new("python3");
    python.args(["-c", READ]).current_dir(place.path()).env("PYTHONPATH", places);
    let output = python.output().expect("Python was there a moment ago");
    assert!(output.status.success(), "{}", said(&output));
    let [text, sums]: [BTreeMap<String, f64>; 2] = serde_json::from_slice(&output.stdout).expect("JSON");
    let names = [
        ("counts_source_sales_things_total", "Counts.Source/sales", "sales"),
        ("counts_source_steps_total", "Counts.Source/steps", "steps"),
        ("counts_shop_orders_total new", "Counts.Shop/orders new", "orders/new"),
        ("counts_shop_orders_total old", "Counts.Shop/orders old", "orders/old"),
        ("counts_shop_open", "Counts.Shop/open", "open"),
        ("counts_shop_prices_eur_sum", "Counts.Shop/prices", "prices"),
    ];
    for (in_text, in_metrics, name) in names {
        assert_eq!(text.get(in_text), added.get(name), "{in_text}: {text:?}");
        assert_eq!(sums.get(in_metrics), added.get(name), "{in_metrics}: {sums:?}");
    }
    assert_eq!(text.get("counts_shop_prices_eur_count"), added.get("prices/count"), "{text:?}");
}
