//! The fake runtime's threads. They are real threads, so that per-thread data works as in a
//! program, but they run one after another.

use std::cell::Cell;
use std::collections::BTreeMap;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread::JoinHandle;

type Job = Box<dyn FnOnce() + Send>;

thread_local! {
    static CURRENT: Cell<Option<usize>> = const { Cell::new(None) };
}

/// The number of the fake thread that runs this code.
pub(super) fn current() -> Option<usize> {
    CURRENT.get()
}

/// Makes the calling thread, which the profiler started, this fake thread.
pub(super) fn adopt(number: usize) {
    CURRENT.set(Some(number));
}

/// Runs `job` as fake thread `number`, on this thread.
pub(super) fn as_thread<R>(number: usize, job: impl FnOnce() -> R) -> R {
    let before = CURRENT.replace(Some(number));
    let result = job();
    CURRENT.set(before);
    result
}

struct Worker {
    jobs: Sender<Job>,
    thread: JoinHandle<()>,
}

/// The threads that are alive, by number.
#[derive(Default)]
pub(super) struct Threads(BTreeMap<usize, Worker>);

impl Threads {
    /// Runs `job` on thread `number` and waits for it. Starts the thread if necessary. Thread 0 is
    /// the calling thread.
    pub(super) fn run<R: Send + 'static>(&mut self, number: usize, job: impl FnOnce() -> R + Send + 'static) -> R {
        if number == 0 {
            return as_thread(0, job);
        }
        let worker = self.0.entry(number).or_insert_with(|| Worker::start(number));
        let (done, result) = channel();
        let job = Box::new(move || drop(done.send(job())));
        drop(worker.jobs.send(job));
        result.recv().unwrap_or_else(|_| panic!("fake thread {number} panicked"))
    }

    /// Ends a thread and waits until the thread and its per-thread data are gone.
    pub(super) fn end(&mut self, number: usize) {
        if let Some(worker) = self.0.remove(&number) {
            drop(worker.jobs);
            drop(worker.thread.join());
        }
    }

    pub(super) fn end_all(&mut self) {
        while let Some((number, _)) = self.0.first_key_value() {
            self.end(*number);
        }
    }
}

impl Worker {
    fn start(number: usize) -> Self {
        let (jobs, work): (Sender<Job>, Receiver<Job>) = channel();
        let thread = std::thread::spawn(move || as_thread(number, || work.iter().for_each(|job| job())));
        Self { jobs, thread }
    }
}
