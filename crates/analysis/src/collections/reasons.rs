//! Reasons of collections as text.

/// The reasons by the runtime's numbers.
const REASONS: [&str; 18] = [
    "allocation of small objects",
    "induced",
    "low memory",
    "empty",
    "allocation of large objects",
    "out of space for small objects",
    "out of space for large objects",
    "induced, not forced",
    "stress",
    "low memory, blocking",
    "induced, compacting",
    "low memory of the host",
    "full collection of the provisional mode",
    "low memory of the host, blocking",
    "tuning of background collections, small objects",
    "tuning of background collections, large objects",
    "step of background collections",
    "induced, aggressive",
];

/// Reason of a collection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reason {
    /// The reason as the runtime's number.
    Known(u32),
    /// Only whether the program induced the collection, which is all that callbacks report.
    Induced(bool),
}

impl Reason {
    /// The reason as text.
    #[must_use]
    pub fn words(self) -> &'static str {
        match self {
            Self::Known(number) => REASONS.get(number as usize).copied().unwrap_or("other"),
            Self::Induced(true) => "induced",
            Self::Induced(false) => "not induced",
        }
    }

    /// Whether the program induced the collection, by `GC.Collect` or a similar call.
    #[must_use]
    pub fn is_induced(self) -> bool {
        self.words().starts_with("induced")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reasons_have_words_and_those_of_the_program_are_induced() {
        assert_eq!(Reason::Known(0).words(), "allocation of small objects");
        assert_eq!(Reason::Known(99).words(), "other");
        let induced: Vec<u32> = (0..20).filter(|number| Reason::Known(*number).is_induced()).collect();
        assert_eq!(induced, [1, 7, 10, 17]);
        assert!(Reason::Induced(true).is_induced() && !Reason::Induced(false).is_induced());
    }
}
