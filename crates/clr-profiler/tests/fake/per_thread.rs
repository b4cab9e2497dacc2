//! Data and log lines per thread.

use std::sync::{Arc, Mutex};

use clr_profiler::callback_args::GcReason;
use clr_profiler::{Callbacks, Events, NestedLog, PerThread, Setup, ThreadId};
use clr_profiler_fake::Event::*;
use clr_profiler_fake::{FakeRuntime, on};

/// Keeps a count per thread, and a log of threads.
struct PerThreadCounts {
    counts: PerThread<Mutex<u32>>,
    log: NestedLog,
}

impl Callbacks for PerThreadCounts {
    fn thread_assigned_to_os_thread(&self, _thread: ThreadId, os_thread: u32) {
        self.counts.with(|count| *count.lock().unwrap() += 1);
        self.log.line(format_args!("assigned to {os_thread}"));
    }
    fn garbage_collection_started(&self, generations: clr_profiler::callback_args::Generations<'_>, _reason: GcReason) {
        self.log.begin("gc", format_args!("gc {:?}", generations.oldest()));
    }
    fn garbage_collection_finished(&self) {
        self.log.end("gc", "gc over");
    }
}

#[test]
fn data_per_thread_belongs_to_the_thread_that_runs_and_goes_with_it() {
    let folder = clrscope_testkit::scratch();
    let path = folder.path().join("log");
    let ended = Arc::new(Mutex::new(Vec::new()));
    let sum = ended.clone();
    let counts = PerThread::new(Mutex::<u32>::default, move |count| sum.lock().unwrap().push(*count.lock().unwrap()));
    let profiler = PerThreadCounts { counts: counts.unwrap(), log: NestedLog::create(&path).unwrap() };
    let runtime = FakeRuntime::new();
    let (one, two) = (runtime.thread(1), runtime.thread(2));
    let mut program = runtime.load_with(|_| Ok((profiler, Setup::new(Events::THREADS | Events::BASIC_GC)))).unwrap();
    program.play(&[
        on(1, ThreadAssignedToOSThread(one, 71)),
        on(1, GarbageCollectionStarted(vec![0, 1], GcReason::Induced)),
        on(2, ThreadAssignedToOSThread(two, 72)),
        on(1, ThreadAssignedToOSThread(one, 73)),
        on(1, GarbageCollectionFinished()),
        on(1, ThreadEnds),
    ]);
    assert_eq!(*ended.lock().unwrap(), [2]);
    drop(program);
    assert_eq!(*ended.lock().unwrap(), [2, 1]);
    let log = "1\tassigned to 71\n1\tgc Some(1)\n2\tassigned to 72\n1\t  assigned to 73\n1\tgc over\n";
    assert_eq!(std::fs::read_to_string(path).unwrap(), log);
}
