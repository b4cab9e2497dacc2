//! Threads of a profiler's own end when it goes.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, mpsc};
use std::time::Duration;

use clr_profiler::{Callbacks, Error, Events, OwnThread, ProfilerInfo, Result, Setup};
use clr_profiler_fake::Event::*;
use clr_profiler_fake::{FakeRuntime, on};

const LONG: Duration = Duration::from_secs(60);

/// A profiler with a thread that sleeps, and whether the thread had ended when `shutdown` was
/// called.
struct Sleeps {
    begun: Mutex<mpsc::Receiver<()>>,
    ended: Arc<AtomicBool>,
    ended_before_shutdown: AtomicBool,
    thread: OwnThread,
}

impl Callbacks for Sleeps {
    fn shutdown(&self) {
        self.ended_before_shutdown.store(self.ended.load(Ordering::Acquire), Ordering::Release);
    }
}

fn sleeps(info: &ProfilerInfo) -> Result<Sleeps> {
    let (ended, begun) = (Arc::new(AtomicBool::new(false)), mpsc::channel());
    let own = ended.clone();
    let thread = OwnThread::start(info, "sleeps", move |thread| {
        let _ = begun.0.send(());
        while thread.sleep(LONG) {}
        own.store(true, Ordering::Release);
    })?;
    Ok(Sleeps { begun: Mutex::new(begun.1), ended, ended_before_shutdown: AtomicBool::new(false), thread })
}

#[test]
fn an_own_thread_ends_before_shutdown_is_told() {
    let mut program = FakeRuntime::new().load_with(|info| Ok((sleeps(info)?, Setup::default()))).unwrap();
    program.profiler().begun.lock().unwrap().recv().expect("the thread begins: the runtime is up");
    assert!(program.profiler().thread.is_wanted());
    program.play(&[on(0, Shutdown())]);
    assert!(program.profiler().ended_before_shutdown.load(Ordering::Acquire));
    assert!(!program.profiler().thread.is_wanted() && program.profiler().thread.stop(Duration::ZERO));
}

/// A profiler whose own thread asks which events are in force.
struct Asks {
    early: bool,
    seen: Mutex<mpsc::Receiver<Result<Events>>>,
}

impl Callbacks for Asks {}

struct Quiet;

impl Callbacks for Quiet {}

#[test]
fn an_own_thread_begins_when_what_the_profiler_asks_for_is_in_force() {
    let (events, seen) = mpsc::channel();
    let program = FakeRuntime::new().load_with(move |info| {
        let asked = info.clone();
        OwnThread::start(info, "asks", move |_| drop(events.send(asked.events())))?;
        // Time enough for a thread that does not wait.
        let early = seen.recv_timeout(Duration::from_millis(20)).is_ok();
        Ok((Asks { early, seen: Mutex::new(seen) }, Setup::new(Events::EXCEPTIONS)))
    });
    let asks = program.unwrap().profiler();
    assert!(!asks.early);
    assert_eq!(asks.seen.lock().unwrap().recv().expect("the thread begins"), Ok(Events::EXCEPTIONS));
}

#[test]
fn an_own_thread_of_a_profiler_that_is_refused_is_over_and_has_not_begun() {
    let (sender, thread) = mpsc::channel();
    let (begun, code) = mpsc::channel::<()>();
    let refused = FakeRuntime::new().load_with(move |info| {
        let own = OwnThread::start(info, "refused", move |_| {
            let _ = begun.send(());
        })?;
        sender.send(own).map_err(|error| Error::refused("test", error.to_string()))?;
        Ok((Quiet, Setup::new(Events::OBJECT_ALLOCATED)))
    });
    assert!(refused.is_err());
    let own = thread.recv().expect("it was sent");
    assert!(!own.is_wanted() && own.stop(Duration::ZERO), "the thread was waited for");
    assert!(code.recv().is_err(), "the code did not run");
}
