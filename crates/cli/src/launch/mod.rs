//! Starting a program under the agent: which file, which environment, which signals, which exit code.

mod child;
mod environment;
mod program;
mod signals;

pub(crate) use child::{Ended, Stdout, start};
pub(crate) use environment::{Obstacle, agent_variables, obstacles};
pub(crate) use program::{Program, resolve};
pub(crate) use signals::Signals;
