//! Out of memory: prints three lines and exits with a code, instead of Rust's default abort.

use std::alloc::{GlobalAlloc, Layout, System};
use std::io::{Cursor, Write};
use std::process;
use std::sync::atomic::{AtomicBool, AtomicU8, Ordering};
use std::thread;
use std::time::Duration;

use crate::errors::{EXIT_FAILED, EXIT_RUN_FAILED};

#[global_allocator]
static ALLOCATOR: Allocator = Allocator;

/// Exit code when out of memory.
static CODE: AtomicU8 = AtomicU8::new(EXIT_FAILED);

/// Whether a thread already reports that memory is exhausted: several threads may run out of memory
/// at the same time.
static IS_SAID: AtomicBool = AtomicBool::new(false);

/// Wait of the threads that are not the first to run out of memory; longer than the process takes
/// to end.
const END: Duration = Duration::from_secs(1);

/// Switches to the exit code of `run`: from here on other exit codes are the program's.
pub(crate) fn under_run() {
    CODE.store(EXIT_RUN_FAILED, Ordering::Relaxed);
}

/// The system's allocator, but it ends the process when memory is exhausted.
struct Allocator;

// SAFETY: forwards everything to the system's allocator, and never returns null.
unsafe impl GlobalAlloc for Allocator {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        // SAFETY: as the caller promises.
        there(unsafe { System.alloc(layout) }, layout.size())
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        // SAFETY: as the caller promises.
        there(unsafe { System.alloc_zeroed(layout) }, layout.size())
    }

    unsafe fn dealloc(&self, at: *mut u8, layout: Layout) {
        // SAFETY: as the caller promises.
        unsafe { System.dealloc(at, layout) }
    }

    unsafe fn realloc(&self, at: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        // SAFETY: as the caller promises.
        there(unsafe { System.realloc(at, layout, size) }, size)
    }
}

fn there(memory: *mut u8, bytes: usize) -> *mut u8 {
    if memory.is_null() {
        give_up(bytes);
    }
    memory
}

/// Reports without allocating that memory is exhausted, and ends the process.
#[cold]
fn give_up(bytes: usize) -> ! {
    if IS_SAID.swap(true, Ordering::Relaxed) {
        #[expect(
            clippy::disallowed_methods,
            reason = "the thread that came first says it and ends the process meanwhile"
        )]
        thread::sleep(END);
    } else {
        say(bytes);
    }
    #[expect(
        clippy::disallowed_methods,
        reason = "what asked for the memory can't go on, nor can main be reached from here"
    )]
    process::exit(i32::from(CODE.load(Ordering::Relaxed)))
}

fn say(bytes: usize) {
    let mut text = [0; 512];
    let mut words = Cursor::new(&mut text[..]);
    let _ = write!(
        words,
        "error: there is not enough memory for this\n\
         why: {bytes} bytes more were needed, and the system or a limit (ulimit -v, a container's) refused them\n\
         hint: ask for a part: --limit, --thread, --since and --until, or --view summary; or give clrscope more memory\n"
    );
    let length = usize::try_from(words.position()).unwrap_or(0);
    let _ = std::io::stderr().write_all(&text[..length]);
}
