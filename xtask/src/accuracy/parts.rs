//! Parts of the whole, each with what its figures mean.

use clrscope_testkit::runtimes;

use super::page::Page;
use super::shares::Plan;
use super::{allocations, sampled, shares, sleeps};
use crate::agents::newest_runtime;

/// A part that can be measured alone.
pub(super) struct Part {
    /// Name for `--only`.
    pub(super) name: &'static str,
    /// Heading of the section that it has on the page.
    pub(super) heading: &'static str,
    /// Meaning of the figures.
    pub(super) about: &'static str,
    /// Measures and prints; how many goals were missed.
    pub(super) measure: fn(Plan, &mut Page) -> Result<usize, String>,
    /// Says nothing where others have the processors.
    pub(super) needs_quiet: bool,
}

/// All of them, in the order in which they are measured and stand on the page.
pub(super) const PARTS: [Part; 4] = [
    Part {
        name: "shares",
        heading: "Times of `calls`",
        about: "\
*Bare* is what the program itself measured without a profiler, *raw* what `calls` measured, *shown* the same less what the hooks
cost, in brackets the difference between the least and the greatest of the runs. P12 is met where *shown* is within 5 points of *bare*
(10 with `clock=tsc`) plus the spread of the bare runs, the truth lies within the bounds, and every count is equal. *A pair* is what a
pair of hooks cost there in truth, in nanoseconds; *found* is what the recording says it cost, where it could measure that.

Rows of single runs are judged by what the same run took. *What samples say* is compared with what the program itself measured in that
run. *CPU times within their bounds* are compared with the bare runs' times, at the pace of that run, which `Lone` shows: processors are
slower where others want them. Bounds hold 95 of 100 rows; the goal is missed where so few would have a chance below 1 % if they did. Bounds
take hooks for that much cheaper and dearer than the recording found them as each table says that they have; the part that single runs
needed stands before.",
        measure: |plan, page| shares::run(newest_runtime()?, plan, page),
        needs_quiet: false,
    },
    Part {
        name: "samples",
        heading: "Samples of `cpu`",
        about: "\
P12 is met where *shown* is within 1 point of *bare* plus the spread of the bare runs, or the truth lies within the interval that
the report states for this number of samples (95 %). The functions of `Beats` take turns by the CPU clock of their thread, each as long as
the other: 500 microseconds are a pair in each interval of 1 kHz, 2,000 a pair in each tick of a kernel with 250 Hz. The engine `timer`
samples at ticks and nowhere else, so where the turns are in step with these it can't be right, which its reports say; perf events drift
through such loops.",
        measure: |plan, page| sampled::run(newest_runtime()?, plan, page),
        needs_quiet: false,
    },
    Part {
        name: "allocations",
        heading: "Bytes by type of `alloc`",
        about: "\
A program allocates objects of random sizes and adds up what each type took by the runtime's own count; megabytes are the mean of the
runs. Each type of each run is a row, with the bounds that the report states for it (95 %); the goal is missed where so few rows within
their bounds would have a chance below 1 % if they held 95 of 100.",
        measure: |_, page| runtimes().iter().map(|runtime| allocations::run(runtime, page)).sum(),
        needs_quiet: false,
    },
    Part {
        name: "sleeps",
        heading: "Sleeps, waits and work of `calls`",
        about: "Wall and CPU time of methods that sleep, managed and native, wait, spin, and work so long.",
        measure: |_, page| sleeps::run(newest_runtime()?, page),
        needs_quiet: true,
    },
];

/// Headings of all parts.
pub(super) fn headings() -> [&'static str; PARTS.len()] {
    PARTS.map(|part| part.heading)
}
