//! Results, on the terminal and in `docs/accuracy.md`.

use std::fmt::{Arguments, Write as _};

use clrscope_testkit::workspace_root;

use crate::machine;

/// The lines so far.
#[derive(Default)]
pub(super) struct Page(String);

impl Page {
    /// Prints a line and keeps it.
    #[expect(clippy::print_stdout, reason = "a command line tool")]
    pub(super) fn line(&mut self, text: Arguments<'_>) {
        println!("{text}");
        let _ = writeln!(self.0, "{text}");
    }

    /// Says on the terminal alone what is under way: a run takes seconds, or minutes on a busy machine.
    #[expect(clippy::print_stderr, reason = "a command line tool")]
    pub(super) fn progress(text: Arguments<'_>) {
        eprintln!("{text}");
    }

    /// Writes the file.
    pub(super) fn write(&self) -> Result<(), String> {
        let path = workspace_root().join("docs/accuracy.md");
        let text = format!(
            "# Accuracy

Written by `cargo xtask accuracy`; do not edit.

{}.

*Bare* is what the program itself measured without a profiler, *raw* what `calls` measured, *shown* the same less what the hooks
cost, in brackets the difference between the least and the greatest of the runs. P12 is met where *shown* is within 5 points of *bare*
(10 with `clock=tsc`) plus the spread of the bare runs, the truth lies within the bounds, and every count is equal. *A pair* is what a
pair of hooks cost there in truth, in nanoseconds; *found* is what the recording says it cost, where it could measure that.

Rows of single runs are judged by what the same run took. *What samples say* is compared with what the program itself measured in that
run. *CPU times within their bounds* are compared with the bare runs' times, at the pace of that run, which `Lone` shows: processors are
slower where others want them. Bounds hold 95 of 100 rows; the goal is missed where so few would have a chance below 1 % if they did. Bounds
take hooks for that much cheaper and dearer than the recording found them as each table says that they have; the part that single runs
needed stands before.

For `cpu` it is met where *shown* is within 1 point of *bare* plus the spread of the bare runs, or the truth lies within the interval that
the report states for this number of samples (95 %). The functions of `Beats` take turns by the CPU clock of their thread, each as long as
the other: 500 microseconds are a pair in each interval of 1 kHz, 2,000 a pair in each tick of a kernel with 250 Hz. The engine `timer` samples at ticks and nowhere else, so
where the turns are in step with these it can't be right, which its reports say; perf events drift through such loops.

```text
{}```
",
            machine::describe(),
            self.0
        );
        std::fs::write(&path, text).map_err(|error| format!("{}: {error}", path.display()))
    }
}
