//! Sends parcels from the spool until they are answered or the patience is used up.

use std::collections::VecDeque;
use std::fmt;
use std::hash::{BuildHasher, RandomState};
use std::io;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use clrscope_export::ExportError;
use clrscope_recording::model::Recording;
use tokio::runtime::Runtime;

use crate::answer::Answer;
use crate::connection::Connector;
use crate::folder;
use crate::headers::Headers;
use crate::outcome::{Outcome, Report, Tally};
use crate::parcel::{LIMITS, Parcel, parcels};
use crate::request::request;
use crate::spool::{Held, Spool};
use crate::target::{Server, Target};

/// First pause before a parcel is sent again; each one after it is twice as long.
const FIRST_PAUSE: Duration = Duration::from_millis(500);
/// Longest pause, unless the receiver asks for a longer one.
const LONGEST_PAUSE: Duration = Duration::from_secs(30);

/// How long a push may take.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Patience {
    /// Time limit for one request and its answer.
    pub request: Duration,
    /// How long requests are retried while a receiver accepts nothing.
    pub retry: Duration,
}

/// Reason why a recording was not pushed.
#[derive(Debug)]
#[non_exhaustive]
pub enum PushError {
    /// The recording can't be exported.
    Export(ExportError),
    /// The spool can't be used.
    Spool(PathBuf, io::Error),
}

impl fmt::Display for PushError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Export(error) => error.fmt(f),
            Self::Spool(path, error) => write!(f, "{}: {error}", path.display()),
        }
    }
}

impl std::error::Error for PushError {}

impl From<ExportError> for PushError {
    fn from(error: ExportError) -> Self {
        Self::Export(error)
    }
}

/// Pushes recordings.
pub struct Pusher {
    spool: Spool,
    headers: Headers,
    patience: Patience,
    runtime: Runtime,
    connector: Connector,
    report: Report,
}

impl Pusher {
    /// A pusher for these targets.
    ///
    /// # Errors
    /// If the system refuses what is needed to wait for connections.
    pub fn new(spool: Spool, headers: Headers, patience: Patience, targets: &[Target]) -> io::Result<Self> {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        let report = Report { spool: spool.folder().to_owned(), ..Report::new(targets) };
        Ok(Self { spool, headers, patience, runtime, connector: Connector::default(), report })
    }

    /// Puts a recording into the spool for a server, or writes it to a folder.
    ///
    /// # Errors
    /// If the recording can't be exported, or the spool can't be written. A folder that can't be
    /// written is not an error: the report says so.
    pub fn add(&mut self, recording: &Recording, target: &Target) -> Result<(), PushError> {
        let Some(place) = self.place(target) else { return Ok(()) };
        let report = &mut self.report;
        match target {
            Target::Server(server) => {
                let spool = &self.spool;
                parcels(recording, server, &LIMITS, &mut |parcel: Parcel| {
                    report.targets[place].made += parcel.tally();
                    let lost = spool.put(&parcel);
                    report.lost += lost.map_err(|error| PushError::Spool(spool.folder().to_owned(), error))?;
                    Ok(())
                })
            }
            Target::Folder(folder) => {
                let outcome = &mut report.targets[place];
                match folder::write(recording, folder) {
                    Ok((_, written)) => {
                        outcome.made += written;
                        outcome.sent += written;
                    }
                    Err(error) => {
                        outcome.waiting += Tally { requests: 1, ..Tally::default() };
                        let text = error.to_string();
                        outcome.reason(text.split(" (os error").next().unwrap_or(&text).to_lowercase());
                    }
                }
                Ok(())
            }
        }
    }

    /// Sends what the spool has for a target; does nothing if the target is a folder.
    ///
    /// # Errors
    /// When the spool can't be read.
    pub fn send(&mut self, target: &Target) -> io::Result<()> {
        let (Some(server), Some(place)) = (target.server(), self.place(target)) else { return Ok(()) };
        let mut sending = Sending {
            spool: &self.spool,
            headers: &self.headers,
            patience: self.patience,
            connector: &mut self.connector,
            server,
            outcome: &mut self.report.targets[place],
        };
        self.runtime.block_on(sending.all())
    }

    /// Returns the report, which includes what is left in the spool.
    ///
    /// # Errors
    /// When the spool can't be read.
    pub fn finish(mut self) -> io::Result<Report> {
        for path in self.spool.paths()? {
            let Some((label, bytes)) = self.spool.label(&path) else { continue };
            let tally = label.tally(bytes);
            match self.report.targets.iter_mut().find(|target| target.to == label.to) {
                Some(target) => target.waiting += tally,
                None => self.report.waiting_for_others += tally,
            }
        }
        self.report.lost_ever = self.spool.lost_ever();
        Ok(self.report)
    }

    fn place(&self, target: &Target) -> Option<usize> {
        let text = target.to_string();
        self.report.targets.iter().position(|outcome| outcome.to == text)
    }
}

/// The parcels for one server on their way.
struct Sending<'p> {
    spool: &'p Spool,
    headers: &'p Headers,
    patience: Patience,
    connector: &'p mut Connector,
    server: &'p Server,
    outcome: &'p mut Outcome,
}

impl Sending<'_> {
    async fn all(&mut self) -> io::Result<()> {
        let to = self.server.to_string();
        let mine = |path: &PathBuf| self.spool.label(path).is_some_and(|(label, _)| label.to == to);
        let mut open: VecDeque<PathBuf> = self.spool.paths()?.into_iter().filter(mine).collect();
        while let Some(path) = open.pop_front() {
            // Another process may send it.
            let Some(held) = self.spool.hold(&path) else { continue };
            match self.deliver(&held).await {
                Answer::Accepted { refused, reason } => {
                    let mut tally = held.parcel.tally();
                    let refused = refused.min(tally.profiles);
                    tally.profiles -= refused;
                    self.outcome.sent += tally;
                    self.outcome.refused += Tally { profiles: refused, ..Tally::default() };
                    self.reason(&reason);
                    self.spool.remove(&held)?;
                }
                Answer::TooLarge(reason) => {
                    let parts = held.parcel.divided(self.server.protocol);
                    if parts.is_empty() {
                        self.refused(&held, &reason)?;
                    } else {
                        self.outcome.divided += 1;
                        let paths = self.spool.replace(&held, &parts)?;
                        paths.into_iter().rev().for_each(|path| open.push_front(path));
                    }
                }
                Answer::Refused(reason) => self.refused(&held, &reason)?,
                Answer::Later(_, reason) | Answer::Shut(reason) => {
                    self.reason(&reason);
                    return Ok(());
                }
            }
        }
        Ok(())
    }

    /// Sends a parcel until the answer is another than "later", or patience ends.
    async fn deliver(&mut self, held: &Held) -> Answer {
        let began = Instant::now();
        let mut pause = FIRST_PAUSE;
        loop {
            let answer = match request(self.server, self.headers, &held.parcel) {
                Ok(request) => {
                    let received = self.connector.exchange(self.server, request, self.patience.request).await;
                    Answer::read(self.server, received)
                }
                Err(error) => Answer::Refused(error.to_string()),
            };
            let Answer::Later(after, reason) = &answer else { return answer };
            let wait = after.unwrap_or_default().max(varied(pause));
            if began.elapsed().saturating_add(wait) > self.patience.retry {
                return answer;
            }
            self.reason(reason);
            tokio::time::sleep(wait).await;
            self.outcome.retries += 1;
            pause = (pause * 2).min(LONGEST_PAUSE);
        }
    }

    fn refused(&mut self, held: &Held, reason: &str) -> io::Result<()> {
        self.outcome.refused += held.parcel.tally();
        self.reason(reason);
        self.spool.remove(held)
    }

    fn reason(&mut self, reason: &str) {
        if !reason.is_empty() {
            self.outcome.reason(self.headers.redacted(reason));
        }
    }
}

/// A pause, up to a quarter shorter: many senders must not come at the same moment.
fn varied(pause: Duration) -> Duration {
    let random = RandomState::new().hash_one(0) % 250;
    pause - pause * random as u32 / 1000
}
