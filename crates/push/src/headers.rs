//! Headers of requests. They may be secret: they come from a file or from the environment, and are
//! sent only to the server for which they are meant.

use std::fmt;
use std::fs;
use std::path::Path;

use hyper::header::{HeaderName, HeaderValue};

use crate::target::{Server, Target};

/// Environment variable with headers, in the same form as in the file.
pub const HEADERS_VARIABLE: &str = "CLRSCOPE_PUSH_HEADERS";

/// Marks the name of a file with a secret, in a value.
const OF_FILE: &str = "file:";
/// Prefixes and names of headers that belong to the transport.
const RESERVED: [&str; 11] = [
    "connection",
    "connect-",
    "content-",
    "expect",
    "grpc-",
    "host",
    "keep-alive",
    "proxy-",
    "te",
    "transfer-encoding",
    "upgrade",
];

/// Reason why headers can't be used. The message contains none of their values.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HeaderError {
    /// Reason.
    pub why: String,
    /// What the user should do next.
    pub hint: &'static str,
}

const FORM: &str = "write a line 'Name: value' for each header, below '[URL]' if there are several receivers";

/// Headers for servers.
#[derive(Clone, Default)]
pub struct Headers(Vec<Header>);

#[derive(Clone)]
struct Header {
    /// Scheme, host and port of the server, or all servers when `None`.
    origin: Option<String>,
    name: HeaderName,
    value: HeaderValue,
}

impl fmt::Debug for Headers {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.0.iter().map(|header| header.name.as_str())).finish()
    }
}

impl Headers {
    /// Reads the lines `Name: value`. A line `[URL]` says which server the lines below are for.
    /// Empty lines and lines that begin with `#` are ignored. `file:PATH` at the end of a value is
    /// replaced by the content of that file.
    ///
    /// # Errors
    /// If a line has another form, a file can't be read, or a header may only be set by the
    /// transport.
    pub fn parse(text: &str) -> Result<Self, HeaderError> {
        let (mut all, mut origin) = (Self::default(), None);
        for (number, line) in (1..).zip(text.lines()).map(|(number, line)| (number, line.trim())) {
            if line.is_empty() || line.starts_with('#') {
                continue;
            }
            let refused = |why: &str| HeaderError { why: format!("line {number}: {why}"), hint: FORM };
            if let Some(url) = line.strip_prefix('[').and_then(|line| line.strip_suffix(']')) {
                let server = ["otlp", "pyroscope"].into_iter().find_map(|kind| {
                    let target = Target::parse(&format!("{kind}={url}")).ok()?;
                    target.server().map(|server| server.origin.clone())
                });
                origin = Some(server.ok_or_else(|| refused("the URL in brackets is not that of a receiver"))?);
                continue;
            }
            let (name, value) = line.split_once(':').ok_or_else(|| refused("it has no ':'"))?;
            let name: HeaderName = name.trim().parse().map_err(|_| refused("the name is not one of a header"))?;
            if RESERVED.iter().any(|word| name == *word || (word.ends_with('-') && name.as_str().starts_with(word))) {
                return Err(refused(&format!("the header {name} belongs to the transport")));
            }
            let value = with_file(value.trim()).map_err(|why| refused(&why))?;
            let mut value = HeaderValue::from_str(&value)
                .map_err(|_| refused("the value has a character that no header may have"))?;
            value.set_sensitive(true);
            all.0.push(Header { origin: origin.clone(), name, value });
        }
        Ok(all)
    }

    /// Reads a file.
    ///
    /// # Errors
    /// Errors of [`Headers::parse`], and if the file can't be read.
    pub fn from_file(file: &Path) -> Result<Self, HeaderError> {
        let text = fs::read_to_string(file).map_err(|error| {
            let text = file.to_string_lossy();
            // Somebody has given the header itself.
            let is_header = text.contains(": ") || text.contains(' ');
            HeaderError {
                why: if is_header { "it is not the name of a file".to_owned() } else { plain(&error) },
                hint: "write the headers into a file that only you can read, and name that file",
            }
        })?;
        Self::parse(&text)
    }

    /// Whether some headers are meant for every server.
    #[must_use]
    pub fn have_any_for_all(&self) -> bool {
        self.0.iter().any(|header| header.origin.is_none())
    }

    /// The headers that are meant for a server.
    pub(crate) fn of<'s>(&'s self, server: &'s Server) -> impl Iterator<Item = (&'s HeaderName, &'s HeaderValue)> {
        let mine = self.0.iter().filter(|header| header.origin.as_ref().is_none_or(|origin| *origin == server.origin));
        mine.map(|header| (&header.name, &header.value))
    }

    /// The text without the values of headers: a receiver may repeat in its answer what it was
    /// sent.
    pub(crate) fn redacted(&self, text: &str) -> String {
        let mut text = text.to_owned();
        for header in &self.0 {
            let value = header.value.to_str().unwrap_or_default();
            // The words of a value are secret, too, and words such as 'Basic' are none.
            let words = value.split_whitespace().filter(|word| word.len() > 6);
            for secret in std::iter::once(value).chain(words).filter(|word| !word.is_empty()) {
                text = text.replace(secret, "***");
            }
        }
        text
    }
}

/// The value, with what is in a file in place of the file's name.
fn with_file(value: &str) -> Result<String, String> {
    let at = match value.rfind(OF_FILE) {
        Some(at) if at == 0 || value[..at].ends_with(' ') => at,
        _ => return Ok(value.to_owned()),
    };
    let file = &value[at + OF_FILE.len()..];
    let text = fs::read_to_string(file).map_err(|error| format!("the file of its value: {}", plain(&error)))?;
    Ok(format!("{}{}", &value[..at], text.trim()))
}

fn plain(error: &std::io::Error) -> String {
    let text = error.to_string();
    text.split(" (os error").next().unwrap_or(&text).to_lowercase()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(headers: &Headers, target: &str) -> Vec<String> {
        let target = Target::parse(target).expect("a target");
        let server = target.server().expect("a server");
        headers.of(server).map(|(name, value)| format!("{name}={}", value.to_str().expect("text"))).collect()
    }

    #[test]
    fn lines_are_headers_and_sections_are_servers() {
        let text = "# ours\nX-Scope-OrgID: shop\n\n[https://a:4318]\nAuthorization: Bearer of a\n[grpc://b]\nkey: of:b";
        let headers = Headers::parse(text).expect("headers");
        assert_eq!(of(&headers, "otlp=https://a:4318/x"), ["x-scope-orgid=shop", "authorization=Bearer of a"]);
        assert_eq!(of(&headers, "otlp=grpc://b:4317"), ["x-scope-orgid=shop", "key=of:b"]);
        assert_eq!(of(&headers, "pyroscope=http://a:4318"), ["x-scope-orgid=shop"], "it is not encrypted");
        assert!(headers.have_any_for_all());
        assert_eq!(format!("{headers:?}"), r#"["x-scope-orgid", "authorization", "key"]"#);
        assert!(!Headers::parse("[http://a]\nk: v").expect("headers").have_any_for_all());
    }

    #[test]
    fn a_value_can_be_in_a_file_of_its_own() {
        let folder = tempfile::tempdir().expect("a folder");
        let file = folder.path().join("token");
        fs::write(&file, "hush-hush\n").expect("a file");
        let headers = Headers::parse(&format!("Authorization: Bearer file:{}", file.display())).expect("headers");
        assert_eq!(of(&headers, "otlp=http://a"), ["authorization=Bearer hush-hush"]);
        assert_eq!(headers.redacted("no hush-hush, Bearer hush-hush"), "no ***, ***");
        let refusal = Headers::parse("k: file:/no/such").expect_err("must be refused");
        assert_eq!(refusal.why, "line 1: the file of its value: no such file or directory");
    }

    #[test]
    fn refusals_have_no_values() {
        for text in [
            "hush-hush",
            "na me: hush-hush",
            "Host: hush-hush",
            "grpc-timeout: hush-hush",
            "[hush-hush]",
            "k: hush-hush\u{1}",
        ] {
            let refusal = Headers::parse(text).expect_err(text);
            assert!(!refusal.why.contains("hush"), "{refusal:?}");
        }
        let refusal = Headers::from_file(Path::new("Authorization: hush-hush")).expect_err("no file");
        assert_eq!(refusal.why, "it is not the name of a file");
    }
}
