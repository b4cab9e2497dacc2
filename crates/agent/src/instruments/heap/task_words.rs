//! Words of the boxes of async methods, from which the await of each box is found.
//!
//! A waiting method has the number of its await in its own state: in the box, or in an object to
//! which only the box refers. Only names show which word holds the number, and names may not be
//! asked for during a collection. So the collection keeps all words without references of objects
//! derived from tasks. The words are interpreted after the program has resumed.

use std::collections::{BTreeMap, HashMap};
use std::sync::atomic::{AtomicU64, Ordering};

use clrscope_agent_base::class_parents::parent_of;
use clrscope_agent_base::os::memory::copy_if_there;
use clrscope_agent_stacks::awaiters::BoxLayout;
use clrscope_contract::async_code::await_number;

use super::shape::{Description, Shape, describe};

/// Most classes between a class and its base.
const MOST_BASES: usize = 8;
/// Most words of a box or of a method's own state that are kept.
const MOST_WORDS: usize = 128;
/// Most words that are kept of all objects.
const MOST_KEPT: usize = 8 << 20;

/// Which words are kept of the objects of a class.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum TaskWords {
    /// These words of the object itself, as offsets in words from its beginning.
    Own(Vec<u32>),
    /// Words of the object that this word refers to, as the class has no other field of its own.
    Machine(u32),
}

impl TaskWords {
    /// Finds out which words to keep of a class. `None` unless its base class is derived from
    /// `task`, the class of tasks.
    pub(super) fn find(class: usize, shape: &Shape, task: usize) -> Option<Self> {
        let bases: Vec<usize> =
            std::iter::successors(Some(class), |class| parent_of(*class)).take(MOST_BASES).collect();
        let with_result = bases.iter().position(|base| *base == task)?.checked_sub(1).filter(|at| *at > 0)?;
        let Description::Object(base) = describe(bases[with_result]) else { return None };
        let own = base.elements_at() / 8..shape.elements_at() / 8;
        let is_reference = |word: &u32| shape.fixed.binary_search(word).is_ok();
        match own.len() {
            1 if is_reference(&own.start) => Some(Self::Machine(own.start)),
            _ => {
                let words: Vec<u32> = own.filter(|word| !is_reference(word)).take(MOST_WORDS).collect();
                (!words.is_empty()).then_some(Self::Own(words))
            }
        }
    }

    /// Index, among the kept words, of the number of the await, and whether the number is the upper
    /// half of its word.
    fn place_of(&self, layout: &BoxLayout) -> Option<(usize, bool)> {
        let state = layout.state?;
        let offset = if layout.is_value { layout.machine.checked_add(state)? } else { state };
        let word = offset / 8;
        let place = match self {
            Self::Own(words) if layout.is_value => words.iter().position(|kept| *kept as usize == word)?,
            Self::Machine(own) if !layout.is_value && layout.machine == *own as usize * 8 => word,
            _ => return None,
        };
        offset.is_multiple_of(4).then_some((place, !offset.is_multiple_of(8)))
    }
}

/// An object whose words were kept.
#[derive(Debug)]
struct KeptObject {
    address: u64,
    class: u32,
    /// The first of its words.
    first: usize,
}

/// The words that were kept.
#[derive(Debug, Default)]
pub(super) struct KeptWords {
    objects: Vec<KeptObject>,
    words: Vec<u64>,
    /// First word, and number of words, of the objects to which the objects of a class refer.
    machines: HashMap<u32, (u64, usize)>,
    /// Number of objects whose words were not kept for lack of room.
    pub(super) left_out: u64,
}

impl KeptWords {
    /// Keeps words of an object of class number `class`; `words` begin with the object.
    #[cold]
    pub(super) fn keep(&mut self, address: u64, class: u32, kept: &TaskWords, words: &[AtomicU64]) {
        if self.words.len() + MOST_WORDS > MOST_KEPT {
            self.left_out += 1;
            return;
        }
        let word = |at: u32| words.get(at as usize).map_or(0, |word| word.load(Ordering::Relaxed));
        let first = self.words.len();
        match kept {
            TaskWords::Own(places) => self.words.extend(places.iter().map(|at| word(*at))),
            TaskWords::Machine(at) => self.keep_machine(class, word(*at)),
        }
        if self.words.len() > first {
            self.objects.push(KeptObject { address, class, first });
        }
    }

    fn keep_machine(&mut self, class: u32, machine: u64) {
        let mut bytes = [0; MOST_WORDS * 8];
        if machine == 0 || !copy_if_there(machine as usize, &mut bytes[..8]) {
            return;
        }
        let first = u64::from_ne_bytes(bytes[..8].try_into().expect("eight bytes"));
        let known = *self.machines.entry(class).or_insert_with(|| match describe(first as usize) {
            Description::Object(shape) if shape.component == 0 => {
                (first, (shape.elements_at() as usize / 8).min(MOST_WORDS))
            }
            _ => (first, 0),
        });
        // All boxes of a class refer to objects of one class.
        let (expected, count) = known;
        let bytes = &mut bytes[..count * 8];
        if first == expected && copy_if_there(machine as usize, bytes) {
            self.words
                .extend(bytes.chunks_exact(8).map(|word| u64::from_ne_bytes(word.try_into().expect("eight bytes"))));
        }
    }

    /// Numbers of the classes of the objects whose words were kept.
    pub(super) fn classes(&self) -> Vec<u32> {
        let mut all: Vec<u32> = self.objects.iter().map(|object| object.class).collect();
        all.sort_unstable();
        all.dedup();
        all
    }

    /// The boxes, by class and by the IL offset of the await at which they wait.
    pub(super) fn by_await(&self, boxes: &HashMap<u32, (TaskWords, BoxLayout)>) -> BTreeMap<(u32, u32), Vec<u64>> {
        let places: HashMap<u32, (usize, bool, &BoxLayout)> = boxes
            .iter()
            .filter_map(|(class, (kept, layout))| {
                let (place, is_upper) = kept.place_of(layout)?;
                Some((*class, (place, is_upper, layout)))
            })
            .collect();
        let ends = self.objects.iter().skip(1).map(|object| object.first).chain([self.words.len()]);
        let mut found: BTreeMap<(u32, u32), Vec<u64>> = BTreeMap::new();
        for (object, end) in self.objects.iter().zip(ends) {
            let Some(&(place, is_upper, layout)) = places.get(&object.class) else { continue };
            let Some(word) = self.words[object.first..end].get(place) else { continue };
            let number = await_number((if is_upper { word >> 32 } else { *word }) as u32) as i32;
            // Negative numbers mean that the method runs, or has ended.
            let Some(place) = usize::try_from(number).ok().and_then(|number| *layout.awaits.get(number)?) else {
                continue;
            };
            found.entry((object.class, place)).or_default().push(object.address);
        }
        found
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use clr_profiler::{ModuleId, Token};

    use super::*;

    /// Classes as in memory: the type of tasks, a task with a result, boxes that contain a method's
    /// state, boxes that refer to it, and that state.
    struct Memory {
        words: Box<[[u64; 16]; 6]>,
        state: Box<[u64; 4]>,
    }

    /// Offset in words of a class in its memory: the description of its references is in front, the
    /// rest of the class behind.
    const AT: usize = 8;

    impl Memory {
        fn new() -> Self {
            let mut words = Box::new([[0; 16]; 6]);
            // Flags, with references; bytes of an object; and for each series of references its
            // first word and number.
            let references = 0x0100_0000_u64;
            for (at, (base, series)) in
                [(24, None), (64, Some((1, 5))), (72, Some((1, 5))), (104, Some((1, 5))), (80, None), (40, None)]
                    .into_iter()
                    .enumerate()
            {
                let flags = if series.is_some() || at == 4 { references } else { 0 };
                words[at][AT] = flags | base << 32;
                let mut put = |number: usize, (first, count): (u64, u64)| {
                    words[at][AT - 2 * number] = first * 8;
                    words[at][AT - 2 * number - 1] = (count * 8).wrapping_sub(base);
                };
                match (at, series) {
                    (4, _) => {
                        put(1, (1, 5));
                        put(2, (8, 1));
                        words[at][AT - 1] = 2;
                    }
                    (_, Some(series)) => {
                        put(1, series);
                        words[at][AT - 1] = 1;
                    }
                    (_, None) => {}
                }
            }
            let mut memory = Self { words, state: Box::new([0; 4]) };
            for (class, base) in [(1, 0), (2, 1), (3, 2), (4, 2), (5, 0)] {
                memory.words[class][AT + 2] = memory.class(base) as u64;
            }
            memory.state[0] = memory.class(5) as u64;
            memory
        }

        fn class(&self, number: usize) -> usize {
            self.words[number].as_ptr().expose_provenance() + AT * 8
        }

        fn found(&self, number: usize) -> Option<TaskWords> {
            let Description::Object(shape) = describe(self.class(number)) else { panic!("no class {number}") };
            TaskWords::find(self.class(number), &shape, self.class(1))
        }
    }

    fn layout(machine: usize, is_value: bool, state: usize) -> BoxLayout {
        let awaits: Arc<[Option<u32>]> = [Some(17), None, Some(40)].into();
        BoxLayout {
            module: ModuleId::NULL,
            token: Token::new(0x600_0001),
            machine,
            is_value,
            state: Some(state),
            awaits,
        }
    }

    #[test]
    fn words_without_references_are_kept_of_classes_derived_from_tasks_with_results() {
        let memory = Memory::new();
        assert_eq!(memory.found(3), Some(TaskWords::Own(vec![8, 9, 10, 11])));
        assert_eq!(memory.found(4), Some(TaskWords::Machine(8)));
        assert_eq!([0, 1, 2, 5].map(|number| memory.found(number)), [None, None, None, None]);
    }

    #[test]
    fn boxes_are_found_by_the_await_that_they_wait_at() {
        let mut memory = Memory::new();
        let (value, reference) = (memory.found(3).expect("words"), memory.found(4).expect("words"));
        let mut kept = KeptWords::default();
        let object = |word: usize, value: u64| {
            let words: Vec<AtomicU64> = (0..12).map(|at| AtomicU64::new(if at == word { value } else { 0 })).collect();
            words
        };
        // The number is the upper half of the tenth word; a method that runs or has ended has a
        // negative number.
        for (address, number) in [(0x100, 2_u32), (0x200, 0), (0x300, u32::MAX), (0x400, 2), (0x500, 1), (0x600, 3)] {
            kept.keep(address, 3, &value, &object(9, u64::from(number) << 32 | 7));
        }
        memory.state[2] = 2;
        let machine = memory.state.as_ptr().expose_provenance() as u64;
        kept.keep(0x700, 4, &reference, &object(8, machine));
        kept.keep(0x800, 4, &reference, &object(8, 0));
        assert_eq!(kept.classes(), [3, 4]);
        let boxes = HashMap::from([(3, (value, layout(64, true, 12))), (4, (reference, layout(64, false, 16)))]);
        let found = kept.by_await(&boxes);
        let expected = [((3, 17), vec![0x200]), ((3, 40), vec![0x100, 0x400]), ((4, 40), vec![0x700])];
        assert_eq!(found, BTreeMap::from(expected));
        assert_eq!(kept.left_out, 0);
    }
}
