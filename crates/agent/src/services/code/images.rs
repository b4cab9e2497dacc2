//! Images of assemblies with code that was compiled at build time, where the runtime has laid them out itself.
//!
//! The framework's images are mapped from their files, and the system's list of mappings names them. Others, an application's own as
//! a rule, have sections that no page begins with: the runtime copies these into memory without a file, where they look like
//! code that was compiled a moment ago.

use std::collections::HashMap;
use std::ops::Range;

use clr_profiler::{ModuleId, ProfilerInfo};

use crate::os::memory::copy_if_there;

/// Bytes of an image's beginning that hold its headers.
const HEADERS: usize = 1024;
/// Number of the table that leads to the header of managed code.
const MANAGED: usize = 14;

/// The images that were met.
#[derive(Default)]
pub(super) struct Images {
    /// Addresses of each module's image, if it has such code.
    known: HashMap<ModuleId, Option<Range<usize>>>,
}

impl Images {
    /// Whether an address lies in an image with precompiled code.
    pub(super) fn hold(&mut self, info: &ProfilerInfo, address: usize) -> bool {
        let holds = |image: &Option<Range<usize>>| image.as_ref().is_some_and(|image| image.contains(&address));
        if self.known.values().any(holds) {
            return true;
        }
        // Modules that were loaded since.
        for module in info.modules().unwrap_or_default() {
            self.known.entry(module).or_insert_with(|| image_at(info.module_info(module).ok()?.base_address));
        }
        self.known.values().any(holds)
    }

    /// A module is gone, and its identifier and addresses may be used again.
    pub(super) fn forget(&mut self) {
        self.known.clear();
    }
}

/// Addresses of the image that begins at `base`; `None` for one without precompiled code, and for one that lies in memory as in its file.
fn image_at(base: usize) -> Option<Range<usize>> {
    /// Beginning of the header of precompiled code.
    const SIGNATURE: [u8; 4] = *b"RTR\0";
    if base == 0 {
        return None;
    }
    let mut headers = [0; HEADERS];
    if !copy_if_there(base, &mut headers) || !headers.starts_with(b"MZ") {
        return None;
    }
    let number = |at: usize| Some(u32::from_le_bytes(*headers.get(at..)?.first_chunk()?) as usize);
    let signature = number(0x3C)?;
    let optional = signature + 24;
    // The tables begin later where addresses have 64 bits.
    let tables = optional + if number(optional)? & 0xFFFF == 0x20B { 112 } else { 96 };
    let (bytes, managed) = (number(optional + 56)?, number(tables + 8 * MANAGED)?);
    let inside = |at: usize, into: &mut [u8]| at != 0 && at + into.len() <= bytes && copy_if_there(base + at, into);
    let mut header = [0; 72];
    if !inside(managed, &mut header) {
        return None;
    }
    let native = u32::from_le_bytes(*header[64..].first_chunk()?) as usize;
    let mut found = [0; 4];
    (inside(native, &mut found) && found == SIGNATURE).then(|| base..base + bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// An image of 64-bit code with its headers, as it is laid out in memory.
    fn image() -> Vec<u8> {
        let mut image = vec![0; 0x3000];
        let mut put = |at: usize, bytes: &[u8]| image[at..at + bytes.len()].copy_from_slice(bytes);
        let word = |number: u32| number.to_le_bytes();
        put(0, b"MZ");
        put(0x3C, &word(0x80));
        put(0x80 + 24, &0x20B_u16.to_le_bytes());
        put(0x80 + 24 + 56, &word(0x3000));
        put(0x80 + 24 + 112 + 8 * 14, &word(0x1000));
        put(0x1000 + 64, &word(0x2000));
        put(0x2000, b"RTR\0");
        image
    }

    #[test]
    fn an_image_with_precompiled_code_is_known_by_its_headers_wherever_it_lies() {
        let image = image();
        let base = image.as_ptr().expose_provenance();
        assert_eq!(image_at(base), Some(base..base + 0x3000));
        assert_eq!((image_at(0), image_at(0x1000)), (None, None), "nothing is there");
    }

    #[test]
    fn an_image_that_is_cut_or_has_no_such_code_is_none() {
        for (at, byte) in [(0, 0), (0x2000, b'X'), (0x1041, 0xFF), (0x80 + 24 + 112 + 8 * 14 + 1, 0), (0x3E, 0xFF)] {
            let mut image = image();
            image[at] = byte;
            assert_eq!(image_at(image.as_ptr().expose_provenance()), None, "byte {at:#x}");
        }
    }
}
