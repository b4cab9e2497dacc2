//! The thread-local word with musl, through a TLS descriptor. musl refuses libraries with
//! initial-exec words that are loaded while a program runs.
//!
//! The linker and the library give a function that returns the word's distance from the thread's
//! memory. It keeps all registers but `rax` and the flags (the calling convention of TLS
//! descriptors), and musl's function reads three words (`src/ldso/x86_64/tlsdesc.s`): memory for
//! all threads is there when the library has been loaded (`install_new_tls` in `ldso/dynlink.c`,
//! since 1.1.22), so nothing is allocated later.

/// Assembly that loads the thread's record, or 0, into `r10`. `r11` is free for it; other registers
/// keep their values.
#[macro_export]
macro_rules! load_thread_record {
    () => {
        concat!(
            "mov r11, rax\n",
            "lea rax, [rip + clrscope_thread@TLSDESC]\n",
            "call qword ptr [rax + clrscope_thread@TLSCALL]\n",
            "mov r10, fs:[rax]\n",
            "mov rax, r11\n",
        )
    };
}

/// The calling thread's record, or null.
#[inline]
pub fn current_record() -> *mut u8 {
    let record: *mut u8;
    // SAFETY: reads the thread-local word defined above; the call keeps all registers but `rax`.
    unsafe {
        std::arch::asm!(
            "lea rax, [rip + clrscope_thread@TLSDESC]",
            "call qword ptr [rax + clrscope_thread@TLSCALL]",
            "mov rax, fs:[rax]",
            out("rax") record,
            options(readonly)
        );
    }
    record
}

/// Sets the calling thread's record.
#[inline]
pub fn set_current_record(record: *mut u8) {
    // SAFETY: writes the thread-local word defined above; the call keeps all registers but `rax`.
    unsafe {
        std::arch::asm!(
            "lea rax, [rip + clrscope_thread@TLSDESC]",
            "call qword ptr [rax + clrscope_thread@TLSCALL]",
            "mov fs:[rax], {0}",
            in(reg) record,
            out("rax") _,
        );
    }
}
