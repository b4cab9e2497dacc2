//! Memory that is not to be had: three lines and an exit code, where the language's own answer is
//! an abort.

use std::alloc::{GlobalAlloc, Layout, System};
use std::io::{Cursor, Write};
use std::process;
use std::sync::atomic::{AtomicBool, AtomicU8, Ordering};
use std::thread;
use std::time::Duration;

use crate::errors::{EXIT_FAILED, EXIT_RUN_FAILED};

#[global_allocator]
static ALLOCATOR: Allocator = Allocator;

/// Exit code when memory is not to be had.
static CODE: AtomicU8 = AtomicU8::new(EXIT_FAILED);

/// Whether a thread says already that there is no more memory: several that work at one task find
/// it out at the same time.
static IS_SAID: AtomicBool = AtomicBool::new(false);

/// Longer than the process takes to end; the threads that are not the first to find no memory wait
/// so long.
const END: Duration = Duration::from_secs(1);

/// From here on a program is run, and exit codes are its own.
pub(crate) fn under_run() {
    CODE.store(EXIT_RUN_FAILED, Ordering::Relaxed);
}

/// The system's allocator, which ends the process where the system has no more.
struct Allocator;

// SAFETY: hands everything on to the system's allocator, and never returns null.
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

/// Says without asking for memory that there is none, and ends the process.
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
