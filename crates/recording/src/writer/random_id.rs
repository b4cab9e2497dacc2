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

/// Identifier of period `number` of the recording with the identifier `id`. Each period has its own
/// identifier, which is always the same. It differs from `id` in the first group, because that
/// group is in file names.
pub(crate) fn id_of_period(id: &str, number: u32) -> String {
    match id.split_once('-').map(|(first, rest)| (u32::from_str_radix(first, 16), rest)) {
        Some((Ok(first), rest)) => format!("{:08x}-{rest}", first ^ number),
        _ => String::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_period_has_an_identifier_of_its_own() {
        let id = random_id();
        let mut all: Vec<String> = (0..1_000).chain([u32::MAX]).map(|number| id_of_period(&id, number)).collect();
        assert!(all.iter().all(|one| one.len() == 36 && one[8..] == id[8..]), "{all:?}");
        assert_eq!(all[7], id_of_period(&id, 7));
        all.sort();
        all.dedup();
        assert_eq!(all.len(), 1_001);
        assert_eq!(id_of_period("", 1), "");
    }

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
