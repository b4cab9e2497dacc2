//! Splits a pprof profile that `pprof.rs` of this crate wrote.

use std::ops::Range;

use super::{Needed, Part, PartLimits, beginning, pair, put_pair};
use crate::fields::{Fields, Malformed, Value};
use crate::protobuf::Message;

/// A name and a unit, as numbers of texts.
type ValueType = [u64; 2];

/// A profile that was read.
#[derive(Default)]
pub(super) struct Profile<'a> {
    types: Vec<ValueType>,
    samples: Vec<Sample>,
    /// Numbers of the texts of each mapping: file and build id.
    mappings: Vec<[u64; 2]>,
    locations: Vec<Location>,
    /// Number of the name of each function.
    functions: Vec<u64>,
    texts: Vec<&'a [u8]>,
    time_ns: u64,
    duration_ns: u64,
    period_type: Option<ValueType>,
    period: u64,
    comments: Vec<u64>,
    default_type: u64,
}

#[derive(Default)]
struct Sample {
    /// The innermost location is first.
    locations: Vec<u64>,
    values: Vec<u64>,
    labels: Vec<[u64; 2]>,
}

#[derive(Default)]
struct Location {
    mapping: u64,
    functions: Vec<u64>,
}

impl<'a> Profile<'a> {
    pub(super) fn read(bytes: &'a [u8]) -> Result<Self, Malformed> {
        let mut profile = Self::default();
        for field in Fields::new(bytes) {
            let (number, value) = field?;
            match number {
                1 => profile.types.push(pair(value)?),
                2 => profile.samples.push(Sample::read(value)?),
                3 => profile.mapping(value)?,
                4 => profile.location(value)?,
                5 => profile.function(value)?,
                6 => profile.texts.push(value.bytes()?),
                9 => profile.time_ns = value.number()?,
                10 => profile.duration_ns = value.number()?,
                11 => profile.period_type = Some(pair(value)?),
                12 => profile.period = value.number()?,
                13 => value.append_to(&mut profile.comments)?,
                14 => profile.default_type = value.number()?,
                _ => return Err(Malformed),
            }
        }
        Ok(profile)
    }

    pub(super) fn units(&self) -> Range<usize> {
        0..self.samples.len()
    }

    /// Entries have the numbers of their places.
    fn mapping(&mut self, value: Value<'a>) -> Result<(), Malformed> {
        let mut mapping = [0; 2];
        for field in value.fields()? {
            match field? {
                (1, id) => in_order(id, self.mappings.len())?,
                (5, file) => mapping[0] = file.number()?,
                (6, build_id) => mapping[1] = build_id.number()?,
                (7, _) => {}
                _ => return Err(Malformed),
            }
        }
        self.mappings.push(mapping);
        Ok(())
    }

    fn location(&mut self, value: Value<'a>) -> Result<(), Malformed> {
        let mut location = Location::default();
        for field in value.fields()? {
            match field? {
                (1, id) => in_order(id, self.locations.len())?,
                (2, mapping) => location.mapping = mapping.number()?,
                (4, line) => {
                    for field in line.fields()? {
                        match field? {
                            (1, function) => location.functions.push(function.number()?),
                            _ => return Err(Malformed),
                        }
                    }
                }
                _ => return Err(Malformed),
            }
        }
        self.locations.push(location);
        Ok(())
    }

    fn function(&mut self, value: Value<'a>) -> Result<(), Malformed> {
        let mut name = 0;
        for field in value.fields()? {
            match field? {
                (1, id) => in_order(id, self.functions.len())?,
                (2, text) => name = text.number()?,
                // The same again, as the system's name.
                (3, _) => {}
                _ => return Err(Malformed),
            }
        }
        self.functions.push(name);
        Ok(())
    }

    /// The part with a range of the samples.
    pub(super) fn part(&self, samples: Range<usize>, limits: &PartLimits) -> Part {
        let mut texts = Needed::default();
        let (mut locations, mut functions, mut mappings) = (Needed::default(), Needed::default(), Needed::default());
        let mut out = Message::default();
        let count = samples.len() as u64;
        for [name, unit] in &self.types {
            put_pair(&mut out, 1, [texts.number(*name), texts.number(*unit)]);
        }
        // Readers take the first mapping for the program.
        if !self.mappings.is_empty() {
            mappings.number(1);
        }
        for sample in &self.samples[samples] {
            // The outermost locations are the last.
            let kept = &sample.locations[sample.locations.len().saturating_sub(limits.depth)..];
            let numbers: Vec<u64> = kept.iter().map(|old| locations.number(*old)).collect();
            out.message(2, |of| {
                of.packed(1, &numbers);
                of.packed(2, &sample.values);
                for [key, text] in &sample.labels {
                    put_pair(of, 3, [texts.number(*key), texts.number(*text)]);
                }
            });
        }
        for (number, old) in (1..).zip(&locations.order) {
            let Some(location) = entry(&self.locations, *old) else { continue };
            out.message(4, |of| {
                of.number(1, number);
                if location.mapping != 0 {
                    of.number(2, mappings.number(location.mapping));
                }
                for function in &location.functions {
                    let function = functions.number(*function);
                    of.message(4, |line| line.number(1, function));
                }
            });
        }
        for (number, old) in (1..).zip(&mappings.order) {
            let Some([file, build_id]) = entry(&self.mappings, *old) else { continue };
            out.message(3, |of| {
                of.number(1, number);
                of.number(5, texts.number(*file));
                of.number(6, texts.number(*build_id));
                of.number(7, 1);
            });
        }
        for (number, old) in (1..).zip(&functions.order) {
            let Some(name) = entry(&self.functions, *old) else { continue };
            let name = texts.number(*name);
            out.message(5, |of| {
                of.number(1, number);
                of.number(2, name);
                of.number(3, name);
            });
        }
        out.number(9, self.time_ns);
        out.number(10, self.duration_ns);
        if let Some([name, unit]) = self.period_type {
            put_pair(&mut out, 11, [texts.number(name), texts.number(unit)]);
            out.number(12, self.period);
        }
        self.comments.iter().for_each(|comment| out.number(13, texts.number(*comment)));
        out.number(14, texts.number(self.default_type));
        out.bytes(6, b"");
        for old in &texts.order {
            let text = self.texts.get(*old as usize).copied().unwrap_or_default();
            out.bytes(6, beginning(text, limits.text));
        }
        Part { bytes: out.into_encoded(), profiles: 1, samples: count }
    }
}

impl Sample {
    fn read(value: Value<'_>) -> Result<Self, Malformed> {
        let mut sample = Self::default();
        for field in value.fields()? {
            match field? {
                (1, locations) => locations.append_to(&mut sample.locations)?,
                (2, values) => values.append_to(&mut sample.values)?,
                (3, label) => sample.labels.push(pair(label)?),
                _ => return Err(Malformed),
            }
        }
        Ok(sample)
    }
}

/// An entry by its number, which is from 1.
fn entry<T>(table: &[T], number: u64) -> Option<&T> {
    table.get(usize::try_from(number).ok()?.checked_sub(1)?)
}

/// Checks that an entry has the number of its place.
fn in_order(id: Value<'_>, place: usize) -> Result<(), Malformed> {
    if id.number()? == place as u64 + 1 { Ok(()) } else { Err(Malformed) }
}
