//! The view `survivors`: objects that survived collections, by type and by their generation before
//! the collection.

use std::collections::BTreeMap;

use clrscope_contract::request::Glob;
use clrscope_recording::events::{Kind, Records, Tag};
use clrscope_recording::layout::instrument;
use clrscope_recording::model::{Process, Recording};

use crate::allocations::type_and_module;
use crate::query::{Query, QueryProblem, Sort};
use crate::select::{self, SelectedProcess};

/// Selection of survivors.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct SurvivorQuery {
    /// The filters that all views share; `modules` selects types that these modules declare.
    pub query: Query,
    /// Only types that match one of these patterns; empty means all.
    pub types: Vec<Glob>,
}

/// Objects of a type that were in one generation when collections began, summed over all
/// collections.
#[derive(Debug, Clone)]
pub struct SurvivorRow<'a> {
    /// The process.
    pub process: &'a Process,
    /// The type in C# syntax.
    pub type_name: &'a str,
    /// The assembly that declares the type, or empty.
    pub module: &'a str,
    /// Generation of the objects before the collections, as an index into
    /// [`GENERATION_NAMES`](super::GENERATION_NAMES).
    pub generation: u32,
    /// Number of survivals. An object that survives three collections counts three times.
    pub objects: u64,
    /// Bytes of the objects.
    pub bytes: u64,
    /// Number of survivals with a move.
    pub moved_objects: u64,
    /// Number of objects that died; known for generation 0 only.
    pub died_objects: Option<u64>,
}

/// Survivors of the collections that a query selects, the most bytes first. Also returns the number
/// of rows that the limit left out.
///
/// # Errors
/// When the query selects no process, or `gc:survivors` was not recorded.
pub fn survivors<'a>(
    recording: &'a Recording,
    query: &SurvivorQuery,
) -> Result<(Vec<SurvivorRow<'a>>, usize), QueryProblem> {
    query.query.without_metric("survivors")?;
    let mut rows = Vec::new();
    let mut is_recorded = false;
    for SelectedProcess { process, .. } in select::threads(recording, &query.query)? {
        let sums = sums(process, &query.query, &mut is_recorded);
        rows.extend(sums.into_values().filter(|row| wants(query, row)));
    }
    if !is_recorded {
        return Err(QueryProblem::NotRecorded { view: "survivors", instrument: "gc:survivors" });
    }
    order(&mut rows, query.query.sort);
    let left_out = query.query.cut(&mut rows);
    Ok((rows, left_out))
}

/// Type name, module and generation.
type Key<'a> = (&'a str, &'a str, u32);

fn sums<'a>(process: &'a Process, query: &Query, is_recorded: &mut bool) -> BTreeMap<Key<'a>, SurvivorRow<'a>> {
    let mut rows: BTreeMap<Key<'a>, SurvivorRow<'a>> = BTreeMap::new();
    for chunk in process.arenas(instrument::GC).flat_map(|arena| &arena.chunks) {
        let bytes = chunk.bytes.load();
        for record in Records::new(&bytes).filter(|record| record.kind == Kind::GC_SURVIVORS) {
            *is_recorded = true;
            if !query.wants_time(process, process.started_ns.saturating_add(record.time_ns)) {
                continue;
            }
            let number = |tag| record.number(tag).unwrap_or(0);
            let class = record.entity(Tag::CLASS).map_or(0, |class| class.index);
            let (type_name, module) = type_and_module(process, class);
            let generation = u32::try_from(number(Tag::GENERATION)).unwrap_or(u32::MAX);
            let row = rows.entry((type_name, module, generation)).or_insert(SurvivorRow {
                process,
                type_name,
                module,
                generation,
                objects: 0,
                bytes: 0,
                moved_objects: 0,
                died_objects: None,
            });
            row.objects = row.objects.saturating_add(number(Tag::COUNT));
            row.bytes = row.bytes.saturating_add(number(Tag::BYTES));
            row.moved_objects = row.moved_objects.saturating_add(number(Tag::MOVED));
            if let Some(died) = record.number(Tag::DIED) {
                row.died_objects = Some(row.died_objects.unwrap_or(0).saturating_add(died));
            }
        }
    }
    rows
}

fn wants(query: &SurvivorQuery, row: &SurvivorRow<'_>) -> bool {
    Glob::any_matches(&query.types, row.type_name) && Glob::any_matches(&query.query.modules, row.module)
}

/// The sort is stable: equal rows stay in the order of process, type and generation.
fn order(rows: &mut [SurvivorRow<'_>], sort: Option<Sort>) {
    match sort {
        Some(Sort::Name) => rows.sort_by_key(|row| row.type_name),
        Some(Sort::Module) => rows.sort_by_key(|row| row.module),
        Some(Sort::Calls) => rows.sort_by_key(|row| std::cmp::Reverse(row.objects)),
        _ => rows.sort_by_key(|row| std::cmp::Reverse(row.bytes)),
    }
}
