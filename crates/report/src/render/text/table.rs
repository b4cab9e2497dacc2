//! Tables with aligned columns. Names and the last column use the remaining width.

use anstyle::Style as Ansi;

use super::head::wrapped;
use super::names::{NameKind, columns, shortened};
use super::{TITLE, styled};

/// Gap between two columns.
const GAP: &str = "  ";
/// Indentation of lines below a row, in its last column.
const BELOW: usize = 2;
/// Words between a number and a name, in text below a row.
const LEAD_END: &str = " in ";
/// Text below a row begins no further to the right than at the width divided by this. It continues
/// in further lines.
const MOST_BEFORE_BELOW: usize = 3;
/// Minimum width of names and of the last column, as long as other columns can be left out.
const LEAST_NAMES: usize = 30;
/// Names are never made narrower than this.
const LEAST_NAME: usize = 8;
/// The smallest width in a series of widths, and the distance between these widths. At each of
/// them, names have at least as much room as at the previous one.
const STEP: usize = 40;
/// Tables wider than this are not compared with narrower ones, because everything fits.
const MOST_STEPS: usize = 400;

/// Layout of a column.
#[derive(Debug, Clone, Copy)]
pub(super) struct Column {
    /// Title of the column.
    title: &'static str,
    /// Rank for leaving out columns on narrow terminals: the highest goes first, all its columns at
    /// once; 0 always stays.
    dispensable: u8,
    /// Whether the column is left-aligned: text rather than numbers.
    left: bool,
    /// Kind of the names in the column, which are shortened if there is no room.
    names: Option<NameKind>,
}

impl Column {
    /// A column of numbers.
    pub(super) const fn number(title: &'static str, dispensable: u8) -> Self {
        Self { title, dispensable, left: false, names: None }
    }

    /// A column of words.
    pub(super) const fn words(title: &'static str, dispensable: u8) -> Self {
        Self { title, dispensable, left: true, names: None }
    }

    /// A column of names of functions.
    pub(super) const fn names(title: &'static str, dispensable: u8) -> Self {
        Self::names_of(NameKind::Function, title, dispensable)
    }

    /// A column of names of this kind.
    pub(super) const fn names_of(kind: NameKind, title: &'static str, dispensable: u8) -> Self {
        Self { title, dispensable, left: true, names: Some(kind) }
    }
}

/// A table. Columns of names and the last column take the remaining width.
#[derive(Debug)]
pub(super) struct Table {
    columns: Vec<Column>,
    rows: Vec<Row>,
}

#[derive(Debug)]
enum Row {
    Cells {
        cells: Vec<String>,
        /// Prefix of the last cell, which is never shortened.
        prefix: String,
        /// Styles of the first cells.
        styles: Vec<Option<Ansi>>,
    },
    /// Text about the row above, shown whole, in as many lines as needed.
    Below(String),
}

impl Table {
    /// A table without rows.
    pub(super) fn new(columns: Vec<Column>) -> Self {
        Self { columns, rows: Vec::new() }
    }

    /// Adds a row whose last cell follows a prefix (an indentation). The prefix stays whole when
    /// the cell is shortened.
    pub(super) fn row_with_prefix(&mut self, cells: Vec<String>, prefix: String) {
        debug_assert_eq!(cells.len(), self.columns.len());
        self.rows.push(Row::Cells { cells, prefix, styles: Vec::new() });
    }

    /// Gives styles to the cells of the last row.
    pub(super) fn style_last(&mut self, of_cells: Vec<Option<Ansi>>) {
        if let Some(Row::Cells { styles, .. }) = self.rows.last_mut() {
            *styles = of_cells;
        }
    }

    /// Adds text about the last row. If the last column has names of functions, the text is shown
    /// like another name; of `12.3 % in NAME`, only the name is shortened.
    pub(super) fn below(&mut self, words: String) {
        match self.columns.split_last() {
            Some((last, others)) if last.names == Some(NameKind::Function) => {
                let (lead, name) = words.split_at(words.find(LEAD_END).map_or(0, |at| at + LEAD_END.len()));
                let cells = others.iter().map(|_| String::new()).chain([name.to_owned()]).collect();
                self.row_with_prefix(cells, " ".repeat(BELOW) + lead);
            }
            _ => self.rows.push(Row::Below(words)),
        }
    }

    /// The table in at most `width` columns, with a line break after each row, and the widths of
    /// its columns. `above` has the widths of the rows above the table; no column gets narrower
    /// than these.
    pub(super) fn render_below(&self, width: usize, above: Option<Vec<usize>>) -> (String, Vec<usize>) {
        let mut widths = self.widths();
        widths.iter_mut().zip(above.into_iter().flatten()).for_each(|(width, above)| *width = above.max(*width));
        let shown = self.shown(&widths, width);
        let fitted = self.fitted(&shown, &widths, width);
        let titles = |i: usize| self.columns[i].title;
        let mut text = styled(TITLE, self.line(&shown, &fitted, "", titles, &[]).trim_end());
        text.push('\n');
        let last = self.columns.len() - 1;
        let start: usize = shown.iter().filter(|&&i| i != last).map(|&i| fitted[i] + GAP.len()).sum();
        for row in &self.rows {
            match row {
                Row::Cells { cells, prefix, styles } => {
                    text.push_str(self.line(&shown, &fitted, prefix, |i| &cells[i], styles).trim_end());
                    text.push('\n');
                }
                Row::Below(words) => text.push_str(&below(words, start + BELOW, width)),
            }
        }
        (text, widths)
    }

    fn widths(&self) -> Vec<usize> {
        let last = self.columns.len() - 1;
        let width = |i: usize| {
            let cell = |row: &Row| match row {
                Row::Cells { cells, prefix, .. } => columns(&cells[i]) + if i == last { columns(prefix) } else { 0 },
                Row::Below(_) => 0,
            };
            self.rows.iter().map(cell).chain([columns(self.columns[i].title)]).max().unwrap_or(0)
        };
        (0..=last).map(width).collect()
    }

    /// Whether a column is shortened if there is no room.
    fn is_flexible(&self, column: usize) -> bool {
        self.columns[column].names.is_some() || (self.columns[column].left && column + 1 == self.columns.len())
    }

    /// The columns for which there is room.
    fn shown(&self, widths: &[usize], width: usize) -> Vec<usize> {
        let all: Vec<usize> = (0..self.columns.len()).collect();
        let names = |shown: &[usize], most: usize| {
            let flexible = shown.iter().filter(|&&i| self.is_flexible(i));
            flexible.map(|&i| widths[i].min(most)).sum::<usize>()
        };
        // Begins with the narrowest width: wider tables give names at least the same room.
        let (mut least, mut shown) = (0, all.clone());
        for width in (1..).map(|step| step * STEP).take_while(|&step| step < width.min(MOST_STEPS)).chain([width]) {
            shown.clone_from(&all);
            while self.room(&shown, widths, width)
                < least.min(names(&shown, usize::MAX)).max(names(&shown, LEAST_NAMES))
            {
                let most = shown.iter().map(|&i| self.columns[i].dispensable).max().unwrap_or(0);
                if most == 0 {
                    break;
                }
                shown.retain(|&i| self.columns[i].dispensable < most);
            }
            least = least.max(self.room(&shown, widths, width));
        }
        shown
    }

    /// The widths of the shown columns, with names as wide as possible.
    fn fitted(&self, shown: &[usize], widths: &[usize], width: usize) -> Vec<usize> {
        let mut fitted = widths.to_vec();
        let mut room = self.room(shown, widths, width);
        let mut flexible: Vec<usize> = shown.iter().copied().filter(|&i| self.is_flexible(i)).collect();
        flexible.sort_by_key(|&i| widths[i]);
        // Narrow columns get the width that they need, and leave the rest to the others.
        for (done, &i) in flexible.iter().enumerate() {
            fitted[i] = widths[i].min((room / (flexible.len() - done)).max(LEAST_NAME));
            room = room.saturating_sub(fitted[i]);
        }
        fitted
    }

    fn line<'t>(
        &self,
        shown: &[usize],
        widths: &[usize],
        prefix: &str,
        cell: impl Fn(usize) -> &'t str,
        styles: &[Option<Ansi>],
    ) -> String {
        let last = self.columns.len() - 1;
        let mut line = String::new();
        for &i in shown {
            let prefix = if i == last && self.columns[i].left { prefix } else { "" };
            let room = widths[i].saturating_sub(columns(prefix)).max(LEAST_NAME);
            let words = match self.columns[i].names {
                Some(kind) => kind.shortened(cell(i), room),
                None if self.is_flexible(i) => shortened(cell(i), room),
                None => cell(i).to_owned(),
            };
            let padding = " ".repeat(widths[i].saturating_sub(columns(&words) + columns(prefix)));
            let (before, after) = if self.columns[i].left { ("", &*padding) } else { (&*padding, "") };
            let words = match styles.get(i) {
                Some(Some(style)) => styled(*style, &words),
                _ => words,
            };
            line.extend([before, prefix, &words, after, GAP]);
        }
        line
    }

    /// Width that the other columns leave to names.
    fn room(&self, shown: &[usize], widths: &[usize], width: usize) -> usize {
        let fixed: usize = shown.iter().filter(|&&i| !self.is_flexible(i)).map(|&i| widths[i]).sum();
        width.saturating_sub(fixed + GAP.len() * shown.len().saturating_sub(1))
    }
}

/// Lines of text about a row, from the column `start` on, or further left if that leaves too little
/// room.
fn below(words: &str, start: usize, width: usize) -> String {
    let start = start.min(width / MOST_BEFORE_BELOW);
    let lines = wrapped(words, width.saturating_sub(start).max(LEAST_NAME));
    lines.iter().map(|line| format!("{}{line}\n", " ".repeat(start))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn table() -> Table {
        let mut table = Table::new(vec![
            Column::number("time", 0),
            Column::number("calls", 1),
            Column::words("module", 2),
            Column::names("function", 0),
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

    #[test]
    fn names_are_never_shorter_at_a_wider_step_and_whole_where_nobody_limits_the_width() {
        let mut table = Table::new(vec![
            Column::number("time", 0),
            Column::number("calls", 1),
            Column::number("cpu", 3),
            Column::words("module", 5),
            Column::number("at most", 9),
            Column::names("function", 0),
        ]);
        let name = "System.Text.RegularExpressions.RegularExpressionInterpreter::TryMatchAtCurrentPosition";
        for words in [name, "A::B"] {
            let module = "System.Text.RegularExpressions";
            let cells = ["1.00 s ", "12,345,678", "1.00 s ", module, "999 ms"].map(String::from);
            table.row_with_prefix(cells.into_iter().chain([words.to_owned()]).collect(), String::new());
        }
        let longest = |width: usize| {
            let text = plain(&table.render_below(width, None).0);
            text.lines().nth(1).and_then(|line| line.split(' ').next_back()).map_or(0, str::len)
        };
        let lengths: Vec<usize> = [80, 120, 160, 200, 240].into_iter().map(longest).collect();
        assert!(lengths.is_sorted() && lengths[0] >= LEAST_NAMES, "{lengths:?}");
        let all = plain(&table.render_below(usize::MAX, None).0);
        assert!(all.contains(name) && all.contains("at most"), "{all}");
    }

    /// `26.4 % in System.Text.RegularExpressions.Regex::.ctor` was shown as `...Regex::.ctor`.
    #[test]
    fn names_below_a_row_keep_the_number_before_them() {
        let mut table = table();
        table.below("26.4 % in System.Text.RegularExpressions.Regex::.ctor".to_owned());
        let narrow = plain(&table.render_below(60, None).0);
        assert_eq!(narrow.lines().last().map(str::trim), Some("26.4 % in ...Regex::.ctor"), "{narrow}");
    }

    /// Lines below rows used to have only the room of the last column, so that more columns on
    /// wider terminals left less room.
    #[test]
    fn words_below_a_row_are_told_whole_at_any_width() {
        let mut table = Table::new(vec![
            Column::number("retained", 0),
            Column::number("before", 3),
            Column::words("module", 5),
            Column::names_of(NameKind::Type, "type", 0),
        ]);
        let words = "+296,700 with 14.2 MB, held by static field Shop.Program.Orders -> Cache._orders -> \
                     Dictionary<string, Shop.Order>._entries -> Dictionary<string, Shop.Order>.Entry[][0].value";
        let module = "System.Collections.Concurrent.Implementation".repeat(2);
        table.row_with_prefix(
            ["28.5 MB", "12,345,678", &module, "Shop.Order"].map(String::from).to_vec(),
            String::new(),
        );
        table.below(words.to_owned());
        for width in (60..400).chain([usize::MAX]) {
            let text = plain(&table.render_below(width, None).0);
            let below: Vec<&str> = text.lines().skip(2).map(str::trim).collect();
            assert_eq!(below.join(" "), words, "{width}: {text}");
            assert!(text.lines().all(|line| columns(line) <= width), "{width}: {text}");
        }
        let wide = plain(&table.render_below(usize::MAX, None).0);
        let starts: Vec<usize> = wide.lines().filter_map(|line| line.find("type").or(line.find("+296"))).collect();
        assert!(matches!(starts[..], [title, words] if words == title + BELOW), "{wide}");
    }
}
