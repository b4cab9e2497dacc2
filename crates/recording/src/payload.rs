//! The payload of a log record: numbers and texts one after another.

/// Writes a payload.
#[derive(Debug, Default)]
pub struct PayloadWriter {
    bytes: Vec<u8>,
}

impl PayloadWriter {
    /// Appends a number.
    pub fn u32(&mut self, value: u32) -> &mut Self {
        self.bytes.extend_from_slice(&value.to_le_bytes());
        self
    }

    /// Appends a number.
    pub fn u64(&mut self, value: u64) -> &mut Self {
        self.bytes.extend_from_slice(&value.to_le_bytes());
        self
    }

    /// Appends a text: its length in bytes, then UTF-8.
    pub fn text(&mut self, value: &str) -> &mut Self {
        self.u32(u32::try_from(value.len()).unwrap_or(0));
        self.bytes.extend_from_slice(value.as_bytes());
        self
    }

    /// Appends a list of texts.
    pub fn texts(&mut self, values: &[String]) -> &mut Self {
        self.u32(u32::try_from(values.len()).unwrap_or(0));
        for value in values {
            self.text(value);
        }
        self
    }

    /// The bytes so far.
    #[must_use]
    pub fn bytes(&self) -> &[u8] {
        &self.bytes
    }
}

/// Reads a payload. Missing fields read as zero or empty, so that a newer reader can read an older
/// record with fewer fields.
#[derive(Debug, Clone, Copy)]
pub struct PayloadReader<'a> {
    bytes: &'a [u8],
}

impl<'a> PayloadReader<'a> {
    /// Reads from `bytes`.
    #[must_use]
    pub fn new(bytes: &'a [u8]) -> Self {
        Self { bytes }
    }

    fn split_front(&mut self, length: usize) -> &'a [u8] {
        let (head, tail) = self.bytes.split_at(length.min(self.bytes.len()));
        self.bytes = tail;
        head
    }

    /// Whether everything has been read.
    #[must_use]
    pub fn is_at_end(&self) -> bool {
        self.bytes.is_empty()
    }

    /// The bytes that are left.
    #[must_use]
    pub fn rest(self) -> &'a [u8] {
        self.bytes
    }

    /// The next number; 0 past the end.
    pub fn u32(&mut self) -> u32 {
        crate::layout::u32_at(self.split_front(4), 0)
    }

    /// The next number; 0 past the end.
    pub fn u64(&mut self) -> u64 {
        crate::layout::u64_at(self.split_front(8), 0)
    }

    /// The next duration in nanoseconds, as `f64`; 0 if the number is not a valid duration.
    pub(crate) fn nanoseconds(&mut self) -> f64 {
        Some(f64::from_bits(self.u64())).filter(|ns| ns.is_finite() && *ns >= 0.0).unwrap_or(0.0)
    }

    /// The next text; bytes that are not UTF-8 are replaced.
    pub fn text(&mut self) -> String {
        let length = self.u32() as usize;
        String::from_utf8_lossy(self.split_front(length)).into_owned()
    }

    /// The next list of texts. If its count exceeds what the bytes can hold, the list ends with the
    /// bytes.
    pub fn texts(&mut self) -> Vec<String> {
        let count = self.u32();
        let mut found = Vec::new();
        for _ in 0..count {
            if self.bytes.is_empty() {
                break;
            }
            found.push(self.text());
        }
        found
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_written_is_read_and_the_rest_is_empty() {
        let mut writer = PayloadWriter::default();
        writer.u32(7).text("caf\u{e9}").texts(&["a".into(), String::new()]).u64(1 << 40);
        let mut reader = PayloadReader::new(writer.bytes());
        assert_eq!(reader.u32(), 7);
        assert_eq!(reader.text(), "caf\u{e9}");
        assert_eq!(reader.texts(), ["a", ""]);
        assert_eq!(reader.u64(), 1 << 40);
        assert_eq!((reader.u32(), reader.text()), (0, String::new()));
    }

    #[test]
    fn a_lying_length_reads_to_the_end_and_no_further() {
        let mut writer = PayloadWriter::default();
        writer.u32(u32::MAX).u32(0x6162_6364);
        assert_eq!(PayloadReader::new(writer.bytes()).text(), "dcba");
        assert_eq!(PayloadReader::new(writer.bytes()).texts().len(), 1);
    }
}
