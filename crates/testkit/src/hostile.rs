//! Fixtures that are difficult for a profiler.

/// Fixtures, with their arguments, that crash, have unusual stacks, or create and remove code,
/// threads and processes. Each ends by itself and prints the same each time, except for the lines
/// that [`Expectations::other_lines`](crate::Expectations::other_lines) leaves out.
pub const HOSTILE: [(&str, &[&str]); 13] = [
    ("Ends", &["stackoverflow-thread"]),
    ("Ends", &["unhandled-thread"]),
    ("Ends", &["failfast"]),
    ("Ends", &["signal", "11"]),
    ("Stacks", &[]),
    ("Recursion", &[]),
    ("TailCalls", &[]),
    ("Filters", &[]),
    ("Loading", &[]),
    ("Dynamic", &[]),
    ("Native", &[]),
    ("Processes", &["fork-exec", "50"]),
    ("Processes", &["close"]),
];
