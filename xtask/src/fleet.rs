//! `cargo xtask soak fleet`: makes a thousand recordings of ten services, three versions and twenty
//! hosts from a few real ones, and puts them into a data set. Measures the size per recording and
//! the times of the queries of `docs/fleet.md` in DuckDB, ClickHouse and Spark. Checks that all
//! give the same answers, also compared with `clrscope diff`.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Instant;

use clrscope_contract::labels::Label;
use clrscope_recording::model::{EventChunk, Process, Recording, Sample};
use clrscope_recording::{open, pack};
use clrscope_testkit::{FleetEngine, cli, fixture, fleet_queries, runtimes, scratch, workspace_root};
use serde_json::Value;

use crate::verdict::{in_words, say, verdict};

const DOCUMENT: &str = include_str!("../../docs/fleet.md");
/// Number of recordings by default.
pub(crate) const RECORDINGS: u64 = 1_000;
const SERVICES: [&str; 10] =
    ["shop", "mail", "search", "stock", "prices", "users", "billing", "images", "events", "audit"];
const HOSTS: u64 = 20;
/// Greatest size of a recording in the data set, bytes.
const SIZE_GOAL: u64 = 6_000;
/// Beginning of the first recording, nanoseconds since 1970: 2026-11-27, 08:00 UTC. Four of a
/// minute begin each minute.
const BEGIN_NS: u64 = 1_795_766_400_000_000_000;
const STEP_NS: u64 = 60_000_000_000 / 4;
/// Real runs: a program with its arguments, and what is recorded of it. Each runs twice.
const PROGRAMS: [(&str, &[&str], &[&str]); 5] = [
    ("Requests", &["served", "20"], &["cpu", "exceptions", "requests"]),
    ("Throws", &["8000"], &["cpu", "exceptions"]),
    ("Burning", &["6", "10"], &["cpu", "exceptions"]),
    ("Allocated", &["mixed", "400"], &["cpu", "alloc"]),
    ("Shares", &[], &["cpu", "exceptions"]),
];

/// Random numbers that are the same each time: splitmix64.
struct Chance(u64);

impl Chance {
    fn below(&mut self, limit: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut mixed = self.0;
        mixed = (mixed ^ mixed >> 30).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        mixed = (mixed ^ mixed >> 27).wrapping_mul(0x94D0_49BB_1331_11EB);
        (mixed ^ mixed >> 31) % limit
    }
}

/// Makes the data set, asks the queries and compares the answers.
pub(crate) fn run(recordings: u64) -> Result<(), String> {
    let packages = workspace_root().join("target/tmp");
    FleetEngine::ALL.iter().try_for_each(|engine| engine.install(&packages).map(drop))?;
    let place = scratch();
    let all = place.path().join("all");
    fs::create_dir(&all).map_err(in_words)?;
    let real = record_real(place.path())?;
    let mut wrong = Vec::new();
    let mut check = |what: &str, outcome: Result<String, String>| wrong.extend(say((what.to_owned(), outcome)));
    check("recordings", make_all(&real, &all, recordings));
    check("naive tables", naive(place.path(), recordings));
    check("data set", dataset(place.path(), recordings));
    let queries = queries();
    let mut first: Option<(&str, Vec<Value>)> = None;
    for engine in FleetEngine::ALL {
        let said = engine.ask(DOCUMENT, &queries, place.path(), &packages)?;
        let found: Vec<Value> = serde_json::from_str(&said).map_err(|error| error.to_string())?;
        check(engine.name(), times(&found, longest(engine)));
        match &first {
            Some((name, one)) => check(&format!("{name} and {}", engine.name()), agree(one, &found)),
            None => first = Some((engine.name(), found)),
        }
    }
    if let Some((_, one)) = &first {
        check("clrscope diff", as_diff(place.path(), &one[1]));
    }
    verdict(&wrong)
}

/// Runs the programs under the tool. Returns the recordings of each.
fn record_real(place: &Path) -> Result<Vec<Vec<PathBuf>>, String> {
    let runtime =
        runtimes().iter().rev().find(|runtime| runtime.has_web()).ok_or("there is no runtime with ASP.NET")?;
    let one = |name: &str, arguments: &[&str], instruments: &[&str], number: u32| {
        let file = place.join(format!("{name}-{number}.clrs"));
        let mut command = Command::new(cli());
        command.args(["run", "--quiet", "-o"]).arg(&file);
        instruments.iter().for_each(|instrument| _ = command.args(["-i", instrument]));
        command.arg("--").args(runtime.words(&fixture(name))).args(arguments);
        runtime.prepare(&mut command);
        let done = command.output().map_err(in_words)?;
        match done.status.success() {
            true => Ok(file),
            false => Err(format!("{name}: {}", String::from_utf8_lossy(&done.stderr))),
        }
    };
    let each = |(name, arguments, instruments): (&str, &[&str], &[&str])| {
        (0..2).map(|number| one(name, arguments, instruments, number)).collect::<Result<Vec<_>, _>>()
    };
    PROGRAMS.into_iter().map(each).collect()
}

/// Writes recordings that differ in identifiers, labels, times, names of own code and samples.
fn make_all(real: &[Vec<PathBuf>], all: &Path, number: u64) -> Result<String, String> {
    let mut chance = Chance(7);
    let mut bytes = 0;
    for at in 0..number {
        let service = (at % SERVICES.len() as u64) as usize;
        let program = service % PROGRAMS.len();
        let runs = &real[program];
        let mut recording = open(&runs[chance.below(runs.len() as u64) as usize]).map_err(|error| error.to_string())?;
        vary(&mut recording, at, service, &mut chance);
        let mut packed = Vec::new();
        pack::write(&recording, &mut packed).map_err(in_words)?;
        bytes += packed.len();
        fs::write(all.join(format!("{at:05}.clrs")), packed).map_err(in_words)?;
    }
    Ok(format!("{number}, {} bytes each", bytes as u64 / number))
}

fn vary(recording: &mut Recording, at: u64, service: usize, chance: &mut Chance) {
    let (version, host) = (1 + chance.below(3), 1 + chance.below(HOSTS));
    recording.run.id = format!("{:08x}-0000-4000-8000-{at:012x}", chance.below(1 << 32));
    recording.run.started_unix_ns = BEGIN_NS + at * STEP_NS + chance.below(STEP_NS);
    // Of a hundred samples so many remain: more of later versions and of some hosts.
    let kept = 40 + 10 * version + host % 5 + chance.below(10);
    let label = |key: &str, value: String| Label { key: key.to_owned(), value };
    let program = PROGRAMS[service % PROGRAMS.len()].0;
    for process in &mut recording.processes {
        process.identity.host = format!("host-{host}");
        process.identity.labels = vec![
            label("service.name", SERVICES[service].to_owned()),
            label("service.version", format!("v{version}")),
            label("deployment.environment.name", "prod".to_owned()),
            label("team", format!("team-{}", service % 4)),
        ];
        rename(process, program, &capital(SERVICES[service]));
        for arena in process.events.iter_mut().filter(|arena| arena.instrument == "cpu") {
            arena.chunks.iter_mut().for_each(|chunk| thin_out(chunk, kept, chance));
        }
    }
}

fn capital(name: &str) -> String {
    name[..1].to_uppercase() + &name[1..]
}

/// Gives own code the name of the service.
fn rename(process: &mut Process, program: &str, service: &str) {
    for module in process.modules.iter_mut().filter(|module| !module.framework) {
        module.name = module.name.replace(program, service);
    }
    for function in &mut process.functions {
        for name in [&mut function.name, &mut function.signature, &mut function.raw_name] {
            if name.starts_with(&format!("{program}.")) {
                *name = name.replacen(program, service, 1);
            }
        }
    }
}

fn thin_out(chunk: &mut EventChunk, kept: u64, chance: &mut Chance) {
    let bytes = chunk.bytes.load().into_owned();
    let some = Sample::all(&bytes).filter(|_| chance.below(100) < kept);
    chunk.bytes = some.flat_map(|sample| sample.to_bytes()).collect::<Vec<u8>>().into();
}

/// Size of the plain export, a file for each recording, of the first fifty.
fn naive(place: &Path, recordings: u64) -> Result<String, String> {
    let number = recordings.min(50);
    fs::create_dir(place.join("some")).map_err(in_words)?;
    for at in 0..number {
        let name = format!("{at:05}.clrs");
        fs::copy(place.join("all").join(&name), place.join("some").join(&name)).map_err(in_words)?;
    }
    let (_, _) = tool(place, &["export", "some", "--to", "parquet", "-o", "naive"])?;
    Ok(format!("{} bytes a recording", size(&place.join("naive")).1 / number))
}

fn dataset(place: &Path, recordings: u64) -> Result<String, String> {
    let (seconds, said) = tool(place, &["export", "all", "--to", "dataset", "-o", "fleet"])?;
    let tables = ["recordings", "amounts", "stacks", "symbols"].map(|table| {
        let (files, bytes) = size(&place.join("fleet").join(table));
        (format!("{table} {bytes} bytes in {files} files"), bytes)
    });
    let each = tables.iter().map(|(_, bytes)| bytes).sum::<u64>() / recordings;
    let parts: Vec<&str> = tables.iter().map(|(part, _)| part.as_str()).collect();
    let text = format!("{each} bytes a recording ({}), in {seconds:.1} s; {}", parts.join(", "), said.trim());
    if each <= SIZE_GOAL { Ok(text) } else { Err(text) }
}

/// Runs the tool. Returns how long it took, and what it said.
fn tool(place: &Path, words: &[&str]) -> Result<(f64, String), String> {
    let began = Instant::now();
    let done = Command::new(cli()).args(words).current_dir(place).output().map_err(in_words)?;
    let said = String::from_utf8_lossy(&done.stderr).into_owned();
    if done.status.success() { Ok((began.elapsed().as_secs_f64(), said)) } else { Err(said) }
}

/// Files below a folder, and their bytes.
fn size(folder: &Path) -> (u64, u64) {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    entries.fold((0, 0), |(files, bytes), entry| match entry.metadata() {
        Ok(about) if about.is_dir() => {
            let below = size(&entry.path());
            (files + below.0, bytes + below.1)
        }
        Ok(about) => (files + 1, bytes + about.len()),
        Err(_) => (files, bytes),
    })
}

/// The queries of the document, about names of this fleet.
fn queries() -> Vec<String> {
    let with_names = |query: String| {
        query.replace("Shop.Cart::Total", "Mail.Program::Catch").replace("GET /orders/{id}", "GET /orders/{id:int}")
    };
    fleet_queries(DOCUMENT).into_iter().map(with_names).collect()
}

/// Greatest time of a query, seconds. Spark divides each into tasks of its two executors.
const fn longest(engine: FleetEngine) -> f64 {
    match engine {
        FleetEngine::DuckDb | FleetEngine::ClickHouse => 1.0,
        FleetEngine::Spark => 60.0,
    }
}

fn times(answers: &[Value], longest: f64) -> Result<String, String> {
    let seconds: Vec<f64> = answers.iter().filter_map(|answer| answer["seconds"].as_f64()).collect();
    let text = seconds.iter().map(|seconds| format!("{seconds:.2}")).collect::<Vec<_>>().join(", ");
    let rows: Vec<usize> = answers.iter().filter_map(|answer| answer["rows"].as_array().map(Vec::len)).collect();
    let text = format!("{text} s; rows {rows:?}");
    let is_good = seconds.iter().all(|seconds| *seconds <= longest) && rows.iter().all(|rows| *rows > 0);
    if is_good { Ok(text) } else { Err(text) }
}

/// Whether both give the same rows; numbers may differ by rounding, and rows with equal numbers in
/// their order.
fn agree(one: &[Value], other: &[Value]) -> Result<String, String> {
    for (number, (one, other)) in one.iter().zip(other).enumerate() {
        let rounded = |answer: &Value| {
            let rows = answer["rows"].as_array().cloned().unwrap_or_default();
            let cell = |value: &Value| value.as_f64().map_or_else(|| value.to_string(), |value| format!("{value:.9e}"));
            let row = |row: Value| row.as_array().into_iter().flatten().map(cell).collect::<Vec<_>>();
            let mut rows: Vec<Vec<String>> = rows.into_iter().map(row).collect();
            rows.sort();
            rows
        };
        let (one, other) = (rounded(one), rounded(other));
        if one != other {
            let differs = one.iter().zip(&other).find(|(one, other)| one != other);
            return Err(format!("query {} differs: {differs:?}", number + 1));
        }
    }
    Ok(format!("the same answers to {} queries", one.len()))
}

/// Whether the second query has what `clrscope diff` has.
fn as_diff(place: &Path, answer: &Value) -> Result<String, String> {
    let began = Instant::now();
    let words = [
        "diff",
        "--before",
        "service=shop,version=v2",
        "--after",
        "service=shop,version=v3",
        "all",
        "--metric",
        "cpu",
        "--json",
    ];
    let done = Command::new(cli()).args(words).current_dir(place).output().map_err(in_words)?;
    let took = began.elapsed().as_secs_f64();
    let diff: Value =
        serde_json::from_slice(&done.stdout).map_err(|_| String::from_utf8_lossy(&done.stderr).into_owned())?;
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let known: BTreeMap<(String, String), &Value> = diff["rows"]
        .as_array()
        .into_iter()
        .flatten()
        .map(|row| ((text(&row["signature"]), text(&row["module"])), row))
        .collect();
    let rows = answer["rows"].as_array().ok_or("no rows")?;
    for row in rows {
        let found =
            known.get(&(text(&row[1]), text(&row[2]))).ok_or_else(|| format!("{row} is not in the comparison"))?;
        for (at, key) in [(3, "before_ns"), (4, "after_ns")] {
            let [asked, compared] = [row[at].as_f64().unwrap_or(-1.0) * 1e9, found[key].as_f64().unwrap_or(-1.0)];
            if (asked - compared).abs() > 1.0 {
                return Err(format!("{key}: {row} and {found}"));
            }
        }
    }
    Ok(format!("the same {} functions, in {took:.1} s", rows.len()))
}
