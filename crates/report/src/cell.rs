//! Cells: the values of rows, each with its kind, independent of a renderer.

use std::borrow::Cow;

use clrscope_analysis::{FunctionRef, is_own, one_line};
use clrscope_recording::model::Thread;
use serde_json::{Value, json};

/// Kind of a column's values, which determines their unit and alignment.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Kind {
    /// Words.
    Text,
    /// Whether an amount is more or less on the second side of a comparison, as a word.
    Verdict,
    /// The name of a function.
    Function,
    /// The name of a type.
    Type,
    /// The name of a counter, with its provider, tags and unit.
    Counter,
    /// A quantity without a unit.
    Count,
    /// A number that identifies something: an id, a token.
    Number,
    /// Nanoseconds.
    Time,
    /// Bytes.
    Bytes,
    /// A share, 0 to 1.
    Share,
    /// Yes or no.
    Flag,
    /// A thread.
    Thread,
    /// An object or a list of further values.
    Nested,
}

impl Kind {
    /// The name of the kind in pages.
    pub(crate) const fn name(self) -> &'static str {
        match self {
            // Pages have room for whole names.
            Self::Text | Self::Verdict | Self::Type | Self::Counter => "text",
            Self::Function => "function",
            Self::Count => "count",
            Self::Number => "number",
            Self::Time => "time",
            Self::Bytes => "bytes",
            Self::Share => "share",
            Self::Flag => "flag",
            Self::Thread => "thread",
            Self::Nested => "nested",
        }
    }

    /// Whether values are left-aligned like words, not right-aligned like numbers.
    #[must_use]
    pub const fn is_left(self) -> bool {
        matches!(
            self,
            Self::Text
                | Self::Verdict
                | Self::Function
                | Self::Type
                | Self::Counter
                | Self::Flag
                | Self::Thread
                | Self::Nested
        )
    }
}

/// What renderers, help texts and checks of command lines need to know of a column.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ColumnInfo {
    /// Key in JSON, and name of the column in CSV and for `--columns`.
    pub key: &'static str,
    /// Title of the column in text output.
    pub title: &'static str,
    /// Kind of the values, which determines their unit and alignment.
    pub kind: Kind,
    /// Keys within nested values: CSV has a column for each key. Empty if values are not split.
    pub parts: &'static [&'static str],
    /// Whether JSON shows the column by default.
    pub in_json: bool,
    /// Whether CSV shows the column by default.
    pub in_csv: bool,
}

/// One value of a row.
#[derive(Debug, Clone)]
pub enum Cell<'a> {
    /// The row has no such value: JSON leaves the key out.
    Absent,
    /// The value is not known: `null` in JSON.
    Null,
    /// Yes or no.
    Flag(bool),
    /// A quantity without a unit.
    Count(u64),
    /// A number that identifies something.
    Number(u64),
    /// Nanoseconds.
    Time(u64),
    /// Bytes.
    Bytes(u64),
    /// A difference: positive for growth, negative for a decrease.
    Change(i64),
    /// A share, 0 to 1.
    Share(f64),
    /// Words.
    Text(Cow<'a, str>),
    /// The name of a function.
    Function(FunctionCell<'a>),
    /// A thread.
    Thread(&'a Thread),
    /// An object or a list of further values.
    Nested(Value),
    /// A value, with the text to show instead of it.
    Said(Box<Cell<'a>>, String),
}

/// A function as a cell. Text output shows the signature if several rows have the same name but
/// different signatures.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FunctionCell<'a> {
    /// Words before the name in text output.
    pub before: String,
    /// `Namespace.Type::Method`.
    pub name: &'a str,
    /// The signature as C# would write it, without the words in `after`.
    pub signature: &'a str,
    /// Words after the name in text output.
    pub after: String,
    /// Whether another table of the report is about a function of this name with another signature.
    /// If so, text output shows the signature.
    pub has_namesakes: bool,
    /// Whether the function is the program's own.
    pub is_own: bool,
}

impl<'a> Cell<'a> {
    /// A text cell that borrows from the row.
    pub(crate) fn text(text: &'a str) -> Self {
        Self::Text(Cow::Borrowed(text))
    }

    /// A cell with the function's name.
    pub(crate) fn function(function: &FunctionRef<'a>) -> Self {
        let after = code_of(function);
        Self::Function(FunctionCell {
            before: String::new(),
            name: function.name(),
            signature: function.plain_signature(),
            after,
            has_namesakes: false,
            is_own: is_own(function),
        })
    }

    /// A time; [`Absent`](Self::Absent) if it was not measured.
    pub(crate) fn measured(ns: Option<u64>) -> Self {
        ns.map_or(Self::Absent, Self::Time)
    }

    /// The cell of a value; [`Null`](Self::Null) if there is none.
    pub(crate) fn or_null<T>(value: Option<T>, cell: impl FnOnce(T) -> Self) -> Self {
        value.map_or(Self::Null, cell)
    }

    /// The value, shown to people as `words`.
    pub(crate) fn said(self, words: impl Into<String>) -> Self {
        Self::Said(Box::new(self), words.into())
    }

    /// The value in JSON; `None` if the row has no such value.
    #[must_use]
    pub fn to_json(&self) -> Option<Value> {
        Some(match self {
            Self::Absent => return None,
            Self::Null => Value::Null,
            Self::Flag(flag) => json!(flag),
            Self::Count(number) | Self::Number(number) | Self::Time(number) | Self::Bytes(number) => json!(number),
            Self::Change(number) => json!(number),
            Self::Share(share) => json!(share),
            Self::Text(text) => json!(text),
            Self::Function(function) => json!(function.name),
            Self::Thread(thread) => thread_identity(thread),
            Self::Nested(value) => value.clone(),
            Self::Said(cell, _) => return cell.to_json(),
        })
    }
}

/// Marker of the function's kind of code, such as ` (async)` or ` (lambda)`; empty if the code is
/// the method's own body.
pub(crate) fn code_of(function: &FunctionRef<'_>) -> String {
    function.marker().map_or_else(String::new, |marker| format!(" ({})", one_line(marker)))
}

/// The keys of a thread in JSON.
pub(crate) const THREAD_PARTS: &[&str] = &["id", "os_id", "name", "role"];

/// Names of a thread.
fn thread_identity(thread: &Thread) -> Value {
    json!({ "id": thread.id, "os_id": thread.os_id, "name": thread.name, "role": thread.role.name() })
}
