//! Sums from the rows of `flow`.

use std::collections::BTreeMap;

use clrscope_analysis::{FlowKind, FlowLog, FlowRow, Query};
use clrscope_recording::model::Recording;

use super::Sums;

/// One activation, while the rows of `flow` go by.
struct Active {
    name: String,
    own: bool,
    depth: u32,
    call: u64,
}

/// What the rows of `flow` say: the same sums, made from events instead of a tree.
#[derive(Default)]
pub(crate) struct FlowSums {
    pub(crate) sums: Sums,
    pub(crate) enters: u64,
    pub(crate) ends: u64,
    pub(crate) unwound: u64,
    /// Calls that had not ended with the last row, threads together.
    pub(crate) open: u64,
    stack: Vec<Active>,
    /// Activations by name on the thread that goes by.
    active: BTreeMap<String, u64>,
    thread: u32,
    last_ns: u64,
}

impl FlowSums {
    /// Replays a recording of one process; `module` is the fixture's own assembly.
    ///
    /// # Panics
    /// When rows contradict each other: time that runs backwards, ends without begins.
    pub(crate) fn of(recording: &Recording, module: &str) -> Self {
        let log = FlowLog::open(recording, &Query::default(), None).expect("flow was recorded");
        let mut all = Self::default();
        let walked = log.walk(|row| -> Result<(), std::convert::Infallible> {
            all.take(row, module);
            Ok(())
        });
        let Ok((functions, left_out)) = walked;
        assert_eq!(left_out, 0);
        assert_eq!(functions.iter().map(|f| f.calls).sum::<u64>(), all.enters, "the function summary");
        all.open += all.stack.len() as u64;
        all
    }

    fn take(&mut self, row: &FlowRow<'_>, module: &str) {
        if row.thread.id != self.thread {
            self.open += self.stack.drain(..).count() as u64;
            self.active.clear();
            self.thread = row.thread.id;
            self.last_ns = 0;
        }
        assert!(row.time_ns >= self.last_ns, "time runs backwards at {row:?}");
        self.last_ns = row.time_ns;
        match row.kind {
            FlowKind::Enter => self.enter(row, module),
            FlowKind::Leave | FlowKind::TailCall => self.end(row),
        }
    }

    fn enter(&mut self, row: &FlowRow<'_>, module: &str) {
        self.enters += 1;
        let name = row.function.name().to_owned();
        // A filter's calls stand under the filter's owner, with the thrower's frames in between.
        let caller = self.stack.iter().rposition(|active| active.depth + 1 == row.depth);
        let sums = &mut self.sums;
        *sums.calls.entry(name.clone()).or_default() += 1;
        *sums.thread_calls.entry((row.thread.name.clone(), name.clone())).or_default() += 1;
        if let Some(caller) = caller {
            *sums.edges.entry((self.stack[caller].name.clone(), name.clone())).or_default() += 1;
            let below = &self.stack[..=caller];
            if let Some(nearest) = below.iter().rev().find(|active| active.own) {
                *sums.under.entry((nearest.name.clone(), name.clone())).or_default() += 1;
            }
        }
        let active = self.active.entry(name.clone()).or_default();
        *active += 1;
        let deepest = sums.max_recursion.entry(name.clone()).or_default();
        *deepest = (*active).max(*deepest);
        let own = row.function.module() == module;
        self.stack.push(Active { name, own, depth: row.depth, call: row.call_count });
    }

    fn end(&mut self, row: &FlowRow<'_>) {
        self.ends += 1;
        self.unwound += u64::from(row.unwound);
        let top = self.stack.pop().unwrap_or_else(|| panic!("an end without a begin: {row:?}"));
        *self.active.entry(top.name.clone()).or_default() -= 1;
        let found = (top.name.as_str(), top.depth, top.call);
        assert_eq!(found, (row.function.name(), row.depth, row.call_count), "the call that ends");
    }
}
