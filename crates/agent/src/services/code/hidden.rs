//! Return addresses that no frame pointer leads to, by the unwind information of the code that hides them.

use std::sync::Arc;

use clr_profiler::internals::HiddenReturn;

use super::{Body, CodeMap, Place};
use crate::services::stacks::hidden_returns::{Behind, HiddenReturns};
use crate::services::unwind::BodyStep;
use crate::services::unwind::arch::Base;

impl CodeMap {
    /// Knowledge of an address at which a body goes on: whether the body hides where its caller does.
    pub(crate) fn behind(&mut self, body: &Arc<Body>, address: usize) -> Behind {
        let BodyStep { step, is_certain } = self.step(body, address, true);
        let takes_place = body.took_over();
        let is_hidden = takes_place || (step.base == Base::StackPointer && step.frame_pointer.is_none());
        let bytes = usize::try_from(step.to_caller - 8).ok().filter(|_| is_certain && step.base == Base::StackPointer);
        match (is_hidden, bytes) {
            (false, _) => Behind::Nothing,
            (true, Some(bytes)) => Behind::Hidden(HiddenReturn::new(bytes, takes_place)),
            (true, None) => Behind::Unsure,
        }
    }

    /// Answers the doubts of those who follow frame pointers.
    pub(crate) fn settle(&mut self, hidden: &HiddenReturns) {
        hidden.settle(|doubt| {
            let behind = match self.place_of_call(doubt.address, doubt.time_ns) {
                Place::Method(body) => self.behind(&body, doubt.address),
                _ => Behind::Unsure,
            };
            // Code of the runtime, and what has no unwind information that can be believed.
            if behind == Behind::Unsure { doubt.bytes.map_or(Behind::Unsure, Behind::Seen) } else { behind }
        });
    }
}
