//! `requests`: the requests that the program serves and makes, with their times and outcomes.
//!
//! A few methods of ASP.NET Core, of `HttpClient`'s library and of the commands of ADO.NET's
//! providers are recompiled (ReJIT) with code that notes when a request begins and ends. There is
//! no listener: the program makes no activity and writes no event that it would not have without
//! us. The framework's own objects keep a number that leads to the data of a pending request.
//!
//! A request continues in the code in which it began. So the methods keep their changed code when
//! the recording is over, but the code then notes nothing
//! ([`kept_code`](crate::services::kept_code)). Methods of the runtime's own library get their own
//! code back.
//!
//! | module | what it holds |
//! |---|---|
//! | [`served`] | the code in ASP.NET Core, and the functions that it calls |
//! | [`made`] | the code in `HttpClient`'s library, and the functions that it calls |
//! | [`commands`] | the code in database commands, and the functions that it calls |
//! | [`nesting`] | nested commands |
//! | [`statements`] | the kind of a command's statement |
//! | [`grpc`] | the status of gRPC responses |
//! | [`inserted`] | pieces of inserted code |
//! | [`members`] | members that inserted code names |
//! | [`objects`] | objects that inserted code passes |
//! | [`traces`] | trace and span of requests |
//! | [`carrier`] | a request's id in the `ExecutionContext` |
//! | [`locals`] | reading of that id |
//! | [`switches`] | the code where threads get another context |
//! | [`author`] | the author of the methods' code |
//! | [`follow`] | how methods get their code |
//! | [`under_way`] | pending requests, by their numbers |
//! | [`names`] | names of requests |
//! | [`recorder`] | recording of requests |

mod author;
mod carrier;
mod commands;
mod follow;
mod grpc;
mod inserted;
mod kept_number;
mod locals;
mod made;
mod members;
mod names;
mod nesting;
mod objects;
mod options;
mod recorder;
mod served;
mod statements;
mod switches;
mod traces;
mod under_way;

use clr_profiler::{AssemblyId, Callbacks, Events, FunctionId, ModuleId, ProfilerInfo, ReJitId, Result, Token};
use clrscope_agent_base::helper::Task;
use clrscope_recording::layout::instrument;

use crate::instrument::Instrument;
use crate::services::context::Context;
use crate::services::event_log::EventLog;
use crate::services::request_work;
use crate::services::stop_of_threads::StopOfThreads;

use follow::Follower;
pub(crate) use options::RequestsOptions;
use recorder::Recorder;

/// The instrument `requests` while it runs.
pub(crate) struct Requests {
    info: ProfilerInfo,
    follower: Follower,
    recorder: &'static Recorder,
}

impl Instrument for Requests {
    type Options = RequestsOptions;

    fn start(options: &RequestsOptions, context: &Context) -> std::result::Result<Self, String> {
        under_way::open().ok_or("no address space for requests")?;
        nesting::open().map_err(|error| error.to_string())?;
        let log = EventLog::create(context, instrument::REQUESTS, options.max_bytes)?;
        Ok(Self {
            info: context.info.clone(),
            follower: Follower::new(context),
            recorder: Recorder::publish(log, context.writer, context.triggers, options.has_urls)
                .map_err(|error| error.to_string())?,
        })
    }

    /// The runtime reports recompiled code only if it reports all code.
    fn events(&self) -> Events {
        Events::MODULE_LOADS | Events::ENABLE_REJIT | Events::JIT_COMPILATION
    }

    /// A burst of requests fits into the memory that is backed already.
    fn needs_frequent_help(&self) -> bool {
        false
    }

    fn tasks(&self) -> Vec<Box<dyn Task>> {
        let switching = self.follower.switching();
        let stop = StopOfThreads::behind(&self.info, "clrscope-requests", move |info| switching.revert(info));
        let end = End { recorder: self.recorder, stop };
        vec![Box::new(end), self.recorder.log.task()]
    }

    fn detach_in_child(&self) {
        Recorder::withdraw();
        self.recorder.log.detach_in_child();
    }
}

impl Callbacks for Requests {
    /// Comes before the helper thread's last round, for which the program waits only a moment.
    fn shutdown(&self) {
        record_pending(self.recorder);
    }

    /// No callback comes any more. Another recording of the process may use the data that threads
    /// keep.
    fn profiler_detach_succeeded(&self) {
        request_work::let_go();
    }

    /// Handles modules that are loaded already. A module that is loaded meanwhile may be reported
    /// twice.
    fn profiler_attach_complete(&self) {
        self.info.modules().unwrap_or_default().into_iter().for_each(|module| self.follower.follow(module));
    }

    /// Before this the assembly has no name, and after this its methods are compiled.
    fn module_attached_to_assembly(&self, module: ModuleId, _assembly: AssemblyId) {
        self.follower.follow(module);
    }

    fn rejit_compilation_started(&self, function: FunctionId, _rejit: ReJitId, _is_safe_to_block: bool) {
        self.follower.look_into_types(function);
    }

    /// Tries again: types that could not be loaded before are available now that the code is
    /// compiled.
    fn rejit_compilation_finished(
        &self,
        function: FunctionId,
        _rejit: ReJitId,
        status: Result<()>,
        _is_safe_to_block: bool,
    ) {
        if status.is_ok() {
            self.follower.compiled(function);
        }
    }

    fn rejit_error(&self, module: ModuleId, method: Token, _function: FunctionId, status: Result<()>) {
        if let Err(error) = status {
            self.follower.not_compiled((module, method), &error);
        }
    }
}

/// Records all requests that have not ended, once.
fn record_pending(recorder: &Recorder) {
    if let Some(requests) = under_way::of_process() {
        recorder.pending(requests);
    }
}

/// The end of the recording.
struct End {
    recorder: &'static Recorder,
    stop: StopOfThreads,
}

impl Task for End {
    fn slow_tick(&mut self, _now_ns: u64) {
        self.recorder.scale.measure();
    }

    fn get_ready_for_copy(&mut self) {
        if let Some(requests) = under_way::of_process() {
            self.recorder.copied(requests);
        }
    }

    fn finish(&mut self) -> bool {
        record_pending(self.recorder);
        true
    }

    /// No method finds the recording any more. Methods that had found it are done with it once the
    /// runtime has stopped all threads, since the runtime does not stop a thread inside such a
    /// call.
    fn undo(&mut self) -> bool {
        self.stop.is_over(Recorder::withdraw)
    }
}
