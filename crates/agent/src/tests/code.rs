//! The map of code: what the runtime is asked about, and what not.

use std::sync::Arc;
use std::sync::mpsc::channel;

use clr_profiler::{Callbacks as _, ModuleId};
use clr_profiler_fake::{Event, FakeRuntime, Running, on};
use clrscope_agent_stacks::code::{CodeMap, Place, SharedCodeFeed};

use super::Session;
use crate::Agent;
use crate::services::context::Beginning;

fn asked(program: &Running<Agent>) -> u64 {
    let unanswered = program.unanswered();
    unanswered.iter().find(|(query, _)| *query == "GetFunctionFromIP3").map_or(0, |(_, times)| *times)
}

/// A map of code with its feed, in a program under the agent.
fn map_in_program(session: &Session) -> (Running<Agent>, CodeMap, Arc<SharedCodeFeed>) {
    let request = session.request("exceptions");
    let (give, given) = channel();
    let feed = Arc::new(SharedCodeFeed::default());
    let of_map = Arc::clone(&feed);
    let program = FakeRuntime::new()
        .load_with(move |info| {
            let (agent, setup) = Agent::start(info, &request, Beginning::Launch)?;
            let map = CodeMap::new(info, &agent.running().functions, &of_map, Arc::default());
            give.send(map).expect("a test that waits");
            Ok((agent, setup))
        })
        .expect("is loaded");
    (program, given.recv().expect("a map"), feed)
}

/// Programs under `cpu` and `wall` died now and then in their first milliseconds, 8 of 300 runs at
/// the highest rate on .NET 9: a word that led to the beginning of a method that was about to be
/// called for the first time was taken for a return address, and the runtime reads in front of its
/// table where it is asked about the gap before that method.
#[test]
fn the_runtime_is_asked_about_no_gap_before_the_beginning_of_a_method() {
    let session = Session::new();
    let (mut program, mut map, _) = map_in_program(&session);
    // call rax, and the gap up to a method that begins at a multiple of 16.
    let mut code = [0xCC_u8; 32];
    code[5..7].copy_from_slice(&[0xFF, 0xD0]);
    let start = code.as_ptr().expose_provenance();
    assert!(!map.look(|map| map.is_return_address(start + 16, 1)));
    assert!(matches!(map.look(|map| map.place_of_call(start + 16, 1)), Place::Nowhere));
    assert_eq!(asked(&program), 0, "no call returns there");
    assert!(matches!(map.look(|map| map.place_of_call(start + 7, 1)), Place::Nowhere));
    assert_eq!(asked(&program), 1, "a call returns there");
    // What was not asked about as a word of a stack may be where a thread is interrupted.
    assert!(matches!(map.look(|map| map.place_at(start + 15, 1)), Place::Nowhere));
    assert_eq!(asked(&program), 2);
    program.play(&[on(0, Event::Shutdown())]);
}

/// Programs that unload assemblies died under `cpu`, 3 of 16 runs with sixty unloads at the highest
/// rate on .NET 8: the thread that finds out where samples are asked about methods while these were
/// taken down.
#[test]
fn the_runtime_is_asked_nothing_from_the_begin_of_an_unload_until_the_map_is_told_of_its_end() {
    let session = Session::new();
    let (mut program, mut map, feed) = map_in_program(&session);
    let code = [0xCC_u8; 64];
    let start = code.as_ptr().expose_provenance();
    let ask = |map: &mut CodeMap, nth: usize| {
        map.look(|map| map.place_at(start + nth, u64::MAX));
        asked(&program)
    };
    let callbacks = feed.in_use().expect("a feed");
    // SAFETY: only compared.
    let module = unsafe { ModuleId::from_raw(7) };
    assert_eq!(ask(&mut map, 1), 1);
    map.place_at(start + 2, u64::MAX);
    assert_eq!(asked(&program), 1, "nothing keeps unloads waiting");
    callbacks.module_unload_started(module);
    map.update();
    assert_eq!(ask(&mut map, 3), 1, "it is under way");
    callbacks.module_unload_finished(module, Ok(()));
    assert_eq!(ask(&mut map, 4), 1, "the map may have code of it");
    map.update();
    assert_eq!(ask(&mut map, 5), 2);
    program.play(&[on(0, Event::Shutdown())]);
}
