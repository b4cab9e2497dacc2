//! Layout of the state machine boxes of async methods that wait.

use std::sync::Arc;

use clr_profiler::metadata::MetadataImport;
use clr_profiler::{ClassId, ClassInfo, ModuleId, NameCache, ProfilerInfo, Token};
use clrscope_contract::async_code::CORE_LIBRARY;

use super::awaits::{STATES, awaits_in};
use super::core_types::field_offset;

/// Types of boxes, which the builders of async methods create.
const BOXES: [&str; 3] = ["AsyncStateMachineBox`1", "DebugFinalizableAsyncStateMachineBox`1", "StateMachineBox`1"];
/// Most classes between a box and the type that declares its field.
const MOST_BASES: usize = 3;

/// Layout of the state machine boxes of one class.
#[derive(Debug, Clone)]
pub struct BoxLayout {
    /// Module of the method's code.
    pub module: ModuleId,
    /// Token of the code: `MoveNext` of the state machine.
    pub token: Token,
    /// Offset within the box of the state machine, or of the reference to it.
    pub machine: usize,
    /// Whether the box contains the state machine itself, as a value.
    pub is_value: bool,
    /// Offset in the state machine of the number of its current await; `None` if unknown.
    pub state: Option<usize>,
    /// IL offsets of the method's awaits, indexed by await number.
    pub awaits: Arc<[Option<u32>]>,
}

impl BoxLayout {
    /// Finds the layout of the boxes of a class; `None` if unknown, or if the class is not a box.
    /// Asks the runtime, but loads nothing: the type arguments of an existing box are loaded
    /// already.
    pub fn find(info: &ProfilerInfo, names: &NameCache, class: ClassId) -> Option<Self> {
        let about = info.class_info(class).ok()?;
        let metadata = names.metadata(info, about.module).ok()?;
        let is_of_core = names.assembly(info, about.module).is_ok_and(|name| &*name == CORE_LIBRARY);
        let (machine, found) = machine_in(info, &metadata, &about).filter(|_| is_of_core)?;
        Self::with_machine(info, names, (class, &metadata), (machine, &found))
    }

    /// Like [`find`](Self::find), with the core library's metadata and the type of the state
    /// machine already known.
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

/// The type of the state machine in a box. `class` is a class of the core library; `None` if it is
/// not a box.
pub(super) fn machine_in(
    info: &ProfilerInfo,
    core: &MetadataImport,
    class: &ClassInfo,
) -> Option<(ClassId, ClassInfo)> {
    is_box(core, class).then_some(())?;
    let machine = class.type_arguments.last()?.non_null()?;
    Some((machine, info.class_info(machine).ok()?))
}

/// Whether a class of the core library is a box.
pub(super) fn is_box(core: &MetadataImport, class: &ClassInfo) -> bool {
    core.type_def(class.token).is_ok_and(|declared| BOXES.contains(&&*declared.name))
}

/// Whether a class with this base class is a value type.
fn is_value(info: &ProfilerInfo, names: &NameCache, parent: ClassId) -> Option<bool> {
    let about = info.class_info(parent).ok()?;
    let is_of_core = names.assembly(info, about.module).is_ok_and(|name| &*name == CORE_LIBRARY);
    let declared = names.metadata(info, about.module).ok()?.type_def(about.token).ok()?;
    Some(is_of_core && declared.name == "System.ValueType")
}
