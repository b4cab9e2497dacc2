//! Records of sizes of their own that follow one another in the bytes of a chunk.

/// The records, each as `first` reads it with its bytes from what is left; nothing follows one that
/// can't be read.
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
