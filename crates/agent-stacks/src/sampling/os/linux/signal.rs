//! The signal by which timers take samples, and what its handler does.
//!
//! Timers share the signal by which the runtime stops threads (`SIGRTMIN`). The runtime blocks this
//! signal on the small stack on which it handles SIGSEGV, where a second frame may not fit, and
//! unblocks it before it goes on. To block any other signal there, we would have to add it to the
//! mask of the runtime's handler, which never returns, and other code would have to unblock it. And
//! a .NET program has no use of its own for this signal.
//!
//! Our handler runs before the runtime's. A signal that none of our timers has sent is passed on to
//! the runtime, with unchanged registers and stack. When sampling ends, the runtime's handler is
//! restored. It ignores signals that no process has sent, so a late timer signal does no harm.
//!
//! The handler allocates nothing, takes no lock, and uses no thread-local storage except `errno`.
//! It reads only the thread's own stack, between the interrupted stack pointer and the end that was
//! noted when the thread was first seen. If no end is known yet, it lets the system copy the stack,
//! which checks what is mapped. It copies the objects of async methods in the same way
//! (`object_copies`).

use std::ffi::c_void;
use std::mem::MaybeUninit;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};

use clrscope_agent_base::memory::PublishedState;
use clrscope_agent_base::os::clock;
use clrscope_agent_base::os::memory::copy_if_there;
use clrscope_recording::writer::monotonic_ns;

use super::timers::Timer;
use crate::sampling::arch::{hand_on_unless_ours, interrupted};
use crate::sampling::object_copies::ObjectCopies;
use crate::sampling::raw::{DETOUR, GAP, Registers};
use crate::sampling::ring::{Ring, Slot};

/// The number of the signal.
pub(crate) fn number() -> libc::c_int {
    libc::SIGRTMIN()
}

/// The previous handler: the runtime's. Set before ours is installed, and never 0 from then on.
static BEFORE: AtomicUsize = AtomicUsize::new(0);

/// Most threads that can have a timer at once.
pub(crate) const MOST_THREADS: usize = 1 << 14;
/// CPU time in addition to two intervals after which a thread's sample is late.
const LATE_NS: u64 = 20_000_000;
/// Upper half of the value of our timers' signals, by which we recognise them.
const COOKIE: u32 = 0xC175_C09E;
/// Most frames of a stack that are kept.
const MOST_FRAMES: usize = 1024;
/// Most words of the stack that are kept, as many as perf events give. Beyond them, frame pointers
/// lead on.
const MOST_WORDS: usize = 60 << 7;
/// Words that are kept of a stack whose end is not known yet.
const FEW_WORDS: usize = 512;
/// Words per copy of a stack whose bounds are not known.
const PIECE_WORDS: usize = 32;
/// Most words that are searched for a frame where the chain of frame pointers is broken.
const SEARCHED: usize = 2048;
/// Words of a sample before its frames.
const HEADER: usize = 9;
/// Most ranges of code of one kind.
const MOST_RANGES: usize = 192;

/// Ranges of code that the handler treats specially. One thread sets them.
pub(crate) struct Ranges {
    places: [(AtomicUsize, AtomicUsize); MOST_RANGES],
    count: AtomicUsize,
}

impl Ranges {
    fn new() -> Self {
        Self { places: [const { (AtomicUsize::new(0), AtomicUsize::new(0)) }; MOST_RANGES], count: AtomicUsize::new(0) }
    }

    /// Sets the ranges. If there are too many, the first ones are kept.
    pub(crate) fn set(&self, ranges: impl Iterator<Item = std::ops::Range<usize>>) {
        self.count.store(0, Ordering::SeqCst);
        let mut count = 0;
        for (place, range) in self.places.iter().zip(ranges) {
            place.0.store(range.start, Ordering::Relaxed);
            place.1.store(range.end, Ordering::Relaxed);
            count += 1;
        }
        self.count.store(count, Ordering::SeqCst);
    }

    fn hold(&self, address: usize) -> bool {
        let count = self.count.load(Ordering::Acquire);
        let holds = |(start, end): &(AtomicUsize, AtomicUsize)| {
            (start.load(Ordering::Relaxed)..end.load(Ordering::Relaxed)).contains(&address)
        };
        self.places.iter().take(count).any(holds)
    }
}

/// A thread that has a timer.
#[derive(Default)]
pub(crate) struct Target {
    /// Lower half: the system's id of the thread, 0 for a free slot. Upper half: the number of the
    /// timer plus one.
    pub who: AtomicU64,
    /// Bounds of the stack; 0 until they are known. Nothing outside them is read.
    pub low: AtomicUsize,
    pub end: AtomicUsize,
    /// CPU time of the thread at its last sample, in nanoseconds.
    pub cpu_ns: AtomicU64,
    random: AtomicU64,
}

/// The state that the signal handler uses.
pub(crate) struct Shared {
    pub ring: Ring,
    pub targets: Box<[Target]>,
    interval_ns: AtomicU64,
    pub is_on: AtomicBool,
    pub(crate) objects: ObjectCopies,
    /// Code of methods that took over running frames.
    pub(crate) took_over: Ranges,
}

static SHARED: PublishedState<Shared> = PublishedState::nothing();

/// Installs the handler; `None` if the signal's current handler does not look like the runtime's.
pub(crate) fn install(interval_ns: u64, ring_words: usize) -> Option<&'static Shared> {
    let shared = SHARED.get().unwrap_or_else(|| {
        SHARED.publish_for_good(Shared {
            ring: Ring::new(ring_words),
            // SAFETY: A target consists of atomic numbers, and 0 is a valid value of each. The
            // system backs them when they are used.
            targets: unsafe { Box::new_zeroed_slice(MOST_THREADS).assume_init() },
            interval_ns: AtomicU64::new(interval_ns),
            is_on: AtomicBool::new(false),
            objects: ObjectCopies::new(),
            took_over: Ranges::new(),
        })
    });
    shared.interval_ns.store(interval_ns, Ordering::Relaxed);
    shared.objects.end();
    stand_in_front().then_some(shared)
}

/// The action of the signal.
fn current_action() -> Option<libc::sigaction> {
    let mut action = MaybeUninit::zeroed();
    // SAFETY: writes one action, for which zeroes are valid.
    unsafe { (libc::sigaction(number(), std::ptr::null(), action.as_mut_ptr()) == 0).then(|| action.assume_init()) }
}

/// Sets the handler of the signal, and leaves the rest of its action unchanged. Returns the
/// previous handler.
fn change_handler(action: &libc::sigaction, handler: usize) -> Option<usize> {
    let new = libc::sigaction { sa_sigaction: handler, ..*action };
    let mut before = MaybeUninit::<libc::sigaction>::zeroed();
    // SAFETY: reads and writes one action each. The handler is the previous one, or ours. Ours is
    // async-signal-safe and stays mapped, as the library is never unloaded.
    unsafe { (libc::sigaction(number(), &new, before.as_mut_ptr()) == 0).then(|| before.assume_init().sa_sigaction) }
}

fn our_handler() -> usize {
    in_front as *const () as usize
}

/// Installs our handler in front of the runtime's. Returns whether that worked. The current handler
/// must look like the runtime's: it receives the signal's sender (SA_SIGINFO), and runs on the
/// thread's own stack.
pub(crate) fn stand_in_front() -> bool {
    let Some(action) = current_action() else { return false };
    if action.sa_sigaction == our_handler() {
        return true;
    }
    let is_handled = action.sa_sigaction != libc::SIG_DFL && action.sa_sigaction != libc::SIG_IGN;
    if !is_handled || action.sa_flags & libc::SA_SIGINFO == 0 || action.sa_flags & libc::SA_ONSTACK != 0 {
        return false;
    }
    BEFORE.store(action.sa_sigaction, Ordering::SeqCst);
    change_handler(&action, our_handler()).is_some()
}

/// Restores the previous handler, if ours is still installed.
pub(crate) fn put_back() {
    if let Some(action) = current_action().filter(|action| action.sa_sigaction == our_handler()) {
        // If the system refuses, our handler stays, and passes on signals that are not for it.
        change_handler(&action, BEFORE.load(Ordering::SeqCst));
    }
}

/// Whether our handler is still the current one.
pub(crate) fn is_ours() -> bool {
    current_action().is_some_and(|action| action.sa_sigaction == our_handler())
}

/// Whether the calling thread blocks the signal.
pub(crate) fn is_blocked_here() -> bool {
    let mut mask = MaybeUninit::<libc::sigset_t>::zeroed();
    // SAFETY: writes one set, for which zeroes are valid, and changes nothing.
    unsafe {
        libc::pthread_sigmask(libc::SIG_BLOCK, std::ptr::null(), mask.as_mut_ptr());
        libc::sigismember(mask.as_ptr(), number()) == 1
    }
}

/// Makes the handler do nothing, in a forked child. Async-signal-safe.
pub(crate) fn withdraw() {
    SHARED.withdraw();
}

/// The value that the signal of a target's timer carries.
pub(crate) fn value_of(target: usize) -> usize {
    (COOKIE as usize) << 32 | target
}

impl Shared {
    /// The next pause of a thread: between half an interval and one and a half (xorshift; Marsaglia
    /// 2003).
    fn pause(&self, target: &Target) -> u64 {
        let mut random = target.random.load(Ordering::Relaxed) | 1;
        random ^= random << 13;
        random ^= random >> 7;
        random ^= random << 17;
        target.random.store(random, Ordering::Relaxed);
        let interval_ns = self.interval_ns.load(Ordering::Relaxed).max(1);
        interval_ns / 2 + (random >> 11) % interval_ns
    }

    /// Arms the timer of a target.
    pub(crate) fn arm(&self, target: &Target, timer: Timer, seed: u64) {
        target.random.store(seed, Ordering::Relaxed);
        timer.set(self.pause(target));
    }

    /// CPU time in nanoseconds after which a thread without a sample is late. The kernel lets
    /// timers expire only once per tick.
    pub(crate) fn late_ns(&self) -> u64 {
        LATE_NS + 2 * self.interval_ns.load(Ordering::Relaxed)
    }
}

/// The handler. Signals of our timers go to [`on_timer`], and all others to the previous handler,
/// as if it had been called directly.
///
/// # Safety
/// Only for the kernel, as a handler with SA_SIGINFO, once [`BEFORE`] is set.
#[unsafe(naked)]
unsafe extern "C" fn in_front(signal: libc::c_int, info: *mut libc::siginfo_t, context: *mut c_void) {
    hand_on_unless_ours!(cookie = COOKIE, ours = on_timer, before = BEFORE)
}

/// Takes a sample, for a signal of one of our timers.
extern "C" fn on_timer(_signal: libc::c_int, info: *mut libc::siginfo_t, context: *mut c_void) {
    // SAFETY: the address of this thread's `errno`, which exists as long as the thread.
    let errno = unsafe { libc::__errno_location() };
    // SAFETY: as above.
    let kept = unsafe { errno.read() };
    // SAFETY: the kernel passes both to a handler with SA_SIGINFO. A timer's signal carries a
    // value.
    let (value, context) = unsafe { ((*info).si_value().sival_ptr.addr(), &*context.cast::<libc::ucontext_t>()) };
    let shared = SHARED.get().filter(|shared| shared.is_on.load(Ordering::Relaxed));
    let target = shared.and_then(|shared| Some((shared, shared.targets.get(value & 0xFFFF_FFFF)?)));
    if let Some((shared, target)) = target {
        sample(shared, target, context);
    }
    // SAFETY: as above.
    unsafe { errno.write(kept) };
}

fn sample(shared: &Shared, target: &Target, context: &libc::ucontext_t) {
    let who = target.who.load(Ordering::Acquire);
    let Some(number) = ((who >> 32) as i32).checked_sub(1) else { return };
    let timer = Timer::with_number(number);
    // SAFETY: the mask of the interrupted thread.
    let in_exception = unsafe { libc::sigismember(&context.uc_sigmask, libc::SIGSEGV) } == 1;
    if !in_exception {
        write_sample(shared, target, who as u32, interrupted(context));
    }
    timer.set(shared.pause(target));
}

/// A word of the interrupted stack, at or above its stack pointer `low` and below its end.
fn stack_word(address: usize, low: usize, end: usize) -> Option<usize> {
    let inside = address >= low && address < end && address.is_multiple_of(8);
    // SAFETY: between the interrupted stack pointer and the end of the same stack, which is this
    // thread's own: mapped, and not changed while the thread is here.
    inside.then(|| unsafe { std::ptr::with_exposed_provenance::<usize>(address).read_volatile() })
}

/// A walk along the frame pointers of the interrupted stack, within readable bounds.
struct Walk<'a> {
    shared: &'a Shared,
    low: usize,
    end: usize,
    /// The next frame; 0 for none.
    frame: usize,
    /// The instruction of the next frame.
    ip: usize,
}

impl Walk<'_> {
    fn word(&self, address: usize) -> Option<usize> {
        stack_word(address, self.low, self.end)
    }

    /// The next frame pointer with its return address. Where the chain is broken, the walk
    /// continues at the next place that looks like a frame, and the current step is marked with a
    /// gap.
    fn step(&mut self) -> Option<(usize, usize)> {
        let frame = self.frame;
        let return_address = self.word(frame.checked_add(8)?).filter(|address| is_code(*address))?;
        let next = self.word(frame)?;
        self.low = frame + 16;
        if self.shared.took_over.hold(self.ip) {
            // The frame that was taken over lies further out. Its saved frame pointer is the same
            // as that of this frame.
            let taken =
                (self.low..next.min(self.end)).step_by(8).take(SEARCHED).find(|&at| self.word(at) == Some(next));
            if let Some(taken) = taken.filter(|&at| self.is_frame(at)) {
                (self.frame, self.ip) = (taken, 0);
                return Some((frame | DETOUR, return_address));
            }
        }
        self.ip = return_address;
        if self.is_frame(next) {
            self.frame = next;
            return Some((frame, return_address));
        }
        self.frame = self.find().unwrap_or(0);
        Some((frame | GAP, return_address))
    }

    /// The first place that looks like a frame and leads to another one.
    fn find(&self) -> Option<usize> {
        let leads = |&at: &usize| self.word(at).is_some_and(|next| next > at + 8 && self.is_frame(next));
        (self.low..self.end).step_by(8).take(SEARCHED).find(|at| self.is_frame(*at) && leads(at))
    }

    fn is_frame(&self, at: usize) -> bool {
        let return_address = at.checked_add(8).and_then(|at| self.word(at));
        at >= self.low && return_address.is_some_and(|word| is_code(word) && !(self.low..self.end).contains(&word))
    }
}

/// Whether code may lie at an address.
fn is_code(address: usize) -> bool {
    (0x1_0000..1 << 47).contains(&address)
}

fn write_sample(shared: &Shared, target: &Target, os_id: u32, registers: Registers) {
    let Some(cpu_ns) = clock::own_cpu_ns() else { return };
    let (low, end) = (target.low.load(Ordering::Acquire), target.end.load(Ordering::Acquire));
    let on_stack = registers.sp >= low && registers.sp < end;
    let start = || {
        let (low, ip) = (registers.sp & !7, registers.ip);
        let first = Walk { shared, low, end, ip, frame: registers.bp };
        let frame = if first.is_frame(registers.bp) { registers.bp } else { first.find().unwrap_or(0) };
        Walk { frame, ..first }
    };
    let words = if on_stack { MOST_WORDS.min((end - (registers.sp & !7)) / 8) } else { FEW_WORDS };
    // Frames within the kept words add no information.
    let beyond = (registers.sp & !7) + 8 * words - 16;
    let steps = || {
        let mut walk = start();
        std::iter::from_fn(move || walk.step()).take(MOST_FRAMES).filter(move |(frame, _)| *frame > beyond)
    };
    let frames = if on_stack && beyond + 16 < end { steps().count() } else { 0 };
    let weight = cpu_ns.saturating_sub(target.cpu_ns.load(Ordering::Relaxed));
    let base = registers.sp & !7;
    let objects = on_stack.then(|| shared.objects.find(registers.ip, base, |at| stack_word(at, base, end))).flatten();
    let copies = objects.map_or(0, |_| ObjectCopies::words());
    let Some(mut slot) = shared.ring.reserve(HEADER + 2 * frames + words + copies) else { return };
    target.cpu_ns.store(cpu_ns, Ordering::Relaxed);
    [
        monotonic_ns(),
        weight,
        u64::from(os_id),
        registers.ip as u64,
        registers.sp as u64,
        registers.bp as u64,
        frames as u64,
        words as u64,
        objects.map_or(0, |first| first.this as u64),
    ]
    .into_iter()
    .for_each(|word| slot.push(word));
    for (frame, return_address) in steps().take(frames) {
        slot.push(frame as u64);
        slot.push(return_address as u64);
    }
    if on_stack {
        let stack = start();
        (0..words).for_each(|at| slot.push(stack.word(stack.low + at * 8).unwrap_or(0) as u64));
    } else {
        copy_what_is_there(registers.sp & !7, words, &mut slot);
    }
    if let Some(first) = &objects {
        shared.objects.write(first, &mut slot);
    }
}

/// Copies from a stack whose bounds were not looked up yet, as far as it is mapped. Missing words
/// stay 0.
fn copy_what_is_there(start: usize, words: usize, slot: &mut Slot<'_>) {
    for at in (0..words).step_by(PIECE_WORDS) {
        let mut piece = [0; 8 * PIECE_WORDS];
        if !copy_if_there(start + 8 * at, &mut piece) {
            return;
        }
        piece.as_chunks().0.iter().for_each(|word| slot.push(u64::from_le_bytes(*word)));
    }
}
