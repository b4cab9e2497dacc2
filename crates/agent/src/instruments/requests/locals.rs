//! The request's id in an `ExecutionContext`, read from its objects.
//!
//! A context has its values in one of several maps, depending on their number: up to four as
//! fields, up to 16 as pairs in an array, more as a dictionary. They are read on the context's own
//! thread, in code that the runtime does not stop, so no object moves.

use clr_profiler::{ClassId, ModuleId, NameCache, ProfilerInfo, Token};
use clrscope_agent_base::memory::PublishedState;

use super::carrier;
use super::members::{EVERY_OBJECT, Members};

/// Names of the types and fields that are used here.
const CONTEXT: &str = "System.Threading.ExecutionContext";
const VALUES: &str = "m_localValues";
const LOCAL: &str = "System.Threading.IAsyncLocal";
const MAPS: &str = "System.Threading.AsyncLocalValueMap";
/// Maps with pairs as fields: number of pairs, and name.
const PAIRS: [(usize, &str); 4] = [
    (1, "OneElementAsyncLocalValueMap"),
    (2, "TwoElementAsyncLocalValueMap"),
    (3, "ThreeElementAsyncLocalValueMap"),
    (4, "FourElementAsyncLocalValueMap"),
];
/// The map with an array of pairs.
const ARRAY: (&str, &str) = ("MultiElementAsyncLocalValueMap", "_keyValues");
const PAIR: &str = "System.Collections.Generic.KeyValuePair`2";
/// The map that is a dictionary.
const DICTIONARY: &str = "ManyElementAsyncLocalValueMap";
const BASE: (&str, &str) = ("System.Collections.Generic.Dictionary`2", "_entries");
const ENTRY: &str = "Entry";
const KEY_AND_VALUE: [&str; 2] = ["key", "value"];

/// Offsets of an array's length and elements.
const LENGTH: usize = 8;
const ELEMENTS: usize = 16;
/// Offset of a boxed number.
const NUMBER: usize = 8;

/// Offsets of the values.
#[derive(Debug)]
struct Layout {
    /// Offset of the map in a context.
    values: usize,
    /// Maps with pairs as fields.
    fields: Vec<Fields>,
    /// Maps with an array.
    arrays: [Rows; 2],
}

/// A map whose pairs are fields.
#[derive(Debug)]
struct Fields {
    class: usize,
    pairs: Vec<Pair>,
}

/// Offsets of a key and its value.
#[derive(Debug, Clone, Copy)]
struct Pair {
    key: usize,
    value: usize,
}

/// A map whose pairs lie in an array. Unused elements have no key.
#[derive(Debug)]
struct Rows {
    class: usize,
    /// Offset of the array in the map.
    array: usize,
    /// Offsets in an element.
    pair: Pair,
    /// Bytes of an element.
    size: usize,
}

static LAYOUT: PublishedState<Layout> = PublishedState::nothing();

/// Whether the offsets of the fields that hold values are known.
pub(super) fn is_known() -> bool {
    LAYOUT.get().is_some()
}

/// Finds the offsets of the fields that hold values, in the library of the runtime's own types,
/// unless they are known. May load classes, so it must be called on managed threads.
pub(super) fn look_into(info: &ProfilerInfo, names: &NameCache, module: ModuleId) {
    let found = || {
        let metadata = names.metadata(info, module).ok()?;
        Library { info, module, members: Members(&metadata) }.layout()
    };
    if let Some(layout) = (!is_known()).then(found).flatten() {
        LAYOUT.publish_for_good(layout);
    }
}

/// The library of the runtime's own types.
struct Library<'a> {
    info: &'a ProfilerInfo,
    module: ModuleId,
    members: Members<'a>,
}

impl Library<'_> {
    fn layout(&self) -> Option<Layout> {
        let maps = self.members.own_type(MAPS, None).ok()?;
        let map = |name: &str| self.members.own_type(name, Some(maps)).ok();
        let pair = self.members.own_type(PAIR, None).ok()?;
        let (pair, pair_size) = self.pair(pair)?;
        let fields = |(count, name): (usize, &str)| self.fields(map(name)?, count, pair);
        let (_, [values]) = self.offsets(self.members.own_type(CONTEXT, None).ok()?, [VALUES])?;
        let (class, [array]) = self.offsets(map(ARRAY.0)?, [ARRAY.1])?;
        let array = Rows { class: class.as_raw(), array, pair, size: pair_size };
        Some(Layout {
            values,
            fields: PAIRS.into_iter().map(fields).collect::<Option<_>>()?,
            arrays: [array, self.dictionary(map(DICTIONARY)?)?],
        })
    }

    fn fields(&self, map: Token, count: usize, pair: Pair) -> Option<Fields> {
        let class = self.info.class_from_token(self.module, map).ok()?;
        let item = |at| {
            let [item] = self.offsets_in(class, map, [&format!("_item{at}")])?;
            Some(Pair { key: item + pair.key, value: item + pair.value })
        };
        Some(Fields { class: class.as_raw(), pairs: (0..count).map(item).collect::<Option<_>>()? })
    }

    fn dictionary(&self, map: Token) -> Option<Rows> {
        let class = self.info.class_from_token(self.module, map).ok()?;
        let base = self.info.class_info(class).ok()?.parent?;
        let declared = self.members.own_type(BASE.0, None).ok()?;
        let [array] = self.offsets_in(base, declared, [BASE.1])?;
        let (pair, size) = self.pair(self.members.own_type(ENTRY, Some(declared)).ok()?)?;
        Some(Rows { class: class.as_raw(), array, pair, size })
    }

    /// Offsets of key and value in a type, and the type's size, for the type arguments that the
    /// maps use.
    fn pair(&self, declared: Token) -> Option<(Pair, usize)> {
        let class = |name| self.info.class_from_token(self.module, self.members.own_type(name, None).ok()?).ok();
        let arguments = [class(LOCAL)?, class(EVERY_OBJECT)?];
        let class = self.info.class_from_token_and_type_args(self.module, declared, &arguments).ok()?;
        let [key, value] = self.offsets_in(class, declared, KEY_AND_VALUE)?;
        let size = self.info.class_layout(class).ok()?.size as usize;
        Some((Pair { key, value }, size))
    }

    fn offsets<const N: usize>(&self, ty: Token, fields: [&str; N]) -> Option<(ClassId, [usize; N])> {
        let class = self.info.class_from_token(self.module, ty).ok()?;
        Some((class, self.offsets_in(class, ty, fields)?))
    }

    fn offsets_in<const N: usize>(&self, class: ClassId, ty: Token, fields: [&str; N]) -> Option<[usize; N]> {
        self.members.offsets_in(self.info, class, ty, fields).map(|found| found.map(|offset| offset as usize))
    }
}

/// Reads a word of an object.
///
/// # Safety
/// The word must be in a live object, which does not move meanwhile.
unsafe fn word(address: usize) -> usize {
    // SAFETY: the caller's promise.
    unsafe { std::ptr::with_exposed_provenance::<usize>(address).read() }
}

impl Pair {
    /// The value of the pair at an address, if the pair has this key.
    ///
    /// # Safety
    /// As [`word`].
    #[inline]
    unsafe fn value(self, address: usize, key: usize) -> Option<usize> {
        // SAFETY: the caller's promise.
        unsafe { (word(address + self.key) == key).then(|| word(address + self.value)) }
    }
}

impl Layout {
    /// The value of a key in a map.
    ///
    /// # Safety
    /// The address must be that of a live map, which does not move meanwhile.
    unsafe fn value(&self, map: usize, key: usize) -> Option<usize> {
        // SAFETY: the caller's promise; an object begins with its class.
        let class = unsafe { word(map) };
        if let Some(fields) = self.fields.iter().find(|fields| fields.class == class) {
            // SAFETY: as above, and the pairs are those of its class.
            return fields.pairs.iter().find_map(|pair| unsafe { pair.value(map, key) });
        }
        let rows = self.arrays.iter().find(|rows| rows.class == class)?;
        // SAFETY: as above, and the field is one of its class.
        let array = unsafe { word(map + rows.array) };
        // SAFETY: as above, an array.
        let length = if array == 0 { 0 } else { unsafe { word(array + LENGTH) & 0xFFFF_FFFF } };
        // SAFETY: as above, elements of the array.
        (0..length).find_map(|at| unsafe { rows.pair.value(array + ELEMENTS + at * rows.size, key) })
    }
}

/// The id of the request that a context belongs to; 0 for none.
///
/// # Safety
/// The address must be null or that of a live context, and no collection may stop the calling
/// thread.
pub(super) unsafe fn request_in(context: usize) -> u64 {
    let Some((layout, local)) = LAYOUT.get().zip(carrier::local()).filter(|_| context != 0) else { return 0 };
    // SAFETY: the caller's promise.
    let map = unsafe { word(context + layout.values) };
    // SAFETY: as above: a context's map is one, or null.
    let value = if map == 0 { None } else { unsafe { layout.value(map, local) } };
    // SAFETY: as above; our own local has boxed numbers.
    value.filter(|value| *value != 0).map_or(0, |value| unsafe { word(value + NUMBER) as u64 })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Objects as words, and their addresses.
    fn object(words: &[usize]) -> usize {
        words.as_ptr().expose_provenance()
    }

    #[test]
    fn values_are_found_in_each_kind_of_map() {
        let pair = Pair { key: 0, value: 8 };
        let layout = Layout {
            values: 8,
            fields: vec![
                Fields { class: 1, pairs: vec![Pair { key: 8, value: 16 }] },
                Fields { class: 2, pairs: vec![Pair { key: 8, value: 16 }, Pair { key: 24, value: 32 }] },
            ],
            arrays: [
                Rows { class: 3, array: 8, pair, size: 16 },
                Rows { class: 4, array: 16, pair: Pair { key: 8, value: 16 }, size: 24 },
            ],
        };
        let pairs = [0, 2, 70, 7, 90, 9];
        // The last element of the dictionary is not used.
        let entries = [0, 3, 55, 70, 7, 55, 90, 9, 0, 0, 0];
        let maps = [
            vec![1, 90, 9],
            vec![2, 70, 7, 90, 9],
            vec![3, object(&pairs)],
            vec![4, 0, object(&entries)],
            // An unknown map, and a map without its array.
            vec![5, 90, 9],
            vec![3, 0],
        ];
        // SAFETY: the maps match their classes.
        let found = |key| maps.each_ref().map(|map| unsafe { layout.value(object(map), key) });
        assert_eq!(found(90), [Some(9), Some(9), Some(9), Some(9), None, None]);
        assert_eq!(found(70), [None, Some(7), Some(7), Some(7), None, None]);
        assert_eq!(found(60), [None; 6]);
    }
}
