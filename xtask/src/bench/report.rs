//! `docs/benchmarks.md`.

use std::collections::HashMap;
use std::fmt::Write as _;

use clrscope_testkit::workspace_root;

use super::absolute::Line;
use super::goals::{Goal, Limit};
use super::series::Series;
use super::verdict;
use crate::machine;

/// The page as far as it is measured.
pub(super) struct Report {
    head: String,
    ratios: String,
    absolutes: String,
    /// Ratio of the first comparison with an id.
    firsts: HashMap<&'static str, f64>,
    pairs: usize,
    repeated: usize,
    load: (f64, f64),
}

impl Report {
    pub(super) fn new(runtime: &str, pairs: usize) -> Self {
        let head = format!("{}, .NET {runtime}", machine::describe());
        let load = machine::load();
        Self {
            head,
            ratios: String::new(),
            absolutes: String::new(),
            firsts: HashMap::new(),
            pairs,
            repeated: 0,
            load: (load, load),
        }
    }

    /// Adds a comparison; returns its line for the terminal.
    pub(super) fn ratio(&mut self, goal: &Goal, what: &str, series: &Series) -> String {
        let first = *self.firsts.entry(goal.id).or_insert(series.ratio.median);
        let (figure, wanted) = match goal.limit {
            Limit::MoreMs(most) => {
                let more = series.more_ms;
                (format!("{:+.0} ms ({:+.0} to {:+.0})", more.median, more.low, more.high), format!("{most:.0} ms"))
            }
            Limit::Ratio(most) => (ratio(series), format!("{most:.2}")),
            Limit::OfFirst(times) => (ratio(series), format!("{times:.0} x {first:.2}")),
            Limit::None => (ratio(series), String::new()),
        };
        let verdict = verdict(goal.limit, series, first);
        let (subject, base) = series.seconds;
        let (wall, base_wall) = series.wall;
        let _ = writeln!(
            self.ratios,
            "| {} | {} | {figure} | {wanted} | {verdict} | {subject:.2} / {base:.2} | {wall:.2} / {base_wall:.2} |",
            goal.id, what
        );
        self.repeated += series.repeated;
        self.look();
        format!(
            "{:10} {what:56} {figure:24} {wanted:8} {verdict:10} {} pairs, {} repeated",
            goal.id, series.pairs, series.repeated
        )
    }

    /// Adds a line that is no ratio.
    pub(super) fn absolute(&mut self, (id, what, figure, verdict): Line) -> String {
        let _ = writeln!(self.absolutes, "| {id} | {what} | {figure} | {verdict} |");
        self.look();
        format!("{id:10} {what:56} {figure} {verdict}")
    }

    fn look(&mut self) {
        let load = machine::load();
        self.load = (self.load.0.min(load), self.load.1.max(load));
    }

    /// Writes the page.
    pub(super) fn write(&self) -> Result<(), String> {
        let path = workspace_root().join("docs/benchmarks.md");
        std::fs::write(&path, self.page()).map_err(|error| format!("{}: {error}", path.display()))
    }

    fn page(&self) -> String {
        format!(
            "# Benchmarks

Written by `cargo xtask bench`; do not edit.

{}. Load of the machine meanwhile, programs that want a core: {:.1} to {:.1}.

Each line compares two runs of the same program that follow one another, {} pairs of them: the median ratio of their user CPU time, in
brackets the least and the greatest. Pairs whose second half took over 20 % longer than the fastest were repeated: {} in all. Both runs
must print the same, and the compiler must write the same bytes. Seconds are medians; wall time is for information.

| goal | what | measured | at most | | user CPU s | wall s |
|---|---|---|---|---|---|---|
{}
| goal | what | measured | |
|---|---|---|---|
{}
- *Tiny functions*: a recursion that does nothing but call. *Compiler*: the C# compiler on 400 kB of generated, dense source, four pool
  threads. *Libraries*: JSON, XML, regular expressions, LINQ, text and tables of the framework.
- *Empty hooks* and *bare clock reads* are profilers that do only that, in every function; `calls` leaves out the runtime's helpers unless
  `helpers=on`. *Empty callbacks* is a profiler that asks for every callback about exceptions and does nothing in any: the runtime's own
  price. *Precompiled code off*: any enter hook makes the runtime discard precompiled code and recompile everything.
- *Without tiers*: `DOTNET_TieredCompilation=0` for both. With tiers the runtime decides by the clock which methods are compiled
  again and which are instrumented, so a longer run also does more, and no two runs make the same number of calls.
- *Throw and catch*: a program that does nothing else, three methods deep. *Nothing thrown*: calls under `try` and `finally`.
- *Callees in turn*: one caller that calls so many functions over and over, each compiled once (`DOTNET_TieredCompilation=0`); the CPU
  time of the calls alone, by the thread's own clock. Many slow the program down at most three times as much as one does.
- *Idle threads* sleep beside the work of *libraries*; there the time is that of the work by the program's own clock, from its first round
  to its last, with all threads there from the beginning: who stops threads costs that, and no CPU time. *EventPipe's sampler* is the
  runtime's own at 200 Hz, switched on by variables; `dotnet-trace` starts the program with its usual profile. *Web service*: as many
  requests as four connections that are kept open get answered, by a client on the same machine.
- *After detach*: ten rounds of *libraries* over and over; the time of ten rounds after the agent has left over that before it came.
- Processors: the figures above are of the processor named at the top. On an Intel Xeon of the Sapphire Rapids generation tiny functions
  took 1.29 times empty hooks (P2) and 1.13 times two clock reads (P1) in an earlier measurement, where an AMD EPYC had 1.16 and 1.02; that
  was not measured again since.
- Memory per thread, by layout: a record of 256 bytes, 4 KiB of tree and one touched page of shadow stack, more as it calls more.
- The machine has no counters of cache misses (a virtual machine); what is known about where the compiler's time goes comes from
  samples of instruction addresses.
",
            self.head, self.load.0, self.load.1, self.pairs, self.repeated, self.ratios, self.absolutes
        )
    }
}

fn ratio(series: &Series) -> String {
    format!("{:.2} ({:.2} to {:.2})", series.ratio.median, series.ratio.low, series.ratio.high)
}
