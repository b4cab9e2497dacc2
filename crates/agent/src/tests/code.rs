//! The map of code: what the runtime is asked about, and what not.

use std::sync::mpsc::channel;

use clr_profiler_fake::{Event, FakeRuntime, Running, on};
use clrscope_agent_stacks::code::{CodeMap, Place, SharedCodeFeed};

use super::Session;
use crate::Agent;
use crate::services::context::Beginning;

fn asked(program: &Running<Agent>) -> u64 {
    let unanswered = program.unanswered();
    unanswered.iter().find(|(query, _)| *query == "GetFunctionFromIP3").map_or(0, |(_, times)| *times)
}

/// Programs under `cpu` and `wall` died now and then in their first milliseconds, 8 of 300 runs at the highest rate on .NET 9: a word that led
/// to the beginning of a method that was about to be called for the first time was taken for a return address, and the runtime reads
/// in front of its table where it is asked about the gap before that method.
#[test]
fn the_runtime_is_asked_about_no_gap_before_the_beginning_of_a_method() {
    let session = Session::new();
    let request = session.request("exceptions");
    let (give, given) = channel();
    let mut program = FakeRuntime::new()
        .load_with(move |info| {
            let (agent, setup) = Agent::start(info, &request, Beginning::Launch)?;
            let map =
                CodeMap::new(info, &agent.running().functions, &SharedCodeFeed::default(), std::sync::Arc::default());
            give.send(map).expect("a test that waits");
            Ok((agent, setup))
        })
        .expect("is loaded");
    let mut map = given.recv().expect("a map");
    // call rax, and the gap up to a method that begins at a multiple of 16.
    let mut code = [0xCC_u8; 32];
    code[5..7].copy_from_slice(&[0xFF, 0xD0]);
    let start = code.as_ptr().expose_provenance();
    assert!(!map.is_return_address(start + 16, 1));
    assert!(matches!(map.place_of_call(start + 16, 1), Place::Nowhere));
    assert_eq!(asked(&program), 0, "no call returns there");
    assert!(matches!(map.place_of_call(start + 7, 1), Place::Nowhere));
    assert_eq!(asked(&program), 1, "a call returns there");
    // What was not asked about as a word of a stack may be where a thread is interrupted.
    assert!(matches!(map.place_at(start + 15, 1), Place::Nowhere));
    assert_eq!(asked(&program), 2);
    program.play(&[on(0, Event::Shutdown())]);
}
