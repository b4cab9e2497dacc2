//! The walk from the box of an async method to its awaiters.

use std::hash::{DefaultHasher, Hasher as _};

use clr_profiler::FunctionId;
use clrscope_recording::model::{ChainEnd, StackFrame, Tier};

use super::Awaiters;
use super::core_types::{ChainReader, CoreTypes};
use super::machines::{BoxClass, Builder, Source, TaskClass};
use super::memory::ObjectMemory;

/// Most objects between two boxes.
const MOST_BETWEEN: usize = 64;
/// Most elements of a list of continuations that are read: removed ones leave empty elements.
const MOST_ELEMENTS: usize = 64;

/// A chain of awaiters. By default nothing is known about it.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Chain {
    /// Indices of the functions, from the direct awaiter of the resumed method outwards, and the IL
    /// offsets of their awaits where known.
    functions: Vec<(u32, Option<u32>)>,
    /// How the chain ends.
    pub end: ChainEnd,
    /// Whether the first box is used again, with another awaiter.
    is_of_used_again: bool,
}

impl Chain {
    /// Whether nothing is known about the chain.
    pub fn is_unknown(&self) -> bool {
        self.functions.is_empty() && self.end == ChainEnd::Unknown
    }

    /// Whether the chain stays the same for as long as the method runs: the end of the chain is
    /// known and does not change, and another run would have another box.
    pub(crate) fn is_final(&self) -> bool {
        !self.is_of_used_again && !matches!(self.end, ChainEnd::Unknown | ChainEnd::NotAwaitedYet)
    }

    /// The frames of the methods in the chain.
    pub(crate) fn frames(&self) -> Vec<StackFrame> {
        let frame = |&(function, il_offset): &(u32, Option<u32>)| StackFrame::Method {
            function,
            il_offset,
            il_span: 0,
            tier: Tier::Awaiting,
        };
        self.functions.iter().map(frame).collect()
    }

    /// A hash of the chain.
    pub(crate) fn mixed(&self) -> u64 {
        let mut mix = DefaultHasher::new();
        for (function, place) in &self.functions {
            mix.write_u64(u64::from(*function) << 32 | u64::from(place.unwrap_or(u32::MAX)));
        }
        mix.write_u64(u64::from(self.end as u32) | 1 << 32);
        mix.finish()
    }
}

/// The object behind a continuation.
enum Next {
    /// A task, with its class if it is a box.
    Task(usize, Option<BoxClass>),
    End(ChainEnd),
}

impl Awaiters {
    /// Follows the chain; `None` if the method's own box is not found.
    pub(super) fn follow(&self, reader: ChainReader<'_>, function: FunctionId, this: usize) -> Option<Chain> {
        let method = self.method(function, reader.questions)?;
        let (mut task, first) = self.box_of(reader, method, this)?;
        let mut chain = Chain { is_of_used_again: first.is_used_again(), ..Chain::default() };
        let mut class = Some(first);
        loop {
            match self.awaiter(reader, task, class.as_ref()) {
                Next::End(end) => {
                    chain.end = end;
                    return Some(chain);
                }
                Next::Task(next, found) => {
                    if chain.functions.len() >= ChainEnd::MOST_LINKS {
                        chain.end = ChainEnd::Longer;
                        return Some(chain);
                    }
                    let waits = |class: &BoxClass| (class.function, class.place_of_await(reader.memory, next));
                    chain.functions.extend(found.as_ref().map(waits));
                    (task, class) = (next, found);
                }
            }
        }
    }

    /// The next box that awaits a task, or the end. `class` is that of the task's own method, if
    /// the task belongs to a method.
    fn awaiter(&self, reader: ChainReader<'_>, task: usize, class: Option<&BoxClass>) -> Next {
        let (mut task, mut builder) = (task, class.map(|class| class.builder));
        if let Some((class, Builder::Source(source))) = class.zip(builder) {
            match self.behind_source(reader, class, (task, source)) {
                Next::Task(next, None) => (task, builder) = (next, None),
                found => return found,
            }
        }
        for _ in 0..MOST_BETWEEN {
            let Some(continuation) = reader.memory.word(task + reader.core.task.field) else {
                return Next::End(ChainEnd::Unknown);
            };
            if continuation == 0 {
                return Next::End(match builder {
                    Some(Builder::Void) => ChainEnd::NotAwaited,
                    Some(Builder::Source(_) | Builder::Other) => ChainEnd::Unknown,
                    // For a task between methods, such as that of `WhenAll`, the end is the same as
                    // for a method.
                    Some(Builder::Task) | None => ChainEnd::NotAwaitedYet,
                });
            }
            match self.task_behind(reader, continuation) {
                Next::Task(next, None) => (task, builder) = (next, None),
                found => return found,
            }
        }
        Next::End(ChainEnd::Unknown)
    }

    /// The object that awaits the value task of a source, or the end.
    fn behind_source(&self, reader: ChainReader<'_>, class: &BoxClass, at: (usize, Source)) -> Next {
        if matches!(reader.memory, ObjectMemory::Later) {
            return Next::End(ChainEnd::Unknown);
        }
        match class.in_source(reader.memory, at) {
            Some((0, 0)) => Next::End(ChainEnd::NotAwaitedYet),
            Some((_, state)) if state != 0 => self.task_behind(reader, state),
            _ => Next::End(ChainEnd::Unknown),
        }
    }

    /// The task that a continuation leads to: the box of a method, or a task with a continuation of
    /// its own.
    fn task_behind(&self, reader: ChainReader<'_>, continuation: usize) -> Next {
        let mut object = continuation;
        for _ in 0..MOST_BETWEEN {
            match self.as_task(reader, object) {
                Some(TaskClass::Box(class)) => return Next::Task(object, Some(class)),
                Some(TaskClass::Plain) => return Next::Task(object, None),
                Some(TaskClass::Unknown) => break,
                Some(TaskClass::Other) | None => {}
            }
            let ChainReader { core, memory, .. } = reader;
            let Some(class) = memory.word(object).filter(|_| object.is_multiple_of(8)) else { break };
            let field = |offset: usize| memory.word(object + offset).filter(|next| *next != 0);
            let next = match class {
                _ if class == core.object => return Next::End(ChainEnd::Unknown),
                _ if class == core.blocked_thread => return Next::End(ChainEnd::Thread),
                _ if class == core.action.class => field(core.action.field),
                _ if class == core.wrapper.class => field(core.wrapper.field),
                _ if core.list.is_some_and(|list| list.class == class) => {
                    core.list.and_then(|list| first_element(memory, field(list.field)?))
                }
                _ => self.continuation_field(core, class).and_then(field),
            };
            let Some(next) = next else { break };
            object = next;
        }
        Next::End(ChainEnd::Unknown)
    }

    /// The field by which objects of a class lead on, if it is a continuation class or derived from
    /// one.
    fn continuation_field(&self, core: &CoreTypes, class: usize) -> Option<usize> {
        let bases = [core.await_continuation, core.continue_with];
        let base = bases.into_iter().find(|base| CoreTypes::derives(class, base.class))?;
        if class != base.class {
            self.note_continuation(class, base.field);
        }
        Some(base.field)
    }
}

/// The first element of an array of objects that is not null. Of several awaiters, one is charged.
fn first_element(memory: ObjectMemory<'_>, array: usize) -> Option<usize> {
    const LENGTH: usize = 8;
    const ELEMENTS: usize = 16;
    let length = memory.word(array + LENGTH)? as u32 as usize;
    (0..length.min(MOST_ELEMENTS))
        .find_map(|number| memory.word(array + ELEMENTS + number * 8).filter(|next| *next != 0))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn chains_have_the_same_number_only_where_they_are_the_same() {
        const ONE: (u32, Option<u32>) = (1, Some(7));
        const TWO: (u32, Option<u32>) = (2, Some(7));
        let chain = |functions: &[(u32, Option<u32>)], end| {
            Chain { functions: functions.to_vec(), end, ..Chain::default() }.mixed()
        };
        let all = [
            chain(&[], ChainEnd::Unknown),
            chain(&[], ChainEnd::NotAwaited),
            chain(&[ONE], ChainEnd::Unknown),
            chain(&[ONE, TWO], ChainEnd::Unknown),
            chain(&[TWO, ONE], ChainEnd::Unknown),
            chain(&[(1, None)], ChainEnd::Unknown),
        ];
        let different: std::collections::HashSet<u64> = all.into_iter().collect();
        assert_eq!(different.len(), all.len());
        assert_eq!(chain(&[ONE, TWO], ChainEnd::Thread), chain(&[ONE, TWO], ChainEnd::Thread));
    }

    #[test]
    fn the_first_element_that_is_there_is_taken() {
        let array = std::hint::black_box([7_usize, 3, 0, 0x1230, 0x4560]);
        assert_eq!(first_element(ObjectMemory::Live, array.as_ptr().expose_provenance()), Some(0x1230));
        let array = std::hint::black_box([7_usize, 1, 0, 0x1230]);
        assert_eq!(first_element(ObjectMemory::Live, array.as_ptr().expose_provenance()), None);
    }
}
