//! Reads a module's metadata: its types, methods, fields and signatures, as the compiler wrote
//! them.
//!
//! ```
//! use clr_profiler::metadata::signature;
//! use clr_profiler::{FunctionId, ProfilerInfo, Result};
//!
//! /// Name and number of parameters of a function.
//! fn in_a_callback(info: &ProfilerInfo, function: FunctionId) -> Result<(String, usize)> {
//!     let place = info.function_info(function)?;
//!     let metadata = info.module_metadata(place.module)?;
//!     let method = metadata.method(place.token)?;
//!     let parameters = signature::method(&method.signature).map_or(0, |signature| signature.parameters.len());
//!     Ok((method.name, parameters))
//! }
//! ```

mod enumerate;
pub(crate) mod image;
mod members;
mod types;

pub mod signature;
mod type_bytes;

use std::ffi::CStr;
use std::ops::Deref;
use std::sync::Arc;

use clr_profiler_sys::metadata::{IMetaDataAssemblyImport, IMetaDataImport2};
use clr_profiler_sys::structs::ASSEMBLYMETADATA;
use windows_core::{HRESULT, Interface};

use crate::error::check;
use crate::gate::Inside;
use crate::unloads::ModuleLife;
use crate::{Error, HResult, Result, Token};

pub use members::{FieldDef, MemberRef, MethodAttributes, MethodDef, MethodSpec, ParamDef, PinvokeMap};
pub use types::{GenericParam, TypeDef, TypeRef};

/// A module's metadata, for reading.
///
/// Names are returned as Rust strings, signatures as bytes (see [`signature`]); all of them are
/// copies. Safe to use from several threads, and safe to keep: once the runtime begins to unload
/// the module, every method returns an error. Callable in the same places as
/// [`ProfilerInfo::module_metadata`](crate::ProfilerInfo::module_metadata).
#[derive(Clone)]
pub struct MetadataImport {
    interface: Arc<Shared>,
}

struct Shared {
    metadata: IMetaDataImport2,
    is_live: bool,
    /// The life of the module if it can be unloaded.
    life: Option<ModuleLife>,
}

/// A running call of the interface; the module stays loaded as long as this value lives.
struct Reading<'m> {
    metadata: &'m IMetaDataImport2,
    _inside: Option<Inside<'m>>,
}

impl Deref for Reading<'_> {
    type Target = IMetaDataImport2;

    fn deref(&self) -> &IMetaDataImport2 {
        self.metadata
    }
}

// SAFETY: the runtime's metadata interfaces are free-threaded; they take their own lock where the
// metadata can change.
unsafe impl Send for Shared {}
// SAFETY: as above.
unsafe impl Sync for Shared {}

impl MetadataImport {
    /// `life` is the life of the module; it must be given if the module can be unloaded.
    pub(crate) fn new(metadata: IMetaDataImport2, is_live: bool, life: Option<ModuleLife>) -> Self {
        Self { interface: Arc::new(Shared { metadata, is_live, life }) }
    }

    /// Whether this is the metadata that the runtime itself uses, which may grow; otherwise it was
    /// read from the module's image a second time.
    #[must_use]
    pub fn is_live(&self) -> bool {
        self.interface.is_live
    }

    /// Whether there is a record with this token; false once the module is unloaded.
    #[must_use]
    pub fn contains(&self, token: Token) -> bool {
        // SAFETY: the method accepts any number.
        self.read("IsValidToken").is_ok_and(|metadata| unsafe { metadata.IsValidToken(token.0) }.0 != 0)
    }

    /// Begins a call of `method`.
    ///
    /// # Errors
    /// A refusal with a reason once the module is unloaded.
    fn read(&self, method: &'static str) -> Result<Reading<'_>> {
        let Shared { metadata, life, .. } = &*self.interface;
        Ok(Reading { metadata, _inside: life.as_ref().map(|life| life.enter(method)).transpose()? })
    }

    /// The version of the assembly whose manifest this is: `8.0.0.0`.
    ///
    /// # Errors
    /// The runtime's error; a module without a manifest has no version.
    pub fn assembly_version(&self) -> Result<String> {
        let method = "GetAssemblyProps";
        let metadata = self.read(method)?;
        let assembly: IMetaDataAssemblyImport =
            metadata.cast().map_err(|error| Error::new(HResult(error.code().0), method))?;
        let mut token = 0;
        let none = std::ptr::null_mut();
        // SAFETY: a zeroed structure asks for no culture and no processors, so nothing is written
        // through its pointers.
        let mut found: ASSEMBLYMETADATA = unsafe { std::mem::zeroed() };
        // SAFETY: valid out-parameters; the others are null, which means that the values are not
        // needed.
        unsafe {
            check(assembly.GetAssemblyFromScope(&mut token), "GetAssemblyFromScope")?;
            let ask = assembly.GetAssemblyProps(
                token,
                std::ptr::null_mut(),
                std::ptr::null_mut(),
                std::ptr::null_mut(),
                none,
                0,
                std::ptr::null_mut(),
                &mut found,
                std::ptr::null_mut(),
            );
            check(ask, method)?;
        }
        let (major, minor) = (found.major_version, found.minor_version);
        Ok(format!("{major}.{minor}.{}.{}", found.build_number, found.revision_number))
    }

    /// The simple name of a type, method, field, parameter or reference: without namespace. Does
    /// not convert through UTF-16.
    ///
    /// # Errors
    /// The runtime's error.
    pub fn name(&self, token: Token) -> Result<String> {
        let method = "GetNameFromToken";
        let metadata = self.read(method)?;
        let mut name = std::ptr::null();
        // SAFETY: a valid out-parameter.
        check(unsafe { metadata.GetNameFromToken(token.0, &mut name) }, method)?;
        if name.is_null() {
            return Err(Error::new(HResult::POINTER, method));
        }
        // SAFETY: the runtime points to a zero-terminated string in the metadata, which stays
        // during the call.
        let name = unsafe { CStr::from_ptr(name) };
        name.to_str().map(str::to_owned).map_err(|_| Error::new(HResult(0x8013_110e_u32 as i32), method))
    }
}

impl Reading<'_> {
    /// A copy of the bytes behind a pointer and a length that the runtime gave.
    ///
    /// # Safety
    /// `start` must be null or point to `len` bytes of the metadata.
    unsafe fn blob(&self, start: *const u8, len: u32) -> Vec<u8> {
        if start.is_null() || len == 0 {
            return Vec::new();
        }
        // SAFETY: the caller vouches for it; the metadata stays during the call.
        unsafe { std::slice::from_raw_parts(start, len as usize) }.to_vec()
    }
}

/// Converts the result of a search: the error code for "not found" is not a failure.
fn found(answer: HRESULT, method: &'static str) -> Result<bool> {
    const RECORD_NOT_FOUND: i32 = 0x8013_1130_u32 as i32;
    if answer.0 == RECORD_NOT_FOUND {
        return Ok(false);
    }
    check(answer, method).map(|()| answer.0 == 0)
}
