//! Columns: what a view can show of a row.

use clrscope_analysis::Sort;

use crate::cell::{Cell, ColumnInfo, Kind};
use crate::render::{Entry, LogEntry, Section, Style, TextColumn, Title};
use crate::request::Request;

/// A kind of rows.
pub(crate) trait RowKind {
    /// A row, which may live only while it is visited.
    type Row<'a>: Row;
}

/// Function that makes a cell from a row.
type Value<'c, K> = dyn for<'r, 'a> Fn(&'r <K as RowKind>::Row<'a>) -> Cell<'r> + 'c;

/// A column of rows of the kind `K`.
pub(crate) struct Column<'c, K: RowKind> {
    pub(crate) info: ColumnInfo,
    value: Box<Value<'c, K>>,
}

impl<'c, K: RowKind> Column<'c, K> {
    /// A column that JSON and CSV show.
    pub(crate) fn new(
        key: &'static str,
        title: &'static str,
        kind: Kind,
        value: impl for<'r, 'a> Fn(&'r K::Row<'a>) -> Cell<'r> + 'c,
    ) -> Self {
        let parts: &[&str] = if kind == Kind::Thread { crate::cell::THREAD_PARTS } else { &[] };
        let info = ColumnInfo { key, title, kind, parts, in_json: true, in_csv: true };
        Self { info, value: Box::new(value) }
    }

    /// The column with another title, if `titles` has one for the current title.
    pub(crate) fn titled(mut self, titles: &[(&'static str, &'static str)]) -> Self {
        self.info.title =
            titles.iter().find(|(own, _)| *own == self.info.title).map_or(self.info.title, |(_, title)| title);
        self
    }

    /// The column, split in CSV into one column for each of these keys of its values.
    pub(crate) fn parts(mut self, parts: &'static [&'static str]) -> Self {
        self.info.parts = parts;
        self
    }

    /// The column; JSON and CSV show it by default only if `there` is true.
    pub(crate) fn only_if(mut self, there: bool) -> Self {
        self.info.in_json &= there;
        self.info.in_csv &= there;
        self
    }

    /// The column; JSON shows it only on request, because JSON documents hold the same data in
    /// another form.
    pub(crate) fn not_in_json(mut self) -> Self {
        self.info.in_json = false;
        self
    }

    /// The column; JSON and CSV show it only on request.
    pub(crate) fn on_request(self) -> Self {
        self.only_if(false)
    }
}

/// The columns of a kind of rows.
pub(crate) struct Sheet<'c, K: RowKind> {
    columns: Vec<Column<'c, K>>,
}

/// Properties of a row in addition to its cells.
pub(crate) trait Row {
    /// Depth of the row in a tree.
    fn depth(&self) -> u32 {
        0
    }

    /// The row as an entry of a log.
    fn log(&self) -> Option<&dyn LogEntry> {
        None
    }

    /// Text below the row, in its last column.
    fn below(&self) -> &[String] {
        &[]
    }
}

impl<'c, K: RowKind> Sheet<'c, K> {
    pub(crate) fn new(columns: impl IntoIterator<Item = Column<'c, K>>) -> Self {
        Self { columns: columns.into_iter().collect() }
    }

    pub(crate) fn infos(&self) -> Vec<ColumnInfo> {
        self.columns.iter().map(|column| column.info).collect()
    }

    /// A row of these columns for a renderer.
    pub(crate) fn entry<'r, 'a>(&'r self, row: &'r K::Row<'a>) -> TypedRow<'r, 'a, 'c, K> {
        TypedRow { row, columns: &self.columns }
    }

    /// The section `key` of a document with these columns. `text` lists the columns of text output,
    /// each with its key and its rank: narrow terminals omit the columns with the highest rank
    /// first, and never those with rank 0.
    pub(crate) fn section(&self, key: &'static str, style: Style, text: &[(&'static str, u8)]) -> Section {
        let columns = self.infos();
        let at = |wanted: &str| columns.iter().position(|column| column.key == wanted);
        let shown = |shown: fn(&ColumnInfo) -> bool| (0..columns.len()).filter(|&i| shown(&columns[i])).collect();
        let text = text.iter().filter_map(|&(key, dispensable)| Some(TextColumn { column: at(key)?, dispensable }));
        Section {
            key,
            style,
            is_main: false,
            block: 0,
            json: shown(|column| column.in_json),
            csv: shown(|column| column.in_csv),
            text: text.collect(),
            is_picked: false,
            title: Title::None,
            nothing: String::new(),
            what: "rows",
            text_rows: None,
            columns,
        }
    }

    /// The main section of a view. If the request selects columns, the section has these columns.
    pub(crate) fn main(
        &self,
        request: &Request,
        key: &'static str,
        style: Style,
        text: &[(&'static str, u8)],
    ) -> Section {
        let mut section = Section { is_main: true, ..self.section(key, style, text) };
        show_sorted(&mut section, request);
        if let Some(picked) = &request.columns {
            let at = |key: &String| section.columns.iter().position(|column| column.key == key);
            let picked: Vec<usize> = picked.iter().filter_map(at).collect();
            section.text = picked.iter().map(|&column| TextColumn { column, dispensable: 0 }).collect();
            (section.json, section.csv, section.is_picked) = (picked.clone(), picked, true);
        }
        section
    }
}

/// Makes text show the column by which a request sorts the rows, at every width.
fn show_sorted(section: &mut Section, request: &Request) {
    // A picture has no columns.
    if matches!(section.style, Style::Flame { .. }) {
        return;
    }
    let of_metric = request.query.metric.map(|_| if section.style.is_tree() { Sort::Total } else { Sort::Own });
    let Some(sort) = request.query.sort.or(of_metric) else { return };
    let metric = request.query.metric.map_or("", |metric| metric.name);
    let Some(column) = section.columns.iter().position(|column| is_sorted_by(column.key, sort, metric)) else { return };
    match section.text.iter_mut().find(|shown| shown.column == column) {
        Some(shown) => shown.dispensable = 0,
        None => section.text.insert(0, TextColumn { column, dispensable: 0 }),
    }
}

/// Whether rows are sorted by the column of this key.
fn is_sorted_by(key: &str, sort: Sort, metric: &str) -> bool {
    match (sort, metric) {
        (Sort::Own, "cpu") => is_sorted_by(key, Sort::ExclusiveCpu, ""),
        (Sort::Total, "cpu") => is_sorted_by(key, Sort::InclusiveCpu, ""),
        (Sort::Own | Sort::Total, "calls") => key == "calls",
        (Sort::Own, _) => matches!(key, "exclusive_ns" | "running_ns" | "bytes") || key.starts_with("self_"),
        (Sort::Total, _) => {
            matches!(key, "inclusive_ns" | "running_ns" | "retained_bytes" | "wasted_bytes")
                || key.starts_with("total_")
        }
        (Sort::Exclusive, _) => matches!(key, "exclusive_ns" | "running_ns"),
        (Sort::Inclusive, _) => matches!(key, "inclusive_ns" | "total_ns" | "running_ns" | "throw_to_catch_ns"),
        (Sort::Callee, _) => matches!(key, "callee_ns" | "running_ns"),
        (Sort::Suspended, _) => key == "suspended_ns",
        (Sort::Profiler, _) => key == "profiler_ns",
        (Sort::ExclusiveCpu, _) => matches!(key, "exclusive_cpu_ns" | "cpu_ns"),
        (Sort::InclusiveCpu, _) => matches!(key, "inclusive_cpu_ns" | "cpu_ns"),
        (Sort::Calls, _) => matches!(key, "calls" | "count" | "objects"),
        (Sort::Recursion, _) => matches!(key, "max_recursion" | "max_depth"),
        (Sort::Name, _) => matches!(key, "name" | "type"),
        (Sort::Module, _) => key == "module",
    }
}

/// Those columns of a text table whose condition holds. Each column in `all` has its key, its rank
/// (narrow tables omit the highest rank first) and its condition.
pub(crate) fn shown(all: &[(&'static str, u8, bool)]) -> Vec<(&'static str, u8)> {
    all.iter().filter(|(.., there)| *there).map(|&(key, dispensable, _)| (key, dispensable)).collect()
}

/// A row with its columns.
pub(crate) struct TypedRow<'r, 'a, 'c, K: RowKind> {
    row: &'r K::Row<'a>,
    columns: &'r [Column<'c, K>],
}

impl<K: RowKind> Entry for TypedRow<'_, '_, '_, K> {
    fn cell(&self, column: usize) -> Cell<'_> {
        self.columns.get(column).map_or(Cell::Absent, |column| (column.value)(self.row))
    }

    fn depth(&self) -> u32 {
        self.row.depth()
    }

    fn log(&self) -> Option<&dyn LogEntry> {
        self.row.log()
    }

    fn below(&self) -> &[String] {
        self.row.below()
    }
}
