//! Signals that the process that started the tests has turned off.

use std::fs;
use std::sync::{Arc, Once};

use signal_hook::consts::{SIGHUP, SIGINT, SIGQUIT};

/// Makes programs start with the default answer to SIGHUP, SIGINT and SIGQUIT. `nohup`, and shells
/// for what they start in the background, have them ignored; that is inherited, .NET keeps to it,
/// and a test that sends one would wait for ever. A signal that is caught is inherited as the
/// default, and catching it without an effect leaves the tests themselves as they were.
/// [`Service`](crate::Service) and [`run`](crate::run) see to it themselves.
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
