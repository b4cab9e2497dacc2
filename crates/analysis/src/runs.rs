//! Trees in preorder whose paths hardly branch. A run is a sequence of nodes in which each node
//! calls only the next one.
//!
//! With millions of deep stacks, most nodes have only one child. Data kept per run instead of per
//! node takes a tenth of the memory, and a walk goes from branch to branch.

/// Nodes in depth-first preorder, grouped into runs. The first run has one node, which represents
/// the threads themselves.
#[derive(Default, PartialEq)]
pub(crate) struct Runs {
    /// Functions of the nodes.
    pub(crate) functions: Vec<u32>,
    /// First node of each run, followed by the number of nodes.
    pub(crate) starts: Vec<u32>,
    /// For each run, the number after the last run below it.
    pub(crate) ends: Vec<u32>,
}

impl Runs {
    /// Number of runs.
    #[inline]
    pub(crate) fn len(&self) -> u32 {
        self.ends.len() as u32
    }

    /// Returns the functions of the nodes of a run, the outermost first.
    #[inline]
    pub(crate) fn functions_of_run(&self, run: u32) -> &[u32] {
        &self.functions[self.starts[run as usize] as usize..self.starts[run as usize + 1] as usize]
    }

    /// The number after the last run below this run.
    #[inline]
    pub(crate) fn end(&self, run: u32) -> u32 {
        self.ends[run as usize]
    }
}

/// Builder of [`Runs`].
#[derive(Default)]
pub(crate) struct GrowingRuns {
    runs: Runs,
    /// The open runs: the ancestors of the next run, the innermost last.
    open: Vec<u32>,
}

impl GrowingRuns {
    /// Number of runs so far.
    pub(crate) fn len(&self) -> u32 {
        self.runs.len()
    }

    /// Begins a run with its first node, below the run `parent`.
    pub(crate) fn begin(&mut self, function: u32, parent: u32) -> u32 {
        let run = self.runs.len();
        while let Some(last) = self.open.pop_if(|last| *last != parent) {
            self.runs.ends[last as usize] = run;
        }
        self.open.push(run);
        self.runs.starts.push(self.runs.functions.len() as u32);
        self.runs.ends.push(run + 1);
        self.runs.functions.push(function);
        run
    }

    /// Adds a node to the run that was begun last.
    #[inline]
    pub(crate) fn extend(&mut self, function: u32) {
        self.runs.functions.push(function);
    }

    /// Ends all open runs, so that no run can be added below them.
    pub(crate) fn end(&mut self) {
        while let Some(run) = self.open.pop() {
            self.runs.ends[run as usize] = self.runs.len();
        }
    }

    /// Returns the finished runs.
    pub(crate) fn finish(mut self) -> Runs {
        self.end();
        self.runs.starts.push(self.runs.functions.len() as u32);
        self.runs
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_run_ends_where_the_last_one_below_it_does() {
        let mut growing = GrowingRuns::default();
        let root = growing.begin(0, 0);
        let above = growing.begin(1, root);
        growing.extend(2);
        growing.begin(3, above);
        growing.begin(4, above);
        growing.extend(5);
        growing.begin(6, root);
        let runs = growing.finish();
        assert_eq!(
            (0..runs.len()).map(|run| runs.functions_of_run(run)).collect::<Vec<_>>(),
            [&[0][..], &[1, 2], &[3], &[4, 5], &[6]]
        );
        assert_eq!((0..runs.len()).map(|run| runs.end(run)).collect::<Vec<_>>(), [5, 4, 3, 4, 5]);
    }
}
