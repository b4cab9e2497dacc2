//! Files with any bytes in them: every question has an answer, and none panics.

use clr_metadata::fuzzing::read_file;

#[test]
fn damaged_files_answer_every_question() {
    let whole = std::fs::read(clrscope_testkit::fixture("Hello")).expect("the fixture");
    read_file(&whole);
    for length in (0..whole.len()).step_by(499) {
        read_file(&whole[..length]);
    }
    let mut seed = 1_u64;
    for _ in 0..100 {
        let mut bytes = whole.clone();
        for _ in 0..20 {
            seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            let at = (seed >> 33) as usize % bytes.len();
            bytes[at] = (seed >> 20) as u8;
        }
        read_file(&bytes);
    }
}
