//! Renderers: what writes rows, and what rows look like to them.

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
    /// For people.
    Text,
    /// One document.
    Json,
    /// For spreadsheets.
    Csv,
    /// One page for browsers, with every view there is.
    Html,
}

impl Format {
    /// Every format with its name on the command line and what it is, in one line.
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
    /// Metric that was asked for, unless rows are measured by it unasked as well.
    pub metric: Option<&'static Metric>,
    /// Conditions of the rows; computed when asked for. `None` where text has no head.
    pub conditions: &'r dyn Fn() -> Option<Conditions<'r>>,
    /// Whether the head of text has everything that is known of how the rows came about.
    pub verbose: bool,
}

/// Layout of a section.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Style {
    /// A table.
    Table,
    /// One row, as a table in text and an object in JSON.
    Single,
    /// Nodes in preorder, as a table indented by depth in text and nested objects in JSON.
    Tree,
    /// Nodes in preorder, drawn in text as a flame graph; otherwise as a tree.
    Flame {
        /// Amounts are the nodes' own: frames are as wide as these with those of all nodes below.
        own: bool,
    },
    /// Lines, with headings where threads change.
    Log,
    /// Lines below a table or a log, in addition to what the view is about.
    Lines,
    /// Paragraphs.
    Stories,
    /// Sentences.
    Notes,
    /// A label and a sentence each.
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

/// Heading of a section in text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Title {
    /// Nothing.
    None,
    /// A title.
    Bold(String),
    /// A title of less weight.
    Faint(String),
}

/// A column that text shows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TextColumn {
    /// Place in [`Section::columns`].
    pub column: usize,
    /// Left out on narrow terminals: the highest first, all with the same number at once; 0 never.
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
    /// Whether the section is what the view is about: CSV has no other.
    pub is_main: bool,
    /// Sections with the same number belong together; JSON has those above 0 in `others`.
    pub block: usize,
    /// Everything that can be asked of a row.
    pub columns: Vec<ColumnInfo>,
    /// Columns of JSON: places in `columns`.
    pub json: Vec<usize>,
    /// Columns of CSV: places in `columns`.
    pub csv: Vec<usize>,
    /// Columns of text.
    pub text: Vec<TextColumn>,
    /// Whether the request picked the columns.
    pub is_picked: bool,
    /// Line above the rows in text, where there are any.
    pub title: Title,
    /// Text where there are no rows.
    pub nothing: String,
    /// Name of the rows where some are left out.
    pub what: &'static str,
    /// Most rows in text; the others are left out.
    pub text_rows: Option<usize>,
}

/// Remarks at the end of a section.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Tail {
    /// Rows that a limit left out.
    pub left_out: u64,
    /// A remark below the rows, for text.
    pub note: Option<String>,
}

impl From<LeftOut> for Tail {
    fn from(left_out: LeftOut) -> Self {
        let note = "and others behind those, which were not counted";
        Self { left_out: left_out.rows, note: (!left_out.is_whole).then(|| note.to_owned()) }
    }
}

/// A thread by its process and its own number.
pub type ThreadKey = (u32, u32);

/// Entries of a log that stand together under a heading.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LogGroup {
    /// Entries of a thread.
    Thread(ThreadKey),
    /// All, whose threads are columns; whether processes are, too.
    Mixed(bool),
}

/// A row of a log.
pub trait LogEntry {
    /// Returns the thread, and a stamp that never falls from one row of the thread to the next.
    fn order_key(&self) -> (ThreadKey, u64);

    /// Heading that the row stands under.
    fn group(&self) -> LogGroup;

    /// The heading above the rows of its group, with a line break at the end.
    fn heading(&self) -> String;

    /// The row in text, with a line break at the end.
    fn line(&self) -> String;

    /// The row where lines have so many columns, with a line break at the end: one line, or several
    /// where it would not fit.
    fn lines(&self, _width: usize) -> String {
        self.line()
    }
}

/// A row as renderers see it: each cell is made when it is asked for.
pub trait Entry {
    /// The cell of the column at this place of [`Section::columns`].
    fn cell(&self, column: usize) -> Cell<'_>;

    /// Depth of the row in a tree.
    fn depth(&self) -> u32;

    /// The row as an entry of a log.
    fn log(&self) -> Option<&dyn LogEntry>;

    /// Lines of text below the row, in its last column, unless the columns were picked.
    fn below(&self) -> &[String];
}

/// Hands every row of a section to a visitor, until it fails.
pub type Rows<'r> = dyn FnMut(&mut dyn FnMut(&dyn Entry) -> io::Result<()>) -> io::Result<Tail> + 'r;

/// Writes reports. Rows come one by one, so that none need be kept.
pub trait Renderer {
    /// Begins a report.
    ///
    /// # Errors
    /// Errors of writing.
    fn begin(&mut self, about: &About<'_>) -> io::Result<()>;

    /// Takes a section. `rows` is called at most once.
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
