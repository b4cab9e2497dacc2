//! Layout of the boxes that async methods live in while they wait.

use std::sync::Arc;

use clr_profiler::metadata::MetadataImport;
use clr_profiler::{ClassId, ClassInfo, ModuleId, NameCache, ProfilerInfo, Token};
use clrscope_contract::async_code::CORE_LIBRARY;

use super::awaits::{STATES, awaits_in};
use super::core_types::field_offset;

/// Types of boxes, which the builders of async methods make.
const BOXES: [&str; 2] = ["AsyncStateMachineBox`1", "DebugFinalizableAsyncStateMachineBox`1"];
/// Classes between a box and the type that declares its field at most.
const MOST_BASES: usize = 3;

/// Layout of the boxes of a class.
#[derive(Debug, Clone)]
pub struct BoxLayout {
    /// Module with the method's code.
    pub module: ModuleId,
    /// Token of the code, `MoveNext` of its state machine.
    pub token: Token,
    /// Offset in the box of the method's own state, or of what refers to it.
    pub machine: usize,
    /// Whether the method's own state lies in the box.
    pub is_value: bool,
    /// Offset in the method's own state, or in the object that it is, of the number of its await,
    /// where that is known.
    pub state: Option<usize>,
    /// Offsets in the method's IL of the awaits, by their numbers.
    pub awaits: Arc<[Option<u32>]>,
}

impl BoxLayout {
    /// Finds the layout of the boxes of a class; `None` where they are not known, or it is no class
    /// of boxes. Asks the runtime, and loads nothing: a box that is there has its type arguments.
    pub fn find(info: &ProfilerInfo, names: &NameCache, class: ClassId) -> Option<Self> {
        let about = info.class_info(class).ok()?;
        let metadata = names.metadata(info, about.module).ok()?;
        let is_of_core = names.assembly(info, about.module).is_ok_and(|name| &*name == CORE_LIBRARY);
        let (machine, found) = machine_in(info, &metadata, &about).filter(|_| is_of_core)?;
        Self::with_machine(info, names, (class, &metadata), (machine, &found))
    }

    /// Finds the layout of the boxes of a class, given the core library's metadata and the type
    /// that holds the method's own state.
    pub(super) fn with_machine(
        info: &ProfilerInfo,
        names: &NameCache,
        (class, core): (ClassId, &MetadataImport),
        (machine_class, machine): (ClassId, &ClassInfo),
    ) -> Option<Self> {
        let bases = std::iter::successors(Some(class), |class| info.class_info(*class).ok()?.parent);
        let offset = bases.take(MOST_BASES).find_map(|class| field_offset(info, core, class, "StateMachine"))?;
        let metadata = names.metadata(info, machine.module).ok()?;
        let token = *metadata.methods_named(machine.token, "MoveNext").ok()?.first()?;
        let body = info.il_function_body(machine.module, token);
        Some(Self {
            module: machine.module,
            token,
            machine: offset,
            is_value: is_value(info, names, machine.parent?)?,
            state: STATES.iter().find_map(|name| field_offset(info, &metadata, machine_class, name)),
            awaits: body.map(|body| awaits_in(&body, &metadata)).unwrap_or_default().into(),
        })
    }
}

/// The type that holds the state of the method whose boxes a class of the core library is of;
/// `None` where it is no class of boxes.
pub(super) fn machine_in(
    info: &ProfilerInfo,
    core: &MetadataImport,
    class: &ClassInfo,
) -> Option<(ClassId, ClassInfo)> {
    is_box(core, class).then_some(())?;
    let machine = class.type_arguments.last()?.non_null()?;
    Some((machine, info.class_info(machine).ok()?))
}

/// Whether a class of the core library is one of boxes.
pub(super) fn is_box(core: &MetadataImport, class: &ClassInfo) -> bool {
    core.type_def(class.token).is_ok_and(|declared| BOXES.contains(&&*declared.name))
}

/// Whether a class with this parent is one of values.
fn is_value(info: &ProfilerInfo, names: &NameCache, parent: ClassId) -> Option<bool> {
    let about = info.class_info(parent).ok()?;
    let is_of_core = names.assembly(info, about.module).is_ok_and(|name| &*name == CORE_LIBRARY);
    let declared = names.metadata(info, about.module).ok()?.type_def(about.token).ok()?;
    Some(is_of_core && declared.name == "System.ValueType")
}
