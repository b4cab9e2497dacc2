//! `wall`: samples of all threads by the clock, with what they wait for.
//!
//! Time on a processor is that of the engine's samples of CPU time; what else a thread did is read
//! from the system, without interrupting the thread: no call of the kernel ends early because of
//! us. The work is that of [`clrscope_agent_stacks::sampling`](clrscope_agent_stacks::sampling).

mod options;

use clr_profiler::{Callbacks, Events};
use clrscope_recording::layout::instrument;
use clrscope_agent_stacks::sampling::{Sampler, WallRequest};

use crate::instrument::Instrument;
use crate::services::context::{Beginning, Context};

pub(crate) use options::WallOptions;

/// The running instrument.
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

    /// The draining thread alone writes, and backs what it writes into.
    fn needs_frequent_help(&self) -> bool {
        false
    }

    fn begins(&self, beginning: Beginning) {
        self.sampler.begin(beginning == Beginning::Launch);
    }
}
