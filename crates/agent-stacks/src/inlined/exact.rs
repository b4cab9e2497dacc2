//! Finds inlined methods in the runtime's own debug information, for `--inlined=exact`.
//!
//! With `DOTNET_RichDebugInfo=1` the compiler keeps the inlining tree of each body and, for
//! statements of the code, their method and IL offset. The event `JittedMethodRichDebugInfo` has
//! both (`SendMethodRichDebugInfo` in the runtime's `eventtrace.cpp`).
//!
//! The map is as exact as the compiler's statements. If the result of an inlined method is computed
//! in the statement of its caller, it counts for the caller. A call in such a statement is
//! identified by its callee: [`Places::way_to_call`].
//!
//! Not all code has a statement of its own. A block that begins with values on the stack (behind
//! `?:` or `??` within an expression) has none until the stack is empty again
//! (`Compiler::impInitBlockLineInfo` in the runtime's `importer.cpp`). So the map assigns the
//! block's code to the statement of another block. If the code runs on from that statement, the
//! block is one that the statement's IL leads to. Otherwise nothing is known about it.

use std::ops::Range;
use std::sync::OnceLock;

use clr_profiler::FunctionId;
use clrscope_agent_base::event_pipe::Fields;

use super::inline_paths::{MethodName, Methods, PathMethod};

/// Most methods and statements of a body that are read.
const MOST: u32 = 1 << 16;
/// Numbers from here on mean that there is no offset (`MappingTypes` in the runtime's
/// `cordebuginfo.h`).
const NO_OFFSET: u32 = 0x8000_0000;

/// A method in the inlining tree. The first one is the compiled method itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Node<Id> {
    method: Id,
    /// The calling node; none for the first one.
    caller: Option<u32>,
}

/// A statement, whose code begins at an offset in the body.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Statement {
    code: u32,
    node: u32,
    il: Option<u32>,
}

/// The methods inlined into a body, and the positions of their code.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct InlineMap<Id = FunctionId> {
    nodes: Vec<Node<Id>>,
    /// By offset in the code. Of several at one offset, only the last one has code.
    statements: Vec<Statement>,
    /// Whether a block may have no statement of its own; empty until computed.
    has_silent_blocks: OnceLock<bool>,
}

/// Parts of a method's IL.
#[derive(Debug, Clone, PartialEq, Eq)]
struct IlParts(Vec<Range<u32>>);

impl IlParts {
    fn all() -> Self {
        let all = 0..u32::MAX;
        Self(Vec::from([all]))
    }

    fn contains(&self, offset: u32) -> bool {
        self.0.iter().any(|part| part.contains(&offset))
    }
}

/// The result of a search for the path to a call.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum PathOutcome<Id = FunctionId> {
    /// The methods that lead to the call, outermost first. No other path is possible.
    Only(Vec<PathMethod<Id>>),
    /// Several paths are possible, or none is; or the IL of a method can't be read.
    Unknown,
}

impl InlineMap {
    /// Reads the event's data, joined from its pieces. `None` if the data are invalid.
    pub(super) fn read(data: &[u8]) -> Option<Self> {
        let mut fields = Fields::new(data);
        let counts = (fields.u32()?, fields.u32()?);
        if counts.0 == 0 || counts.0 > MOST || counts.1 > MOST {
            return None;
        }
        let mut raw = Vec::new();
        for _ in 0..counts.0 {
            // SAFETY: the runtime writes identifiers of methods there: of the method that it
            // compiles and of inlined ones. They stay valid as long as the body.
            let method = unsafe { FunctionId::from_raw(fields.u64()? as usize) };
            // The offset of the call is not filled in on .NET 9 and 10, and has any value.
            fields.u32()?;
            raw.push((method, [fields.u32()?, fields.u32()?]));
        }
        let mut statements = Vec::new();
        for _ in 0..counts.1 {
            let (il, node, code) = (offset(fields.u32()?), fields.u32()?, fields.u32()?);
            // The kind of the IL position.
            fields.read_bytes(1)?;
            statements.push(Statement { code, node, il });
        }
        Self::new(raw, statements)
    }
}

impl<Id: Copy> InlineMap<Id> {
    /// Creates the map from nodes, each with method, first callee and next callee of the same
    /// caller (0 for none).
    fn new(raw: Vec<(Id, [u32; 2])>, mut statements: Vec<Statement>) -> Option<Self> {
        let node = |&(method, _): &(Id, _)| Node { method, caller: None };
        let mut nodes: Vec<Node<Id>> = raw.iter().map(node).collect();
        let mut open = vec![(0, raw.first()?.1[0])];
        while let Some((caller, callee)) = open.pop() {
            let Some(&(_, [first, next])) = raw.get(callee as usize).filter(|_| callee != 0) else { continue };
            // Each node has one caller, or this is not a tree.
            if nodes[callee as usize].caller.replace(caller).is_some() {
                return None;
            }
            open.extend([(caller, next), (callee, first)]);
        }
        if statements.iter().any(|statement| statement.node as usize >= nodes.len()) {
            return None;
        }
        // A stable sort: of several at one offset, the last stays last.
        statements.sort_by_key(|statement| statement.code);
        Some(Self { nodes, statements, has_silent_blocks: OnceLock::new() })
    }

    /// Whether the body contains no inlined method.
    pub(super) fn is_alone(&self) -> bool {
        self.nodes.len() == 1
    }

    fn statement(&self, code: u32) -> Option<Statement> {
        let behind = self.statements.partition_point(|statement| statement.code <= code);
        behind.checked_sub(1).map(|last| self.statements[last])
    }

    /// IL offsets in a node's method at which statements begin, in order.
    fn beginnings(&self, node: u32) -> Vec<u32> {
        let of_node = self.statements.iter().filter(|statement| statement.node == node);
        let mut beginnings: Vec<u32> = of_node.filter_map(|statement| statement.il).collect();
        beginnings.sort_unstable();
        beginnings
    }

    fn callees(&self, node: u32) -> impl Iterator<Item = u32> {
        (0..).zip(&self.nodes).filter(move |(_, callee)| callee.caller == Some(node)).map(|(number, _)| number)
    }
}

/// A body's map, with facts about its methods.
pub(super) struct Places<'a, M: Methods> {
    pub(super) map: &'a InlineMap<M::Id>,
    pub(super) methods: &'a mut M,
    /// Whether the body's code certainly runs on from an offset to the instruction in question,
    /// without a jump or a call that may not return.
    pub(super) runs_on_from: &'a dyn Fn(u32) -> bool,
}

impl<M: Methods> Places<'_, M> {
    /// The statement of the code at an offset in the body, and the IL that the code may belong to.
    fn statement(&mut self, code: u32) -> Option<(Statement, IlParts)> {
        let statement = self.map.statement(code)?;
        if !(self.runs_on_from)(statement.code) && self.has_silent_blocks() {
            return None;
        }
        Some((statement, self.parts(statement)))
    }

    /// Whether a block of a method in the body may have no statement of its own.
    fn has_silent_blocks(&mut self) -> bool {
        let map = self.map;
        *map.has_silent_blocks.get_or_init(|| {
            (0..).zip(&map.nodes).any(|(number, node)| {
                let Some(jumps) = self.methods.jumps(node.method) else { return true };
                let beginnings = map.beginnings(number);
                jumps.iter().any(|jump| jump.from.is_none() || beginnings.binary_search(&jump.to).is_err())
            })
        })
    }

    /// The parts of a node's IL that the code behind a statement may belong to: everything that the
    /// statement runs on to without another statement.
    fn parts(&mut self, statement: Statement) -> IlParts {
        let Some(il) = statement.il else { return IlParts::all() };
        let Some(jumps) = self.methods.jumps(self.map.nodes[statement.node as usize].method) else {
            return IlParts::all();
        };
        let beginnings = self.map.beginnings(statement.node);
        let (mut parts, mut open) = (IlParts(Vec::new()), vec![il]);
        while let Some(start) = open.pop() {
            let next = beginnings.partition_point(|beginning| *beginning <= start);
            let part = start..beginnings.get(next).copied().unwrap_or(u32::MAX);
            let from_part = jumps.iter().filter(|jump| jump.from.is_some_and(|from| part.contains(&from)));
            open.extend(from_part.map(|jump| jump.to).filter(|to| beginnings.binary_search(to).is_err()));
            parts.0.push(part);
            open.retain(|start| !parts.contains(*start));
        }
        parts
    }

    /// The methods at an offset in the body, outermost first. Each has the IL offset from which the
    /// next one is called. The flag says whether the list is complete: no other method was inlined
    /// into the innermost one there. `None` before the first statement, or if the statement is not
    /// certain.
    pub(super) fn at(&mut self, code: u32) -> Option<(Vec<PathMethod<M::Id>>, bool)> {
        let (statement, parts) = self.statement(code)?;
        let map = self.map;
        let is_all = !map.callees(statement.node).any(|callee| self.may_be_called_in(callee, &parts));
        Some((self.stations(statement.node, statement.il), is_all))
    }

    /// The path to the call at an offset in the body. The called method has one of these names.
    pub(super) fn way_to_call(&mut self, code: u32, names: &[MethodName]) -> PathOutcome<M::Id> {
        let Some((statement, parts)) = self.statement(code) else { return PathOutcome::Unknown };
        let mut found = Vec::new();
        match self.find(statement.node, &parts, names, &mut found) {
            Some(()) => merged(found),
            None => PathOutcome::Unknown,
        }
    }

    /// Finds the calls in a node's method, within parts of its IL, and in the methods inlined
    /// there.
    fn find(
        &mut self,
        node: u32,
        parts: &IlParts,
        names: &[MethodName],
        found: &mut Vec<Vec<PathMethod<M::Id>>>,
    ) -> Option<()> {
        let calls = self.methods.calls(self.map.nodes[node as usize].method)?;
        let is_there = |offset: Option<u32>| offset.is_none_or(|offset| parts.contains(offset));
        for call in calls.iter().filter(|call| is_there(call.offset) && call.may_be_of(names)) {
            found.push(self.stations(node, call.offset));
        }
        let map = self.map;
        for callee in map.callees(node) {
            if self.may_be_called_in(callee, parts) {
                self.find(callee, &IlParts::all(), names, found)?;
            }
        }
        Some(())
    }

    /// IL offsets in the caller at which a node's method may be called; `None` if they are unknown.
    fn calls_of(&mut self, node: u32) -> Option<Vec<u32>> {
        let Node { method, caller } = self.map.nodes[node as usize];
        let calls = self.methods.calls(self.map.nodes[caller? as usize].method)?;
        let names = self.methods.names(method)?;
        let fitting = calls.iter().filter(|call| call.may_be_of(&names));
        let offsets: Vec<u32> = fitting.map(|call| call.offset).collect::<Option<_>>()?;
        Some(offsets).filter(|offsets| !offsets.is_empty())
    }

    /// Whether a node's method may be called within parts of its caller's IL. A method that is
    /// called by another name than its own still belongs to some call.
    fn may_be_called_in(&mut self, node: u32, parts: &IlParts) -> bool {
        if let Some(calls) = self.calls_of(node) {
            return calls.iter().any(|call| parts.contains(*call));
        }
        let caller = self.map.nodes[node as usize].caller;
        let calls = caller.and_then(|caller| self.methods.calls(self.map.nodes[caller as usize].method));
        calls.is_none_or(|calls| calls.iter().any(|call| call.offset.is_none_or(|offset| parts.contains(offset))))
    }

    /// The path from the compiled method to a node, whose own IL offset is `il`.
    fn stations(&mut self, node: u32, il: Option<u32>) -> Vec<PathMethod<M::Id>> {
        let (mut stations, mut next, mut offset) = (Vec::new(), Some(node), il);
        while let Some(node) = next {
            let Node { method, caller } = self.map.nodes[node as usize];
            stations.push(PathMethod { method, offset });
            offset = self.calls_of(node).filter(|calls| calls.len() == 1).map(|calls| calls[0]);
            next = caller;
        }
        stations.reverse();
        stations
    }
}

/// One path from several that lead through the same methods. An offset stays where all have the
/// same.
fn merged<Id: Copy + PartialEq>(found: Vec<Vec<PathMethod<Id>>>) -> PathOutcome<Id> {
    let mut all = found.into_iter();
    let Some(mut way) = all.next() else { return PathOutcome::Unknown };
    for other in all {
        if other.len() != way.len() || other.iter().zip(&way).any(|(one, other)| one.method != other.method) {
            return PathOutcome::Unknown;
        }
        for (station, other) in way.iter_mut().zip(&other) {
            station.offset = station.offset.filter(|_| station.offset == other.offset);
        }
    }
    PathOutcome::Only(way)
}

fn offset(written: u32) -> Option<u32> {
    (written < NO_OFFSET).then_some(written)
}

#[cfg(test)]
mod tests {
    use std::collections::HashMap;
    use std::sync::Arc;

    use super::super::inline_paths::{Callee, IlCall, Jump};
    use super::*;

    /// Calls at IL offsets of methods, and the jumps that each method has.
    struct Calls(HashMap<u32, Vec<(u32, &'static str)>>, Vec<Jump>);

    /// Code that runs on from any offset.
    const STRAIGHT: &dyn Fn(u32) -> bool = &|_| true;

    impl Methods for Calls {
        type Id = u32;

        fn calls(&mut self, method: u32) -> Option<Arc<[IlCall]>> {
            let call =
                |(offset, name): &(u32, &str)| IlCall { offset: Some(*offset), callee: Callee::Named(named(name)) };
            self.0.get(&method).map(|calls| calls.iter().map(call).collect())
        }

        fn jumps(&mut self, _method: u32) -> Option<Arc<[Jump]>> {
            Some(self.1.as_slice().into())
        }

        fn names(&mut self, method: u32) -> Option<Arc<[MethodName]>> {
            Some(Arc::new([named(["None", "One", "Two", "Three", "Four"][method as usize])]))
        }
    }

    fn named(name: &str) -> MethodName {
        MethodName { name: name.into(), parameters: 0, has_this: false }
    }

    /// Methods with the offsets of their calls.
    type Pairs = Vec<(u32, Option<u32>)>;

    /// Method 1 has 2 and 3 in it, and 2 has 4.
    fn map() -> InlineMap<u32> {
        let raw = vec![(1, [1, 0]), (2, [3, 2]), (3, [0, 0]), (4, [0, 0])];
        let statement = |(code, node, il)| Statement { code, node, il: Some(il) };
        let statements = [(30, 2, 0), (4, 0, 0), (10, 1, 0), (14, 3, 2), (20, 0, 18), (20, 0, 19)].map(statement);
        InlineMap::new(raw, statements.into()).expect("a tree")
    }

    fn calls() -> Calls {
        Calls(
            HashMap::from([
                (1, vec![(5, "Two"), (20, "Three"), (25, "Leaf")]),
                (2, vec![(7, "Four")]),
                (3, vec![(1, "Leaf"), (9, "Other")]),
                (4, vec![(4, "Deep")]),
            ]),
            Vec::new(),
        )
    }

    fn at(code: u32) -> Option<(Pairs, bool)> {
        let found = Places { map: &map(), methods: &mut calls(), runs_on_from: STRAIGHT }.at(code);
        found.map(|(stations, is_all)| (pairs(stations), is_all))
    }

    fn pairs(stations: Vec<PathMethod<u32>>) -> Pairs {
        stations.into_iter().map(|station| (station.method, station.offset)).collect()
    }

    fn way(calls: &mut Calls, code: u32, name: &str) -> Option<Pairs> {
        match (Places { map: &map(), methods: calls, runs_on_from: STRAIGHT }).way_to_call(code, &[named(name)]) {
            PathOutcome::Only(way) => Some(pairs(way)),
            PathOutcome::Unknown => None,
        }
    }

    #[test]
    fn an_instruction_is_of_the_last_statement_that_begins_before_it() {
        assert_eq!(at(3), None, "the frame is set up");
        assert_eq!(at(4), Some((vec![(1, Some(0))], false)), "method 2 may return a value there");
        assert_eq!(at(13), Some((vec![(1, Some(5)), (2, Some(0))], false)));
        assert_eq!(at(14), Some((vec![(1, Some(5)), (2, Some(7)), (4, Some(2))], true)));
        assert_eq!(at(25), Some((vec![(1, Some(19))], false)), "the last of two at one offset");
        assert_eq!(at(1000), Some((vec![(1, Some(20)), (3, Some(0))], true)));
        assert!(!map().is_alone());
    }

    #[test]
    fn a_call_that_an_inlined_method_returns_is_found_in_the_statement_of_its_caller() {
        let mut calls = calls();
        // The statement at 20 goes on behind offset 19 of method 1, with method 3 inlined.
        assert_eq!(way(&mut calls, 22, "Other"), Some(vec![(1, Some(20)), (3, Some(9))]));
        assert_eq!(way(&mut calls, 22, "Leaf"), None, "the method itself and the one in it call it");
        assert_eq!(way(&mut calls, 22, "Four"), None, "method 2 was left behind");
        let deep = Some(vec![(1, Some(5)), (2, Some(7)), (4, Some(4))]);
        assert_eq!([12, 14].map(|code| way(&mut calls, code, "Deep")), [deep.clone(), deep]);
        assert_eq!(way(&mut calls, 1, "Deep"), None);
        calls.0.remove(&4);
        assert_eq!(way(&mut calls, 12, "Deep"), None, "its IL can't be read");
    }

    /// `Where(...)` leads to a method that no IL names. A loop without a call was once unknown
    /// because of it.
    #[test]
    fn a_statement_without_a_call_holds_no_other_method() {
        let mut calls = Calls(HashMap::from([(1, vec![(30, "Leaf")])]), Vec::new());
        let raw = vec![(1, [1, 0]), (2, [0, 0])];
        let statements =
            [(0, 0, 10), (8, 0, 20), (16, 0, 40)].map(|(code, node, il)| Statement { code, node, il: Some(il) });
        let map = InlineMap::new(raw, statements.into()).expect("a tree");
        let mut is_all =
            |code| Places { map: &map, methods: &mut calls, runs_on_from: STRAIGHT }.at(code).expect("a statement").1;
        assert_eq!([4, 12, 20].map(&mut is_all), [true, false, true]);
    }

    /// A kept lambda is created only once: `call(kept ?? (kept = made))`. The call's block begins
    /// with a value on the stack, and has no statement. It was once taken for a block without
    /// calls.
    #[test]
    fn a_block_that_begins_with_a_value_is_of_the_statement_that_leads_to_it() {
        let jump = Jump { from: Some(6), to: 31 };
        let mut calls =
            Calls(HashMap::from([(1, vec![(20, "Other"), (32, "Two")]), (2, vec![(7, "Leaf")])]), vec![jump]);
        let raw = vec![(1, [1, 0]), (2, [0, 0])];
        let statements = [(4, 0, 0), (40, 0, 9)].map(|(code, node, il)| Statement { code, node, il: Some(il) });
        let map = InlineMap::new(raw, statements.into()).expect("a tree");
        let mut places = Places { map: &map, methods: &mut calls, runs_on_from: STRAIGHT };
        assert_eq!(places.at(20).map(|(way, is_all)| (pairs(way), is_all)), Some((vec![(1, Some(0))], false)));
        let PathOutcome::Only(way) = places.way_to_call(20, &[named("Leaf")]) else { panic!("one way") };
        assert_eq!(pairs(way), [(1, Some(32)), (2, Some(7))]);
        // Behind a jump it may be any block without a statement.
        let mut places = Places { map: &map, methods: &mut calls, runs_on_from: &|_| false };
        assert_eq!(places.at(20), None);
        assert_eq!(places.way_to_call(20, &[named("Leaf")]), PathOutcome::Unknown);
    }

    #[test]
    fn two_calls_by_the_same_methods_are_one_way_without_what_differs() {
        let mut calls =
            Calls(HashMap::from([(1, vec![(5, "Two"), (6, "Two")]), (2, vec![(1, "Leaf"), (9, "Leaf")])]), Vec::new());
        let raw = vec![(1, [1, 0]), (2, [0, 2]), (2, [0, 0])];
        let map = InlineMap::new(raw, vec![Statement { code: 0, node: 0, il: Some(0) }]).expect("a tree");
        let found = Places { map: &map, methods: &mut calls, runs_on_from: STRAIGHT }.way_to_call(3, &[named("Leaf")]);
        let PathOutcome::Only(way) = found else { panic!("the same methods") };
        assert_eq!(pairs(way), [(1, None), (2, None)]);
    }

    #[test]
    fn data_of_any_kind_is_read_or_refused() {
        let mut data = Vec::new();
        data.extend([2_u32, 1].iter().flat_map(|count| count.to_le_bytes()));
        for (method, il, child, sibling) in [(0x1000_u64, u32::MAX, 1_u32, 0_u32), (0x2000, 6, 0, 0)] {
            data.extend(method.to_le_bytes());
            data.extend([il, child, sibling].iter().flat_map(|word| word.to_le_bytes()));
        }
        data.extend([3_u32, 1, 16].iter().flat_map(|word| word.to_le_bytes()));
        data.push(2);
        let map = InlineMap::read(&data).expect("a map");
        assert_eq!((map.nodes.len(), map.nodes[1].caller), (2, Some(0)));
        assert_eq!(map.statements, [Statement { code: 16, node: 1, il: Some(3) }]);
        for length in 0..data.len() {
            assert_eq!(InlineMap::read(&data[..length]), None, "{length} bytes");
        }
        // No nodes; a callee that is its own callee; a statement without a node.
        for (at, byte) in [(0, 0), (8 + 20 + 12, 1), (8 + 2 * 20 + 4, 2)] {
            let mut changed = data.clone();
            changed[at] = byte;
            assert_eq!(InlineMap::read(&changed), None, "{at}");
        }
    }
}
