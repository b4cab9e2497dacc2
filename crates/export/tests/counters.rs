//! Counters in the formats of others, by values made by hand and official readers.

use std::path::{Path, PathBuf};
use std::process::Command;

use clrscope_analysis::{Query, QueryProblem};
use clrscope_export::{ExportError, ExportOptions, exporter};
use clrscope_recording::events::{Kind, Tag, Value as Field};
use clrscope_recording::model::{EventArena, Process, Recording};
use clrscope_recording::testing::chunk::HandmadeChunk;
use clrscope_testkit::{from_pypi, not_run};
use serde_json::{Value, json};

const SECOND: u64 = 1_000_000_000;
const GAUGE: u64 = 0;
const COUNTER: u64 = 1;
const UP_DOWN: u64 = 2;
const HISTOGRAM: u64 = 3;

/// A field with a number.
type Number = (Tag, f64);

/// Counters of a process, by number from 1, with their values, each a second after the last.
#[derive(Default)]
struct Counters {
    names: Vec<(u64, [String; 4])>,
    values: Vec<(u64, Vec<Number>, &'static str)>,
}

impl Counters {
    /// A counter: kind, then provider, name, unit and labels.
    fn counter(&mut self, kind: u64, texts: [&str; 4]) -> u64 {
        self.names.push((kind, texts.map(str::to_owned)));
        self.names.len() as u64
    }

    fn value(&mut self, counter: u64, fields: &[(Tag, f64)]) {
        self.values.push((counter, fields.to_vec(), ""));
    }

    fn measured(&mut self, counter: u64, [count, sum]: [f64; 2], quantiles: &'static str) {
        self.values.push((counter, vec![(Tag::COUNT, count), (Tag::VALUE, sum)], quantiles));
    }

    fn process(self, pid: u32) -> Process {
        let mut chunk = HandmadeChunk::new(0, 1, 0);
        for (number, (kind, [source, name, unit, labels])) in (1_u64..).zip(&self.names) {
            let fields = [
                (Tag::COUNTER, number.into()),
                (Tag::COUNTER_KIND, (*kind).into()),
                (Tag::SOURCE, (&**source).into()),
                (Tag::NAME, (&**name).into()),
                (Tag::UNIT, (&**unit).into()),
                (Tag::LABELS, (&**labels).into()),
            ];
            chunk = chunk.after(0).put(Kind::COUNTER_NAME, &fields);
        }
        for (counter, fields, quantiles) in &self.values {
            let mut all: Vec<(Tag, Field<'_>)> =
                vec![(Tag::COUNTER, (*counter).into()), (Tag::DURATION, SECOND.into())];
            all.extend(fields.iter().map(|&(tag, number)| match tag {
                Tag::COUNT => (tag, (number as u64).into()),
                tag => (tag, number.to_bits().into()),
            }));
            all.push((Tag::QUANTILES, (*quantiles).into()));
            chunk = chunk.after(SECOND).put(Kind::COUNTER_VALUE, &all);
        }
        let events = vec![EventArena { instrument: "counters".into(), chunks: vec![chunk.finish()] }];
        let command = vec!["dotnet".to_owned(), "shop.dll".to_owned()];
        Process { pid, command, runtime: ".NET 10.0.1".into(), duration_ns: 60 * SECOND, events, ..Process::default() }
    }
}

fn shop() -> Counters {
    let mut all = Counters::default();
    let level = all.counter(GAUGE, ["System.Runtime", "working-set", "MB", ""]);
    let orders = all.counter(COUNTER, ["Shop", "orders", "{order}", "kind=new,http.route=/a,\"b\\c\n"]);
    let open = all.counter(UP_DOWN, ["Shop", "open", "", ""]);
    let took = all.counter(HISTOGRAM, ["Shop", "took", "s", "kind=new"]);
    let none = all.counter(GAUGE, ["Shop", "never", "", ""]);
    all.value(level, &[(Tag::VALUE, 48.5), (Tag::COUNT, 1.0)]);
    all.value(orders, &[(Tag::VALUE, 3.0), (Tag::TOTAL, 103.0)]);
    all.value(open, &[(Tag::VALUE, 2.0), (Tag::TOTAL, 7.0)]);
    all.measured(took, [4.0, 10.0], "0.5=2;0.95=4;0.99=4.5");
    all.value(level, &[(Tag::VALUE, 50.25), (Tag::COUNT, 1.0)]);
    all.value(orders, &[(Tag::VALUE, 4.0), (Tag::TOTAL, 107.0)]);
    all.value(open, &[(Tag::VALUE, -3.0), (Tag::TOTAL, 4.0)]);
    all.measured(took, [1.0, 0.5], "0.5=0.5;0.95=0.5;0.99=0.5");
    all.measured(none, [0.0, 0.0], "");
    all
}

fn recording(processes: Vec<Process>) -> Recording {
    let mut recording = Recording { processes, ..Recording::default() };
    recording.run.started_unix_ns = 1_000 * SECOND;
    recording
}

fn export(recording: &Recording, format: &str, query: Query) -> Result<Vec<u8>, ExportError> {
    let mut out = Vec::new();
    let options = ExportOptions { query, ..ExportOptions::default() };
    exporter(format).expect("a format").write(recording, &options, &mut out).map(|()| out)
}

fn text(recording: &Recording) -> String {
    String::from_utf8(export(recording, "prometheus", Query::default()).expect("written")).expect("UTF-8")
}

/// Runs a program in Python with a package; what it prints, nothing where that is not to be had.
fn python(package: &str, program: &str, file: &Path) -> Option<Value> {
    let packages = from_pypi(package, Path::new(env!("CARGO_TARGET_TMPDIR")))?;
    let mut command = Command::new("python3");
    let done = command.arg("-c").arg(program).arg(file).env("PYTHONPATH", packages).output();
    let done = done.expect("Python was there a moment ago");
    assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
    Some(serde_json::from_slice(&done.stdout).expect("JSON"))
}

fn file(name: &str, bytes: &[u8]) -> PathBuf {
    let file = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
    std::fs::write(&file, bytes).expect("a file");
    file
}

#[test]
fn prometheus_has_last_values_and_sums() {
    let expected = "\
# HELP target_info Attributes of the processes.
# TYPE target_info gauge
target_info{process_command_line=\"dotnet shop.dll\",process_pid=\"7\",process_runtime_description=\".NET 10.0.1\",process_runtime_name=\".NET\",process_runtime_version=\"10.0.1\",service_name=\"shop\"} 1
# HELP shop_open Shop/open: last value.
# TYPE shop_open gauge
shop_open 4
# HELP shop_orders_total Shop/orders ({order}): sum in the recording.
# TYPE shop_orders_total counter
shop_orders_total{http_route=\"/a,\\\"b\\\\c\\\\n\",kind=\"new\"} 7
# HELP shop_took_seconds Shop/took (s): number and sum in the recording, quantiles of the last second.
# TYPE shop_took_seconds summary
shop_took_seconds{kind=\"new\",quantile=\"0.5\"} 0.5
shop_took_seconds{kind=\"new\",quantile=\"0.95\"} 0.5
shop_took_seconds{kind=\"new\",quantile=\"0.99\"} 0.5
shop_took_seconds_sum{kind=\"new\"} 10.5
shop_took_seconds_count{kind=\"new\"} 5
# HELP system_runtime_working_set_megabytes System.Runtime/working-set (MB): last value.
# TYPE system_runtime_working_set_megabytes gauge
system_runtime_working_set_megabytes 50.25
";
    assert_eq!(text(&recording(vec![shop().process(7)])), expected);
}

/// Names that differ in the program alone, labels that the format has for itself, several
/// processes.
#[test]
fn no_two_lines_of_prometheus_mean_the_same() {
    let odd = || {
        let mut all = Counters::default();
        let counters = [
            (GAUGE, ["Shop", "a-b", "", ""]),
            (GAUGE, ["Shop", "a.b", "", ""]),
            (GAUGE, ["Shop", "a_b_sum", "", ""]),
            (HISTOGRAM, ["Shop", "a b", "", "le=1,quantile=2,pid=3"]),
            (GAUGE, ["Shop", "c", "", "x.y=1"]),
            (GAUGE, ["Shop", "c", "", "x-y=1"]),
            (GAUGE, ["Shop", "c", "", "x.y=1,x-y=2"]),
        ];
        for (kind, texts) in counters {
            let number = all.counter(kind, texts);
            all.measured(number, [1.0, number as f64], "");
        }
        all
    };
    let text = text(&recording(vec![odd().process(7), odd().process(8)]));
    let lines: Vec<&str> = text.lines().filter(|line| !line.starts_with('#')).collect();
    let series: std::collections::BTreeSet<_> = lines.iter().filter_map(|line| line.rsplit_once(' ')).collect();
    assert_eq!(lines.len(), 2 * (8 + 1), "{text}");
    let places: std::collections::BTreeSet<_> = series.iter().map(|(series, _)| series).collect();
    assert_eq!(places.len(), lines.len(), "{text}");
    let heads = text.lines().filter(|line| line.starts_with("# TYPE"));
    let heads: std::collections::BTreeSet<_> = heads.map(|line| line.split(' ').nth(2)).collect();
    assert_eq!(heads.len(), 6 + 1, "{text}");
    assert!(text.contains("{exported_le=\"1\",exported_pid=\"3\",exported_quantile=\"2\",pid=\"8\"} 1"), "{text}");
    assert!(text.contains("{pid=\"7\",x_y=\"1;2\"} 7"), "{text}");
}

/// Reads all of it, and prints samples by name.
const READ: &str = "
import json, sys
from prometheus_client.parser import text_string_to_metric_families
families = list(text_string_to_metric_families(open(sys.argv[1]).read()))
samples = {}
for family in families:
    for of in family.samples:
        key = of.name + ' ' + ' '.join(f'{name}={value}' for name, value in sorted(of.labels.items()))
        assert key not in samples and of.timestamp is None
        samples[key] = of.value
print(json.dumps({'samples': samples, 'types': {family.name: family.type for family in families}}))
";

#[test]
fn the_parser_of_prometheus_reads_counters() {
    let file = file("app.prom", text(&recording(vec![shop().process(7)])).as_bytes());
    let Some(said) = python("prometheus-client==0.26.0", READ, &file) else {
        return not_run("reading counters as Prometheus does: pip can't install its client here");
    };
    let target_info = "target_info process_command_line=dotnet shop.dll process_pid=7 process_runtime_description=.NET 10.0.1 \
         process_runtime_name=.NET process_runtime_version=10.0.1 service_name=shop";
    let expected = json!({"samples": {
        "shop_open ": 4,
        "shop_orders_total http_route=/a,\"b\\c\\n kind=new": 7,
        "shop_took_seconds kind=new quantile=0.5": 0.5,
        "shop_took_seconds kind=new quantile=0.95": 0.5,
        "shop_took_seconds kind=new quantile=0.99": 0.5,
        "shop_took_seconds_sum kind=new": 10.5,
        "shop_took_seconds_count kind=new": 5,
        "system_runtime_working_set_megabytes ": 50.25,
        (target_info): 1,
    }, "types": {
        "target_info": "gauge",
        "shop_open": "gauge",
        "shop_orders": "counter",
        "shop_took_seconds": "summary",
        "system_runtime_working_set_megabytes": "gauge",
    }});
    assert_eq!(said, expected);
}

/// Prints points of each metric, times in seconds of the recording.
const OTLP: &str = "
import json, sys
from opentelemetry.proto.metrics.v1.metrics_pb2 import MetricsData, AGGREGATION_TEMPORALITY_CUMULATIVE
data = MetricsData()
data.ParseFromString(open(sys.argv[1], 'rb').read())
found = {}
seconds = lambda ns: ns / 1e9 - 1000 if ns else None
for resource in data.resource_metrics:
    names = {of.key: of.value for of in resource.resource.attributes}
    assert names['process.runtime.name'].string_value == '.NET'
    for scope in resource.scope_metrics:
        for metric in scope.metrics:
            kind = metric.WhichOneof('data')
            value = getattr(metric, kind)
            if kind == 'sum':
                assert value.aggregation_temporality == AGGREGATION_TEMPORALITY_CUMULATIVE
                kind += ' that grows' if value.is_monotonic else ''
            points = []
            for point in value.data_points:
                labels = {of.key: of.value.string_value for of in point.attributes}
                if kind == 'summary':
                    said = [point.count, point.sum, {of.quantile: of.value for of in point.quantile_values}]
                else:
                    said = point.as_double
                points.append([seconds(point.start_time_unix_nano), seconds(point.time_unix_nano), said, labels])
            place = f\"{names['process.pid'].int_value} {scope.scope.name}/{metric.name} {metric.unit} {kind}\"
            assert place not in found
            found[place] = points
print(json.dumps(found))
";

#[test]
fn the_classes_of_opentelemetry_read_metrics() {
    let read = |processes, query| {
        let bytes = export(&recording(processes), "otlp-metrics", query).expect("written");
        python("opentelemetry-proto==1.45.2", OTLP, &file("app.metrics.otlp", &bytes))
    };
    let Some(said) = read(vec![shop().process(7)], Query::default()) else {
        return not_run("reading OpenTelemetry metrics: pip can't install its classes here");
    };
    let of_order = json!({"kind": "new", "http.route": "/a,\"b\\c\\n"});
    let new = json!({"kind": "new"});
    let expected = json!({
        "7 Shop/open  sum": [[null, 3.0, 7.0, {}], [null, 7.0, 4.0, {}]],
        "7 Shop/orders {order} sum that grows": [[1.0, 2.0, 3.0, of_order], [1.0, 6.0, 7.0, of_order]],
        "7 Shop/took s summary": [
            [3.0, 4.0, [4, 10.0, {"0.5": 2.0, "0.95": 4.0, "0.99": 4.5}], new],
            [3.0, 8.0, [5, 10.5, {"0.5": 0.5, "0.95": 0.5, "0.99": 0.5}], new],
        ],
        "7 System.Runtime/working-set MB gauge": [[null, 1.0, 48.5, {}], [null, 5.0, 50.25, {}]],
    });
    assert_eq!(said, expected);
    // Filters: a process, a time.
    let query = Query { pid: Some(8), since_ns: Some(5 * SECOND), ..Query::default() };
    let said = read(vec![shop().process(7), shop().process(8)], query).expect("the classes");
    assert_eq!(said["8 Shop/orders {order} sum that grows"], json!([[5.0, 6.0, 4.0, of_order]]));
    assert!(said.as_object().expect("metrics").keys().all(|key| key.starts_with("8 ")), "{said}");
}

#[test]
fn what_has_no_counters_is_refused() {
    for format in ["prometheus", "otlp-metrics"] {
        let export = |recording: &Recording, query| export(recording, format, query).expect_err("nothing");
        let without = recording(vec![Process { pid: 7, ..Process::default() }]);
        let error = export(&without, Query::default());
        assert!(matches!(error, ExportError::Query(QueryProblem::NotRecorded { instrument: "counters", .. })));
        let with = recording(vec![shop().process(7)]);
        let late = Query { since_ns: Some(40 * SECOND), ..Query::default() };
        assert!(matches!(export(&with, late), ExportError::Empty("no counter has a value")));
        let limited = Query { limit: Some(1), ..Query::default() };
        let error = export(&with, limited).to_string();
        assert!(error.starts_with("--limit is not available"), "{error}");
    }
}
