//! The view `load`: its rows, and the sentence that names the knee or says why there is none.

use clrscope_recording::events::{Kind, Tag};
use clrscope_recording::model::{EventArena, Process, Recording};
use clrscope_recording::testing::chunk::HandmadeChunk;
use clrscope_report::{Format, Request, view};

const MS: u64 = 1_000_000;

/// A service that each number of clients asks for a second, as often as it answers in so many
/// milliseconds; a second of rest lies between them.
fn service(stages: &[(u64, u64)]) -> Recording {
    let mut ends: Vec<(u64, u64)> = Vec::new();
    for (second, (clients, took_ms)) in (0..).step_by(2).zip(stages) {
        for at in 0..clients * (1_000 / took_ms) {
            let begins_ms = second * 1_000 + at / clients * took_ms;
            ends.push(((begins_ms + took_ms) * MS, took_ms * MS));
        }
    }
    let named = [(Tag::ROUTE, 1_u64.into()), (Tag::NAME, "GET /slots".into())];
    let (mut chunk, mut last_ns) = (HandmadeChunk::new(0, 1, 0).put(Kind::REQUEST_NAME, &named), 0);
    for (ended_ns, took_ns) in ends {
        let fields = [(Tag::ROUTE, 1_u64.into()), (Tag::DURATION, took_ns.into())];
        chunk = chunk.after(ended_ns - last_ns).put(Kind::REQUEST_ENDED, &fields);
        last_ns = ended_ns;
    }
    let events = vec![EventArena { instrument: "requests".into(), chunks: vec![chunk.finish()] }];
    Recording { processes: vec![Process { pid: 7, events, ..Process::default() }], ..Recording::default() }
}

fn report(recording: &Recording, format: Format) -> String {
    let request = Request::default();
    let mut out = Vec::new();
    let report = view("load").expect("the view").open(recording, &request).expect("loads");
    report.write(format, 80, &mut out).expect("memory takes all");
    String::from_utf8(out).expect("UTF-8")
}

/// Text without its line breaks and styles.
fn sentences(recording: &Recording) -> String {
    let text = ["\u{1b}[0m", "\u{1b}[1m", "\u{1b}[2m"]
        .iter()
        .fold(report(recording, Format::Text), |text, style| text.replace(style, ""));
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

#[test]
fn the_knee_is_named_with_what_becomes_of_more_load() {
    let recording = service(&[(1, 20), (4, 20), (16, 80)]);
    let said = sentences(&recording);
    let wanted = "The knee of GET /slots is at 4 in flight: 200 requests a second, 20.0 ms each. With more in flight \
                  each takes longer: at 16-23 in flight 80.0 ms, and 200 are done a second.";
    assert!(said.contains(wanted), "{said}");
    let document: serde_json::Value = serde_json::from_str(&report(&recording, Format::Json)).expect("JSON");
    let rows = document["rows"].as_array().expect("rows");
    let keys = ["route", "in_flight", "in_flight_to", "requests", "mean_ns", "per_second", "knee"];
    let wanted = [
        ("(all)", 1, 1, 50, 20, 50.0, false),
        ("(all)", 4, 4, 200, 20, 200.0, true),
        ("(all)", 16, 23, 192, 80, 200.0, false),
        ("GET /slots", 1, 1, 50, 20, 50.0, false),
        ("GET /slots", 4, 4, 200, 20, 200.0, true),
        ("GET /slots", 16, 23, 192, 80, 200.0, false),
    ];
    let wanted = wanted.map(|(route, first, last, requests, mean, rate, knee)| {
        serde_json::json!([route, first, last, requests, mean * MS, rate, knee])
    });
    let found = rows.iter().map(|row| serde_json::Value::from(keys.map(|key| row[key].clone()).to_vec()));
    assert_eq!(found.collect::<Vec<_>>(), wanted);
    let csv = report(&recording, Format::Csv);
    assert!(csv.starts_with("route,in_flight,in_flight_to,requests,exact,mean_ns,p90_ns,per_second,knee\n"), "{csv}");
    assert!(csv.contains("\nGET /slots,4,4,200,true,20000000,"), "{csv}");
}

#[test]
fn where_there_is_no_knee_the_reason_is_said() {
    let said = sentences(&service(&[(1, 20), (4, 20)]));
    assert!(said.contains("No knee: requests took hardly longer with more of them in flight."), "{said}");
    for few in [&[(4, 20)][..], &[(2, 200), (4, 500)]] {
        let said = sentences(&service(few));
        assert!(said.contains("No knee: finding one takes 20 requests or more"), "{said}");
    }
    let nothing = sentences(&service(&[]));
    assert!(nothing.contains("No requests to show") && !nothing.contains("No knee"), "{nothing}");
}
