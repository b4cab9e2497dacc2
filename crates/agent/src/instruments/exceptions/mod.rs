//! `exceptions`: the story of each exception: what it says, where it was thrown, who was asked, who
//! caught it.
//!
//! Nothing is done until something is thrown, and no hooks are needed. The callbacks are recorded as they
//! come, in the same form as those of `events`, but without those that say nothing new (the end of a
//! search or unwind in a function) and with times only where somebody asks for them; right behind each
//! throw stands a record with what the exception says and the stack. Who belongs to whom is found out when
//! the recording is read.

mod options;
mod places;
mod recent;

use std::ops::ControlFlow;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use clr_profiler::{
    Error, Events, ExceptionReader, FunctionId, ModuleId, ObjectId, PerThread, Profiler, ProfilerInfo, Result, Setup,
    StackFrame,
};
use clrscope_recording::events::{Kind, Tag, Thing, Value};
use clrscope_recording::writer::{ProcessWriter, monotonic_ns};

use crate::dictionary::{Ask, Dictionary};
use crate::event_log::EventLog;
use crate::functions::Functions;
use crate::helper::Task;
use crate::instrument::Instrument;
use crate::startup::Context;

pub(crate) use options::Options;
use places::Places;
use recent::Recent;

/// UTF-16 units kept of a message.
const MESSAGE_UNITS: usize = 512;

/// The running instrument.
pub(crate) struct Exceptions {
    info: ProfilerInfo,
    writer: &'static ProcessWriter,
    functions: Arc<Functions>,
    log: &'static EventLog,
    names: Dictionary,
    reader: ExceptionReader,
    places: Places,
    options: Options,
    told_no_stack: AtomicBool,
    recent: PerThread<Recent>,
    /// Counts unloads: what threads remember from before one is forgotten.
    epoch: AtomicU64,
}

impl Exceptions {
    /// Makes the instrument.
    ///
    /// # Errors
    /// In words, when its file can't be had.
    pub(crate) fn start(options: &Options, context: &Context) -> std::result::Result<Self, String> {
        let log = EventLog::create(context.writer, context.start_ns, "exceptions", options.max_bytes)?;
        let recent = PerThread::new(Recent::default, |_| ()).map_err(|error| format!("no thread key: {error}"))?;
        Ok(Self {
            info: context.info.clone(),
            writer: context.writer,
            functions: Arc::clone(&context.functions),
            log,
            names: Dictionary::new(&context.info, &context.functions, log),
            reader: ExceptionReader::new(),
            places: Places::default(),
            options: options.clone(),
            told_no_stack: AtomicBool::new(false),
            recent,
            epoch: AtomicU64::new(0),
        })
    }

    fn write(&self, kind: Kind) {
        self.log.write_untimed(kind, &[]);
    }

    fn write_function(&self, kind: Kind, function: FunctionId) {
        let function = self.function(function);
        self.log.write_untimed(kind, &[(Tag::FUNCTION, function.into())]);
    }

    /// A function, from what this thread remembers where it can.
    fn function(&self, function: FunctionId) -> Thing {
        let epoch = self.epoch.load(Ordering::Acquire);
        self.recent.with(|recent| {
            let known = recent.get(function, epoch);
            known.unwrap_or_else(|| {
                let thing = self.names.function(function, Ask::Now);
                recent.put(function, thing, epoch);
                thing
            })
        })
    }

    /// Functions and code are gone; their identifiers and addresses may be used again.
    fn code_unloaded(&self) {
        self.epoch.fetch_add(1, Ordering::AcqRel);
        self.places.unloaded();
    }

    /// What the exception says and where it was thrown.
    fn write_detail(&self, exception: ObjectId<'_>) {
        let content = self.reader.read(&self.info, self.functions.names(), exception, MESSAGE_UNITS);
        let mut fields: Vec<(Tag, Value<'_>)> = Vec::with_capacity(8 + self.options.frames.min(24) * 2);
        if let Some(content) = &content {
            if let Some(message) = &content.message {
                fields.push((Tag::MESSAGE, message.as_str().into()));
            }
            if let Some(inner) = content.inner {
                fields.push((Tag::INNER_OBJECT, inner.address().into()));
                let class = self.names.class_of(inner);
                fields.push((Tag::INNER_CLASS, class.into()));
            }
            fields.push((Tag::EXCEPTION_CODE, (content.code as u32).into()));
            fields.push((Tag::ANSWER, content.was_thrown.into()));
        }
        self.add_stack(&mut fields);
        self.log.write_untimed(Kind::EXCEPTION_DETAIL, &fields);
    }

    fn add_stack(&self, fields: &mut Vec<(Tag, Value<'_>)>) {
        let mut left = self.options.frames;
        if left == 0 {
            return;
        }
        let mut cut = false;
        let visit = |frame: StackFrame| {
            cut = left == 0;
            if cut {
                return ControlFlow::Break(());
            }
            left -= 1;
            let place = self.places.of(&self.info, &self.names, frame);
            fields.push((Tag::FRAME, place.function.into()));
            fields.extend(place.il_offset.map(|offset| (Tag::IL_OFFSET, offset.into())));
            ControlFlow::Continue(())
        };
        if let Err(error) = self.info.stack_here(visit)
            && !self.told_no_stack.swap(true, Ordering::Relaxed)
        {
            let remark = format!("exceptions: a stack could not be had from the runtime: {error}");
            self.writer.fact(monotonic_ns(), &remark);
        }
        if cut {
            fields.push((Tag::FRAMES_CUT, true.into()));
        }
    }
}

impl Instrument for Exceptions {
    fn events(&self) -> Events {
        let events = Events::EXCEPTIONS | Events::CLR_EXCEPTIONS | Events::MODULE_LOADS;
        events | Events::ENABLE_STACK_SNAPSHOT | Events::DYNAMIC_FUNCTION_UNLOADS
    }

    fn tasks(&self) -> Vec<Box<dyn Task>> {
        vec![self.log.task()]
    }

    fn callbacks(self: Arc<Self>) -> Option<Arc<dyn Profiler>> {
        Some(self)
    }

    fn detach_in_child(&self) {
        self.log.detach_in_child();
    }
}

impl Profiler for Exceptions {
    fn initialize(&self, _info: &ProfilerInfo) -> Result<Setup> {
        Err(Error::refused("exceptions", "an instrument is started by the agent"))
    }

    fn module_unload_finished(&self, module: ModuleId, _status: Result<()>) {
        self.names.module_unloads(module);
        self.reader.module_unloaded();
        self.code_unloaded();
    }

    fn dynamic_method_unloaded(&self, _function: FunctionId) {
        self.code_unloaded();
    }

    fn exception_thrown(&self, exception: ObjectId<'_>) {
        let class = self.names.class_of(exception);
        self.log
            .write(Kind::EXCEPTION_THROWN, &[(Tag::OBJECT, exception.address().into()), (Tag::CLASS, class.into())]);
        self.write_detail(exception);
    }

    fn exception_search_function_enter(&self, function: FunctionId) {
        self.write_function(Kind::EXCEPTION_SEARCH_FUNCTION_ENTER, function);
    }

    fn exception_search_filter_enter(&self, function: FunctionId) {
        self.write_function(Kind::EXCEPTION_SEARCH_FILTER_ENTER, function);
    }

    fn exception_search_filter_leave(&self) {
        self.write(Kind::EXCEPTION_SEARCH_FILTER_LEAVE);
    }

    fn exception_search_catcher_found(&self, function: FunctionId) {
        self.write_function(Kind::EXCEPTION_SEARCH_CATCHER_FOUND, function);
    }

    fn exception_unwind_function_enter(&self, function: FunctionId) {
        self.write_function(Kind::EXCEPTION_UNWIND_FUNCTION_ENTER, function);
    }

    fn exception_unwind_finally_enter(&self, function: FunctionId) {
        self.write_function(Kind::EXCEPTION_UNWIND_FINALLY_ENTER, function);
    }

    fn exception_unwind_finally_leave(&self) {
        self.write(Kind::EXCEPTION_UNWIND_FINALLY_LEAVE);
    }

    fn exception_catcher_enter(&self, function: FunctionId, exception: ObjectId<'_>) {
        let function = self.function(function);
        let fields = [(Tag::FUNCTION, function.into()), (Tag::OBJECT, exception.address().into())];
        self.log.write(Kind::EXCEPTION_CATCHER_ENTER, &fields);
    }

    fn exception_catcher_leave(&self) {
        self.write(Kind::EXCEPTION_CATCHER_LEAVE);
    }

    fn exception_clr_catcher_found(&self) {
        self.write(Kind::EXCEPTION_CLR_CATCHER_FOUND);
    }

    fn exception_clr_catcher_execute(&self) {
        self.write(Kind::EXCEPTION_CLR_CATCHER_EXECUTE);
    }
}
