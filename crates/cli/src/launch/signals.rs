//! Signals while the program runs: the launcher forwards the signals that it receives to the
//! program.
//!
//! A signal from the terminal (Ctrl-C) reaches both launcher and program and is not forwarded. A
//! signal that was sent only to the launcher (`kill`, a service manager) is forwarded. In both
//! cases the launcher keeps running, so that it can pack the recording.

use std::fs;
use std::io;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};
use signal_hook::consts::{SIGHUP, SIGINT, SIGQUIT, SIGTERM, SIGUSR1, SIGUSR2, SIGXFSZ};
use signal_hook::iterator::SignalsInfo;
use signal_hook::iterator::exfiltrator::WithOrigin;
use signal_hook::iterator::exfiltrator::origin::Origin;
use signal_hook::low_level::siginfo::Cause;

const WATCHED: [i32; 6] = [SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGUSR1, SIGUSR2];
/// The Ctrl-C that ended the program may reach the launcher a moment after the program has ended.
const ECHO: Duration = Duration::from_millis(500);

/// The launcher's signal handling while this value lives.
#[derive(Clone)]
pub(crate) struct Signals(Arc<Mutex<State>>);

enum State {
    /// There is no program yet; received signals are forwarded as soon as it starts.
    Waiting(Vec<i32>),
    Running(Pid),
    /// The program has ended; with the time of the end if there was a program, and the reaction to
    /// signals.
    Ended(Option<Instant>, Option<Interruption>),
}

/// Reaction to a signal after the program has ended.
type Interruption = Box<dyn Fn() + Send>;

impl Signals {
    /// Installs handlers for the signals that are not already ignored (`nohup` must stay in
    /// effect).
    ///
    /// # Errors
    /// When the operating system refuses a handler.
    pub(crate) fn take_over() -> io::Result<Self> {
        let ignored = ignored_signals();
        let is_ignored = |signal: i32| ignored & (1 << (signal - 1)) != 0;
        if !is_ignored(SIGXFSZ) {
            // Writing past a file size limit must be an error, and not end the launcher. The
            // program gets the default action.
            signal_hook::flag::register(SIGXFSZ, Arc::default())?;
        }
        let watched = WATCHED.iter().filter(|&&signal| !is_ignored(signal));
        let mut incoming = SignalsInfo::<WithOrigin>::new(watched)?;
        let this = Self(Arc::new(Mutex::new(State::Waiting(Vec::new()))));
        let shared = this.clone();
        thread::Builder::new().name("signals".to_owned()).spawn(move || {
            for origin in incoming.forever() {
                shared.arrived(&origin);
            }
        })?;
        Ok(this)
    }

    /// As [`take_over`](Self::take_over), without a program: each signal that requests termination
    /// calls `act`.
    ///
    /// # Errors
    /// When the operating system refuses a handler.
    pub(crate) fn without_program(act: impl Fn() + Send + 'static) -> io::Result<Self> {
        let this = Self::take_over()?;
        let mut state = this.lock();
        if matches!(&*state, State::Waiting(early) if early.iter().any(|&signal| !is_message(signal))) {
            act();
        }
        *state = State::Ended(None, Some(Box::new(act)));
        drop(state);
        Ok(this)
    }

    fn arrived(&self, origin: &Origin) {
        let from_terminal = matches!(origin.cause, Cause::Kernel);
        let mut state = self.lock();
        match &mut *state {
            State::Waiting(early) => early.push(origin.signal),
            State::Running(program) if !from_terminal => send(*program, origin.signal),
            State::Running(_) => {}
            State::Ended(when, Some(interruption))
                if when.is_none_or(|when| when.elapsed() > ECHO) && !is_message(origin.signal) =>
            {
                interruption();
            }
            State::Ended(..) => {}
        }
    }

    /// From now on signals are forwarded to `program`.
    pub(crate) fn program_started(&self, program: Pid) {
        let mut state = self.lock();
        if let State::Waiting(early) = &*state {
            early.iter().for_each(|&signal| send(program, signal));
        }
        *state = State::Running(program);
    }

    /// From now on nothing is forwarded, because the id may soon belong to another process. Call
    /// this before reaping.
    pub(crate) fn program_ended(&self) {
        *self.lock() = State::Ended(Some(Instant::now()), None);
    }

    /// Sets the reaction to signals that arrive after the program has ended.
    pub(crate) fn on_interruption(&self, act: impl Fn() + Send + 'static) {
        let mut state = self.lock();
        if let State::Ended(when, _) = *state {
            *state = State::Ended(when, Some(Box::new(act)));
        }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Whether a signal is a message to the program that should not end the launcher: the user signals.
fn is_message(signal: i32) -> bool {
    signal == SIGUSR1 || signal == SIGUSR2
}

fn send(program: Pid, signal: i32) {
    if let Some(signal) = Signal::from_named_raw(signal) {
        // The program may just have ended; then there is no process to signal.
        let _ = kill_process(program, signal);
    }
}

/// The mask of ignored signals that this process inherited, from the kernel.
fn ignored_signals() -> u64 {
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    let mask = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    mask.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok()).unwrap_or(0)
}
