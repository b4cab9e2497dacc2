//! Dictionary sections: records in the form of log records (`u32 length`, `u16 kind`, `u16
//! version`, payload). Later versions can add fields at the end of a payload, and records of new
//! kinds.

use crate::codec;
use crate::model::Process;
use crate::records::{Arena, InFile, MatchedPatterns};

/// Appends a record.
pub(super) fn put<R: InFile>(bytes: &mut Vec<u8>, record: &R) {
    put_payload(bytes, R::FILE, codec::encode(record).bytes());
}

/// Appends a record of this kind with this payload.
pub(super) fn put_payload(bytes: &mut Vec<u8>, kind: u16, payload: &[u8]) {
    let length = payload.len().max(1);
    bytes.extend_from_slice(&(length as u32).to_le_bytes());
    bytes.extend_from_slice(&(u32::from(kind) | 1 << 16).to_le_bytes());
    bytes.extend_from_slice(payload);
    bytes.resize(bytes.len() + length.next_multiple_of(4) - payload.len(), 0);
}

/// Appends the records of a process, without its tables.
pub(super) fn put_process(bytes: &mut Vec<u8>, process: &Process) {
    put(bytes, process);
    put(bytes, &process.identity);
    put(bytes, &process.entry_assembly);
    process.calls.iter().for_each(|calls| put(bytes, calls));
    process.losses.iter().for_each(|loss| put(bytes, loss));
    process.samplers.iter().for_each(|sampler| put(bytes, sampler));
    process.allocation_sampling.iter().for_each(|sampling| put(bytes, sampling));
    process.own_memory.iter().for_each(|own| put(bytes, own));
    process.snapshots.iter().for_each(|snapshot| put(bytes, snapshot));
    for arena in &process.events {
        put(bytes, &Arena { instrument: arena.instrument.clone() });
    }
    process.parts.iter().for_each(|part| put(bytes, part));
    let (patterns, near) = (process.matched_patterns.clone(), process.near_names.clone());
    if !patterns.is_empty() || !near.is_empty() {
        put(bytes, &MatchedPatterns { patterns, near });
    }
}
