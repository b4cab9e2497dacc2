//! A fake .NET runtime: a test double that sends sequences of events to a profiler. Tests of the
//! profiler then take milliseconds, run on any machine, and can use sequences that a real runtime
//! produces once in a thousand runs.
//!
//! Use it with the framework `clr-profiler`, as one of the `[dev-dependencies]`.
//!
//! The profiler is loaded as a real runtime loads it: class factory, `QueryInterface`, `Initialize`
//! with an information interface, all through the real COM tables. Hooks are called with the
//! calling convention of compiled code, and the fake runtime checks that they preserve the required
//! registers. Threads are real. Only the runtime's data is fake: the test defines modules, types
//! and methods.
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
//! A test lists all events that a real runtime would send by itself: the start of a load before its
//! end, compilations before calls. So a test can also contain invalid sequences: hooks before the
//! callback that ends the compilation, a thread that is assigned twice, callbacks after `Shutdown`.
//!
//! A [`Recorder`] records the events of a real program once; [`FakeRuntime::recorded`] reads the
//! recording for tests.

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

/// Builder of a fake runtime and its program. [`load`](Self::load) starts the runtime.
///
/// The program is built from outside to inside: a class belongs to the module added last, a method
/// to the class added last.
pub struct FakeRuntime {
    world: World,
    module: usize,
    class: usize,
    collection: Vec<Event>,
}

/// Signature of a static method without parameters that returns `void`.
const NOTHING: &[u8] = &[0x00, 0x00, 0x01];

impl Default for FakeRuntime {
    fn default() -> Self {
        Self::new()
    }
}

impl FakeRuntime {
    /// Creates a runtime with all interface levels and without a program.
    #[must_use]
    pub fn new() -> Self {
        Self { world: World::new(), module: 0, class: 0, collection: Vec::new() }
    }

    /// Sets the newest interface level of the runtime, 3 to 15. The runtime does not support later
    /// levels.
    #[must_use]
    pub fn level(mut self, level: u8) -> Self {
        self.world.level = level;
        self
    }

    /// Adds a module, in an assembly with the same name.
    #[must_use]
    pub fn module(mut self, name: &str) -> Self {
        self.module = self.world.add_module(name);
        self
    }

    /// Adds a class to the last module. The name includes the namespace; a nested class is written
    /// `Shop.Cart+Line`.
    ///
    /// # Panics
    /// If there is no module.
    #[must_use]
    pub fn class(mut self, full_name: &str) -> Self {
        assert!(!self.world.modules.is_empty(), "name a module before the class {full_name}");
        self.class = self.world.add_class(self.module, full_name);
        self
    }

    /// Adds a field of type `object` to the last class. The first field of a class has offset 8
    /// from the beginning of its objects; each further field is 8 bytes after the previous one.
    /// [`reference`](Self::reference) sets the field's value in an object.
    ///
    /// # Panics
    /// If there is no class.
    #[must_use]
    pub fn field(mut self, name: &str) -> Self {
        assert!(!self.world.classes.is_empty(), "name a class before the field {name}");
        self.world.add_field(self.class, name, None);
        self
    }

    /// Adds a static field of type `object` to the last class. The value is stored in an object at
    /// this offset in bytes from its beginning, because the runtime stores the values of static
    /// fields in arrays. [`reference`](Self::reference) sets the value.
    ///
    /// # Panics
    /// If there is no class.
    #[must_use]
    pub fn static_field(mut self, name: &str, holder: FakeObject, offset: usize) -> Self {
        assert!(!self.world.classes.is_empty(), "name a class before the field {name}");
        self.world.add_field(self.class, name, Some(holder.address() + offset));
        self
    }

    /// Adds a static method without parameters and result to the last class.
    ///
    /// # Panics
    /// If there is no class.
    #[must_use]
    pub fn method(self, name: &str) -> Self {
        self.method_with_signature(name, NOTHING)
    }

    /// Adds a method to the last class, with its signature in metadata encoding: `[0x20, 0x01,
    /// 0x08, 0x0e]` is an instance method that takes a string and returns an `int`.
    ///
    /// # Panics
    /// If there is no class.
    #[must_use]
    pub fn method_with_signature(mut self, name: &str, signature: &[u8]) -> Self {
        assert!(!self.world.classes.is_empty(), "name a class before the method {name}");
        self.world.add_function(self.class, name, signature);
        self
    }

    /// Returns the identifier of a method, given as `Namespace.Type::Method`.
    ///
    /// # Panics
    /// If there is no such method.
    #[must_use]
    pub fn function(&self, name: &str) -> FunctionId {
        self.world.find_function(name).unwrap_or_else(|| panic!("there is no method {name}"))
    }

    /// Returns the identifier of a class, given by its full name.
    ///
    /// # Panics
    /// If there is no such class.
    #[must_use]
    pub fn class_id(&self, full_name: &str) -> ClassId {
        let found = self.world.classes.iter().position(|class| class.full_name == full_name);
        world::class_id(found.unwrap_or_else(|| panic!("there is no class {full_name}")))
    }

    /// Returns the identifier of a module.
    ///
    /// # Panics
    /// If there is no such module.
    #[must_use]
    pub fn module_id(&self, name: &str) -> ModuleId {
        world::module_id(self.module_index(name))
    }

    /// Returns the identifier of a module's assembly.
    ///
    /// # Panics
    /// If there is no such module.
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

    /// Returns the identifier in callbacks of the thread with this number (see [`on`]).
    #[must_use]
    pub fn thread(&self, number: usize) -> ThreadId {
        world::thread_id(number)
    }

    /// Creates an object of a class with this size in bytes, at least 24. The object exists as long
    /// as the runtime, but events can tell the profiler that it was collected or moved.
    ///
    /// # Panics
    /// If there is no such class.
    pub fn object(&mut self, class: &str, bytes: usize) -> FakeObject {
        let class = self.class_id(class);
        self.world.heap.allocate(class, bytes)
    }

    /// Adds a reference from `from` to `to`, at this offset in bytes from the beginning of `from`:
    /// a multiple of 8, at least 8.
    ///
    /// # Panics
    /// If an object does not exist, or the offset is outside of the object.
    #[must_use]
    pub fn reference(mut self, from: FakeObject, offset: usize, to: FakeObject) -> Self {
        self.world.heap.refer(from, offset, to);
        self
    }

    /// Sets the generation of an object; the default is the youngest.
    ///
    /// # Panics
    /// If there is no such object.
    #[must_use]
    pub fn generation(mut self, object: FakeObject, generation: Generation) -> Self {
        self.world.heap.set_generation(object, generation);
        self
    }

    /// Sets the IL of a method, header and body. The default is a method that returns immediately.
    ///
    /// # Panics
    /// If there is no such method.
    #[must_use]
    pub fn il(mut self, method: &str, il: &[u8]) -> Self {
        let function = self.function(method);
        let (module, token) = self.world.token_of(function);
        self.world.code.set_il(module, token.as_raw(), il);
        self
    }

    /// Sets the events that occur when the profiler requests a collection, on the requesting
    /// thread. By default no events occur, and the collection succeeds.
    #[must_use]
    pub fn on_force_gc(mut self, events: &[Event]) -> Self {
        self.collection = events.to_vec();
        self
    }

    /// Makes the profiler's first `attempts` suspensions fail, because another suspension is in
    /// progress.
    #[must_use]
    pub fn refuse_suspensions(mut self, attempts: u32) -> Self {
        self.world.suspension.refusals = attempts;
        self
    }

    /// Reads a recording that a [`Recorder`] or a test wrote. Returns the program and the recorded
    /// events.
    ///
    /// A line consists of the number of a thread, the name of the event in [`Event`], and the
    /// event's values, separated by tabs. Identifiers are written as a letter and a number: `m1` is
    /// a module, `a1` an assembly, `c2` a class, `f3` a function, `o4` an object, `t5` a thread.
    /// Lines of the form `f3 = Module!Namespace.Type::Method` define them.
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

    /// Loads the profiler and calls its `initialize` on the calling thread, which is thread 0 of
    /// the program. The profiler is never freed, as in a real program.
    ///
    /// # Errors
    /// The error code that the profiler's `Initialize` returned to the runtime: its own refusal, or
    /// an error of the runtime.
    pub fn load<P: Profiler>(self) -> Result<Running<P>> {
        Running::start(self, None, |then| Loader::of_then(then))
    }

    /// Loads callbacks that a closure of the test creates instead of `initialize`. So a test can
    /// pass a configuration that a library would read from its environment.
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

    /// Attaches the profiler, as to a running program, with the client data of the attaching side.
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

    /// Attaches callbacks that a closure of the test creates instead of `initialize_for_attach`.
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

/// Makes doctests compile the README's example.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
