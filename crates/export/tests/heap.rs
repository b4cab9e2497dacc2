//! The heap in other programs' formats, from a heap made by hand.

use std::collections::BTreeMap;

use clrscope_analysis::{BYTES, Query, QueryProblem, Sort, ThreadSelector};
use clrscope_contract::request::{Glob, Pattern};
use clrscope_export::{ExportError, ExportOptions, check, exporter, exporters};
use clrscope_recording::model::{HeapType, Process, Recording, RootKind};
use clrscope_recording::testing::heap::HandmadeHeap;
use clrscope_testkit::not_run;
use serde_json::Value;

/// A static list of three orders, the first with a name; a weak table's value; a name with quotes.
fn recording() -> Recording {
    let mut process = Process { pid: 7, ..Process::default() };
    let mut heap = HandmadeHeap::default();
    let statics = heap.array("object[]", 8, &[""]);
    let list = heap.class("Shop.\"List\"", 32, &["items"]);
    let array = heap.array("Shop.Order[]", 8, &[""]);
    let order = heap.class("Shop.Order", 32, &["Name"]);
    let table = heap.array("Shop.Entry[]", 16, &["Key", "Value"]);
    let text = heap.with_content("string", HeapType::STRING);
    let of_statics = heap.object(statics, 1);
    let (of_list, of_array) = (heap.object(list, 0), heap.object(array, 3));
    let orders: Vec<u32> = (0..3).map(|_| heap.object(order, 0)).collect();
    let (name, of_table) = (heap.object_with(text, 4, 9), heap.object(table, 2));
    heap.root(RootKind::Handle, of_statics, 0, 0);
    heap.static_field(of_statics, 0, "Shop.Program.list", 0);
    heap.refer(of_statics, 0, of_list);
    heap.refer(of_list, 0, of_array);
    for (at, order) in (0..).zip(&orders) {
        heap.refer(of_array, at, *order);
    }
    heap.refer(orders[0], 0, name);
    heap.dependent(of_list, of_table);
    heap.refer(of_table, 3, orders[1]);
    heap.add_to(&mut process);
    Recording { processes: vec![process], ..Recording::default() }
}

fn export(format: &str, options: &ExportOptions) -> Result<Vec<u8>, ExportError> {
    let mut out = Vec::new();
    exporter(format).expect("a format").write(&recording(), options, &mut out)?;
    Ok(out)
}

fn numbers(list: &Value) -> Vec<usize> {
    list.as_array().expect("a list").iter().map(|number| number.as_u64().expect("a number") as usize).collect()
}

/// The lists of the meta data that give numbers their meaning.
fn words(document: &Value, key: &str) -> Vec<String> {
    let list = document["snapshot"]["meta"][key].as_array().expect("a list");
    list.iter().map(|word| word.as_str().unwrap_or_default().to_owned()).collect()
}

#[test]
fn a_heapsnapshot_says_what_the_format_asks_for() {
    let text = export("heapsnapshot", &ExportOptions::default()).expect("written");
    let document: Value = serde_json::from_slice(&text).expect("JSON");
    let (nodes, edges) = (numbers(&document["nodes"]), numbers(&document["edges"]));
    let strings: Vec<&str> =
        document["strings"].as_array().expect("strings").iter().filter_map(Value::as_str).collect();
    let (node_fields, edge_fields) = (words(&document, "node_fields").len(), words(&document, "edge_fields").len());
    assert_eq!(document["snapshot"]["node_count"], nodes.len() / node_fields);
    assert_eq!(document["snapshot"]["edge_count"], edges.len() / edge_fields);
    let kinds = |key: &str| -> Vec<String> {
        let types = document["snapshot"]["meta"][key][0].as_array().expect("types");
        types.iter().map(|word| word.as_str().expect("a word").to_owned()).collect()
    };
    let (node_kinds, edge_kinds) = (kinds("node_types"), kinds("edge_types"));
    let rows: Vec<&[usize]> = nodes.chunks(node_fields).collect();
    let ids: std::collections::BTreeSet<usize> = rows.iter().map(|row| row[2]).collect();
    assert_eq!(ids.len(), rows.len(), "ids are unique");
    assert_eq!(rows.iter().map(|row| row[4]).sum::<usize>(), edges.len() / edge_fields);
    assert_eq!(node_kinds[rows[0][0]], "synthetic");
    let mut found: Vec<(String, String, String)> = Vec::new();
    let mut next = edges.chunks(edge_fields);
    for row in &rows {
        for edge in next.by_ref().take(row[4]) {
            assert_eq!(edge[2] % node_fields, 0, "edges lead to the beginning of a node");
            let kind = &edge_kinds[edge[0]];
            let name = if kind == "element" { edge[1].to_string() } else { strings[edge[1]].to_owned() };
            let to = strings[rows[edge[2] / node_fields][1]].to_owned();
            found.push((strings[row[1]].to_owned(), format!("{kind} {name}"), to));
        }
    }
    let has = |from: &str, by: &str, to: &str| {
        let wanted = (from.to_owned(), by.to_owned(), to.to_owned());
        assert!(found.contains(&wanted), "{wanted:?} in {found:?}");
    };
    has("", "shortcut static field Shop.Program.list", "Shop.\"List\"");
    has("Shop.\"List\"", "property items", "Shop.Order[]");
    has("Shop.Order[]", "element 2", "Shop.Order");
    has("Shop.Order", "property Name", "string");
    has("Shop.\"List\"", "internal (value of a weak table)", "Shop.Entry[]");
    has("Shop.Entry[]", "property [].Value", "Shop.Order");
    let bytes: usize = rows.iter().map(|row| row[3]).sum();
    assert_eq!(bytes as u64, recording().processes[0].snapshots[0].bytes);
}

#[test]
fn stacks_of_the_heap_are_paths_of_dominators_weighed_by_bytes() {
    let text = String::from_utf8(export("collapsed", &ExportOptions::default()).expect("written")).expect("UTF-8");
    let lines: BTreeMap<&str, u64> = text
        .lines()
        .map(|line| line.rsplit_once(' ').expect("a weight"))
        .map(|(a, b)| (a, b.parse().unwrap()))
        .collect();
    assert_eq!(lines["Shop.\"List\";Shop.Order[];Shop.Order"], 64);
    assert_eq!(lines["Shop.\"List\";Shop.Order[];Shop.Order;string"], 32);
    // Held by the array and by the weak table's value, and so by the list alone.
    assert_eq!(lines["Shop.\"List\";Shop.Order"], 32);
    assert_eq!(lines.values().sum::<u64>(), recording().processes[0].snapshots[0].bytes);
    let query = Query { types: vec![Glob::new("object[]")], ..Query::default() };
    let one = export("collapsed", &ExportOptions { query, ..ExportOptions::default() }).expect("written");
    assert_eq!(String::from_utf8(one).expect("UTF-8"), "object[] 32\n");
}

/// Fields of a message: number, and a number or bytes.
fn fields(mut bytes: &[u8]) -> Vec<(u64, u64, &[u8])> {
    fn varint(bytes: &mut &[u8]) -> u64 {
        let (mut value, mut shift) = (0, 0);
        loop {
            let (first, rest) = bytes.split_first().expect("a byte");
            *bytes = rest;
            value |= u64::from(first & 0x7f) << shift;
            shift += 7;
            if first & 0x80 == 0 {
                return value;
            }
        }
    }
    let mut fields = Vec::new();
    while !bytes.is_empty() {
        let key = varint(&mut bytes);
        let value = varint(&mut bytes);
        match key & 7 {
            0 => fields.push((key >> 3, value, &[][..])),
            2 => {
                let (inner, rest) = bytes.split_at(value as usize);
                fields.push((key >> 3, 0, inner));
                bytes = rest;
            }
            other => panic!("wire type {other}"),
        }
    }
    fields
}

#[test]
fn pprof_has_each_path_with_its_bytes() {
    let profile = export("pprof", &ExportOptions::default()).expect("written");
    let mut plain = Vec::new();
    std::io::Read::read_to_end(&mut flate2::read::GzDecoder::new(&profile[..]), &mut plain).expect("gzip");
    let profile = plain;
    let all = fields(&profile);
    let of = |number: u64| all.iter().filter(move |(field, ..)| *field == number);
    let strings: Vec<&str> = of(6).map(|(.., text)| std::str::from_utf8(text).expect("UTF-8")).collect();
    assert_eq!(strings[0], "");
    let (.., sample_type) = of(1).next().expect("a type");
    let named: Vec<&str> = fields(sample_type).iter().map(|(_, number, _)| strings[*number as usize]).collect();
    assert_eq!(named, ["heap", "bytes"]);
    let names: BTreeMap<u64, &str> = of(5)
        .map(|(.., function)| fields(function))
        .map(|function| (function[0].1, strings[function[1].1 as usize]))
        .collect();
    assert_eq!((names.len(), of(4).count()), (6, 6));
    let mut sum = 0;
    let mut paths = Vec::new();
    for (.., sample) in of(2) {
        let sample = fields(sample);
        // The numbers are small: each is one byte of what is packed, but for sizes.
        let path: Vec<&str> = sample[0].2.iter().map(|&location| names[&u64::from(location)]).collect();
        let (value, _) = sample[1]
            .2
            .iter()
            .fold((0, 0), |(value, shift), byte| (value | u64::from(byte & 0x7f) << shift, shift + 7));
        sum += value;
        paths.push(path.join("<"));
    }
    assert_eq!(sum, recording().processes[0].snapshots[0].bytes);
    assert!(paths.contains(&"string<Shop.Order<Shop.Order[]<Shop.\"List\"".to_owned()), "{paths:?}");
}

#[test]
fn a_snapshot_that_is_not_there_is_one_clear_failure() {
    let options = ExportOptions { snapshot: Some(4), ..ExportOptions::default() };
    for format in ["heapsnapshot", "collapsed", "pprof"] {
        let problem = export(format, &options).expect_err("no such snapshot").to_string();
        assert_eq!(problem, "no snapshot of the heap has the number 4; the recording has 1");
    }
}

#[test]
fn options_that_exports_of_the_heap_have_no_use_for_are_refused() {
    let set = |change: fn(&mut ExportOptions)| {
        let mut options = ExportOptions { snapshot: Some(1), ..ExportOptions::default() };
        change(&mut options);
        options
    };
    let refused: [(&str, ExportOptions); 9] = [
        ("--thread", set(|options| options.query.threads = vec![ThreadSelector::parse("1")])),
        ("--part", set(|options| options.query.parts = vec!["load".to_owned()])),
        ("--since", set(|options| options.query.since_ns = Some(1))),
        ("--until", set(|options| options.query.until_ns = Some(1))),
        ("--sort", set(|options| options.query.sort = Some(Sort::Name))),
        ("--raw", set(|options| options.query.raw = true)),
        ("--just-my-code", set(|options| options.query.just_my_code = true)),
        ("--metric", set(|options| options.query.metric = Some(&BYTES))),
        ("--function", set(|options| options.query.functions = vec![Pattern::parse("Run").expect("a pattern")])),
    ];
    // Stacks have these, the whole heap has not.
    let of_stacks: [(&str, ExportOptions); 4] = [
        ("--type", set(|options| options.query.types = vec![Glob::new("object[]")])),
        ("--module", set(|options| options.query.modules = vec![Glob::new("Shop")])),
        ("--limit", set(|options| options.query.limit = Some(1))),
        ("--min-share", set(|options| options.min_share = Some(0.5))),
    ];
    for format in exporters().iter().filter(|format| format.shows_heap()).map(|format| format.name()) {
        let whole = export(format, &set(|_| ())).expect("written");
        for (option, options) in &refused {
            let problem = export(format, options).expect_err(option).to_string();
            assert!(problem.starts_with(&format!("{option} is not available for the view {format}: ")), "{problem}");
        }
        for (option, options) in &of_stacks {
            match (format, export(format, options)) {
                ("heapsnapshot", Err(problem)) => assert!(problem.to_string().starts_with(option), "{problem}"),
                // Where nothing is left, some formats have no file.
                (_, Err(problem)) => assert!(matches!(problem, ExportError::Empty(_)), "{option}: {problem}"),
                (_, Ok(written)) => assert!(written != whole, "{option} is ignored by {format}"),
            }
        }
    }
    for format in exporters() {
        let is_taken = check(*format, &set(|_| ())).is_ok();
        assert_eq!(is_taken, format.shows_heap(), "{}", format.name());
    }
    // A snapshot where none was recorded.
    let mut out = Vec::new();
    let none = exporter("collapsed").expect("a format").write(&Recording::default(), &set(|_| ()), &mut out);
    assert!(matches!(none, Err(ExportError::Query(QueryProblem::NotRecorded { .. }))), "{none:?}");
}

#[test]
fn one_heap_of_several_processes_is_chosen_and_not_the_first_in_silence() {
    let mut several = recording();
    several.processes.push(Process { pid: 8, ..several.processes[0].clone() });
    let write = |options: &ExportOptions| {
        let mut out = Vec::new();
        exporter("heapsnapshot").expect("a format").write(&several, options, &mut out).map(|()| out)
    };
    let problem = write(&ExportOptions::default()).expect_err("two heaps").to_string();
    assert!(problem.ends_with("choose one with --pid"), "{problem}");
    let query = Query { pid: Some(8), ..Query::default() };
    let one = write(&ExportOptions { query, ..ExportOptions::default() }).expect("written");
    assert_eq!(one, export("heapsnapshot", &ExportOptions::default()).expect("written"));
}

/// Version of the library that reads the format in the test below.
const LIBRARY: &str = "v8-heapsnapshot@1.3.1";
/// Program that loads a snapshot with the library: number of nodes and edges, and who refers to the
/// orders by what.
const PROGRAM: &str = "
const { parseSnapshot } = require('v8-heapsnapshot');
const said = [];
console.warn = console.error = (text) => said.push(text);
parseSnapshot(require('fs').readFileSync(process.argv[2], 'utf8')).then((snapshot) => {
  const orders = snapshot.nodes.filter((node) => node.name === 'Shop.Order');
  const by = orders.flatMap((node) => node.in_edges.map((edge) => `${edge.from.name} ${edge.type} ${edge.name}`));
  const bytes = snapshot.nodes.reduce((sum, node) => sum + node.self_size, 0);
  console.log(JSON.stringify({ nodes: snapshot.nodes.length, edges: snapshot.edges.length, bytes, by, said }));
});
";

/// Runs a command; what it printed, where it is there and succeeds.
fn run(folder: &std::path::Path, program: &str, arguments: &[&str]) -> Option<String> {
    let done = std::process::Command::new(program).args(arguments).current_dir(folder).output().ok()?;
    done.status.success().then(|| String::from_utf8_lossy(&done.stdout).into_owned())
}

#[test]
fn an_independent_library_loads_a_heapsnapshot() {
    let folder = std::path::Path::new(env!("CARGO_TARGET_TMPDIR")).join("heapsnapshot");
    std::fs::create_dir_all(&folder).expect("a folder");
    if run(&folder, "node", &["--version"]).is_none() {
        return not_run("loading a heapsnapshot with a library of npm: there is no node");
    }
    let library = folder.join("node_modules/v8-heapsnapshot/package.json");
    let install = ["install", "--no-audit", "--no-fund", "--ignore-scripts", "--prefix", ".", LIBRARY];
    if !library.exists() && run(&folder, "npm", &install).is_none() {
        return not_run("loading a heapsnapshot with a library of npm: npm can't install it here");
    }
    std::fs::write(folder.join("load.js"), PROGRAM).expect("written");
    let text = export("heapsnapshot", &ExportOptions::default()).expect("written");
    std::fs::write(folder.join("shop.heapsnapshot"), text).expect("written");
    let printed = run(&folder, "node", &["load.js", "shop.heapsnapshot"]).expect("the library loads it");
    let found: Value = serde_json::from_str(&printed).expect("JSON");
    let snapshot = recording().processes.remove(0).snapshots.remove(0);
    assert_eq!(found["said"], Value::Array(Vec::new()), "the library knows every part of the format");
    assert_eq!((found["nodes"].as_u64(), found["bytes"].as_u64()), (Some(snapshot.objects + 1), Some(snapshot.bytes)));
    let by: std::collections::BTreeSet<&str> =
        found["by"].as_array().expect("a list").iter().filter_map(Value::as_str).collect();
    let expected = [
        "Shop.Entry[] property [].Value",
        "Shop.Order[] element 0",
        "Shop.Order[] element 1",
        "Shop.Order[] element 2",
    ];
    assert_eq!(by.into_iter().collect::<Vec<_>>(), expected);
}
