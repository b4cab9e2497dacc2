//! From the callbacks of a thread to the course of its exceptions.
//!
//! Exceptions nest: while a filter, a finally or a catch block runs, others may be thrown. So each thread
//! has a stack of exceptions under way, and a callback is about the topmost, or about the topmost whose
//! block it ends. The runtime does not tell everything: nothing is said when an exception leaves a block
//! for good, when the runtime itself catches, or at the end of a program that nobody saved. And up to .NET 9 it
//! tells of a function twice when one of its blocks is on the stack. All that is made up for here.

use clrscope_recording::events::{EntityRef, Kind, Record, Records, Tag};
use clrscope_recording::model::{EventArena, Process, Thread};
use clrscope_recording::upgrade::ExceptionStacks;
use rustc_hash::FxHashMap;

use super::{Arguments, CallStack, Exception, Filter, Inner};
use crate::events::EventNames;
use crate::function::FunctionRef;

/// Reconstructs the exceptions of a process. Numbers count from 1 in the order of threads.
pub(super) fn exceptions<'a>(
    process: &'a Process,
    arena: &'a EventArena,
    names: &EventNames<'a>,
) -> Vec<Exception<'a>> {
    let twice = [".NET 8.", ".NET 9."].iter().any(|version| process.runtime.starts_with(version));
    let mut timeline = Timeline {
        process,
        names,
        twice,
        stacks: ExceptionStacks::read(process, arena),
        each: Vec::new(),
        by_address: FxHashMap::default(),
    };
    for (thread, chunks) in arena.by_thread() {
        let mut thread =
            OnThread { thread: process.threads.get(thread as usize), under_way: Vec::new(), arguments: Vec::new() };
        chunks.into_iter().flat_map(Records::new).for_each(|record| thread.take(&mut timeline, &record));
        thread.finish(&mut timeline);
    }
    timeline.each
}

/// The exceptions of a process, as far as its records have been read.
struct Timeline<'a, 'n> {
    process: &'a Process,
    names: &'n EventNames<'a>,
    twice: bool,
    stacks: ExceptionStacks,
    each: Vec<Exception<'a>>,
    /// The last throw of the object at each address.
    by_address: FxHashMap<u64, usize>,
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

struct OnThread<'a> {
    thread: Option<&'a Thread>,
    under_way: Vec<UnderWay>,
    /// Arguments of the next throw's frames, by their place in the stack.
    arguments: Vec<(usize, Arguments<'a>)>,
}

impl<'a> Timeline<'a, '_> {
    fn function(&self, entity: EntityRef) -> FunctionRef<'a> {
        FunctionRef::of(self.process, self.names.function(Tag::FUNCTION, entity))
    }

    fn type_name(&self, tag: Tag, entity: Option<EntityRef>) -> &'a str {
        entity.and_then(|entity| self.names.name(tag, entity)).unwrap_or("(unknown)")
    }
}

impl<'a> OnThread<'a> {
    fn take(&mut self, timeline: &mut Timeline<'a, '_>, record: &Record<'a>) {
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
            (Kind::EXCEPTION_CATCHER_LEAVE, _) => self.block_ends(timeline, Block::Catch),
            (Kind::EXCEPTION_CLR_CATCHER_FOUND | Kind::EXCEPTION_CLR_CATCHER_EXECUTE, _) => {
                if let Some(top) = self.under_way.last() {
                    timeline.each[top.exception].caught_by_runtime = true;
                }
            }
            _ => {}
        }
    }

    fn thrown(&mut self, timeline: &mut Timeline<'a, '_>, record: &Record<'a>) {
        // With no block running nothing of the program's runs, so the last one is over: the runtime has it.
        while self.under_way.last().is_some_and(|top| top.block.is_none()) {
            self.given_up(timeline);
        }
        let address = record.number(Tag::OBJECT).unwrap_or(0);
        let exception = timeline.each.len();
        let class = record.entity(Tag::CLASS);
        let again = self.under_way.iter().rev().find(|outer| outer.address == address);
        timeline.each.push(Exception {
            process: timeline.process,
            thread: self.thread,
            number: exception as u32 + 1,
            time_ns: timeline.process.started_ns.saturating_add(record.time_ns),
            type_name: timeline.type_name(Tag::CLASS, class),
            message: None,
            stack: CallStack::new(timeline.process, timeline.stacks.table(), 0),
            stack_cut: false,
            search: Vec::new(),
            filters: Vec::new(),
            unwound: Vec::new(),
            finally: Vec::new(),
            catcher: None,
            caught_by_runtime: false,
            unhandled: false,
            rethrow_of: again.filter(|_| address != 0).map(|outer| outer.exception as u32 + 1),
            replaced_by: None,
            inner: None,
            throw_to_catch_ns: None,
        });
        self.under_way.push(UnderWay { exception, address, block: None, catcher: None });
        Self::says(timeline, record, exception, address);
        timeline.each[exception].stack.arguments.extend(self.arguments.drain(..));
    }

    fn arguments(&mut self, record: &Record<'a>, function: u32) {
        let position = record.number(Tag::POSITION).and_then(|position| usize::try_from(position).ok());
        if let (Some(position), Some(bytes)) = (position, record.opaque(Tag::ARGUMENTS)) {
            self.arguments.push((position, Arguments { function, bytes }));
        }
    }

    /// Enters message, inner exception and stack.
    fn says(timeline: &mut Timeline<'a, '_>, record: &Record<'a>, at: usize, address: u64) {
        let number_at = |address: u64| timeline.by_address.get(&address).map(|&exception| exception as u32 + 1);
        // An object that carries a stack trace was thrown before, here or on another thread.
        let before = number_at(address).filter(|_| record.number(Tag::ANSWER) == Some(1));
        let inner = record.number(Tag::INNER_OBJECT).map(|address| Inner {
            type_name: timeline.type_name(Tag::CLASS, record.entity(Tag::INNER_CLASS)),
            number: number_at(address),
        });
        let stack = CallStack::new(timeline.process, timeline.stacks.table(), timeline.stacks.of(record));
        let same_type = |number: u32| timeline.each[number as usize - 1].type_name == timeline.each[at].type_name;
        let before = before.filter(|&number| same_type(number));
        let exception = &mut timeline.each[at];
        exception.message = record.text(Tag::MESSAGE);
        (exception.stack_cut, exception.stack) = (stack.is_cut(), stack);
        exception.rethrow_of = exception.rethrow_of.or(before);
        exception.inner = inner;
        timeline.by_address.insert(address, at);
    }

    /// Whether the runtime tells of `function` a second time because one of its blocks is on the stack.
    fn is_twice(&self, timeline: &Timeline<'a, '_>, list: &[FunctionRef<'a>], function: EntityRef) -> bool {
        let last = list.last().is_some_and(|last| std::ptr::eq(last.function, timeline.function(function).function));
        let outer = self.under_way.iter().rev().skip(1);
        timeline.twice && last && outer.filter_map(|outer| outer.block).any(|(_, owner)| owner == function.index)
    }

    fn search(&mut self, timeline: &mut Timeline<'a, '_>, function: EntityRef) {
        self.answered(timeline, None);
        let Some(top) = self.under_way.last() else { return };
        if !self.is_twice(timeline, &timeline.each[top.exception].search, function) {
            let function = timeline.function(function);
            timeline.each[top.exception].search.push(function);
        }
    }

    /// Settles the answer of the last filter that ran.
    fn answered(&mut self, timeline: &mut Timeline<'a, '_>, catcher: Option<EntityRef>) {
        let Some(top) = self.under_way.last() else { return };
        let catcher = catcher.map(|catcher| timeline.function(catcher));
        if let Some(filter) = timeline.each[top.exception].filters.last_mut() {
            let accepted = catcher.is_some_and(|catcher| std::ptr::eq(catcher.function, filter.function.function));
            filter.accepted.get_or_insert(accepted);
        }
    }

    fn filter(&mut self, timeline: &mut Timeline<'a, '_>, function: EntityRef) {
        self.answered(timeline, None);
        let Some(top) = self.under_way.last_mut() else { return };
        top.block = Some((Block::Filter, function.index));
        let filter = Filter { function: timeline.function(function), accepted: None };
        timeline.each[top.exception].filters.push(filter);
    }

    fn catcher_found(&mut self, timeline: &mut Timeline<'a, '_>, function: EntityRef) {
        self.answered(timeline, Some(function));
        let Some(top) = self.under_way.last_mut() else { return };
        top.catcher = Some(function.index);
        timeline.each[top.exception].catcher = Some(timeline.function(function));
    }

    fn unwind(&mut self, timeline: &mut Timeline<'a, '_>, function: EntityRef) {
        self.answered(timeline, None);
        let Some(top) = self.under_way.last() else { return };
        let exception = top.exception;
        if self.is_twice(timeline, &timeline.each[exception].unwound, function) {
            return;
        }
        let unwound = timeline.function(function);
        timeline.each[exception].unwound.push(unwound);
        self.replace(timeline, exception, function.index, top.catcher == Some(function.index));
    }

    /// A block of `function` ran for an outer exception, and its frame goes: that exception is over. Where
    /// the function catches, its frame stays and only a finally block can have been left.
    fn replace(&mut self, timeline: &mut Timeline<'a, '_>, by: usize, function: u32, catches: bool) {
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
        let exception = &mut timeline.each[over.exception];
        if exception.throw_to_catch_ns.is_none() {
            exception.replaced_by = Some(by as u32 + 1);
            exception.catcher = None;
        }
    }

    fn finally(&mut self, timeline: &mut Timeline<'a, '_>, function: EntityRef) {
        let Some(top) = self.under_way.last_mut() else { return };
        top.block = Some((Block::Finally, function.index));
        let function = timeline.function(function);
        timeline.each[top.exception].finally.push(function);
    }

    fn caught(&mut self, timeline: &mut Timeline<'a, '_>, record: &Record<'a>, function: EntityRef) {
        let mine =
            self.under_way.iter().rposition(|outer| outer.block.is_none() && outer.catcher == Some(function.index));
        let Some(at) = mine.or(self.under_way.len().checked_sub(1)) else { return };
        while self.under_way.len() > at + 1 {
            self.given_up(timeline);
        }
        let catcher = timeline.function(function);
        let top = &mut self.under_way[at];
        top.block = Some((Block::Catch, function.index));
        top.address = record.number(Tag::OBJECT).unwrap_or(top.address);
        timeline.by_address.insert(top.address, top.exception);
        let exception = &mut timeline.each[top.exception];
        let now = timeline.process.started_ns.saturating_add(record.time_ns);
        exception.throw_to_catch_ns = Some(now.saturating_sub(exception.time_ns));
        exception.catcher = Some(catcher);
        // The unwind reached the catcher, whose frame stays.
        exception.unwound.pop_if(|last| std::ptr::eq(last.function, catcher.function));
    }

    /// The topmost block of this kind has ended, and with it everything that was thrown within.
    fn block_ends(&mut self, timeline: &mut Timeline<'a, '_>, block: Block) {
        let runs = |outer: &UnderWay| outer.block.is_some_and(|(running, _)| running == block);
        let Some(at) = self.under_way.iter().rposition(runs) else { return };
        while self.under_way.len() > at + 1 {
            self.given_up(timeline);
        }
        if block == Block::Catch {
            self.under_way.pop();
        } else {
            self.under_way[at].block = None;
        }
    }

    /// The topmost exception is over and no catcher of the program's was entered.
    fn given_up(&mut self, timeline: &mut Timeline<'a, '_>) {
        if let Some(over) = self.under_way.pop()
            && timeline.each[over.exception].throw_to_catch_ns.is_none()
            && timeline.each[over.exception].replaced_by.is_none()
        {
            timeline.each[over.exception].caught_by_runtime = true;
        }
    }

    /// The thread's records end here.
    fn finish(self, timeline: &mut Timeline<'a, '_>) {
        for over in self.under_way {
            let exception = &mut timeline.each[over.exception];
            let open =
                exception.throw_to_catch_ns.is_none() && exception.replaced_by.is_none() && exception.catcher.is_none();
            // The last one of a thread in a program that did not end in order: nobody saved it.
            exception.unhandled = open && !timeline.process.complete;
            exception.caught_by_runtime |= open && timeline.process.complete && !exception.unwound.is_empty();
        }
    }
}
