//! `wall`: samples of all threads by the clock, with what they wait for.
//!
//! Time on a processor is that of the engine's samples of CPU time; what else a thread did is read from the system, without interrupting the
//! thread: no call of the kernel ends early because of us. The work is that of
//! [`services::sampling`](crate::services::sampling).

mod options;

use clr_profiler::{Callbacks, Events};
use clrscope_recording::layout::instrument;
use clrscope_recording::writer::Keep;

use crate::instrument::Instrument;
use crate::services::context::{Beginning, Context};
use crate::services::sampling::{Sampler, WallWanted};

pub(crate) use options::WallOptions;

/// The running instrument.
pub(crate) struct Wall {
    sampler: &'static Sampler,
}

impl Callbacks for Wall {}

impl Instrument for Wall {
    type Options = WallOptions;

    fn start(options: &WallOptions, context: &Context) -> Result<Self, String> {
        let store = context
            .writer
            .create_events(instrument::WALL, options.max_bytes, Keep::First)
            .map_err(|error| format!("no memory for samples: {error}"))?;
        let sampler = context.sampler()?;
        sampler.want_wall(WallWanted { store, interval_ns: options.interval_ns });
        Ok(Self { sampler })
    }

    fn events(&self) -> Events {
        self.sampler.events()
    }

    fn begins(&self, beginning: Beginning) {
        self.sampler.begin(beginning == Beginning::Launch);
    }
}
