//! The search table of `.eh_frame_hdr`: start addresses of functions, also in stripped libraries.

/// Encoding of addresses in the only form that linkers generate: four bytes, signed, relative to
/// the start of the section.
const FROM_SECTION_SIGNED_32: u8 = 0x3b;
/// Encoding of the number of entries: four bytes, unsigned.
const UNSIGNED_32: u8 = 0x03;
/// Bytes before the number of entries, if the preceding pointer has four bytes.
const HEAD: usize = 8;

/// Start addresses of all functions in the table. `section` holds the bytes of the section, which
/// begins at `address`. Empty for a table of another form.
pub(super) fn function_starts(section: &[u8], address: u64) -> Vec<u64> {
    let Some(&[1, pointer, count_form, table_form]) = section.first_chunk() else { return Vec::new() };
    let has_four_bytes = matches!(pointer & 0x0F, 0x03 | 0x0B);
    if !has_four_bytes || count_form != UNSIGNED_32 || table_form != FROM_SECTION_SIGNED_32 {
        return Vec::new();
    }
    let Some(count) = word(section, HEAD) else { return Vec::new() };
    let entries = section.get(HEAD + 4..).unwrap_or(&[]).chunks_exact(8).take(count as usize);
    entries.filter_map(|entry| address.checked_add_signed((word(entry, 0)? as i32).into())).collect()
}

fn word(bytes: &[u8], at: usize) -> Option<u32> {
    Some(u32::from_le_bytes(*bytes.get(at..)?.first_chunk()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn entries_are_counted_from_the_section_and_bounded_by_it() {
        let mut section = vec![1, 0x1b, UNSIGNED_32, FROM_SECTION_SIGNED_32, 0, 0, 0, 0];
        section.extend(1_000_u32.to_le_bytes());
        for start in [-0x10_i32, 0x40] {
            section.extend(start.to_le_bytes());
            section.extend([0; 4]);
        }
        assert_eq!(function_starts(&section, 0x1000), [0xFF0, 0x1040]);
        section[3] = 0;
        assert!(function_starts(&section, 0x1000).is_empty());
        assert!(function_starts(&[1, 0x1b], 0).is_empty());
    }
}
