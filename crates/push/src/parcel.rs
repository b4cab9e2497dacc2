//! Parcels: profiles of a recording, each within the limits of receivers.

use std::io::{Read, Write};

use clrscope_analysis::{Query, Resource, observed_unix_ns};
use clrscope_contract::labels::MOST_LABELS;
use clrscope_export::{
    ExportError, ExportOptions, Part, PartLimits, exporter, metrics_of_profiles, split_otlp, split_pprof,
};
use clrscope_recording::layout::instrument;
use clrscope_recording::model::{Process, Recording};
use flate2::Compression;
use flate2::read::GzDecoder;
use flate2::write::GzEncoder;
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use crate::outcome::Tally;
use crate::target::{Protocol, Server};

/// The limits of a Pyroscope server with its default settings; collectors accept as much.
pub const LIMITS: PartLimits = PartLimits { bytes: 4 << 20, samples: 16_000, depth: 1_000, text: 65_535 };

/// Most bytes of a parcel that are inflated: the spool is a folder that others may write to.
const MOST_INFLATED: u64 = 256 << 20;

/// Description of a parcel, without its profiles.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Label {
    /// The target, as on the command line.
    pub(crate) to: String,
    /// A UUID, by which a receiver may detect that it already has the parcel.
    pub(crate) id: String,
    /// Name of the profile for Pyroscope, such as `process_cpu`.
    pub(crate) name: String,
    /// Labels of the series for Pyroscope.
    pub(crate) labels: Vec<(String, String)>,
    /// Start and end of the profiles, in seconds since 1970.
    pub(crate) from: u64,
    pub(crate) until: u64,
    /// Samples per second; 0 if this does not apply.
    pub(crate) rate: u64,
    /// Number of profiles in the parcel; `samples` is the number of their samples.
    pub(crate) profiles: u64,
    pub(crate) samples: u64,
}

/// Profiles that are sent with one request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Parcel {
    pub(crate) label: Label,
    /// The profiles, compressed by gzip.
    pub(crate) body: Vec<u8>,
}

impl Parcel {
    /// The parcel's share in a tally: one request, its profiles, samples and bytes.
    #[must_use]
    pub fn tally(&self) -> Tally {
        self.label.tally(self.body.len() as u64)
    }

    /// The profiles, not compressed.
    pub(crate) fn inflated(&self) -> std::io::Result<Vec<u8>> {
        inflated(&self.body)
    }

    /// Divides the parcel into smaller ones. Empty if the parcel has a single sample, or was not
    /// made by this crate.
    pub(crate) fn divided(&self, protocol: Protocol) -> Vec<Self> {
        let Ok(profiles) = self.inflated() else { return Vec::new() };
        // Halves: a receiver does not say how much it accepts.
        let samples = usize::try_from(self.label.samples / 2).unwrap_or(usize::MAX).max(1);
        let limits = PartLimits { samples, bytes: profiles.len().div_ceil(2) + profiles.len() / 4, ..LIMITS };
        let parts = match protocol {
            Protocol::PyroscopePush | Protocol::PyroscopeIngest => split_pprof(&profiles, &limits),
            Protocol::OtlpHttp | Protocol::OtlpGrpc => split_otlp(&profiles, &limits),
        };
        let parts = parts.unwrap_or_default();
        if parts.len() < 2 {
            return Vec::new();
        }
        let id = |number: usize| uuid([self.label.id.as_bytes(), &number.to_le_bytes()]);
        let of = |(number, part)| Self::new(Label { id: id(number), ..self.label.clone() }, part);
        parts.into_iter().enumerate().map(of).collect()
    }

    fn new(label: Label, part: Part) -> Self {
        let label = Label { profiles: part.profiles, samples: part.samples, ..label };
        Self { label, body: deflated(&part.bytes) }
    }
}

impl Label {
    pub(crate) fn tally(&self, bytes: u64) -> Tally {
        Tally { requests: 1, profiles: self.profiles, samples: self.samples, bytes }
    }
}

/// Passes the parcels of a recording for a server to `take`.
///
/// # Errors
/// If the recording can't be exported; also errors of `take`.
pub fn parcels<E: From<ExportError>>(
    recording: &Recording,
    server: &Server,
    limits: &PartLimits,
    take: &mut dyn FnMut(Parcel) -> Result<(), E>,
) -> Result<(), E> {
    let metrics = metrics_of_profiles(recording);
    for process in &recording.processes {
        let query = Query { pid: Some(process.pid), ..Query::default() };
        let mut label = label(recording, process, server);
        match server.protocol {
            Protocol::OtlpHttp | Protocol::OtlpGrpc => {
                let profiles = exported(recording, "otlp", query)?;
                pass(&label, split_otlp(&profiles, limits), take)?;
            }
            Protocol::PyroscopePush | Protocol::PyroscopeIngest => {
                for metric in &metrics {
                    let compressed = exported(recording, "pprof", Query { metric: Some(metric), ..query.clone() })?;
                    let profile = inflated(&compressed).map_err(ExportError::from)?;
                    label.name = name_of(metric.instrument).to_owned();
                    label.rate = metric.sampling_period_ns(process).map_or(0, |period| 1_000_000_000 / period.max(1));
                    pass(&label, split_pprof(&profile, limits), take)?;
                }
            }
        }
    }
    Ok(())
}

fn pass<E: From<ExportError>>(
    label: &Label,
    parts: Result<Vec<Part>, clrscope_export::Malformed>,
    take: &mut dyn FnMut(Parcel) -> Result<(), E>,
) -> Result<(), E> {
    let parts = parts.map_err(|error| ExportError::from(std::io::Error::other(error)))?;
    for part in parts {
        let id = uuid([label.id.as_bytes(), label.name.as_bytes(), &part.bytes]);
        take(Parcel::new(Label { id, ..label.clone() }, part))?;
    }
    Ok(())
}

/// An export; nothing where the process has nothing of it.
fn exported(recording: &Recording, format: &str, query: Query) -> Result<Vec<u8>, ExportError> {
    let format = exporter(format).map_err(|error| ExportError::from(std::io::Error::other(error)))?;
    let mut out = Vec::new();
    match format.write(recording, &ExportOptions { query, ..ExportOptions::default() }, &mut out) {
        Ok(()) => Ok(out),
        Err(ExportError::Empty(_)) => Ok(Vec::new()),
        Err(error) => Err(error),
    }
}

/// Names of profiles in Pyroscope, by instrument: its own where it has one.
fn name_of(instrument: &'static str) -> &'static str {
    match instrument {
        instrument::CPU => "process_cpu",
        instrument::ALLOC => "memory",
        other => other,
    }
}

fn label(recording: &Recording, process: &Process, server: &Server) -> Label {
    /// Nanoseconds of a second.
    const SECOND: u64 = 1_000_000_000;
    let observed = observed_unix_ns(recording);
    Label {
        to: server.to_string(),
        id: format!("{} {}", recording.run.id, process.pid),
        name: String::new(),
        labels: series_labels(&Resource::from_process(recording, process)),
        from: observed.start / SECOND,
        until: observed.end.div_ceil(SECOND),
        rate: 0,
        profiles: 0,
        samples: 0,
    }
}

/// Facts that are no labels of a series: each process would be a series of its own, or they are the
/// same for all.
const NO_LABELS: [&str; 6] = [
    "process.pid",
    "process.command_line",
    "process.runtime.name",
    "process.runtime.description",
    "clrscope.processors",
    "clrscope.recording.id",
];

/// Name of a service without one, as OpenTelemetry's conventions have it.
const UNKNOWN_SERVICE: &str = "unknown_service:dotnet";

/// Labels of a series, with the service's name first. Names have letters, digits and underscores
/// alone, as in Prometheus. Receivers accept 30 labels, and the profile's name is one of them.
fn series_labels(resource: &Resource<'_>) -> Vec<(String, String)> {
    let service = resource.service();
    let service = if service.is_empty() { UNKNOWN_SERVICE } else { &service };
    let mut labels: Vec<(String, String)> = vec![("service_name".to_owned(), service.to_owned())];
    for (key, value) in resource.attributes().filter(|(key, _)| !NO_LABELS.contains(key)) {
        let mut name: String = key.chars().map(|c| if c.is_ascii_alphanumeric() { c } else { '_' }).collect();
        if name.starts_with(|c: char| c.is_ascii_digit()) {
            name.insert(0, '_');
        }
        // Two keys can have one name; names with two underscores are the server's own.
        let is_free = !name.starts_with("__") && !labels.iter().any(|(known, _)| *known == name);
        if is_free && !value.to_text().is_empty() && labels.len() < MOST_LABELS - 1 {
            labels.push((name, value.to_text().into_owned()));
        }
    }
    labels
}

fn inflated(bytes: &[u8]) -> std::io::Result<Vec<u8>> {
    let mut out = Vec::new();
    if !bytes.is_empty() {
        GzDecoder::new(bytes).take(MOST_INFLATED).read_to_end(&mut out)?;
    }
    Ok(out)
}

fn deflated(bytes: &[u8]) -> Vec<u8> {
    let mut out = GzEncoder::new(Vec::new(), Compression::default());
    // Memory takes all.
    out.write_all(bytes).and_then(|()| out.finish()).unwrap_or_default()
}

/// A UUID made of the hash of these bytes (version 8 of RFC 9562).
fn uuid<const N: usize>(parts: [&[u8]; N]) -> String {
    let mut hash = Sha256::new();
    for part in parts {
        hash.update((part.len() as u64).to_le_bytes());
        hash.update(part);
    }
    let mut id = [0; 16];
    id.copy_from_slice(&hash.finalize()[..16]);
    id[6] = 0x80 | (id[6] & 0x0F);
    id[8] = 0x80 | (id[8] & 0x3F);
    let hex = |bytes: &[u8]| bytes.iter().map(|byte| format!("{byte:02x}")).collect::<String>();
    [&id[..4], &id[4..6], &id[6..8], &id[8..10], &id[10..]].map(hex).join("-")
}
