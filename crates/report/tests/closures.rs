//! Functions of one name: closures have markers, said in every view and export, and once; overloads
//! have their parameters.

use std::io::Read as _;

use clrscope_analysis::{Query, tell_closures_apart};
use clrscope_contract::request::Pattern;
use clrscope_export::ExportOptions;
use clrscope_recording::model::{Recording, SourceKind};
use clrscope_recording::testing::ascii_trees::recording;
use clrscope_report::{Format, Request, exporters, view};

/// `Main(string[])`, two lambdas in it, and the code of an overload that became `async`.
fn closures() -> Recording {
    let mut recording =
        recording("thread 1 main\n  Main 1 9000000\n    First 3 8000000\n    Second 4 7000000\n    Later 2 6000000\n");
    let functions = recording.processes[0].functions.iter_mut().skip(1);
    let codes = [
        (SourceKind::Plain, "App.Program.Main(string[])", "App.Program::Main"),
        (SourceKind::Lambda, "App.Program.Main(string[]) (lambda)", "App.Program+<>c::<Main>b__0_0"),
        (SourceKind::Lambda, "App.Program.Main(string[]) (lambda)", "App.Program+<>c::<Main>b__0_2"),
        (SourceKind::Async, "App.Program.Main(int) (async)", "App.Program+<Main>d__1::MoveNext"),
    ];
    for (token, (function, (source, signature, raw))) in (1..).zip(functions.zip(codes)) {
        function.name = "App.Program::Main".into();
        (function.source, function.signature, function.raw_name) = (source, signature.into(), raw.into());
        function.token = 0x0600_0000 + token;
    }
    tell_closures_apart(&mut recording, &mut |_, _| None);
    recording
}

#[test]
fn a_suffix_is_said_once_where_overloads_are_told_apart_by_their_signatures() {
    let recording = closures();
    let mut out = Vec::new();
    let report = view("functions").expect("a view").open(&recording, &Request::default()).expect("rows");
    report.write(Format::Text, 200, &mut out).expect("memory takes all");
    let text = anstream::adapter::strip_str(&String::from_utf8(out).expect("UTF-8")).to_string();
    for name in ["(string[])", "(string[]) (lambda 1)", "(string[]) (lambda 3)", "(int) (async)"] {
        let wanted = format!("App.Program.Main{name}");
        assert_eq!(text.lines().filter(|line| line.ends_with(&wanted)).count(), 1, "{wanted} in {text}");
    }
}

#[test]
fn callers_and_callees_of_overloads_are_told_apart_by_their_parameters() {
    let recording = closures();
    for name in ["callers", "callees"] {
        let query = Query { functions: vec![Pattern::parse("Main").expect("a pattern")], ..Query::default() };
        let report = view(name).expect("a view").open(&recording, &Request { query, ..Request::default() });
        let mut out = Vec::new();
        report.expect("rows").write(Format::Text, 200, &mut out).expect("memory takes all");
        let text = anstream::adapter::strip_str(&String::from_utf8(out).expect("UTF-8")).to_string();
        for signature in ["(string[])", "(int) (async)"] {
            let wanted = format!("App.Program.Main{signature}");
            assert!(text.lines().any(|line| line.ends_with(&wanted)), "{wanted} in {name}: {text}");
        }
    }
}

#[test]
fn flamegraph_and_collapsed_keep_the_suffix() {
    let recording = closures();
    for format in exporters() {
        let mut out = Vec::new();
        if format.write(&recording, &ExportOptions::default(), &mut out).is_err() {
            let other_data = [
                ["calllog", "chrome", "cobertura", "firefox", "heapsnapshot", "lcov"].as_slice(),
                &["opencover", "otlp-metrics", "parquet-samples", "prometheus"],
            ];
            assert!(other_data.concat().contains(&format.name()), "{} is of calls", format.name());
            continue;
        }
        if format.name() == "parquet" {
            // Its texts are compressed.
            continue;
        }
        if format.name() == "pprof" {
            let mut plain = Vec::new();
            flate2::read::GzDecoder::new(&out[..]).read_to_end(&mut plain).expect("gzip");
            out = plain;
        }
        // Names stand as they are in binary formats, too.
        let text = String::from_utf8_lossy(&out);
        for code in ["(lambda 1)", "(lambda 3)", "(async)"] {
            assert!(text.contains(code), "{}: no {code} in {text}", format.name());
        }
    }
}
