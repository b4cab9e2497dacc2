//! The fast paths of enter, leave and tail call for x86-64.
//!
//! Convention of the runtime (Linux x64; measured on .NET 8, 9 and 10): at enter `r14` holds our
//! index of the function and `r15` the caller's stack pointer, which hooks must preserve; `rax`,
//! `r10` and `r11` are free. At leave and tail call `rdi` and `rsi` hold the same and are free,
//! like `r8` to `r11`; `rax`, `rdx`, `rcx`, `xmm0` and `xmm1` may hold results.
//!
//! Memory that the fast paths touch: the thread's own words (found through one thread-local word,
//! see [`own`]), the frame on top of the thread's shadow stack (`{caller's stack pointer, address
//! of the edge's child field}`), and the block of edges of the function on top (see
//! [`layout::block`](clrscope_recording::layout::block)). A thread's position moves with the very
//! last store, so other threads see complete frames.
//!
//! No fast path allocates, blocks, makes a system call or touches a vector register. Everything
//! else happens in [`slow`], behind stubs that save all argument registers.

use clrscope_recording::layout::block;
use crate::arch::x86_64::stubs::leave_slow;
use clrscope_agent_base::hooks::own;

use super::super::super::slow;

// The assembly relies on this layout of its operands.
const _: () = assert!(
    // Five slots of four bytes, tried one by one.
    block::EDGES == 5
        // The address of a child field modulo the larger stride gives its place in the block.
        && block::STRIDE_TSC.is_power_of_two()
        && block::STRIDE_TSC == 2 * block::STRIDE_SAMPLED
        // All bits above the marks are the offset of the next block.
        && (block::MARKS + 1).is_power_of_two()
        && (block::MAPPED > block::MARKS && block::MAPPED < 128)
        // An entry's place is shifted by 3.
        && map::ENTRY_BYTES == 1 << 3
        // Distance from a child field to its ticks, by the field's address and its distance from
        // the block: 8 bytes a slot instead of 4.
        && 2 * block::CHILDREN <= block::TICKS
);

/// Constants of the map of edges, for assembly.
pub(crate) mod map {
    use std::mem::offset_of;

    pub(crate) use super::super::super::super::edge_map::{CALLEE_FACTOR, CALLER_FACTOR};
    use super::super::super::super::edge_map::Entry;

    pub(crate) const EDGE: usize = offset_of!(Entry, edge);
    pub(crate) const FINGERPRINT: usize = offset_of!(Entry, fingerprint);
    pub(crate) const ENTRY_BYTES: usize = size_of::<Entry>();
}

/// Wraps `global_asm!`, and passes the offsets that the fast paths of `calls` use: in the thread's
/// record, in a frame, and in a block of edges.
macro_rules! calls_asm {
    ($($assembly:tt)*) => {
        std::arch::global_asm!(
            $($assembly)*
            top = const clrscope_agent_base::hooks::own::TOP,
            base = const clrscope_agent_base::hooks::own::BASE,
            last_ticks = const clrscope_agent_base::hooks::own::LAST_TICKS,
            frame_bytes = const size_of::<clr_profiler::shadow_stack::Frame>(),
            frame_sp = const std::mem::offset_of!(clr_profiler::shadow_stack::Frame, sp),
            frame_word = const std::mem::offset_of!(clr_profiler::shadow_stack::Frame, word),
            keys = const clrscope_recording::layout::block::KEYS,
            children = const clrscope_recording::layout::block::CHILDREN,
            counts = const clrscope_recording::layout::block::COUNTS,
            next = const clrscope_recording::layout::block::NEXT,
            no_marks = const !(clrscope_recording::layout::block::MARKS as i32),
            edge_mask = const clrscope_recording::layout::block::STRIDE_TSC - 1,
            ticks_behind = const clrscope_recording::layout::block::TICKS
                - 2 * clrscope_recording::layout::block::CHILDREN,
            edge_map = const clrscope_agent_base::hooks::own::EDGE_MAP,
            edge_map_shift = const clrscope_agent_base::hooks::own::EDGE_MAP_SHIFT,
            caller_factor = const $crate::instruments::calls::arch::x86_64::hooks::map::CALLER_FACTOR,
            callee_factor = const $crate::instruments::calls::arch::x86_64::hooks::map::CALLEE_FACTOR,
            map_edge = const $crate::instruments::calls::arch::x86_64::hooks::map::EDGE,
            map_fingerprint = const $crate::instruments::calls::arch::x86_64::hooks::map::FINGERPRINT,
            map_entry_bytes = const $crate::instruments::calls::arch::x86_64::hooks::map::ENTRY_BYTES,
            mapped = const clrscope_recording::layout::block::MAPPED,
        );
    };
}

/// Counts the call and pushes the frame. There is code for each of the five slots that an edge can
/// have in its block.
macro_rules! push_edge {
    ($label:literal, $slot:literal) => {
        concat!(
            $label,
            ":\n",
            "add dword ptr [rax + {counts} + ",
            $slot,
            " * 4], 1\n",
            "lea rax, [rax + {children} + ",
            $slot,
            " * 4]\n",
            "jc 8f\n",
            "mov [r11 + {frame_bytes} + {frame_sp}], r15\n",
            "mov [r11 + {frame_bytes} + {frame_word}], rax\n",
            "add r11, {frame_bytes}\n",
            "mov [r10 + {top}], r11\n",
            "ret\n",
        )
    };
}

/// Finds the edge of function `r14` among the calls of the frame in `r11` and pushes its frame.
macro_rules! find_edge {
    () => {
        concat!(
            "mov rax, [r11 + {frame_word}]\n",
            "mov eax, [rax]\n",
            "2:\n",
            "add rax, [r10 + {base}]\n",
            "cmp [rax + {keys}], r14d\n",
            "je 3f\n",
            "cmp [rax + {keys} + 4], r14d\n",
            "je 4f\n",
            "cmp [rax + {keys} + 8], r14d\n",
            "je 5f\n",
            "cmp [rax + {keys} + 12], r14d\n",
            "je 6f\n",
            "cmp [rax + {keys} + 16], r14d\n",
            "je 7f\n",
            // The next block of the same caller; block 0 is empty and has none.
            "mov eax, [rax + {next}]\n",
            "and eax, {no_marks}\n",
            "jz 9f\n",
            "test al, {mapped}\n",
            "jz 2b\n",
            "jmp 12f\n",
            push_edge!("3", "0"),
            push_edge!("4", "1"),
            push_edge!("5", "2"),
            push_edge!("6", "3"),
            push_edge!("7", "4"),
            // Here, where the jumps to it are short: each of the five ways above is four bytes
            // less.
            carry_slow!(),
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
            "mov rax, [r11 + {frame_word}]\n",
            "sub rax, [r10 + {base}]\n",
            "imul edx, eax, {caller_factor}\n",
            "imul eax, r14d, {callee_factor}\n",
            "add edx, eax\n",
            "mov ecx, [r10 + {edge_map_shift}]\n",
            "mov eax, edx\n",
            "shr eax, cl\n",
            "shl rax, 3\n",
            "add rax, [r10 + {edge_map}]\n",
            "13:\n",
            "mov ecx, [rax + {map_edge}]\n",
            "test ecx, ecx\n",
            "jz 15f\n",
            "cmp [rax + {map_fingerprint}], edx\n",
            "je 14f\n",
            "16:\n",
            "add rax, {map_entry_bytes}\n",
            "jmp 13b\n",
            // The edge's function lies 20 bytes before the child field, its count 20 bytes behind.
            "14:\n",
            "add rcx, [r10 + {base}]\n",
            "cmp [rcx + {keys} - {children}], r14d\n",
            "jne 16b\n",
            "add dword ptr [rcx + {counts} - {children}], 1\n",
            "mov rax, rcx\n",
            "pop rcx\n",
            "pop rdx\n",
            "jc 8b\n",
            "mov [r11 + {frame_bytes} + {frame_sp}], r15\n",
            "mov [r11 + {frame_bytes} + {frame_word}], rax\n",
            "add r11, {frame_bytes}\n",
            "mov [r10 + {top}], r11\n",
            "ret\n",
            "15:\n",
            "pop rcx\n",
            "pop rdx\n",
            "jmp 9f\n",
        )
    };
}

/// Slow path of an enter hook if the count has overflowed.
macro_rules! carry_slow {
    () => {
        concat!(
            "8:\n",
            $crate::arch::x86_64::stubs::save_arguments!(),
            "mov rdi, rax\n",
            "mov rsi, r15\n",
            "call {carry}\n",
            $crate::arch::x86_64::stubs::restore_arguments!(),
            "ret\n",
        )
    };
}

/// Slow path of an enter hook in all other cases.
macro_rules! enter_slow {
    () => {
        concat!(
            "9:\n",
            "cmp byte ptr [rip + clrscope_stopped], 0\n",
            "jne 10f\n",
            $crate::arch::x86_64::stubs::save_arguments!(),
            "mov rdi, r14\n",
            "mov rsi, r15\n",
            "call {calls_enter}\n",
            $crate::arch::x86_64::stubs::restore_arguments!(),
            "10:\n",
            "ret\n",
        )
    };
}

/// Loads the thread's record into `r10`, or exits if there is none. May use `r11`.
macro_rules! load_record {
    ($none:literal) => {
        concat!(
            clrscope_agent_base::load_thread_record!(),
            "test r10, r10\n",
            "jz ",
            $none,
            "\n",
        )
    };
}

/// Loads the thread's record and the frame on top of its shadow stack.
macro_rules! load_top {
    ($none:literal) => {
        concat!(load_record!($none), "mov r11, [r10 + {top}]\n",)
    };
}

/// Charges the ticks since the thread's last event to the edge of the frame in `r11`. Uses `rax`,
/// `rdx` and `r11`.
macro_rules! charge_at_enter {
    () => {
        concat!(
            "rdtsc\n",
            "shl rdx, 32\n",
            "or rax, rdx\n",
            "mov rdx, [r10 + {last_ticks}]\n",
            "mov [r10 + {last_ticks}], rax\n",
            "sub rax, rdx\n",
            // The ticks of the edge whose child field is at p lie at p + p % 128 + 24: 64 + 8 *
            // slot within the block where the child field lies at 20 + 4 * slot.
            "mov r11, [r11 + {frame_word}]\n",
            "mov edx, r11d\n",
            "and edx, {edge_mask}\n",
            "add [r11 + rdx + {ticks_behind}], rax\n",
            "mov r11, [r10 + {top}]\n",
        )
    };
}

/// Like `charge_at_enter`, for a leave hook. Uses the free registers `r8`, `r9` and `rsi` to
/// preserve the result.
macro_rules! charge_at_leave {
    () => {
        concat!(
            "mov r8, rax\n",
            "mov r9, rdx\n",
            "rdtsc\n",
            "shl rdx, 32\n",
            "or rax, rdx\n",
            "mov rdx, [r10 + {last_ticks}]\n",
            "mov [r10 + {last_ticks}], rax\n",
            "sub rax, rdx\n",
            "mov rdx, [r11 + {frame_word}]\n",
            "mov esi, edx\n",
            "and esi, {edge_mask}\n",
            "add [rdx + rsi + {ticks_behind}], rax\n",
            "mov rax, r8\n",
            "mov rdx, r9\n",
        )
    };
}

/// Like [`charge_at_enter`], but preserves `rdx`. Does nothing while this thread's clock is
/// switched off.
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

/// Like [`charge_at_leave`], but does nothing while this thread's clock is switched off.
macro_rules! charge_at_leave_unless_off {
    () => {
        concat!("cmp dword ptr [r10 + {clock_off}], 0\n", "jne 11f\n", charge_at_leave!(), "11:\n",)
    };
}

calls_asm!(
    ".text",

    ".p2align 6",
    ".hidden clrscope_enter_sampled",
    ".globl clrscope_enter_sampled",
    "clrscope_enter_sampled:",
    load_top!("9f"),
    // A frame that lies at or below the caller's stack pointer is dead.
    "cmp [r11 + {frame_sp}], r15",
    "jbe 9f",
    find_edge!(),
    enter_slow!(),

    ".p2align 6",
    ".hidden clrscope_leave_sampled",
    ".globl clrscope_leave_sampled",
    "clrscope_leave_sampled:",
    load_top!("9f"),
    "cmp [r11 + {frame_sp}], rsi",
    "jne 9f",
    "sub r11, {frame_bytes}",
    "mov [r10 + {top}], r11",
    "ret",
    leave_slow!("{leave}"),

    // A tail call ends its caller. The dead frame keeps a mark: a path that is created next at this
    // depth then begins with a tail call.
    ".p2align 6",
    ".hidden clrscope_tailcall_sampled",
    ".globl clrscope_tailcall_sampled",
    "clrscope_tailcall_sampled:",
    load_top!("9f"),
    "cmp [r11 + {frame_sp}], rsi",
    "jne 9f",
    "or qword ptr [r11 + {frame_word}], 1",
    "sub r11, {frame_bytes}",
    "mov [r10 + {top}], r11",
    "ret",
    leave_slow!("{tailcall}"),

    ".p2align 6",
    ".hidden clrscope_enter_tsc",
    ".globl clrscope_enter_tsc",
    "clrscope_enter_tsc:",
    load_top!("9f"),
    "cmp [r11 + {frame_sp}], r15",
    "jbe 9f",
    charge_at_enter_unless_off!(),
    find_edge!(),
    enter_slow!(),

    ".p2align 6",
    ".hidden clrscope_leave_tsc",
    ".globl clrscope_leave_tsc",
    "clrscope_leave_tsc:",
    load_top!("9f"),
    "cmp [r11 + {frame_sp}], rsi",
    "jne 9f",
    charge_at_leave_unless_off!(),
    "sub r11, {frame_bytes}",
    "mov [r10 + {top}], r11",
    "ret",
    leave_slow!("{leave}"),

    ".p2align 6",
    ".hidden clrscope_tailcall_tsc",
    ".globl clrscope_tailcall_tsc",
    "clrscope_tailcall_tsc:",
    load_top!("9f"),
    "cmp [r11 + {frame_sp}], rsi",
    "jne 9f",
    charge_at_leave_unless_off!(),
    "or qword ptr [r11 + {frame_word}], 1",
    "sub r11, {frame_bytes}",
    "mov [r10 + {top}], r11",
    "ret",
    leave_slow!("{tailcall}"),

    calls_enter = sym slow::enter,
    carry = sym slow::carry,
    leave = sym slow::leave,
    tailcall = sym slow::tailcall,
    clock_off = const own::CLOCK_OFF,
);

pub(crate) use {
    calls_asm, carry_slow, charge_at_enter, charge_at_leave, enter_slow, find_edge, find_mapped_edge, load_record, load_top,
    push_edge,
};
