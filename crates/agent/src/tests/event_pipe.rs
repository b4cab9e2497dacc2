//! The session that delivers the runtime's own events: begun when the runtime is up, stopped and
//! begun again with the recording.

use clr_profiler::Events;
use clr_profiler::callback_args::SuspendReason;
use clr_profiler_fake::{Event, FakeRuntime, Running, on};
use clrscope_recording::events::{Kind, OwnedRecord, Tag};
use clrscope_testkit::wait_until;

use super::Session;
use crate::Agent;

/// Number, generation, reason and type of a collection, as its begin packs them.
fn started(number: u32) -> Vec<u8> {
    [number, 2, 1, 0].iter().flat_map(|word| word.to_le_bytes()).collect()
}

fn open_sessions(program: &Running<Agent>) -> usize {
    program.sessions().iter().filter(|session| session.is_open).count()
}

/// The numbers of the collections that the runtime's events reported.
fn numbers(session: &Session) -> Vec<Option<u64>> {
    let process = session.process();
    let chunks = process.events.iter().flat_map(|arena| &arena.chunks);
    let records: Vec<_> = chunks.flat_map(|chunk| OwnedRecord::all(&chunk.bytes.load())).collect();
    let of_start = records.iter().map(OwnedRecord::record).filter(|record| record.kind == Kind::GC_STARTED);
    of_start.map(|record| record.number(Tag::NUMBER)).collect()
}

/// The helper thread of a recording that stays stopped keeps hooks off in this whole process, in
/// agents of other tests too.
fn leave(program: &mut Running<Agent>) {
    assert!(program.profiler().start_again(), "it starts again");
    program.play(&[on(0, Event::Shutdown())]);
}

#[test]
fn the_session_begins_and_ends_with_the_recording() {
    let session = Session::new();
    let runtime = FakeRuntime::new();
    let provider = runtime.runtime_provider();
    let mut program = session.load(runtime, "gc", Events::NONE).expect("is loaded");
    wait_until("a session begins", || open_sessions(&program) == 1);
    let wanted = [("Microsoft-Windows-DotNETRuntime".to_owned(), 1, 4)];
    assert_eq!(program.sessions()[0].providers, wanted);
    let collect = |program: &mut Running<Agent>, number| {
        let event = Event::EventPipeEventDelivered(provider, 1, started(number));
        let suspension = Event::RuntimeSuspendStarted(SuspendReason::Gc);
        program.play(&[on(1, suspension), on(1, event), on(1, Event::RuntimeResumeFinished())]);
    };
    collect(&mut program, 1);
    assert!(program.profiler().stop(), "it stops");
    assert_eq!(open_sessions(&program), 0, "no session is left open");
    collect(&mut program, 2);
    assert!(program.profiler().start_again(), "it starts again");
    wait_until("the next session begins", || open_sessions(&program) == 1);
    assert_eq!(program.sessions().len(), 2);
    collect(&mut program, 3);
    assert!(program.profiler().stop(), "it stops again");
    assert_eq!((open_sessions(&program), numbers(&session)), (0, vec![Some(1), Some(3)]));
    leave(&mut program);
}

#[test]
fn without_an_instrument_that_asks_there_is_no_session() {
    let session = Session::new();
    let mut program = session.load(FakeRuntime::new(), "exceptions", Events::NONE).expect("is loaded");
    assert!(program.profiler().stop(), "it stops");
    assert!(program.sessions().is_empty());
    // It would tell of an event source by which the program marks parts.
    assert!(program.events().contains(Events::EVENT_PIPE));
    leave(&mut program);
}
