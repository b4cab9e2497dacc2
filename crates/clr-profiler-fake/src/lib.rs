//! A runtime without .NET: a test double that plays sequences of events at a profiler, so that it
//! can be tested in milliseconds, on any machine, and also with sequences that a real runtime shows
//! once in a thousand runs.
//!
//! It goes with the framework `clr-profiler`, as one of `[dev-dependencies]`.
//!
//! The profiler is loaded as the runtime loads it: class factory, `QueryInterface`, `Initialize`
//! with an information interface, all through the real COM tables; hooks are called in the
//! convention of compiled code, and what they must keep is checked. Threads are real ones. What is
//! faked is what the runtime knows: modules, types and methods come from the test.
//!
//! ```
//! use std::sync::atomic::{AtomicU32, Ordering};
//!
//! use clr_profiler_fake::{Event::*, FakeRuntime, on};
//! use clr_profiler::{Callbacks, Events, ObjectId, Profiler, ProfilerInfo, Result, Setup};
//!
//! #[derive(Default)]
//! struct ExceptionCounter {
//!     thrown: AtomicU32,
//! }
//!
//! impl Profiler for ExceptionCounter {
//!     fn initialize(_info: &ProfilerInfo) -> Result<(Self, Setup)> {
//!         Ok((Self::default(), Setup::new(Events::EXCEPTIONS)))
//!     }
//! }
//!
//! impl Callbacks for ExceptionCounter {
//!     fn exception_thrown(&self, _exception: ObjectId<'_>) {
//!         self.thrown.fetch_add(1, Ordering::Relaxed);
//!     }
//! }
//!
//! let mut runtime = FakeRuntime::new().module("Shop").class("Shop.Checkout").method("Pay").class("Shop.NoMoney");
//! let (pay, exception) = (runtime.function("Shop.Checkout::Pay"), runtime.object("Shop.NoMoney", 64));
//! let mut program = runtime.load::<ExceptionCounter>()?;
//! program.play(&[
//!     on(1, Enter(pay)),
//!     on(1, ExceptionThrown(exception)),
//!     on(2, ExceptionThrown(exception)),
//!     on(0, Shutdown()),
//! ]);
//! assert_eq!(program.profiler().thrown.load(Ordering::Relaxed), 2);
//! # Ok::<(), clr_profiler::Error>(())
//! ```
//!
//! What a real runtime does by itself, a test writes down: loads before their finish, compilations
//! before calls. So it can also write what should not be: hooks before the compilation is said to
//! be finished, a thread assigned twice, callbacks after `Shutdown`.
//!
//! What a real program does is recorded once, by a [`Recorder`], and played by
//! [`FakeRuntime::recorded`] ever after.

#![warn(clippy::must_use_candidate, clippy::return_self_not_must_use)]
#![warn(clippy::exhaustive_enums, clippy::exhaustive_structs)]

#[cfg(not(all(target_os = "linux", target_arch = "x86_64")))]
compile_error!("clr-profiler-fake supports Linux on x64 only: build for x86_64-unknown-linux-gnu");

mod answer;
mod calls;
mod code;
#[cfg(test)]
mod complete;
mod control;
mod edge;
mod event;
mod event_pipe;
mod events;
mod examples;
mod field;
mod fields;
mod heap;
mod ids;
mod info_v1_to_v2;
mod info_v3;
mod info_v4_to_v15;
mod lists;
mod metadata;
mod recorder;
mod running;
mod script;
mod suspension;
mod threads;
mod visits;
mod words;
mod world;

use clr_profiler::__export::Loader;
use clr_profiler::callback_args::Generation;
use clr_profiler::{
    AssemblyId, Callbacks, ClassId, EventPipeProviderId, FunctionId, ModuleId, Profiler, ProfilerInfo, Result, Setup,
    ThreadId,
};
use world::World;

pub use code::{ReJitParameters, ReJitRequest};
pub use event::{Event, Step, on};
pub use event_pipe::FakeSession;
pub use heap::FakeObject;
pub use recorder::Recorder;
pub use running::{Outcome, Running};

/// A runtime to be: what the program consists of. [`load`](Self::load) starts it.
///
/// Built from outside to inside: a class belongs to the module named last, a method to the class
/// named last.
pub struct FakeRuntime {
    world: World,
    module: usize,
    class: usize,
    collection: Vec<Event>,
}

/// `void` without parameters, static.
const NOTHING: &[u8] = &[0x00, 0x00, 0x01];

impl Default for FakeRuntime {
    fn default() -> Self {
        Self::new()
    }
}

impl FakeRuntime {
    /// A runtime with every interface level, without a program.
    #[must_use]
    pub fn new() -> Self {
        Self { world: World::new(), module: 0, class: 0, collection: Vec::new() }
    }

    /// The newest interface level it has, 3 to 15: what later ones brought it does not answer.
    #[must_use]
    pub fn level(mut self, level: u8) -> Self {
        self.world.level = level;
        self
    }

    /// A module, in an assembly of the same name.
    #[must_use]
    pub fn module(mut self, name: &str) -> Self {
        self.module = self.world.add_module(name);
        self
    }

    /// A class of the last module, with its namespace; nested ones as `Shop.Cart+Line`.
    ///
    /// # Panics
    /// Without a module.
    #[must_use]
    pub fn class(mut self, full_name: &str) -> Self {
        assert!(!self.world.modules.is_empty(), "name a module before the class {full_name}");
        self.class = self.world.add_class(self.module, full_name);
        self
    }

    /// A field of the last class, whose type is `object`: the first of a class lies 8 bytes from
    /// the beginning of its objects, each further one 8 bytes behind the one before.
    /// [`reference`](Self::reference) says what objects keep there.
    ///
    /// # Panics
    /// Without a class.
    #[must_use]
    pub fn field(mut self, name: &str) -> Self {
        assert!(!self.world.classes.is_empty(), "name a class before the field {name}");
        self.world.add_field(self.class, name, None);
        self
    }

    /// A static field of the last class, whose type is `object`. The value lies in an object, at
    /// this offset in bytes from its beginning, as the runtime keeps values of static fields in
    /// arrays; [`reference`](Self::reference) says what is there.
    ///
    /// # Panics
    /// Without a class.
    #[must_use]
    pub fn static_field(mut self, name: &str, holder: FakeObject, offset: usize) -> Self {
        assert!(!self.world.classes.is_empty(), "name a class before the field {name}");
        self.world.add_field(self.class, name, Some(holder.address() + offset));
        self
    }

    /// A static method of the last class, without parameters and result.
    ///
    /// # Panics
    /// Without a class.
    #[must_use]
    pub fn method(self, name: &str) -> Self {
        self.method_with_signature(name, NOTHING)
    }

    /// A method of the last class with its signature as the metadata encodes it: `[0x20, 0x01,
    /// 0x08, 0x0e]` is an instance method that takes a string and returns an `int`.
    ///
    /// # Panics
    /// Without a class.
    #[must_use]
    pub fn method_with_signature(mut self, name: &str, signature: &[u8]) -> Self {
        assert!(!self.world.classes.is_empty(), "name a class before the method {name}");
        self.world.add_function(self.class, name, signature);
        self
    }

    /// The identifier of a method, given as `Namespace.Type::Method`.
    ///
    /// # Panics
    /// Where there is no such method.
    #[must_use]
    pub fn function(&self, name: &str) -> FunctionId {
        self.world.find_function(name).unwrap_or_else(|| panic!("there is no method {name}"))
    }

    /// The identifier of a class, by its full name.
    ///
    /// # Panics
    /// Where there is no such class.
    #[must_use]
    pub fn class_id(&self, full_name: &str) -> ClassId {
        let found = self.world.classes.iter().position(|class| class.full_name == full_name);
        world::class_id(found.unwrap_or_else(|| panic!("there is no class {full_name}")))
    }

    /// The identifier of a module.
    ///
    /// # Panics
    /// Where there is no such module.
    #[must_use]
    pub fn module_id(&self, name: &str) -> ModuleId {
        world::module_id(self.module_index(name))
    }

    /// The identifier of a module's assembly.
    ///
    /// # Panics
    /// Where there is no such module.
    #[must_use]
    pub fn assembly_id(&self, name: &str) -> AssemblyId {
        world::assembly_id(self.module_index(name))
    }

    fn module_index(&self, name: &str) -> usize {
        let found = self.world.modules.iter().position(|module| module.name == name);
        found.unwrap_or_else(|| panic!("there is no module {name}"))
    }

    /// Identifier of the provider of the runtime's own events, `Microsoft-Windows-DotNETRuntime`.
    #[must_use]
    pub fn runtime_provider(&self) -> EventPipeProviderId {
        ids::provider(event_pipe::RUNTIMES)
    }

    /// The identifier that the thread with this number (see [`on`]) has in callbacks.
    #[must_use]
    pub fn thread(&self, number: usize) -> ThreadId {
        world::thread_id(number)
    }

    /// A new object of a class, of this size in bytes, at least 24. The object stays for the life
    /// of the runtime, unless a profiler believes that it was collected or moved.
    ///
    /// # Panics
    /// Where there is no such class.
    pub fn object(&mut self, class: &str, bytes: usize) -> FakeObject {
        let class = self.class_id(class);
        self.world.heap.allocate(class, bytes)
    }

    /// `from` refers to `to`, at this offset in bytes from the object's beginning: a multiple of 8,
    /// from 8 on.
    ///
    /// # Panics
    /// Where there are no such objects, or there is no room.
    #[must_use]
    pub fn reference(mut self, from: FakeObject, offset: usize, to: FakeObject) -> Self {
        self.world.heap.refer(from, offset, to);
        self
    }

    /// The generation that an object is in; without a word it is the youngest.
    ///
    /// # Panics
    /// Where there is no such object.
    #[must_use]
    pub fn generation(mut self, object: FakeObject, generation: Generation) -> Self {
        self.world.heap.set_generation(object, generation);
        self
    }

    /// The IL of a method, header and body; without a word a method has one that returns at once.
    ///
    /// # Panics
    /// Where there is no such method.
    #[must_use]
    pub fn il(mut self, method: &str, il: &[u8]) -> Self {
        let function = self.function(method);
        let (module, token) = self.world.token_of(function);
        self.world.code.set_il(module, token.as_raw(), il);
        self
    }

    /// Events that happen, on the thread that asks, when the profiler asks for a collection;
    /// without a word nothing does, and the collection succeeds.
    #[must_use]
    pub fn on_force_gc(mut self, events: &[Event]) -> Self {
        self.collection = events.to_vec();
        self
    }

    /// The first so many attempts of the profiler to suspend the program find another suspension
    /// under way.
    #[must_use]
    pub fn refuse_suspensions(mut self, attempts: u32) -> Self {
        self.world.suspension.refusals = attempts;
        self
    }

    /// The program of a recording that a [`Recorder`] made, or a test wrote, and what happened in
    /// it.
    ///
    /// A line is the number of a thread, the event by its name in [`Event`], and its values,
    /// separated by tabs. Things have names of their own (a letter and a number: `m1` a module,
    /// `a1` an assembly, `c2` a class, `f3` a function, `o4` an object, `t5` a thread), which lines
    /// of the form `f3 = Module!Namespace.Type::Method` explain.
    ///
    /// ```
    /// use clr_profiler_fake::FakeRuntime;
    /// let text = "f1 = Shop!Shop.Checkout::Pay\n1\tJITCompilationStarted\tf1\n2\tEnterAt\tf1\t7fff0040\n";
    /// let (runtime, steps) = FakeRuntime::recorded(text)?;
    /// assert_eq!(steps.len(), 2);
    /// # let _ = runtime.function("Shop.Checkout::Pay");
    /// # Ok::<(), String>(())
    /// ```
    ///
    /// # Errors
    /// A sentence with the number of the line that can't be read.
    pub fn recorded(text: &str) -> std::result::Result<(Self, Vec<Step>), String> {
        script::read(text)
    }

    /// Loads the profiler and calls its `initialize`, on this thread, which is thread 0 of the
    /// program. The profiler is never freed, as in a real program.
    ///
    /// # Errors
    /// The profiler's refusal, or what it was refused: the code that its `Initialize` gave the
    /// runtime.
    pub fn load<P: Profiler>(self) -> Result<Running<P>> {
        Running::start(self, None, |then| Loader::of_then(then))
    }

    /// Loads callbacks that a closure of the test's makes in the place of `initialize`: with a
    /// configuration that a library would take from its environment.
    ///
    /// # Errors
    /// As for [`load`](Self::load).
    pub fn load_with<C: Callbacks + 'static>(
        self,
        initialize: impl FnOnce(&ProfilerInfo) -> Result<(C, Setup)> + 'static,
    ) -> Result<Running<C>> {
        let initialize = |info: &ProfilerInfo, _: Option<&[u8]>| initialize(info);
        Running::start(self, None, |then| Loader::with_then(initialize, |_, _| (), then))
    }

    /// Loads the profiler as into a program that runs already, with what the attaching side sends.
    ///
    /// # Errors
    /// As for [`load`](Self::load).
    pub fn attach<P: Profiler>(self, client_data: &[u8]) -> Result<Running<P>> {
        Running::start(self, Some(client_data), |then| Loader::of_then(then))
    }

    /// Loads the profiler as [`load`](Self::load) does, but without the main slot, which another
    /// profiler may have.
    ///
    /// # Errors
    /// As for [`load`](Self::load).
    pub fn load_as_notification_only<P: Profiler>(self) -> Result<Running<P>> {
        Running::start(self, None, |then| Loader::of_then(then).notification_only())
    }

    /// Loads callbacks as [`load_with`](Self::load_with) does, but without the main slot.
    ///
    /// # Errors
    /// As for [`load`](Self::load).
    pub fn load_as_notification_only_with<C: Callbacks + 'static>(
        self,
        initialize: impl FnOnce(&ProfilerInfo) -> Result<(C, Setup)> + 'static,
    ) -> Result<Running<C>> {
        let initialize = |info: &ProfilerInfo, _: Option<&[u8]>| initialize(info);
        Running::start(self, None, |then| Loader::with_then(initialize, |_, _| (), then).notification_only())
    }

    /// Attaches the profiler as [`attach`](Self::attach) does, but without the main slot.
    ///
    /// # Errors
    /// As for [`load`](Self::load).
    pub fn attach_as_notification_only<P: Profiler>(self, client_data: &[u8]) -> Result<Running<P>> {
        Running::start(self, Some(client_data), |then| Loader::of_then(then).notification_only())
    }

    /// Loads callbacks that a closure of the test's makes in the place of `initialize_for_attach`.
    ///
    /// # Errors
    /// As for [`load`](Self::load).
    pub fn attach_with<C: Callbacks + 'static>(
        self,
        client_data: &[u8],
        initialize: impl FnOnce(&ProfilerInfo, &[u8]) -> Result<(C, Setup)> + 'static,
    ) -> Result<Running<C>> {
        let initialize = |info: &ProfilerInfo, data: Option<&[u8]>| initialize(info, data.unwrap_or_default());
        Running::start(self, Some(client_data), |then| Loader::with_then(initialize, |_, _| (), then))
    }
}

/// So that the README's example is compiled.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
