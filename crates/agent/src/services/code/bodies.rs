//! Compiled methods by address.

use std::cell::OnceCell;
use std::collections::{BTreeMap, HashMap, VecDeque};
use std::ops::Range;
use std::sync::{Arc, OnceLock};

use clr_profiler::{FunctionId, IlRange, ProfilerInfo};
use clrscope_recording::model::{StackFrame, Tier};

use super::arch::{self, LeafStep, leaf_step};
use super::feed::{CodeFeed, News, Origin};
use super::images::Images;
use crate::os::memory::copy_if_there;
use crate::services::functions::Functions;
use crate::services::stacks::code_around;

/// Time for which code that is gone is remembered: samples of it may still come.
const REMEMBERED_NS: u64 = 5_000_000_000;
/// Bytes of code after an instruction that may say that its method is about to return.
const REST: usize = 32;
/// Bytes of a body that are searched for counters.
const SEARCHED: usize = 4096;
/// Addresses of no method that are remembered.
const MOST_STUBS: usize = 1 << 14;

/// One piece of one body of a method.
pub(crate) struct Body {
    pub(crate) addresses: Range<usize>,
    /// Beginning of the body, which for a cold piece is elsewhere.
    start: usize,
    function: u32,
    id: FunctionId,
    is_framework: bool,
    tier: Tier,
    first: Vec<u8>,
    born_ns: u64,
    il: OnceLock<Vec<IlRange>>,
}

impl Body {
    /// The way to the caller from the instruction at `address`, which is interrupted and not behind a call.
    pub(crate) fn leaf_step(&self, address: usize) -> LeafStep {
        if self.addresses.start != self.start {
            return LeafStep::FramePointer;
        }
        let mut rest = [0; REST];
        let bytes = REST.min(self.addresses.end - address);
        // Code that is gone says nothing; then the frame pointer is the best there is.
        if !copy_if_there(address, &mut rest[..bytes]) {
            return LeafStep::FramePointer;
        }
        leaf_step(&self.first, address - self.start, &rest[..bytes])
    }

    /// The frame of the body it took over lies beneath its own.
    pub(crate) fn took_over(&self) -> bool {
        self.tier == Tier::Osr
    }

    /// Whether the method is one of the framework's.
    pub(crate) fn is_framework(&self) -> bool {
        self.is_framework
    }
}

/// A method, as bodies name it.
#[derive(Clone, Copy)]
struct Method {
    index: u32,
    id: FunctionId,
    is_framework: bool,
}

/// All bodies that were asked for.
pub(super) struct Bodies {
    info: ProfilerInfo,
    functions: Arc<Functions>,
    /// Pieces by where they begin. They don't overlap.
    live: BTreeMap<usize, Arc<Body>>,
    /// Pieces that are gone, with when they went.
    gone: VecDeque<(Arc<Body>, u64)>,
    dynamic: HashMap<FunctionId, Vec<usize>>,
    images: Images,
    /// Addresses at which the runtime knows no method.
    stubs: HashMap<usize, ()>,
    /// A body that took over a running frame was found.
    pub(super) took_over_anew: bool,
    /// Whether the runtime's tiers are off.
    tiers_off: OnceCell<bool>,
}

impl Bodies {
    pub(super) fn new(info: &ProfilerInfo, functions: &Arc<Functions>) -> Self {
        Self {
            info: info.clone(),
            functions: Arc::clone(functions),
            live: BTreeMap::new(),
            gone: VecDeque::new(),
            dynamic: HashMap::new(),
            images: Images::default(),
            stubs: HashMap::new(),
            took_over_anew: false,
            tiers_off: OnceCell::new(),
        }
    }

    /// Takes what callbacks told; whether something is gone.
    pub(super) fn update(&mut self, news: News) -> bool {
        let is_gone = !news.freed.is_empty() || news.unloaded_ns.is_some();
        if !news.dynamic.is_empty() || is_gone {
            self.stubs.clear();
        }
        for body in news.dynamic {
            let starts = body.ranges.iter().map(|range| range.start).collect();
            let start = body.ranges.first().map_or(0, |range| range.start);
            for range in &body.ranges {
                let addresses = range.start..range.start + range.bytes;
                let method = Method { index: body.function, id: body.id, is_framework: false };
                self.insert(addresses, start, method, Some(Origin::Dynamic), body.born_ns);
            }
            self.dynamic.insert(body.id, starts);
        }
        for (id, freed_ns) in news.freed {
            for start in self.dynamic.remove(&id).unwrap_or_default() {
                self.retire(start, freed_ns);
            }
        }
        if let Some(unloaded_ns) = news.unloaded_ns {
            self.images.forget();
            // Whose code went is not told; what is still there is asked for again.
            let dynamic: Vec<usize> = self.dynamic.values().flatten().copied().collect();
            let others: Vec<usize> = self.live.keys().copied().filter(|start| !dynamic.contains(start)).collect();
            others.into_iter().for_each(|start| self.retire(start, unloaded_ns));
        }
        is_gone
    }

    /// Addresses of no method are asked for again: code may have come to lie there.
    pub(super) fn forget_stubs(&mut self) {
        self.stubs.clear();
    }

    /// Whether the runtime was asked for an address not long ago, and knew no method there.
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

    /// The body that an address lay in at a time, of those that are known.
    pub(super) fn find(&self, address: usize, time_ns: u64) -> Option<Arc<Body>> {
        let holds = |body: &Arc<Body>| body.addresses.contains(&address);
        let live = self.live.range(..=address).next_back().map(|(_, body)| body);
        if let Some(body) = live.filter(|body| holds(body) && body.born_ns <= time_ns) {
            return Some(Arc::clone(body));
        }
        let was =
            |&&(ref body, gone_ns): &&(Arc<Body>, u64)| holds(body) && body.born_ns <= time_ns && time_ns <= gone_ns;
        self.gone.iter().rev().find(was).map(|(body, _)| Arc::clone(body))
    }

    /// The bodies that took over running frames.
    pub(super) fn that_took_over(&self) -> impl Iterator<Item = Range<usize>> {
        self.live.values().filter(|body| body.took_over()).map(|body| body.addresses.clone())
    }

    /// Asks the runtime what an address is that is in no body that is known.
    /// `is_image`: the address lies in what is mapped from a file, where code lies that was compiled at build time.
    pub(super) fn ask(&mut self, address: usize, is_image: bool, feed: &CodeFeed) -> Option<Arc<Body>> {
        if self.stubs.contains_key(&address) {
            return None;
        }
        let found = self.ask_runtime(address, is_image, feed);
        if found.is_none() {
            if self.stubs.len() >= MOST_STUBS {
                self.stubs.clear();
            }
            self.stubs.insert(address, ());
        }
        found
    }

    fn ask_runtime(&mut self, address: usize, is_image: bool, feed: &CodeFeed) -> Option<Arc<Body>> {
        let (id, rejit) = self.info.function_at(address).ok()?;
        let (start, ranges) = code_around(&self.info, id, rejit, address).or_else(|| {
            // Dynamic methods that were compiled before anybody told of them.
            let ranges = self.info.code_info(id).ok()?;
            Some((ranges.first()?.start, ranges))
        })?;
        let index = self.functions.noted(id).index;
        let method = Method { index, id, is_framework: self.functions.is_framework(id) };
        let origin = feed.origin(start).map(|origin| self.refined(origin, id));
        // Code that nobody was told of was compiled at build time, or before we came.
        let is_precompiled = origin.is_none() && (is_image || self.images.hold(&self.info, start));
        let origin = origin.or(is_precompiled.then_some(Origin::Image));
        for range in &ranges {
            self.insert(range.start..range.start + range.bytes, start, method, origin, 0);
        }
        self.find(address, u64::MAX)
    }

    /// The origin, where the method itself says that it is to be compiled with optimisation at once.
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

    fn insert(&mut self, addresses: Range<usize>, start: usize, method: Method, origin: Option<Origin>, born_ns: u64) {
        let mut first = vec![0; arch::FIRST_BYTES.min(addresses.len())];
        if !copy_if_there(addresses.start, &mut first) {
            first.clear();
        }
        let tier = self.tier(&addresses, &first, origin);
        // What lay there before is gone, even where nobody said so.
        let overlap: Vec<usize> = self
            .live
            .range(..addresses.end)
            .rev()
            .take_while(|(_, body)| body.addresses.end > addresses.start)
            .map(|(start, _)| *start)
            .collect();
        overlap.into_iter().for_each(|start| self.retire(start, born_ns));
        let Method { index: function, id, is_framework } = method;
        self.took_over_anew |= tier == Tier::Osr;
        let body = Body { start, function, id, is_framework, tier, first, born_ns, il: OnceLock::new(), addresses };
        self.live.insert(body.addresses.start, Arc::new(body));
    }

    /// The tier, as far as where the code was compiled and what it looks like say it.
    fn tier(&self, addresses: &Range<usize>, first: &[u8], origin: Option<Origin>) -> Tier {
        if arch::takes_over_frame(first) {
            return Tier::Osr;
        }
        let tiers_off = || *self.tiers_off.get_or_init(|| variable_is("TieredCompilation", "0"));
        match origin {
            // Compiled before we came.
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

    /// The name of the body's method.
    pub(super) fn name(&self, body: &Body) -> String {
        self.functions.names().function(&self.info, body.id).name.clone()
    }

    /// The frame as it is recorded.
    pub(super) fn frame(&self, body: &Body, address: usize, is_return: bool) -> StackFrame {
        let il = body.il.get_or_init(|| self.info.il_map_at(body.start).unwrap_or_default());
        // An address on the stack is where a call returns to; the byte before it belongs to the call.
        let at = address.checked_sub(body.start + usize::from(is_return)).and_then(|at| u32::try_from(at).ok());
        let holds = |range: &&IlRange| at.is_some_and(|at| (range.start..range.end).contains(&at));
        let il_offset = il.iter().filter(holds).find_map(|range| range.il);
        StackFrame::Method { function: body.function, il_offset, tier: body.tier }
    }
}

/// Whether the environment sets a switch of the runtime to a value.
fn variable_is(name: &str, value: &str) -> bool {
    ["DOTNET_", "COMPlus_"].iter().any(|prefix| std::env::var(format!("{prefix}{name}")).is_ok_and(|is| is == value))
}
