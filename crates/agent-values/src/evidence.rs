//! Evidence for a plan: the locations in it that have proved right.
//!
//! A plan follows from rules. It is trusted only where facts from the runtime confirm it. At first,
//! references at a location are followed only by reads that may fail. This changes once an object
//! there was seen to begin with a class that the runtime has reported. If there can't be an object
//! at all, the whole plan is wrong, and is not used any more.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use super::kinds::Kind;
use super::memory::{At, MemoryReader, can_copy};
use super::types::table::{class_of, is_told, number_of};

/// Number of calls whose values were not read because their plan is not trusted.
static UNREAD: AtomicU64 = AtomicU64::new(0);

/// Number of calls since the last query whose values were not read.
pub fn unread() -> u64 {
    UNREAD.swap(0, Ordering::Relaxed)
}

/// What is known about whether a plan's locations are right.
#[derive(Debug, Default)]
pub struct Evidence {
    /// A bit for each of the first arguments; the highest bit is for the result.
    places: AtomicU64,
    refuted: AtomicBool,
}

/// Number of the bit for the result's location.
pub const RESULT: usize = 63;

impl Evidence {
    /// Whether objects were seen at the location with this number: an argument, or [`RESULT`].
    /// Later arguments have no bit.
    pub(crate) fn holds(&self, place: usize) -> bool {
        place <= RESULT && self.places.load(Ordering::Relaxed) >> place & 1 == 1
    }

    /// Notes that an object was seen at this location.
    pub(crate) fn found(&self, place: usize) {
        if place <= RESULT {
            self.places.fetch_or(1 << place, Ordering::Relaxed);
        }
    }

    /// Marks the plan as wrong: there was no object where one must be.
    pub(crate) fn refute(&self) {
        self.refuted.store(true, Ordering::Relaxed);
    }

    /// Whether the plan is wrong.
    pub(crate) fn is_refuted(&self) -> bool {
        self.refuted.load(Ordering::Relaxed)
    }

    /// Counts a call whose values are not read. See [`unread`].
    pub(crate) fn leave_unread(&self) {
        UNREAD.fetch_add(1, Ordering::Relaxed);
    }
}

/// What a value's contents say about its location.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Verdict {
    /// The value has the class that the plan expects.
    Right,
    /// The value proves nothing: it is a number or null.
    Open,
    /// The value can't have the class that the plan expects.
    Wrong,
}

/// Deepest nesting of value types that is inspected.
const NESTED: u32 = 4;

/// Inspects a value: whether the references in it lead to objects of classes that the runtime has
/// reported.
pub(super) fn judge(memory: &mut MemoryReader, kind: Kind, at: At) -> Verdict {
    judge_nested(memory, kind, at, NESTED)
}

fn judge_nested(memory: &mut MemoryReader, kind: Kind, at: At, nested: u32) -> Verdict {
    match kind {
        Kind::String | Kind::Reference(_) => judge_reference(memory, at),
        Kind::Struct(class) if nested > 0 => {
            let fields = class.shape().fields.iter().filter(|field| !field.is_hidden());
            let verdicts = fields.map(|f| judge_nested(memory, f.kind, at.behind(f.offset as usize), nested - 1));
            verdicts.fold(Verdict::Open, |all, one| match (all, one) {
                (Verdict::Wrong, _) | (_, Verdict::Wrong) => Verdict::Wrong,
                (Verdict::Right, _) | (_, Verdict::Right) => Verdict::Right,
                _ => Verdict::Open,
            })
        }
        _ => Verdict::Open,
    }
}

fn judge_reference(memory: &mut MemoryReader, at: At) -> Verdict {
    let object = match memory.word(at) {
        Some(0) => return Verdict::Open,
        Some(object) if object % 8 == 0 => object,
        _ => return Verdict::Wrong,
    };
    let Some(id) = memory.word(At::unknown(object)) else {
        return if can_copy() { Verdict::Wrong } else { Verdict::Open };
    };
    if class_of(id).is_some() {
        return Verdict::Right;
    }
    if is_told(id) {
        number_of(id);
        return Verdict::Right;
    }
    // The runtime may be about to report it. But a class is an aligned structure in memory.
    if id % 8 == 0 && (memory.word(At::unknown(id)).is_some() || !can_copy()) { Verdict::Open } else { Verdict::Wrong }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_place_is_proved_by_itself() {
        let evidence = Evidence::default();
        evidence.found(0);
        evidence.found(RESULT);
        evidence.found(200);
        assert!(
            evidence.holds(0)
                && evidence.holds(RESULT)
                && !evidence.holds(1)
                && !evidence.holds(64)
                && !evidence.holds(200)
        );
        assert!(!evidence.is_refuted());
        evidence.refute();
        assert!(evidence.is_refuted());
    }
}
