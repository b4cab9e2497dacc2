//! Entry points for x86-64.

use std::arch::global_asm;

use crate::arch::x86_64::stubs::{enter_slow_after, leave_slow};

use super::super::hooks::{enter, leave, tailcall};

global_asm!(
    ".text",
    ".p2align 6",
    ".hidden clrscope_enter_kept",
    ".globl clrscope_enter_kept",
    "clrscope_enter_kept:",
    enter_slow_after!("", "mov edi, r14d\nmov rsi, r15\nmov rdx, rsp\n", "{enter}"),

    ".p2align 6",
    ".hidden clrscope_leave_kept",
    ".globl clrscope_leave_kept",
    "clrscope_leave_kept:",
    leave_slow!("{leave}"),

    ".p2align 6",
    ".hidden clrscope_tailcall_kept",
    ".globl clrscope_tailcall_kept",
    "clrscope_tailcall_kept:",
    leave_slow!("{tailcall}"),

    enter = sym enter,
    leave = sym leave,
    tailcall = sym tailcall,
);
