//! `exceptions`: the course of each exception: its message, where it was thrown, which handlers
//! were searched, and where it was caught.
//!
//! The instrument does nothing until an exception is thrown, and needs no hooks. The instrument
//! records the callbacks as they come, in the same form as in `events`. Callbacks without new
//! information (the end of a search or unwind in a function) are left out, and times are recorded
//! only on request. The record of a throw holds the contents of the exception and the number of its
//! stack. The reader of the recording finds out which records belong together.
//!
//! Stacks are those of [`clrscope_agent_stacks::stacks`](clrscope_agent_stacks::stacks). With
//! `args` the calls of named methods keep their arguments ([`hooks`], [`arguments`]), which are
//! stored when an exception is thrown.

mod arch;
mod arguments;
pub(crate) mod hooks;
mod options;
mod thrown;

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use clr_profiler::callback_args::{GcReason, Generations};
use clr_profiler::internals::NativeFrame;
use clr_profiler::{
    Callbacks, ClassId, Events, ExceptionContent, ExceptionReader, FunctionId, ModuleId, ObjectId, ProfilerInfo, Result,
};
use clrscope_contract::request::Trigger;
use clrscope_recording::events::{Kind, ShortFields, Tag, EntityRef};
use clrscope_recording::layout::instrument;
use clrscope_recording::model::LossReason;
use clrscope_recording::writer::{ProcessWriter, monotonic_ns};
use clrscope_agent_base::functions::Functions;
use clrscope_agent_base::helper::Task;
use clrscope_agent_base::il;
use clrscope_agent_values::overhead_advice::AdviseOverhead;
use clrscope_agent_values::plans;
use clrscope_agent_values::types::{self, Types};
use clrscope_agent_values::unread::ReportUnread;
use clrscope_agent_stacks::code::CodeFeed;
use clrscope_agent_stacks::stacks::{REMEMBERED, CallStacks, StackOptions, WalkedFrame};

use crate::hook_sets::{HookParts, HookSet};
use crate::instrument::Instrument;
use crate::services::clauses::Clauses;
use crate::services::context::Context;
use crate::services::dictionary::{Dictionary, Resolve};
use crate::services::event_log::EventLog;
use crate::services::no_stack_remark::NoStackRemark;
use crate::services::triggers::Triggers;

pub(crate) use options::ExceptionsOptions;
use thrown::ThrownObjects;

/// UTF-16 units kept of a message.
const MESSAGE_UNITS: usize = 512;

/// From this number of calls on, a second's worth or more, a remark names the methods whose
/// arguments are kept.
const COSTLY_CALLS: u64 = 20_000_000;

/// The instrument `exceptions` while it runs.
pub(crate) struct Exceptions {
    info: ProfilerInfo,
    writer: &'static ProcessWriter,
    functions: Arc<Functions>,
    log: &'static EventLog,
    names: Dictionary,
    reader: ExceptionReader,
    thrown: ThrownObjects,
    stacks: CallStacks,
    /// Types of the program, where arguments are wanted.
    types: Option<&'static Types>,
    /// Other instruments have hooks, too.
    shares_hooks: bool,
    no_stack: NoStackRemark,
    /// Counts unloads: threads forget what they remembered before an unload.
    epoch: AtomicU64,
    clauses: Clauses,
    triggers: &'static Triggers,
    /// The trigger, if any, of each class that was thrown. Kept where some types are triggers,
    /// until a module is unloaded.
    trigger_types: Mutex<HashMap<ClassId, Option<&'static Trigger>>>,
    /// Whether any filter has run: until then there is no need to ask which clause a catch block
    /// belongs to.
    filters_ran: AtomicBool,
}

impl Exceptions {
    fn write(&self, kind: Kind) {
        self.log.write_short(kind, ShortFields::NONE);
    }

    /// Identifiers are left out, since every entity that is seen here gets a number.
    fn write_function(&self, kind: Kind, function: FunctionId) {
        // Read first: an entry whose query spans an unload then has the epoch from before the
        // unload, and is not used.
        let epoch = self.epoch.load(Ordering::Acquire);
        self.log.write_cached(kind, |cache| cache.get(function.as_raw(), epoch, || self.function(function)));
    }

    #[cold]
    fn function(&self, function: FunctionId) -> ShortFields {
        ShortFields::numbered(Tag::FUNCTION, self.names.function(function, Resolve::Now).index)
    }

    #[cold]
    fn class(&self, class: ClassId) -> ShortFields {
        ShortFields::numbered(Tag::CLASS, self.names.class(class, Resolve::Now).index)
    }

    /// Fields of an entity, from the thread's cache where possible. `None` once recording has
    /// ended.
    fn known(&self, id: usize, find: impl FnOnce() -> ShortFields) -> Option<ShortFields> {
        let epoch = self.epoch.load(Ordering::Acquire);
        self.log.cached(|cache| cache.get(id, epoch, find))
    }

    /// Functions and code have been unloaded; their identifiers and addresses may be used again.
    fn code_unloaded(&self) {
        self.epoch.fetch_add(1, Ordering::AcqRel);
        self.stacks.code_unloaded();
        self.clauses.code_unloaded();
    }

    fn stack(&self, frame: NativeFrame) -> u32 {
        self.no_stack.number(self.stacks.number_here(frame, |frames| self.write_arguments(frames)))
    }

    /// Stores the arguments of each frame that has some, before the throw they belong to.
    fn write_arguments(&self, frames: &[WalkedFrame]) {
        for frame in frames {
            let Some(frame_pointer) = frame.frame_pointer else { continue };
            let function = frame.location.function;
            arguments::of_frame(function, frame_pointer, |bytes| {
                self.log.write_with(None, Kind::EXCEPTION_ARGUMENTS, |encoder| {
                    encoder.number(Tag::POSITION, frame.position as u64);
                    encoder.entity(Tag::FUNCTION, EntityRef { id: 0, index: function }).opaque(Tag::ARGUMENTS, bytes);
                })
            });
        }
    }

    /// Writes the record of a throw: the contents of the exception, whether it was thrown before,
    /// and the stack of the throw.
    fn write_thrown(&self, exception: ObjectId<'_>, content: &ExceptionContent<'_>, stack: u32) {
        let Some(class) = self.known(content.class.as_raw(), || self.class(content.class)) else { return };
        if self.triggers.has_exceptions()
            && let Some(trigger) = self.trigger(content.class)
        {
            let name = || self.functions.names().class(&self.info, content.class);
            self.triggers.happened(trigger, || format!("{} was thrown", name()));
        }
        let is_again = self.thrown.is_thrown_again(exception, content.is_traced);
        let inner = content.inner.map(|inner| (inner.address() as u64, self.names.class_of(inner)));
        self.log.write_with(Some(monotonic_ns()), Kind::EXCEPTION_THROWN, |encoder| {
            encoder.number(Tag::OBJECT, exception.address() as u64).short(class);
            encoder.number(Tag::STACK_NODE, stack.into());
            if let Some(message) = content.message {
                encoder.utf16(Tag::MESSAGE, message.units());
            }
            if let Some((address, class)) = inner {
                encoder.number(Tag::INNER_OBJECT, address).entity(Tag::INNER_CLASS, class);
            }
            encoder.number(Tag::EXCEPTION_CODE, u64::from(content.code as u32));
            encoder.number(Tag::ANSWER, is_again.into());
        });
    }

    fn trigger_types(&self) -> MutexGuard<'_, HashMap<ClassId, Option<&'static Trigger>>> {
        self.trigger_types.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The trigger that fires when the class is thrown. No lock is held while the runtime is asked
    /// for the class's name.
    fn trigger(&self, class: ClassId) -> Option<&'static Trigger> {
        let known = self.trigger_types().get(&class).copied();
        known.unwrap_or_else(|| {
            let trigger = self.triggers.on_exception(&self.functions.names().class(&self.info, class));
            self.trigger_types().insert(class, trigger);
            trigger
        })
    }

    /// Whether the function is an accessor that can't throw unless it is called on null. No stack
    /// shows its arguments, and there may be more calls of such methods than of all others.
    fn is_accessor(&self, function: FunctionId) -> bool {
        let Ok(about) = self.info.function_info(function) else { return false };
        let Ok(metadata) = self.functions.names().metadata(&self.info, about.module) else { return false };
        let is_of_object = metadata.method(about.token).is_ok_and(|method| !method.attributes.is_static());
        is_of_object && self.info.il_function_body(about.module, about.token).is_ok_and(|body| il::is_accessor(&body))
    }
}

impl Instrument for Exceptions {
    type Options = ExceptionsOptions;

    fn hook_sets() -> &'static [HookSet] {
        hooks::SETS
    }

    fn hook_parts(options: &ExceptionsOptions) -> HookParts {
        if options.arguments { HookParts::ARGUMENTS } else { HookParts::NONE }
    }

    fn start(options: &ExceptionsOptions, context: &Context) -> std::result::Result<Self, String> {
        let log = EventLog::create(context, instrument::EXCEPTIONS, options.max_bytes)?;
        let (frames, walk, frame_pointers) = (options.frames, options.walk, options.arguments);
        let wanted = StackOptions { frames, walk, frame_pointers, remembered: REMEMBERED };
        Ok(Self {
            info: context.info.clone(),
            writer: context.writer,
            functions: Arc::clone(&context.functions),
            log,
            names: Dictionary::new(&context.info, &context.functions, log),
            reader: ExceptionReader::new(),
            thrown: ThrownObjects::new(&context.info),
            stacks: context.call_stacks(wanted)?,
            types: if options.arguments { Some(context.types(false)?) } else { None },
            shares_hooks: context.hooks != Self::hook_parts(options),
            no_stack: NoStackRemark::new(context.writer, "exceptions: the runtime could not walk a stack"),
            epoch: AtomicU64::new(0),
            clauses: Clauses::default(),
            triggers: context.triggers,
            trigger_types: Mutex::default(),
            filters_ran: AtomicBool::new(false),
        })
    }

    fn mapped(&self, function: FunctionId, index: u32, client: usize) -> usize {
        let Some(types) = self.types else { return client };
        if !self.is_accessor(function) {
            plans::prepare(types, self.functions.names(), function, index);
        } else if !self.shares_hooks {
            return 0;
        }
        client
    }

    fn events(&self) -> Events {
        let types = self.types.map_or(Events::NONE, |_| types::EVENTS);
        let events = types | Events::EXCEPTIONS | Events::CLR_EXCEPTIONS | Events::BASIC_GC;
        events | CodeFeed::EVENTS | Events::ENABLE_STACK_SNAPSHOT
    }

    /// A burst of exceptions fits into the memory that is backed already.
    fn needs_frequent_help(&self) -> bool {
        false
    }

    fn tasks(&self) -> Vec<Box<dyn Task>> {
        let mut tasks: Vec<Box<dyn Task>> =
            vec![self.log.task(), self.stacks.task(), Box::new(DropCounter(self.writer))];
        tasks.extend(tasks_of_values(self.writer, self.types));
        tasks
    }

    fn release_handles(&self) {
        self.thrown.release();
    }

    fn detach_in_child(&self) {
        self.log.detach_in_child();
        self.stacks.detach_in_child();
    }
}

/// Tasks for reading arguments. The cost of calls whose values are read is known only for all
/// instruments together, so an instrument that reads no values must not advise about it.
fn tasks_of_values(writer: &'static ProcessWriter, types: Option<&'static Types>) -> Vec<Box<dyn Task>> {
    if types.is_none() {
        return Vec::new();
    }
    let advise_overhead = AdviseOverhead::new(writer, "exceptions:args", COSTLY_CALLS / arguments::SAMPLED);
    vec![Box::new(advise_overhead), Box::new(ReportUnread::new(writer))]
}

/// Counts arguments that found no room, since the hooks that notice it must be quick.
struct DropCounter(&'static ProcessWriter);

impl Task for DropCounter {
    fn slow_tick(&mut self, now_ns: u64) {
        let dropped = arguments::dropped();
        if dropped > 0 {
            self.0.state().lose(LossReason::EventDropped, dropped, now_ns);
        }
    }

    fn start_again(&mut self, _now_ns: u64) {
        arguments::forget_all();
    }
}

impl Callbacks for Exceptions {
    fn shutdown(&self) {
        if let Some(comparison) = self.stacks.comparison() {
            self.writer.note(monotonic_ns(), &format!("exceptions: {comparison}"));
        }
    }

    fn module_unload_finished(&self, module: ModuleId, _status: Result<()>) {
        self.names.module_unloads(module);
        self.reader.module_unloaded();
        self.trigger_types().clear();
        self.code_unloaded();
    }

    fn dynamic_method_unloaded(&self, _function: FunctionId) {
        self.code_unloaded();
    }

    fn garbage_collection_started(&self, _generations: Generations<'_>, _reason: GcReason) {
        self.thrown.collection_begins();
    }

    fn exception_thrown_in(&self, exception: ObjectId<'_>, frame: NativeFrame) {
        let stack = self.stack(frame);
        match self.reader.read(&self.info, self.functions.names(), exception, MESSAGE_UNITS) {
            Some(content) => self.write_thrown(exception, &content, stack),
            None => {
                let class = self.names.class_of(exception);
                let fields = [
                    (Tag::OBJECT, exception.address().into()),
                    (Tag::CLASS, class.into()),
                    (Tag::STACK_NODE, stack.into()),
                ];
                self.log.write(Kind::EXCEPTION_THROWN, &fields);
            }
        }
    }

    fn exception_search_function_enter(&self, function: FunctionId) {
        self.write_function(Kind::EXCEPTION_SEARCH_FUNCTION_ENTER, function);
    }

    fn exception_search_filter_enter(&self, function: FunctionId) {
        self.filters_ran.store(true, Ordering::Relaxed);
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
        let Some(function) = self.known(function.as_raw(), || self.function(function)) else { return };
        self.log.write_with(Some(monotonic_ns()), Kind::EXCEPTION_CATCHER_ENTER, |encoder| {
            encoder.short(function).number(Tag::OBJECT, exception.address() as u64);
        });
    }

    fn exception_catcher_leave(&self) {
        // A clause with a filter and one without look alike when the catcher is found. Only here
        // can the runtime of .NET 8 and 9 tell which clause the block belongs to.
        let asks = self.filters_ran.load(Ordering::Relaxed);
        match asks.then(|| self.clauses.has_filter(&self.info)).flatten() {
            Some(has_filter) => {
                self.log.write_with(None, Kind::EXCEPTION_CATCHER_LEAVE, |encoder| {
                    encoder.number(Tag::HAS_FILTER, has_filter.into());
                });
            }
            None => self.write(Kind::EXCEPTION_CATCHER_LEAVE),
        }
    }

    fn exception_clr_catcher_found(&self) {
        self.write(Kind::EXCEPTION_CLR_CATCHER_FOUND);
    }

    fn exception_clr_catcher_execute(&self) {
        self.write(Kind::EXCEPTION_CLR_CATCHER_EXECUTE);
    }
}

#[cfg(test)]
mod tests {
    use clrscope_recording::writer::ProcessRecord;

    use super::*;

    /// With `flow:args` alongside, the calls whose values `flow` reads used to be counted as
    /// `exceptions:args`.
    #[test]
    fn without_arguments_nobody_advises_about_their_cost() {
        let folder = tempfile::tempdir().expect("a folder");
        let record = ProcessRecord { pid: 7, mono_ns: 1, ..ProcessRecord::default() };
        let writer = ProcessWriter::create(&folder.path().join("x.clrs.d"), &record).expect("a folder for the process");
        assert!(tasks_of_values(Box::leak(Box::new(writer)), None).is_empty());
    }
}
