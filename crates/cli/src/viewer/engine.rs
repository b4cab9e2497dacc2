//! The one who has the recording: opens it, again where it grows, and answers about it.

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

/// Between two looks at a recording that grows, at least; a look that takes longer is followed by a
/// pause as long as itself.
const PAUSE: Duration = Duration::from_millis(900);
/// Bytes of answers that are kept.
const MOST_KEPT: usize = 64 << 20;

/// A recording that is looked at.
#[derive(Debug, Clone)]
pub(crate) enum Source {
    /// A file, or parts of it, which stay as they are.
    Still(PathBuf),
    /// A directory, which may still grow, and become a file.
    Growing(Arc<Growing>),
}

/// Question of a connection.
pub(super) enum Question {
    /// The list of documents.
    Index,
    /// Reading of the recording that answers now.
    Standing,
    /// A document.
    Document(Box<DocumentRequest>),
}

/// A question, and who waits for the answer.
pub(super) struct Ask {
    pub(super) question: Question,
    pub(super) reply: SyncSender<Arc<str>>,
}

/// Opens the recording, tells how that went, and answers until no more questions can come.
pub(super) fn run(source: &Source, asked: &Request, asks: &Receiver<Ask>, tell: &Sender<Result<(), Failure>>) {
    let mut revision = 0;
    let mut pending = None;
    loop {
        let began = Instant::now();
        let opened = source.open(asked);
        revision += 1;
        // Only the first opening is waited for.
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
    /// Opens the recording with the names that filters mean.
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
    /// Nothing more is recorded.
    is_over: bool,
}

impl Reading<'_> {
    /// Answers, `pending` first, until a question asks for news and there may be some: that
    /// question is handed back. `None` when no more questions can come. All documents of a
    /// recording that stays as it is are made on another thread meanwhile: the first of them while
    /// a browser still starts.
    fn answer(&self, asks: &Receiver<Ask>, mut pending: Option<Ask>, began: Instant) -> Option<Ask> {
        let pause = PAUSE.max(began.elapsed());
        let read = Instant::now();
        let (kept, is_over) = (&Mutex::new(AnswerCache::default()), &AtomicBool::new(false));
        thread::scope(|scope| {
            if self.is_final {
                let served = self.served.beside();
                let work = move || make_ahead(&served, kept, is_over);
                // Without another thread documents are made when they are asked for.
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

    /// Whether the recording may be another by now.
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
        // The asker may have gone.
        let _ = ask.reply.send(answer);
    }
}

/// Makes all documents of a recording that have not been asked for, one after another. Behind the
/// first, which is looked at, comes what clicks there ask for.
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

/// Returns an answer. The first request for it makes it, while later ones wait.
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

/// Answers that were given or are being made, as long as there is room for them.
#[derive(Default)]
struct AnswerCache {
    answers: HashMap<DocumentRequest, Arc<OnceLock<Arc<str>>>>,
    size: usize,
}

impl AnswerCache {
    /// Forgets all answers where one more of a size is too much.
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

/// Answers with the reason why the recording can't be opened, until it is time to try again.
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
