//! Findings about the heap.

use std::fmt::Write as _;
use std::sync::Arc;

use clrscope_recording::model::RootKind;

use super::holders::{HeapPath, HeapPathPlace};
use super::load::HeapPathRoot;
use crate::numbers::{bytes, number, percent};
use crate::views::summary::{Finding, FindingKind};

/// Growth that is reported, as a part of the bytes that a type had in the first snapshot.
const MUCH_GROWTH: f64 = 0.1;
/// Least growth in objects that is reported.
const LEAST_GROWTH: u64 = 100;

/// Number of framework objects whose growth may be attributed to the growth of one own object.
const PUT_DOWN_TO: u64 = 10;

/// A root and the objects that only this root keeps alive.
#[derive(Debug, Clone)]
pub(super) struct RootHold<'a> {
    /// The root.
    pub(super) root: HeapPathRoot<'a>,
    /// Bytes that would be free without the root.
    pub(super) retained_bytes: u64,
    /// The type that has most of these bytes: the number of its objects, their bytes, and the path
    /// to them.
    pub(super) most: Option<HeapPath<'a>>,
}

/// A type in each of a process's snapshots.
#[derive(Debug, Clone)]
pub(super) struct TypeHistory {
    /// Name of the type.
    pub(super) type_name: Arc<str>,
    /// Whether the type does not belong to the framework.
    pub(super) is_own: bool,
    /// Objects and bytes, for each snapshot.
    pub(super) amounts: Vec<(u64, u64)>,
}

/// The type whose bytes grew most, among types that grew from each snapshot to the next. An own
/// type is preferred if it grew by a similar number of objects.
pub(super) fn most_grown(history: &[TypeHistory]) -> Option<&TypeHistory> {
    let grows = |of: &&TypeHistory| {
        let (first, last) = (of.amounts[0], of.amounts[of.amounts.len() - 1]);
        let each = of.amounts.windows(2).all(|pair| pair[1].0 > pair[0].0);
        let is_much = (last.1.saturating_sub(first.1)) as f64 >= MUCH_GROWTH * first.1 as f64;
        each && is_much && last.0 - first.0 >= LEAST_GROWTH
    };
    let growth = |of: &TypeHistory| {
        let (first, last) = (of.amounts[0], of.amounts[of.amounts.len() - 1]);
        (last.1.saturating_sub(first.1), last.0 - first.0)
    };
    let grown = || history.iter().filter(|of| of.amounts.len() > 1).filter(grows);
    let most = grown().max_by_key(|of| growth(of))?;
    let own = grown().filter(|of| of.is_own && growth(of).1 >= growth(most).1 / PUT_DOWN_TO);
    Some(own.max_by_key(|of| growth(of)).unwrap_or(most))
}

/// Finding about a type that grows.
pub(super) fn growth(grown: &TypeHistory, way: Option<&HeapPath<'_>>) -> Finding {
    let (first, last) = (grown.amounts[0], grown.amounts[grown.amounts.len() - 1]);
    let counts: Vec<String> = grown.amounts.iter().map(|(objects, _)| number(*objects)).collect();
    let more = last.1.saturating_sub(first.1);
    let mut text = format!(
        "{} objects grow from snapshot to snapshot: {}, {} more",
        grown.type_name,
        counts.join(", "),
        bytes(more)
    );
    if let Some(way) = way.filter(|way| way.root.is_some()) {
        let _ = write!(text, "; held by {}", way.label());
    }
    Finding::exact(FindingKind::GrowingHeap, text, more as f64 / last.1.max(1) as f64)
}

/// Finding about the root that holds the most bytes.
pub(super) fn hold(hold: &RootHold<'_>, all: u64) -> Finding {
    let share = hold.retained_bytes as f64 / all.max(1) as f64;
    let root = root_label(&hold.root);
    let mut text = format!("{root} keeps {}, {} of the heap", bytes(hold.retained_bytes), percent(share));
    if let Some(most) = &hold.most {
        let _ = write!(text, ": {} {}", number(most.objects), most.type_name());
        let _ = write!(text, " with {}, by {}", bytes(most.bytes), most.label());
    }
    Finding::exact(FindingKind::Heap, text, share.min(1.0))
}

/// A root as text: `static field Shop.Cache.items`.
fn root_label(root: &HeapPathRoot<'_>) -> String {
    let thread = root.thread.map_or_else(String::new, |thread| match thread.name.as_str() {
        "" => format!(" on thread {}", thread.id),
        name => format!(" on thread {name}"),
    });
    let what = match (root.kind, root.name.is_empty()) {
        (RootKind::Static, false) => "static field",
        (RootKind::ThreadStatic, false) => "thread-static field",
        (RootKind::Stack, false) => "a variable of",
        (kind, true) => return format!("{}{thread}", kind.name()),
        (kind, false) => kind.name(),
    };
    format!("{what} {}{thread}", root.name)
}

impl HeapPathRoot<'_> {
    /// Name of the field in C# syntax, if the root is a static or thread-static field:
    /// `Shop.Cache<string>.items`. `None` for other roots.
    #[must_use]
    pub fn static_field(&self) -> Option<&str> {
        let is_static = matches!(self.kind, RootKind::Static | RootKind::ThreadStatic) && !self.name.is_empty();
        is_static.then_some(&*self.name)
    }

    /// The root as text: `static field Shop.Cache.items`.
    #[must_use]
    pub fn label(&self) -> String {
        root_label(self)
    }
}

impl HeapPath<'_> {
    /// Name of the type of the objects that are held.
    #[must_use]
    pub fn type_name(&self) -> &str {
        self.steps.last().map_or("", |step| &step.type_name)
    }

    /// The root as text: `static field Shop.Cache.items`.
    #[must_use]
    pub fn root_label(&self) -> String {
        self.root.as_ref().map_or_else(|| "nothing known".to_owned(), root_label)
    }

    /// The path in one line: the root, then each object with the member that refers to the next
    /// one. The last object's type is left out.
    #[must_use]
    pub fn label(&self) -> String {
        self.root_label() + &self.steps_label()
    }

    /// The part of [`label`](Self::label) that follows the root.
    #[must_use]
    pub fn steps_label(&self) -> String {
        self.steps_with(HeapPathPlace::label)
    }

    /// Name of the static field at which the path begins, see [`HeapPathRoot::static_field`].
    #[must_use]
    pub fn static_field(&self) -> Option<&str> {
        self.root.as_ref()?.static_field()
    }

    /// The path in one line without the indices of elements, so that it is equal for paths that
    /// differ only in indices.
    #[must_use]
    pub fn shape(&self) -> String {
        let steps = self.steps_with(|place| match place {
            HeapPathPlace::Index(_) => "[]".to_owned(),
            HeapPathPlace::FieldOfElement(_, name) => format!("[].{name}"),
            other => other.label(),
        });
        self.root_label() + &steps
    }

    fn steps_with(&self, of: impl Fn(&HeapPathPlace) -> String) -> String {
        let mut text = String::new();
        for pair in self.steps.windows(2) {
            let again = if pair[1].repeats { " (again and again)" } else { "" };
            let _ = write!(text, " -> {}{}{again}", short(&pair[0].type_name), of(&pair[1].place));
        }
        text
    }
}

impl HeapPathPlace {
    /// Text to append to the previous object: `.items`, `[3].Value`.
    #[must_use]
    pub fn label(&self) -> String {
        match self {
            Self::Root => String::new(),
            Self::Field(name) => format!(".{name}"),
            Self::Index(at) => format!("[{at}]"),
            Self::FieldOfElement(at, name) => format!("[{at}].{name}"),
            Self::Dependent => " (as key of a weak table)".to_owned(),
            Self::Loader => " (its load context)".to_owned(),
            Self::Unknown => ".?".to_owned(),
        }
    }
}

/// The name of a type without its namespace; tuples stay whole.
fn short(name: &str) -> &str {
    if name.starts_with('(') {
        return name;
    }
    let end = name.find(['<', '[']).unwrap_or(name.len());
    let from = name[..end].rfind('.').map_or(0, |at| at + 1);
    &name[from..]
}
