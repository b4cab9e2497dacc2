//! Adds references to types and members of other assemblies to a module, for changed IL.

use std::ptr;

use clr_profiler_sys::metadata::{IMetaDataAssemblyEmit, IMetaDataEmit};
use clr_profiler_sys::structs::ASSEMBLYMETADATA;

use super::ProfilerInfo;
use super::signatures::signature_size;
use crate::text::wide;
use crate::{ModuleId, Result, Token};

/// The core library of the runtime, and the public key token with which it is signed.
const CORE_LIBRARY: &str = "System.Private.CoreLib";
const CORE_KEY_TOKEN: [u8; 8] = [0x7c, 0xec, 0x85, 0xd7, 0xbe, 0xa7, 0x79, 0x8e];

impl ProfilerInfo {
    /// Adds a reference to the core library (any version) to a module and returns its token. Each
    /// call adds a new reference. Callable in the same places as
    /// [`signature_token`](Self::signature_token).
    ///
    /// # Errors
    /// The runtime's error.
    pub fn core_library_reference(&self, module: ModuleId) -> Result<Token> {
        let name = wide(CORE_LIBRARY);
        let any_version = ASSEMBLYMETADATA {
            major_version: 0,
            minor_version: 0,
            build_number: 0,
            revision_number: 0,
            locale: ptr::null_mut(),
            cch_locale: 0,
            processors: ptr::null_mut(),
            processor_count: 0,
            systems: ptr::null_mut(),
            system_count: 0,
        };
        let (key, key_size) = (CORE_KEY_TOKEN.as_ptr().cast(), CORE_KEY_TOKEN.len() as u32);
        self.written(module, "DefineAssemblyRef", |metadata: &IMetaDataAssemblyEmit, token| {
            // SAFETY: as many bytes as said and a name that ends with 0, which the runtime copies;
            // no hash, and a valid out-parameter.
            unsafe { metadata.DefineAssemblyRef(key, key_size, name.as_ptr(), &any_version, ptr::null(), 0, 0, token) }
        })
    }

    /// Adds a reference to a type to a module and returns its token. `scope` is the token of a
    /// reference to the assembly of the type, `name` for instance `System.Threading.AsyncLocal`1`.
    /// Each call adds a new reference. Callable in the same places as
    /// [`signature_token`](Self::signature_token).
    ///
    /// # Errors
    /// The runtime's error.
    pub fn type_reference(&self, module: ModuleId, scope: Token, name: &str) -> Result<Token> {
        let name = wide(name);
        self.written(module, "DefineTypeRefByName", |metadata: &IMetaDataEmit, token| {
            // SAFETY: a name that ends with 0, which the runtime copies, and a valid out-parameter.
            unsafe { metadata.DefineTypeRefByName(scope.0, name.as_ptr(), token) }
        })
    }

    /// Adds a reference to a member of the type `ty` to a module and returns its token. Each call
    /// adds a new reference. Callable in the same places as
    /// [`signature_token`](Self::signature_token).
    ///
    /// # Errors
    /// The runtime's error; `E_INVALIDARG` for bytes longer than any signature.
    pub fn member_reference(&self, module: ModuleId, ty: Token, name: &str, signature: &[u8]) -> Result<Token> {
        let (name, method) = (wide(name), "DefineMemberRef");
        let size = signature_size(signature, method)?;
        self.written(module, method, |metadata: &IMetaDataEmit, token| {
            // SAFETY: a name that ends with 0 and as many bytes as said, which the runtime copies,
            // and a valid out-parameter.
            unsafe { metadata.DefineMemberRef(ty.0, name.as_ptr(), signature.as_ptr(), size, token) }
        })
    }
}
