//! Threads of a profiler's own end when it goes.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, mpsc};
use std::time::Duration;

use clr_profiler::fake::Event::*;
use clr_profiler::fake::{FakeRuntime, on};
use clr_profiler::{Callbacks, Error, Events, OwnThread, ProfilerInfo, Result, Setup};

const LONG: Duration = Duration::from_secs(60);

/// Whether the thread had ended when `shutdown` was called.
struct Sleeps {
    ended: Arc<AtomicBool>,
    ended_before_shutdown: AtomicBool,
    thread: OwnThread,
}

impl Callbacks for Sleeps {
    fn shutdown(&self) {
        self.ended_before_shutdown.store(self.ended.load(Ordering::Acquire), Ordering::Release);
    }
}

fn sleeps(info: &ProfilerInfo) -> Result<(Sleeps, Arc<AtomicBool>)> {
    let (ended, begun) = (Arc::new(AtomicBool::new(false)), mpsc::channel());
    let own = ended.clone();
    let thread = OwnThread::start(info, "sleeps", move |thread| {
        let _ = begun.0.send(());
        while thread.sleep(LONG) {}
        own.store(true, Ordering::Release);
    })?;
    begun.1.recv().expect("the thread begins: the runtime is up");
    Ok((Sleeps { ended: ended.clone(), ended_before_shutdown: AtomicBool::new(false), thread }, ended))
}

#[test]
fn an_own_thread_ends_before_shutdown_is_told() {
    let mut program = FakeRuntime::new().load_with(|info| Ok((sleeps(info)?.0, Setup::default()))).unwrap();
    assert!(program.profiler().thread.is_wanted());
    program.play(&[on(0, Shutdown())]);
    assert!(program.profiler().ended_before_shutdown.load(Ordering::Acquire));
    assert!(!program.profiler().thread.is_wanted() && program.profiler().thread.stop(Duration::ZERO));
}

#[test]
fn an_own_thread_ends_with_a_profiler_that_is_refused() {
    let (sender, ended) = mpsc::channel();
    let refused = FakeRuntime::new().load_with(move |info| {
        let (profiler, ended) = sleeps(info)?;
        sender.send(ended).map_err(|error| Error::refused("test", error.to_string()))?;
        Ok((profiler, Setup::new(Events::OBJECT_ALLOCATED)))
    });
    assert!(refused.is_err());
    assert!(ended.recv().expect("it was sent").load(Ordering::Acquire));
}
