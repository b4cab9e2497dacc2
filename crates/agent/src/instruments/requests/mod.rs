//! `requests`: the requests that the program serves and makes, with their times and outcomes.
//!
//! A few methods of ASP.NET Core, of `HttpClient`'s library and of the commands of ADO.NET's
//! providers are compiled again (ReJIT) with code that notes when a request begins and when it
//! ends. Nothing is listened to: no activity is made and no event is written that the program would
//! not have without us. What is known of a request under way is found again by a number that the
//! framework's own objects keep.
//!
//! A request goes on in the code in which it has begun. So the methods keep their code when the
//! recording is over, and note nothing then ([`kept_code`](crate::services::kept_code)). Those of
//! the runtime's own library get theirs back.
//!
//! | module | what it holds |
//! |---|---|
//! | [`served`] | the code in ASP.NET Core, and what it calls |
//! | [`made`] | the code in `HttpClient`'s library, and what it calls |
//! | [`commands`] | the code in commands of databases, and what it calls |
//! | [`nesting`] | commands within commands |
//! | [`statements`] | what a command does |
//! | [`grpc`] | the status of gRPC's answers |
//! | [`inserted`] | pieces of inserted code |
//! | [`members`] | members that inserted code names |
//! | [`objects`] | objects that inserted code hands over |
//! | [`traces`] | trace and span of requests |
//! | [`carrier`] | a request's id in the `ExecutionContext` |
//! | [`locals`] | the id read from there |
//! | [`switches`] | the code where threads get another context |
//! | [`author`] | who writes the methods' code |
//! | [`follow`] | how methods get their code |
//! | [`under_way`] | requests under way, by their numbers |
//! | [`names`] | names of requests |
//! | [`recorder`] | what becomes of requests in the recording under way |

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

/// The running instrument.
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

    /// The runtime tells of code that is compiled again only where it tells of all code.
    fn events(&self) -> Events {
        Events::MODULE_LOADS | Events::ENABLE_REJIT | Events::JIT_COMPILATION
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
    /// Before the helper thread's last round, for which the program waits a moment only.
    fn shutdown(&self) {
        record_pending(self.recorder);
    }

    /// No callback comes any more: another recording of the process may use what threads keep.
    fn profiler_detach_succeeded(&self) {
        request_work::let_go();
    }

    /// Modules that are there already; one that comes meanwhile may be told of twice.
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

    /// Once more: types that could not be loaded before are there now that the code is.
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

    /// No method finds the recording any more, and those that had found it are done with it once
    /// the runtime has stopped all threads: it does not stop one in the middle of such a call.
    fn undo(&mut self) -> bool {
        self.stop.is_over(Recorder::withdraw)
    }
}
