//! Compiled methods by address. A body is the code of one compilation of a method.

use std::cell::OnceCell;
use std::collections::{BTreeMap, HashMap, HashSet, VecDeque};
use std::ops::Range;
use std::sync::{Arc, OnceLock};

use clr_profiler::{FunctionId, IlPlace, IlRange, ModuleId, ProfilerInfo};
use clrscope_agent_base::code_owner::{RunAddress, function_at};
use clrscope_agent_base::functions::Functions;
use clrscope_agent_base::il::{body_of, has_blocks, is_in_filter};
use clrscope_agent_base::os::memory::copy_if_there;
use clrscope_recording::model::{StackFrame, Tier};

use super::feed::{CodeChanges, CodeFeed, NewBody};
use super::origins::Origin;
use crate::inlined::Candidates;
use crate::stacks::{code_around, code_start, recorded_place};
use crate::unwind::images::{Image, Images};
use crate::unwind::tables::{BodyCode, BodyUnwind, OwnMemory};
use crate::unwind::{BodyStep, FrameShape, arch};

/// Time that unloaded code is remembered, as samples of it may still come.
const REMEMBERED_NS: u64 = 5_000_000_000;
/// Bytes of a body that are searched for counters.
const SEARCHED: usize = 4096;
/// Most addresses without a method that are remembered.
const MOST_STUBS: usize = 1 << 14;
/// Longest time for which code may run before it is reported. The thread that compiled it may have
/// to wait for a processor or a collection before it reports the code.
const TOLD_LATE_NS: u64 = 100_000_000;

/// A contiguous piece of a body.
pub struct Body {
    /// Addresses of the piece.
    pub addresses: Range<usize>,
    /// Start of the body; differs from the start of the piece if the piece is cold code.
    start: usize,
    function: u32,
    id: FunctionId,
    is_framework: bool,
    /// The module with which the body is unloaded, where that was reported.
    module: Option<ModuleId>,
    tier: Tier,
    born_ns: u64,
    il: OnceLock<Vec<IlRange>>,
    unwind: OnceLock<BodyUnwind>,
    has_blocks: OnceLock<bool>,
    /// Methods that the compiler may have inlined into the body.
    candidates: Candidates,
    /// Whether the body was compiled while the agent watched.
    was_watched: bool,
    /// A number that distinguishes the body from earlier and later bodies at the same address.
    pub(super) number: u64,
}

impl Body {
    /// The frame of the method, as it is recorded. `place` is the position in the IL.
    pub(super) fn frame(&self, place: Option<IlPlace>) -> StackFrame {
        let (il_offset, il_span) = recorded_place(place);
        StackFrame::Method { function: self.function, il_offset, il_span, tier: self.tier }
    }

    /// Whether the body took over a running frame (on-stack replacement); the frame of the replaced
    /// body is then still beneath it on the stack.
    pub(crate) fn took_over(&self) -> bool {
        self.tier == Tier::Osr
    }

    /// Whether the body existed at a time, if it has not been unloaded.
    pub(super) fn is_as_old_as(&self, time_ns: u64) -> bool {
        self.born_ns <= time_ns
    }

    /// Time in monotonic nanoseconds when the body was made; 0 if it was not reported.
    pub(crate) fn born_ns(&self) -> u64 {
        self.born_ns
    }

    /// The runtime's identifier of the method.
    pub fn id(&self) -> FunctionId {
        self.id
    }

    /// Address at which the body of this piece begins.
    pub(super) fn start(&self) -> usize {
        self.start
    }

    /// Methods that the compiler may have inlined into the body.
    pub(super) fn candidates(&self) -> &Candidates {
        &self.candidates
    }

    /// Whether the body certainly contains no inlined methods: the compiler considered none while
    /// the agent was loaded.
    pub(super) fn holds_no_other(&self) -> bool {
        self.candidates.is_empty() && self.was_watched
    }

    fn code<'a>(&'a self, image: Option<&'a Image>) -> BodyCode<'a> {
        BodyCode { code: &self.addresses, image, memory: &OwnMemory }
    }

    /// Whether the method belongs to the framework.
    pub fn is_framework(&self) -> bool {
        self.is_framework
    }
}

/// A method, as its bodies refer to it.
#[derive(Clone, Copy)]
struct Method {
    index: u32,
    id: FunctionId,
    is_framework: bool,
    module: Option<ModuleId>,
}

/// All bodies that were looked up.
pub(super) struct Bodies {
    info: ProfilerInfo,
    functions: Arc<Functions>,
    feed: Arc<CodeFeed>,
    /// Pieces by their start addresses. They don't overlap.
    live: BTreeMap<usize, Arc<Body>>,
    /// Unloaded pieces, with the times of their unloads.
    gone: VecDeque<(Arc<Body>, u64)>,
    dynamic: HashMap<FunctionId, Vec<usize>>,
    images: Images,
    /// Addresses at which the runtime knows no method.
    stubs: HashMap<usize, ()>,
    /// Whether a new body that took over a running frame was found since this was last reset.
    pub(super) took_over_anew: bool,
    /// Whether the runtime's tiers are off.
    tiers_off: OnceCell<bool>,
    /// Number of bodies so far.
    made: u64,
    /// Whether the runtime may be queried, because unloads are waiting.
    pub(super) asks: bool,
}

impl Bodies {
    pub(super) fn new(info: &ProfilerInfo, functions: &Arc<Functions>, feed: &Arc<CodeFeed>) -> Self {
        Self {
            info: info.clone(),
            functions: Arc::clone(functions),
            feed: Arc::clone(feed),
            live: BTreeMap::new(),
            gone: VecDeque::new(),
            dynamic: HashMap::new(),
            images: Images::default(),
            stubs: HashMap::new(),
            took_over_anew: false,
            tiers_off: OnceCell::new(),
            made: 0,
            asks: false,
        }
    }

    /// Applies the changes that callbacks reported. Returns whether any code was unloaded.
    pub(super) fn update(&mut self, news: CodeChanges) -> bool {
        let mut is_gone = !news.freed.is_empty() || !news.unloaded.is_empty();
        if !news.bodies.is_empty() || is_gone {
            self.stubs.clear();
        }
        for body in news.bodies {
            let start = body.ranges.first().map_or(0, |range| range.start);
            let NewBody { function: index, id, is_framework, module, .. } = body;
            let method = Method { index, id, is_framework, module };
            for range in &body.ranges {
                let addresses = range.start..range.start + range.bytes;
                is_gone |= self.insert(
                    addresses,
                    start,
                    method,
                    (Some(body.origin), body.born_ns),
                    (body.il.clone(), &body.candidates),
                );
            }
            // The code may be unloaded by the time it is asked about.
            let fleeting = body.ranges.iter().filter_map(|range| self.live.get(&range.start));
            for body in fleeting {
                body.unwind.get_or_init(|| BodyUnwind::find(body.code(None)));
            }
            if body.origin == Origin::Dynamic {
                self.dynamic.insert(body.id, body.ranges.iter().map(|range| range.start).collect());
            }
        }
        for (id, freed_ns) in news.freed {
            for start in self.dynamic.remove(&id).unwrap_or_default() {
                self.retire(start, freed_ns);
            }
        }
        if let Some(last_ns) = news.unloaded.iter().map(|(_, unloaded_ns)| *unloaded_ns).max() {
            self.images.forget();
            self.unload(&news.unloaded.into_iter().collect(), last_ns);
        }
        is_gone
    }

    /// Modules were unloaded, each at its time. Code without a known module may have been unloaded,
    /// too, so it is forgotten as well. If it is still there, it is asked for again.
    fn unload(&mut self, modules: &HashMap<ModuleId, u64>, last_ns: u64) {
        let dynamic: HashSet<usize> = self.dynamic.values().flatten().copied().collect();
        let gone = |(start, body): (&usize, &Arc<Body>)| match body.module {
            // The identifier may belong to another module by now.
            Some(module) => {
                modules.get(&module).filter(|gone_ns| body.born_ns <= **gone_ns).map(|&gone_ns| (*start, gone_ns))
            }
            None => (!dynamic.contains(start)).then_some((*start, last_ns)),
        };
        let gone: Vec<(usize, u64)> = self.live.iter().filter_map(gone).collect();
        gone.into_iter().for_each(|(start, gone_ns)| self.retire(start, gone_ns));
    }

    /// Whether a body is still at its address, as far as reported.
    pub(super) fn is_live(&self, body: &Body) -> bool {
        self.live.get(&body.addresses.start).is_some_and(|live| live.number == body.number)
    }

    /// Whether the runtime may be queried about the method of a body. It may not if the method may
    /// be unloaded.
    pub(super) fn may_ask_about(&self, body: &Body) -> bool {
        self.asks && self.is_live(body)
    }

    /// Forgets the addresses without a method: new code may have been placed there.
    pub(super) fn forget_stubs(&mut self) {
        self.stubs.clear();
    }

    /// Whether the runtime was recently asked about an address and knew no method there.
    pub(super) fn is_known_stub(&self, address: usize) -> bool {
        self.stubs.contains_key(&address)
    }

    fn retire(&mut self, start: usize, gone_ns: u64) {
        if let Some(body) = self.live.remove(&start) {
            self.gone.push_back((body, gone_ns));
        }
        while self.gone.front().is_some_and(|(_, then)| then + REMEMBERED_NS < gone_ns) {
            self.gone.pop_front();
        }
    }

    /// The known body that contained an address at a time.
    pub(super) fn find(&self, address: usize, time_ns: u64) -> Option<Arc<Body>> {
        let holds = |body: &Arc<Body>| body.addresses.contains(&address);
        let live = self.live.range(..=address).next_back().map(|(_, body)| body);
        if let Some(body) = live.filter(|body| holds(body) && body.born_ns <= time_ns) {
            return Some(Arc::clone(body));
        }
        let was =
            |&&(ref body, gone_ns): &&(Arc<Body>, u64)| holds(body) && body.born_ns <= time_ns && time_ns <= gone_ns;
        let gone = self.gone.iter().rev().find(was).map(|(body, _)| body);
        // Nothing else was at this address. Other threads can run new code before the compiling
        // thread reports it.
        let told_late = || live.filter(|body| holds(body) && body.born_ns <= time_ns.saturating_add(TOLD_LATE_NS));
        gone.or_else(told_late).map(Arc::clone)
    }

    /// The addresses of the bodies that took over running frames.
    pub(super) fn that_took_over(&self) -> impl Iterator<Item = Range<usize>> {
        self.live.values().filter(|body| body.took_over()).map(|body| body.addresses.clone())
    }

    /// Whether an address lies in an image with precompiled code that the runtime itself laid out
    /// in memory.
    pub(super) fn is_in_image(&mut self, address: usize) -> bool {
        self.images.around(&self.info, self.feed.loads(), address).is_some()
    }

    /// Asks the runtime about an address that is in no known body. `is_image`: the address lies in
    /// a mapped file, which contains code compiled at build time.
    pub(super) fn ask(&mut self, address: usize, is_image: bool) -> Option<Arc<Body>> {
        // The body known at this address is newer than the one asked about, which is no longer
        // known.
        let is_younger = self.find(address, u64::MAX).is_some();
        if is_younger || self.stubs.contains_key(&address) {
            return None;
        }
        let found = self.ask_runtime(address, is_image);
        if found.is_none() {
            if self.stubs.len() >= MOST_STUBS {
                self.stubs.clear();
            }
            self.stubs.insert(address, ());
        }
        found
    }

    fn ask_runtime(&mut self, address: usize, is_image: bool) -> Option<Arc<Body>> {
        let (id, rejit) = function_at(&self.info, RunAddress::executed(address))?;
        let around = code_around(&self.info, id, rejit, address);
        let told = around.map(|(start, ranges)| (start.address(), ranges)).or_else(|| {
            // Dynamic methods that were compiled before the agent listened.
            let ranges = self.info.code_info(id).ok()?;
            Some((ranges.first()?.start, ranges))
        });
        let (start, pieces) = match told {
            Some((start, ranges)) => {
                (start, ranges.iter().map(|range| range.start..range.start + range.bytes).collect::<Vec<_>>())
            }
            // Precompiled stubs for calls of native functions: the runtime knows the method of this
            // code, and not where the code begins and ends.
            None => {
                let piece = self.images.around(&self.info, self.feed.loads(), address)?.piece_around(address)?;
                (piece.start, vec![piece])
            }
        };
        let index = self.functions.noted(id).index;
        let method = Method { index, id, is_framework: self.functions.is_framework(id), module: None };
        let origin = self.feed.origin(start).map(|origin| self.refined(origin, id));
        // Code that was not reported was compiled at build time, or before the agent came.
        let is_precompiled = origin.is_none() && (is_image || self.is_in_image(start));
        let origin = origin.or(is_precompiled.then_some(Origin::Image));
        let candidates = self.feed.inlined().told().of_body(start);
        for piece in pieces {
            self.insert(piece, start, method, (origin, 0), (None, &candidates));
        }
        self.find(address, u64::MAX)
    }

    /// The origin, refined: whether the method itself requests optimised compilation at once.
    fn refined(&self, origin: Origin, id: FunctionId) -> Origin {
        /// `MethodImplAttributes.AggressiveOptimization`.
        const AGGRESSIVE: u32 = 0x200;
        let flags = || {
            let about = self.info.function_info(id).ok()?;
            let metadata = self.functions.names().metadata(&self.info, about.module).ok()?;
            Some(metadata.method(about.token).ok()?.impl_flags)
        };
        let is_aggressive = origin == Origin::Foreground && flags().is_some_and(|flags| flags & AGGRESSIVE != 0);
        if is_aggressive { Origin::Aggressive } else { origin }
    }

    /// Adds a piece of a body. Returns whether others were there. `il`: the map to the IL, where it
    /// is already known.
    fn insert(
        &mut self,
        addresses: Range<usize>,
        start: usize,
        method: Method,
        (origin, born_ns): (Option<Origin>, u64),
        (il, candidates): (Option<Vec<IlRange>>, &Candidates),
    ) -> bool {
        let mut first = vec![0; arch::FIRST_BYTES.min(addresses.len())];
        if !copy_if_there(addresses.start, &mut first) {
            first.clear();
        }
        let tier = self.tier(&addresses, &first, origin);
        // Earlier pieces at these addresses are gone, even if that was not reported.
        let overlap: Vec<usize> = self
            .live
            .range(..addresses.end)
            .rev()
            .take_while(|(_, body)| body.addresses.end > addresses.start)
            .map(|(start, _)| *start)
            .collect();
        let is_other = !overlap.is_empty();
        overlap.into_iter().for_each(|start| self.retire(start, born_ns));
        let Method { index: function, id, is_framework, module } = method;
        self.took_over_anew |= tier == Tier::Osr;
        self.made += 1;
        let (il, number) = (il.map_or_else(OnceLock::new, OnceLock::from), self.made);
        let (unwind, has_blocks) = (OnceLock::new(), OnceLock::new());
        let body = Body {
            addresses,
            start,
            function,
            id,
            is_framework,
            module,
            tier,
            born_ns,
            il,
            unwind,
            has_blocks,
            candidates: candidates.clone(),
            was_watched: origin.is_some_and(|origin| origin != Origin::Image),
            number,
        };
        self.live.insert(body.addresses.start, Arc::new(body));
        is_other
    }

    /// The tier, as far as it follows from the code's origin and its first bytes.
    fn tier(&self, addresses: &Range<usize>, first: &[u8], origin: Option<Origin>) -> Tier {
        if arch::takes_over_frame(first) {
            return Tier::Osr;
        }
        let tiers_off = || *self.tiers_off.get_or_init(|| variable_is("TieredCompilation", "0"));
        match origin {
            // Compiled before the agent came.
            None => Tier::Unknown,
            Some(Origin::Foreground) if tiers_off() => Tier::Optimized,
            Some(Origin::Background { first: true }) => {
                let mut code = vec![0; SEARCHED.min(addresses.len())];
                let counts = copy_if_there(addresses.start, &mut code) && arch::is_counting(&code);
                if counts { Tier::InstrumentedTier1 } else { Tier::Tier1 }
            }
            Some(origin) => origin.tier(),
        }
    }

    /// Whether an address of a body lies in a filter of the method, as far as the IL and the map to
    /// the IL tell.
    fn is_in_filter(&self, body: &Body, address: usize, is_return: bool) -> bool {
        if !matches!(body.unwind.get(), Some(BodyUnwind::Many(_))) || !self.has_blocks(body) {
            return false;
        }
        let found = || {
            let (StackFrame::Method { il_offset, .. }, true) =
                (self.frame(body, address, is_return).0, self.may_ask_about(body))
            else {
                return None;
            };
            Some(is_in_filter(&body_of(&self.info, body.id).ok()?, il_offset?))
        };
        found().unwrap_or(false)
    }

    /// The step to the caller from an address in a body. `is_return`: the address is a return
    /// address, not an interrupted instruction.
    pub(super) fn step(&mut self, body: &Arc<Body>, address: usize, is_return: bool) -> BodyStep {
        let is_live = self.is_live(body);
        // The filter is looked up in the body's pieces.
        self.unwind(body);
        let in_filter = self.is_in_filter(body, address, is_return);
        let (unwind, code) = self.unwind(body);
        let BodyStep { step, is_certain } = unwind.step(code, address, is_return);
        // While a filter runs, the frame that has thrown is still on the stack, and so is the
        // filter's method. The filter has a frame of its own.
        let out = if in_filter { unwind.out_of_block(code, address, is_return) } else { None };
        let step = out.unwrap_or(step);
        // For unloaded code it is unknown whether it had set up its frame.
        BodyStep { step, is_certain: is_certain && (is_live || is_return) }
    }

    /// The unwind information of a body, and its location.
    fn unwind<'a>(&'a mut self, body: &'a Arc<Body>) -> (&'a BodyUnwind, BodyCode<'a>) {
        let (images, loads) = (&mut self.images, self.feed.loads());
        let image = match (body.tier, self.asks) {
            (Tier::Precompiled, true) => images.around(&self.info, loads, body.start),
            (Tier::Precompiled, false) => images.find(body.start),
            _ => None,
        };
        let code = body.code(image);
        if body.tier == Tier::Precompiled && image.is_none() && !self.asks {
            return (body.unwind.get().unwrap_or(&BodyUnwind::Unknown), code);
        }
        let unwind = body.unwind.get_or_init(|| match (body.tier, image) {
            (Tier::Precompiled, None) => BodyUnwind::Unknown,
            _ => BodyUnwind::find(code),
        });
        (unwind, code)
    }

    /// The layout of a body's frame after the prolog; `None` if unknown.
    pub(super) fn frame_shape(&mut self, body: &Arc<Body>) -> Option<FrameShape> {
        self.unwind(body).0.frame().map(FrameShape::from_step)
    }

    /// Whether the body has catch, finally or filter blocks, as far as the method's IL can be read.
    pub(super) fn has_blocks(&self, body: &Body) -> bool {
        if !self.may_ask_about(body) {
            return body.has_blocks.get().copied().unwrap_or_default();
        }
        *body.has_blocks.get_or_init(|| body_of(&self.info, body.id).is_ok_and(|il| has_blocks(&il)))
    }

    /// The name of the body's method; `None` if the runtime must not be queried.
    pub(super) fn name(&self, body: &Body) -> Option<String> {
        self.may_ask_about(body).then(|| self.functions.names().function(&self.info, body.id).name.clone())
    }

    /// The frame as it is recorded, and whether it stays the same.
    pub(super) fn frame(&self, body: &Body, address: usize, is_return: bool) -> (StackFrame, bool) {
        if body.il.get().is_none() && !self.may_ask_about(body) {
            return (body.frame(None), false);
        }
        let map = || {
            let start = code_start(&self.info, body.id, RunAddress::executed(body.start))?;
            self.info.il_map_at(start).ok()
        };
        let il = body.il.get_or_init(|| map().unwrap_or_default());
        // An address on the stack is a return address; the byte before it belongs to the call.
        let at = address.checked_sub(body.start + usize::from(is_return)).and_then(|at| u32::try_from(at).ok());
        (body.frame(at.and_then(|at| IlRange::statement_at(il, at))), true)
    }
}

/// Whether the environment sets a switch of the runtime to a value.
fn variable_is(name: &str, value: &str) -> bool {
    ["DOTNET_", "COMPlus_"].iter().any(|prefix| std::env::var(format!("{prefix}{name}")).is_ok_and(|is| is == value))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn unwind_information_takes_at_most_24_bytes_of_a_body() {
        assert!(size_of::<OnceLock<BodyUnwind>>() <= 24, "{}", size_of::<OnceLock<BodyUnwind>>());
    }
}
