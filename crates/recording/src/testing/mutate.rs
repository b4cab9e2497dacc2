//! Damages recordings: at random, or so that all checksums stay right.

use super::synthetic::Numbers;
pub use crate::packed::v1::Claims;
use crate::packed::v1::reseal;

/// Values that are often boundary cases.
const EDGES: [u64; 12] =
    [0, 1, 2, 7, 0x7F, 0xFF, 0xFFFF, 0x7FFF_FFFF, 0xFFFF_FFFF, 0x1_0000_0000, u64::MAX >> 1, u64::MAX];

/// Changes some bytes in one of several ways: flips, edge values, holes, repetitions, cuts.
pub fn mutate(bytes: &mut Vec<u8>, numbers: &mut Numbers) {
    for _ in 0..1 + numbers.below(4) {
        let at = numbers.below(bytes.len());
        match numbers.below(8) {
            0 => bytes.truncate(at),
            1 => write(bytes, at & !3, &EDGES[numbers.below(EDGES.len())].to_le_bytes()[..4]),
            2 => write(bytes, at & !7, &EDGES[numbers.below(EDGES.len())].to_le_bytes()),
            3 => {
                let hole = vec![0; numbers.below(64)];
                write(bytes, at, &hole);
            }
            4 => {
                let from = numbers.below(bytes.len());
                let copy = bytes[from..bytes.len().min(from + numbers.below(200))].to_vec();
                write(bytes, at, &copy);
            }
            5 => {
                let from = numbers.below(bytes.len());
                let copy = bytes[from..bytes.len().min(from + numbers.below(200))].to_vec();
                bytes.splice(at..at, copy);
            }
            6 => write(bytes, at, &[numbers.next() as u8]),
            _ => {
                if let Some(byte) = bytes.get_mut(at) {
                    *byte ^= 1 << numbers.below(8);
                }
            }
        }
    }
}

/// Writes as much of `new` as fits.
fn write(bytes: &mut [u8], at: usize, new: &[u8]) {
    for (old, new) in bytes.iter_mut().skip(at).zip(new) {
        *old = *new;
    }
}

/// Passes the head fields and the content of every section of a packed recording to `change`, and
/// makes a file in which all checksums and the index are right.
#[must_use]
pub fn rewrite(packed: &[u8], change: &mut dyn FnMut(&mut Claims, &mut Vec<u8>)) -> Vec<u8> {
    reseal(packed, change)
}

/// Changes the content and the head fields of some sections of a packed recording, and makes all
/// checksums right again. Such a file is never the result of an accident.
#[must_use]
pub fn lie(packed: &[u8], numbers: &mut Numbers) -> Vec<u8> {
    let busy = 1 + numbers.below(4);
    reseal(packed, &mut |claims, content| {
        if numbers.below(busy) > 0 {
            return;
        }
        for _ in 0..numbers.below(3) {
            change_claim(claims, numbers);
        }
        if numbers.below(2) == 0 {
            mutate(content, numbers);
        }
    })
}

fn change_claim(claims: &mut Claims, numbers: &mut Numbers) {
    let edge = EDGES[numbers.below(EDGES.len())];
    let near = numbers.below(5) as u64;
    let far = numbers.below(2) == 0;
    let wide = |value: u64| if far { edge } else { value.wrapping_add(near).wrapping_sub(2) };
    let narrow = |value: u32| wide(u64::from(value)) as u32;
    match numbers.below(7) {
        0 => claims.kind = wide(u64::from(claims.kind)) as u16,
        1 => claims.process = narrow(claims.process),
        2 => claims.item = narrow(claims.item),
        3 => claims.part = narrow(claims.part),
        4 => claims.count = narrow(claims.count),
        5 => claims.stored = wide(claims.stored),
        _ => claims.plain = wide(claims.plain),
    }
}
