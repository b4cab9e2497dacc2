//! Splits OpenTelemetry's profiles that `otlp.rs` of this crate wrote.

use std::ops::Range;

use super::{Needed, Part, PartLimits, beginning, pair, put_pair};
use crate::fields::{Fields, Malformed, Value};
use crate::fnv::{EMPTY, fnv1a};
use crate::protobuf::Message;

/// Values of a sample that stay together; a sample with more is divided.
const MOST_VALUES: usize = 4096;

/// Profiles that were read.
#[derive(Default)]
pub(super) struct Profiles<'a> {
    profiles: Vec<Profile<'a>>,
    /// Samples of all profiles, in the order of the profiles.
    samples: Vec<Sample>,
    locations: Vec<Vec<u64>>,
    /// Numbers of the texts of each function: name, system's name and file.
    functions: Vec<[u64; 3]>,
    /// Links as they are encoded.
    links: Vec<&'a [u8]>,
    texts: Vec<&'a [u8]>,
    /// Number of the key, and the encoded value.
    attributes: Vec<(u64, &'a [u8])>,
    stacks: Vec<Vec<u64>>,
}

/// A profile without its samples.
#[derive(Clone, Default)]
struct Profile<'a> {
    resource: &'a [u8],
    scope: &'a [u8],
    sample_type: [u64; 2],
    time_ns: u64,
    duration_ns: u64,
    period_type: Option<[u64; 2]>,
    period: u64,
    id: &'a [u8],
}

#[derive(Clone, Default)]
struct Sample {
    profile: usize,
    stack: u64,
    attributes: Vec<u64>,
    link: u64,
    values: Vec<u64>,
    times: Vec<u64>,
}

impl<'a> Profiles<'a> {
    pub(super) fn read(bytes: &'a [u8]) -> Result<Self, Malformed> {
        let mut all = Self::default();
        for field in Fields::new(bytes) {
            match field? {
                (1, resource) => all.resource(resource)?,
                (2, dictionary) => all.dictionary(dictionary)?,
                _ => return Err(Malformed),
            }
        }
        Ok(all)
    }

    pub(super) fn units(&self) -> Range<usize> {
        0..self.samples.len()
    }

    fn resource(&mut self, value: Value<'a>) -> Result<(), Malformed> {
        let mut profile = Profile::default();
        for field in value.fields()? {
            match field? {
                (1, resource) => profile.resource = resource.bytes()?,
                (2, scope) => {
                    for field in scope.fields()? {
                        match field? {
                            (1, scope) => profile.scope = scope.bytes()?,
                            (2, of) => self.profile(profile.clone(), of)?,
                            _ => return Err(Malformed),
                        }
                    }
                }
                _ => return Err(Malformed),
            }
        }
        Ok(())
    }

    fn profile(&mut self, mut profile: Profile<'a>, value: Value<'a>) -> Result<(), Malformed> {
        for field in value.fields()? {
            match field? {
                (1, of) => profile.sample_type = pair(of)?,
                (2, sample) => self.sample(sample)?,
                (3, time) => profile.time_ns = time.number()?,
                (4, duration) => profile.duration_ns = duration.number()?,
                (5, of) => profile.period_type = Some(pair(of)?),
                (6, period) => profile.period = period.number()?,
                (7, id) => profile.id = id.bytes()?,
                _ => return Err(Malformed),
            }
        }
        self.profiles.push(profile);
        Ok(())
    }

    fn sample(&mut self, value: Value<'a>) -> Result<(), Malformed> {
        let mut sample = Sample { profile: self.profiles.len(), ..Sample::default() };
        for field in value.fields()? {
            match field? {
                (1, stack) => sample.stack = stack.number()?,
                (2, attributes) => attributes.append_to(&mut sample.attributes)?,
                (3, link) => sample.link = link.number()?,
                (4, values) => values.append_to(&mut sample.values)?,
                (5, times) => times.append_fixed64_to(&mut sample.times)?,
                _ => return Err(Malformed),
            }
        }
        if sample.values.len() <= MOST_VALUES || sample.times.len() != sample.values.len() {
            self.samples.push(sample);
            return Ok(());
        }
        for (values, times) in sample.values.chunks(MOST_VALUES).zip(sample.times.chunks(MOST_VALUES)) {
            let [values, times] = [values, times].map(<[u64]>::to_vec);
            self.samples.push(Sample { values, times, attributes: sample.attributes.clone(), ..sample });
        }
        Ok(())
    }

    fn dictionary(&mut self, value: Value<'a>) -> Result<(), Malformed> {
        for field in value.fields()? {
            let (number, value) = field?;
            match number {
                // No profile of ours has mappings.
                1 => {}
                2 => {
                    let mut functions = Vec::new();
                    for field in value.fields()? {
                        let (3, line) = field? else { return Err(Malformed) };
                        for field in line.fields()? {
                            let (1, function) = field? else { return Err(Malformed) };
                            functions.push(function.number()?);
                        }
                    }
                    self.locations.push(functions);
                }
                3 => {
                    let mut texts = [0; 3];
                    for field in value.fields()? {
                        let (number @ 1..=3, text) = field? else { return Err(Malformed) };
                        texts[number as usize - 1] = text.number()?;
                    }
                    self.functions.push(texts);
                }
                4 => self.links.push(value.bytes()?),
                5 => self.texts.push(value.bytes()?),
                6 => {
                    let mut attribute: (u64, &[u8]) = (0, &[]);
                    for field in value.fields()? {
                        match field? {
                            (1, key) => attribute.0 = key.number()?,
                            (2, value) => attribute.1 = value.bytes()?,
                            _ => return Err(Malformed),
                        }
                    }
                    self.attributes.push(attribute);
                }
                7 => {
                    let mut locations = Vec::new();
                    for field in value.fields()? {
                        let (1, list) = field? else { return Err(Malformed) };
                        list.append_to(&mut locations)?;
                    }
                    self.stacks.push(locations);
                }
                _ => return Err(Malformed),
            }
        }
        Ok(())
    }

    /// The part with a range of the samples; `whole` is the number of samples in all parts.
    pub(super) fn part(&self, samples: Range<usize>, whole: usize, limits: &PartLimits) -> Part {
        let mut tables = Tables::new(self, limits);
        let mut out = Message::default();
        let (mut profiles, count) = (0, samples.len());
        let first = samples.start;
        for samples in self.samples[samples].chunk_by(|a, b| a.profile == b.profile) {
            let Some(profile) = samples.first().and_then(|sample| self.profiles.get(sample.profile)) else { continue };
            profiles += 1;
            let mut of = Message::default();
            put_pair(&mut of, 1, profile.sample_type.map(|text| tables.texts.number(text)));
            samples.iter().for_each(|sample| tables.sample(sample, &mut of));
            of.fixed64(3, profile.time_ns);
            of.number(4, profile.duration_ns);
            if let Some(names) = profile.period_type {
                put_pair(&mut of, 5, names.map(|text| tables.texts.number(text)));
                of.number(6, profile.period);
            }
            if !profile.id.is_empty() {
                let id = if count == whole { profile.id.to_vec() } else { id_of_part(profile.id, first) };
                of.bytes(7, &id);
            }
            out.message(1, |resource| {
                resource.bytes(1, profile.resource);
                resource.message(2, |scope| {
                    scope.bytes(1, profile.scope);
                    scope.bytes(2, of.encoded());
                });
            });
        }
        out.bytes(2, tables.encoded().encoded());
        Part { bytes: out.into_encoded(), profiles, samples: count as u64 }
    }
}

/// Identifier of a part of a profile: receivers take profiles with the same one for the same.
fn id_of_part(id: &[u8], first: usize) -> Vec<u8> {
    let hash = fnv1a(EMPTY, &(first as u64 + 1).to_le_bytes());
    let mut id = id.to_vec();
    id.iter_mut().zip(hash.to_le_bytes()).for_each(|(byte, more)| *byte ^= more);
    id
}

/// The dictionary of a part.
struct Tables<'p, 'a> {
    all: &'p Profiles<'a>,
    limits: &'p PartLimits,
    texts: Needed,
    functions: Needed,
    locations: Needed,
    stacks: Needed,
    attributes: Needed,
    links: Needed,
}

impl<'p, 'a> Tables<'p, 'a> {
    fn new(all: &'p Profiles<'a>, limits: &'p PartLimits) -> Self {
        let none = Needed::default;
        Self {
            all,
            limits,
            texts: none(),
            functions: none(),
            locations: none(),
            stacks: none(),
            attributes: none(),
            links: none(),
        }
    }

    fn sample(&mut self, sample: &Sample, out: &mut Message) {
        let attributes: Vec<u64> = sample.attributes.iter().map(|old| self.attributes.number(*old)).collect();
        out.message(2, |of| {
            of.number(1, self.stacks.number(sample.stack));
            of.packed(2, &attributes);
            if sample.link != 0 {
                of.number(3, self.links.number(sample.link));
            }
            of.packed(4, &sample.values);
            if !sample.times.is_empty() {
                of.packed_fixed64(5, &sample.times);
            }
        });
    }

    /// The tables. Tables that others refer to come later, so that all references are known.
    fn encoded(mut self) -> Message {
        let mut out = Message::default();
        out.message(1, |_| ());
        out.message(7, |_| ());
        for old in &self.stacks.order {
            let stack = self.all.stacks.get(*old as usize).map_or(&[][..], |stack| stack);
            // The outermost locations are the last.
            let kept = &stack[stack.len().saturating_sub(self.limits.depth)..];
            let numbers: Vec<u64> = kept.iter().map(|old| self.locations.number(*old)).collect();
            out.message(7, |of| of.packed(1, &numbers));
        }
        out.message(2, |_| ());
        for old in &self.locations.order {
            let functions = self.all.locations.get(*old as usize).map_or(&[][..], |location| location);
            out.message(2, |of| {
                for function in functions {
                    let number = self.functions.number(*function);
                    of.message(3, |line| line.number(1, number));
                }
            });
        }
        out.message(3, |_| ());
        for old in &self.functions.order {
            let texts = self.all.functions.get(*old as usize).copied().unwrap_or_default();
            out.message(3, |of| (1..).zip(texts).for_each(|(field, old)| of.number(field, self.texts.number(old))));
        }
        out.message(4, |_| ());
        for old in &self.links.order {
            out.bytes(4, self.all.links.get(*old as usize).copied().unwrap_or_default());
        }
        out.message(6, |_| ());
        for old in &self.attributes.order {
            let (key, value) = self.all.attributes.get(*old as usize).copied().unwrap_or_default();
            let key = self.texts.number(key);
            out.message(6, |of| {
                of.number(1, key);
                of.bytes(2, value);
            });
        }
        out.bytes(5, b"");
        for old in &self.texts.order {
            let text = self.all.texts.get(*old as usize).copied().unwrap_or_default();
            out.bytes(5, beginning(text, self.limits.text));
        }
        out
    }
}
