//! The stack table of a process: call stacks as chains of nodes; stacks with the same outer frames
//! share nodes.

use std::collections::{BTreeMap, HashMap};
use std::fmt;

use super::Tier;
use super::awaiters::{AwaiterChain, ChainEnd};
use super::stack_frame::StackFrame;
use super::stack_nodes::{Caller, StackNode, StackNodes};
use crate::layout::stack;

/// The function at a location in native code.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct NamedPlace {
    /// Index into [`Process::functions`](super::Process::functions).
    pub function: u32,
    /// Whether the next outer frame called the function. A kernel interrupt has no caller: it
    /// interrupted arbitrary code.
    pub has_caller: bool,
}

/// A frame whose caller may be changed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FrameToChange {
    /// Index of the frame among all nodes.
    pub place: usize,
    /// Index of the frame's caller; `None` for the outermost frame.
    pub caller: Option<usize>,
    /// The frame; `None` for frames that were not kept.
    pub frame: Option<StackFrame>,
    /// For the outermost frame of a stack with awaiters: the index of the first awaiter.
    pub awaiter: Option<usize>,
    /// Reason why a chain of awaiters ends here; `None` if the node is a frame.
    pub chain_end: Option<ChainEnd>,
}

/// The new state of a frame.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ChangedFrame {
    /// Index of the frame's caller; `None` for the outermost frame.
    pub caller: Option<u32>,
    /// The frame; `None` for frames that were not kept.
    pub frame: Option<StackFrame>,
}

/// A run of nodes with consecutive numbers.
#[derive(Debug, Clone, Copy)]
struct Part {
    /// Number of the first node.
    first: u32,
    /// Index of the first node among all nodes.
    at: usize,
    nodes: usize,
}

/// The stack table. The number of the innermost frame's node, from 1, identifies a stack; 0 means
/// no stack.
///
/// Every walk ends, even in a damaged recording: parents have smaller numbers, and no stack has
/// more than [`DEEPEST`](Self::DEEPEST) frames.
#[derive(Clone, Default)]
pub struct Stacks {
    /// In ascending order of their numbers.
    nodes: StackNodes,
    /// In ascending order. A damaged recording has gaps between their numbers.
    parts: Vec<Part>,
    /// Whether some stacks have a chain of awaiters.
    has_awaiters: bool,
}

impl Stacks {
    /// Maximum number of frames in a stack.
    pub const DEEPEST: usize = stack::DEEPEST;

    /// Number of nodes.
    #[must_use]
    pub fn len(&self) -> usize {
        self.nodes.len()
    }

    /// Whether there are no nodes.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Returns the index of a stack's innermost frame among all nodes, from 0; `None` if no stack
    /// has this number.
    #[inline]
    #[must_use]
    pub fn node_position(&self, number: u32) -> Option<usize> {
        let part = match self.parts.as_slice() {
            // Only a damaged table has several parts.
            [part] => Some(part).filter(|part| part.first <= number),
            parts => parts.get(parts.partition_point(|part| part.first <= number).checked_sub(1)?),
        }?;
        let within = (number - part.first) as usize;
        (within < part.nodes).then(|| part.at + within)
    }

    /// Number of the stack whose innermost frame is at this index; 0 if there is none.
    #[must_use]
    pub fn number(&self, place: usize) -> u32 {
        let after = self.parts.partition_point(|part| part.at <= place);
        let part = after.checked_sub(1).map(|at| self.parts[at]).filter(|part| place - part.at < part.nodes);
        part.map_or(0, |part| part.first + (place - part.at) as u32)
    }

    /// Index of the caller of the node `place`, always smaller than `place`; `None` for the
    /// outermost frame.
    #[inline]
    #[must_use]
    pub fn caller_of(&self, place: usize) -> Option<usize> {
        let parent = self.parent_of(place)?;
        (!self.has_awaiters || !self.is_awaited_by(parent)).then_some(parent)
    }

    /// Index of the async method that awaits the innermost resumed method of a stack. `place` must
    /// be the index of the stack's outermost frame. `None` for any other frame, and if awaiters
    /// were not recorded.
    #[must_use]
    pub fn awaiter_of(&self, place: usize) -> Option<usize> {
        let parent = self.parent_of(place).filter(|parent| self.has_awaiters && self.is_awaited_by(*parent))?;
        self.parent_of(parent)
    }

    /// Reason why a chain of awaiters ends at this index; `None` if a frame is there.
    #[must_use]
    pub fn chain_end_at(&self, place: usize) -> Option<ChainEnd> {
        self.nodes.frame(place)?.chain_end()
    }

    /// The chain of awaiters of the stack with this number, and the reason why it ends. The first
    /// method awaits the stack's innermost resumed method. `None` if awaiters were not recorded.
    #[must_use]
    pub fn awaiters(&self, number: u32) -> Option<(Vec<StackFrame>, ChainEnd)> {
        let outermost = self.places_of(number).take(Self::DEEPEST + 1).last()?;
        let places = std::iter::successors(self.awaiter_of(outermost), |place| self.caller_of(*place));
        let places: Vec<usize> = places.take(Self::DEEPEST).collect();
        let end = self.chain_end_at(*places.last()?).unwrap_or_default();
        let frames = places.into_iter().filter(|place| self.chain_end_at(*place).is_none());
        Some((frames.filter_map(|place| self.frame_at(place)).collect(), end))
    }

    fn is_awaited_by(&self, place: usize) -> bool {
        self.nodes.frame(place).is_some_and(|node| node.is_awaited_by())
    }

    /// Index of the parent node in the stored data.
    #[inline]
    fn parent_of(&self, place: usize) -> Option<usize> {
        match self.nodes.caller(place)? {
            Caller::Before => place.checked_sub(1),
            Caller::Number(number) => self.node_position(number),
        }
    }

    /// The frame at an index; `None` for frames that were not kept.
    #[inline]
    #[must_use]
    pub fn frame_at(&self, place: usize) -> Option<StackFrame> {
        self.nodes.frame(place).filter(|node| !node.is_cut()).map(|node| node.frame())
    }

    /// The frames of the stack with this number, innermost first; empty if no stack has this
    /// number.
    pub fn frames(&self, number: u32) -> impl Iterator<Item = StackFrame> {
        self.places_of(number).filter_map(|place| self.frame_at(place)).take(Self::DEEPEST)
    }

    /// Whether the stack had more frames than were kept.
    #[must_use]
    pub fn is_cut(&self, number: u32) -> bool {
        self.places_of(number).take(Self::DEEPEST + 1).any(|place| self.is_cut_at(place))
    }

    /// The number of the caller's stack: the same frames without the innermost one. `None` for the
    /// outermost frame.
    #[must_use]
    pub fn caller(&self, number: u32) -> Option<u32> {
        let caller = self.caller_of(self.node_position(number)?)?;
        (!self.is_cut_at(caller)).then(|| self.number(caller))
    }

    /// The native code locations of all frames, as modules and offsets; a location is repeated for
    /// each of its nodes.
    pub fn native_places(&self) -> impl Iterator<Item = (u32, u32)> {
        let nodes = (0..self.len()).filter_map(|place| self.nodes.frame(place));
        nodes.filter(StackNode::is_native).map(|node| (node.subject, node.offset))
    }

    /// The native code locations of outermost frames, as modules and offsets, each with the number
    /// of nodes in its subtree, including its own. For a damaged table, only nodes before the first
    /// gap count.
    pub fn native_roots(&self) -> impl Iterator<Item = (u32, u32, usize)> {
        let whole = self.parts.first().filter(|part| part.first == 1).map_or(0, |part| part.nodes);
        // The root of each node; a caller has a smaller index.
        let mut roots: Vec<u32> = Vec::with_capacity(whole);
        let mut counts: BTreeMap<u32, (u32, u32, usize)> = BTreeMap::new();
        for place in 0..whole {
            let own = place as u32;
            let root = self.caller_of(place).map_or(own, |caller| roots[caller]);
            roots.push(root);
            if let Some(node) = self.nodes.frame(place).filter(|node| root == own && node.is_native()) {
                counts.insert(own, (node.subject, node.offset, 0));
            }
            counts.entry(root).and_modify(|(.., count)| *count += 1);
        }
        counts.into_values()
    }

    /// Replaces frames in native code by frames of functions: `name` returns the function at an
    /// offset in a module.
    pub fn name_native_places(&mut self, mut name: impl FnMut(u32, u32) -> NamedPlace) {
        let mut named = StackNodes::default();
        for place in 0..self.len() {
            let Some(mut node) = self.node_at(place) else { break };
            if node.is_native() {
                let NamedPlace { function, has_caller } = name(node.subject, node.offset);
                let parent = if has_caller { node.parent } else { 0 };
                node = StackNode::new(parent, StackFrame::method(function, None));
            }
            named.push(node, self.number_before(place));
        }
        self.nodes = named;
    }

    /// Leaves out the frames of inlined methods: a stack that ends with such a frame becomes the
    /// stack of the method into which it was inlined. Numbers don't change. If the outer method's
    /// frame is missing, the inlined frame is kept.
    pub fn leave_inlined_out(&mut self) {
        let (nodes, parts) = (StackNodes::default(), self.parts.clone());
        let mut left = Self { nodes, parts, has_awaiters: self.has_awaiters };
        for place in 0..self.len() {
            let Some(mut node) = self.node_at(place) else { break };
            let is_inlined = matches!(node.frame(), StackFrame::Method { tier: Tier::Inlined, .. });
            // Callers come first, so the outer frame is not an inlined one any more.
            let outer =
                if is_inlined { self.node_position(node.parent).and_then(|outer| left.node_at(outer)) } else { None };
            if let Some(outer) = outer.filter(|outer| !outer.is_cut()) {
                node = outer;
            }
            left.nodes.push(node, self.number_before(place));
        }
        *self = left;
    }

    /// Changes the callers of frames, or the frames themselves; numbers don't change. Calls
    /// `change` for each node in order: callers before their callees, and awaiters before the
    /// stacks that they await. If the new caller does not come before the node, the node gets no
    /// caller. Afterwards no stack has awaiters.
    pub fn change_frames(&mut self, mut change: impl FnMut(FrameToChange) -> ChangedFrame) {
        let mut nodes = StackNodes::default();
        for place in 0..self.len() {
            let Some(node) = self.node_at(place) else { break };
            let (caller, frame) = (self.caller_of(place), self.frame_at(place));
            let (awaiter, chain_end) = (self.awaiter_of(place), self.chain_end_at(place));
            let ChangedFrame { caller, frame } = change(FrameToChange { place, caller, frame, awaiter, chain_end });
            let caller = caller.map(|caller| caller as usize).filter(|caller| *caller < place);
            let parent = caller.map_or(0, |caller| self.number(caller));
            let node = frame.map_or(node.called_by(parent), |frame| StackNode::new(parent, frame));
            nodes.push(node, self.number_before(place));
        }
        // The awaiters of a stack are now among its frames, or are left out.
        self.has_awaiters = false;
        self.nodes = nodes;
    }

    /// Adds a stack for each frame: the frame on top of the stack with the given number, or alone
    /// if the number is 0. Returns the number of the first new stack; the others have the numbers
    /// that follow. Returns `None` and adds nothing if too few numbers are left.
    pub fn add_called(&mut self, frames: impl ExactSizeIterator<Item = (u32, StackFrame)>) -> Option<u32> {
        let first = self.parts.last().map_or(Ok(1), |last| u32::try_from(last.end())).ok()?;
        self.extend(first, frames.map(|(caller, frame)| StackNode::new(caller, frame))).ok()?;
        Some(first)
    }

    fn places_of(&self, number: u32) -> impl Iterator<Item = usize> {
        std::iter::successors(self.node_position(number), |place| self.caller_of(*place))
    }

    fn is_cut_at(&self, place: usize) -> bool {
        self.nodes.frame(place).is_some_and(|node| node.is_cut())
    }

    /// Number of the preceding node, if it is one less than the number of the node at `place`.
    fn number_before(&self, place: usize) -> Option<u32> {
        let before = self.number(place.checked_sub(1)?);
        (before != 0 && before + 1 == self.number(place)).then_some(before)
    }

    /// The node at an index, with all its stored fields.
    fn node_at(&self, place: usize) -> Option<StackNode> {
        let parent = match self.nodes.caller(place)? {
            Caller::Before => self.number_before(place).unwrap_or(0),
            Caller::Number(number) => number,
        };
        let frame = self.nodes.frame(place)?;
        Some(frame.called_by(parent))
    }

    /// The stored nodes in runs of consecutive numbers, each with the number of its first node and
    /// at most `most` nodes.
    pub(crate) fn pieces(&self, most: usize) -> impl Iterator<Item = (u32, Vec<StackNode>)> {
        let of_part = move |part: &Part| {
            let (first, at, nodes) = (part.first, part.at, part.nodes);
            (0..nodes).step_by(most).map(move |from| {
                let places = at + from..at + nodes.min(from + most);
                (first + from as u32, places.filter_map(|place| self.node_at(place)).collect())
            })
        };
        self.parts.iter().flat_map(of_part)
    }

    /// Adds the nodes stored in `bytes`; the first one has the number `first`. Returns how many
    /// nodes had an invalid caller; they are added without a caller.
    ///
    /// # Errors
    /// If there already are nodes with these numbers, or the numbers are invalid.
    pub(crate) fn add(&mut self, first: u32, bytes: &[u8]) -> Result<usize, &'static str> {
        self.extend(first, bytes.chunks_exact(stack::BYTES).map(StackNode::read))
    }

    fn extend(&mut self, first: u32, stored: impl ExactSizeIterator<Item = StackNode>) -> Result<usize, &'static str> {
        let nodes = stored.len();
        let end = u32::try_from(nodes).ok().and_then(|nodes| first.checked_add(nodes));
        if first == 0 || end.is_none() || self.parts.last().is_some_and(|last| last.end() > u64::from(first)) {
            return Err("claims numbers of stacks that can't be its own");
        }
        let at = self.len();
        let goes_on = self.parts.last().is_some_and(|last| last.end() == u64::from(first));
        match self.parts.last_mut().filter(|_| goes_on) {
            _ if nodes == 0 => {}
            Some(last) => last.nodes += nodes,
            None => self.parts.push(Part { first, at, nodes }),
        }
        let mut wrong = 0;
        for (number, mut node) in (first..).zip(stored) {
            if node.parent >= number {
                node.parent = 0;
                wrong += 1;
            }
            self.has_awaiters |= node.is_awaited_by();
            let has_before = goes_on || number > first;
            self.nodes.push(node, has_before.then(|| number - 1));
        }
        Ok(wrong)
    }
}

impl Part {
    /// The number after the last one.
    fn end(&self) -> u64 {
        self.nodes as u64 + u64::from(self.first)
    }
}

impl fmt::Debug for Stacks {
    /// Formats all nodes with their numbers. The output does not depend on the division into parts.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let nodes = (0..self.len()).filter_map(|place| Some((self.number(place), self.node_at(place)?.words())));
        f.debug_map().entries(nodes).finish()
    }
}

/// Builds a stack table in memory.
#[derive(Debug, Default)]
pub struct StacksBuilder {
    nodes: Vec<StackNode>,
    numbers: HashMap<StackNode, u32>,
}

impl StacksBuilder {
    /// The number of the stack with these frames, innermost first; 0 for no frames. Of a longer
    /// stack, the [`Stacks::DEEPEST`] innermost frames are kept. `cut` means that there were more
    /// frames.
    pub fn stack(&mut self, frames: &[StackFrame], cut: bool) -> u32 {
        let kept = &frames[..frames.len().min(Stacks::DEEPEST)];
        let root = if cut || kept.len() < frames.len() { self.child(StackNode::CUT) } else { 0 };
        kept.iter().rev().fold(root, |parent, &frame| self.child(StackNode::new(parent, frame)))
    }

    /// The number of the stack with these frames, innermost first, and with these awaiters.
    pub fn awaited_stack(&mut self, frames: &[StackFrame], chain: AwaiterChain<'_>) -> u32 {
        let end = self.child(StackNode::awaits_end(chain.end));
        let awaiter = chain.frames.iter().rev().fold(end, |parent, &frame| self.child(StackNode::new(parent, frame)));
        let root = self.child(StackNode::awaited_by(awaiter));
        frames.iter().rev().fold(root, |parent, &frame| self.child(StackNode::new(parent, frame)))
    }

    fn child(&mut self, node: StackNode) -> u32 {
        *self.numbers.entry(node).or_insert_with(|| {
            self.nodes.push(node);
            self.nodes.len() as u32
        })
    }

    /// The table.
    #[must_use]
    pub fn finish(self) -> Stacks {
        let mut stacks = Stacks::default();
        // The first numbers are free, and there are no more nodes than fit.
        let _ = stacks.extend(1, self.nodes.into_iter());
        stacks
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn method(function: u32) -> StackFrame {
        StackFrame::method(function, Some(function + 1))
    }

    fn bytes(nodes: &[[u32; 4]]) -> Vec<u8> {
        nodes.iter().flatten().flat_map(|word| word.to_le_bytes()).collect()
    }

    #[test]
    fn stacks_that_begin_alike_share_their_nodes() {
        let mut builder = StacksBuilder::default();
        let native = StackFrame::Native { module: 3, offset: 0x1234 };
        let unplaced = StackFrame::Method { function: 9, il_offset: None, il_span: 0, tier: Tier::Osr };
        let among = StackFrame::Method { function: 9, il_offset: Some(7), il_span: u16::MAX, tier: Tier::Tier1 };
        let deep = builder.stack(&[method(4), native, unplaced], false);
        let shallow = builder.stack(&[native, unplaced], false);
        let cut = builder.stack(&[native, unplaced], true);
        assert_eq!(builder.stack(&[method(4), native, unplaced], false), deep);
        let spanning = builder.stack(&[among, native], false);
        assert_eq!((builder.stack(&[], false), builder.stack(&[], true) > 0), (0, true));
        let stacks = builder.finish();
        assert_eq!(stacks.len(), 3 + 3 + 2);
        assert_eq!(stacks.frames(spanning).collect::<Vec<_>>(), [among, native]);
        assert_eq!(stacks.caller(deep), Some(shallow));
        assert_eq!(stacks.frames(deep).collect::<Vec<_>>(), [method(4), native, unplaced]);
        assert_eq!(stacks.frames(cut).collect::<Vec<_>>(), [native, unplaced]);
        assert_eq!([deep, shallow, cut].map(|number| stacks.is_cut(number)), [false, false, true]);
        let outermost = stacks.caller(cut).expect("a caller");
        assert_eq!((stacks.frames(outermost).count(), stacks.caller(outermost)), (1, None), "a cut is no caller");
        assert_eq!((stacks.frames(0).count(), stacks.frames(99).count(), stacks.is_cut(99)), (0, 0, false));
    }

    #[test]
    fn without_inlined_frames_their_stacks_are_those_of_the_methods_around_them() {
        let mut builder = StacksBuilder::default();
        let inlined = |function| StackFrame::Method { function, il_offset: Some(1), il_span: 0, tier: Tier::Inlined };
        let deep = builder.stack(&[method(9), inlined(3), inlined(2), method(1), method(8)], false);
        let leaf = builder.stack(&[inlined(2), method(1), method(8)], false);
        let plain = builder.stack(&[method(5), method(1)], false);
        let (alone, cut) = (builder.stack(&[inlined(2)], false), builder.stack(&[inlined(2)], true));
        let mut stacks = builder.finish();
        stacks.leave_inlined_out();
        let frames = |number| stacks.frames(number).collect::<Vec<_>>();
        assert_eq!(frames(deep), [method(9), method(1), method(8)]);
        assert_eq!(frames(leaf), [method(1), method(8)]);
        assert_eq!(frames(plain), [method(5), method(1)]);
        assert_eq!((frames(alone), frames(cut)), (vec![inlined(2)], vec![inlined(2)]));
        assert!(stacks.is_cut(cut));
    }

    #[test]
    fn frames_get_other_callers_and_numbers_stay() {
        let mut builder = StacksBuilder::default();
        let deep = builder.stack(&[method(4), method(3), method(2), method(1)], false);
        let cut = builder.stack(&[method(5)], true);
        let mut stacks = builder.finish();
        let mut asked = Vec::new();
        stacks.change_frames(|FrameToChange { place, caller, frame, .. }| {
            asked.push((place, caller, frame));
            match frame {
                // A root, as another function.
                Some(frame) if frame == method(3) => ChangedFrame { caller: None, frame: Some(method(9)) },
                // A later node can't be its caller.
                Some(frame) if frame == method(5) => ChangedFrame { caller: Some(99), frame: Some(frame) },
                _ => ChangedFrame { caller: caller.map(|caller| caller as u32), frame },
            }
        });
        let frames = |number| stacks.frames(number).collect::<Vec<_>>();
        assert_eq!((frames(deep), frames(cut)), (vec![method(4), method(9)], vec![method(5)]));
        let cut_at = asked[4];
        assert_eq!((cut_at, asked[5]), ((4, None, None), (5, Some(4), Some(method(5)))));
        assert_eq!((asked[0], asked[3]), ((0, None, Some(method(1))), (3, Some(2), Some(method(4)))));
    }

    #[test]
    fn awaiters_stand_beside_the_stack_that_they_await() {
        let mut builder = StacksBuilder::default();
        let frames = [method(4), method(3)];
        let awaiters = [method(2), method(1)];
        let chain = AwaiterChain { frames: &awaiters, end: ChainEnd::Thread };
        let awaited = builder.awaited_stack(&frames, chain);
        let plain = builder.stack(&frames, false);
        let alone = builder.awaited_stack(&frames, AwaiterChain { frames: &[], end: ChainEnd::NotAwaitedYet });
        let stacks = builder.finish();
        for number in [awaited, plain, alone] {
            assert_eq!(stacks.frames(number).collect::<Vec<_>>(), frames, "physical stacks are the same");
            assert_eq!(stacks.caller(stacks.caller(number).expect("a caller")), None);
        }
        assert_eq!(stacks.awaiters(awaited), Some((awaiters.to_vec(), ChainEnd::Thread)));
        assert_eq!(stacks.awaiters(plain), None);
        assert_eq!(stacks.awaiters(alone), Some((Vec::new(), ChainEnd::NotAwaitedYet)));

        let mut changed = stacks.clone();
        changed.change_frames(|FrameToChange { caller, frame, awaiter, chain_end, .. }| ChangedFrame {
            caller: caller.or(awaiter).map(|caller| caller as u32),
            frame: chain_end.map_or(frame, |end| Some(method(100 + end as u32))),
        });
        let logical = |number| changed.frames(number).collect::<Vec<_>>();
        assert_eq!(logical(awaited), [method(4), method(3), method(2), method(1), method(103)]);
        assert_eq!((logical(plain), logical(alone)), (frames.to_vec(), [&frames[..], &[method(101)]].concat()));
        assert_eq!(changed.awaiters(awaited), None);
    }

    #[test]
    fn added_frames_are_called_by_stacks_that_are_there() {
        let mut builder = StacksBuilder::default();
        let deep = builder.stack(&[method(2), method(1)], false);
        let cut = builder.stack(&[method(3)], true);
        let mut stacks = builder.finish();
        let before = stacks.len() as u32;
        let callers = [deep, cut, 0, before + 3];
        let first = stacks.add_called(callers.into_iter().zip([7, 8, 9, 10].map(method)));
        assert_eq!(first, Some(before + 1));
        let frames = |number| stacks.frames(number).collect::<Vec<_>>();
        assert_eq!(frames(before + 1), [method(7), method(2), method(1)]);
        assert_eq!((frames(before + 2), stacks.is_cut(before + 2)), (vec![method(8), method(3)], true));
        assert_eq!(frames(before + 4), [method(10), method(9)], "the caller was added, too");
        assert_eq!(frames(deep), [method(2), method(1)]);
        assert_eq!(Stacks::default().add_called([(0, method(1))].into_iter()), Some(1));
    }

    #[test]
    fn a_stack_deeper_than_any_may_be_is_cut() {
        let frames: Vec<_> = (0..Stacks::DEEPEST as u32 + 7).map(method).collect();
        let mut builder = StacksBuilder::default();
        let number = builder.stack(&frames, false);
        let stacks = builder.finish();
        assert_eq!(stacks.frames(number).collect::<Vec<_>>(), frames[..Stacks::DEEPEST]);
        assert!(stacks.is_cut(number));
    }

    #[test]
    fn parents_that_can_not_be_are_none_and_walks_end() {
        let mut stacks = Stacks::default();
        let chain: Vec<_> = (1..=10_000).map(|number| [number - 1, stack::METHOD, number, 0]).collect();
        assert_eq!(stacks.add(1, &bytes(&chain)), Ok(0));
        assert_eq!((stacks.frames(10_000).count(), stacks.is_cut(10_000)), (Stacks::DEEPEST, false));
        let odd = [[10_001, stack::METHOD, 1, 0], [u32::MAX, stack::METHOD, 2, 0], [10_001, 77, 3, 0]];
        assert_eq!(stacks.add(10_001, &bytes(&odd)), Ok(2));
        let unplaced = |function| StackFrame::method(function, None);
        assert_eq!(stacks.frames(10_002).collect::<Vec<_>>(), [unplaced(2)]);
        assert_eq!(stacks.frames(10_003).collect::<Vec<_>>(), [StackFrame::Unknown, unplaced(1)]);
    }

    #[test]
    fn what_is_missing_between_parts_is_no_frame_and_no_number_is_taken_twice() {
        let mut stacks = Stacks::default();
        let node = |parent| bytes(&[[parent, stack::METHOD, parent + 1, 0]]);
        assert_eq!(stacks.add(5, &node(2)), Ok(0));
        assert_eq!(stacks.add(9, &node(5)), Ok(0));
        assert_eq!((stacks.frames(9).count(), stacks.frames(5).count(), stacks.frames(7).count()), (2, 1, 0));
        assert!(stacks.add(9, &node(1)).is_err() && stacks.add(3, &node(1)).is_err());
        assert!(stacks.add(0, &node(0)).is_err() && stacks.add(u32::MAX, &[0; 2 * stack::BYTES]).is_err());
        assert_eq!((stacks.len(), format!("{stacks:?}")), (2, "{5: [2, 1, 3, 0], 9: [5, 1, 6, 0]}".to_owned()));
    }
}
