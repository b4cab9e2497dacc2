//! Other work that competes for the processors.

use std::hint::black_box;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};

/// Threads that are always busy, two for each processor, until this value is dropped.
pub(super) struct Load {
    is_over: Arc<AtomicBool>,
    threads: Vec<JoinHandle<()>>,
}

impl Load {
    pub(super) fn begin() -> Self {
        let is_over = Arc::new(AtomicBool::new(false));
        let processors = thread::available_parallelism().map_or(1, |count| count.get());
        let busy = || {
            let is_over = Arc::clone(&is_over);
            thread::spawn(move || {
                let mut number = 1_u64;
                while !is_over.load(Ordering::Relaxed) {
                    (0..100_000).for_each(|_| number = black_box(number.wrapping_mul(0x9E37_79B9) ^ number >> 7));
                }
            })
        };
        let threads = (0..2 * processors).map(|_| busy()).collect();
        Self { is_over, threads }
    }
}

impl Drop for Load {
    fn drop(&mut self) {
        self.is_over.store(true, Ordering::Relaxed);
        // A thread that panicked is over, too.
        self.threads.drain(..).for_each(|thread| drop(thread.join()));
    }
}
