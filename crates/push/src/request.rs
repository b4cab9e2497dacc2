//! Requests: the form in which each receiver wants parcels.

use bytes::Bytes;
use clrscope_recording::varint;
use http_body_util::Full;
use hyper::header::{ACCEPT, CONTENT_ENCODING, CONTENT_TYPE, HOST, TE, USER_AGENT};
use hyper::http::{self, request::Builder};
use hyper::{Request, Version};

use crate::grpc;
use crate::headers::Headers;
use crate::parcel::{Label, Parcel};
use crate::target::{Protocol, Server};

/// What Pyroscope's older API needs to know of the values of profiles: that they are those of this
/// time alone, and what they are called.
const SAMPLE_TYPES: &str = concat!(
    r#"{"samples":{"units":"samples","aggregation":"sum","sampled":true},"#,
    r#""cpu":{"units":"nanoseconds","display-name":"cpu","aggregation":"sum","sampled":true},"#,
    r#""wall":{"units":"nanoseconds","display-name":"wall","aggregation":"sum","sampled":true},"#,
    r#""alloc_objects":{"units":"objects","aggregation":"sum","cumulative":false},"#,
    r#""alloc_space":{"units":"bytes","aggregation":"sum","cumulative":false},"#,
    r#""calls":{"units":"samples","aggregation":"sum"},"#,
    r#""exceptions":{"units":"samples","aggregation":"sum"},"#,
    r#""awaited":{"units":"nanoseconds","aggregation":"sum"}}"#
);

/// The request that carries a parcel.
///
/// # Errors
/// If the parcel's label has characters that no request can have; labels made by this crate have
/// none.
pub(crate) fn request(server: &Server, headers: &Headers, parcel: &Parcel) -> http::Result<Request<Full<Bytes>>> {
    let agent = concat!("clrscope/", env!("CARGO_PKG_VERSION"));
    let mut request = Request::post(uri(server, &parcel.label)).header(USER_AGENT, agent);
    for (name, value) in headers.of(server) {
        request = request.header(name, value);
    }
    match server.protocol {
        Protocol::PyroscopePush => {
            let request = plain(request, server).header("connect-protocol-version", "1");
            let request = request.header(CONTENT_TYPE, "application/proto").header(ACCEPT, "application/proto");
            request.body(body(push_request(parcel)))
        }
        Protocol::PyroscopeIngest => {
            let request = plain(request, server);
            let (boundary, form) = form(parcel);
            let kind = format!("multipart/form-data; boundary={boundary}");
            request.header(CONTENT_TYPE, kind).body(body(form))
        }
        Protocol::OtlpHttp => {
            let request = plain(request, server).header(CONTENT_TYPE, "application/x-protobuf");
            request.header(CONTENT_ENCODING, "gzip").body(body(parcel.body.clone()))
        }
        Protocol::OtlpGrpc => {
            let request = request.version(Version::HTTP_2).header(CONTENT_TYPE, "application/grpc");
            let request = request.header(TE, "trailers").header(grpc::ENCODING, "gzip");
            request.body(body(grpc::framed(&parcel.body)))
        }
    }
}

fn body(bytes: Vec<u8>) -> Full<Bytes> {
    Full::new(Bytes::from(bytes))
}

/// A request of HTTP/1.1.
fn plain(request: Builder, server: &Server) -> Builder {
    request.header(HOST, server.authority())
}

fn uri(server: &Server, label: &Label) -> String {
    match server.protocol {
        Protocol::PyroscopePush | Protocol::OtlpHttp => server.path.clone(),
        Protocol::PyroscopeIngest => {
            let mut query = format!(
                "{}?name={}&from={}&until={}&spyName=clrscope&units=samples&aggregationType=sum",
                server.path,
                encoded(&series_name(&label.labels)),
                label.from,
                label.until
            );
            if label.rate > 0 {
                query.push_str(&format!("&sampleRate={}", label.rate));
            }
            query
        }
        Protocol::OtlpGrpc => {
            let scheme = if server.tls { "https" } else { "http" };
            format!("{scheme}://{}{}", server.authority(), server.path)
        }
    }
}

/// The message `PushRequest` of `push/v1/push.proto`: one series with one sample.
fn push_request(parcel: &Parcel) -> Vec<u8> {
    let mut series = Vec::new();
    let name = ("__name__", parcel.label.name.as_str());
    let labels = parcel.label.labels.iter().map(|(name, value)| (name.as_str(), value.as_str()));
    for (name, value) in [name].into_iter().chain(labels) {
        let mut pair = Vec::new();
        put(&mut pair, 1, name.as_bytes());
        put(&mut pair, 2, value.as_bytes());
        put(&mut series, 1, &pair);
    }
    let mut sample = Vec::with_capacity(parcel.body.len() + 64);
    put(&mut sample, 1, &parcel.body);
    put(&mut sample, 2, parcel.label.id.as_bytes());
    put(&mut series, 2, &sample);
    let mut request = Vec::with_capacity(series.len() + 16);
    put(&mut request, 1, &series);
    request
}

/// Appends a field with bytes.
fn put(message: &mut Vec<u8>, field: u64, bytes: &[u8]) {
    varint::put(message, field << 3 | 2);
    varint::put(message, bytes.len() as u64);
    message.extend_from_slice(bytes);
}

/// `service{name=value,...}`: what would end a name or a value is replaced.
fn series_name(labels: &[(String, String)]) -> String {
    let plain = |text: &str| -> String {
        text.chars().map(|c| if matches!(c, '{' | '}' | ',' | '=' | '"') { '_' } else { c }).collect()
    };
    let mut labels = labels.iter();
    let service = labels.next().map_or_else(String::new, |(_, value)| plain(value));
    let rest: Vec<String> = labels.map(|(name, value)| format!("{name}={}", plain(value))).collect();
    format!("{service}{{{}}}", rest.join(","))
}

/// Percent-encodes all but letters, digits and `-._~` (RFC 3986, unreserved characters).
fn encoded(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for byte in text.bytes() {
        match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'-' | b'.' | b'_' | b'~' => out.push(char::from(byte)),
            other => out.push_str(&format!("%{other:02X}")),
        }
    }
    out
}

/// A form with the profile and with what is known of its values, and the form's boundary.
fn form(parcel: &Parcel) -> (String, Vec<u8>) {
    // A hash: compressed bytes do not have it.
    let boundary = format!("clrscope-{}", parcel.label.id);
    let mut form = Vec::with_capacity(parcel.body.len() + 1024);
    for (name, file, bytes) in [
        ("profile", "profile.pprof", parcel.body.as_slice()),
        ("sample_type_config", "sample_type_config.json", SAMPLE_TYPES.as_bytes()),
    ] {
        let disposition = format!("form-data; name=\"{name}\"; filename=\"{file}\"");
        let head = format!(
            "--{boundary}\r\nContent-Disposition: {disposition}\r\nContent-Type: application/octet-stream\r\n\r\n"
        );
        form.extend_from_slice(head.as_bytes());
        form.extend_from_slice(bytes);
        form.extend_from_slice(b"\r\n");
    }
    form.extend_from_slice(format!("--{boundary}--\r\n").as_bytes());
    (boundary, form)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_series_have_nothing_that_would_end_them() {
        let labels = [("service_name", "a{b"), ("team", "x,y=z"), ("host_name", "h 1")];
        let labels = labels.map(|(name, value)| (name.to_owned(), value.to_owned()));
        assert_eq!(series_name(&labels), "a_b{team=x_y_z,host_name=h 1}");
        assert_eq!(encoded("a{b=ü 1}"), "a%7Bb%3D%C3%BC%201%7D");
    }

    #[test]
    fn what_is_said_of_values_is_json() {
        let types: serde_json::Value = serde_json::from_str(SAMPLE_TYPES).expect("JSON");
        assert_eq!(types["alloc_space"]["cumulative"], false);
    }
}
