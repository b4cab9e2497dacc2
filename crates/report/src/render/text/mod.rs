//! Reports for people, as wide as the terminal, with aligned columns and shares next to times.

pub(crate) mod events;
pub(crate) mod exceptions;
pub(crate) mod facts;
mod flame;
pub(crate) mod flow;
mod follow;
pub(crate) mod grid;
mod head;
mod names;
mod notes;
pub(crate) mod probes;
mod sampling;
mod table;
pub(crate) mod units;
mod value_lines;
mod values;

use std::io::{self, Write};

use anstyle::{AnsiColor, Style as Ansi};
use clrscope_analysis::one_line;

use super::{About, Entry, Guard, LogGroup, Renderer, Rows, Section, Style, Tail, Title};
use grid::Grid;
use names::shortened;

pub use follow::FollowState;
pub(crate) use follow::News;
pub(crate) use head::wrapped;
pub use names::NameKind;
pub use notes::first_functions;

/// Titles of sections and columns.
const TITLE: Ansi = Ansi::new().bold();
/// Style of less important text.
const FAINT: Ansi = Ansi::new().dimmed();
/// Style of warnings.
const WARNING: Ansi = AnsiColor::Yellow.on_default();
/// The width of tables that have no limit.
pub const UNLIMITED: usize = usize::MAX;
/// Width of sentences where the width is not limited.
const PROSE: usize = 100;
/// Number of lines within which the first table begins, however many sentences there are.
const BEFORE_TABLE: usize = 12;
/// Minimum number of sentences that come before the first table.
const LEAST_NOTES: usize = 2;
/// Rows of a log that are laid out together as a table; bounded because a log may be larger than
/// memory.
const TOGETHER: usize = 10_000;

/// Writes a report for people.
pub(crate) struct Text<'o> {
    out: Guard<&'o mut dyn Write>,
    width: usize,
    /// Width of sentences in columns.
    prose: usize,
    /// Whether the main section had no rows at all.
    is_empty: bool,
    /// Whether a table stands above.
    is_below_table: bool,
    /// Whether the output is a terminal, which shows box characters and colours.
    on_terminal: bool,
    /// Lines of the head.
    head: usize,
    /// Sentences that come after the tables, with their title.
    later: String,
}

impl<'o> Text<'o> {
    /// Creates a renderer for text in at most `width` columns.
    pub(crate) fn new(out: &'o mut dyn Write, width: usize, on_terminal: bool) -> Self {
        let prose = if width == UNLIMITED { PROSE } else { width };
        Self {
            out: Guard::new(out),
            width,
            prose,
            is_empty: false,
            is_below_table: false,
            on_terminal,
            head: 0,
            later: String::new(),
        }
    }

    fn write(&mut self, text: &str) -> io::Result<()> {
        self.out.write_all(text.as_bytes())
    }

    fn title(&mut self, title: &Title) -> io::Result<()> {
        match title {
            Title::None => Ok(()),
            Title::Bold(title) => self.write(&(styled(TITLE, &shortened(title, self.width)) + "\n")),
            Title::Faint(title) => self.write(&(styled(FAINT, &one_line(title.as_str())) + "\n")),
        }
    }

    /// Text instead of rows.
    fn nothing(&mut self, section: &Section) -> io::Result<()> {
        if section.nothing.is_empty() {
            return Ok(());
        }
        let text = match (&section.title, section.style) {
            (Title::Faint(_), _) => styled(FAINT, &section.nothing),
            (_, Style::Log | Style::Stories) => section.nothing.clone(),
            _ => head::wrapped(&section.nothing, self.prose).join("\n"),
        };
        self.is_below_table = true;
        self.write(&(text + "\n"))
    }

    fn table(&mut self, section: &Section, rows: &mut Rows<'_>) -> io::Result<()> {
        if section.style == Style::Single && section.block > 0 {
            self.write("\n")?;
        }
        let in_parts = matches!(section.style, Style::Log | Style::Stories | Style::Lines);
        let mut grid = Grid::new(section, self.width);
        let (mut count, mut is_begun) = (0_usize, false);
        let tail = rows(&mut |entry| {
            count += 1;
            grid.row(entry);
            if in_parts && grid.len() >= TOGETHER {
                let part = grid.flush();
                return self.write(&part);
            }
            if !std::mem::replace(&mut is_begun, true) && in_parts {
                return self.title(&section.title);
            }
            Ok(())
        })?;
        self.is_empty = section.is_main && count == 0 && tail.left_out == 0;
        if count == 0 && tail.left_out == 0 {
            return self.nothing(section);
        }
        if !in_parts && count > 0 {
            if matches!(section.title, Title::Bold(_)) && std::mem::replace(&mut self.is_below_table, true) {
                self.write("\n")?;
            }
            self.title(&section.title)?;
        }
        let rest = grid.flush();
        self.write(&rest)?;
        self.tail(section, &tail, count)
    }

    fn tail(&mut self, section: &Section, tail: &Tail, shown: usize) -> io::Result<()> {
        self.write(&more(shown, tail.left_out, section.what, self.prose))?;
        match &tail.note {
            Some(note) => self.write(&footnote(note, self.prose)),
            None => Ok(()),
        }
    }

    fn flame(&mut self, section: &Section, own: bool, rows: &mut Rows<'_>) -> io::Result<()> {
        let mut frames = Vec::new();
        let tail = rows(&mut |entry| {
            frames.push(flame::Frame::from_entry(section, entry));
            Ok(())
        })?;
        if frames.is_empty() {
            return self.nothing(section);
        }
        if own {
            flame::add_up(&mut frames);
        }
        let picture = flame::draw(&frames, self.width, self.on_terminal);
        self.write(&picture.text)?;
        let folded = "Frames too narrow to be drawn, shown as dots, and their callees:";
        if picture.folded > 0 {
            self.write(&footnote(&format!("{folded} {}.", units::count(picture.folded as u64)), self.prose))?;
        }
        self.tail(section, &tail, frames.len())
    }

    fn log(&mut self, section: &Section, rows: &mut Rows<'_>) -> io::Result<()> {
        let mut group: Option<LogGroup> = None;
        let tail = rows(&mut |entry| match entry.log() {
            Some(row) => {
                if group.replace(row.group()) != Some(row.group()) {
                    self.write(&row.heading())?;
                }
                self.write(&row.lines(self.width))
            }
            None => Ok(()),
        })?;
        self.is_empty = group.is_none() && tail.left_out == 0;
        if self.is_empty {
            return self.nothing(section);
        }
        if tail.left_out > 0 {
            writeln!(self.out, "... and {} more {} (--limit shows more)", tail.left_out, section.what)?;
        }
        tail.note.iter().try_for_each(|note| writeln!(self.out, "{note}"))
    }

    fn lines(&mut self, section: &Section, rows: &mut Rows<'_>) -> io::Result<()> {
        let (mut shown, mut count) = (0, 0);
        let tail = rows(&mut |entry| {
            count += 1;
            match entry.log() {
                Some(row) if section.text_rows.is_none_or(|most| shown < most) => {
                    shown += 1;
                    self.write(&row.line())
                }
                _ => Ok(()),
            }
        })?;
        if count == 0 && tail.left_out == 0 {
            return self.nothing(section);
        }
        self.tail(section, &Tail { left_out: tail.left_out + (count - shown) as u64, note: tail.note }, shown)
    }

    fn facts(&mut self, section: &Section, rows: &mut Rows<'_>) -> io::Result<()> {
        let mut before = String::new();
        rows(&mut |entry: &dyn Entry| {
            let mut cells = section.text.iter().map(|shown| grid::words(&entry.cell(shown.column)));
            let (label, text) = (cells.next().unwrap_or_default(), cells.next().unwrap_or_default());
            let shown = if label == before { "" } else { &label };
            let fact = head::fact(shown, &text, self.prose);
            before = label;
            self.write(&fact)
        })?;
        Ok(())
    }

    fn notes(&mut self, section: &Section, rows: &mut Rows<'_>) -> io::Result<()> {
        let mut texts = Vec::new();
        let column = section.text.first().map_or(0, |shown| shown.column);
        rows(&mut |entry: &dyn Entry| {
            texts.push(grid::words(&entry.cell(column)));
            Ok(())
        })?;
        if texts.is_empty() {
            return Ok(());
        }
        let mut first: Vec<String> = texts.iter().map(|text| notes::bullet(text, self.prose)).collect();
        let (fit, all) = (self.notes_before_table(&first), first.len());
        match &section.title {
            Title::Bold(title) if fit < all => {
                let later = first.split_off(fit).concat();
                self.later = format!("\n{}\n{later}", styled(TITLE, &format!("{title}, continued")));
                self.title(&Title::Bold(format!("{title} ({fit} of {all}, the others at the end)")))?;
            }
            title => self.title(title)?,
        }
        self.write(&first.concat())?;
        self.write("\n")
    }

    /// Number of these sentences that come before the first table: as many as fit if the table's
    /// title must stay within the first [`BEFORE_TABLE`] lines, but at least [`LEAST_NOTES`].
    fn notes_before_table(&self, bullets: &[String]) -> usize {
        // The title of the sentences, an empty line, and the table's own title.
        let mut room = BEFORE_TABLE.saturating_sub(self.head + 3);
        let fits = |bullet: &&String| match room.checked_sub(bullet.lines().count()) {
            Some(rest) => {
                room = rest;
                true
            }
            None => false,
        };
        bullets.iter().take_while(fits).count().max(LEAST_NOTES.min(bullets.len()))
    }
}

impl Renderer for Text<'_> {
    fn begin(&mut self, about: &About<'_>) -> io::Result<()> {
        match (about.conditions)() {
            Some(conditions) => {
                let head = head::head(about.recording, &conditions, self.prose, about.verbose);
                self.head = head.lines().count();
                self.write(&head)
            }
            None => Ok(()),
        }
    }

    fn section(&mut self, section: &Section, rows: &mut Rows<'_>) -> io::Result<()> {
        match section.style {
            _ if section.is_picked => self.table(section, rows),
            // Columns of JSON and CSV that text shows in another form.
            Style::Table if section.text.is_empty() => Ok(()),
            Style::Table | Style::Single | Style::Tree => self.table(section, rows),
            Style::Flame { own } => self.flame(section, own, rows),
            Style::Log => self.log(section, rows),
            Style::Lines if self.is_empty => Ok(()),
            Style::Lines => {
                self.write("\n")?;
                self.title(&section.title)?;
                self.lines(section, rows)
            }
            Style::Stories => self.lines(section, rows),
            Style::Notes => self.notes(section, rows),
            Style::Facts => self.facts(section, rows),
        }
    }

    fn end(&mut self) -> io::Result<()> {
        let later = std::mem::take(&mut self.later);
        self.write(&later)
    }
}

/// `text` in a style.
fn styled(style: Ansi, text: &str) -> String {
    format!("{style}{text}{style:#}")
}

/// A line below a table that says how many rows are not shown.
fn more(shown: usize, left_out: u64, what: &str, width: usize) -> String {
    let [shown, all] = [shown as u64, (shown as u64).saturating_add(left_out)].map(units::count);
    match left_out {
        0 => String::new(),
        _ => footnote(&format!("{shown} of {all} {what} (--limit shows more)"), width),
    }
}

/// A remark below a table.
fn footnote(text: &str, width: usize) -> String {
    head::wrapped(text, width).iter().map(|line| styled(FAINT, line) + "\n").collect()
}
