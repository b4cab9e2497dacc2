//! The state machine boxes of async methods that wait.

use clr_profiler::metadata::MetadataImport;
use clr_profiler::metadata::signature::{self, Type};
use clr_profiler::{ClassId, ClassInfo, FunctionId, Token};
use clrscope_contract::async_code::await_number;

use super::box_layout::{BoxLayout, is_box, machine_in};
use super::core_types::{ChainReader, CoreTypes, SourceFields, field_offset};
use super::memory::ObjectMemory;
use super::{Awaiters, Questions};

/// Names of the field that holds the builder, in C# and Visual Basic.
pub const BUILDERS: [&str; 2] = ["<>t__builder", "$Builder"];
/// Name of the field of an iterator that holds the source of its value tasks.
const PROMISE: &str = "<>v__promiseOfValueOrEnd";
/// Words of a builder among which its task lies.
const BUILDER_WORDS: usize = 3;
/// Words of a state machine that are searched where the offset of its builder is unknown.
const STATE_WORDS: usize = 32;

/// The kind of builder that makes the task of an async method.
#[derive(Debug, Clone, Copy)]
pub(super) enum Builder {
    /// A builder of a task, or of a value task that wraps a task.
    Task,
    /// The builder of an `async void` method, whose task no code sees.
    Void,
    /// The builder of an iterator, or a pooled builder: the method's value task has a source, which
    /// is used again for the next value task.
    Source(Source),
    /// Another builder, or one whose source was not found.
    Other,
}

/// Where the source of a value task lies.
#[derive(Debug, Clone, Copy)]
pub(super) struct Source {
    /// Offset in the box of a pooled builder, or in the state machine of an iterator.
    offset: usize,
    is_in_box: bool,
    fields: SourceFields,
}

/// A class of state machine boxes.
#[derive(Debug, Clone)]
pub(super) struct BoxClass {
    /// Index in the recording of the method's function.
    pub(super) function: u32,
    pub(super) builder: Builder,
    layout: BoxLayout,
}

impl BoxClass {
    /// The IL offset of the await at which a box of this class waits; `None` if unknown.
    pub(super) fn place_of_await(&self, memory: ObjectMemory<'_>, object: usize) -> Option<u32> {
        let layout = &self.layout;
        let at = object.checked_add(layout.machine)?;
        let machine = if layout.is_value { at } else { memory.word(at)? };
        let number = memory.number(machine.checked_add(layout.state?)?)?;
        // A negative number means that the method is running or has ended.
        *layout.awaits.get(await_number(number) as usize)?
    }

    /// Whether the awaiter changes while the box stays the same.
    pub(super) fn is_used_again(&self) -> bool {
        matches!(self.builder, Builder::Source(_))
    }

    /// The delegate and the awaiter in the source of a value task.
    pub(super) fn in_source(
        &self,
        memory: ObjectMemory<'_>,
        (object, source): (usize, Source),
    ) -> Option<(usize, usize)> {
        let holder = if source.is_in_box { object } else { memory.word(object.checked_add(self.layout.machine)?)? };
        let word = |field: usize| memory.word(holder.checked_add(source.offset)?.checked_add(field)?);
        Some((word(source.fields.continuation)?, word(source.fields.state)?))
    }
}

/// A class of tasks, or of other boxes.
#[derive(Debug, Clone)]
pub(super) enum TaskClass {
    /// The task, or another object, is the box of an async method.
    Box(BoxClass),
    /// A task without a method, such as a promise.
    Plain,
    /// A box about which nothing more is known.
    Unknown,
    /// Objects that are neither.
    Other,
}

/// An async method, identified by its code.
#[derive(Debug, Clone, Copy)]
pub(super) struct AsyncMethod {
    /// Offset of the builder from `this`; `None` for code that several types share.
    pub(super) builder: Option<usize>,
}

impl Awaiters {
    /// The async method that has this function as its code; `None` for other functions.
    pub(super) fn method(&self, function: FunctionId, questions: Questions) -> Option<AsyncMethod> {
        let known = self.known().methods.get(&function).copied();
        known.or_else(|| {
            if questions == Questions::Noted {
                self.want_function(function);
                return None;
            }
            // Most functions are not async, and not worth a place in the table.
            let found = self.find_method(function)?;
            self.known().methods.insert(function, found);
            Some(found)
        })
    }

    fn find_method(&self, function: FunctionId) -> Option<AsyncMethod> {
        let (class, module, token) = self.info.function_place(function).ok()?;
        let metadata = self.functions.names().metadata(&self.info, module).ok()?;
        let code = metadata.method(token).ok().filter(|method| method.name == "MoveNext")?;
        let fields = metadata.fields(code.class).ok()?.into_iter().filter_map(|field| metadata.field(field).ok());
        fields.into_iter().find(|field| BUILDERS.contains(&&*field.name))?;
        let builder = |name: &&str| field_offset(&self.info, &metadata, class?, name);
        Some(AsyncMethod { builder: BUILDERS.iter().find_map(builder) })
    }

    /// The box of the method whose code has this `this`; `None` if there is none, as for a method
    /// that has not waited yet.
    pub(super) fn box_of(
        &self,
        reader: ChainReader<'_>,
        method: AsyncMethod,
        this: usize,
    ) -> Option<(usize, BoxClass)> {
        let memory = reader.memory;
        let (first, words) = method.builder.map_or((0, STATE_WORDS), |builder| (builder, BUILDER_WORDS));
        (0..words).find_map(|number| {
            let object = memory.word(this.checked_add(first + number * 8)?)?;
            let Some(TaskClass::Box(found)) = self.as_task(reader, object) else { return None };
            // The box says which method it belongs to.
            let machine = object.checked_add(found.layout.machine)?;
            let is_own = if found.layout.is_value { machine == this } else { memory.word(machine) == Some(this) };
            is_own.then_some((object, found))
        })
    }

    /// The class of the task or box at an address; `None` if there is none. The address may be any
    /// word.
    pub(super) fn as_task(&self, reader: ChainReader<'_>, object: usize) -> Option<TaskClass> {
        if object == 0 || !object.is_multiple_of(8) {
            return None;
        }
        let ChainReader { core, questions, memory } = reader;
        let class = memory.word(object)?;
        if let Some(known) = self.known().tasks.get(&class) {
            return Some(known.clone()).filter(|known| !matches!(known, TaskClass::Other));
        }
        if !CoreTypes::derives(class, core.task.class) {
            // To look up a pooled box, the runtime has to be asked for the class of its source. It
            // might let objects move meanwhile.
            if core.may_be_pooled(class) {
                self.want_class(class);
            }
            return None;
        }
        match questions {
            Questions::Asked => self.find_class(core, class),
            Questions::Noted => {
                self.want_class(class);
                Some(TaskClass::Unknown)
            }
        }
    }

    /// Finds the class of tasks or boxes whose objects begin with the word `class`: a class derived
    /// from the task class, or one that may be that of pooled boxes. Objects may move if it is one
    /// of the latter.
    pub(super) fn find_class(&self, core: &CoreTypes, class: usize) -> Option<TaskClass> {
        // SAFETY: the first word of an object whose class is derived from the task class, or by two
        // steps from the class of all objects, as its classes say.
        let id = unsafe { ClassId::from_raw(class) };
        let is_task = CoreTypes::derives(class, core.task.class);
        let found = match self.machine_in(core, id) {
            None | Some(None) if !is_task => TaskClass::Other,
            None => TaskClass::Unknown,
            Some(None) => TaskClass::Plain,
            Some(Some((machine, about))) => {
                // The method may have to be looked up first, where the runtime may be asked.
                let Some(code) = self.code_of(about.module, about.token) else { return Some(TaskClass::Unknown) };
                self.box_class(core, id, (machine, &about, code)).map_or(TaskClass::Unknown, TaskClass::Box)
            }
        };
        self.known().tasks.insert(class, found.clone());
        Some(found)
    }

    /// The state machine type of the boxes of a class. `Some(None)` where the class is of other
    /// tasks, `None` if that is not known.
    fn machine_in(&self, core: &CoreTypes, class: ClassId) -> Option<Option<(ClassId, ClassInfo)>> {
        let about = self.info.class_info(class).ok()?;
        let metadata = self.functions.names().metadata(&self.info, core.module).ok()?;
        if about.module != core.module || !is_box(&metadata, &about) {
            return Some(None);
        }
        machine_in(&self.info, &metadata, &about).map(Some)
    }

    fn box_class(
        &self,
        core: &CoreTypes,
        class: ClassId,
        (machine_class, machine, function): (ClassId, &ClassInfo, FunctionId),
    ) -> Option<BoxClass> {
        let names = self.functions.names();
        let metadata = names.metadata(&self.info, core.module).ok()?;
        let layout = BoxLayout::with_machine(&self.info, names, (class, &metadata), (machine_class, machine))?;
        let of_machine = names.metadata(&self.info, machine.module).ok()?;
        let source = |is_in_box: bool| {
            if is_in_box {
                return self.source_in_box(class, &metadata);
            }
            let offset = field_offset(&self.info, &of_machine, machine_class, PROMISE)?;
            Some(Source { offset, is_in_box, fields: core.of_iterator.filter(|_| !layout.is_value)? })
        };
        let builder = builder_of(&of_machine, machine.token, source);
        Some(BoxClass { function: self.functions.noted(function).index, builder, layout })
    }

    /// The source in the boxes of a pooled builder.
    fn source_in_box(&self, class: ClassId, core: &MetadataImport) -> Option<Source> {
        let about = self.info.class_info(class).ok()?;
        let offset = field_offset(&self.info, core, about.parent?, "_valueTaskSource")?;
        let result = about.type_arguments.first()?.non_null()?;
        let fields = CoreTypes::source_fields(&self.info, &self.functions, result)?;
        Some(Source { offset, is_in_box: true, fields })
    }
}

/// The kind of an async method's builder, by the type of its field. `source` finds the source of
/// its value tasks, in its box or in its state machine.
fn builder_of(metadata: &MetadataImport, machine: Token, source: impl Fn(bool) -> Option<Source>) -> Builder {
    let fields = metadata.fields(machine).unwrap_or_default();
    let builder = fields.into_iter().filter_map(|field| metadata.field(field).ok()).find_map(|field| {
        let ty = signature::field(&field.signature).ok().filter(|_| BUILDERS.contains(&&*field.name))?;
        let (Type::Named { token, .. } | Type::Generic { token, .. }) = ty else { return None };
        // The core library declares it.
        let declared = || metadata.type_def(token).ok().map(|declared| declared.name);
        metadata.type_ref(token).ok().map(|named| named.name).or_else(declared)
    });
    let name = builder.as_deref().and_then(|name| name.strip_prefix("System.Runtime.CompilerServices."));
    let of_source = |is_in_box| source(is_in_box).map_or(Builder::Other, Builder::Source);
    match name.and_then(|name| name.split('`').next()) {
        Some("AsyncVoidMethodBuilder") => Builder::Void,
        Some("AsyncTaskMethodBuilder" | "AsyncValueTaskMethodBuilder") => Builder::Task,
        Some("PoolingAsyncValueTaskMethodBuilder") => of_source(true),
        Some("AsyncIteratorMethodBuilder") => of_source(false),
        _ => Builder::Other,
    }
}
