//! The table of sampled times: one record per edge, found by a hash table in private memory.
//!
//! Only the helper thread uses the table, so it needs no locks. Its records are mapped, so the time
//! charged so far survives the process.

use std::io;
use std::path::Path;

use super::mapping::Segment;
use crate::layout::{kind, time};

const CAPACITY: usize = 1 << 30;
const STEP: usize = 256 << 10;

/// The table.
#[derive(Debug)]
pub struct TimeTable {
    segment: Segment,
    used: usize,
    /// Open addressing: record number plus one, 0 for free. A power of two in size.
    slots: Vec<u32>,
}

impl TimeTable {
    /// Creates the file.
    ///
    /// # Errors
    /// Errors of [`Segment::create`].
    pub fn create(path: &Path) -> io::Result<Self> {
        let segment = Segment::create(path, kind::TIMES, CAPACITY, STEP)?;
        Ok(Self { segment, used: 0, slots: vec![0; 1 << 12] })
    }

    /// The mapped file.
    #[must_use]
    pub fn segment(&self) -> &Segment {
        &self.segment
    }

    /// Charges time to an edge. Returns whether there was room.
    pub fn charge(&mut self, edge: u32, wall_ns: u64, cpu_ns: u64) -> bool {
        let Some(record) = self.find(edge) else { return false };
        self.add(record, time::WALL, wall_ns);
        self.add(record, time::CPU, cpu_ns);
        self.add(record, time::SAMPLES, 1);
        true
    }

    /// Number of edges that were ever charged.
    #[must_use]
    pub fn len(&self) -> usize {
        self.used
    }

    /// Whether no edge was ever charged.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.used == 0
    }

    /// The edge at index `place` of the table, with its wall and CPU nanoseconds. Edges are in the
    /// order of their first charge.
    #[must_use]
    pub fn entry(&self, place: usize) -> Option<(u32, u64, u64)> {
        // SAFETY: the record was appended before, fields are aligned, only this thread writes.
        let field =
            |field| unsafe { self.segment.content().add(place * time::BYTES + field).cast::<u64>().read_volatile() };
        (place < self.used).then(|| (self.edge_of(place), field(time::WALL), field(time::CPU)))
    }

    fn find(&mut self, edge: u32) -> Option<usize> {
        let mut at = self.start_of(edge);
        loop {
            match self.slots[at] {
                0 => break,
                found if self.edge_of(found as usize - 1) == edge => return Some(found as usize - 1),
                _ => at = (at + 1) & (self.slots.len() - 1),
            }
        }
        let record = self.append(edge)?;
        self.slots[at] = record as u32 + 1;
        if self.used * 2 > self.slots.len() {
            self.grow();
        }
        Some(record)
    }

    fn start_of(&self, edge: u32) -> usize {
        // Fibonacci hashing spreads neighbouring edges.
        (u64::from(edge).wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 32) as usize & (self.slots.len() - 1)
    }

    fn append(&mut self, edge: u32) -> Option<usize> {
        let record = self.used;
        let end = (record + 1) * time::BYTES;
        if end > self.segment.committed() && self.segment.commit((end + STEP).min(CAPACITY)).is_err() {
            return None;
        }
        self.used += 1;
        // SAFETY: the record lies below `committed` and only this thread writes the segment.
        unsafe {
            let address = self.segment.content().add(record * time::BYTES);
            address.add(time::EDGE).cast::<u32>().write(edge);
            address.add(time::VALID).cast::<u32>().write_volatile(1);
        }
        Some(record)
    }

    fn edge_of(&self, record: usize) -> u32 {
        // SAFETY: the record was appended before.
        unsafe { self.segment.content().add(record * time::BYTES + time::EDGE).cast::<u32>().read() }
    }

    fn add(&mut self, record: usize, field: usize, value: u64) {
        // SAFETY: the record was appended before, fields are aligned, only this thread writes.
        unsafe {
            let address = self.segment.content().add(record * time::BYTES + field).cast::<u64>();
            address.write_volatile(address.read() + value);
        }
    }

    fn grow(&mut self) {
        self.slots = vec![0; self.slots.len() * 2];
        for record in 0..self.used {
            let mut at = self.start_of(self.edge_of(record));
            while self.slots[at] != 0 {
                at = (at + 1) & (self.slots.len() - 1);
            }
            self.slots[at] = record as u32 + 1;
        }
    }
}
