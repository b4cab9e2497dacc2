//! Attaching the agent to a program that runs: who may, where agent and recording lie for the
//! program, and the wait for the end.
//!
//! 1. [`target`] looks whether the process can be attached to, before anything is made.
//! 2. [`place`] puts the agent's file and the recording directory where the process can see them,
//!    with its rights.
//! 3. [`recording`] has the runtime load the agent, or wakes one that [sleeps](dormant) there,
//!    waits for the end, and sees to it that the agent leaves.
//! 4. [`refusal`] says what a runtime's refusal means.
//!
//! [`moment`] has what recordings need that are not kept.

pub(crate) mod dormant;
mod moment;
mod place;
mod powers;
mod recording;
mod refusal;
mod target;

pub(crate) use moment::moment_folder;
pub(crate) use recording::{AttachPlan, LiveRecording, Until, record};
pub(crate) use target::Target;
