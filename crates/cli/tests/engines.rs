//! Exports of real programs, read by the programs of others that are their readers: the numbers are
//! those that the program itself counted.

mod common;

use std::path::Path;
use std::process::{Command, Output};

use clrscope_testkit::{self as testkit, from_pypi, go_pprof, not_run};
use common::TestFolder;
use serde_json::Value;

/// Threads of the fixture, and rounds of each.
const THREADS: u64 = 4;
const ROUNDS: &str = "1000";

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

fn expect_success(output: &Output) {
    assert!(output.status.success(), "{}{}", text(&output.stdout), text(&output.stderr));
}

/// A recording of all allocations, `app.clrs`; and the bytes that the runtime counted in `Work`.
fn allocations(place: &TestFolder) -> u64 {
    let runtime = testkit::runtimes().first().expect("a runtime");
    let program = runtime.command(&testkit::fixture("Allocated"));
    let words = ["run", "-i", "alloc:exact", "-i", "cpu", "-o", "app.clrs", "--label", "service.name=shop", "--"];
    let mut command = place.clrscope(words);
    command.arg(program.get_program()).args(program.get_args()).args(["exact", &THREADS.to_string(), ROUNDS]);
    for (name, value) in program.get_envs() {
        value.into_iter().for_each(|value| _ = command.env(name, value));
    }
    let output = command.output().expect("the tool starts");
    expect_success(&output);
    let said = text(&output.stdout);
    let bytes = said.lines().find_map(|line| line.strip_prefix("bytes ")?.parse().ok());
    bytes.unwrap_or_else(|| panic!("no bytes in {said}"))
}

/// The total of a function in a table of pprof, in bytes.
fn total(pprof: &Path, place: &TestFolder, more: &[&str], function: &str) -> u64 {
    let mut command = Command::new(pprof);
    command.args(["-top", "-cum", "-unit=B", "-nodecount=100000", "-nodefraction=0", "-edgefraction=0"]).args(more);
    let output = command.arg("app.pb.gz").current_dir(place.path()).output().expect("pprof starts");
    expect_success(&output);
    let table = text(&output.stdout);
    let row = table.lines().find(|line| line.ends_with(&format!(" {function}")));
    let row = row.unwrap_or_else(|| panic!("no {function} in {table}"));
    let cell = row.split_whitespace().nth(3).expect("a total");
    cell.trim_end_matches('B').parse().unwrap_or_else(|_| panic!("{row}"))
}

#[test]
fn go_tool_pprof_reads_profiles_with_the_numbers_of_the_program() {
    let Some(pprof) = go_pprof(Path::new(env!("CARGO_TARGET_TMPDIR"))) else {
        return not_run("reading profiles with go tool pprof: Debian's package golang-go is not to be had here");
    };
    let place = TestFolder::new();
    let bytes = allocations(&place);
    expect_success(&place.run("export app.clrs --to pprof --metric bytes -o app.pb.gz"));
    let work = "Allocated.Program::Work";
    assert_eq!(total(&pprof, &place, &[], work), bytes, "the default sample type is what was asked for");
    assert_eq!(total(&pprof, &place, &["-sample_index=alloc_space"], work), bytes);
    // Each thread has its name as a label, and did the same, except for what the first one makes
    // once: some kilobytes of ten megabytes.
    let of_thread = |thread| total(&pprof, &place, &[&format!("-tagfocus=thread=^worker {thread}$")], work);
    let of_threads: Vec<u64> = (0..THREADS).map(of_thread).collect();
    assert_eq!(of_threads.iter().sum::<u64>(), bytes, "{of_threads:?}");
    assert!(of_threads.iter().all(|of| of.abs_diff(bytes / THREADS) < bytes / THREADS / 100), "{of_threads:?}");
    let raw = |file: &str| {
        let output =
            Command::new(&pprof).args(["-raw", file]).current_dir(place.path()).output().expect("pprof starts");
        expect_success(&output);
        text(&output.stdout)
    };
    let profile = raw("app.pb.gz");
    assert!(profile.contains("\nPeriodType: space bytes\n") && profile.contains("\nPeriod: 1\n"), "{profile}");
    assert!(profile.contains("alloc_objects/count alloc_space/bytes[dflt]"), "{profile}");
    assert!(profile.contains("Comment: service.name=shop\n"), "{profile}");
    let first = profile.lines().skip_while(|line| *line != "Mappings").nth(1);
    assert!(first.is_some_and(|line| line.contains("/Allocated.dll")), "{first:?}");
    let head = place.json("report app.clrs --view functions")["recording"].clone();
    expect_success(&place.run("export app.clrs --to pprof --metric cpu -o cpu.pb.gz"));
    let profile = raw("cpu.pb.gz");
    assert!(
        profile.contains("\nPeriodType: cpu nanoseconds\n") && profile.contains("\nPeriod: 1000000\n"),
        "{profile}"
    );
    assert!(profile.contains("samples/count cpu/nanoseconds[dflt]"), "{profile}");
    let year = head["started"].as_str().expect("a time")[..10].to_owned();
    assert!(profile.contains(&format!("\nTime: {year}")) && profile.contains("\nDuration: "), "{profile}");
}

/// Receives the file as the body of a request by HTTP and as the message of a call by gRPC, and
/// prints what came.
const RECEIVE: &str = "
import http.server, json, sys, threading, urllib.request
from concurrent import futures
import grpc
from opentelemetry.proto.collector.profiles.v1development import profiles_service_pb2 as messages
from opentelemetry.proto.collector.profiles.v1development import profiles_service_pb2_grpc as services
body, came = open('app.otlp', 'rb').read(), []
class OverGrpc(services.ProfilesServiceServicer):
    def Export(self, request, context):
        came.append(request)
        return messages.ExportProfilesServiceResponse()
class OverHttp(http.server.BaseHTTPRequestHandler):
    def do_POST(self):
        assert self.path == '/v1development/profiles' and self.headers['content-type'] == 'application/x-protobuf'
        came.append(messages.ExportProfilesServiceRequest.FromString(self.rfile.read(int(self.headers['content-length']))))
        self.send_response(200)
        self.end_headers()
    def log_message(self, *words): pass
server = grpc.server(futures.ThreadPoolExecutor(), options=[('grpc.max_receive_message_length', 1 << 28)])
services.add_ProfilesServiceServicer_to_server(OverGrpc(), server)
port = server.add_insecure_port('127.0.0.1:0')
server.start()
# The bytes of the file are the message, as they are.
call = grpc.insecure_channel(f'127.0.0.1:{port}').unary_unary(
    '/opentelemetry.proto.collector.profiles.v1development.ProfilesService/Export',
    request_serializer=lambda sent: sent, response_deserializer=messages.ExportProfilesServiceResponse.FromString)
call(body)
web = http.server.HTTPServer(('127.0.0.1', 0), OverHttp)
threading.Thread(target=web.serve_forever, daemon=True).start()
post = urllib.request.Request(f'http://127.0.0.1:{web.server_port}/v1development/profiles', body,
    {'content-type': 'application/x-protobuf'})
assert urllib.request.urlopen(post).status == 200
server.stop(None)
assert len(came) == 2 and came[0] == came[1]
tables, text, found = came[0].dictionary, came[0].dictionary.string_table, {}
pair = lambda of: text[of.type_strindex] + ':' + text[of.unit_strindex]
name = lambda line: text[tables.function_table[line.function_index].name_strindex]
for resource in came[0].resource_profiles:
    attributes = {of.key: of.value.string_value or of.value.int_value for of in resource.resource.attributes}
    for profile in (profile for scope in resource.scope_profiles for profile in scope.profiles):
        work = 0
        for sample in profile.samples:
            locations = [tables.location_table[at] for at in tables.stack_table[sample.stack_index].location_indices]
            if any(name(line) == 'Allocated.Program::Work' for of in locations for line in of.lines):
                work += sum(sample.values)
        assert pair(profile.sample_type) not in found and len(profile.profile_id) == 16
        found[pair(profile.sample_type)] = {'work': work, 'period': [pair(profile.period_type), profile.period],
            'id': profile.profile_id.hex(), 'duration': profile.duration_nano, 'time': profile.time_unix_nano}
print(json.dumps({'profiles': found, 'attributes': attributes}))
";

#[test]
fn receivers_of_opentelemetry_take_the_export_as_it_is() {
    let packages = "opentelemetry-proto==1.45.2 grpcio==1.76.0";
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("receivers");
    let Some(packages) = from_pypi(packages, &folder) else {
        return not_run("sending OpenTelemetry profiles: pip can't install its classes and grpcio here");
    };
    let place = TestFolder::new();
    let bytes = allocations(&place);
    expect_success(&place.run("export app.clrs --to otlp -o app.otlp"));
    let mut python = Command::new("python3");
    python.args(["-c", RECEIVE]).current_dir(place.path()).env("PYTHONPATH", packages);
    // It talks to itself alone.
    python.env("no_proxy", "127.0.0.1");
    let output = python.output().expect("Python was there a moment ago");
    expect_success(&output);
    let said: Value = serde_json::from_slice(&output.stdout).expect("JSON");
    let profiles = &said["profiles"];
    assert_eq!(profiles["bytes:bytes"]["work"], bytes, "{said:#}");
    // What engines take for time on processors.
    assert_eq!(profiles["samples:count"]["period"], serde_json::json!(["cpu:nanoseconds", 1_000_000]), "{said:#}");
    let head = place.json("report app.clrs --view functions")["recording"].clone();
    assert_eq!(profiles["samples:count"]["duration"], head["duration_ns"]);
    let resource = head["processes"][0]["resource"].as_object().expect("attributes");
    assert_eq!(said["attributes"].as_object(), Some(resource));
    assert_eq!(resource["service.name"], "shop");
    let ids: std::collections::BTreeSet<&str> =
        profiles.as_object().expect("profiles").values().filter_map(|of| of["id"].as_str()).collect();
    assert_eq!(ids.len(), profiles.as_object().map_or(0, serde_json::Map::len));
}
