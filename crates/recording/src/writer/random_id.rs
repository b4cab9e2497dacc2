//! Unique identifiers of recordings.

use std::collections::hash_map::RandomState;
use std::hash::BuildHasher;

/// A random identifier in the form of a UUID of version 4. The randomness comes from the keys that
/// the standard library takes from the system.
#[must_use]
pub fn random_id() -> String {
    let random = RandomState::new();
    let bits = u128::from(random.hash_one(0_u8)) << 64 | u128::from(random.hash_one(1_u8));
    // Version and variant, by RFC 9562.
    let bits = bits & !(0xF << 76 | 0x3 << 62) | 0x4 << 76 | 0x2 << 62;
    let digits = format!("{bits:032x}");
    [&digits[..8], &digits[8..12], &digits[12..16], &digits[16..20], &digits[20..]].join("-")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn identifiers_are_uuids_and_differ() {
        let mut all: Vec<String> = (0..1_000).map(|_| random_id()).collect();
        for id in &all {
            let groups: Vec<usize> = id.split('-').map(str::len).collect();
            assert_eq!(groups, [8, 4, 4, 4, 12]);
            assert_eq!(&id[14..15], "4");
            assert!("89ab".contains(&id[19..20]), "{id}");
        }
        all.sort();
        all.dedup();
        assert_eq!(all.len(), 1_000);
    }
}
