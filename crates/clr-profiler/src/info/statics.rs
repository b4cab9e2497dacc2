//! Static fields: their kinds and addresses.

use std::ffi::c_void;

use clr_profiler_sys::enums::COR_PRF_STATIC_TYPE;
use windows_core::HRESULT;

use super::ProfilerInfo;
use crate::call_context::outside_collections;
use crate::error::check;
use crate::{AppDomainId, ClassId, Result, ThreadId, Token};

/// Kinds of static fields, by their storage.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
#[non_exhaustive]
pub enum StaticKind {
    /// The field is not static.
    NotStatic,
    /// One value for the program.
    AppDomain,
    /// One value for each thread.
    Thread,
    /// A value inside the module's image.
    Image,
    /// Obsolete kinds, or kinds unknown to this crate.
    Other(u32),
}

/// The address of a static field's value. For a field of a reference type this is the address of
/// the reference; for a value type that contains references it is the address of the reference to
/// the boxed value. The program may change the reference at any moment, and the next collection may
/// move the object.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct StaticAddress(usize);

impl StaticAddress {
    /// The address, as a number. Reading it is the caller's responsibility.
    #[must_use]
    pub const fn as_raw(self) -> usize {
        self.0
    }
}

impl ProfilerInfo {
    /// Kind of a static field. Neither in hooks nor during a collection.
    ///
    /// # Errors
    /// The runtime's error.
    pub fn static_kind(&self, class: ClassId, field: Token) -> Result<StaticKind> {
        let method = "GetStaticFieldInfo";
        outside_collections(method)?;
        let runtime = self.base(method)?;
        let _class_stays = class.enter(method)?;
        let mut kind = COR_PRF_STATIC_TYPE::default();
        // SAFETY: a valid out-parameter.
        check(unsafe { runtime.GetStaticFieldInfo(class.0, field.0, &mut kind) }, method)?;
        Ok(match kind.0 {
            0 => StaticKind::NotStatic,
            1 => StaticKind::AppDomain,
            2 => StaticKind::Thread,
            8 => StaticKind::Image,
            other => StaticKind::Other(other),
        })
    }

    /// The address of a field of kind [`StaticKind::AppDomain`]. Neither in hooks nor during a
    /// collection.
    ///
    /// # Errors
    /// The runtime's error: `CORPROF_E_DATAINCOMPLETE` before the class was initialized,
    /// `CORPROF_E_LITERALS_HAVE_NO_ADDRESS` for constants.
    pub fn static_address(&self, class: ClassId, field: Token, app_domain: AppDomainId) -> Result<StaticAddress> {
        let runtime = self.base("GetAppDomainStaticAddress")?;
        let _class_stays = class.enter("GetAppDomainStaticAddress")?;
        // SAFETY: a valid out-parameter.
        address("GetAppDomainStaticAddress", |out| unsafe {
            runtime.GetAppDomainStaticAddress(class.0, field.0, app_domain.0, out)
        })
    }

    /// The address of a field of kind [`StaticKind::Thread`], for one thread. Neither in hooks nor
    /// during a collection.
    ///
    /// # Errors
    /// The runtime's error: `CORPROF_E_DATAINCOMPLETE` before the thread has used the field.
    pub fn thread_static_address(
        &self,
        class: ClassId,
        field: Token,
        app_domain: AppDomainId,
        thread: ThreadId,
    ) -> Result<StaticAddress> {
        let runtime = self.base("GetThreadStaticAddress2")?;
        let _class_stays = class.enter("GetThreadStaticAddress2")?;
        // SAFETY: a valid out-parameter.
        address("GetThreadStaticAddress2", |out| unsafe {
            runtime.GetThreadStaticAddress2(class.0, field.0, app_domain.0, thread.0, out)
        })
    }

    /// The address of a field of kind [`StaticKind::Image`]. Neither in hooks nor during a
    /// collection.
    ///
    /// # Errors
    /// The runtime's error; from .NET 9 on `CORPROF_E_DATAINCOMPLETE` before the class was
    /// initialized.
    pub fn image_static_address(&self, class: ClassId, field: Token) -> Result<StaticAddress> {
        let runtime = self.base("GetRVAStaticAddress")?;
        let _class_stays = class.enter("GetRVAStaticAddress")?;
        // SAFETY: a valid out-parameter.
        address("GetRVAStaticAddress", |out| unsafe { runtime.GetRVAStaticAddress(class.0, field.0, out) })
    }
}

fn address(method: &'static str, ask: impl FnOnce(*mut *mut c_void) -> HRESULT) -> Result<StaticAddress> {
    outside_collections(method)?;
    let mut address = std::ptr::null_mut();
    check(ask(&mut address), method)?;
    Ok(StaticAddress(address as usize))
}
