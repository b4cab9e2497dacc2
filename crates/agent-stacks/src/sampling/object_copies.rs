//! Copies of the objects that lead from an async method to its awaiters. A signal handler on the
//! method's own thread makes them when it takes a sample, because the method may have ended when
//! the sample is processed.
//!
//! The handler works with guesses. It searches the interrupted stack for a return address in the
//! code of an async method that earlier samples have shown. It assumes that `this` is at the same
//! distance from the return address as in those samples. Then it copies the objects that follow, as
//! far as the system finds memory there. A copy is trusted only if the later walk of the stack
//! finds the same `this` in the frame of the resumed method. The copy is then read with all checks
//! of a chain.

use std::ops::Range;
use std::sync::atomic::{AtomicPtr, AtomicU64, AtomicUsize, Ordering};

use clrscope_agent_base::os::memory::{copy_if_there, zeroed_words};

use super::ring::Slot;
use super::runtime_work::ObjectMoves;
use crate::awaiters::{COPIED_WORDS, CopiedObjects, FollowedFields, TO_ARRAY};

/// Number of entries for pieces of code. A power of two.
const PLACES: usize = 1 << 14;
/// Most entries that are probed for a piece.
const STEPS: usize = 8;
/// Bytes of code of one entry.
const GRAIN: usize = 64;
/// Layout of an entry in bits: the number of the piece of code, the distance to `this` in words,
/// and the offset of the builder in the state machine in words.
const DISTANCE_AT: u32 = 41;
const DISTANCE_BITS: u32 = 12;
const BUILDER_AT: u32 = DISTANCE_AT + DISTANCE_BITS;
const UNKNOWN_BUILDER: u64 = 31;
/// Words of a builder among which its task lies.
const BUILDER_WORDS: usize = 3;
/// Most words of the stack that are searched, and most candidates for `this` that are tried.
const SEARCHED: usize = 2048;
const MOST_TRIED: usize = 4;
/// Largest offset of a state machine inside its box.
const MOST_INSIDE: usize = 1024;
/// Most objects that are copied.
const MOST_COPIES: usize = 40;
/// Words of a sample for copies.
const MOST_WORDS: usize = MOST_COPIES * (1 + COPIED_WORDS) + 1;
/// Most classes whose objects lead on by another field than a task's.
const MOST_FIELDS: usize = 16;
/// Offset of the first element of an array, in words.
const FIRST_ELEMENT: usize = 2;
/// Takes the place of an object's address if objects may have moved in the meantime.
const MOVED: u64 = 1;

/// The data by which the handler finds objects. The draining thread sets them.
pub(crate) struct ObjectCopies {
    /// Pieces of code of async methods.
    places: Box<[AtomicU64]>,
    /// Range of addresses of these pieces.
    low: AtomicUsize,
    end: AtomicUsize,
    /// Offset of a task's continuation; 0 while it is unknown.
    task_field: AtomicUsize,
    /// Other classes and the offsets of their fields; 0 if an object leads no further.
    fields: [(AtomicUsize, AtomicUsize); MOST_FIELDS],
    moves: AtomicPtr<ObjectMoves>,
}

/// Where a handler's copies begin.
#[derive(Debug, Clone, Copy)]
pub(crate) struct FirstObject {
    /// `this` of the async method.
    pub(crate) this: usize,
    state: [usize; COPIED_WORDS],
    /// Possible address of the box.
    task: usize,
    /// Number of changes of [`ObjectMoves`] before.
    moves: u64,
}

/// How to find `this` from a place in code.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct ThisPlace {
    /// Bytes from the word with the return address to the word with `this`.
    distance: usize,
    /// Offset of the builder from `this`, in words.
    builder: Option<usize>,
}

impl ObjectCopies {
    pub(super) fn new() -> Self {
        Self {
            places: zeroed_words(PLACES),
            low: AtomicUsize::new(usize::MAX),
            end: AtomicUsize::new(0),
            task_field: AtomicUsize::new(0),
            fields: [const { (AtomicUsize::new(0), AtomicUsize::new(0)) }; MOST_FIELDS],
            moves: AtomicPtr::default(),
        }
    }

    /// Allows copies of objects as long as `moves` shows that no object has moved.
    pub(super) fn begin(&self, moves: &'static ObjectMoves) {
        self.forget();
        self.moves.store(std::ptr::from_ref(moves).cast_mut(), Ordering::Release);
    }

    /// Stops all copying. The argument of [`begin`](Self::begin) lives only as long as its
    /// recording; the handler's own data stays for good.
    pub(crate) fn end(&self) {
        self.task_field.store(0, Ordering::Release);
        self.moves.store(std::ptr::null_mut(), Ordering::Release);
    }

    /// Forgets all code, because code was unloaded.
    pub(super) fn forget(&self) {
        let taken = self.places.iter().filter(|place| place.load(Ordering::Relaxed) != 0);
        taken.for_each(|place| place.store(0, Ordering::Relaxed));
    }

    /// Sets the fields that lead from objects to awaiters.
    pub(super) fn follow(&self, followed: &FollowedFields) {
        for (place, (class, field)) in self.fields.iter().zip(&followed.others) {
            place.1.store(*field, Ordering::Relaxed);
            place.0.store(*class, Ordering::Release);
        }
        self.task_field.store(followed.task, Ordering::Release);
    }

    /// Learns where the async method with this code stores `this`: `distance` bytes above the word
    /// below its stack pointer. At a call, that word is the one with the return address. `builder`:
    /// offset of the method's builder from `this`. Only one thread may call this.
    pub(super) fn learn(&self, code: &Range<usize>, at: usize, distance: usize, builder: Option<usize>) {
        let known = ThisPlace { distance, builder: builder.map(|bytes| bytes / 8).filter(|words| *words < 31) };
        if self.place(at) == Some(known) || distance / 8 >= 1 << DISTANCE_BITS || !distance.is_multiple_of(8) {
            return;
        }
        self.low.fetch_min(code.start, Ordering::Relaxed);
        self.end.fetch_max(code.end, Ordering::Relaxed);
        let grains = code.start / GRAIN..code.end.div_ceil(GRAIN);
        for grain in grains.map(|grain| grain as u64) {
            let is_free = |place: &&AtomicU64| {
                let taken = place.load(Ordering::Relaxed);
                taken == 0 || grain_of(taken) == grain
            };
            if let Some(place) = self.places_of(grain).find(is_free) {
                let builder = known.builder.map_or(UNKNOWN_BUILDER, |words| words as u64);
                let entry = grain | (distance as u64 / 8) << DISTANCE_AT | builder << BUILDER_AT;
                place.store(entry, Ordering::Release);
            }
        }
    }

    fn places_of(&self, grain: u64) -> impl Iterator<Item = &AtomicU64> {
        let first = grain.wrapping_mul(0x9E37_79B9_7F4A_7C15) as usize >> 40;
        (0..STEPS).map_while(move |step| self.places.get(first.wrapping_add(step) & (PLACES - 1)))
    }

    fn place(&self, address: usize) -> Option<ThisPlace> {
        let grain = (address / GRAIN) as u64;
        let mut entries =
            self.places_of(grain).map(|place| place.load(Ordering::Acquire)).take_while(|entry| *entry != 0);
        let entry = entries.find(|entry| grain_of(*entry) == grain)?;
        let distance = (entry >> DISTANCE_AT & ((1 << DISTANCE_BITS) - 1)) as usize * 8;
        let builder = Some(entry >> BUILDER_AT).filter(|words| *words != UNKNOWN_BUILDER);
        Some(ThisPlace { distance, builder: builder.map(|words| words as usize) })
    }

    fn moves(&self) -> Option<u64> {
        let moves = self.moves.load(Ordering::Acquire);
        // SAFETY: null, or the argument of `begin`: a part of a recording, which is freed when the
        // next one begins, long after `end`.
        unsafe { moves.as_ref() }.and_then(ObjectMoves::unmoved_so_far)
    }

    /// Number of words that copies add to a sample.
    pub(crate) const fn words() -> usize {
        MOST_WORDS
    }

    /// Finds an async method on the calling thread's interrupted stack. `word` gives the word at an
    /// address of that stack, from `sp` on; the thread was interrupted at `ip`. Async-signal-safe.
    pub(crate) fn find(&self, ip: usize, sp: usize, word: impl Fn(usize) -> Option<usize>) -> Option<FirstObject> {
        if self.task_field.load(Ordering::Acquire) == 0 {
            return None;
        }
        let moves = self.moves()?;
        let (low, end) = (self.low.load(Ordering::Relaxed), self.end.load(Ordering::Relaxed));
        let is_async = |address: &usize| (low..end).contains(address);
        let calls = (0..SEARCHED).map_while(|at| Some((sp + 8 * at, word(sp + 8 * at)?.wrapping_sub(1))));
        let places = std::iter::once((sp - 8, ip)).chain(calls).filter(|(_, at)| is_async(at));
        let found = places.filter_map(|(at, address)| Some((at, self.place(address)?))).take(MOST_TRIED);
        found.into_iter().find_map(|(at, place)| {
            let this = word(at + place.distance).filter(|this| *this != 0 && this.is_multiple_of(8))?;
            let state = copied(this)?;
            let task = task_of(this, &state, place.builder)?;
            Some(FirstObject { this, state, task, moves })
        })
    }

    /// Writes the objects that an async method leads to. Async-signal-safe.
    pub(crate) fn write(&self, first: &FirstObject, slot: &mut Slot<'_>) {
        push(slot, first.this, &first.state);
        let task_field = self.task_field.load(Ordering::Acquire);
        let (mut object, mut is_array) = (first.task, false);
        for _ in 1..MOST_COPIES {
            let Some(words) = copied(object) else { break };
            push(slot, object, &words);
            let field = if is_array { FIRST_ELEMENT * 8 } else { self.field(words[0]).unwrap_or(task_field) };
            let next = match is_array {
                true => words[FIRST_ELEMENT..].iter().copied().find(|element| *element != 0),
                false => words.get(field / 8).copied().filter(|_| field != 0),
            };
            is_array = !is_array && field & TO_ARRAY != 0;
            let Some(next) = next.filter(|next| *next != 0 && next.is_multiple_of(8)) else { break };
            object = next;
        }
        if self.moves() != Some(first.moves) {
            slot.push(MOVED);
        }
    }

    fn field(&self, class: usize) -> Option<usize> {
        let fields = self.fields.iter().take_while(|(class, _)| class.load(Ordering::Acquire) != 0);
        let found = fields.into_iter().find(|(known, _)| known.load(Ordering::Relaxed) == class);
        found.map(|(_, field)| field.load(Ordering::Relaxed))
    }
}

/// Reads the objects that [`ObjectCopies::write`] has written behind a sample. `this` belongs to
/// the method at which they begin.
pub(crate) fn decode(this: usize, words: &[u64], into: &mut CopiedObjects) {
    into.clear();
    for copy in words.chunks(1 + COPIED_WORDS) {
        match copy.split_first() {
            Some((&MOVED, _)) => return into.clear(),
            Some((&address, words)) if address != 0 && words.len() == COPIED_WORDS => {
                into.objects.push((address as usize, std::array::from_fn(|at| words[at] as usize)));
            }
            _ => break,
        }
    }
    into.this = this;
}

fn grain_of(entry: u64) -> u64 {
    entry & ((1 << DISTANCE_AT) - 1)
}

fn push(slot: &mut Slot<'_>, address: usize, words: &[usize; COPIED_WORDS]) {
    slot.push(address as u64);
    words.iter().for_each(|word| slot.push(*word as u64));
}

fn copied(address: usize) -> Option<[usize; COPIED_WORDS]> {
    let mut bytes = [0; 8 * COPIED_WORDS];
    // An object may be smaller, and the last one may lie before unmapped memory.
    let is_there = copy_if_there(address, &mut bytes) || copy_if_there(address, &mut bytes[..64]);
    let words = bytes.as_chunks().0;
    is_there.then(|| std::array::from_fn(|at| usize::from_ne_bytes(words[at])))
}

/// The box of a method whose state machine begins with these words. The state machine lies in the
/// box, or refers to it through its builder.
fn task_of(this: usize, state: &[usize; COPIED_WORDS], builder: Option<usize>) -> Option<usize> {
    let is_object = |word: &usize| *word != 0 && word.is_multiple_of(8);
    let is_around =
        |word: &usize| is_object(word) && this.checked_sub(*word).is_some_and(|inside| inside < MOST_INSIDE);
    let around = state.iter().copied().find(|word| is_around(word) && *word != this);
    around.or_else(|| state.iter().copied().skip(builder?).take(BUILDER_WORDS).find(is_object))
}

#[cfg(test)]
mod tests {
    use super::super::ring::Ring;
    use super::*;

    const CODE: Range<usize> = 0x7000_0040..0x7000_0100;
    /// Offset of the field by which a task leads to its awaiter.
    const FIELD: usize = 16;
    const TASK: usize = 1;
    const LIST: usize = 2;
    const END: usize = 3;

    /// A stack and its objects: a box with a state machine in it, a list, an array, a task, and the
    /// end.
    struct Program {
        objects: Box<[[usize; COPIED_WORDS]; 5]>,
        stack: Vec<usize>,
        sp: usize,
    }

    impl Program {
        fn new() -> Self {
            let mut objects = Box::new([[0; COPIED_WORDS]; 5]);
            let base = std::hint::black_box(&mut objects).as_mut_ptr().expose_provenance();
            let at = |object: usize| base + object * size_of::<[usize; COPIED_WORDS]>();
            (objects[0][0], objects[0][FIELD / 8], objects[0][6]) = (TASK, at(1), at(0));
            (objects[1][0], objects[1][1]) = (LIST, at(2));
            objects[2][5] = at(3);
            (objects[3][0], objects[3][FIELD / 8]) = (TASK, at(4));
            objects[4][0] = END;
            // A call from the method: its return address, and `this` five words above.
            let this = at(0) + 5 * 8;
            let stack = vec![7, 8, CODE.start + 10, 0, 0, 0, 0, this];
            let sp = stack.as_ptr().expose_provenance();
            Self { objects, stack, sp }
        }

        fn word(&self, address: usize) -> Option<usize> {
            self.stack.get(address.checked_sub(self.sp)? / 8).copied()
        }

        fn address(&self, object: usize) -> usize {
            self.objects[object].as_ptr().expose_provenance()
        }

        /// The decoded copies of a handler; `None` if it finds nothing. `change` is called between
        /// copying and decoding.
        fn copies(&self, copies: &ObjectCopies, ip: usize, change: impl FnOnce()) -> Option<CopiedObjects> {
            let first = copies.find(ip, self.sp, |address| self.word(address))?;
            let ring = Ring::new(1 << 12);
            let mut slot = ring.reserve(ObjectCopies::words())?;
            change();
            copies.write(&first, &mut slot);
            drop(slot);
            let (mut words, mut copied) = (Vec::new(), CopiedObjects::default());
            assert!(ring.read(&mut words));
            decode(first.this, &words, &mut copied);
            Some(copied)
        }
    }

    fn copies_with(moves: &'static ObjectMoves) -> ObjectCopies {
        let copies = ObjectCopies::new();
        copies.begin(moves);
        copies.follow(&FollowedFields { task: FIELD, others: vec![(LIST, 8 | TO_ARRAY), (END, 0)] });
        copies
    }

    fn moves() -> &'static ObjectMoves {
        Box::leak(Box::default())
    }

    #[test]
    fn objects_are_copied_from_the_methods_own_state_to_the_end() {
        let program = Program::new();
        let copies = copies_with(moves());
        assert!(program.copies(&copies, 0, || {}).is_none(), "nothing is learnt yet");
        copies.learn(&CODE, CODE.start + 9, 40, None);
        let found = program.copies(&copies, 0, || {}).expect("its return address is on the stack");
        assert_eq!(found.this, program.address(0) + 40);
        let addresses: Vec<usize> = found.objects.iter().map(|(address, _)| *address).collect();
        let expected: Vec<usize> =
            std::iter::once(found.this).chain([0, 1, 2, 3, 4].map(|at| program.address(at))).collect();
        assert_eq!(addresses, expected);
        assert!(found.objects[1..].iter().map(|(_, words)| words).eq(program.objects.iter()));
        copies.forget();
        assert!(program.copies(&copies, 0, || {}).is_none());
    }

    #[test]
    fn the_method_that_is_interrupted_itself_is_found() {
        let mut program = Program::new();
        program.stack[2] = 0;
        let copies = copies_with(moves());
        let distance = 8 * program.stack.len();
        copies.learn(&CODE, CODE.start, distance, None);
        assert!(program.copies(&copies, CODE.end - 1, || {}).is_some());
        assert!(program.copies(&copies, CODE.end + GRAIN, || {}).is_none());
    }

    #[test]
    fn a_builder_leads_to_a_box_elsewhere() {
        let mut state = [0; COPIED_WORDS];
        state[2] = 0x5000;
        assert_eq!(
            [Some(1), Some(2), Some(3), None].map(|builder| task_of(0x9000, &state, builder)),
            [Some(0x5000), Some(0x5000), None, None]
        );
        state[9] = 0x8F00;
        assert_eq!(task_of(0x9000, &state, Some(2)), Some(0x8F00), "the state lies in it");
    }

    #[test]
    fn nothing_is_copied_while_objects_may_move() {
        let program = Program::new();
        let moves = moves();
        let copies = copies_with(moves);
        copies.learn(&CODE, CODE.start, 40, None);
        let while_moving = program.copies(&copies, 0, || moves.change()).expect("found before");
        assert_eq!((while_moving.this, while_moving.objects.len()), (0, 0));
        assert!(program.copies(&copies, 0, || {}).is_none(), "the program is stopped");
        moves.change();
        assert!(program.copies(&copies, 0, || {}).is_some());
    }

    /// The next recording begins with running timers before it has set anything.
    #[test]
    fn nothing_is_copied_between_two_recordings() {
        let program = Program::new();
        let copies = copies_with(moves());
        copies.learn(&CODE, CODE.start, 40, None);
        assert!(program.copies(&copies, 0, || {}).is_some());
        copies.end();
        assert!(program.copies(&copies, 0, || {}).is_none() && copies.moves().is_none());
    }

    #[test]
    fn memory_that_is_not_there_ends_the_copies() {
        let mut program = Program::new();
        program.objects[0][FIELD / 8] = 0x10;
        let copies = copies_with(moves());
        copies.learn(&CODE, CODE.start, 40, None);
        assert_eq!(program.copies(&copies, 0, || {}).expect("the box is there").objects.len(), 2);
        program.stack[7] = 0x10;
        assert!(program.copies(&copies, 0, || {}).is_none());
    }
}
