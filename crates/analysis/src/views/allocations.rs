//! The view `allocations`: the allocations of each type, and the methods that made them.

use std::cmp::Reverse;
use std::collections::BTreeMap;

use clrscope_recording::model::{Allocation, AllocationKind, AllocationSampling, Process, Recording, StackFrame};
use rustc_hash::FxHashMap;

use super::conditions::{Conditions, conditions_of, share};
use super::process;
use crate::allocations::{BYTES, BoundedAmount, Estimate, Live, each_record, is_wanted, time_ns, type_of};
use crate::code_place::CodePlace;
use crate::function::{FunctionRef, is_own};
use crate::paths;
use crate::query::{Query, QueryProblem, Sort};
use crate::select;

/// The allocations of one type.
#[derive(Debug, Clone)]
pub struct AllocationRow<'a> {
    /// Name of the type in C# syntax; empty if unknown.
    pub type_name: &'a str,
    /// Assembly that declares the type, or for an array the element type; empty if not known.
    pub module: &'a str,
    /// Number of objects. Estimated if allocations were sampled.
    pub objects: u64,
    /// 95 % bounds of the number of objects.
    pub objects_bounds: (u64, u64),
    /// Number of bytes. Estimated if allocations were sampled.
    pub bytes: u64,
    /// 95 % bounds of the number of bytes.
    pub bytes_bounds: (u64, u64),
    /// Number of recorded objects. If allocations were sampled, the estimates come from these.
    pub seen: u64,
    /// The type's share of all bytes, 0 to 1.
    pub share: f64,
    /// Objects and bytes that were alive at the end of the shown time; `None` if objects were not
    /// tracked.
    pub live: Option<LiveSum>,
    /// The method that allocated most bytes of the type. For each stack, the innermost own method
    /// counts, or a framework method if the stack has no own method.
    pub place: Option<AllocatedBy<'a>>,
    /// Like `place`, but for live bytes. Bytes that survived a collection take precedence. The
    /// method that leaks is rarely the method that allocates most.
    pub live_place: Option<AllocatedBy<'a>>,
}

/// A method that allocates.
#[derive(Debug, Clone, Copy)]
pub struct AllocatedBy<'a> {
    /// The method.
    pub function: FunctionRef<'a>,
    /// Bytes that the method allocated.
    pub bytes: u64,
    /// IL offset of the instruction that allocated most of these bytes; `None` if stacks do not
    /// have it. If the framework allocates for the method, it is the instruction that calls the
    /// framework.
    pub il_offset: Option<u32>,
    /// Location of that instruction, from which its source line is found.
    pub place: CodePlace<'a>,
}

impl AllocatedBy<'_> {
    /// The method's share of `bytes`, 0 to 1.
    #[must_use]
    pub fn share_of(&self, bytes: u64) -> f64 {
        (self.bytes as f64 / bytes.max(1) as f64).min(1.0)
    }
}

/// Objects that were alive at the end of the shown time.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct LiveSum {
    /// Number of objects. Estimated if allocations were sampled.
    pub objects: u64,
    /// Number of bytes. Estimated if allocations were sampled.
    pub bytes: u64,
    /// Number of these objects that survived a collection. Whether the others are garbage is not
    /// known.
    pub survived_objects: u64,
    /// Bytes of the objects that survived a collection.
    pub survived_bytes: u64,
    /// Number of collections that the oldest object survived.
    pub collections: u64,
}

/// The view `allocations`.
#[derive(Debug, Clone, Default)]
pub struct Allocations<'a> {
    /// The rows, sorted and limited.
    pub rows: Vec<AllocationRow<'a>>,
    /// Number of rows that the limit left out.
    pub left_out: usize,
    /// Bytes of all types that the query selects, including rows that the limit left out.
    pub bytes: u64,
    /// Objects of all types that the query selects, including rows that the limit left out.
    pub objects: u64,
    /// How the allocations of the processes were sampled.
    pub sampling: Vec<&'a AllocationSampling>,
    /// Whether live objects are those at the end of the recording. Otherwise they are those at an
    /// earlier moment.
    pub at_end: bool,
    /// Conditions of the selected part of the recording.
    pub conditions: Conditions<'a>,
}

#[derive(Default)]
struct Sums<'a> {
    objects: Estimate,
    bytes: Estimate,
    seen: u64,
    live: Option<LiveObjects>,
    /// Bytes by the method that allocated them.
    places: BytesByMethod<'a>,
    /// Live bytes by the method that allocated them. Objects that no collection has seen and
    /// objects that survived one are separate.
    live_places: BytesByMethod<'a>,
    survived_places: BytesByMethod<'a>,
}

/// Live objects, and the part of them that survived a collection.
#[derive(Default)]
struct LiveObjects {
    objects: Estimate,
    bytes: Estimate,
    survived_objects: Estimate,
    survived_bytes: Estimate,
    collections: u64,
}

/// A method with a place in its code.
type Place<'a> = (FunctionRef<'a>, CodePlace<'a>);

/// Bytes by the method that allocated them, and by the instruction.
#[derive(Default)]
struct BytesByMethod<'a>(Vec<(FunctionRef<'a>, BTreeMap<CodePlace<'a>, u64>)>);

impl<'a> BytesByMethod<'a> {
    fn add(&mut self, (function, place): Place<'a>, bytes: u64) {
        let known = self.0.iter().position(|(known, _)| std::ptr::eq(known.function, function.function));
        let at = known.unwrap_or_else(|| {
            self.0.push((function, BTreeMap::new()));
            self.0.len() - 1
        });
        let sum = self.0[at].1.entry(place).or_default();
        *sum = sum.saturating_add(bytes);
    }

    /// The method that allocated most.
    fn most(&self) -> Option<AllocatedBy<'a>> {
        let method = |(function, by_place): &(FunctionRef<'a>, BTreeMap<CodePlace<'a>, u64>)| {
            let bytes = by_place.values().fold(0_u64, |sum, bytes| sum.saturating_add(*bytes));
            let (place, _) = by_place.iter().max_by_key(|(place, bytes)| (**bytes, Reverse(**place)))?;
            Some(AllocatedBy { function: *function, bytes, il_offset: place.il_offset, place: *place })
        };
        let by_bytes = |a: &AllocatedBy<'a>, b: &AllocatedBy<'a>| {
            b.bytes.cmp(&a.bytes).then_with(|| a.function.compare(&b.function))
        };
        self.0.iter().filter_map(method).min_by(by_bytes)
    }
}

/// Allocated types, ordered by bytes. The query may sort them by `calls` (objects), `total` (live
/// bytes) or `name`.
///
/// # Errors
/// When the query matches no process or thread, or no allocations were recorded.
pub fn allocations<'a>(recording: &'a Recording, query: &Query) -> Result<Allocations<'a>, QueryProblem> {
    let view = "allocations";
    query.merged_threads(view)?;
    query.without_metric(view)?;
    if !BYTES.is_in(recording) {
        return Err(QueryProblem::NotRecorded { view, instrument: BYTES.instrument });
    }
    let mut sums: BTreeMap<(&str, &str), Sums<'a>> = BTreeMap::new();
    let mut sampling = Vec::new();
    for selected in select::threads(recording, query)? {
        sampling.extend(&selected.process.allocation_sampling);
        add_process(&mut sums, selected.process, query);
    }
    let totals: Vec<_> = paths::select(recording, query, &BYTES)?
        .iter()
        .map(|paths| (paths.process, process::totals(paths, query)))
        .collect();
    let (mut bytes, mut objects) = (Estimate::default(), Estimate::default());
    for of in sums.values() {
        bytes.add(of.bytes);
        objects.add(of.objects);
    }
    let (bytes, objects) = (bytes.bounded().amount, objects.bounded().amount);
    let mut rows: Vec<_> = sums.into_iter().map(|(named, sums)| sums.row(named, bytes)).collect();
    // Rows are ordered by name here, and the sort is stable.
    match query.sort {
        Some(Sort::Name) => {}
        Some(Sort::Module) => rows.sort_by_key(|row| row.module),
        Some(Sort::Calls) => rows.sort_by_key(|row| Reverse(row.objects)),
        Some(Sort::Total | Sort::Inclusive) => {
            rows.sort_by_key(|row| Reverse((row.live.map_or(0, |live| live.bytes), row.bytes)));
        }
        _ => rows.sort_by_key(|row| Reverse((row.bytes, row.objects))),
    }
    let left_out = query.cut(&mut rows);
    let conditions = conditions_of(recording, query, &BYTES, &totals);
    let is_whole = |process: &Process| process.shown.is_none();
    let at_end = query.until_ns.is_none() && recording.processes.iter().all(is_whole);
    Ok(Allocations { rows, left_out, bytes, objects, sampling, at_end, conditions })
}

fn add_process<'a>(sums: &mut BTreeMap<(&'a str, &'a str), Sums<'a>>, process: &'a Process, query: &Query) {
    let live = Live::read(process, query);
    let mut places = Places { process, query, known: FxHashMap::default() };
    let wanted = |thread: u32, record: &Allocation| {
        let (thread, time_ns) = (process.threads.get(thread as usize), time_ns(process, record));
        query.wants_time(process, time_ns)
            && query.wants_thread_if_known(thread)
            && process.shows_work(thread, time_ns)
            && is_wanted(&query.types, process, record.object_type)
    };
    let named = |record: &Allocation| {
        let of = type_of(process, record.object_type);
        (of.name.as_str(), process.modules.get(of.module as usize).map_or("", |module| module.name.as_str()))
    };
    each_record(process, AllocationKind::Allocated, |thread, record| {
        let (place, is_on_path) = places.allocating_place(record.stack);
        if !wanted(thread, record) || !is_on_path || record.objects == 0 {
            return;
        }
        let sum = sums.entry(named(record)).or_default();
        sum.objects.add(Estimate::of_objects(record));
        sum.bytes.add(Estimate::of_bytes(record));
        sum.seen = sum.seen.saturating_add(record.objects);
        if live.is_some() {
            sum.live.get_or_insert_default();
        }
        if let Some(place) = place {
            sum.places.add(place, record.weight);
        }
    });
    let Some(live) = live else { return };
    each_record(process, AllocationKind::Followed, |thread, record| {
        let (place, is_on_path) = places.allocating_place(record.stack);
        if !wanted(thread, record) || !is_on_path || !live.is_alive(record) {
            return;
        }
        let (sum, outlived) = (sums.entry(named(record)).or_default(), live.outlived(record));
        let places = if outlived > 0 { &mut sum.survived_places } else { &mut sum.live_places };
        if let Some(place) = place {
            places.add(place, record.weight);
        }
        let followed = sum.live.get_or_insert_default();
        followed.objects.add(Estimate::of_objects(record));
        followed.bytes.add(Estimate::of_bytes(record));
        if outlived > 0 {
            followed.survived_objects.add(Estimate::of_objects(record));
            followed.survived_bytes.add(Estimate::of_bytes(record));
        }
        followed.collections = followed.collections.max(outlived);
    });
}

impl<'a> Sums<'a> {
    fn row(self, (type_name, module): (&'a str, &'a str), all_bytes: u64) -> AllocationRow<'a> {
        let (objects, bytes) = (self.objects.bounded(), self.bytes.bounded());
        let bounds = |of: BoundedAmount| (of.low, of.high);
        let live = self.live.map(|of| LiveSum {
            objects: of.objects.bounded().amount,
            bytes: of.bytes.bounded().amount,
            survived_objects: of.survived_objects.bounded().amount,
            survived_bytes: of.survived_bytes.bounded().amount,
            collections: of.collections,
        });
        AllocationRow {
            type_name,
            module,
            objects: objects.amount,
            objects_bounds: bounds(objects),
            bytes: bytes.amount,
            bytes_bounds: bounds(bytes),
            seen: self.seen,
            share: share(bytes.amount, all_bytes),
            live,
            place: self.places.most(),
            live_place: self.survived_places.most().or_else(|| self.live_places.most()),
        }
    }
}

/// Finds the method that allocates on a stack.
struct Places<'a, 'q> {
    process: &'a Process,
    query: &'q Query,
    known: FxHashMap<u32, (Option<Place<'a>>, bool)>,
}

impl<'a> Places<'a, '_> {
    /// Returns the method that allocates on a stack and the place in its code. Also returns whether
    /// the stack has a function that the query selects.
    fn allocating_place(&mut self, stack: u32) -> (Option<Place<'a>>, bool) {
        let Self { process, query, known } = self;
        let process: &'a Process = process;
        *known.entry(stack).or_insert_with(|| {
            let mut callee = None;
            let methods = process.stacks.frames(stack).filter_map(|frame| {
                let StackFrame::Method { function, il_offset, il_span, tier } = frame else { return None };
                let function = FunctionRef::new(process, process.functions.get(function as usize));
                let name = Some(function.function.raw_name.as_str()).filter(|name| !name.is_empty());
                let callee = std::mem::replace(&mut callee, name);
                Some((function, CodePlace { il_offset, il_span, is_unoptimised: tier.has_exact_offset(), callee }))
            });
            let functions: Vec<Place<'a>> = methods.collect();
            let is_on_path = !query.filters_functions()
                || functions.iter().any(|(function, _)| query.wants_function(function.module(), function.function));
            let own = functions.iter().find(|(function, _)| is_own(function));
            (own.or(functions.first()).copied(), is_on_path)
        })
    }
}
