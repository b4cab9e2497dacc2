//! Errors: the runtime's result code with its name, and the method that gave it.

use std::borrow::Cow;
use std::fmt;

/// A result code of the runtime.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
#[repr(transparent)]
#[expect(clippy::exhaustive_structs, reason = "a number of the ABI")]
pub struct HResult(pub i32);

impl HResult {
    /// Success.
    pub const OK: Self = Self(0);
    /// The general failure.
    pub const FAIL: Self = Self(0x8000_4005_u32 as i32);
    /// A pointer argument is null, but must not be.
    pub const POINTER: Self = Self(0x8000_4003_u32 as i32);
    /// The object does not have the interface.
    pub const NO_INTERFACE: Self = Self(0x8000_4002_u32 as i32);
    /// An argument is invalid.
    pub const INVALID_ARGUMENT: Self = Self(0x8007_0057_u32 as i32);
    /// No memory is left.
    pub const OUT_OF_MEMORY: Self = Self(0x8007_000e_u32 as i32);
    /// The answer did not fit into the buffer.
    pub const INSUFFICIENT_BUFFER: Self = Self(0x8007_007a_u32 as i32);
    /// This runtime does not have the method.
    pub const NOT_IMPLEMENTED: Self = Self(0x8000_4001_u32 as i32);
    /// The class factory does not support aggregation.
    pub const NO_AGGREGATION: Self = Self(0x8004_0110_u32 as i32);
    /// This library does not have the requested class.
    pub const CLASS_NOT_AVAILABLE: Self = Self(0x8004_0111_u32 as i32);
    /// The profiler cancels its own activation: the program continues without it.
    pub const CANCEL_ACTIVATION: Self = Self(0x8013_1375_u32 as i32);
    /// The subject of the query is not completely loaded yet.
    pub const DATA_INCOMPLETE: Self = Self(0x8013_1351_u32 as i32);
    /// The call is not allowed here.
    pub const UNSUPPORTED_CALL_SEQUENCE: Self = Self(0x8013_1363_u32 as i32);
    /// The thread is not a managed thread.
    pub const NOT_MANAGED_THREAD: Self = Self(0x8013_1355_u32 as i32);
    /// Concurrent collection is enabled, so it is too late to enable object-by-object GC events.
    pub const CONCURRENT_GC_NOT_PROFILABLE: Self = Self(0x8013_1376_u32 as i32);
    /// ReJIT is not enabled; a profiler can enable it during initialization only.
    pub const REJIT_NOT_ENABLED: Self = Self(0x8013_137c_u32 as i32);
    /// The module supports Edit and Continue, so its methods can't be recompiled.
    pub const MODULE_IS_ENC: Self = Self(0x8013_138a_u32 as i32);
    /// The profiler is detaching or detached.
    pub const PROFILER_DETACHING: Self = Self(0x8013_1367_u32 as i32);
    /// The runtime refuses to detach the profiler, because the profiler has or had hooks, changed
    /// IL or requested ReJIT.
    pub const IRREVERSIBLE_INSTRUMENTATION: Self = Self(0x8013_1370_u32 as i32);
    /// The token of a generic method, or of a method of a generic type, does not identify a
    /// function by itself.
    pub const FUNCTION_IS_PARAMETERIZED: Self = Self(0x8013_135d_u32 as i32);
    /// The method has no IL.
    pub const FUNCTION_NOT_IL: Self = Self(0x8013_1354_u32 as i32);
    /// An attached profiler may not do this.
    pub const UNSUPPORTED_FOR_ATTACH: Self = Self(0x8013_136f_u32 as i32);

    /// Another suspension of the program is in progress.
    pub const SUSPENSION_IN_PROGRESS: Self = Self(0x8013_1388_u32 as i32);
    /// The stack can't be walked where its thread is stopped, or while the runtime starts.
    pub const STACK_UNSAFE: Self = Self(0x8013_1360_u32 as i32);
    /// The thread is in native code or is handling an exception, so the walk finds no managed frame
    /// to start from.
    pub const STACK_UNMANAGED: Self = Self(0x8013_135f_u32 as i32);
    /// The query needs an event that is not set.
    pub const INCONSISTENT_WITH_FLAGS: Self = Self(0x8013_1374_u32 as i32);

    /// Whether this is a success (not negative).
    #[must_use]
    pub const fn is_ok(self) -> bool {
        self.0 >= 0
    }

    /// The name of this code in Microsoft's headers, for instance `CORPROF_E_DATAINCOMPLETE`.
    #[must_use]
    pub fn name(self) -> Option<&'static str> {
        clr_profiler_sys::hresult::name(windows_core::HRESULT(self.0))
    }
}

impl fmt::Display for HResult {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.name() {
            Some(name) => write!(f, "{name} ({:#010x})", self.0),
            None => write!(f, "{:#010x}", self.0),
        }
    }
}

impl fmt::Debug for HResult {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// Error of a query or a setup: the method, the result code of the runtime, and the reason if the
/// framework refused the call.
///
/// ```
/// use clr_profiler::{Error, HResult};
/// let error = Error::new(HResult::DATA_INCOMPLETE, "GetModuleInfo2");
/// assert_eq!(error.to_string(), "GetModuleInfo2: CORPROF_E_DATAINCOMPLETE (0x80131351)");
/// assert_eq!(error.name(), Some("CORPROF_E_DATAINCOMPLETE"));
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Error {
    hresult: HResult,
    method: &'static str,
    reason: Option<Cow<'static, str>>,
}

/// Result of a query to the runtime.
pub type Result<T> = std::result::Result<T, Error>;

impl Error {
    /// Creates the error for the result code `hresult` of a call of `method`.
    #[must_use]
    pub const fn new(hresult: HResult, method: &'static str) -> Self {
        Self { hresult, method, reason: None }
    }

    /// Creates the error for a refusal by the framework or by a profiler; `reason` is a sentence.
    pub fn refused(method: &'static str, reason: impl Into<Cow<'static, str>>) -> Self {
        Self { hresult: HResult::FAIL, method, reason: Some(reason.into()) }
    }

    /// Replaces the result code of this error.
    #[must_use]
    pub fn with_hresult(mut self, hresult: HResult) -> Self {
        self.hresult = hresult;
        self
    }

    /// The result code.
    #[must_use]
    pub const fn hresult(&self) -> HResult {
        self.hresult
    }

    /// The name of the result code, if it has one.
    #[must_use]
    pub fn name(&self) -> Option<&'static str> {
        self.hresult.name()
    }

    /// The method that was called.
    #[must_use]
    pub const fn method(&self) -> &'static str {
        self.method
    }

    /// The reason of a refusal, as a sentence.
    #[must_use]
    pub fn reason(&self) -> Option<&str> {
        self.reason.as_deref()
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.reason {
            Some(reason) => write!(f, "{}: {reason}", self.method),
            None => write!(f, "{}: {}", self.method, self.hresult),
        }
    }
}

impl std::error::Error for Error {}

/// Converts a result code of the runtime into a result.
pub(crate) fn check(hresult: windows_core::HRESULT, method: &'static str) -> Result<()> {
    if hresult.0 >= 0 { Ok(()) } else { Err(Error::new(HResult(hresult.0), method)) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn codes_have_the_names_of_the_header() {
        let names = [
            (HResult::REJIT_NOT_ENABLED, "CORPROF_E_REJIT_NOT_ENABLED"),
            (HResult::SUSPENSION_IN_PROGRESS, "CORPROF_E_SUSPENSION_IN_PROGRESS"),
            (HResult::STACK_UNSAFE, "CORPROF_E_STACKSNAPSHOT_UNSAFE"),
            (HResult::STACK_UNMANAGED, "CORPROF_E_STACKSNAPSHOT_UNMANAGED_CTX"),
            (HResult::INCONSISTENT_WITH_FLAGS, "CORPROF_E_INCONSISTENT_WITH_FLAGS"),
            (HResult::PROFILER_DETACHING, "CORPROF_E_PROFILER_DETACHING"),
            (HResult::IRREVERSIBLE_INSTRUMENTATION, "CORPROF_E_IRREVERSIBLE_INSTRUMENTATION_PRESENT"),
            (HResult::UNSUPPORTED_FOR_ATTACH, "CORPROF_E_UNSUPPORTED_FOR_ATTACHING_PROFILER"),
            (HResult::CONCURRENT_GC_NOT_PROFILABLE, "CORPROF_E_CONCURRENT_GC_NOT_PROFILABLE"),
            (HResult::FUNCTION_IS_PARAMETERIZED, "CORPROF_E_FUNCTION_IS_PARAMETERIZED"),
            (HResult::NOT_MANAGED_THREAD, "CORPROF_E_NOT_MANAGED_THREAD"),
            (HResult::UNSUPPORTED_CALL_SEQUENCE, "CORPROF_E_UNSUPPORTED_CALL_SEQUENCE"),
            (HResult::DATA_INCOMPLETE, "CORPROF_E_DATAINCOMPLETE"),
            (HResult::CANCEL_ACTIVATION, "CORPROF_E_PROFILER_CANCEL_ACTIVATION"),
        ];
        for (code, name) in names {
            assert_eq!(code.name(), Some(name));
        }
    }
}
