//! The thread that owns the recording: it opens the recording, reopens it while it grows, and
//! answers questions about it.

use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, Sender, SyncSender};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use clrscope_analysis::check_selection;
use clrscope_report::{DocumentRequest, Request, ServedRecording};
use serde_json::json;

use crate::errors::Failure;
use crate::growing::{Growing, are_over};
use crate::recording_file::{OpenRecording, open_for, query_failure, resolved};

/// Minimum pause between two readings of a growing recording. A reading that takes longer is
/// followed by a pause of the same length.
const PAUSE: Duration = Duration::from_millis(900);
/// Maximum bytes of cached answers.
const MOST_KEPT: usize = 64 << 20;

/// The recording to show.
#[derive(Debug, Clone)]
pub(crate) enum Source {
    /// A file, or parts of it, which don't change.
    Still(PathBuf),
    /// A directory, which may still grow and then become a file.
    Growing(Arc<Growing>),
}

/// Question of a connection.
pub(super) enum Question {
    /// The list of documents.
    Index,
    /// The revision of the recording that answers now.
    Standing,
    /// A document.
    Document(Box<DocumentRequest>),
}

/// A question, and the channel for its answer.
pub(super) struct Ask {
    pub(super) question: Question,
    pub(super) reply: SyncSender<Arc<str>>,
}

/// Opens the recording, sends the outcome to `tell`, and answers the questions of `asks` until all
/// senders are gone.
pub(super) fn run(source: &Source, asked: &Request, asks: &Receiver<Ask>, tell: &Sender<Result<(), Failure>>) {
    let mut revision = 0;
    let mut pending = None;
    loop {
        let began = Instant::now();
        let opened = source.open(asked);
        revision += 1;
        // The receiver waits for the first result only.
        let _ = tell.send(opened.as_ref().map(|_| ()).map_err(Clone::clone));
        let answered = match &opened {
            Ok((recording, asked)) => {
                let growing = matches!(source, Source::Growing(growing) if !growing.is_packed());
                let over = recording.run.exit.is_some() || are_over(&recording.processes);
                let served = ServedRecording::new(recording, asked.clone());
                let reading = Reading { source, served, revision, is_final: !growing, is_over: !growing || over };
                reading.answer(asks, pending.take(), began)
            }
            Err(failure) => refuse(failure, asks, pending.take(), began),
        };
        match answered {
            Some(ask) => pending = Some(ask),
            None => return,
        }
    }
}

impl Source {
    /// Opens the recording and resolves the names in the filters.
    fn open(&self, asked: &Request) -> Result<(OpenRecording, Request), Failure> {
        let opened = match self {
            Self::Still(path) => open_for(path, &asked.query)?,
            Self::Growing(growing) => growing.open()?.with_frames_for(&asked.query),
        };
        let query = resolved(&opened, &asked.query)?;
        if matches!(self, Self::Still(_)) {
            check_selection(&opened, &query).map_err(|problem| query_failure(&problem))?;
        }
        Ok((opened, Request { query, ..asked.clone() }))
    }
}

/// One reading of the recording.
struct Reading<'a> {
    source: &'a Source,
    served: ServedRecording<'a>,
    revision: u64,
    /// The recording will not change any more.
    is_final: bool,
    /// The program has ended: nothing more is recorded.
    is_over: bool,
}

impl Reading<'_> {
    /// Answers questions, `pending` first. Returns the first question for the revision that comes
    /// when the recording may have changed, or `None` when all senders are gone. If the recording
    /// doesn't change, another thread makes all documents meanwhile, starting while the browser
    /// still starts.
    fn answer(&self, asks: &Receiver<Ask>, mut pending: Option<Ask>, began: Instant) -> Option<Ask> {
        let pause = PAUSE.max(began.elapsed());
        let read = Instant::now();
        let (kept, is_over) = (&Mutex::new(AnswerCache::default()), &AtomicBool::new(false));
        thread::scope(|scope| {
            if self.is_final {
                let served = self.served.beside();
                let work = move || make_ahead(&served, kept, is_over);
                // Without that thread, documents are made on request.
                let _ = thread::Builder::new().name("ahead".to_owned()).spawn_scoped(scope, work);
            }
            let next = loop {
                let ask = match pending.take() {
                    Some(ask) => ask,
                    None => match asks.recv() {
                        Ok(ask) => ask,
                        Err(_) => break None,
                    },
                };
                if matches!(ask.question, Question::Standing) && read.elapsed() >= pause && self.has_news() {
                    break Some(ask);
                }
                self.one(ask, kept);
            };
            is_over.store(true, Ordering::Relaxed);
            next
        })
    }

    /// Whether the recording may have changed.
    fn has_news(&self) -> bool {
        match self.source {
            Source::Growing(growing) if !self.is_final => !self.is_over || growing.is_packed(),
            _ => false,
        }
    }

    fn one(&self, ask: Ask, kept: &Mutex<AnswerCache>) {
        let answer = match ask.question {
            Question::Index => self.served.index(self.revision, !self.is_final).into(),
            Question::Standing => {
                json!({ "revision": self.revision, "growing": !self.is_final, "over": self.is_over }).to_string().into()
            }
            Question::Document(wanted) => document(&self.served, *wanted, kept),
        };
        // The connection may be closed.
        let _ = ask.reply.send(answer);
    }
}

/// Makes all documents of a recording that have not been requested, one after another. After the
/// first document, which the page shows, the trees for clicks in it are made.
fn make_ahead(served: &ServedRecording<'_>, kept: &Mutex<AnswerCache>, is_over: &AtomicBool) {
    for (at, key) in served.keys().into_iter().enumerate() {
        if is_over.load(Ordering::Relaxed) {
            return;
        }
        document(served, DocumentRequest { key, ..DocumentRequest::default() }, kept);
        if at == 0 {
            served.make_trees();
        }
    }
}

/// Returns a document. The first request makes it; later requests for the same document wait.
fn document(served: &ServedRecording<'_>, wanted: DocumentRequest, kept: &Mutex<AnswerCache>) -> Arc<str> {
    let known = || kept.lock().unwrap_or_else(PoisonError::into_inner);
    let place = Arc::clone(known().answers.entry(wanted.clone()).or_default());
    let mut is_new = false;
    let answer = place.get_or_init(|| {
        is_new = true;
        served.document(&wanted).unwrap_or_else(|error| problem(&error.to_string())).into()
    });
    if is_new {
        known().make_room(answer.len());
    }
    Arc::clone(answer)
}

/// Cache of answers that are finished or being made.
#[derive(Default)]
struct AnswerCache {
    answers: HashMap<DocumentRequest, Arc<OnceLock<Arc<str>>>>,
    size: usize,
}

impl AnswerCache {
    /// Removes all answers if one more of `size` bytes would exceed the limit.
    fn make_room(&mut self, size: usize) {
        self.size += size;
        if self.size > MOST_KEPT {
            self.answers.clear();
            self.size = 0;
        }
    }
}

fn problem(why: &str) -> String {
    json!({ "problem": why }).to_string()
}

/// Answers each question with the reason why the recording can't be opened, until the next attempt
/// is due.
fn refuse(failure: &Failure, asks: &Receiver<Ask>, pending: Option<Ask>, began: Instant) -> Option<Ask> {
    let answer: Arc<str> = problem(&format!("{}: {}", failure.what(), failure.why())).into();
    if let Some(ask) = pending {
        let _ = ask.reply.send(Arc::clone(&answer));
    }
    loop {
        let ask = asks.recv().ok()?;
        if began.elapsed() >= PAUSE {
            return Some(ask);
        }
        let _ = ask.reply.send(Arc::clone(&answer));
    }
}
