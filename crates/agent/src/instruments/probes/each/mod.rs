//! Records each call of probed methods, with arguments and results if requested.
//!
//! | module | what it holds |
//! |---|---|
//! | [`code`] | the inserted code that reports a call, and the functions that it calls |
//! | [`calls`] | the ring of calls, and the code that writes them |
//! | [`pending`] | types of values in calls, whose memory layouts are found while the program runs
//! |

mod calls;
mod code;
mod pending;

use std::sync::OnceLock;

use clr_profiler::metadata::MetadataImport;
use clr_profiler::metadata::signature::Type;
use clr_profiler::{FunctionId, ModuleId, ProfilerInfo, Token};
use clrscope_recording::writer::MethodLanes;
use clrscope_agent_values::arguments;
use clrscope_agent_values::open_types::open_types;
use clrscope_agent_values::plan::Plan;
use clrscope_agent_values::probed::{self, Handing};
use clrscope_agent_values::types::Types;

use crate::instruments::probes::options::Each;
use crate::services::context::Context;

pub(super) use calls::Calls;
pub(super) use code::{EachSignatures, edits};
pub(super) use pending::LookIntoTypes;

/// Records each call of probed methods.
pub(super) struct EachCall {
    pub(super) calls: &'static Calls,
    /// Types of the program; `None` if values are not recorded.
    pub(super) types: Option<&'static Types>,
}

impl EachCall {
    /// Makes the ring, and if values are recorded the dictionary of types.
    ///
    /// # Errors
    /// A sentence for the user, when a file could not be made.
    pub(super) fn start(each: &Each, context: &Context) -> Result<Self, String> {
        let types = match each.values {
            None => None,
            Some(values) => {
                arguments::open_objects(each.depth);
                Some(context.types(!values.types_only)?)
            }
        };
        let types_only = each.values.is_some_and(|values| values.types_only);
        Ok(Self { calls: Calls::publish(context, each.last, types_only)?, types })
    }

    /// Creates the data of a method whose calls are recorded under this number. `typed` has the
    /// types of its values that contain type parameters, with their tokens.
    pub(super) fn method(&self, number: u32, lanes: MethodLanes, typed: Vec<(Type, Token)>) -> &'static WatchedMethod {
        let (takes_values, handing, plan) = (self.types.is_some(), OnceLock::new(), OnceLock::new());
        // The method's code contains this address, and may be called for ever.
        let recording = self.calls.recording;
        Box::leak(Box::new(WatchedMethod { number, lanes, recording, takes_values, typed, handing, plan }))
    }

    /// Tokens of those types of a method's values that contain type parameters. Values of these
    /// types are passed together with the actual type. Types for which the runtime returns no token
    /// are left out; their values remain unknown.
    pub(super) fn type_tokens(
        &self,
        info: &ProfilerInfo,
        (module, method): (ModuleId, Token),
        metadata: &MetadataImport,
    ) -> Vec<(Type, Token)> {
        if self.types.is_none() {
            return Vec::new();
        }
        let token = |open: &Type| info.type_token(module, &open.to_bytes()?).ok();
        open_types(metadata, method).into_iter().filter_map(|open| token(&open).map(|token| (open, token))).collect()
    }
}

/// A method whose every call is recorded. Inserted code contains the address of this value, so it
/// is created once and never freed.
pub(super) struct WatchedMethod {
    number: u32,
    lanes: MethodLanes,
    /// Number of the recording. The parts of the recording are dropped when it is over; the method
    /// is not.
    recording: u64,
    takes_values: bool,
    /// Types of values that stand for other types, with their tokens in the module.
    typed: Vec<(Type, Token)>,
    /// How the code passes values, once the code is made.
    handing: OnceLock<Option<Handing>>,
    /// The plan for reading the method's values. Set when one of its functions is compiled; before
    /// that there are no calls.
    plan: OnceLock<Option<Plan>>,
}

impl WatchedMethod {
    /// Call it when a function of the method is about to be compiled.
    pub(super) fn compiles(&self, types: &Types, function: FunctionId) {
        self.plan.get_or_init(|| probed::prepare(types, function, self.number));
        if !self.typed.is_empty() {
            types.know_type_arguments(function);
        }
    }

    /// How the code passes values, and the plan for reading them, where both are known. For hooks.
    fn values(&self) -> Option<(&Handing, &Plan)> {
        Some((self.handing.get()?.as_ref()?, self.plan.get()?.as_ref()?))
    }
}
