//! The codec of records: a record's fields follow one another in the order of their declaration.
//!
//! [`record!`] declares a record once: the meaning, order and type of its fields. Code for writing
//! and reading follows from that. New fields are added at the end, so that older readers ignore
//! them and newer readers accept older records without them. A declaration also specifies the
//! payload, with these forms of [`Field`]:
//!
//! | type | bytes |
//! |---|---|
//! | `u32`, `i32`, `u64` | little endian |
//! | `bool` | `u32`, 0 or 1 |
//! | `f64` | its bits as a `u64`; a duration in nanoseconds, an invalid one reads as 0 |
//! | `String` | `u32` length in bytes, UTF-8 |
//! | `Vec` | `u32` count, items |
//! | `Option<u64>` | `u32` 1 when there is a value, `u64` |
//! | an enum | `u32`, its number; an unknown number is the default |
//! | another record | its fields |
//!
//! Fields beyond the end of a shorter payload read as zero or empty.

use crate::payload::{PayloadReader, PayloadWriter};

/// A value in a record.
pub(crate) trait Field: Sized {
    /// Appends the value.
    fn put(&self, payload: &mut PayloadWriter);

    /// Reads the value from the front; `None` if this version can't represent the stored value.
    fn read(payload: &mut PayloadReader<'_>) -> Option<Self>;

    /// Replaces the fields of the record by another record's; fields outside the record are kept.
    fn replace_record(&mut self, by: Self) {
        *self = by;
    }
}

/// Decodes a payload that consists of one value.
pub(crate) fn decode<T: Field>(mut payload: PayloadReader<'_>) -> Option<T> {
    T::read(&mut payload)
}

/// Encodes a payload that consists of one value.
pub(crate) fn encode<T: Field>(value: &T) -> PayloadWriter {
    let mut payload = PayloadWriter::default();
    value.put(&mut payload);
    payload
}

/// Declares a struct that is a record: its fields in the order of the payload. Fields under
/// `beside` belong to the struct but not to the record.
macro_rules! record {
    (
        $(#[$about:meta])*
        $visible:vis struct $name:ident {
            $($(#[$doc:meta])* $see:vis $field:ident: $type:ty,)*
        }
        $(beside { $($(#[$beside_doc:meta])* $beside_see:vis $beside:ident: $beside_type:ty,)* })?
    ) => {
        $(#[$about])*
        $visible struct $name {
            $($(#[$doc])* $see $field: $type,)*
            $($($(#[$beside_doc])* $beside_see $beside: $beside_type,)*)?
        }

        impl $crate::codec::Field for $name {
            fn put(&self, payload: &mut $crate::payload::PayloadWriter) {
                $($crate::codec::Field::put(&self.$field, payload);)*
            }

            fn read(payload: &mut $crate::payload::PayloadReader<'_>) -> Option<Self> {
                // Evaluated in the order written here, which is the order of the declaration.
                Some(Self {
                    $($field: $crate::codec::Field::read(payload)?,)*
                    $($($beside: Default::default(),)*)?
                })
            }

            fn replace_record(&mut self, by: Self) {
                $(self.$field = by.$field;)*
            }
        }
    };
}

/// Makes an enum a field, by its numbers.
macro_rules! numbered {
    ($name:ident: $($variant:ident),*) => {
        impl $crate::codec::Field for $name {
            fn put(&self, payload: &mut $crate::payload::PayloadWriter) {
                payload.u32(*self as u32);
            }

            fn read(payload: &mut $crate::payload::PayloadReader<'_>) -> Option<Self> {
                let number = payload.u32();
                Some([$(Self::$variant),*].into_iter().find(|found| *found as u32 == number).unwrap_or_default())
            }
        }
    };
}

pub(crate) use {numbered, record};

impl Field for u32 {
    fn put(&self, payload: &mut PayloadWriter) {
        payload.u32(*self);
    }

    fn read(payload: &mut PayloadReader<'_>) -> Option<Self> {
        Some(payload.u32())
    }
}

impl Field for i32 {
    fn put(&self, payload: &mut PayloadWriter) {
        payload.u32(*self as u32);
    }

    fn read(payload: &mut PayloadReader<'_>) -> Option<Self> {
        Some(payload.u32() as i32)
    }
}

impl Field for u64 {
    fn put(&self, payload: &mut PayloadWriter) {
        payload.u64(*self);
    }

    fn read(payload: &mut PayloadReader<'_>) -> Option<Self> {
        Some(payload.u64())
    }
}

impl Field for bool {
    fn put(&self, payload: &mut PayloadWriter) {
        payload.u32(u32::from(*self));
    }

    fn read(payload: &mut PayloadReader<'_>) -> Option<Self> {
        Some(payload.u32() != 0)
    }
}

impl Field for f64 {
    fn put(&self, payload: &mut PayloadWriter) {
        payload.u64(self.to_bits());
    }

    fn read(payload: &mut PayloadReader<'_>) -> Option<Self> {
        Some(payload.nanoseconds())
    }
}

impl Field for String {
    fn put(&self, payload: &mut PayloadWriter) {
        payload.text(self);
    }

    fn read(payload: &mut PayloadReader<'_>) -> Option<Self> {
        Some(payload.text())
    }
}

impl Field for Option<u64> {
    fn put(&self, payload: &mut PayloadWriter) {
        payload.u32(u32::from(self.is_some())).u64(self.unwrap_or(0));
    }

    fn read(payload: &mut PayloadReader<'_>) -> Option<Self> {
        let (there, value) = (payload.u32() == 1, payload.u64());
        Some(there.then_some(value))
    }
}

/// If the count exceeds what the bytes can hold, reading ends with the bytes.
impl<T: Field> Field for Vec<T> {
    fn put(&self, payload: &mut PayloadWriter) {
        payload.u32(u32::try_from(self.len()).unwrap_or(0));
        self.iter().for_each(|item| item.put(payload));
    }

    fn read(payload: &mut PayloadReader<'_>) -> Option<Self> {
        let mut found = Self::new();
        for _ in 0..payload.u32() {
            if payload.is_at_end() {
                break;
            }
            found.push(T::read(payload)?);
        }
        Some(found)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    record! {
        #[derive(Debug, PartialEq)]
        struct Sample {
            number: u32,
            words: Vec<String>,
            maybe: Option<u64>,
        }
        beside {
            elsewhere: Vec<u8>,
        }
    }

    #[test]
    fn a_record_is_its_fields_in_order_and_lacks_what_is_not_there() {
        let sample = Sample { number: 7, words: vec!["a".into()], maybe: Some(1), elsewhere: vec![1] };
        let payload = encode(&sample);
        assert_eq!(payload.bytes()[..13], [7, 0, 0, 0, 1, 0, 0, 0, 1, 0, 0, 0, b'a']);
        let read = |bytes| decode::<Sample>(PayloadReader::new(bytes));
        assert_eq!(read(payload.bytes()), Some(Sample { elsewhere: Vec::new(), ..sample }));
        assert_eq!(
            read(&payload.bytes()[..4]),
            Some(Sample { number: 7, words: Vec::new(), maybe: None, elsewhere: Vec::new() })
        );
    }

    #[test]
    fn a_lying_count_ends_with_the_bytes() {
        let payload = encode(&vec![u32::MAX, 5]);
        let mut bytes = payload.bytes().to_vec();
        bytes[..4].copy_from_slice(&u32::MAX.to_le_bytes());
        assert_eq!(decode::<Vec<u32>>(PayloadReader::new(&bytes)), Some(vec![u32::MAX, 5]));
    }
}
