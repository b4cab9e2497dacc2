//! Names to and from the runtime: UTF-16 with a final zero. Lengths include the zero.

use windows_core::HRESULT;

use crate::error::check;
use crate::{Error, HResult, Result};

/// Size of the first buffer. It is enough for nearly every name; the buffer is on the stack, so it
/// is not larger.
const FIRST_TRY: usize = 512;

/// Queries a name with a buffer of this size, and again with a larger buffer if the name is longer
/// (or grew in the meantime).
///
/// `ask` gets the capacity, an out-parameter for the needed length, and the buffer.
pub(crate) fn read_text(
    method: &'static str,
    mut ask: impl FnMut(u32, *mut u32, *mut u16) -> HRESULT,
) -> Result<String> {
    let mut stack = [0_u16; FIRST_TRY];
    let mut needed = 0;
    let answer = ask(FIRST_TRY as u32, &mut needed, stack.as_mut_ptr());
    if needed as usize <= FIRST_TRY {
        check(answer, method)?;
        return Ok(decode(&stack[..needed as usize]));
    }
    let mut heap = Vec::new();
    for _ in 0..3 {
        heap.resize(needed as usize + 64, 0_u16);
        let answer = ask(heap.len() as u32, &mut needed, heap.as_mut_ptr());
        if needed as usize <= heap.len() {
            check(answer, method)?;
            return Ok(decode(&heap[..needed as usize]));
        }
    }
    Err(Error::new(HResult::INSUFFICIENT_BUFFER, method))
}

/// UTF-16 with a final zero, for calls that search by name.
pub(crate) fn wide(text: &str) -> Vec<u16> {
    text.encode_utf16().chain([0]).collect()
}

fn decode(units: &[u16]) -> String {
    let end = units.iter().position(|unit| *unit == 0).unwrap_or(units.len());
    let units = &units[..end];
    if units.iter().all(|unit| *unit < 0x80) {
        return units.iter().map(|unit| *unit as u8 as char).collect();
    }
    String::from_utf16_lossy(units)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Answers like the runtime: writes as much as fits, and returns the full length.
    fn answering(name: &str) -> impl FnMut(u32, *mut u32, *mut u16) -> HRESULT {
        let units: Vec<u16> = name.encode_utf16().chain([0]).collect();
        move |capacity, needed, buffer| {
            let fits = units.len().min(capacity as usize);
            // SAFETY: `buffer` has room for `capacity` units.
            unsafe {
                std::ptr::copy_nonoverlapping(units.as_ptr(), buffer, fits);
                *needed = units.len() as u32;
            }
            HRESULT(0)
        }
    }

    #[test]
    fn names_of_every_length_come_whole() {
        for name in ["", "a", "Größe", "\u{1f600}", &"x".repeat(511), &"x".repeat(512), &"é".repeat(70_000)] {
            assert_eq!(read_text("Test", answering(name)).unwrap(), name);
        }
    }

    #[test]
    fn a_name_that_grows_is_asked_for_again() {
        let mut lengths = [600_usize, 800, 800].into_iter();
        let name = read_text("Test", |capacity, needed, buffer| {
            answering(&"n".repeat(lengths.next().unwrap()))(capacity, needed, buffer)
        });
        assert_eq!(name.unwrap().len(), 800);
    }

    #[test]
    fn a_failure_keeps_its_code() {
        let error = read_text("Test", |_, _, _| HRESULT(HResult::DATA_INCOMPLETE.0)).unwrap_err();
        assert_eq!((error.method(), error.hresult()), ("Test", HResult::DATA_INCOMPLETE));
    }
}
