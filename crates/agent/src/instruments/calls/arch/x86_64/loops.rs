//! The loops in which [`calibrate`](super::super::super::calibrate) measures hooks.

use std::arch::global_asm;

macro_rules! calibration_loop {
    ($name:literal, $before:literal, $enter:literal, $leave:literal) => {
        concat!(
            ".p2align 6\n.globl ",
            $name,
            "\n.hidden ",
            $name,
            "\n",
            $name,
            ":\n",
            "push rbx\npush rbp\npush r12\npush r13\npush r14\npush r15\npush r9\n",
            "mov rbx, rdi\nmov r12, rsi\nmov r13, rdx\nmov rdx, r8\n",
            "2:\n",
            $before,
            "call 3f\n",
            "dec rbx\n",
            "jnz 2b\n",
            "pop r9\npop r15\npop r14\npop r13\npop r12\npop rbp\npop rbx\n",
            "ret\n",
            ".p2align 4\n",
            "3:\n",
            $enter,
            "mov rax, rdx\n",
            $leave,
            "ret\n",
        )
    };
}

// (pairs: rdi, enter: rsi, leave: rdx, first edge: rcx, bytes to the next edge: r8, lowest frame:
// r9)
global_asm!(
    calibration_loop!(
        "clrscope_walk_hooked",
        "mov rax, [rsp]\nmov [rax + 8], rcx\nadd rcx, rdx\n",
        "push rbp\npush r15\npush r14\nlea rbp, [rsp + 16]\nmov r14d, 32\nlea r15, [rbp + 16]\ncall r12\n",
        "mov rdi, r14\nlea rsi, [rbp + 16]\ncall r13\npop r14\npop r15\npop rbp\n"
    ),
    calibration_loop!("clrscope_walk_plain", "mov rax, [rsp]\nmov [rax + 8], rcx\nadd rcx, rdx\n", "", ""),
    calibration_loop!(
        "clrscope_work_hooked",
        ".rept 24\nimul rcx, rcx, 3\n.endr\n",
        "push rbp\npush r15\npush r14\nlea rbp, [rsp + 16]\nmov r14d, 32\nlea r15, [rbp + 16]\ncall r12\n",
        "mov rdi, r14\nlea rsi, [rbp + 16]\ncall r13\npop r14\npop r15\npop rbp\n"
    ),
    calibration_loop!("clrscope_work_plain", ".rept 24\nimul rcx, rcx, 3\n.endr\n", "", ""),
);
