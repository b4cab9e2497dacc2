//! Plans of arguments compared with what the runtime itself says, function by function.

mod support;

use clrscope_recording::model::Recording;
use clrscope_testkit::{each_runtime, fixture, run};
use support::record_with;

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
        let ([functions, results, unknown, wrong], remarks) = compared(&seen.recording);
        let place = format!("{name} {arguments:?} on {}", runtime.version);
        support::assert_unchanged(&seen.finished, &bare, &place);
        assert_eq!(wrong, 0, "{place}: {remarks:#?}");
        assert!(functions >= at_least && results >= at_least / 2, "{place}: {functions} functions, {results} results");
        assert!(unknown * 50 < functions, "{place}: {unknown} places unknown");
    });
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
