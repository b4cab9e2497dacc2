//! The async methods of the process whose awaits are followed.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use clr_profiler::{FunctionId, ModuleId, ProfilerInfo};
use clrscope_agent_base::functions::Functions;
use clrscope_recording::events::{Kind, Tag};

use super::place::MethodPlaces;
use super::recorder::Recorder;
use crate::services::kept_code::Method;

/// The methods, to the end of the process, since their code refers to their places.
static METHODS: Mutex<Option<HashMap<Method, &'static MethodPlaces>>> = Mutex::new(None);

fn methods() -> MutexGuard<'static, Option<HashMap<Method, &'static MethodPlaces>>> {
    METHODS.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The places of a method; `None` if the method is not followed.
pub(super) fn places_of(method: Method) -> Option<&'static MethodPlaces> {
    methods().as_ref()?.get(&method).copied()
}

/// All methods that are followed.
pub(super) fn all() -> Vec<(Method, &'static MethodPlaces)> {
    let methods = methods();
    methods.iter().flatten().map(|(method, places)| (*method, *places)).collect()
}

/// Notes the places of a method before its code refers to them.
pub(super) fn insert(method: Method, places: &'static MethodPlaces) {
    methods().get_or_insert_default().insert(method, places);
}

/// Makes the places of a method known to a recording. A function of the method is about to be
/// compiled, or was compiled before the recording began. Call only where the runtime may be
/// queried.
pub(super) fn announce(
    places: &MethodPlaces,
    (info, functions): (&ProfilerInfo, &Functions),
    recorder: &Recorder,
    (module, function): (ModuleId, FunctionId),
) {
    let recording = recorder.number();
    if places.places().iter().all(|place| place.is_known_to(recording)) {
        return;
    }
    let index = functions.noted(function).index;
    for place in places.places() {
        let stack = recorder.stacks.number_alone((index, place.il_offset));
        let awaited = place.awaited(|token| {
            functions.names().method(info, module, token).map(|method| method.name).unwrap_or_default()
        });
        recorder.log.write(Kind::AWAIT_PLACE, &[(Tag::STACK_NODE, stack.into()), (Tag::NAME, (&*awaited).into())]);
        place.know(recording, stack, (function, index));
    }
}
