//! A program that runs under a profiler, with the events that the test plays.

use std::sync::{Arc, OnceLock};

use clr_profiler::__export::Loader;
use clr_profiler::testing;
use clr_profiler::{CallHooks, Callbacks, Error, Events, FunctionId, HResult, Result, ThreadId};
use clr_profiler_sys::enums::COR_PRF_CLAUSE_TYPE;
use clr_profiler_sys::structs::COR_PRF_EX_CLAUSE_INFO;

use super::FakeRuntime;
use super::calls::{self, Hook};
use super::code::{ReJitParameters, ReJitRequest};
use super::edge::{Callback, Door, check};
use super::event::{Event, Step};
use super::event_pipe::FakeSession;
use super::threads::{Threads, as_thread};
use super::world::{Activation, Phase, Shared, Thread, map};

/// Outcome of a step.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub struct Outcome {
    /// Whether the profiler was called, because it has requested the event or hooks in the
    /// function.
    pub notified: bool,
    /// Return value of the profiler's callback.
    pub hresult: HResult,
    /// The profiler's answer, for the callbacks that have one: about inlining and precompiled code.
    pub answer: Option<bool>,
}

const NOT_NOTIFIED: Outcome = Outcome { notified: false, hresult: HResult::OK, answer: None };
const NOTIFIED: Outcome = Outcome { notified: true, hresult: HResult::OK, answer: None };

/// A program under a profiler, made by [`FakeRuntime::load`](super::FakeRuntime::load).
pub struct Running<P: 'static> {
    world: Shared,
    callback: Callback,
    profiler: &'static P,
    hooks: Option<Arc<dyn CallHooks>>,
    threads: Threads,
}

impl<P: Callbacks + 'static> Running<P> {
    pub(super) fn start(
        runtime: FakeRuntime,
        client_data: Option<&[u8]>,
        loader: impl FnOnce(Box<dyn FnOnce(&'static P)>) -> Loader,
    ) -> Result<Self> {
        let world = Shared::new(runtime.world);
        let made: Arc<OnceLock<&'static P>> = Arc::default();
        let slot = made.clone();
        let keep = Box::new(move |profiler| {
            let _ = slot.set(profiler);
        });
        let callback = Callback::fetch(loader(keep))?;
        {
            let mut world = world.lock();
            world.is_attach = client_data.is_some();
            world.phase = Phase::Initializing;
            // The profiler is loaded before there is a managed thread, or attached by an unmanaged
            // thread.
            world.thread(0).is_managed = false;
        }
        let notification_only = callback.is_notification_only();
        world.lock().is_notification_only = notification_only;
        let door = Door::open(&world);
        let (answer, hooks) = testing::keep_hooks(|| {
            as_thread(0, || match client_data {
                // SAFETY: the door lives as long as the process, the data through the call.
                Some(data) => unsafe {
                    let (start, len) = (data.as_ptr().cast_mut().cast(), data.len() as u32);
                    callback.get().InitializeForAttach(door, start, len)
                },
                // SAFETY: as above.
                None => unsafe { callback.get().Initialize(door) },
            })
        });
        check(answer, "Initialize")?;
        let profiler = made.get().copied().ok_or(Error::new(HResult::FAIL, "Initialize"))?;
        {
            let mut world = world.lock();
            world.phase = Phase::Running;
            world.thread(0).is_managed = true;
        }
        let (played, to, collection) = (world.clone(), callback.clone(), runtime.collection);
        world.lock().collect = Some(Arc::new(move || {
            for event in &collection {
                played.send(&to, event, &mut None);
            }
        }));
        Ok(Self { world, callback, profiler, hooks, threads: Threads::default() })
    }

    /// The profiler.
    #[must_use]
    pub fn profiler(&self) -> &'static P {
        self.profiler
    }

    /// The currently enabled events.
    #[must_use]
    pub fn events(&self) -> Events {
        self.world.lock().events
    }

    /// The profiler's queries that the fake runtime does not implement, with their counts. Each
    /// returned `E_NOTIMPL`.
    #[must_use]
    pub fn unanswered(&self) -> Vec<(&'static str, u64)> {
        self.world.lock().unanswered.iter().map(|(method, times)| (*method, *times)).collect()
    }

    /// IL and flags that the profiler set for recompiled methods, in the order of the runtime's
    /// requests for them.
    #[must_use]
    pub fn rejit_parameters(&self) -> Vec<ReJitParameters> {
        self.world.lock().code.parameters().to_vec()
    }

    /// Requests of the profiler to recompile methods, or to restore their original IL.
    #[must_use]
    pub fn rejit_requests(&self) -> Vec<ReJitRequest> {
        self.world.lock().code.requests.clone()
    }

    /// The current IL of a method, header and body.
    ///
    /// # Panics
    /// If no function has this identifier.
    #[must_use]
    pub fn il(&self, function: FunctionId) -> Vec<u8> {
        let world = self.world.lock();
        assert!(world.function(function.as_raw()).is_ok(), "no function has {function:?}");
        let (module, token) = world.token_of(function);
        world.code.il(module, token.as_raw()).to_vec()
    }

    /// The EventPipe sessions that the profiler has started.
    #[must_use]
    pub fn sessions(&self) -> Vec<FakeSession> {
        self.world.lock().event_pipe.sessions.clone()
    }

    /// Whether the profiler has requested its detach. The test plays the callback that completes
    /// the detach.
    #[must_use]
    pub fn is_detaching(&self) -> bool {
        self.world.lock().phase == Phase::Detaching
    }

    /// Reuses the function's identifier for another method of its class, as the runtime does after
    /// an unload. The new method is compiled before its first call.
    ///
    /// # Panics
    /// If no function has this identifier.
    pub fn reuse(&mut self, function: FunctionId, method: &str) {
        let mut world = self.world.lock();
        assert!(world.rename(function, method), "no function has {function:?}");
        world.mapped.remove(&function);
    }

    /// Runs code of the test on a thread of the program, for example to inspect the profiler's
    /// per-thread data.
    ///
    /// # Panics
    /// If the code panics.
    pub fn run_on<R: Send + 'static>(
        &mut self,
        thread: usize,
        code: impl FnOnce(&'static P) -> R + Send + 'static,
    ) -> R {
        let profiler = self.profiler;
        self.threads.run(thread, move || code(profiler))
    }

    /// Plays the steps one after another, each on its thread, and returns their outcomes.
    ///
    /// # Panics
    /// If a hook changes a register that it must preserve; the message names the register.
    pub fn play(&mut self, steps: &[Step]) -> Vec<Outcome> {
        steps.iter().map(|step| self.step(step)).collect()
    }

    fn step(&mut self, step: &Step) -> Outcome {
        let thread = step.thread;
        match step.event {
            Event::ThreadEnds => {
                self.threads.end(thread);
                self.world.lock().threads.remove(&thread);
                NOT_NOTIFIED
            }
            Event::Clause(_, frame_pointer) => {
                self.world.lock().thread(thread).given = Some(frame_pointer);
                NOT_NOTIFIED
            }
            Event::Enter(function) => self.call(thread, Hook::Enter, function, None),
            Event::Leave(function) => self.call(thread, Hook::Leave, function, None),
            Event::Tailcall(function) => self.call(thread, Hook::Tailcall, function, None),
            Event::EnterAt(function, sp) => self.call(thread, Hook::Enter, function, Some(sp.address())),
            Event::LeaveAt(function, sp) => self.call(thread, Hook::Leave, function, Some(sp.address())),
            Event::TailcallAt(function, sp) => self.call(thread, Hook::Tailcall, function, Some(sp.address())),
            _ => self.callback(thread, &step.event),
        }
    }

    fn callback(&mut self, thread: usize, event: &Event) -> Outcome {
        self.world.lock().know(thread, event);
        let (world, callback, event) = (self.world.clone(), self.callback.clone(), event.clone());
        self.threads.run(thread, move || {
            let mut outcome = NOT_NOTIFIED;
            if let Some(hresult) = world.send(&callback, &event, &mut outcome.answer) {
                outcome = Outcome { hresult, notified: true, ..outcome };
            }
            if let Event::JITCompilationStarted(function) = event {
                map(&world, function);
            }
            outcome
        })
    }

    fn call(&mut self, thread: usize, hook: Hook, function: FunctionId, sp: Option<usize>) -> Outcome {
        let (world, hooks) = (self.world.clone(), self.hooks.clone());
        let called = self.threads.run(thread, move || {
            // The function was compiled even if the test has no event for it.
            if !world.lock().mapped.contains_key(&function) {
                map(&world, function);
            }
            let (sp, target, with_info) = {
                let mut world = world.lock();
                let sp = match sp {
                    Some(sp) => world.thread(thread).call_at(hook, function, sp),
                    None => world.thread(thread).call(hook, function),
                };
                let entry = world.entries.map(|entries| match hook {
                    Hook::Enter => entries.enter,
                    Hook::Leave => entries.leave,
                    Hook::Tailcall => entries.tailcall,
                });
                let id = world.mapped.get(&function).copied().flatten();
                (sp, entry.filter(|entry| *entry != 0).zip(id), world.with_info)
            };
            let Some((entry, id)) = target else { return Ok(false) };
            if with_info {
                calls::call_with_info(entry, id);
                return Ok(true);
            }
            testing::with_hooks(hooks, || calls::call(hook, entry, id, sp)).map(|()| true)
        });
        match called {
            Ok(notified) => Outcome { notified, ..NOTIFIED },
            Err(changed) => panic!("{changed}, which compiled code relies on"),
        }
    }
}

impl<P> Drop for Running<P> {
    fn drop(&mut self) {
        self.threads.end_all();
    }
}

impl Shared {
    /// Calls the callback if the profiler has requested its kind of event. Returns the callback's
    /// result.
    fn send(&self, callback: &Callback, event: &Event, answer: &mut Option<bool>) -> Option<HResult> {
        let wanted = self.lock().events;
        let notified = event.needs().is_some_and(|needs| needs.is_empty() || wanted.intersects(needs));
        notified.then(|| HResult(event.send(callback.get(), self, answer).0))
    }
}

/// The stack pointer of the outermost call, and the distance to each callee.
const STACK: usize = 0x7fff_0000_0000;
const FRAME: usize = 0x40;
/// Size of the runtime's own frames below the throwing frame. Filters, finally and catch blocks run
/// below them.
const THROWING: usize = 0x4000;

impl super::world::World {
    /// Updates the fake runtime's state for an event.
    fn know(&mut self, number: usize, event: &Event) {
        match event {
            Event::ThreadCreated(id) => self.set_managed(*id, true),
            Event::ThreadDestroyed(id) => self.set_managed(*id, false),
            Event::ThreadAssignedToOSThread(id, os_thread) => {
                if let Some((number, _)) = self.thread_of_id(*id) {
                    self.thread(number).os_thread = *os_thread;
                }
            }
            Event::ExceptionThrown(_) => {
                let thread = self.thread(number);
                thread.thrown_at = Some(thread.top().saturating_sub(THROWING));
            }
            Event::ExceptionSearchFilterEnter(owner) => self.thread(number).block(1, *owner),
            Event::ExceptionUnwindFinallyEnter(owner) => self.thread(number).block(3, *owner),
            Event::ExceptionCatcherEnter(owner, _) => self.thread(number).block(2, *owner),
            Event::ExceptionCatcherLeave() => self.thread(number).thrown_at = None,
            _ => (),
        }
    }

    fn set_managed(&mut self, id: ThreadId, is_managed: bool) {
        let number = (0..).map_while(|n| (super::world::thread_id(n) <= id).then_some(n)).last().unwrap_or(0);
        if super::world::thread_id(number) == id {
            self.thread(number).is_managed = is_managed;
        }
    }
}

impl Thread {
    fn top(&self) -> usize {
        self.stack.last().map_or(STACK, |top| top.sp)
    }

    /// Updates the stack for a call that begins or ends. Returns the call's stack pointer.
    fn call(&mut self, hook: Hook, function: FunctionId) -> usize {
        let next = (self.top() - FRAME).min(self.thrown_at.unwrap_or(usize::MAX));
        if hook == Hook::Enter {
            self.stack.push(Activation { function, sp: next });
            return next;
        }
        let Some(at) = self.activation(function) else { return next };
        let sp = self.stack[at].sp;
        self.stack.truncate(at);
        sp
    }

    /// As [`call`](Self::call), at a known stack pointer: calls at or below it are removed.
    fn call_at(&mut self, hook: Hook, function: FunctionId, sp: usize) -> usize {
        self.stack.retain(|activation| activation.sp > sp);
        if hook == Hook::Enter {
            self.stack.push(Activation { function, sp });
        }
        sp
    }

    fn activation(&self, function: FunctionId) -> Option<usize> {
        self.stack.iter().rposition(|activation| activation.function == function)
    }

    /// Begins a block of `owner`: sets the runtime's information about the block and, except for
    /// filters, removes the owner's callees.
    fn block(&mut self, kind: u32, owner: FunctionId) {
        let found = self.activation(owner).map(|at| self.stack[at].sp - 0x10);
        let Some(frame_pointer) = self.given.take().or(found) else {
            self.clause = COR_PRF_EX_CLAUSE_INFO::default();
            return;
        };
        self.clause = COR_PRF_EX_CLAUSE_INFO {
            clause_type: COR_PRF_CLAUSE_TYPE(kind),
            program_counter: owner.as_raw(),
            frame_pointer,
            shadow_stack_pointer: 0,
        };
        if kind != 1 {
            self.stack.retain(|activation| activation.sp > frame_pointer);
        }
    }
}
