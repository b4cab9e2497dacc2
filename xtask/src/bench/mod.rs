//! `cargo xtask bench`: what profiling costs, as ratios of interleaved runs, into
//! `docs/benchmarks.md`.
//!
//! | module | what it holds |
//! |---|---|
//! | [`goals`] | the comparisons |
//! | [`absolute`] | what is no ratio |
//! | [`costs`] | what each instrument costs a web service |
//! | [`attached`] | programs that are attached to |
//! | [`heap`] | snapshots of large heaps, and their analysis |
//! | [`web`] | a web service under load |
//! | [`events`] | the price of an await, and of a contended lock |
//! | [`requests`] | the price of a request |
//! | [`probes`] | the price of a probed call |
//! | [`view`] | served pages of a large recording |
//! | [`suite`] | tests with coverage, compared with other collectors |
//! | [`programs`] | the programs and what they run under |
//! | [`source`] | text for the compiler |
//! | [`series`] | interleaved pairs |
//! | [`report`] | lines of what was measured |
//! | [`page`] | `docs/benchmarks.md` |

mod absolute;
mod attached;
mod costs;
mod events;
mod goals;
mod heap;
mod page;
mod probes;
mod programs;
mod report;
mod requests;
mod series;
mod source;
mod suite;
mod view;
pub(crate) mod web;

use absolute::Line;
use goals::{GOALS, Goal, Limit, ON_EACH};
use page::Page;
use programs::{Bench, Under};
use report::Report;

use crate::agents::newest_runtime;

const USAGE: &str = "usage: cargo xtask bench [--only P1,P2,...] [--pairs N] [--no-file]";

/// A measurement that is no ratio of [`GOALS`]: what it is asked for by, and the lines of the
/// report that it makes.
type Absolute = (&'static str, fn(&Bench, &Plan) -> Result<Vec<Line>, String>);

const ABSOLUTE: [Absolute; 19] = [
    ("P9", |bench, plan| Ok(vec![absolute::flow(bench, plan.pairs)?])),
    ("P10", |_, _| Ok(vec![absolute::open()?])),
    ("P13", |bench, plan| probes::price_of_a_call(bench, plan.pairs)),
    ("P13", |bench, plan| Ok(vec![attached::speed_after_probes(bench, plan.pairs)?])),
    ("awaits", |bench, plan| events::price_of_an_await(bench, plan.pairs)),
    ("locks", |bench, plan| events::price_of_a_contended_lock(bench, plan.pairs)),
    ("P17", |bench, plan| requests::price_of_a_request(bench, plan.pairs)),
    ("P17", |bench, _| Ok(vec![requests::memory(bench)?])),
    ("P14", |_, plan| view::of_a_large_recording(plan.pairs)),
    ("P7", |_, plan| Ok(vec![heap::analysis(plan.pairs)?])),
    ("P7", |bench, _| heap::snapshots(bench)),
    ("memory", |bench, plan| Ok(vec![absolute::threads(bench, plan.pairs)?])),
    ("memory", |bench, _| with_compiler(bench, absolute::memory)),
    ("samples", |bench, _| with_compiler(bench, absolute::samples)),
    ("attach", |bench, plan| Ok(vec![attached::first_sample(bench, plan.pairs)?])),
    ("attach", |bench, plan| Ok(vec![attached::speed_after(bench, plan.pairs)?])),
    ("rates", |_, plan| web::under_load(plan.pairs)),
    ("costs", |_, plan| costs::by_instrument(plan.pairs)),
    ("P8", |_, plan| suite::beside_peers(plan.pairs)),
];

struct Plan {
    /// Ids of the goals to measure; all when empty.
    only: Vec<String>,
    pairs: usize,
    /// Write `docs/benchmarks.md`.
    file: bool,
}

/// Measures, and writes the report.
///
/// # Errors
/// A sentence for a usage error or a failed run. A missed goal is no error: the report states it.
pub(crate) fn run(arguments: &[String]) -> Result<(), String> {
    let plan = parse(arguments)?;
    let bench = Bench::new(newest_runtime()?)?;
    let (ids, mut page) = (ids(), Page::read());
    for id in ids.iter().copied().filter(|id| plan.wants(id)) {
        let part = measure_goal(id, &bench, &plan)?.part();
        // After each, so that a long run that is ended early has not measured in vain.
        if let Some(part) = part.filter(|_| plan.file) {
            page.replace(part);
            page.write(&ids)?;
        }
    }
    Ok(())
}

/// All goals, each once, in the order of the page.
fn ids() -> Vec<&'static str> {
    let all = ABSOLUTE.iter().map(|&(id, _)| id).chain(ON_EACH.iter().chain(&GOALS).map(|goal| goal.id));
    let mut ids = Vec::new();
    for id in all {
        if !ids.contains(&id) {
            ids.push(id);
        }
    }
    ids
}

/// Measures all that belongs to one goal.
#[expect(clippy::print_stdout, reason = "a command line tool")]
fn measure_goal(id: &'static str, bench: &Bench, plan: &Plan) -> Result<Report, String> {
    let mut report = Report::new(id, &bench.runtime.version.to_string(), plan.pairs);
    for (_, measure) in ABSOLUTE.iter().filter(|(of, _)| *of == id) {
        let lines = measure(bench, plan)?;
        if lines.is_empty() {
            println!("{id}: the program that it is measured on is not at hand");
        }
        lines.into_iter().for_each(|line| println!("{}", report.absolute(line)));
    }
    if ON_EACH.iter().any(|goal| goal.id == id) {
        on_each_runtime(id, plan, &mut report)?;
    }
    for goal in GOALS.iter().filter(|goal| goal.id == id) {
        if let Some(why) = bench.why_not(goal.program, goal.subject) {
            println!("{id}: {why}");
            continue;
        }
        println!("{}", report.ratio(goal, goal.what, &measure(bench, goal, plan.pairs)?));
    }
    Ok(report)
}

#[expect(clippy::print_stdout, reason = "a command line tool")]
fn on_each_runtime(id: &str, plan: &Plan, report: &mut Report) -> Result<(), String> {
    for runtime in clrscope_testkit::runtimes() {
        let bench = Bench::new(runtime)?;
        for goal in ON_EACH.iter().filter(|goal| goal.id == id) {
            let what = format!("{}, .NET {}", goal.what, runtime.major());
            println!("{}", report.ratio(goal, &what, &measure(&bench, goal, plan.pairs)?));
        }
    }
    Ok(())
}

/// A line that is measured on the compiler; none where the compiler is not at hand.
fn with_compiler(bench: &Bench, line: fn(&Bench) -> Result<Line, String>) -> Result<Vec<Line>, String> {
    if bench.has_compiler() { Ok(vec![line(bench)?]) } else { Ok(Vec::new()) }
}

fn measure(bench: &Bench, goal: &Goal, pairs: usize) -> Result<series::Series, String> {
    let command = |under: Under| move || bench.command(goal.program, under);
    let series = series::measure(&command(goal.subject), &command(goal.base), pairs)?;
    if goal.program.is_compiler() {
        same_output(bench, goal)?;
    }
    Ok(series)
}

/// A compiler under the agent must write the same bytes as one without.
fn same_output(bench: &Bench, goal: &Goal) -> Result<(), String> {
    crate::measured::run(&mut bench.command(goal.program, goal.subject)?)?;
    let under = bench.compiled()?;
    crate::measured::run(&mut bench.command(goal.program, Under::Bare)?)?;
    if under == bench.compiled()? { Ok(()) } else { Err(format!("{}: the compiler wrote other bytes", goal.what)) }
}

fn parse(arguments: &[String]) -> Result<Plan, String> {
    let mut plan = Plan { only: Vec::new(), pairs: 7, file: true };
    let mut words = arguments.iter();
    while let Some(word) = words.next() {
        match word.as_str() {
            "--only" => plan.only = words.next().ok_or(USAGE)?.split(',').map(str::to_owned).collect(),
            "--pairs" => plan.pairs = words.next().and_then(|n| n.parse().ok()).filter(|&n| n > 0).ok_or(USAGE)?,
            "--no-file" => plan.file = false,
            _ => return Err(USAGE.to_owned()),
        }
    }
    let known = ids();
    if let Some(id) = plan.only.iter().find(|id| !known.contains(&id.as_str())) {
        return Err(format!("{id} is no goal that is measured here, these are: {}\n{USAGE}", known.join(", ")));
    }
    Ok(plan)
}

impl Plan {
    fn wants(&self, id: &str) -> bool {
        self.only.is_empty() || self.only.iter().any(|only| only == id)
    }
}

/// Whether a goal is met, where it is one; `first` is the ratio of the first comparison with its
/// id.
fn verdict(limit: Limit, series: &series::Series, first: f64) -> &'static str {
    let met = match limit {
        Limit::OfFirst(times) => series.ratio.median <= times * first,
        Limit::Ratio(most) => series.ratio.median <= most,
        Limit::MoreMs(most) => series.more_ms.median <= most,
        Limit::None => return "",
    };
    if met { "met" } else { "**missed**" }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_goal_nobody_knows_is_refused() {
        let words = |text: &str| text.split(' ').map(str::to_owned).collect::<Vec<_>>();
        let plan = parse(&words("--only P2,P10 --pairs 3")).expect("a plan");
        assert!(plan.wants("P2") && plan.wants("P10") && !plan.wants("P1") && plan.file && plan.pairs == 3);
        assert!(parse(&words("--only P77")).is_err());
        assert!(parse(&words("--pairs 0")).is_err());
    }
}
