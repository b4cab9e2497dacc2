//! The fields of an event, in the order in which the runtime packs them.

/// Reads the bytes of an event. Every read answers `None` past the end: newer runtimes add fields,
/// and older ones lack some.
#[derive(Debug, Clone, Copy)]
pub struct Fields<'a>(&'a [u8]);

macro_rules! numbers {
    ($($name:ident: $type:ty),*) => {
        $(
            #[doc = concat!("The next `", stringify!($type), "`.")]
            pub fn $name(&mut self) -> Option<$type> {
                let (bytes, rest) = self.0.split_first_chunk()?;
                self.0 = rest;
                Some(<$type>::from_le_bytes(*bytes))
            }
        )*
    };
}

impl<'a> Fields<'a> {
    /// A reader at the first field of an event with these bytes.
    pub const fn new(bytes: &'a [u8]) -> Self {
        Self(bytes)
    }

    // A pointer of the runtime is a `u64`: the agent is built for machines of that width only.
    numbers! { u16: u16, u32: u32, u64: u64 }

    /// The next `f32`.
    pub fn f32(&mut self) -> Option<f32> {
        self.u32().map(f32::from_bits)
    }

    /// The next `f64`.
    pub fn f64(&mut self) -> Option<f64> {
        self.u64().map(f64::from_bits)
    }

    /// Whether all bytes of the event were read.
    pub const fn is_at_end(&self) -> bool {
        self.0.is_empty()
    }

    /// Reads the next `bytes` bytes.
    pub fn read_bytes(&mut self, bytes: usize) -> Option<&'a [u8]> {
        let (taken, rest) = self.0.split_at_checked(bytes)?;
        self.0 = rest;
        Some(taken)
    }

    /// UTF-16 units of the next text, which ends with a zero. `None` if the zero is missing.
    pub fn text(&mut self) -> Option<impl Iterator<Item = u16> + Clone + use<'a>> {
        let (units, _) = self.0.as_chunks::<2>();
        let length = units.iter().position(|unit| *unit == [0, 0])?;
        let text = &units[..length];
        self.0 = self.0.get((length + 1) * 2..)?;
        Some(text.iter().map(|unit| u16::from_le_bytes(*unit)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_come_in_their_order_and_end_with_the_bytes() {
        let mut bytes = Vec::new();
        bytes.extend_from_slice(&7_u16.to_le_bytes());
        bytes.extend("né".encode_utf16().chain([0]).flat_map(u16::to_le_bytes));
        bytes.extend_from_slice(&(1_u64 << 40).to_le_bytes());
        bytes.extend_from_slice(&[1, 2, 3]);
        let mut fields = Fields::new(&bytes);
        assert_eq!(fields.u16(), Some(7));
        let text: Vec<u16> = fields.text().expect("a text").collect();
        assert_eq!(String::from_utf16_lossy(&text), "né");
        assert_eq!(fields.u64(), Some(1 << 40));
        assert_eq!((fields.u32(), fields.read_bytes(3), fields.read_bytes(1)), (None, Some(&[1, 2, 3][..]), None));
    }

    #[test]
    fn a_text_without_an_end_is_none_at_any_length() {
        let whole: Vec<u8> = "name".encode_utf16().chain([0]).flat_map(u16::to_le_bytes).collect();
        for length in 0..whole.len() {
            assert!(Fields::new(&whole[..length]).text().is_none(), "{length} bytes");
        }
        assert_eq!(Fields::new(&whole).text().map(Iterator::count), Some(4));
    }
}
