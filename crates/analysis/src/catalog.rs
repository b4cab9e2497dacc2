//! The functions of one process as rows show them: each instantiation and overload has one entry.
//!
//! When a module is loaded again, the runtime gives a function a new id, and the recording gives it
//! a new index. Reports identify a function by its name and signature, so equal functions share one
//! slot.

use clrscope_recording::model::{Function, FunctionKind, GC_NAME, JIT_NAME, Process, TRUNCATED_NAME};
use rustc_hash::FxHashMap;

use crate::function::FunctionRef;
use crate::metric::Metric;
use crate::query::Query;

/// Index into the dense arrays of a process's functions.
pub(crate) type Slot = u32;

/// Slot for indices of unknown functions.
pub(crate) const UNKNOWN: Slot = 0;

/// Slot and role of an index without a function.
pub(crate) const NO_FUNCTION: SlotRole = SlotRole { slot: UNKNOWN, role: Role::Unhooked };

/// Role of a function in the sums.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub(crate) enum Role {
    /// A function with hooks.
    Managed,
    /// A function without hooks that counts as a call.
    Unhooked,
    /// Time of the runtime's JIT compiler.
    Jit,
    /// Time in which the thread collects garbage.
    Gc,
    /// Time in which the runtime suspends the thread.
    Suspended,
    /// Paths that could not be recorded for lack of memory.
    Truncated,
}

/// A function's slot and role together, because passes over all nodes need both.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct SlotRole {
    pub(crate) slot: Slot,
    pub(crate) role: Role,
}

impl Role {
    fn from_function(function: &Function) -> Self {
        match function.kind {
            FunctionKind::Managed => Self::Managed,
            FunctionKind::Native | FunctionKind::Kernel | FunctionKind::Stub | FunctionKind::Type => Self::Unhooked,
            FunctionKind::Suspended => Self::Suspended,
            FunctionKind::Runtime => match function.name.as_str() {
                JIT_NAME => Self::Jit,
                GC_NAME => Self::Gc,
                TRUNCATED_NAME => Self::Truncated,
                _ => Self::Unhooked,
            },
        }
    }

    /// Whether a node with this role counts as a function call.
    pub(crate) fn is_call(self) -> bool {
        !matches!(self, Self::Jit | Self::Gc | Self::Suspended)
    }
}

/// The functions of one process by slot.
pub(crate) struct Catalog<'a> {
    slot_roles: Vec<SlotRole>,
    functions: Vec<FunctionRef<'a>>,
    roles: Vec<Role>,
    inlined: Vec<bool>,
    tail_recursive: Vec<bool>,
}

impl<'a> Catalog<'a> {
    /// Gives each distinct function of `process` a slot.
    pub(crate) fn new(process: &'a Process) -> Self {
        Self::of_functions(process, process.functions.iter().skip(1))
    }

    /// As [`new`](Self::new), for paths of a metric, which may end in types: these have slots
    /// behind those of all functions.
    pub(crate) fn of_paths(process: &'a Process, metric: &Metric) -> Self {
        let types = if metric.type_leaves { process.type_functions() } else { &[] };
        Self::of_functions(process, process.functions.iter().skip(1).chain(types))
    }

    fn of_functions(process: &'a Process, functions: impl Iterator<Item = &'a Function>) -> Self {
        let unknown = FunctionRef::new(process, None);
        let mut catalog = Self {
            slot_roles: vec![NO_FUNCTION],
            functions: vec![unknown],
            roles: vec![Role::Unhooked],
            inlined: vec![false],
            tail_recursive: vec![false],
        };
        let mut known = FxHashMap::default();
        for function in functions {
            let named = FunctionRef::new(process, Some(function));
            let identity = (
                (function.name.as_str(), function.signature.as_str(), function.token, function.kind, function.source),
                (named.module.name.as_str(), named.module.path.as_str()),
            );
            let slot = *known.entry(identity).or_insert_with(|| {
                catalog.functions.push(named);
                catalog.roles.push(Role::from_function(function));
                catalog.inlined.push(false);
                catalog.tail_recursive.push(false);
                catalog.functions.len() as Slot - 1
            });
            catalog.inlined[slot as usize] |= function.flags.inlined;
            catalog.tail_recursive[slot as usize] |= function.flags.tail_recursive;
            catalog.slot_roles.push(SlotRole { slot, role: catalog.roles[slot as usize] });
        }
        catalog
    }

    /// Slots and roles by function index of the recording.
    pub(crate) fn slot_roles(&self) -> &[SlotRole] {
        &self.slot_roles
    }

    /// Returns the slot and the role of a function index of the recording.
    #[inline]
    pub(crate) fn slot_role(&self, function: u32) -> SlotRole {
        self.slot_roles.get(function as usize).copied().unwrap_or(NO_FUNCTION)
    }

    /// The slot of a function index of the recording.
    #[inline]
    pub(crate) fn slot(&self, function: u32) -> Slot {
        self.slot_role(function).slot
    }

    /// Number of functions' slots. The next slot number represents the thread itself.
    pub(crate) fn len(&self) -> usize {
        self.functions.len()
    }

    /// The slot that represents the thread itself.
    pub(crate) fn root(&self) -> Slot {
        self.functions.len() as Slot
    }

    /// The function in `slot`.
    pub(crate) fn function(&self, slot: Slot) -> FunctionRef<'a> {
        self.functions.get(slot as usize).copied().unwrap_or(self.functions[UNKNOWN as usize])
    }

    /// Whether the function in `slot` was inlined somewhere, so that not all its calls are counted.
    pub(crate) fn is_inlined(&self, slot: Slot) -> bool {
        self.inlined.get(slot as usize).copied().unwrap_or_default()
    }

    /// Whether the function in `slot` calls itself in tail position. The compiler may then have
    /// turned the recursion into a loop.
    pub(crate) fn is_tail_recursive(&self, slot: Slot) -> bool {
        self.tail_recursive.get(slot as usize).copied().unwrap_or_default()
    }

    /// Role of the function in `slot`; [`Role::Unhooked`] for the thread itself.
    #[inline]
    pub(crate) fn role(&self, slot: Slot) -> Role {
        self.roles.get(slot as usize).copied().unwrap_or(Role::Unhooked)
    }

    /// For each slot, whether a query's function and module filters keep the function. They are not
    /// about types.
    pub(crate) fn wanted(&self, query: &Query) -> Vec<bool> {
        let is_type = |f: &FunctionRef<'_>| f.kind() == FunctionKind::Type;
        let wants = |f: &FunctionRef<'_>| !is_type(f) && query.wants_function(f.module(), f.function);
        self.functions.iter().map(wants).collect()
    }
}
