//! Sums of counters against methods that are walked through by chance.

use std::collections::HashMap;

use clr_il::{Body, Opcode};
use clrscope_recording::model::{PlannedBranch, PlannedPoint};

use super::{CounterPlace, counters};
use crate::plan::MethodPlan;

const NOP: u8 = 0x00;
const CALL: u8 = 0x28;
const RET: u8 = 0x2a;
const BR: u8 = 0x38;
const BRTRUE: u8 = 0x3a;
const SWITCH: u8 = 0x45;
const THROW: u8 = 0x7a;

/// Numbers that look like chance, the same at each run.
struct Chance(u64);

impl Chance {
    fn below(&mut self, end: usize) -> usize {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) as usize % end
    }
}

/// A method of these instructions, each with the numbers of the instructions that it jumps to, and
/// perhaps a block of the first numbers that is protected by a handler, which begins and ends with
/// the last.
fn body(code: &[(u8, Vec<usize>)], clause: Option<[usize; 4]>) -> Body {
    let size = |(opcode, targets): &(u8, Vec<usize>)| match *opcode {
        BR | BRTRUE | CALL => 5,
        SWITCH => 5 + 4 * targets.len(),
        _ => 1,
    };
    let mut starts = vec![0];
    for instruction in code {
        starts.push(starts[starts.len() - 1] + size(instruction));
    }
    let length = starts[code.len()];
    let mut bytes = vec![if clause.is_some() { 0x0b } else { 0x03 }, 0x30, 8, 0];
    bytes.extend((length as u32).to_le_bytes());
    bytes.extend([0; 4]);
    for (number, (opcode, targets)) in code.iter().enumerate() {
        bytes.push(*opcode);
        match *opcode {
            CALL => bytes.extend(0x0a00_0001_u32.to_le_bytes()),
            SWITCH => bytes.extend((targets.len() as u32).to_le_bytes()),
            _ => {}
        }
        for target in targets {
            bytes.extend((starts[*target] as i32 - starts[number + 1] as i32).to_le_bytes());
        }
    }
    if let Some([start, end, handler, handler_end]) = clause {
        bytes.resize(bytes.len().next_multiple_of(4), 0);
        bytes.extend([0x41, 28, 0, 0]);
        let [start, end, handler, handler_end] = [start, end, handler, handler_end].map(|at| starts[at] as u32);
        for word in [0, start, end - start, handler, handler_end - handler, 0x0100_0001] {
            bytes.extend(word.to_le_bytes());
        }
    }
    Body::read(&bytes).expect("a body")
}

fn any_method(chance: &mut Chance) -> Body {
    let count = 4 + chance.below(24);
    let mut code: Vec<_> = (0..count)
        .map(|_| match chance.below(12) {
            0..4 => (NOP, vec![]),
            4..6 => (CALL, vec![]),
            6 => (BR, vec![chance.below(count)]),
            7..10 => (BRTRUE, vec![chance.below(count)]),
            10 => (SWITCH, (0..chance.below(4)).map(|_| chance.below(count)).collect()),
            _ => (if chance.below(2) == 0 { RET } else { THROW }, vec![]),
        })
        .collect();
    code.push((RET, vec![]));
    let start = chance.below(count - 2);
    let end = start + 1 + chance.below(count - 1 - start);
    let clause = (chance.below(2) == 0).then_some([start, end, end, count]);
    body(&code, clause)
}

/// All that can be asked of a method: a point at some instructions, branches at some conditions.
fn plan(body: &Body, chance: &mut Chance) -> MethodPlan {
    let mut plan = MethodPlan::default();
    for instruction in body.instructions() {
        let il_offset = instruction.label().offset().expect("an offset");
        if chance.below(2) == 0 {
            plan.points.push(PlannedPoint {
                il_offset,
                file: 0,
                start_line: 1,
                start_column: 1,
                end_line: 1,
                end_column: 2,
            });
        }
        if instruction.opcode().flow() == clr_il::Flow::Condition && chance.below(4) > 0 {
            let ways = 0..=instruction.operand().targets().len() as u32;
            plan.branches.extend(ways.map(|path| PlannedBranch {
                il_offset,
                path,
                target_offset: 0,
                file: 0,
                line: 1,
            }));
        }
    }
    plan
}

/// Number of times that each place was passed.
#[derive(Default)]
struct PassCounts(HashMap<CounterPlace, u64>);

impl PassCounts {
    fn passes(&mut self, place: CounterPlace) {
        *self.0.entry(place).or_default() += 1;
    }

    fn at(&self, place: CounterPlace) -> u64 {
        self.0.get(&place).copied().unwrap_or(0)
    }

    /// Goes through a method once. What may fail sometimes does, and there the program may be
    /// killed, too. False where the method goes in a circle.
    fn walk(&mut self, body: &Body, chance: &mut Chance) -> bool {
        let instructions = body.instructions();
        let number = |label: clr_il::Label| instructions.iter().position(|instruction| instruction.label() == label);
        let mut at = 0;
        for step in 0..2_000 {
            let instruction = &instructions[at];
            let offset = instruction.label().offset().expect("an offset");
            self.passes(CounterPlace::Before(offset));
            let targets = instruction.operand().targets();
            let path = match instruction.opcode() {
                Opcode::Br => 1,
                Opcode::Brtrue | Opcode::Switch => chance.below(targets.len() + 1),
                Opcode::Ret => return true,
                Opcode::Throw | Opcode::Call if step > 200 => return true,
                Opcode::Throw => usize::MAX,
                Opcode::Call if chance.below(6) == 0 => usize::MAX,
                _ => 0,
            };
            at = match path {
                0 => at + 1,
                usize::MAX => {
                    let is_protected = |clause: &&clr_il::Clause| {
                        let (start, end) = clause.protected();
                        (start..end).contains(&instruction.label())
                    };
                    let Some(clause) = body.clauses().iter().find(is_protected) else { return true };
                    number(clause.handler().0).expect("a handler")
                }
                path => number(targets[path - 1]).expect("a target"),
            };
            if path != usize::MAX {
                self.passes(CounterPlace::Way { branch: offset, path: path as u32 });
            }
        }
        false
    }
}

#[test]
fn sums_are_the_hits_whatever_happens_in_a_method() {
    let mut chance = Chance(7);
    let (mut walked, mut kept, mut wanted) = (0, 0, 0);
    for method in 0..1_500 {
        let body = any_method(&mut chance);
        let plan = plan(&body, &mut chance);
        let counters = counters(&plan, &body);
        let mut seen = PassCounts::default();
        if !(0..20).all(|_| seen.walk(&body, &mut chance)) {
            continue;
        }
        walked += 1;
        let points = plan.points.iter().map(|point| CounterPlace::Before(point.il_offset));
        let ways = plan.branches.iter().map(|branch| CounterPlace::Way { branch: branch.il_offset, path: branch.path });
        assert_eq!(counters.sums.len(), plan.points.len() + plan.branches.len());
        for (place, terms) in points.chain(ways).zip(&counters.sums) {
            let sum: u64 = terms.iter().map(|term| seen.at(counters.places[*term as usize])).sum();
            assert_eq!(
                sum,
                seen.at(place),
                "{place:?} of method {method}: {terms:?} of {:?} in {body:#?}",
                counters.places
            );
        }
        kept += counters.places.len();
        wanted += counters.sums.len();
    }
    assert!(walked > 700 && kept * 10 < wanted * 7, "{walked} methods, {kept} counters of {wanted}");
}

/// A point at each of these instructions, and branches at these.
fn asks(body: &Body, points: &[usize], branches: &[usize]) -> MethodPlan {
    let offset = |number: &usize| body.instructions()[*number].label().offset().expect("an offset");
    let point =
        |il_offset| PlannedPoint { il_offset, file: 0, start_line: 1, start_column: 1, end_line: 1, end_column: 2 };
    let ways = |il_offset| [0, 1].map(|path| PlannedBranch { il_offset, path, target_offset: 0, file: 0, line: 1 });
    MethodPlan {
        token: 0,
        points: points.iter().map(offset).map(point).collect(),
        branches: branches.iter().map(offset).flat_map(ways).collect(),
    }
}

#[test]
fn a_loop_with_a_condition_that_calls_adds_twice_a_round() {
    // 0: start, 1: to the condition, 2: call, 3: jumps to 6, 4: then, 5: to 7, 6: else, 7: next, 8:
    // jumps to 2, 9: end.
    let code = [
        (NOP, vec![]),
        (BR, vec![8]),
        (CALL, vec![]),
        (BRTRUE, vec![6]),
        (NOP, vec![]),
        (BR, vec![7]),
        (NOP, vec![]),
        (NOP, vec![]),
        (BRTRUE, vec![2]),
        (RET, vec![]),
    ];
    let body = body(&code, None);
    let plan = asks(&body, &[0, 2, 4, 6, 7, 8, 9], &[3, 8]);
    let counters = counters(&plan, &body);
    let offset = |number: usize| body.instructions()[number].label().offset().expect("an offset");
    let mut offsets: Vec<u32> = counters
        .places
        .iter()
        .map(|place| match place {
            CounterPlace::Before(offset) => *offset,
            CounterPlace::Way { .. } => panic!("a way: {:?}", counters.places),
        })
        .collect();
    offsets[..3].sort_unstable();
    assert_eq!(offsets, [2, 4, 6, 0, 9].map(offset), "in the loop the call and both ways, then the start and the end");
}

#[test]
fn a_method_without_calls_has_a_counter_for_each_way() {
    // 0: jumps to 3, 1: one result, 2: ret, 3: other result, 4: ret
    let code = [(BRTRUE, vec![3]), (NOP, vec![]), (RET, vec![]), (NOP, vec![]), (RET, vec![])];
    let body = body(&code, None);
    let counters = counters(&asks(&body, &[0, 1, 3], &[0]), &body);
    assert_eq!(counters.places.len(), 2);
    assert_eq!(counters.sums.iter().map(Vec::len).collect::<Vec<_>>(), [2, 1, 1, 1, 1]);
}
