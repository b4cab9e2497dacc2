//! `cover`, on a real program whose lines and branches are known.

mod common;

use std::ffi::OsString;
use std::fs;
use std::path::PathBuf;

use clrscope_testkit as testkit;
use common::TestFolder;
use common::counted::{COUNTED, said_hits};
use serde_json::Value;
use testkit::{Finished, Runtime, Sdk};

/// Statements of the fixture that its `Main` never runs, each with the number of lines that have
/// it.
const NEVER_RUN: &[(&str, usize)] = &[
    ("return \"one\";", 1),
    ("return \"three\";", 1),
    ("return \"many\";", 1),
    ("return left + right;", 1),
    ("throw;", 1),
];

fn cover(place: &TestFolder, runtime: &Runtime, options: &[&str]) -> Finished {
    let mut words: Vec<OsString> =
        ["cover", "--include", "[Covered]*"].iter().chain(options).map(OsString::from).collect();
    words.push("--".into());
    words.extend(runtime.words(&testkit::fixture("Covered")));
    let mut command = place.clrscope(words);
    runtime.prepare(&mut command);
    testkit::run(command)
}

/// Source of the fixture.
fn source() -> String {
    let path = testkit::workspace_root().join("dotnet/fixtures/Covered/Covered.cs");
    fs::read_to_string(path).expect("the source")
}

/// Number of the first line of the fixture that is a text.
fn line_of(text: &str) -> usize {
    1 + source().lines().position(|line| line.trim() == text).expect("the line")
}

/// Lines of the fixture's own file, by their text without remarks.
fn lines(place: &TestFolder) -> Vec<(String, Value)> {
    let output = place.run("report c.clrs --view coverage --lines --format json");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let document: Value = serde_json::from_slice(&output.stdout).expect("JSON");
    let source = source();
    let source: Vec<&str> = source.lines().collect();
    let rows = document["rows"].as_array().expect("rows").iter();
    let own = rows.filter(|row| row["file"].as_str().is_some_and(|file| file.ends_with("/Covered.cs")));
    own.map(|row| {
        let text = source[row["line"].as_u64().expect("a line") as usize - 1];
        (text.split("//").next().unwrap_or_default().trim().to_owned(), row.clone())
    })
    .collect()
}

#[test]
fn lines_that_ran_and_lines_that_did_not_are_those_of_the_source_on_every_runtime() {
    for runtime in testkit::runtimes() {
        let place = TestFolder::new();
        let with = cover(&place, runtime, &["-o", "c.clrs", "--cobertura", "c.xml", "--fail-under", "50"]);
        let with = with.expect_success();
        assert!(with.stdout_text().starts_with("result "), "the program's own output: {}", with.stdout_text());
        assert!(with.stderr_text().contains("Covered"), "{}", with.stderr_text());
        let lines = lines(&place);
        let never = |text: &str| {
            let is_it = |(of, row): &&(String, Value)| of == text && row["hits"] == 0;
            lines.iter().filter(is_it).count()
        };
        for (text, count) in NEVER_RUN {
            assert_eq!(never(text), *count, "{text} on {runtime:?}");
        }
        let hits = |text: &str| lines.iter().find(|(of, _)| of == text).map(|(_, row)| row["hits"].clone());
        assert_eq!(hits("number /= 2;"), Some(4.into()), "{runtime:?}");
        assert_eq!(hits("sum += number;"), Some(3.into()), "{runtime:?}");
        assert_eq!(hits("yield return number;"), Some(3.into()), "{runtime:?}");
        let both = lines.iter().find(|(of, _)| of == "if (left > 0 && right > 0)").expect("the line");
        assert_eq!((&both.1["branches"], &both.1["branches_covered"]), (&4.into(), &2.into()), "{runtime:?}");

        let xml = fs::read_to_string(place.file("c.xml")).expect("the XML");
        assert!(xml.contains("<package name=\"Covered\""), "{xml}");
        assert!(xml.contains("name=\"Covered.Box&lt;T&gt;\""), "{xml}");
        let lcov = place.run("export c.clrs --to lcov");
        let lcov = String::from_utf8_lossy(&lcov.stdout).into_owned();
        assert!(lcov.contains("FNDA:1,Covered.Plain.Both(int, int)\n") && lcov.ends_with("end_of_record\n"), "{lcov}");
    }
}

/// Lines and calls of one run: the method that halves is called five times, and covered like all
/// others.
#[test]
fn calls_are_counted_in_the_run_that_is_covered() {
    for runtime in testkit::runtimes() {
        let place = TestFolder::new();
        let (halved, text) = (line_of("number /= 2;"), "number /= 2;");
        let at = format!("Covered.cs:{halved}");
        let options = ["-o", "c.clrs", "--probe", "Covered.Plain::Half", "--probe-at", &at];
        let with = cover(&place, runtime, &options).expect_success();
        assert!(with.stderr_text().contains("--view coverage, or --view probes"), "{}", with.stderr_text());
        let report = place.run("report c.clrs --view probes --format json");
        let report: Value = serde_json::from_slice(&report.stdout).expect("JSON");
        let rows = report["rows"].as_array().expect("rows");
        let calls =
            |line: Option<usize>| rows.iter().find(|row| row["line"] == Value::from(line)).map(|row| &row["calls"]);
        assert_eq!((calls(None), calls(Some(halved))), (Some(&5.into()), Some(&4.into())), "{report:#}");
        let lines = lines(&place);
        let hits = |text: &str| lines.iter().find(|(of, _)| of == text).map(|(_, row)| row["hits"].clone());
        assert_eq!((hits(text), hits("while (number > 3)")), (Some(4.into()), Some(9.into())), "{runtime:?}");
        let summary = place.run("report c.clrs --format json");
        let summary: Value = serde_json::from_slice(&summary.stdout).expect("JSON");
        assert_eq!((&summary["probed"], &summary["covered"][0]["module"]), (&report["rows"], &"Covered".into()));
        let page = place.transcript("report c.clrs");
        assert!(page.contains("Probed methods and lines by time (2 of 2)") && page.contains("Coverage"), "{page}");
        let of_a_part = place.transcript("report c.clrs --since 1ms");
        assert!(!of_a_part.contains("Probed methods") && !of_a_part.contains("Coverage"), "{of_a_part}");
    }
}

#[test]
fn too_little_coverage_is_an_exit_code_and_recordings_add_up() {
    let runtime = testkit::runtimes().last().expect("a runtime");
    let place = TestFolder::new();
    let under = cover(&place, runtime, &["-o", "c.clrs", "--fail-under", "100"]);
    assert_eq!(under.code(), 1, "{}", under.stderr_text());
    assert!(under.stderr_text().contains("--fail-under asks for 100 %"), "{}", under.stderr_text());
    let alone = lines(&place);
    fs::rename(place.file("c.clrs"), place.file("a.clrs")).expect("renamed");
    let merged = place.run("cover --cobertura twice.xml --merge a.clrs a.clrs");
    assert!(merged.status.success(), "{}", String::from_utf8_lossy(&merged.stderr));
    assert!(String::from_utf8_lossy(&merged.stdout).contains("Covered"));
    let xml = fs::read_to_string(place.file("twice.xml")).expect("the XML");
    let (_, halved) = alone.iter().find(|(of, _)| of == "number /= 2;").expect("the line");
    let line = format!("<line number=\"{}\" hits=\"8\"", halved["line"]);
    assert!(xml.contains(&line), "{line} is not in {xml}");
}

/// The assembly and the list of dependencies lie in the program, behind the code of the host; the
/// PDB lies next to the program.
#[test]
fn lines_of_a_single_file_program_are_covered() {
    let Some(sdk) = Sdk::find() else { return testkit::not_run("no .NET SDK is at hand") };
    let place = TestFolder::new();
    let program = sdk.publish_single_file(place.path(), "alone", COUNTED);
    let mut command =
        place.clrscope(["cover".as_ref(), "-o".as_ref(), "c.clrs".as_ref(), "--".as_ref(), program.as_os_str()]);
    sdk.lend_runtime(&mut command);
    let covered = testkit::run(command).expect_success();
    assert_eq!(covered.stdout_text(), "2450\n");
    let output = place.run("report c.clrs --view coverage --lines --format json");
    let document: Value = serde_json::from_slice(&output.stdout).expect("JSON");
    let hits = |line: u64| {
        let rows = document["rows"].as_array().expect("rows");
        rows.iter().find(|row| row["line"] == line).map(|row| row["hits"].to_string()).unwrap_or_default()
    };
    for (line, wanted) in said_hits() {
        assert_eq!(hits(line), wanted.to_string(), "line {line}: {document:#}");
    }
}

/// Two assemblies that a program uses, one that is never loaded, and the program: each with its
/// lines.
const LIBRARY: &str = "namespace Lib;
public static class Calc
{
    public static int Add(int a, int b) => a + b;
}
public static class Text
{
    public static int Two() => 2;
}
";
const OTHER: &str = "namespace Lib2;
public static class Other
{
    public static int Mul(int a, int b) => a * b;
}
";
const SPARE: &str = "namespace Spare;
public static class Part
{
    public static int One() => 1;
}
";
const USER: &str = "public static class App
{
    public static void Main() =>
        System.Console.WriteLine(Lib.Calc.Add(1, 2) + Lib.Text.Two() + Lib2.Other.Mul(3, 4));
}
";

/// Compiles the four without optimisation, with their PDBs next to them; returns the program's
/// path.
fn program_with_libraries(sdk: &Sdk, place: &TestFolder) -> PathBuf {
    let assembly = |name: &str| place.file(&format!("{name}.dll"));
    for (name, source, uses) in
        [("Lib", LIBRARY, &[][..]), ("Lib2", OTHER, &[]), ("Spare", SPARE, &[]), ("App", USER, &["Lib", "Lib2"])]
    {
        let file = place.file(&format!("{name}.cs"));
        fs::write(&file, source).expect("a file");
        let mut compiler = sdk.compiler_to(&assembly(name));
        compiler.args(["-debug:portable", "-optimize-"]);
        compiler.arg(if name == "App" { "-target:exe" } else { "-target:library" }).arg(&file);
        compiler.args(uses.iter().map(|name| format!("-r:{}", assembly(name).display())));
        testkit::run(compiler).expect_success();
    }
    let config = testkit::fixture("Covered").with_extension("runtimeconfig.json");
    fs::copy(config, place.file("App.runtimeconfig.json")).expect("copied");
    assembly("App")
}

/// Assemblies of a report of coverage with their lines and those that ran.
fn assemblies(place: &TestFolder, options: &str) -> Vec<(String, u64, u64)> {
    let output = place.run(&format!("report c.clrs --format json {options}"));
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let document: Value = serde_json::from_slice(&output.stdout).expect("JSON");
    let rows = document["covered"].as_array().or(document["modules"].as_array()).expect("assemblies");
    let number = |row: &Value, key: &str| row[key].as_u64().expect("a number");
    let mut all: Vec<_> = rows
        .iter()
        .map(|row| {
            (row["module"].as_str().unwrap_or("").to_owned(), number(row, "lines"), number(row, "lines_covered"))
        })
        .collect();
    all.sort();
    all
}

/// An assembly, its lines, and those of them that were run.
type AssemblyLines = (&'static str, u64, u64);

/// Assemblies that filters leave out stood in tables, XML and `--fail-under` with all lines
/// uncovered, though they ran.
#[test]
fn cover_filter_counts_no_others_as_uncovered() {
    let Some(sdk) = Sdk::find() else { return testkit::not_run("no .NET SDK is at hand") };
    let (app, lib, lib2, spare) = (("App", 1, 1), ("Lib", 2, 2), ("Lib2", 1, 1), ("Spare", 1, 0));
    let cases: [(&[&str], &[AssemblyLines]); 8] = [
        (&[], &[app, lib, lib2, spare]),
        (&["--include", "[Lib]*"], &[lib]),
        (&["--include", "[Lib*]*"], &[lib, lib2]),
        (&["--include", "Lib.Calc::*"], &[("Lib", 1, 1)]),
        (&["--exclude", "[Lib]*", "--exclude", "[Spare]*"], &[app, lib2]),
        (&["--exclude", "Lib.Calc::*", "--exclude", "[Spare]*"], &[app, ("Lib", 1, 1), lib2]),
        (&["--exclude", "[App]*", "--exclude", "Spare.Part::One"], &[lib, lib2]),
        (&["--include", "[Lib*]*", "--exclude", "[Lib2]*"], &[lib]),
    ];
    for runtime in testkit::runtimes() {
        let place = TestFolder::new();
        let program = program_with_libraries(&sdk, &place);
        for (filters, expected) in cases {
            let what = format!("{filters:?} on {}", runtime.version);
            let options = ["cover", "-o", "c.clrs", "--cobertura", "c.xml", "--force", "--fail-under", "100"];
            let mut words: Vec<OsString> = options.iter().chain(filters).map(OsString::from).collect();
            words.push("--".into());
            words.extend(runtime.words(&program));
            let mut command = place.clrscope(words);
            runtime.prepare(&mut command);
            let covered = testkit::run(command);
            let is_all = expected.iter().all(|(_, lines, covered)| lines == covered);
            assert_eq!(covered.code(), i32::from(!is_all), "{what}: {}", covered.stderr_text());
            assert_eq!(covered.stdout_text(), "17\n", "{what}");
            let found = assemblies(&place, "");
            let found: Vec<_> = found.iter().map(|(name, lines, covered)| (name.as_str(), *lines, *covered)).collect();
            assert_eq!(found, expected, "{what}");
            let xml = fs::read_to_string(place.file("c.xml")).expect("the XML");
            for (name, ..) in [app, lib, lib2, spare] {
                let is_there = expected.iter().any(|(of, ..)| *of == name);
                assert_eq!(xml.contains(&format!("<package name=\"{name}\"")), is_there, "{what}: {name} in {xml}");
            }
        }
        // Each recording has its own filter.
        let of = |filter: &str, file: &str| {
            let mut words: Vec<OsString> =
                ["cover", "-o", file, "--include", filter, "--"].iter().map(OsString::from).collect();
            words.extend(runtime.words(&program));
            let mut command = place.clrscope(words);
            runtime.prepare(&mut command);
            testkit::run(command).expect_success();
        };
        of("[Lib]*", "one.clrs");
        of("[Lib2]*", "two.clrs");
        let merged = place.run("cover --fail-under 100 --merge one.clrs two.clrs");
        assert!(merged.status.success(), "{}", String::from_utf8_lossy(&merged.stdout));
    }
}

/// Of a recording of coverage alone no function was known, and so no assembly: a filter was
/// refused, or left nothing.
#[test]
fn module_filter_of_coverage() {
    let Some(sdk) = Sdk::find() else { return testkit::not_run("no .NET SDK is at hand") };
    for runtime in testkit::runtimes() {
        let place = TestFolder::new();
        let program = program_with_libraries(&sdk, &place);
        let mut words: Vec<OsString> =
            ["run", "-i", "coverage", "-o", "c.clrs", "--"].iter().map(OsString::from).collect();
        words.extend(runtime.words(&program));
        let mut command = place.clrscope(words);
        runtime.prepare(&mut command);
        testkit::run(command).expect_success();
        for view in ["", "--view coverage "] {
            for (wanted, expected) in
                [("Lib", &["Lib"][..]), ("lib2", &["Lib2"]), ("Lib*", &["Lib", "Lib2"]), ("Spare", &["Spare"])]
            {
                let text = place.transcript(&format!("report c.clrs {view}--module {wanted}"));
                for name in ["App", "Lib", "Lib2", "Spare"] {
                    let is_row = |line: &str| line.split_whitespace().last() == Some(name) && line.contains('%');
                    assert_eq!(text.lines().any(is_row), expected.contains(&name), "{view}{wanted}: {name}: {text}");
                }
            }
            let refused = place.transcript(&format!("report c.clrs {view}--module Nix"));
            assert!(refused.contains("no recorded line is in an assembly that matches 'Nix'"), "{refused}");
            assert!(refused.contains("--view coverage' lists the assemblies"), "{refused}");
        }
    }
}
