//! A data set of real recordings: the queries of `docs/fleet.md` in DuckDB and ClickHouse give the
//! answers of `report` and `diff` on the same recordings, and counts of the programs themselves.

mod common;

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use clrscope_contract::request::split_marker;
use clrscope_testkit::{self as testkit, FleetEngine, fixture, fleet_queries, not_run};
use common::{TestFolder, sample, write_packed};
use serde_json::Value;

const DOCUMENT: &str = include_str!("../../../docs/fleet.md");
/// Names of the document, and those of the recorded programs.
const NAMES: [(&str, &str); 2] =
    [("Shop.Cart::Total", "Throws.Program::Catch"), ("GET /orders/{id}", "GET /orders/{id:int}")];

/// A recording, with what is known of it.
struct Known {
    file: String,
    id: String,
    service: &'static str,
    version: &'static str,
    host: &'static str,
    team: &'static str,
    /// Exceptions that the program threw.
    thrown: u64,
    duration_ns: f64,
    started_ns: f64,
    /// CPU time of functions, own and total, by name, signature and module.
    functions: Vec<(String, String, String, f64, f64)>,
}

impl Known {
    fn cpu_ns(&self) -> f64 {
        self.functions.iter().map(|of| of.3).sum()
    }

    fn version(&self) -> (&'static str, &'static str) {
        (self.service, self.version)
    }
}

/// Records a program with labels, in the folder `all`, and asks `report` about it.
fn record(
    place: &TestFolder,
    [service, version, host, team]: [&'static str; 4],
    instruments: &[&str],
    program: &[&str],
    thrown: u64,
) -> Known {
    let runtime = testkit::runtimes().iter().find(|runtime| runtime.has_web()).expect("a runtime with ASP.NET");
    let file = format!("all/{service}-{version}-{host}.clrs");
    let label = |key: &str, value: &str| ["--label".to_owned(), format!("{key}={value}")];
    let mut words: Vec<std::ffi::OsString> = ["run", "--quiet", "-o", &file].map(Into::into).into();
    for (key, value) in [("service.name", service), ("service.version", version), ("host.name", host), ("team", team)] {
        words.extend(label(key, value).map(Into::into));
    }
    words.extend(instruments.iter().flat_map(|instrument| ["-i", instrument]).map(Into::into));
    words.push("--".into());
    words.extend(runtime.words(&fixture(program[0])));
    words.extend(program[1..].iter().map(Into::into));
    let mut command = place.clrscope(words);
    runtime.prepare(&mut command);
    testkit::run(command).expect_success();
    let report = place.json(&format!("report {file} --view functions --metric cpu"));
    let text = |row: &Value, key: &str| row[key].as_str().unwrap_or_default().to_owned();
    let functions = report["rows"].as_array().expect("rows").iter().map(|row| {
        let signature = text(row, "signature");
        let marker = split_marker(&signature).1.map_or_else(String::new, |marker| format!(" ({marker})"));
        let of = |key: &str| row[key].as_f64().expect("a time");
        (text(row, "name") + &marker, signature, text(row, "module"), of("self_cpu_ns"), of("total_cpu_ns"))
    });
    let functions = functions.collect();
    let head = &report["recording"];
    let started: jiff::Timestamp = head["started"].as_str().and_then(|text| text.parse().ok()).expect("a time");
    Known {
        id: text(head, "id"),
        duration_ns: head["duration_ns"].as_f64().expect("a time"),
        started_ns: started.as_nanosecond() as f64,
        file,
        service,
        version,
        host,
        team,
        thrown,
        functions,
    }
}

/// Two services: a web program that serves orders, and one that throws as often as it is told.
fn fleet(place: &TestFolder) -> Vec<Known> {
    fs::create_dir(place.file("all")).expect("a folder");
    let shop = |version, host, thousands| {
        let instruments = ["cpu", "exceptions", "requests"];
        record(place, ["shop", version, host, "carts"], &instruments, &["Requests", "served", thousands], 0)
    };
    let mail = |version, host, thrown: &'static str, team| {
        let known = thrown.parse().expect("a number");
        record(place, ["mail", version, host, team], &["cpu", "exceptions"], &["Throws", thrown], known)
    };
    vec![
        shop("v2", "web-1", "3"),
        shop("v3", "web-1", "6"),
        shop("v3", "web-2", "3"),
        mail("v2", "web-1", "3000", "post"),
        mail("v3", "web-1", "5000", "post"),
        mail("v3", "web-3", "2000", "a, b=c"),
    ]
}

fn export(place: &TestFolder, line: &str) -> String {
    let output = place.run(line);
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(output.status.success() && output.stdout.is_empty(), "{line}: {said}");
    said
}

/// The answers of an engine, in the order of the document; what is missing where it is not there.
fn asked(engine: FleetEngine, place: &TestFolder, queries: &[String]) -> Result<Vec<Vec<Vec<Value>>>, String> {
    let said = engine.ask(DOCUMENT, queries, place.path(), Path::new(env!("CARGO_TARGET_TMPDIR")))?;
    let answers: Vec<Value> = serde_json::from_str(&said).expect("JSON");
    let rows = |answer: &Value| serde_json::from_value(answer["rows"].clone()).expect("rows");
    Ok(answers.iter().map(rows).collect())
}

fn text(value: &Value) -> &str {
    value.as_str().unwrap_or_else(|| panic!("a text: {value}"))
}

fn number(value: &Value) -> f64 {
    value.as_f64().unwrap_or_else(|| panic!("a number: {value}"))
}

fn is_close(found: f64, expected: f64) -> bool {
    (found - expected).abs() <= expected.abs() * 1e-9 + 1e-9
}

/// Sums by key.
fn sums<K: Ord>(all: impl IntoIterator<Item = (K, f64)>) -> BTreeMap<K, f64> {
    let mut sums = BTreeMap::new();
    all.into_iter().for_each(|(key, amount)| *sums.entry(key).or_insert(0.0) += amount);
    sums
}

#[test]
fn queries_of_the_documentation_answer_as_report_and_diff_do() {
    let place = TestFolder::new();
    let all = fleet(&place);
    let said = export(&place, "export all --to dataset -o fleet");
    assert!(said.contains("6 recordings added to 'fleet'; it has "), "{said}");
    let queries: Vec<String> = fleet_queries(DOCUMENT)
        .into_iter()
        .map(|query| NAMES.iter().fold(query, |query, (from, to)| query.replace(from, to)))
        .collect();
    assert_eq!(queries.len(), 10);
    let count = ["SELECT count(*), sum(amount) FROM amounts".to_owned()];
    for engine in FleetEngine::SMALL {
        let answers = match asked(engine, &place, &queries) {
            Ok(answers) => answers,
            Err(missing) => {
                not_run(&format!("queries over a data set: {missing}"));
                continue;
            }
        };
        top_functions(&answers[0], &all);
        changes(&answers[1], &place);
        endpoint(&answers[2], &place, &all);
        hosts(&answers[3], &all);
        inclusive(&answers[4], &all);
        callers(&answers[5], &place, &all);
        kinds_of_code(&answers[6], &all);
        throwers(&answers[7], &all);
        slow_recordings(&answers[8], &all);
        teams(&answers[9], &all);
        // Once more is no more.
        let before = asked(engine, &place, &count);
        let said = export(&place, "export all --to dataset -o fleet");
        assert!(said.contains("0 recordings added to 'fleet', 6 recordings it had already; it has "), "{said}");
        export(&place, &format!("export {} --to dataset -o fleet", all[0].file));
        assert_eq!(asked(engine, &place, &count), before);
    }
}

fn hours<'k, K: Ord>(all: &'k [Known], key: impl Fn(&'k Known) -> K) -> BTreeMap<K, f64> {
    sums(all.iter().map(|of| (key(of), of.duration_ns / 3.6e12)))
}

fn top_functions(rows: &[Vec<Value>], all: &[Known]) {
    let hours = hours(all, Known::version);
    let each =
        all.iter().flat_map(|of| of.functions.iter().map(move |function| ((of.version(), &*function.0), function.3)));
    let mut expected: Vec<_> = sums(each).into_iter().map(|(key, ns)| (key, ns / 1e9 / hours[&key.0])).collect();
    expected.sort_by(|a, b| b.1.total_cmp(&a.1));
    assert_eq!(rows.len(), 20);
    for (row, (_, rate)) in rows.iter().zip(&expected) {
        assert!(is_close(number(&row[3]), *rate), "{row:?} {rate}");
        // Rates that are equal may change places.
        let mine = expected.iter().find(|(key, _)| *key == ((text(&row[0]), text(&row[1])), text(&row[2])));
        assert!(mine.is_some_and(|(_, own)| is_close(*own, *rate)), "{row:?}");
    }
}

fn changes(rows: &[Vec<Value>], place: &TestFolder) {
    let line = "diff --before service=shop,version=v2 --after service=shop,version=v3 all --metric cpu";
    let diff = place.json(line);
    assert_eq!(rows.len(), 20);
    for row in rows {
        let [name, signature, module] = [0, 1, 2].map(|at| text(&row[at]));
        let same = |other: &&Value| other["signature"] == signature && other["module"] == module;
        let found = diff["rows"].as_array().expect("rows").iter().find(same);
        let found = found.unwrap_or_else(|| panic!("{name} {signature} of {module}"));
        for (at, key) in [(3, "before_ns"), (4, "after_ns")] {
            assert!((number(&row[at]) * 1e9 - number(&found[key])).abs() <= 1.0, "{key}: {row:?} {found:#}");
        }
    }
}

fn endpoint(rows: &[Vec<Value>], place: &TestFolder, all: &[Known]) {
    let shop = all.iter().filter(|of| of.service == "shop");
    let expected = sums(shop.map(|of| {
        let line = ["report", &of.file, "--view", "functions", "--metric", "cpu", "--request", NAMES[1].1, "--json"];
        let output = place.clrscope(line).output().expect("the tool starts");
        let report: Value = serde_json::from_slice(&output.stdout).expect("JSON");
        let own = report["rows"].as_array().expect("rows").iter().map(|row| number(&row["self_cpu_ns"]));
        (((of.started_ns / 6e11).floor() as i64 * 600, of.version), own.sum::<f64>() / 1e6)
    }));
    assert!(expected.values().sum::<f64>() > 10.0, "requests took time: {expected:?}");
    let found: BTreeMap<_, _> =
        rows.iter().map(|row| ((number(&row[0]) as i64, text(&row[1])), number(&row[2]))).collect();
    assert_eq!(found.keys().collect::<Vec<_>>(), expected.keys().collect::<Vec<_>>());
    assert!(found.values().zip(expected.values()).all(|(found, of)| is_close(*found, *of)), "{found:?} {expected:?}");
}

fn median(mut all: Vec<f64>) -> f64 {
    all.sort_by(f64::total_cmp);
    f64::midpoint(all[(all.len() - 1) / 2], all[all.len() / 2])
}

fn hosts(rows: &[Vec<Value>], all: &[Known]) {
    let hours = hours(all, |of| (of.service, of.host));
    let sums = sums(all.iter().map(|of| ((of.service, of.host), of.cpu_ns() / 1e9)));
    let rates: BTreeMap<_, _> = sums.into_iter().map(|(key, seconds)| (key, seconds / hours[&key])).collect();
    assert_eq!(rows.len(), rates.len());
    for row in rows {
        let (service, host) = (text(&row[0]), text(&row[1]));
        let (_, rate) = rates.iter().find(|(key, _)| **key == (service, host)).expect("a host");
        let middle = median(rates.iter().filter(|(key, _)| key.0 == service).map(|(_, rate)| *rate).collect());
        assert!(
            is_close(number(&row[2]), *rate) && is_close(number(&row[3]), rate / middle),
            "{row:?} {rate} {middle}"
        );
    }
    assert!(rows.is_sorted_by(|a, b| number(&a[3]) >= number(&b[3])));
}

/// CPU time of `Catch` with everything it calls.
fn of_catch(of: &Known) -> f64 {
    of.functions.iter().filter(|function| function.0 == NAMES[0].1).map(|function| function.4 / 1e6).sum()
}

fn inclusive(rows: &[Vec<Value>], all: &[Known]) {
    let expected = sums(all.iter().filter(|of| of.service == "mail").map(|of| (of.version(), of_catch(of))));
    assert_eq!(rows.len(), 2, "{rows:?}");
    for row in rows {
        let (_, ms) = expected.iter().find(|(key, _)| **key == (text(&row[0]), text(&row[1]))).expect("a version");
        assert!(*ms > 1.0 && is_close(number(&row[2]), *ms), "{row:?} {ms}");
    }
}

fn callers(rows: &[Vec<Value>], place: &TestFolder, all: &[Known]) {
    let mut expected = BTreeMap::new();
    for of in all.iter().filter(|of| of.service == "mail") {
        let report = place.json(&format!("report {} --view callers --metric cpu --function {}", of.file, NAMES[0].1));
        for row in report["rows"].as_array().expect("rows") {
            *expected.entry(text(&row["name"]).to_owned()).or_insert(0.0) += number(&row["total_cpu_ns"]) / 1e6;
        }
    }
    assert!(expected.contains_key("Throws.Program::Main"), "{expected:?}");
    assert_eq!(rows.len(), expected.len(), "{rows:?} {expected:?}");
    for row in rows {
        assert!(is_close(number(&row[1]), expected[text(&row[0])]), "{row:?} {expected:?}");
    }
}

fn kinds_of_code(rows: &[Vec<Value>], all: &[Known]) {
    for (service, module) in [("shop", "Requests"), ("mail", "Throws")] {
        let mine: Vec<_> = rows.iter().filter(|row| text(&row[0]) == service).collect();
        let whole: f64 = mine.iter().map(|row| number(&row[2])).sum();
        assert!(is_close(whole, 1.0), "{mine:?}");
        let of_service = all.iter().filter(|of| of.service == service);
        let (own, sum) = of_service.fold((0.0, 0.0), |(own, sum), of| {
            let mine = of.functions.iter().filter(|function| function.2 == module).map(|function| function.3);
            (own + mine.sum::<f64>(), sum + of.cpu_ns())
        });
        let share = mine.iter().find(|row| text(&row[1]) == "own").map_or(0.0, |row| number(&row[2]));
        assert!(is_close(share, own / sum), "{mine:?} {own} {sum}");
    }
}

fn throwers(rows: &[Vec<Value>], all: &[Known]) {
    let expected = sums(all.iter().map(|of| (of.version(), of.thrown as f64)));
    for (key, thrown) in expected.into_iter().filter(|(_, thrown)| *thrown > 0.0) {
        let is_it =
            |row: &&Vec<Value>| (text(&row[0]), text(&row[1])) == key && text(&row[2]) == "Throws.Program::Throw";
        assert_eq!(rows.iter().find(is_it).map(|row| number(&row[3])), Some(thrown), "{key:?} in {rows:?}");
    }
}

fn slow_recordings(rows: &[Vec<Value>], all: &[Known]) {
    let cores = |of: &Known| of.cpu_ns() / of.duration_ns;
    assert_eq!(rows.len(), all.len());
    for row in rows {
        let of = all.iter().find(|of| of.id == text(&row[2])).expect("a recording");
        let middle = median(all.iter().filter(|other| other.version() == of.version()).map(cores).collect());
        assert_eq!((text(&row[0]), text(&row[1])), (of.service, of.host));
        assert!(is_close(number(&row[3]), cores(of)) && is_close(number(&row[4]), cores(of) / middle), "{row:?}");
    }
}

fn teams(rows: &[Vec<Value>], all: &[Known]) {
    let expected = sums(all.iter().map(|of| (of.team, of.cpu_ns() / 1e6)));
    let found: BTreeMap<&str, f64> = rows.iter().map(|row| (text(&row[0]), number(&row[1]))).collect();
    assert_eq!(found.keys().collect::<Vec<_>>(), expected.keys().collect::<Vec<_>>());
    assert!(found.values().zip(expected.values()).all(|(found, of)| is_close(*found, *of)), "{found:?} {expected:?}");
}

/// Parquet files in a folder and below it.
fn files(folder: &Path) -> Vec<std::path::PathBuf> {
    let mut found = Vec::new();
    for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
        match entry.path() {
            path if path.is_dir() => found.extend(files(&path)),
            path if path.extension().is_some_and(|ending| ending == "parquet") => found.push(path),
            _ => {}
        }
    }
    found
}

#[test]
fn small_files_are_merged_and_nothing_is_counted_twice_or_lost() {
    let place = TestFolder::new();
    let mut recording = sample();
    recording.run.started_unix_ns = 1_796_083_140_000_000_000;
    let added = 20;
    for number in 0..added {
        recording.run.id = format!("{number:08}");
        // The second half is of the next day.
        recording.run.started_unix_ns += if number == added / 2 { 60_000_000_000 } else { 1_000 };
        write_packed(&recording, &place.file("one.clrs"));
        let said = export(&place, "export one.clrs --to dataset -o fleet");
        assert!(said.contains("1 recording added to 'fleet'; it has "), "{said}");
    }
    let names = |table: &str| {
        let entries = fs::read_dir(place.file(table)).expect("a folder").flatten();
        let mut names: Vec<String> = entries.map(|entry| entry.file_name().to_string_lossy().into_owned()).collect();
        names.sort();
        names
    };
    for table in ["fleet/recordings", "fleet/amounts"] {
        assert_eq!(names(table), ["date=2026-11-30", "date=2026-12-01"], "days in UTC");
        let number = files(&place.file(table)).len();
        assert!((2..=16).contains(&number), "{number} files of {table}");
    }
    // Functions and stacks are the same in all of them.
    assert_eq!([files(&place.file("fleet/stacks")).len(), files(&place.file("fleet/symbols")).len()], [1, 1]);
    let queries = [
        "SELECT count(*), count(DISTINCT recording_id), min(date), max(service) FROM recordings",
        "SELECT metric, sum(amount), count(*) FROM amounts GROUP BY metric ORDER BY metric",
        "SELECT count(*), count(DISTINCT stack_id) FROM stacks",
        "SELECT count(*), count(DISTINCT symbol_id) FROM symbols",
    ]
    .map(str::to_owned);
    let calls = place.json("report one.clrs --view functions --metric calls");
    let calls: u64 = calls["rows"].as_array().expect("rows").iter().filter_map(|row| row["calls"].as_u64()).sum();
    for engine in FleetEngine::SMALL {
        // DuckDB has dates as such, which JSON has not.
        let queries = queries.clone().map(|query| query.replace("min(date)", "CAST(min(date) AS VARCHAR)"));
        let Ok(answers) = asked(engine, &place, &queries) else { continue };
        let [recordings, amounts, stacks, symbols] = &answers[..] else { panic!("{answers:?}") };
        assert_eq!(recordings[0][..2], [added, added].map(Value::from), "{recordings:?}");
        assert_eq!((text(&recordings[0][2]), text(&recordings[0][3])), ("2026-11-30", "shop"));
        let of_calls = amounts.iter().find(|row| text(&row[0]) == "calls").expect("calls");
        assert_eq!(number(&of_calls[1]), (calls * added) as f64, "{amounts:?}");
        for table in [stacks, symbols] {
            assert_eq!(table[0][0], table[0][1], "each once");
        }
    }
}

#[test]
fn what_is_no_data_set_and_what_can_not_be_added_is_refused() {
    let place = TestFolder::new().with_sample();
    fs::create_dir(place.file("papers")).expect("a folder");
    fs::write(place.file("papers/thesis.txt"), "years of work").expect("a file");
    for (line, code, why) in [
        ("sample.clrs", 2, "write -o FOLDER"),
        ("sample.clrs -o papers", 1, "is not a data set of clrscope"),
        ("sample.clrs -o sample.clrs", 1, "choose another folder"),
        ("sample.clrs -o fleet --force", 2, "nothing in it is overwritten"),
        ("sample.clrs -o fleet --metric calls", 2, "takes no filters"),
        ("sample.clrs -o fleet --function Shop.*", 2, "takes no filters"),
        ("missing.clrs -o fleet", 1, "there is no such file"),
    ] {
        let output = place.run(&format!("export {line} --to dataset"));
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!((output.status.code(), said.lines().count()), (Some(code), 3), "{line}: {said}");
        assert!(said.contains(why), "{line}: {said}");
    }
    assert!(!place.file("fleet").exists(), "nothing was created");
    // A broken one of several is named, and the others are added.
    fs::create_dir(place.file("all")).expect("a folder");
    fs::copy(place.file("sample.clrs"), place.file("all/a.clrs")).expect("a copy");
    fs::copy(place.file("sample.clrs"), place.file("all/copy.clrs")).expect("a copy");
    fs::write(place.file("all/b.clrs"), "no recording").expect("a file");
    let output = place.run("export all --to dataset -o fleet");
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!((output.status.code(), said.lines().count()), (Some(1), 2 + 3), "{said}");
    assert!(said.contains("'all/b.clrs' is left out: ") && said.contains("cannot add 1 of 3 recordings"), "{said}");
    assert!(said.contains("1 recording added to 'fleet', 1 recording it had already"), "{said}");
    // Another one writes.
    let lock = fs::File::open(place.file("fleet/_lock")).expect("the lock");
    lock.lock().expect("locked");
    let output = place.run("export sample.clrs --to dataset -o fleet");
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(output.status.code() == Some(1) && said.contains("another clrscope writes to it"), "{said}");
    drop(lock);
    // A damaged file is named.
    let stacks = files(&place.file("fleet/stacks"));
    fs::write(&stacks[0], "damaged").expect("a file");
    let output = place.run("export sample.clrs --to dataset -o fleet");
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(output.status.code() == Some(1) && said.contains("not a Parquet file"), "{said}");
}
