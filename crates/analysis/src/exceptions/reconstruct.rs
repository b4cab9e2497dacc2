//! Reconstruction of exceptions from the callbacks of a thread.
//!
//! Exceptions nest: while a filter, a finally or a catch block runs, other exceptions may be
//! thrown. So each thread has a stack of exceptions under way. A callback belongs to the topmost
//! one, or to the topmost one whose block it ends. The runtime does not report everything: there is
//! no callback when an exception leaves a block for good, when the runtime itself catches an
//! exception, or when the program ends by an unhandled exception. And up to .NET 9 the runtime
//! reports a function twice when one of its blocks is on the stack. The code here corrects for all
//! of these.

use clrscope_recording::events::{EntityRef, Kind, OwnedRecord, Record, Tag};
use clrscope_recording::model::Thread;

use super::timeline::{Timeline, number};
use super::{Arena, Arguments, CallStack, Exception, Filter, Inner, is_thrown_again, stack_of};
use crate::events::{Cursor, Stream};
use crate::function::FunctionRef;

/// The threads of a process. `process` is the number of the process among the processes that are
/// walked.
pub(super) fn threads<'l>(process: usize, of: &'l Arena<'l>) -> impl Iterator<Item = OnThread<'l>> {
    let runtime = &of.process.runtime;
    let twice = [".NET 8.", ".NET 9."].iter().any(|version| runtime.starts_with(version));
    of.arena.by_thread().into_iter().map(move |(thread, chunks)| OnThread {
        of,
        process,
        twice,
        thread: of.process.threads.get(thread as usize),
        cursor: Cursor::new(chunks),
        under_way: Vec::new(),
        arguments: Vec::new(),
    })
}

/// A block that runs for an exception.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Block {
    Filter,
    Finally,
    Catch,
}

/// An exception that is not over.
struct UnderWay {
    exception: usize,
    address: u64,
    block: Option<(Block, u32)>,
    catcher: Option<u32>,
}

/// The records of one thread, as far as they have been read.
pub(super) struct OnThread<'a> {
    of: &'a Arena<'a>,
    /// Number of the process.
    process: usize,
    /// Whether the runtime reports some functions twice.
    twice: bool,
    thread: Option<&'a Thread>,
    cursor: Cursor<'a>,
    under_way: Vec<UnderWay>,
    /// Arguments of the next throw's frames, by the position of the frame in the stack.
    arguments: Vec<(usize, Arguments)>,
}

impl Stream for OnThread<'_> {
    fn time_ns(&mut self) -> Option<u64> {
        let time_ns = self.cursor.record()?.time_ns;
        Some(self.of.process.started_ns.saturating_add(time_ns))
    }

    fn unload(&mut self) {
        self.cursor.unload();
    }
}

impl<'a> OnThread<'a> {
    fn function(&self, entity: EntityRef) -> FunctionRef<'a> {
        FunctionRef::new(self.of.process, self.of.names.function(Tag::FUNCTION, entity))
    }

    fn type_name(&self, tag: Tag, entity: Option<EntityRef>) -> &'a str {
        entity.and_then(|entity| self.of.names.name(tag, entity)).unwrap_or("(unknown)")
    }

    /// Applies the next record. After the last one, the thread's exceptions are over.
    pub(super) fn step(&mut self, timeline: &mut Timeline<'a>) {
        let Some(record) = self.cursor.record().map(|record| OwnedRecord::from(&record)) else { return };
        self.apply(timeline, &record.record());
        self.cursor.advance();
        if self.cursor.record().is_none() {
            self.finish(timeline);
        }
    }

    fn apply(&mut self, timeline: &mut Timeline<'a>, record: &Record<'_>) {
        let function = record.entity(Tag::FUNCTION);
        match (record.kind, function) {
            (Kind::EXCEPTION_THROWN, _) => self.thrown(timeline, record),
            (Kind::EXCEPTION_ARGUMENTS, Some(function)) => self.arguments(record, function.index),
            (Kind::EXCEPTION_SEARCH_FUNCTION_ENTER, Some(function)) => self.search(timeline, function),
            (Kind::EXCEPTION_SEARCH_FILTER_ENTER, Some(function)) => self.filter(timeline, function),
            (Kind::EXCEPTION_SEARCH_FILTER_LEAVE, _) => self.block_ends(timeline, Block::Filter),
            (Kind::EXCEPTION_SEARCH_CATCHER_FOUND, Some(function)) => self.catcher_found(timeline, function),
            (Kind::EXCEPTION_UNWIND_FUNCTION_ENTER, Some(function)) => self.unwind(timeline, function),
            (Kind::EXCEPTION_UNWIND_FINALLY_ENTER, Some(function)) => self.finally(timeline, function),
            (Kind::EXCEPTION_UNWIND_FINALLY_LEAVE, _) => self.block_ends(timeline, Block::Finally),
            (Kind::EXCEPTION_CATCHER_ENTER, Some(function)) => self.caught(timeline, record, function),
            (Kind::EXCEPTION_CATCHER_LEAVE, _) => {
                self.clause_known(timeline, record);
                self.block_ends(timeline, Block::Catch);
            }
            (Kind::EXCEPTION_CLR_CATCHER_FOUND | Kind::EXCEPTION_CLR_CATCHER_EXECUTE, _) => {
                if let Some(top) = self.under_way.last() {
                    timeline[top.exception].caught_by_runtime = true;
                }
            }
            _ => {}
        }
    }

    fn thrown(&mut self, timeline: &mut Timeline<'a>, record: &Record<'_>) {
        // Without a running block no code of the program runs. So the last exception is over: the
        // runtime has caught it.
        while self.under_way.last().is_some_and(|top| top.block.is_none()) {
            self.given_up(timeline);
        }
        let address = record.number(Tag::OBJECT).unwrap_or(0);
        let exception = timeline.next();
        let class = record.entity(Tag::CLASS);
        let rethrown = is_thrown_again(record);
        let again = self.under_way.iter().rev().find(|outer| rethrown && outer.address == address);
        timeline.push(Exception {
            process: self.of.process,
            thread: self.thread,
            number: number(exception),
            time_ns: self.of.process.started_ns.saturating_add(record.time_ns),
            type_name: self.type_name(Tag::CLASS, class),
            message: None,
            stack: CallStack::new(self.of.process, &self.of.process.stacks, 0),
            stack_cut: false,
            search: Vec::new(),
            filters: Vec::new(),
            unwound: Vec::new(),
            finally: Vec::new(),
            catcher: None,
            caught_by_runtime: false,
            unhandled: false,
            rethrown,
            rethrow_of: again.filter(|_| address != 0).map(|outer| number(outer.exception)),
            replaced_by: None,
            inner: None,
            throw_to_catch_ns: None,
        });
        self.under_way.push(UnderWay { exception, address, block: None, catcher: None });
        self.says(timeline, record, exception, address);
        timeline[exception].stack.arguments.extend(self.arguments.drain(..));
    }

    fn arguments(&mut self, record: &Record<'_>, function: u32) {
        let position = record.number(Tag::POSITION).and_then(|position| usize::try_from(position).ok());
        if let (Some(position), Some(bytes)) = (position, record.opaque(Tag::ARGUMENTS)) {
            self.arguments.push((position, Arguments { function, bytes: bytes.into() }));
        }
    }

    /// Sets message, inner exception and stack.
    fn says(&self, timeline: &mut Timeline<'a>, record: &Record<'_>, at: usize, address: u64) {
        // An object that was thrown before, here or on another thread.
        let before = timeline.at_address(self.process, address).filter(|_| is_thrown_again(record));
        let inner = record.number(Tag::INNER_OBJECT).map(|address| Inner {
            type_name: self.type_name(Tag::CLASS, record.entity(Tag::INNER_CLASS)),
            number: timeline.at_address(self.process, address).map(|throw| throw.number),
        });
        let stack = CallStack::new(self.of.process, &self.of.process.stacks, stack_of(record));
        let before = before.filter(|throw| throw.type_name == timeline[at].type_name);
        let exception = &mut timeline[at];
        exception.message = record.text(Tag::MESSAGE).map(Into::into);
        (exception.stack_cut, exception.stack) = (stack.is_cut(), stack);
        exception.rethrow_of = exception.rethrow_of.or(before.map(|throw| throw.number));
        exception.inner = inner;
        timeline.lies_at(self.process, address, at);
    }

    /// Whether the runtime reports `function` a second time because one of its blocks is on the
    /// stack.
    fn is_twice(&self, list: &[FunctionRef<'a>], function: EntityRef) -> bool {
        let last = list.last().is_some_and(|last| std::ptr::eq(last.function, self.function(function).function));
        let outer = self.under_way.iter().rev().skip(1);
        self.twice && last && outer.filter_map(|outer| outer.block).any(|(_, owner)| owner == function.index)
    }

    fn search(&mut self, timeline: &mut Timeline<'a>, function: EntityRef) {
        self.answered(timeline, None);
        let Some(top) = self.under_way.last() else { return };
        if !self.is_twice(&timeline[top.exception].search, function) {
            let function = self.function(function);
            timeline[top.exception].search.push(function);
        }
    }

    /// Sets the answer of the last filter that ran.
    fn answered(&mut self, timeline: &mut Timeline<'a>, catcher: Option<EntityRef>) {
        let Some(top) = self.under_way.last() else { return };
        let catcher = catcher.map(|catcher| self.function(catcher));
        if let Some(filter) = timeline[top.exception].filters.last_mut() {
            let accepted = catcher.is_some_and(|catcher| std::ptr::eq(catcher.function, filter.function.function));
            filter.accepted.get_or_insert(accepted);
        }
    }

    fn filter(&mut self, timeline: &mut Timeline<'a>, function: EntityRef) {
        self.answered(timeline, None);
        let filter = Filter { function: self.function(function), accepted: None };
        let Some(top) = self.under_way.last_mut() else { return };
        top.block = Some((Block::Filter, function.index));
        timeline[top.exception].filters.push(filter);
    }

    fn catcher_found(&mut self, timeline: &mut Timeline<'a>, function: EntityRef) {
        self.answered(timeline, Some(function));
        let catcher = self.function(function);
        let Some(top) = self.under_way.last_mut() else { return };
        top.catcher = Some(function.index);
        timeline[top.exception].catcher = Some(catcher);
    }

    fn unwind(&mut self, timeline: &mut Timeline<'a>, function: EntityRef) {
        self.answered(timeline, None);
        let Some(top) = self.under_way.last() else { return };
        let exception = top.exception;
        if self.is_twice(&timeline[exception].unwound, function) {
            return;
        }
        let unwound = self.function(function);
        timeline[exception].unwound.push(unwound);
        self.replace(timeline, exception, function.index, top.catcher == Some(function.index));
    }

    /// The frame of `function` is unwound. If one of its blocks ran for an outer exception, that
    /// exception is over. If `function` catches, its frame stays, so only a finally block can have
    /// been left.
    fn replace(&mut self, timeline: &mut Timeline<'a>, by: usize, function: u32, catches: bool) {
        let left = |outer: &UnderWay| {
            outer.exception != by
                && match outer.block {
                    Some((Block::Finally, owner)) => owner == function,
                    Some((Block::Catch, owner)) => owner == function && !catches,
                    _ => false,
                }
        };
        let Some(at) = self.under_way.iter().rposition(left) else { return };
        let over = self.under_way.remove(at);
        let exception = &mut timeline[over.exception];
        if exception.throw_to_catch_ns.is_none() {
            exception.replaced_by = Some(number(by));
            exception.catcher = None;
        }
        timeline.is_over(over.exception);
    }

    fn finally(&mut self, timeline: &mut Timeline<'a>, function: EntityRef) {
        let finally = self.function(function);
        let Some(top) = self.under_way.last_mut() else { return };
        top.block = Some((Block::Finally, function.index));
        timeline[top.exception].finally.push(finally);
    }

    fn caught(&mut self, timeline: &mut Timeline<'a>, record: &Record<'_>, function: EntityRef) {
        let mine =
            self.under_way.iter().rposition(|outer| outer.block.is_none() && outer.catcher == Some(function.index));
        let Some(at) = mine.or(self.under_way.len().checked_sub(1)) else { return };
        while self.under_way.len() > at + 1 {
            self.given_up(timeline);
        }
        let catcher = self.function(function);
        let top = &mut self.under_way[at];
        top.block = Some((Block::Catch, function.index));
        top.address = record.number(Tag::OBJECT).unwrap_or(top.address);
        timeline.lies_at(self.process, top.address, top.exception);
        let exception = &mut timeline[top.exception];
        let now = self.of.process.started_ns.saturating_add(record.time_ns);
        exception.throw_to_catch_ns = Some(now.saturating_sub(exception.time_ns));
        exception.catcher = Some(catcher);
        // The unwind reached the catcher, whose frame stays.
        exception.unwound.pop_if(|last| std::ptr::eq(last.function, catcher.function));
    }

    /// A catch block ends, and the record says whether its clause has a filter. If the last filter
    /// ran in the catching function, this is the filter's answer: if it refused the exception,
    /// another clause of the function has caught it.
    fn clause_known(&self, timeline: &mut Timeline<'a>, record: &Record<'_>) {
        let Some(has_filter) = record.number(Tag::HAS_FILTER) else { return };
        let is_caught = |outer: &&UnderWay| matches!(outer.block, Some((Block::Catch, _)));
        let Some(caught) = self.under_way.iter().rev().find(is_caught) else { return };
        let exception = &mut timeline[caught.exception];
        if let (Some(catcher), Some(last)) = (exception.catcher, exception.filters.last_mut())
            && std::ptr::eq(last.function.function, catcher.function)
        {
            last.accepted = Some(has_filter == 1);
        }
    }

    /// The topmost block of this kind has ended, and with it all exceptions that were thrown within
    /// it.
    fn block_ends(&mut self, timeline: &mut Timeline<'a>, block: Block) {
        let runs = |outer: &UnderWay| outer.block.is_some_and(|(running, _)| running == block);
        let Some(at) = self.under_way.iter().rposition(runs) else { return };
        while self.under_way.len() > at + 1 {
            self.given_up(timeline);
        }
        if block == Block::Catch {
            let over = self.under_way.pop();
            over.iter().for_each(|over| timeline.is_over(over.exception));
        } else {
            self.under_way[at].block = None;
        }
    }

    /// The topmost exception is over, and no catch block of the program was entered.
    fn given_up(&mut self, timeline: &mut Timeline<'a>) {
        let Some(over) = self.under_way.pop() else { return };
        let exception = &mut timeline[over.exception];
        if exception.throw_to_catch_ns.is_none() && exception.replaced_by.is_none() {
            exception.caught_by_runtime = true;
        }
        timeline.is_over(over.exception);
    }

    /// The thread's records end here.
    fn finish(&mut self, timeline: &mut Timeline<'a>) {
        for over in self.under_way.drain(..) {
            let exception = &mut timeline[over.exception];
            let open =
                exception.throw_to_catch_ns.is_none() && exception.replaced_by.is_none() && exception.catcher.is_none();
            // The last exception of a thread in a program that did not end in order: it was
            // unhandled.
            exception.unhandled = open && !self.of.process.complete;
            exception.caught_by_runtime |= open && self.of.process.complete && !exception.unwound.is_empty();
            timeline.is_over(over.exception);
        }
    }
}
