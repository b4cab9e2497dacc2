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

/// The calling thread's record, or null.
#[inline]
pub fn current_record() -> *mut u8 {
    let record: *mut u8;
    // SAFETY: reads the thread-local word defined above.
    unsafe {
        std::arch::asm!(
            "mov {0}, [rip + clrscope_thread@GOTTPOFF]",
            "mov {0}, fs:[{0}]",
            out(reg) record,
            options(nostack, readonly, preserves_flags)
        );
    }
    record
}

/// Sets the calling thread's record.
#[inline]
pub fn set_current_record(record: *mut u8) {
    // SAFETY: writes the thread-local word defined above.
    unsafe {
        std::arch::asm!(
            "mov {1}, [rip + clrscope_thread@GOTTPOFF]",
            "mov fs:[{1}], {0}",
            in(reg) record,
            out(reg) _,
            options(nostack, preserves_flags)
        );
    }
}
