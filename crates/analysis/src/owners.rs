//! Owners of framework code. The owner is the nearest own function above the code on the path.
//!
//! Own code is code that does not belong to the framework. If a function of the program sorts a
//! list, the work is done in the framework. A time profile that shows only the sorting does not
//! tell which function requested it. So work and waits in the framework are charged to the own code
//! that led to them.

use clrscope_recording::layout::instrument;
use clrscope_recording::model::{CallTree, FunctionKind, NodeValues, Process, Sample, StackFrame};
use clrscope_recording::parallel::fold;
use rustc_hash::FxHashMap;

use crate::catalog::{Catalog, Role, Slot};
use crate::function::{FunctionRef, is_own, is_profilers};
use crate::paths::Paths;
use crate::stack_trees::{Frame, StackSum, StackVisitor};
use crate::waits::{WaitKind, wait_kind};

/// Used instead of a function's slot: work that is not divided by function, and that contains no
/// profiler share.
const WHOLE: Slot = Slot::MAX;

/// Finds the innermost own function of each stack of a process.
pub(crate) struct OwnFrames<'a> {
    process: &'a Process,
    by_stack: FxHashMap<u32, Option<u32>>,
}

impl<'a> OwnFrames<'a> {
    pub(crate) fn new(process: &'a Process) -> Self {
        Self { process, by_stack: FxHashMap::default() }
    }

    /// The innermost own function with its index; `None` if the stack has no frame of own code.
    pub(crate) fn innermost(&mut self, stack: u32) -> Option<(u32, FunctionRef<'a>)> {
        let process = self.process;
        let function = |index: u32| FunctionRef::new(process, process.functions.get(index as usize));
        let index = *self.by_stack.entry(stack).or_insert_with(|| {
            let methods = process.stacks.frames(stack).filter_map(|frame| match frame {
                StackFrame::Method { function, .. } => Some(function),
                _ => None,
            });
            methods.into_iter().find(|&index| is_own(&function(index)))
        });
        index.map(|index| (index, function(index)))
    }
}

/// Measured times of one process, by owner. The owner is [`Catalog::root`] if there is no own
/// function above.
#[derive(Default)]
pub(crate) struct Owners {
    /// Work of a function below its owner, in nanoseconds of CPU time, or of wall time where CPU
    /// time was not measured.
    work: FxHashMap<(Slot, Slot), u64>,
    /// Waits below an owner.
    waits: FxHashMap<(Slot, WaitKind), u64>,
    /// Exceptions created below an owner.
    exceptions: FxHashMap<Slot, u64>,
}

/// Properties of functions, determined before the trees are walked.
struct FunctionFacts {
    is_own: Vec<bool>,
    is_profilers: Vec<bool>,
    waits: Vec<Option<WaitKind>>,
    makes_exceptions: Vec<bool>,
    cpu: bool,
}

/// The owner of a node and the wait of its thread, passed to the nodes below.
#[derive(Clone, Copy)]
pub(crate) struct OwnerContext {
    owner: Slot,
    waits: Option<WaitKind>,
    /// Whether the code belongs to the agent, whose work has no owner here.
    is_profilers: bool,
}

impl OwnerContext {
    /// Creates the context of code directly below an owner.
    fn for_owner(owner: Slot) -> Self {
        Self { owner, waits: None, is_profilers: false }
    }
}

impl FunctionFacts {
    fn new(paths: &Paths<'_>, catalog: &Catalog<'_>) -> Self {
        let functions = || (0..catalog.len() as Slot).map(|slot| catalog.function(slot));
        let only_work = paths.metric.is_sampled() && paths.metric.instrument == instrument::CPU;
        Self {
            is_own: functions().map(|function| is_own(&function)).collect(),
            is_profilers: functions().map(|function| is_profilers(&function)).collect(),
            // Samples of CPU time were taken while threads worked.
            waits: functions().map(|function| wait_kind(&function).filter(|_| !only_work)).collect(),
            makes_exceptions: functions().map(|function| makes_exceptions(&function)).collect(),
            cpu: paths.metric.is_of_calls() && paths.process.calls.as_ref().is_some_and(|calls| calls.cpu_measured),
        }
    }

    /// Owner and wait at a called function.
    #[inline]
    fn below(&self, caller: OwnerContext, slot: Slot) -> OwnerContext {
        if self.is_own.get(slot as usize) == Some(&true) {
            return OwnerContext::for_owner(slot);
        }
        OwnerContext {
            waits: caller.waits.or_else(|| self.waits.get(slot as usize).copied().flatten()),
            is_profilers: caller.is_profilers || self.is_profilers.get(slot as usize) == Some(&true),
            ..caller
        }
    }
}

/// Owners, found along the stacks of events. Events have no call counts, so no exceptions are
/// counted.
pub(crate) struct OwnerSums<'c> {
    known: FunctionFacts,
    catalog: &'c Catalog<'c>,
}

impl<'c> OwnerSums<'c> {
    pub(crate) fn new(paths: &Paths<'_>, catalog: &'c Catalog<'_>) -> Self {
        Self { known: FunctionFacts::new(paths, catalog), catalog }
    }
}

impl StackVisitor for OwnerSums<'_> {
    type Acc = Owners;
    type Inherited = OwnerContext;

    fn begin(&self) -> Owners {
        Owners::default()
    }

    fn outside(&self) -> OwnerContext {
        OwnerContext::for_owner(self.catalog.root())
    }

    #[inline]
    fn enter(&self, _: &mut Owners, caller: OwnerContext, frame: &Frame) -> OwnerContext {
        self.known.below(caller, frame.slot)
    }

    fn stack(&self, found: &mut Owners, here: OwnerContext, frame: &Frame, _: u32, sum: StackSum) {
        let time = NodeValues { metric: sum.amount, cpu_ns: sum.samples };
        found.charge(&self.known, self.catalog, here, frame.slot, time);
    }

    fn leave(&self, _: &mut Owners, _: OwnerContext, _: &Frame, _: StackSum) {}

    fn join(&self, all: &mut Owners, part: Owners) {
        all.join(part);
    }
}

impl Owners {
    /// Charges the times of all selected threads of a process.
    pub(crate) fn from_paths(paths: &Paths<'_>, catalog: &Catalog<'_>) -> Self {
        let known = FunctionFacts::new(paths, catalog);
        let parts = fold(paths.threads.len(), Self::default, |part, at| {
            part.charge_tree(&paths.threads[at].load().in_preorder(), catalog, &known);
        });
        let mut all = Self::default();
        parts.into_iter().for_each(|part| all.join(part));
        all
    }

    /// Adds a sample of the clock to the sums of its owner. The thread state tells whether the
    /// thread worked or what it waited for.
    pub(crate) fn add_sample(&mut self, catalog: &Catalog<'_>, owner: Option<u32>, sample: &Sample) {
        let owner = owner.map_or(catalog.root(), |function| catalog.slot(function));
        match WaitKind::of_state(sample.state) {
            Some(kind) => add(&mut self.waits, (owner, kind), sample.weight_ns),
            None if sample.profiler => {}
            None => add(&mut self.work, (owner, WHOLE), sample.weight_ns),
        }
    }

    fn join(&mut self, part: Self) {
        part.work.into_iter().for_each(|(key, ns)| add(&mut self.work, key, ns));
        part.waits.into_iter().for_each(|(key, ns)| add(&mut self.waits, key, ns));
        part.exceptions.into_iter().for_each(|(owner, count)| add(&mut self.exceptions, owner, count));
    }

    fn charge_tree(&mut self, tree: &CallTree, catalog: &Catalog<'_>, known: &FunctionFacts) {
        let root = OwnerContext::for_owner(catalog.root());
        let mut above = vec![root; tree.len()];
        let makes = |slot: Slot| known.makes_exceptions.get(slot as usize) == Some(&true);
        let mut times = tree.values().iter().peekable();
        for (node, (&parent, &function)) in tree.parents().iter().zip(tree.functions()).enumerate().skip(1) {
            let slot = catalog.slot(function);
            let caller = above.get(parent as usize).copied().unwrap_or(root);
            let here = known.below(caller, slot);
            above[node] = here;
            if makes(slot) && !tree.functions().get(parent as usize).is_some_and(|&above| makes(catalog.slot(above))) {
                // Constructors that call one another make one exception.
                add(&mut self.exceptions, here.owner, tree.calls(node as u32));
            }
            while times.next_if(|time| (time.0 as usize) < node).is_some() {}
            let Some((_, time)) = times.next_if(|time| time.0 as usize == node) else { continue };
            self.charge(known, catalog, here, slot, *time);
        }
    }

    /// Charges times of a function to its owner.
    fn charge(
        &mut self,
        known: &FunctionFacts,
        catalog: &Catalog<'_>,
        here: OwnerContext,
        slot: Slot,
        time: NodeValues,
    ) {
        if here.is_profilers || matches!(catalog.role(slot), Role::Jit | Role::Gc | Role::Suspended) {
            return;
        }
        let (work, waited) = match (known.cpu, here.waits) {
            (true, waits) => (time.cpu_ns, Some(waits.unwrap_or(WaitKind::Other))),
            (false, Some(waits)) => (0, Some(waits)),
            (false, None) => (time.metric, None),
        };
        add(&mut self.work, (here.owner, slot), work);
        if let Some(waits) = waited {
            add(&mut self.waits, (here.owner, waits), time.metric.saturating_sub(work));
        }
    }

    /// Work by owner. `keeps` returns the part of a function's work that remains after the
    /// profiler's share is subtracted, given the function's measured total.
    pub(crate) fn work_by_owner(&self, keeps: impl Fn(Slot, u64) -> f64) -> FxHashMap<Slot, u64> {
        let mut measured: FxHashMap<Slot, u64> = FxHashMap::default();
        self.work.iter().for_each(|(&(_, slot), &ns)| add(&mut measured, slot, ns));
        let parts: FxHashMap<Slot, f64> = measured.into_iter().map(|(slot, ns)| (slot, keeps(slot, ns))).collect();
        // Rounded once for each pair, so that the order in which a map is walked does not matter.
        let mut work = FxHashMap::default();
        for (&(owner, slot), &ns) in &self.work {
            let part = parts.get(&slot).copied().unwrap_or(1.0);
            add(&mut work, owner, (ns as f64 * part).round() as u64);
        }
        work
    }

    /// Waits below each owner, unordered.
    pub(crate) fn waits(&self) -> impl Iterator<Item = (Slot, WaitKind, u64)> {
        self.waits.iter().map(|(&(owner, kind), &ns)| (owner, kind, ns))
    }

    /// Exceptions created below each owner, unordered.
    pub(crate) fn exceptions(&self) -> impl Iterator<Item = (Slot, u64)> {
        self.exceptions.iter().map(|(&owner, &count)| (owner, count))
    }
}

/// Whether each call of a function creates an exception: the base constructor, which all exception
/// constructors call.
fn makes_exceptions(function: &FunctionRef<'_>) -> bool {
    function.kind() == FunctionKind::Managed
        && function.module.framework
        && function.name() == "System.Exception::.ctor"
}

fn add<K: Eq + std::hash::Hash>(sums: &mut FxHashMap<K, u64>, key: K, amount: u64) {
    if amount > 0 {
        let sum = sums.entry(key).or_default();
        *sum = sum.saturating_add(amount);
    }
}
