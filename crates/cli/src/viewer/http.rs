//! The part of HTTP that one page and its requests need: one request per connection, without a
//! body.

use std::fmt::Write as _;
use std::io::{self, Read, Write};
use std::net::{Shutdown, TcpStream};
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Maximum bytes of a request.
const MOST_BYTES: usize = 16 << 10;
/// Maximum number of headers.
const MOST_HEADERS: usize = 64;
/// Time limit for the arrival of a whole request, and for a client that does not read its answer.
const PATIENCE: Duration = Duration::from_secs(10);

/// Outcome of a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Status {
    /// The answer is in the body.
    Fine,
    /// The bytes are no request, or one that can't be parsed.
    BadRequest,
    /// This client may not see the resource.
    Forbidden,
    /// There is nothing under this path.
    NotFound,
    /// Only reading is supported.
    MethodNotAllowed,
    /// The request is too long.
    TooLong,
    /// The answer could not be made.
    Failed,
    /// Too many requests are being answered.
    Busy,
}

impl Status {
    fn line(self) -> &'static str {
        match self {
            Self::Fine => "200 OK",
            Self::BadRequest => "400 Bad Request",
            Self::Forbidden => "403 Forbidden",
            Self::NotFound => "404 Not Found",
            Self::MethodNotAllowed => "405 Method Not Allowed",
            Self::TooLong => "431 Request Header Fields Too Large",
            Self::Failed => "500 Internal Server Error",
            Self::Busy => "503 Service Unavailable",
        }
    }
}

/// The parts of a request that this server uses.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct RequestHead {
    pub(super) method: String,
    /// Path and query as they were sent.
    pub(super) target: String,
    pub(super) host: Option<String>,
    pub(super) origin: Option<String>,
    /// The browser's `Sec-Fetch-Site`: how the requesting page is related to this one.
    pub(super) site: Option<String>,
    /// The browser's `Sec-Fetch-Dest`: what it will use the answer for.
    pub(super) destination: Option<String>,
}

/// Limits the time that a client may take to read the answer.
pub(super) fn set_limits(stream: &TcpStream) -> io::Result<()> {
    stream.set_write_timeout(Some(PATIENCE))?;
    stream.set_nodelay(true)
}

/// A connection with a deadline for the whole request, however many pieces its bytes arrive in.
pub(super) struct TimedConnection<'s> {
    stream: &'s mut TcpStream,
    end: Instant,
}

impl<'s> TimedConnection<'s> {
    /// Starts the time limit.
    pub(super) fn from_now(stream: &'s mut TcpStream) -> Self {
        Self { stream, end: Instant::now() + PATIENCE }
    }

    /// The connection.
    pub(super) fn stream(&mut self) -> &mut TcpStream {
        self.stream
    }

    /// Waits until the client can read the whole answer: closing a connection with unread bytes
    /// resets it.
    pub(super) fn linger(&mut self) {
        let _ = self.stream.shutdown(Shutdown::Write);
        let mut rest = [0; 1024];
        let mut left = MOST_BYTES;
        while let Ok(read) = self.read(&mut rest) {
            if read == 0 || left < read {
                return;
            }
            left -= read;
        }
    }
}

impl Read for TimedConnection<'_> {
    fn read(&mut self, bytes: &mut [u8]) -> io::Result<usize> {
        let left = self.end.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return Err(io::ErrorKind::TimedOut.into());
        }
        self.stream.set_read_timeout(Some(left))?;
        self.stream.read(bytes)
    }
}

/// Reads a request.
pub(super) fn read(stream: &mut impl Read) -> Result<RequestHead, Status> {
    let mut bytes = Vec::new();
    loop {
        if let Some(asked) = parsed(&bytes)? {
            return Ok(asked);
        }
        if bytes.len() >= MOST_BYTES {
            return Err(Status::TooLong);
        }
        let mut part = [0; 4096];
        let read = stream.read(&mut part).map_err(|_| Status::BadRequest)?;
        if read == 0 {
            return Err(Status::BadRequest);
        }
        bytes.extend_from_slice(&part[..read]);
    }
}

/// Parses a request; `None` if the bytes are incomplete.
fn parsed(bytes: &[u8]) -> Result<Option<RequestHead>, Status> {
    let mut headers = [httparse::EMPTY_HEADER; MOST_HEADERS];
    let mut request = httparse::Request::new(&mut headers);
    let status = request.parse(bytes).map_err(|error| match error {
        httparse::Error::TooManyHeaders => Status::TooLong,
        _ => Status::BadRequest,
    })?;
    if status.is_partial() {
        return Ok(None);
    }
    let mut asked = RequestHead {
        method: request.method.unwrap_or_default().to_owned(),
        target: request.path.unwrap_or_default().to_owned(),
        ..RequestHead::default()
    };
    for header in request.headers.iter() {
        let slot = match header.name.to_ascii_lowercase().as_str() {
            "host" => &mut asked.host,
            "origin" => &mut asked.origin,
            "sec-fetch-site" => &mut asked.site,
            "sec-fetch-dest" => &mut asked.destination,
            _ => continue,
        };
        let value = std::str::from_utf8(header.value).map_err(|_| Status::BadRequest)?;
        // A duplicate header may mean something different to its sender.
        if slot.replace(value.trim().to_owned()).is_some() {
            return Err(Status::BadRequest);
        }
    }
    Ok(Some(asked))
}

/// An answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Answer {
    pub(super) status: Status,
    content: &'static str,
    policy: String,
    body: Body,
}

/// Body of an answer.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Body {
    Text(String),
    /// Bytes that are part of this program.
    Fixed(&'static [u8]),
    /// Bytes that were made once for all requests.
    Shared(Arc<Vec<u8>>),
}

impl Body {
    fn bytes(&self) -> &[u8] {
        match self {
            Self::Text(text) => text.as_bytes(),
            Self::Fixed(bytes) => bytes,
            Self::Shared(bytes) => bytes,
        }
    }
}

impl Answer {
    /// A page under a content security policy.
    pub(super) fn page(html: String, policy: &str) -> Self {
        let (content, policy) = ("text/html; charset=utf-8", policy.to_owned());
        Self { status: Status::Fine, content, policy, body: Body::Text(html) }
    }

    /// A file of a page under a content security policy.
    pub(super) fn file(bytes: &'static [u8], content: &'static str, policy: &str) -> Self {
        let policy = policy.to_owned();
        Self { status: Status::Fine, content, policy, body: Body::Fixed(bytes) }
    }

    /// JSON that was made once.
    pub(super) fn shared(json: &Arc<Vec<u8>>) -> Self {
        let body = Body::Shared(Arc::clone(json));
        Self { status: Status::Fine, content: "application/json", policy: NOTHING.to_owned(), body }
    }

    /// A JSON document.
    pub(super) fn json(text: &str) -> Self {
        let body = Body::Text(text.to_owned());
        Self { status: Status::Fine, content: "application/json", policy: NOTHING.to_owned(), body }
    }

    /// An answer with this status and no content.
    pub(super) fn refusal(status: Status) -> Self {
        let body = Body::Text(format!("{}\n", status.line()));
        Self { status, content: "text/plain; charset=utf-8", policy: NOTHING.to_owned(), body }
    }

    /// Writes the answer; without `has_body` only its head.
    pub(super) fn write(&self, out: &mut impl Write, has_body: bool) -> io::Result<()> {
        let Self { status, content, policy, body } = self;
        let body = body.bytes();
        let mut head = format!("HTTP/1.1 {}\r\n", status.line());
        let length = body.len().to_string();
        let own: [(&str, &str); 3] =
            [("Content-Type", content), ("Content-Length", &length), ("Content-Security-Policy", policy)];
        for (name, value) in own.iter().chain(&ALWAYS) {
            // Writing to a string does not fail.
            let _ = write!(head, "{name}: {value}\r\n");
        }
        head.push_str("\r\n");
        out.write_all(head.as_bytes())?;
        if has_body { out.write_all(body) } else { Ok(()) }
    }
}

/// Content security policy of answers that are not a page.
const NOTHING: &str = "default-src 'none'; frame-ancestors 'none'";
/// Headers of every answer: clients must not cache it, frame it, guess its content type, or read it
/// from another page.
const ALWAYS: [(&str, &str); 7] = [
    ("Connection", "close"),
    ("Cache-Control", "no-store"),
    ("Referrer-Policy", "no-referrer"),
    ("X-Content-Type-Options", "nosniff"),
    ("X-Frame-Options", "DENY"),
    ("Cross-Origin-Resource-Policy", "same-origin"),
    ("Cross-Origin-Opener-Policy", "same-origin"),
];

#[cfg(test)]
mod tests {
    use super::*;

    fn asked(text: &str) -> Result<RequestHead, Status> {
        read(&mut text.as_bytes())
    }

    #[test]
    fn a_request_is_read_as_far_as_anybody_looks_at_it() {
        let text = "GET /abc/?x=1 HTTP/1.1\r\nHost: 127.0.0.1:80\r\nORIGIN: http://a\r\nX-More: y\r\n\r\n";
        let found = asked(text).expect("a request");
        assert_eq!((found.method.as_str(), found.target.as_str()), ("GET", "/abc/?x=1"));
        assert_eq!((found.host.as_deref(), found.origin.as_deref()), (Some("127.0.0.1:80"), Some("http://a")));
    }

    #[test]
    fn what_is_no_request_is_refused() {
        assert_eq!(asked(""), Err(Status::BadRequest));
        assert_eq!(asked("GET / HTTP/1.1\r\nHost: a"), Err(Status::BadRequest), "it ends in the middle");
        assert_eq!(asked("nonsense\r\n\r\n"), Err(Status::BadRequest));
        assert_eq!(asked("GET / HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n"), Err(Status::BadRequest));
        let long = format!("GET /{} HTTP/1.1\r\n", "x".repeat(MOST_BYTES));
        assert_eq!(asked(&long), Err(Status::TooLong));
        let many = format!("GET / HTTP/1.1\r\n{}\r\n", "a: b\r\n".repeat(MOST_HEADERS + 1));
        assert_eq!(asked(&many), Err(Status::TooLong));
    }

    #[test]
    fn every_answer_says_that_nobody_may_keep_or_frame_it() {
        let mut out = Vec::new();
        Answer::json("{}").write(&mut out, true).expect("memory takes all");
        let text = String::from_utf8(out).expect("text");
        for part in [
            "HTTP/1.1 200 OK\r\n",
            "Content-Length: 2\r\n",
            "no-store",
            "nosniff",
            "frame-ancestors 'none'",
            "\r\n\r\n{}",
        ] {
            assert!(text.contains(part), "{part}: {text}");
        }
        assert!(!text.contains("Access-Control"), "no other page may read it");
    }
}
