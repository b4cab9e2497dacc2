//! The runtime's events with its debug information about inlined methods, for `--inlined=exact`.
//!
//! The events are raised if the process began with `DOTNET_RichDebugInfo=1` and a session listens
//! to both providers. They come on the thread that compiles: after the compiler has finished, and
//! before the callback for the end of the compilation
//! (`MethodDesc::JitCompileCodeLockedEventWrapper` in the runtime's `prestub.cpp`).

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use clr_profiler::callback_args::EventPipeEvent;
use clr_profiler::{Callbacks, Events, FunctionId, ProfilerInfo};
use clrscope_agent_base::event_pipe::{EventPipe, Fields, RUNTIME, RUNTIME_PRIVATE, level};
use clrscope_agent_base::functions::Functions;
use clrscope_agent_base::os::threads::nap;

use super::InlinedMethods;

/// `JITKeyword` of the runtime's provider. Without it there are no events for compilations.
const COMPILATIONS: u64 = 0x10;
/// `CodeSymbols` of the private provider (`ClrEtwAll.man`), and the number of the event.
const DEBUG_KEYWORD: u64 = 0x40000;
const JITTED_METHOD_RICH_DEBUG_INFO: u32 = 189;
/// Bits of a piece's number. The highest bit is set in the last piece of a body.
const NUMBER: u32 = !0x8000_0000;

/// Pause between checks whether the session exists, and the most such checks.
const PAUSE: Duration = Duration::from_millis(1);
const MOST_PAUSES: usize = 200;

/// Passes the events on to [`InlinedMethods`].
pub struct DebugEvents {
    info: ProfilerInfo,
    functions: Arc<Functions>,
    event_pipe: &'static EventPipe,
    inlined: Arc<InlinedMethods>,
    /// Whether a compilation has already waited for the session.
    has_waited: AtomicBool,
}

impl DebugEvents {
    /// Asks the session for the events about inlined methods.
    pub fn new(
        info: &ProfilerInfo,
        functions: &Arc<Functions>,
        event_pipe: &'static EventPipe,
        inlined: &Arc<InlinedMethods>,
    ) -> Self {
        event_pipe.want(RUNTIME, COMPILATIONS, level::VERBOSE);
        event_pipe.want(RUNTIME_PRIVATE, DEBUG_KEYWORD, level::INFORMATIONAL);
        let (functions, inlined) = (Arc::clone(functions), Arc::clone(inlined));
        Self { info: info.clone(), functions, event_pipe, inlined, has_waited: AtomicBool::new(false) }
    }

    /// The profiler events that receiving these events needs.
    pub fn events(&self) -> Events {
        self.event_pipe.events()
    }

    /// Begins the session.
    pub fn begin(&self) {
        self.event_pipe.begin();
    }
}

impl DebugEvents {
    /// Whether a method is the first sign of the program itself: it is in an assembly outside the
    /// framework. By then the runtime is up, and accepts sessions.
    fn is_of_program(&self, function: FunctionId) -> bool {
        let module = self.info.function_info(function).ok().map(|about| about.module);
        let path = module.and_then(|module| Some((module, self.info.module_info(module).ok()?.path)));
        path.is_some_and(|(module, path)| !self.functions.is_framework_module(module, &path))
    }
}

impl Callbacks for DebugEvents {
    /// The first method of the program waits for the session, which another thread begins. Methods
    /// compiled earlier would lack debug information, and a loop in `Main` may get its final code
    /// within milliseconds.
    fn jit_compilation_started(&self, function: FunctionId, is_safe_to_block: bool) {
        if self.has_waited.load(Ordering::Relaxed) || !is_safe_to_block {
            return;
        }
        let is_over = self.event_pipe.is_open() || self.is_of_program(function);
        if is_over && !self.has_waited.swap(true, Ordering::Relaxed) {
            (0..MOST_PAUSES).take_while(|_| !self.event_pipe.is_open()).for_each(|_| nap(PAUSE));
        }
    }

    fn event_pipe_event_delivered(&self, event: &EventPipeEvent<'_>) {
        let found = self.event_pipe.of_provider(RUNTIME_PRIVATE, event);
        let Some(found) = found.filter(|found| found.id == JITTED_METHOD_RICH_DEBUG_INFO) else { return };
        if let Some((method, piece, data)) = piece(found.fields) {
            self.inlined.debug_information(method, piece & NUMBER == 0, data);
        }
    }
}

/// Method, number and data of a piece of a body's debug information.
fn piece(mut fields: Fields<'_>) -> Option<(u64, u32, &[u8])> {
    // The instance of the runtime, the method, the versions of its native code and of its IL.
    let (_, method, _, _) = (fields.u16()?, fields.u64()?, fields.u64()?, fields.u64()?);
    let (number, bytes) = (fields.u32()?, fields.u32()?);
    Some((method, number, fields.read_bytes(bytes as usize)?))
}
