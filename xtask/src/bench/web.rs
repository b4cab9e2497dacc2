//! A web service under load: requests per second and the time of the slowest ones, bare and sampled
//! at several rates.

use std::io::{self, BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::thread;
use std::time::{Duration, Instant};

use clrscope_testkit::{Service, fixture, runtimes, scratch};

use super::absolute::Line;
use crate::agents::under_agent;
use crate::measured::Spread;

/// Connections of the client.
const CLIENTS: usize = 4;
/// Load before anything is measured: the service compiles its code again for good.
const WARM: Duration = Duration::from_secs(4);
/// Load that is measured.
const MEASURED: Duration = Duration::from_secs(6);
/// Conditions that the service runs under: the title of the line, and the agent's request.
const UNDER: [(&str, Option<&str>); 4] = [
    ("bare", None),
    ("`cpu` at 100 Hz", Some("cpu:rate=100")),
    ("`cpu` at 1 kHz", Some("cpu")),
    ("`cpu` at 10 kHz", Some("cpu:rate=10000")),
];

/// Measured answers to a load.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Answers {
    pub(crate) requests: usize,
    per_second: f64,
    /// Time within which 99 of 100 requests were answered, milliseconds.
    pub(crate) p99_ms: f64,
}

/// Lines of the report; empty if there is no runtime for a web service. All kinds of runs are
/// interleaved.
pub(super) fn under_load(runs: usize) -> Result<Vec<Line>, String> {
    let Some(runtime) = runtimes().iter().rev().find(|runtime| runtime.has_web()) else { return Ok(Vec::new()) };
    let mut found: Vec<Vec<Answers>> = vec![Vec::new(); UNDER.len()];
    for _ in 0..runs {
        for ((_, request), answers) in UNDER.iter().zip(&mut found) {
            let place = scratch();
            let mut command = runtime.command(&fixture("Web"));
            if let Some(request) = request {
                under_agent(&mut command, request, &place.path().join("web.clrs.d"));
            }
            let service = Service::start(command);
            let address = service.address().to_owned();
            load(&address, WARM).map_err(|error| format!("the web service: {error}"))?;
            answers.push(load(&address, MEASURED).map_err(|error| format!("the web service: {error}"))?);
            service.stop("TERM").expect_success();
        }
    }
    let line = |((title, _), answers): (&(&str, Option<&str>), &Vec<Answers>)| -> Line {
        let of = |value: fn(&Answers) -> f64| Spread::from_values(&answers.iter().map(value).collect::<Vec<_>>());
        let ratio = answers.iter().zip(&found[0]).map(|(with, bare)| with.per_second / bare.per_second);
        let ratio = Spread::from_values(&ratio.collect::<Vec<_>>());
        let (rate, slow) = (of(|answers| answers.per_second), of(|answers| answers.p99_ms));
        let figure = format!(
            "{:.0} requests/s ({:.0} to {:.0}), {:.2} of bare; 99 of 100 within {:.2} ms ({:.2} to {:.2})",
            rate.median, rate.low, rate.high, ratio.median, slow.median, slow.low, slow.high
        );
        ("rates", format!("web service, {title}"), figure, "")
    };
    Ok(UNDER.iter().zip(&found).map(line).collect())
}

/// Sends requests over several connections at once, for `time`.
///
/// # Errors
/// When a request is not answered, or not by a good answer.
pub(crate) fn load(address: &str, time: Duration) -> io::Result<Answers> {
    let began = Instant::now();
    let client = || -> io::Result<Vec<Duration>> {
        let mut connection = Connection::open(address)?;
        let mut times = Vec::new();
        while began.elapsed() < time {
            let asked = Instant::now();
            connection.ask("/ok")?;
            times.push(asked.elapsed());
        }
        Ok(times)
    };
    let times = thread::scope(|scope| {
        let clients: Vec<_> = (0..CLIENTS).map(|_| scope.spawn(client)).collect();
        let ended =
            clients.into_iter().map(|client| client.join().unwrap_or_else(|_| Err(io::ErrorKind::Other.into())));
        ended.collect::<io::Result<Vec<_>>>()
    })?;
    Ok(answers(times.concat(), began.elapsed()))
}

fn answers(mut times: Vec<Duration>, in_all: Duration) -> Answers {
    times.sort_unstable();
    let slow = times.get(times.len() * 99 / 100).copied().unwrap_or_default();
    Answers {
        requests: times.len(),
        per_second: times.len() as f64 / in_all.as_secs_f64(),
        p99_ms: slow.as_secs_f64() * 1e3,
    }
}

/// A connection that is kept open.
struct Connection {
    stream: BufReader<TcpStream>,
    host: String,
}

impl Connection {
    fn open(address: &str) -> io::Result<Self> {
        let stream = TcpStream::connect(address)?;
        stream.set_nodelay(true)?;
        Ok(Self { stream: BufReader::new(stream), host: address.to_owned() })
    }

    /// Asks for a path and reads the answer, which must be a good one.
    fn ask(&mut self, path: &str) -> io::Result<()> {
        write!(self.stream.get_mut(), "GET {path} HTTP/1.1\r\nHost: {}\r\n\r\n", self.host)?;
        read_answer(&mut self.stream)
    }
}

/// Reads one answer of status 200, its body by length or in pieces.
fn read_answer(stream: &mut impl BufRead) -> io::Result<()> {
    let bad = || io::Error::from(io::ErrorKind::InvalidData);
    let mut line = String::new();
    let mut next = |stream: &mut dyn BufRead| -> io::Result<String> {
        line.clear();
        if stream.read_line(&mut line)? == 0 {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        Ok(line.trim_end().to_ascii_lowercase())
    };
    if !next(stream)?.starts_with("http/1.1 200 ") {
        return Err(bad());
    }
    let (mut length, mut in_pieces) = (0_u64, false);
    loop {
        let header = next(stream)?;
        if header.is_empty() {
            break;
        }
        if let Some(text) = header.strip_prefix("content-length:") {
            length = text.trim().parse().map_err(|_| bad())?;
        }
        in_pieces |= header == "transfer-encoding: chunked";
    }
    let skip = |stream: &mut dyn BufRead, bytes: u64| io::copy(&mut stream.take(bytes), &mut io::sink());
    if !in_pieces {
        return skip(stream, length).map(drop);
    }
    loop {
        let size = u64::from_str_radix(&next(stream)?, 16).map_err(|_| bad())?;
        // Each piece ends with an empty line of its own, the last one too.
        skip(stream, size + 2)?;
        if size == 0 {
            return Ok(());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn answers_are_read_to_their_end_and_no_further() {
        let two = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok\
                   HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nok\r\n0\r\n\r\n\
                   HTTP/1.1 500 Internal Server Error\r\n\r\n";
        let mut stream = two.as_bytes();
        assert!(read_answer(&mut stream).is_ok() && read_answer(&mut stream).is_ok());
        assert!(read_answer(&mut stream).is_err(), "a failure is no answer");
    }

    #[test]
    fn the_slowest_of_a_hundred_is_left_out() {
        let times = (1..=200).map(Duration::from_millis).rev().collect();
        assert_eq!(answers(times, Duration::from_secs(2)), Answers { requests: 200, per_second: 100.0, p99_ms: 199.0 });
    }
}
