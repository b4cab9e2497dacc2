//! Chains of awaiters: which async methods await the one that the calling thread has resumed.
//!
//! | module | what it holds |
//! |---|---|
//! | `core_types` | the framework's types of tasks and continuations, and where their fields lie |
//! | `box_layout` | where these boxes have the number of their await |
//! | `machines` | the boxes that async methods live in while they wait |
//! | `memory` | where objects are read |
//! | `code` | async code by address |
//! | `resumed_frame` | chains for who follows frame pointers alone |
//! | `awaits` | where in its code a method awaits |
//! | `chain` | the walk from a box to what awaits it |
//!
//! A method that goes on after an `await` lives in a box, which is its task. The box is found by
//! `this` of the method's code, which the code stores in its frame: the handlers of its own catch
//! block need it there. The task leads to its continuation, which is the box of the method that
//! awaits it, or leads there. Each step checks what kind of object it has come to, and a step that
//! is not understood ends the chain as unknown: no chain is guessed.
//!
//! On the thread whose stack is meant, in callbacks in which the runtime keeps objects from moving
//! (of exceptions: `EEToProfInterfaceImpl::ExceptionThrown` is called in cooperative mode); or on a
//! thread of the agent's own, which checks that none has moved. Memory that is not there ends a
//! chain, too.

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

/// Classes and functions that wait to be looked up at most: more are noted when they are met again.
const MOST_WANTED: usize = 1024;
/// Bytes of a method's beginning in which it stores `this`.
const BEGINNING: usize = 160;

/// Part that a frame plays in running asynchronous code.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) enum AsyncPart {
    /// None.
    #[default]
    Other,
    /// The code of an async method. So many bytes below its frame pointer lies its `this`.
    Method { function: FunctionId, below: i32 },
    /// The code of an async method that may not have stored its `this` yet.
    Beginning,
    /// The framework goes on with a method that has awaited something.
    Resumption,
}

/// The code of an async method that goes on after an `await`, on the calling thread's stack.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Resumed {
    /// The method.
    pub(crate) function: FunctionId,
    /// Address of the word of its frame that holds `this`.
    pub(crate) this: usize,
}

/// What may be asked while a chain is read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Questions {
    /// The runtime, about classes that are new: on the thread whose objects these are, or on
    /// another one where unloads [wait](Unloads::hold).
    Asked,
    /// Nothing. Questions are noted, for [`Awaiters::look_up_wanted`].
    Noted,
}

/// Finds the innermost method on a stack that was resumed, frame by frame from the innermost on.
#[derive(Debug, Default, Clone, Copy)]
pub(crate) struct ResumedSearch {
    /// The async method that was met last, with its frame pointer once that is known.
    method: Option<(FunctionId, i32, Option<usize>)>,
    is_over: bool,
    found: Option<Resumed>,
}

impl ResumedSearch {
    /// The next frame, with its frame pointer where that is known.
    pub(crate) fn frame(&mut self, part: AsyncPart, frame_pointer: Option<usize>) {
        match part {
            _ if self.is_over => {}
            AsyncPart::Other => {}
            AsyncPart::Beginning => self.method = None,
            AsyncPart::Method { function, below } => self.method = Some((function, below, frame_pointer)),
            // Where it is no box that goes on, the method inside has none that its `this` lies in,
            // or is not the one that was resumed but the first run of another, which lies in none
            // either.
            AsyncPart::Resumption => {
                self.is_over = true;
                self.found = self.method.and_then(|(function, below, frame_pointer)| {
                    Some(Resumed { function, this: frame_pointer?.checked_add_signed(below as isize)? })
                });
            }
        }
    }

    /// The frame pointer of the frame that came last: the frame ends below the stack pointer of its
    /// caller.
    pub(crate) fn caller_at(&mut self, sp: usize) {
        /// The return address, and the caller's frame pointer, which the frame pointer points to.
        const SAVED: usize = 16;
        if let Some((_, _, frame_pointer @ None)) = &mut self.method {
            *frame_pointer = sp.checked_sub(SAVED);
        }
    }

    /// The method, once all frames were given.
    pub(crate) fn found(self) -> Option<Resumed> {
        self.found
    }
}

/// Fields by which objects lead to who awaits a task.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct FollowedFields {
    /// Offset of a task's.
    pub(crate) task: usize,
    /// The first words of other objects, with the offset of theirs: 0 where they lead no further,
    /// with [`TO_ARRAY`] where to an array.
    pub(crate) others: Vec<(usize, usize)>,
}

/// Mark of a field that leads to an array whose first element leads on.
pub(crate) const TO_ARRAY: usize = 1;

/// Knowledge of async code in the process.
pub struct Awaiters {
    info: ProfilerInfo,
    functions: Arc<Functions>,
    core: OnceLock<Option<CoreTypes>>,
    /// A stack was seen whose chain needs what was not looked up yet.
    is_wanted: AtomicBool,
    known: Mutex<KnownClasses>,
    unloads: Arc<Unloads>,
    code: AsyncCode,
}

#[derive(Default)]
struct KnownClasses {
    /// Classes of tasks by the first word of their objects.
    tasks: HashMap<usize, TaskClass>,
    methods: HashMap<FunctionId, AsyncMethod>,
    /// Bytes from the frame pointer to `this` in the code of async methods that was compiled last:
    /// code that takes over a running frame (OSR) leaves `this` where that code has stored it.
    stored: HashMap<FunctionId, i32>,
    /// Code of async methods by the types that hold their state; `None` where the runtime does not
    /// say.
    code: HashMap<(ModuleId, Token), Option<FunctionId>>,
    /// Such types whose code was asked for where the runtime may not be asked, each with the number
    /// of unloads before.
    wanted: Vec<((ModuleId, Token), u64)>,
    /// First words of objects that may be tasks, met where the runtime may not be asked, each with
    /// the number of unloads before.
    wanted_classes: Vec<(usize, u64)>,
    /// The same of functions that may be async methods.
    wanted_functions: Vec<(FunctionId, u64)>,
    /// Classes derived from those of continuations that chains have led through, with the field by
    /// which they lead on.
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

    /// Code is gone: identifiers may mean other things.
    pub(crate) fn forget(&self) {
        *self.known() = KnownClasses::default();
        self.code.forget();
    }

    /// A method was compiled: whether it is async code. The framework's types are looked up when
    /// the first async method is: where stacks are walked, objects must not move, and the runtime
    /// refuses most questions.
    pub(crate) fn compiled(&self, function: FunctionId) -> bool {
        let is_method = self.method(function, Questions::Asked).is_some();
        if is_method
            && let Ok((_, module, token)) = self.info.function_place(function)
            && let Some(machine) = self.declaring_type(module, token)
        {
            self.known().code.insert((module, machine), Some(function));
            self.know_core();
        }
        is_method || self.is_resumption(function)
    }

    /// An async method has code that begins at an address.
    pub(crate) fn has_code(&self, function: FunctionId, start: usize) {
        if let Some(below) = stored_this(start) {
            self.known().stored.insert(function, below);
        }
    }

    fn is_resumption(&self, function: FunctionId) -> bool {
        let name = self.functions.names().function(&self.info, function);
        &*name.module == CORE_LIBRARY && resumes(&name.name)
    }

    /// Notes a piece of a function's code, whose code begins at `start`, where it is async code.
    pub(crate) fn note_code(&self, function: FunctionId, start: usize, piece: Range<usize>) {
        match self.part(function, start) {
            AsyncPart::Other => {}
            part => self.code.add(piece, part),
        }
    }

    /// Looks up what stacks have asked for in vain. For threads of the agent's own.
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

    /// The fields by which objects lead on, once they are known, where these are more than
    /// `before`.
    pub(crate) fn followed_fields(&self, before: usize) -> Option<FollowedFields> {
        let core = self.core.get()?.as_ref()?;
        let known = self.known();
        let others = core.followed().into_iter().chain(known.continuations.iter().copied());
        let others: Vec<_> = others.collect();
        (others.len() > before).then_some(FollowedFields { task: core.task.field, others })
    }

    /// An object of a class that is derived from that of continuations leads on by this field.
    fn note_continuation(&self, class: usize, field: usize) {
        let mut known = self.known();
        if known.continuations.len() < MOST_WANTED && !known.continuations.contains(&(class, field)) {
            known.continuations.push((class, field));
        }
    }

    /// Offset of the builder from `this` of an async method, where it is known.
    pub(crate) fn builder(&self, function: FunctionId, questions: Questions) -> Option<usize> {
        self.method(function, questions)?.builder
    }

    /// Has an async method looked up that was met where the runtime may not be asked.
    fn want_function(&self, function: FunctionId) {
        let unloads = self.unloads.count();
        let is_noted = add_if_new(&mut self.known().wanted_functions, function, unloads);
        self.is_wanted.fetch_or(is_noted, Ordering::AcqRel);
    }

    /// Has a class looked up that was met where the runtime may not be asked.
    fn want_class(&self, class: usize) {
        let unloads = self.unloads.count();
        let is_noted = add_if_new(&mut self.known().wanted_classes, class, unloads);
        self.is_wanted.fetch_or(is_noted, Ordering::AcqRel);
    }

    /// The code of the async method whose state a type holds. Only where the runtime tells
    /// functions of tokens; of a generic type it does not.
    fn code_in(&self, module: ModuleId, machine: Token) -> Option<FunctionId> {
        let metadata = self.functions.names().metadata(&self.info, module).ok()?;
        let method = *metadata.methods_named(machine, "MoveNext").ok()?.first()?;
        self.info.function_from_token(module, method).ok()
    }

    /// The code of the async method whose state a type holds, once it is known; asked for where it
    /// is not.
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

    /// Part of a function whose code begins at an address, where an instruction of it was
    /// interrupted.
    pub(crate) fn part_interrupted(&self, function: FunctionId, start: usize, at: usize) -> AsyncPart {
        match self.part(function, start) {
            AsyncPart::Method { .. } if at.wrapping_sub(start) < BEGINNING => AsyncPart::Beginning,
            part => part,
        }
    }

    /// Part of a function, whose code begins at an address.
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

    /// Finds the framework's types out, once. Where they are not as they are known, the recording
    /// says so.
    fn know_core(&self) {
        if self.core.get().is_none() {
            let found = CoreTypes::find(&self.info, &self.functions);
            let why = found.as_ref().err().cloned();
            if self.core.set(found.ok()).is_ok()
                && let Some(why) = why
            {
                let text = format!("paths are those that threads had: {why}, so who awaits a method can't be read");
                self.functions.remark(RemarkKind::NoAwaiters, &text);
            }
        }
    }

    /// The chain of who awaits a method, on whose thread this is, where objects don't move.
    pub(crate) fn chain(&self, resumed: Resumed) -> Chain {
        let chain = |this| self.chain_of(resumed.function, this, Questions::Asked);
        word_if_there(resumed.this).map_or_else(Chain::default, chain)
    }

    /// The chain of who awaits the method whose `this` is given. Objects must not move meanwhile,
    /// nor have moved since that was its `this`: then the box is where it was, and no other object
    /// is there. Who awaits it may have come to its await since, and is who awaits it all the same;
    /// a method that has ended is awaited no more, and its chain is unknown.
    pub(crate) fn chain_of(&self, function: FunctionId, this: usize, questions: Questions) -> Chain {
        self.chain_in(ObjectMemory::Live, (function, this), questions)
    }

    /// [`chain_of`](Self::chain_of) of objects in some memory.
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

/// Bytes from the frame pointer to the word in which the code that begins at an address stores
/// `this`.
fn stored_this(start: usize) -> Option<i32> {
    let mut beginning = [0; BEGINNING];
    copy_if_there(start, &mut beginning).then(|| bytes_to_stored_this(&beginning)).flatten()
}

/// Adds what is wanted to a list, with the number of unloads before, if it is not there; whether it
/// was added.
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
