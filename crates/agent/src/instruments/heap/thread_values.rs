//! Finds the places of thread-static fields of generic classes.
//!
//! The places are found from the runtime's data of a thread. As in `generics`, these data are read
//! as memory that may be unmapped. They are trusted if they refer back to the thread (from .NET 9
//! on), or if they make sense for every thread and module at the same offset (.NET 8).
//!
//! | from | what | where |
//! |---|---|---|
//! | .NET 9 | two counts, the array of the thread's values, another, the thread | a word of the thread leads there |
//! | | the array of a class's values, by its number less two | an element of that array; distances are from its beginning |
//! | .NET 8 | tables of modules by their numbers, and how many | two words of the thread |
//! | | the number of a module | a word of it, which counts modules |
//! | | classes of a module by their numbers, and how many | the first two words of its table; a pair each |
//! | | the array of a class's values, or the first of these | the first word of what its pair begins with: a handle, or the address |

use std::collections::{BTreeSet, HashMap};

use super::generics::{Room, ThreadField, ValuesOfClass, word, words};

/// Words of a thread that are searched, and number of words read at once.
const THREAD_WORDS: usize = 768;
const AT_ONCE: usize = 32;
/// Words of a module that are searched.
const MODULE_WORDS: usize = 256;
/// Most free numbers among the numbers of modules.
const MOST_FREE: usize = 16;
/// Most modules of a table, and most classes of a module.
const MOST_MODULES: usize = 1 << 16;
const MOST_CLASSES: usize = 1 << 20;
/// Number of low class numbers without elements in the array of a thread's values.
const NOT_IN_ARRAY: u32 = 2;
/// Bytes of an array in front of its elements.
const ARRAY_HEAD: usize = 16;

/// How to get from a thread's data to its values.
#[derive(Debug)]
pub(super) struct ThreadValues {
    way: Way,
    /// The heap.
    heap: Room,
}

#[derive(Debug, PartialEq, Eq)]
enum Way {
    /// .NET 9 and later: the word at this offset of a thread leads to the array of values.
    Array(usize),
    /// .NET 8: the offset of the table in a thread, and the numbers of modules.
    Tables(usize, HashMap<usize, usize>),
}

impl ThreadValues {
    /// Finds out how to get to the values of `fields`, from the threads and modules that exist.
    /// `None` if no way makes sense, or if there are no fields.
    pub(super) fn find(fields: &[ThreadField], threads: &[usize], modules: &[usize], heap: Room) -> Option<Self> {
        let way = match fields.first()?.values {
            ValuesOfClass::Index(_) => Way::Array(threads.iter().find_map(|thread| place_of_array(*thread))?),
            ValuesOfClass::OfModule { .. } => Way::Tables(place_of_tables(threads, &heap)?, numbers_of(modules)?),
        };
        Some(Self { way, heap })
    }

    /// Address of a thread's value of a field; `None` if the thread has no value.
    pub(super) fn address(&self, thread: usize, field: &ThreadField) -> Option<usize> {
        let first = match (&self.way, field.values) {
            (Way::Array(place), ValuesOfClass::Index(index)) => {
                let array = array_of(thread, *place)?;
                let [kind, values] = [word(array)?, element(array, index.checked_sub(NOT_IN_ARRAY)? as usize)?];
                let at = field.offset.checked_sub(ARRAY_HEAD)? / 8;
                (word(values)? == kind && at < length(values)?).then_some(values)?
            }
            (Way::Tables(place, numbers), ValuesOfClass::OfModule { module, number }) => {
                let [tables, count] = words::<2>(thread + place)?;
                let module = *numbers.get(&module).filter(|module| **module < count)?;
                let [classes, count] = words::<2>(word(tables + 8 * module).filter(|table| *table != 0)?)?;
                let entry =
                    (number < count).then(|| word(classes + 16 * number)).flatten().filter(|entry| *entry != 0)?;
                self.heap.first_value(word(entry)?, field.offset)?
            }
            _ => return None,
        };
        let address = first + field.offset;
        self.heap.has(address).then_some(address)
    }
}

impl Room {
    /// Address of the first of some values. `at` holds that address, or a handle of the array of
    /// the values, which must have a value at `offset` from the first.
    fn first_value(&self, at: usize, offset: usize) -> Option<usize> {
        if self.has(at) {
            return Some(at);
        }
        let array = word(at).filter(|array| at != 0 && self.has(*array))?;
        (offset / 8 < length(array)?).then_some(array + ARRAY_HEAD)
    }
}

/// The array of all values of a thread, from the offset in the thread that leads to it, if the
/// array refers back.
fn array_of(thread: usize, place: usize) -> Option<usize> {
    let [_, array, _, back] = words::<4>(word(thread + place)?)?;
    (back == thread && array != 0).then_some(array)
}

fn length(array: usize) -> Option<usize> {
    word(array + 8).map(|length| length as u32 as usize)
}

/// An element of an array of references, where it has one.
fn element(array: usize, at: usize) -> Option<usize> {
    (at < length(array)?).then(|| word(array + ARRAY_HEAD + 8 * at)).flatten().filter(|value| *value != 0)
}

fn place_of_array(thread: usize) -> Option<usize> {
    let is_it = |place: &usize| array_of(thread, *place).is_some();
    (0..head(thread).len() * 8).step_by(8).find(is_it)
}

/// The first words of the runtime's data of a thread, as far as they are mapped.
fn head(thread: usize) -> Vec<usize> {
    let pieces = (0..THREAD_WORDS / AT_ONCE).map_while(|piece| words::<AT_ONCE>(thread + 8 * AT_ONCE * piece));
    pieces.flatten().collect()
}

/// The offset at which every thread has a table of modules and its length.
fn place_of_tables(threads: &[usize], heap: &Room) -> Option<usize> {
    let heads: Vec<Vec<usize>> = threads.iter().map(|thread| head(*thread)).collect();
    let most = heads.iter().map(Vec::len).min()?;
    let makes_sense = |at: &usize| {
        let found: Option<Vec<usize>> =
            heads.iter().map(|head| tables_with_values(head[*at], head[*at + 1], heap)).collect();
        found.is_some_and(|found| found.iter().sum::<usize>() > 0)
    };
    (0..most.saturating_sub(1)).find(makes_sense).map(|at| 8 * at)
}

/// Number of modules of a table that have values; `None` if that is no table of modules.
fn tables_with_values(tables: usize, count: usize, heap: &Room) -> Option<usize> {
    if (tables, count) == (0, 0) {
        return Some(0);
    }
    if tables == 0 || !tables.is_multiple_of(8) || count == 0 || count > MOST_MODULES {
        return None;
    }
    let with_values = |number: usize| {
        let table = word(tables + 8 * number)?;
        if table == 0 {
            return Some(0);
        }
        let [classes, count, first] = words::<3>(Some(table).filter(|table| table.is_multiple_of(8))?)?;
        let is_sane = classes.is_multiple_of(8) && count <= MOST_CLASSES && (classes == 0) == (count == 0);
        (is_sane && (first == 0 || heap.first_value(first, 0).is_some())).then_some(usize::from(first != 0))
    };
    (0..count).map(with_values).sum()
}

/// Numbers of modules, from the word in each module that numbers them; `None` if there is no such
/// word, or several words that differ.
fn numbers_of(modules: &[usize]) -> Option<HashMap<usize, usize>> {
    let heads: Vec<[usize; MODULE_WORDS]> = modules.iter().map(|module| words(*module)).collect::<Option<_>>()?;
    let mut found: Option<Vec<usize>> = None;
    for at in 0..MODULE_WORDS {
        let numbers: Vec<usize> = heads.iter().map(|head| head[at]).collect();
        let counts = numbers.iter().all(|number| *number < modules.len() + MOST_FREE)
            && numbers.iter().collect::<BTreeSet<_>>().len() == numbers.len();
        if counts && found.replace(numbers.clone()).is_some_and(|other| other != numbers) {
            return None;
        }
    }
    Some(modules.iter().copied().zip(found?).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Address of words that are read as memory.
    fn address(words: &[usize]) -> usize {
        std::hint::black_box(words).as_ptr().expose_provenance()
    }

    fn field(values: ValuesOfClass) -> ThreadField {
        ThreadField { class: 0, token: 1, offset: 8, values }
    }

    /// A heap of two arrays.
    fn room(arrays: [&[usize]; 2]) -> Room {
        Room(arrays.map(|array| (address(array), address(array) + 8 * array.len())).to_vec())
    }

    #[test]
    fn a_thread_s_array_that_leads_back_to_it_has_the_values() {
        const KIND: usize = 0x77;
        let values = [KIND, 2, 0, 0];
        let array = [KIND, 3, 0, address(&values), 0];
        let mut local = [0, address(&array), 0, 0];
        let mut thread = vec![0; THREAD_WORDS];
        thread[40] = address(&local);
        let thread_at = address(&thread);
        local[3] = thread_at;
        std::hint::black_box((&mut local, &mut thread));
        let of = |index| ThreadField { offset: 24, ..field(ValuesOfClass::Index(index)) };
        let found = ThreadValues::find(&[of(3)], &[thread_at], &[], room([&array, &values])).expect("a way");
        assert_eq!(found.way, Way::Array(320));
        assert_eq!(found.address(thread_at, &of(3)), Some(address(&values) + 24));
        // No values of the class yet, and none of such a number.
        assert_eq!([2, 4, 9].map(|index| found.address(thread_at, &of(index))), [None; 3]);
        // A field that the class's values have no room for.
        assert_eq!([8, 32].map(|offset| found.address(thread_at, &ThreadField { offset, ..of(3) })), [None; 2]);
        // Nothing leads back.
        local[3] = 0;
        std::hint::black_box(&mut local);
        assert_eq!(found.address(thread_at, &of(3)), None);
        assert!(ThreadValues::find(&[of(3)], &[thread_at], &[], Room::default()).is_none());
    }

    #[test]
    fn tables_of_modules_by_the_word_that_counts_these_have_the_values() {
        let values = [0, 2, 0, 0];
        // A handle of the array of values, and the address of the first.
        let handle = [address(&values)];
        let (entry, another) = ([address(&handle)], [address(&values) + ARRAY_HEAD]);
        let classes = [address(&another), 0, address(&entry), 0];
        let of_module = [address(&classes), 2, address(&handle)];
        let tables = [0, 0, address(&of_module)];
        let (mut first, second) = (vec![0; THREAD_WORDS], vec![0; THREAD_WORDS]);
        (first[60], first[61]) = (address(&tables), 3);
        let threads = [address(&first), address(&second)];
        // A word that is equal in both, a word that is too large, and the number.
        let module = |number: usize| {
            let mut words = vec![5; MODULE_WORDS];
            (words[9], words[70]) = (1000 * number, number);
            words
        };
        let modules = [module(1), module(2)];
        let ids = [address(&modules[0]), address(&modules[1])];
        let of = |module, number| field(ValuesOfClass::OfModule { module, number });
        std::hint::black_box((&mut first, &modules));
        let found = ThreadValues::find(&[of(ids[1], 1)], &threads, &ids, room([&values, &[]])).expect("a way");
        assert_eq!(found.way, Way::Tables(480, HashMap::from([(ids[0], 1), (ids[1], 2)])));
        assert_eq!([0, 1].map(|class| found.address(threads[0], &of(ids[1], class))), [Some(address(&values) + 24); 2]);
        // Another class, another module, another thread; a field that the class's values have no
        // room for.
        assert_eq!(found.address(threads[0], &of(ids[1], 2)), None);
        assert_eq!(found.address(threads[0], &ThreadField { offset: 16, ..of(ids[1], 1) }), None);
        assert_eq!(found.address(threads[0], &of(ids[0], 1)), None);
        assert_eq!(found.address(threads[1], &of(ids[1], 1)), None);
        // Values that lie elsewhere do not count.
        assert!(ThreadValues::find(&[of(ids[1], 1)], &threads, &ids, Room::default()).is_none());
    }
}
