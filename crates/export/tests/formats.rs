//! Each format from small trees, compared with what was written by hand.

use std::sync::Arc;

use clrscope_analysis::{BYTES, CALLS, CPU, EXCEPTIONS, Metric, OBJECTS, Query, SAMPLES, Sort};
use clrscope_contract::request::{Glob, Pattern};
use clrscope_export::{ExportError, ExportOptions, Exporter, check, exporter, exporters};
use clrscope_recording::events::{Kind, Tag, Value};
use clrscope_recording::model::{
    Allocation, EventArena, EventChunk, HookCost, ObjectType, Recording, StackFrame, StacksBuilder, ThreadRole,
};
use clrscope_recording::testing::ascii_trees::{recording, recording_with};
use clrscope_recording::testing::chunk::HandmadeChunk;
use clrscope_recording::testing::samples::{HandSampled, STEP_NS};

fn export(recording: &Recording, format: &str, options: &ExportOptions) -> String {
    let mut out = Vec::new();
    exporter(format).expect("a format").write(recording, options, &mut out).expect("written");
    String::from_utf8(out).expect("UTF-8")
}

fn plain(recording: &Recording, format: &str) -> String {
    export(recording, format, &ExportOptions::default())
}

fn with(query: Query) -> ExportOptions {
    ExportOptions { query, ..ExportOptions::default() }
}

fn by(metric: &'static Metric) -> ExportOptions {
    with(Query { metric: Some(metric), ..Query::default() })
}

const SHOP: &str = "
thread 1 main
  outside 7
  Main 1 1000000 900
    Pay 2 500000000 400
      [suspended: GC] 1 250000000
      [JIT] 3 1500000000 100
      libc!read 4 30 1
thread 2
  Pay 5 60
    Pay 1 5
";

#[test]
fn hst_is_as_measured_per_thread_with_totals() {
    let cost = HookCost { enter_ns: 2.0, leave_ns: 1.0, pair_low_ns: 1.0, pair_high_ns: 4.0 };
    let mut r = recording_with(SHOP, cost);
    let pay = r.processes[0].functions.iter_mut().find(|f| f.name == "Pay").expect("Pay");
    pay.signature = "Pay(Dictionary<string, int> of; string \"to\")".into();
    let expected = "\
Thread ID;Function;Times Called;Exclusive Time;Inclusive Time;Callee Time;Suspended Time;Profiler Time
1001;[JIT]();3;1.500000000;1.500000000;0.000000000;0.000000000;0.000000000
1001;\"Pay(Dictionary<string, int> of; string \"\"to\"\")\";2;0.499999998;2.250000030;1.500000030;0.250000000;0.000000002
1001;Main();1;0.000999995;2.251000030;2.250000030;0.000000000;0.000000005
1001;libc!read();4;0.000000030;0.000000030;0.000000000;0.000000000;0.000000000
1001;Total;10;2.001000023;2.251000030;0.000000000;0.250000000;0.000000007
1002;\"Pay(Dictionary<string, int> of; string \"\"to\"\")\";6;0.000000057;0.000000065;0.000000000;0.000000000;0.000000008
1002;Total;6;0.000000057;0.000000065;0.000000000;0.000000000;0.000000008
";
    assert_eq!(plain(&r, "hst"), expected);
    let one = with(Query { limit: Some(1), sort: Some(Sort::Name), ..Query::default() });
    let lines: Vec<String> = export(&r, "hst", &one).lines().map(|l| l.split(';').take(2).collect()).collect();
    assert_eq!(lines[1..3], ["1001Main()", "1001Total"]);
    assert_eq!(lines.len(), 5);
}

#[test]
fn collapsed_has_a_line_per_path() {
    let r = recording(SHOP);
    let expected = "\
Main;Pay;[JIT] 1500000000
Main;Pay;[suspended: GC] 250000000
Main;Pay;libc!read 30
Main;Pay 500000000
Main 1000000
Pay;Pay 5
Pay 60
";
    assert_eq!(plain(&r, "collapsed"), expected);
    let calls = by(&CALLS);
    assert_eq!(export(&r, "collapsed", &calls).lines().last(), Some("Pay 5"));
    assert_eq!(export(&r, "collapsed", &calls).lines().count(), 7);
    let cpu = by(&CPU);
    assert_eq!(export(&r, "collapsed", &cpu), "Main;Pay;[JIT] 100\nMain;Pay;libc!read 1\nMain;Pay 400\nMain 900\n");
}

/// The tree of `SHOP`, and allocations: orders and bytes by `Main;Pay`, bytes by `Pay`.
fn with_allocations() -> Recording {
    let mut r = recording(SHOP);
    let process = &mut r.processes[0];
    let index = |name: &str| process.functions.iter().position(|f| f.name == name).expect("a function") as u32;
    let method = |name: &str| StackFrame::method(index(name), None);
    let mut stacks = StacksBuilder::default();
    let (deep, shallow) =
        (stacks.stack(&[method("Pay"), method("Main")], false), stacks.stack(&[method("Pay")], false));
    let of = |object_type: u32, bytes: u64, stack: u32| {
        let known = Allocation { objects: 1, objects_weight: 1 << 10, object_type, stack, ..Allocation::default() };
        Allocation { bytes, weight: bytes, ..known }.to_bytes()
    };
    let bytes: Vec<u8> = [of(1, 32, deep), of(2, 100, deep), of(1, 32, deep), of(2, 7, shallow)].concat();
    let chunks = vec![EventChunk { thread: 0, sequence: 1, bytes: bytes.into() }];
    process.types = ["", "Shop.Order", "byte[]"].map(|name| ObjectType { name: name.into(), module: 0 }).into();
    process.stacks = Arc::new(stacks.finish());
    process.events.push(EventArena { instrument: "alloc".into(), chunks });
    r
}

#[test]
fn paths_of_allocations_end_in_types() {
    let r = with_allocations();
    let bytes = by(&BYTES);
    assert_eq!(export(&r, "collapsed", &bytes), "Main;Pay;byte[] 100\nMain;Pay;Shop.Order 64\nPay;byte[] 7\n");
    let objects = "Main;Pay;Shop.Order 2\nMain;Pay;byte[] 1\nPay;byte[] 1\n";
    assert_eq!(export(&r, "collapsed", &by(&OBJECTS)), objects);
    let mut orders = by(&BYTES);
    orders.query.types = vec![Glob::new("*Order")];
    assert_eq!(export(&r, "collapsed", &orders), "Main;Pay;Shop.Order 64\n");
    let file: serde_json::Value = serde_json::from_str(&export(&r, "speedscope", &bytes)).expect("JSON");
    let frames = file["shared"]["frames"].as_array().expect("frames");
    let profile = &file["profiles"][0];
    let leaves = profile["samples"].as_array().expect("samples").iter().map(|path| {
        let last = path.as_array().and_then(|path| path.last()?.as_u64()).expect("a frame");
        frames[last as usize]["name"].as_str().expect("a name")
    });
    let weights = profile["weights"].as_array().expect("weights").iter().filter_map(serde_json::Value::as_u64);
    let mut sums = std::collections::BTreeMap::new();
    leaves.zip(weights).for_each(|(name, weight)| *sums.entry(name).or_insert(0) += weight);
    assert_eq!(sums.into_iter().collect::<Vec<_>>(), [("Shop.Order", 64), ("byte[]", 107)]);
    assert!(export(&r, "flamegraph", &bytes).contains("<title>Shop.Order (64 "), "a frame of the picture");
    let mut profile = Vec::new();
    exporter("pprof").expect("a format").write(&r, &bytes, &mut profile).expect("written");
    let mut text = Vec::new();
    std::io::Read::read_to_end(&mut flate2::read::GzDecoder::new(&profile[..]), &mut text).expect("packed");
    assert!(text.windows(10).any(|part| part == b"Shop.Order"), "a function of the profile");
}

/// The tree of `SHOP`, and exceptions: three by `Main;Pay`, one by `Pay`, one without a stack.
fn with_exceptions() -> Recording {
    let mut r = recording(SHOP);
    let process = &mut r.processes[0];
    let index = |name: &str| process.functions.iter().position(|f| f.name == name).expect("a function") as u32;
    let method = |name: &str| StackFrame::method(index(name), None);
    let mut stacks = StacksBuilder::default();
    let (deep, shallow) =
        (stacks.stack(&[method("Pay"), method("Main")], false), stacks.stack(&[method("Pay")], false));
    let mut chunk = HandmadeChunk::new(0, 1, 0);
    for stack in [deep, shallow, deep, 0, deep] {
        chunk = chunk.put(Kind::EXCEPTION_THROWN, &[(Tag::STACK_NODE, Value::Number(stack.into()))]);
    }
    process.stacks = Arc::new(stacks.finish());
    process.events.push(EventArena { instrument: "exceptions".into(), chunks: vec![chunk.finish()] });
    r
}

#[test]
fn exports_of_paths_show_exceptions() {
    let r = with_exceptions();
    assert_eq!(export(&r, "collapsed", &by(&EXCEPTIONS)), "Main;Pay 3\n(unknown) 1\nPay 1\n");
    let dot = export(&r, "dot", &by(&EXCEPTIONS));
    assert!(dot.contains("Pay\\n80.0 % own, 80.0 % in all") && dot.contains("label=\"3\""), "{dot}");
    let mut out = Vec::new();
    let refused = exporter("hst").expect("a format").write(&r, &by(&EXCEPTIONS), &mut out).expect_err("times");
    assert!(refused.to_string().contains("--metric is not available for the view hst"), "{refused}");
    // Without calls the metric that was recorded is shown unasked.
    let mut only = r;
    only.processes[0].calls = None;
    assert_eq!(plain(&only, "collapsed"), "Main;Pay 3\n(unknown) 1\nPay 1\n");
}

#[test]
fn exports_of_paths_show_samples() {
    let mut taken = HandSampled::default();
    let main = taken.thread("", ThreadRole::Main);
    for (step, path) in (0..).zip(["App::Main > libc.so!read > kernel!read", "App::Main", "App::Main"]) {
        taken.cpu(main, step, path);
    }
    let r = taken.recording();
    let lines = |text: &str| text.lines().map(str::to_owned).collect::<std::collections::BTreeSet<_>>();
    let times = lines("App::Main 2000000\nApp::Main;read;read 1000000\n");
    assert_eq!(lines(&plain(&r, "collapsed")), times, "time unless asked");
    assert_eq!(lines(&export(&r, "collapsed", &by(&SAMPLES))), lines("App::Main 2\nApp::Main;read;read 1\n"));
    let late = with(Query { since_ns: Some(2 * STEP_NS), ..Query::default() });
    assert_eq!(export(&r, "collapsed", &late), "App::Main 1000000\n");
    let dot = plain(&r, "dot");
    assert!(dot.contains("App::Main\\n66.7 % own, 100.0 % in all"), "{dot}");
}

#[cfg(feature = "flamegraph")]
#[test]
fn a_flame_graph_of_exceptions_counts_them() {
    let svg = export(&with_exceptions(), "flamegraph", &by(&EXCEPTIONS));
    assert!(svg.contains("exceptions: dotnet"), "the subtitle");
    assert!(svg.contains("Pay (3 exceptions, 60.00%)"), "a frame and its number");
}

#[test]
fn collapsed_keeps_the_sum_whatever_is_left_out() {
    let r = recording(SHOP);
    let sum = |options: &ExportOptions| -> u64 {
        let text = export(&r, "collapsed", options);
        text.lines().map(|l| l.rsplit_once(' ').expect("a weight").1.parse::<u64>().expect("a number")).sum()
    };
    for min_share in [0.0, 0.1, 0.3, 0.9] {
        let options = ExportOptions { min_share: Some(min_share), ..ExportOptions::default() };
        let whole = if min_share > 0.0 { 2_251_000_030 } else { 2_251_000_095 };
        assert_eq!(sum(&options), whole, "{min_share}");
    }
}

#[test]
fn collapsed_tells_threads_and_processes_apart_when_asked() {
    let mut r = recording("thread 1 main\n  A 1 5\nthread 2\n  A 1 3\n");
    let apart = with(Query { per_thread: true, ..Query::default() });
    assert_eq!(export(&r, "collapsed", &apart), "thread 1 main;A 5\nthread_2;A 3\n");
    let mut second = recording("thread 1\n  B 1 1\n").processes.remove(0);
    second.pid = 8;
    r.processes.push(second);
    assert_eq!(plain(&r, "collapsed"), "process_7;A 8\nprocess_8;B 1\n");
}

#[test]
fn a_very_deep_path_ends_at_the_thousandth_frame() {
    let lines: String = (0..1500).map(|depth| format!("{}R 1 1\n", "  ".repeat(depth + 1))).collect();
    let text = plain(&recording(&format!("thread 1\n{lines}")), "collapsed");
    let first = text.lines().next().expect("a line");
    assert_eq!(first.matches('R').count(), 1000);
    assert!(first.ends_with(" 501"));
    assert_eq!(text.lines().count(), 1000);
}

/// The statements of a graph: nodes declared, edges drawn. Fails on anything that is not DOT.
fn parse_dot(text: &str) -> (Vec<String>, Vec<(String, String)>) {
    let (mut nodes, mut edges, mut open) = (Vec::new(), Vec::new(), 0);
    for line in text.lines().map(str::trim) {
        match line {
            "}" => open -= 1,
            _ if line.ends_with('{') => open += 1,
            _ => {
                let body = line.strip_suffix(';').expect("a statement ends with a semicolon");
                assert!(strings_are_closed(body), "{body}");
                let (head, attributes) = body.split_once(" [").unwrap_or((body, "]"));
                assert!(attributes.ends_with(']'), "{body}");
                match head.split_once(" -> ") {
                    Some((from, to)) => edges.push((from.to_owned(), to.to_owned())),
                    None if head.starts_with('n') && head != "node" => nodes.push(head.to_owned()),
                    None => {}
                }
            }
        }
    }
    assert_eq!(open, 0);
    assert!(edges.iter().all(|(from, to)| nodes.contains(from) && nodes.contains(to)));
    (nodes, edges)
}

fn strings_are_closed(text: &str) -> bool {
    let mut inside = false;
    let mut characters = text.chars();
    while let Some(c) = characters.next() {
        match c {
            '\\' if inside => {
                characters.next();
            }
            '"' => inside = !inside,
            _ => {}
        }
    }
    !inside
}

#[test]
fn dot_draws_what_is_large() {
    let mut r = recording("thread 1\n  Main 1 10\n    Pay 2 989\n    Tiny 9 1\n");
    r.processes[0].functions[2].name = "Pay\\\"quoted\"".into();
    let expected = r#"digraph calls {
  label="dotnet /app/Shop.dll\nleft out below 0.5 % of the time or past the limit: functions 1, edges 1";
  labelloc=b;
  node [shape=box, style=filled, fontname="sans-serif"];
  edge [fontname="sans-serif"];
  n0 [label="Pay\\\"quoted\"\n98.9 % own, 98.9 % in all", tooltip="Pay()", fillcolor="0.330 0.796 0.950"];
  n1 [label="Main\n1.0 % own, 100.0 % in all", tooltip="Main()", fillcolor="0.330 0.170 0.950"];
  n1 -> n0 [label="2", penwidth=4.96];
}
"#;
    assert_eq!(plain(&r, "dot"), expected);
    let all = ExportOptions { min_share: Some(0.0), ..ExportOptions::default() };
    let (nodes, edges) = parse_dot(&export(&r, "dot", &all));
    assert_eq!((nodes.len(), edges.len()), (3, 2));
}

#[test]
fn dot_puts_processes_into_boxes() {
    let mut r = recording(SHOP);
    let mut second = recording(SHOP).processes.remove(0);
    second.pid = 8;
    second.command = vec!["a \"b\"".into()];
    r.processes.push(second);
    let text = export(&r, "dot", &ExportOptions { min_share: Some(0.0), ..ExportOptions::default() });
    let (nodes, edges) = parse_dot(&text);
    assert_eq!((nodes.len(), edges.len()), (10, 10));
    assert!(text.contains("subgraph cluster_1 {\n  label=\"8 a \\\"b\\\"\";"));
    let without_time = plain(&recording("thread 1\n  A 1\n    B 1\n"), "dot");
    assert_eq!(parse_dot(&without_time).1.len(), 1);
}

#[cfg(feature = "flamegraph")]
#[test]
fn a_flame_graph_names_command_and_functions() {
    let mut r = recording(SHOP);
    r.run.command = vec!["dotnet".into(), "Shop.dll".into(), "<&>".into()];
    r.processes[0].functions[2].name = "List<T>::Add & more".into();
    let svg = plain(&r, "flamegraph");
    assert!(svg.starts_with("<?xml") && svg.trim_end().ends_with("</svg>"));
    assert!(svg.contains("wall time: dotnet Shop.dll &lt;&amp;&gt;"), "the subtitle");
    assert!(svg.contains("List&lt;T&gt;::Add &amp; more (2,250,000 \u{b5}s"), "a frame and its time");
    assert!(svg.contains("[suspended: GC]"));
    assert_eq!(svg, plain(&r, "flamegraph"));
    let calls = by(&CALLS);
    assert!(export(&r, "flamegraph", &calls).contains("calls: dotnet"));
}

#[cfg(feature = "flamegraph")]
#[test]
fn nothing_recorded_is_no_flame_graph() {
    let mut out = Vec::new();
    let written = exporter("flamegraph").expect("a format").write(&Recording::default(), &Default::default(), &mut out);
    assert!(matches!(written, Err(ExportError::Empty(_))));
    assert!(out.is_empty());
}

/// The formats that are made of call trees: others need recorded events, samples, the heap or
/// coverage, which no tree has.
fn of_trees() -> impl Iterator<Item = &'static &'static dyn Exporter> {
    let others = [
        ["calllog", "chrome", "cobertura", "firefox", "heapsnapshot", "lcov"].as_slice(),
        &["opencover", "otlp-metrics", "parquet-samples", "prometheus"],
    ];
    let others = others.concat();
    exporters().iter().filter(move |format| !others.contains(&format.name()))
}

#[test]
fn filters_apply_to_every_format() {
    let r = recording(SHOP);
    let query = Query { functions: vec![Pattern::parse("::libc*").expect("a pattern")], ..Query::default() };
    let options = ExportOptions { query, min_share: Some(0.0), ..ExportOptions::default() };
    for format in of_trees() {
        let mut out = Vec::new();
        format.write(&r, &options, &mut out).expect("written");
        if format.name() == "pprof" {
            let mut plain = Vec::new();
            std::io::Read::read_to_end(&mut flate2::read::GzDecoder::new(&out[..]), &mut plain).expect("gzip");
            out = plain;
        }
        // Not every format is text; names are in all of them.
        let text = String::from_utf8_lossy(&out);
        assert!(text.contains("libc!read") && !text.contains("Pay"), "{}", format.name());
    }
}

/// `--min-share` was ignored in silence by the formats that write everything.
#[test]
fn a_smallest_share_is_obeyed_or_refused_by_every_format() {
    let r = recording(SHOP);
    for format in exporters() {
        let with_share = |min_share: f64| {
            let options = ExportOptions { min_share: Some(min_share), ..ExportOptions::default() };
            check(*format, &options)?;
            let mut out = Vec::new();
            format.write(&r, &options, &mut out).map(|()| out)
        };
        match (with_share(0.0), with_share(0.4)) {
            (Ok(all), Ok(some)) => assert_ne!(all, some, "{}", format.name()),
            (Err(problem), _) => {
                let expected = format!("--min-share is not available for the view {}: ", format.name());
                assert!(problem.to_string().starts_with(&expected), "{problem}");
                assert!(!format.takes_min_share());
            }
            (Ok(_), Err(problem)) => panic!("{}: {problem}", format.name()),
        }
    }
}

#[test]
fn an_unknown_format_lists_the_known_ones() {
    let error = exporter("pdf").err().expect("no such format").to_string();
    assert!(error.starts_with("no format is called 'pdf'; there are "), "{error}");
    for format in exporters() {
        assert!(error.contains(format.name()));
        assert!(!format.description().is_empty() && !format.extension().is_empty());
    }
}

#[test]
fn a_full_disk_is_an_error() {
    struct Full;
    impl std::io::Write for Full {
        fn write(&mut self, _: &[u8]) -> std::io::Result<usize> {
            Err(std::io::ErrorKind::StorageFull.into())
        }
        fn flush(&mut self) -> std::io::Result<()> {
            Ok(())
        }
    }
    let r = recording(SHOP);
    for format in of_trees() {
        let written = format.write(&r, &ExportOptions::default(), &mut Full);
        assert!(matches!(written, Err(ExportError::Io(_))), "{}", format.name());
    }
}
