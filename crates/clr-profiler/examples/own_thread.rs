//! Tests the profiler's own thread: the runtime's answers from the thread's start on, its view of
//! other threads, and its end. The profiler writes a line per check to the file named by
//! `OWN_THREAD_OUTPUT`: the first lines after the thread's start, the last at the program's end.

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::ops::ControlFlow;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use clr_profiler::{
    Callbacks, ClassId, Error, Events, ModuleId, NoStack, OwnThread, Profiler, ProfilerInfo, ProviderConfig, Result,
    Setup, StackWalk,
};

clr_profiler::export_profiler!(Own, "{6F0E8E6B-2C8E-4B6B-9A55-5D1E3B1F7C0E}");

struct Own(Arc<State>);

struct State {
    info: ProfilerInfo,
    lines: Mutex<String>,
    has_ended: AtomicBool,
}

impl Profiler for Own {
    fn initialize(info: &ProfilerInfo) -> Result<(Self, Setup)> {
        let state = Arc::new(State { info: info.clone(), lines: Mutex::default(), has_ended: AtomicBool::new(false) });
        let early = info.suspend().map(drop).map_err(|error| error.name());
        state.line(format_args!("suspended in initialize: {early:?}"));
        let own = state.clone();
        OwnThread::start(info, "own", move |thread| {
            own.first_look();
            own.write();
            while thread.sleep(Duration::from_millis(1)) {}
            own.has_ended.store(true, Ordering::Release);
        })?;
        let stacks = std::env::var_os("OWN_THREAD_NO_STACKS").map_or(Events::ENABLE_STACK_SNAPSHOT, |_| Events::NONE);
        let rejit = std::env::var_os("OWN_THREAD_REJIT").map_or(Events::NONE, |_| Events::ENABLE_REJIT);
        Ok((Self(state), Setup::new(stacks | rejit | Events::EVENT_PIPE)))
    }
}

impl Callbacks for Own {
    fn shutdown(&self) {
        self.0.line(format_args!("ended before shutdown: {}", self.0.has_ended.load(Ordering::Acquire)));
        let late = OwnThread::start(&self.0.info, "late", |_| ());
        self.0.line(format_args!("{}", late.err().as_ref().and_then(Error::reason).unwrap_or_default()));
        self.0.write();
    }
}

impl State {
    fn line(&self, line: std::fmt::Arguments<'_>) {
        let _ = writeln!(self.lines.lock().unwrap_or_else(PoisonError::into_inner), "{line}");
    }

    /// Writes the file. It appears under its name only when it is complete.
    fn write(&self) {
        let path = std::env::var("OWN_THREAD_OUTPUT").unwrap_or_default();
        let text = self.lines.lock().unwrap_or_else(PoisonError::into_inner);
        let part = format!("{path}.part");
        let _ = std::fs::write(&part, &*text).and_then(|()| std::fs::rename(part, path));
    }

    fn first_look(&self) {
        // SAFETY: an out-parameter, initialised by the call.
        let blocked = unsafe {
            let mut mask: libc::sigset_t = std::mem::zeroed();
            libc::pthread_sigmask(libc::SIG_BLOCK, std::ptr::null(), &mut mask);
            libc::sigismember(&mask, libc::SIGUSR1) == 1 && libc::sigismember(&mask, libc::SIGTERM) == 1
        };
        self.line(format_args!("signals are blocked: {blocked}"));
        self.line(format_args!("modules: {}", self.info.modules().is_ok_and(|modules| !modules.is_empty())));
        if std::env::var_os("OWN_THREAD_REJIT").is_some() {
            return self.types();
        }
        self.line(format_args!("stack here: {:?}", self.info.stack_here(|_| ControlFlow::Continue(()))));
        match self.stacks() {
            Ok(walks) => self.line(format_args!("stacks: {walks:?}")),
            Err(error) => self.line(format_args!("stacks: {error}")),
        }
        self.flags();
        let provider =
            ProviderConfig { name: "Microsoft-Windows-DotNETRuntime".into(), keywords: 1, level: 4, filter: None };
        let session = self.info.event_pipe_start_session(&[provider], false);
        let stopped = session.and_then(|session| self.info.event_pipe_stop_session(session));
        self.line(format_args!("session: {stopped:?}"));
    }

    /// Checks queries that may load types, before and after the runtime has adopted the thread.
    fn types(&self) {
        let asked = self.ask_for_types();
        self.line(format_args!("types on a thread of one's own: {asked:?}"));
        let adopted = self.info.adopt_current_thread().map_err(|error| error.name());
        self.line(format_args!("adopted: {adopted:?}, a thread: {}", self.info.current_thread().is_ok()));
        self.line(format_args!("types on an adopted thread: {:?}", self.ask_for_types()));
    }

    /// Queries a type of the core library that has not been loaded so far, and a queue of such
    /// objects.
    fn ask_for_types(&self) -> Result<[&'static str; 2]> {
        let path = |module| self.info.module_info(module).map(|module| module.path).unwrap_or_default();
        let is_core = |module: &ModuleId| path(*module).ends_with("/System.Private.CoreLib.dll");
        let core = self.info.modules()?.into_iter().find(is_core).unwrap_or(ModuleId::NULL);
        let metadata = self.info.module_metadata(core)?;
        let of = |name| metadata.find_type_def(name, None).map(Option::unwrap_or_default);
        let class = self.info.class_from_token(core, of("System.Runtime.AmbiguousImplementationException")?);
        let argument = class.clone().unwrap_or(ClassId::NULL);
        let queue =
            self.info.class_from_token_and_type_args(core, of("System.Collections.Generic.Queue`1")?, &[argument]);
        Ok([class.err(), queue.err()].map(|error| error.map_or("OK", |error| error.name().unwrap_or("?"))))
    }

    /// Checks which event flags can be added to the current ones.
    fn flags(&self) {
        let Ok(now) = self.info.events() else { return };
        for (name, flag) in Events::ALL {
            let (name, flag) = (*name, *flag);
            // Code that is compiled meanwhile would call hooks, but none are registered.
            if flag == Events::ENTER_LEAVE {
                continue;
            }
            let added = self.info.set_events(now | flag);
            let reset = self.info.set_events(now);
            self.line(format_args!("flag {name} {} {}", added.is_ok(), reset.is_ok()));
        }
    }

    /// Walks all threads and returns the outcomes.
    fn stacks(&self) -> Result<BTreeSet<String>> {
        let suspended = self.info.suspend_within(Duration::from_secs(10))?;
        let walk = |thread| suspended.stack_of(thread, |_| ControlFlow::Continue(()));
        let walks: Vec<std::result::Result<StackWalk, NoStack>> = self.info.threads()?.into_iter().map(walk).collect();
        drop(suspended);
        Ok(walks.iter().map(|walk| format!("{walk:?}")).collect())
    }
}
