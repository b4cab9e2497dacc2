//! Help and errors, word for word.

mod common;

use std::fs;
use std::os::unix::fs::PermissionsExt;

use clrscope_dotnet::find::Places;
use clrscope_testkit as testkit;
use common::TestFolder;
use insta::assert_snapshot;

#[test]
fn help_explains_every_command_with_an_example() {
    let place = TestFolder::new();
    let overview = place.transcript("--help");
    assert_snapshot!("help", overview);
    let listed = overview.lines().skip_while(|line| *line != "Commands:").skip(1).take_while(|line| !line.is_empty());
    // Other lines go on with the description of a command.
    let own = listed.filter_map(|line| line.strip_prefix("  ").filter(|rest| !rest.starts_with(' ')));
    let commands: Vec<&str> = own.filter_map(|line| line.split_whitespace().next()).collect();
    let commands = commands.into_iter().filter(|command| *command != "help").collect::<Vec<_>>();
    assert!(commands.len() > 15, "{overview}");
    for command in commands {
        let text = place.transcript(&format!("{command} --help"));
        assert!(text.contains("exit 0") && text.contains("Example"), "{text}");
        assert_snapshot!(format!("help_{command}"), text);
    }
}

#[test]
fn usage_errors_are_three_lines_and_exit_2_but_125_under_run() {
    let place = TestFolder::new();
    let lines = [
        "",
        "frobnicate",
        "report",
        "report x.clrs --view strange",
        "report x.clrs --format yaml",
        "report x.clrs --sort colour",
        "report x.clrs --function [Shop",
        "report x.clrs --since soon",
        "report x.clrs --limit many",
        "report x.clrs y.clrs",
        "export x.clrs",
        "export x.clrs --to pdf",
        "export x.clrs --to collapsed --min-share 2",
        "completions tcsh",
        "env --shell --json",
        "run",
        "run --nonsense app.dll",
        "run -i call app.dll",
        "run -i calls:clock=sundial app.dll",
        "run -i calls:speed=1 app.dll",
        "run -i calls:max=lots app.dll",
        "run -i :x app.dll",
        "run -i calls,flow app.dll",
        "run -i calls -i calls:clock=tsc app.dll",
        "run --include a::b::c app.dll",
        "run --rate 0 app.dll",
        "run --duration soon app.dll",
        "run --only= app.dll",
        "run --profiler x.so app.dll",
        "run --clsid {1} app.dll",
        "run --profiler x.so --clsid {1} app.dll",
        "run --profiler x.so --clsid {1} -i calls -o x.clrs app.dll",
        "run --profiler x.so --clsid {1} --include X --only Y app.dll",
        "run --debugger windbg app.dll",
        "env --only=",
        "new",
        "new 2nd",
        "new my.profiler",
    ];
    let mut all = String::new();
    for line in lines {
        let output = place.run(line);
        let expected = if line.starts_with("run") { 125 } else { 2 };
        assert_eq!(output.status.code(), Some(expected), "clrscope {line}");
        all.push_str(&error_lines(line, &output));
    }
    assert_snapshot!(all);
}

#[test]
fn failures_are_three_lines_with_the_exit_codes_of_a_shell() {
    let place = TestFolder::new().with_sample();
    fs::write(place.file("text.clrs"), "no recording at all").expect("a file");
    fs::write(place.file("plain"), "not a program").expect("a file");
    let mut bytes = fs::read(place.file("sample.clrs")).expect("the sample");
    fs::write(place.file("start.clrs"), [&bytes[..16], b"garbage"].concat()).expect("a file");
    bytes[8] = 9;
    fs::write(place.file("newer.clrs"), bytes).expect("a file");
    fs::create_dir(place.file("folder")).expect("a folder");
    fs::write(place.file("open"), "Shop*").expect("a file");
    fs::set_permissions(place.file("open"), fs::Permissions::from_mode(0o666)).expect("its mode");
    let cases = [
        ("report missing.clrs", 1),
        ("report text.clrs", 1),
        ("report folder", 1),
        ("report newer.clrs", 1),
        ("report start.clrs", 1),
        ("report sample.clrs --view callers", 2),
        ("report sample.clrs --view callers --function Nothing::*", 1),
        ("report sample.clrs --pid 1", 1),
        ("report sample.clrs --thread 77", 1),
        ("report sample.clrs --since 1s", 2),
        ("export missing.clrs --to hst", 1),
        ("export sample.clrs --to hst -o no/such/folder/x", 1),
        ("export sample.clrs --to hst -o sample.clrs", 2),
        ("export sample.clrs --to calllog", 1),
        ("export sample.clrs --to prometheus", 1),
        ("pack sample.clrs", 1),
        ("pack missing.clrs.d", 1),
        ("pack folder", 1),
        ("run -o sample.clrs -- true", 125),
        ("run -o no/such/folder/x.clrs -- true", 125),
        ("run -o folder -- true", 125),
        ("run -- ./missing", 127),
        ("run -- missing-program", 127),
        ("run missing.dll", 127),
        ("run -- ./plain", 126),
        ("run -- plain", 127),
        ("run -- ./folder", 126),
        ("run --only-from missing -- true", 125),
        ("run --profiler missing.so --clsid 00000000-0000-0000-0000-000000000001 -- true", 125),
        ("run --profiler folder --clsid 00000000-0000-0000-0000-000000000001 -- true", 125),
        ("run --profiler plain --clsid 00000000-0000-0000-0000-000000000001 -- true", 125),
        ("new folder", 1),
        ("new watch --path sample.clrs", 1),
        ("new watch --framework folder", 1),
        ("env --only-from missing", 1),
        ("env --only-from folder", 1),
        ("env --only-from open", 1),
    ];
    let mut all = String::new();
    for (line, code) in cases {
        let output = place.run(line);
        assert_eq!(output.status.code(), Some(code), "clrscope {line}");
        all.push_str(&error_lines(line, &output));
    }
    let folder = fs::canonicalize(place.path()).expect("the folder").to_string_lossy().into_owned();
    assert_snapshot!(all.replace(&folder, "FOLDER"));
    let left: Vec<_> = fs::read_dir(place.path()).expect("the folder").flatten().map(|e| e.file_name()).collect();
    assert_eq!(left.len(), 7, "nothing is left behind: {left:?}");
}

#[test]
fn a_library_without_any_dotnet_is_one_clear_failure() {
    let place = TestFolder::new();
    fs::write(place.file("app.dll"), "MZ").expect("a file");
    let mut command = place.clrscope(["run", "app.dll"]);
    command.env_remove("DOTNET_ROOT").env("PATH", place.path()).env("HOME", place.path());
    let output = command.output().expect("the tool starts");
    let usual = Places { dotnet_root: None, path: Vec::new(), home: None, cache: None, ..Places::of_this_process() };
    if let Some(install) = usual.installs().first() {
        // Nothing hides that one: the file, which is no program, fails under it.
        testkit::not_run(&format!("what is said without any .NET: there is one in {}", install.root.display()));
        assert!(!output.status.success() && output.status.code() != Some(125), "{output:?}");
    } else {
        assert_eq!(output.status.code(), Some(125), "{output:?}");
        assert_snapshot!(error_lines("run app.dll", &output));
    }
}

#[test]
fn a_cache_that_others_can_write_is_refused_unless_trusted() {
    let place = TestFolder::new();
    let cache = place.file("cache");
    fs::create_dir(&cache).expect("a folder");
    fs::set_permissions(&cache, fs::Permissions::from_mode(0o777)).expect("its mode");
    let run = |words: &[&str]| place.clrscope(words).env("XDG_CACHE_HOME", &cache).output().expect("the tool starts");
    let refused = run(&["run", "--", "true"]);
    assert_eq!(refused.status.code(), Some(125));
    let text = error_lines("run -- true", &refused);
    assert!(text.contains("can be written by others") && text.contains("hint: chmod go-w"), "{text}");
    assert_eq!(run(&["run", "--trust-writable", "--", "true"]).status.code(), Some(0));
}

#[test]
fn damaged_recordings_are_reported_as_far_as_they_go() {
    let place = TestFolder::new().with_sample();
    let bytes = fs::read(place.file("sample.clrs")).expect("the sample");
    fs::write(place.file("cut.clrs"), &bytes[..bytes.len() * 3 / 4]).expect("a file");
    let output = place.run("report cut.clrs --format json");
    assert_eq!(output.status.code(), Some(0), "{}", String::from_utf8_lossy(&output.stderr));
    let text = String::from_utf8_lossy(&output.stdout);
    assert!(text.contains("\"reason\": \"unreadable\""), "{text}");
    let text = place.transcript("report cut.clrs");
    assert!(text.contains("unreadable") && text.contains("exit 0"), "{text}");
}

#[test]
fn completions_and_the_man_page_come_from_the_same_description() {
    let place = TestFolder::new();
    for shell in ["bash", "zsh", "fish"] {
        let output = place.run(&format!("completions {shell}"));
        let text = String::from_utf8_lossy(&output.stdout);
        assert!(output.status.success() && text.contains("just-my-code"), "{shell}");
    }
    let page = place.run("man");
    assert!(String::from_utf8_lossy(&page.stdout).contains(".TH clrscope"));
    assert!(place.run("man --directory pages").status.success());
    let page = fs::read_to_string(place.file("pages/clrscope-report.1")).expect("a page");
    assert!(page.contains("per\\-thread"), "{page}");
}

/// Three lines on stderr and nothing on stdout, with what was typed above.
fn error_lines(line: &str, output: &std::process::Output) -> String {
    let text = String::from_utf8_lossy(&output.stderr).into_owned();
    let lines: Vec<&str> = text.lines().collect();
    assert!(output.stdout.is_empty(), "clrscope {line}: {}", String::from_utf8_lossy(&output.stdout));
    assert_eq!(lines.len(), 3, "clrscope {line}:\n{text}");
    assert!(lines[0].starts_with("error: ") && lines[1].starts_with("why: "), "{text}");
    assert!(lines[2].starts_with("hint: ") && !text.contains("Error("), "{text}");
    format!("$ clrscope {line}\n{text}\n")
}
