//! Callers of probed methods: calls, failures and times by the call paths that lead to each method.
//!
//! The sums of a method's callers add up to the sums of the method. Calls belong to an unknown
//! caller if their callers were not recorded, found no room, or were not resolved before the
//! program was killed.

use std::cmp::{Ordering, Reverse};

use clrscope_recording::layout::instrument;
use clrscope_recording::model::{
    Function, FunctionKind, Module, ProbeCaller, ProbedMethod, Process, Recording, StackFrame, Stacks,
};
use rustc_hash::FxHashMap;

use crate::function::{FunctionRef, library_frame};
use crate::probes::{ProbeRow, order};
use crate::query::{Query, QueryProblem, Sort};
use crate::select;

/// Instrument with the option that records callers.
const CALLERS: &str = "probes:callers";
/// Maximum number of callers of a path that are shown. No writer keeps so many.
const DEEPEST: u32 = 32;
/// Number of nodes per row of a limit, and minimum number of nodes per method.
const NODES_OF_ROW: usize = 4;
const NODES_OF_METHOD: usize = 32;
/// Name of unknown callers.
const UNKNOWN_CALLER: &str = "(unknown caller)";

/// Sums over calls of a probed method.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct CallerSums {
    /// Number of calls that began.
    pub calls: u64,
    /// Number of calls that ended with an exception.
    pub failed: u64,
    /// Number of calls that ended.
    pub ended: u64,
    /// Wall time of the ended calls, without calls that were nested in another call of the method
    /// on the same thread.
    pub total_ns: u64,
    /// Wall time of all ended calls.
    all_ns: u64,
}

impl CallerSums {
    /// Mean time of a call; `None` if no call ended.
    #[must_use]
    pub fn mean_ns(&self) -> Option<u64> {
        self.all_ns.checked_div(self.ended)
    }
}

/// Sums before rounding. If each sum were rounded to nanoseconds, a thousand callers with one short
/// call each would lose a thousand fractions.
#[derive(Debug, Clone, Copy, Default)]
struct ExactSums {
    calls: u64,
    failed: u64,
    ended: u64,
    total_ns: f64,
    all_ns: f64,
}

impl ExactSums {
    fn from_row(row: &ProbeRow) -> Self {
        let (total_ns, all_ns) = (row.total_ns as f64, row.all_ns as f64);
        Self { calls: row.calls, failed: row.failed, ended: row.ended(), total_ns, all_ns }
    }

    fn add(&mut self, other: &Self) {
        self.calls = self.calls.saturating_add(other.calls);
        self.failed = self.failed.saturating_add(other.failed);
        self.ended = self.ended.saturating_add(other.ended);
        self.total_ns += other.total_ns;
        self.all_ns += other.all_ns;
    }

    fn without(&self, other: &Self) -> Self {
        Self {
            calls: self.calls.saturating_sub(other.calls),
            failed: self.failed.saturating_sub(other.failed),
            ended: self.ended.saturating_sub(other.ended),
            total_ns: (self.total_ns - other.total_ns).max(0.0),
            all_ns: (self.all_ns - other.all_ns).max(0.0),
        }
    }

    fn rounded(&self) -> CallerSums {
        let &Self { calls, failed, ended, total_ns, all_ns } = self;
        CallerSums { calls, failed, ended, total_ns: total_ns.round() as u64, all_ns: all_ns.round() as u64 }
    }
}

/// A node of the trees of callers, in preorder. The root of a tree is a probed method. Below each
/// node are its callers.
#[derive(Debug, Clone, Copy)]
pub struct CallerNode<'a> {
    /// Depth of the node: 0 for a probed method, 1 for its callers.
    pub depth: u32,
    /// The probed method or the caller.
    pub function: FunctionRef<'a>,
    /// Calls of the probed method through this path.
    pub sums: CallerSums,
}

/// Callers of the probed methods of a recording.
pub struct ProbeCallers<'a> {
    processes: Vec<&'a Process>,
    methods: Vec<CalledMethod>,
    sort: Option<Sort>,
    limit: usize,
    /// Number of nodes of a method at most.
    most: usize,
    left_out: usize,
}

/// The selection of the nodes of one method that are shown.
struct NodesToShow {
    /// Sums of the method.
    of: CallerSums,
    min_share: f64,
    left: usize,
    left_out: usize,
}

impl NodesToShow {
    /// Whether a node is shown: it is large enough and within the limit.
    fn takes(&mut self, sums: &CallerSums) -> bool {
        let is_part = |of: fn(&CallerSums) -> u64| of(sums) as f64 >= of(&self.of).max(1) as f64 * self.min_share;
        let takes = self.left > 0 && (is_part(|sums| sums.calls) || is_part(|sums| sums.total_ns));
        self.left -= usize::from(takes);
        self.left_out += usize::from(!takes);
        takes
    }
}

/// A probed method with the call paths that lead to it.
struct CalledMethod {
    row: ProbeRow,
    ways: Vec<CallPath>,
}

/// Calls of a method on one path.
#[derive(Clone, Copy)]
struct CallPath {
    /// Index of the process.
    process: usize,
    /// Number of the stack that remains of the path.
    stack: u32,
    /// Number of the caller at the current depth.
    caller: u32,
    sums: ExactSums,
}

impl CallPath {
    fn from_record(at: usize, process: &Process, method: (u32, u32), record: &ProbeCaller) -> Self {
        let all_ns = record.ticks as f64 * process.ticks.ns_per_tick;
        let total_ns = if is_called_within(process, method, record.stack) { 0.0 } else { all_ns };
        let ProbeCaller { calls, failed, ended, .. } = *record;
        let stack = process.stacks.caller(record.stack).unwrap_or(0);
        Self { process: at, stack, caller: NO_CALLER, sums: ExactSums { calls, failed, ended, total_ns, all_ns } }
    }
}

/// Whether a method, given by module and token, is among the recorded callers of a stack.
fn is_called_within(process: &Process, method: (u32, u32), stack: u32) -> bool {
    let identity = |frame| match frame {
        StackFrame::Method { function, .. } => process.functions.get(function as usize),
        _ => None,
    };
    let callers = process.stacks.frames(stack).skip(1).filter_map(identity);
    callers.map(|caller| (caller.module, caller.token)).any(|caller| caller == method)
}

impl<'a> ProbeCallers<'a> {
    /// The callers of probed methods in the processes that a query selects, the method with the
    /// most time first.
    ///
    /// # Errors
    /// When the query selects no process, or no callers were recorded.
    pub fn open(recording: &'a Recording, query: &Query) -> Result<Self, QueryProblem> {
        query.without_metric("probes")?;
        let processes: Vec<&Process> = select::processes(recording, query)?.into_iter().collect();
        if !processes.iter().any(|process| process.arenas(instrument::PROBE_CALLERS).next().is_some()) {
            return Err(QueryProblem::NotRecorded { view: "probes", instrument: CALLERS });
        }
        let mut methods = called(&processes, query);
        order(&mut methods, query.sort, |called| &called.row);
        let left_out = query.cut(&mut methods);
        let limit = query.limit.unwrap_or(usize::MAX);
        let most = (limit.saturating_mul(NODES_OF_ROW) / methods.len().max(1)).max(NODES_OF_METHOD);
        Ok(Self { processes, methods, sort: query.sort, limit, most, left_out })
    }

    /// Calls `visit` with every node. Leaves out nodes that have less than `min_share` of the
    /// method's calls and also less than `min_share` of its time. Returns the number of nodes that
    /// the share and the limit left out.
    ///
    /// # Errors
    /// The error of `visit`.
    pub fn walk<E>(&self, min_share: f64, mut visit: impl FnMut(&CallerNode<'_>) -> Result<(), E>) -> Result<usize, E> {
        let (mut names, mut left_out) = (Names::default(), self.left_out);
        for called in &self.methods {
            let row = &called.row;
            let sums = ExactSums::from_row(row).rounded();
            let (name, signature) = (row.name.clone(), row.signature.clone());
            let function = Function { name, signature, ..Function::default() };
            let module = Module { name: row.module.clone(), ..Module::default() };
            visit(&CallerNode {
                depth: 0,
                function: FunctionRef { pid: 0, function: &function, module: &module },
                sums,
            })?;
            let mut ways = called.ways.clone();
            let mut shown = NodesToShow { of: sums, min_share, left: self.most, left_out: 0 };
            self.level(&mut ways, 1, ExactSums::from_row(row), (&mut names, &mut shown), &mut visit)?;
            left_out += shown.left_out;
        }
        Ok(left_out)
    }

    /// Visits the callers of paths at a depth, each with its own callers. What is missing from the
    /// sums in `rest` belongs to an unknown caller.
    fn level<E>(
        &self,
        ways: &mut [CallPath],
        depth: u32,
        mut rest: ExactSums,
        (names, shown): (&mut Names, &mut NodesToShow),
        visit: &mut impl FnMut(&CallerNode<'_>) -> Result<(), E>,
    ) -> Result<(), E> {
        let mut sums: FxHashMap<u32, ExactSums> = FxHashMap::default();
        for way in ways.iter_mut() {
            let process = self.processes[way.process];
            way.caller = names.caller(process, &process.stacks, way.stack);
            way.stack = process.stacks.caller(way.stack).unwrap_or(0);
            if way.caller != NO_CALLER {
                sums.entry(way.caller).or_default().add(&way.sums);
                rest = rest.without(&way.sums);
            }
        }
        if rest.calls > 0 {
            sums.entry(names.unknown()).or_default().add(&rest);
        }
        let mut callers: Vec<(u32, CallerSums)> =
            sums.into_iter().map(|(caller, sums)| (caller, sums.rounded())).collect();
        callers.sort_by(|a, b| self.compare(names, a, b));
        shown.left_out += callers.len().saturating_sub(self.limit);
        callers.truncate(self.limit);
        ways.sort_by_key(|way| way.caller);
        // Determine the ranges before the first caller is visited, because the visit changes its
        // paths.
        let end = |caller: u32| ways.partition_point(|way| way.caller < caller);
        let all: Vec<_> =
            callers.into_iter().map(|(caller, sums)| (caller, sums, end(caller)..end(caller + 1))).collect();
        for (caller, sums, of_caller) in all {
            if !shown.takes(&sums) {
                continue;
            }
            visit(&CallerNode { depth, function: names.function(caller), sums })?;
            if depth < DEEPEST && !of_caller.is_empty() {
                self.level(&mut ways[of_caller], depth + 1, ExactSums::default(), (&mut *names, &mut *shown), visit)?;
            }
        }
        Ok(())
    }

    fn compare(&self, names: &Names, a: &(u32, CallerSums), b: &(u32, CallerSums)) -> Ordering {
        let [first, second] = [a, b].map(|(caller, _)| names.function(*caller));
        let by_size = |of: fn(&CallerSums) -> (u64, u64)| Reverse(of(&a.1)).cmp(&Reverse(of(&b.1)));
        let ordered = match self.sort {
            Some(Sort::Name) => Ordering::Equal,
            Some(Sort::Module) => first.module().cmp(second.module()),
            Some(Sort::Calls) => by_size(|sums| (sums.calls, sums.total_ns)),
            _ => by_size(|sums| (sums.total_ns, sums.calls)),
        };
        ordered.then_with(|| first.compare(&second))
    }
}

/// The probed methods of processes, each with its call paths.
fn called(processes: &[&Process], query: &Query) -> Vec<CalledMethod> {
    let mut places = FxHashMap::default();
    let mut methods: Vec<CalledMethod> = Vec::new();
    for (at, process) in processes.iter().enumerate() {
        let mut numbers: FxHashMap<u32, (usize, (u32, u32))> = FxHashMap::default();
        for chunk in process.arenas(instrument::PROBES).flat_map(|arena| &arena.chunks) {
            for method in ProbedMethod::all(&chunk.bytes.load()) {
                let module = process.module_name(method.module);
                if !query.wants_method(module, &method.name, &method.signature) {
                    continue;
                }
                let key = (method.name.clone(), method.signature.clone(), module.to_owned());
                let place = *places.entry(key).or_insert_with_key(|(name, signature, module)| {
                    let row = ProbeRow::of_method(name, signature, module);
                    methods.push(CalledMethod { row, ways: Vec::new() });
                    methods.len() - 1
                });
                methods[place].row.add(process, &method);
                numbers.insert(method.number, (place, (method.module, method.token)));
            }
        }
        for chunk in process.arenas(instrument::PROBE_CALLERS).flat_map(|arena| &arena.chunks) {
            for record in ProbeCaller::all(&chunk.bytes.load()).filter(|record| record.stack != 0 && record.calls > 0) {
                if let Some((place, method)) = numbers.get(&record.method) {
                    methods[*place].ways.push(CallPath::from_record(at, process, *method, &record));
                }
            }
        }
    }
    methods
}

/// Stands for no caller: the path is not known any further.
const NO_CALLER: u32 = 0;

/// Names of callers by number, from 1, each once over all processes.
#[derive(Default)]
struct Names {
    all: Vec<(Function, Module)>,
    numbers: FxHashMap<(String, String, String), u32>,
}

impl Names {
    /// The caller that is the innermost frame of a stack.
    fn caller(&mut self, process: &Process, stacks: &Stacks, stack: u32) -> u32 {
        let made = |name: String, kind| Function { signature: name.clone(), name, kind, ..Function::default() };
        match stacks.frames(stack).next() {
            None => NO_CALLER,
            Some(StackFrame::Method { function, .. }) => {
                let known = FunctionRef::new(process, process.functions.get(function as usize));
                self.number(known.function, known.module)
            }
            Some(StackFrame::Native { module, .. }) => {
                let library = process.modules.get(module as usize);
                let of = library.cloned().unwrap_or_default();
                self.number(&made(library_frame(library), FunctionKind::Native), &of)
            }
            Some(_) => self.unknown(),
        }
    }

    /// The unknown caller.
    fn unknown(&mut self) -> u32 {
        let name = UNKNOWN_CALLER.to_owned();
        let function = Function { signature: name.clone(), name, kind: FunctionKind::Runtime, ..Function::default() };
        self.number(&function, &Module::default())
    }

    fn number(&mut self, function: &Function, module: &Module) -> u32 {
        let key = (function.name.clone(), function.signature.clone(), module.name.clone());
        *self.numbers.entry(key).or_insert_with(|| {
            self.all.push((function.clone(), module.clone()));
            self.all.len() as u32
        })
    }

    fn function(&self, caller: u32) -> FunctionRef<'_> {
        let (function, module) = &self.all[caller as usize - 1];
        FunctionRef { pid: 0, function, module }
    }
}

#[cfg(test)]
mod tests {
    use std::convert::Infallible;
    use std::sync::Arc;

    use clrscope_recording::layout::probes as layout;
    use clrscope_recording::model::{EventArena, EventChunk, StacksBuilder, TickClock};

    use super::*;

    /// A method that was called `calls` times, and the paths to it: callers, the innermost first,
    /// with calls.
    fn recording(calls: u8, ways: &[(&[u32], u64)]) -> Recording {
        let names = ["", "Shop.Cart::Add", "A", "B", "C"];
        let function = |name: &&str| Function { name: (*name).to_owned(), ..Function::default() };
        let method = ProbedMethod { token: 7, number: 1, name: names[1].to_owned(), ..ProbedMethod::default() };
        let mut bytes = method.to_empty_bytes(1);
        bytes[layout::HEAD + layout::CALLS] = calls;
        bytes[layout::HEAD + layout::BUCKETS] = calls;
        bytes[layout::HEAD + layout::TICKS] = 100;
        let mut stacks = StacksBuilder::default();
        let mut record = |(callers, calls): &(&[u32], u64)| {
            let frames: Vec<_> =
                [1].iter().chain(*callers).map(|function| StackFrame::method(*function, None)).collect();
            let stack = if callers.is_empty() { 0 } else { stacks.stack(&frames, false) };
            let (calls, ended, ticks) = (*calls, *calls, *calls * 2);
            ProbeCaller { method: 1, stack, calls, ended, ticks, ..ProbeCaller::default() }.to_bytes()
        };
        let records: Vec<u8> = ways.iter().flat_map(&mut record).collect();
        let arena = |instrument: &str, bytes: Vec<u8>| {
            let chunks = vec![EventChunk { thread: u32::MAX, sequence: 0, bytes: bytes.into() }];
            EventArena { instrument: instrument.into(), chunks }
        };
        let process = Process {
            ticks: TickClock { start: 0, ns_per_tick: 1.0 },
            functions: names.iter().map(function).collect(),
            events: vec![arena(instrument::PROBES, bytes), arena(instrument::PROBE_CALLERS, records)],
            stacks: Arc::new(stacks.finish()),
            ..Process::default()
        };
        Recording { processes: vec![process], ..Recording::default() }
    }

    fn nodes(recording: &Recording, query: &Query) -> Vec<(u32, String, u64)> {
        let callers = ProbeCallers::open(recording, query).expect("callers");
        let mut nodes = Vec::new();
        let Ok(_) = callers.walk(0.0, |node| -> Result<(), Infallible> {
            nodes.push((node.depth, node.function.name().to_owned(), node.sums.calls));
            Ok(())
        });
        nodes
    }

    /// Paths that were sorted once were searched in the wrong order after those of a previous
    /// caller had been sorted by their own callers.
    #[test]
    fn ways_are_added_up_caller_by_caller_and_what_is_missing_is_nobodys() {
        let ways: &[(&[u32], u64)] =
            &[(&[2, 3], 5), (&[3, 2, 2], 20), (&[2, 4], 7), (&[3, 4], 1), (&[2, 3], 1), (&[], 9)];
        let found = nodes(&recording(40, ways), &Query::default());
        let wanted = [
            (0, "Shop.Cart::Add", 40),
            (1, "B", 21),
            (2, "A", 20),
            (3, "A", 20),
            (2, "C", 1),
            (1, "A", 13),
            (2, "C", 7),
            (2, "B", 6),
            (1, UNKNOWN_CALLER, 6),
        ];
        let wanted: Vec<_> = wanted.into_iter().map(|(depth, name, calls)| (depth, name.to_owned(), calls)).collect();
        let by_calls = Query { sort: Some(Sort::Calls), ..Query::default() };
        assert_eq!(nodes(&recording(40, ways), &by_calls), wanted);
        assert_eq!(found.len(), wanted.len());
        let limited = nodes(&recording(40, ways), &Query { limit: Some(1), ..by_calls.clone() });
        assert_eq!(limited, [0, 1, 2, 3].map(|at| wanted[at].clone()));
        let mut large = Vec::new();
        let callers = ProbeCallers::open(&recording(40, ways), &by_calls).map(|callers| {
            callers.walk(0.2, |node| -> Result<(), Infallible> {
                large.push((node.depth, node.function.name().to_owned(), node.sums.calls));
                Ok(())
            })
        });
        // The calls of unknown callers are few, but took a third of the time.
        assert_eq!((callers, large), (Ok(Ok(3)), [0, 1, 2, 3, 5, 8].map(|at| wanted[at].clone()).to_vec()));
    }

    /// Each of 1,800 callers lost up to a nanosecond: together 7 % of the method's time.
    #[test]
    fn fractions_of_nanoseconds_of_many_callers_add_up() {
        let callers: [&[u32]; 2] = [&[2], &[3]];
        let ways: Vec<_> = (0..50).map(|at| (callers[at % 2], 1)).collect();
        let mut recording = recording(50, &ways);
        recording.processes[0].ticks.ns_per_tick = 0.3;
        let callers = ProbeCallers::open(&recording, &Query::default()).expect("callers");
        let mut times = Vec::new();
        let Ok(_) = callers.walk(0.0, |node| -> Result<(), Infallible> {
            times.push(node.sums.total_ns);
            Ok(())
        });
        // 100 ticks in all, 2 of each call.
        assert_eq!(times, [30, 15, 15]);
    }

    /// A method that `A` calls, and that calls itself once: the time of the inner call is part of
    /// the outer call's time.
    #[test]
    fn time_of_a_way_through_the_method_itself_counts_in_the_mean_alone() {
        let mut recording = recording(2, &[(&[2], 1), (&[1, 2], 1)]);
        recording.processes[0].functions[1].token = 7;
        let callers = ProbeCallers::open(&recording, &Query::default()).expect("callers");
        let mut rows = Vec::new();
        let Ok(_) = callers.walk(0.0, |node| -> Result<(), Infallible> {
            rows.push((node.depth, node.function.name().to_owned(), node.sums.total_ns, node.sums.mean_ns()));
            Ok(())
        });
        let rows: Vec<_> = rows.iter().filter(|row| row.0 == 1).map(|row| (row.1.as_str(), row.2, row.3)).collect();
        assert!(rows.contains(&("Shop.Cart::Add", 0, Some(2))) && rows.contains(&("A", 2, Some(2))), "{rows:?}");
    }

    #[test]
    fn a_recording_without_callers_is_refused_by_the_option_that_makes_them() {
        let mut without = recording(1, &[]);
        without.processes[0].events.truncate(1);
        let refused = ProbeCallers::open(&without, &Query::default()).err();
        assert_eq!(refused, Some(QueryProblem::NotRecorded { view: "probes", instrument: CALLERS }));
    }
}
