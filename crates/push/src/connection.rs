//! One request over a connection of its own.

use std::error::Error;
use std::io;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http_body_util::{BodyExt, Full};
use hyper::body::Incoming;
use hyper::client::conn::{http1, http2};
use hyper::header::HeaderMap;
use hyper::rt::{Read, Write};
use hyper::{Request, Response, StatusCode};
use hyper_util::rt::{TokioExecutor, TokioIo};
use rustls::pki_types::ServerName;
use rustls::{ClientConfig, RootCertStore};
use tokio::net::TcpStream;
use tokio::time::timeout;
use tokio_rustls::TlsConnector;

use crate::target::{Protocol, Server};

/// Most bytes that are read of an answer.
const MOST_READ: usize = 1 << 16;

/// An answer that was received.
#[derive(Debug)]
pub(crate) struct Received {
    pub(crate) status: StatusCode,
    pub(crate) headers: HeaderMap,
    /// The beginning of the answer's body.
    pub(crate) body: Vec<u8>,
    /// Headers that follow the body, as in gRPC.
    pub(crate) trailers: HeaderMap,
}

/// Reason why there is no answer.
#[derive(Debug)]
pub(crate) enum NoAnswer {
    /// The server can't be reached, is too slow, or has closed the connection.
    Later(String),
    /// The server could not prove that it is the right one.
    Untrusted(String),
}

/// Opens connections.
#[derive(Default)]
pub(crate) struct Connector {
    /// Made when it is first needed: reading the certificates of the system takes time.
    roots: Option<Arc<RootCertStore>>,
}

impl Connector {
    /// Sends a request, and reads the answer.
    pub(crate) async fn exchange(
        &mut self,
        server: &Server,
        request: Request<Full<Bytes>>,
        patience: Duration,
    ) -> Result<Received, NoAnswer> {
        let tls = server.tls.then(|| self.tls(server)).transpose()?;
        match timeout(patience, exchange(server, tls, request)).await {
            Ok(result) => result,
            Err(_) => Err(NoAnswer::Later(format!("no answer within {} s", patience.as_secs_f64()))),
        }
    }

    fn tls(&mut self, server: &Server) -> Result<TlsConnector, NoAnswer> {
        let roots = match &self.roots {
            Some(roots) => Arc::clone(roots),
            None => {
                let mut store = RootCertStore::empty();
                // Certificates that can't be read are not trusted.
                store.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
                Arc::clone(self.roots.insert(Arc::new(store)))
            }
        };
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let config = ClientConfig::builder_with_provider(provider).with_safe_default_protocol_versions();
        let config = config.map_err(|error| NoAnswer::Untrusted(error.to_string()))?;
        let mut config = config.with_root_certificates(roots).with_no_client_auth();
        config.alpn_protocols = vec![if is_http2(server) { b"h2".to_vec() } else { b"http/1.1".to_vec() }];
        Ok(TlsConnector::from(Arc::new(config)))
    }
}

fn is_http2(server: &Server) -> bool {
    server.protocol == Protocol::OtlpGrpc
}

async fn exchange(
    server: &Server,
    tls: Option<TlsConnector>,
    request: Request<Full<Bytes>>,
) -> Result<Received, NoAnswer> {
    let later = |error: io::Error| NoAnswer::Later(in_words(&error));
    let stream = TcpStream::connect((server.host.as_str(), server.port)).await.map_err(later)?;
    stream.set_nodelay(true).map_err(later)?;
    let Some(tls) = tls else { return talk(TokioIo::new(stream), server, request).await };
    let name = ServerName::try_from(server.host.clone()).map_err(|error| NoAnswer::Untrusted(error.to_string()))?;
    let stream = tls.connect(name, stream).await.map_err(|error| {
        let is_of_tls = error.get_ref().is_some_and(|inner| inner.is::<rustls::Error>());
        if is_of_tls { NoAnswer::Untrusted(in_words(&error)) } else { later(error) }
    })?;
    talk(TokioIo::new(stream), server, request).await
}

/// Sends the request over an open connection.
async fn talk<S>(stream: S, server: &Server, request: Request<Full<Bytes>>) -> Result<Received, NoAnswer>
where
    S: Read + Write + Unpin + Send + 'static,
{
    let later = |error: hyper::Error| NoAnswer::Later(in_words(&error));
    if is_http2(server) {
        let (mut sender, connection) = http2::handshake(TokioExecutor::new(), stream).await.map_err(later)?;
        let driver = tokio::spawn(connection);
        let response = sender.send_request(request).await.map_err(later)?;
        let received = receive(response).await.map_err(later);
        driver.abort();
        received
    } else {
        let (mut sender, connection) = http1::handshake(stream).await.map_err(later)?;
        let driver = tokio::spawn(connection);
        let response = sender.send_request(request).await.map_err(later)?;
        let received = receive(response).await.map_err(later);
        driver.abort();
        received
    }
}

async fn receive(response: Response<Incoming>) -> Result<Received, hyper::Error> {
    let (head, mut incoming) = response.into_parts();
    let (mut body, mut trailers) = (Vec::new(), HeaderMap::new());
    while let Some(frame) = incoming.frame().await {
        match frame?.into_data() {
            Ok(data) => body.extend_from_slice(&data[..data.len().min(MOST_READ - body.len())]),
            Err(frame) => trailers = frame.into_trailers().unwrap_or_default(),
        }
        if body.len() == MOST_READ {
            break;
        }
    }
    Ok(Received { status: head.status, headers: head.headers, body, trailers })
}

/// An error with its causes, without the numbers of the system.
fn in_words(error: &(dyn Error + 'static)) -> String {
    let mut words: Vec<String> = Vec::new();
    let mut next = Some(error);
    while let Some(error) = next {
        let text = error.to_string();
        let text = text.split(" (os error").next().unwrap_or(&text);
        let mut letters = text.chars();
        let text: String = letters.next().into_iter().flat_map(char::to_lowercase).chain(letters).collect();
        // Some errors have their cause in their own text.
        if !words.iter().any(|known| known.contains(&text)) {
            words.push(text);
        }
        next = error.source();
    }
    words.join(": ")
}
