//! The paths of callers in exact call trees, to check stacks of samples: a sampled path that the
//! trees lack is wrong.

use std::collections::HashSet;
use std::hash::{DefaultHasher, Hash, Hasher};

/// All paths from the roots of call trees, made of the names of the methods that count.
#[derive(Debug, Default)]
pub struct CallerPaths(HashSet<u64>);

/// The empty path.
const ROOT: u64 = 0;

impl CallerPaths {
    /// Adds the paths of a tree. `nodes` gives for each node the number of its parent and the name
    /// of its method, parents before children. The name is `None` for a method that does not count.
    pub fn add<'a>(&mut self, nodes: impl Iterator<Item = (u32, Option<&'a str>)>) {
        self.0.insert(ROOT);
        let mut paths: Vec<u64> = Vec::new();
        for (parent, name) in nodes {
            let before = paths.get(parent as usize).copied().unwrap_or(ROOT);
            let path = name.map_or(before, |name| step(before, name));
            paths.push(path);
            self.0.insert(path);
        }
    }

    /// Whether some node has this path, given from the outermost method on.
    pub fn hold<'a>(&self, names: impl IntoIterator<Item = &'a str>) -> bool {
        self.0.contains(&names.into_iter().fold(ROOT, step))
    }

    /// Number of different paths.
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Whether there is no path.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

fn step(before: u64, name: &str) -> u64 {
    let mut hasher = DefaultHasher::new();
    (before, name).hash(&mut hasher);
    hasher.finish()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_are_those_of_nodes_and_no_others() {
        let mut paths = CallerPaths::default();
        assert!(paths.is_empty());
        // The root, Main, a method of the framework, Pay below it, and Ship below Main.
        let nodes = [(0, None), (0, Some("Main")), (1, None), (2, Some("Pay")), (1, Some("Ship"))];
        paths.add(nodes.into_iter());
        assert!(paths.hold([]) && paths.hold(["Main", "Pay"]) && paths.hold(["Main", "Ship"]));
        assert!(!paths.hold(["Pay"]) && !paths.hold(["Main", "Pay", "Ship"]) && !paths.hold(["MainPay"]));
        assert_eq!(paths.len(), 4);
    }
}
