//! Sections read several at a time, on several processors: a large file is mostly checksums and decompression.

use std::num::NonZero;
use std::panic::resume_unwind;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

use super::index::Section;

/// Bytes of content that are in memory at a time, unless a single section has more.
const MOST: u64 = 32 << 20;
/// Fewer bytes are not worth another thread.
const LEAST: u64 = 1 << 20;
/// Threads at most.
const MAX_WORKERS: usize = 4;

/// Number of the first sections that are read together: at least one, of those that are there.
pub(super) fn length(sections: &[Section]) -> usize {
    let mut all = 0_u64;
    let fits = |section: &&Section| {
        all = all.saturating_add(section.head.plain.max(section.head.stored));
        all <= MOST
    };
    sections.iter().take_while(fits).count().max(1).min(sections.len())
}

/// The results of `examine` for each section, in their order.
pub(super) fn examined<T: Send>(sections: &[Section], examine: impl Fn(&Section) -> T + Sync) -> Vec<T> {
    let stored = sections.iter().fold(0_u64, |sum, section| sum.saturating_add(section.head.stored));
    let processors = thread::available_parallelism().map_or(1, NonZero::get);
    let workers = if stored < LEAST { 1 } else { processors.min(MAX_WORKERS).min(sections.len()) };
    if workers < 2 {
        return sections.iter().map(examine).collect();
    }
    let next = AtomicUsize::new(0);
    let work = || {
        let mut done = Vec::new();
        loop {
            let at = next.fetch_add(1, Ordering::Relaxed);
            match sections.get(at) {
                Some(section) => done.push((at, examine(section))),
                None => return done,
            }
        }
    };
    let mut all = thread::scope(|scope| {
        // Where memory for a thread is not to be had, those that are there do all of it.
        let spawn = |_| thread::Builder::new().spawn_scoped(scope, work).ok();
        let others: Vec<_> = (1..workers).filter_map(spawn).collect();
        let mut all = work();
        others.into_iter().for_each(|other| all.extend(other.join().unwrap_or_else(|panic| resume_unwind(panic))));
        all
    });
    all.sort_unstable_by_key(|(at, _)| *at);
    all.into_iter().map(|(_, result)| result).collect()
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
