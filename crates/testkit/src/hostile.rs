//! Fixtures that are hard on a profiler.

/// Fixtures with their arguments that end badly, have odd stacks, or whose code, threads and
/// processes come and go. Each ends by itself, and says the same each time, but for what
/// [`Expectations::other_lines`](crate::Expectations::other_lines) leaves out.
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
