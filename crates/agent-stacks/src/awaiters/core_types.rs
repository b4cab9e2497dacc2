//! The framework's types of tasks and continuations, and the offsets of their fields. Names and
//! fields are those of .NET 8, 9 and 10 (`System.Private.CoreLib`, `System/Threading/Tasks` and
//! `System/Runtime/CompilerServices` of dotnet/runtime). In a runtime with other names no chain is
//! known.

use clr_profiler::metadata::MetadataImport;
use clr_profiler::{ClassId, ModuleId, ProfilerInfo, Token};
use clrscope_agent_base::class_parents::parent_of;
use clrscope_agent_base::functions::Functions;
use clrscope_contract::async_code::CORE_LIBRARY;

use super::memory::ObjectMemory;
use super::{Questions, TO_ARRAY};

/// Most classes between a class and its base class.
const MOST_BASES: usize = 8;

/// No class.
const NONE: usize = usize::MAX;
const BUILDER_CORE: &str = "System.Runtime.CompilerServices.AsyncMethodBuilderCore";

/// A type, identified by the first word of its objects, with the offset of one of its fields.
#[derive(Debug, Clone, Copy)]
pub(super) struct TypeWithField {
    pub(super) class: usize,
    pub(super) field: usize,
}

/// Offsets of fields in the source of a value task (`ManualResetValueTaskSourceCore`).
#[derive(Debug, Clone, Copy)]
pub(super) struct SourceFields {
    /// The delegate that runs the awaiter.
    pub(super) continuation: usize,
    /// What the delegate gets: the awaiter.
    pub(super) state: usize,
}

/// The framework's types by which a chain is followed.
#[derive(Debug)]
pub(super) struct CoreTypes {
    pub(super) module: ModuleId,
    /// The task type, with the field for its continuation.
    pub(super) task: TypeWithField,
    /// The type of the marker that a completed task has in place of a continuation.
    pub(super) object: usize,
    /// The delegate type without arguments (`Action`), with the field for its target.
    pub(super) action: TypeWithField,
    /// The type of continuations, with the field for the delegate that an awaiter gave.
    pub(super) await_continuation: TypeWithField,
    /// The type of a continuation made by `ContinueWith`, with the field for its task.
    pub(super) continue_with: TypeWithField,
    /// The type of a wrapper, with the field for the delegate that it wraps.
    pub(super) wrapper: TypeWithField,
    /// The type of the continuation of a thread that blocks.
    pub(super) blocked_thread: usize,
    /// The type of a list of several continuations, with the field for its elements; `None` if
    /// unknown.
    pub(super) list: Option<TypeWithField>,
    /// The fields of the source that is in each iterator; `None` if not known.
    pub(super) of_iterator: Option<SourceFields>,
}

/// Everything that is needed to read a chain.
#[derive(Debug, Clone, Copy)]
pub(super) struct ChainReader<'c> {
    /// The framework's types by which the chain is followed.
    pub(super) core: &'c CoreTypes,
    /// Whether the runtime may be queried while the chain is read.
    pub(super) questions: Questions,
    /// The memory from which objects are read.
    pub(super) memory: ObjectMemory<'c>,
}

impl CoreTypes {
    /// Finds the types.
    ///
    /// # Errors
    /// Describes what is missing: a type or field has another name, or the base class is not at the
    /// expected place in a class.
    pub(super) fn find(info: &ProfilerInfo, functions: &Functions) -> Result<Self, String> {
        let core = CoreLibrary::find(info, functions).ok_or("the core library was not found")?;
        let is_there = |class: &str| core.class(class, None).ok_or(format!("{CORE_LIBRARY} has no {class}"));
        let tasks = "System.Threading.Tasks.";
        let task = is_there(&format!("{tasks}Task"))?;
        let action = is_there("System.Action")?;
        let delegate = is_there("System.Delegate")?;
        let object = is_there("System.Object")?;
        let field = |class: ClassId, declaring: ClassId, name: &str| {
            let field = core.field(declaring, name).ok_or(format!("{CORE_LIBRARY} has no field {name}"))?;
            Ok::<_, String>(TypeWithField { class: class.as_raw(), field })
        };
        // Types that are not loaded, where that is allowed, appear in no chain until they are.
        let own = |class: Option<ClassId>, name: &str| {
            class.and_then(|class| field(class, class, name).ok()).unwrap_or(TypeWithField { class: NONE, field: 0 })
        };
        let found = Self {
            module: core.module,
            task: field(task, task, "m_continuationObject")?,
            object: object.as_raw(),
            action: field(action, delegate, "_target")?,
            await_continuation: own(core.class(&format!("{tasks}AwaitTaskContinuation"), None), "m_action"),
            continue_with: own(core.class(&format!("{tasks}ContinueWithTaskContinuation"), None), "m_task"),
            wrapper: own(core.class(BUILDER_CORE, Some("ContinuationWrapper")), "_continuation"),
            blocked_thread: core.class(&format!("{tasks}Task"), Some("SetOnInvokeMres")).map_or(NONE, ClassId::as_raw),
            list: core.list(object),
            of_iterator: core.class("System.Boolean", None).and_then(|result| core.source(result)),
        };
        let says_parents = parent(found.task.class) == Some(found.object)
            && parent(found.action.class).and_then(parent) == Some(delegate.as_raw());
        if says_parents { Ok(found) } else { Err("classes do not say what they are derived from".to_owned()) }
    }

    /// Whether the class of an object can be that of a pooled box, by its base classes. `class` may
    /// be any word.
    pub(super) fn may_be_pooled(&self, class: usize) -> bool {
        parent(class).and_then(parent) == Some(self.object)
    }

    /// The fields of sources of value tasks with such a result. To be called where the runtime may
    /// load a type.
    pub(super) fn source_fields(info: &ProfilerInfo, functions: &Functions, result: ClassId) -> Option<SourceFields> {
        CoreLibrary::find(info, functions)?.source(result)
    }

    /// Types of objects other than tasks that lead to an awaiter, each as the first word of its
    /// objects and the offset of the field to follow.
    pub(super) fn followed(&self) -> Vec<(usize, usize)> {
        let pair = |leads: TypeWithField| (leads.class, leads.field);
        let ends = [self.object, self.blocked_thread].map(|class| (class, 0));
        let by_field = [self.action, self.wrapper, self.await_continuation, self.continue_with].map(pair);
        let list = self.list.map(|list| (list.class, list.field | TO_ARRAY));
        ends.into_iter().chain(by_field).chain(list).filter(|(class, _)| *class != NONE).collect()
    }

    /// Whether a class is `base` or derived from it. `class` may be any word.
    pub(super) fn derives(class: usize, base: usize) -> bool {
        let classes = std::iter::successors(Some(class), |class| parent(*class).filter(|parent| *parent != 0));
        classes.take(MOST_BASES).any(|class| class == base)
    }
}

/// The first word of objects of the task type, from which all tasks are derived. `None` if the type
/// is not loaded, or if base classes can't be read. Call it on threads of the agent.
pub fn task_class(info: &ProfilerInfo, functions: &Functions) -> Option<usize> {
    let core = CoreLibrary::find(info, functions)?;
    let loaded = |name: &str| core.class(name, None).map(ClassId::as_raw);
    let task = loaded("System.Threading.Tasks.Task")?;
    (parent(task) == loaded("System.Object")).then_some(task)
}

fn parent(class: usize) -> Option<usize> {
    if class == 0 || !class.is_multiple_of(8) {
        return None;
    }
    parent_of(class)
}

struct CoreLibrary<'a> {
    info: &'a ProfilerInfo,
    module: ModuleId,
    metadata: MetadataImport,
}

impl<'a> CoreLibrary<'a> {
    fn find(info: &'a ProfilerInfo, functions: &Functions) -> Option<Self> {
        let is_core =
            |module: &ModuleId| functions.names().assembly(info, *module).is_ok_and(|name| &*name == CORE_LIBRARY);
        let module = info.modules().ok()?.into_iter().find(is_core)?;
        let metadata = functions.names().metadata(info, module).ok()?;
        Some(Self { info, module, metadata })
    }

    fn token(&self, name: &str, nested: Option<&str>) -> Option<Token> {
        let token = self.metadata.find_type_def(name, None).ok()??;
        nested.map_or(Some(token), |nested| self.metadata.find_type_def(nested, Some(token)).ok()?)
    }

    /// The class of a non-generic type, if it is loaded. The runtime knows functions only of loaded
    /// types, and answers without loading one.
    fn class(&self, name: &str, nested: Option<&str>) -> Option<ClassId> {
        let token = self.token(name, nested)?;
        let methods = self.metadata.methods(token).ok()?;
        let loaded = methods.into_iter().find_map(|method| {
            let function = self.info.function_from_token(self.module, method).ok()?;
            self.info.function_place(function).ok()?.0
        });
        loaded.or_else(|| self.info.class_from_token(self.module, token).ok().and_then(ClassId::non_null))
    }

    /// Offset of a field that a class declares, in its objects.
    fn field(&self, class: ClassId, name: &str) -> Option<usize> {
        field_offset(self.info, &self.metadata, class, name)
    }

    /// The fields of sources of value tasks with such a result.
    fn source(&self, result: ClassId) -> Option<SourceFields> {
        let token = self.token("System.Threading.Tasks.Sources.ManualResetValueTaskSourceCore`1", None)?;
        let class = self.info.class_from_token_and_type_args(self.module, token, &[result]).ok()?.non_null()?;
        let field = |name| self.field(class, name);
        Some(SourceFields { continuation: field("_continuation")?, state: field("_continuationState")? })
    }

    /// The list of continuations.
    fn list(&self, object: ClassId) -> Option<TypeWithField> {
        let token = self.token("System.Collections.Generic.List`1", None)?;
        let class = self.info.class_from_token_and_type_args(self.module, token, &[object]).ok()?.non_null()?;
        Some(TypeWithField { class: class.as_raw(), field: self.field(class, "_items")? })
    }
}

/// Offset in bytes of a field that a class declares, in its objects or values.
pub(super) fn field_offset(
    info: &ProfilerInfo,
    metadata: &MetadataImport,
    class: ClassId,
    name: &str,
) -> Option<usize> {
    #[cfg(feature = "renames-on-demand")]
    if std::env::var("CLRSCOPE_TEST_RENAMED").is_ok_and(|renamed| renamed == name) {
        return None;
    }
    let fields = info.class_layout(class).ok()?.fields;
    let is_it = |token: Token| metadata.field(token).is_ok_and(|field| field.name == name && !field.is_static());
    fields.into_iter().find(|(token, _)| is_it(*token)).map(|(_, offset)| offset as usize)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_class_is_derived_from_what_its_words_say() {
        let classes: [[usize; 4]; 3] = [[0; 4], [0; 4], [0; 4]];
        let mut classes = Box::new(classes);
        let address = |classes: &[[usize; 4]; 3], at: usize| classes[at].as_ptr().expose_provenance();
        for (at, base) in [(1, 0), (2, 1)] {
            classes[at][2] = address(&classes, base);
        }
        let classes = std::hint::black_box(classes);
        let [first, second, third] = [0, 1, 2].map(|at| address(&classes, at));
        assert!(CoreTypes::derives(third, first) && CoreTypes::derives(second, second));
        assert!(!CoreTypes::derives(first, second) && !CoreTypes::derives(12, first) && !CoreTypes::derives(0, first));
    }
}
