//! String objects: their layout and their text.

use std::fmt::{self, Write as _};

use super::ProfilerInfo;
use crate::Result;
use crate::error::check;

/// Layout of a string object: the offsets of its length and its characters.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub struct StringLayout {
    /// Offset of the number of UTF-16 units, a `u32`.
    pub length: usize,
    /// Offset of the first unit.
    pub buffer: usize,
}

impl ProfilerInfo {
    /// Layout of string objects. Callable everywhere.
    ///
    /// # Errors
    /// The runtime's error.
    pub fn string_layout(&self) -> Result<StringLayout> {
        let runtime = self.base("GetStringLayout2")?;
        let (mut length, mut buffer) = (0, 0);
        // SAFETY: valid out-parameters.
        check(unsafe { runtime.GetStringLayout2(&mut length, &mut buffer) }, "GetStringLayout2")?;
        Ok(StringLayout { length: length as usize, buffer: buffer as usize })
    }
}

/// The text of a string object, borrowed from the object.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Utf16Text<'cb>(pub(crate) &'cb [u16]);

impl<'cb> Utf16Text<'cb> {
    /// UTF-16 units of the text.
    #[must_use]
    pub const fn units(self) -> &'cb [u16] {
        self.0
    }
}

impl fmt::Display for Utf16Text<'_> {
    /// A surrogate without its other half is shown as U+FFFD.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let characters = char::decode_utf16(self.0.iter().copied());
        characters.map(|c| c.unwrap_or(char::REPLACEMENT_CHARACTER)).try_for_each(|c| f.write_char(c))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_is_shown_and_half_a_surrogate_pair_does_no_harm() {
        let units: Vec<u16> = "caf\u{e9}".encode_utf16().chain([0xD800]).collect();
        assert_eq!(Utf16Text(&units).to_string(), "caf\u{e9}\u{FFFD}");
        assert_eq!(Utf16Text(&units).units().len(), 5);
    }
}
