//! The parts of the measurement, each with an explanation of its figures.

use clrscope_testkit::runtimes;

use super::page::Page;
use super::shares::Plan;
use super::{allocations, awaiters, paths, sampled, shares, sleeps};
use crate::agents::newest_runtime;

/// A part that can be measured without the others.
pub(super) struct Part {
    /// Name of the part for `--only`.
    pub(super) name: &'static str,
    /// Heading of the part's section on the page.
    pub(super) heading: &'static str,
    /// Explanation of the part's figures.
    pub(super) about: &'static str,
    /// Measures and prints the part. Returns the number of missed goals.
    pub(super) measure: fn(Plan, &mut Page) -> Result<usize, String>,
    /// Whether the part can't be measured while other threads keep the processors busy.
    pub(super) needs_quiet: bool,
}

/// All parts, in the order in which they are measured and stand on the page.
pub(super) const PARTS: [Part; 9] = [
    Part {
        name: "shares",
        heading: "Times of `calls`",
        about: "\
*Bare* is what the program itself measured without a profiler, *raw* what `calls` measured, *shown*
the same less what the hooks cost, in brackets the difference between the least and the greatest of
the runs. P12 is met where *shown* is within 5 points of *bare* (10 with `clock=tsc`) plus the
spread of the bare runs, the truth lies within the bounds, and every count is equal. *A pair* is
what a pair of hooks cost there in truth, in nanoseconds; *found* is what the recording says it
cost, where it could measure that.

Rows of single runs are judged by what the same run took. *What samples say* is compared with what
the program itself measured in that run. *CPU times within their bounds* are compared with the bare
runs' times, at the pace of that run, which `Lone` shows: processors are slower where others want
them. Bounds hold 95 of 100 rows; the goal is missed where so few would have a chance below 1 % if
they did. Bounds take hooks for that much cheaper and dearer than the recording found them as each
table says that they have; the part that single runs needed stands before.",
        measure: |plan, page| shares::run(newest_runtime()?, plan, page),
        needs_quiet: false,
    },
    Part {
        name: "samples",
        heading: "Samples of `cpu`",
        about: "\
P12 is met where *shown* is within 1 point of *bare* plus the spread of the bare runs, or the truth
lies within the interval that the report states for this number of samples (95 %). The functions of
`Beats` take turns by the CPU clock of their thread, each as long as the other: 500 microseconds are
a pair in each interval of 1 kHz, 2,000 a pair in each tick of a kernel with 250 Hz. The engine
`timer` samples at ticks and nowhere else, so where the turns are in step with these it can't be
right, which its reports say; perf events drift through such loops.",
        measure: |plan, page| sampled::run(newest_runtime()?, plan, page),
        needs_quiet: false,
    },
    Part {
        name: "allocations",
        heading: "Bytes by type of `alloc`",
        about: "\
A program allocates objects of random sizes and adds up what each type took by the runtime's own
count; megabytes are the mean of the runs. Each type of each run is a row, with the bounds that the
report states for it (95 %); the goal is missed where so few rows within their bounds would have a
chance below 1 % if they held 95 of 100.",
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
    Part {
        name: "paths",
        heading: "Paths of samples",
        about: "\
A program goes random call paths: through methods with and without a frame, precompiled code that
calls back, all tiers, handlers of exceptions, native code and back, tail calls, delegates,
generics, code made at run time. The path is a number handed down as an argument, and its leaf notes
it with the times between which it was on the stack; the program's own stack traces agree with what
the number means. A sample in that time is *equal* when the methods of the program on its stack are
those of the path, in order: no other, none missing. Samples that were lost are not equal. Of each
step and leaf: samples with it on their paths, how many of them have no fault in it, frames that are
missing and frames too many. *Called whole* are samples that are not equal and marked complete all
the same; *astray* those between two leaves that are on the way from none to the next; *CPU time* is
the part of what the threads used that their samples stand for.",
        measure: |plan, page| paths::run(plan, page),
        needs_quiet: false,
    },
    Part {
        name: "stops",
        heading: "Stacks at stops of the runtime",
        about: "\
The program with known paths is stopped as a whole, again and again, and each thread's stack is
walked by the runtime itself (`DoStackSnapshot`) and by clrscope's walker, which begins at the call
of the kernel that the thread waits in. *Equal* are stacks with the same methods in the same order;
in *guessed* ones a step was a guess. Of those that differ, *said* ones were marked as guessed,
*unsaid* ones were called certain. Both leave out code made at run time and the runtime's own
handling of exceptions, which the runtime does not show. *Same address* is the share of equal frames
that go on at the same instruction in both; for methods that wait in native code, and for blocks of
handlers, the runtime tells another one of the same method. *Left out* are threads that ran native
code, which nothing stops, and those that the runtime's own walk refused.",
        measure: |plan, page| paths::stops::run(plan.quick, page),
        needs_quiet: false,
    },
    Part {
        name: "callers",
        heading: "Callers by samples and by calls",
        about: "\
`calls` and `cpu` in one run of the program with known paths: the methods of the program on a
sample's stack, all but the innermost, must be a path of the exact tree. Hooks force frames on
methods and keep precompiled code out, so this cannot show what only code without hooks has.",
        measure: |_, page| paths::callers::run(page),
        needs_quiet: false,
    },
    Part {
        name: "slower",
        heading: "Methods that are made slower",
        about: "\
One method is made slower by once, twice and four times its work (k, 2k, 4k), everything else stays
as it is: a method with a frame, one that is inlined, one without a frame that another one without a
frame calls. Phases take turns, and the program says what each took by its own CPU clock.
*Predicted* is the part's time by samples in the phase with nothing slower, and what the program
took longer; *bound* four standard deviations of what chance does to so many samples, and 3 % of the
phase. Parts that stay as they are, five in each phase, are shown where they are off.",
        measure: |plan, page| paths::slower::run(plan.quick, page),
        needs_quiet: false,
    },
    Part {
        name: "awaiters",
        heading: "Who awaits a method",
        about: "\
Roots wait for their work, each in a way of its own, and the work throws an exception of its root's
own class after each `await`, while memory is collected and compacted all the time. An exception is
right where the logical stack of `exceptions` has that root. What is not is below none, as nobody
awaited the work yet (at most 0.5 %), or *unknown*, below `[unknown awaiter]`, all of it: boxes of
pooled builders are no tasks, and the consumer of a stream awaits none. Where such a box leaves no
frame, its stacks begin at `[pool]`. *Debug* is code that the compiler did not optimise.",
        measure: |_, page| awaiters::run(page),
        needs_quiet: false,
    },
];

/// Headings of all parts.
pub(super) fn headings() -> [&'static str; PARTS.len()] {
    PARTS.map(|part| part.heading)
}
