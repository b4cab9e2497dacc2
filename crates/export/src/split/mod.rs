//! Splits encoded profiles into parts that a receiver accepts.
//!
//! Each part is a complete profile with a share of the samples, and with only the table entries
//! that these samples refer to. The parts together have the values of the whole.

mod otlp;
mod pprof;

use std::collections::HashMap;
use std::ops::Range;

pub use crate::fields::Malformed;
use crate::fields::Value;
use crate::protobuf::Message;

/// The largest part that a receiver accepts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PartLimits {
    /// Maximum length in bytes of the encoded profile, before compression.
    pub bytes: usize,
    /// Maximum number of samples.
    pub samples: usize,
    /// Maximum number of locations of a stack. If a stack has more, the outermost ones are kept.
    pub depth: usize,
    /// Maximum length of a text in bytes. Longer texts are cut.
    pub text: usize,
}

/// A part of a profile.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Part {
    /// The encoded message.
    pub bytes: Vec<u8>,
    /// Number of profiles in the part.
    pub profiles: u64,
    /// Number of samples in the part.
    pub samples: u64,
}

/// Splits pprof's message `Profile`, which must not be compressed.
///
/// # Errors
/// If the bytes are not a profile that this crate wrote.
pub fn split_pprof(profile: &[u8], limits: &PartLimits) -> Result<Vec<Part>, Malformed> {
    let profile = pprof::Profile::read(profile)?;
    Ok(split(profile.units(), limits, &|samples| profile.part(samples, limits)))
}

/// Splits OpenTelemetry's message `ProfilesData`. If there are several parts, each profile in a
/// part has its own identifier, derived from that of the whole profile.
///
/// # Errors
/// If the bytes are not profiles that this crate wrote.
pub fn split_otlp(profiles: &[u8], limits: &PartLimits) -> Result<Vec<Part>, Malformed> {
    let profiles = otlp::Profiles::read(profiles)?;
    let whole = profiles.units().len();
    Ok(split(profiles.units(), limits, &|samples| profiles.part(samples, whole, limits)))
}

/// Halves a range of samples until each part is within the limits. A single sample is a part even
/// if it is larger: the receiver decides.
fn split(samples: Range<usize>, limits: &PartLimits, part: &dyn Fn(Range<usize>) -> Part) -> Vec<Part> {
    let mut parts = Vec::new();
    let mut open = vec![samples];
    while let Some(samples) = open.pop() {
        if samples.is_empty() {
            continue;
        }
        if samples.len() <= limits.samples.max(1) {
            let made = part(samples.clone());
            if made.bytes.len() <= limits.bytes || samples.len() == 1 {
                parts.push(made);
                continue;
            }
        }
        let middle = samples.start + samples.len() / 2;
        open.extend([middle..samples.end, samples.start..middle]);
    }
    parts
}

/// New numbers of the entries of a table that a part needs, in the order of their first use.
#[derive(Debug, Default)]
struct Needed {
    numbers: HashMap<u64, u64>,
    /// Old numbers, in the order of the new ones.
    order: Vec<u64>,
}

impl Needed {
    /// New number of an entry, from 1. 0, which means "none", stays.
    fn number(&mut self, old: u64) -> u64 {
        if old == 0 {
            return 0;
        }
        let next = self.order.len() as u64 + 1;
        let number = *self.numbers.entry(old).or_insert(next);
        if number == next {
            self.order.push(old);
        }
        number
    }
}

/// The text, or as much of its beginning as a limit allows.
fn beginning(text: &[u8], limit: usize) -> &[u8] {
    if text.len() <= limit {
        return text;
    }
    // No character is cut in two.
    let end = (0..=limit).rev().find(|end| text[*end] & 0xC0 != 0x80).unwrap_or(0);
    &text[..end]
}

/// A message of two numbers.
fn pair(value: Value<'_>) -> Result<[u64; 2], Malformed> {
    let mut pair = [0; 2];
    for field in value.fields()? {
        let (number @ 1..=2, value) = field? else { return Err(Malformed) };
        pair[number as usize - 1] = value.number()?;
    }
    Ok(pair)
}

fn put_pair(out: &mut Message, field: u64, [first, second]: [u64; 2]) {
    out.message(field, |of| {
        of.number(1, first);
        of.number(2, second);
    });
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_are_cut_between_characters() {
        assert_eq!(beginning("aé".as_bytes(), 2), b"a");
        assert_eq!(beginning("aé".as_bytes(), 3), "aé".as_bytes());
        assert_eq!(beginning("éa".as_bytes(), 2), "é".as_bytes());
    }

    #[test]
    fn parts_keep_the_order_and_lose_none() {
        let limits = PartLimits { bytes: 10, samples: 3, depth: 9, text: 9 };
        // Each sample takes 4 bytes, the sixth 12.
        let part = |samples: Range<usize>| Part {
            bytes: samples.clone().flat_map(|sample| vec![sample as u8; if sample == 5 { 12 } else { 4 }]).collect(),
            profiles: 1,
            samples: samples.len() as u64,
        };
        let parts = split(0..9, &limits, &part);
        assert!(parts.iter().all(|part| part.samples <= 3 && (part.bytes.len() <= 10 || part.samples == 1)));
        let all: Vec<u8> = parts.iter().flat_map(|part| part.bytes.clone()).collect();
        assert_eq!(all, part(0..9).bytes);
    }
}
