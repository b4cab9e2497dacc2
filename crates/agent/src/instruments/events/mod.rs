//! `events`: every callback of the runtime, with names. The callbacks of each thread are in order.
//!
//! | module | what it holds |
//! |---|---|
//! | [`options`] | the groups, and their cost |
//! | [`from_table`] | callbacks whose record follows from the table of callbacks |
//! | [`callbacks`] | callbacks that are recorded by hand |
//! | [`objects`] | objects per class |

#[macro_use]
mod from_table;

mod callbacks;
mod objects;
mod options;

use clr_profiler::{Events as Mask, FunctionId, HResult};
use clrscope_recording::events::{Kind, Tag, Value};
use clrscope_recording::layout::instrument;
use clrscope_recording::writer::{ProcessWriter, monotonic_ns};
use clrscope_agent_base::helper::Task;

use crate::instrument::Instrument;
use crate::services::context::Beginning;
use crate::services::context::Context;
use crate::services::dictionary::Dictionary;
use crate::services::event_log::EventLog;

use objects::ClassCounts;
pub(crate) use options::EventsOptions;

/// The instrument `events` while it runs.
pub(crate) struct Events {
    writer: &'static ProcessWriter,
    log: &'static EventLog,
    names: Dictionary,
    options: EventsOptions,
    kinds: [bool; 256],
    live: Option<ClassCounts>,
}

impl Events {
    fn wants(&self, kind: Kind) -> bool {
        self.kinds[usize::from(kind.0)]
    }

    /// Whether events about this function are wanted: the filters are the same for all instruments.
    fn wants_function(&self, kind: Kind, function: FunctionId) -> bool {
        self.wants(kind) && self.names.known(function).passes
    }

    fn write(&self, kind: Kind, fields: &[(Tag, Value<'_>)]) {
        self.log.write(kind, fields);
    }
}

/// A status as two fields: its number and, for a failure, its name.
fn outcome(status: &clr_profiler::Result<()>) -> [(Tag, Value<'static>); 2] {
    let (code, name) = match status {
        Ok(()) => (HResult::OK, ""),
        Err(error) => (error.hresult(), error.name().unwrap_or("")),
    };
    [(Tag::RESULT, Value::Number(u64::from(code.0 as u32))), (Tag::RESULT_NAME, Value::Text(name))]
}

impl Instrument for Events {
    type Options = EventsOptions;

    fn start(options: &EventsOptions, context: &Context) -> Result<Self, String> {
        let log = EventLog::create(context, instrument::EVENTS, options.max_bytes)?;
        for remark in options.remarks() {
            context.writer.note(monotonic_ns(), remark);
        }
        let needs_count = options.has(clrscope_recording::events::Group::Objects);
        Ok(Self {
            writer: context.writer,
            log,
            names: Dictionary::new(&context.info, &context.functions, log),
            options: options.clone(),
            kinds: options.kinds(),
            live: needs_count.then(ClassCounts::new),
        })
    }

    fn events(&self) -> Mask {
        self.options.mask()
    }

    fn begins(&self, beginning: Beginning) {
        let kind = match beginning {
            Beginning::Launch => Kind::INITIALIZE,
            Beginning::Attach => Kind::INITIALIZE_FOR_ATTACH,
        };
        if self.wants(kind) {
            self.write(kind, &[]);
        }
    }

    fn tasks(&self) -> Vec<Box<dyn Task>> {
        vec![self.log.task()]
    }

    fn detach_in_child(&self) {
        self.log.detach_in_child();
    }
}
