//! Protocol Buffers encoding, as far as profiles need it.

use clrscope_recording::varint;

/// A message in the Protocol Buffers encoding.
#[derive(Default)]
pub(crate) struct Message(Vec<u8>);

impl Message {
    /// The encoded message.
    pub(crate) fn encoded(&self) -> &[u8] {
        &self.0
    }

    /// The encoded message; consumes the message.
    pub(crate) fn into_encoded(self) -> Vec<u8> {
        self.0
    }

    /// The header of a nested message with this length in bytes.
    pub(crate) fn head(field: u64, length: usize) -> Self {
        let mut head = Self::default();
        head.varint(field << 3 | 2);
        head.varint(length as u64);
        head
    }

    /// Clears the message.
    pub(crate) fn clear(&mut self) {
        self.0.clear();
    }

    fn varint(&mut self, value: u64) {
        varint::put(&mut self.0, value);
    }

    /// Appends a non-negative number; enums and booleans are numbers.
    pub(crate) fn number(&mut self, field: u64, value: u64) {
        self.varint(field << 3);
        self.varint(value);
    }

    /// Appends a text or other bytes.
    pub(crate) fn bytes(&mut self, field: u64, bytes: &[u8]) {
        self.varint(field << 3 | 2);
        self.varint(bytes.len() as u64);
        self.0.extend_from_slice(bytes);
    }

    /// Appends a list of numbers.
    pub(crate) fn packed<'v>(&mut self, field: u64, values: impl IntoIterator<Item = &'v u64>) {
        self.message(field, |inner| values.into_iter().for_each(|value| inner.varint(*value)));
    }

    /// Appends a nested message.
    pub(crate) fn message(&mut self, field: u64, fill: impl FnOnce(&mut Self)) {
        let mut inner = Self::default();
        fill(&mut inner);
        self.bytes(field, &inner.0);
    }

    /// Appends a number of eight bytes.
    pub(crate) fn fixed64(&mut self, field: u64, value: u64) {
        self.varint(field << 3 | 1);
        self.0.extend_from_slice(&value.to_le_bytes());
    }

    /// Appends a floating-point number.
    pub(crate) fn double(&mut self, field: u64, value: f64) {
        self.fixed64(field, value.to_bits());
    }

    /// Appends a list of numbers of eight bytes each.
    pub(crate) fn packed_fixed64(&mut self, field: u64, values: &[u64]) {
        let bytes: Vec<u8> = values.iter().flat_map(|value| value.to_le_bytes()).collect();
        self.bytes(field, &bytes);
    }
}

/// A long list of messages in several buffers: a single growing buffer would be copied, and up to
/// half of its memory could be unused.
#[derive(Default)]
pub(crate) struct LongList(Vec<Message>);

/// Size in bytes at which a piece is full.
const FULL: usize = 1 << 16;

impl LongList {
    /// Appends a message.
    pub(crate) fn message(&mut self, field: u64, fill: impl FnOnce(&mut Message)) {
        match self.0.last_mut().filter(|last| last.encoded().len() < FULL) {
            Some(last) => last.message(field, fill),
            None => {
                let mut piece = Message(Vec::with_capacity(FULL + FULL / 8));
                piece.message(field, fill);
                self.0.push(piece);
            }
        }
    }

    /// The buffers, in the order of their messages.
    pub(crate) fn pieces(&self) -> &[Message] {
        &self.0
    }
}
