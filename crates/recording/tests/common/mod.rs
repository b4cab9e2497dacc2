//! Helpers that the tests of this crate share.
#![allow(dead_code, reason = "each test file uses another part of it")]

pub(crate) mod arbitrary;

use clrscope_recording::model::Recording;

/// Fails when two recordings differ in anything, trees included.
pub(crate) fn assert_same(left: &Recording, right: &Recording) {
    // `Debug` shows every field of every value but the trees.
    assert_eq!(format!("{left:#?}"), format!("{right:#?}"));
    for (left, right) in left.processes.iter().zip(&right.processes) {
        for (left, right) in left.threads.iter().zip(&right.threads) {
            assert_eq!(left.tree.load(), right.tree.load(), "tree of thread {}", left.id);
        }
    }
}

/// The packed form of a recording.
pub(crate) fn packed(recording: &Recording) -> Vec<u8> {
    let mut bytes = Vec::new();
    clrscope_recording::pack::write(recording, &mut bytes).expect("memory takes everything");
    bytes
}

/// The recording that the bytes of a packed file hold.
pub(crate) fn unpacked(bytes: &[u8]) -> Result<Recording, clrscope_recording::OpenError> {
    clrscope_recording::packed::from_bytes(std::path::Path::new("test.clrs"), bytes)
}
