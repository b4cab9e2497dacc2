//! The map of code: finds the method, library or stub at an address.
//!
//! | module | what it holds |
//! |---|---|
//! | `feed` | new and unloaded bodies, as callbacks report them |
//! | `origins` | how each body was compiled, in one word |
//! | `bodies` | compiled methods by address, separate for each tier, including precompiled code and recently unloaded code |
//! | `hidden` | return addresses that no frame pointer leads to |
//! | `native` | libraries and other mappings; `elf` reads their files |
//!
//! Only one thread looks addresses up, the one that drains samples: a look-up asks the runtime
//! about new addresses, allocates, and reads files. Nothing here is for hooks or signal handlers.

mod bodies;
pub(crate) mod elf;
mod feed;
mod hidden;
pub mod native;
mod origins;

use std::collections::{HashMap, HashSet};
use std::hash::BuildHasherDefault;
use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use clr_profiler::ProfilerInfo;
use clrscope_recording::model::{Inlining, Module, ModuleKind, StackFrame};
use clrscope_recording::writer::monotonic_ns;

use bodies::Bodies;
pub use bodies::Body;
use clrscope_agent_base::code_owner::is_call_before;
use clrscope_agent_base::functions::Functions;
pub use feed::{CodeFeed, SharedCodeFeed};
pub use native::Library;
use native::{Contents, NativeMap};

use crate::awaiters::{AsyncPart, Awaiters, Questions};
use crate::inlined::called::{CodeAt, called_before, called_by};
use crate::inlined::{CodeOffset, InlinedFrames, InlinedThere, KnownRows};
use crate::stacks::Mix;
use crate::unwind::{BodyStep, FrameShape};

/// Longest time for which a list of mappings is trusted.
const STALE_NS: u64 = 2_000_000_000;
/// Shortest time between two readings of the list for single addresses. While readings find nothing
/// new, each interval is twice as long as the one before.
const HASTE_NS: u64 = 50_000_000;

/// What kind of code is at an address.
#[derive(Clone)]
pub enum Place {
    /// A compiled method.
    Method(Arc<Body>),
    /// A library, with the index of its module in the recording.
    Native(Arc<Library>, u32),
    /// Code of the runtime outside of methods: a stub, or an unloaded method. Offsets in such code
    /// have no meaning.
    Stub,
    /// Nothing executable.
    Nowhere,
}

impl Place {
    /// Whether this already existed at a time, if known.
    fn is_as_old_as(&self, time_ns: u64) -> bool {
        match self {
            Self::Method(body) => body.is_as_old_as(time_ns),
            Self::Native(..) | Self::Stub | Self::Nowhere => true,
        }
    }
}

/// How an address came to be known. This says whether code there has run.
#[derive(Clone, Copy, PartialEq, Eq)]
enum KnownFrom {
    /// A thread was interrupted at this address.
    Interrupted,
    /// A word on a stack looks like the return address of a call there. That may be a coincidence:
    /// see [`code_owner`](clrscope_agent_base::code_owner).
    Called,
}

/// The frames for one position in compiled code, including inlined methods.
#[derive(Debug, Clone, Copy)]
pub struct FramesThere {
    /// The frame of the method that owns the code.
    pub frame: StackFrame,
    /// Methods inlined there; see [`CodeMap::inlined`].
    pub inlined: InlinedFrames,
    /// Whether the inlined methods are known.
    pub inlining: Inlining,
    /// Whether the frames for this position stay the same.
    pub lasts: bool,
}

impl FramesThere {
    /// Returns a frame outside of methods.
    pub(crate) fn from_frame(frame: StackFrame) -> Self {
        Self { frame, inlined: InlinedFrames::default(), inlining: Inlining::Unsaid, lasts: true }
    }
}

/// The map of code.
pub struct CodeMap {
    feed: Arc<CodeFeed>,
    /// Number of the map among the feed's readers.
    reader: usize,
    functions: Arc<Functions>,
    bodies: Bodies,
    /// Frames of inlined methods.
    rows: KnownRows,
    native: NativeMap,
    /// Modules of libraries in the recording, by load address.
    modules: HashMap<usize, (u32, Arc<Library>)>,
    special: HashMap<&'static str, u32>,
    read_ns: u64,
    /// Time after which the list is read again for one address.
    haste_ns: u64,
    /// Whether mappings were removed or replaced since cached addresses were last dropped.
    has_moved: bool,
    /// What was found at addresses, until code is unloaded or new code appears where none was.
    places: HashMap<usize, Place, BuildHasherDefault<Mix>>,
    /// Whether a call ends right before an address; `None` if unreadable.
    calls: HashMap<usize, Option<bool>, BuildHasherDefault<Mix>>,
    /// Frames by number of the body and address.
    frames: HashMap<(u64, usize, bool), StackFrame, BuildHasherDefault<Mix>>,
    /// Numbers of the bodies that were already checked for async code.
    noted: HashSet<u64, BuildHasherDefault<Mix>>,
    /// Number of unloads before the changes that callbacks have reported so far.
    unloads: u64,
}

/// Runs `look` with `owner`. Unloads wait in the meantime, so the code map of `owner` may query the
/// runtime. If the map missed an unload, or one is in progress, the runtime is not queried, and
/// unknown addresses stay unknown. Calls must not be nested.
pub fn look<T, R>(owner: &mut T, map: fn(&mut T) -> &mut CodeMap, look: impl FnOnce(&mut T) -> R) -> R {
    let unloads = Arc::clone(map(owner).feed.unloads());
    let held = unloads.hold(map(owner).unloads);
    map(owner).bodies.asks = held.is_some();
    let found = look(owner);
    map(owner).bodies.asks = false;
    found
}

/// Most addresses that are remembered.
const MOST_PLACES: usize = 1 << 16;

impl CodeMap {
    /// Creates an empty map. From now on callbacks report code to it through the process's feed.
    /// `has_changed_code`: instruments may change methods as soon as their module is loaded.
    pub fn new(
        info: &ProfilerInfo,
        functions: &Arc<Functions>,
        feed: &SharedCodeFeed,
        has_changed_code: Arc<AtomicBool>,
    ) -> Self {
        let feed = feed.open(info, functions, has_changed_code);
        Self {
            reader: feed.reader(),
            bodies: Bodies::new(info, functions, &feed),
            feed,
            functions: Arc::clone(functions),
            rows: KnownRows::default(),
            native: NativeMap::default(),
            modules: HashMap::new(),
            special: HashMap::new(),
            read_ns: 0,
            haste_ns: HASTE_NS,
            has_moved: false,
            places: HashMap::default(),
            calls: HashMap::default(),
            frames: HashMap::default(),
            noted: HashSet::default(),
            unloads: 0,
        }
    }

    /// Applies the changes that callbacks reported. Returns whether any code was unloaded, so that
    /// earlier answers about addresses may be wrong now.
    pub fn update(&mut self) -> bool {
        // Counted first: the changes may lack anything reported from here on.
        self.unloads = self.feed.unloads().count();
        let news = self.feed.take_news(self.reader);
        if self.is_older_than(STALE_NS) {
            self.refresh();
            self.bodies.forget_stubs();
            self.places.retain(|_, place| !matches!(place, Place::Stub));
        }
        let has_changed = self.bodies.update(news) | std::mem::take(&mut self.has_moved);
        if has_changed || self.calls.len() > MOST_PLACES {
            self.calls.clear();
        }
        if has_changed || self.places.len() > MOST_PLACES {
            self.places.clear();
            self.frames.clear();
            self.noted.clear();
        }
        has_changed
    }

    /// Whether the map has missed an unload.
    pub fn is_behind(&self) -> bool {
        self.feed.unloads().count() != self.unloads
    }

    fn refresh(&mut self) {
        self.has_moved |= self.native.update(&clrscope_agent_base::os::process::mappings());
        self.read_ns = monotonic_ns();
    }

    /// Whether the list was read before a time.
    fn is_older_than(&self, time_ns: u64) -> bool {
        monotonic_ns().saturating_sub(self.read_ns) > time_ns
    }

    /// Reads the list for an address that is not in it, if the pause allows that: a walk that has
    /// gone wrong finds such addresses all the time.
    fn refresh_for(&mut self, address: usize) {
        if self.is_older_than(self.haste_ns) {
            self.refresh();
            let was_worth_it = self.native.at(address).is_some();
            self.haste_ns = if was_worth_it { HASTE_NS } else { (2 * self.haste_ns).min(STALE_NS) };
        }
    }

    /// Asks the runtime for the method at an address that was on a thread's stack at a time. Not if
    /// a module was unloaded since then, as the runtime may read data of code that it is about to
    /// free. Not if it is certain that no call ends there.
    fn ask(&mut self, address: usize, known: KnownFrom, is_image: bool, time_ns: u64) -> Option<Arc<Body>> {
        let may_ask = self.bodies.asks
            && !self.may_be_gone(time_ns)
            && !self.bodies.is_known_stub(address)
            && (known == KnownFrom::Interrupted || self.is_call_before(address + 1) != Some(false));
        if may_ask { self.bodies.ask(address, is_image) } else { None }
    }

    /// Runs `look_at` with this map, which may ask the runtime in the meantime; see [`look`].
    pub fn look<R>(&mut self, look_at: impl FnOnce(&mut Self) -> R) -> R {
        look(self, |map| map, look_at)
    }

    /// Whether the runtime may be queried about objects on a stack.
    pub(crate) fn questions(&self) -> Questions {
        if self.bodies.asks { Questions::Asked } else { Questions::Noted }
    }

    /// Whether it is certain that no call ends right before an address.
    pub(crate) fn follows_no_call(&mut self, address: usize) -> bool {
        self.is_call_before(address) == Some(false)
    }

    fn is_call_before(&mut self, address: usize) -> Option<bool> {
        *self.calls.entry(address).or_insert_with(|| is_call_before(address))
    }

    /// Whether code that existed at a time may be unloaded by now.
    pub(crate) fn may_be_gone(&self, time_ns: u64) -> bool {
        self.feed.last_unload_ns() >= time_ns
    }

    /// Whether an address is a return address, without reading the list of mappings again. For
    /// words that may only look like addresses, as most do.
    pub fn is_return_address(&mut self, address: usize, time_ns: u64) -> bool {
        let call = address - 1;
        let is_code = self.places.contains_key(&call)
            || self.native.at(call).is_some()
            || self.bodies.find(call, time_ns).is_some()
            || self.ask(call, KnownFrom::Called, false, time_ns).is_some();
        is_code && self.is_call_before(address) == Some(true)
    }

    /// The function of a library around an address, found by the library's unwind data.
    pub(crate) fn native_function(&self, address: usize) -> Option<(&Library, Range<usize>)> {
        let Contents::Library(library) = self.native.at(address)? else { return None };
        let distance = (library.base as u64).wrapping_sub(library.elf.loaded.start);
        let found = library.elf.function_around((address as u64).wrapping_sub(distance))?;
        let at = |address: u64| address.wrapping_add(distance) as usize;
        Some((library, at(found.start)..at(found.end)))
    }

    /// Whether a function of a library begins at the address: no call returns there.
    pub(crate) fn begins_function(&self, address: usize) -> bool {
        self.native_function(address).is_some_and(|(_, function)| function.start == address)
    }

    /// Whether a library's unwind data covers the function around an address.
    pub(crate) fn has_unwind_data(library: &Library, address: usize) -> bool {
        let distance = (library.base as u64).wrapping_sub(library.elf.loaded.start);
        library.elf.has_unwind_data((address as u64).wrapping_sub(distance))
    }

    /// Whether this result for an address holds until code is unloaded.
    pub fn lasts(&self, place: &Place) -> bool {
        match place {
            Place::Method(body) => self.bodies.is_live(body),
            Place::Native(..) => true,
            Place::Stub | Place::Nowhere => false,
        }
    }

    /// Returns the code at an address where a thread was interrupted at a time.
    pub fn place_at(&mut self, address: usize, time_ns: u64) -> Place {
        self.place_known(address, KnownFrom::Interrupted, time_ns)
    }

    /// The code of the call that returns to an address. The address was on a stack at time
    /// `time_ns`. The return address itself belongs to the next instruction.
    pub fn place_of_call(&mut self, return_address: usize, time_ns: u64) -> Place {
        self.place_known(return_address.saturating_sub(1), KnownFrom::Called, time_ns)
    }

    fn place_known(&mut self, address: usize, known: KnownFrom, time_ns: u64) -> Place {
        if let Some(place) = self.places.get(&address).filter(|place| place.is_as_old_as(time_ns)) {
            return place.clone();
        }
        let place = self.look_up(address, known, time_ns);
        let is_sure = match &place {
            Place::Method(body) => self.bodies.is_live(body),
            // New code may be placed where none is.
            Place::Nowhere => false,
            // If a thread is interrupted there later, the runtime is asked about it.
            Place::Stub => self.bodies.asks && known == KnownFrom::Interrupted && !self.may_be_gone(time_ns),
            Place::Native(..) => true,
        };
        if is_sure {
            self.places.insert(address, place.clone());
        }
        place
    }

    fn look_up(&mut self, address: usize, known: KnownFrom, time_ns: u64) -> Place {
        if let Some(body) = self.bodies.find(address, time_ns) {
            return Place::Method(body);
        }
        let mut contents = self.native.at(address).cloned();
        if contents.is_none() {
            // The runtime maps memory for code all the time. Asking the runtime costs less than
            // reading the list.
            if let Some(body) = self.ask(address, known, false, time_ns) {
                return Place::Method(body);
            }
            self.refresh_for(address);
            contents = self.native.at(address).cloned();
        }
        match contents {
            Some(Contents::Library(library)) => {
                let module = self.module(&library);
                Place::Native(library, module)
            }
            Some(Contents::Runtime { is_image }) => {
                self.ask(address, known, is_image, time_ns).map_or(Place::Stub, Place::Method)
            }
            None => Place::Nowhere,
        }
    }

    /// The frame to record for a place in code. `is_return`: the address is a return address.
    pub fn frame(&mut self, place: &Place, address: usize, is_return: bool) -> StackFrame {
        match place {
            Place::Method(body) => {
                let key = (body.number, address, is_return);
                if let Some(known) = self.frames.get(&key) {
                    return *known;
                }
                let (frame, lasts) = self.bodies.frame(body, address, is_return);
                if lasts {
                    self.frames.insert(key, frame);
                }
                frame
            }
            Place::Native(library, module) => {
                // A call that never returns may be the last instruction of its caller: the next
                // byte belongs to another function.
                let at = address - usize::from(is_return);
                StackFrame::Native { module: *module, offset: at.wrapping_sub(library.base) as u32 }
            }
            Place::Stub => StackFrame::Native { module: self.special("[stub]", ModuleKind::Stub), offset: 0 },
            Place::Nowhere => StackFrame::Unknown,
        }
    }

    /// The frames at a position in a method, for an address on a stack. `is_return`: the address is
    /// a return address.
    pub fn frames_there(&mut self, body: &Arc<Body>, address: usize, is_return: bool, time_ns: u64) -> FramesThere {
        let frame = self.frame(&Place::Method(Arc::clone(body)), address, is_return);
        let inlining = if body.holds_no_other() { Inlining::None } else { Inlining::Unknown };
        let alone = FramesThere { inlining, ..FramesThere::from_frame(frame) };
        if body.candidates().is_empty() {
            return alone;
        }
        if !self.bodies.may_ask_about(body) {
            return FramesThere { lasts: false, ..alone };
        }
        let inlined = Arc::clone(self.feed.inlined());
        let offset = (address - usize::from(is_return)).wrapping_sub(body.start()) as u32;
        let at = CodeOffset { start: body.start(), offset, is_call: is_return };
        let called = is_return.then(|| called_before(address, |at| self.code_at(at, false, time_ns)));
        let calls = || called_by(&body.addresses, |at| self.code_at(at, true, time_ns));
        let (there, lasts) = inlined.there((body.id(), body.candidates()), (called, at), calls);
        let there = there.map_or(alone, |there| self.with_inlined(frame, there));
        FramesThere { lasts, ..there }
    }

    /// The frame of a method together with the methods inlined there.
    fn with_inlined(&mut self, frame: StackFrame, there: InlinedThere) -> FramesThere {
        self.feed.inlined().copy_rows(&mut self.rows);
        let inlining = match there {
            InlinedThere { may_be_deeper: true, .. } => Inlining::Unknown,
            // The instruction is the method's own.
            InlinedThere { frames, .. } if frames.number() == 0 => Inlining::None,
            _ => Inlining::Named,
        };
        FramesThere { frame: there.at_call(frame), inlined: there.frames, inlining, lasts: true }
    }

    /// The role of a method in asynchronous code, at an address on a stack. `is_return`: the
    /// address is a return address.
    pub(crate) fn async_part(&self, body: &Body, address: usize, is_return: bool) -> AsyncPart {
        if !self.bodies.may_ask_about(body) {
            return AsyncPart::Other;
        }
        let awaiters = self.feed.awaiters();
        match is_return {
            true => awaiters.part(body.id(), body.start()),
            false => awaiters.part_interrupted(body.id(), body.start(), address),
        }
    }

    /// Registers a body for [`Awaiters::fold`] if it is async code. `unloads` is the number of
    /// unloads before the body was seen.
    pub fn note_async_code(&mut self, body: &Body, unloads: u64) {
        let may_ask = self.bodies.may_ask_about(body) && unloads == self.unloads;
        if may_ask && self.noted.insert(body.number) {
            self.feed.awaiters().note_code(body.id(), body.start(), body.addresses.clone());
        }
    }

    /// The table of async methods and their awaiters.
    pub(crate) fn awaiters(&self) -> &Awaiters {
        self.feed.awaiters()
    }

    /// The frames of methods inlined into another one, innermost first.
    pub fn inlined(&self, frames: InlinedFrames) -> &[StackFrame] {
        self.rows.get(frames)
    }

    /// The code at an address to which a call leads. `is_guess`: the address comes from bytes that
    /// look like a call. They may be something else, or a call that was never made, and the runtime
    /// may be queried about such an address only where it places compiled code, not in images
    /// ([`code_owner`](clrscope_agent_base::code_owner)).
    fn code_at(&mut self, address: usize, is_guess: bool, time_ns: u64) -> CodeAt {
        let method = |body: Arc<Body>| CodeAt::Method { method: body.id(), start: body.start() };
        if let Some(body) = self.bodies.find(address, u64::MAX) {
            return method(body);
        }
        let is_image = match self.native.at(address) {
            Some(Contents::Library(_)) => return CodeAt::Library,
            Some(Contents::Runtime { is_image }) => Some(*is_image),
            None => None,
        };
        let may_ask = !is_guess || (is_image == Some(false) && !self.bodies.is_in_image(address));
        if !may_ask || !self.bodies.asks || self.may_be_gone(time_ns) {
            return CodeAt::Unknown;
        }
        let body = self.ask(address, KnownFrom::Interrupted, is_image.unwrap_or(false), time_ns);
        body.map_or(CodeAt::Piece, method)
    }

    /// The step from an address in a body to its caller. `is_return`: the address is a return
    /// address, not an interrupted instruction.
    pub(crate) fn step(&mut self, body: &Arc<Body>, address: usize, is_return: bool) -> BodyStep {
        self.bodies.step(body, address, is_return)
    }

    /// The layout of a body's frame after the prolog; `None` if unknown.
    pub fn frame_shape(&mut self, body: &Arc<Body>) -> Option<FrameShape> {
        self.bodies.frame_shape(body)
    }

    /// The frame of a body, without a position in it.
    pub fn frame_without_line(&self, body: &Body) -> StackFrame {
        body.frame(None)
    }

    /// Whether a body is known to have catch, finally or filter blocks.
    pub fn has_blocks(&self, body: &Body) -> bool {
        self.bodies.has_blocks(body)
    }

    /// The name of a body's method; `None` if the runtime must not be queried.
    pub fn name(&self, body: &Body) -> Option<String> {
        self.bodies.name(body)
    }

    /// A frame of the kernel. `offset` counts in bytes from the kernel's first function.
    pub fn kernel(&mut self, offset: u32) -> StackFrame {
        StackFrame::Native { module: self.special("[kernel]", ModuleKind::Kernel), offset }
    }

    /// Addresses of the code of methods that took over running frames.
    pub(crate) fn code_that_took_over(&self) -> impl Iterator<Item = Range<usize>> {
        self.bodies.that_took_over()
    }

    /// Whether code that took over running frames was found since the last call.
    pub(crate) fn takes_over_anew(&mut self) -> bool {
        std::mem::take(&mut self.bodies.took_over_anew)
    }

    fn module(&mut self, library: &Arc<Library>) -> u32 {
        match self.modules.get(&library.base) {
            Some((module, known)) if Arc::ptr_eq(known, library) => *module,
            _ => {
                let module = self.functions.library(Module {
                    name: library.name.clone(),
                    path: library.path.to_string_lossy().into_owned(),
                    kind: ModuleKind::Native,
                    build_id: library.elf.build_id.clone(),
                    ..Module::default()
                });
                self.modules.insert(library.base, (module, Arc::clone(library)));
                module
            }
        }
    }

    fn special(&mut self, name: &'static str, kind: ModuleKind) -> u32 {
        let functions = &self.functions;
        *self
            .special
            .entry(name)
            .or_insert_with(|| functions.library(Module { name: name.to_owned(), kind, ..Module::default() }))
    }
}
