#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| clrscope_recording::testing::fuzzing::event_records(bytes));
