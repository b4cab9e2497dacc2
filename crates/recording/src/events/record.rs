//! Reads records.

use super::field::{EntityRef, Field, Tag, Value};
use super::kinds::{Kind, Phase};
use crate::varint::Varints;

/// A record read from a chunk.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Record<'a> {
    /// Kind of the event.
    pub kind: Kind,
    /// Time, nanoseconds since the start of the process's recording.
    pub time_ns: u64,
    fields: Varints<'a>,
}

impl<'a> Record<'a> {
    /// The fields in the order written.
    pub fn fields(&self) -> impl Iterator<Item = Field<'a>> + use<'a> {
        let mut bytes = self.fields;
        std::iter::from_fn(move || take_field(&mut bytes))
    }

    /// The same record with another time.
    pub(super) fn moved_to(self, time_ns: u64) -> Self {
        Self { time_ns, ..self }
    }

    /// The bytes of all fields.
    pub(super) fn field_bytes(&self) -> &'a [u8] {
        self.fields.bytes()
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

    /// The first entity with this tag.
    #[must_use]
    pub fn entity(&self, tag: Tag) -> Option<EntityRef> {
        self.field(tag).and_then(|value| if let Value::Entity(entity) = value { Some(entity) } else { None })
    }

    /// Whether the event begins or ends something. A call of native code begins with a transition
    /// to unmanaged code and ends with one back; a callback does the reverse.
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

fn take_field<'a>(bytes: &mut Varints<'a>) -> Option<Field<'a>> {
    let tag = bytes.byte()?;
    let number = bytes.next()?;
    let value = match tag {
        0..64 => Value::Number(number),
        64..112 => Value::Text(std::str::from_utf8(bytes.split_off(number)?.bytes()).unwrap_or("?")),
        112..128 => Value::Bytes(bytes.split_off(number)?.bytes()),
        _ => Value::Entity(EntityRef { id: number, index: u32::try_from(bytes.next()?).unwrap_or(0) }),
    };
    Some(Field { tag: Tag(tag), value })
}

/// A position between two records of a chunk; the default is the chunk's beginning.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct RecordPlace {
    offset: usize,
    /// Time of the previous record.
    time_ns: u64,
}

/// A record that owns its bytes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OwnedRecord {
    kind: Kind,
    time_ns: u64,
    fields: Box<[u8]>,
}

impl OwnedRecord {
    /// All records of a chunk at once, for chunks that are known to be short.
    #[must_use]
    pub fn all(bytes: &[u8]) -> Vec<Self> {
        Records::new(bytes).map(|record| Self::from(&record)).collect()
    }

    /// The record.
    #[must_use]
    pub fn record(&self) -> Record<'_> {
        Record { kind: self.kind, time_ns: self.time_ns, fields: Varints::new(&self.fields) }
    }
}

impl From<&Record<'_>> for OwnedRecord {
    fn from(record: &Record<'_>) -> Self {
        Self { kind: record.kind, time_ns: record.time_ns, fields: record.fields.bytes().into() }
    }
}

/// Iterates over the records of a chunk; ends at the first incomplete one.
#[derive(Debug, Clone)]
pub struct Records<'a> {
    rest: Varints<'a>,
    time_ns: u64,
}

impl<'a> Records<'a> {
    /// Iterates over `bytes`.
    #[must_use]
    pub fn new(bytes: &'a [u8]) -> Self {
        Self { rest: Varints::new(bytes), time_ns: 0 }
    }

    /// Continues in `bytes` from a [`read_position`](Self::read_position) in the same bytes.
    #[must_use]
    pub fn resume(bytes: &'a [u8], place: RecordPlace) -> Self {
        Self { rest: Varints::new(bytes.get(place.offset..).unwrap_or(&[])), time_ns: place.time_ns }
    }

    /// Returns the position in `bytes` up to which records were read; `bytes` must be the iterated
    /// ones.
    #[must_use]
    pub fn read_position(&self, bytes: &[u8]) -> RecordPlace {
        RecordPlace { offset: bytes.len() - self.rest.bytes().len().min(bytes.len()), time_ns: self.time_ns }
    }

    /// The unread bytes.
    pub(super) fn rest(&self) -> &'a [u8] {
        self.rest.bytes()
    }

    /// Whether the remaining bytes do not form a record.
    #[must_use]
    pub fn was_cut(&self) -> bool {
        !self.rest.bytes().is_empty()
    }
}

impl<'a> Iterator for Records<'a> {
    type Item = Record<'a>;

    fn next(&mut self) -> Option<Record<'a>> {
        let mut rest = self.rest;
        let length = rest.next()?;
        let mut record = rest.split_off(length)?;
        let kind = Kind(record.byte()?);
        let delta = record.next()?;
        self.rest = rest;
        self.time_ns = self.time_ns.saturating_add(delta);
        Some(Record { kind, time_ns: self.time_ns, fields: record })
    }
}

#[cfg(test)]
mod tests {
    use super::super::Encoder;
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
        let function = EntityRef { id: 0x7f12_3456_789a, index: 70_000 };
        put(&mut chunk, Kind::JIT_COMPILATION_STARTED, 1_000_000, |e| {
            e.entity(Tag::FUNCTION, function).number(Tag::ANSWER, 1);
        });
        put(&mut chunk, Kind::JIT_COMPILATION_FINISHED, 300, |e| {
            e.entity(Tag::FUNCTION, function).number(Tag::RESULT, 0x8013_1350).text(Tag::REASON, "caf\u{e9}");
        });
        let mut records = Records::new(&chunk);
        let first = records.next().expect("a record");
        assert_eq!((first.kind.name(), first.time_ns), (Some("JITCompilationStarted"), 1_000_000));
        assert_eq!((first.entity(Tag::FUNCTION), first.number(Tag::ANSWER)), (Some(function), Some(1)));
        let second = records.next().expect("a record");
        assert_eq!((second.phase(), second.time_ns), (Phase::End(Kind::JIT_COMPILATION_STARTED), 1_000_300));
        assert_eq!((second.number(Tag::RESULT), second.text(Tag::REASON)), (Some(0x8013_1350), Some("caf\u{e9}")));
        assert_eq!(second.number(Tag::FUNCTION), None);
        assert_eq!((records.next(), records.was_cut()), (None, false));
    }

    #[test]
    fn a_walk_goes_on_where_another_stopped() {
        let mut chunk = Vec::new();
        for delta in [5, 7, 9] {
            put(&mut chunk, Kind::EXCEPTION_THROWN, delta, |e| {
                e.number(Tag::OBJECT, delta);
            });
        }
        let mut records = Records::new(&chunk);
        let first = records.next().expect("a record");
        assert_eq!(OwnedRecord::from(&first).record(), first);
        let rest: Vec<_> = Records::resume(&chunk, records.read_position(&chunk)).collect();
        assert_eq!(rest, records.collect::<Vec<_>>());
        assert_eq!(rest.iter().map(|record| record.time_ns).collect::<Vec<_>>(), [12, 21]);
        assert_eq!(Records::resume(&chunk, RecordPlace::default()).count(), 3);
        assert_eq!(Records::resume(&[], RecordPlace { offset: 9, time_ns: 1 }).count(), 0);
    }

    #[test]
    fn what_does_not_fit_is_left_out_whole() {
        let mut buffer = [0; 16];
        let mut encoder = Encoder::new(&mut buffer, Kind::EXCEPTION_THROWN, 5);
        encoder
            .put(Field { tag: Tag::REASON, value: "".into() })
            .put(Field { tag: Tag::CLASS, value: EntityRef::default().into() });
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

    proptest! {
        #[test]
        fn any_bytes_can_be_walked(bytes in proptest::collection::vec(any::<u8>(), 0..300)) {
            let count = Records::new(&bytes).map(|record| record.fields().count()).sum::<usize>();
            prop_assert!(count <= bytes.len());
        }
    }
}
