//! Records of a chunk, written and read.

use super::kinds::{Kind, Phase};

/// What a field means; its number says which form the value has.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Tag(pub u8);

impl Tag {
    /// Address of an object.
    pub const OBJECT: Self = Self(1);
    /// An HRESULT.
    pub const RESULT: Self = Self(2);
    /// The system's number of a thread.
    pub const OS_THREAD: Self = Self(3);
    /// How many.
    pub const COUNT: Self = Self(4);
    /// Bytes.
    pub const BYTES: Self = Self(5);
    /// A GC handle.
    pub const HANDLE: Self = Self(6);
    /// A version of a method.
    pub const REJIT: Self = Self(7);
    /// A bit per generation.
    pub const GENERATIONS: Self = Self(8);
    /// A metadata token.
    pub const TOKEN: Self = Self(9);
    /// 1 for yes, 0 for no.
    pub const ANSWER: Self = Self(10);
    /// Offset in the IL of the frame before it.
    pub const IL_OFFSET: Self = Self(11);
    /// Address of the exception within this one.
    pub const INNER_OBJECT: Self = Self(12);
    /// More frames than were kept.
    pub const FRAMES_CUT: Self = Self(13);
    /// 1 when a call begins, 0 when it returns.
    pub const CALL: Self = Self(14);
    /// An exception's HResult property.
    pub const EXCEPTION_CODE: Self = Self(15);
    /// The number of a stack, that of a [`Kind::EXCEPTION_STACK`].
    pub const STACK: Self = Self(16);
    /// Which frame of the stack, from 0 for the innermost.
    pub const POSITION: Self = Self(17);
    /// Why, in words.
    pub const REASON: Self = Self(64);
    /// A name.
    pub const NAME: Self = Self(65);
    /// An HRESULT's name.
    pub const RESULT_NAME: Self = Self(66);
    /// An exception's message.
    pub const MESSAGE: Self = Self(67);
    /// Arguments of a call, as in `flow`.
    pub const ARGUMENTS: Self = Self(112);
    /// A function.
    pub const FUNCTION: Self = Self(128);
    /// A class.
    pub const CLASS: Self = Self(129);
    /// A module.
    pub const MODULE: Self = Self(130);
    /// An assembly.
    pub const ASSEMBLY: Self = Self(131);
    /// An application domain.
    pub const APP_DOMAIN: Self = Self(132);
    /// A managed thread.
    pub const THREAD: Self = Self(133);
    /// A function that is called.
    pub const CALLEE: Self = Self(134);
    /// An EventPipe provider.
    pub const PROVIDER: Self = Self(135);
    /// A frame of a stack, innermost first: its function.
    pub const FRAME: Self = Self(136);
    /// The class of an inner exception.
    pub const INNER_CLASS: Self = Self(137);
}

/// Something the runtime identifies.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Thing {
    /// The runtime's identifier, used again for something else later.
    pub id: u64,
    /// Our number, 0 for none.
    pub index: u32,
}

/// A field's value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Value<'a> {
    /// A number.
    Number(u64),
    /// A text.
    Text(&'a str),
    /// Bytes that mean something elsewhere.
    Bytes(&'a [u8]),
    /// Something the runtime identifies.
    Thing(Thing),
}

impl From<u64> for Value<'_> {
    fn from(number: u64) -> Self {
        Self::Number(number)
    }
}

impl From<usize> for Value<'_> {
    fn from(number: usize) -> Self {
        Self::Number(number as u64)
    }
}

impl From<u32> for Value<'_> {
    fn from(number: u32) -> Self {
        Self::Number(number.into())
    }
}

impl From<bool> for Value<'_> {
    fn from(answer: bool) -> Self {
        Self::Number(answer.into())
    }
}

impl<'a> From<&'a str> for Value<'a> {
    fn from(text: &'a str) -> Self {
        Self::Text(text)
    }
}

impl From<Thing> for Value<'_> {
    fn from(thing: Thing) -> Self {
        Self::Thing(thing)
    }
}

/// A field of a record.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Field<'a> {
    /// What it means.
    pub tag: Tag,
    /// The value.
    pub value: Value<'a>,
}

/// Writes one record into memory that the caller has; allocates nothing. What does not fit is left out
/// whole, and [`finish`](Self::finish) says so.
#[derive(Debug)]
pub struct Encoder<'a> {
    buffer: &'a mut [u8],
    used: usize,
    full: bool,
}

/// Bytes kept free in front for the record's length: records are shorter than 2^14 bytes.
const LENGTH: usize = 2;

impl<'a> Encoder<'a> {
    /// Bytes a record may have.
    pub const MOST: usize = 1 << 14;

    /// Begins a record. `delta_ns` is the time since the record before it.
    #[inline]
    pub fn new(buffer: &'a mut [u8], kind: Kind, delta_ns: u64) -> Self {
        let end = buffer.len().min(Self::MOST);
        let mut encoder = Self { buffer: &mut buffer[..end], used: LENGTH.min(end), full: end < LENGTH };
        encoder.byte(kind.0);
        encoder.varint(delta_ns);
        encoder
    }

    fn bytes(&mut self, bytes: &[u8]) {
        match self.buffer.get_mut(self.used..self.used + bytes.len()) {
            Some(place) if !self.full => {
                place.copy_from_slice(bytes);
                self.used += bytes.len();
            }
            _ => self.full = true,
        }
    }

    /// Byte by byte: a copy of so few bytes would cost a call.
    #[inline]
    fn byte(&mut self, byte: u8) {
        match self.buffer.get_mut(self.used) {
            Some(place) => {
                *place = byte;
                self.used += 1;
            }
            None => self.full = true,
        }
    }

    #[inline]
    fn varint(&mut self, mut value: u64) {
        while value > 0x7F {
            self.byte(value as u8 | 0x80);
            value >>= 7;
        }
        self.byte(value as u8);
    }

    /// Adds a field whole or not at all.
    #[inline]
    fn field(&mut self, tag: Tag, write: impl FnOnce(&mut Self)) -> &mut Self {
        let before = self.used;
        self.byte(tag.0);
        write(self);
        if self.full {
            self.used = before;
        }
        self
    }

    /// Adds a number.
    #[inline]
    pub fn number(&mut self, tag: Tag, value: u64) -> &mut Self {
        debug_assert!(tag.0 < 64);
        self.field(tag, |encoder| encoder.varint(value))
    }

    /// Adds a text.
    pub fn text(&mut self, tag: Tag, value: &str) -> &mut Self {
        debug_assert!((64..112).contains(&tag.0));
        self.field(tag, |encoder| {
            encoder.varint(value.len() as u64);
            encoder.bytes(value.as_bytes());
        })
    }

    /// Adds bytes that mean something elsewhere.
    pub fn opaque(&mut self, tag: Tag, value: &[u8]) -> &mut Self {
        debug_assert!((112..128).contains(&tag.0));
        self.field(tag, |encoder| {
            encoder.varint(value.len() as u64);
            encoder.bytes(value);
        })
    }

    /// Adds a text of UTF-16 units; a surrogate without its other half becomes U+FFFD.
    pub fn utf16(&mut self, tag: Tag, units: &[u16]) -> &mut Self {
        debug_assert!((64..112).contains(&tag.0));
        let characters = || char::decode_utf16(units.iter().copied()).map(|c| c.unwrap_or(char::REPLACEMENT_CHARACTER));
        self.field(tag, |encoder| {
            if units.iter().all(|&unit| unit < 0x80) {
                encoder.varint(units.len() as u64);
                units.iter().for_each(|&unit| encoder.byte(unit as u8));
                return;
            }
            encoder.varint(characters().map(char::len_utf8).sum::<usize>() as u64);
            for character in characters() {
                encoder.bytes(character.encode_utf8(&mut [0; 4]).as_bytes());
            }
        })
    }

    /// Adds something the runtime identifies.
    #[inline]
    pub fn thing(&mut self, tag: Tag, value: Thing) -> &mut Self {
        debug_assert!(tag.0 >= 128);
        self.field(tag, |encoder| {
            encoder.varint(value.id);
            encoder.varint(value.index.into());
        })
    }

    /// Adds a field, unless it says nothing: an empty text, or a thing without identifier.
    pub fn put(&mut self, field: Field<'_>) -> &mut Self {
        match field.value {
            Value::Number(number) => self.number(field.tag, number),
            Value::Text("") => self,
            Value::Text(text) => self.text(field.tag, text),
            Value::Bytes(bytes) => self.opaque(field.tag, bytes),
            Value::Thing(Thing { id: 0, index: 0 }) => self,
            Value::Thing(thing) => self.thing(field.tag, thing),
        }
    }

    /// The record's bytes, and whether everything fitted in.
    #[inline]
    pub fn finish(self) -> (&'a [u8], bool) {
        let length = self.used.saturating_sub(LENGTH);
        if let [low, high, ..] = &mut *self.buffer {
            *low = (length & 0x7F) as u8 | 0x80;
            *high = (length >> 7) as u8;
        }
        (&self.buffer[..self.used], !self.full)
    }
}

/// A record as it was read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Record<'a> {
    /// What it tells.
    pub kind: Kind,
    /// When, nanoseconds since the start of the process's recording.
    pub time_ns: u64,
    fields: &'a [u8],
}

impl<'a> Record<'a> {
    /// The fields in the order in which they were written.
    pub fn fields(&self) -> impl Iterator<Item = Field<'a>> + use<'a> {
        let mut bytes = self.fields;
        std::iter::from_fn(move || take_field(&mut bytes))
    }

    /// The first field with this tag.
    #[must_use]
    pub fn field(&self, tag: Tag) -> Option<Value<'a>> {
        self.fields().find(|field| field.tag == tag).map(|field| field.value)
    }

    /// The first number with this tag.
    #[must_use]
    pub fn number(&self, tag: Tag) -> Option<u64> {
        self.field(tag).and_then(|value| if let Value::Number(number) = value { Some(number) } else { None })
    }

    /// The first text with this tag.
    #[must_use]
    pub fn text(&self, tag: Tag) -> Option<&'a str> {
        self.field(tag).and_then(|value| if let Value::Text(text) = value { Some(text) } else { None })
    }

    /// The first bytes with this tag.
    #[must_use]
    pub fn opaque(&self, tag: Tag) -> Option<&'a [u8]> {
        self.field(tag).and_then(|value| if let Value::Bytes(bytes) = value { Some(bytes) } else { None })
    }

    /// The first thing with this tag.
    #[must_use]
    pub fn thing(&self, tag: Tag) -> Option<Thing> {
        self.field(tag).and_then(|value| if let Value::Thing(thing) = value { Some(thing) } else { None })
    }

    /// Whether it begins or ends something. A call of native code begins with a transition to unmanaged
    /// code and ends with one back; a callback the other way round.
    #[must_use]
    pub fn phase(&self) -> Phase {
        let back = match self.kind {
            Kind::MANAGED_TO_UNMANAGED_TRANSITION => Kind::UNMANAGED_TO_MANAGED_TRANSITION,
            Kind::UNMANAGED_TO_MANAGED_TRANSITION => Kind::MANAGED_TO_UNMANAGED_TRANSITION,
            other => return other.phase(),
        };
        if self.number(Tag::CALL) == Some(1) { Phase::Start } else { Phase::End(back) }
    }
}

fn take_field<'a>(bytes: &mut &'a [u8]) -> Option<Field<'a>> {
    let (&tag, rest) = bytes.split_first()?;
    *bytes = rest;
    let number = take_varint(bytes)?;
    let value = match tag {
        0..64 => Value::Number(number),
        64..128 => {
            let length = usize::try_from(number).ok().filter(|&length| length <= bytes.len())?;
            let (content, rest) = bytes.split_at(length);
            *bytes = rest;
            if tag < 112 { Value::Text(std::str::from_utf8(content).unwrap_or("?")) } else { Value::Bytes(content) }
        }
        _ => Value::Thing(Thing { id: number, index: u32::try_from(take_varint(bytes)?).unwrap_or(0) }),
    };
    Some(Field { tag: Tag(tag), value })
}

fn take_varint(bytes: &mut &[u8]) -> Option<u64> {
    let mut value = 0_u64;
    for shift in (0..64).step_by(7) {
        let (&byte, rest) = bytes.split_first()?;
        *bytes = rest;
        value |= u64::from(byte & 0x7F) << shift;
        if byte < 0x80 {
            return Some(value);
        }
    }
    None
}

/// Walks the records of a chunk; ends at the first that is not whole.
#[derive(Debug, Clone)]
pub struct Records<'a> {
    bytes: &'a [u8],
    time_ns: u64,
}

impl<'a> Records<'a> {
    /// Walks `bytes`.
    #[must_use]
    pub fn new(bytes: &'a [u8]) -> Self {
        Self { bytes, time_ns: 0 }
    }

    /// Whether bytes are left that are no record.
    #[must_use]
    pub fn was_cut(&self) -> bool {
        !self.bytes.is_empty()
    }
}

impl<'a> Iterator for Records<'a> {
    type Item = Record<'a>;

    fn next(&mut self) -> Option<Record<'a>> {
        let mut rest = self.bytes;
        let length = usize::try_from(take_varint(&mut rest)?).ok().filter(|&length| length <= rest.len())?;
        let (mut record, rest) = rest.split_at(length);
        let (&kind, after) = record.split_first()?;
        record = after;
        let delta = take_varint(&mut record)?;
        self.bytes = rest;
        self.time_ns = self.time_ns.saturating_add(delta);
        Some(Record { kind: Kind(kind), time_ns: self.time_ns, fields: record })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn put(chunk: &mut Vec<u8>, kind: Kind, delta: u64, write: impl FnOnce(&mut Encoder<'_>)) {
        let mut buffer = [0; 256];
        let mut encoder = Encoder::new(&mut buffer, kind, delta);
        write(&mut encoder);
        let (bytes, whole) = encoder.finish();
        assert!(whole);
        chunk.extend_from_slice(bytes);
    }

    #[test]
    fn records_come_back_with_all_their_fields() {
        let mut chunk = Vec::new();
        let function = Thing { id: 0x7f12_3456_789a, index: 70_000 };
        put(&mut chunk, Kind::JIT_COMPILATION_STARTED, 1_000_000, |e| {
            e.thing(Tag::FUNCTION, function).number(Tag::ANSWER, 1);
        });
        put(&mut chunk, Kind::JIT_COMPILATION_FINISHED, 300, |e| {
            e.thing(Tag::FUNCTION, function).number(Tag::RESULT, 0x8013_1350).text(Tag::REASON, "caf\u{e9}");
        });
        let mut records = Records::new(&chunk);
        let first = records.next().expect("a record");
        assert_eq!((first.kind.name(), first.time_ns), (Some("JITCompilationStarted"), 1_000_000));
        assert_eq!((first.thing(Tag::FUNCTION), first.number(Tag::ANSWER)), (Some(function), Some(1)));
        let second = records.next().expect("a record");
        assert_eq!((second.phase(), second.time_ns), (Phase::End(Kind::JIT_COMPILATION_STARTED), 1_000_300));
        assert_eq!((second.number(Tag::RESULT), second.text(Tag::REASON)), (Some(0x8013_1350), Some("caf\u{e9}")));
        assert_eq!(second.number(Tag::FUNCTION), None);
        assert_eq!((records.next(), records.was_cut()), (None, false));
    }

    #[test]
    fn what_does_not_fit_is_left_out_whole() {
        let mut buffer = [0; 16];
        let mut encoder = Encoder::new(&mut buffer, Kind::EXCEPTION_THROWN, 5);
        encoder
            .put(Field { tag: Tag::REASON, value: "".into() })
            .put(Field { tag: Tag::CLASS, value: Thing::default().into() });
        encoder
            .put(Field { tag: Tag::OBJECT, value: true.into() })
            .text(Tag::MESSAGE, "far too long for so little memory")
            .number(Tag::COUNT, 2);
        let (bytes, whole) = encoder.finish();
        assert!(!whole);
        let record = Records::new(bytes).next().expect("a record");
        assert_eq!((record.number(Tag::OBJECT), record.text(Tag::MESSAGE)), (Some(1), None));
    }

    #[test]
    fn bytes_that_are_no_text_come_back() {
        let mut chunk = Vec::new();
        put(&mut chunk, Kind::EXCEPTION_ARGUMENTS, 1, |e| {
            e.number(Tag::POSITION, 2).opaque(Tag::ARGUMENTS, &[0xFF, 0, 0xC3]);
        });
        let record = Records::new(&chunk).next().expect("a record");
        assert_eq!(
            (record.number(Tag::POSITION), record.opaque(Tag::ARGUMENTS)),
            (Some(2), Some(&[0xFF, 0, 0xC3][..]))
        );
        assert_eq!(record.text(Tag::ARGUMENTS), None);
    }

    #[test]
    fn utf16_is_stored_as_utf8() {
        for text in ["plain", "", "caf\u{e9} \u{1F600}"] {
            let units: Vec<u16> = text.encode_utf16().collect();
            let mut buffer = [0; 64];
            let mut encoder = Encoder::new(&mut buffer, Kind::EXCEPTION_THROWN, 0);
            encoder.utf16(Tag::MESSAGE, &units);
            let (bytes, whole) = encoder.finish();
            assert_eq!((Records::new(bytes).next().and_then(|r| r.text(Tag::MESSAGE)), whole), (Some(text), true));
        }
        let mut buffer = [0; 64];
        let mut encoder = Encoder::new(&mut buffer, Kind::EXCEPTION_THROWN, 0);
        encoder.utf16(Tag::MESSAGE, &[0x41, 0xD800, 0x42]);
        let (bytes, _) = encoder.finish();
        assert_eq!(Records::new(bytes).next().and_then(|r| r.text(Tag::MESSAGE)), Some("A\u{FFFD}B"));
    }

    #[test]
    fn transitions_are_paired_by_their_reason() {
        let mut chunk = Vec::new();
        for (kind, call) in [(Kind::MANAGED_TO_UNMANAGED_TRANSITION, 1), (Kind::UNMANAGED_TO_MANAGED_TRANSITION, 0)] {
            put(&mut chunk, kind, 1, |e| {
                e.number(Tag::CALL, call);
            });
        }
        let phases: Vec<_> = Records::new(&chunk).map(|r| r.phase()).collect();
        assert_eq!(phases, [Phase::Start, Phase::End(Kind::MANAGED_TO_UNMANAGED_TRANSITION)]);
    }

    #[test]
    fn kinds_stand_at_their_places_in_the_interface() {
        assert_eq!(Kind::INITIALIZE.0, 3);
        assert_eq!((Kind::THREAD_NAME_CHANGED.0, Kind::LOAD_AS_NOTIFICATION_ONLY.0), (72, 97));
        let numbers: Vec<u8> = Kind::all().map(|kind| kind.0).collect();
        assert!(numbers.is_sorted() && numbers[..95].iter().copied().eq(3..=97));
        for kind in Kind::all() {
            if let Phase::End(start) = kind.phase() {
                assert_eq!(start.phase(), Phase::Start, "{:?}", kind.name());
            }
        }
    }

    proptest! {
        #[test]
        fn any_bytes_can_be_walked(bytes in proptest::collection::vec(any::<u8>(), 0..300)) {
            let count = Records::new(&bytes).map(|record| record.fields().count()).sum::<usize>();
            prop_assert!(count <= bytes.len());
        }
    }
}
