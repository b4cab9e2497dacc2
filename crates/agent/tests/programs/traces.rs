//! Stack traces that a program makes of itself are those of a bare run while its code is changed.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::support::{assert_unchanged, under_agent};
use clrscope_testkit::{Finished, Runtime, Sdk, each_runtime, fixture, not_run, run, scratch};

/// A program that writes its own stack traces. Nothing of it may be put into others but the lambdas
/// of `Main`: code that is changed is longer, and what is put where is the compiler's choice.
const PROGRAM: &str = include_str!("traces/Traces.cs");

/// Ways to build the program: name, options of the compiler, and whether its PDB is kept.
const BUILDS: [(&str, &[&str], bool); 3] = [
    ("optimised", &["-optimize+", "-debug:portable"], true),
    ("unoptimised", &["-optimize-", "-debug:portable"], true),
    ("without a PDB", &["-optimize+", "-debug:portable"], false),
];

/// The builds in folders of their own: name, and path of the program.
fn builds(sdk: &Sdk, place: &Path) -> Vec<(&'static str, PathBuf)> {
    let build = |(name, options, keeps_pdb): (&'static str, &[&str], bool)| {
        let folder = place.join(name);
        fs::create_dir(&folder).expect("a folder");
        let [source, program] = ["Traces.cs", "Traces.dll"].map(|name| folder.join(name));
        fs::write(&source, PROGRAM).expect("a file");
        let mut compiler = sdk.compiler_to(&program);
        compiler.arg("-target:exe").args(options).arg(&source);
        run(compiler).expect_success();
        if !keeps_pdb {
            fs::remove_file(program.with_extension("pdb")).expect("the PDB");
        }
        let config = fixture("Covered").with_extension("runtimeconfig.json");
        fs::copy(config, program.with_extension("runtimeconfig.json")).expect("copied");
        (name, program)
    };
    BUILDS.into_iter().map(build).collect()
}

fn command(runtime: &Runtime, program: &Path, setting: Option<&str>) -> Command {
    let mut command = runtime.command(program);
    command.envs(setting.map(|setting| (setting, "0")));
    command
}

/// Variables that change how the runtime compiles: with its tiers, with them and without counts of
/// branches, and all code fully optimised at once.
const SETTINGS: [Option<&str>; 3] = [None, Some("DOTNET_TieredPGO"), Some("DOTNET_TieredCompilation")];

/// A program's output without frames of the lambdas of `Main`, which may be put into others.
fn without_lambdas(finished: &Finished) -> String {
    let text = finished.stdout_text();
    let lines = text.lines().filter(|line| !line.contains("at Traces.<>c.<Main>b__")).map(|line| {
        let words = line.split(' ').filter(|word| !word.starts_with("<Main>b__"));
        words.collect::<Vec<_>>().join(" ")
    });
    lines.collect::<Vec<_>>().join("\n")
}

fn assert_traces_stay(request: &str) {
    let Some(sdk) = Sdk::find() else { return not_run("no .NET SDK is at hand") };
    let place = scratch();
    let builds = builds(&sdk, place.path());
    each_runtime(|runtime| {
        for (name, program) in &builds {
            for setting in SETTINGS {
                let place = format!("{request}, {name}, {setting:?}, {}", runtime.version);
                let bare = run(command(runtime, program, setting)).expect_success();
                assert!(bare.stdout_text().lines().count() > 100, "{place}: {}", bare.stdout_text());
                let folder = scratch();
                let mut with = command(runtime, program, setting);
                under_agent(&mut with, request, &folder.path().join("traces.clrs.d"));
                let with = run(with);
                if request.contains("probe=") {
                    // Methods with probes of their calls are never put into others.
                    assert_eq!(without_lambdas(&with.expect_success()), without_lambdas(&bare), "{place}");
                } else {
                    assert_unchanged(&with, &bare, &place);
                }
            }
        }
    });
}

#[test]
fn cover_moves_lines() {
    assert_traces_stay("coverage;include=[Traces]*");
}

#[test]
fn cover_without_hits_moves_lines() {
    assert_traces_stay("coverage:hits=off;include=[Traces]*");
}

#[test]
fn probe_at_moves_lines() {
    let lines = (1..).zip(PROGRAM.lines()).filter(|(_, line)| line.contains("// probed"));
    let lines: Vec<String> = lines.map(|(number, _)| format!("probe-at=Traces.cs:{number}")).collect();
    assert!(lines.len() > 10);
    assert_traces_stay(&format!("probes;{}", lines.join(";")));
}

#[test]
fn probes_move_lines() {
    assert_traces_stay("probes;probe=[Traces]*::*");
}
