//! Ways in which async methods wait for each other, from the fixture `Roots`. Each root waits for
//! its work in one of these ways, and the work throws an exception of the root's own class.

use std::collections::BTreeMap;

/// A way to await.
#[derive(Debug, Clone, Copy)]
pub struct AsyncShape {
    /// Name of the way, for tables.
    pub name: &'static str,
    /// Class of the exceptions that the work throws.
    pub class: &'static str,
    /// The root's method.
    pub root: &'static str,
    /// Whether the awaiter of the work is known at once. It is not known at once for boxes of
    /// pooled builders, whose class the agent's own thread must look up first, and for the first
    /// item of a stream.
    pub is_known: bool,
}

const fn known(name: &'static str, class: &'static str, root: &'static str) -> AsyncShape {
    AsyncShape { name, class, root, is_known: true }
}

const fn unknown(name: &'static str, class: &'static str, root: &'static str) -> AsyncShape {
    AsyncShape { name, class, root, is_known: false }
}

/// All shapes.
pub const ASYNC_SHAPES: [AsyncShape; 24] = [
    known("Task", "OfTask", "Task1"),
    known("ValueTask", "OfValueTask", "ValueTask1"),
    known("ConfigureAwait(false)", "OfConfigured", "Configured"),
    known("generic methods", "OfGeneric", "Generic"),
    known("20 links", "OfDeep", "Deep"),
    known("Task.WhenAll", "OfAll", "All"),
    known("Task.WhenAny", "OfAny", "Any"),
    known("started, then awaited", "OfStarted", "Started"),
    known("Task.Run", "OfRun", "Run"),
    known("Task.Unwrap", "OfUnwrap", "Unwrapped"),
    known("ContinueWith", "OfContinuation", "Continued"),
    known("TaskCompletionSource, asynchronous", "OfSource", "Source"),
    known("TaskCompletionSource, inline", "OfInline", "Inline"),
    known("SemaphoreSlim.WaitAsync", "OfSemaphore", "Semaphored"),
    known("two awaiters of one task", "OfTwo", "Two"),
    known("channels", "OfChannel", "Channelled"),
    known("cancelled delays", "OfCancelled", "Cancelled"),
    known("await using", "OfUsing", "Using"),
    known("custom awaiters", "OfCustom", "Custom"),
    known("synchronization contexts", "OfContext", "Context"),
    known("async void", "OfVoid", "Void"),
    unknown("pooled builders", "OfPooled", "Pooled"),
    unknown("await foreach", "OfStream", "Stream"),
    known("Parallel.ForEachAsync", "OfForEach", "ForEach"),
];

/// Numbers of throws, or of objects, of one [`AsyncShape`], by the root on their stacks.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct RootTally {
    /// Below the right root.
    pub right: u64,
    /// Below `[unknown awaiter]`.
    pub unknown: u64,
    /// Below no root and not below `[unknown awaiter]`, because the work was not awaited yet.
    pub early: u64,
    /// Below other roots.
    pub wrong: u64,
    /// Number of paths by their outermost frame and root.
    pub paths: BTreeMap<String, u64>,
}

impl RootTally {
    /// Sum of all counts.
    #[must_use]
    pub fn all(&self) -> u64 {
        self.right + self.unknown + self.early + self.wrong
    }
}

/// Tallies of all shapes by the classes of their exceptions.
#[derive(Debug, Default)]
pub struct RootTallies(pub BTreeMap<String, RootTally>);

impl RootTallies {
    /// Adds `number` exceptions of a class, with the method names of their logical stack, innermost
    /// first. Ignores classes that belong to no shape.
    pub fn add(&mut self, class: &str, names: &[&str], number: u64) {
        let class = class.strip_prefix("Roots.").unwrap_or(class);
        let Some(shape) = ASYNC_SHAPES.iter().find(|shape| shape.class == class) else { return };
        let outermost = names.last().copied().unwrap_or("[none]");
        let roots = names.iter().rev().filter_map(|name| name.strip_prefix("Roots.Root::"));
        let root = roots.into_iter().find(|root| ASYNC_SHAPES.iter().any(|shape| shape.root == *root));
        let tally = self.0.entry(class.to_owned()).or_default();
        *tally.paths.entry(format!("{outermost} {}", root.unwrap_or("-"))).or_default() += number;
        let of = match root {
            Some(root) if root == shape.root => &mut tally.right,
            Some(_) => &mut tally.wrong,
            None if outermost == "[unknown awaiter]" => &mut tally.unknown,
            None => &mut tally.early,
        };
        *of += number;
    }
}

/// How often the program threw each class, from its output.
#[must_use]
pub fn throws_by_class(printed: &str) -> BTreeMap<String, u64> {
    let throws = printed.lines().filter_map(|line| line.strip_prefix("THROWN ")?.split_once(' '));
    throws.filter_map(|(class, number)| Some((class.to_owned(), number.parse().ok()?))).collect()
}
