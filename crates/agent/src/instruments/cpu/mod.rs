//! `cpu`: samples of the code on which threads spend CPU time.
//!
//! There are no hooks and no changed code, so precompiled code stays in use.
//! [`clrscope_agent_stacks::sampling`](clrscope_agent_stacks::sampling) does the work.

mod options;

use clr_profiler::{Callbacks, Events};
use clrscope_recording::layout::instrument;
use clrscope_agent_stacks::sampling::{CpuRequest, Sampler};

use crate::instrument::Instrument;
use crate::services::context::{Beginning, Context};

pub(crate) use options::CpuOptions;

/// The instrument `cpu` while it runs.
pub(crate) struct Cpu {
    sampler: &'static Sampler,
}

impl Callbacks for Cpu {}

impl Instrument for Cpu {
    type Options = CpuOptions;

    fn start(options: &CpuOptions, context: &Context) -> Result<Self, String> {
        let store = context.sample_store(instrument::CPU, options.max_bytes)?;
        let sampler = context.sampler()?;
        let (interval_ns, engine, kernel) = (options.interval_ns, options.engine, options.kernel);
        sampler.want_cpu(CpuRequest { store, interval_ns, engine, kernel });
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
