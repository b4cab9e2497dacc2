//! What the views are made of. Rows borrow names from the recording: a row is numbers and references.

use std::cmp::Ordering;

use clrscope_recording::model::{Function, FunctionKind, Loss, Module, Problem, Thread};

use crate::query::Sort;
use crate::views::conditions::Conditions;

/// A function of a process, by reference.
#[derive(Debug, Clone, Copy)]
pub struct FunctionRef<'a> {
    /// The process it ran in.
    pub pid: u32,
    /// The function; a placeholder named `(unknown)` where the recording's index leads nowhere.
    pub function: &'a Function,
    /// Its module; an empty one where it has none.
    pub module: &'a Module,
}

impl<'a> FunctionRef<'a> {
    /// `Namespace.Type::Method`.
    #[must_use]
    pub fn name(&self) -> &'a str {
        &self.function.name
    }

    /// As C# would write it; the name where the recording has no signature.
    #[must_use]
    pub fn signature(&self) -> &'a str {
        if self.function.signature.is_empty() { &self.function.name } else { &self.function.signature }
    }

    /// The assembly's or library's name, or empty.
    #[must_use]
    pub fn module(&self) -> &'a str {
        &self.module.name
    }

    /// Metadata token, 0 where there is none.
    #[must_use]
    pub fn token(&self) -> u32 {
        self.function.token
    }

    /// Managed, native or runtime.
    #[must_use]
    pub fn kind(&self) -> FunctionKind {
        self.function.kind
    }

    /// The order of rows that are otherwise equal: name, signature, module, token, process.
    #[must_use]
    pub fn compare(&self, other: &Self) -> Ordering {
        self.name()
            .cmp(other.name())
            .then_with(|| self.signature().cmp(other.signature()))
            .then_with(|| self.module().cmp(other.module()))
            .then_with(|| self.token().cmp(&other.token()))
            .then_with(|| self.pid.cmp(&other.pid))
            .then_with(|| self.module.path.cmp(&other.module.path))
            .then_with(|| (self.kind(), &self.function.raw_name).cmp(&(other.kind(), &other.function.raw_name)))
    }
}

/// Calls and times of a row; the crate's page defines each. Wall time unless the name says CPU.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Times {
    /// Calls; of `[JIT]` compilations, of suspensions their number.
    pub calls: u64,
    /// Outermost activations with everything they called.
    pub inclusive_ns: u64,
    /// Own time.
    pub exclusive_ns: u64,
    /// Time in calls to other functions.
    pub callee_ns: u64,
    /// Time suspended by the runtime while on top.
    pub suspended_ns: u64,
    /// The profiler's estimated share of the own time: part of `inclusive_ns` in raw reports, already
    /// taken out in compensated ones.
    pub profiler_ns: u64,
    /// The share is believed to be at least this.
    pub profiler_low_ns: u64,
    /// The share is believed to be at most this.
    pub profiler_high_ns: u64,
    /// CPU time of outermost activations, where measured.
    pub inclusive_cpu_ns: Option<u64>,
    /// Own CPU time, where measured.
    pub exclusive_cpu_ns: Option<u64>,
}

impl Times {
    /// Adds `other` to it; CPU time is there when either has it.
    pub(crate) fn add(&mut self, other: &Self) {
        let sum = |a: &mut u64, b: u64| *a = a.saturating_add(b);
        sum(&mut self.calls, other.calls);
        sum(&mut self.inclusive_ns, other.inclusive_ns);
        sum(&mut self.exclusive_ns, other.exclusive_ns);
        sum(&mut self.callee_ns, other.callee_ns);
        sum(&mut self.suspended_ns, other.suspended_ns);
        sum(&mut self.profiler_ns, other.profiler_ns);
        sum(&mut self.profiler_low_ns, other.profiler_low_ns);
        sum(&mut self.profiler_high_ns, other.profiler_high_ns);
        self.inclusive_cpu_ns = add_known(self.inclusive_cpu_ns, other.inclusive_cpu_ns);
        self.exclusive_cpu_ns = add_known(self.exclusive_cpu_ns, other.exclusive_cpu_ns);
    }

    /// What a sort key sorts by; 0 for names.
    pub(crate) fn key(&self, sort: Sort) -> u64 {
        match sort {
            Sort::Exclusive => self.exclusive_ns,
            Sort::Inclusive => self.inclusive_ns,
            Sort::Callee => self.callee_ns,
            Sort::Suspended => self.suspended_ns,
            Sort::Profiler => self.profiler_ns,
            Sort::ExclusiveCpu => self.exclusive_cpu_ns.unwrap_or(0),
            Sort::InclusiveCpu => self.inclusive_cpu_ns.unwrap_or(0),
            Sort::Calls => self.calls,
            Sort::Recursion | Sort::Name | Sort::Module => 0,
        }
    }
}

/// Sum of what is known.
pub(crate) fn add_known(a: Option<u64>, b: Option<u64>) -> Option<u64> {
    match (a, b) {
        (Some(a), Some(b)) => Some(a.saturating_add(b)),
        (a, b) => a.or(b),
    }
}

/// One row of `functions`: an instantiation or overload in one process, or in one thread of it.
#[derive(Debug, Clone, Copy)]
pub struct FunctionRow<'a> {
    /// The function.
    pub function: FunctionRef<'a>,
    /// The thread, in per-thread reports.
    pub thread: Option<&'a Thread>,
    /// Calls and times.
    pub times: Times,
    /// How many activations of it lay on one stack at once, at most; 1 without recursion.
    pub max_recursion: u32,
    /// How many threads called it.
    pub threads: u32,
}

impl FunctionRow<'_> {
    /// Order of two rows under `sort`.
    #[must_use]
    pub fn compare(&self, other: &Self, sort: Sort) -> Ordering {
        let by_key = match sort {
            Sort::Recursion => other.max_recursion.cmp(&self.max_recursion),
            Sort::Module => self.function.module().cmp(other.function.module()),
            _ => other.times.key(sort).cmp(&self.times.key(sort)),
        };
        let thread = |row: &Self| row.thread.map_or(0, |t| t.id);
        by_key.then_with(|| self.function.compare(&other.function)).then_with(|| thread(self).cmp(&thread(other)))
    }
}

/// Sums over the selected processes and threads, before any limit or filter of functions.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Totals {
    /// Calls of functions, without compilations and suspensions.
    pub calls: u64,
    /// Wall time of all threads together inside recorded functions, the runtime's own time included;
    /// what shares are shares of. Compensated unless the query is raw.
    pub functions_ns: u64,
    /// Wall time of threads outside every recorded function.
    pub outside_ns: u64,
    /// Part of `functions_ns`: the runtime compiled.
    pub jit_ns: u64,
    /// Part of `functions_ns`: threads stood suspended.
    pub suspended_ns: u64,
    /// The profiler's share, everywhere: taken out in compensated reports, inside in raw ones.
    pub profiler_ns: u64,
    /// The share is believed to be at least this.
    pub profiler_low_ns: u64,
    /// The share is believed to be at most this.
    pub profiler_high_ns: u64,
    /// CPU time inside recorded functions, where measured.
    pub cpu_ns: Option<u64>,
    /// Calls that ended in `(truncated)`.
    pub truncated_calls: u64,
    /// Time under `(truncated)`.
    pub truncated_ns: u64,
}

impl Totals {
    /// `ns` as a share of the time in recorded functions, 0 to 1.
    #[must_use]
    pub fn share(&self, ns: u64) -> f64 {
        if self.functions_ns == 0 { 0.0 } else { (ns as f64 / self.functions_ns as f64).min(1.0) }
    }

    pub(crate) fn add(&mut self, other: &Self) {
        self.calls = self.calls.saturating_add(other.calls);
        self.functions_ns = self.functions_ns.saturating_add(other.functions_ns);
        self.outside_ns = self.outside_ns.saturating_add(other.outside_ns);
        self.jit_ns = self.jit_ns.saturating_add(other.jit_ns);
        self.suspended_ns = self.suspended_ns.saturating_add(other.suspended_ns);
        self.profiler_ns = self.profiler_ns.saturating_add(other.profiler_ns);
        self.profiler_low_ns = self.profiler_low_ns.saturating_add(other.profiler_low_ns);
        self.profiler_high_ns = self.profiler_high_ns.saturating_add(other.profiler_high_ns);
        self.cpu_ns = add_known(self.cpu_ns, other.cpu_ns);
        self.truncated_calls = self.truncated_calls.saturating_add(other.truncated_calls);
        self.truncated_ns = self.truncated_ns.saturating_add(other.truncated_ns);
    }
}

/// The view `functions`.
#[derive(Debug, Clone, Default)]
pub struct Functions<'a> {
    /// The rows, ordered and limited.
    pub rows: Vec<FunctionRow<'a>>,
    /// Rows that the limit left out.
    pub left_out: usize,
    /// How the selected part came about, with its sums.
    pub conditions: Conditions<'a>,
}

/// The view `threads`.
#[derive(Debug, Clone, Default)]
pub struct Threads<'a> {
    /// The rows, ordered and limited.
    pub rows: Vec<ThreadRow<'a>>,
    /// Rows that the limit left out.
    pub left_out: usize,
    /// How the selected part came about, with its sums.
    pub conditions: Conditions<'a>,
}

/// The view `modules`.
#[derive(Debug, Clone, Default)]
pub struct Modules<'a> {
    /// The rows, ordered and limited.
    pub rows: Vec<ModuleRow<'a>>,
    /// Rows that the limit left out.
    pub left_out: usize,
    /// How the selected part came about, with its sums.
    pub conditions: Conditions<'a>,
}

/// One node of the view `tree`. Nodes come in preorder: the children of a node at depth d are the
/// nodes at depth d + 1 that follow it before the next one at depth d or less.
#[derive(Debug, Clone, Copy)]
pub struct TreeNode<'a> {
    /// 0 for the outermost functions.
    pub depth: u32,
    /// How many children of it follow.
    pub children: u32,
    /// The function.
    pub function: FunctionRef<'a>,
    /// The thread, in per-thread reports.
    pub thread: Option<&'a Thread>,
    /// Calls and times of this path alone; inclusive is the whole subtree.
    pub times: Times,
    /// Every path merged here was first entered by a tail call: the function that made the call has
    /// ended and is a sibling.
    pub by_tail_call: bool,
}

/// What a tree leaves out, so that it can be read.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct TreeOptions {
    /// Nodes with a smaller share of the selected time are left out with everything below them.
    pub min_share: f64,
    /// Nodes at this depth and beyond are left out; `None` keeps all.
    pub max_depth: Option<u32>,
}

/// What was left out of a tree.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Pruned {
    /// Subtrees left out (not the nodes within them).
    pub subtrees: u64,
    /// Their inclusive time.
    pub inclusive_ns: u64,
}

/// The view `tree`, all at once; for large ones walk it instead.
#[derive(Debug, Clone, Default)]
pub struct Tree<'a> {
    /// The nodes in preorder.
    pub nodes: Vec<TreeNode<'a>>,
    /// What the options left out.
    pub pruned: Pruned,
    /// How the selected part came about, with its sums.
    pub conditions: Conditions<'a>,
}

/// One row of `callers` or `callees`: the function on the other side, with the calls and times of
/// that edge alone (inclusive counts activations that are not within another of the same edge).
#[derive(Debug, Clone, Copy)]
pub struct EdgeRow<'a> {
    /// The caller or callee; `None` where a thread itself is the caller.
    pub function: Option<FunctionRef<'a>>,
    /// Calls and times of the callee along this edge.
    pub times: Times,
}

/// The view `callers` or `callees`.
#[derive(Debug, Clone, Default)]
pub struct NeighboursView<'a> {
    /// One item for each function that matches, the one with the most exclusive time first.
    pub items: Vec<Neighbours<'a>>,
    /// How the selected part came about, with its sums.
    pub conditions: Conditions<'a>,
}

/// One function with its callers or callees.
#[derive(Debug, Clone)]
pub struct Neighbours<'a> {
    /// The function.
    pub function: FunctionRow<'a>,
    /// The other side, ordered and limited.
    pub rows: Vec<EdgeRow<'a>>,
    /// Rows that the limit left out.
    pub left_out: usize,
}

impl EdgeRow<'_> {
    /// Order of two rows under `sort`; a thread comes before functions that are otherwise equal.
    #[must_use]
    pub fn compare(&self, other: &Self, sort: Sort) -> Ordering {
        let module = |row: &Self| row.function.map_or("", |f| f.module());
        let by_key = match sort {
            Sort::Module => module(self).cmp(module(other)),
            _ => other.times.key(sort).cmp(&self.times.key(sort)),
        };
        by_key.then_with(|| match (&self.function, &other.function) {
            (Some(a), Some(b)) => a.compare(b),
            (a, b) => a.is_some().cmp(&b.is_some()),
        })
    }
}

/// The call graph.
#[derive(Debug, Clone, Default)]
pub struct CallGraph<'a> {
    /// The nodes.
    pub functions: Vec<FunctionRow<'a>>,
    /// The edges, ordered by caller and callee.
    pub edges: Vec<GraphEdge>,
    /// Functions that the limit left out, with their edges.
    pub left_out: usize,
    /// How the selected part came about, with its sums.
    pub conditions: Conditions<'a>,
}

/// An edge of the call graph.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct GraphEdge {
    /// Index into [`CallGraph::functions`].
    pub caller: usize,
    /// Index into [`CallGraph::functions`].
    pub callee: usize,
    /// Calls and times of the callee along this edge.
    pub times: Times,
}

/// One row of `threads`.
#[derive(Debug, Clone, Copy)]
pub struct ThreadRow<'a> {
    /// The process.
    pub pid: u32,
    /// Ids, name, role, times of creation and end.
    pub thread: &'a Thread,
    /// Wall time inside recorded functions, without suspensions and the profiler's share.
    pub running_ns: u64,
    /// Wall time outside every recorded function, without the profiler's share.
    pub outside_ns: u64,
    /// CPU time, where measured.
    pub cpu_ns: Option<u64>,
    /// Time suspended by the runtime.
    pub suspended_ns: u64,
    /// The profiler's share.
    pub profiler_ns: u64,
    /// The share is believed to be at least this.
    pub profiler_low_ns: u64,
    /// The share is believed to be at most this.
    pub profiler_high_ns: u64,
    /// Calls of functions, without compilations and suspensions.
    pub calls: u64,
    /// Deepest path, in functions.
    pub max_depth: u32,
}

/// One row of `modules`.
#[derive(Debug, Clone, Copy)]
pub struct ModuleRow<'a> {
    /// The process.
    pub pid: u32,
    /// Name, path, version.
    pub module: &'a Module,
    /// How many of its functions were called.
    pub functions: u64,
    /// Calls of them.
    pub calls: u64,
    /// Exclusive wall time of them.
    pub exclusive_ns: u64,
    /// Exclusive CPU time of them, where measured.
    pub exclusive_cpu_ns: Option<u64>,
}

/// One row of `losses`.
#[derive(Debug, Clone, Copy)]
pub struct LossRow<'a> {
    /// The process.
    pub pid: u32,
    /// Reason, count, first and last time.
    pub loss: &'a Loss,
}

/// The view `losses`.
#[derive(Debug, Clone, Default)]
pub struct Losses<'a> {
    /// The rows, by process and reason.
    pub rows: Vec<LossRow<'a>>,
    /// What could not be read.
    pub problems: &'a [Problem],
}

/// One sentence of the summary.
#[derive(Debug, Clone, PartialEq)]
pub struct Finding {
    /// The sentence.
    pub text: String,
    /// The share it speaks of, 0 to 1.
    pub share: f64,
}

/// The view `summary`.
#[derive(Debug, Clone, Default)]
pub struct Summary<'a> {
    /// What stands out, the most important first.
    pub findings: Vec<Finding>,
    /// The ten first functions by exclusive time.
    pub top: Vec<FunctionRow<'a>>,
    /// Functions that were called in all.
    pub functions: usize,
    /// How the selected part came about, with its sums.
    pub conditions: Conditions<'a>,
}
