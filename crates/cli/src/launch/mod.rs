//! Starts a program under the agent: its file, environment, signals and exit code.

mod child;
mod debugger;
mod environment;
mod library;
mod program;
mod signals;
mod slot;
mod watch;

pub(crate) use child::{ProgramEnd, Stdout, start};
pub(crate) use debugger::{Debugger, tracer_of};
pub(crate) use environment::{
    Obstacle, OtherProfiler, agent_variables, disabled_by, listed_agent, obstacles, profiler_names, profiler_variables,
};
pub(crate) use library::{LOAD_LOG_VARIABLE, LoadLogEntry, check as check_library, parse_class_id, read_load_log};
pub(crate) use program::{Program, resolve};
pub(crate) use signals::Signals;
pub(crate) use slot::{Slot, alternative, left_by, refusal as needs_main_slot};
pub(crate) use watch::{Outcome, Watch};
