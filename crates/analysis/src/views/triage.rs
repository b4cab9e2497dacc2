//! The first diagnosis of a program, from a recording of a few seconds: the program's main problem,
//! how certain the diagnosis is, and which command examines the problem further.
//!
//! The evidence is the sentences of the [summary](crate::summary). A problem is reported only if
//! the program would run very differently without it. A healthy program has no problem.

use clrscope_recording::layout::instrument;
use clrscope_recording::model::{Recording, ThreadState};

use super::summary::{Finding, FindingKind, KindRow, Summary, summary};
use crate::collections::{collection_facts, collections};
use crate::counters::{CounterRow, counters};
use crate::numbers::{bytes, number};
use crate::parts::queried_ns;
use crate::query::{Query, QueryProblem};
use crate::samples::SampleKind;

/// Main problem of a program.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Trouble {
    /// At least as many threads of the pool are blocked as there are processors.
    PoolStarved,
    /// Threads wait for a lock that others hold.
    LockConvoy,
    /// The program throws exceptions all the time.
    Exceptions,
    /// Collections suspend the program for a large part of the time.
    Gc,
    /// The program allocates all the time.
    Allocation,
    /// The program uses CPU time.
    Cpu,
    /// The program waits for something outside, or for a timeout.
    Wait,
    /// The heap grows.
    GrowingHeap,
    /// The program has nothing to do.
    Idle,
    /// The program works, and nothing stands out.
    Nothing,
}

impl Trouble {
    /// All problems.
    pub const ALL: [Self; 10] = [
        Self::PoolStarved,
        Self::LockConvoy,
        Self::Exceptions,
        Self::Gc,
        Self::Allocation,
        Self::Cpu,
        Self::Wait,
        Self::GrowingHeap,
        Self::Idle,
        Self::Nothing,
    ];

    /// The name in JSON.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::PoolStarved => "pool-starved",
            Self::LockConvoy => "lock-convoy",
            Self::Exceptions => "exceptions",
            Self::Gc => "gc",
            Self::Allocation => "allocation",
            Self::Cpu => "cpu",
            Self::Wait => "wait",
            Self::GrowingHeap => "growing-heap",
            Self::Idle => "idle",
            Self::Nothing => "nothing",
        }
    }

    /// Description of the problem, in words.
    #[must_use]
    pub const fn words(self) -> &'static str {
        match self {
            Self::PoolStarved => "the thread pool is starved: its threads are blocked",
            Self::LockConvoy => "a lock convoy: threads wait for one another",
            Self::Exceptions => "an exception storm",
            Self::Gc => "bound by garbage collections",
            Self::Allocation => "an allocation storm",
            Self::Cpu => "bound by CPU time",
            Self::Wait => "waiting",
            Self::GrowingHeap => "the heap grows: a leak, or a cache that fills",
            Self::Idle => "idle: it has nothing to do",
            Self::Nothing => "nothing stands out",
        }
    }

    fn of_finding(kind: FindingKind) -> Option<Self> {
        Some(match kind {
            FindingKind::PoolStarved => Self::PoolStarved,
            FindingKind::LockConvoy => Self::LockConvoy,
            FindingKind::Exceptions => Self::Exceptions,
            FindingKind::Gc => Self::Gc,
            FindingKind::Allocation => Self::Allocation,
            FindingKind::Cpu => Self::Cpu,
            FindingKind::Wait | FindingKind::Await => Self::Wait,
            FindingKind::GrowingHeap => Self::GrowingHeap,
            _ => return None,
        })
    }
}

/// A number that supports a verdict, with its meaning.
#[derive(Debug, Clone, PartialEq)]
pub struct Evidence {
    /// What the number means, in words.
    pub text: String,
    /// The number.
    pub value: f64,
    /// Unit of the number.
    pub unit: &'static str,
}

/// A verdict: one problem, with evidence.
#[derive(Debug, Clone, PartialEq)]
pub struct TriageVerdict {
    /// The problem.
    pub trouble: Trouble,
    /// Whether the evidence excludes the other problems. If not, the verdict is only likely.
    pub is_certain: bool,
    /// Average number of threads that the problem occupies.
    pub cost: f64,
    /// The most important sentence of the summary about the problem; `None` if there is none.
    pub finding: Option<Finding>,
    /// Further numbers that support the verdict.
    pub evidence: Vec<Evidence>,
}

/// Key numbers of a program.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Vitals {
    /// Observed time, in nanoseconds.
    pub time_ns: u64,
    /// Average number of busy processors; `None` if CPU time was not sampled.
    pub cpu: Option<f64>,
    /// Average number of threads that were ready to run but had no processor, according to samples
    /// of `wall`. Only threads whose work is known count.
    pub ready: f64,
    /// Share of the observed time during which collections paused the program, 0 to 1.
    pub paused: f64,
    /// Allocated bytes per second; `None` if unknown.
    pub allocated: Option<f64>,
    /// Thrown exceptions per second; `None` if unknown.
    pub thrown: Option<f64>,
    /// Waits for locks per second; `None` if unknown.
    pub contended: Option<f64>,
    /// Number of work items in the pool's queue: the maximum, and the number at the end. `None` if
    /// not known.
    pub queue: Option<(f64, f64)>,
    /// Share of the CPU time that collections and allocations took, 0 to 1.
    pub memory_work: f64,
}

/// Result of the diagnosis.
#[derive(Debug, Clone)]
pub struct Triage {
    /// Key numbers of the program.
    pub vitals: Vitals,
    /// Verdicts, the worst problem first; at least one.
    pub verdicts: Vec<TriageVerdict>,
}

/// Minimum number of busy processors for a program to count as CPU-bound. Only its busiest code is
/// measured.
const BUSY: f64 = 0.5;
/// Number of threads occupied by a wait that is worth a verdict.
const WAITING: f64 = 0.5;
/// Share of the time in collections that is worth a verdict.
const PAUSED: f64 = 0.10;
/// Allocated bytes per second that are worth a verdict.
const ALLOCATED: f64 = 50e6;
/// Allocated bytes per second that are a problem by themselves, whatever code allocates them.
const STORM: f64 = 300e6;
/// Exceptions per second that are worth a verdict.
const THROWN: f64 = 100.0;
/// Maximum number of busy processors of an idle program.
const IDLE: f64 = 0.05;
/// Maximum number of processors that the own code of an idle program keeps busy.
const OWN_IDLE: f64 = 0.02;
/// If the cost of a second problem is less than this part of the first one's cost, it does not make
/// the first verdict uncertain.
const MUCH_LESS: f64 = 0.25;

/// Diagnoses a whole recording.
///
/// # Errors
/// When the query matches no process, or neither samples nor calls were recorded.
pub fn triage(recording: &Recording, query: &Query) -> Result<Triage, QueryProblem> {
    let view = summary(recording, query)?;
    let rows = counters(recording, query, &[]).map(|(rows, _)| rows).unwrap_or_default();
    let vitals = vitals(recording, query, &view, &rows);
    let mut verdicts: Vec<TriageVerdict> = Vec::new();
    let sleeps = |one: &TriageVerdict| one.finding.as_ref().is_some_and(|finding| finding.is_sleep);
    for finding in &view.findings {
        let Some(trouble) = Trouble::of_finding(finding.kind) else { continue };
        if !is_trouble(trouble, finding, &vitals) {
            continue;
        }
        match verdicts.iter_mut().find(|known| known.trouble == trouble) {
            None => verdicts.push(verdict(trouble, finding, &vitals)),
            // A wait for something is better evidence than a sleep.
            Some(known) if sleeps(known) && !finding.is_sleep => *known = verdict(trouble, finding, &vitals),
            Some(_) => {}
        }
    }
    // Threads sleep in healthy programs, too.
    let is_sound = verdicts.iter().all(sleeps);
    verdicts.extend(slow_requests(&rows, &vitals).filter(|_| is_sound));
    if verdicts.iter().all(|known| known.trouble != Trouble::GrowingHeap) {
        verdicts.extend(growing(recording, query));
    }
    verdicts.sort_by(|a, b| b.cost.total_cmp(&a.cost));
    // While some threads have a problem, other threads always wait.
    let first = verdicts.first().map(|first| first.trouble);
    verdicts.retain(|one| one.trouble != Trouble::Wait || first == Some(Trouble::Wait));
    let own_ns = view.own.iter().fold(0_u64, |sum, own| sum.saturating_add(own.work_ns));
    let own = own_ns as f64 / vitals.time_ns.max(1) as f64;
    // A program that sleeps and hardly works has nothing to do; in a program that works, the sleeps
    // delay the work.
    let is_idle = |one: &TriageVerdict| own < OWN_IDLE && one.trouble == Trouble::Wait && sleeps(one);
    verdicts.iter_mut().filter(|one| is_idle(one)).for_each(|one| one.trouble = Trouble::Idle);
    if verdicts.iter().any(|one| one.trouble != Trouble::Idle) {
        verdicts.retain(|one| one.trouble != Trouble::Idle);
    }
    if verdicts.is_empty() {
        let is_idle = vitals.cpu.is_some_and(|cpu| cpu < IDLE);
        let trouble = if is_idle { Trouble::Idle } else { Trouble::Nothing };
        let evidence = vitals.cpu.map(processors).into_iter().collect();
        verdicts.push(TriageVerdict { trouble, is_certain: false, cost: 0.0, finding: None, evidence });
    }
    judge(&mut verdicts, &vitals);
    Ok(Triage { vitals, verdicts })
}

/// An event counter of the runtime.
fn of_runtime<'c, 'a>(rows: &'c [CounterRow<'a>], name: &str) -> Option<&'c CounterRow<'a>> {
    rows.iter().find(|row| row.provider == "System.Runtime" && row.name == name)
}

fn vitals(recording: &Recording, query: &Query, view: &Summary<'_>, rows: &[CounterRow<'_>]) -> Vitals {
    let time_ns = queried_ns(recording, query);
    let mean = |name: &str| of_runtime(rows, name).map(CounterRow::mean);
    let cpu_ns: u64 = view.kinds.iter().map(|row| row.time_ns).sum();
    let memory = |row: &&KindRow| row.kind == SampleKind::Gc;
    let memory_ns: u64 = view.kinds.iter().filter(memory).map(|row| row.time_ns).sum();
    let of_time = |ns: u64| ns as f64 / time_ns.max(1) as f64;
    let seconds = time_ns.max(1) as f64 / 1e9;
    // It is not known which work time without a place belongs to.
    let ready = view.states.iter().filter(|row| row.state == ThreadState::Ready);
    let ready_ns: u64 = ready.map(|row| row.time_ns.saturating_sub(row.unplaced_ns)).sum();
    let is_sampled = recording.processes.iter().any(|process| process.arenas(instrument::CPU).next().is_some());
    Vitals {
        time_ns,
        cpu: is_sampled.then(|| of_time(cpu_ns)),
        ready: of_time(ready_ns),
        paused: collection_facts(recording, query).map_or(0.0, |facts| of_time(facts.pause_ns)),
        allocated: view.allocated.as_ref().map(|all| all.bytes as f64 / seconds).or_else(|| mean("alloc-rate")),
        thrown: mean("exception-count"),
        contended: mean("monitor-lock-contention-count"),
        queue: of_runtime(rows, "threadpool-queue-length").map(|row| (row.max(), row.value())),
        memory_work: memory_ns as f64 / cpu_ns.max(1) as f64,
    }
}

/// Whether a sentence reports a problem of the program.
fn is_trouble(trouble: Trouble, finding: &Finding, vitals: &Vitals) -> bool {
    match trouble {
        // On a busy machine a program gets less CPU time than it needs.
        Trouble::Cpu => finding.cost + finding.share * vitals.ready >= BUSY,
        Trouble::Wait => finding.cost >= WAITING,
        Trouble::Gc => vitals.paused >= PAUSED,
        Trouble::Allocation => vitals.allocated.is_some_and(|rate| rate >= ALLOCATED),
        Trouble::Exceptions => vitals.thrown.is_none_or(|rate| rate >= THROWN),
        _ => true,
    }
}

fn verdict(trouble: Trouble, finding: &Finding, vitals: &Vitals) -> TriageVerdict {
    let mut evidence = Vec::new();
    let mut cost = finding.cost;
    let per_second = |text: String, value: f64, unit| Evidence { text: format!("{text} per second"), value, unit };
    match trouble {
        Trouble::Cpu => {
            evidence.extend(vitals.cpu.map(processors));
            let ready = vitals.ready;
            let text = format!("{ready:.1} threads wanted a processor and got none");
            evidence.extend((ready >= 0.2).then_some(Evidence { text, value: ready, unit: "threads" }));
            cost += finding.share * ready;
        }
        // Threads sleep in healthy programs, too.
        Trouble::Wait if finding.is_sleep => cost = cost.min(0.001),
        Trouble::Exceptions => evidence.extend(
            vitals.thrown.map(|rate| per_second(format!("{} exceptions", number(rate as u64)), rate, "exceptions/s")),
        ),
        Trouble::Allocation => {
            let rate = vitals.allocated.unwrap_or_default();
            evidence.push(per_second(format!("{} allocated", bytes(rate as u64)), rate, "bytes/s"));
            // The allocating code is busy with allocations and their consequences.
            if rate >= STORM && vitals.paused < PAUSED * 2.0 {
                cost = cost.max(vitals.cpu.unwrap_or_default() + vitals.ready);
            }
        }
        Trouble::Gc => {
            evidence.push(share("of the time it was stopped for collections", vitals.paused));
            // This includes threads that wait meanwhile, and the time of collections on other
            // processors.
            cost = cost.max(vitals.paused * 2.0);
        }
        Trouble::LockConvoy => evidence.extend(
            vitals
                .contended
                .map(|rate| per_second(format!("{} waits for locks", number(rate as u64)), rate, "waits/s")),
        ),
        _ => {}
    }
    TriageVerdict { trouble, is_certain: false, cost, finding: Some(finding.clone()), evidence }
}

fn processors(cpu: f64) -> Evidence {
    Evidence { text: format!("{cpu:.2} processors busy"), value: cpu, unit: "processors" }
}

fn share(what: &str, share: f64) -> Evidence {
    Evidence { text: format!("{:.0} % {what}", share * 100.0), value: share, unit: "share" }
}

/// Served or outgoing requests that mostly wait: during most of their time no processor works for
/// them.
fn slow_requests(rows: &[CounterRow<'_>], vitals: &Vitals) -> Option<TriageVerdict> {
    /// Least request time, in seconds, and least number of requests in flight that are worth a
    /// verdict.
    const LEAST: (f64, f64) = (0.1, 0.5);
    let time_s = vitals.time_ns.max(1) as f64 / 1e9;
    let of = |name: &str, what: &str| {
        let rows = rows.iter().filter(|row| row.name == name);
        let (seconds, count) =
            rows.fold((0.0, 0), |(total, count), row| (total + row.total.unwrap_or(0.0), count + row.count));
        let mean = seconds / count.max(1) as f64;
        let text = format!("{} requests that it {what} took {:.0} ms on average", number(count), mean * 1e3);
        (count > 0).then_some((Evidence { text, value: mean, unit: "s" }, seconds / time_s))
    };
    let (served, made) = (of("http.server.request.duration", "served"), of("http.client.request.duration", "made"));
    // A server is judged by the requests that it serves; a program that serves none, by its
    // outgoing requests.
    let (mean, in_flight) =
        served.as_ref().or(made.as_ref()).map(|(evidence, in_flight)| (evidence.value, *in_flight))?;
    if mean < LEAST.0 || in_flight < LEAST.1 || vitals.cpu.is_some_and(|cpu| cpu > in_flight / 2.0) {
        return None;
    }
    let requests = [served, made].into_iter().flatten().map(|(evidence, _)| evidence);
    let evidence = requests.chain(vitals.cpu.map(processors)).collect();
    Some(TriageVerdict { trouble: Trouble::Wait, is_certain: false, cost: in_flight, finding: None, evidence })
}

/// A heap that is larger after each full collection. Ten seconds are too short for certainty.
fn growing(recording: &Recording, query: &Query) -> Option<TriageVerdict> {
    /// Least growth in bytes.
    const LEAST: f64 = 8e6;
    /// Least growth in ten seconds, in bytes and as a part of the heap.
    const LEAST_IN_TEN: (f64, f64) = (20e6, 0.25);
    /// Least time of the growth, in seconds.
    const LEAST_S: f64 = 2.0;
    let (sizes, are_full) = sizes_after_collections(recording, query)?;
    let ((began_ns, first), (ended_ns, last)) = (*sizes.first()?, *sizes.last()?);
    let falls = sizes.windows(2).filter(|pair| pair[1].1 < pair[0].1 * 0.98).count();
    let (grown, seconds) = (last - first, ended_ns.saturating_sub(began_ns) as f64 / 1e9);
    let in_ten = grown / seconds.max(LEAST_S) * 10.0;
    let is_little = grown < LEAST || in_ten < LEAST_IN_TEN.0 || in_ten < first * LEAST_IN_TEN.1;
    if falls > 0 || seconds < LEAST_S || is_little {
        return None;
    }
    let per_minute = in_ten * 6.0;
    let after = if are_full { "full collections" } else { "collections, one of them full" };
    let text = format!("+{} per minute after {after}", bytes(per_minute as u64));
    let evidence = vec![Evidence { text, value: per_minute, unit: "bytes/min" }];
    Some(TriageVerdict { trouble: Trouble::GrowingHeap, is_certain: false, cost: 0.05, finding: None, evidence })
}

/// Sizes of the first process's heap after full collections, each with its time. If there is only
/// one full collection and it freed little, sizes after collections of generation 1 are included,
/// because the oldest generation then holds little garbage. `None` if there are too few sizes.
fn sizes_after_collections(recording: &Recording, query: &Query) -> Option<(Vec<(u64, f64)>, bool)> {
    /// Least part of the heap that is left by a collection that frees little.
    const LEFT: f64 = 0.8;
    let rows = collections(recording, query).ok()?;
    let pid = rows.first()?.process.pid;
    let after = |least: u32| -> Vec<(u64, f64)> {
        let of_process = rows.iter().filter(|row| row.process.pid == pid && row.generation >= least);
        of_process.filter_map(|row| Some((row.end_ns?, row.live_bytes()? as f64))).collect()
    };
    let full = after(2);
    if full.len() > 1 {
        return Some((full, true));
    }
    let (at_ns, left) = *full.first()?;
    let all = after(1);
    let most = all.iter().filter(|(end_ns, _)| *end_ns < at_ns).fold(0.0_f64, |most, (_, size)| most.max(*size));
    (left >= most * LEFT).then_some((all, false))
}

/// Decides whether the evidence for the first verdict excludes the others.
fn judge(verdicts: &mut [TriageVerdict], vitals: &Vitals) {
    let Some((first, others)) = verdicts.split_first_mut() else { return };
    let is_alone = others.iter().all(|other| other.cost <= first.cost * MUCH_LESS);
    let surely = first.finding.as_ref().map_or(0.0, |finding| finding.bounds.0);
    let cpu = vitals.cpu.unwrap_or_default();
    let is_quiet = vitals.paused < PAUSED / 2.0 && vitals.thrown.is_none_or(|rate| rate < THROWN);
    first.is_certain = is_alone
        && match first.trouble {
            Trouble::Cpu => {
                cpu + vitals.ready >= 0.8
                    && surely >= 0.5
                    && is_quiet
                    && vitals.allocated.is_some_and(|rate| rate < ALLOCATED)
            }
            Trouble::LockConvoy => first.cost >= 1.5,
            Trouble::PoolStarved => vitals.queue.is_some_and(|(most, last)| most >= 5.0 && last > 0.0),
            Trouble::Exceptions => vitals.thrown.is_some_and(|rate| rate >= THROWN * 10.0),
            Trouble::Gc => vitals.paused >= PAUSED * 3.0,
            Trouble::Allocation => vitals.allocated.is_some_and(|rate| rate >= STORM),
            Trouble::Wait => first.finding.is_some() && first.cost >= 0.9 && cpu < BUSY && is_quiet,
            Trouble::Idle => cpu < IDLE / 2.0,
            Trouble::GrowingHeap | Trouble::Nothing => false,
        };
}
