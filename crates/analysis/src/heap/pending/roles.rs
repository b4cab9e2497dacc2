//! Roles of a snapshot's types in chains of awaits, determined by names of types and fields.
//!
//! The names are those of .NET 8, 9 and 10 in dotnet/runtime (`System.Private.CoreLib`;
//! `System.Threading.Channels` and `System.Net.Sockets` for waits of channels and sockets).

use std::sync::Arc;

use clrscope_recording::model::HeapType;

use super::super::classes::Classes;
use super::names::method_of_box;

/// Fields in which an object keeps its continuations. For a struct within the object, its slots
/// have the name of the struct's field.
const CONTINUATIONS: [&str; 8] = [
    // Tasks.
    "m_continuationObject",
    // Sources of value tasks: channels' operations; those with a `ManualResetValueTaskSourceCore`.
    "_continuation",
    "_continuationState",
    "_mrvtsc",
    "_core",
    "_valueTaskSource",
    // Pipes.
    "_readerAwaitable",
    "_writerAwaitable",
];

/// Field with the continuation's state where the continuation itself is the same for all:
/// `SocketAsyncEventArgs`, as Kestrel's transport uses it.
const USER_TOKEN: &str = "_userToken";

/// Field of an async iterator with the source of its consumer's value task.
pub(super) const ITERATOR_PROMISE: &str = "<>v__promiseOfValueOrEnd";

/// The part that objects of a class have in a chain.
#[derive(Debug, Clone)]
pub(super) enum Part {
    /// Box of the state machine of an async method.
    Method(Arc<str>),
    /// A wait object. A thread blocks on the task that has this object as its continuation.
    BlockedThread,
    /// An operation that runs its continuations when it is completed.
    Source,
    /// An object that refers to the actual continuation: a delegate, a list.
    Link,
    /// No part in a chain.
    None,
}

/// Role of a class.
#[derive(Debug, Clone)]
pub(super) struct Role {
    pub(super) part: Part,
    /// Slots that refer to continuations.
    pub(super) onward: Vec<u32>,
    /// Whether every element of the object refers to a continuation.
    pub(super) is_array: bool,
    /// Slots of the state machine of a box.
    pub(super) machine: Vec<u32>,
}

/// Roles of the classes of a snapshot, by class number.
pub(super) fn roles(classes: &Classes<'_>) -> Vec<Role> {
    (0..classes.len() as u32).map(|class| role(&classes.name(class), classes.get(class))).collect()
}

fn role(name: &str, class: &HeapType) -> Role {
    let slots = |is_it: &dyn Fn(&str) -> bool| -> Vec<u32> {
        (0..).zip(&class.fields).filter(|(_, field)| is_it(field)).map(|(slot, _)| slot).collect()
    };
    let has_own = class.fields.iter().any(|field| field == "_continuation");
    let continuations =
        slots(&|field| CONTINUATIONS.contains(&field) || field == ITERATOR_PROMISE || (has_own && field == USER_TOKEN));
    let role = |part, onward| Role { part, onward, is_array: false, machine: Vec::new() };
    if let Some(method) = method_of_box(name) {
        let machine = slots(&|field| field == "StateMachine");
        return Role { machine, ..role(Part::Method(method.into()), continuations) };
    }
    if name.ends_with("SetOnInvokeMres") {
        return role(Part::BlockedThread, Vec::new());
    }
    if name == "System.Collections.Generic.List<object>" {
        return role(Part::Link, slots(&|field| field == "_items"));
    }
    if name == "object[]" {
        return Role { is_array: true, ..role(Part::Link, Vec::new()) };
    }
    // A continuation that is an action, or a task to be run.
    let is_continuation = name.starts_with("System.Threading.Tasks.") && name.ends_with("Continuation");
    if is_continuation || name.ends_with("AsyncMethodBuilderCore.ContinuationWrapper") {
        return role(Part::Link, slots(&|field| ["m_action", "m_task", "_continuation"].contains(&field)));
    }
    if !continuations.is_empty() {
        return role(Part::Source, continuations);
    }
    let target = slots(&|field| field == "_target");
    if class.fields.iter().any(|field| field == "_invocationList") || name.starts_with("System.Action") {
        return role(Part::Link, target);
    }
    role(Part::None, Vec::new())
}
