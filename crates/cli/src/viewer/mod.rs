//! The page of a recording, served to a browser on this machine: `clrscope view`, `run --view`,
//! `attach --view`.
//!
//! One thread accepts [`connections`], one per connection reads a request ([`http`]) and judges who
//! asks ([`door`]), and one has the recording and answers ([`engine`]); the page of [`speedscope`]
//! needs none. Nothing is written but a file that leads the browser here ([`browser`]), and nothing
//! but the page and documents of the recording is read.

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
pub(crate) use speedscope::MOST_BYTES as MOST_OF_SPEEDSCOPE;

/// Options of a served page.
#[derive(Debug)]
pub(crate) struct ViewerOptions {
    /// The recording.
    pub(crate) source: Source,
    /// Filters of everything that the page shows.
    pub(crate) asked: Request,
    /// Port to listen on; any that is free when 0.
    pub(crate) port: u16,
    /// Open a browser at the page.
    pub(crate) browser: bool,
}

/// A page that is being served, until this process ends.
#[derive(Debug)]
pub(crate) struct Viewer {
    address: String,
    connections: Arc<Connections>,
}

impl Viewer {
    /// Serves the page of a recording that can be opened, says its address and opens a browser at
    /// it.
    ///
    /// # Errors
    /// When the recording can't be opened, or the port can't be listened on.
    pub(crate) fn open(options: ViewerOptions) -> Result<Self, Failure> {
        let (tell, opened) = channel();
        let viewer = Self::serve(&options, tell)?;
        // The thread ends only with this process: the first word always comes.
        opened.recv().unwrap_or(Ok(()))?;
        viewer.announce(options.browser);
        Ok(viewer)
    }

    /// Serves speedscope's page with a profile, says its address and opens a browser at it.
    ///
    /// # Errors
    /// When the port can't be listened on.
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
    /// When no port can be listened on.
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

    /// Says the address, and opens a browser at it.
    fn announce(&self, browser: bool) {
        say(&format!("clrscope: the page is at {}", self.address));
        if browser {
            browser::open(&self.address, &self.connections);
        }
    }
}

/// Listens on this machine alone.
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

/// Answers for those who came in.
#[derive(Debug, Clone)]
enum Room {
    /// The page of a recording, and the thread that has the recording.
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

/// Keeps the page there after the end of what it showed, until it is interrupted.
pub(crate) fn stay(signals: &Signals) {
    let waiting = Waiting::here();
    let ended = waiting.clone();
    signals.on_interruption(move || ended.end());
    say("clrscope: the page stays until Ctrl-C");
    waiting.wait();
}

/// Thread that waits for a signal.
#[derive(Debug, Clone)]
pub(crate) struct Waiting {
    is_over: Arc<AtomicBool>,
    thread: Thread,
}

impl Waiting {
    /// The thread that calls this will wait.
    pub(crate) fn here() -> Self {
        Self { is_over: Arc::default(), thread: thread::current() }
    }

    /// Ends the wait.
    pub(crate) fn end(&self) {
        self.is_over.store(true, Ordering::Release);
        self.thread.unpark();
    }

    /// Waits for the end.
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
