//! Bytes of any kind as answers and as event streams: errors, never a panic, never much memory.

use clr_diagnostics::fuzzing::{read_answers, read_events};
use clr_diagnostics::nettrace::Reader;
use clr_diagnostics::{Counter, CounterKind, Error};
use proptest::collection::vec;
use proptest::prelude::*;

fn text(text: &str) -> Vec<u8> {
    text.encode_utf16().chain([0]).flat_map(u16::to_le_bytes).collect()
}

fn number(value: u32) -> Vec<u8> {
    value.to_le_bytes().to_vec()
}

/// A stream of objects with their blocks.
#[derive(Default)]
struct Stream(Vec<u8>);

impl Stream {
    fn new() -> Self {
        let mut this = Self([b"Nettrace".to_vec(), number(20), b"!FastSerialization.1".to_vec()].concat());
        let clock = [vec![0; 16], 100_u64.to_le_bytes().to_vec(), 1_000_u64.to_le_bytes().to_vec(), number(8)].concat();
        this.object("Trace", &[clock, number(42), number(1), number(0)].concat());
        this
    }

    fn object(&mut self, name: &str, payload: &[u8]) {
        let kind = [vec![5, 5, 1], number(4), number(4), number(name.len() as u32), name.as_bytes().to_vec(), vec![6]];
        self.0.extend(kind.concat());
        self.0.extend(payload);
        self.0.push(6);
    }

    fn block(&mut self, name: &str, flags: u16, events: &[u8]) {
        let header = [&20_u16.to_le_bytes()[..], &flags.to_le_bytes(), &[0; 16]].concat();
        self.bare_block(name, &[header, events.to_vec()].concat());
    }

    fn bare_block(&mut self, name: &str, block: &[u8]) {
        let before = self.0.len() + 3 + 12 + name.len() + 1 + 4;
        let fill = vec![0; before.next_multiple_of(4) - before];
        self.object(name, &[number(block.len() as u32), fill, block.to_vec()].concat());
    }

    fn end(mut self) -> Vec<u8> {
        self.0.push(1);
        self.0
    }
}

/// An event with a header in full.
fn full(description: u32, payload: &[u8]) -> Vec<u8> {
    let parts = [
        number(description),
        number(1),
        7_u64.to_le_bytes().to_vec(),
        vec![0; 12],
        number(3),
        1_100_u64.to_le_bytes().to_vec(),
        vec![0; 32],
        number(payload.len() as u32),
        payload.to_vec(),
    ]
    .concat();
    let fill = vec![0; parts.len().next_multiple_of(4) - parts.len()];
    [number(parts.len() as u32), parts, fill].concat()
}

/// Description of events that tell of counters, as a stream has it.
fn description() -> Vec<u8> {
    let field = |kind: u32, name: &str| [number(kind), text(name)].concat();
    let inner = [number(3), field(18, "Name"), field(14, "Mean"), field(13, "IntervalSec")].concat();
    [
        number(5),
        text("My.Source"),
        number(9),
        text("EventCounters"),
        vec![0; 8],
        number(0),
        number(4),
        number(1),
        number(1),
        inner,
        text("Payload"),
    ]
    .concat()
}

fn payload() -> Vec<u8> {
    [text("queue"), 2.5_f64.to_le_bytes().to_vec(), 1.0_f32.to_le_bytes().to_vec()].concat()
}

fn counters(compressed: bool) -> Vec<u8> {
    let mut stream = Stream::new();
    stream.block("MetadataBlock", 0, &full(0, &description()));
    stream.block("StackBlock", 0, &[1, 2, 3]);
    let payload = payload();
    let events = if compressed {
        let first = [vec![0x01 | 0x02 | 0x04 | 0x80, 5, 1, 7, 0, 7, 0xcc, 0x08, payload.len() as u8], payload.clone()];
        // The same but for the time.
        [first.concat(), vec![0, 10], payload].concat()
    } else {
        [full(5, &payload), full(5, &payload)].concat()
    };
    stream.block("EventBlock", compressed.into(), &events);
    stream.end()
}

/// Two stacks, the first of them number 3, that of [`full`] events.
fn stacks() -> Vec<u8> {
    let stack = |addresses: &[u64]| {
        [number(8 * addresses.len() as u32), addresses.iter().flat_map(|one| one.to_le_bytes()).collect()].concat()
    };
    [number(3), number(2), stack(&[0x7F00_0000_0001, 2]), stack(&[])].concat()
}

#[test]
fn stacks_are_those_of_their_numbers_until_a_sequence_point() {
    let mut stream = Stream::new();
    stream.block("MetadataBlock", 0, &full(0, &description()));
    stream.bare_block("StackBlock", &stacks());
    stream.block("EventBlock", 0, &full(5, &[0; 16]));
    stream.bare_block("SPBlock", &[0; 12]);
    stream.block("EventBlock", 0, &full(5, &[0; 16]));
    let bytes = stream.end();
    let mut reader = Reader::new(&bytes[..]).expect("a stream");
    let first = reader.next_event().expect("an event").expect("one");
    assert_eq!(reader.stack(first.stack), Some(&[0x7F00_0000_0001, 2][..]));
    assert_eq!([reader.stack(4), reader.stack(0), reader.stack(5)], [Some(&[][..]), None, None]);
    let second = reader.next_event().expect("an event").expect("one");
    assert_eq!(reader.stack(second.stack), None, "numbers are given anew");
}

#[test]
fn stacks_that_end_early_are_nonsense() {
    for cut in 0..stacks().len() {
        let mut stream = Stream::new();
        stream.bare_block("StackBlock", &stacks()[..cut]);
        let bytes = stream.end();
        let mut reader = Reader::new(&bytes[..]).expect("a stream");
        assert!(matches!(reader.next_event(), Err(Error::Nonsense { .. })), "cut at {cut}");
    }
}

#[test]
fn counters_are_read_from_full_and_from_compressed_headers() {
    for compressed in [false, true] {
        let bytes = counters(compressed);
        let mut reader = Reader::new(&*bytes).expect("a stream");
        assert_eq!((reader.clock().pid, reader.clock().frequency), (42, 1_000));
        let mut seen = 0;
        while let Some(event) = reader.next_event().expect("an event") {
            let counter = Counter::from_event(&event).expect("a counter");
            assert_eq!((counter.name.as_str(), counter.kind, counter.value), ("queue", CounterKind::Mean, 2.5));
            let time = reader.clock().nanoseconds(event.timestamp);
            assert_eq!(time, 1_000_000_000 + if compressed { seen * 10_000_000 } else { 0 });
            seen += 1;
        }
        assert_eq!(seen, 2);
    }
}

#[test]
fn a_stream_cut_anywhere_is_an_error_or_ends() {
    let whole = counters(true);
    for length in 0..whole.len() {
        read_events(&whole[..length]);
    }
    let cut = Reader::new(&whole[..40]).map(drop).expect_err("it is cut");
    assert!(matches!(cut, Error::Closed { .. }), "{cut}");
}

#[test]
fn endless_things_are_not_believed() {
    let endless_block = {
        let mut stream = Stream::new();
        stream.object("EventBlock", &number(u32::MAX));
        stream.0
    };
    let endless_name = [&Stream::new().0[..], &[5, 5, 1], &number(4), &number(4), &number(u32::MAX)].concat();
    let later = [&Stream::new().0[..], &[5, 5, 1], &number(6), &number(6), &number(1)].concat();
    let undescribed = {
        let mut stream = Stream::new();
        stream.block("EventBlock", 0, &full(5, &[]));
        stream.end()
    };
    let nested: Vec<u8> = (0..20).flat_map(|_| [number(1), number(1)].concat()).collect();
    let nested = {
        let mut stream = Stream::new();
        let head = [number(5), text("P"), number(9), text("E"), vec![0; 16]].concat();
        stream.block("MetadataBlock", 0, &full(0, &[head, nested].concat()));
        stream.end()
    };
    let cases = [
        (endless_block, "64 MiB"),
        (endless_name, "endless name"),
        (later, "later than version 4"),
        (undescribed, "nothing describes"),
        (nested, "without end"),
    ];
    for (bytes, words) in cases {
        let error = Reader::new(&*bytes).and_then(|mut reader| reader.next_event()).expect_err(words).to_string();
        assert!(error.contains(words), "{error}, not {words}");
    }
}

/// Events are taken out of a block one by one: all at once, the smallest of a block of 64 MiB would
/// take gigabytes.
#[test]
fn events_in_front_of_a_damaged_one_are_given() {
    let mut stream = Stream::new();
    stream.block("MetadataBlock", 0, &full(0, &description()));
    stream.block("EventBlock", 0, &[full(5, &payload()), number(u32::MAX)].concat());
    let bytes = stream.end();
    let mut reader = Reader::new(&*bytes).expect("a stream");
    let event = reader.next_event().expect("it is whole").expect("an event");
    assert_eq!(Counter::from_event(&event).expect("a counter").name, "queue");
    let error = reader.next_event().expect_err("it is damaged").to_string();
    assert!(error.contains("too early"), "{error}");
    assert_eq!(reader.next_event().expect("nothing comes after an error"), None);
}

/// A stream that goes on describing events does not fill the memory.
#[test]
fn endless_descriptions_are_not_believed() {
    let mut stream = Stream::new();
    let long = [description(), vec![0; 1 << 20]].concat();
    (0..70).for_each(|_| stream.block("MetadataBlock", 0, &full(0, &long)));
    stream.block("EventBlock", 0, &full(5, &payload()));
    let bytes = stream.end();
    let error = Reader::new(&*bytes).and_then(|mut reader| reader.next_event()).expect_err("too many").to_string();
    assert!(error.contains("more kinds of events than there can be"), "{error}");
}

proptest! {
    #[test]
    fn any_bytes_are_read_without_a_panic(bytes in vec(any::<u8>(), 0..400)) {
        read_answers(&bytes);
        read_events(&bytes);
        let header: Vec<u8> = b"DOTNET_IPC_V1\0".iter().copied().chain(bytes).collect();
        read_answers(&header);
    }

    #[test]
    fn damaged_streams_are_read_without_a_panic(
        compressed in any::<bool>(),
        changes in vec((any::<prop::sample::Index>(), any::<u8>()), 1..12),
    ) {
        let mut bytes = counters(compressed);
        for (at, value) in changes {
            let at = at.index(bytes.len());
            bytes[at] = value;
        }
        read_events(&bytes);
    }
}
