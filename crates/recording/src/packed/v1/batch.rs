//! Reads several sections at the same time on several processors: for a large file, checksums and
//! decompression take most of the time.

use super::index::Section;
use crate::parallel::each;

/// Bytes of content that are read at a time, unless a single section is larger.
const MOST: u64 = 32 << 20;
/// Size of a large file in bytes.
const MUCH: u64 = 32 << 20;
/// Fewer bytes are not worth an additional thread.
const LEAST: u64 = 1 << 20;

/// Splits `sections` into the first ones, which are read together, and the remaining ones.
pub(super) fn first(sections: &[Section]) -> (&[Section], &[Section]) {
    sections.split_at(length(sections))
}

/// Number of the first sections that are read together: at least one, if there are any.
fn length(sections: &[Section]) -> usize {
    let mut all = 0_u64;
    let fits = |section: &&Section| {
        all = all.saturating_add(section.head.plain.max(section.head.stored));
        all <= MOST
    };
    sections.iter().take_while(fits).count().max(1).min(sections.len())
}

/// Whether the sections are large enough to read one batch while another is assembled, although
/// this takes one more thread and memory for two batches.
pub(super) fn are_many(sections: &[Section]) -> bool {
    stored(sections) >= MUCH
}

fn stored(sections: &[Section]) -> u64 {
    sections.iter().fold(0, |sum, section| sum.saturating_add(section.head.stored))
}

/// The results of `examine` for all sections, in order.
pub(super) fn examined<T: Send>(sections: &[Section], examine: impl Fn(&Section) -> T + Sync) -> Vec<T> {
    if stored(sections) < LEAST {
        return sections.iter().map(examine).collect();
    }
    each(sections.len(), |at| examine(&sections[at]))
}

#[cfg(test)]
mod tests {
    use super::super::section::Head;
    use super::*;

    fn section(at: u64, bytes: u64) -> Section {
        Section { at, head: Head { stored: bytes, plain: bytes, ..Head::default() } }
    }

    #[test]
    fn results_are_in_the_order_of_the_sections_whoever_found_them() {
        for bytes in [1, LEAST] {
            let sections: Vec<Section> = (0..100).map(|at| section(at, bytes)).collect();
            assert_eq!(examined(&sections, |section| section.at), (0..100).collect::<Vec<_>>());
        }
    }

    #[test]
    fn no_more_is_read_together_than_there_is_room_for() {
        assert_eq!(length(&[]), 0);
        assert_eq!(length(&[section(0, u64::MAX), section(1, u64::MAX)]), 1);
        let half = MOST / 2;
        assert_eq!(length(&[section(0, half), section(1, half), section(2, 1)]), 2);
    }
}
