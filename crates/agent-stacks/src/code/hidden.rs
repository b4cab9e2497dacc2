//! Return addresses that no frame pointer leads to, found by the unwind information of the code
//! that hides them.

use std::sync::Arc;

use clr_profiler::internals::HiddenReturn;

use super::{Body, CodeMap, Place};
use crate::awaiters::Questions;
use crate::stacks::hidden_returns::{CallerReturn, HiddenReturns, UncertainReturn};
use crate::unwind::BodyStep;
use crate::unwind::arch::Base;

impl CodeMap {
    /// What is known about `address`, a return address in `body`: whether the body's own return
    /// address is hidden from frame pointers there.
    pub fn behind(&mut self, body: &Arc<Body>, address: usize) -> CallerReturn {
        let BodyStep { step, is_certain } = self.step(body, address, true);
        let takes_place = body.took_over();
        let is_hidden = takes_place || (step.base == Base::StackPointer && step.frame_pointer.is_none());
        let bytes = usize::try_from(step.to_caller - 8).ok().filter(|_| is_certain && step.base == Base::StackPointer);
        match (is_hidden, bytes) {
            (false, _) => CallerReturn::Nothing,
            (true, Some(bytes)) => CallerReturn::Hidden(HiddenReturn::new(bytes, takes_place)),
            (true, None) => CallerReturn::Unsure,
        }
    }

    /// Answers the open queries of callbacks that follow frame pointers, except those for which no
    /// query of the runtime is allowed now.
    pub fn settle(&mut self, hidden: &HiddenReturns) {
        self.look(|map| {
            if map.questions() == Questions::Asked {
                hidden.settle(|doubt| map.answer(doubt));
            }
        });
    }

    fn answer(&mut self, doubt: UncertainReturn) -> CallerReturn {
        let behind = match self.place_of_call(doubt.address, doubt.time_ns) {
            Place::Method(body) => self.behind(&body, doubt.address),
            _ => CallerReturn::Unsure,
        };
        // Code of the runtime, or code without reliable unwind information.
        if behind == CallerReturn::Unsure {
            doubt.bytes.map_or(CallerReturn::Unsure, CallerReturn::Seen)
        } else {
            behind
        }
    }
}
