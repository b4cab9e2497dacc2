#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| clr_diagnostics::fuzzing::read_answers(bytes));
