//! Expectations: the lines `EXPECT ...` that a fixture writes to stdout about itself.
//!
//! | Line | Meaning |
//! |---|---|
//! | `calls NAME N` | functions of this name are entered N times, instantiations and overloads together |
//! | `edge PARENT -> CHILD N` | N of the child's calls have the parent as direct caller among all hooked functions |
//! | `under ANCESTOR -> CHILD N` | N of the child's calls have this nearest caller in the fixture's own assembly |
//! | `thread-calls THREAD NAME N` | the thread of this name enters the function N times |
//! | `max-recursion NAME N` | at most N activations of the function at once on one thread |
//! | `wall-ms NAME N` | inclusive wall time is at least N milliseconds |
//! | `cpu-ms NAME N` | inclusive CPU time is about N milliseconds |

use std::collections::BTreeMap;

/// Calls of one function by one named thread.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct ThreadCalls {
    /// The thread's name.
    pub thread: String,
    /// `Namespace.Type::Method`.
    pub name: String,
    /// Number of times the thread enters it.
    pub count: u64,
}

/// The known answers of one run, with names in the profiler's form `Namespace.Type::Method`.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Expectations {
    /// Calls by name.
    pub calls: BTreeMap<String, u64>,
    /// Calls by direct caller and callee.
    pub edges: BTreeMap<(String, String), u64>,
    /// Calls by caller and callee, where the caller is the nearest one in the fixture's own
    /// assembly.
    pub under: BTreeMap<(String, String), u64>,
    /// Calls by thread and name.
    pub thread_calls: Vec<ThreadCalls>,
    /// Deepest recursion by name.
    pub max_recursion: BTreeMap<String, u64>,
    /// Minimum inclusive wall milliseconds by name.
    pub wall_ms: BTreeMap<String, u64>,
    /// Inclusive CPU milliseconds by name.
    pub cpu_ms: BTreeMap<String, u64>,
}

impl Expectations {
    /// Reads the lines of a fixture's stdout that begin with `EXPECT`.
    ///
    /// # Panics
    /// At an invalid or repeated `EXPECT` line, and when there is none, because a test must not
    /// pass without expectations.
    pub fn parse(stdout: &str) -> Self {
        let mut all = Self::default();
        let mut lines = 0;
        for line in stdout.lines().filter_map(|line| line.strip_prefix("EXPECT ")) {
            all.parse_line(line).unwrap_or_else(|| panic!("cannot read or said twice: EXPECT {line}"));
            lines += 1;
        }
        assert!(lines > 0, "the fixture expects nothing; it wrote:\n{stdout}");
        all
    }

    /// Lines of a fixture's stdout that are not expectations. They must be the same in every run.
    pub fn other_lines(stdout: &str) -> String {
        stdout.split_inclusive('\n').filter(|line| !line.starts_with("EXPECT ")).collect()
    }

    /// The calls that the fixture states for a name.
    pub fn calls(&self, name: &str) -> Option<u64> {
        self.calls.get(name).copied()
    }

    /// The calls that the fixture states for a direct caller and its callee.
    pub fn edge(&self, parent: &str, child: &str) -> Option<u64> {
        self.edges.get(&(parent.to_owned(), child.to_owned())).copied()
    }

    fn parse_line(&mut self, line: &str) -> Option<()> {
        let (kind, rest) = line.split_once(' ')?;
        let (subject, count) = rest.rsplit_once(' ')?;
        let count: u64 = count.parse().ok()?;
        match kind {
            "calls" => once(&mut self.calls, subject.to_owned(), count),
            "edge" => once(&mut self.edges, arrow(subject)?, count),
            "under" => once(&mut self.under, arrow(subject)?, count),
            "max-recursion" => once(&mut self.max_recursion, subject.to_owned(), count),
            "wall-ms" => once(&mut self.wall_ms, subject.to_owned(), count),
            "cpu-ms" => once(&mut self.cpu_ms, subject.to_owned(), count),
            "thread-calls" => {
                let (thread, name) = subject.split_once(' ')?;
                self.thread_calls.push(ThreadCalls { thread: thread.to_owned(), name: name.to_owned(), count });
                Some(())
            }
            _ => None,
        }
    }
}

fn once<K: Ord>(map: &mut BTreeMap<K, u64>, key: K, count: u64) -> Option<()> {
    map.insert(key, count).is_none().then_some(())
}

fn arrow(text: &str) -> Option<(String, String)> {
    let (parent, child) = text.split_once(" -> ")?;
    Some((parent.to_owned(), child.to_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_every_kind_and_leaves_other_lines_alone() {
        let all = Expectations::parse(
            "result 7\nEXPECT calls A.B::C 3\nEXPECT edge A.B::C -> A.B::.ctor 2\nEXPECT under A.B::C -> D::E 1\n\
             EXPECT thread-calls worker-0 A.B::C 3\nEXPECT max-recursion A.B::C 2\nEXPECT wall-ms A.B::C 10\nEXPECT cpu-ms A.B::C 0\n",
        );
        assert_eq!(all.calls("A.B::C"), Some(3));
        assert_eq!(all.edge("A.B::C", "A.B::.ctor"), Some(2));
        assert_eq!(all.under.len(), 1);
        assert_eq!(all.thread_calls[0], ThreadCalls { thread: "worker-0".into(), name: "A.B::C".into(), count: 3 });
        assert_eq!((all.max_recursion["A.B::C"], all.wall_ms["A.B::C"], all.cpu_ms["A.B::C"]), (2, 10, 0));
    }

    #[test]
    fn other_lines_are_what_is_left() {
        assert_eq!(Expectations::other_lines("a\nEXPECT calls A 1\n\nb"), "a\n\nb");
    }

    #[test]
    #[should_panic(expected = "cannot read or said twice")]
    fn refuses_a_line_it_does_not_know() {
        Expectations::parse("EXPECT miracles A 1\n");
    }

    #[test]
    #[should_panic(expected = "said twice")]
    fn refuses_two_answers_to_one_question() {
        Expectations::parse("EXPECT calls A 1\nEXPECT calls A 1\n");
    }

    #[test]
    #[should_panic(expected = "expects nothing")]
    fn refuses_silence() {
        Expectations::parse("result 1\n");
    }
}
