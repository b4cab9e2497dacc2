//! Pictures of transformed trees for a served page: the tree after focusing, merging, dropping,
//! collapsing or inverting; sums by function; callers and callees; matches of a search. They are
//! computed from the whole tree. Only the result is limited to nodes that are large enough to be
//! seen.

use std::cell::RefCell;
use std::cmp::Reverse;
use std::sync::Arc;

use clrscope_analysis::{
    ChangedTree, Forest, PictureChange, PictureFunction, PictureFunctions, PictureMeasure, PictureRow, Pictures, Query,
};
use rustc_hash::FxHashMap;
use serde_json::{Value, json};

use super::states;
use crate::cell::Cell;
use crate::render::page::{Pool, said};

/// A question about a transformed tree.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash)]
pub struct PictureRequest {
    /// Name of the measure.
    pub measure: String,
    /// Transformations, in the form of the page's addresses.
    pub changes: String,
    /// Whether the tree is inverted: functions with own amounts first, then their callers.
    pub invert: bool,
    /// Whether nameless code is shown function by function.
    pub nameless: bool,
    /// The requested answer.
    pub answer: PictureAnswer,
}

/// Kind of answer about a transformed tree.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash)]
pub enum PictureAnswer {
    /// The nodes of the tree that are large enough to be seen.
    #[default]
    Tree,
    /// Sums by function over the tree.
    Functions,
    /// Callers and callees of a function, which is given by its number in addresses.
    Neighbours(u64),
    /// Sum over the functions that a search text matches.
    Matched(String),
}

/// Maximum number of functions in an answer, largest amounts first: as many as tables of served
/// pages have.
const MOST_FUNCTIONS: usize = 10_000;

/// Key of the column with totals, which every measure has here.
const TOTAL: &str = "picture_total";

/// Groups of kinds of code that share a name and a colour in pages, as in `KINDS_OF_CODE` of
/// `ui/src/colours.ts`.
const KINDS: [&[&str]; 9] = [
    &["own"],
    &["framework"],
    &["jit", "type_loading", "runtime", "exceptions", "suspension"],
    &["gc"],
    &["native"],
    &["kernel"],
    &["waiting"],
    &["type"],
    &["profiler", "unknown"],
];

/// Kinds of code in the same group as a kind.
fn kinds_with(code: &str) -> Vec<String> {
    let kinds = KINDS.iter().find(|kinds| kinds.contains(&code)).copied().unwrap_or(KINDS[KINDS.len() - 1]);
    kinds.iter().map(|kind| (*kind).to_owned()).collect()
}

/// Trees that are kept open for questions: the trees of the last query, and the last transformed
/// tree.
#[derive(Default)]
pub(super) struct Open<'a> {
    base: RefCell<Option<Arc<Base<'a>>>>,
    changed: RefCell<Option<LastChanged<'a>>>,
}

/// A transformed tree with its inputs.
type LastChanged<'a> = ((Query, PictureMeasure, String, bool), Arc<ChangedTree<'a>>);

/// Trees of a query by a measure, with the numbers of their functions in addresses.
struct Base<'a> {
    query: Query,
    measure: PictureMeasure,
    pictures: Pictures<'a>,
    by_id: FxHashMap<u64, u32>,
}

impl<'a> Open<'a> {
    /// Members of the answer, as JSON.
    pub(super) fn answer(
        &self,
        forest: &Forest<'a>,
        query: &Query,
        (wanted, places): (&PictureRequest, &[u32]),
        (measure, least_share): (&Value, f64),
    ) -> String {
        let base = self.base(forest, query, measure_of(measure));
        let changes = changes_of(&wanted.changes, &base.by_id, base.pictures.functions(), !wanted.nameless);
        let tree = self.changed(&base, &changes, wanted);
        let functions = base.pictures.functions().list();
        match &wanted.answer {
            PictureAnswer::Tree => {
                let rows = match wanted.invert {
                    true => tree.inverted(least_share, places),
                    false => tree.upright(least_share, places),
                };
                let named: Vec<u32> = changes.iter().flat_map(functions_of).collect();
                let times = tree.states_of_rows(&rows, wanted.invert, places);
                let times: Vec<_> = rows.iter().map(|row| row.depth).zip(times).collect();
                let all = tree.state_times().filter(|_| places.is_empty());
                let states = match times.is_empty() {
                    true => Value::Null,
                    false => states::of_picture(&times, all.unwrap_or_default()),
                };
                let members = tree_members(functions, &rows, &named, tree.total(), measure);
                format!("{members},\"states\":{states}")
            }
            PictureAnswer::Functions => {
                let sums = tree.by_function();
                let met = (0_u32..).zip(&sums).filter(|(_, sum)| sum.own > 0 || sum.total > 0);
                let mut rows: Vec<PictureRow> = met
                    .map(|(function, sum)| PictureRow { depth: 0, function, own: sum.own, total: sum.total })
                    .collect();
                if rows.len() > MOST_FUNCTIONS {
                    rows.sort_unstable_by_key(|row| Reverse((row.total, row.own)));
                    rows.truncate(MOST_FUNCTIONS);
                }
                tree_members(functions, &rows, &[], tree.total(), measure)
            }
            PictureAnswer::Neighbours(id) => {
                let Some(function) = base.by_id.get(id) else { return "\"sections\":[],\"values\":[]".to_owned() };
                neighbours_members(functions, &tree, *function, measure)
            }
            PictureAnswer::Matched(search) => {
                let marked = matching(functions, search);
                format!("\"sections\":[],\"values\":[],\"matched\":{},\"all\":{}", tree.matched(&marked), tree.total())
            }
        }
    }

    fn base(&self, forest: &Forest<'a>, query: &Query, measure: PictureMeasure) -> Arc<Base<'a>> {
        let mut known = self.base.borrow_mut();
        if let Some(base) = known.as_ref().filter(|base| base.query == *query && base.measure == measure) {
            return Arc::clone(base);
        }
        // Two of them at a time have no room.
        *known = None;
        *self.changed.borrow_mut() = None;
        let pictures = Pictures::new(forest, measure);
        let by_id = pictures.functions().ids().collect();
        let base = Arc::new(Base { query: query.clone(), measure, pictures, by_id });
        *known = Some(Arc::clone(&base));
        base
    }

    fn changed(&self, base: &Base<'a>, changes: &[PictureChange], wanted: &PictureRequest) -> Arc<ChangedTree<'a>> {
        let key = (base.query.clone(), base.measure, wanted.changes.clone(), wanted.nameless);
        let mut known = self.changed.borrow_mut();
        if let Some((_, tree)) = known.as_ref().filter(|(of, _)| *of == key) {
            return Arc::clone(tree);
        }
        *known = None;
        let tree = Arc::new(base.pictures.changed(changes, !wanted.nameless));
        *known = Some((key, Arc::clone(&tree)));
        tree
    }
}

/// The measure of a document's column.
fn measure_of(measure: &Value) -> PictureMeasure {
    match measure["own"].as_str() {
        Some("exclusive_ns") => PictureMeasure::Wall,
        Some("exclusive_cpu_ns") => PictureMeasure::Cpu,
        Some("calls") => PictureMeasure::Calls,
        Some("self_samples") => PictureMeasure::Samples,
        _ => PictureMeasure::Metric,
    }
}

/// Transformations from an address; invalid ones are left out.
fn changes_of(
    text: &str,
    by_id: &FxHashMap<u64, u32>,
    functions: &PictureFunctions<'_>,
    folds: bool,
) -> Vec<PictureChange> {
    let change = |part: &str| {
        let kind = part.chars().next()?;
        let ids = part.get(1..)?.split('.').filter(|id| !id.is_empty());
        let path = ids.map(|id| by_id.get(&id.parse().ok()?).copied()).collect::<Option<Vec<u32>>>()?;
        let path = if folds { folded(path, functions) } else { path };
        let one = path.last().copied();
        Some(match kind {
            'o' => PictureChange::OwnCode,
            'w' => PictureChange::DropKinds(kinds_with("waiting")),
            'f' => PictureChange::Focus(one?),
            'F' => PictureChange::FocusPath((!path.is_empty()).then_some(path)?),
            'm' => PictureChange::Merge(one?),
            'M' => PictureChange::MergePath((!path.is_empty()).then_some(path)?),
            'd' => PictureChange::Drop(one?),
            'c' => PictureChange::Collapse(one?),
            'C' => PictureChange::CollapseLibrary(one?),
            'r' => PictureChange::Recursion(one?),
            'k' => PictureChange::MergeKinds(kinds_with(functions.list()[one? as usize].code)),
            'K' => PictureChange::DropKinds(kinds_with(functions.list()[one? as usize].code)),
            _ => return None,
        })
    };
    text.split(',').filter_map(change).collect()
}

/// A path of functions with nameless code folded.
fn folded(path: Vec<u32>, functions: &PictureFunctions<'_>) -> Vec<u32> {
    let mut all: Vec<u32> = Vec::new();
    for function in path {
        match functions.list()[function as usize].library {
            Some(library) if all.last() == Some(&library) => {}
            library => all.push(library.unwrap_or(function)),
        }
    }
    all
}

/// Functions that a transformation names.
fn functions_of(change: &PictureChange) -> Vec<u32> {
    match change {
        PictureChange::FocusPath(path) | PictureChange::MergePath(path) => path.clone(),
        PictureChange::Focus(one)
        | PictureChange::Merge(one)
        | PictureChange::Drop(one)
        | PictureChange::Collapse(one)
        | PictureChange::CollapseLibrary(one)
        | PictureChange::Recursion(one) => vec![*one],
        PictureChange::MergeKinds(_) | PictureChange::DropKinds(_) | PictureChange::OwnCode => Vec::new(),
    }
}

/// Names of a function for the page's columns: name, words for it, signature, module, kind of code,
/// and the function into which it is folded.
struct Names {
    name: Value,
    words: Option<String>,
    signature: String,
    module: String,
    code: &'static str,
    folded_into: Option<String>,
}

impl Names {
    fn from_function(one: &PictureFunction<'_>) -> Self {
        let (module, code) = (one.module.to_owned(), one.code);
        match &one.function {
            Some(function) => {
                let cell = Cell::function(function);
                Self {
                    name: cell.to_json().unwrap_or_default(),
                    words: said(cell, true),
                    signature: function.signature().to_owned(),
                    module,
                    code,
                    folded_into: function.folded_into(),
                }
            }
            None => {
                let (name, signature) = (json!(one.library_name), one.library_name.clone());
                Self { name, words: None, signature, module, code, folded_into: None }
            }
        }
    }

    /// Whether `is` accepts one of the texts that a search examines: name, signature or module.
    fn matches(&self, is: &dyn Fn(&str) -> bool) -> bool {
        let name = self.words.as_deref().or(self.name.as_str()).unwrap_or_default();
        is(name) || is(&self.signature) || is(&self.module)
    }
}

/// For each function, by number, whether the search text matches, as `matcher` in
/// `ui/src/model/search.ts` does.
fn matching(functions: &[PictureFunction<'_>], search: &str) -> Vec<bool> {
    let lower = search.to_lowercase();
    let words: Vec<&str> = lower.split(',').map(str::trim).filter(|word| !word.is_empty()).collect();
    let is = |text: &str| {
        let text = text.to_lowercase();
        words.iter().any(|word| text.contains(word))
    };
    functions.iter().map(|one| Names::from_function(one).matches(&is)).collect()
}

/// Packs rows of functions as a section of a page.
struct Section<'f, 'a> {
    functions: &'f [PictureFunction<'a>],
    pool: Pool,
    /// Indices of a function's names in the pool.
    known: FxHashMap<u32, [Value; 6]>,
}

impl<'f, 'a> Section<'f, 'a> {
    fn new(functions: &'f [PictureFunction<'a>]) -> Self {
        Self { functions, pool: Pool::default(), known: FxHashMap::default() }
    }

    fn places(&mut self, function: u32) -> [Value; 6] {
        if let Some(known) = self.known.get(&function) {
            return known.clone();
        }
        let names = Names::from_function(&self.functions[function as usize]);
        let mut place = |value: Value| json!(self.pool.index_of(&value));
        let places = [
            place(names.name),
            place(json!(names.signature)),
            place(json!(names.module)),
            place(json!(names.code)),
            names.folded_into.map_or(json!(-1), |frame| place(json!(frame))),
            names.words.map_or(Value::Null, |words| place(json!(words))),
        ];
        self.known.insert(function, places.clone());
        places
    }

    fn packed(&mut self, rows: &[PictureRow], key: &str, own_key: &str, is_main: bool) -> Value {
        const KEYS: [(&str, &str); 5] = [
            ("name", "function"),
            ("signature", "text"),
            ("module", "text"),
            ("code", "text"),
            ("folded_into", "text"),
        ];
        let mut values: [Vec<Value>; 5] = Default::default();
        let mut words = Vec::new();
        for (at, row) in rows.iter().enumerate() {
            let [name, signature, module, code, folded_into, said] = self.places(row.function);
            if !said.is_null() {
                words.extend([json!(at), said]);
            }
            for (values, value) in values.iter_mut().zip([name, signature, module, code, folded_into]) {
                values.push(value);
            }
        }
        let column = |key: &str, kind: &str, values: Vec<Value>| {
            let (json, text) = (true, Value::Null);
            json!({ "key": key, "title": key, "kind": kind, "json": json, "csv": json, "text": text, "values": values })
        };
        let mut columns: Vec<Value> =
            KEYS.iter().zip(values).map(|((key, kind), values)| column(key, kind, values)).collect();
        columns[0]["words"] = json!(words);
        let numbers = |of: &dyn Fn(&PictureRow) -> u64| rows.iter().map(|row| json!(of(row))).collect::<Vec<_>>();
        let plain = [("pid", numbers(&|_| 0)), (own_key, numbers(&|row| row.own)), (TOTAL, numbers(&|row| row.total))];
        for (key, values) in plain {
            let mut one = column(key, "number", values);
            one["plain"] = json!(true);
            columns.push(one);
        }
        let depths: Vec<u32> = rows.iter().map(|row| row.depth).collect();
        json!({
            "key": key, "style": "tree", "block": 0, "main": is_main, "title": null, "nothing": "", "what": "paths", "left_out": 0,
            "note": null, "picked": false, "rows": rows.len(), "depths": depths, "below": [], "columns": columns,
        })
    }
}

/// Members of a document of rows, with the total sum and the functions that the transformations
/// name.
fn tree_members(
    functions: &[PictureFunction<'_>],
    rows: &[PictureRow],
    named: &[u32],
    total: u64,
    measure: &Value,
) -> String {
    let own = measure["own"].as_str().unwrap_or_default();
    let mut section = Section::new(functions);
    let rows = section.packed(rows, "roots", own, true);
    let about: Vec<PictureRow> =
        named.iter().map(|function| PictureRow { depth: 0, function: *function, own: 0, total: 0 }).collect();
    let about = section.packed(&about, "changed", own, false);
    let plain = |key: &str, value: u64| json!({ "key": key, "kind": "number", "plain": true, "values": [value] });
    let whole = json!({ "rows": 1, "columns": [plain("pid", 0), plain(TOTAL, total)] });
    let mut measure = measure.clone();
    measure["total"] = json!(TOTAL);
    let values = section.pool.to_json();
    format!(
        "\"schema\":\"clrscope.tree/1\",\"measures\":[{measure}],\"sections\":[{rows},{about}],\"whole\":{whole},\"values\":{values}"
    )
}

/// Members of a document of callers and callees, including calls directly from threads.
fn neighbours_members(
    functions: &[PictureFunction<'_>],
    tree: &ChangedTree<'_>,
    function: u32,
    measure: &Value,
) -> String {
    let own = measure["own"].as_str().unwrap_or_default();
    let found = tree.neighbours(function);
    let sums = tree.by_function()[function as usize];
    let row = |function: u32, total: u64| PictureRow { depth: 0, function, own: 0, total };
    let callers: Vec<PictureRow> =
        found.callers.iter().filter_map(|(caller, total)| Some(row((*caller)?, *total))).collect();
    let threads = found.callers.iter().find(|(caller, _)| caller.is_none()).map_or(0, |(_, total)| *total);
    let callees: Vec<PictureRow> = found.callees.iter().map(|(callee, total)| row(*callee, *total)).collect();
    let mut section = Section::new(functions);
    let [callers, callees] =
        [("callers", callers), ("callees", callees)].map(|(key, rows)| section.packed(&rows, key, own, false));
    let of = section.packed(&[PictureRow { depth: 0, function, own: sums.own, total: sums.total }], "of", own, true);
    let values = section.pool.to_json();
    format!(
        "\"sections\":[{of},{callers},{callees}],\"threads\":{threads},\"all\":{},\"values\":{values}",
        tree.total()
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kinds_of_code_are_those_that_the_page_has_colours_for() {
        let colours = include_str!("../../../../ui/src/colours.ts");
        let names = colours.lines().skip_while(|line| !line.contains("KINDS_OF_CODE")).skip(1);
        let names = names.take_while(|line| !line.starts_with(']')).filter_map(|line| {
            let list = line.split_once("names: [")?.1.split_once(']')?.0;
            Some(list.split(", ").map(|name| name.trim_matches('"')).collect::<Vec<_>>())
        });
        // The frame for omitted nodes is not a kind of code.
        let names: Vec<Vec<&str>> = names.filter(|names| *names != ["cut"]).collect();
        assert_eq!(names, KINDS.iter().map(|kinds| kinds.to_vec()).collect::<Vec<_>>());
    }
}
