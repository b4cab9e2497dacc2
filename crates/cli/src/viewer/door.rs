//! Checks which requests are allowed: only requests of the page itself, at its address with the
//! token, under a name of this machine.
//!
//! A web page can send requests to this machine, under any name that its owner makes resolve to
//! this machine (DNS rebinding). Such a request has a different name in `Host`, a different page in
//! `Origin`, or a different site in `Sec-Fetch-Site`; and only the user knows the token.

use std::fmt::Write as _;
use std::io;

use clrscope_report::DocumentRequest;
use rustix::rand::{GetRandomFlags, getrandom};

use super::http::{RequestHead, Status};

/// Bytes of a token.
const TOKEN_BYTES: usize = 16;
/// Names that always mean this machine.
const NAMES: [&str; 2] = ["127.0.0.1", "localhost"];

/// The resource that a request asks for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Wish {
    /// The page.
    Page,
    /// The list of the page's documents.
    Index,
    /// The current revision of the recording.
    Standing,
    /// A document.
    Document(Box<DocumentRequest>),
}

impl Wish {
    /// Returns the resource that a path (without the token) and a query name.
    pub(super) fn parse(Inside { path, query }: Inside<'_>) -> Result<Self, Status> {
        match path {
            "" => Ok(Self::Page),
            "index" => Ok(Self::Index),
            "standing" => Ok(Self::Standing),
            "document" => DocumentRequest::parse(query).map(Box::new).map(Self::Document).ok_or(Status::BadRequest),
            _ => Err(Status::NotFound),
        }
    }
}

/// Target of an allowed request: the part of the address after the token.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Inside<'a> {
    /// Path without the token and the slash after it.
    pub(super) path: &'a str,
    /// Text after the question mark.
    pub(super) query: &'a str,
}

/// Address of the page, and the check of requests.
#[derive(Debug, Clone)]
pub(super) struct Door {
    port: u16,
    token: String,
}

impl Door {
    /// A door with a new token.
    pub(super) fn new(port: u16) -> io::Result<Self> {
        let mut bytes = [0_u8; TOKEN_BYTES];
        let mut filled = 0;
        while filled < bytes.len() {
            filled += getrandom(&mut bytes[filled..], GetRandomFlags::empty())?;
        }
        let token = bytes.iter().fold(String::new(), |mut text, byte| {
            // Writing to a string does not fail.
            let _ = write!(text, "{byte:02x}");
            text
        });
        Ok(Self { port, token })
    }

    /// Address of the page.
    pub(super) fn address(&self) -> String {
        format!("http://{}:{}/{}/", NAMES[0], self.port, self.token)
    }

    /// Checks a request. Returns its target if the request is allowed.
    pub(super) fn judge<'a>(&self, asked: &'a RequestHead) -> Result<Inside<'a>, Status> {
        let is_ours = |host: &str| NAMES.iter().any(|name| host == format!("{name}:{}", self.port));
        if !asked.host.as_deref().is_some_and(is_ours) {
            return Err(Status::Forbidden);
        }
        let is_own_page = |origin: &str| origin.strip_prefix("http://").is_some_and(is_ours);
        if !asked.origin.as_deref().is_none_or(is_own_page) {
            return Err(Status::Forbidden);
        }
        if !matches!(asked.method.as_str(), "GET" | "HEAD") {
            return Err(Status::MethodNotAllowed);
        }
        let (path, query) = asked.target.split_once('?').unwrap_or((&asked.target, ""));
        let (token, path) = path.strip_prefix('/').and_then(|path| path.split_once('/')).ok_or(Status::Forbidden)?;
        if !is_same(token.as_bytes(), self.token.as_bytes()) {
            return Err(Status::Forbidden);
        }
        // The page itself may be opened from the redirecting file: for browsers a file is a
        // different site.
        let is_opened = path.is_empty() && asked.destination.as_deref() == Some("document");
        if !is_opened && !asked.site.as_deref().is_none_or(|site| matches!(site, "same-origin" | "none")) {
            return Err(Status::Forbidden);
        }
        Ok(Inside { path, query })
    }
}

/// Compares two texts in a time that does not depend on where they differ.
fn is_same(a: &[u8], b: &[u8]) -> bool {
    a.len() == b.len() && a.iter().zip(b).fold(0, |found, (a, b)| found | (a ^ b)) == 0
}

#[cfg(test)]
mod tests {
    use super::*;

    fn door() -> Door {
        Door { port: 4000, token: "0123456789abcdef".to_owned() }
    }

    fn asked(target: &str) -> RequestHead {
        let host = Some("127.0.0.1:4000".to_owned());
        RequestHead { method: "GET".to_owned(), target: target.to_owned(), host, ..RequestHead::default() }
    }

    /// The resource that a request gets.
    fn judged(asked: &RequestHead) -> Result<Wish, Status> {
        door().judge(asked).and_then(Wish::parse)
    }

    #[test]
    fn the_page_asks_for_itself_and_its_documents() {
        let wish = |target: &str| judged(&asked(target));
        assert_eq!(wish("/0123456789abcdef/"), Ok(Wish::Page));
        assert_eq!(wish("/0123456789abcdef/index"), Ok(Wish::Index));
        let wanted = DocumentRequest { key: "summary".to_owned(), ..DocumentRequest::default() };
        assert_eq!(wish("/0123456789abcdef/document?key=summary"), Ok(Wish::Document(Box::new(wanted))));
        assert_eq!(wish("/0123456789abcdef/document?key"), Err(Status::BadRequest));
    }

    #[test]
    fn wrong_tokens_and_paths_outside_are_refused() {
        for target in
            ["/", "/index", "//index", "/0123456789abcde0/", "/0123456789abcdef", "/0123456789ABCDEF/", "*", ""]
        {
            assert_eq!(judged(&asked(target)), Err(Status::Forbidden), "{target}");
        }
        for rest in ["../etc/passwd", "index/../index", "%2e%2e/", "page.js", "index/", "/"] {
            let target = format!("/0123456789abcdef/{rest}");
            assert_eq!(judged(&asked(&target)), Err(Status::NotFound), "{target}");
        }
    }

    #[test]
    fn names_of_others_foreign_pages_and_other_methods_are_refused() {
        let page = asked("/0123456789abcdef/");
        let with = |change: fn(&mut RequestHead)| {
            let mut asked = page.clone();
            change(&mut asked);
            judged(&asked)
        };
        assert_eq!(with(|asked| asked.host = Some("localhost:4000".to_owned())), Ok(Wish::Page));
        for host in ["evil.example:4000", "127.0.0.1", "127.0.0.1:4001", "localhost.evil.example:4000", ""] {
            let asked = RequestHead { host: Some(host.to_owned()), ..page.clone() };
            assert_eq!(judged(&asked), Err(Status::Forbidden), "{host}");
        }
        assert_eq!(with(|asked| asked.host = None), Err(Status::Forbidden));
        assert_eq!(with(|asked| asked.origin = Some("http://127.0.0.1:4000".to_owned())), Ok(Wish::Page));
        for origin in ["http://evil.example", "https://127.0.0.1:4000", "null", "http://127.0.0.1:4001"] {
            let asked = RequestHead { origin: Some(origin.to_owned()), ..page.clone() };
            assert_eq!(judged(&asked), Err(Status::Forbidden), "{origin}");
        }
        assert_eq!(with(|asked| asked.site = Some("cross-site".to_owned())), Err(Status::Forbidden));
        let from_file = |target: &str, destination: &str| {
            let (site, destination) = (Some("cross-site".to_owned()), Some(destination.to_owned()));
            judged(&RequestHead { site, destination, ..asked(target) })
        };
        assert_eq!(from_file("/0123456789abcdef/", "document"), Ok(Wish::Page));
        assert_eq!(from_file("/0123456789abcdef/", "iframe"), Err(Status::Forbidden));
        assert_eq!(from_file("/0123456789abcdef/index", "document"), Err(Status::Forbidden));
        assert_eq!(with(|asked| asked.site = Some("same-site".to_owned())), Err(Status::Forbidden));
        assert_eq!(with(|asked| asked.site = Some("none".to_owned())), Ok(Wish::Page));
        assert_eq!(with(|asked| asked.method = "POST".to_owned()), Err(Status::MethodNotAllowed));
    }

    #[test]
    fn tokens_are_long_and_never_the_same() {
        let [a, b] = [Door::new(1), Door::new(1)].map(|door| door.expect("random bytes").token);
        assert_eq!(a.len(), 2 * TOKEN_BYTES);
        assert_ne!(a, b);
    }
}
