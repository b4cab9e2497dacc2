//! Finds the sections with the index at the end of the file. If the index is missing, walks from
//! head to head.

use super::section::{HEAD, Head, MARKER, kind};
use super::{START, TRAILER, TRAILER_MAGIC, checksum::checksum};
use crate::layout::u64_at;
use crate::packed::Source;

/// Bytes of an entry of the index: the offset of a section, then its head.
const ENTRY: usize = 8 + HEAD;

/// A section of the file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Section {
    /// Offset of the section's head.
    pub(super) at: u64,
    pub(super) head: Head,
}

impl Section {
    /// Offset of the stored data.
    pub(super) fn body(&self) -> u64 {
        self.at + HEAD as u64
    }
}

/// The sections of a file, and problems with them.
pub(super) struct SectionIndex {
    /// The sections in file order; they do not overlap, and all lie within the file.
    pub(super) sections: Vec<Section>,
    /// Sentences for the user.
    pub(super) problems: Vec<String>,
}

/// Finds all sections.
pub(super) fn find(source: &Source) -> SectionIndex {
    match by_index(source) {
        Some(sections) => SectionIndex { sections, problems: Vec::new() },
        None => scan(source),
    }
}

fn by_index(source: &Source) -> Option<Vec<Section>> {
    let end = source.len().checked_sub(TRAILER)?;
    let mut buffer = Vec::new();
    source.read(end, TRAILER, &mut buffer).ok()?;
    if buffer[24..] != TRAILER_MAGIC || u64_at(&buffer, 16) != checksum(&buffer[..16]) {
        return None;
    }
    let (at, length) = (u64_at(&buffer, 0), u64_at(&buffer, 8));
    if at.checked_add(length)? != end {
        return None;
    }
    source.read(at, length, &mut buffer).ok()?;
    let head = Head::decode(&buffer).filter(|head| head.kind == kind::INDEX && head.reach() == Some(length))?;
    let stored = buffer.get(HEAD..HEAD + usize::try_from(head.stored).ok()?)?;
    let content = head.vouches_for(stored).then(|| head.unpack(stored).ok())??;
    entries(&content, at)
}

/// The entries of an index. They must be in file order and end before `end`.
fn entries(content: &[u8], end: u64) -> Option<Vec<Section>> {
    let mut sections = Vec::with_capacity(content.len() / ENTRY);
    let mut free = START;
    for entry in content.chunks_exact(ENTRY) {
        let section = Section { at: u64_at(entry, 0), head: Head::decode(&entry[8..])? };
        if section.at < free {
            return None;
        }
        free = section.at.checked_add(section.head.reach()?).filter(|&next| next <= end)?;
        sections.push(section);
    }
    Some(sections)
}

/// Walks from head to head; from a damaged head it goes on to the next undamaged one.
fn scan(source: &Source) -> SectionIndex {
    let mut found = SectionIndex { sections: Vec::new(), problems: Vec::new() };
    let mut at = START;
    let mut buffer = Vec::new();
    let mut complete = false;
    while at < source.len() && !complete {
        let head = source.read(at, HEAD as u64, &mut buffer).ok().and_then(|()| Head::decode(&buffer));
        let Some(head) = head else {
            let next = next_head(source, at);
            // A truncated file is reported below; this reports a gap.
            if let Some(next) = next {
                found.problems.push(format!("bytes {at} to {next} are damaged and were passed over"));
            }
            at = next.unwrap_or(source.len());
            continue;
        };
        let reach = head.reach().and_then(|reach| at.checked_add(reach)).filter(|&end| end <= source.len());
        let Some(next) = reach else {
            found.problems.push(format!("the section at byte {at} is cut off"));
            break;
        };
        complete = head.kind == kind::INDEX;
        if !complete {
            found.sections.push(Section { at, head });
        }
        at = next;
    }
    // The trailer follows the index.
    let behind = source.len().saturating_sub(at.saturating_add(TRAILER));
    found.problems.push(if complete && behind > 0 {
        format!("{behind} bytes behind its end were not read: is it several files in one?")
    } else if complete {
        "its end is damaged; the index was not used".to_owned()
    } else {
        format!("it was cut after {} bytes or its end is damaged; everything before is here", source.len())
    });
    found
}

/// The next undamaged head after `from`. Heads are at multiples of eight.
fn next_head(source: &Source, from: u64) -> Option<u64> {
    const MOST: u64 = 64 << 10;
    // Start small: many small gaps must not cost a large read each.
    let mut window = 1 << 10;
    let mut buffer = Vec::new();
    let mut at = from + 8;
    while at + HEAD as u64 <= source.len() {
        // Windows overlap by a head, so that no head is missed at a border.
        let length = (window + HEAD as u64).min(source.len() - at);
        source.read(at, length, &mut buffer).ok()?;
        let hit = (0..buffer.len().min(window as usize))
            .step_by(8)
            .find(|&offset| buffer[offset..].starts_with(&MARKER) && Head::decode(&buffer[offset..]).is_some());
        if let Some(offset) = hit {
            return Some(at + offset as u64);
        }
        at += window;
        window = (window * 2).min(MOST);
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    fn index(sections: &[(u64, u64)]) -> Vec<u8> {
        let mut content = Vec::new();
        for &(at, stored) in sections {
            content.extend_from_slice(&at.to_le_bytes());
            content.extend_from_slice(&Head { kind: kind::TREE, stored, plain: stored, ..Head::default() }.encode());
        }
        content
    }

    #[test]
    fn an_index_whose_sections_overlap_or_lie_outside_is_not_used() {
        assert_eq!(entries(&index(&[(16, 8), (80, 8)]), 144).map(|found| found.len()), Some(2));
        for (bad, end) in [
            (vec![(16, 8), (16, 8)], 1_000),
            (vec![(16, 9), (80, 8)], 1_000),
            (vec![(80, 8), (16, 8)], 1_000),
            (vec![(8, 8)], 1_000),
            (vec![(16, 8)], 79),
            (vec![(u64::MAX, 8)], 1_000),
            (vec![(16, u64::MAX)], 1_000),
        ] {
            assert_eq!(entries(&index(&bad), end), None, "{bad:?}");
        }
    }
}
