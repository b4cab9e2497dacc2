//! Arrays and strings that the runtime passes as pointer and length.

use crate::ObjectId;

/// # Safety
/// `start` must be null or point to `len` values that live as long as the callback.
pub(super) unsafe fn slice<'cb, T>(start: *const T, len: u32) -> &'cb [T] {
    if start.is_null() || len == 0 {
        return &[];
    }
    // SAFETY: the caller vouches for it, and `start` is not null.
    unsafe { std::slice::from_raw_parts(start, len as usize) }
}

/// # Safety
/// As for [`slice`].
pub(super) unsafe fn objects<'cb>(start: *const usize, len: u32) -> &'cb [ObjectId<'cb>] {
    // SAFETY: an object identifier is a word.
    unsafe { slice(start.cast(), len) }
}

/// # Safety
/// As for [`slice`].
pub(super) unsafe fn text(start: *const u16, len: u32) -> String {
    // SAFETY: the caller vouches for it.
    let units = unsafe { slice(start, len) };
    String::from_utf16_lossy(units.split(|unit| *unit == 0).next().unwrap_or_default())
}

/// Maximum length of a terminated text; longer than any path.
const LONGEST: u32 = 1 << 16;

/// # Safety
/// `start` must be null or point to text that ends with a zero.
pub(super) unsafe fn terminated_text(start: *const u16) -> String {
    // SAFETY: not read beyond the zero.
    let is_end = |at: &u32| unsafe { *start.add(*at as usize) } == 0;
    let len = if start.is_null() { 0 } else { (0..LONGEST).find(is_end).unwrap_or(LONGEST) };
    // SAFETY: as long as was found.
    unsafe { text(start, len) }
}
