//! Tables and messages read by libraries of others: DuckDB, ClickHouse (chdb) and OpenTelemetry's
//! own classes, from PyPI.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Command;

use clrscope_analysis::{Query, SAMPLES};
use clrscope_contract::labels::Label;
use clrscope_contract::request::Pattern;
use clrscope_export::{ExportOptions, exporter};
use clrscope_recording::events::{Kind, Tag, Value as EventValue};
use clrscope_recording::model::{EventArena, Recording, ThreadRole, Tier};
use clrscope_recording::testing::chunk::HandmadeChunk;
use clrscope_recording::testing::samples::{HandSampled, STEP_NS};
use clrscope_testkit::{from_pypi, not_run};
use serde_json::{Value, json};

/// Recordings in the folder that is asked about.
const RECORDINGS: u64 = 100;
/// The recording that took longer.
const SLOW: u64 = 7;

/// Samples of a millisecond each: six of the main thread, four of another; ten more where the
/// recording is slow.
fn recording(number: u64) -> Recording {
    let mut taken = HandSampled::default();
    let (main, mailer) = (taken.thread("", ThreadRole::Main), taken.thread("mailer", ThreadRole::User));
    let total = "App::Main > App.Cart::Total";
    let concat = "App::Main > App.Cart::Total > System.String::Concat";
    let mut paths = vec![concat, concat, concat, total, total, "App::Main"];
    paths.extend(std::iter::repeat_n(total, if number == SLOW { 10 } else { 0 }));
    for (step, path) in (0..).zip(paths) {
        taken.cpu(main, step, path);
    }
    for step in 0..4 {
        taken.cpu(mailer, step, "System.Threading.Thread::Start > App.Mail::Send > App.Mail::Send");
    }
    let mut recording = taken.recording();
    recording.run.started_unix_ns = number;
    recording
}

fn export(recording: &Recording, format: &str, file: &Path) {
    let mut out = Vec::new();
    exporter(format).expect("a format").write(recording, &ExportOptions::default(), &mut out).expect("written");
    std::fs::write(file, out).expect("a file");
}

/// A folder of this test, empty.
fn folder(name: &str) -> PathBuf {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
    let _ = std::fs::remove_dir_all(&folder);
    std::fs::create_dir_all(&folder).expect("a folder");
    folder
}

/// Runs a program in Python with packages from PyPI, as pip takes them; the JSON that it prints,
/// nothing where they are not to be had.
fn python(packages: &str, program: &str, folder: &Path) -> Option<Value> {
    let packages = from_pypi(packages, Path::new(env!("CARGO_TARGET_TMPDIR")))?;
    let docs = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/parquet.md");
    let mut command = Command::new("python3");
    command.args(["-c", program, docs]).current_dir(folder).env("PYTHONPATH", packages);
    let done = command.output().expect("Python was there a moment ago");
    assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
    Some(serde_json::from_slice(&done.stdout).expect("JSON"))
}

/// The queries of the documentation over all files of the folder, and the types of the columns, by
/// DuckDB.
const DUCKDB: &str = "
import duckdb, json, re, sys
text = open(sys.argv[1]).read().split('## Ten questions')[1]
db = duckdb.connect()
db.execute(\"CREATE VIEW paths AS SELECT * FROM read_parquet('*.paths.parquet')\")
db.execute(\"CREATE VIEW samples AS SELECT * FROM read_parquet('*.samples.parquet')\")
answers = [db.execute(query).fetchall() for query in re.findall(r'```sql\\n(.*?)```', text, re.S)]
columns = {table: db.execute(f'DESCRIBE {table}').fetchall() for table in ['paths', 'samples']}
print(json.dumps({'answers': answers, 'columns': {name: [row[:2] for row in rows] for name, rows in columns.items()}}))
";

/// Queries and types by ClickHouse within Python. The package also wants two libraries for tables
/// of its own, which nothing here asks for.
const CHDB: &str = "
import json, re, sys
from unittest.mock import MagicMock
for unused in ['pyarrow', 'pandas', 'numpy']:
    sys.modules[unused] = MagicMock()
import chdb.session
text = open(sys.argv[1]).read().split('## Ten questions')[1]
db = chdb.session.Session()
def rows(query):
    found = json.loads(str(db.query(query, 'JSONCompact')))
    kinds = [float if of['type'] == 'Float64' else lambda value: value for of in found['meta']]
    return [[kind(value) for kind, value in zip(kinds, row)] for row in found['data']]
db.query(\"CREATE VIEW paths AS SELECT * FROM file('*.paths.parquet')\")
db.query(\"CREATE VIEW samples AS SELECT * FROM file('*.samples.parquet')\")
answers = [rows(query) for query in re.findall(r'```sql\\n(.*?)```', text, re.S)]
columns = {table: rows(f'DESCRIBE {table}') for table in ['paths', 'samples']}
print(json.dumps({'answers': answers, 'columns': {name: [row[:2] for row in all] for name, all in columns.items()}}))
";

/// A folder of a hundred recordings.
fn recordings(name: &str) -> PathBuf {
    let folder = folder(name);
    for number in 0..RECORDINGS {
        let recording = recording(number);
        export(&recording, "parquet", &folder.join(format!("{number}.paths.parquet")));
        export(&recording, "parquet-samples", &folder.join(format!("{number}.samples.parquet")));
    }
    folder
}

#[test]
fn duckdb_answers_the_questions_of_the_documentation_over_a_folder_of_recordings() {
    match python("duckdb==2.0.0", DUCKDB, &recordings("parquet-duckdb")) {
        Some(said) => are_answered(&said, ["VARCHAR", "BIGINT"]),
        None => not_run("SQL over exports: pip can't install DuckDB here"),
    }
}

#[test]
fn clickhouse_answers_the_questions_of_the_documentation_over_a_folder_of_recordings() {
    // The small build of the package `chdb`.
    match python("chdb-core-lite==26.5.0 --no-deps", CHDB, &recordings("parquet-chdb")) {
        Some(said) => are_answered(&said, ["String", "Int64"]),
        None => not_run("SQL over exports: pip can't install chdb here"),
    }
}

/// The answers that the recordings give, and columns as they are documented, whose types are called
/// like these.
fn are_answered(said: &Value, [text, integer]: [&str; 2]) {
    let answers = said["answers"].as_array().expect("answers");
    assert_eq!(answers.len(), 10);
    let functions = json!([
        ["App.Mail::Send", 400.0],
        ["System.String::Concat", 300.0],
        ["App.Cart::Total", 210.0],
        ["App::Main", 100.0],
        // Paths on which nothing ends have rows for what lies below them.
        ["System.Threading.Thread::Start", 0.0],
    ]);
    assert_eq!(answers[0], functions);
    assert_eq!(answers[1][0][0], "own");
    assert_eq!(answers[2], json!([[400.0]]), "recursion once");
    assert_eq!(answers[3], json!([["App::Main", 510.0]]));
    assert_eq!(answers[4][0], json!(["App", 710.0]));
    assert_eq!(answers[5], json!([[1, "", 610.0], [2, "mailer", 400.0]]));
    assert_eq!(answers[6].as_array().map(Vec::len), Some(RECORDINGS as usize));
    assert_eq!(answers[6][0], json!(["dotnet app.dll", SLOW, 20.0]));
    assert_eq!(answers[7], json!([[SLOW, "App.Cart::Total", 6.0]]));
    assert_eq!(answers[8], json!([[0, 1010.0]]));
    assert_eq!(answers[9], json!(functions.as_array().expect("rows")[..4]));
    // The columns that are documented, in their order.
    let docs = include_str!("../../../docs/parquet.md");
    let documented = |table: &str| -> Vec<Value> {
        let rows = docs.lines().filter(|line| line.starts_with("| `"));
        let cells = rows.map(|line| line.split('|').map(str::trim).collect::<Vec<_>>());
        let mine = cells.filter(|cells| cells[3] == "both" || cells[3] == format!("`{table}`"));
        let kind = |word: &str| if word == "text" { text } else { integer };
        mine.map(|cells| json!([cells[1].trim_matches('`'), kind(cells[2])])).collect()
    };
    assert_eq!(said["columns"]["paths"], json!(documented("parquet")));
    assert_eq!(said["columns"]["samples"], json!(documented("parquet-samples")));
}

/// Reads the message, follows every number, and adds up: amounts by metric, thread and path.
const SUMS: &str = "
import json
from opentelemetry.proto.profiles.v1development.profiles_pb2 import ProfilesData
data = ProfilesData()
data.ParseFromString(open('app.otlp', 'rb').read())
tables, sums, counts, times, profile_ids = data.dictionary, {}, {}, 0, []
text = tables.string_table
assert text[0] == '' and len(set(text)) == len(text)
for table in [tables.mapping_table, tables.location_table, tables.function_table, tables.link_table,
              tables.attribute_table, tables.stack_table]:
    assert table[0].ByteSize() == 0
stacks = [tuple(stack.location_indices) for stack in tables.stack_table]
assert len(set(stacks)) == len(stacks)
for resource in data.resource_profiles:
    names = {of.key: of.value for of in resource.resource.attributes}
    assert names['process.pid'].int_value == 7 and names['process.runtime.name'].string_value == '.NET'
    for scope in resource.scope_profiles:
        assert scope.scope.name == 'clrscope'
        for profile in scope.profiles:
            pair = lambda of: text[of.type_strindex] + ' ' + text[of.unit_strindex]
            kind, of_counts = pair(profile.sample_type), pair(profile.sample_type) == 'samples count'
            if profile.period and kind in ['samples count', 'cpu nanoseconds']:
                assert (pair(profile.period_type), profile.period) == ('cpu nanoseconds', 1000000)
            assert profile.period or not of_counts
            if profile.profile_id:
                profile_ids.append(profile.profile_id.hex())
                assert len(profile.profile_id) == 16
            for sample in profile.samples:
                attributes = [tables.attribute_table[at] for at in sample.attribute_indices]
                attributes = {text[of.key_strindex]: of.value.string_value for of in attributes}
                thread, request = attributes['thread.name'], attributes.get('clrscope.request')
                link = tables.link_table[sample.link_index]
                ids = f' in {link.trace_id.hex()} {link.span_id.hex()}' if sample.link_index else ''
                name = lambda line: text[tables.function_table[line.function_index].name_strindex]
                locations = [tables.location_table[at] for at in stacks[sample.stack_index]]
                path = ';'.join(' in '.join(map(name, location.lines)) for location in locations)
                key = f'{kind} {thread} {path}' + (f' for {request}' if request else '') + ids
                if of_counts:
                    assert len(sample.values) == 1 and not sample.timestamps_unix_nano
                    counts[key] = counts.get(key, 0) + sample.values[0]
                    continue
                sums[key] = sums.get(key, 0) + sum(sample.values)
                assert not sample.timestamps_unix_nano or len(sample.timestamps_unix_nano) == len(sample.values)
                times += len(sample.timestamps_unix_nano)
for key, count in counts.items():
    assert sums[key.replace('samples count', 'cpu nanoseconds')] == count * 1000000, key
assert len(set(profile_ids)) == len(profile_ids)
print(json.dumps({'sums': sums, 'times': times, 'counted': sum(counts.values()), 'ids': len(profile_ids)}))
";

#[test]
fn the_classes_of_opentelemetry_read_profiles() {
    let folder = folder("otlp");
    export(&recording(0), "otlp", &folder.join("app.otlp"));
    let Some(said) = python("opentelemetry-proto==1.45.2", SUMS, &folder) else {
        return not_run("reading OpenTelemetry profiles: pip can't install its classes here");
    };
    let expected = json!({
        "cpu nanoseconds main (thread 1, OS thread 101) System.String::Concat;App.Cart::Total;App::Main": 3_000_000,
        "cpu nanoseconds main (thread 1, OS thread 101) App.Cart::Total;App::Main": 2_000_000,
        "cpu nanoseconds main (thread 1, OS thread 101) App::Main": 1_000_000,
        "cpu nanoseconds mailer (thread 2, OS thread 102) App.Mail::Send;App.Mail::Send;System.Threading.Thread::Start":
            4_000_000,
    });
    assert_eq!(said["sums"], expected);
    assert_eq!(said["times"], 10, "each sample has its time");
    assert_eq!((&said["counted"], &said["ids"]), (&json!(10), &json!(0)), "a recording from before has no identifier");
    // A method that the compiler put into others is a line of their locations.
    let mut inlined = with_inlined();
    inlined.run.id = "fd23a8a7-e067-40d1-bd75-628657db4f24".to_owned();
    export(&inlined, "otlp", &folder.join("app.otlp"));
    let said = python("opentelemetry-proto==1.45.2", SUMS, &folder).expect("the classes");
    let expected = json!({
        "cpu nanoseconds main (thread 1, OS thread 101) System.String::Concat;App.Tax::Of in App.Cart::Total in App::Main": 2_000_000,
        "cpu nanoseconds main (thread 1, OS thread 101) App.Tax::Of in App.Cart::Total in App::Main": 1_000_000,
        "cpu nanoseconds main (thread 1, OS thread 101) App.Cart::Total in App::Main": 1_000_000,
        "cpu nanoseconds main (thread 1, OS thread 101) App::Main": 1_000_000,
        "cpu nanoseconds mailer (thread 2, OS thread 102) App.Tax::Of in App.Mail::Send;App.Mail::Send": 1_000_000,
    });
    assert_eq!(said["sums"], expected);
    // Paths of calls, which have no times.
    let tree = clrscope_recording::testing::ascii_trees::recording("thread 1 main\n  Main 1 10\n    Pay 2 5\n");
    export(&tree, "otlp", &folder.join("app.otlp"));
    let said = python("opentelemetry-proto==1.45.2", SUMS, &folder).expect("the classes");
    assert_eq!(said["sums"]["wall nanoseconds main (thread 1, OS thread 1001) Pay;Main"], 5);
    assert_eq!(said["sums"]["calls count main (thread 1, OS thread 1001) Pay;Main"], 2);
    assert_eq!(said["times"], 0);
}

/// Samples of a millisecond each, in which two methods have no code of their own: `App.Tax::Of` and
/// `App.Cart::Total`.
fn with_inlined() -> Recording {
    let mut taken = HandSampled::default();
    let (main, mailer) = (taken.thread("", ThreadRole::Main), taken.thread("mailer", ThreadRole::User));
    ["App.Tax::Of", "App.Cart::Total"].into_iter().for_each(|method| taken.tier(method, Tier::Inlined));
    let tax = "App::Main > App.Cart::Total > App.Tax::Of";
    let concat = "App::Main > App.Cart::Total > App.Tax::Of > System.String::Concat";
    for (step, path) in (0..).zip([concat, concat, tax, "App::Main > App.Cart::Total", "App::Main"]) {
        taken.cpu(main, step, path);
    }
    taken.cpu(mailer, 5, "App.Mail::Send > App.Mail::Send > App.Tax::Of");
    taken.recording()
}

/// The samples of [`recording`]. The first three of the main thread were taken for a request with a
/// trace, and the first two of the other thread for one without.
fn with_requests() -> Recording {
    let mut recording = recording(0);
    let process = &mut recording.processes[0];
    let names = HandmadeChunk::new(0, 1, 0).put(
        Kind::REQUEST_NAME,
        &[(Tag::ROUTE, 1_u64.into()), (Tag::DIRECTION, 0_u64.into()), (Tag::NAME, "GET /carts/{id}".into())],
    );
    let trace: Vec<u8> = (1..=24).collect();
    let ended = |chunk: HandmadeChunk, id: u64, more: &[(Tag, EventValue<'_>)]| {
        let fields = [(Tag::ROUTE, 1_u64.into()), (Tag::REQUEST, id.into()), (Tag::DURATION, 9_u64.into())];
        chunk.put(Kind::REQUEST_ENDED, &[&fields[..], more].concat())
    };
    let requests = ended(ended(names, 1, &[(Tag::TRACE, EventValue::Bytes(&trace))]), 2, &[]);
    let works = |thread: u32, id: u64, until_ns: u64| {
        let begun = HandmadeChunk::new(thread, 2, 0).put(Kind::REQUEST_ON_THREAD, &[(Tag::REQUEST, id.into())]);
        begun.after(until_ns).put(Kind::REQUEST_ON_THREAD, &[]).finish()
    };
    let chunks = vec![requests.finish(), works(0, 1, 3 * STEP_NS - 1), works(1, 2, 2 * STEP_NS - 1)];
    process.events.push(EventArena { instrument: "requests".into(), chunks });
    recording
}

#[test]
fn samples_in_profiles_of_others_know_their_request() {
    let folder = folder("requests");
    let recording = with_requests();
    export(&recording, "otlp", &folder.join("app.otlp"));
    export(&recording, "pprof", &folder.join("app.pb.gz"));
    let main = "cpu nanoseconds main (thread 1, OS thread 101)";
    let mailer = "cpu nanoseconds mailer (thread 2, OS thread 102)";
    let path = "App.Mail::Send;App.Mail::Send;System.Threading.Thread::Start";
    let traced = "for GET /carts/{id} in 0102030405060708090a0b0c0d0e0f10 1112131415161718";
    match python("opentelemetry-proto==1.45.2", SUMS, &folder) {
        None => not_run("reading OpenTelemetry profiles: pip can't install its classes here"),
        Some(said) => {
            let expected = json!({
                format!("{main} System.String::Concat;App.Cart::Total;App::Main {traced}"): 3_000_000,
                format!("{main} App.Cart::Total;App::Main"): 2_000_000,
                format!("{main} App::Main"): 1_000_000,
                format!("{mailer} {path} for GET /carts/{{id}}"): 2_000_000,
                format!("{mailer} {path}"): 2_000_000,
            });
            assert_eq!(said["sums"], expected);
        }
    }
    match python("protobuf==6.33.0", PPROF, &folder) {
        None => not_run("reading profiles of pprof: pip can't install the library of protocol buffers here"),
        Some(said) => {
            let path = "System.Threading.Thread::Start;App.Mail::Send;App.Mail::Send";
            let expected = json!({
                "App::Main;App.Cart::Total;System.String::Concat | request: GET /carts/{id}": 3_000_000,
                "App::Main;App.Cart::Total": 2_000_000,
                "App::Main": 1_000_000,
                format!("{path} | request: GET /carts/{{id}}"): 2_000_000,
                path: 2_000_000,
            });
            assert_eq!(said["sums"], expected);
        }
    }
    export(&recording, "parquet-samples", &folder.join("app.samples.parquet"));
    let asked = "
import json, duckdb
rows = duckdb.sql(\"SELECT thread_id, request, trace_id, span_id, count(*) FROM 'app.samples.parquet' GROUP BY ALL ORDER BY ALL\")
print(json.dumps(rows.fetchall()))
";
    match python("duckdb==2.0.0", asked, &folder) {
        None => not_run("SQL over exports: pip can't install duckdb here"),
        Some(said) => {
            let (trace, span) = ("0102030405060708090a0b0c0d0e0f10", "1112131415161718");
            let route = "GET /carts/{id}";
            let expected =
                json!([[1, "", "", "", 3], [1, route, trace, span, 3], [2, "", "", "", 2], [2, route, "", "", 2]]);
            assert_eq!(said, expected);
        }
    }
}

/// Reads `Profile` of `profile.proto` by the library of protocol buffers, follows every number, and
/// adds up by path: locations are joined by semicolons, the outermost first; the lines of each, the
/// innermost first, by ` in `.
const PPROF: &str = "
import gzip, json
from google.protobuf import descriptor_pb2, descriptor_pool, message_factory
file = descriptor_pb2.FileDescriptorProto(name='profile.proto', package='perftools.profiles', syntax='proto3')
kinds = {'int': 3, 'uint': 4, 'text': 9}
for name, fields in {
    'ValueType': {'type': (1, 'int'), 'unit': (2, 'int')},
    'Label': {'key': (1, 'int'), 'str': (2, 'int')},
    'Sample': {'location_id': (1, 'uint', 3), 'value': (2, 'int', 3), 'label': (3, 'Label', 3)},
    'Line': {'function_id': (1, 'uint'), 'line': (2, 'int')},
    'Location': {'id': (1, 'uint'), 'mapping_id': (2, 'uint'), 'line': (4, 'Line', 3)},
    'Mapping': {'id': (1, 'uint'), 'filename': (5, 'int'), 'build_id': (6, 'int')},
    'Function': {'id': (1, 'uint'), 'name': (2, 'int'), 'system_name': (3, 'int')},
    'Profile': {'sample_type': (1, 'ValueType', 3), 'sample': (2, 'Sample', 3), 'location': (4, 'Location', 3),
                'function': (5, 'Function', 3), 'string_table': (6, 'text', 3), 'duration_nanos': (10, 'int'),
                'mapping': (3, 'Mapping', 3), 'time_nanos': (9, 'int'), 'period_type': (11, 'ValueType'),
                'period': (12, 'int'), 'comment': (13, 'int', 3), 'default_sample_type': (14, 'int')},
}.items():
    of = file.message_type.add(name=name)
    for field, (number, kind, *label) in fields.items():
        made = of.field.add(name=field, number=number, type=kinds.get(kind, 11), label=(label or [1])[0])
        if kind not in kinds: made.type_name = '.perftools.profiles.' + kind
pool = descriptor_pool.DescriptorPool()
pool.Add(file)
Profile = message_factory.GetMessageClass(pool.FindMessageTypeByName('perftools.profiles.Profile'))
profile = Profile()
profile.ParseFromString(gzip.open('app.pb.gz').read())
text, sums = profile.string_table, {}
names = {of.id: text[of.name] for of in profile.function}
locations = {of.id: ' in '.join(names[line.function_id] for line in of.line) for of in profile.location}
assert text[0] == '' and 0 not in locations and len(locations) == len(profile.location) == len(set(locations.values()))
kinds = [text[of.type] + ' ' + text[of.unit] for of in profile.sample_type]
shown = [text[of.type] for of in profile.sample_type].index(text[profile.default_sample_type])
threads, totals = set(), [0] * len(kinds)
assert len(set(text)) == len(text)
for sample in profile.sample:
    path = ';'.join(locations[at] for at in reversed(sample.location_id))
    labels = {text[label.key]: text[label.str] for label in sample.label}
    assert len(sample.value) == len(profile.sample_type)
    thread = (labels.pop('thread'), labels.pop('thread_id'))
    threads.add(thread)
    path += ''.join(f' | {key}: {value}' for key, value in labels.items())
    sums[path] = sums.get(path, 0) + sample.value[shown]
    for at, value in enumerate(sample.value):
        totals[at] += value
mappings = {of.id: text[of.filename] for of in profile.mapping}
files = {locations[of.id]: mappings[of.mapping_id] for of in profile.location if of.mapping_id}
pair = lambda of: text[of.type] + ' ' + text[of.unit]
print(json.dumps({'sums': sums, 'kind': kinds[shown], 'kinds': kinds, 'totals': totals, 'threads': sorted(threads),
    'files': files, 'period': [pair(profile.period_type), profile.period], 'time': profile.time_nanos,
    'duration': profile.duration_nanos, 'comments': [text[of] for of in profile.comment]}))
";

#[test]
fn pprof_has_inlined_methods_as_lines_and_the_paths_of_collapsed() {
    let folder = folder("pprof");
    let (mut recording, file) = (with_inlined(), folder.join("app.pb.gz"));
    recording.run.started_unix_ns = 1_795_000_000_000_000_000;
    let label = Label { key: "service.name".into(), value: "shop".into() };
    recording.processes[0].identity.labels.push(label);
    export(&recording, "pprof", &file);
    let Some(said) = python("protobuf==6.33.0", PPROF, &folder) else {
        return not_run("reading profiles of pprof: pip can't install the library of protocol buffers here");
    };
    assert_eq!(said["kind"], "cpu nanoseconds");
    assert_eq!(said["kinds"], json!(["samples count", "cpu nanoseconds"]));
    assert_eq!(said["totals"], json!([6, 6_000_000]));
    assert_eq!(said["threads"], json!([["mailer", "102"], ["main", "101"]]));
    assert_eq!(said["period"], json!(["cpu nanoseconds", STEP_NS]));
    let run = &recording.run;
    assert_eq!((&said["time"], &said["duration"]), (&json!(run.started_unix_ns), &json!(run.duration_ns)));
    assert!(said["comments"].as_array().expect("comments").contains(&json!("service.name=shop")), "{said}");
    // The file of a location is that of the method that has its code.
    assert_eq!(said["files"]["App.Tax::Of in App.Cart::Total in App::Main"], "/app/App.dll");
    let expected = json!({
        "App.Tax::Of in App.Cart::Total in App::Main;System.String::Concat": 2_000_000,
        "App.Tax::Of in App.Cart::Total in App::Main": 1_000_000,
        "App.Cart::Total in App::Main": 1_000_000,
        "App::Main": 1_000_000,
        "App.Mail::Send;App.Tax::Of in App.Mail::Send": 1_000_000,
    });
    assert_eq!(said["sums"], expected);
    // Whatever is asked for, the paths are those of another format.
    let pattern = |text| vec![Pattern::parse(text).expect("a pattern")];
    for (query, min_share) in [
        (Query::default(), None),
        (Query { per_thread: true, ..Query::default() }, None),
        (Query { functions: pattern("App.Cart::*"), ..Query::default() }, None),
        (Query { just_my_code: true, ..Query::default() }, None),
        (Query { since_ns: Some(1_500_000), ..Query::default() }, None),
        (Query { metric: Some(&SAMPLES), ..Query::default() }, None),
        (Query::default(), Some(0.3)),
        (Query::default(), Some(0.6)),
    ] {
        let options = ExportOptions { query, min_share, ..ExportOptions::default() };
        let [profile, text] = ["pprof", "collapsed"].map(|format| {
            let mut out = Vec::new();
            exporter(format).expect("a format").write(&recording, &options, &mut out).expect("written");
            out
        });
        std::fs::write(&file, profile).expect("a file");
        let said = python("protobuf==6.33.0", PPROF, &folder).expect("the library");
        let text = String::from_utf8(text).expect("UTF-8");
        let expected: BTreeMap<String, u64> = text
            .lines()
            .map(|line| line.rsplit_once(' ').expect("a weight"))
            .map(|(path, weight)| (path.to_owned(), weight.parse().expect("a number")))
            .collect();
        let mut found: BTreeMap<String, u64> = BTreeMap::new();
        for (path, weight) in said["sums"].as_object().expect("sums") {
            let outwards = |location: &str| {
                location.split(" in ").collect::<Vec<_>>().into_iter().rev().collect::<Vec<_>>().join(";")
            };
            let path: Vec<String> = path.split(';').map(outwards).collect();
            *found.entry(path.join(";")).or_default() += weight.as_u64().expect("a number");
        }
        assert_eq!(found, expected, "{options:?}");
        assert!(!expected.is_empty());
    }
}
