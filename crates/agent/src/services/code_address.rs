//! Addresses in inserted code.

/// Returns the address of a function that inserted code calls.
pub(crate) fn function_address(function: *const ()) -> u64 {
    function.expose_provenance() as u64
}
