//! The state machine boxes of async methods that wait.

use clr_profiler::metadata::MetadataImport;
use clr_profiler::metadata::signature::{self, Type};
use clr_profiler::{ClassId, ClassInfo, FunctionId, Token};
use clrscope_contract::async_code::await_number;

use super::box_layout::{BoxLayout, is_box, machine_in};
use super::core_types::{ChainReader, CoreTypes, field_offset};
use super::memory::ObjectMemory;
use super::{Awaiters, Questions};

/// Names of the field that holds the builder, in C# and Visual Basic.
pub const BUILDERS: [&str; 2] = ["<>t__builder", "$Builder"];
/// Words of a builder among which its task lies.
const BUILDER_WORDS: usize = 3;
/// Words of a state machine that are searched where the offset of its builder is unknown.
const STATE_WORDS: usize = 32;

/// The kind of builder that makes the task of an async method.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Builder {
    /// A builder of a task, or of a value task that wraps a task.
    Task,
    /// The builder of an `async void` method, whose task no code sees.
    Void,
    /// Another builder. The consumer of an iterator does not await the iterator's task; further
    /// kinds are unknown.
    Other,
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
}

/// A class of tasks.
#[derive(Debug, Clone)]
pub(super) enum TaskClass {
    /// The task is the box of an async method.
    Box(BoxClass),
    /// A task without a method, such as a promise.
    Plain,
    /// A box about which nothing more is known.
    Unknown,
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

    /// The class of the task at an address; `None` if there is no task. The address may be any
    /// word.
    pub(super) fn as_task(&self, reader: ChainReader<'_>, object: usize) -> Option<TaskClass> {
        if object == 0 || !object.is_multiple_of(8) {
            return None;
        }
        let ChainReader { core, questions, memory } = reader;
        let class = memory.word(object)?;
        if let Some(known) = self.known().tasks.get(&class) {
            return Some(known.clone());
        }
        if !CoreTypes::derives(class, core.task.class) {
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

    /// Finds the class of tasks whose objects begin with the word `class`, a class derived from the
    /// task class.
    pub(super) fn find_class(&self, core: &CoreTypes, class: usize) -> Option<TaskClass> {
        // SAFETY: the first word of an object whose class is derived from the task class, as its
        // classes say.
        let id = unsafe { ClassId::from_raw(class) };
        let found = match self.machine_in(core, id) {
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
        let metadata = names.metadata(&self.info, machine.module).ok()?;
        Some(BoxClass {
            function: self.functions.noted(function).index,
            builder: builder_of(&metadata, machine.token),
            layout,
        })
    }
}

/// The kind of an async method's builder, by the type of its field.
fn builder_of(metadata: &MetadataImport, machine: Token) -> Builder {
    let fields = metadata.fields(machine).unwrap_or_default();
    let builder = fields.into_iter().filter_map(|field| metadata.field(field).ok()).find_map(|field| {
        let ty = signature::field(&field.signature).ok().filter(|_| BUILDERS.contains(&&*field.name))?;
        let (Type::Named { token, .. } | Type::Generic { token, .. }) = ty else { return None };
        // The core library declares it.
        let declared = || metadata.type_def(token).ok().map(|declared| declared.name);
        metadata.type_ref(token).ok().map(|named| named.name).or_else(declared)
    });
    match builder.as_deref() {
        Some("System.Runtime.CompilerServices.AsyncVoidMethodBuilder") => Builder::Void,
        Some(name) if is_of_tasks(name) => Builder::Task,
        _ => Builder::Other,
    }
}

fn is_of_tasks(builder: &str) -> bool {
    let name = builder.strip_prefix("System.Runtime.CompilerServices.").unwrap_or_default();
    matches!(name.split('`').next(), Some("AsyncTaskMethodBuilder" | "AsyncValueTaskMethodBuilder"))
}
