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
*Bare* is what the program itself measured without a profiler, *raw* is what `calls` measured, and
*shown* is *raw* without the cost of the hooks. The number in brackets is the spread: the highest
run minus the lowest one. P12 is met if *shown* is within 5 points of *bare* (10 with `clock=tsc`)
plus the spread of the bare runs, the truth is within the bounds, and every count is equal. *A pair*
is the true cost of a pair of hooks, in nanoseconds; *found* is the cost that the recording states,
if it could measure one.

The lines below each table judge every run on its own, with a row for each group. *What samples say*
compares the sampled time, hooks included, with the time that the program measured in the same run:
they must agree within the sampling error. *CPU times within their bounds* compares the reported
times with those of the bare runs, scaled to the speed of that run, which `Lone` shows: a processor
is slower while others use it. Bounds should hold in 95 of 100 rows. The goal is missed if a count
as low as this one has a chance below 1 % for bounds that do hold in 95 of 100 rows. Bounds assume
that hooks may cost less or more than the recording found, by the margin at the end of the *margin*
line; the figure before it is the margin that the single runs needed.",
        measure: |plan, page| shares::run(newest_runtime()?, plan, page),
        needs_quiet: false,
    },
    Part {
        name: "samples",
        heading: "Samples of `cpu`",
        about: "\
P12 is met if *shown* is within 1 point of *bare* plus the spread of the bare runs, or if the truth
is within the interval that the report states for this number of samples (95 %). The two functions
of `Beats` take turns of equal length by the CPU clock of their thread. With turns of 500
microseconds, a pair fills one interval of 1 kHz; with 2,000, a pair fills one tick of a kernel with
250 Hz. The engine `timer` samples only at ticks. If the turns are in step with the ticks, its
shares can't be right, and its reports say so. Samples of perf events drift against such loops.",
        measure: |plan, page| sampled::run(newest_runtime()?, plan, page),
        needs_quiet: false,
    },
    Part {
        name: "allocations",
        heading: "Bytes by type of `alloc`",
        about: "\
A program allocates objects of random sizes and adds up the bytes of each type by the runtime's own
count. Megabytes are the mean of the runs. Each type of each run is a row, with the bounds that the
report states for it (95 %). The goal is missed if so low a count of rows within their bounds has a
chance below 1 % for bounds that do hold in 95 of 100 rows.",
        measure: |_, page| runtimes().iter().map(|runtime| allocations::run(runtime, page)).sum(),
        needs_quiet: false,
    },
    Part {
        name: "sleeps",
        heading: "Sleeps, waits and work of `calls`",
        about: "Wall and CPU time of methods that sleep (managed and native), wait, spin or work for a known time.",
        measure: |_, page| sleeps::run(newest_runtime()?, page),
        needs_quiet: true,
    },
    Part {
        name: "paths",
        heading: "Paths of samples",
        about: "\
A program runs random call paths: through methods with and without a frame, precompiled code that
calls back, all tiers, exception handlers, native code and back, tail calls, delegates, generics,
and code made at run time. The path is a number that is passed down as an argument. The leaf notes
this number and the interval in which it was on the stack; the program's own stack traces confirm
that the number describes the path. A sample in that interval is *equal* if the program's methods on
its stack are exactly those of the path, in the same order. Lost samples count as not equal. *Called
whole* are samples that are not equal but marked as complete. *Between* are samples between two
leaves; those that are not on the way from one leaf to the next are *astray*. *CPU time* is the
share of the threads' CPU time that their samples stand for. The goal is 99.9 % of equal samples.
The tables of steps and leaves count the samples with the step or leaf on their paths, the share of
these without a fault in it, missing frames and extra frames.",
        measure: |plan, page| paths::run(plan, page),
        needs_quiet: false,
    },
    Part {
        name: "stops",
        heading: "Stacks at stops of the runtime",
        about: "\
The program with known paths is stopped as a whole, again and again. Each thread's stack is walked
twice: by the runtime itself (`DoStackSnapshot`) and by clrscope's walker, which starts at the
system call in which the thread waits. *Equal* stacks have the same methods in the same order; in
*guessed* ones the walker guessed a step. Of the stacks that differ, *said* ones were marked as
guessed, *unsaid* ones were called certain. Both sides leave out code made at run time and the
runtime's own exception handling, which the runtime does not show. *Same address* is the share of
equal frames that resume at the same instruction in both walks; for methods that wait in native
code, and for handler blocks, the runtime reports another address in the same method. *Left out* are
threads that ran native code, which a stop does not suspend, and threads that the runtime's own walk
refused.",
        measure: |plan, page| paths::stops::run(plan.quick, page),
        needs_quiet: false,
    },
    Part {
        name: "callers",
        heading: "Callers by samples and by calls",
        about: "\
`calls` and `cpu` record one run of the program with known paths. The program's methods on a
sample's stack, except the innermost one, must be a path of the exact calling-context tree. Hooks
force frames on methods and keep precompiled code out, so this can't test what occurs only in code
without hooks.",
        measure: |_, page| paths::callers::run(page),
        needs_quiet: false,
    },
    Part {
        name: "slower",
        heading: "Methods that are made slower",
        about: "\
One method is made slower by one, two and four times its work (k, 2k, 4k), and all others stay as
they are. The method has a frame, is inlined, or has no frame and a caller without a frame. The
phases take turns, and the program measures each with its own CPU clock. *Predicted* is the part's
sampled time in the phase with nothing slower, plus the time that the program took longer. *Bound*
is four standard deviations of the sampling error, plus 3 % of the phase. The table has the five
unchanged parts of each phase only where they are off.",
        measure: |plan, page| paths::slower::run(plan.quick, page),
        needs_quiet: false,
    },
    Part {
        name: "awaiters",
        heading: "Who awaits a method",
        about: "\
Each root waits for its work in a different way. The work throws an exception of its root's own
class after each `await`, while the heap is collected and compacted all the time. An exception is
right if its logical stack in `exceptions` has that root. The others have no root: the work was not
awaited yet (at most 0.5 %), or its awaiter is not known. The latter happens in two ways to wait
only. The agent looks up the class of a pooled builder's box when such a box runs for the first
time, and nothing awaits the first item of a stream yet. Where a pooled builder's box leaves no
frame, as in code that the compiler did not optimise (*debug*), stacks begin at `[pool]`.",
        measure: |_, page| awaiters::run(page),
        needs_quiet: false,
    },
];

/// Headings of all parts.
pub(super) fn headings() -> [&'static str; PARTS.len()] {
    PARTS.map(|part| part.heading)
}
