//! `cover` with options that leave out more: code behind methods that do not return, and properties
//! that compilers implement.

mod common;

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};

use clrscope_testkit as testkit;
use common::TestFolder;
use serde_json::Value;
use testkit::{Finished, Runtime, Sdk};

/// Methods that do not return, and others of their names that do.
const EXITS: &str = include_str!("cover_options/Exits.cs");
/// Calls of them; lines say what becomes of them: their hits and branches, or that they are none.
const ENDS: &str = include_str!("cover_options/Ends.cs");
/// Properties of all kinds, with such remarks.
const PROPS: &str = include_str!("cover_options/Props.cs");

/// Compiles a source without optimisation, with its PDB next to it; returns the assembly's path.
fn compile(sdk: &Sdk, place: &TestFolder, name: &str, source: &str, uses: &[&Path]) -> PathBuf {
    let [file, assembly] = ["cs", "dll"].map(|end| place.file(&format!("{name}.{end}")));
    fs::write(&file, source).expect("a file");
    let mut compiler = sdk.compiler_to(&assembly);
    compiler.args(["-debug:portable", "-optimize-", "-langversion:latest"]);
    compiler.arg(if source.contains(" void Main()") { "-target:exe" } else { "-target:library" }).arg(&file);
    compiler.args(uses.iter().map(|path| format!("-r:{}", path.display())));
    testkit::run(compiler).expect_success();
    let config = testkit::fixture("Covered").with_extension("runtimeconfig.json");
    fs::copy(config, assembly.with_extension("runtimeconfig.json")).expect("copied");
    assembly
}

fn record(place: &TestFolder, runtime: &Runtime, words: &[&str], program: &Path) -> Finished {
    let mut words: Vec<OsString> = words.iter().map(OsString::from).collect();
    words.extend(["-o", "c.clrs", "--force", "--"].map(OsString::from));
    words.extend(runtime.words(program));
    let mut command = place.clrscope(words);
    runtime.prepare(&mut command);
    testkit::run(command)
}

/// Hits and branches of the lines of a source in a recording.
fn lines(place: &TestFolder, recording: &str, source: &str) -> BTreeMap<u64, (u64, u64)> {
    let output = place.run(&format!("report {recording} --view coverage --lines --format json"));
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let document: Value = serde_json::from_slice(&output.stdout).expect("JSON");
    let number = |row: &Value, key: &str| row[key].as_u64().expect("a number");
    let rows = document["rows"].as_array().expect("rows").iter();
    let own = rows.filter(|row| row["file"].as_str().is_some_and(|file| file.ends_with(source)));
    own.map(|row| (number(row, "line"), (number(row, "hits"), number(row, "branches")))).collect()
}

/// Hits and branches of the lines with remarks, as the source says them.
fn said(source: &str) -> BTreeMap<u64, Option<(u64, u64)>> {
    let said = |line: &str| {
        let remark = line.rsplit_once("// ")?.1;
        if remark == "none" {
            return Some(None);
        }
        let (hits, rest) = remark.split_once(" hits")?;
        let branches = rest.strip_prefix(", ").and_then(|rest| rest.strip_suffix(" branches"));
        Some(Some((hits.parse().ok()?, branches.map_or(0, |number| number.parse().expect("a number")))))
    };
    (1..).zip(source.lines()).filter_map(|(number, line)| Some((number, said(line)?))).collect()
}

fn assert_lines(found: &BTreeMap<u64, (u64, u64)>, source: &str, place: &str) {
    let said = said(source);
    assert!(said.len() > 20 && said.values().filter(|line| line.is_none()).count() > 7, "{said:?}");
    for (number, expected) in said {
        let text = source.lines().nth(number as usize - 1).unwrap_or_default();
        assert_eq!(found.get(&number).copied(), expected, "{place}: line {number}: {text}");
    }
}

/// Ends with its library in a folder.
fn ends(sdk: &Sdk, place: &TestFolder) -> PathBuf {
    let library = compile(sdk, place, "Exits", EXITS, &[]);
    compile(sdk, place, "Ends", ENDS, &[&library])
}

#[test]
fn code_behind_methods_that_do_not_return_is_left_out_on_every_runtime() {
    let Some(sdk) = Sdk::find() else { return testkit::not_run("no .NET SDK is at hand") };
    for runtime in testkit::runtimes() {
        let place = TestFolder::new();
        let program = ends(&sdk, &place);
        let cover = |options: &[&str]| {
            let covered = record(&place, runtime, &[&["cover"], options].concat(), &program).expect_success();
            assert_eq!(covered.stdout_text(), "done\n", "{}: {}", runtime.version, covered.stderr_text());
            lines(&place, "c.clrs", "/Ends.cs")
        };
        let left_out: Vec<u64> = said(ENDS).iter().filter(|(_, said)| said.is_none()).map(|(line, _)| *line).collect();
        let without = cover(&[]);
        // Without the options all lines are there, and those that nothing reaches have no hits.
        assert!(left_out.iter().all(|line| without.get(line).is_some_and(|(hits, _)| *hits == 0)), "{without:?}");
        let with = cover(&["--does-not-return-attribute", "DoesNotReturn"]);
        assert_lines(&with, ENDS, &runtime.version.to_string());
        let full = "System.Diagnostics.CodeAnalysis.DoesNotReturnAttribute";
        assert_eq!(cover(&["--does-not-return-attribute", full]), with);
        assert_eq!(cover(&["--does-not-return-attribute", "Shop.DoesNotReturn"]), without);
        // The instrument alone, with the same option.
        let instrument = "coverage:does-not-return=DoesNotReturn";
        record(&place, runtime, &["run", "-i", instrument], &program).expect_success();
        assert_eq!(lines(&place, "c.clrs", "/Ends.cs"), with);
        let more =
            cover(&["--does-not-return-attribute", "DoesNotReturn", "--does-not-return-attribute", "EndsAttribute"]);
        let named = 1 + ENDS.lines().position(|line| line.ends_with("unless named")).expect("the line") as u64;
        assert_eq!((with.get(&named), more.get(&named)), (Some(&(0, 0)), None), "{}", runtime.version);
    }
}

#[test]
fn properties_that_the_compiler_implements_are_left_out_on_every_runtime() {
    let Some(sdk) = Sdk::find() else { return testkit::not_run("no .NET SDK is at hand") };
    for runtime in testkit::runtimes() {
        let place = TestFolder::new();
        let program = compile(&sdk, &place, "Props", PROPS, &[]);
        let cover = |options: &[&str]| {
            record(&place, runtime, &[&["cover"], options].concat(), &program).expect_success();
            lines(&place, "c.clrs", "/Props.cs")
        };
        let without = cover(&[]);
        let auto: Vec<u64> = said(PROPS).iter().filter(|(_, said)| said.is_none()).map(|(line, _)| *line).collect();
        assert!(auto.iter().all(|line| without.contains_key(line)), "{without:?}");
        assert_lines(&cover(&["--skip-auto-props"]), PROPS, &runtime.version.to_string());
        record(&place, runtime, &["run", "-i", "coverage:skip-auto-props,hits=off"], &program).expect_success();
        assert!(auto.iter().all(|line| !lines(&place, "c.clrs", "/Props.cs").contains_key(line)));
    }
}

/// Sums, formats, merges and libraries that are never loaded have only the lines that are left.
#[test]
fn everything_made_of_a_recording_has_the_lines_that_are_left() {
    let Some(sdk) = Sdk::find() else { return testkit::not_run("no .NET SDK is at hand") };
    let runtime = testkit::runtimes().last().expect("a runtime");
    let place = TestFolder::new();
    let both = "using System.Diagnostics.CodeAnalysis;
static class Both
{
    [DoesNotReturn]
    static void Throw() => throw new System.Exception();
    public static int Auto { get; set; }
    static void Main()
    {
        try
        {
            Throw();
            System.Console.WriteLine(); // behind
        }
        catch (System.Exception)
        {
            System.Console.WriteLine(\"caught\");
        }
    }
}
";
    let spare = both.replace("Both", "Spare").replace("static void Main()", "public static void Work()");
    compile(&sdk, &place, "Spare", &spare, &[]);
    let program = compile(&sdk, &place, "Both", both, &[]);
    let options = ["--does-not-return-attribute", "DoesNotReturn", "--skip-auto-props"];
    let of_own = ["cover", "--exclude", "[Spare]*", "--cobertura", "c.xml", "--fail-under", "100"];
    let under = record(&place, runtime, &of_own, &program);
    assert_eq!(under.code(), 1, "{}", under.stderr_text());
    fs::rename(place.file("c.clrs"), place.file("all.clrs")).expect("renamed");
    let enough = record(&place, runtime, &[&of_own[..], &options].concat(), &program);
    assert_eq!(enough.code(), 0, "{}", enough.stderr_text());
    let number = |text: &str| 1 + both.lines().position(|line| line.contains(text)).expect("a line");
    let (behind, auto, thrown) = (number("// behind"), number("Auto {"), number("  Throw();"));
    let xml = fs::read_to_string(place.file("c.xml")).expect("the XML");
    let has_line = |line: usize| xml.contains(&format!("<line number=\"{line}\""));
    assert_eq!([behind, auto, thrown].map(has_line), [false, false, true], "{xml}");
    let lcov = place.transcript("export c.clrs --to lcov");
    let has_line = |line: usize| lcov.contains(&format!("\nDA:{line},"));
    assert_eq!([behind, auto, thrown].map(has_line), [false, false, true], "{lcov}");
    // Lines of both recordings: one of them had all.
    let merged = place.run("cover --merge all.clrs c.clrs --cobertura both.xml");
    assert!(merged.status.success(), "{}", String::from_utf8_lossy(&merged.stderr));
    let xml = fs::read_to_string(place.file("both.xml")).expect("the XML");
    assert!(xml.contains(&format!("<line number=\"{behind}\" hits=\"0\"")), "{xml}");
    assert!(xml.contains(&format!("<line number=\"{thrown}\" hits=\"2\"")), "{xml}");
    // What no process loaded is planned by the same options.
    record(&place, runtime, &[&["cover"][..], &options].concat(), &program).expect_success();
    let found = lines(&place, "c.clrs", "/Spare.cs");
    let has = |line: usize| found.contains_key(&(line as u64));
    assert_eq!([behind, auto, thrown].map(has), [false, false, true], "{found:?}");
}

/// Types within a type that is excluded, loaded and never loaded.
#[test]
fn cover_exclude_leaves_out_types_within_types() {
    let Some(sdk) = Sdk::find() else { return testkit::not_run("no .NET SDK is at hand") };
    let nested = "namespace Shop;
static class Cart
{
    static int Sum() => Line.Two(); // cart
    internal static class Line
    {
        internal static int Two() => Part.One() + 1; // line
        static class Part
        {
            internal static int One() => new System.Func<int>(() => 1)(); // part
        }
    }
    static void Main() => System.Console.WriteLine(Sum()); // cart
}
";
    let spare = nested.replace("namespace Shop", "namespace Spare").replace("static void Main()", "static void Run()");
    let wanted = [
        ("[Nix]*", ["cart", "line", "part"].as_slice()),
        ("Cart", &[]),
        ("*.Cart::*", &[]),
        ("Line", &["cart"]),
        ("*Part", &["cart", "line"]),
        // A method is no type.
        ("Cart::Sum", &["line", "part"]),
    ];
    for runtime in testkit::runtimes() {
        let place = TestFolder::new();
        compile(&sdk, &place, "Spare", &spare, &[]);
        let program = compile(&sdk, &place, "Nested", nested, &[]);
        for (exclude, expected) in wanted {
            record(&place, runtime, &["cover", "--exclude", exclude], &program);
            for file in ["/Nested.cs", "/Spare.cs"] {
                let found = match place.run("report c.clrs --view coverage --lines").status.success() {
                    true => lines(&place, "c.clrs", file),
                    false => BTreeMap::new(),
                };
                let said = |line: &&str| line.contains("static int");
                let left = (1..).zip(nested.lines()).filter(|(number, line)| said(line) && found.contains_key(number));
                let left: Vec<&str> = left.filter_map(|(_, line)| Some(line.rsplit_once("// ")?.1)).collect();
                assert_eq!(left, expected, "{exclude}: {file} on {}", runtime.version);
            }
        }
    }
}

#[test]
fn names_that_are_none_are_refused_in_a_line() {
    let place = TestFolder::new();
    for name in ["[DoesNotReturn]", "A+B", "A,B", "", "A:B"] {
        let output = place.clrscope(["cover", "--does-not-return-attribute", name, "--", "x.dll"]).output();
        let output = output.expect("it starts");
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(output.status.code(), Some(125), "{said}");
        assert!(said.contains("it takes the name of an attribute, such as DoesNotReturn"), "{name}: {said}");
        assert!(said.lines().count() <= 3, "{said}");
    }
    let with_merge = place.transcript("cover --skip-auto-props --merge a.clrs");
    assert!(with_merge.contains("--merge") && with_merge.contains("--skip-auto-props"), "{with_merge}");
}
