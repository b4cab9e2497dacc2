//! Nodes of the stack table, stored compactly: deep stacks have tens of millions of nodes.

use super::Tier;
use super::awaiters::ChainEnd;
use super::stack_frame::StackFrame;
use crate::column::Column;
use crate::layout::{stack, u32_at};

/// The stored fields of a node; see [`layout::stack`](crate::layout::stack).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub(crate) struct StackNode {
    /// Number of the caller's node, always smaller than the node's own number; 0 for none.
    pub(crate) parent: u32,
    kind: u32,
    pub(super) subject: u32,
    pub(super) offset: u32,
}

impl StackNode {
    /// The node of `frame`, called by `parent`.
    pub(crate) fn new(parent: u32, frame: StackFrame) -> Self {
        let (kind, subject, offset) = match frame {
            StackFrame::Method { function, il_offset, il_span, tier } => (
                stack::METHOD | (tier as u32) << stack::TIER | u32::from(il_span) << stack::SPAN,
                function,
                il_offset.and_then(|offset| offset.checked_add(1)).unwrap_or(0),
            ),
            StackFrame::Native { module, offset } => (stack::NATIVE, module, offset),
            StackFrame::Unknown => (0, 0, 0),
        };
        Self { parent, kind, subject, offset }
    }

    /// The node for frames that were not kept.
    pub(crate) const CUT: Self = Self { parent: 0, kind: stack::CUT, subject: 0, offset: 0 };

    /// The node that ends a stack awaited by `parent`.
    pub(crate) fn awaited_by(parent: u32) -> Self {
        Self { parent, kind: stack::AWAITED_BY, ..Self::default() }
    }

    /// The node that ends a chain of awaiters.
    pub(crate) fn awaits_end(end: ChainEnd) -> Self {
        Self { kind: stack::AWAITS_END, subject: end as u32, ..Self::default() }
    }

    #[inline]
    pub(super) fn is_cut(&self) -> bool {
        self.kind == stack::CUT
    }

    #[inline]
    pub(super) fn is_awaited_by(&self) -> bool {
        self.kind == stack::AWAITED_BY
    }

    /// The reason why a chain of awaiters ends, if the node ends one.
    pub(super) fn chain_end(&self) -> Option<ChainEnd> {
        (self.kind == stack::AWAITS_END).then(|| ChainEnd::from_number(self.subject))
    }

    /// The same node with another caller.
    pub(crate) fn called_by(self, parent: u32) -> Self {
        Self { parent, ..self }
    }

    /// Whether the frame is a location in native code.
    #[inline]
    pub(super) fn is_native(&self) -> bool {
        self.kind & stack::KIND_BITS == stack::NATIVE
    }

    #[inline]
    pub(super) fn frame(&self) -> StackFrame {
        match self.kind & stack::KIND_BITS {
            stack::METHOD => StackFrame::Method {
                function: self.subject,
                il_offset: self.offset.checked_sub(1),
                il_span: (self.kind >> stack::SPAN) as u16,
                tier: Tier::from_number(self.kind >> stack::TIER & 0xFF),
            },
            stack::NATIVE => StackFrame::Native { module: self.subject, offset: self.offset },
            _ => StackFrame::Unknown,
        }
    }

    /// The four numbers in the stored order.
    pub(crate) fn words(&self) -> [u32; 4] {
        [self.parent, self.kind, self.subject, self.offset]
    }

    pub(super) fn read(bytes: &[u8]) -> Self {
        Self {
            parent: u32_at(bytes, stack::PARENT),
            kind: u32_at(bytes, stack::KIND),
            subject: u32_at(bytes, stack::SUBJECT),
            offset: u32_at(bytes, stack::OFFSET),
        }
    }
}

/// Number of nodes in a block.
const BLOCK: usize = 1 << 12;
const WORDS: usize = BLOCK / 64;

/// Caller of a node.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Caller {
    /// The preceding node.
    Before,
    /// The node with this number.
    Number(u32),
}

/// A sequence of nodes. The new frames of a stack are added consecutively, so the caller of most
/// nodes is the preceding node.
#[derive(Clone, Default)]
pub(super) struct StackNodes {
    blocks: Vec<Block>,
    /// Nodes after the last block, with their callers.
    rest: Vec<(StackNode, Caller)>,
}

/// A fixed number of nodes: a column for each property.
#[derive(Clone)]
struct Block {
    /// Bit set of the nodes whose caller is not the preceding node.
    others: [u64; WORDS],
    /// Number of set bits before each word.
    before: [u16; WORDS],
    /// Numbers of the callers of the nodes in the bit set.
    callers: Vec<u32>,
    /// Lowest byte, second byte, and the remaining bits of the kinds.
    kinds: [Column; 3],
    subjects: Column,
    offsets: Column,
}

impl StackNodes {
    pub(super) fn len(&self) -> usize {
        self.blocks.len() * BLOCK + self.rest.len()
    }

    /// Adds a node; `before` is the number of the preceding node, if that is one less than the
    /// node's own.
    pub(super) fn push(&mut self, node: StackNode, before: Option<u32>) {
        let is_before = node.parent != 0 && before == Some(node.parent);
        self.rest.push((node, if is_before { Caller::Before } else { Caller::Number(node.parent) }));
        if self.rest.len() == BLOCK {
            self.blocks.push(Block::from_nodes(&self.rest));
            self.rest.clear();
        }
    }

    /// The caller of the node at an index.
    #[inline]
    pub(super) fn caller(&self, place: usize) -> Option<Caller> {
        match self.blocks.get(place / BLOCK) {
            Some(block) => Some(block.caller(place % BLOCK)),
            None => self.rest.get(place - self.blocks.len() * BLOCK).map(|(_, caller)| *caller),
        }
    }

    /// The node at an index, without its caller.
    #[inline]
    pub(super) fn frame(&self, place: usize) -> Option<StackNode> {
        match self.blocks.get(place / BLOCK) {
            Some(block) => Some(block.frame(place % BLOCK)),
            None => self.rest.get(place - self.blocks.len() * BLOCK).map(|(node, _)| StackNode { parent: 0, ..*node }),
        }
    }
}

impl Block {
    fn from_nodes(nodes: &[(StackNode, Caller)]) -> Self {
        let (mut others, mut before, mut callers) = ([0_u64; WORDS], [0_u16; WORDS], Vec::new());
        for (at, (_, caller)) in nodes.iter().enumerate() {
            if at % 64 == 0 {
                // A block has no more nodes than that.
                before[at / 64] = callers.len() as u16;
            }
            if let Caller::Number(number) = caller {
                others[at / 64] |= 1 << (at % 64);
                callers.push(*number);
            }
        }
        callers.shrink_to_fit();
        let column = |of: fn(&StackNode) -> u32| Column::from_numbers(nodes.iter().map(|(node, _)| of(node).into()));
        let kinds =
            [column(|node| node.kind & 0xff), column(|node| node.kind >> 8 & 0xff), column(|node| node.kind >> 16)];
        let (subjects, offsets) = (column(|node| node.subject), column(|node| node.offset));
        Self { others, before, callers, kinds, subjects, offsets }
    }

    #[inline]
    fn caller(&self, at: usize) -> Caller {
        let (word, bit) = (self.others[at / 64], at % 64);
        if word >> bit & 1 == 0 {
            return Caller::Before;
        }
        let others = (word & ((1 << bit) - 1)).count_ones() as usize;
        Caller::Number(self.callers[self.before[at / 64] as usize + others])
    }

    #[inline]
    fn frame(&self, at: usize) -> StackNode {
        let [low, middle, high] = &self.kinds;
        // Each column holds values of 32 bits or fewer.
        let kind = low.at(at) as u32 | (middle.at(at) as u32) << 8 | (high.at(at) as u32) << 16;
        let (subject, offset) = (self.subjects.at(at) as u32, self.offsets.at(at) as u32);
        StackNode { parent: 0, kind, subject, offset }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nodes_come_back_however_they_lie_together() {
        let mut nodes = StackNodes::default();
        let node = |place: u32| StackNode {
            parent: if place.is_multiple_of(7) { place / 2 } else { place },
            kind: stack::METHOD | (place % 9) << stack::TIER | (place % 3) << stack::SPAN,
            subject: u32::MAX - place * 5,
            offset: place / 1_000,
        };
        let all = 3 * BLOCK as u32 + 77;
        (0..all).for_each(|place| nodes.push(node(place), (place > 0).then_some(place)));
        assert_eq!((nodes.len(), nodes.frame(all as usize), nodes.caller(all as usize)), (all as usize, None, None));
        for place in 0..all {
            let expected = node(place);
            let caller = if place > 0 && place % 7 > 0 { Caller::Before } else { Caller::Number(expected.parent) };
            assert_eq!(nodes.caller(place as usize), Some(caller), "{place}");
            assert_eq!(nodes.frame(place as usize), Some(StackNode { parent: 0, ..expected }), "{place}");
        }
    }

    /// With sixteen bytes each, 28 million nodes made up half of the memory of a page with ten
    /// million samples.
    #[test]
    fn a_node_of_a_deep_stack_takes_less_than_six_bytes() {
        let mut nodes = StackNodes::default();
        for place in 0..8 * BLOCK as u32 {
            let frame = StackFrame::Method {
                function: place * 31 % 20_000,
                il_offset: Some(place % 900),
                il_span: 0,
                tier: if place.is_multiple_of(5) { Tier::Precompiled } else { Tier::Tier1 },
            };
            let parent = if place.is_multiple_of(30) { place / 3 } else { place };
            nodes.push(StackNode::new(parent, frame), (place > 0).then_some(place));
        }
        let bytes = |block: &Block| {
            let columns = block.kinds.iter().chain([&block.subjects, &block.offsets]).map(Column::bytes);
            size_of::<Block>() + 4 * block.callers.len() + columns.sum::<usize>()
        };
        let all: usize = nodes.blocks.iter().map(bytes).sum();
        assert!(nodes.rest.is_empty() && all < 6 * nodes.len(), "{all} of {}", nodes.len());
    }
}
