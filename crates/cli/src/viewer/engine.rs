//! The one who has the recording: opens it, again where it grows, and answers about it.

use std::collections::{HashMap, VecDeque};
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, SyncSender};
use std::time::{Duration, Instant};

use clrscope_analysis::check_selection;
use clrscope_report::{Request, Served, Wanted};
use serde_json::json;

use crate::errors::Failure;
use crate::growing::{Growing, are_over};
use crate::recording_file::{Opened, open_parts, query_failure, resolved};

/// Between two looks at a recording that grows, at least; a look that takes longer is followed by a pause as long as itself.
const PAUSE: Duration = Duration::from_millis(900);
/// Time without a question after which nobody seems to ask.
const IDLE: Duration = Duration::from_millis(500);
/// Bytes of answers that are kept.
const MOST_KEPT: usize = 256 << 20;

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
    Document(Wanted),
}

/// A question, and who waits for the answer.
pub(super) struct Ask {
    pub(super) question: Question,
    pub(super) reply: SyncSender<Arc<str>>,
}

/// Opens the recording, tells how that went, and answers until nobody asks any more.
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
                let served = Served::new(recording, asked.clone());
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
    fn open(&self, asked: &Request) -> Result<(Opened, Request), Failure> {
        let opened = match self {
            Self::Still(path) => open_parts(path, &asked.query.parts)?,
            Self::Growing(growing) => growing.open()?,
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
    served: Served<'a>,
    revision: u64,
    /// The recording will not change any more.
    is_final: bool,
    /// Nothing more is recorded.
    is_over: bool,
}

impl Reading<'_> {
    /// Answers, `pending` first, until somebody asks for news and there may be some: that question is handed back. `None` when
    /// nobody asks any more. While nobody asks, documents of a recording that stays as it is are made ahead.
    fn answer(&self, asks: &Receiver<Ask>, pending: Option<Ask>, began: Instant) -> Option<Ask> {
        let mut kept = Kept::default();
        if let Some(ask) = pending {
            self.one(ask, &mut kept);
        }
        let pause = PAUSE.max(began.elapsed());
        let read = Instant::now();
        let mut ahead: Option<VecDeque<String>> = None;
        loop {
            let ask = match ahead.as_mut().and_then(VecDeque::pop_front) {
                None => asks.recv().ok()?,
                Some(key) => match asks.recv_timeout(IDLE) {
                    Ok(ask) => {
                        ahead.iter_mut().for_each(|ahead| ahead.push_front(key.clone()));
                        ask
                    }
                    Err(RecvTimeoutError::Timeout) => {
                        self.document(Wanted { key, ..Wanted::default() }, &mut kept);
                        continue;
                    }
                    Err(RecvTimeoutError::Disconnected) => return None,
                },
            };
            if matches!(ask.question, Question::Standing) && read.elapsed() >= pause && self.has_news() {
                return Some(ask);
            }
            // Somebody looks.
            if self.is_final && ahead.is_none() && matches!(ask.question, Question::Document(_)) {
                ahead = Some(self.served.keys().into());
            }
            self.one(ask, &mut kept);
        }
    }

    /// Whether the recording may be another by now.
    fn has_news(&self) -> bool {
        match self.source {
            Source::Growing(growing) if !self.is_final => !self.is_over || growing.is_packed(),
            _ => false,
        }
    }

    fn one(&self, ask: Ask, kept: &mut Kept) {
        let answer = match ask.question {
            Question::Index => self.served.index(self.revision, !self.is_final).into(),
            Question::Standing => {
                json!({ "revision": self.revision, "growing": !self.is_final, "over": self.is_over }).to_string().into()
            }
            Question::Document(wanted) => self.document(wanted, kept),
        };
        // Whoever asked may have gone.
        let _ = ask.reply.send(answer);
    }

    fn document(&self, wanted: Wanted, kept: &mut Kept) -> Arc<str> {
        if let Some(known) = kept.answers.get(&wanted) {
            return Arc::clone(known);
        }
        let answer = self.served.document(&wanted).unwrap_or_else(|error| problem(&error.to_string()));
        let answer: Arc<str> = answer.into();
        kept.keep(wanted, &answer);
        answer
    }
}

/// Answers that were given, as long as there is room for them.
#[derive(Default)]
struct Kept {
    answers: HashMap<Wanted, Arc<str>>,
    size: usize,
}

impl Kept {
    fn keep(&mut self, wanted: Wanted, answer: &Arc<str>) {
        if self.size + answer.len() > MOST_KEPT {
            self.answers.clear();
            self.size = 0;
        }
        self.size += answer.len();
        self.answers.insert(wanted, Arc::clone(answer));
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
