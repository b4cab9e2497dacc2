//! The request's id in an `ExecutionContext`, read from its objects.
//!
//! A context has its values in one of several maps, by how many there are: up to four as fields,
//! more as keys with their values in an array. Read on the context's own thread, in code that the
//! runtime does not stop: no object moves.

use std::ops::Range;

use clr_profiler::{ModuleId, NameCache, ProfilerInfo, Token};
use clrscope_agent_base::memory::PublishedState;

use super::carrier;
use super::members::Members;

/// Types and fields that are meant here.
const CONTEXT: &str = "System.Threading.ExecutionContext";
const VALUES: &str = "m_localValues";
const MAPS: &str = "System.Threading.AsyncLocalValueMap";
/// Maps with so many pairs as fields, and their names.
const PAIRS: [(usize, &str); 4] = [
    (1, "OneElementAsyncLocalValueMap"),
    (2, "TwoElementAsyncLocalValueMap"),
    (3, "ThreeElementAsyncLocalValueMap"),
    (4, "FourElementAsyncLocalValueMap"),
];
/// The map of up to 16, with its array.
const ARRAY: (&str, &str) = ("MultiElementAsyncLocalValueMap", "_keyValues");

/// Where an array has its length, and its elements.
const LENGTH: usize = 8;
const ELEMENTS: usize = 16;
/// Where a boxed number is.
const NUMBER: usize = 8;

/// Where values lie.
#[derive(Debug)]
pub(super) struct Layout {
    /// Offset of the map in a context.
    values: usize,
    /// Classes of maps, each with the offsets of its keys and values.
    pairs: Vec<(usize, Vec<(usize, usize)>)>,
    /// The class of the map with an array, and the offset of that.
    array: Option<(usize, usize)>,
}

static LAYOUT: PublishedState<Layout> = PublishedState::nothing();

/// Finds out where values lie, in the library of the runtime's own types.
pub(super) fn look_into(info: &ProfilerInfo, names: &NameCache, module: ModuleId) -> Option<()> {
    if LAYOUT.get().is_some() {
        return Some(());
    }
    let metadata = names.metadata(info, module).ok()?;
    let members = Members(&metadata);
    let context = members.own_type(CONTEXT, None).ok()?;
    let (_, [values]) = members.offsets(info, module, context, [VALUES])?;
    let maps = members.own_type(MAPS, None).ok()?;
    let map = |name: &str| members.own_type(name, Some(maps)).ok();
    let with_pairs = |(count, name): (usize, &str)| {
        let ty = map(name)?;
        let pairs = (0..count).map(|at| pair(&members, info, (module, ty), at));
        let found = pairs.collect::<Option<Vec<_>>>()?;
        let class = found.first()?.0;
        Some((class, found.into_iter().map(|(_, pair)| pair).collect()))
    };
    let pairs = PAIRS.into_iter().map(with_pairs).collect::<Option<Vec<_>>>()?;
    let array = map(ARRAY.0).and_then(|ty| members.offsets(info, module, ty, [ARRAY.1]));
    let array = array.map(|(class, [offset])| (class, offset as usize));
    LAYOUT.publish_for_good(Layout { values: values as usize, pairs, array });
    Some(())
}

fn pair(
    members: &Members<'_>,
    info: &ProfilerInfo,
    (module, ty): (ModuleId, Token),
    at: usize,
) -> Option<(usize, (usize, usize))> {
    let (class, [item]) = members.offsets(info, module, ty, [&format!("_item{at}")])?;
    // A pair of key and value, both references.
    Some((class, (item as usize, item as usize + 8)))
}

/// The id of the request that a context is of; 0 of none.
///
/// # Safety
/// The address must be null or that of a live context, on a thread that no collection stops.
pub(super) unsafe fn request_of(context: usize) -> u64 {
    let Some((layout, local)) = LAYOUT.get().zip(carrier::local()).filter(|_| context != 0) else { return 0 };
    // SAFETY: the caller's promise, and offsets of fields of the classes that are met.
    let word = |address: usize| unsafe { std::ptr::with_exposed_provenance::<usize>(address).read() };
    let map = word(context + layout.values);
    if map == 0 {
        return 0;
    }
    let class = word(map);
    let value = match layout.pairs.iter().find(|(known, _)| *known == class) {
        Some((_, pairs)) => pairs.iter().find(|(key, _)| word(map + key) == local).map(|(_, value)| word(map + value)),
        None => {
            let array = layout.array.filter(|(known, _)| *known == class).map(|(_, offset)| word(map + offset));
            array.filter(|array| *array != 0).and_then(|array| {
                let elements = array + ELEMENTS;
                let words = Range { start: 0, end: 2 * (word(array + LENGTH) & 0xFFFF_FFFF) };
                let key = words.step_by(2).find(|at| word(elements + 8 * at) == local)?;
                Some(word(elements + 8 * (key + 1)))
            })
        }
    };
    value.filter(|value| *value != 0).map_or(0, |value| word(value + NUMBER) as u64)
}
