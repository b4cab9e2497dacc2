//! Sections read several at a time, on several processors: a large file is mostly checksums and
//! decompression.

use super::index::Section;
use crate::parallel::each;

/// Bytes of content that are read at a time, unless a single section has more.
const MOST: u64 = 32 << 20;
/// Bytes of a file that are much.
const MUCH: u64 = 32 << 20;
/// Fewer bytes are not worth another thread.
const LEAST: u64 = 1 << 20;

/// The first sections, which are read together, and those behind them.
pub(super) fn first(sections: &[Section]) -> (&[Section], &[Section]) {
    sections.split_at(length(sections))
}

/// Number of the first sections that are read together: at least one, of those that are there.
fn length(sections: &[Section]) -> usize {
    let mut all = 0_u64;
    let fits = |section: &&Section| {
        all = all.saturating_add(section.head.plain.max(section.head.stored));
        all <= MOST
    };
    sections.iter().take_while(fits).count().max(1).min(sections.len())
}

/// Whether there is so much that one batch is read while another is put together, which takes a
/// thread more, and memory for two.
pub(super) fn are_many(sections: &[Section]) -> bool {
    stored(sections) >= MUCH
}

fn stored(sections: &[Section]) -> u64 {
    sections.iter().fold(0, |sum, section| sum.saturating_add(section.head.stored))
}

/// The results of `examine` for each section, in their order.
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
