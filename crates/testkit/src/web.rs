//! Runs a web program, sends requests to it, and ends it regularly.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::os::unix::process::CommandExt;
use std::process::{Child, ChildStdout, Command, Stdio};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use crate::program::{Finished, drain, kill_group, wait_within};
use crate::signals;

/// Time limit: longer than a service takes to answer or to end on a busy machine.
const PATIENCE: Duration = Duration::from_secs(60);

/// A running program that has printed its first line. Dropping the value kills the program and its
/// child processes.
#[derive(Debug)]
pub struct Service {
    child: Child,
    output: Option<BufReader<ChildStdout>>,
    errors: Option<JoinHandle<Vec<u8>>>,
    first: String,
    began: Instant,
}

impl Service {
    /// Starts the program and waits for its first line, such as `ready` or `listening on ADDRESS`.
    ///
    /// # Panics
    /// When it does not start or prints nothing.
    pub fn start(command: Command) -> Self {
        let mut service = Self::start_silent(command);
        service.output.as_mut().expect("taken at its end").read_line(&mut service.first).expect("text");
        assert!(!service.first.is_empty(), "the program ended without a word");
        service
    }

    /// Starts a program that may print nothing.
    ///
    /// # Panics
    /// When it does not start.
    pub fn start_silent(mut command: Command) -> Self {
        let began = Instant::now();
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped()).process_group(0);
        signals::let_children_hear();
        let mut child = command.spawn().unwrap_or_else(|error| panic!("cannot start {command:?}: {error}"));
        let errors = drain(child.stderr.take());
        let output = BufReader::new(child.stdout.take().expect("the pipe was asked for"));
        Self { child, output: Some(output), errors: Some(errors), first: String::new(), began }
    }

    /// Process id of the command, which may be a launcher.
    pub fn id(&self) -> u32 {
        self.child.id()
    }

    /// The next line of output after the first; empty at the end of the output.
    ///
    /// # Panics
    /// When the line is not valid text.
    pub fn line(&mut self) -> String {
        let mut line = String::new();
        self.output.as_mut().expect("taken at its end").read_line(&mut line).expect("text");
        line
    }

    /// Address after `listening on http://` in the program's first line.
    ///
    /// # Panics
    /// When the first line is different.
    pub fn address(&self) -> &str {
        let found = self.first.trim().strip_prefix("listening on http://");
        found.unwrap_or_else(|| panic!("no address: {}", self.first))
    }

    /// Sends the program a signal (`TERM`, `INT`) and waits for its end.
    ///
    /// # Panics
    /// When the program can't be signalled, or does not end.
    pub fn stop(self, signal: &str) -> Finished {
        kill(&format!("-{signal}"), &self.child.id().to_string());
        self.wait()
    }

    /// Waits until the program and every process that holds its output has ended.
    ///
    /// # Panics
    /// When waiting for the end fails.
    pub fn wait(mut self) -> Finished {
        let rest = drain(self.output.take());
        let status = wait_within(&mut self.child, PATIENCE).unwrap_or_else(|| panic!("it has not ended"));
        let collect = |pipe: Option<JoinHandle<Vec<u8>>>| {
            pipe.expect("taken once").join().expect("reading a pipe does not panic")
        };
        let mut stdout = std::mem::take(&mut self.first).into_bytes();
        stdout.extend(collect(Some(rest)));
        Finished { status, stdout, stderr: collect(self.errors.take()), elapsed: self.began.elapsed() }
    }
}

impl Drop for Service {
    fn drop(&mut self) {
        if self.errors.is_some() {
            kill_group(&mut self.child);
        }
    }
}

fn kill(signal: &str, whom: &str) {
    let sent = Command::new("kill").args([signal, "--", whom]).status().expect("kill starts");
    assert!(sent.success() || signal == "-KILL", "{whom} is not there to be signalled");
}

/// The status of one answer to `GET PATH`.
///
/// # Panics
/// When there is no answer.
pub fn get(address: &str, path: &str) -> u16 {
    let mut stream = TcpStream::connect(address).unwrap_or_else(|error| panic!("{address}: {error}"));
    stream.set_read_timeout(Some(PATIENCE)).expect("a limit");
    write!(stream, "GET {path} HTTP/1.1\r\nHost: {address}\r\nConnection: close\r\n\r\n").expect("a request");
    let mut answer = Vec::new();
    stream.read_to_end(&mut answer).expect("an answer");
    let text = String::from_utf8_lossy(&answer);
    let status = text.split(' ').nth(1).and_then(|status| status.parse().ok());
    status.unwrap_or_else(|| panic!("{address}{path} answered {text:?}"))
}

/// Runs `threads` clients at the same time, each with `requests` requests. Returns the number of
/// answers with status 200.
///
/// # Panics
/// When a request has no answer.
pub fn load(address: &str, path: &str, threads: usize, requests: usize) -> usize {
    let client = || (0..requests).filter(|_| get(address, path) == 200).count();
    thread::scope(|scope| {
        let clients: Vec<_> = (0..threads).map(|_| scope.spawn(client)).collect();
        clients.into_iter().map(|client| client.join().expect("a client does not panic")).sum()
    })
}
