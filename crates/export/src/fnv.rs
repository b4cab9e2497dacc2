//! FNV-1a with 64 bits: a hash that is the same on every machine.

/// Hash of no bytes.
pub(crate) const EMPTY: u64 = 0xCBF2_9CE4_8422_2325;

/// Continues a hash: returns the hash of the bytes that gave `hash`, followed by `bytes`.
pub(crate) fn fnv1a(hash: u64, bytes: &[u8]) -> u64 {
    bytes.iter().fold(hash, |hash, byte| (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01B3))
}
