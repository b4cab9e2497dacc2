//! Finds the places of static fields of generic classes. The runtime gives these places only for
//! other classes.
//!
//! The places come from the runtime's own tables. They are read as memory that may be unmapped, and
//! every step is verified: a table must refer back to its class, a description of a field must
//! refer to the class too, and the values of a class must lie in the part of the heap where the
//! runtime keeps static fields. Where a version has another table layout, nothing is found, and the
//! fields have no names.
//!
//! | from | what | where |
//! |---|---|---|
//! | .NET 9 | the first value of a class, another word, the class | the three words in front of the address that the class holds at 32 |
//! | | descriptions of the fields | the word before these |
//! | | two numbers by which threads keep values of the class; the second is the number for references | the word before that |
//! | .NET 8 | descriptions of the fields, and a number | two words somewhere behind the first eight of the class |
//! | | classes by their numbers, two counts in front of it | a word of the module |
//! | | the first values by these numbers | a table of pairs; another word of the module leads to the table and its length |
//!
//! A description of a field takes two words: the class; then 24 bits of its token and flags, 27
//! bits of the distance from the first value, and its type. `thread_values` finds the values of
//! thread-static fields.

use clr_profiler::{ModuleId, ProfilerInfo};
use clrscope_agent_base::os::memory::copy_if_there;

use super::maps::Mappings;

/// Offset in a class of the pointer behind the words that are kept next to the class.
const BESIDE: usize = 32;
/// First offset in a class, in words, at which .NET 8 may keep descriptions of fields, and the
/// number of possible offsets.
const DESCRIPTIONS: (usize, usize) = (8, 64);
/// Words of a module that are searched.
const MODULE_WORDS: usize = 256;
/// Bytes that are copied at a time.
const PIECE: usize = 64 << 10;
/// Most bytes of the runtime's tables that are searched.
const MOST: usize = 1 << 30;
/// Most classes of a module, and most fields of a class.
const MOST_CLASSES: usize = 1 << 20;
const MOST_FIELDS: usize = 1 << 12;
/// Flags of a field: static, thread-static, stored in the module's file.
const STATIC: u32 = 1 << 24;
const OF_THREAD: u32 = 1 << 25;
const OF_FILE: u32 = 1 << 26;
/// Words for thread statics and field descriptions in front of the place that the class points to.
const BEFORE: usize = 5;
/// First number of a class among the values of a thread, and the range of these numbers.
const FIRST_INDEX: u32 = 2;
const KIND_OF_INDEX: u32 = 24;
/// Types of fields that hold references: boxed values, and references.
const VALUE: u32 = 0x11;
const REFERENCE: u32 = 0x12;

/// A static field of a generic class, and where its value is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct GenericField {
    /// The class, as the first word of its objects.
    pub(super) class: usize,
    /// Metadata token of the field.
    pub(super) token: u32,
    /// Address of the field's value.
    pub(super) address: usize,
}

/// A thread-static field of a generic class, and where its values are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct ThreadField {
    /// The class, as the first word of its objects.
    pub(super) class: usize,
    /// Metadata token of the field.
    pub(super) token: u32,
    /// Offset of the value in bytes. It counts from the first value of the class, or from the
    /// beginning of the array of values: see `thread_values`.
    pub(super) offset: usize,
    /// Where a thread keeps the class's values.
    pub(super) values: ValuesOfClass,
}

/// Where threads keep the values of a class.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ValuesOfClass {
    /// .NET 9 and later: under this number among the values of the thread.
    Index(u32),
    /// .NET 8: under the class's number among the classes of its module.
    OfModule {
        /// The module's identifier.
        module: usize,
        /// The class's number in its module.
        number: usize,
    },
}

/// Static fields of generic classes that were found.
#[derive(Debug, Default)]
pub(super) struct GenericFields {
    /// Fields with one value for the whole program.
    pub(super) of_program: Vec<GenericField>,
    /// Thread-static fields, with a value for each thread.
    pub(super) of_threads: Vec<ThreadField>,
}

impl GenericFields {
    /// Adds the fields of a class whose descriptions are at an address: static fields if the first
    /// value is known, thread-static fields if `values` is known.
    fn add(&mut self, class: usize, descriptions: usize, first: Option<usize>, values: Option<ValuesOfClass>) {
        for DescribedField { token, offset, of_thread } in described(class, descriptions) {
            match (of_thread, first, values) {
                (false, Some(first), _) => self.of_program.push(GenericField { class, token, address: first + offset }),
                (true, _, Some(values)) => self.of_threads.push(ThreadField { class, token, offset, values }),
                _ => {}
            }
        }
    }
}

/// Ranges of the heap where values can lie: start and end.
#[derive(Debug, Clone, Default)]
pub(super) struct Room(pub(super) Vec<(usize, usize)>);

impl Room {
    /// Whether an address lies in one of the ranges.
    pub(super) fn has(&self, address: usize) -> bool {
        self.0.iter().any(|&(start, end)| (start..end).contains(&address))
    }
}

/// Finds static fields of generic classes, as many as possible. `classes` are some loaded classes,
/// each given by the first word of its objects.
pub(super) fn find(info: &ProfilerInfo, classes: impl Iterator<Item = usize>, room: &Room) -> GenericFields {
    let (mut beside, mut proven) = (Vec::new(), 0);
    for class in classes {
        let Some(at) = word(class + BESIDE).filter(|at| at.is_multiple_of(8) && *at > 24) else { continue };
        proven += usize::from(word(at - 8) == Some(class));
        beside.push(at);
    }
    let mut found = GenericFields::default();
    match proven {
        0 => info.modules().unwrap_or_default().into_iter().for_each(|module| of_module(module, room, &mut found)),
        _ => beside_classes(beside, room, &mut found),
    }
    found
}

/// From .NET 9 on: searches for the words next to classes, in all mappings that contain such words
/// of known classes.
fn beside_classes(mut known: Vec<usize>, room: &Room, found: &mut GenericFields) {
    let maps = Mappings::read();
    known.sort_unstable();
    let mut mappings: Vec<(usize, usize)> = known.into_iter().filter_map(|at| maps.around(at)).collect();
    mappings.dedup();
    let (mut left, mut piece) = (MOST, vec![0; PIECE + 8 * (BEFORE - 1)]);
    for (start, end) in mappings {
        for at in (start..end).step_by(PIECE) {
            // An entry that begins at the end of a piece continues behind it.
            let length = (end - at).min(piece.len());
            let piece = &mut piece[..length];
            left = left.saturating_sub(piece.len());
            if left == 0 || !copy_if_there(at, piece) {
                continue;
            }
            let all: Vec<usize> = words_of(piece).collect();
            for (place, word) in (at..).step_by(8).zip(&all[..all.len().min(PIECE / 8)]) {
                if room.has(word & !1) {
                    fields_beside(place, word & !1, found);
                }
            }
            for (place, words) in (at..).step_by(8).zip(all.windows(BEFORE)) {
                fields_of_threads(place, words, found);
            }
        }
    }
}

/// Adds the fields of the generic class, if any, whose first value's address is stored at a place.
fn fields_beside(place: usize, first: usize, found: &mut GenericFields) {
    let class = word(place + 16).filter(|class| word(class.wrapping_add(BESIDE)) == Some(place + 24));
    if let Some((class, descriptions)) = class.and_then(|class| Some((class, word(place - 8)?))) {
        found.add(class, descriptions, Some(first), None);
    }
}

/// Adds the thread-static fields of the class, if any, whose thread numbers are stored at a place;
/// `words` are the words from there on.
fn fields_of_threads(place: usize, words: &[usize], found: &mut GenericFields) {
    let &[indexes, descriptions, _, _, class] = words else { return };
    let (of_values, of_references) = (indexes as u32, (indexes >> 32) as u32);
    let is_index = of_references >= FIRST_INDEX && of_references >> KIND_OF_INDEX == 0;
    let is_other = of_values == u32::MAX || of_values >> KIND_OF_INDEX <= 2;
    let are_addresses = [descriptions, class].iter().all(|at| *at != 0 && at.is_multiple_of(8));
    if is_index && is_other && are_addresses && word(class.wrapping_add(BESIDE)) == Some(place + 8 * BEFORE) {
        found.add(class, descriptions, None, Some(ValuesOfClass::Index(of_references)));
    }
}

/// A static field that holds references, as the runtime describes it.
struct DescribedField {
    token: u32,
    /// Distance from the first value.
    offset: usize,
    of_thread: bool,
}

/// The fields that the descriptions at an address describe, as long as they belong to this class.
fn described(class: usize, descriptions: usize) -> Vec<DescribedField> {
    let mut found = Vec::new();
    for number in 0..MOST_FIELDS {
        let Some([of, rest]) = words::<2>(descriptions.wrapping_add(16 * number)) else { break };
        let (name, place) = (rest as u32, (rest >> 32) as u32);
        if of != class || name & STATIC == 0 {
            break;
        }
        if name & OF_FILE == 0 && matches!(place >> 27, VALUE | REFERENCE) {
            let (token, offset) = (0x0400_0000 | name & 0x00FF_FFFF, (place & 0x07FF_FFFF) as usize);
            found.push(DescribedField { token, offset, of_thread: name & OF_THREAD != 0 });
        }
    }
    found
}

/// .NET 8: the fields of the generic classes of a module.
fn of_module(module: ModuleId, room: &Room, found: &mut GenericFields) {
    let Some(words) = words::<MODULE_WORDS>(module.as_raw()) else { return };
    let Some(classes) = words.windows(3).find_map(|head| classes_of([head[0], head[1], head[2]])) else { return };
    let values = words.iter().find_map(|&head| first_values(head, &classes, room));
    for (at, class) in classes.iter().enumerate() {
        let first = values.as_ref().map(|values| values[at]).filter(|first| *first != 0);
        let of_threads = ValuesOfClass::OfModule { module: module.as_raw(), number: class.number };
        found.add(class.class, class.descriptions, first, Some(of_threads));
    }
}

/// A generic class of .NET 8.
#[derive(Debug, Clone, Copy)]
struct Class {
    class: usize,
    number: usize,
    descriptions: usize,
}

/// The classes of a table that is given by three consecutive words: number, capacity and address.
fn classes_of([count, room, table]: [usize; 3]) -> Option<Vec<Class>> {
    if count == 0 || count > room || room > MOST_CLASSES || !table.is_multiple_of(8) || table == 0 {
        return None;
    }
    let class = |number: usize| {
        let class = word(table.checked_add(8 * number)?).filter(|class| class.is_multiple_of(8) && *class != 0)?;
        let (from, many) = DESCRIPTIONS;
        let descriptions = (from..from + many).find_map(|at| {
            let [descriptions, id] = words::<2>(class.checked_add(8 * at)?)?;
            let is_it = id == number && descriptions.is_multiple_of(8) && word(descriptions) == Some(class);
            is_it.then_some(descriptions)
        })?;
        Some(Class { class, number, descriptions })
    };
    let classes: Vec<Class> = (0..count).filter_map(class).collect();
    (!classes.is_empty()).then_some(classes)
}

/// Address of the first value of each class, 0 if there is none, from the table whose address and
/// length are stored at an address.
fn first_values(head: usize, classes: &[Class], room: &Room) -> Option<Vec<usize>> {
    let head = words::<5>(Some(head).filter(|head| head.is_multiple_of(8) && *head != 0)?)?;
    head.windows(2).find_map(|pair| {
        let (table, length) = (pair[0], pair[1]);
        if table == 0
            || !table.is_multiple_of(8)
            || length > MOST_CLASSES
            || !classes.iter().all(|class| class.number < length)
        {
            return None;
        }
        let value = |class: &Class| match word(table.checked_add(16 * class.number)?)? {
            0 => Some(0),
            entry => word(entry).filter(|first| *first == 0 || room.has(*first)),
        };
        let values: Option<Vec<usize>> = classes.iter().map(value).collect();
        values.filter(|values| values.iter().any(|first| *first != 0))
    })
}

/// The word at an address, if the address is mapped.
pub(super) fn word(address: usize) -> Option<usize> {
    words::<1>(address).map(|[word]| word)
}

/// Words from an address on; `None` unless all of them are mapped.
pub(super) fn words<const N: usize>(address: usize) -> Option<[usize; N]> {
    let mut bytes = vec![0; 8 * N];
    if !copy_if_there(address, &mut bytes) {
        return None;
    }
    let mut all = [0; N];
    all.iter_mut().zip(words_of(&bytes)).for_each(|(word, read)| *word = read);
    Some(all)
}

fn words_of(bytes: &[u8]) -> impl Iterator<Item = usize> {
    bytes.chunks_exact(8).map(|word| usize::from_ne_bytes(word.try_into().expect("eight bytes")))
}

#[cfg(test)]
mod tests {
    use super::*;

    const ROOM: (usize, usize) = (0x7000_0000, 0x7000_1000);
    const INDEX: usize = 7;

    /// A description of a field.
    fn description(class: usize, token: usize, flags: u32, place: usize, kind: u32) -> [usize; 2] {
        [class, token | (flags as usize) | (place | (kind as usize) << 27) << 32]
    }

    /// Address of words that are read as memory.
    fn address(words: &[usize]) -> usize {
        std::hint::black_box(words).as_ptr().expose_provenance()
    }

    #[test]
    fn fields_beside_a_class_are_those_that_lead_back_to_it() {
        let room = Room(vec![ROOM]);
        let mut class = vec![0_usize; 16];
        let class_at = address(&class);
        // A reference, a number, a thread-static field, a boxed value; then fields of another
        // class.
        let descriptions = [
            description(class_at, 3, STATIC, 0, REFERENCE),
            description(class_at, 4, STATIC, 0, 8),
            description(class_at, 5, STATIC | OF_THREAD, 8, REFERENCE),
            description(class_at, 6, STATIC, 16, VALUE),
            description(class_at + 8, 7, STATIC, 0, REFERENCE),
        ]
        .concat();
        // In front of the words next to the class: numbers for threads, descriptions, first value
        // and not initialized yet, another word, the class.
        let numbers = u32::MAX as usize | INDEX << 32;
        let beside = vec![numbers, address(&descriptions), ROOM.0 + 0x101, 0, class_at, 0];
        class[BESIDE / 8] = address(&beside) + 40;
        std::hint::black_box(&mut class);
        let mut found = GenericFields::default();
        beside_classes(vec![address(&beside) + 40], &room, &mut found);
        // The tests' memory may hold an old copy of these words elsewhere; each leads to the same.
        let expected = [(0x0400_0003, ROOM.0 + 0x100), (0x0400_0006, ROOM.0 + 0x110)];
        assert!(found.of_program.len() >= 2, "{found:?}");
        for field in &found.of_program {
            assert!(field.class == class_at && expected.contains(&(field.token, field.address)), "{field:?}");
        }
        let of_thread =
            ThreadField { class: class_at, token: 0x0400_0005, offset: 8, values: ValuesOfClass::Index(INDEX as u32) };
        assert!(!found.of_threads.is_empty() && found.of_threads.iter().all(|field| *field == of_thread), "{found:?}");
        // Nothing refers back.
        class[BESIDE / 8] = 0;
        std::hint::black_box(&mut class);
        let mut found = GenericFields::default();
        fields_beside(address(&beside) + 16, ROOM.0, &mut found);
        fields_of_threads(address(&beside), &beside[..BEFORE], &mut found);
        assert!(found.of_program.is_empty() && found.of_threads.is_empty(), "{found:?}");
    }

    #[test]
    fn fields_of_a_module_s_generic_classes_are_found_by_their_numbers() {
        let room = Room(vec![ROOM]);
        let mut class = vec![0_usize; 90];
        let class_at = address(&class);
        let descriptions = [
            description(class_at, 9, STATIC, 8, REFERENCE),
            description(class_at, 10, STATIC | OF_THREAD, 16, REFERENCE),
        ]
        .concat();
        class[21..23].copy_from_slice(&[address(&descriptions), 1]);
        let by_number = [0, class_at];
        let entry = [ROOM.0 + 0x40];
        let table = [0, 0, address(&entry), 0];
        let local = [0, address(&table), 2, 0, 0];
        let mut module = vec![0_usize; MODULE_WORDS];
        module[7] = address(&local);
        module[40..43].copy_from_slice(&[2, 16, address(&by_number)]);
        std::hint::black_box((&mut class, &mut module));
        // SAFETY: no runtime is asked about it; its words are read as memory.
        let id = unsafe { ModuleId::from_raw(address(&module)) };
        let expected = GenericField { class: class_at, token: 0x0400_0009, address: ROOM.0 + 0x48 };
        let fields = |room: &Room| {
            let mut found = GenericFields::default();
            of_module(id, room, &mut found);
            (found.of_program, found.of_threads)
        };
        let values = ValuesOfClass::OfModule { module: address(&module), number: 1 };
        let of_thread = ThreadField { class: class_at, token: 0x0400_000A, offset: 16, values };
        assert_eq!(fields(&room), (vec![expected], vec![of_thread]));
        // Values elsewhere on the heap are none of a static field.
        assert_eq!(fields(&Room(vec![(1, 2)])), (vec![], vec![of_thread]));
    }
}
