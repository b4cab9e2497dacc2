//! A shadow stack per thread that the framework keeps right by itself.
//!
//! [`CallStacks`] is [`CallHooks`] and [`shadow_stack`](crate::shadow_stack) put together: hooks
//! push and pop, the caller's stack pointer finds frames that exceptions left behind, and the
//! exception callbacks, which the framework passes on by itself, put what filters, finally and
//! catch blocks call under their own function. A profiler says what to do with each call
//! ([`CallObserver`]) and may look at a thread's stack at any time ([`CallStacks::snapshot`]).

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
    /// The function, as the mapper numbered it.
    pub function: ClientId,
    /// Number of calls that stand below it: 0 for the outermost.
    pub depth: usize,
}

/// A block that runs because of an exception.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
#[expect(clippy::exhaustive_enums, reason = "the kinds of blocks that IL has")]
pub enum Block {
    /// A filter, asked while the calls that threw are still alive: what it calls stands above them.
    Filter,
    /// A finally or fault block.
    Finally,
    /// A catch block.
    Catch,
}

/// Observer of the calls that [`CallStacks`] follows.
///
/// All methods run on the thread that makes the call, in its hook: they must be short, must not ask
/// the runtime and should not allocate much. What they keep goes into the thread's own `Data`.
/// Calls of one thread come in order; each that was entered ends exactly once, by
/// [`on_leave`](Self::on_leave), [`on_tailcall`](Self::on_tailcall) or
/// [`on_unwind`](Self::on_unwind), or is still on the stack when the thread ends.
#[expect(unused_variables, reason = "the defaults ignore their arguments; the names are documentation")]
pub trait CallObserver: Send + Sync + 'static {
    /// Data of the observer per thread; made when a thread is first seen.
    type Data: Default + Send + 'static;

    /// A function was entered.
    fn on_enter(&self, data: &mut Self::Data, call: Call);
    /// A function is about to return.
    fn on_leave(&self, data: &mut Self::Data, call: Call) {}
    /// A function ends because the one it calls last takes its place; that one comes next, at the
    /// same depth.
    fn on_tailcall(&self, data: &mut Self::Data, call: Call) {}
    /// An exception has ended a call. Said when it is noticed: at the next block, enter or leave,
    /// innermost call first.
    fn on_unwind(&self, data: &mut Self::Data, call: Call) {}
    /// A block of `owner` is about to run. `owner` is a call on the stack; for a filter it stands
    /// there a second time, on top, until the filter has answered.
    fn on_block(&self, data: &mut Self::Data, block: Block, owner: Call) {}
    /// A thread is ending. `number` counts threads from 1 in the order they were first seen. May
    /// run late in the thread's life, and does not run for threads that are alive when the program
    /// ends ([`CallStacks::for_each_thread`] visits those).
    fn on_thread_end(&self, number: usize, data: &Self::Data) {}
}

/// For those who want the stacks alone: `CallStacks::new(info, ())`.
impl CallObserver for () {
    type Data = ();

    fn on_enter(&self, (): &mut (), _call: Call) {}
}

/// The stacks of all threads, with an observer of their calls. Give it to the runtime by
/// [`Setup::with_call_stacks`](crate::Setup::with_call_stacks).
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
/// Each event takes one uncontended lock on top of what [`Hooks::safe`](crate::Hooks::safe) costs:
/// 15 ns a call with its enter and leave (see the table of [`Hooks`](crate::Hooks#cost)). Who needs
/// less writes [`RawHooks`](crate::RawHooks) over [`shadow_stack`](crate::shadow_stack).
pub struct CallStacks<O: CallObserver> {
    info: ProfilerInfo,
    observer: Arc<O>,
    threads: PerThread<Thread<O::Data>>,
}

struct Thread<D> {
    number: usize,
    /// Lock of the fields that follow.
    lock: OwnerLock,
    stack: RefCell<ShadowStack>,
    data: RefCell<D>,
    /// The observer is at work on this thread: a hook that comes meanwhile keeps the stack right
    /// without notifying.
    observing: Cell<bool>,
}

// SAFETY: the cells are used while the lock is held, which one thread can at a time; the owner may
// hold it twice, and is then stopped by the cells themselves when it would use something twice.
unsafe impl<D: Send> Sync for Thread<D> {}

/// No call stands at this stack pointer.
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

/// The observer's turn on a thread; over at the latest when it panics.
struct Turn<'a, O: CallObserver> {
    observer: &'a O,
    thread: &'a Thread<O::Data>,
}

impl<'a, O: CallObserver> Turn<'a, O> {
    /// `None` while the observer is at work on this thread already.
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
    /// Stacks without threads yet; for [`Profiler::initialize`](crate::Profiler::initialize).
    ///
    /// # Errors
    /// When the process has no thread key left.
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

    /// The calls the calling thread is in, outermost first: a copy. Empty for a thread without
    /// calls. In any callback, and in an observer's own methods.
    #[must_use]
    pub fn snapshot(&self) -> Vec<Call> {
        self.look(|stack| calls(stack.frames())).unwrap_or_default()
    }

    /// Number of calls that the calling thread is in.
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

    /// Visits all threads that have not ended, with number, data and a copy of the calls each is
    /// in, outermost first. Their hooks wait meanwhile: be short, and don't ask the runtime. Not
    /// for an observer's own methods: it would wait for its own thread to be done with them.
    pub fn for_each_thread(&self, mut visit: impl FnMut(usize, &O::Data, Vec<Call>)) {
        let own = self.threads.get(ptr::from_ref);
        self.threads.for_each(|thread| {
            // The calling thread may take a snapshot in `visit`, so it is told apart.
            let is_own = own.is_some_and(|own| ptr::eq(own, thread));
            let _held = if is_own { thread.lock.own() } else { thread.lock.visit() };
            let stack = calls(thread.stack.borrow().frames());
            visit(thread.number, &thread.data.borrow(), stack);
        });
    }

    /// Ends the calls whose stack pointer is at most `bound`, then changes the stack by `change`
    /// and returns what that gives. A call at `replaced` has lost its place to another one.
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

    /// The activation that the running block belongs to, by its frame pointer. No activation has
    /// frame pointer 0.
    fn owner(&self) -> usize {
        self.info.exception_clause().map_or(0, |clause| clause.frame_pointer)
    }
}

impl<O: CallObserver> CallHooks for CallStacks<O> {
    fn enter(&self, id: ClientId, sp: CallerSp) {
        // A frame with the very same stack pointer was replaced by this one, even if no tail call
        // was announced.
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

/// Calls that the framework makes by itself on exception callbacks.
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
            // What a filter that threw had called.
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

/// Takes off the topmost frame if its stack pointer is at most `bound`, and gives it with its
/// depth.
#[inline]
fn pop_dead(stack: &mut ShadowStack, bound: usize) -> Option<(Frame, usize)> {
    let frame = *stack.dead(bound).last()?;
    stack.leave(frame.sp);
    Some((frame, stack.depth()))
}

/// The end of a call; a frame that stands for a filter's owner is no call of its own.
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
