//! Renderers, which write rows, and the interface through which they see rows.

pub(crate) mod csv;
mod guard;
pub(crate) mod json;
pub(crate) mod page;
pub(crate) mod text;

use std::io;

use clrscope_analysis::{Conditions, LeftOut, Metric};
use clrscope_recording::model::Recording;

use crate::cell::{Cell, ColumnInfo};

pub(crate) use csv::Csv;
pub use guard::Guard;
pub(crate) use json::{Json, Layout};

/// The formats.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Format {
    /// Text for people.
    Text,
    /// One JSON document.
    Json,
    /// Comma-separated values for spreadsheets.
    Csv,
    /// A page for browsers with every view.
    Html,
}

impl Format {
    /// Every format with its name on the command line and a one-line description.
    pub const ALL: [(&'static str, &'static str, Self); 4] = [
        ("text", "Tables for people", Self::Text),
        ("json", "One JSON document, times in nanoseconds", Self::Json),
        ("csv", "Comma-separated values, times in nanoseconds", Self::Csv),
        ("html", "One page with every view, for browsers: flame graphs, trees, tables; needs no network", Self::Html),
    ];

    /// The format with this name.
    #[must_use]
    pub fn parse(name: &str) -> Option<Self> {
        Self::ALL.iter().find(|(known, ..)| *known == name).map(|(.., format)| *format)
    }
}

/// Subject of a report.
#[non_exhaustive]
pub struct About<'r> {
    /// Name of the view.
    pub view: &'static str,
    /// The recording.
    pub recording: &'r Recording,
    /// Metric of the request, unless it is the default metric of the rows.
    pub metric: Option<&'static Metric>,
    /// Conditions of the rows, computed on demand. `None` if text output has no head.
    pub conditions: &'r dyn Fn() -> Option<Conditions<'r>>,
    /// Whether the head of text output says everything about how the rows were recorded.
    pub verbose: bool,
}

/// Layout of a section.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Style {
    /// A table.
    Table,
    /// One row: a table in text output, an object in JSON.
    Single,
    /// Nodes in preorder: a table indented by depth in text output, nested objects in JSON.
    Tree,
    /// Nodes in preorder: a flame graph in text output, the same as a tree in other formats.
    Flame {
        /// Whether amounts are the nodes' own amounts. If so, the width of a frame is its own
        /// amount plus the amounts of all nodes below it.
        own: bool,
    },
    /// Lines of a log, with a heading wherever the thread changes.
    Log,
    /// Lines below a table or a log, in addition to the main section.
    Lines,
    /// Paragraphs.
    Stories,
    /// Sentences.
    Notes,
    /// Facts, each with a label and a sentence.
    Facts,
}

impl Style {
    /// Whether rows are nodes in preorder.
    pub(crate) const fn is_tree(self) -> bool {
        matches!(self, Self::Tree | Self::Flame { .. })
    }

    /// The name of the layout in pages.
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Table => "table",
            Self::Single => "single",
            Self::Tree => "tree",
            Self::Flame { .. } => "flame",
            Self::Log => "log",
            Self::Lines => "lines",
            Self::Stories => "stories",
            Self::Notes => "notes",
            Self::Facts => "facts",
        }
    }
}

/// Heading of a section in text output.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Title {
    /// No heading.
    None,
    /// A title.
    Bold(String),
    /// A less prominent title.
    Faint(String),
}

/// A column of text output.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TextColumn {
    /// Index into [`Section::columns`].
    pub column: usize,
    /// Rank for leaving out columns on narrow terminals: the highest rank goes first, all its
    /// columns at once; rank 0 always stays.
    pub dispensable: u8,
}

/// A list of rows within a report.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct Section {
    /// Key in JSON documents.
    pub key: &'static str,
    /// Layout of the rows.
    pub style: Style,
    /// Whether this is the main section of the view. CSV has only the main section.
    pub is_main: bool,
    /// Sections with the same number belong together. JSON puts sections with numbers above 0 into
    /// `others`.
    pub block: usize,
    /// All columns of a row.
    pub columns: Vec<ColumnInfo>,
    /// Columns that JSON shows, as indices into `columns`.
    pub json: Vec<usize>,
    /// Columns that CSV shows, as indices into `columns`.
    pub csv: Vec<usize>,
    /// Columns that text output shows.
    pub text: Vec<TextColumn>,
    /// Whether the request selected the columns.
    pub is_picked: bool,
    /// Line above the rows in text output, if there are rows.
    pub title: Title,
    /// Text to show if there are no rows.
    pub nothing: String,
    /// Word for the rows in the sentence about omitted rows, such as `types`.
    pub what: &'static str,
    /// Maximum number of rows in text output; further rows are left out. `None` for no limit.
    pub text_rows: Option<usize>,
}

/// Remarks at the end of a section.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Tail {
    /// Number of rows that a limit left out.
    pub left_out: u64,
    /// A remark below the rows, for text output.
    pub note: Option<String>,
}

impl From<LeftOut> for Tail {
    fn from(left_out: LeftOut) -> Self {
        let note = "and more after those, not counted";
        Self { left_out: left_out.rows, note: (!left_out.is_whole).then(|| note.to_owned()) }
    }
}

/// A thread: the number of its process, and its own number.
pub type ThreadKey = (u32, u32);

/// Group of log entries under a common heading.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LogGroup {
    /// Entries of a thread.
    Thread(ThreadKey),
    /// Entries of all threads, with a column for the thread; the flag adds a column for the
    /// process.
    Mixed(bool),
}

/// A row of a log.
pub trait LogEntry {
    /// Returns the thread, and a number that never decreases from one row of the thread to the
    /// next.
    fn order_key(&self) -> (ThreadKey, u64);

    /// Returns the group of the row.
    fn group(&self) -> LogGroup;

    /// The heading above the rows of the group, with a line break at the end.
    fn heading(&self) -> String;

    /// The row as text, with a line break at the end.
    fn line(&self) -> String;

    /// The row as text for a terminal with `_width` columns, with a line break at the end: several
    /// lines if one is too narrow.
    fn lines(&self, _width: usize) -> String {
        self.line()
    }
}

/// A row as renderers see it. Each cell is made on demand.
pub trait Entry {
    /// The cell of the column at this index of [`Section::columns`].
    fn cell(&self, column: usize) -> Cell<'_>;

    /// Depth of the row in a tree.
    fn depth(&self) -> u32;

    /// The row as an entry of a log; `None` if the row does not belong to a log.
    fn log(&self) -> Option<&dyn LogEntry>;

    /// Lines of text below the row, in its last column; not shown if the request selected the
    /// columns.
    fn below(&self) -> &[String];
}

/// Passes every row of a section to a visitor, until the visitor fails.
pub type Rows<'r> = dyn FnMut(&mut dyn FnMut(&dyn Entry) -> io::Result<()>) -> io::Result<Tail> + 'r;

/// Writes reports. Rows come one by one, so a renderer need not keep them.
pub trait Renderer {
    /// Begins a report.
    ///
    /// # Errors
    /// Errors of writing.
    fn begin(&mut self, about: &About<'_>) -> io::Result<()>;

    /// Writes a section. The renderer calls `rows` at most once.
    ///
    /// # Errors
    /// Errors of writing.
    fn section(&mut self, section: &Section, rows: &mut Rows<'_>) -> io::Result<()>;

    /// Ends the report.
    ///
    /// # Errors
    /// Errors of writing.
    fn end(&mut self) -> io::Result<()>;
}
