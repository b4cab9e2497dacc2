//! Samples of the program `Burning`. Its four roots wait for one shared method, which works for
//! each root in a separate method. So each sample of work shows its true root.

use clrscope_recording::model::{Process, StackFrame};

use crate::samples;

/// The roots, by the number of the method that works for the root.
const ROOTS: [&str; 4] = ["First", "Second", "Third", "Fourth"];

/// Samples of work, by the true root.
#[derive(Debug, Default)]
pub struct BurningSamples {
    /// Samples below the true root.
    pub right: [u64; 4],
    /// Samples below no root.
    pub unknown: [u64; 4],
    /// Methods of stacks below a wrong root, innermost first.
    pub wrong: Vec<String>,
    /// Nanoseconds of work by the thread's CPU clock.
    pub clocked: Vec<f64>,
}

impl BurningSamples {
    /// Reads the `cpu` samples of a process with logical paths, and the output of the program.
    ///
    /// # Panics
    /// Where the program printed no numbers.
    pub fn read(process: &Process, printed: &str) -> Self {
        let clocked = printed.lines().filter_map(|line| line.strip_prefix("CLOCKED ")?.split_once(' '));
        let clocked = clocked.map(|(_, ns)| ns.parse().expect("nanoseconds")).collect();
        let mut found = Self { clocked, ..Self::default() };
        samples(process, "cpu").for_each(|sample| found.add(&own_names(process, sample.stack)));
        found
    }

    /// Adds a sample with these methods of the program, innermost first.
    fn add(&mut self, names: &[&str]) {
        let work = names.iter().find_map(|name| name.strip_prefix("Work")?.parse::<usize>().ok());
        let Some(work) = work else { return };
        let roots: Vec<&&str> = names.iter().filter(|name| ROOTS.contains(name)).collect();
        match roots[..] {
            [] => self.unknown[work] += 1,
            [root] if *root == ROOTS[work] => self.right[work] += 1,
            _ => self.wrong.push(format!("{names:?}")),
        }
    }

    /// Number of samples of work.
    pub fn all(&self) -> u64 {
        self.unknown.iter().chain(&self.right).sum::<u64>() + self.wrong.len() as u64
    }

    /// Percent of all samples of work that are below their roots.
    pub fn percent_right(&self) -> f64 {
        100.0 * self.right.iter().sum::<u64>() as f64 / self.all() as f64
    }
}

/// Names of the program's own methods on a stack, innermost first.
fn own_names(process: &Process, stack: u32) -> Vec<&str> {
    let name = |frame| match frame {
        StackFrame::Method { function, .. } => {
            process.functions.get(function as usize)?.name.strip_prefix("Burning.Program::")
        }
        _ => None,
    };
    process.stacks.frames(stack).filter_map(name).collect()
}
