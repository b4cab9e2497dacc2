//! What a receiver's answer means for the parcel.

use std::time::Duration;

use hyper::StatusCode;
use hyper::header::{CONTENT_TYPE, HeaderMap, LOCATION, RETRY_AFTER};
use jiff::Timestamp;

use crate::connection::{NoAnswer, Received};
use crate::grpc::{self, Status, code};
use crate::target::{Protocol, Server};

/// Characters of a receiver's reason that are shown.
const SHOWN: usize = 200;

/// What to do with a parcel.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Answer {
    /// The receiver has the parcel. It may have refused some of the profiles: `refused` is their
    /// number, `reason` the receiver's reason.
    Accepted { refused: u64, reason: String },
    /// The parcel is too large: send it in parts.
    TooLarge(String),
    /// Send the parcel again, at the earliest after this time.
    Later(Option<Duration>, String),
    /// The receiver does not want the parcel, and never will.
    Refused(String),
    /// The receiver does not let us in, although nothing is wrong with the parcel.
    Shut(String),
}

impl Answer {
    /// Reads an answer.
    pub(crate) fn read(server: &Server, received: Result<Received, NoAnswer>) -> Self {
        let received = match received {
            Ok(received) => received,
            Err(NoAnswer::Later(why)) => return Self::Later(None, why),
            Err(NoAnswer::Untrusted(why)) => return Self::Shut(why),
        };
        let is_call = server.protocol == Protocol::OtlpGrpc && grpc::is_grpc(received.headers.get(CONTENT_TYPE));
        if !is_call || received.status != StatusCode::OK {
            return Self::of_http(server, &received);
        }
        match Status::read(&received.headers, &received.trailers) {
            Some(status) if status.code == code::OK => Self::accepted(grpc::unframed(&received.body)),
            Some(status) => Self::of_call(status),
            None => Self::Later(None, "the answer ends without a gRPC status".to_owned()),
        }
    }

    fn of_http(server: &Server, received: &Received) -> Self {
        let status = received.status;
        let said = one_line(&String::from_utf8_lossy(&received.body));
        let name = status.canonical_reason().unwrap_or("no known status");
        let reason = format!("{} {name}{}{said}", status.as_u16(), if said.is_empty() { "" } else { ": " });
        match status.as_u16() {
            200..=299 if server.protocol == Protocol::OtlpGrpc => {
                Self::Shut("it is not a gRPC server: its answer has another content type".to_owned())
            }
            200..=299 if server.protocol == Protocol::OtlpHttp => Self::accepted(&received.body),
            200..=299 => Self::Accepted { refused: 0, reason: String::new() },
            300..=399 => {
                let place =
                    received.headers.get(LOCATION).and_then(|place| place.to_str().ok()).unwrap_or("another place");
                Self::Shut(one_line(&format!("{} {name}: it is at {place}; name that", status.as_u16())))
            }
            413 => Self::TooLarge(reason),
            408 | 425 | 429 | 500..=599 => Self::Later(retry_after(&received.headers), reason),
            401 | 403 | 404 | 405 | 407 => Self::Shut(reason),
            // Pyroscope's words for profiles over its limits.
            _ if said.contains("exceeds the size limit") || said.contains("exceeds the samples count limit") => {
                Self::TooLarge(reason)
            }
            _ => Self::Refused(reason),
        }
    }

    fn of_call(status: Status) -> Self {
        let Status { code, message, after } = status;
        let reason = one_line(&format!("gRPC status {code}: {message}"));
        match code {
            // Implementations of gRPC say so of messages over their limit.
            code::RESOURCE_EXHAUSTED if after.is_none() && message.contains("larger than max") => {
                Self::TooLarge(reason)
            }
            code::CANCELLED
            | code::DEADLINE_EXCEEDED
            | code::RESOURCE_EXHAUSTED
            | code::ABORTED
            | code::OUT_OF_RANGE
            | code::UNAVAILABLE
            | code::DATA_LOSS => Self::Later(after, reason),
            code::UNAUTHENTICATED | code::PERMISSION_DENIED | code::UNIMPLEMENTED => Self::Shut(reason),
            _ => Self::Refused(reason),
        }
    }

    /// Reads `ExportProfilesServiceResponse`: its field 1, `partial_success`, has the number of
    /// refused profiles and a reason.
    fn accepted(message: &[u8]) -> Self {
        let partial = grpc::fields(message).find(|(number, _)| *number == 1).map_or(&[][..], |(_, partial)| partial);
        let refused = grpc::numbers(partial).find(|(number, _)| *number == 1).map_or(0, |(_, refused)| refused);
        let reason = grpc::fields(partial).find(|(number, _)| *number == 2);
        let reason = reason.map(|(_, text)| one_line(&String::from_utf8_lossy(text))).unwrap_or_default();
        Self::Accepted { refused, reason }
    }
}

/// Seconds, or a time.
fn retry_after(headers: &HeaderMap) -> Option<Duration> {
    let text = headers.get(RETRY_AFTER)?.to_str().ok()?.trim();
    if let Ok(seconds) = text.parse() {
        return Some(Duration::from_secs(seconds));
    }
    let time = jiff::fmt::rfc2822::DateTimeParser::new().parse_timestamp(text).ok()?;
    Some(Duration::try_from(time.duration_since(Timestamp::now())).unwrap_or(Duration::ZERO))
}

/// The beginning of a text, in one line.
fn one_line(text: &str) -> String {
    let text = text.split_whitespace().collect::<Vec<_>>().join(" ");
    let text: String = text.chars().map(|c| if c.is_control() { ' ' } else { c }).collect();
    match text.char_indices().nth(SHOWN) {
        Some((end, _)) => format!("{}...", &text[..end]),
        None => text,
    }
}

#[cfg(test)]
mod tests {
    use hyper::header::HeaderValue;

    use super::*;
    use crate::Target;

    fn http(target: &str, status: u16, headers: &[(&'static str, &'static str)], body: &str) -> Answer {
        let target = Target::parse(target).expect("a target");
        let pairs =
            headers.iter().map(|(name, value)| (name.parse().expect("a name"), HeaderValue::from_static(value)));
        let received = Received {
            status: StatusCode::from_u16(status).expect("a status"),
            headers: pairs.collect(),
            body: body.into(),
            trailers: HeaderMap::new(),
        };
        Answer::read(target.server().expect("a server"), Ok(received))
    }

    #[test]
    fn each_status_says_what_becomes_of_a_parcel() {
        let push = "pyroscope=http://a";
        assert_eq!(http(push, 200, &[], ""), Answer::Accepted { refused: 0, reason: String::new() });
        assert!(matches!(http(push, 413, &[], ""), Answer::TooLarge(_)));
        let limit = r#"{"message":"the profile with labels '{}' exceeds the size limit (max_profile_size_byte)"}"#;
        assert!(matches!(http(push, 400, &[], limit), Answer::TooLarge(_)));
        assert_eq!(http(push, 400, &[], "no\n  pprof"), Answer::Refused("400 Bad Request: no pprof".to_owned()));
        assert_eq!(http(push, 401, &[], ""), Answer::Shut("401 Unauthorized".to_owned()));
        let moved = http(push, 308, &[("location", "https://b/")], "");
        assert_eq!(moved, Answer::Shut("308 Permanent Redirect: it is at https://b/; name that".to_owned()));
        for status in [408, 429, 500, 502, 503, 504] {
            let answer = http(push, status, &[("retry-after", "7")], "");
            assert!(matches!(answer, Answer::Later(Some(after), _) if after == Duration::from_secs(7)), "{status}");
        }
        assert!(matches!(http("otlp=grpc://a", 200, &[("content-type", "text/html")], ""), Answer::Shut(_)));
        assert!(matches!(http("otlp=grpc://a", 503, &[], ""), Answer::Later(None, _)));
    }

    #[test]
    fn the_time_of_the_next_try_is_seconds_or_a_date() {
        let after = |text: &'static str| match http("otlp=http://a", 429, &[("retry-after", text)], "") {
            Answer::Later(after, _) => after,
            other => panic!("{other:?}"),
        };
        assert_eq!(after("Wed, 21 Oct 2015 07:28:00 GMT"), Some(Duration::ZERO));
        assert!(after("Wed, 21 Oct 2099 07:28:00 GMT").is_some_and(|after| after > Duration::from_secs(1 << 20)));
        assert_eq!(after("soon"), None);
    }

    #[test]
    fn profiles_that_a_collector_refuses_are_counted() {
        // ExportProfilesServiceResponse { partial_success { rejected_profiles: 2, error_message:
        // "no" } }
        let answer = http("otlp=http://a", 200, &[], "\u{a}\u{6}\u{8}\u{2}\u{12}\u{2}no");
        assert_eq!(answer, Answer::Accepted { refused: 2, reason: "no".to_owned() });
        assert_eq!(http("otlp=http://a", 200, &[], "{}"), Answer::Accepted { refused: 0, reason: String::new() });
    }

    #[test]
    fn codes_of_calls_are_told_apart() {
        let of = |code, message: &str, after| Answer::of_call(Status { code, message: message.to_owned(), after });
        let wait = Some(Duration::from_secs(1));
        assert!(matches!(of(8, "received message larger than max (9 vs. 4)", None), Answer::TooLarge(_)));
        assert!(matches!(of(8, "slower", wait), Answer::Later(after, _) if after == wait));
        assert!(matches!(of(14, "", None), Answer::Later(None, _)));
        assert!(matches!(of(3, "", None), Answer::Refused(_)) && matches!(of(16, "", None), Answer::Shut(_)));
    }
}
