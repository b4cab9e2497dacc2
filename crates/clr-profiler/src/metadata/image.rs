//! Opens metadata directly on a module's image, independently of the runtime's metadata.
//!
//! `GetModuleMetaData` has a lasting cost. The interface that it returns understands only the
//! format for metadata that can grow. So the runtime converts the module's metadata to this format,
//! even for reading, and resolves every token more slowly from then on. In the C# compiler this
//! added about 0.08 times the program's time to the runtime's own code (.NET 10, by samples of
//! addresses). The runtime's library exports `MetaDataGetDispenser`, which opens the same bytes a
//! second time and leaves the runtime's metadata unchanged.

use std::ffi::c_void;
use std::sync::OnceLock;

use clr_profiler_sys::cor::ofRead;
use clr_profiler_sys::info::ICorProfilerInfo3;
use clr_profiler_sys::metadata::{IMetaDataDispenserEx, IMetaDataImport2};
use windows_core::{GUID, HRESULT, Interface};

use crate::os::is_mapped;

/// The class that `MetaDataGetDispenser` takes. Source: cor.h.
const DISPENSER: GUID = GUID::from_u128(0xe5cb7a31_7512_11d2_89ce_0080c792e5d8);
/// The option that makes opened metadata take locks. Source: cor.h, `MetaDataThreadSafetyOptions`.
const THREAD_SAFETY: GUID = GUID::from_u128(0xf7559806_f266_42ea_8c63_0adb45e8b234);

/// A `VARIANT` with a `u32`. Source: oaidl.h.
#[repr(C)]
struct Variant {
    kind: u16,
    reserved: [u16; 3],
    value: u32,
    rest: [u32; 3],
}

/// `VT_UI4` with `MDThreadSafetyOn`.
static SAFE: Variant = Variant { kind: 19, reserved: [0; 3], value: 1, rest: [0; 3] };

struct Dispenser(IMetaDataDispenserEx);

// SAFETY: its options are set before it is shared, and opening only reads them.
unsafe impl Send for Dispenser {}
// SAFETY: as above.
unsafe impl Sync for Dispenser {}

/// Opens the metadata in the image of a module at `base`; `None` if the image has no readable
/// metadata, or if the runtime can't open it. `is_flat`: the image in memory has the layout of the
/// file, not the layout of loaded sections.
pub(crate) fn open(runtime: &ICorProfilerInfo3, base: usize, is_flat: bool) -> Option<IMetaDataImport2> {
    static DISPENSERS: OnceLock<Option<Dispenser>> = OnceLock::new();
    let (start, bytes) = find(base, is_flat)?;
    let dispenser = DISPENSERS.get_or_init(|| dispenser(runtime)).as_ref()?;
    let mut found = std::ptr::null_mut();
    let data = std::ptr::with_exposed_provenance(start);
    // SAFETY: the metadata of a loaded image, which stays as long as the module; a valid
    // out-parameter.
    let answer = unsafe { dispenser.0.OpenScopeOnMemory(data, bytes, ofRead, &IMetaDataImport2::IID, &mut found) };
    if answer.is_err() || found.is_null() {
        return None;
    }
    // SAFETY: an owned reference of the interface asked for.
    Some(unsafe { IMetaDataImport2::from_raw(found) })
}

/// The dispenser of the library that `runtime` is part of.
fn dispenser(runtime: &ICorProfilerInfo3) -> Option<Dispenser> {
    type Get = unsafe extern "system" fn(*const GUID, *const GUID, *mut *mut c_void) -> HRESULT;
    // SAFETY: an interface is a pointer to a table of functions, and `dladdr` fills its
    // out-parameter. The library is loaded already (RTLD_NOLOAD), and stays loaded, as the handle
    // is not closed.
    let found = unsafe {
        let function = **runtime.as_raw().cast::<*const *const c_void>();
        let mut about: libc::Dl_info = std::mem::zeroed();
        if libc::dladdr(function, &mut about) == 0 || about.dli_fname.is_null() {
            return None;
        }
        let library = libc::dlopen(about.dli_fname, libc::RTLD_NOLOAD | libc::RTLD_LAZY);
        if library.is_null() {
            return None;
        }
        libc::dlsym(library, c"MetaDataGetDispenser".as_ptr())
    };
    if found.is_null() {
        return None;
    }
    // SAFETY: the function of that name; source: metahost.h.
    let get: Get = unsafe { std::mem::transmute(found) };
    let mut made = std::ptr::null_mut();
    // SAFETY: a valid out-parameter.
    let answer = unsafe { get(&DISPENSER, &IMetaDataDispenserEx::IID, &mut made) };
    if answer.is_err() || made.is_null() {
        return None;
    }
    // SAFETY: an owned reference of the interface asked for.
    let dispenser = unsafe { IMetaDataDispenserEx::from_raw(made) };
    // SAFETY: a VARIANT that lives during the call.
    let is_safe = unsafe { dispenser.SetOption(&THREAD_SAFETY, (&raw const SAFE).cast()) }.is_ok();
    is_safe.then_some(Dispenser(dispenser))
}

/// Address and length of the metadata of the image at `base`. `is_flat`: the image has the layout
/// of the file, not the layout of loaded sections. Source of the offsets: ECMA-335, II.25.
fn find(base: usize, is_flat: bool) -> Option<(usize, u32)> {
    let image = Image { base, is_flat };
    let (sections, directories) = image.headers()?;
    let cli = image.file_offset(&sections, image.word(directories + 14 * 8)?)?;
    let (metadata, bytes) = (image.word(cli + 8)?, image.word(cli + 12)?);
    let at = image.file_offset(&sections, metadata)?;
    let last = at.checked_add(bytes as usize)?.checked_sub(4)?;
    (image.word(at)? == 0x424a_5342 && image.word(last).is_some()).then_some((base + at, bytes))
}

/// Body of the method whose IL is loaded at `address`, in the image at `base`. `is_flat` as for
/// [`find`].
pub(crate) fn il_body(base: usize, is_flat: bool, address: u32) -> Option<Vec<u8>> {
    let image = Image { base, is_flat };
    let (sections, _) = image.headers()?;
    let start = image.file_offset(&sections, address)?;
    // The last byte of a body may be the last byte of the image, where no whole word can be read.
    let byte = |at: usize| {
        let (words, within) = (start.checked_add(at)? & !3, start.checked_add(at)? & 3);
        image.word(words).map(|word| word.to_le_bytes()[within])
    };
    let bytes = clr_il::length_by(byte).ok()?;
    (0..bytes).map(byte).collect()
}

/// An image in memory; offsets count from its start.
struct Image {
    base: usize,
    is_flat: bool,
}

struct Sections {
    first: usize,
    count: usize,
}

impl Image {
    /// The word at an offset, if memory is mapped there.
    fn word(&self, at: usize) -> Option<u32> {
        let address = self.base.checked_add(at)?;
        // SAFETY: mapped, and images can be read.
        is_mapped(address).then(|| unsafe { std::ptr::with_exposed_provenance::<u32>(address).read_unaligned() })
    }

    /// The sections, and the offset of the data directories.
    fn headers(&self) -> Option<(Sections, usize)> {
        if self.base == 0 || self.word(0)? as u16 != 0x5a4d {
            return None;
        }
        let header = self.word(0x3c)? as usize;
        if self.word(header)? != 0x4550 {
            return None;
        }
        let optional = header + 24;
        let directories = match self.word(optional)? as u16 {
            0x10b => optional + 96,
            0x20b => optional + 112,
            _ => return None,
        };
        let sections = Sections {
            first: optional + (self.word(header + 20)? & 0xffff) as usize,
            count: (self.word(header + 4)? >> 16) as usize,
        };
        Some((sections, directories))
    }

    /// Converts an address of the loaded layout into an offset in the file.
    fn file_offset(&self, sections: &Sections, address: u32) -> Option<usize> {
        if address == 0 {
            return None;
        }
        if !self.is_flat {
            return Some(address as usize);
        }
        (0..sections.count).find_map(|number| {
            let section = sections.first + number * 40;
            let (start, bytes, in_file) =
                (self.word(section + 12)?, self.word(section + 16)?, self.word(section + 20)?);
            let within = address.checked_sub(start).filter(|within| *within < bytes)?;
            Some((in_file + within) as usize)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_no_image_has_no_metadata() {
        assert_eq!(find(0, true), None);
        let nothing = vec![0_u8; 8192];
        assert_eq!(find(nothing.as_ptr().expose_provenance(), false), None);
        let mut lies = nothing;
        lies[..2].copy_from_slice(b"MZ");
        lies[0x3c..0x40].copy_from_slice(&u32::MAX.to_le_bytes());
        assert_eq!(find(lies.as_ptr().expose_provenance(), true), None);
    }
}
