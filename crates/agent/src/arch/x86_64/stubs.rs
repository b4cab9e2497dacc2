//! Pieces of assembly code that several hooks share.

/// Saves all registers that may hold arguments when a method is entered. Takes 192 bytes, including
/// the return address.
macro_rules! save_arguments {
    () => {
        concat!(
            "push rcx\npush rdx\npush rsi\npush rdi\npush r8\npush r9\n",
            "sub rsp, 136\n",
            "movdqu [rsp], xmm0\nmovdqu [rsp + 16], xmm1\nmovdqu [rsp + 32], xmm2\nmovdqu [rsp + 48], xmm3\n",
            "movdqu [rsp + 64], xmm4\nmovdqu [rsp + 80], xmm5\nmovdqu [rsp + 96], xmm6\nmovdqu [rsp + 112], xmm7\n",
        )
    };
}

macro_rules! restore_arguments {
    () => {
        concat!(
            "movdqu xmm0, [rsp]\nmovdqu xmm1, [rsp + 16]\nmovdqu xmm2, [rsp + 32]\nmovdqu xmm3, [rsp + 48]\n",
            "movdqu xmm4, [rsp + 64]\nmovdqu xmm5, [rsp + 80]\nmovdqu xmm6, [rsp + 96]\nmovdqu xmm7, [rsp + 112]\n",
            "add rsp, 136\n",
            "pop r9\npop r8\npop rdi\npop rsi\npop rdx\npop rcx\n",
        )
    };
}

/// Slow path of an enter hook: calls a function, unless recording has ended. The fast path jumps to
/// `$label`. `$arguments` loads the function's arguments into registers; `rsp` then points at the
/// saved registers.
macro_rules! enter_slow_after {
    ($label:literal, $arguments:literal, $function:literal) => {
        concat!(
            $label,
            "cmp byte ptr [rip + clrscope_stopped], 0\n",
            "jne 10f\n",
            $crate::arch::x86_64::stubs::save_arguments!(),
            $arguments,
            "call ",
            $function,
            "\n",
            $crate::arch::x86_64::stubs::restore_arguments!(),
            "10:\n",
            "ret\n",
        )
    };
}

/// Slow path of a leave or tail call hook: calls a function that takes the caller's stack pointer,
/// which is in `rsi`.
macro_rules! leave_slow {
    ($function:literal) => {
        $crate::arch::x86_64::stubs::leave_slow_after!("9:\n", "mov rdi, rsi\n", $function)
    };
}

/// Like `leave_slow`, for a function that takes our index of the function, which is in `rdi`, and
/// the stack pointer.
macro_rules! leave_slow_both {
    ($function:literal) => {
        $crate::arch::x86_64::stubs::leave_slow_after!("9:\n", "", $function)
    };
}

/// Like [`enter_slow_after`], for a leave or tail call hook. Only `rax`, `rdx`, `rcx`, `xmm0` and
/// `xmm1` may hold results there.
macro_rules! leave_slow_after {
    ($label:literal, $arguments:literal, $function:literal) => {
        concat!(
            $label,
            "cmp byte ptr [rip + clrscope_stopped], 0\n",
            "jne 10f\n",
            "push rax\npush rdx\npush rcx\n",
            "sub rsp, 32\n",
            "movdqu [rsp], xmm0\nmovdqu [rsp + 16], xmm1\n",
            $arguments,
            "call ",
            $function,
            "\n",
            "movdqu xmm0, [rsp]\nmovdqu xmm1, [rsp + 16]\n",
            "add rsp, 32\n",
            "pop rcx\npop rdx\npop rax\n",
            "10:\n",
            "ret\n",
        )
    };
}

pub(crate) use {enter_slow_after, leave_slow, leave_slow_after, leave_slow_both, restore_arguments, save_arguments};
