//! The check of what is to be attached to a program that runs: the runtime allows less there than at its start.

use super::spec::{Attach, StartOnly};
use super::{CheckedInstrument, Refusal};

/// Checks that a running program can be attached to for these instruments.
///
/// # Errors
/// For the first that the runtime allows at its start only; the hint says how to start the program
/// instead.
pub fn check_for_attach(instruments: &[CheckedInstrument]) -> Result<(), Refusal> {
    match instruments.iter().find_map(|checked| start_only(checked).map(|why| (checked, why))) {
        None => Ok(()),
        Some((checked, why)) => Err(Refusal {
            why: why.to_owned(),
            hint: format!("start the program instead: clrscope run -i {checked} -- PROGRAM"),
        }),
    }
}

/// Reason why an instrument, with its options, can't be attached.
fn start_only(checked: &CheckedInstrument) -> Option<&'static str> {
    match checked.spec().attach {
        Attach::Never(why) => Some(why),
        Attach::Without(parts) => parts.iter().find(|part| part.is_in(checked)).map(|part| part.why),
    }
}

impl StartOnly {
    fn is_in(&self, checked: &CheckedInstrument) -> bool {
        match self.word {
            Some(word) => checked.has(self.option, word),
            None => checked.is_on(self.option),
        }
    }
}
