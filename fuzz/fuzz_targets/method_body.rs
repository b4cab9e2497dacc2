#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    clr_il::fuzzing::change_body(bytes);
    clr_il::fuzzing::read_signatures(bytes);
});
