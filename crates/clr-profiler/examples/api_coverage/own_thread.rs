//! Queries on the profiler's own thread: collections, suspension, recompilation, EventPipe.

use std::ops::ControlFlow;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use clr_profiler::{EventDefinition, ModuleId, ProviderConfig, Result};

use crate::State;

/// Number and payload of the event of the profiler's own provider.
pub(crate) const OWN_EVENT: u32 = 77;
pub(crate) const OWN_DATA: &[u8] = &42_i32.to_le_bytes();

/// The method at the bottom of the main thread's stack.
const MAIN: &str = "Objects.Program::Main";
/// Maximum number of failed walks; more failures can't be a coincidence.
const MOST_FAILURES: usize = 50;

const OWN_PROVIDER: &str = "Every-Question";

/// Makes the queries, writes all lines, and lets the program continue.
pub(crate) fn run(state: &'static State) {
    state.checks.outcome("own thread", ask(state));
    state.checks.line("end");
    state.checks.write();
    if let Some(path) = std::env::var_os("OBJECTS_WAIT") {
        drop(std::fs::write(path, ""));
    }
}

fn ask(state: &State) -> Result<()> {
    let (info, checks) = (&state.info, &state.checks);
    let before = state.collections.load(Ordering::Relaxed);
    info.force_gc()?;
    checks.holds("collected", (), state.collections.load(Ordering::Relaxed) > before);
    checks.holds("heap", (), info.generation_bounds()?.len() >= 5);
    checks.holds("some died", (), state.died.load(Ordering::Relaxed) >= 1000);
    suspended(state)?;
    recompile(state)?;
    event_pipe(state)
}

/// Walks all stacks until the main thread's stack is among them. Returns the methods' names, and
/// the reasons of failed walks before. A thread can't be walked at every moment: if the runtime
/// reports this, the walk is repeated.
fn main_stack(state: &State) -> Result<(Vec<String>, Vec<String>)> {
    let info = &state.info;
    let mut failures = Vec::new();
    loop {
        let mut frames = Vec::new();
        let known = failures.len();
        let threads = info.threads()?;
        let stopped = info.suspend_within(Duration::from_secs(10))?;
        for thread in threads {
            let walked = stopped.stack_of(thread, |frame| {
                frames.push(frame.function);
                ControlFlow::Continue(())
            });
            failures.extend(walked.err().map(|failure| format!("{failure:?}")));
        }
        drop(stopped);
        let names: Vec<String> =
            frames.into_iter().map(|function| state.names.function(info, function).name.to_string()).collect();
        let is_complete = names.iter().any(|name| name == MAIN);
        if is_complete || failures.len() == known || failures.len() > MOST_FAILURES {
            return Ok((names, failures));
        }
    }
}

fn suspended(state: &State) -> Result<()> {
    let (info, checks) = (&state.info, &state.checks);
    let (names, failures) = main_stack(state)?;
    let mut heap = (0_u64, 0_u64);
    let enumerated;
    {
        let stopped = info.suspend_within(Duration::from_secs(10))?;
        let again = info.suspend().map(drop).map_err(|error| error.name().unwrap_or_default());
        // This callback must not allocate managed memory or wait for a managed thread; counting
        // does neither.
        enumerated = stopped.heap_objects(|object| {
            heap.0 += u64::from(state.tracked.get().is_some_and(|class| info.class_of_object(object) == Ok(*class)));
            let _ = info.references_of(object, |_| {
                heap.1 += 1;
                ControlFlow::Continue(())
            });
            ControlFlow::Continue(())
        });
        drop(stopped);
        checks.same("suspended once", again, Err("CORPROF_E_SUSPENSION_IN_PROGRESS"));
    }
    checks.holds("stack of the main thread", (&names, failures), names.iter().any(|name| name == MAIN));
    if info.level() >= 15 {
        checks.outcome("heap", enumerated);
        // The objects in the list, one static, and the objects of an exception that may be
        // collected by now.
        checks.holds("objects on the heap", heap, (1001..=1003).contains(&heap.0) && heap.1 > 1000);
    } else {
        let reason = enumerated.err().and_then(|error| error.reason().map(str::to_owned)).unwrap_or_default();
        checks.same(
            "not before .NET 9",
            reason.as_str(),
            "came with ICorProfilerInfo15; this runtime has ICorProfilerInfo14",
        );
    }
    Ok(())
}

fn recompile(state: &State) -> Result<()> {
    let (info, checks) = (&state.info, &state.checks);
    let is_fixture = |module: &ModuleId| info.module_info(*module).is_ok_and(|m| m.path.ends_with("/Objects.dll"));
    // If the module is not found, its uses return errors.
    let module = info.modules()?.into_iter().find(is_fixture).unwrap_or(ModuleId::NULL);
    let metadata = info.module_metadata(module)?;
    let program = metadata.find_type_def("Objects.Program", None)?.unwrap_or_default();
    let throw = metadata.methods_named(program, "Throw")?[0];
    let function = info.function_from_token(module, throw)?;
    info.request_rejit(&[(module, throw)])?;
    info.request_rejit_with_inliners(&[(module, throw)])?;
    checks.holds("versions after a request", (), !info.rejit_ids(function)?.is_empty());
    let reverted = info.request_revert(&[(module, throw)])?;
    checks.same("reverted", reverted, vec![Ok(())]);
    Ok(())
}

/// Waits until each of these events was delivered, for ten seconds at most.
fn wait_until_some<const KINDS: usize>(counts: [&AtomicU64; KINDS]) {
    for _ in 0..1000 {
        if counts.iter().all(|count| count.load(Ordering::Relaxed) > 0) {
            break;
        }
        #[expect(clippy::disallowed_methods, reason = "events are delivered on another thread")]
        std::thread::sleep(Duration::from_millis(10));
    }
}

fn event_pipe(state: &State) -> Result<()> {
    let (info, checks) = (&state.info, &state.checks);
    let enabled = Arc::new(AtomicU64::new(0));
    let counter = Arc::clone(&enabled);
    let own = info.event_pipe_create_provider_with(OWN_PROVIDER, move |change| {
        counter.fetch_add(u64::from(change.is_enabled), Ordering::Relaxed);
    })?;
    checks.same("provider's name", info.event_pipe_provider_name(own)?.as_str(), OWN_PROVIDER);
    let plain = info.event_pipe_create_provider("Every-Other-Question")?;
    checks.same("other provider's name", info.event_pipe_provider_name(plain)?.as_str(), "Every-Other-Question");
    let event = info.event_pipe_define_event(
        own,
        &EventDefinition {
            name: "Answer".into(),
            id: OWN_EVENT,
            version: 1,
            level: 4,
            fields: vec![("value".into(), 9)],
            ..EventDefinition::default()
        },
    )?;
    let provider = |name: &str, keywords| ProviderConfig { name: name.into(), keywords, level: 4, filter: None };
    let session = info.event_pipe_start_session(&[provider(OWN_PROVIDER, u64::MAX)], false)?;
    info.event_pipe_add_provider(session, &provider("Microsoft-Windows-DotNETRuntime", 1))?;
    info.event_pipe_write_event(event, &[OWN_DATA])?;
    info.force_gc()?;
    wait_until_some([&state.delivered, &state.own_events]);
    info.event_pipe_stop_session(session)?;
    // Events of the runtime's own sampler about other threads.
    let session = info.event_pipe_start_session(&[provider("Microsoft-DotNETCore-SampleProfiler", u64::MAX)], false)?;
    wait_until_some([&state.samples]);
    info.event_pipe_stop_session(session)?;
    checks.holds("stacks of other threads", (), state.samples.load(Ordering::Relaxed) > 0);
    checks.same("stacks without a thread", state.stacks_of_nobody.load(Ordering::Relaxed), 0);
    checks.holds("events of the runtime", (), state.delivered.load(Ordering::Relaxed) > 0);
    checks.same("own event", state.own_events.load(Ordering::Relaxed), 1);
    checks.holds("own provider was enabled", (), enabled.load(Ordering::Relaxed) > 0);
    Ok(())
}
