//! The fast paths of enter, leave and tail call for x86-64.
//!
//! Convention of the runtime (Linux x64; measured on .NET 8, 9 and 10): at enter `r14` holds our
//! index of the function and `r15` the caller's stack pointer, both to be kept; `rax`, `r10` and `r11`
//! are free. At leave and tail call `rdi` and `rsi` hold the same and are free, like `r8` to `r11`;
//! `rax`, `rdx`, `rcx`, `xmm0` and `xmm1` may hold results.
//!
//! Memory that the fast paths touch: the thread's own words (found through one thread-local word, see
//! [`own`]), the frame on top of the thread's shadow
//! stack (`{caller's stack pointer, address of the edge's child field}`), and the block of edges of
//! the function on top (see [`layout::block`](clrscope_recording::layout::block)). A thread's
//! position moves with the very last store, so other threads see whole frames.
//!
//! No fast path allocates, blocks, makes a system call or touches a vector register. Everything else
//! happens in [`slow`], behind stubs that save all argument registers.

use std::arch::global_asm;
use std::mem::offset_of;

use clrscope_recording::layout::block;

use super::super::super::edge_map::{CALLEE_FACTOR, CALLER_FACTOR, Entry};
use super::super::super::{frames::Frame, slow};
use crate::arch::x86_64::stubs::{leave_slow, restore_arguments, save_arguments};
use crate::hooks::own;

// The numbers that the assembly is written with: of the thread's record, of a frame, of a block of edges.
const _: () = assert!(
    own::TOP == 0
        && own::BASE == 8
        && own::LAST_TICKS == 16
        && size_of::<Frame>() == 16
        && offset_of!(Frame, sp) == 0
        && offset_of!(Frame, word) == 8
        && block::EDGES == 5
        && block::KEYS == 0
        && block::CHILDREN == 20
        && block::COUNTS == 40
        && block::NEXT == 60
        && block::MARKS == 31
        && block::MAPPED == 32
        && size_of::<Entry>() == 8
        && offset_of!(Entry, edge) == 0
        && offset_of!(Entry, fingerprint) == 4
        && block::STRIDE_SAMPLED == 64
        && block::STRIDE_TSC == 128
        // The ticks of the edge whose child field is at p lie at p + p % 128 + 24.
        && 2 * block::CHILDREN + 24 == block::TICKS
);

/// The five ways an edge can lie in its block: the count goes up, the frame is pushed.
macro_rules! push_edge {
    ($label:literal, $slot:literal) => {
        concat!(
            $label,
            ":\n",
            "add dword ptr [rax + 40 + ",
            $slot,
            " * 4], 1\n",
            "lea rax, [rax + 20 + ",
            $slot,
            " * 4]\n",
            "jc 8f\n",
            "mov [r11 + 16], r15\n",
            "mov [r11 + 24], rax\n",
            "add r11, 16\n",
            "mov [r10], r11\n",
            "ret\n",
        )
    };
}

/// Finds the edge of function `r14` among the calls of the frame in `r11` and pushes its frame.
macro_rules! find_edge {
    () => {
        concat!(
            "mov rax, [r11 + 8]\n",
            "mov eax, [rax]\n",
            "2:\n",
            "add rax, [r10 + 8]\n",
            "cmp [rax], r14d\n",
            "je 3f\n",
            "cmp [rax + 4], r14d\n",
            "je 4f\n",
            "cmp [rax + 8], r14d\n",
            "je 5f\n",
            "cmp [rax + 12], r14d\n",
            "je 6f\n",
            "cmp [rax + 16], r14d\n",
            "je 7f\n",
            // The next block of the same caller; block 0 is empty and has none.
            "mov eax, [rax + 60]\n",
            "and eax, -32\n",
            "jz 9f\n",
            "test al, 32\n",
            "jz 2b\n",
            "jmp 12f\n",
            push_edge!("3", "0"),
            push_edge!("4", "1"),
            push_edge!("5", "2"),
            push_edge!("6", "3"),
            push_edge!("7", "4"),
            find_mapped_edge!(),
        )
    };
}

/// Finds the edge in the thread's map, counts the call and pushes the frame.
macro_rules! find_mapped_edge {
    () => {
        concat!(
            "12:\n",
            "push rdx\n",
            "push rcx\n",
            "mov rax, [r11 + 8]\n",
            "sub rax, [r10 + 8]\n",
            "imul edx, eax, {caller_factor}\n",
            "imul eax, r14d, {callee_factor}\n",
            "add edx, eax\n",
            "mov ecx, [r10 + {edge_map_shift}]\n",
            "mov eax, edx\n",
            "shr eax, cl\n",
            "shl rax, 3\n",
            "add rax, [r10 + {edge_map}]\n",
            "13:\n",
            "mov ecx, [rax]\n",
            "test ecx, ecx\n",
            "jz 15f\n",
            "cmp [rax + 4], edx\n",
            "je 14f\n",
            "16:\n",
            "add rax, 8\n",
            "jmp 13b\n",
            // Its function lies 20 bytes before the child field, its count 20 bytes behind.
            "14:\n",
            "add rcx, [r10 + 8]\n",
            "cmp [rcx - 20], r14d\n",
            "jne 16b\n",
            "add dword ptr [rcx + 20], 1\n",
            "mov rax, rcx\n",
            "pop rcx\n",
            "pop rdx\n",
            "jc 8f\n",
            "mov [r11 + 16], r15\n",
            "mov [r11 + 24], rax\n",
            "add r11, 16\n",
            "mov [r10], r11\n",
            "ret\n",
            "15:\n",
            "pop rcx\n",
            "pop rdx\n",
            "jmp 9f\n",
        )
    };
}

/// The way out of an enter hook: an overflown count.
macro_rules! carry_slow {
    () => {
        concat!(
            "8:\n",
            save_arguments!(),
            "mov rdi, rax\n",
            "mov rsi, r15\n",
            "call {carry}\n",
            restore_arguments!(),
            "ret\n",
        )
    };
}

/// The way out of an enter hook: everything else.
macro_rules! enter_slow {
    () => {
        concat!(
            "9:\n",
            "cmp byte ptr [rip + clrscope_stopped], 0\n",
            "jne 10f\n",
            save_arguments!(),
            "mov rdi, r14\n",
            "mov rsi, r15\n",
            "call {calls_enter}\n",
            restore_arguments!(),
            "10:\n",
            "ret\n",
        )
    };
}

/// Loads the thread's record, or leaves where there is none.
macro_rules! load_record {
    ($none:literal) => {
        concat!(
            "mov r10, [rip + clrscope_thread@GOTTPOFF]\n",
            "mov r10, fs:[r10]\n",
            "test r10, r10\n",
            "jz ",
            $none,
            "\n",
        )
    };
}

/// Loads the thread's record and its frame on top.
macro_rules! load_top {
    ($none:literal) => {
        concat!(load_record!($none), "mov r11, [r10]\n",)
    };
}

/// Charges the ticks since the thread's last event to the edge of the frame in `r11`. Uses `rax`, `rdx` and `r11`.
macro_rules! charge_at_enter {
    () => {
        concat!(
            "rdtsc\n",
            "shl rdx, 32\n",
            "or rax, rdx\n",
            "mov rdx, [r10 + 16]\n",
            "mov [r10 + 16], rax\n",
            "sub rax, rdx\n",
            // The ticks of the edge whose child field is at p lie at p + p % 128 + 24: 64 + 8 * slot
            // within the block where the child field lies at 20 + 4 * slot.
            "mov r11, [r11 + 8]\n",
            "mov edx, r11d\n",
            "and edx, 127\n",
            "add [r11 + rdx + 24], rax\n",
            "mov r11, [r10]\n",
        )
    };
}

/// Counterpart at leave, where `r8`, `r9` and `rsi` are free to keep the result.
macro_rules! charge_at_leave {
    () => {
        concat!(
            "mov r8, rax\n",
            "mov r9, rdx\n",
            "rdtsc\n",
            "shl rdx, 32\n",
            "or rax, rdx\n",
            "mov rdx, [r10 + 16]\n",
            "mov [r10 + 16], rax\n",
            "sub rax, rdx\n",
            "mov rdx, [r11 + 8]\n",
            "mov esi, edx\n",
            "and esi, 127\n",
            "add [rdx + rsi + 24], rax\n",
            "mov rax, r8\n",
            "mov rdx, r9\n",
        )
    };
}

/// [`charge_at_enter`] with `rdx` kept, unless this thread is to do without its clock for a moment.
macro_rules! charge_at_enter_unless_off {
    () => {
        concat!(
            "cmp dword ptr [r10 + {clock_off}], 0\n",
            "jne 11f\n",
            "push rdx\n",
            charge_at_enter!(),
            "pop rdx\n",
            "11:\n",
        )
    };
}

/// Counterpart for [`charge_at_leave`].
macro_rules! charge_at_leave_unless_off {
    () => {
        concat!("cmp dword ptr [r10 + {clock_off}], 0\n", "jne 11f\n", charge_at_leave!(), "11:\n",)
    };
}

global_asm!(
    ".text",

    ".p2align 6",
    ".hidden clrscope_enter_sampled",
    ".globl clrscope_enter_sampled",
    "clrscope_enter_sampled:",
    load_top!("9f"),
    // A frame that lies at or below the caller's stack pointer is dead.
    "cmp [r11], r15",
    "jbe 9f",
    find_edge!(),
    carry_slow!(),
    enter_slow!(),

    ".p2align 6",
    ".hidden clrscope_leave_sampled",
    ".globl clrscope_leave_sampled",
    "clrscope_leave_sampled:",
    load_top!("9f"),
    "cmp [r11], rsi",
    "jne 9f",
    "sub r11, 16",
    "mov [r10], r11",
    "ret",
    leave_slow!("{leave}"),

    // A tail call ends its caller. The dead frame keeps a mark, by which a path that is made next
    // at this depth is known to begin with a tail call.
    ".p2align 6",
    ".hidden clrscope_tailcall_sampled",
    ".globl clrscope_tailcall_sampled",
    "clrscope_tailcall_sampled:",
    load_top!("9f"),
    "cmp [r11], rsi",
    "jne 9f",
    "or qword ptr [r11 + 8], 1",
    "sub r11, 16",
    "mov [r10], r11",
    "ret",
    leave_slow!("{tailcall}"),

    ".p2align 6",
    ".hidden clrscope_enter_tsc",
    ".globl clrscope_enter_tsc",
    "clrscope_enter_tsc:",
    load_top!("9f"),
    "cmp [r11], r15",
    "jbe 9f",
    charge_at_enter_unless_off!(),
    find_edge!(),
    carry_slow!(),
    enter_slow!(),

    ".p2align 6",
    ".hidden clrscope_leave_tsc",
    ".globl clrscope_leave_tsc",
    "clrscope_leave_tsc:",
    load_top!("9f"),
    "cmp [r11], rsi",
    "jne 9f",
    charge_at_leave_unless_off!(),
    "sub r11, 16",
    "mov [r10], r11",
    "ret",
    leave_slow!("{leave}"),

    ".p2align 6",
    ".hidden clrscope_tailcall_tsc",
    ".globl clrscope_tailcall_tsc",
    "clrscope_tailcall_tsc:",
    load_top!("9f"),
    "cmp [r11], rsi",
    "jne 9f",
    charge_at_leave_unless_off!(),
    "or qword ptr [r11 + 8], 1",
    "sub r11, 16",
    "mov [r10], r11",
    "ret",
    leave_slow!("{tailcall}"),

    calls_enter = sym slow::enter,
    carry = sym slow::carry,
    leave = sym slow::leave,
    tailcall = sym slow::tailcall,
    clock_off = const own::CLOCK_OFF,
    edge_map = const own::EDGE_MAP,
    edge_map_shift = const own::EDGE_MAP_SHIFT,
    caller_factor = const CALLER_FACTOR,
    callee_factor = const CALLEE_FACTOR,
);

pub(crate) use {
    carry_slow, charge_at_enter, charge_at_leave, enter_slow, find_edge, find_mapped_edge, load_record, load_top,
    push_edge,
};
