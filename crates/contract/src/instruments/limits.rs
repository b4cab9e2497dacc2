//! Checks for profilers with limited rights: a profiler attached to a running program, and a
//! notification-only profiler while another profiler has the main slot.

use super::spec::{Limit, LimitedPart};
use super::{ALL, CheckedInstrument, Refusal, Spec, heap};
use crate::request::Request;

/// Checks that clrscope can attach to a running program with these instruments.
///
/// # Errors
/// A refusal for the first instrument that the runtime allows only at its start; the hint says how
/// to start the program instead.
pub fn check_for_attach(instruments: &[CheckedInstrument]) -> Result<(), Refusal> {
    first_refused(
        instruments,
        |spec| spec.attach,
        |checked| format!("start the program instead: clrscope run -i {checked} -- PROGRAM"),
    )
}

/// Checks that the instruments of a request work in a notification-only profiler, while another
/// profiler has the main slot. `attached`: whether the profiler is attached, so that the program
/// continues after the recording.
///
/// # Errors
/// A refusal for the first instrument that needs the main slot; the hint names instruments that
/// don't. Also a refusal if `heap` requests a snapshot at the end of the program; the hint names
/// other moments.
pub fn check_for_notification_only(
    request: &Request,
    instruments: &[CheckedInstrument],
    attached: bool,
) -> Result<(), Refusal> {
    first_refused(
        instruments,
        |spec| spec.notification_only,
        |_| {
            let names: Vec<_> = of_notification_only().map(|spec| spec.name).collect();
            format!("start the program without the other profiler, or record with some of these: {}", names.join(", "))
        },
    )?;
    let ends_with_program = !attached && request.duration_ms.is_none();
    let is_late = |one: &CheckedInstrument| one.spec().name == heap::SPEC.name && heap::AT_PROGRAM_END.is_in(one);
    match ends_with_program && instruments.iter().any(is_late) {
        true => Err(Refusal {
            why: heap::AT_PROGRAM_END.why.to_owned(),
            hint: "take it earlier: heap:at=10s, heap:at=2GiB, or heap:at=command and 'clrscope heap PID'".to_owned(),
        }),
        false => Ok(()),
    }
}

/// The instruments that work, with most of their options, while another profiler has the main slot.
pub fn of_notification_only() -> impl Iterator<Item = &'static Spec> {
    ALL.iter().copied().filter(|spec| matches!(spec.notification_only, Limit::Without(_)))
}

fn first_refused(
    instruments: &[CheckedInstrument],
    limit: impl Fn(&Spec) -> Limit,
    hint: impl Fn(&CheckedInstrument) -> String,
) -> Result<(), Refusal> {
    let refused = instruments.iter().find_map(|one| Some((one, refused_part(one, limit(one.spec()))?)));
    refused.map_or(Ok(()), |(checked, why)| Err(Refusal { why: why.to_owned(), hint: hint(checked) }))
}

/// Reason why an instrument, with its options, is not possible under a limit.
fn refused_part(checked: &CheckedInstrument, limit: Limit) -> Option<&'static str> {
    match limit {
        Limit::Never(why) => Some(why),
        Limit::Without(parts) => parts.iter().find(|part| part.is_in(checked)).map(|part| part.why),
    }
}

impl LimitedPart {
    fn is_in(&self, checked: &CheckedInstrument) -> bool {
        match self.word {
            Some(word) => checked.has(self.option, word),
            None => checked.is_on(self.option),
        }
    }
}
