//! What gRPC adds to HTTP/2: frames, and the status that follows the answer.

use std::time::Duration;

use base64::Engine;
use base64::engine::general_purpose::STANDARD_NO_PAD;
use clrscope_export::fields::{Fields, Value};
use hyper::header::{HeaderMap, HeaderValue};

/// Header with the name of the messages' compression.
pub(crate) const ENCODING: &str = "grpc-encoding";

const STATUS: &str = "grpc-status";
const MESSAGE: &str = "grpc-message";
const DETAILS: &str = "grpc-status-details-bin";
const PUSHBACK: &str = "grpc-retry-pushback-ms";

/// Status codes of gRPC that mean more than "refused".
pub(crate) mod code {
    pub(crate) const OK: u32 = 0;
    pub(crate) const CANCELLED: u32 = 1;
    pub(crate) const UNKNOWN: u32 = 2;
    pub(crate) const DEADLINE_EXCEEDED: u32 = 4;
    pub(crate) const PERMISSION_DENIED: u32 = 7;
    pub(crate) const RESOURCE_EXHAUSTED: u32 = 8;
    pub(crate) const ABORTED: u32 = 10;
    pub(crate) const OUT_OF_RANGE: u32 = 11;
    pub(crate) const UNIMPLEMENTED: u32 = 12;
    pub(crate) const UNAVAILABLE: u32 = 14;
    pub(crate) const DATA_LOSS: u32 = 15;
    pub(crate) const UNAUTHENTICATED: u32 = 16;
}

/// The status of a call.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Status {
    pub(crate) code: u32,
    pub(crate) message: String,
    /// Time after which the receiver wants the parcel again; `None` if the receiver does not say.
    pub(crate) after: Option<Duration>,
}

impl Status {
    /// The status in the trailers, or in the headers if the answer has no message; `None` if there
    /// is no status.
    pub(crate) fn read(headers: &HeaderMap, trailers: &HeaderMap) -> Option<Self> {
        let map = if trailers.contains_key(STATUS) { trailers } else { headers };
        let text = |name: &str| map.get(name).and_then(|value| value.to_str().ok());
        let code = text(STATUS)?.trim().parse().unwrap_or(code::UNKNOWN);
        let pushback = text(PUSHBACK).and_then(|ms| ms.trim().parse().ok()).map(Duration::from_millis);
        let after = pushback.or_else(|| text(DETAILS).and_then(retry_delay));
        Some(Self { code, message: text(MESSAGE).map(percent_decoded).unwrap_or_default(), after })
    }
}

/// The frame of a message with these bytes, which are already compressed.
pub(crate) fn framed(message: &[u8]) -> Vec<u8> {
    let mut frame = Vec::with_capacity(message.len() + 5);
    frame.push(1);
    frame.extend_from_slice(&(message.len() as u32).to_be_bytes());
    frame.extend_from_slice(message);
    frame
}

/// The message in a frame without compression; empty if the frame is compressed or damaged.
pub(crate) fn unframed(frame: &[u8]) -> &[u8] {
    match frame.split_first_chunk::<5>() {
        Some(([0, length @ ..], rest)) => rest.get(..u32::from_be_bytes(*length) as usize).unwrap_or_default(),
        _ => &[],
    }
}

fn percent_decoded(text: &str) -> String {
    let bytes = text.as_bytes();
    let (mut out, mut at) = (Vec::with_capacity(bytes.len()), 0);
    while let Some(&byte) = bytes.get(at) {
        let hex = bytes.get(at + 1..at + 3).and_then(|hex| std::str::from_utf8(hex).ok());
        match hex.filter(|_| byte == b'%').and_then(|hex| u8::from_str_radix(hex, 16).ok()) {
            Some(decoded) => {
                out.push(decoded);
                at += 3;
            }
            None => {
                out.push(byte);
                at += 1;
            }
        }
    }
    String::from_utf8_lossy(&out).into_owned()
}

/// The delay in `google.rpc.RetryInfo`, one of the details of `google.rpc.Status`.
fn retry_delay(details: &str) -> Option<Duration> {
    let status = STANDARD_NO_PAD.decode(details.trim_end_matches('=')).ok()?;
    // `details` of Status: messages `Any` with `type_url` and `value`.
    let retry = fields(&status).filter(|(number, _)| *number == 3).find_map(|(_, any)| {
        let is_retry = fields(any).any(|(number, url)| number == 1 && url.ends_with(b"/google.rpc.RetryInfo"));
        is_retry.then(|| fields(any).find(|(number, _)| *number == 2).map(|(_, value)| value))?
    })?;
    let (_, duration) = fields(retry).find(|(number, _)| *number == 1)?;
    let (seconds, nanos) = numbers(duration).fold((0, 0), |(seconds, nanos), (number, value)| match number {
        1 => (value, nanos),
        2 => (seconds, value),
        _ => (seconds, nanos),
    });
    Some(Duration::new(seconds, u32::try_from(nanos).ok()?))
}

/// The fields of a message whose values are bytes, with their numbers. Stops at the first field
/// that can't be read.
pub(crate) fn fields(message: &[u8]) -> impl Iterator<Item = (u64, &[u8])> {
    values(message).filter_map(|(number, value)| Some((number, value.bytes().ok()?)))
}

/// The fields of a message whose values are numbers, with the fields' own numbers. Stops at the
/// first field that can't be read.
pub(crate) fn numbers(message: &[u8]) -> impl Iterator<Item = (u64, u64)> {
    values(message).filter_map(|(number, value)| Some((number, value.number().ok()?)))
}

fn values(message: &[u8]) -> impl Iterator<Item = (u64, Value<'_>)> {
    Fields::new(message).map_while(Result::ok)
}

/// Whether the content type is that of gRPC.
pub(crate) fn is_grpc(kind: Option<&HeaderValue>) -> bool {
    kind.is_some_and(|kind| kind.as_bytes().starts_with(b"application/grpc"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn map(pairs: &[(&'static str, &'static str)]) -> HeaderMap {
        pairs.iter().map(|(name, value)| (name.parse().expect("a name"), HeaderValue::from_static(value))).collect()
    }

    #[test]
    fn the_status_is_behind_the_answer_or_in_its_head() {
        let none = HeaderMap::new();
        let said = map(&[("grpc-status", "14"), ("grpc-message", "not%20now"), ("grpc-retry-pushback-ms", "250")]);
        let expected =
            Status { code: code::UNAVAILABLE, message: "not now".into(), after: Some(Duration::from_millis(250)) };
        assert_eq!(Status::read(&none, &said), Some(expected.clone()));
        assert_eq!(Status::read(&said, &none), Some(expected));
        assert_eq!(Status::read(&none, &none), None);
    }

    #[test]
    fn the_delay_of_a_refusal_is_read() {
        // Status { code: 8, details: [Any { RetryInfo { retry_delay: 3.5 s } }] }, by hand.
        let details = "CAgaNgoodHlwZS5nb29nbGVhcGlzLmNvbS9nb29nbGUucnBjLlJldHJ5SW5mbxIKCggIAxCAyrXuAQ";
        assert_eq!(retry_delay(details), Some(Duration::from_millis(3_500)));
        assert_eq!(retry_delay("CAg"), None);
        assert_eq!(retry_delay("!"), None);
    }

    #[test]
    fn frames_are_read_as_far_as_they_go() {
        assert_eq!(unframed(&[0, 0, 0, 0, 2, 7, 8]), [7, 8]);
        assert!(unframed(&[0, 0, 0, 0, 3, 7, 8]).is_empty() && unframed(&[1, 0]).is_empty());
        assert_eq!(framed(&[7, 8]), [1, 0, 0, 0, 2, 7, 8]);
    }
}
