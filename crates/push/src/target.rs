//! Targets: where profiles are sent.

use std::fmt;
use std::path::PathBuf;

use hyper::Uri;

/// Path of Pyroscope's push API, a Connect service.
const PUSH: &str = "/push.v1.PusherService/Push";
/// Path of Pyroscope's older API.
const INGEST: &str = "/ingest";
/// Path of profiles at an OpenTelemetry receiver, by HTTP.
const OTLP_HTTP: &str = "/v1development/profiles";
/// Path of the same by gRPC.
const OTLP_GRPC: &str = "/opentelemetry.proto.collector.profiles.v1development.ProfilesService/Export";

/// Where profiles are sent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Target {
    /// A server.
    Server(Server),
    /// A folder, which gets the recording itself.
    Folder(PathBuf),
}

/// The protocol that a server expects.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Protocol {
    /// Pyroscope's push API.
    PyroscopePush,
    /// Pyroscope's older API, `/ingest`.
    PyroscopeIngest,
    /// OpenTelemetry over HTTP.
    OtlpHttp,
    /// OpenTelemetry over gRPC.
    OtlpGrpc,
}

/// A server to which profiles are sent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Server {
    /// The protocol that the server expects.
    pub protocol: Protocol,
    /// Whether the connection is encrypted.
    pub(crate) tls: bool,
    /// Name or address of the server, without brackets.
    pub(crate) host: String,
    pub(crate) port: u16,
    /// Path of requests.
    pub(crate) path: String,
    /// Scheme, host and port, written as in the section names of a file with headers.
    pub(crate) origin: String,
    /// The target as on the command line. It has no secret.
    text: String,
}

/// Reason why a text does not name a target.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TargetError {
    /// The text; `None` if it may contain a secret.
    pub shown: Option<String>,
    /// Reason.
    pub why: &'static str,
    /// What the user should do next.
    pub hint: &'static str,
}

const IN_A_FILE: &str = "put it into a file of headers, and name that with --push-header-file";

impl Target {
    /// Reads `pyroscope=URL`, `otlp=URL` or a folder.
    ///
    /// # Errors
    /// If the URL can't be used, or has parts for secrets: a user or a query.
    pub fn parse(text: &str) -> Result<Self, TargetError> {
        let refused = |why, hint| Err(TargetError { shown: Some(text.to_owned()), why, hint });
        let Some((kind, url)) = text.split_once('=') else {
            if text.contains("://") {
                return refused("it does not say what the server is", "write pyroscope=URL or otlp=URL");
            }
            if text.is_empty() {
                return refused("it is empty", "write pyroscope=URL, otlp=URL or a folder");
            }
            return Ok(Self::Folder(PathBuf::from(text)));
        };
        match kind {
            "pyroscope" | "otlp" => Server::parse(text, kind == "otlp", url).map(Self::Server),
            // A folder with '=' in its name, as partitioned folders have.
            _ if kind.contains('/') => Ok(Self::Folder(PathBuf::from(text))),
            _ => refused("no such receiver is known", "write pyroscope=URL, otlp=URL or a folder, such as ./folder"),
        }
    }

    /// The server; `None` if the target is a folder.
    #[must_use]
    pub fn server(&self) -> Option<&Server> {
        match self {
            Self::Server(server) => Some(server),
            Self::Folder(_) => None,
        }
    }
}

impl fmt::Display for Target {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Server(server) => server.fmt(f),
            Self::Folder(folder) => folder.display().fmt(f),
        }
    }
}

impl fmt::Display for Server {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

impl Server {
    fn parse(text: &str, is_otlp: bool, url: &str) -> Result<Self, TargetError> {
        let secret = |why| Err(TargetError { shown: None, why, hint: IN_A_FILE });
        if url.contains('@') {
            return secret("the URL has a user or a password, which other users can see on a command line");
        }
        if url.contains(['?', '#']) {
            return secret("the URL has a query, which other users can see on a command line");
        }
        let (schemes, hint) = match is_otlp {
            true => (
                &["http", "https", "grpc", "grpcs"][..],
                "write otlp=http://HOST:4318 or otlp=grpc://HOST:4317, with https or grpcs for encryption",
            ),
            false => (&["http", "https"][..], "write pyroscope=http://HOST:4040, or https"),
        };
        let refused = |why| TargetError { shown: Some(text.to_owned()), why, hint };
        let uri: Uri = url.parse().map_err(|_| refused("it is not a URL"))?;
        let scheme = uri.scheme_str().ok_or_else(|| refused("the URL has no scheme"))?;
        if !schemes.contains(&scheme) {
            return Err(refused("the URL has another scheme"));
        }
        let host = uri.host().filter(|host| !host.is_empty()).ok_or_else(|| refused("the URL has no host"))?;
        let is_grpc = scheme.starts_with("grpc");
        let tls = matches!(scheme, "https" | "grpcs");
        let usual = match (is_grpc, tls) {
            (true, _) => 4317,
            (false, true) => 443,
            (false, false) => 80,
        };
        let port = match uri.authority().map(|authority| authority.as_str().rsplit_once(':')) {
            // The port of an address in brackets comes behind them.
            Some(Some((_, digits))) if !digits.ends_with(']') => {
                digits.parse().map_err(|_| refused("the URL's port is not a number up to 65535"))?
            }
            _ => usual,
        };
        let given = uri.path().trim_end_matches('/');
        let (protocol, path) = match (is_otlp, is_grpc) {
            (true, true) if !given.is_empty() => return Err(refused("a gRPC URL has no path")),
            (true, true) => (Protocol::OtlpGrpc, OTLP_GRPC.to_owned()),
            (true, false) => (Protocol::OtlpHttp, with_end(given, OTLP_HTTP)),
            (false, _) if given.ends_with(INGEST) => (Protocol::PyroscopeIngest, given.to_owned()),
            (false, _) => (Protocol::PyroscopePush, with_end(given, PUSH)),
        };
        Ok(Self {
            protocol,
            tls,
            host: host.trim_matches(['[', ']']).to_owned(),
            port,
            path,
            origin: format!("{scheme}://{host}:{port}"),
            text: text.to_owned(),
        })
    }

    /// Host and port as in a URL.
    pub(crate) fn authority(&self) -> &str {
        self.origin.split_once("://").map_or("", |(_, authority)| authority)
    }
}

fn with_end(path: &str, end: &str) -> String {
    if path.ends_with(end) { path.to_owned() } else { format!("{path}{end}") }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn server(text: &str) -> Server {
        match Target::parse(text) {
            Ok(Target::Server(server)) => server,
            other => panic!("{text}: {other:?}"),
        }
    }

    #[test]
    fn the_url_says_what_is_spoken_and_where() {
        for (text, protocol, tls, place) in [
            ("pyroscope=http://host:4040", Protocol::PyroscopePush, false, "host 4040 /push.v1.PusherService/Push"),
            (
                "pyroscope=https://host/of/it/",
                Protocol::PyroscopePush,
                true,
                "host 443 /of/it/push.v1.PusherService/Push",
            ),
            ("pyroscope=http://host/ingest", Protocol::PyroscopeIngest, false, "host 80 /ingest"),
            ("otlp=http://[::1]:4318", Protocol::OtlpHttp, false, "::1 4318 /v1development/profiles"),
            ("otlp=http://[::1]", Protocol::OtlpHttp, false, "::1 80 /v1development/profiles"),
            ("otlp=https://h/v1development/profiles", Protocol::OtlpHttp, true, "h 443 /v1development/profiles"),
        ] {
            let found = server(text);
            assert_eq!((found.protocol, found.tls), (protocol, tls), "{text}");
            assert_eq!(format!("{} {} {}", found.host, found.port, found.path), place);
            assert_eq!(found.to_string(), text);
        }
        let grpc = server("otlp=grpcs://collector");
        assert_eq!((grpc.protocol, grpc.tls, grpc.port), (Protocol::OtlpGrpc, true, 4317));
        assert_eq!((grpc.path.as_str(), grpc.authority()), (OTLP_GRPC, "collector:4317"));
    }

    #[test]
    fn folders_are_folders() {
        for text in ["profiles", "./a=b", "/mnt/bucket/date=today"] {
            assert_eq!(Target::parse(text), Ok(Target::Folder(text.into())));
        }
    }

    #[test]
    fn what_can_have_secrets_is_refused_and_not_shown() {
        for text in ["pyroscope=http://user:hush@host", "otlp=https://host/?key=hush", "otlp=grpc://host#hush"] {
            let refusal = Target::parse(text).expect_err("must be refused");
            assert_eq!((refusal.shown, refusal.hint), (None, IN_A_FILE), "{text}");
        }
    }

    #[test]
    fn other_texts_are_refused() {
        for (text, why) in [
            ("", "empty"),
            ("http://host", "does not say"),
            ("parca=http://host", "no such receiver"),
            ("otlp=host:4317", "has no scheme"),
            ("otlp=ftp://host", "another scheme"),
            ("pyroscope=grpc://host", "another scheme"),
            ("otlp=http://host:99999", "port"),
            ("otlp=grpc://host/path", "has no path"),
            ("otlp=http://", "not a URL"),
        ] {
            let refusal = Target::parse(text).expect_err(text);
            assert!(refusal.why.contains(why), "{text}: {}", refusal.why);
        }
    }
}
