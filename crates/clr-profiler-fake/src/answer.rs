//! Writes answers through the caller's pointers.

use windows_core::HRESULT;

use clr_profiler::HResult;

pub(super) const S_OK: HRESULT = HRESULT(0);
pub(super) const S_FALSE: HRESULT = HRESULT(1);

/// Writes through a pointer. A null pointer means that the caller does not want the value.
///
/// # Safety
/// `out` must be null or valid for a write.
pub(super) unsafe fn put<T>(out: *mut T, value: T) {
    if !out.is_null() {
        // SAFETY: the caller's promise.
        unsafe { out.write(value) };
    }
}

/// Writes a name as the runtime does: the part that fits, a final zero, and the required length.
///
/// # Safety
/// `needed` must be null or valid for a write, `buffer` null or valid for `capacity` units.
pub(super) unsafe fn put_text(text: &str, capacity: u32, needed: *mut u32, buffer: *mut u16) {
    let units: Vec<u16> = text.encode_utf16().chain([0]).collect();
    // SAFETY: the caller's promise.
    unsafe {
        put(needed, units.len() as u32);
        put_array(&units, capacity, std::ptr::null_mut(), buffer);
    }
    if !buffer.is_null() && (capacity as usize) < units.len() && capacity > 0 {
        // SAFETY: the last unit of the buffer.
        unsafe { buffer.add(capacity as usize - 1).write(0) };
    }
}

/// Writes the elements that fit, and the number of all elements.
///
/// # Safety
/// `needed` must be null or valid for a write, `buffer` null or valid for `capacity` elements.
pub(super) unsafe fn put_array<T: Copy>(values: &[T], capacity: u32, needed: *mut u32, buffer: *mut T) {
    // SAFETY: the caller's promise.
    unsafe {
        put(needed, values.len() as u32);
        if !buffer.is_null() {
            std::ptr::copy_nonoverlapping(values.as_ptr(), buffer, values.len().min(capacity as usize));
        }
    }
}

/// Reads the caller's text, which ends with a zero.
///
/// # Safety
/// `text` must be null or end with a zero.
pub(super) unsafe fn read_text(text: *const u16) -> String {
    let mut units = Vec::new();
    let mut at = text;
    // SAFETY: the caller's promise.
    while !at.is_null() && unsafe { *at } != 0 {
        // SAFETY: not past the zero.
        unsafe {
            units.push(*at);
            at = at.add(1);
        }
    }
    String::from_utf16_lossy(&units)
}

/// Converts a result to an `HRESULT`.
pub(super) fn answer(outcome: Result<(), HResult>) -> HRESULT {
    outcome.map_or_else(|error| HRESULT(error.0), |()| S_OK)
}

/// Defines unimplemented methods of an interface: they count their calls and return `E_NOTIMPL`.
macro_rules! unanswered {
    ($($method:ident($($argument:ty),*);)*) => {$(
        unsafe fn $method(&self, $(_: $argument),*) -> windows_core::HRESULT {
            windows_core::HRESULT(self.world.unanswered(stringify!($method)).0)
        }
    )*};
}

pub(super) use unanswered;
