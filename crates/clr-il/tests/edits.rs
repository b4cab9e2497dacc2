//! Edits, looked at instruction by instruction.

use clr_il::{Body, ClauseKind, Code, Edits, Error, Label, Opcode, Operand, ResultPlace};

/// A body with a tiny header.
fn tiny(code: &[u8]) -> Body {
    Body::read(&[&[(code.len() as u8) << 2 | 2], code].concat()).expect("a body")
}

/// A body with a fat header, a stack of 2 and a section of clauses.
fn fat(code: &[u8], clauses: &[[u8; 12]]) -> Body {
    let mut bytes = vec![3 | 8, 0x30, 2, 0];
    bytes.extend((code.len() as u32).to_le_bytes());
    bytes.extend([0; 4]);
    bytes.extend(code);
    bytes.resize(bytes.len().next_multiple_of(4), 0);
    bytes.extend([1, (4 + clauses.len() * 12) as u8, 0, 0]);
    bytes.extend(clauses.as_flattened());
    Body::read(&bytes).expect("a body")
}

/// The instructions as they are read again, a line each.
fn lines(body: &Body) -> Vec<String> {
    let again = Body::read(&body.write().expect("written")).expect("read again");
    again.instructions().iter().map(ToString::to_string).collect()
}

fn constant(opcode: Opcode) -> Code {
    Code::new().plain(opcode).plain(Opcode::Pop)
}

#[test]
fn branches_and_blocks_begin_with_what_is_put_before_their_first_instruction() {
    // 0: ldarg.0, 1: brtrue.s 3, 3: ret
    let mut body = tiny(&[0x02, 0x2d, 0x00, 0x2a]);
    let mut edits = Edits::new();
    edits.before(Label::at(3), Code::new().plain(Opcode::Nop));
    edits.after(Label::at(1), Code::new().plain(Opcode::Break));
    body.apply(&edits).expect("both places are there");
    assert_eq!(
        lines(&body),
        ["IL_0000: ldarg.0", "IL_0001: brtrue.s IL_0004", "IL_0003: break", "IL_0004: nop", "IL_0005: ret"]
    );
}

#[test]
fn each_way_of_a_branch_has_code_of_its_own() {
    // 0: ldarg.0, 1: brtrue.s 4, 3: nop, 4: ret
    let mut body = tiny(&[0x02, 0x2d, 0x01, 0x00, 0x2a]);
    let mut edits = Edits::new();
    edits.after(Label::at(1), constant(Opcode::LdcI4_0));
    edits.on_target(Label::at(1), 0, constant(Opcode::LdcI4_1));
    edits.before(Label::at(4), Code::new().plain(Opcode::Break));
    body.apply(&edits).expect("the places are there");
    assert_eq!(
        lines(&body),
        [
            "IL_0000: ldarg.0",
            "IL_0001: brtrue.s IL_0007",
            "IL_0003: ldc.i4.0",
            "IL_0004: pop",
            "IL_0005: br.s IL_000b",
            "IL_0007: ldc.i4.1",
            "IL_0008: pop",
            "IL_0009: br.s IL_000c",
            "IL_000b: nop",
            "IL_000c: break",
            "IL_000d: ret"
        ]
    );
}

/// Moves of a body: offset before, offset now, and whether that is of new code.
fn moves(body: &Body) -> Vec<(u32, u32, bool)> {
    body.moves().expect("offsets").iter().map(|one| (one.old, one.new, one.is_inserted)).collect()
}

#[test]
fn a_changed_body_says_where_its_instructions_went() {
    // 0: ldarg.0, 1: brtrue.s 3, 3: ret
    let mut body = tiny(&[0x02, 0x2d, 0x00, 0x2a]);
    assert_eq!(moves(&body), [(0, 0, false), (1, 1, false), (3, 3, false)]);
    let mut edits = Edits::new();
    edits.before(Label::at(1), constant(Opcode::LdcI4_1));
    edits.lengthen_branches();
    body.apply(&edits).expect("the place is there");
    assert_eq!(moves(&body), [(0, 0, false), (1, 1, true), (1, 3, false), (3, 8, false)]);
}

/// The compiler's note behind a call is at the new code there, which belongs to the line of the
/// instruction that follows.
#[test]
fn new_code_counts_for_the_instruction_behind() {
    // 0: nop, 1: nop, 2: ret
    let mut body = tiny(&[0x00, 0x00, 0x2a]);
    let mut edits = Edits::new();
    edits.at_entry(constant(Opcode::LdcI4_1));
    edits.after(Label::at(1), constant(Opcode::LdcI4_2));
    edits.at_returns(constant(Opcode::LdcI4_3));
    body.apply(&edits).expect("the places are there");
    assert_eq!(moves(&body), [(0, 0, true), (0, 2, false), (1, 3, false), (2, 4, true), (2, 8, false)]);
}

#[test]
fn a_switch_has_a_way_for_each_target_and_a_jump_only_those_it_takes() {
    // 0: ldarg.0, 1: switch (14, 14), 14: br.s 16, 16: ret
    let mut body = tiny(&[0x02, 0x45, 2, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0x2b, 0x00, 0x2a]);
    let mut edits = Edits::new();
    edits.on_target(Label::at(1), 1, Code::new().plain(Opcode::Break));
    edits.on_target(Label::at(14), 0, constant(Opcode::LdcI4_3));
    body.apply(&edits).expect("the places are there");
    assert_eq!(
        lines(&body),
        [
            "IL_0000: ldarg.0",
            "IL_0001: switch [IL_0013, IL_0010]",
            "IL_000e: br.s IL_0013",
            "IL_0010: break",
            "IL_0011: br.s IL_0013",
            "IL_0013: br.s IL_0015",
            "IL_0015: ldc.i4.3",
            "IL_0016: pop",
            "IL_0017: br.s IL_0019",
            "IL_0019: ret"
        ]
    );
}

#[test]
fn a_way_that_is_not_there_or_leads_out_of_a_block_has_no_code() {
    // 0: leave.s 2, 2: ret
    let leave = fat(&[0xde, 0x00, 0x2a], &[]);
    let jump = tiny(&[0x2b, 0x00, 0x2a]);
    for (body, at, target) in [(leave, 0, 0), (jump.clone(), 0, 1), (jump, 2, 0)] {
        let mut edits = Edits::new();
        edits.on_target(Label::at(at), target, Code::new().plain(Opcode::Nop));
        assert_eq!(body.clone().apply(&edits), Err(Error::NoSuchTarget(Label::at(at))));
    }
}

#[test]
fn a_loop_to_the_first_instruction_does_not_enter_again() {
    // 0: ldarg.0, 1: brtrue.s 0, 3: ret
    let mut body = tiny(&[0x02, 0x2d, 0xfd, 0x2a]);
    let mut edits = Edits::new();
    edits.at_entry(Code::new().plain(Opcode::Break));
    edits.before(Label::at(0), Code::new().plain(Opcode::Nop));
    body.apply(&edits).expect("the place is there");
    assert_eq!(
        lines(&body),
        ["IL_0000: break", "IL_0001: nop", "IL_0002: ldarg.0", "IL_0003: brtrue.s IL_0001", "IL_0005: ret"]
    );
}

#[test]
fn short_branches_become_long_only_where_their_target_went_too_far() {
    // 0: br.s 2, 2: br.s 4, 4: ret
    let mut body = tiny(&[0x2b, 0x00, 0x2b, 0x00, 0x2a]);
    let mut edits = Edits::new();
    let much = (0..130).fold(Code::new(), |code, _| code.plain(Opcode::Nop));
    edits.before(Label::at(2), constant(Opcode::LdcI4_1));
    edits.before(Label::at(4), Code::new().plain(Opcode::Nop));
    body.apply(&edits).expect("the places are there");
    let mut far = Edits::new();
    far.before(Label::at(2), much);
    body.apply(&far).expect("the place is there");
    let names: Vec<Opcode> = Body::read(&body.write().expect("written"))
        .expect("read again")
        .instructions()
        .iter()
        .map(clr_il::Instruction::opcode)
        .filter(|opcode| *opcode != Opcode::Nop)
        .collect();
    // The first leads to what was put in front of its target first, and that is near.
    assert_eq!(names, [Opcode::BrS, Opcode::LdcI4_1, Opcode::Pop, Opcode::BrS, Opcode::Ret]);

    let mut body = tiny(&[0x02, 0x2d, 0x01, 0x2a, 0x2a]);
    let mut edits = Edits::new();
    edits.after(Label::at(1), (0..130).fold(Code::new(), |code, _| code.plain(Opcode::Nop)));
    body.apply(&edits).expect("the place is there");
    assert_eq!(lines(&body)[1], "IL_0001: brtrue IL_0089");
}

#[test]
fn tables_of_switches_follow_their_targets() {
    // 0: ldarg.0, 1: switch (15, 14), 14: ret, 15: ret
    let mut body = tiny(&[0x02, 0x45, 2, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0x2a, 0x2a]);
    let mut edits = Edits::new();
    edits.before(Label::at(14), Code::new().plain(Opcode::Nop).plain(Opcode::Nop));
    body.apply(&edits).expect("the place is there");
    assert_eq!(lines(&body)[1], "IL_0001: switch [IL_0011, IL_000e]");
}

#[test]
fn nothing_can_run_after_what_does_not_go_on() {
    let mut body = tiny(&[0x2b, 0x00, 0x2a]);
    let before = body.clone();
    for place in [0, 2] {
        let mut edits = Edits::new();
        edits.at_entry(Code::set_one(1));
        edits.after(Label::at(place), Code::set_one(1));
        assert_eq!(body.apply(&edits), Err(Error::NothingAfter(Label::at(place))));
    }
    let mut edits = Edits::new();
    edits.before(Label::at(1), Code::set_one(1));
    assert_eq!(body.apply(&edits), Err(Error::NoSuchPlace(Label::at(1))));
    assert_eq!(body, before, "a refused edit changes nothing");
}

#[test]
fn prefixes_stay_with_their_instruction_and_tail_calls_with_their_return() {
    // 0: volatile., 2: ldsfld, 7: tail., 9: call, 14: ret
    let code = [0xfe, 0x13, 0x7e, 1, 0, 0, 4, 0xfe, 0x14, 0x28, 1, 0, 0, 6, 0x2a];
    let mut body = tiny(&code);
    assert_eq!(body.places().collect::<Vec<_>>(), [Label::at(0), Label::at(7)]);
    let mut edits = Edits::new();
    edits.before(Label::at(2), Code::new().plain(Opcode::Break));
    body.apply(&edits).expect("the place is there");
    assert_eq!(lines(&body)[..3], ["IL_0000: break", "IL_0001: volatile.", "IL_0003: ldsfld 04000001"]);
    assert!(lines(&body)[3].ends_with("tail."));
    let mut edits = Edits::new();
    edits.at_returns(Code::new().plain(Opcode::Break));
    assert_eq!(body.apply(&edits), Err(Error::TailCalls));
    edits.drop_tail_calls();
    body.apply(&edits).expect("the method returns");
    let names: Vec<String> =
        lines(&body).iter().map(|line| line.split(' ').nth(1).expect("a name").to_owned()).collect();
    assert_eq!(names, ["break", "volatile.", "ldsfld", "nop", "call", "break", "ret"]);
}

#[test]
fn small_headers_and_sections_grow_where_they_must() {
    let mut body = tiny(&[0x2a]);
    let mut edits = Edits::new();
    edits.at_entry(Code::new().plain(Opcode::Nop));
    body.apply(&edits).expect("an entry");
    assert_eq!(body.write(), Ok(vec![2 << 2 | 2, 0x00, 0x2a]), "no more than it takes");
    edits.at_entry(Code::add_one(1));
    body.apply(&edits).expect("an entry");
    let bytes = body.write().expect("written");
    assert_eq!(bytes[..4], [3, 0x30, 8 + 3, 0]);

    // 0: leave.s 4, 2: leave.s 4, 4: ret; try 0 to 2, catch 2 to 4.
    let code = [0xde, 0x02, 0xde, 0x00, 0x2a];
    let catch = [0, 0, 0, 0, 2, 2, 0, 2, 1, 0, 0, 1];
    let mut body = fat(&code, &[catch]);
    let mut edits = Edits::new();
    edits.before(Label::at(0), (0..300).fold(Code::new(), |code, _| code.plain(Opcode::Nop)));
    body.apply(&edits).expect("the place is there");
    let bytes = body.write().expect("written");
    let at = bytes.len() - 28;
    assert_eq!(bytes[at..at + 4], [0x41, 28, 0, 0]);
    let again = Body::read(&bytes).expect("read again");
    let clause = again.clauses()[0];
    assert_eq!(clause.kind(), ClauseKind::Catch(0x0100_0001));
    assert_eq!(clause.protected(), (Label::at(0), Label::at(302)));
    assert_eq!(clause.handler(), (Label::at(302), Label::at(304)));
}

#[test]
fn exits_are_a_finally_around_everything_and_one_return() {
    // 0: leave.s 3, 2: throw, 3: ldc.i4.1, 4: ret, 5: ldnull, 6: throw; try 0 to 2, fault 5 to the
    // end.
    let code = [0xde, 0x01, 0x7a, 0x17, 0x2a, 0x14, 0x7a];
    let mut body = fat(&code, &[[4, 0, 0, 0, 2, 5, 0, 2, 0, 0, 0, 0]]);
    let mut edits = Edits::new();
    edits.at_entry(Code::new().plain(Opcode::Break));
    edits.at_exits(Code::set_one(7));
    assert_eq!(body.apply(&edits), Err(Error::ResultUnknown));
    edits.set_result(ResultPlace::Local(3));
    body.apply(&edits).expect("the method can be wrapped");
    assert_eq!(
        lines(&body),
        [
            "IL_0000: break",
            "IL_0001: leave.s IL_0004",
            "IL_0003: throw",
            "IL_0004: ldc.i4.1",
            "IL_0005: stloc 3",
            "IL_0009: leave.s IL_0017",
            "IL_000b: ldnull",
            "IL_000c: throw",
            "IL_000d: nop",
            "IL_000e: ldc.i4 7",
            "IL_0013: conv.u",
            "IL_0014: ldc.i4.1",
            "IL_0015: stind.i1",
            "IL_0016: endfinally",
            "IL_0017: ldloc 3",
            "IL_001b: ret",
        ]
    );
    let again = Body::read(&body.write().expect("written")).expect("read again");
    assert_eq!(again.clauses()[0].handler(), (Label::at(11), Label::at(13)), "the method's end is no more its end");
    let outer = again.clauses()[1];
    assert_eq!(outer.kind(), ClauseKind::Finally);
    assert_eq!((outer.protected(), outer.handler()), ((Label::at(1), Label::at(13)), (Label::at(13), Label::at(23))));
    assert_eq!(again.max_stack(), 2 + 2);

    // A method that never returns has no return afterwards.
    let mut endless = tiny(&[0x14, 0x7a]);
    edits.set_result(ResultPlace::None);
    endless.apply(&edits).expect("the method can be wrapped");
    assert_eq!(lines(&endless).last().map(String::as_str), Some("IL_000c: endfinally"));
    let again = Body::read(&endless.write().expect("written")).expect("read again");
    assert_eq!(again.clauses()[0].handler().1, Label::END);

    let mut jumps = tiny(&[0x27, 1, 0, 0, 6]);
    assert_eq!(jumps.apply(&edits), Err(Error::Jumps));
}

#[test]
fn failures_are_a_fault_within_what_runs_at_all_exits() {
    // 0: ldc.i4.1, 1: ret
    let mut body = tiny(&[0x17, 0x2a]);
    let mut edits = Edits::new();
    edits.at_returns(constant(Opcode::LdcI4_2));
    edits.at_failures(constant(Opcode::LdcI4_3));
    assert!(edits.wraps());
    edits.set_result(ResultPlace::Local(0));
    let mut both = body.clone();
    body.apply(&edits).expect("the method can be wrapped");
    assert_eq!(
        lines(&body),
        [
            "IL_0000: ldc.i4.1",
            "IL_0001: ldc.i4.2",
            "IL_0002: pop",
            "IL_0003: stloc 0",
            "IL_0007: leave.s IL_000d",
            "IL_0009: nop",
            "IL_000a: ldc.i4.3",
            "IL_000b: pop",
            "IL_000c: endfinally",
            "IL_000d: ldloc 0",
            "IL_0011: ret",
        ]
    );
    edits.at_exits(constant(Opcode::LdcI4_4));
    both.apply(&edits).expect("the method can be wrapped");
    let both = Body::read(&both.write().expect("written")).expect("read again");
    let clauses: Vec<_> = both.clauses().iter().map(|one| (one.kind(), one.protected(), one.handler())).collect();
    let at = Label::at;
    let fault = (ClauseKind::Fault, (at(0), at(9)), (at(9), at(13)));
    assert_eq!(clauses, [fault, (ClauseKind::Finally, (at(0), at(13)), (at(13), at(17)))]);
}

#[test]
fn code_at_results_has_the_result_where_it_was_put() {
    // 0: ldc.i4.1, 1: ret
    let mut body = tiny(&[0x17, 0x2a]);
    let mut edits = Edits::new();
    edits.at_results(Code::new().address_of_result().plain(Opcode::Pop));
    edits.at_failures(constant(Opcode::LdcI4_3));
    edits.set_result(ResultPlace::Local(5));
    let unwrapped = {
        let mut edits = Edits::new();
        edits.at_results(constant(Opcode::LdcI4_2));
        body.apply(&edits)
    };
    assert_eq!(unwrapped, Err(Error::ResultUnknown), "nothing keeps the result");
    body.apply(&edits).expect("the method can be wrapped");
    let wanted =
        ["IL_0000: ldc.i4.1", "IL_0001: stloc 5", "IL_0005: ldloca 5", "IL_0009: pop", "IL_000a: leave.s IL_0010"];
    assert_eq!(lines(&body)[..5], wanted);

    // 0: ldarg.0, 1: brtrue.s 3, 3: ret: who branches to the return runs the code, too.
    let mut nothing = tiny(&[0x02, 0x2d, 0x00, 0x2a]);
    let mut edits = Edits::new();
    edits.at_results(constant(Opcode::LdcI4_2));
    edits.at_failures(constant(Opcode::LdcI4_3));
    edits.set_result(ResultPlace::None);
    nothing.apply(&edits).expect("the method can be wrapped");
    let wanted = ["IL_0000: ldarg.0", "IL_0001: brtrue.s IL_0003", "IL_0003: nop", "IL_0004: ldc.i4.2", "IL_0005: pop"];
    assert_eq!(lines(&nothing)[..5], wanted);
    edits.at_results(Code::new().address_of_result().plain(Opcode::Pop));
    assert_eq!(tiny(&[0x2a]).apply(&edits), Err(Error::ResultUnknown), "there is none");
}

#[test]
fn each_author_has_its_own_new_local_variables() {
    let author = |opcode: Opcode, ty: u8| {
        let mut edits = Edits::new();
        let local = edits.new_local(&[ty]);
        edits.at_entry(Code::new().plain(opcode).store(local));
        edits.at_returns(Code::new().load(local).plain(Opcode::Pop));
        edits
    };
    let mut edits = author(Opcode::LdcI4_1, 8);
    edits.merge(author(Opcode::LdcI4_2, 9));
    assert_eq!(edits.new_locals(), [[8], [9]]);
    let mut body = tiny(&[0x2a]);
    assert_eq!(body.apply(&edits), Err(Error::LocalsUnknown));
    edits.set_first_local(5);
    body.apply(&edits).expect("they have numbers");
    assert_eq!(
        lines(&body),
        [
            "IL_0000: ldc.i4.1",
            "IL_0001: stloc 5",
            "IL_0005: ldc.i4.2",
            "IL_0006: stloc 6",
            "IL_000a: ldloc 6",
            "IL_000e: pop",
            "IL_000f: ldloc 5",
            "IL_0013: pop",
            "IL_0014: ret",
        ]
    );
}

#[test]
fn edits_of_several_authors_nest() {
    let author = |opcode: Opcode| {
        let mut edits = Edits::new();
        edits.at_entry(constant(opcode));
        edits.around(Label::at(0), constant(opcode), constant(opcode));
        edits.at_returns(constant(opcode));
        edits.at_exits(constant(opcode));
        edits.set_result(ResultPlace::None);
        edits
    };
    let mut edits = author(Opcode::LdcI4_1);
    edits.merge(author(Opcode::LdcI4_2));
    let mut body = tiny(&[0x00, 0x2a]);
    body.apply(&edits).expect("the method can be wrapped");
    let numbers: Vec<Opcode> = body
        .instructions()
        .iter()
        .map(clr_il::Instruction::opcode)
        .filter(|opcode| !matches!(opcode, Opcode::Pop))
        .collect();
    use Opcode::{Endfinally, LdcI4_1 as One, LdcI4_2 as Two, LeaveS, Nop, Ret};
    assert_eq!(numbers, [One, Two, One, Two, Nop, Two, One, Two, One, LeaveS, Nop, Two, One, Endfinally, Ret]);
}

#[test]
fn inserted_code_may_branch_within_itself_and_to_its_end() {
    let mut code = Code::new();
    let end = code.new_mark();
    let code = code.plain(Opcode::Ldarg0).branch(Opcode::BrtrueS, end).plain(Opcode::Break).mark(end);
    let mut edits = Edits::new();
    edits.at_entry(code);
    let mut body = tiny(&[0x2a]);
    body.apply(&edits).expect("an entry");
    assert_eq!(
        lines(&body),
        ["IL_0000: ldarg.0", "IL_0001: brtrue.s IL_0004", "IL_0003: break", "IL_0004: nop", "IL_0005: ret"]
    );
    assert_eq!(body.instructions()[1].operand(), &Operand::Target(body.instructions()[3].label()));
}

#[test]
fn inserted_code_that_may_throw_lies_in_a_block_within_those_of_the_method() {
    // 0: leave.s 4, 2: leave.s 4, 4: ret; try 0 to 2, catch 2 to 4.
    let catch = [0, 0, 0, 0, 2, 2, 0, 2, 1, 0, 0, 1];
    let mut body = fat(&[0xde, 0x02, 0xde, 0x00, 0x2a], &[catch]);
    let mut edits = Edits::new();
    edits
        .before(Label::at(0), Code::new().catching(0x0100_0002, Code::new().plain(Opcode::LdcI4_1).plain(Opcode::Pop)));
    body.apply(&edits).expect("changed");
    let read = Body::read(&body.write().expect("written")).expect("read again");
    // 0: ldc.i4.1, 1: pop, 2: leave.s 7, 4: pop, 5: leave.s 7, 7: nop, 8: leave.s 12, 10: leave.s
    // 12, 12: ret.
    let at = Label::at;
    let clauses: Vec<_> =
        read.clauses().iter().map(|clause| (clause.kind(), clause.protected(), clause.handler())).collect();
    let inner = (ClauseKind::Catch(0x0100_0002), (at(0), at(4)), (at(4), at(7)));
    assert_eq!(clauses, [inner, (ClauseKind::Catch(0x0100_0001), (at(0), at(10)), (at(10), at(12)))]);
    assert_eq!(read.instructions()[2].operand(), &Operand::Target(at(7)));
    assert_eq!(read.deepest_stack(|_| Some((0, 0))), Ok(1));
}

#[test]
fn bytes_that_are_no_body_say_why() {
    let wrong = |code: &[u8]| Body::read(&[&[(code.len() as u8) << 2 | 2], code].concat()).unwrap_err();
    assert_eq!(wrong(&[0x00, 0x24]), Error::UnknownInstruction { offset: 1 });
    assert_eq!(wrong(&[0x20, 0, 0]), Error::CutInstruction { offset: 0 });
    assert_eq!(wrong(&[0xfe]), Error::CutInstruction { offset: 0 });
    assert_eq!(wrong(&[0x45, 0xff, 0xff, 0xff, 0xff]), Error::CutInstruction { offset: 0 });
    assert_eq!(wrong(&[0x2b, 0x01, 0x20, 0, 0, 0, 0]), Error::Target { offset: 0 });
    assert_eq!(wrong(&[0x2b, 0x00]), Error::Target { offset: 0 });
    assert_eq!(wrong(&[0x2b, 0x80]), Error::Target { offset: 0 });
    assert_eq!(Body::read(&[1 << 2 | 2, 0x2a, 0]), Err(Error::BytesBehind));
    let clause = |clause: [u8; 12]| {
        let body = [&[3 | 8, 0x30, 2, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0x2a, 0, 0, 0, 1, 16, 0, 0][..], &clause].concat();
        Body::read(&body).unwrap_err()
    };
    assert_eq!(clause([0, 0, 9, 0, 0, 0, 0, 0, 0, 0, 0, 0]), Error::Clause { index: 0 });
    assert_eq!(clause([3, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0]), Error::Clause { index: 0 });
}

#[test]
fn stack_depths_are_those_before_each_instruction() {
    // 0: ldc.i4.1, 1: dup, 2: brtrue.s 5, 4: nop, 5: pop, 6: ret
    let body = tiny(&[0x17, 0x25, 0x2d, 0x01, 0x00, 0x26, 0x2a]);
    assert_eq!(body.stack_depths(|_| Some((0, 0))), Ok(vec![0, 1, 2, 1, 1, 0]));
    // A call that is not told of can't be followed: 0: call, 5: ret
    let call = tiny(&[0x28, 1, 0, 0, 6, 0x2a]);
    assert!(call.stack_depths(|_| None).is_err());
}
