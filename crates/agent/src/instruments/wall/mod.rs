//! `wall`: wall-clock samples of all threads, with the reason of each wait.
//!
//! Time on a processor comes from the sampling engine's samples of CPU time. The other states of a
//! thread are read from the system without interrupting the thread, so no system call ends early
//! because of us. [`clrscope_agent_stacks::sampling`](clrscope_agent_stacks::sampling) does the
//! work.

mod options;

use clr_profiler::{Callbacks, Events};
use clrscope_recording::layout::instrument;
use clrscope_agent_stacks::sampling::{Sampler, WallRequest};

use crate::instrument::Instrument;
use crate::services::context::{Beginning, Context};

pub(crate) use options::WallOptions;

/// The instrument `wall` while it runs.
pub(crate) struct Wall {
    sampler: &'static Sampler,
}

impl Callbacks for Wall {}

impl Instrument for Wall {
    type Options = WallOptions;

    fn start(options: &WallOptions, context: &Context) -> Result<Self, String> {
        let store = context.sample_store(instrument::WALL, options.max_bytes)?;
        let sampler = context.sampler()?;
        sampler.want_wall(WallRequest { store, interval_ns: options.interval_ns });
        Ok(Self { sampler })
    }

    fn events(&self) -> Events {
        self.sampler.events()
    }

    /// Only the draining thread writes, and it backs the memory that it writes to.
    fn needs_frequent_help(&self) -> bool {
        false
    }

    fn begins(&self, beginning: Beginning) {
        self.sampler.begin(beginning == Beginning::Launch);
    }
}
