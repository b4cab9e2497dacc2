//! Keeps the library mapped until the process ends.
//!
//! Compiled code calls the hooks until the process ends, threads run the destructors of our data
//! when they end, and the runtime closes the library when `Initialize` fails or after a detach. So
//! the library takes a reference to itself and never releases it.

/// Pins the library that contains this code. If this fails, the linker's `-z nodelete` still keeps
/// the library mapped, and the runtime does not unload it at shutdown.
#[cfg(unix)]
pub(super) fn pin_library() {
    // SAFETY: plain old data for an out-parameter.
    let mut place: libc::Dl_info = unsafe { std::mem::zeroed() };
    // SAFETY: an address in this library, and a valid out-parameter.
    let known = unsafe { libc::dladdr(pin_library as *const libc::c_void, &mut place) };
    if known == 0 || place.dli_fname.is_null() {
        return;
    }
    // SAFETY: the loader's own name for this library, which is loaded: nothing new is mapped and no
    // initializer runs.
    unsafe { libc::dlopen(place.dli_fname, libc::RTLD_NOW | libc::RTLD_NOLOAD | libc::RTLD_NODELETE) };
}

#[cfg(not(unix))]
pub(super) fn pin_library() {}
