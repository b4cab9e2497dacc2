//! A snapshot as text: sums by class, and the path to the largest object of the largest class.

use std::collections::{HashMap, HashSet};
use std::fmt::Write as _;

use clr_profiler::ClassId;

use crate::State;
use crate::graph::{Graph, Root, Step};

/// Returns bytes, objects and class name, a line per class; then the path.
pub(crate) fn report_text(state: &State, graph: &Graph) -> String {
    let mut classes = HashMap::<ClassId, (usize, usize)>::new();
    for object in graph.objects.values() {
        let (bytes, objects) = classes.entry(object.class).or_default();
        *bytes += object.bytes;
        *objects += 1;
    }
    let mut rows: Vec<_> = classes.into_iter().collect();
    rows.sort_by_key(|(_, sums)| std::cmp::Reverse(*sums));
    let mut text = String::new();
    for (class, (bytes, objects)) in &rows {
        let _ = writeln!(text, "{bytes}\t{objects}\t{}", state.names.class(&state.info, *class));
    }
    let _ =
        writeln!(text, "{} objects, {} references, {} roots", graph.objects.len(), graph.edges(), graph.roots.len());
    let Some((class, _)) = rows.first() else { return text };
    let of_class = graph.objects.iter().filter(|(_, object)| object.class == *class);
    let largest = of_class.max_by_key(|(address, object)| (object.bytes, *address)).map_or(0, |(address, _)| *address);
    match graph.path(largest) {
        Some((root, steps)) => path(state, graph, root, &steps, &mut text),
        None => text.push_str("no path from a root\n"),
    }
    text
}

/// A line for the root, and one for each object, with the member of the previous object that refers
/// to it.
fn path(state: &State, graph: &Graph, root: Root, steps: &[Step], text: &mut String) {
    let _ = writeln!(text, "{}", root_name(state, root));
    let statics = statics(state);
    let mut before: Option<(usize, ClassId)> = None;
    for step in steps {
        let class = graph.objects.get(&step.object).map(|object| object.class);
        let member = before.zip(step.place).and_then(|((object, class), place)| {
            statics.get(&(object + place)).cloned().or_else(|| member(state, class, place))
        });
        let name = class.map_or_else(|| "?".into(), |class| state.names.class(&state.info, class));
        let _ = writeln!(text, "  {}{name}", member.map_or_else(String::new, |member| member + " -> "));
        before = class.map(|class| (step.object, class));
    }
}

/// Static fields by the address of their value, for classes with a compiled method, if only the
/// static constructor.
fn statics(state: &State) -> HashMap<usize, String> {
    let functions = state.info.compiled_functions().unwrap_or_default();
    let classes: HashSet<ClassId> =
        functions.iter().filter_map(|(function, _)| state.info.function_place(*function).ok()?.0).collect();
    let fields = classes.into_iter().flat_map(|class| state.names.static_fields(&state.info, class));
    fields.map(|(place, name)| (place.as_raw(), format!("static {name}"))).collect()
}

fn member(state: &State, class: ClassId, place: usize) -> Option<String> {
    let name = state.names.member(&state.info, class, place)?;
    Some(if name.starts_with('[') { name } else { format!(".{name}") })
}

fn root_name(state: &State, root: Root) -> String {
    match root.function {
        Some(function) => format!("stack of {}", state.names.function(&state.info, function).name),
        None => root.kind.to_string(),
    }
}
