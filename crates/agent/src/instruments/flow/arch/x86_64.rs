//! The fast paths of `flow` for x86-64: for `flow` alone, and combined with those of `calls` for
//! either clock.
//!
//! The calling convention of the runtime and the fast paths of `calls` are described in
//! [`calls`](crate::instruments::calls::arch::x86_64::hooks). An event is 16 bytes (see
//! [`layout::flow`](clrscope_recording::layout::flow)): the time stamp counter, the function with
//! the kind of event in the upper two bits, and the lower half of the caller's stack pointer. The
//! event goes to the thread's chunk. It becomes visible to others when the chunk's `USED` includes
//! it, which is the very last store.

use clrscope_recording::layout::{chunk, flow};
use crate::arch::x86_64::stubs::{enter_slow_after, leave_slow_after, leave_slow_both};
use clrscope_agent_base::hooks::own;

use super::super::{slow, values};
use crate::instruments::calls;
use crate::instruments::calls::arch::x86_64::hooks::{
    calls_asm, carry_slow, charge_at_enter, charge_at_leave, enter_slow, find_edge, find_mapped_edge, load_record, load_top,
    push_edge,
};

// The assembly relies on these properties of its operands: the registers of a pair fill an event's
// bytes, and the upper half of a client identifier begins behind all bits of `WHAT`.
const _: () = assert!(flow::BYTES == 16 && flow::SP + 4 == flow::BYTES && flow::KIND == 3 << 30);

/// Puts the address of the next event into `r11`, or jumps to the label 19 if there is no room.
/// Uses `rax`.
macro_rules! place_at_enter {
    () => {
        concat!(
            "mov r11, [r10 + {flow_chunk}]\n",
            "mov eax, [r11 + {used}]\n",
            "cmp eax, [r10 + {flow_room}]\n",
            "jae 19f\n",
            "lea r11, [r11 + rax + {head}]\n",
        )
    };
}

/// Like `place_at_enter`, but uses `r8`.
macro_rules! place_at_leave {
    () => {
        concat!(
            "mov r11, [r10 + {flow_chunk}]\n",
            "mov r8d, [r11 + {used}]\n",
            "cmp r8d, [r10 + {flow_room}]\n",
            "jae 9f\n",
            "lea r11, [r11 + r8 + {head}]\n",
        )
    };
}

/// Publishes the event. To be used after all of its fields were written.
macro_rules! publish {
    () => {
        concat!("mov r11, [r10 + {flow_chunk}]\n", "add dword ptr [r11 + {used}], {event_bytes}\n",)
    };
}

/// Writes the function and the stack pointer of an enter event, and publishes the event.
macro_rules! name_at_enter {
    () => {
        concat!("mov [r11 + {what}], r14d\n", "mov [r11 + {sp}], r15d\n", publish!(),)
    };
}

/// Like `name_at_enter`, for leave and tail call events, which are of different kinds.
macro_rules! name_at_leave {
    ($kind:literal) => {
        concat!("or edi, ", $kind, "\n", "mov [r11 + {what}], edi\n", "mov [r11 + {sp}], esi\n", publish!(),)
    };
}

/// Writes the time of the event, read from the time stamp counter.
macro_rules! time_at_enter {
    () => {
        concat!("push rdx\n", "rdtsc\n", "mov [r11 + {ticks}], eax\n", "mov [r11 + {ticks} + 4], edx\n", "pop rdx\n",)
    };
}

macro_rules! time_at_leave {
    () => {
        concat!(
            "mov r8, rax\n",
            "mov r9, rdx\n",
            "rdtsc\n",
            "mov [r11 + {ticks}], eax\n",
            "mov [r11 + {ticks} + 4], edx\n",
            "mov rax, r8\n",
            "mov rdx, r9\n",
        )
    };
}

/// Slow path of enter.
macro_rules! enter_slow_both {
    ($function:literal) => {
        enter_slow_after!("19:\n", "mov rdi, r14\nmov rsi, r15\n", $function)
    };
}

/// Begins an enter hook. Functions whose arguments are recorded have the sign bit set, and branch
/// to another path at once.
macro_rules! part_at_enter {
    () => {
        "test r14d, r14d\njs 18f\n"
    };
}

macro_rules! part_at_leave {
    () => {
        "test edi, edi\njs 18f\n"
    };
}

/// Stores a pair of registers if the bit for it is set in the client identifier.
macro_rules! store_pair {
    ($bit:literal, $else:literal, $store:literal) => {
        concat!("bt r14, ", $bit, "\n", "jnc ", $else, "\n", $store, "add r11, 16\n",)
    };
}

/// Path for functions whose arguments are all numbers in registers. Writes the event, followed by
/// the pairs of registers that the upper half of the client identifier selects. Otherwise jumps
/// to 17.
macro_rules! enter_registers {
    () => {
        concat!(
            "18:\n",
            "mov rax, r14\n",
            "shr rax, 32\n",
            "jz 17f\n",
            load_record!("17f"),
            "mov r11, [r10 + {flow_chunk}]\n",
            "mov eax, [r11 + {used}]\n",
            // The event and at most seven pairs, minus the bytes that finding the place has
            // checked.
            "add eax, 128\n",
            "cmp eax, [r10 + {flow_room}]\n",
            "jae 17f\n",
            "lea r11, [r11 + rax + {head} - 128]\n",
            time_at_enter!(),
            "mov eax, r14d\n",
            "and eax, {no_kind}\n",
            "mov [r11 + {what}], eax\n",
            "mov [r11 + {sp}], r15d\n",
            "add r11, {event_bytes}\n",
            store_pair!("32", "21f", "mov [r11], rdi\nmov [r11 + 8], rsi\n"),
            store_pair!("33", "21f", "mov [r11], rdx\nmov [r11 + 8], rcx\n"),
            store_pair!("34", "21f", "mov [r11], r8\nmov [r11 + 8], r9\n"),
            "21:\n",
            store_pair!("35", "22f", "movlps [r11], xmm0\nmovlps [r11 + 8], xmm1\n"),
            store_pair!("36", "22f", "movlps [r11], xmm2\nmovlps [r11 + 8], xmm3\n"),
            store_pair!("37", "22f", "movlps [r11], xmm4\nmovlps [r11 + 8], xmm5\n"),
            store_pair!("38", "22f", "movlps [r11], xmm6\nmovlps [r11 + 8], xmm7\n"),
            "22:\n",
            "mov rax, [r10 + {flow_chunk}]\n",
            "sub r11, rax\n",
            "sub r11d, {head}\n",
            "mov r10d, r11d\n",
            "sub r10d, [rax + {used}]\n",
            "sub r10d, {event_bytes}\n",
            "add [rax + {non_call_bytes}], r10d\n",
            "mov [rax + {used}], r11d\n",
            "ret\n",
        )
    };
}

/// Like `enter_registers`, for a leave hook: writes the event, `rax`, and the lower half of `xmm0`.
macro_rules! leave_registers {
    () => {
        concat!(
            "18:\n",
            "mov r8, rdi\n",
            "shr r8, 32\n",
            "jz 17f\n",
            load_record!("17f"),
            "mov r11, [r10 + {flow_chunk}]\n",
            "mov r8d, [r11 + {used}]\n",
            "add r8d, 2 * {event_bytes}\n",
            "cmp r8d, [r10 + {flow_room}]\n",
            "ja 17f\n",
            "lea r11, [r11 + r8 + {head} - 2 * {event_bytes}]\n",
            time_at_leave!(),
            "and edi, {function}\n",
            "or edi, {leave_with_registers}\n",
            "mov [r11 + {what}], edi\n",
            "mov [r11 + {sp}], esi\n",
            "mov [r11 + {event_bytes}], rax\n",
            "movlps [r11 + {event_bytes} + 8], xmm0\n",
            "mov r11, [r10 + {flow_chunk}]\n",
            "add dword ptr [r11 + {non_call_bytes}], {event_bytes}\n",
            "add dword ptr [r11 + {used}], 2 * {event_bytes}\n",
            "ret\n",
        )
    };
}

/// Path for all other functions with arguments: saves all registers, and passes their address.
macro_rules! enter_values {
    ($label:literal) => {
        enter_slow_after!($label, "mov edi, r14d\nmov rsi, r15\nmov rdx, rsp\n", "{values_enter}")
    };
}

macro_rules! leave_values {
    ($label:literal, $function:literal) => {
        leave_slow_after!($label, "mov rdx, rsp\n", $function)
    };
}

/// Leave or tail call hook of `flow` alone.
macro_rules! leave_alone {
    ($kind:literal, $slow:literal, $registers:expr, $label:literal, $values:literal) => {
        concat!(
            part_at_leave!(),
            load_record!("9f"),
            place_at_leave!(),
            time_at_leave!(),
            name_at_leave!($kind),
            "ret\n",
            leave_slow_both!($slow),
            $registers,
            leave_values!($label, $values),
        )
    };
}

/// Leave or tail call hook with `calls:clock=sampled`. Does `$mark` to the frame before popping it.
macro_rules! leave_sampled {
    ($kind:literal, $mark:literal, $slow:literal, $values:literal) => {
        concat!(
            part_at_leave!(),
            load_top!("9f"),
            "cmp [r11 + {frame_sp}], rsi\n",
            "jne 9f\n",
            place_at_leave!(),
            time_at_leave!(),
            name_at_leave!($kind),
            "mov r11, [r10 + {top}]\n",
            $mark,
            "sub r11, {frame_bytes}\n",
            "mov [r10 + {top}], r11\n",
            "ret\n",
            leave_slow_both!($slow),
            leave_values!("18:\n", $values),
        )
    };
}

/// Leave or tail call hook with `calls:clock=tsc`. Reads the clock once for both instruments, and
/// keeps the time in the thread's record.
macro_rules! leave_tsc {
    ($kind:literal, $mark:literal, $slow:literal, $values:literal) => {
        concat!(
            part_at_leave!(),
            load_top!("9f"),
            "cmp [r11 + {frame_sp}], rsi\n",
            "jne 9f\n",
            place_at_leave!(),
            "mov [r11 + {sp}], esi\n",
            "mov r11, [r10 + {top}]\n",
            charge_at_leave!(),
            "mov r11, [r10 + {flow_chunk}]\n",
            "mov r8d, [r11 + {used}]\n",
            "lea r11, [r11 + r8 + {head}]\n",
            "mov r8, [r10 + {last_ticks}]\n",
            "mov [r11 + {ticks}], r8\n",
            "or edi, ",
            $kind,
            "\n",
            "mov [r11 + {what}], edi\n",
            publish!(),
            "mov r11, [r10 + {top}]\n",
            $mark,
            "sub r11, {frame_bytes}\n",
            "mov [r10 + {top}], r11\n",
            "ret\n",
            leave_slow_both!($slow),
            leave_values!("18:\n", $values),
        )
    };
}

calls_asm!(
    ".text",
    ".p2align 6",
    ".hidden clrscope_enter_flow",
    ".globl clrscope_enter_flow",
    "clrscope_enter_flow:",
    part_at_enter!(),
    load_record!("19f"),
    place_at_enter!(),
    time_at_enter!(),
    name_at_enter!(),
    "ret",
    enter_slow_both!("{enter}"),
    enter_registers!(),
    enter_values!("17:\n"),

    ".p2align 6",
    ".hidden clrscope_leave_flow",
    ".globl clrscope_leave_flow",
    "clrscope_leave_flow:",
    leave_alone!("{is_leave}", "{leave}", leave_registers!(), "17:\n", "{values_leave}"),

    ".p2align 6",
    ".hidden clrscope_tailcall_flow",
    ".globl clrscope_tailcall_flow",
    "clrscope_tailcall_flow:",
    leave_alone!("{is_tailcall}", "{tailcall}", "", "18:\n", "{values_tailcall}"),

    ".p2align 6",
    ".hidden clrscope_enter_flow_sampled",
    ".globl clrscope_enter_flow_sampled",
    "clrscope_enter_flow_sampled:",
    part_at_enter!(),
    load_top!("19f"),
    "cmp [r11 + {frame_sp}], r15",
    "jbe 19f",
    place_at_enter!(),
    time_at_enter!(),
    name_at_enter!(),
    "mov r11, [r10 + {top}]",
    find_edge!(),
    enter_slow!(),
    enter_slow_both!("{enter_both}"),
    enter_values!("18:\n"),

    ".p2align 6",
    ".hidden clrscope_leave_flow_sampled",
    ".globl clrscope_leave_flow_sampled",
    "clrscope_leave_flow_sampled:",
    leave_sampled!("{is_leave}", "", "{leave_both}", "{values_leave}"),

    ".p2align 6",
    ".hidden clrscope_tailcall_flow_sampled",
    ".globl clrscope_tailcall_flow_sampled",
    "clrscope_tailcall_flow_sampled:",
    leave_sampled!("{is_tailcall}", "or qword ptr [r11 + {frame_word}], 1\n", "{tailcall_both}", "{values_tailcall}"),

    ".p2align 6",
    ".hidden clrscope_enter_flow_tsc",
    ".globl clrscope_enter_flow_tsc",
    "clrscope_enter_flow_tsc:",
    part_at_enter!(),
    load_top!("19f"),
    "cmp [r11 + {frame_sp}], r15",
    "jbe 19f",
    place_at_enter!(),
    "mov r11, [r10 + {top}]",
    "push rdx",
    charge_at_enter!(),
    // The place is still free: only this thread fills its chunk.
    "mov r11, [r10 + {flow_chunk}]",
    "mov eax, [r11 + {used}]",
    "lea r11, [r11 + rax + {head}]",
    "mov rdx, [r10 + {last_ticks}]",
    "mov [r11 + {ticks}], rdx",
    "pop rdx",
    name_at_enter!(),
    "mov r11, [r10 + {top}]",
    find_edge!(),
    enter_slow!(),
    enter_slow_both!("{enter_both}"),
    enter_values!("18:\n"),

    ".p2align 6",
    ".hidden clrscope_leave_flow_tsc",
    ".globl clrscope_leave_flow_tsc",
    "clrscope_leave_flow_tsc:",
    leave_tsc!("{is_leave}", "", "{leave_both}", "{values_leave}"),

    ".p2align 6",
    ".hidden clrscope_tailcall_flow_tsc",
    ".globl clrscope_tailcall_flow_tsc",
    "clrscope_tailcall_flow_tsc:",
    leave_tsc!("{is_tailcall}", "or qword ptr [r11 + {frame_word}], 1\n", "{tailcall_both}", "{values_tailcall}"),

    enter = sym slow::enter,
    leave = sym slow::leave,
    tailcall = sym slow::tailcall,
    enter_both = sym slow::enter_both,
    leave_both = sym slow::leave_both,
    tailcall_both = sym slow::tailcall_both,
    values_enter = sym values::enter,
    values_leave = sym values::leave,
    values_tailcall = sym values::tailcall,
    calls_enter = sym calls::slow::enter,
    carry = sym calls::slow::carry,
    flow_chunk = const own::FLOW_CHUNK,
    flow_room = const own::FLOW_ROOM,
    used = const chunk::USED,
    head = const chunk::HEAD,
    non_call_bytes = const chunk::NON_CALL_BYTES,
    event_bytes = const flow::BYTES,
    ticks = const flow::TICKS,
    what = const flow::WHAT,
    sp = const flow::SP,
    function = const flow::FUNCTION,
    no_kind = const !flow::KIND,
    is_leave = const flow::LEAVE,
    is_tailcall = const flow::TAILCALL,
    leave_with_registers = const flow::LEAVE | 1 << flow::REGISTERS,
);
