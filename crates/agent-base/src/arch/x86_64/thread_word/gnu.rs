//! The thread-local word with the GNU C library, in the initial-exec model. One load gives the
//! word's distance from the thread's memory, and no call could allocate. The library keeps a
//! reserve of such memory for libraries that are loaded later.

/// Assembly that loads the thread's record, or 0, into `r10`. `r11` is free for it; other registers
/// keep their values.
#[macro_export]
macro_rules! load_thread_record {
    () => {
        "mov r10, [rip + clrscope_thread@GOTTPOFF]\nmov r10, fs:[r10]\n"
    };
}

/// Functions that read and write a thread-local word.
macro_rules! word {
    ($symbol:literal, $(#[$get_doc:meta])* $get:ident, $(#[$set_doc:meta])* $set:ident) => {
        $(#[$get_doc])*
        #[inline]
        pub fn $get() -> *mut u8 {
            let value: *mut u8;
            // SAFETY: reads a thread-local word defined above.
            unsafe {
                std::arch::asm!(
                    concat!("mov {0}, [rip + ", $symbol, "@GOTTPOFF]"),
                    "mov {0}, fs:[{0}]",
                    out(reg) value,
                    options(nostack, readonly, preserves_flags)
                );
            }
            value
        }

        $(#[$set_doc])*
        #[inline]
        pub fn $set(value: *mut u8) {
            // SAFETY: writes a thread-local word defined above.
            unsafe {
                std::arch::asm!(
                    concat!("mov {1}, [rip + ", $symbol, "@GOTTPOFF]"),
                    "mov fs:[{1}], {0}",
                    in(reg) value,
                    out(reg) _,
                    options(nostack, preserves_flags)
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
