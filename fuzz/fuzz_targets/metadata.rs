#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| clr_metadata::fuzzing::read_file(bytes));
