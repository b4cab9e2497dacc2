//! The places in the program's own code that spent CPU time or caused collections and exceptions.
//! The place of a sample is its innermost own frame.

use std::borrow::Cow;
use std::cmp::Reverse;
use std::collections::BTreeMap;

use clrscope_recording::model::{Function, Process, Recording};
use clrscope_recording::parallel::fold;
use rustc_hash::FxHashMap;

use super::KindRow;
use crate::code_place::CodePlace;
use crate::exceptions::CallStack;
use crate::function::FunctionRef;
use crate::metric_events::MetricEvents;
use crate::query::{Query, QueryProblem};
use crate::samples::{EventKinds, SAMPLED_CPU, SampleKind};
use crate::select;
use crate::stack_trees::EventFilter;

/// Kinds of work that are summed separately, because own code causes them but does not do them
/// itself.
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

    /// Work of the code itself, without collections and exception handling.
    fn work_ns(&self) -> u64 {
        self.all_ns.saturating_sub(self.of_kind(SampleKind::Gc)).saturating_sub(self.of_kind(SampleKind::Exceptions))
    }
}

fn position(kind: SampleKind) -> Option<usize> {
    TOLD_APART.iter().position(|apart| *apart == kind)
}

/// CPU time of a function over all its instantiations, by place.
#[derive(Debug, Default)]
struct FunctionPlaces<'a> {
    /// One of the instantiations.
    function: Option<FunctionRef<'a>>,
    all: PlaceSums,
    by_place: FxHashMap<CodePlace<'a>, PlaceSums>,
}

impl<'a> FunctionPlaces<'a> {
    fn add(&mut self, place: CodePlace<'a>, sums: PlaceSums) {
        self.all.add(sums);
        self.by_place.entry(place).or_default().add(sums);
    }

    /// The place with the largest sum. If several have it, the first one.
    fn most(&self, sum: impl Fn(&PlaceSums) -> u64) -> Option<CodePlace<'a>> {
        let places = self.by_place.iter().map(|(place, sums)| (sum(sums), Reverse(*place)));
        places.max().map(|(_, Reverse(place))| place)
    }
}

/// CPU time by kind of work, and by own function and place; empty if CPU time was not sampled.
#[derive(Debug, Default)]
pub(super) struct CpuPlaces<'a> {
    functions: BTreeMap<(&'a str, Cow<'a, str>), FunctionPlaces<'a>>,
    kinds: KindSums,
}

/// Sums by position in [`SampleKind::ALL`].
#[derive(Debug, Clone, Copy, Default)]
struct KindSums([KindSum; SampleKind::ALL.len()]);

#[derive(Debug, Clone, Copy, Default)]
struct KindSum {
    samples: u64,
    ns: u64,
}

impl KindSums {
    fn add(&mut self, other: &Self) {
        self.0.iter_mut().zip(&other.0).for_each(|(sum, more)| sum.add(*more));
    }
}

impl KindSum {
    fn add(&mut self, other: Self) {
        self.samples = self.samples.saturating_add(other.samples);
        self.ns = self.ns.saturating_add(other.ns);
    }
}

impl<'a> CpuPlaces<'a> {
    /// Reads the samples that a query selects.
    ///
    /// # Errors
    /// When the query matches no process or thread.
    pub(super) fn read(recording: &'a Recording, query: &Query) -> Result<Self, QueryProblem> {
        let mut found = Self::default();
        for selected in select::threads(recording, query)? {
            let Some(measured) = MetricEvents::for_metric(selected.process, &SAMPLED_CPU) else { continue };
            found.add(selected.process, &measured, query);
        }
        Ok(found)
    }

    fn add(&mut self, process: &'a Process, measured: &MetricEvents, query: &Query) {
        let sums = Sums::read(process, measured, query);
        self.kinds.add(&sums.kinds);
        // By address of the function, so that each name is built once.
        let mut functions: FxHashMap<*const Function, FunctionPlaces<'a>> = FxHashMap::default();
        for (stack, sums) in (0..).zip(sums.by_stack) {
            if sums.all_ns == 0 {
                continue;
            }
            let stack = CallStack::new(process, &measured.table, measured.number_in_table(stack));
            let Some((function, place)) = stack.innermost_own() else { continue };
            let places = functions.entry(std::ptr::from_ref(function.function)).or_default();
            places.function.get_or_insert(function);
            places.add(place, sums);
        }
        let mut functions: Vec<_> = functions.into_values().filter_map(|one| Some((one.function?, one))).collect();
        functions.sort_by(|(a, _), (b, _)| a.compare(b));
        for (function, places) in functions {
            let sum = self.functions.entry((function.module(), function.label())).or_default();
            sum.function.get_or_insert(function);
            places.by_place.into_iter().for_each(|(place, sums)| sum.add(place, sums));
        }
    }

    /// Returns the kinds of work that have samples, in the order of [`SampleKind::ALL`].
    pub(super) fn kinds(&self) -> Vec<KindRow> {
        let rows = SampleKind::ALL.iter().zip(&self.kinds.0);
        let rows = rows.map(|(&kind, sum)| KindRow { kind, samples: sum.samples, time_ns: sum.ns });
        rows.filter(|row| row.samples > 0 || row.time_ns > 0).collect()
    }

    /// Returns the place in a function below which most of the work was done.
    pub(super) fn busiest_place(&self, function: &FunctionRef<'a>) -> Option<CodePlace<'a>> {
        self.functions.get(&(function.module(), function.label()))?.most(PlaceSums::work_ns)
    }

    /// Returns the CPU time of collections and exception handling below a function.
    pub(super) fn apart_from_work_ns(&self, function: &FunctionRef<'a>) -> u64 {
        let places = self.functions.get(&(function.module(), function.label()));
        places.map_or(0, |places| places.all.all_ns.saturating_sub(places.all.work_ns()))
    }

    /// Returns the function below which most work of a kind was done, with the place in its code.
    /// `None` if only threads without own code did such work, and for kinds that are not summed
    /// separately.
    pub(super) fn most_of(&self, kind: SampleKind) -> Option<(FunctionRef<'a>, Option<CodePlace<'a>>)> {
        let most = self.functions.values().rev().max_by_key(|places| places.all.of_kind(kind))?;
        let place = most.most(|sums| sums.of_kind(kind));
        (most.all.of_kind(kind) > 0).then_some((most.function?, place))
    }
}

/// CPU time of the events of a process.
struct Sums {
    /// By number of the stack among the events' stacks; without the profiler's own time.
    by_stack: Vec<PlaceSums>,
    kinds: KindSums,
}

impl Sums {
    fn read(process: &Process, measured: &MetricEvents, query: &Query) -> Self {
        let kinds = EventKinds::new(process, measured);
        let wanted = EventFilter::new(process, query);
        let new = || Self { by_stack: vec![PlaceSums::default(); measured.stacks()], kinds: KindSums::default() };
        let parts = fold(measured.blocks.len(), new, |sums, at| {
            wanted.each_whole(&measured.blocks[at], |event| {
                let kind = kinds.kind_of_event(event);
                sums.kinds.0[kind as usize].add(KindSum { samples: event.samples.into(), ns: event.amount });
                if kind != SampleKind::Profiler {
                    sums.by_stack[event.stack as usize].add_sample(kind, event.amount);
                }
            });
        });
        let join = |mut all: Self, part: Self| {
            all.kinds.add(&part.kinds);
            all.by_stack.iter_mut().zip(part.by_stack).for_each(|(sum, more)| sum.add(more));
            all
        };
        parts.into_iter().reduce(join).unwrap_or_else(new)
    }
}
