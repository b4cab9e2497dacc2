//! Restores signals that the process which started the tests has set to ignored.

use std::fs;
use std::sync::{Arc, Once};

use signal_hook::consts::{SIGHUP, SIGINT, SIGQUIT};

/// Makes programs start with the default action for SIGHUP, SIGINT and SIGQUIT. `nohup`, and shells
/// for background jobs, set them to ignored. Child processes inherit this and .NET respects it, so
/// a test that sends such a signal would wait for ever. This function installs a handler without
/// effect for each ignored signal: child processes inherit a caught signal as default, and the
/// tests themselves still ignore it. [`Service`](crate::Service) and [`run`](crate::run) call this
/// function.
///
/// # Panics
/// Where there is no `/proc`.
pub fn let_children_hear() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        for signal in [SIGHUP, SIGINT, SIGQUIT].into_iter().filter(|&signal| is_ignored(signal)) {
            signal_hook::flag::register(signal, Arc::default()).expect("a signal that can be caught");
        }
    });
}

fn is_ignored(signal: i32) -> bool {
    let status = fs::read_to_string("/proc/self/status").expect("Linux lists what is ignored");
    let mask = status.lines().find_map(|line| line.strip_prefix("SigIgn:")).expect("a mask of signals");
    u64::from_str_radix(mask.trim(), 16).expect("hexadecimal") >> (signal - 1) & 1 == 1
}
