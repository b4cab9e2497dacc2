//! Every callback of the runtime, one line each, with names, indented by nesting.
//!
//! The file's name comes from `LOGGING_PROFILER_OUTPUT`; each line begins with the number of its
//! thread. With `LOGGING_PROFILER_EVENTS=CLASS_LOADS,EXCEPTIONS` the profiler requests only these
//! events.

use clr_profiler::callbacks::Argument;
use clr_profiler::{Callbacks, Error, Events, NameCache, NestedLog, Profiler, ProfilerInfo, Result, Setup};

clr_profiler::export_profiler!(Logging, "{A7F3D1C2-0E5B-4D29-9C3E-6B8F2A1D5E54}");

/// The profiler the runtime makes when it loads this library.
struct Logging {
    info: ProfilerInfo,
    names: NameCache,
    log: NestedLog,
}

/// Pairs of callbacks that do not indent: the search for precompiled code may have no end callback,
/// and some versions report the steps of the second pass of an exception twice.
const FLAT: [&str; 4] =
    ["jit_cached_function_search", "exception_unwind_function", "exception_unwind_finally", "exception_catcher"];

/// A callback's arguments, each with its name.
type Arguments<'a> = &'a [(&'a str, &'a dyn Argument)];

impl Logging {
    /// Logs a callback in which the runtime may be queried for names.
    fn asks(&self, callback: &'static str, arguments: Arguments<'_>) {
        self.write(callback, arguments, |argument| argument.ask(&self.info, &self.names));
    }

    /// Logs a callback in which the runtime may not be queried; shows only names that are known
    /// already.
    fn knows(&self, callback: &'static str, arguments: Arguments<'_>) {
        self.write(callback, arguments, |argument| argument.known(&self.names));
    }

    /// Logs an unload. Afterwards the names must be forgotten, because the runtime reuses
    /// identifiers.
    fn unloads(&self, callback: &'static str, arguments: Arguments<'_>) {
        self.knows(callback, arguments);
        arguments.iter().for_each(|(_, argument)| argument.forget(&self.names));
    }

    fn write(&self, callback: &'static str, arguments: Arguments<'_>, words: impl Fn(&dyn Argument) -> String) {
        let mut text = callback.to_owned();
        for (name, argument) in arguments {
            text += &format!(" {name}={}", words(*argument));
        }
        // Callbacks between a start and its end are indented one level deeper: classes loaded while
        // a method is compiled, modules loaded with an assembly.
        match callback.rsplit_once('_') {
            Some((stem, _)) if FLAT.contains(&stem) => self.log.line(text),
            Some(("runtime_suspend", "started")) => self.log.begin("suspension", text),
            Some(("runtime_suspend", "aborted") | ("runtime_resume", "finished")) => self.log.end("suspension", text),
            Some(("runtime_suspend" | "runtime_resume", _)) => self.log.line(text),
            Some((stem, "started" | "enter")) => self.log.begin(stem, text),
            Some((stem, "finished" | "leave")) => self.log.end(stem, text),
            _ => self.log.line(text),
        }
    }
}

/// Declares the methods of the trait; each passes on its name and its arguments.
macro_rules! log {
    ($($mode:ident $runtime_name:ident as $name:ident($($argument:ident: $type:ty),*) $(-> $answer:ty = $default:expr)?;)*) => {$(
        fn $name(&self $(, $argument: $type)*) $(-> $answer)? {
            self.$mode(stringify!($name), &[$((stringify!($argument), &$argument)),*]);
            $($default)?
        }
    )*};
}

impl Profiler for Logging {
    fn initialize(info: &ProfilerInfo) -> Result<(Self, Setup)> {
        let path = std::env::var_os("LOGGING_PROFILER_OUTPUT").unwrap_or_else(|| "log.txt".into());
        let log = NestedLog::create(path).map_err(|error| Error::refused("initialize", error.to_string()))?;
        log.line("initialize");
        Ok((Self { info: info.clone(), names: NameCache::new(), log }, Setup::new(wanted())))
    }
}

impl Callbacks for Logging {
    clr_profiler::for_each_callback!(log);
}

fn wanted() -> Events {
    let Ok(chosen) = std::env::var("LOGGING_PROFILER_EVENTS") else { return Events::NOTIFICATIONS };
    let named = Events::ALL.iter().filter(|(name, _)| chosen.split(',').any(|one| one.trim() == *name));
    named.fold(Events::NONE, |all, (_, event)| all | *event)
}

#[cfg(test)]
mod tests;
