//! Attaches the agent to a running program: permissions, the places of agent and recording, and the
//! wait for the end.
//!
//! 1. [`target`] checks whether the process can be attached to, before any file is created.
//! 2. [`place`] puts the agent's file and the recording directory where the process can access them
//!    with its own rights.
//! 3. [`recording`] makes the runtime load the agent, or wakes a [dormant](dormant) one, waits for
//!    the end, and makes sure that the agent detaches.
//! 4. [`refusal`] explains why a runtime refused the agent.
//!
//! [`moment`] has the code for temporary recordings.

pub(crate) mod dormant;
mod moment;
mod place;
mod powers;
mod recording;
mod refusal;
mod target;

pub(crate) use moment::moment_folder;
pub(crate) use recording::{AttachPlan, AttachedRecording, LiveRecording, Until, record};
pub(crate) use refusal::Present;
pub(crate) use target::{Target, plain_name};
