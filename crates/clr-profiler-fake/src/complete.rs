//! Tests that every callback can be played and reaches the profiler's method with its name, also in
//! a composition.

use std::sync::{Arc, Mutex, OnceLock};

use clr_profiler::callback_args::Inlining;
use clr_profiler::internals::NativeFrame;
use clr_profiler::{Callbacks, ClassId, Error, Events, HResult, ObjectId, Result, Setup};

use super::Event::*;
use super::{Event, FakeRuntime, Running, on};

/// A profiler that keeps the names of the callbacks it received (the runtime's names), and its
/// answer.
#[derive(Clone, Default)]
struct Notes {
    heard: Arc<Mutex<Vec<&'static str>>>,
    objects: Option<i32>,
    inlining: Inlining,
    refuses_precompiled: bool,
}

trait Given {
    fn given(notes: &Notes) -> Self;
}

impl Given for () {
    fn given(_notes: &Notes) -> Self {}
}

impl Given for bool {
    fn given(notes: &Notes) -> Self {
        !notes.refuses_precompiled
    }
}

impl Given for Inlining {
    fn given(notes: &Notes) -> Self {
        notes.inlining
    }
}

impl Given for Result<()> {
    fn given(notes: &Notes) -> Self {
        notes.objects.map_or(Ok(()), |code| Err(Error::new(HResult(code), "Notes")))
    }
}

macro_rules! note {
    ($($mode:ident $runtime_name:ident as $name:ident($($argument:ident: $type:ty),*) $(-> $answer:ty = $default:expr)?;)*) => {$(
        fn $name(&self $(, $argument: $type)*) $(-> $answer)? {
            $(let _ = $argument;)*
            self.heard.lock().unwrap().push(stringify!($runtime_name));
            Given::given(self)
        }
    )*};
}

impl Callbacks for Notes {
    clr_profiler::for_each_callback!(note);
}

impl Notes {
    fn drain(&self) -> Vec<&'static str> {
        std::mem::take(&mut self.heard.lock().unwrap())
    }
}

/// Callbacks that consist of this part only.
struct Wants<C>(C);

clr_profiler::compose_callbacks! { [C: Callbacks] Wants<C> { 0 } }

fn load<C: Callbacks + 'static>(part: C) -> (Running<Wants<C>>, Vec<Event>) {
    let (runtime, events) = FakeRuntime::new().one_of_each();
    let everything = Events::NOTIFICATIONS | Events::ENABLE_REJIT | Events::EVENT_PIPE | Events::CACHE_SEARCHES;
    (runtime.load_with(move |_| Ok((Wants(part), Setup::new(everything)))).unwrap(), events)
}

/// The name of an event, without its values.
fn name(event: &Event) -> String {
    let text = format!("{event:?}");
    text.split('(').next().unwrap_or_default().to_owned()
}

/// An event's name in the table. Two events that later interface levels replaced have a number
/// appended there.
fn in_the_table(name: &str) -> String {
    match name {
        "MovedReferences" | "SurvivingReferences" => format!("{name}2"),
        _ => name.to_owned(),
    }
}

macro_rules! runtime_names {
    ($($mode:ident $runtime_name:ident as $name:ident($($argument:ident: $type:ty),*) $(-> $answer:ty = $default:expr)?;)*) => {
        [$(stringify!($runtime_name)),*]
    };
}

#[test]
fn every_callback_of_the_table_can_be_played_and_reaches_the_method_of_its_name() {
    let notes = Notes::default();
    let (mut program, events) = load(notes.clone());
    let mut played: Vec<String> = Vec::new();
    for event in events {
        let name = in_the_table(&name(&event));
        notes.drain();
        let outcome = program.play(&[on(1, event)]).remove(0);
        assert!(outcome.notified, "{name}");
        assert_eq!(notes.drain(), [name.as_str()]);
        played.push(name);
    }
    let mut table = clr_profiler::for_each_callback!(runtime_names).to_vec();
    let mut declared: Vec<String> = Event::CALLBACKS.iter().map(|name| in_the_table(name)).collect();
    table.sort_unstable();
    declared.sort_unstable();
    played.sort_unstable();
    assert_eq!(played, table);
    assert_eq!(declared, table);
}

#[test]
fn every_part_of_a_composition_gets_every_callback() {
    let notes: Vec<Notes> = (0..9).map(|_| Notes::default()).collect();
    let part = |n: usize| notes[n].clone();
    let leaked: &'static Notes = Box::leak(Box::new(part(0)));
    let shared: Arc<dyn Callbacks> = Arc::new(part(1));
    let boxed: Box<dyn Callbacks> = Box::new(part(2));
    let parts = (
        leaked,
        shared,
        boxed,
        (Some(part(3)), None::<Notes>),
        vec![part(4), part(5)],
        (part(6), (OnceLock::from(part(7)), OnceLock::<Notes>::new()), part(8)),
    );
    let (mut program, events) = load(parts);
    for event in events {
        let name = in_the_table(&name(&event));
        notes.iter().for_each(|notes| drop(notes.drain()));
        program.play(&[on(1, event)]);
        for (n, notes) in notes.iter().enumerate() {
            assert_eq!(notes.drain(), [name.as_str()], "part {n}");
        }
    }
}

#[test]
fn parts_answer_together() {
    let refuses = || Notes { inlining: Inlining::Forbid, refuses_precompiled: true, ..Notes::default() };
    let fails = |code| Notes { objects: Some(code), ..Notes::default() };
    let asks =
        |event: &Event| matches!(event, JITInlining(..) | JITCachedFunctionSearchStarted(_) | ObjectReferences(..));
    let answers = |parts: [Notes; 3]| {
        let (mut program, events) = load(parts.to_vec());
        let steps: Vec<_> = events.into_iter().filter(asks).map(|event| on(1, event)).collect();
        let outcomes = program.play(&steps);
        assert!(parts.iter().all(|part| part.drain().len() == 3), "all parts are asked, whatever the others answered");
        (outcomes[0].answer, outcomes[1].answer, outcomes[2].hresult)
    };
    let nothing = || [Notes::default(), Notes::default(), Notes::default()];
    assert_eq!(answers(nothing()), (Some(true), Some(true), HResult::OK));
    for at in 0..3 {
        let mut parts = nothing();
        parts[at] = refuses();
        assert_eq!(answers(parts), (Some(false), Some(false), HResult::OK), "part {at} refuses");
    }
    assert_eq!(answers([Notes::default(), fails(-5), fails(-7)]), (Some(true), Some(true), HResult(-5)));
}

#[test]
fn a_part_that_walks_the_stack_itself_gets_the_frame() {
    #[derive(Clone, Default)]
    struct Walks(Arc<Mutex<u32>>);
    impl Callbacks for Walks {
        fn exception_thrown_in(&self, _exception: ObjectId<'_>, _frame: NativeFrame) {
            *self.0.lock().unwrap() += 1;
        }

        fn object_allocated_in(&self, _object: ObjectId<'_>, _class: ClassId, _frame: NativeFrame) {
            *self.0.lock().unwrap() += 10;
        }
    }
    let (walks, notes) = (Walks::default(), Notes::default());
    let (mut program, events) = load((notes.clone(), Some(&*Box::leak(Box::new(walks.clone())))));
    let wanted = |event: &Event| matches!(event, ExceptionThrown(_) | ObjectAllocated(..));
    let steps: Vec<_> = events.into_iter().filter(wanted).map(|event| on(1, event)).collect();
    program.play(&steps);
    assert_eq!((*walks.0.lock().unwrap(), notes.drain().len()), (11, 2));
}

#[test]
fn what_a_part_without_a_word_answers_is_the_default_of_the_table() {
    struct Silent;
    impl Callbacks for Silent {}
    let (mut silent, events) = load(Silent);
    let (mut empty, _) = load(Vec::<Silent>::new());
    for event in events {
        let steps = [on(1, event)];
        let (silent, empty) = (silent.play(&steps).remove(0), empty.play(&steps).remove(0));
        assert_eq!((silent.answer, silent.hresult), (empty.answer, empty.hresult), "{steps:?}");
    }
}
