//! Where in the program's own code the CPU time was spent, and which code led to collections and
//! exceptions: the innermost own frame of each sample.

use std::borrow::Cow;
use std::collections::BTreeMap;

use clrscope_recording::model::{Process, Recording};
use clrscope_recording::parallel::fold;

use crate::code_place::CodePlace;
use crate::exceptions::CallStack;
use crate::function::FunctionRef;
use crate::metric_events::MetricEvents;
use crate::query::{Query, QueryProblem};
use crate::samples::{EventKinds, SAMPLED_CPU, SampleKind};
use crate::select;
use crate::stack_trees::EventFilter;

/// Kinds of work that are told apart: what own code leads to and does not do itself, and all else.
const TOLD_APART: [SampleKind; 3] = [SampleKind::Gc, SampleKind::Exceptions, SampleKind::Kernel];

/// CPU time below one place in own code.
#[derive(Debug, Clone, Copy, Default)]
struct PlaceSums {
    all_ns: u64,
    /// By position in [`TOLD_APART`].
    apart_ns: [u64; TOLD_APART.len()],
}

impl PlaceSums {
    fn add(&mut self, other: Self) {
        self.all_ns = self.all_ns.saturating_add(other.all_ns);
        let pairs = self.apart_ns.iter_mut().zip(other.apart_ns);
        pairs.for_each(|(sum, more)| *sum = sum.saturating_add(more));
    }

    fn add_sample(&mut self, kind: SampleKind, ns: u64) {
        self.all_ns = self.all_ns.saturating_add(ns);
        if let Some(at) = position(kind) {
            self.apart_ns[at] = self.apart_ns[at].saturating_add(ns);
        }
    }

    fn of_kind(&self, kind: SampleKind) -> u64 {
        position(kind).map_or(0, |at| self.apart_ns[at])
    }

    /// Work of the code, which makes no garbage and throws no exceptions.
    fn work_ns(&self) -> u64 {
        self.all_ns.saturating_sub(self.of_kind(SampleKind::Gc)).saturating_sub(self.of_kind(SampleKind::Exceptions))
    }
}

fn position(kind: SampleKind) -> Option<usize> {
    TOLD_APART.iter().position(|apart| *apart == kind)
}

/// CPU time of a function in all its instantiations, by place.
#[derive(Debug, Default)]
struct FunctionPlaces<'a> {
    /// One of the instantiations.
    function: Option<FunctionRef<'a>>,
    all: PlaceSums,
    by_place: BTreeMap<CodePlace<'a>, PlaceSums>,
}

impl<'a> FunctionPlaces<'a> {
    /// The place with the most of a sum; of equal ones the first.
    fn most(&self, sum: impl Fn(&PlaceSums) -> u64) -> Option<CodePlace<'a>> {
        let places = self.by_place.iter().rev();
        places.max_by_key(|(_, sums)| sum(sums)).map(|(place, _)| *place)
    }
}

/// CPU time by own function and place, where samples of it were taken.
#[derive(Debug, Default)]
pub(super) struct CpuPlaces<'a>(BTreeMap<(&'a str, Cow<'a, str>), FunctionPlaces<'a>>);

impl<'a> CpuPlaces<'a> {
    /// Reads the samples that a query means.
    ///
    /// # Errors
    /// When no process or thread is meant.
    pub(super) fn read(recording: &'a Recording, query: &Query) -> Result<Self, QueryProblem> {
        let mut found = Self::default();
        for selected in select::threads(recording, query)? {
            let Some(measured) = MetricEvents::for_metric(selected.process, &SAMPLED_CPU) else { continue };
            found.add(selected.process, &measured, query);
        }
        Ok(found)
    }

    fn add(&mut self, process: &'a Process, measured: &MetricEvents, query: &Query) {
        for (stack, sums) in (0..).zip(sums_by_stack(process, measured, query)) {
            if sums.all_ns == 0 {
                continue;
            }
            let stack = CallStack::new(process, &measured.table, measured.number_in_table(stack));
            let Some((function, place)) = stack.innermost_own() else { continue };
            let places = self.0.entry((function.module(), function.label())).or_default();
            places.function.get_or_insert(function);
            places.all.add(sums);
            places.by_place.entry(place).or_default().add(sums);
        }
    }

    /// Returns the place in a function below which most work was done.
    pub(super) fn busiest_place(&self, function: &FunctionRef<'a>) -> Option<CodePlace<'a>> {
        self.0.get(&(function.module(), function.label()))?.most(PlaceSums::work_ns)
    }

    /// Returns the CPU time of collections and of the handling of exceptions below a function.
    pub(super) fn apart_from_work_ns(&self, function: &FunctionRef<'a>) -> u64 {
        let places = self.0.get(&(function.module(), function.label()));
        places.map_or(0, |places| places.all.all_ns.saturating_sub(places.all.work_ns()))
    }

    /// Returns the function below which most work of a kind was done, and the place in its code;
    /// `None` where threads that run no own code did it, and for kinds that are not told apart.
    pub(super) fn most_of(&self, kind: SampleKind) -> Option<(FunctionRef<'a>, Option<CodePlace<'a>>)> {
        let most = self.0.values().rev().max_by_key(|places| places.all.of_kind(kind))?;
        let place = most.most(|sums| sums.of_kind(kind));
        (most.all.of_kind(kind) > 0).then_some((most.function?, place))
    }
}

/// CPU time by number of the stack among those of the events.
fn sums_by_stack(process: &Process, measured: &MetricEvents, query: &Query) -> Vec<PlaceSums> {
    let kinds = EventKinds::new(process, measured);
    let wanted = EventFilter::new(process, query);
    let new = || vec![PlaceSums::default(); measured.stacks()];
    let parts = fold(measured.blocks.len(), new, |sums, at| {
        wanted.each_whole(&measured.blocks[at], |event| {
            let kind = kinds.kind_of_event(event);
            if kind != SampleKind::Profiler {
                sums[event.stack as usize].add_sample(kind, event.amount);
            }
        });
    });
    let mut all = new();
    for part in parts {
        all.iter_mut().zip(part).for_each(|(sum, more)| sum.add(more));
    }
    all
}
