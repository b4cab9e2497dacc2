//! Identifiers of COM: of interfaces, of classes, of activities.

use std::fmt;

/// A globally unique identifier of 128 bits, with the memory layout of COM.
///
/// ```
/// use clr_profiler::Guid;
/// const MINE: Guid = Guid::parse("{0A1B2C3D-4E5F-6071-8293-A4B5C6D7E8F9}");
/// assert_eq!(MINE.to_string(), "0A1B2C3D-4E5F-6071-8293-A4B5C6D7E8F9");
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Hash, Default)]
#[repr(C)]
pub struct Guid {
    first: u32,
    second: u16,
    third: u16,
    rest: [u8; 8],
}

impl Guid {
    /// Creates a GUID from its hexadecimal digits, read as one number from left to right.
    #[must_use]
    pub const fn from_u128(digits: u128) -> Self {
        Self {
            first: (digits >> 96) as u32,
            second: (digits >> 80) as u16,
            third: (digits >> 64) as u16,
            rest: (digits as u64).to_be_bytes(),
        }
    }

    /// The hexadecimal digits, read as one number from left to right.
    #[must_use]
    pub const fn to_u128(self) -> u128 {
        (self.first as u128) << 96
            | (self.second as u128) << 80
            | (self.third as u128) << 64
            | u64::from_be_bytes(self.rest) as u128
    }

    /// Reads `{xxxxxxxx-xxxx-xxxx-xxxx-xxxxxxxxxxxx}`, with or without braces, at compile time.
    ///
    /// # Panics
    /// When `text` has another form; in a constant this is a compile error.
    #[must_use]
    pub const fn parse(text: &str) -> Self {
        let bytes = text.as_bytes();
        let mut value = 0_u128;
        let (mut at, mut found) = (0, 0);
        while at < bytes.len() {
            let digit = match bytes[at] {
                digit @ b'0'..=b'9' => digit - b'0',
                digit @ b'a'..=b'f' => digit - b'a' + 10,
                digit @ b'A'..=b'F' => digit - b'A' + 10,
                b'{' | b'}' | b'-' => {
                    at += 1;
                    continue;
                }
                _ => panic!("a GUID has hexadecimal digits, dashes and braces only"),
            };
            assert!(found < 32, "a GUID has 32 hexadecimal digits, this one has more");
            value = value << 4 | digit as u128;
            found += 1;
            at += 1;
        }
        assert!(found == 32, "a GUID has 32 hexadecimal digits, this one has fewer");
        Self::from_u128(value)
    }

    /// Reads the GUID at a pointer from the runtime.
    ///
    /// # Safety
    /// `raw` must be null or valid for reads for as long as the answer is used.
    pub(crate) unsafe fn from_ptr<'g>(raw: *const windows_core::GUID) -> Option<&'g Self> {
        // SAFETY: the caller's promise; the layout is COM's for both.
        unsafe { raw.cast::<Self>().as_ref() }
    }
}

impl fmt::Display for Guid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [a, b, rest @ ..] = self.rest;
        write!(f, "{:08X}-{:04X}-{:04X}-{a:02X}{b:02X}-", self.first, self.second, self.third)?;
        rest.iter().try_for_each(|byte| write!(f, "{byte:02X}"))
    }
}

impl fmt::Debug for Guid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_guid_is_laid_out_as_com_does() {
        let number = 0x0a1b2c3d_4e5f_6071_8293_a4b5c6d7e8f9;
        let theirs = windows_core::GUID::from_u128(number);
        // SAFETY: a valid reference.
        let ours = unsafe { Guid::from_ptr(&theirs) };
        assert_eq!(ours, Some(&Guid::from_u128(number)));
        assert_eq!(Guid::from_u128(number).to_u128(), number);
        assert_eq!(format!("{:?}", Guid::from_u128(number)), format!("{theirs:?}"));
    }
}
