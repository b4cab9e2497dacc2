//! Requests, against what programs count and clock themselves.

use std::collections::BTreeMap;
use std::ffi::OsStr;

use clrscope_analysis::{Direction, Load, LoadCurve, LoadLevel, Query, RequestRow, each_request, loads, requests};
use clrscope_recording::model::Recording;
use clrscope_testkit::{Runtime, attempted, each_runtime, each_web_runtime, fixture, native_library, run};

use crate::support::{Run, record_command, record_with};

/// Rounds of the programs.
const ROUNDS: &str = "5";

/// What a program says of requests of one name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Clocked {
    count: u64,
    failed: u64,
    aborted: u64,
    total_ns: u64,
    longest_ns: u64,
    least_ns: u64,
}

/// Requests in one direction by their names, as the program printed them.
fn clocked(output: &str, direction: &str) -> BTreeMap<String, Clocked> {
    let parse = |line: &str| {
        let mut parts = line.strip_prefix(direction)?.strip_prefix(' ')?.split('|');
        let name = parts.next()?.to_owned();
        let numbers: Vec<u64> = parts.filter_map(|number| number.parse().ok()).collect();
        let [count, failed, aborted, total_ns, longest_ns, least_ns] = match numbers[..] {
            [count, failed, aborted, total, longest, least] => [count, failed, aborted, total, longest, least],
            [count, failed, total, longest, least] => [count, failed, 0, total, longest, least],
            _ => return None,
        };
        Some((name, Clocked { count, failed, aborted, total_ns, longest_ns, least_ns }))
    };
    output.lines().filter_map(parse).collect()
}

fn rows(recording: &Recording, direction: Direction) -> BTreeMap<String, RequestRow<'_>> {
    let rows = requests(recording, &Query::default()).expect("requests").0;
    let rows = rows.into_iter().filter(|row| row.direction == direction);
    rows.map(|row| (row.route.to_string(), row)).collect()
}

/// Checks that the rows are those that the program has counted, and that the times lie within what
/// it clocked.
fn check(rows: &BTreeMap<String, RequestRow<'_>>, clocked: &BTreeMap<String, Clocked>, place: &str) {
    let whole = rows.iter().filter(|(_, row)| row.count > 0);
    assert_eq!(whole.map(|(name, _)| name).collect::<Vec<_>>(), clocked.keys().collect::<Vec<_>>(), "{place}");
    for (name, known) in clocked {
        let row = &rows[name];
        let found = (row.count, row.failed, row.aborted, row.is_exact);
        assert_eq!(found, (known.count, known.failed, known.aborted, true), "{name}: {place}");
        if row.direction == Direction::Made {
            assert!(is_within(row, known), "{name}: {row:?}, {place}");
        }
        assert!(row.total_ns >= known.least_ns, "{name}: {row:?}, {place}");
        let [half, most] = [50, 99].map(|percent| row.percentile_ns(percent).expect("a time"));
        assert!(half <= most && most <= row.max_ns && row.mean_ns().is_some_and(|mean| mean <= row.max_ns), "{place}");
    }
}

/// Whether requests took no longer than the client has clocked them.
fn is_within(row: &RequestRow<'_>, known: &Clocked) -> bool {
    row.total_ns <= known.total_ns && row.max_ns <= known.longest_ns
}

/// Records a service that asks itself.
fn record_service(runtime: &Runtime, arguments: &[&str]) -> (Recording, String) {
    let seen = record_service_in(runtime, arguments, &[]);
    (seen.recording, seen.finished.stdout_text())
}

/// Records it with variables in its environment. A served request ends behind the last byte of its
/// answer, which the client may have by then: on a busy machine it is tried again.
fn record_service_in(runtime: &Runtime, arguments: &[&str], environment: &[(&str, &OsStr)]) -> Run {
    let mut recorded = None;
    attempted(|| {
        let mut command = runtime.command(&fixture("Serves"));
        command.args(arguments).envs(environment.iter().copied());
        let seen = recorded.insert(record_command(runtime, "Serves", "requests", command));
        let rows = rows(&seen.recording, Direction::Served);
        let known = clocked(&seen.finished.stdout_text(), "SERVED");
        let late = known.iter().filter(|(name, known)| rows.get(*name).is_some_and(|row| !is_within(row, known)));
        match late.map(|(name, known)| format!("{name}: {:?}, {known:?}", rows[name])).next() {
            Some(late) => Err(late),
            None => Ok(()),
        }
    })
    .unwrap_or_else(|late| panic!("{late} on {}", runtime.version));
    recorded.expect("it was tried")
}

fn record(runtime: &Runtime, program: &str, arguments: &[&str]) -> (Recording, String) {
    let seen = record_with(runtime, program, "requests", arguments);
    (seen.recording, seen.finished.stdout_text())
}

#[test]
fn requests_that_a_service_serves_and_makes_are_those_that_it_counts_and_clocks() {
    each_web_runtime(|runtime| {
        let (recording, output) = record_service(runtime, &[ROUNDS, "leaves"]);
        let place = format!("{output} on {}", runtime.version);
        let served = rows(&recording, Direction::Served);
        let known = clocked(&output, "SERVED");
        assert_eq!(known.len(), 12, "{place}");
        check(&served, &known, &place);
        let mut made = rows(&recording, Direction::Made);
        check(&made, &clocked(&output, "MADE"), &place);

        // What never ended is apart, on both sides.
        let host = output.lines().find_map(|line| line.strip_prefix("LEAVES ")).expect("it leaves");
        let asked = made.remove(&format!("GET {host}")).expect("a row");
        assert_eq!((served["GET /forever/*"].partial, asked.partial), (1, 1), "{place}");
        assert_eq!(served.values().map(|row| row.partial).sum::<u64>(), 1, "{place}");
        let (each, left_out) = each_request(&recording, &Query::default()).expect("requests");
        let whole: u64 = served.values().map(|row| row.count).sum::<u64>()
            + clocked(&output, "MADE").values().map(|known| known.count).sum::<u64>();
        assert_eq!((each.len() as u64, left_out), (whole + 2, 0), "{place}");
        assert!(each.windows(2).all(|pair| pair[0].duration_ns >= pair[1].duration_ns), "the slowest first");
        let statuses: Vec<u64> =
            each.iter().filter(|one| &*one.route == "GET /throw").filter_map(|one| one.status).collect();
        assert!(!statuses.is_empty() && statuses.iter().all(|status| *status == 500), "{statuses:?}, {place}");
    });
}

/// The program asks for the time with each activity, and the clock is an hour off, now this way and
/// now that way.
#[test]
fn requests_take_as_long_as_they_do_where_the_clock_of_the_machine_jumps() {
    each_web_runtime(|runtime| {
        let clock = native_library("Serves/jumps.c");
        let seen = record_service_in(runtime, &[ROUNDS, "listens"], &[("LD_PRELOAD", clock.as_os_str())]);
        let said = seen.finished.stderr_text();
        let asked: Option<u64> = said.lines().find_map(|line| line.strip_prefix("JUMPED ")?.parse().ok());
        assert!(asked > Some(100), "{said}");
        let output = seen.finished.stdout_text();
        check(&rows(&seen.recording, Direction::Served), &clocked(&output, "SERVED"), &output);
        check(&rows(&seen.recording, Direction::Made), &clocked(&output, "MADE"), &output);
    });
}

/// With activities each request has the ids that its handler sees, and that the peer was sent.
#[test]
fn requests_have_the_trace_and_span_that_the_program_sees() {
    each_web_runtime(|runtime| {
        let (recording, output) = record(runtime, "Serves", &[ROUNDS, "listens"]);
        let place = format!("{output} on {}", runtime.version);
        let known: Vec<Vec<&str>> =
            output.lines().filter_map(|line| Some(line.strip_prefix("TRACE ")?.split('|').collect())).collect();
        assert_eq!(known.len().to_string(), ROUNDS, "{place}");
        let (each, _) = each_request(&recording, &Query::default()).expect("requests");
        let spans = |direction, trace: &str| {
            let ids = each.iter().filter(|one| one.direction == direction).filter_map(|one| one.trace);
            let spans = ids.filter(|ids| ids.trace_id() == trace).map(|ids| ids.span_id());
            spans.collect::<Vec<_>>()
        };
        for ids in known {
            let [trace, served, made] = ids[..] else { panic!("{place}") };
            assert_eq!(spans(Direction::Served, trace), [served], "{place}");
            assert_eq!(spans(Direction::Made, trace), [made], "{place}");
        }
        let (recording, _) = record(runtime, "Serves", &[ROUNDS]);
        let (each, _) = each_request(&recording, &Query::default()).expect("requests");
        assert!(!each.is_empty() && each.iter().all(|one| one.trace.is_none()), "no activities, no ids");
    });
}

/// A request's feature may be the program's own: what it throws is not the program's to bear.
#[test]
fn requests_whose_feature_throws_are_counted_and_the_program_goes_on() {
    each_web_runtime(|runtime| {
        let (recording, output) = record_service(runtime, &[ROUNDS, "hostile"]);
        let place = format!("{output} on {}", runtime.version);
        let known = clocked(&output, "SERVED");
        assert!(known.contains_key("(not known)"), "{place}");
        check(&rows(&recording, Direction::Served), &known, &place);
        check(&rows(&recording, Direction::Made), &clocked(&output, "MADE"), &place);
    });
}

#[test]
fn requests_by_http_client_are_those_that_the_program_counts_and_clocks() {
    each_runtime(|runtime| {
        let (recording, output) = record(runtime, "Asks", &[ROUNDS, "leaves"]);
        let place = format!("{output} on {}", runtime.version);
        let made = rows(&recording, Direction::Made);
        check(&made, &clocked(&output, "MADE"), &place);
        let host = output.lines().find_map(|line| line.strip_prefix("LEAVES ")).expect("it leaves");
        let under_way = &made[&format!("GET {host}")];
        assert_eq!((under_way.count, under_way.partial), (0, 1), "{place}");
        assert_eq!(rows(&recording, Direction::Served).len(), 0, "{place}");
    });
}

/// Whole addresses are there only where they are asked for, and where no template says more.
#[test]
fn names_have_whole_addresses_where_they_are_asked_for() {
    let names = |runtime: &Runtime, program: &str, request: &str, direction| {
        let seen = record_with(runtime, program, request, &["2"]);
        rows(&seen.recording, direction).into_keys().collect::<Vec<_>>()
    };
    let has = |names: &[String], part: &str| names.iter().any(|name| name.contains(part));
    each_runtime(|runtime| {
        let made = names(runtime, "Asks", "requests:urls=full", Direction::Made);
        assert!(has(&made, "/ok?secret=7") && has(&made, "DELETE 127.0.0.1"), "{made:#?} on {}", runtime.version);
        assert!(made.contains(&"PUT 127.0.0.1:1/".to_owned()), "{made:#?} on {}", runtime.version);
        let made = names(runtime, "Asks", "requests", Direction::Made);
        assert!(!has(&made, "/") && !has(&made, "secret"), "{made:#?} on {}", runtime.version);
    });
    each_web_runtime(|runtime| {
        let served = names(runtime, "Serves", "requests:urls=full", Direction::Served);
        let wanted = ["GET /files/0/a?secret=8 (no endpoint)", "GET /files/1/a?secret=8 (no endpoint)"];
        assert!(wanted.iter().all(|name| served.contains(&(*name).to_owned())), "{served:#?}");
        assert!(served.contains(&"GET /orders/{id:int}".to_owned()) && !has(&served, "secret=7"), "{served:#?}");
        let served = names(runtime, "Serves", "requests", Direction::Served);
        assert!(served.contains(&"GET /files/* (no endpoint)".to_owned()) && !has(&served, "secret"), "{served:#?}");
    });
}

/// Commands of any provider: one each, whatever its methods call of each other, and nothing of the
/// statement but its first word.
#[test]
fn commands_to_databases_are_those_that_the_program_counts_and_clocks() {
    each_runtime(|runtime| {
        for arguments in [&[ROUNDS][..], &[ROUNDS, "listens"]] {
            let (recording, output) = record(runtime, "Commands", arguments);
            let place = format!("{arguments:?}, {output} on {}", runtime.version);
            let mut made = rows(&recording, Direction::Made);
            let later = output.lines().filter_map(|line| line.strip_prefix("LATER ")?.split_once('|'));
            for (name, count) in later {
                let row = made.get_mut(name).unwrap_or_else(|| panic!("no {name}: {place}"));
                assert_eq!(row.partial.to_string(), count, "{place}");
                row.partial = 0;
            }
            assert!(made.values().all(|row| row.partial == 0), "{made:#?}: {place}");
            let known = clocked(&output, "MADE");
            assert_eq!(known.len(), 10, "{place}");
            check(&made, &known, &place);
            assert!(made.keys().all(|name| !name.contains("secret")), "{made:#?}");

            let traces: Vec<(String, String)> =
                output.lines().filter_map(|line| line.strip_prefix("TRACE ")?.split_once('|')).map(owned).collect();
            assert_eq!(traces.is_empty(), arguments.len() == 1, "{place}");
            let (each, _) = each_request(&recording, &Query::default()).expect("requests");
            let ids = each.iter().filter(|one| &*one.route == "ALTER shop@traced").filter_map(|one| one.trace);
            let mut found: Vec<_> = ids.map(|ids| (ids.trace_id(), ids.span_id())).collect();
            found.sort();
            let mut wanted = traces;
            wanted.sort();
            assert_eq!(found, wanted, "{place}");
        }
    });
}

fn owned((left, right): (&str, &str)) -> (String, String) {
    (left.to_owned(), right.to_owned())
}

/// What a program has seen of itself, without the ports of its addresses.
fn seen(output: &str) -> Vec<String> {
    output.lines().filter(|line| line.starts_with("SEEN ")).map(str::to_owned).collect()
}

/// No activity, header, scope, feature or event is there that would not be there without us.
#[test]
fn the_program_sees_what_it_sees_without_us() {
    let check = |runtime: &Runtime, program: &str, arguments: &[&str]| {
        let mut bare = runtime.command(&fixture(program));
        bare.args(arguments);
        let bare = seen(&run(bare).stdout_text());
        let (_, output) = record(runtime, program, arguments);
        assert_eq!(seen(&output), bare, "{program} {arguments:?} on {}", runtime.version);
        assert!(!bare.is_empty());
        bare
    };
    each_runtime(|runtime| {
        let plain = check(runtime, "Asks", &["2"]);
        assert!(plain.iter().all(|line| !line.contains("traceparent")), "{plain:#?}");
        let listened = check(runtime, "Asks", &["2", "listens"]);
        assert!(listened.iter().any(|line| line.contains("traceparent")), "{listened:#?}");
        let plain = check(runtime, "Commands", &["2"]);
        assert!(plain.iter().any(|line| line.contains("activities 0, now none, in turn none")), "{plain:#?}");
        let listened = check(runtime, "Commands", &["2", "listens"]);
        assert!(listened.iter().any(|line| line.ends_with("now none, in turn mine")), "{listened:#?}");
    });
    each_web_runtime(|runtime| {
        check(runtime, "Whose", &["sees"]);
        for arguments in [&["2"][..], &["2", "listens"], &["2", "logs"], &["2", "listens", "logs"]] {
            let bare = check(runtime, "Serves", arguments);
            let counts = bare.iter().find(|line| line.starts_with("SEEN activities")).expect("counts");
            assert_eq!(!counts.contains("activities 0"), arguments.contains(&"listens"), "{counts}");
            assert_eq!(!counts.contains("logs 0"), arguments.contains(&"logs"), "{counts}");
        }
    });
}

/// What clients that ask at once have clocked, and the handlers that answered them.
#[derive(Debug)]
struct Stage {
    clients: u64,
    requests: u64,
    took_ns: u64,
    /// Time of a request on average.
    asked_ns: u64,
    handled_ns: u64,
}

fn stages(output: &str) -> Vec<Stage> {
    let parse = |line: &str| {
        let numbers = line.strip_prefix("CLIENTS ")?.split('|').map(|number| number.parse().ok());
        let numbers: Vec<u64> = numbers.collect::<Option<_>>()?;
        let [clients, requests, took_ns, asked_ns, handled_ns] = numbers[..] else { return None };
        Some(Stage { clients, requests, took_ns, asked_ns: asked_ns / requests, handled_ns: handled_ns / requests })
    };
    output.lines().filter_map(parse).collect()
}

/// Whether the loads of a stage, which clients that are between two requests make less than their
/// number, are as clocked: the requests are there, in the time that clients and handlers clocked,
/// and as many a second as clients got. A tenth more or less is what the tenths of a second at the
/// stage's edges may have.
fn is_as_clocked(curve: &LoadCurve<'_>, stage: &Stage) -> bool {
    let is_of_stage = |load: Load| load.first() * 2 > stage.clients && load.first() <= stage.clients;
    let levels: Vec<&LoadLevel> = curve.levels.iter().filter(|level| is_of_stage(level.load)).collect();
    let sum = |of: fn(&LoadLevel) -> u64| levels.iter().map(|level| of(level)).sum::<u64>();
    let is_near = |value: f64, least: f64, most: f64| value >= least * 0.9 && value <= most * 1.1;
    let (requests, clients) = (sum(|level| level.requests) as f64, stage.requests as f64);
    let mean_ns = sum(|level| level.total_ns) as f64 / requests;
    let rate = sum(|level| level.ended) as f64 / sum(|level| level.time_ns) as f64;
    let clocked = clients / stage.took_ns as f64;
    is_near(requests, clients, clients)
        && is_near(mean_ns, stage.handled_ns as f64, stage.asked_ns as f64)
        && is_near(rate, clocked, clocked)
}

#[test]
fn requests_by_load_take_as_long_as_clients_clock_and_the_knee_is_at_the_number_of_slots() {
    let check = |runtime: &Runtime| {
        let (recording, output) = record(runtime, "Capacity", &["25", "40"]);
        let place = format!("{output} on {}", runtime.version);
        let curves = loads(&recording, &Query::default()).expect("loads");
        let curve = curves.iter().find(|curve| &*curve.route == "GET /slots").expect("the route");
        let stages = stages(&output);
        let whole: u64 = curve.levels.iter().map(|level| level.requests).sum();
        let clocked = stages.iter().map(|stage| stage.requests).sum();
        assert_eq!((stages.len(), whole, curve.is_exact), (5, clocked, true), "{place}");
        let knee = curve.knee().map(|level| level.load.first());
        match stages.iter().find(|stage| !is_as_clocked(curve, stage)) {
            None if knee == Ok(4) => Ok(()),
            odd => Err(format!("{odd:?}, knee {knee:?}: {:#?}, {place}", curve.levels)),
        }
    };
    // On a busy machine more than the slots keeps requests waiting.
    each_web_runtime(|runtime| attempted(|| check(runtime)).unwrap_or_else(|odd| panic!("{odd}")));
}
