//! Chains of awaiters: the async methods that await the method that the calling thread has resumed.
//!
//! | module | what it holds |
//! |---|---|
//! | `core_types` | the framework's types of tasks and continuations, and where their fields lie |
//! | `box_layout` | the layout of state machine boxes, with the number of their await |
//! | `machines` | the state machine boxes of async methods that wait |
//! | `memory` | the memory from which objects are read |
//! | `code` | async code by address |
//! | `resumed_frame` | chains for callbacks that follow only frame pointers |
//! | `awaits` | the positions of awaits in a method's code |
//! | `chain` | the walk from a box to its awaiters |
//!
//! A method that resumes after an `await` lives in a box, which is its task. The box is found
//! through `this` of the method's code. The code stores `this` in its frame, because its own catch
//! block needs it there. The task refers to its continuation, which is the box of the awaiting
//! method, or leads to that box. Each step checks the kind of object that it has reached. A step
//! that is not understood ends the chain as unknown: no chain is guessed.
//!
//! Chains are read in two places. One is the thread with the stack, in callbacks in which the
//! runtime keeps objects from moving (for exceptions: `EEToProfInterfaceImpl::ExceptionThrown` is
//! called in cooperative mode). The other is a thread of the agent, which checks that no object has
//! moved. Unmapped memory also ends a chain.

mod awaits;
mod box_layout;
mod chain;
mod code;
mod core_types;
mod machines;
mod memory;
mod resumed_frame;

use std::collections::HashMap;
use std::ops::Range;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

use clr_profiler::{FunctionId, ModuleId, ProfilerInfo, Token};
use clrscope_agent_base::functions::Functions;
use clrscope_agent_base::os::memory::{copy_if_there, word_if_there};
use clrscope_agent_base::unloads::Unloads;
use clrscope_contract::async_code::{CORE_LIBRARY, resumes};
use clrscope_recording::model::RemarkKind;

use crate::unwind::bytes_to_stored_this;
pub use awaits::STATES;
pub use box_layout::BoxLayout;
pub use chain::Chain;
use code::AsyncCode;
pub use core_types::task_class;
use core_types::{ChainReader, CoreTypes};
pub use machines::BUILDERS;
use machines::{AsyncMethod, TaskClass};
pub(crate) use memory::{COPIED_WORDS, CopiedObjects, ObjectMemory};
pub use resumed_frame::{LastChain, Moment, ResumedFrame, ResumedMethod};

/// Most classes and functions that wait to be looked up. Further ones are noted when they are seen
/// again.
const MOST_WANTED: usize = 1024;
/// Bytes at the beginning of a method within which it stores `this`.
const BEGINNING: usize = 160;

/// The role of a stack frame in asynchronous code.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) enum AsyncPart {
    /// No role.
    #[default]
    Other,
    /// The code of an async method, whose `this` lies `below` bytes below its frame pointer.
    Method { function: FunctionId, below: i32 },
    /// The code of an async method that may not have stored its `this` yet.
    Beginning,
    /// The framework resumes a method after an await.
    Resumption,
}

/// A method on the calling thread's stack that was resumed after an await.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Resumed {
    /// The resumed method.
    pub(crate) function: FunctionId,
    /// Address of the word in the method's frame that holds `this`.
    pub(crate) this: usize,
}

/// Whether the runtime may be queried while a chain is read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Questions {
    /// The runtime may be queried about new classes: on the thread that uses these objects, or on
    /// another thread while unloads [wait](Unloads::hold).
    Asked,
    /// The runtime must not be queried. Open queries are kept for [`Awaiters::look_up_wanted`].
    Noted,
}

/// Finds the innermost resumed method on a stack. The frames are passed to it one by one, from the
/// innermost outwards.
#[derive(Debug, Default, Clone, Copy)]
pub(crate) struct ResumedSearch {
    /// The last async method seen, with its frame pointer once that is known.
    method: Option<(FunctionId, i32, Option<usize>)>,
    is_over: bool,
    found: Option<Resumed>,
}

impl ResumedSearch {
    /// Takes the next frame, with its frame pointer if that is known.
    pub(crate) fn frame(&mut self, part: AsyncPart, frame_pointer: Option<usize>) {
        match part {
            _ if self.is_over => {}
            AsyncPart::Other => {}
            AsyncPart::Beginning => self.method = None,
            AsyncPart::Method { function, below } => self.method = Some((function, below, frame_pointer)),
            // If the resumption is not that of a box, the method inside has no box around its
            // `this`. Or the method inside was not resumed: it is the first run of another method,
            // which has no box either.
            AsyncPart::Resumption => {
                self.is_over = true;
                self.found = self.method.and_then(|(function, below, frame_pointer)| {
                    Some(Resumed { function, this: frame_pointer?.checked_add_signed(below as isize)? })
                });
            }
        }
    }

    /// Takes the stack pointer of the last frame's caller. The last frame ends below it, which
    /// tells the frame pointer of that frame.
    pub(crate) fn caller_at(&mut self, sp: usize) {
        /// Size of the return address and the saved frame pointer of the caller, to which the frame
        /// pointer points.
        const SAVED: usize = 16;
        if let Some((_, _, frame_pointer @ None)) = &mut self.method {
            *frame_pointer = sp.checked_sub(SAVED);
        }
    }

    /// The innermost resumed method, once all frames were passed.
    pub(crate) fn found(self) -> Option<Resumed> {
        self.found
    }
}

/// Fields by which objects lead from a task to its awaiter.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct FollowedFields {
    /// Offset in a task of the field to follow.
    pub(crate) task: usize,
    /// For other objects, the first word and the offset of the field to follow. The offset is 0 if
    /// the object leads no further, and has [`TO_ARRAY`] set if the field refers to an array.
    pub(crate) others: Vec<(usize, usize)>,
}

/// Marks a field that refers to an array, whose first element is the next object.
pub(crate) const TO_ARRAY: usize = 1;

/// What is known about async code in the process.
pub struct Awaiters {
    info: ProfilerInfo,
    functions: Arc<Functions>,
    core: OnceLock<Option<CoreTypes>>,
    /// Whether a stack was seen whose chain needs classes or functions that are not looked up yet.
    is_wanted: AtomicBool,
    known: Mutex<KnownClasses>,
    unloads: Arc<Unloads>,
    code: AsyncCode,
}

#[derive(Default)]
struct KnownClasses {
    /// Classes of tasks, by the first word of their objects.
    tasks: HashMap<usize, TaskClass>,
    methods: HashMap<FunctionId, AsyncMethod>,
    /// Distance in bytes from the frame pointer to `this`, in the latest compiled code of async
    /// methods. Code that takes over a running frame (OSR) leaves `this` where the earlier code has
    /// stored it.
    stored: HashMap<FunctionId, i32>,
    /// Functions of async methods, by their state machine types; `None` if the runtime doesn't
    /// know.
    code: HashMap<(ModuleId, Token), Option<FunctionId>>,
    /// State machine types whose functions were needed where no query was allowed, each with the
    /// number of unloads before.
    wanted: Vec<((ModuleId, Token), u64)>,
    /// First words of objects that may be tasks, seen where no query was allowed, each with the
    /// number of unloads before.
    wanted_classes: Vec<(usize, u64)>,
    /// Functions that may be async methods, noted in the same way.
    wanted_functions: Vec<(FunctionId, u64)>,
    /// Classes derived from continuation classes, seen in chains, with the field that leads to the
    /// next object.
    continuations: Vec<(usize, usize)>,
}

impl Awaiters {
    pub(crate) fn new(info: &ProfilerInfo, functions: &Arc<Functions>, unloads: &Arc<Unloads>) -> Self {
        Self {
            info: info.clone(),
            functions: Arc::clone(functions),
            core: OnceLock::new(),
            is_wanted: AtomicBool::new(false),
            known: Mutex::default(),
            unloads: Arc::clone(unloads),
            code: AsyncCode::default(),
        }
    }

    /// Number of unloads so far.
    pub fn unloads(&self) -> u64 {
        self.unloads.count()
    }

    fn known(&self) -> MutexGuard<'_, KnownClasses> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Call it when code was unloaded: identifiers may be reused.
    pub(crate) fn forget(&self) {
        *self.known() = KnownClasses::default();
        self.code.forget();
    }

    /// Call it when a method was compiled. Returns whether the method is async code. For the first
    /// async method, also looks up the framework's types. This can't wait for a stack walk, where
    /// objects must not move and the runtime refuses most questions.
    pub(crate) fn compiled(&self, function: FunctionId) -> bool {
        let is_method = self.method(function, Questions::Asked).is_some();
        if is_method
            && let Ok((_, module, token)) = self.info.function_place(function)
            && let Some(machine) = self.declaring_type(module, token)
        {
            self.known().code.insert((module, machine), Some(function));
            self.know_core();
        }
        let is_resumption = self.is_resumption(function);
        if is_resumption {
            self.know_pooled(function);
        }
        is_method || is_resumption
    }

    /// Looks up the class of a pooled box whose code was compiled. Its method has run by then, up
    /// to its first await.
    fn know_pooled(&self, function: FunctionId) {
        if let Some(core) = self.core.get().and_then(Option::as_ref)
            && let Some(class) = self.info.function_info(function).ok().and_then(|about| about.class)
            && core.may_be_pooled(class.as_raw())
        {
            self.find_class(core, class.as_raw());
        }
    }

    /// Notes that an async method has code that begins at an address.
    pub(crate) fn has_code(&self, function: FunctionId, start: usize) {
        if let Some(below) = stored_this(start) {
            self.known().stored.insert(function, below);
        }
    }

    fn is_resumption(&self, function: FunctionId) -> bool {
        let name = self.functions.names().function(&self.info, function);
        &*name.module == CORE_LIBRARY && resumes(&name.name)
    }

    /// Notes a piece of a function's code, if the function is async code. The function's code
    /// begins at `start`.
    pub(crate) fn note_code(&self, function: FunctionId, start: usize, piece: Range<usize>) {
        match self.part(function, start) {
            AsyncPart::Other => {}
            part => self.code.add(piece, part),
        }
    }

    /// Looks up the classes and functions that stack walks needed but did not know. Call it on
    /// threads of the agent.
    pub fn look_up_wanted(&self) {
        if !self.is_wanted.swap(false, Ordering::AcqRel) {
            return;
        }
        self.know_core();
        let wanted = std::mem::take(&mut self.known().wanted);
        for ((module, machine), unloads) in wanted {
            self.unloads.ask(unloads, || {
                let code = self.code_in(module, machine);
                self.known().code.entry((module, machine)).or_insert(code);
            });
        }
        let functions = std::mem::take(&mut self.known().wanted_functions);
        for (function, unloads) in functions {
            self.unloads.ask(unloads, || self.method(function, Questions::Asked));
        }
        let classes = std::mem::take(&mut self.known().wanted_classes);
        if let Some(core) = self.core.get().and_then(Option::as_ref) {
            for (class, unloads) in classes {
                self.unloads.ask(unloads, || self.find_class(core, class));
            }
        }
    }

    /// The fields that lead from a task to its awaiter; `None` unless more than `before` of them
    /// are known now.
    pub(crate) fn followed_fields(&self, before: usize) -> Option<FollowedFields> {
        let core = self.core.get()?.as_ref()?;
        let known = self.known();
        let others = core.followed().into_iter().chain(known.continuations.iter().copied());
        let others: Vec<_> = others.collect();
        (others.len() > before).then_some(FollowedFields { task: core.task.field, others })
    }

    /// Notes that objects of a class, derived from a continuation class, lead on by this field.
    fn note_continuation(&self, class: usize, field: usize) {
        let mut known = self.known();
        if known.continuations.len() < MOST_WANTED && !known.continuations.contains(&(class, field)) {
            known.continuations.push((class, field));
        }
    }

    /// Offset of an async method's builder from `this`; `None` if unknown.
    pub(crate) fn builder(&self, function: FunctionId, questions: Questions) -> Option<usize> {
        self.method(function, questions)?.builder
    }

    /// Requests a look-up of a possible async method that was seen where the runtime must not be
    /// queried.
    fn want_function(&self, function: FunctionId) {
        let unloads = self.unloads.count();
        let is_noted = add_if_new(&mut self.known().wanted_functions, function, unloads);
        self.is_wanted.fetch_or(is_noted, Ordering::AcqRel);
    }

    /// Requests a look-up of a class that was seen where the runtime must not be queried.
    fn want_class(&self, class: usize) {
        let unloads = self.unloads.count();
        let is_noted = add_if_new(&mut self.known().wanted_classes, class, unloads);
        self.is_wanted.fetch_or(is_noted, Ordering::AcqRel);
    }

    /// The function of the async method with this state machine type. Only where the runtime finds
    /// functions by token, which it does not for generic types.
    fn code_in(&self, module: ModuleId, machine: Token) -> Option<FunctionId> {
        let metadata = self.functions.names().metadata(&self.info, module).ok()?;
        let method = *metadata.methods_named(machine, "MoveNext").ok()?.first()?;
        self.info.function_from_token(module, method).ok()
    }

    /// The function of the async method with this state machine type, if it is known. Otherwise it
    /// is requested.
    fn code_of(&self, module: ModuleId, machine: Token) -> Option<FunctionId> {
        let unloads = self.unloads.count();
        let mut known = self.known();
        if let Some(code) = known.code.get(&(module, machine)) {
            return *code;
        }
        let is_noted = add_if_new(&mut known.wanted, (module, machine), unloads);
        drop(known);
        self.is_wanted.fetch_or(is_noted, Ordering::AcqRel);
        None
    }

    fn declaring_type(&self, module: ModuleId, method: Token) -> Option<Token> {
        let metadata = self.functions.names().metadata(&self.info, module).ok()?;
        Some(metadata.method(method).ok()?.class)
    }

    /// The role of a function whose code begins at `start` and was interrupted at the instruction
    /// `at`.
    pub(crate) fn part_interrupted(&self, function: FunctionId, start: usize, at: usize) -> AsyncPart {
        match self.part(function, start) {
            AsyncPart::Method { .. } if at.wrapping_sub(start) < BEGINNING => AsyncPart::Beginning,
            part => part,
        }
    }

    /// The role of a function whose code begins at `start`.
    pub(crate) fn part(&self, function: FunctionId, start: usize) -> AsyncPart {
        if self.is_resumption(function) {
            return AsyncPart::Resumption;
        }
        if self.method(function, Questions::Asked).is_none() {
            return AsyncPart::Other;
        }
        let below = stored_this(start).or_else(|| self.known().stored.get(&function).copied());
        below.map_or(AsyncPart::Other, |below| AsyncPart::Method { function, below })
    }

    /// Looks up the framework's types, once. If they differ from the known ones, the recording says
    /// so.
    fn know_core(&self) {
        if self.core.get().is_none() {
            let found = CoreTypes::find(&self.info, &self.functions);
            let why = found.as_ref().err().cloned();
            if self.core.set(found.ok()).is_ok()
                && let Some(why) = why
            {
                let text = format!("paths are those of the threads: {why}, so it can't be read who awaits a method");
                self.functions.remark(RemarkKind::NoAwaiters, &text);
            }
        }
    }

    /// The chain of awaiters of a method. To be called on the method's own thread, where objects
    /// don't move.
    pub(crate) fn chain(&self, resumed: Resumed) -> Chain {
        let chain = |this| self.chain_of(resumed.function, this, Questions::Asked);
        word_if_there(resumed.this).map_or_else(Chain::default, chain)
    }

    /// The chain of awaiters of the method with this `this`. Objects must not move in the meantime,
    /// and must not have moved since `this` was read: then the box is still at that address, and no
    /// other object is there. An awaiter that reached its await only afterwards is still the right
    /// one. A method that has ended is no longer awaited, and its chain is unknown.
    pub(crate) fn chain_of(&self, function: FunctionId, this: usize, questions: Questions) -> Chain {
        self.chain_in(ObjectMemory::Live, (function, this), questions)
    }

    /// Like [`chain_of`](Self::chain_of), on another thread and after the moment of interest.
    pub(crate) fn chain_later(&self, function: FunctionId, this: usize, questions: Questions) -> Chain {
        self.chain_in(ObjectMemory::Later, (function, this), questions)
    }

    /// Like [`chain_of`](Self::chain_of), for objects in the given memory.
    pub(crate) fn chain_in(
        &self,
        memory: ObjectMemory<'_>,
        (function, this): (FunctionId, usize),
        questions: Questions,
    ) -> Chain {
        let core = match self.core.get() {
            Some(core) => core.as_ref(),
            None => {
                self.is_wanted.store(true, Ordering::Release);
                None
            }
        };
        let reader = |core| ChainReader { core, questions, memory };
        core.and_then(|core| self.follow(reader(core), function, this)).unwrap_or_default()
    }
}

/// Distance in bytes from the frame pointer to the word where the code at `start` stores `this`.
fn stored_this(start: usize) -> Option<i32> {
    let mut beginning = [0; BEGINNING];
    copy_if_there(start, &mut beginning).then(|| bytes_to_stored_this(&beginning)).flatten()
}

/// Adds an item to a list, with the number of unloads before, if it is not in the list. Returns
/// whether it was added.
fn add_if_new<T: PartialEq>(list: &mut Vec<(T, u64)>, wanted: T, unloads: u64) -> bool {
    let is_added = list.len() < MOST_WANTED && !list.iter().any(|(other, _)| *other == wanted);
    if is_added {
        list.push((wanted, unloads));
    }
    is_added
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_method_inside_the_innermost_resumption_is_the_one_that_was_resumed() {
        // SAFETY: only compared.
        let function = |number| unsafe { FunctionId::from_raw(number) };
        let method = |number| AsyncPart::Method { function: function(number), below: -16 };
        let search = |frames: &[(AsyncPart, usize)]| {
            let mut search = ResumedSearch::default();
            for (part, sp) in frames {
                search.caller_at(*sp);
                search.frame(*part, None);
            }
            search.found()
        };
        let resumption = AsyncPart::Resumption;
        let found = search(&[
            (AsyncPart::Other, 100),
            (method(1), 200),
            (AsyncPart::Other, 300),
            (method(2), 400),
            (AsyncPart::Other, 500),
            (resumption, 600),
            (method(3), 700),
            (resumption, 800),
        ]);
        assert_eq!(found, Some(Resumed { function: function(2), this: 500 - 16 - 16 }));
        assert_eq!(search(&[(method(1), 200), (AsyncPart::Other, 300)]), None);
        assert_eq!(search(&[(resumption, 100)]), None);
    }
}
