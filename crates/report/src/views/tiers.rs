//! The JIT tier of code in rows of samples.

use clrscope_analysis::Tiers;
use clrscope_recording::model::Tier;
use serde_json::json;

use crate::cell::Cell;

/// A row is shown with one tier if at least this share of its samples has the tier.
const NEARLY_ALL: f64 = 0.95;

/// The number of a row's samples in each tier; people see the most frequent tier.
pub(super) fn cell(tiers: &Tiers) -> Cell<'static> {
    let Some((most, part)) = tiers.most() else { return Cell::Absent };
    let said = match part {
        _ if most == Tier::Unknown => String::new(),
        NEARLY_ALL.. => in_words(most).to_owned(),
        _ => format!("{:.0} % {}", part * 100.0, in_words(most)),
    };
    let each = tiers.seen().map(
        |(tier, samples)| json!({ "tier": tier.name(), "self_samples": samples.own, "total_samples": samples.total }),
    );
    Cell::Nested(each.collect()).said(said)
}

/// Usual name of a tier.
fn in_words(tier: Tier) -> &'static str {
    match tier {
        Tier::Tier0 => "tier 0",
        Tier::Tier1 => "tier 1",
        Tier::Osr => "OSR",
        Tier::Precompiled => "ReadyToRun",
        Tier::Optimized => "optimized",
        Tier::InstrumentedTier0 => "tier 0 instr",
        Tier::InstrumentedTier1 => "tier 1 instr",
        Tier::Inlined => "inlined",
        Tier::Awaiting => "awaiting",
        _ => "unknown",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_tier_has_words_of_its_own() {
        let mut words: Vec<&str> = Tier::ALL.iter().map(|&tier| in_words(tier)).collect();
        words.sort_unstable();
        words.dedup();
        assert_eq!(words.len(), Tier::ALL.len(), "{words:?}");
    }
}
