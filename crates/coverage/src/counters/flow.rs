//! Control flow of a method: basic blocks, and edges between them.

use std::collections::{BTreeSet, HashMap};

use clr_il::{Body, ClauseKind, Flow as Goes, Instruction, Label, Opcode};

/// A sequence of instructions. Control that reaches the first one reaches all of them; only the
/// last one may fail, call, or branch.
pub(super) struct Block {
    /// Offset of the first instruction.
    start: u32,
    /// Number of enclosing loops.
    pub(super) depth: u32,
    /// Whether control can enter the block in other ways than along edges: the method's start, and
    /// handlers.
    pub(super) is_entry: bool,
    /// Whether control can leave the block in other ways than along edges: exceptions, returns,
    /// ends of handlers.
    pub(super) leaks: bool,
    /// Numbers of the incoming edges.
    pub(super) ins: Vec<usize>,
    /// Numbers of the outgoing edges.
    pub(super) outs: Vec<usize>,
}

/// An edge between two blocks.
struct Edge {
    /// Offset of the last instruction of the source block.
    from: u32,
    /// 0 for the fall-through to the next instruction, otherwise the number of the target, from 1.
    path: u32,
}

/// Blocks and edges of a method. An "amount" is how often control passes a block or an edge.
/// Amounts have numbers: first the blocks, then the edges.
pub(super) struct Flow {
    pub(super) blocks: Vec<Block>,
    edges: Vec<Edge>,
    by_way: HashMap<(u32, u32), usize>,
}

impl Flow {
    pub(super) fn from_body(body: &Body) -> Self {
        let instructions = body.instructions();
        let offset = |instruction: &Instruction| instruction.label().offset().unwrap_or(0);
        let entries = entries(body);
        let starts = starts(body, &entries);
        let mut flow = Self { blocks: Vec::new(), edges: Vec::new(), by_way: HashMap::new() };
        flow.blocks.extend(starts.iter().map(|start| Block {
            start: *start,
            depth: 0,
            is_entry: entries.contains(start),
            leaks: false,
            ins: Vec::new(),
            outs: Vec::new(),
        }));
        let mut block = 0;
        for (number, instruction) in instructions.iter().enumerate() {
            let next = instructions.get(number + 1).map(offset);
            if next.is_some_and(|next| flow.blocks.get(block + 1).is_none_or(|block| block.start != next)) {
                continue;
            }
            flow.end(block, instruction, next);
            block += 1;
        }
        flow.count_loops(body);
        flow
    }

    /// Ends a block with its last instruction; `next` is the offset of the instruction after it.
    fn end(&mut self, block: usize, last: &Instruction, next: Option<u32>) {
        let opcode = last.opcode();
        let from = last.label().offset().unwrap_or(0);
        let targets = last.operand().targets().iter().map(|target| target.offset());
        let ways: Vec<(u32, Option<u32>)> = (1..).zip(targets).collect();
        let next = opcode.flow().goes_on().then_some((0, next));
        self.blocks[block].leaks = !is_sure(opcode);
        for (path, to) in next.into_iter().chain(ways) {
            match to.and_then(|to| self.starting_at(to)) {
                Some(to) => self.connect(block, to, Edge { from, path }),
                None => self.blocks[block].leaks = true,
            }
        }
    }

    fn connect(&mut self, block: usize, to: usize, edge: Edge) {
        let amount = self.blocks.len() + self.edges.len();
        self.blocks[block].outs.push(amount);
        self.blocks[to].ins.push(amount);
        self.by_way.insert((edge.from, edge.path), amount);
        self.edges.push(edge);
    }

    /// A backward jump is a loop around all instructions that it jumps over.
    fn count_loops(&mut self, body: &Body) {
        let mut changes = vec![0_i32; self.blocks.len() + 1];
        for instruction in body.instructions() {
            let Some(from) = instruction.label().offset() else { continue };
            let back = instruction.operand().targets().iter().filter_map(|target| target.offset());
            for to in back.filter(|to| *to <= from) {
                let (Some(first), Some(last)) = (self.block_at(to), self.block_at(from)) else { continue };
                changes[first] += 1;
                changes[last + 1] -= 1;
            }
        }
        let mut depth = 0;
        for (block, change) in self.blocks.iter_mut().zip(changes) {
            depth += change;
            block.depth = depth.max(0).cast_unsigned();
        }
    }

    /// Number of loops that contain the instruction at an offset.
    pub(super) fn depth_at(&self, offset: u32) -> u32 {
        self.block_at(offset).map_or(0, |block| self.blocks[block].depth)
    }

    fn starting_at(&self, offset: u32) -> Option<usize> {
        self.blocks.binary_search_by_key(&offset, |block| block.start).ok()
    }

    /// The block that contains an offset.
    pub(super) fn block_at(&self, offset: u32) -> Option<usize> {
        self.blocks.partition_point(|block| block.start <= offset).checked_sub(1)
    }

    /// Number of a block's amount.
    pub(super) const fn of_block(&self, block: usize) -> usize {
        block
    }

    /// Number of the amount of an edge: the edge `path` from the branch at an offset.
    pub(super) fn edge(&self, branch: u32, path: u32) -> Option<usize> {
        self.by_way.get(&(branch, path)).copied()
    }

    /// Number of all amounts.
    pub(super) fn amounts(&self) -> usize {
        self.blocks.len() + self.edges.len()
    }

    /// Blocks by number, with the offsets of their first instructions.
    pub(super) fn blocks(&self) -> impl Iterator<Item = (usize, u32)> {
        self.blocks.iter().enumerate().map(|(number, block)| (number, block.start))
    }

    /// Edges, each as the number of its amount, the offset of its branch, and its number at that
    /// branch.
    pub(super) fn ways(&self) -> impl Iterator<Item = (usize, u32, u32)> {
        (self.blocks.len()..).zip(&self.edges).map(|(amount, edge)| (amount, edge.from, edge.path))
    }
}

/// Offsets that control can reach other than from another instruction.
fn entries(body: &Body) -> BTreeSet<u32> {
    let handlers = body.clauses().iter().flat_map(|clause| {
        let filter = match clause.kind() {
            ClauseKind::Filter(start) => start.offset(),
            _ => None,
        };
        [clause.handler().0.offset(), filter]
    });
    let first = body.instructions().first().and_then(|instruction| instruction.label().offset());
    handlers.chain([first]).flatten().collect()
}

/// Offsets of the first instructions of all blocks.
fn starts(body: &Body, entries: &BTreeSet<u32>) -> Vec<u32> {
    let instructions = body.instructions();
    let mut starts = entries.clone();
    let bounds = body.clauses().iter().flat_map(|clause| {
        let ((start, end), (handler, handler_end)) = (clause.protected(), clause.handler());
        [start, end, handler, handler_end]
    });
    starts.extend(bounds.filter_map(Label::offset));
    for (instruction, next) in instructions.iter().zip(instructions.iter().skip(1)) {
        let targets = instruction.operand().targets();
        starts.extend(targets.iter().filter_map(|target| target.offset()));
        if !targets.is_empty() || !is_sure(instruction.opcode()) {
            starts.extend(next.label().offset());
        }
    }
    starts
        .extend(instructions.last().into_iter().flat_map(|last| last.operand().targets()).filter_map(|to| to.offset()));
    // A block starts only at an instruction.
    let is_instruction = |offset: &u32| {
        instructions.binary_search_by_key(&Some(*offset), |instruction| instruction.label().offset()).is_ok()
    };
    starts.into_iter().filter(is_instruction).collect()
}

/// Whether control always goes on to the next instruction or a target: the instruction does not
/// call, wait, or fail.
fn is_sure(opcode: Opcode) -> bool {
    use Opcode as O;
    match opcode.flow() {
        Goes::Prefix => return true,
        Goes::Condition | Goes::Branch => return !opcode.is_leave(),
        Goes::Call | Goes::Leave => return false,
        _ => {}
    }
    let is_variable = matches!(
        opcode,
        O::Ldarg0
            | O::Ldarg1
            | O::Ldarg2
            | O::Ldarg3
            | O::LdargS
            | O::Ldarg
            | O::LdargaS
            | O::Ldarga
            | O::StargS
            | O::Starg
            | O::Ldloc0
            | O::Ldloc1
            | O::Ldloc2
            | O::Ldloc3
            | O::LdlocS
            | O::Ldloc
            | O::LdlocaS
            | O::Ldloca
            | O::Stloc0
            | O::Stloc1
            | O::Stloc2
            | O::Stloc3
            | O::StlocS
            | O::Stloc
    );
    let is_constant = matches!(
        opcode,
        O::LdcI4M1
            | O::LdcI4_0
            | O::LdcI4_1
            | O::LdcI4_2
            | O::LdcI4_3
            | O::LdcI4_4
            | O::LdcI4_5
            | O::LdcI4_6
            | O::LdcI4_7
            | O::LdcI4_8
            | O::LdcI4S
            | O::LdcI4
            | O::LdcI8
            | O::LdcR4
            | O::LdcR8
            | O::Ldnull
    );
    let is_arithmetic = matches!(
        opcode,
        O::Add
            | O::Sub
            | O::Mul
            | O::And
            | O::Or
            | O::Xor
            | O::Shl
            | O::Shr
            | O::ShrUn
            | O::Neg
            | O::Not
            | O::ConvI1
            | O::ConvI2
            | O::ConvI4
            | O::ConvI8
            | O::ConvI
            | O::ConvU1
            | O::ConvU2
            | O::ConvU4
            | O::ConvU8
            | O::ConvU
            | O::ConvR4
            | O::ConvR8
            | O::ConvRUn
            | O::Ceq
            | O::Cgt
            | O::CgtUn
            | O::Clt
            | O::CltUn
    );
    is_variable || is_constant || is_arithmetic || matches!(opcode, O::Nop | O::Dup | O::Pop)
}
