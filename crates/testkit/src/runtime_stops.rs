//! Results of stops of the runtime, in which the agent compares the runtime's own stack walk of
//! each thread with that of its own walker.

use std::collections::BTreeMap;
use std::path::Path;

/// Environment variable that names the file into which [`hooked_agent`](crate::hooked_agent) writes
/// the results. If the variable is set, that agent stops the runtime.
pub const STOPS_VARIABLE: &str = "CLRSCOPE_TEST_STOPS";

/// Results of the stops of one run, or of several.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct RuntimeStops {
    counts: BTreeMap<String, u64>,
    /// Descriptions of stacks where the two walkers differ although every step of the agent's
    /// walker was certain.
    pub wrong: Vec<String>,
}

impl RuntimeStops {
    /// Reads the file that the agent wrote.
    ///
    /// # Panics
    /// When the file is missing or has another format.
    pub fn read(file: &Path) -> Self {
        let text = std::fs::read_to_string(file).unwrap_or_else(|error| panic!("{}: {error}", file.display()));
        Self::parse(&text).unwrap_or_else(|| panic!("{} is no account of stops", file.display()))
    }

    fn parse(text: &str) -> Option<Self> {
        let mut all = Self::default();
        for line in text.lines() {
            match line.split_once(' ')? {
                ("example", stacks) => all.wrong.push(stacks.to_owned()),
                (count, what) => *all.counts.entry(what.to_owned()).or_default() += count.parse::<u64>().ok()?,
            }
        }
        Some(all)
    }

    /// Adds the results of another run.
    pub fn join(&mut self, other: Self) {
        for (what, count) in other.counts {
            *self.counts.entry(what).or_default() += count;
        }
        self.wrong.extend(other.wrong);
    }

    fn count(&self, what: &str) -> u64 {
        self.counts.get(what).copied().unwrap_or(0)
    }

    /// Number of stops of the runtime.
    pub fn stops(&self) -> u64 {
        self.count("stops")
    }

    /// Number of stacks that both walkers walked.
    pub fn compared(&self) -> u64 {
        let all = ["equal", "entering", "different"];
        all.iter()
            .map(|verdict| self.count(&format!("{verdict} certain")) + self.count(&format!("{verdict} guessed")))
            .sum()
    }

    /// Number of stacks where both walkers found the same methods in the same order. Includes
    /// stacks where the agent's walker found one more method on top: native code has just called
    /// this method, and the runtime does not know the call yet.
    pub fn equal(&self) -> u64 {
        self.compared() - self.different() - self.said()
    }

    /// Number of stacks where the walkers differ although each step of the agent's walker was
    /// certain.
    pub fn different(&self) -> u64 {
        self.count("different certain")
    }

    /// Number of stacks where the walkers differ and the agent's walker had guessed a frame.
    pub fn said(&self) -> u64 {
        self.count("different guessed")
    }

    /// Number of stacks that the agent's walker marked as guessed, right or wrong.
    pub fn guessed(&self) -> u64 {
        ["equal guessed", "entering guessed", "different guessed"].iter().map(|what| self.count(what)).sum()
    }

    /// Number of frames in equal stacks, and how many of them have the same address in both walks.
    /// The others wait in native code or run a handler block, where the runtime reports the address
    /// of the call or throw.
    pub fn frames(&self) -> (u64, u64) {
        (self.count("frames"), self.count("addresses"))
    }

    /// Number of threads that were not stopped because they ran native code, and number of threads
    /// that the runtime refused to walk.
    pub fn left_out(&self) -> (u64, u64) {
        let refused = self.counts.iter().filter(|(what, _)| what.starts_with("unwalked"));
        (self.count("running"), refused.map(|(_, count)| count).sum())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn outcomes_are_added_up() {
        let one = "3 equal certain\n1 entering certain\n2 different certain\n4 equal guessed\n7 frames\n5 unwalked: DoStackSnapshot: no\nexample A < B";
        let mut all = RuntimeStops::parse(one).expect("an account");
        all.join(RuntimeStops::parse("1 equal certain\n6 unwalked: why\n2 stops\n").expect("another"));
        assert_eq!((all.compared(), all.equal(), all.different(), all.said(), all.guessed()), (11, 9, 2, 0, 4));
        assert_eq!((all.frames(), all.left_out(), all.stops()), ((7, 0), (0, 11), 2));
        assert_eq!((all.wrong.as_slice(), RuntimeStops::parse("x y")), (&["A < B".to_owned()][..], None));
    }
}
