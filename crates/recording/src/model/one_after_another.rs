//! Reads consecutive records of variable size from the bytes of a chunk.

/// Iterates over the records. `first` reads a record and its size from the remaining bytes; the
/// iteration ends at the first invalid record.
pub(super) fn one_after_another<T>(
    chunk: &[u8],
    first: impl Fn(&[u8]) -> Option<(T, usize)>,
) -> impl Iterator<Item = T> {
    let mut rest = chunk;
    std::iter::from_fn(move || {
        let (found, bytes) = first(rest)?;
        rest = &rest[bytes..];
        Some(found)
    })
}
