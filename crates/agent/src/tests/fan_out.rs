//! Nothing that the runtime says is dropped on the way to an instrument, by name.

use std::collections::BTreeSet;

use clr_profiler::Events;
use clr_profiler_fake::{Event, FakeRuntime, on};
use clrscope_recording::events::{Kind, OwnedRecord};

use super::Session;

macro_rules! runtime_names {
    ($($mode:ident $runtime_name:ident as $name:ident($($argument:ident: $type:ty),*) $(-> $answer:ty = $default:expr)?;)*) => {
        [$(stringify!($runtime_name)),*]
    };
}

/// Callbacks that no instrument receives: the agent answers before there is any, or later levels of
/// the interface replaced them.
const NOT_PASSED_ON: [&str; 5] =
    ["Initialize", "InitializeForAttach", "LoadAsNotificationOnly", "MovedReferences", "SurvivingReferences"];

#[test]
fn the_kinds_of_events_are_the_callbacks_of_the_table() {
    let callbacks: BTreeSet<&str> =
        clr_profiler::for_each_callback!(runtime_names).into_iter().chain(NOT_PASSED_ON).collect();
    // Numbers up to 97 are places in the interface's table.
    let kinds: BTreeSet<&str> = Kind::all().filter(|kind| kind.0 <= 97).filter_map(Kind::name).collect();
    assert_eq!(kinds, callbacks);
}

#[test]
fn every_callback_reaches_an_instrument() {
    let session = Session::new();
    let (runtime, mut events) = FakeRuntime::new().one_of_each();
    let end = events.iter().position(|event| *event == Event::Shutdown()).expect("an end");
    let end = events.remove(end);
    let every = Events::NOTIFICATIONS | Events::ENABLE_REJIT | Events::EVENT_PIPE;
    let mut program = session.load(runtime, "events:all,allocations=on", every).expect("is loaded");
    for event in events.into_iter().chain([end]) {
        let outcome = program.play(&[on(1, event.clone())]);
        assert!(outcome[0].notified, "{event:?}");
    }
    let process = session.process();
    let chunks = process.events.iter().flat_map(|arena| &arena.chunks);
    let recorded: BTreeSet<&str> = chunks
        .flat_map(|chunk| OwnedRecord::all(&chunk.bytes.load()))
        .filter_map(|record| record.record().kind.name())
        .collect();
    let callbacks = BTreeSet::from(clr_profiler::for_each_callback!(runtime_names));
    let missing: Vec<_> = callbacks.difference(&recorded).collect();
    assert!(missing.is_empty(), "not recorded: {missing:?}; lost: {:?}", process.losses);
}
