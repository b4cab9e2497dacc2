//! The user's browser.
//!
//! Every user of a machine can read the command lines of all processes, and the address contains
//! the token. So the browser gets the path of a file that only the user can read; the file
//! redirects to the address.

use std::env;
use std::io::{self, Write};
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::time::Duration;

use tempfile::{Builder, NamedTempFile};

use super::connections::Connections;

/// Time that a browser may take to start and to request the page.
const PATIENCE: Duration = Duration::from_secs(60);

/// Opens an address in the user's browser if this is a desktop session. The address is printed in
/// any case.
pub(super) fn open(address: &str, connections: &Arc<Connections>) {
    let is_set = |name: &&str| env::var_os(name).is_some_and(|value| !value.is_empty());
    if !["DISPLAY", "WAYLAND_DISPLAY"].iter().any(is_set) {
        return;
    }
    // Without a file or a browser, the user can use the printed address.
    let Ok(file) = redirection(address) else { return };
    let mut command = Command::new("xdg-open");
    command.arg(file.path()).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    let Ok(mut child) = command.spawn() else { return };
    let connections = Arc::clone(connections);
    let _ = super::spawn("browser", move || {
        connections.wait_for_entry(PATIENCE);
        drop(file);
        let _ = child.wait();
    });
}

/// A private page that redirects to an address. Dropping it deletes the file.
fn redirection(address: &str) -> io::Result<NamedTempFile> {
    let own = env::var_os("XDG_RUNTIME_DIR").map(PathBuf::from).filter(|folder| folder.is_dir());
    let folder = own.unwrap_or_else(env::temp_dir);
    // Temporary files are created with mode 0600.
    let mut file = Builder::new().prefix("clrscope-view-").suffix(".html").tempfile_in(folder)?;
    writeln!(
        file,
        "<!doctype html><meta charset=utf-8><title>clrscope</title>\
         <meta http-equiv=refresh content=\"0;url={address}\"><a href=\"{address}\">clrscope</a>"
    )?;
    file.flush()?;
    Ok(file)
}
