//! Sums from the rows of `flow`.

use std::collections::{BTreeMap, HashMap};

use clrscope_analysis::{FlowKind, FlowLog, FlowRow, Query};
use clrscope_recording::model::Recording;

use super::Sums;

/// A name's number, in the order in which names were first seen.
type NameId = u32;

/// One activation, while the rows of `flow` go by.
struct Active {
    name: NameId,
    /// The innermost of the fixture's own functions up to this one.
    nearest_own: Option<NameId>,
    depth: u32,
    call: u64,
}

/// Numbers by number: a hash table is slow where nothing is optimised.
#[derive(Default)]
struct Counts(Vec<u64>);

impl Counts {
    fn count_mut(&mut self, id: NameId) -> &mut u64 {
        let at = id as usize;
        if self.0.len() <= at {
            self.0.resize(at + 1, 0);
        }
        &mut self.0[at]
    }

    /// Counts without those that are 0.
    fn some(&self) -> impl Iterator<Item = (NameId, u64)> {
        self.0.iter().enumerate().filter(|(_, count)| **count > 0).map(|(at, count)| (at as NameId, *count))
    }
}

/// Counts by two numbers, without those that are 0.
#[derive(Default)]
struct Pairs(Vec<Counts>);

impl Pairs {
    fn count_mut(&mut self, a: NameId, b: NameId) -> &mut u64 {
        let at = a as usize;
        if self.0.len() <= at {
            self.0.resize_with(at + 1, Counts::default);
        }
        self.0[at].count_mut(b)
    }

    fn by_name(&self, name: impl Fn(NameId) -> String) -> BTreeMap<(String, String), u64> {
        let rows = self.0.iter().enumerate();
        let pairs = rows.flat_map(|(a, row)| row.some().map(move |(b, count)| ((a as NameId, b), count)));
        pairs.map(|((a, b), count)| ((name(a), name(b)), count)).collect()
    }
}

/// Sums of `flow` as of a tree, made from events. Numbers stand for names while millions of rows go
/// by.
#[derive(Default)]
pub(crate) struct FlowSums {
    pub(crate) sums: Sums,
    pub(crate) enters: u64,
    pub(crate) ends: u64,
    /// Calls that exceptions ended, by name.
    pub(crate) unwound: BTreeMap<String, u64>,
    /// Calls that had not ended with the last row of their thread.
    pub(crate) open: Vec<Open>,
    names: Vec<String>,
    /// The number of each name, and of the name of each function by its own number.
    by_name: HashMap<String, NameId>,
    by_function: Counts,
    calls: Counts,
    edges: Pairs,
    under: Pairs,
    max_recursion: Counts,
    ended_by_exceptions: Counts,
    stack: Vec<Active>,
    /// On the thread that goes by: activations, and calls.
    active: Counts,
    thread_calls: Counts,
    thread: u32,
    thread_name: String,
    last_ns: u64,
}

/// A call that had not ended with the last row of its thread.
#[derive(Debug)]
pub(crate) struct Open {
    #[expect(dead_code, reason = "failures show it")]
    pub(crate) thread: String,
    pub(crate) function: String,
}

impl FlowSums {
    /// Replays a recording of one process; `module` is the fixture's own assembly.
    ///
    /// # Panics
    /// When rows contradict each other: time that runs backwards, ends without begins.
    pub(crate) fn replay(recording: &Recording, module: &str) -> Self {
        let log = FlowLog::open(recording, &Query::default(), None).expect("flow was recorded");
        let mut all = Self::default();
        let walked = log.walk(|row| -> Result<(), std::convert::Infallible> {
            all.add_row(row, module);
            Ok(())
        });
        let Ok((functions, left_out)) = walked;
        assert_eq!(left_out.rows, 0);
        assert_eq!(functions.iter().map(|f| f.calls).sum::<u64>(), all.enters, "the function summary");
        all.end_thread();
        all.name_sums();
        all
    }

    fn add_row(&mut self, row: &FlowRow<'_>, module: &str) {
        if row.thread.id != self.thread {
            self.end_thread();
            self.thread = row.thread.id;
            self.thread_name.clone_from(&row.thread.name);
        }
        assert!(row.time_ns >= self.last_ns, "time runs backwards at {row:?}");
        self.last_ns = row.time_ns;
        match row.kind {
            FlowKind::Enter => self.enter(row, module),
            FlowKind::Leave | FlowKind::TailCall => self.end(row),
        }
    }

    fn end_thread(&mut self) {
        for open in self.stack.drain(..) {
            let function = self.names[open.name as usize].clone();
            self.open.push(Open { thread: self.thread_name.clone(), function });
        }
        for (name, calls) in std::mem::take(&mut self.thread_calls).some() {
            let key = (self.thread_name.clone(), self.names[name as usize].clone());
            *self.sums.thread_calls.entry(key).or_default() += calls;
        }
        self.active = Counts::default();
        self.last_ns = 0;
    }

    fn name_sums(&mut self) {
        let name = |id: NameId| self.names[id as usize].clone();
        self.sums.calls = self.calls.some().map(|(id, count)| (name(id), count)).collect();
        self.sums.max_recursion = self.max_recursion.some().map(|(id, count)| (name(id), count)).collect();
        self.unwound = self.ended_by_exceptions.some().map(|(id, count)| (name(id), count)).collect();
        self.sums.edges = self.edges.by_name(name);
        self.sums.under = self.under.by_name(name);
    }

    fn name(&mut self, row: &FlowRow<'_>) -> NameId {
        let known = self.by_function.count_mut(row.id);
        if *known == 0 {
            let name = row.function.name();
            let next = self.names.len() as NameId;
            let id = *self.by_name.entry(name.to_owned()).or_insert(next);
            if id == next {
                self.names.push(name.to_owned());
            }
            *known = u64::from(id) + 1;
        }
        *known as NameId - 1
    }

    fn enter(&mut self, row: &FlowRow<'_>, module: &str) {
        self.enters += 1;
        let name = self.name(row);
        // A filter's calls stand under the filter's owner, with the thrower's frames in between.
        let caller = self.stack.iter().rev().find(|active| active.depth + 1 == row.depth);
        let above = caller.map(|caller| (caller.name, caller.nearest_own));
        *self.calls.count_mut(name) += 1;
        *self.thread_calls.count_mut(name) += 1;
        let mut nearest_own = None;
        if let Some((caller, own)) = above {
            *self.edges.count_mut(caller, name) += 1;
            nearest_own = own;
        }
        if let Some(own) = nearest_own {
            *self.under.count_mut(own, name) += 1;
        }
        let active = self.active.count_mut(name);
        *active += 1;
        let deepest = self.max_recursion.count_mut(name);
        *deepest = (*active).max(*deepest);
        if row.function.module() == module {
            nearest_own = Some(name);
        }
        self.stack.push(Active { name, nearest_own, depth: row.depth, call: row.call_count });
    }

    fn end(&mut self, row: &FlowRow<'_>) {
        self.ends += 1;
        let name = self.name(row);
        *self.ended_by_exceptions.count_mut(name) += u64::from(row.unwound);
        let top = self.stack.pop().unwrap_or_else(|| panic!("an end without a begin: {row:?}"));
        *self.active.count_mut(top.name) -= 1;
        assert_eq!((top.name, top.depth, top.call), (name, row.depth, row.call_count), "the call that ends: {row:?}");
    }
}
