//! The stacks of a running process: its threads, and its pending async operations.
//!
//! This is not a view of stored recordings: `clrscope stacks` makes a temporary recording.

use std::collections::HashMap;
use std::io;

use clrscope_analysis::{
    BlockedThread, Conditions, Frame, FunctionRef, HeapQuery, Heaps, PendingOperations, QueryProblem, ThreadStack,
    pending_operations, thread_stacks,
};
use clrscope_recording::model::{FunctionKind, Recording, ThreadState};
use clrscope_symbols::Lines;
use serde_json::Value;

use super::pending_frame::LocatedFrame;
use super::sources::file_and_line;
use super::stack_frame::json_frame;
use super::{heap, nothing};
use crate::cell::{Cell, Kind};
use crate::column::{Column, Row, RowKind, Sheet};
use crate::render::{Layout, Renderer, Section, Style, Tail, Title};
use crate::request::{Flag, Request};
use crate::spot::LocatedLine;
use crate::view::{Answer, View};

/// Maximum number of frames of a thread in text.
const TEXT_FRAMES: usize = 40;

/// The view `stacks`: current threads and operations of a process.
pub static STACKS: View = View {
    name: "stacks",
    about: "Stacks of threads, with what they wait for, and async operations that wait",
    takes: &[&[Flag::Limit]],
    sorts: &[],
    text_rows: |_| None,
    has_head: false,
    layout: Layout::Rows,
    columns: |_| sheet().infos(),
    open: |recording, request, heaps| {
        let threads = thread_stacks(recording, &request.query)?;
        let pending = pending(heaps, request)?;
        Ok(Box::new(StacksAnswer { threads, pending, request: request.clone(), recording }))
    },
};

/// Pending operations, if the heap was recorded.
fn pending<'a>(heaps: &Heaps<'a>, request: &Request) -> Result<Option<PendingOperations<'a>>, QueryProblem> {
    let query = HeapQuery { query: request.query.clone(), snapshot: None };
    match pending_operations(heaps, &query) {
        Ok(found) => Ok(Some(found)),
        Err(QueryProblem::NotRecorded { .. }) => Ok(None),
        Err(problem) => Err(problem),
    }
}

struct Threads;

impl RowKind for Threads {
    type Row<'a> = ThreadEntry<'a>;
}

/// A frame with its source line, where the line is known.
type PlacedFrame<'a> = (Frame<'a>, Option<LocatedLine>);

/// The operation on which a thread blocks.
struct Blocking<'a> {
    thread: &'a BlockedThread<'a>,
    frames: Vec<LocatedFrame<'a>>,
}

impl Blocking<'_> {
    /// Lines of text: the method whose task the thread waits for, then the operations that it
    /// awaits in turn, innermost last.
    fn lines(&self) -> Vec<String> {
        let verbs = std::iter::once("blocks on").chain(std::iter::repeat("which awaits"));
        let methods = verbs.zip(self.frames.iter().rev());
        let methods = methods.map(|(verb, frame)| format!("  {verb} {}", frame.in_words()));
        // Text in brackets says that the operation does not wait.
        let last = self.thread.waits_for.as_ref().map(|what| match what.starts_with('[') {
            true => format!("  {what}"),
            false => format!("  which waits for {what}"),
        });
        methods.chain(last).collect()
    }
}

/// A thread with its frames, also as lines of text.
struct ThreadEntry<'a> {
    of: &'a ThreadStack<'a>,
    blocking: Option<Blocking<'a>>,
    frames: Vec<PlacedFrame<'a>>,
    text: Vec<String>,
}

impl<'a> ThreadEntry<'a> {
    /// Returns the entry of a thread. `shown` are the stacks above it in text, each with the first
    /// thread that has the stack.
    fn new(
        of: &'a ThreadStack<'a>,
        blocked: Option<&'a BlockedThread<'a>>,
        lines: &mut Lines,
        shown: &mut HashMap<Vec<String>, u32>,
    ) -> Self {
        let placed = |frame: Frame<'a>| {
            let line = LocatedLine::find(lines, &frame.function, frame.place);
            (frame, line)
        };
        let frames: Vec<PlacedFrame<'a>> = of.stack.iter().map(placed).collect();
        let blocking =
            blocked.map(|thread| Blocking { thread, frames: LocatedFrame::all(thread.process, &thread.frames, lines) });
        // The stacks of idle threads are all alike, so they are not shown.
        let text = if of.state == ThreadState::Idle { Vec::new() } else { text(&frames) };
        let text = match shown.get(&text) {
            Some(first) => vec![format!("  as thread {first}")],
            None => {
                // A reference to a line is no shorter than that.
                if text.len() > 1 {
                    shown.insert(text.clone(), of.thread.os_id);
                }
                text
            }
        };
        let text = blocking.iter().flat_map(Blocking::lines).chain(text).collect();
        Self { of, blocking, frames, text }
    }

    fn json_frames(&self) -> Value {
        let frame = |(frame, found): &PlacedFrame<'_>| {
            let of = &frame.function;
            let module = Some(of.module()).filter(|name| !name.is_empty());
            json_frame(of.name(), of.kind(), module, found.as_ref().map(|found| &found.line))
        };
        self.frames.iter().map(frame).collect()
    }
}

impl Row for ThreadEntry<'_> {
    fn below(&self) -> &[String] {
        &self.text
    }
}

/// Returns frames as lines, innermost first, up to the outermost method; the code that starts
/// threads and programs is left out as uninformative. Adjacent unnamed native frames of a library
/// are one line.
fn text(frames: &[PlacedFrame<'_>]) -> Vec<String> {
    let is_method = |(frame, _): &PlacedFrame<'_>| frame.function.kind() == FunctionKind::Managed;
    let shown = frames.iter().rposition(is_method).map_or(frames.len(), |outermost| outermost + 1);
    let mut all: Vec<String> = frames[..shown].iter().map(|(frame, line)| named(&frame.function, line)).collect();
    all.dedup();
    let more = all.len().saturating_sub(TEXT_FRAMES);
    if more > 0 {
        all.truncate(TEXT_FRAMES);
        all.push(format!("  [{more} more]"));
    }
    all
}

fn named(function: &FunctionRef<'_>, place: &Option<LocatedLine>) -> String {
    let name = function.folded_into().unwrap_or_else(|| function.label().into_owned());
    match place {
        Some(found) => format!("  {name}  {}", file_and_line(&found.line)),
        None => format!("  {name}"),
    }
}

fn sheet<'c>() -> Sheet<'c, Threads> {
    Sheet::new([
        Column::new("id", "id", Kind::Number, |row: &ThreadEntry<'_>| Cell::Number(row.of.thread.id.into())),
        Column::new("os_id", "thread", Kind::Number, |row: &ThreadEntry<'_>| Cell::Number(row.of.thread.os_id.into())),
        Column::new("name", "name", Kind::Text, |row: &ThreadEntry<'_>| Cell::text(&row.of.thread.name)),
        Column::new("role", "role", Kind::Text, |row: &ThreadEntry<'_>| Cell::text(row.of.thread.role.name())),
        Column::new("state", "state", Kind::Text, |row: &ThreadEntry<'_>| Cell::text(row.of.state.name())),
        Column::new("waits_for", "waits for", Kind::Text, |row: &ThreadEntry<'_>| {
            Cell::or_null(row.of.waits_for, Cell::text)
        }),
        Column::new("frames", "stack, innermost method first", Kind::Nested, |row: &ThreadEntry<'_>| {
            Cell::Nested(row.json_frames()).said(String::new())
        }),
        Column::new("blocks_on", "async methods that it blocks on", Kind::Nested, |row: &ThreadEntry<'_>| {
            Cell::or_null(row.blocking.as_ref(), |blocking| Cell::Nested(LocatedFrame::json(&blocking.frames)))
        }),
    ])
}

struct StacksAnswer<'a> {
    threads: Vec<ThreadStack<'a>>,
    pending: Option<PendingOperations<'a>>,
    request: Request,
    recording: &'a Recording,
}

impl Answer for StacksAnswer<'_> {
    fn conditions(&self) -> Option<Conditions<'_>> {
        None
    }

    fn sections(&self, renderer: &mut dyn Renderer) -> io::Result<()> {
        let sheet = sheet();
        let columns = [("os_id", 0), ("name", 1), ("role", 2), ("state", 0), ("waits_for", 0), ("frames", 0)];
        let title = Title::Bold("Threads".to_owned());
        let main = sheet.main(&self.request, "threads", Style::Table, &columns);
        let section = Section { title, nothing: nothing("thread"), what: "threads", ..main };
        renderer.section(&section, &mut |visit| {
            let (mut lines, mut shown) = (Lines::default(), HashMap::new());
            let blocked = |thread| self.pending.as_ref()?.blocked_on(thread);
            let mut entry = |thread| ThreadEntry::new(thread, blocked(thread), &mut lines, &mut shown);
            self.threads.iter().try_for_each(|thread| visit(&sheet.entry(&entry(thread))))?;
            Ok(Tail::default())
        })?;
        let Some(pending) = &self.pending else { return Ok(()) };
        let title = Title::Bold("Async operations that wait".to_owned());
        heap::show_pending_beside(pending, title, self.recording.processes.len() > 1, renderer)
    }
}
