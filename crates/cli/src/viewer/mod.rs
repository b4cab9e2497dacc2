//! The page of a recording, served to a browser on this machine: `clrscope view`, `run --view`,
//! `attach --view`.
//!
//! One thread accepts [`connections`]. One thread per connection reads a request ([`http`]) and
//! checks that it is allowed ([`door`]). One thread owns the recording and answers ([`engine`]);
//! the page of [`speedscope`] does not need it. The server writes only the file that redirects the
//! browser ([`browser`]), and clients can read only the page and the documents of the recording.

mod browser;
mod connections;
mod door;
mod engine;
mod http;
mod speedscope;

use std::io;
use std::net::{Ipv4Addr, TcpListener};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Sender, channel, sync_channel};
use std::thread::{self, Thread};

use clrscope_report::{Request, served_page, served_policy};

use crate::errors::{Failure, reason};
use crate::growing::Growing;
use crate::launch::Signals;
use crate::output::RecordingPath;
use crate::terminal::say;
use connections::Connections;
use door::{Door, Inside, Wish};
use engine::{Ask, Question};
use http::{Answer, Status};
use speedscope::Speedscope;

pub(crate) use engine::Source;
pub(crate) use speedscope::{IS_HERE as HAS_SPEEDSCOPE, MOST_BYTES as MOST_OF_SPEEDSCOPE};

/// Options of a served page.
#[derive(Debug)]
pub(crate) struct ViewerOptions {
    /// The recording.
    pub(crate) source: Source,
    /// Filters of everything that the page shows.
    pub(crate) asked: Request,
    /// Port to listen on; 0 for any free port.
    pub(crate) port: u16,
    /// Whether to open the page in a browser.
    pub(crate) browser: bool,
}

/// A page that is served until this process ends.
#[derive(Debug)]
pub(crate) struct Viewer {
    address: String,
    connections: Arc<Connections>,
}

impl Viewer {
    /// Opens a recording, serves its page, prints the address and opens it in a browser.
    ///
    /// # Errors
    /// The recording can't be opened, or the port is not available.
    pub(crate) fn open(options: ViewerOptions) -> Result<Self, Failure> {
        let (tell, opened) = channel();
        let viewer = Self::serve(&options, tell)?;
        // The thread ends only with this process, so it always sends the first result.
        opened.recv().unwrap_or(Ok(()))?;
        viewer.announce(options.browser);
        Ok(viewer)
    }

    /// Serves speedscope's page with a profile, prints the address and opens it in a browser.
    ///
    /// # Errors
    /// The port is not available.
    pub(crate) fn speedscope(profile: Vec<u8>, port: u16, browser: bool) -> Result<Self, Failure> {
        let (listener, door) = listen(port)?;
        let address = format!("{}{}", door.address(), speedscope::FRAGMENT);
        let room = Room::Speedscope(Speedscope::new(profile));
        let connections = Connections::accept(listener, door, room).map_err(|error| cannot_serve(port, &error))?;
        let viewer = Self { address, connections };
        viewer.announce(browser);
        Ok(viewer)
    }

    /// As [`open`](Self::open), for a recording that has just begun.
    ///
    /// # Errors
    /// No port is available.
    pub(crate) fn follow(place: &RecordingPath) -> Result<Self, Failure> {
        let source = Source::Growing(Arc::new(Growing::becoming(&place.folder, &place.file)));
        let options = ViewerOptions { source, asked: Request::default(), port: 0, browser: true };
        let viewer = Self::serve(&options, channel().0)?;
        viewer.announce(options.browser);
        Ok(viewer)
    }

    fn serve(options: &ViewerOptions, tell: Sender<Result<(), Failure>>) -> Result<Self, Failure> {
        let (listener, door) = listen(options.port)?;
        let failed = |error: io::Error| cannot_serve(options.port, &error);
        let address = door.address();
        let (asks, answered) = channel();
        let (source, asked) = (options.source.clone(), options.asked.clone());
        let engine = move || engine::run(&source, &asked, &answered, &tell);
        spawn("recording", engine).map_err(failed)?;
        let connections = Connections::accept(listener, door, Room::Recording(asks)).map_err(failed)?;
        Ok(Self { address, connections })
    }

    /// Prints the address, and opens it in a browser.
    fn announce(&self, browser: bool) {
        say(&format!("clrscope: the page is at {}", self.address));
        if browser {
            browser::open(&self.address, &self.connections);
        }
    }
}

/// Listens on the loopback address only.
fn listen(port: u16) -> Result<(TcpListener, Door), Failure> {
    let listening = || {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, port))?;
        let door = Door::new(listener.local_addr()?.port())?;
        Ok((listener, door))
    };
    listening().map_err(|error| cannot_serve(port, &error))
}

fn cannot_serve(port: u16, error: &io::Error) -> Failure {
    let hint = if port == 0 { "see 'clrscope doctor'" } else { "choose another --port, or leave it out" };
    Failure::new("cannot serve the page on this machine", reason(error), hint)
}

/// Answers allowed requests.
#[derive(Debug, Clone)]
enum Room {
    /// The page of a recording, and the channel to the thread that owns the recording.
    Recording(Sender<Ask>),
    /// The page of speedscope with a profile.
    Speedscope(Speedscope),
}

impl Room {
    fn answer(&self, inside: Inside<'_>) -> Answer {
        let answered = match self {
            Self::Recording(asks) => Wish::parse(inside).map(|wish| fulfilled(wish, asks)),
            Self::Speedscope(page) => page.answer(inside),
        };
        answered.unwrap_or_else(Answer::refusal)
    }
}

fn spawn(name: &str, work: impl FnOnce() + Send + 'static) -> io::Result<()> {
    thread::Builder::new().name(name.to_owned()).spawn(work).map(|_| ())
}

/// Serves the page after the recording's end, until an interruption.
pub(crate) fn stay(signals: &Signals) {
    let waiting = Waiting::here();
    let ended = waiting.clone();
    signals.on_interruption(move || ended.end());
    say("clrscope: the page stays until Ctrl-C");
    waiting.wait();
}

/// A thread that waits, and the signal that ends its wait.
#[derive(Debug, Clone)]
pub(crate) struct Waiting {
    is_over: Arc<AtomicBool>,
    thread: Thread,
}

impl Waiting {
    /// Names the calling thread as the one that will wait.
    pub(crate) fn here() -> Self {
        Self { is_over: Arc::default(), thread: thread::current() }
    }

    /// Ends the wait.
    pub(crate) fn end(&self) {
        self.is_over.store(true, Ordering::Release);
        self.thread.unpark();
    }

    /// Waits until [`end`](Self::end) is called.
    pub(crate) fn wait(&self) {
        while !self.is_over.load(Ordering::Acquire) {
            thread::park();
        }
    }
}

fn fulfilled(wish: Wish, asks: &Sender<Ask>) -> Answer {
    let question = match wish {
        Wish::Page => return Answer::page(served_page(), &served_policy()),
        Wish::Index => Question::Index,
        Wish::Standing => Question::Standing,
        Wish::Document(wanted) => Question::Document(wanted),
    };
    let (reply, answer) = sync_channel(1);
    let sent = asks.send(Ask { question, reply });
    match sent.ok().and_then(|()| answer.recv().ok()) {
        Some(json) => Answer::json(&json),
        None => Answer::refusal(Status::Failed),
    }
}
