//! Methods that an instrument could not change, as text for the recording.

use std::collections::HashMap;

use clrscope_recording::model::LossReason;
use clrscope_recording::writer::{ProcessWriter, monotonic_ns};

/// Refused methods of a module that are named at most.
const MOST_NAMED: usize = 20;

/// Signatures of methods that could not be changed, each with the reason.
pub(crate) type Refused = Vec<(String, String)>;

/// Notes in the recording how many methods of an assembly could not be changed, and names some of
/// them with the reason.
pub(crate) fn note_refused(writer: &ProcessWriter, loss: LossReason, assembly: &str, refused: &[(String, String)]) {
    if refused.is_empty() {
        return;
    }
    writer.state().lose(loss, refused.len() as u64, monotonic_ns());
    for (signature, why) in reasons_in_turn(refused).into_iter().take(MOST_NAMED) {
        writer.loss_detail(loss, &format!("{assembly}: {signature}: {why}"));
    }
}

/// Orders refused methods so that each reason appears once before any reason appears twice. A
/// module has hundreds of abstract methods, and they must not hide the reason why thousands of
/// others can't be probed.
fn reasons_in_turn(refused: &[(String, String)]) -> Vec<&(String, String)> {
    let mut met: HashMap<&str, u32> = HashMap::new();
    let turn = |one| {
        let (_, why): &(String, String) = one;
        let turn = met.entry(why).or_default();
        *turn += 1;
        (*turn, one)
    };
    let mut ordered: Vec<_> = refused.iter().map(turn).collect();
    ordered.sort_by_key(|(turn, _)| *turn);
    ordered.into_iter().map(|(_, one)| one).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_reason_that_many_methods_have_does_not_hide_the_others() {
        let many = (0..30).map(|number| (format!("Abstract{number}"), "it has no code".to_owned()));
        let refused: Vec<_> = many.chain([("Late".to_owned(), "the recording was over".to_owned())]).collect();
        let named: Vec<&str> = reasons_in_turn(&refused).iter().map(|(signature, _)| signature.as_str()).collect();
        assert_eq!(named[..3], ["Abstract0", "Late", "Abstract1"]);
        assert_eq!(named.len(), refused.len());
    }
}
