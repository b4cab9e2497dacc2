//! The agent as it stays in a process: its running recording, and its dormancy if the runtime does
//! not detach it.
//!
//! The runtime never detaches a profiler that may have changed the code of methods. An attached
//! agent of that kind goes dormant when its recording is over, and the next attach wakes it:
//!
//! 1. Methods have their own code again ([`Task::undo`]), no event is requested any more, and the
//!    runtime has refused the detach. The helper thread calls [`Resident::go_dormant`], and ends.
//! 2. A thread of the agent listens at a socket ([`control_socket`]). Once no callback is running,
//!    it frees everything that a detach would have freed. Only the waiting thread, its socket, and
//!    the memory to which late calls of probed methods store remain.
//! 3. A launcher sends a request. The agent begins as at an attach, on a thread that the runtime
//!    knows. The socket is removed, and the waiting thread ends.
//!
//! [`Task::undo`]: clrscope_agent_base::helper::Task::undo

mod control_socket;

use std::path::PathBuf;
use std::sync::mpsc::channel;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use clr_profiler::callbacks::Replaceable;
use clr_profiler::{Callbacks, Error, HResult, OwnThread, ProfilerInfo};
use clrscope_agent_base::boundary::guard;
use clrscope_agent_base::developer_log::{Level, log};
use clrscope_agent_base::os::signals;
use clrscope_agent_base::recording_lifetime::{self, keep};
use clrscope_agent_stacks::inlined::DebugEvents;
use clrscope_contract::control_socket::Answer;
use clrscope_recording::writer::monotonic_ns;

use crate::process::fork;
use crate::services::context::Beginning;
use crate::services::kept_code::KeptCode;
use crate::setup::setup;
use crate::startup::{self, Running};

use control_socket::ControlSocket;

/// Longest wait for callbacks and threads that are running when the recording ends.
const CALLBACK_TIMEOUT: Duration = Duration::from_secs(60);
/// Bytes of the stack of the thread that waits for a launcher.
const STACK: usize = 256 << 10;

/// The agent in a process, from its first recording on.
pub(crate) struct Resident {
    info: ProfilerInfo,
    kept_code: KeptCode,
    /// The recording; empty while the agent is dormant.
    pub(crate) running: Replaceable<Running>,
    is_dormant: Mutex<bool>,
    end: End,
}

// First, so that code that follows the methods finds which function was compiled.
clr_profiler::compose_callbacks! { Resident { kept_code, running, end } }

/// Removes the socket at the end of the program.
#[derive(Default)]
struct End {
    socket: Mutex<Option<PathBuf>>,
}

impl End {
    fn socket(&self) -> MutexGuard<'_, Option<PathBuf>> {
        self.socket.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn remove_socket(&self) {
        // The file may have been removed before.
        let _ = self.socket().take().map(std::fs::remove_file);
    }
}

impl Callbacks for End {
    fn shutdown(&self) {
        self.remove_socket();
    }
}

impl Resident {
    /// Creates an agent that has no recording yet.
    pub(crate) fn new(info: &ProfilerInfo) -> Self {
        Self {
            info: info.clone(),
            kept_code: KeptCode::new(info),
            running: Replaceable::default(),
            is_dormant: Mutex::new(false),
            end: End::default(),
        }
    }

    /// Begins the recording that `given` asks for. Callbacks reach this recording from now on.
    ///
    /// # Errors
    /// A sentence for the user, which is also in the recording directory.
    pub(crate) fn begin(&'static self, given: &str, beginning: Beginning) -> Result<&'static Running, String> {
        let running = startup::start(&self.info, given, beginning, Box::new(|| self.go_dormant()))?;
        let running: &'static Running = keep(running);
        fork::prepare(|| running.detach_in_child());
        running.instruments.begin(beginning);
        running.code_marks.begin(beginning);
        running.debug_events.iter().for_each(DebugEvents::begin);
        self.running.put(running);
        Ok(running)
    }

    /// Notes in the recording that the runtime refused the setup.
    pub(crate) fn note(&self, error: &Error) {
        if let Some(running) = self.running.get() {
            running.writer.note(monotonic_ns(), &format!("the runtime refused the setup: {error}"));
        }
    }

    /// Call it when the runtime refused the setup of an attached recording: the recording is over
    /// at once.
    pub(crate) fn refused(&self, error: &Error) {
        self.note(error);
        let Some(running) = self.running.take_away() else { return };
        if self.info.wait_for_callbacks(CALLBACK_TIMEOUT) {
            running.refused();
        }
    }

    fn is_dormant(&self) -> MutexGuard<'_, bool> {
        self.is_dormant.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Makes the agent dormant when its recording is over and the runtime does not detach it.
    /// Returns `false` while the agent is being woken, and if no thread can be started; the helper
    /// thread then tries again.
    fn go_dormant(&'static self) -> bool {
        let mut is_dormant = self.is_dormant();
        if *is_dormant {
            return false;
        }
        let builder = std::thread::Builder::new().name("clrscope-sleeps".into()).stack_size(STACK);
        // Signals are blocked before the thread exists, so that the program's handlers never run on
        // it.
        let mask = signals::block();
        let spawned = builder.spawn(|| guard(|| self.run_dormant()));
        signals::restore(&mask);
        *is_dormant = spawned.is_ok();
        *is_dormant
    }

    /// Runs on the thread of the dormant agent.
    fn run_dormant(&'static self) {
        // Before any sign that the agent has left: a launcher that sees one may attach again at
        // once.
        let socket = ControlSocket::open();
        let path = socket.as_ref().ok().map(|socket| socket.path().to_owned());
        *self.end.socket() = path;
        if let Err(error) = &socket {
            log(Level::Warn, || format!("no later attach can wake the agent: {error}"));
        }
        let is_left = self.leave_recording();
        let Ok(socket) = socket else { return };
        if is_left {
            socket.wait_for_wake_request(|request| self.wake(request), || self.has_woken());
        }
        self.end.remove_socket();
    }

    /// Frees the remains of the recording; returns whether that was possible.
    fn leave_recording(&self) -> bool {
        let Some(running) = self.running.take_away() else { return true };
        let is_over = self.info.wait_for_callbacks(CALLBACK_TIMEOUT) && self.info.stop_own_threads(CALLBACK_TIMEOUT);
        if is_over {
            running.clean_up_dormant();
        }
        is_over
    }

    /// The agent records again: it no longer listens, and it may go dormant again.
    fn has_woken(&self) {
        self.end.remove_socket();
        *self.is_dormant() = false;
    }

    /// Begins what a launcher asks for, on a thread that the runtime knows.
    fn wake(&'static self, request: &str) -> Answer {
        let (say, said) = channel();
        let given = request.to_owned();
        let begun = OwnThread::start(&self.info, "clrscope-wakes", move |_| {
            // There is no receiver any more if the program is ending.
            let _ = say.send(self.begin_again(&given));
        });
        let outcome = match begun {
            Ok(_) => said.recv().unwrap_or_else(|_| Err("the program is about to end".to_owned())),
            Err(error) => Err(error.to_string()),
        };
        outcome.map_or_else(Answer::Refused, |()| Answer::Awake)
    }

    fn begin_again(&'static self, given: &str) -> Result<(), String> {
        recording_lifetime::free_ended();
        let running = self.begin(given, Beginning::Attach)?;
        setup(running, Beginning::Attach).attach_again(&self.info, running).map_err(|error| {
            self.refused(&error);
            in_words(&error)
        })
    }
}

/// Returns a woken agent's refusal of a setup as a sentence for the user.
fn in_words(error: &Error) -> String {
    match error.hresult() {
        HResult::CONCURRENT_GC_NOT_PROFILABLE => "the runtime lets a profiler track objects through collections only \
                                                  from its first attach on, but the agent has stayed in this process, \
                                                  because it changed methods"
            .to_owned(),
        _ => error.to_string(),
    }
}
