//! The user's browser.

use std::env;
use std::process::{Command, Stdio};

/// Opens an address in the user's browser, where this is a desktop; the address is said anyway.
pub(super) fn open(address: &str) {
    let is_desktop =
        ["DISPLAY", "WAYLAND_DISPLAY"].iter().any(|name| env::var_os(name).is_some_and(|value| !value.is_empty()));
    if !is_desktop {
        return;
    }
    let mut command = Command::new("xdg-open");
    command.arg(address).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    // Where there is none the user has the address.
    if let Ok(mut child) = command.spawn() {
        let _ = super::spawn("browser", move || _ = child.wait());
    }
}
