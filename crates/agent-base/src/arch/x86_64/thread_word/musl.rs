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

/// Functions that read and write a thread-local word.
macro_rules! word {
    ($symbol:literal, $(#[$get_doc:meta])* $get:ident, $(#[$set_doc:meta])* $set:ident) => {
        $(#[$get_doc])*
        #[inline]
        pub fn $get() -> *mut u8 {
            let value: *mut u8;
            // SAFETY: reads a thread-local word defined above; the call keeps all registers but
            // `rax`.
            unsafe {
                std::arch::asm!(
                    concat!("lea rax, [rip + ", $symbol, "@TLSDESC]"),
                    concat!("call qword ptr [rax + ", $symbol, "@TLSCALL]"),
                    "mov rax, fs:[rax]",
                    out("rax") value,
                    options(readonly)
                );
            }
            value
        }

        $(#[$set_doc])*
        #[inline]
        pub fn $set(value: *mut u8) {
            // SAFETY: writes a thread-local word defined above; the call keeps all registers but
            // `rax`.
            unsafe {
                std::arch::asm!(
                    concat!("lea rax, [rip + ", $symbol, "@TLSDESC]"),
                    concat!("call qword ptr [rax + ", $symbol, "@TLSCALL]"),
                    "mov fs:[rax], {0}",
                    in(reg) value,
                    out("rax") _,
                );
            }
        }
    };
}

word! {
    "clrscope_thread",
    /// The calling thread's record, or null.
    current_record,
    /// Sets the calling thread's record.
    set_current_record
}

word! {
    "clrscope_own",
    /// The value that [`set_own_value`] set on the calling thread, or null.
    own_value,
    /// Sets the calling thread's own value.
    set_own_value
}
