//! Text about source files, for views that show source lines.

use std::path::Path;

use clrscope_symbols::SourceLine;

/// The last part of a path; both `/` and `\` separate parts.
pub(super) fn file_name(path: &str) -> &str {
    path.rsplit(['/', '\\']).next().unwrap_or(path)
}

/// A line without the folders of its file: `Cart.cs:12`.
pub(super) fn file_and_line(line: &SourceLine) -> String {
    format!("{}:{}", file_name(&line.file), line.line)
}

/// A line that follows a name, ` (Cart.cs:12)`; empty if the line is not known.
pub(super) fn line_behind(line: Option<&SourceLine>) -> String {
    line.map_or_else(String::new, |line| format!(" ({})", file_and_line(line)))
}

/// A sentence about files that were not found, and what the user can do about it; `None` if all
/// were found.
pub(super) fn not_found(missing: &[String], root: Option<&Path>) -> Option<String> {
    let (first, rest) = missing.split_first()?;
    let more = match rest.len() {
        0 => String::new(),
        1 => " and one more file".to_owned(),
        more => format!(" and {more} more files"),
    };
    let cure = match root {
        Some(root) => format!("No file below {} matches the end of that path either.", root.display()),
        None => "If the sources are elsewhere: --source-root FOLDER.".to_owned(),
    };
    Some(format!("Source not found: {first}{more}. {cure}"))
}
