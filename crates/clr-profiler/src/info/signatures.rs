//! Adds signatures to a module, for changed IL.

use clr_profiler_sys::cor::{ofRead, ofWrite};
use clr_profiler_sys::metadata::IMetaDataEmit;
use windows_core::Interface;

use super::ProfilerInfo;
use crate::call_context::outside_collections;
use crate::error::check;
use crate::{Error, HResult, ModuleId, Result, Token};

impl ProfilerInfo {
    /// Token of a stand-alone signature in a module: the local variables of a changed body, or the
    /// target of a `calli`. Adds the signature if the module does not have it yet. The runtime
    /// accepts the token at once. Callable from `ModuleLoadFinished` on; not in hooks or during a
    /// collection.
    ///
    /// As with [`live_metadata`](Self::live_metadata), the runtime reads the module's metadata more
    /// slowly from then on.
    ///
    /// # Errors
    /// The runtime's error; `E_INVALIDARG` for bytes longer than any signature.
    pub fn signature_token(&self, module: ModuleId, signature: &[u8]) -> Result<Token> {
        let method = "GetTokenFromSig";
        self.added(module, signature, method, |metadata, bytes, size, token| {
            // SAFETY: as many bytes as said, which the runtime copies, and a valid out-parameter.
            unsafe { metadata.GetTokenFromSig(bytes, size, token) }
        })
    }

    /// Token of a type that a signature describes, such as a type parameter, for IL instructions
    /// that take a type token. Adds the type specification if the module does not have it yet.
    /// Callable in the same places as [`signature_token`](Self::signature_token).
    ///
    /// # Errors
    /// The runtime's error; `E_INVALIDARG` for bytes longer than any signature.
    pub fn type_token(&self, module: ModuleId, signature: &[u8]) -> Result<Token> {
        let method = "GetTokenFromTypeSpec";
        self.added(module, signature, method, |metadata, bytes, size, token| {
            // SAFETY: as many bytes as said, which the runtime copies, and a valid out-parameter.
            unsafe { metadata.GetTokenFromTypeSpec(bytes, size, token) }
        })
    }

    /// Adds a signature by `add`, which gets its bytes and their number, and returns the token.
    fn added(
        &self,
        module: ModuleId,
        signature: &[u8],
        method: &'static str,
        add: impl FnOnce(&IMetaDataEmit, *const u8, u32, *mut u32) -> windows_core::HRESULT,
    ) -> Result<Token> {
        let size = signature_size(signature, method)?;
        self.written(module, method, |metadata, token| add(metadata, signature.as_ptr(), size, token))
    }

    /// Calls `write` with an interface that writes a module's metadata, and returns the token of
    /// the added item.
    pub(super) fn written<I: Interface>(
        &self,
        module: ModuleId,
        method: &'static str,
        write: impl FnOnce(&I, *mut u32) -> windows_core::HRESULT,
    ) -> Result<Token> {
        outside_collections(method)?;
        let runtime = self.base(method)?;
        let life = self.life_of(module)?;
        let _inside = life.as_ref().map(|life| life.enter(method)).transpose()?;
        let mut found = std::ptr::null_mut();
        // SAFETY: a valid out-parameter.
        let answer = unsafe { runtime.GetModuleMetaData(module.0, ofRead | ofWrite, &I::IID, &mut found) };
        check(answer, "GetModuleMetaData")?;
        if found.is_null() {
            return Err(Error::new(HResult::POINTER, "GetModuleMetaData"));
        }
        // SAFETY: an owned reference of the interface asked for.
        let metadata = unsafe { I::from_raw(found) };
        let mut token = 0;
        check(write(&metadata, &mut token), method)?;
        Ok(Token(token))
    }
}

/// Length of a signature in bytes, as the interfaces take it.
pub(super) fn signature_size(signature: &[u8], method: &'static str) -> Result<u32> {
    u32::try_from(signature.len()).map_err(|_| Error::new(HResult::INVALID_ARGUMENT, method))
}
