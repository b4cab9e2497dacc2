//! A shadow stack per thread, maintained by the framework.
//!
//! [`CallStacks`] combines [`CallHooks`] and [`shadow_stack`](crate::shadow_stack). Hooks push and
//! pop frames. The caller's stack pointer identifies frames that exceptions have unwound. Through
//! the exception callbacks, which the framework forwards, calls in filters, finally and catch
//! blocks are placed under the function of the block. A profiler handles each call in a
//! [`CallObserver`] and may read the calling thread's stack at any time ([`CallStacks::snapshot`]).

use std::cell::{Cell, RefCell};
use std::ptr;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use crate::owner_lock::OwnerLock;
use crate::shadow_stack::{Frame, ShadowStack};
use crate::{CallHooks, CallerSp, ClientId, Error, PerThread, ProfilerInfo, Result};

/// A call that is, or was, on a thread's stack.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub struct Call {
    /// The function, by the mapper's number.
    pub function: ClientId,
    /// Number of calls below this one on the stack: 0 for the outermost.
    pub depth: usize,
}

/// A block that runs because of an exception.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
#[expect(clippy::exhaustive_enums, reason = "the kinds of blocks that IL has")]
pub enum Block {
    /// A filter. It runs while the calls that threw are still on the stack; its callees are above
    /// them.
    Filter,
    /// A finally or fault block.
    Finally,
    /// A catch block.
    Catch,
}

/// Observer of the calls that [`CallStacks`] follows.
///
/// All methods run on the thread that makes the call, in its hook. They must be short, must not
/// query the runtime and should not allocate much. They keep their state in the thread's own
/// `Data`. The calls of one thread are reported in order. Each entered call ends exactly once, by
/// [`on_leave`](Self::on_leave), [`on_tailcall`](Self::on_tailcall) or
/// [`on_unwind`](Self::on_unwind), or it is still on the stack when the thread ends.
#[expect(unused_variables, reason = "the defaults ignore their arguments; the names are documentation")]
pub trait CallObserver: Send + Sync + 'static {
    /// Per-thread data of the observer, created at a thread's first event.
    type Data: Default + Send + 'static;

    /// A function was entered.
    fn on_enter(&self, data: &mut Self::Data, call: Call);
    /// A function is about to return.
    fn on_leave(&self, data: &mut Self::Data, call: Call) {}
    /// A function ends with a tail call. The callee is entered next, at the same depth.
    fn on_tailcall(&self, data: &mut Self::Data, call: Call) {}
    /// An exception has ended a call. The framework notices and reports this at the next block,
    /// enter or leave, innermost call first.
    fn on_unwind(&self, data: &mut Self::Data, call: Call) {}
    /// A block of `owner`, a call on the stack, is about to run. While a filter runs, a second
    /// entry of `owner` is on top of the stack.
    fn on_block(&self, data: &mut Self::Data, block: Block, owner: Call) {}
    /// A thread is ending. `number` counts threads from 1 in the order of their first events. May
    /// run late in the thread's life. Does not run for threads that are alive when the program
    /// ends; [`CallStacks::for_each_thread`] visits them.
    fn on_thread_end(&self, number: usize, data: &Self::Data) {}
}

/// No observer, for profilers that need only the stacks: `CallStacks::new(info, ())`.
impl CallObserver for () {
    type Data = ();

    fn on_enter(&self, (): &mut (), _call: Call) {}
}

/// The stacks of all threads, with an observer of their calls.
/// [`Setup::with_call_stacks`](crate::Setup::with_call_stacks) installs it.
///
/// ```
/// use std::sync::Arc;
/// use clr_profiler::{Call, CallObserver, CallStacks, Callbacks, NamedFunctions, Profiler, ProfilerInfo, Result, Setup};
///
/// /// Remembers how deep each thread went.
/// struct Deepest;
///
/// impl CallObserver for Deepest {
///     type Data = usize;
///     fn on_enter(&self, deepest: &mut usize, call: Call) {
///         *deepest = (*deepest).max(call.depth + 1);
///     }
///     fn on_thread_end(&self, number: usize, deepest: &usize) {
///         let _ = std::fs::write(format!("thread-{number}.txt"), deepest.to_string());
///     }
/// }
///
/// struct Depths;
///
/// impl Profiler for Depths {
///     fn initialize(info: &ProfilerInfo) -> Result<(Self, Setup)> {
///         let functions = Arc::new(NamedFunctions::new(info, |function| !function.is_exception_handling()));
///         Ok((Self, Setup::default().with_call_stacks(CallStacks::new(info, Deepest)?, functions)))
///     }
/// }
///
/// impl Callbacks for Depths {}
/// ```
///
/// Each event takes one uncontended lock in addition to the cost of
/// [`Hooks::safe`](crate::Hooks::safe): 15 ns per call for enter and leave (see the table of
/// [`Hooks`](crate::Hooks#cost)). For less overhead, implement [`RawHooks`](crate::RawHooks) with
/// [`shadow_stack`](crate::shadow_stack).
pub struct CallStacks<O: CallObserver> {
    info: ProfilerInfo,
    observer: Arc<O>,
    threads: PerThread<Thread<O::Data>>,
}

struct Thread<D> {
    number: usize,
    /// Lock of the following fields.
    lock: OwnerLock,
    stack: RefCell<ShadowStack>,
    data: RefCell<D>,
    /// Whether the observer is running on this thread. Until then, hooks update the stack without
    /// notifying the observer.
    observing: Cell<bool>,
}

// SAFETY: the cells are used only while the lock is held, and one thread can hold it at a time. The
// owner may hold the lock twice; then the cells themselves prevent a second use of the same data.
unsafe impl<D: Send> Sync for Thread<D> {}

/// Not the stack pointer of any call.
const NONE: usize = 0;

/// Change of a call, for the observer. Delivered while the stack is not borrowed, so that an
/// observer may take a snapshot.
#[derive(Clone, Copy)]
enum CallChange {
    Enter,
    Leave,
    Tailcall,
    Unwind,
    Block(Block),
}

/// A run of the observer on a thread. It ends when dropped, also after a panic.
struct Turn<'a, O: CallObserver> {
    observer: &'a O,
    thread: &'a Thread<O::Data>,
}

impl<'a, O: CallObserver> Turn<'a, O> {
    /// Begins a run; `None` if the observer is already running on this thread.
    fn begin(observer: &'a O, thread: &'a Thread<O::Data>) -> Option<Self> {
        (!thread.observing.replace(true)).then_some(Self { observer, thread })
    }

    fn notify(&self, change: CallChange, call: Call) {
        let data = &mut *self.thread.data.borrow_mut();
        match change {
            CallChange::Enter => self.observer.on_enter(data, call),
            CallChange::Leave => self.observer.on_leave(data, call),
            CallChange::Tailcall => self.observer.on_tailcall(data, call),
            CallChange::Unwind => self.observer.on_unwind(data, call),
            CallChange::Block(block) => self.observer.on_block(data, block, call),
        }
    }
}

impl<O: CallObserver> Drop for Turn<'_, O> {
    fn drop(&mut self) {
        self.thread.observing.set(false);
    }
}

impl<O: CallObserver> CallStacks<O> {
    /// Creates the stacks, without threads yet. Call it in
    /// [`Profiler::initialize`](crate::Profiler::initialize).
    ///
    /// # Errors
    /// The process has no thread key left.
    pub fn new(info: &ProfilerInfo, observer: O) -> Result<Arc<Self>> {
        let observer = Arc::new(observer);
        let (count, retiring) = (AtomicUsize::new(0), Arc::clone(&observer));
        let make = move || Thread {
            number: count.fetch_add(1, Ordering::Relaxed) + 1,
            lock: OwnerLock::default(),
            stack: RefCell::new(ShadowStack::new()),
            data: RefCell::default(),
            observing: Cell::new(false),
        };
        let retire = move |thread: &Thread<O::Data>| {
            let _held = thread.lock.own();
            retiring.on_thread_end(thread.number, &thread.data.borrow());
        };
        let threads = PerThread::new(make, retire)
            .map_err(|error| Error::refused("CallStacks", format!("no key for data per thread is left: {error}")))?;
        Ok(Arc::new(Self { info: info.clone(), observer, threads }))
    }

    /// The observer.
    #[must_use]
    pub fn observer(&self) -> &O {
        &self.observer
    }

    /// Returns a copy of the calling thread's stack, outermost call first. Empty for a thread
    /// without calls. May be called in any callback and in an observer's methods.
    #[must_use]
    pub fn snapshot(&self) -> Vec<Call> {
        self.look(|stack| calls(stack.frames())).unwrap_or_default()
    }

    /// Number of calls on the calling thread's stack.
    #[must_use]
    pub fn depth(&self) -> usize {
        self.look(ShadowStack::depth).unwrap_or(0)
    }

    fn look<R>(&self, look: impl FnOnce(&ShadowStack) -> R) -> Option<R> {
        self.threads.get(|thread| {
            let _held = thread.lock.own();
            look(&thread.stack.borrow())
        })
    }

    /// Visits all threads that have not ended, with number, data and a copy of the stack, outermost
    /// call first. The threads' hooks wait for it: be short, and don't query the runtime. Must not
    /// be called in an observer's methods: the call would wait for its own thread.
    pub fn for_each_thread(&self, mut visit: impl FnMut(usize, &O::Data, Vec<Call>)) {
        let own = self.threads.get(ptr::from_ref);
        self.threads.for_each(|thread| {
            // The calling thread may take a snapshot in `visit`, so it is treated separately.
            let is_own = own.is_some_and(|own| ptr::eq(own, thread));
            let _held = if is_own { thread.lock.own() } else { thread.lock.visit() };
            let stack = calls(thread.stack.borrow().frames());
            visit(thread.number, &thread.data.borrow(), stack);
        });
    }

    /// Ends the calls whose stack pointer is at most `bound`, then applies `change` to the stack,
    /// and notifies the observer of both. A call at `replaced` ended because another call replaced
    /// it.
    #[inline]
    fn event(
        &self,
        bound: usize,
        replaced: usize,
        change: impl FnOnce(&mut ShadowStack) -> Option<(CallChange, Call)>,
    ) {
        self.threads.with(|thread| {
            let _held = thread.lock.own();
            let turn = Turn::begin(&*self.observer, thread);
            while let Some((frame, depth)) = pop_dead(&mut thread.stack.borrow_mut(), bound) {
                let how = if frame.sp == replaced { CallChange::Tailcall } else { CallChange::Unwind };
                notify(&turn, ended(how, frame, depth));
            }
            let changed = change(&mut thread.stack.borrow_mut());
            notify(&turn, changed);
        });
    }

    /// Frame pointer of the activation that the running block belongs to; 0 if unknown, which is
    /// not a frame pointer of any activation.
    fn owner(&self) -> usize {
        self.info.exception_clause().map_or(0, |clause| clause.frame_pointer)
    }
}

impl<O: CallObserver> CallHooks for CallStacks<O> {
    fn enter(&self, id: ClientId, sp: CallerSp) {
        // This call has replaced a frame with the same stack pointer, even if no tail call was
        // reported.
        self.event(sp.0, sp.0, |stack| {
            stack.enter(sp.0, id.get());
            top(stack).map(|call| (CallChange::Enter, call))
        });
    }

    fn leave(&self, _id: ClientId, sp: CallerSp) {
        self.event(sp.0.saturating_sub(1), NONE, |stack| {
            let frame = stack.leave(sp.0).frame?;
            ended(CallChange::Leave, frame, stack.depth())
        });
    }

    fn tailcall(&self, _id: ClientId, sp: CallerSp) {
        self.event(sp.0.saturating_sub(1), NONE, |stack| {
            let frame = stack.tailcall(sp.0).frame?;
            ended(CallChange::Tailcall, frame, stack.depth())
        });
    }
}

/// Calls that the framework makes in exception callbacks.
pub(crate) trait FollowExceptions: Send + Sync {
    fn filter_enter(&self);
    fn filter_leave(&self);
    fn block_enter(&self, block: Block);
}

impl<O: CallObserver> FollowExceptions for CallStacks<O> {
    fn filter_enter(&self) {
        let owner = self.owner();
        self.event(0, NONE, |stack| {
            stack.filter_enter(owner)?;
            top(stack).map(|call| (CallChange::Block(Block::Filter), call))
        });
    }

    fn filter_leave(&self) {
        self.threads.with(|thread| {
            let _held = thread.lock.own();
            let (ended_calls, live) = {
                let mut stack = thread.stack.borrow_mut();
                let before = stack.snapshot();
                stack.filter_leave();
                (before, stack.depth())
            };
            // Calls made by a filter that threw.
            let turn = Turn::begin(&*self.observer, thread);
            for (depth, frame) in ended_calls.iter().enumerate().skip(live).rev() {
                notify(&turn, ended(CallChange::Unwind, *frame, depth));
            }
        });
    }

    fn block_enter(&self, block: Block) {
        let owner = self.owner();
        self.event(owner, NONE, |stack| {
            stack.catcher_enter(owner);
            top(stack).map(|call| (CallChange::Block(block), call))
        });
    }
}

#[inline]
fn notify<O: CallObserver>(turn: &Option<Turn<'_, O>>, change: Option<(CallChange, Call)>) {
    if let (Some(turn), Some((change, call))) = (turn, change) {
        turn.notify(change, call);
    }
}

/// Pops the topmost frame if its stack pointer is at most `bound`, and returns it with its depth.
#[inline]
fn pop_dead(stack: &mut ShadowStack, bound: usize) -> Option<(Frame, usize)> {
    let frame = *stack.dead(bound).last()?;
    stack.leave(frame.sp);
    Some((frame, stack.depth()))
}

/// The end of a call. `None` for the extra frame of a filter's owner, which is not a call.
#[inline]
fn ended(change: CallChange, frame: Frame, depth: usize) -> Option<(CallChange, Call)> {
    let call = call(frame, depth).filter(|_| frame.is_function())?;
    Some((change, call))
}

fn call(frame: Frame, depth: usize) -> Option<Call> {
    ClientId::new(frame.word).map(|function| Call { function, depth })
}

fn calls(frames: &[Frame]) -> Vec<Call> {
    frames.iter().enumerate().filter_map(|(depth, frame)| call(*frame, depth)).collect()
}

fn top(stack: &ShadowStack) -> Option<Call> {
    call(stack.top()?, stack.depth() - 1)
}
