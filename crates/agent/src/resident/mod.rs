//! The agent as it stays in a process: what runs of it, and its sleep where the runtime does not let it go.
//!
//! The runtime never lets a profiler go that might have given methods other code. An attached agent of that kind sleeps when its recording
//! is over, and the next attach wakes it:
//!
//! 1. Methods have their own code again ([`Task::undo`]), no event is asked for, and the runtime has refused the detach: the helper
//!    thread calls [`Resident::fall_asleep`], and ends.
//! 2. A thread of the agent's listens at a socket ([`door`]), and takes away what a detach would have taken away, once no callback is
//!    under way. What stays is that thread, which waits, its socket, and the memory to which late calls of probed methods store.
//! 3. A launcher brings a request. The agent begins as at an attach, on a thread that the runtime knows; the socket goes, and the thread ends.
//!
//! [`Task::undo`]: crate::services::helper::Task::undo

mod door;

use std::path::PathBuf;
use std::sync::mpsc::channel;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use clr_profiler::callbacks::Replaceable;
use clr_profiler::{Callbacks, Error, HResult, OwnThread, ProfilerInfo};
use clrscope_contract::waking::Answer;
use clrscope_recording::writer::monotonic_ns;

use crate::boundary::guard;
use crate::os::signals;
use crate::process::fork;
use crate::services::context::Beginning;
use crate::services::developer_log::{Level, log};
use crate::services::inlined::DebugEvents;
use crate::setup::setup;
use crate::startup::{self, Running};

use door::Door;

/// Longest wait for callbacks and threads that are under way when the agent falls asleep.
const LONGEST: Duration = Duration::from_secs(60);
/// Bytes of the stack of the thread that waits for a launcher.
const STACK: usize = 256 << 10;

/// The agent in a process, from its first recording on. Never freed.
pub(crate) struct Resident {
    info: ProfilerInfo,
    /// The recording; none while the agent sleeps.
    pub(crate) running: Replaceable<Running>,
    is_asleep: Mutex<bool>,
    end: End,
}

clr_profiler::compose_callbacks! { Resident { running, end } }

/// Takes the socket away at the end of the program.
#[derive(Default)]
struct End {
    socket: Mutex<Option<PathBuf>>,
}

impl End {
    fn socket(&self) -> MutexGuard<'_, Option<PathBuf>> {
        self.socket.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn remove_socket(&self) {
        // Somebody may have removed it before.
        let _ = self.socket().take().map(std::fs::remove_file);
    }
}

impl Callbacks for End {
    fn shutdown(&self) {
        self.remove_socket();
    }
}

impl Resident {
    /// An agent without a recording.
    pub(crate) fn new(info: &ProfilerInfo) -> &'static Self {
        let resident = Self {
            info: info.clone(),
            running: Replaceable::default(),
            is_asleep: Mutex::new(false),
            end: End::default(),
        };
        Box::leak(Box::new(resident))
    }

    /// Begins the recording that `given` asks for, which callbacks reach from now on.
    ///
    /// # Errors
    /// A sentence for the user; the recording directory has it, too.
    pub(crate) fn begin(&'static self, given: &str, beginning: Beginning) -> Result<&'static Running, String> {
        let running = startup::start(&self.info, given, beginning, Box::new(|| self.fall_asleep()))?;
        let running: &'static Running = Box::leak(Box::new(running));
        fork::prepare(|| running.detach_in_child());
        running.instruments.begin(beginning);
        running.debug_events.iter().for_each(DebugEvents::begin);
        self.running.put(running);
        Ok(running)
    }

    /// Notes that the setup was refused.
    pub(crate) fn note(&self, error: &Error) {
        if let Some(running) = self.running.get() {
            running.writer.note(monotonic_ns(), &format!("the runtime refused the setup: {error}"));
        }
    }

    /// The setup of an attached recording was refused, which is over at once.
    pub(crate) fn refused(&self, error: &Error) {
        self.note(error);
        let Some(running) = self.running.take_away() else { return };
        if self.info.wait_for_callbacks(LONGEST) {
            running.refused();
        }
    }

    fn is_asleep(&self) -> MutexGuard<'_, bool> {
        self.is_asleep.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The recording is over, and the runtime does not let the agent go; whether the agent sleeps from now on. Not while it is being woken, nor where
    /// the system has no thread to give: then the agent asks again.
    fn fall_asleep(&'static self) -> bool {
        let mut is_asleep = self.is_asleep();
        if *is_asleep {
            return false;
        }
        let builder = std::thread::Builder::new().name("clrscope-sleeps".into()).stack_size(STACK);
        // Blocked before the thread exists, so that the program's handlers never run on it.
        let mask = signals::block();
        let spawned = builder.spawn(|| guard(|| self.sleep()));
        signals::restore(&mask);
        *is_asleep = spawned.is_ok();
        *is_asleep
    }

    /// The thread of the sleep.
    fn sleep(&'static self) {
        // Before anything says that the agent has left: who finds that may attach again at once.
        let door = Door::open();
        let path = door.as_ref().ok().map(|door| door.path().to_owned());
        *self.end.socket() = path;
        if let Err(error) = &door {
            log(Level::Warn, || format!("no later attach can wake the agent: {error}"));
        }
        let is_left = self.leave_recording();
        let Ok(door) = door else { return };
        if is_left {
            door.wait_for_waking(|request| self.wake(request), || self.wakes());
        }
        self.end.remove_socket();
    }

    /// Takes away what the recording left; whether that is possible.
    fn leave_recording(&self) -> bool {
        let Some(running) = self.running.take_away() else { return true };
        let is_over = self.info.wait_for_callbacks(LONGEST) && self.info.stop_own_threads(LONGEST);
        if is_over {
            running.sleeps();
        }
        is_over
    }

    /// The agent is awake: nobody listens any more, and the next sleep may come.
    fn wakes(&self) {
        self.end.remove_socket();
        *self.is_asleep() = false;
    }

    /// Begins what a launcher asks for, on a thread that the runtime knows.
    fn wake(&'static self, request: &str) -> Answer {
        let (say, said) = channel();
        let given = request.to_owned();
        let begun = OwnThread::start(&self.info, "clrscope-wakes", move |_| {
            // Nobody listens any more where the program ends.
            let _ = say.send(self.begin_again(&given));
        });
        let outcome = match begun {
            Ok(_) => said.recv().unwrap_or_else(|_| Err("the program is about to end".to_owned())),
            Err(error) => Err(error.to_string()),
        };
        outcome.map_or_else(Answer::Refused, |()| Answer::Awake)
    }

    fn begin_again(&'static self, given: &str) -> Result<(), String> {
        let running = self.begin(given, Beginning::Attach)?;
        setup(running, Beginning::Attach).attach_again(&self.info, running).map_err(|error| {
            self.refused(&error);
            in_words(&error)
        })
    }
}

/// The refusal of a setup after a sleep, for the user.
fn in_words(error: &Error) -> String {
    match error.hresult() {
        HResult::CONCURRENT_GC_NOT_PROFILABLE => "the runtime lets a profiler follow collections object by object only from its first attach on, and the agent \
             stays in this process since it had probes"
            .to_owned(),
        _ => error.to_string(),
    }
}
