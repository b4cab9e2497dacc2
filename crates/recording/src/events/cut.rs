//! Cuts chunks by time: the part of a chunk that lies in the period of a recording.

use std::ops::Range;

use super::kinds::Kind;
use super::record::{Record, Records};
use crate::varint::each_byte;

/// The records of a chunk within a period, encoded as a new chunk. The last
/// [`Kind::REQUEST_ON_THREAD`] before the period is moved to the period's start, because it says
/// what the thread does from then on.
#[must_use]
pub fn records_within(bytes: &[u8], period: Range<u64>) -> Vec<u8> {
    let Range { start: since_ns, end: until_ns } = period;
    let mut records = Records::new(bytes);
    let mut state = None;
    let mut kept = Vec::new();
    let first = loop {
        match records.next() {
            Some(record) if record.time_ns >= since_ns => break Some(record),
            Some(record) if record.kind == Kind::REQUEST_ON_THREAD => state = Some(record),
            Some(_) => {}
            None => break None,
        }
    };
    let first = first.filter(|record| record.time_ns < until_ns);
    let state = state.filter(|_| since_ns < until_ns).map(|state| state.moved_to(since_ns));
    let mut last_ns = 0;
    for record in state.into_iter().chain(first) {
        put(&mut kept, &record, record.time_ns - last_ns);
        last_ns = record.time_ns;
    }
    if first.is_some() {
        let rest = records.rest();
        kept.extend_from_slice(&rest[..rest.len() - left_after(records, until_ns)]);
    }
    kept
}

/// Number of the bytes from the first record at or after `until_ns` on. The times of a chunk never
/// fall. Bytes that are no record are not counted where no such record precedes them.
fn left_after(mut records: Records<'_>, until_ns: u64) -> usize {
    loop {
        let left = records.rest().len();
        match records.next() {
            Some(record) if record.time_ns >= until_ns => return left,
            Some(_) => {}
            None => return 0,
        }
    }
}

/// Appends a record with encoded fields.
fn put(chunk: &mut Vec<u8>, record: &Record<'_>, delta_ns: u64) {
    let mut content = vec![record.kind.0];
    each_byte(delta_ns, |byte| content.push(byte));
    content.extend_from_slice(record.field_bytes());
    each_byte(content.len() as u64, |byte| chunk.push(byte));
    chunk.append(&mut content);
}

#[cfg(test)]
mod tests {
    use super::super::{Encoder, OwnedRecord, Tag};
    use super::*;
    use proptest::prelude::*;

    fn chunk(deltas: &[(Kind, u64)]) -> Vec<u8> {
        let mut chunk = Vec::new();
        for (number, &(kind, delta)) in (0_u64..).zip(deltas) {
            let mut buffer = [0; 64];
            let mut encoder = Encoder::new(&mut buffer, kind, delta);
            encoder.number(Tag::OBJECT, number);
            chunk.extend_from_slice(encoder.finish().0);
        }
        chunk
    }

    #[test]
    fn the_last_word_about_a_thread_before_that_time_stays() {
        let (other, on_thread) = (Kind::EXCEPTION_THROWN, Kind::REQUEST_ON_THREAD);
        let bytes = chunk(&[(on_thread, 5), (on_thread, 1), (other, 1), (other, 10), (on_thread, 1)]);
        let read = |period| {
            let kept = records_within(&bytes, period);
            let records = OwnedRecord::all(&kept);
            records.iter().map(|one| (one.record().time_ns, one.record().number(Tag::OBJECT))).collect::<Vec<_>>()
        };
        assert_eq!(read(0..u64::MAX).len(), 5);
        assert_eq!(read(10..u64::MAX), [(10, Some(1)), (17, Some(3)), (18, Some(4))]);
        assert_eq!(read(10..18), [(10, Some(1)), (17, Some(3))]);
        assert_eq!(read(10..12), [(10, Some(1))]);
        assert_eq!(read(10..10), []);
        assert_eq!(read(19..u64::MAX), [(19, Some(4))]);
        assert!(records_within(&chunk(&[(other, 5)]), 6..u64::MAX).is_empty());
    }

    proptest! {
        #[test]
        fn what_is_left_are_the_records_of_the_period(
            deltas in proptest::collection::vec(0_u64..5_000_000_000, 0..40),
            since in 0_u64..100_000_000_000,
            length in 0_u64..100_000_000_000,
        ) {
            let bytes = chunk(&deltas.iter().map(|&delta| (Kind::EXCEPTION_THROWN, delta)).collect::<Vec<_>>());
            let period = since..since + length;
            let kept = records_within(&bytes, period.clone());
            let wanted: Vec<OwnedRecord> =
                OwnedRecord::all(&bytes).into_iter().filter(|record| period.contains(&record.record().time_ns)).collect();
            prop_assert_eq!(OwnedRecord::all(&kept), wanted);
        }

        #[test]
        fn any_bytes_can_be_cut(
            bytes in proptest::collection::vec(any::<u8>(), 0..300),
            since in any::<u64>(),
            until in any::<u64>(),
        ) {
            prop_assert!(records_within(&bytes, since..until).len() <= bytes.len() * 2 + 32);
        }
    }
}
