//! Return addresses that no frame pointer leads to, and their known positions.
//!
//! A short method may have no frame. Then its own return address lies at a fixed distance on the
//! stack from the address at which the method itself resumes. A body that took over a running frame
//! (OSR) has that frame above its own. The return address to its caller belongs to that older
//! frame; at the usual position is an address of the older body instead. The frameless code of the
//! runtime that allocates on .NET 10 is a further case. Code that follows only frame pointers
//! misses these addresses, and takes different stacks for one.
//!
//! There are two sources for what code hides. One is the unwind information of the body
//! ([`CodeMap::behind`](crate::code::CodeMap::behind)). The other, for callbacks that may request
//! it, is the runtime's own walk. The walk says at once that something is hidden, and is trusted
//! later, once the unwind information has said what. Callbacks and hooks read this table without a
//! lock and without allocation.

use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use clr_profiler::internals::{CurrentStack, HiddenReturn, NativeFrame};
use clrscope_agent_base::os::memory::zeroed_words;

/// Number of entries for addresses. A power of two.
const PLACES: usize = 1 << 13;
/// Most entries that are probed for an address.
const STEPS: usize = 16;
/// Bytes that the system backs at a time.
const PAGE: usize = 4096;
/// Bits of an address: user-space addresses have no more.
const ADDRESS_BITS: u32 = 47;
const ADDRESS: u64 = (1 << ADDRESS_BITS) - 1;
/// Kinds, in the bits above the address. The distance in words is above the kind.
const NOTHING: u64 = 0;
const HIDDEN: u64 = 1;
const TAKES_PLACE: u64 = 2;
const SEEN: u64 = 3;
const UNSURE: u64 = 4;
const KIND_BITS: u32 = 3;
const WORDS_AT: u32 = ADDRESS_BITS + KIND_BITS;
/// Longest distance that is stored.
const MOST_WORDS: u64 = u64::MAX >> WORDS_AT;

/// Number of the last generation of the process. It is not reset, because threads keep results of
/// an earlier recording.
static GENERATIONS: AtomicU64 = AtomicU64::new(0);

/// How to find the caller's return address, given a return address.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CallerReturn {
    /// Nothing: frame pointers lead to it.
    Nothing,
    /// Unwind information gives its position.
    Hidden(HiddenReturn),
    /// It is this many bytes away, as a walk of the runtime has shown.
    Seen(usize),
    /// It is hidden at an unknown or varying position.
    Unsure,
}

impl CallerReturn {
    /// The position of the hidden return address, where known.
    #[inline]
    pub fn hidden(self) -> Option<HiddenReturn> {
        match self {
            Self::Hidden(hidden) => Some(hidden),
            Self::Seen(bytes) => Some(HiddenReturn::new(bytes, false)),
            Self::Nothing | Self::Unsure => None,
        }
    }
}

/// A return address behind which the runtime's walk found another one, hidden from frame pointers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct UncertainReturn {
    pub address: usize,
    /// Distance between the two in bytes; `None` if other known code is between them.
    pub bytes: Option<usize>,
    /// Time in monotonic nanoseconds when both were on a stack.
    pub time_ns: u64,
}

/// The table of all known hidden return addresses.
pub struct HiddenReturns {
    places: Box<[AtomicU64]>,
    /// Number of used entries.
    taken: AtomicUsize,
    generation: AtomicU64,
    /// Open questions. Locked while an entry is written.
    doubts: Mutex<Vec<UncertainReturn>>,
}

impl Default for HiddenReturns {
    fn default() -> Self {
        let generation = AtomicU64::new(next_generation());
        Self { places: zeroed_words(PLACES), taken: AtomicUsize::new(0), generation, doubts: Mutex::default() }
    }
}

fn next_generation() -> u64 {
    GENERATIONS.fetch_add(1, Ordering::Relaxed) + 1
}

impl HiddenReturns {
    /// A number that changes whenever the table changes. Read it before the table.
    #[inline]
    pub fn generation(&self) -> u64 {
        self.generation.load(Ordering::Acquire)
    }

    /// What is known about a return address. For an unknown one, the answer is that nothing is
    /// hidden.
    #[inline]
    pub fn behind(&self, address: usize) -> CallerReturn {
        self.entry(address).map_or(CallerReturn::Nothing, told)
    }

    /// Location of the return address that another one hides; `None` if unknown.
    #[inline]
    pub fn hidden_behind(&self, address: usize) -> Option<HiddenReturn> {
        self.behind(address).hidden()
    }

    #[inline]
    fn entry(&self, address: usize) -> Option<u64> {
        let mut entries =
            self.places(address).map(|place| place.load(Ordering::Relaxed)).take_while(|entry| *entry != 0);
        entries.find(|entry| entry & ADDRESS == address as u64)
    }

    #[inline]
    fn places(&self, address: usize) -> impl Iterator<Item = &AtomicU64> {
        let first = address.wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 40;
        (0..STEPS).map_while(move |step| self.places.get(first.wrapping_add(step) & (PLACES - 1)))
    }

    /// Stores what is known about an address. Returns whether there was room.
    pub fn note(&self, address: usize, behind: CallerReturn) -> bool {
        self.write(&self.doubts(), address, behind)
    }

    fn doubts(&self) -> MutexGuard<'_, Vec<UncertainReturn>> {
        self.doubts.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn write(
        &self,
        _one_at_a_time: &MutexGuard<'_, Vec<UncertainReturn>>,
        address: usize,
        behind: CallerReturn,
    ) -> bool {
        let Some(entry) = entry(address, behind) else { return false };
        let is_free = |place: &&AtomicU64| {
            let known = place.load(Ordering::Relaxed);
            known == 0 || known & ADDRESS == address as u64
        };
        let Some(place) = self.places(address).find(is_free) else { return false };
        let before = place.swap(entry, Ordering::Relaxed);
        self.taken.fetch_add(usize::from(before == 0), Ordering::Relaxed);
        if before != entry {
            self.generation.store(next_generation(), Ordering::Release);
        }
        true
    }

    /// Forgets everything, because code was unloaded.
    pub fn forget(&self) {
        let mut doubts = self.doubts();
        doubts.clear();
        // Untouched entries stay untouched.
        let taken = self.places.iter().filter(|place| place.load(Ordering::Relaxed) != 0);
        taken.for_each(|place| place.store(0, Ordering::Relaxed));
        self.taken.store(0, Ordering::Relaxed);
        self.generation.store(next_generation(), Ordering::Release);
    }

    /// Compares two walks of the calling thread's stack: by frame pointers from `frame` on, for at
    /// most `most` return addresses, and the runtime's own walk just before, given as positions and
    /// addresses. Stores which addresses hide others. Returns whether there was room. For
    /// callbacks.
    pub fn compare(
        &self,
        stack: CurrentStack,
        (frame, most): (NativeFrame, usize),
        (walked, time_ns): (&[(usize, usize)], u64),
    ) -> bool {
        let chain: Vec<_> = chain(stack, frame).take(most).collect();
        let mut found = Vec::new();
        self.raise_doubts(stack, (&chain, chain.len() < most), walked, |address, bytes| {
            found.push(UncertainReturn { address, bytes, time_ns });
        });
        if found.is_empty() {
            return true;
        }
        let mut doubts = self.doubts();
        let is_noted = found.iter().all(|doubt| self.write(&doubts, doubt.address, CallerReturn::Unsure));
        doubts.extend(found);
        is_noted
    }

    /// Finds the addresses that hide others without a known position. `chain` has the return
    /// addresses that frame pointers lead to, each with its position.
    fn raise_doubts(
        &self,
        stack: CurrentStack,
        (chain, is_whole): (&[(usize, usize)], bool),
        walked: &[(usize, usize)],
        mut doubt: impl FnMut(usize, Option<usize>),
    ) {
        let (mut chain, mut callee) = (chain.iter().copied().peekable(), None);
        for &(place, method) in walked {
            let between = std::iter::from_fn(|| chain.next_if(|(at, _)| *at < place)).last();
            let is_framed = chain.next_if(|(at, _)| *at == place).is_some();
            // If a block of the method runs, no call from the method itself returns there.
            let is_there = is_framed || stack.word(place) == Some(method);
            let leads = |(at, address): (usize, usize)| {
                self.hidden_behind(address).is_some_and(|hidden| at + 8 + hidden.bytes == place)
            };
            if is_there && !is_framed && ![callee, between].into_iter().flatten().any(leads) {
                if let Some((_, address)) = callee
                    && self.may_hide(address)
                {
                    doubt(address, callee.filter(|_| between.is_none()).map(|(at, _)| place - at - 8));
                }
                if let Some((at, address)) = between
                    && self.may_hide(address)
                {
                    // Code that uses the frame pointer for another purpose hides everything further
                    // out.
                    let is_lost = is_whole && chain.peek().is_none();
                    let is_steady = !is_lost && self.entry(address).is_none();
                    doubt(address, is_steady.then(|| place - at - 8));
                }
            }
            callee = is_there.then_some((place, method));
        }
    }

    /// Whether an address may hide something unknown. If unwind information already says what it
    /// hides, then a block of a method lies between.
    fn may_hide(&self, address: usize) -> bool {
        self.entry(address).is_none_or(|entry| matches!(told(entry), CallerReturn::Seen(_)))
    }

    /// Whether there are open questions, which a later look may answer.
    pub fn has_doubts(&self) -> bool {
        !self.doubts().is_empty()
    }

    /// Answers the open questions, as far as `answer` can. To be called on the thread that looks up
    /// addresses.
    pub(crate) fn settle(&self, mut answer: impl FnMut(UncertainReturn) -> CallerReturn) {
        let waiting = self.doubts().clone();
        for doubt in waiting {
            let behind = answer(doubt);
            let mut doubts = self.doubts();
            // A question that was forgotten in the meantime was about unloaded code.
            if doubts.contains(&doubt) {
                self.write(&doubts, doubt.address, behind);
                doubts.retain(|other| other.address != doubt.address);
            }
        }
    }

    /// Bytes of memory that the table takes.
    pub fn own_bytes(&self) -> u64 {
        let taken = self.taken.load(Ordering::Relaxed).saturating_mul(PAGE);
        taken.min(size_of_val(&*self.places)) as u64
    }
}

/// The stored form of an entry; `None` if the address is not a user-space address.
fn entry(address: usize, behind: CallerReturn) -> Option<u64> {
    let kind = match behind {
        CallerReturn::Nothing => NOTHING,
        CallerReturn::Hidden(HiddenReturn { takes_place: false, .. }) => HIDDEN,
        CallerReturn::Hidden(HiddenReturn { takes_place: true, .. }) => TAKES_PLACE,
        CallerReturn::Seen(_) => SEEN,
        CallerReturn::Unsure => UNSURE,
    };
    let address = Some(address as u64).filter(|address| (1..=ADDRESS).contains(address))?;
    let words = behind.hidden().map_or(0, |hidden| hidden.bytes as u64 / 8);
    let (kind, words) = if words > MOST_WORDS { (UNSURE, 0) } else { (kind, words) };
    Some(address | kind << ADDRESS_BITS | words << WORDS_AT)
}

#[inline]
fn told(entry: u64) -> CallerReturn {
    let bytes = (entry >> WORDS_AT) as usize * 8;
    match entry >> ADDRESS_BITS & ((1 << KIND_BITS) - 1) {
        NOTHING => CallerReturn::Nothing,
        HIDDEN => CallerReturn::Hidden(HiddenReturn::new(bytes, false)),
        TAKES_PLACE => CallerReturn::Hidden(HiddenReturn::new(bytes, true)),
        SEEN => CallerReturn::Seen(bytes),
        _ => CallerReturn::Unsure,
    }
}

/// The return addresses that frame pointers lead to, from `frame` on, each with its position.
fn chain(stack: CurrentStack, frame: NativeFrame) -> impl Iterator<Item = (usize, usize)> {
    let read = move |at: usize| Some((at, stack.word(at)?, stack.word(at.checked_add(8)?)?));
    let next = move |&(at, up, _): &(usize, usize, usize)| if up > at { read(up) } else { None };
    std::iter::successors(read(frame.address()), next).map(|(at, _, address)| (at + 8, address))
}

#[cfg(test)]
mod tests {
    use super::*;

    const BYTES: usize = 24;

    fn hidden_by(bytes: usize) -> CallerReturn {
        CallerReturn::Hidden(HiddenReturn::new(bytes, false))
    }

    #[test]
    fn what_is_known_of_an_address_is_told_until_code_goes() {
        let known = HiddenReturns::default();
        let first = known.generation();
        assert_eq!(known.behind(0xA), CallerReturn::Nothing);
        let took_over = CallerReturn::Hidden(HiddenReturn::new(4096, true));
        let all = [
            (0xA, hidden_by(BYTES)),
            (0x7FFF_FFFF_FFF1, took_over),
            (0xC, CallerReturn::Seen(1024)),
            (0xD, CallerReturn::Unsure),
        ];
        for (address, behind) in all {
            let before = known.generation();
            assert!(known.note(address, behind) && known.generation() != before);
            assert!(known.note(address, behind));
        }
        let after = known.generation();
        assert!(all.iter().all(|&(address, behind)| known.behind(address) == behind && known.note(address, behind)));
        assert_eq!(known.generation(), after, "it was known");
        assert!(!known.note(1 << 47, hidden_by(8)) && !known.note(0, hidden_by(8)), "no address of a program's");
        assert!(known.note(0xE, hidden_by(1 << 30)));
        assert_eq!(known.behind(0xE), CallerReturn::Unsure, "too far");
        known.forget();
        assert!(all.iter().all(|&(address, _)| known.behind(address) == CallerReturn::Nothing));
        let other = HiddenReturns::default();
        assert!(
            ![first, after, known.generation()].contains(&other.generation()),
            "threads keep what they found by others"
        );
        let noted = (1..PLACES).filter(|at| other.note(at * 16, hidden_by(8))).count();
        assert!((PLACES / 2..PLACES).contains(&noted), "{noted}");
    }

    /// A stack as the runtime walks it. Native code without a frame hides the innermost method
    /// behind 8 bytes. That method uses 16 bytes and has no frame. Its caller has a frame.
    fn walked(base: usize, words: &mut [usize; 32]) -> Vec<(usize, usize)> {
        let at = |word: usize| base + 8 * word;
        for (word, up, address) in [(0, at(4), 0xE0), (4, at(20), 0xE1), (20, at(30), 0xC0), (30, 0, 0xD0)] {
            (words[word], words[word + 1]) = (up, address);
        }
        (words[7], words[10], words[15]) = (0xA0, 0xB0, 0xB1);
        vec![(at(7), 0xA0), (at(10), 0xB0), (at(21), 0xC0), (at(31), 0xD0)]
    }

    #[test]
    fn a_walk_raises_doubts_of_what_hides_an_address_until_it_is_known() {
        let mut words = [0_usize; 32];
        let base = std::hint::black_box(&mut words).as_mut_ptr().expose_provenance();
        let walked = walked(base, std::hint::black_box(&mut words));
        let (stack, known) = (CurrentStack::here().expect("bounds are known"), HiddenReturns::default());
        let compare = || known.compare(stack, (NativeFrame::new(base), 32), (&walked, 5));
        assert!(compare());
        let raised = known.doubts().clone();
        let doubt = |address, bytes| UncertainReturn { address, bytes: Some(bytes), time_ns: 5 };
        assert_eq!(raised, [doubt(0xE1, 8), doubt(0xA0, 16)]);
        assert_eq!(
            [0xE0, 0xE1, 0xA0, 0xB0].map(|address| known.behind(address) == CallerReturn::Unsure),
            [false, true, true, false]
        );
        assert!(compare() && known.doubts().len() == 2, "they are raised once");
        known.settle(|doubt| if doubt.address == 0xE1 { CallerReturn::Seen(8) } else { hidden_by(16) });
        assert!(compare() && known.doubts().is_empty());
        assert_eq!((known.behind(0xE1), known.behind(0xA0)), (CallerReturn::Seen(8), hidden_by(16)));
        // A seen address is seen at another position: no distance is known. The position from
        // unwind information stays.
        assert!(known.note(0xE1, CallerReturn::Seen(16)) && known.note(0xA0, hidden_by(24)) && compare());
        assert_eq!(*known.doubts(), [UncertainReturn { address: 0xE1, bytes: None, time_ns: 5 }]);
        // A forgotten question is not stored any more.
        known.settle(|_| {
            known.forget();
            CallerReturn::Seen(8)
        });
        assert_eq!(known.behind(0xE1), CallerReturn::Nothing);
        std::hint::black_box(&words);
    }
}
