//! The signal by which timers take samples, and what its handler does.
//!
//! A real-time signal that nobody uses: programs and other profilers have `SIGPROF` for themselves.
//!
//! The handler allocates nothing, takes no lock, uses no thread-local storage but `errno`, and reads no memory but the
//! thread's own stack between the interrupted stack pointer and the end that was noted when the thread was first seen; where
//! none is known yet the system copies, which checks what is there. The
//! handler stays for good: a signal may be under way when the last timer is deleted, and its default action ends the
//! program. Signals of this number that somebody else sends do what they do without us.

use std::ffi::c_void;
use std::mem::MaybeUninit;
use std::sync::atomic::{AtomicBool, AtomicI32, AtomicU64, AtomicUsize, Ordering};

use clrscope_recording::writer::monotonic_ns;

use super::timers::Timer;
use crate::os::clock;
use crate::os::memory::copy_if_there;
use crate::services::memory::Published;
use crate::services::sampling::arch::interrupted;
use crate::services::sampling::raw::{DETOUR, GAP, Registers};
use crate::services::sampling::ring::{Ring, Slot};

/// The signal, once one was chosen.
static SIGNAL: AtomicI32 = AtomicI32::new(0);

/// The signal's number; 0 before one was chosen.
pub(crate) fn number() -> libc::c_int {
    SIGNAL.load(Ordering::Relaxed)
}

/// The highest signal that has its default action, of those that the C library and the runtime leave to programs.
fn unused() -> Option<libc::c_int> {
    let is_unused = |&signal: &libc::c_int| {
        // SAFETY: an action that was filled in.
        current_action(signal).is_some_and(|action| unsafe { action.assume_init() }.sa_sigaction == libc::SIG_DFL)
    };
    (libc::SIGRTMIN() + 4..libc::SIGRTMAX() - 1).rev().find(is_unused)
}
/// Threads that can have a timer at once.
pub(crate) const MOST_THREADS: usize = 1 << 14;
/// Upper half of the value that a timer's signal carries, by which it is known as ours.
const COOKIE: usize = 0xC175_C09E << 32;
/// Frames of a stack that are kept.
const MOST_FRAMES: usize = 1024;
/// Words of the stack that are kept: as many as perf events give. Frame pointers say how it goes on beyond them.
const MOST_WORDS: usize = 60 << 7;
/// Words that are kept of a stack whose end nobody knows yet.
const FEW_WORDS: usize = 512;
/// Words that are copied at once of a stack whose bounds are not known.
const PIECE_WORDS: usize = 32;
/// Words that are searched for a frame where the chain of frame pointers is broken.
const SEARCHED: usize = 2048;
/// Ranges of code of one kind.
const MOST_RANGES: usize = 192;

/// Ranges of code that the handler treats in another way, set by one thread.
pub(crate) struct Ranges {
    places: [(AtomicUsize, AtomicUsize); MOST_RANGES],
    count: AtomicUsize,
}

impl Ranges {
    fn new() -> Self {
        Self { places: [const { (AtomicUsize::new(0), AtomicUsize::new(0)) }; MOST_RANGES], count: AtomicUsize::new(0) }
    }

    /// Sets the ranges; of more than fit the first are kept.
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

/// A thread that is sampled.
#[derive(Default)]
pub(crate) struct Target {
    /// The system's number; 0 for a free place. Upper half: number of the timer and 1.
    pub(crate) who: AtomicU64,
    /// The stack: nothing is read below or above. 0 until they are known.
    pub(crate) low: AtomicUsize,
    pub(crate) end: AtomicUsize,
    /// CPU time at the last sample.
    pub(crate) cpu_ns: AtomicU64,
    random: AtomicU64,
}

/// Everything that the handler uses.
pub(crate) struct Shared {
    pub(crate) ring: Ring,
    pub(crate) targets: Box<[Target]>,
    interval_ns: AtomicU64,
    pub(crate) is_on: AtomicBool,
    /// Methods that took over running frames.
    pub(crate) took_over: Ranges,
}

static SHARED: Published<Shared> = Published::nothing();

/// Installs the handler, once; `None` where the system refuses, or every signal is in use.
pub(crate) fn install(interval_ns: u64, ring_words: usize) -> Option<&'static Shared> {
    if let Some(shared) = SHARED.get() {
        // An earlier recording of this process has installed it.
        shared.interval_ns.store(interval_ns, Ordering::Relaxed);
        return Some(shared);
    }
    SIGNAL.store(unused()?, Ordering::Relaxed);
    let shared = Shared {
        ring: Ring::new(ring_words),
        // SAFETY: a target is made of atomic numbers, of which 0 is a valid value. The system backs them as they are used.
        targets: unsafe { Box::new_zeroed_slice(MOST_THREADS).assume_init() },
        interval_ns: AtomicU64::new(interval_ns),
        is_on: AtomicBool::new(false),
        took_over: Ranges::new(),
    };
    let shared = SHARED.publish(shared);
    set_handler().then_some(shared)
}

fn current_action(signal: libc::c_int) -> Option<MaybeUninit<libc::sigaction>> {
    let mut action = MaybeUninit::zeroed();
    // SAFETY: writes one action.
    let known = unsafe { libc::sigaction(signal, std::ptr::null(), action.as_mut_ptr()) } == 0;
    known.then_some(action)
}

fn set_handler() -> bool {
    // SAFETY: zeroes are a valid action, of which the fields are set; the handler is async-signal-safe and stays mapped, for the
    // library is never unloaded. Calls of the kernel go on after it (SA_RESTART) where the kernel can let them.
    unsafe {
        let mut action: libc::sigaction = std::mem::zeroed();
        action.sa_sigaction = on_signal as *const () as usize;
        action.sa_flags = libc::SA_SIGINFO | libc::SA_RESTART;
        libc::sigemptyset(&mut action.sa_mask);
        libc::sigaddset(&mut action.sa_mask, number());
        libc::sigaction(number(), &action, std::ptr::null_mut()) == 0
    }
}

/// Whether the handler is still ours: a program may have found the signal unused, too, a moment later.
pub(crate) fn is_ours() -> bool {
    // SAFETY: an action that was filled in.
    current_action(number())
        .is_some_and(|action| unsafe { action.assume_init() }.sa_sigaction == on_signal as *const () as usize)
}

/// Sees to it that samples are not taken while a hardware exception is handled on its small stack: the signal is blocked
/// there from now on. The runtime leaves that handler without returning from it, so threads that it ran on must
/// [`unblock`] the signal themselves. Whether the action had to be changed.
pub(crate) fn keep_out_of_hardware_exceptions(block: bool) -> bool {
    let Some(action) = current_action(libc::SIGSEGV) else { return false };
    // SAFETY: an action that was filled in, changed in its mask only; nobody else changes it between the two calls but code that
    // installs handlers at the same moment, whose handler would then be gone: the window is as short as it can be.
    unsafe {
        let mut action = action.assume_init();
        let is_handled = action.sa_sigaction != libc::SIG_DFL && action.sa_sigaction != libc::SIG_IGN;
        let is_blocked = libc::sigismember(&action.sa_mask, number()) == 1;
        if !is_handled || is_blocked == block {
            return false;
        }
        let change = if block { libc::sigaddset } else { libc::sigdelset };
        change(&mut action.sa_mask, number());
        libc::sigaction(libc::SIGSEGV, &action, std::ptr::null_mut()) == 0
    }
}

/// Lets samples of the calling thread be taken again.
pub(crate) fn unblock() {
    // SAFETY: a set with one signal.
    unsafe {
        let mut set: libc::sigset_t = std::mem::zeroed();
        libc::sigemptyset(&mut set);
        libc::sigaddset(&mut set, number());
        libc::pthread_sigmask(libc::SIG_UNBLOCK, &set, std::ptr::null_mut());
    }
}

/// Makes the handler do nothing: for a forked child. Async-signal-safe.
pub(crate) fn withdraw() {
    SHARED.withdraw();
}

/// The value by which a timer's signal names its target.
pub(crate) fn value_of(target: usize) -> usize {
    COOKIE | target
}

impl Shared {
    /// The next pause of a thread: between half and one and a half of the interval (xorshift; Marsaglia 2003).
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
}

extern "C" fn on_signal(signal: libc::c_int, info: *mut libc::siginfo_t, context: *mut c_void) {
    // SAFETY: the address of this thread's `errno`, which exists as long as the thread.
    let errno = unsafe { libc::__errno_location() };
    // SAFETY: as above.
    let kept = unsafe { errno.read() };
    // SAFETY: the kernel hands both to a handler with SA_SIGINFO; a timer's signal carries a value.
    let value = unsafe { ((*info).si_code == libc::SI_TIMER).then(|| (*info).si_value().sival_ptr.addr()) };
    match value.filter(|value| value & !0xFFFF_FFFF == COOKIE) {
        Some(value) => {
            // SAFETY: the kernel hands a context of this kind to a handler with SA_SIGINFO.
            let context = unsafe { &*context.cast::<libc::ucontext_t>() };
            let shared = SHARED.get().filter(|shared| shared.is_on.load(Ordering::Relaxed));
            let target = shared.and_then(|shared| Some((shared, shared.targets.get(value & 0xFFFF_FFFF)?)));
            if let Some((shared, target)) = target {
                sample(shared, target, context);
            }
        }
        None => act_by_default(signal),
    }
    // SAFETY: as above.
    unsafe { errno.write(kept) };
}

/// Does with a signal that somebody else sent what happens without us: the default action, which ends the program once this
/// handler has returned.
fn act_by_default(signal: libc::c_int) {
    // SAFETY: async-signal-safe calls without addresses.
    unsafe {
        libc::signal(signal, libc::SIG_DFL);
        libc::raise(signal);
    }
}

fn sample(shared: &Shared, target: &Target, context: &libc::ucontext_t) {
    let who = target.who.load(Ordering::Acquire);
    let Some(number) = ((who >> 32) as i32).checked_sub(1) else { return };
    let timer = Timer::with_number(number);
    // SAFETY: the mask of the interrupted thread.
    let in_exception = unsafe { libc::sigismember(&context.uc_sigmask, libc::SIGSEGV) } == 1;
    if !in_exception {
        take(shared, target, who as u32, interrupted(context));
    }
    timer.set(shared.pause(target));
}

/// A word of the interrupted stack, from at or above its stack pointer `low` and below its end.
fn stack_word(address: usize, low: usize, end: usize) -> Option<usize> {
    let inside = address >= low && address < end && address.is_multiple_of(8);
    // SAFETY: between the interrupted stack pointer and the end of the same stack, which is this thread's own: mapped, and changed
    // by nobody while the thread is here.
    inside.then(|| unsafe { std::ptr::with_exposed_provenance::<usize>(address).read_volatile() })
}

/// A walk along the frame pointers of the interrupted stack, with what may be read of it.
struct Walk<'a> {
    shared: &'a Shared,
    low: usize,
    end: usize,
    /// The frame that is next; 0 for none.
    frame: usize,
    /// The instruction that the next frame belongs to.
    ip: usize,
}

impl Walk<'_> {
    fn word(&self, address: usize) -> Option<usize> {
        stack_word(address, self.low, self.end)
    }

    /// The next frame pointer with its return address. Where the chain is broken, the next place that looks like a frame is
    /// taken, and the step before has a gap behind it.
    fn step(&mut self) -> Option<(usize, usize)> {
        let frame = self.frame;
        let return_address = self.word(frame.checked_add(8)?).filter(|address| is_code(*address))?;
        let next = self.word(frame)?;
        self.low = frame + 16;
        if self.shared.took_over.hold(self.ip) {
            // The frame that was taken over lies above, and leads where the one above leads.
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

fn take(shared: &Shared, target: &Target, os_id: u32, registers: Registers) {
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
    // Frames that lie among the words say nothing that those don't.
    let beyond = (registers.sp & !7) + 8 * words - 16;
    let steps = || {
        let mut walk = start();
        std::iter::from_fn(move || walk.step()).take(MOST_FRAMES).filter(move |(frame, _)| *frame > beyond)
    };
    let frames = if on_stack && beyond + 16 < end { steps().count() } else { 0 };
    let weight = cpu_ns.saturating_sub(target.cpu_ns.load(Ordering::Relaxed));
    let Some(mut slot) = shared.ring.reserve(7 + 2 * frames + words) else { return };
    target.cpu_ns.store(cpu_ns, Ordering::Relaxed);
    [
        monotonic_ns(),
        weight,
        u64::from(os_id),
        registers.ip as u64,
        registers.sp as u64,
        registers.bp as u64,
        frames as u64,
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
}

/// Copies from a stack whose bounds nobody has looked up yet, as far as the system finds it there. What is missing stays 0.
fn copy_what_is_there(start: usize, words: usize, slot: &mut Slot<'_>) {
    for at in (0..words).step_by(PIECE_WORDS) {
        let mut piece = [0; 8 * PIECE_WORDS];
        if !copy_if_there(start + 8 * at, &mut piece) {
            return;
        }
        piece.as_chunks().0.iter().for_each(|word| slot.push(u64::from_le_bytes(*word)));
    }
}
