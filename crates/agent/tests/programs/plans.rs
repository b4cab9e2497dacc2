//! Plans of arguments compared with what the runtime itself says, function by function.

use crate::support::{self, record_with, under_agent};
use clrscope_recording::model::Recording;
use clrscope_testkit::{Sdk, each_runtime, fixture, not_run, run, scratch, workspace_root};

/// Totals of the comparison: functions, results, places that are unknown, and those that are wrong.
fn compared(recording: &Recording) -> ([u64; 4], Vec<String>) {
    let remarks: Vec<String> = recording.processes[0].remarks.iter().map(|remark| remark.text.clone()).collect();
    let total = remarks.iter().find(|text| text.contains(" places unknown, ")).unwrap_or_else(|| panic!("{remarks:?}"));
    let numbers: Vec<u64> = total.split(|c: char| !c.is_ascii_digit()).filter_map(|word| word.parse().ok()).collect();
    (numbers.try_into().expect("four numbers"), remarks)
}

/// Compares all functions that a fixture runs: at least so many, and all plans are right.
fn all_are_right(name: &str, arguments: &[&str], at_least: u64) {
    each_runtime(|runtime| {
        let mut bare = runtime.command(&fixture(name));
        bare.args(arguments);
        let bare = run(bare).expect_success();
        let seen = record_with(runtime, name, "flow:args=check;include=*", arguments);
        let place = format!("{name} {arguments:?} on {}", runtime.version);
        support::assert_unchanged(&seen.finished, &bare, &place);
        assert_all_right(&seen.recording, at_least, &place);
    });
}

/// At least so many functions were compared, and all plans are right.
fn assert_all_right(recording: &Recording, at_least: u64, place: &str) {
    let ([functions, results, unknown, wrong], remarks) = compared(recording);
    assert_eq!(wrong, 0, "{place}: {remarks:#?}");
    assert!(functions >= at_least && results >= at_least / 2, "{place}: {functions} functions, {results} results");
    assert!(unknown * 50 < functions, "{place}: {unknown} places unknown");
}

#[test]
fn plans_of_every_kind_of_signature_are_where_the_runtime_says() {
    all_are_right("Signatures", &[], 2_000);
}

#[test]
fn plans_of_a_program_that_talks_http_are_where_the_runtime_says() {
    all_are_right("Chatter", &["http", "3"], 3_000);
}

#[test]
fn plans_of_generic_and_asynchronous_code_are_where_the_runtime_says() {
    all_are_right("Arguments", &[], 1_500);
}

/// Four threads compile methods with the same new struct at once. A thread that found the struct in
/// the table while another one still asked about its fields took it for one in registers, for good.
#[test]
fn plans_of_structs_that_threads_meet_at_once_are_where_the_runtime_says() {
    all_are_right("Structs", &["400"], 4_000);
}

#[test]
fn plans_of_the_compiler_are_where_the_runtime_says() {
    let Some(sdk) = Sdk::find() else { return not_run("there is no .NET SDK") };
    let folder = scratch();
    let compile = |out: &str| {
        let mut command = sdk.compiler_to(&folder.path().join(out).join("generics.dll"));
        command.args(["-deterministic", "-optimize", "-unsafe", "-langversion:latest", "-nullable:enable"]);
        let fixtures = workspace_root().join("dotnet/fixtures");
        command.args(["Expect.cs", "Generics/Generics.cs"].map(|file| fixtures.join(file)));
        command
    };
    let made = |out: &str| std::fs::read(folder.path().join(out).join("generics.dll")).expect("the compiler writes it");
    ["bare", "seen"].iter().for_each(|out| std::fs::create_dir(folder.path().join(out)).expect("a folder"));
    let bare = run(compile("bare")).expect_success();
    let (mut command, out) = (compile("seen"), folder.path().join("csc.clrs.d"));
    under_agent(&mut command, "flow:args=check;include=*", &out);
    let seen = run(command);
    support::assert_unchanged(&seen, &bare, "the compiler");
    assert_eq!(made("seen"), made("bare"), "the compiler writes something else");
    assert_all_right(&clrscope_recording::open(&out).expect("a recording"), 10_000, "the compiler");
}
