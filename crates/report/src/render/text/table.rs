//! Tables: aligned columns, the last one as wide as there is room.

use super::names::{columns, shortened};
use super::{TITLE, styled};

/// Between two columns.
const GAP: &str = "  ";
/// The last column is not narrower than this as long as others can be left out.
const LEAST_LAST: usize = 30;

/// How a column is laid out.
#[derive(Debug, Clone, Copy)]
pub(super) struct Column {
    /// Title of the column.
    title: &'static str,
    /// Left out on narrow terminals: the highest first, all that have the same number at once; 0 never.
    dispensable: u8,
    /// Text rather than numbers.
    left: bool,
}

impl Column {
    /// A column of numbers.
    pub(super) const fn number(title: &'static str, dispensable: u8) -> Self {
        Self { title, dispensable, left: false }
    }

    /// A column of words.
    pub(super) const fn words(title: &'static str, dispensable: u8) -> Self {
        Self { title, dispensable, left: true }
    }
}

/// A table. The last column holds names and takes what room is left.
#[derive(Debug)]
pub(super) struct Table {
    columns: Vec<Column>,
    rows: Vec<Row>,
}

#[derive(Debug)]
struct Row {
    cells: Vec<String>,
    /// Stands before the last cell and is never shortened.
    prefix: String,
}

impl Table {
    /// A table without rows.
    pub(super) fn new(columns: Vec<Column>) -> Self {
        Self { columns, rows: Vec::new() }
    }

    /// Adds a row whose last cell stands behind a prefix (an indentation), which is kept whole when
    /// the cell is shortened.
    pub(super) fn row_with_prefix(&mut self, cells: Vec<String>, prefix: String) {
        debug_assert_eq!(cells.len(), self.columns.len());
        self.rows.push(Row { cells, prefix });
    }

    /// The table in at most `width` columns, a line break after each row, and the widths of its columns. They are at least
    /// those of `above`, the rows that stand above these.
    pub(super) fn render_below(&self, width: usize, above: Option<Vec<usize>>) -> (String, Vec<usize>) {
        let mut widths = self.widths();
        widths.iter_mut().zip(above.into_iter().flatten()).for_each(|(width, above)| *width = above.max(*width));
        let shown = self.shown(&widths, width);
        let titles = |i: usize| self.columns[i].title;
        let mut text = styled(TITLE, self.line(&shown, &widths, width, "", titles).trim_end());
        text.push('\n');
        for row in &self.rows {
            text.push_str(self.line(&shown, &widths, width, &row.prefix, |i| &row.cells[i]).trim_end());
            text.push('\n');
        }
        (text, widths)
    }

    fn widths(&self) -> Vec<usize> {
        let last = self.columns.len() - 1;
        let width = |i: usize| {
            let cell = |row: &Row| columns(&row.cells[i]) + if i == last { columns(&row.prefix) } else { 0 };
            self.rows.iter().map(cell).chain([columns(self.columns[i].title)]).max().unwrap_or(0)
        };
        (0..=last).map(width).collect()
    }

    /// The columns there is room for.
    fn shown(&self, widths: &[usize], width: usize) -> Vec<usize> {
        let last = self.columns.len() - 1;
        let mut shown: Vec<usize> = (0..self.columns.len()).collect();
        while room(&shown, widths, width) < LEAST_LAST.min(widths[last]) {
            let most = shown.iter().map(|&i| self.columns[i].dispensable).max().unwrap_or(0);
            if most == 0 {
                break;
            }
            shown.retain(|&i| self.columns[i].dispensable < most);
        }
        shown
    }

    fn line<'t>(
        &self,
        shown: &[usize],
        widths: &[usize],
        width: usize,
        prefix: &str,
        cell: impl Fn(usize) -> &'t str,
    ) -> String {
        let last = self.columns.len() - 1;
        let mut line = String::new();
        for &i in shown {
            if i == last && self.columns[i].left {
                let room = room(shown, widths, width).saturating_sub(columns(prefix));
                line.extend([prefix, &shortened(cell(i), room.max(8))]);
                continue;
            }
            let padding = " ".repeat(widths[i].saturating_sub(columns(cell(i))));
            let (before, after) = if self.columns[i].left { ("", &*padding) } else { (&*padding, "") };
            line.extend([before, cell(i), after, GAP]);
        }
        line
    }
}

/// What the columns before it leave to the last one.
fn room(shown: &[usize], widths: &[usize], width: usize) -> usize {
    let last = widths.len() - 1;
    let used: usize = shown.iter().filter(|&&i| i != last).map(|&i| widths[i] + GAP.len()).sum();
    width.saturating_sub(used)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn table() -> Table {
        let mut table = Table::new(vec![
            Column::number("time", 0),
            Column::number("calls", 1),
            Column::words("module", 2),
            Column::words("function", 0),
        ]);
        table.row_with_prefix(
            vec!["1.00 s ".into(), "1,000".into(), "App".into(), "App.Program::Main".into()],
            String::new(),
        );
        table.row_with_prefix(
            vec!["12 ms".into(), "7".into(), "Library".into(), "A.Rather.Long.Namespace.Of.A.Type::Method".into()],
            String::new(),
        );
        table
    }

    fn plain(text: &str) -> String {
        anstream::adapter::strip_str(text).to_string()
    }

    #[test]
    fn numbers_stand_right_and_words_left() {
        assert_eq!(
            plain(&table().render_below(100, None).0),
            "   time  calls  module   function\n\
             1.00 s   1,000  App      App.Program::Main\n\
             \x20 12 ms      7  Library  A.Rather.Long.Namespace.Of.A.Type::Method\n"
        );
    }

    #[test]
    fn narrow_tables_leave_out_the_dispensable_first_and_never_overflow() {
        let narrow = plain(&table().render_below(50, None).0);
        assert!(!narrow.contains("module") && narrow.contains("calls"), "{narrow}");
        for width in 40..120 {
            for line in plain(&table().render_below(width, None).0).lines() {
                assert!(columns(line) <= width, "{width}: {line}");
            }
        }
    }
}
