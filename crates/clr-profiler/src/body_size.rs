//! Length of method bodies for the runtime.

use crate::{Error, HResult, Result};

/// Returns the length of a method's body. The body must be complete.
pub(crate) fn body_size(method: &'static str, body: &[u8]) -> Result<u32> {
    let invalid = |reason: String| Error::refused(method, reason).with_hresult(HResult::INVALID_ARGUMENT);
    clr_il::check(body).map_err(|error| invalid(error.to_string()))?;
    u32::try_from(body.len()).map_err(|_| invalid("the body is longer than 4 GiB".to_owned()))
}
