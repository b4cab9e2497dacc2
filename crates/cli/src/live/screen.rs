//! The screen on a terminal, or plain lines without one.

use std::io;
use std::thread;
use std::time::Duration;

use clrscope_analysis::Sort;
use clrscope_recording::model::Recording;
use ratatui::crossterm::event::{self, Event, KeyCode, KeyEvent, KeyEventKind, KeyModifiers};
use ratatui::layout::{Constraint, Layout};
use ratatui::style::{Modifier, Style};
use ratatui::text::{Line, Span};
use ratatui::widgets::Paragraph;
use ratatui::{DefaultTerminal, Frame};

use super::page::Page;
use super::source::Source;
use super::vitals::Vitals;
use crate::errors::{Failure, cannot_print, reason};
use crate::terminal;

/// Interval between two checks for a pressed key or the end of the program.
const LOOK_EVERY: Duration = Duration::from_millis(100);
/// Rows of a page without a screen.
const LINES: usize = 15;

/// A screen with its pages.
pub(crate) struct Screen {
    /// Name of the command and of the process.
    pub(crate) title: String,
    pub(crate) vitals: Vitals,
    pub(crate) pages: Vec<Page>,
    /// Index of the shown page.
    at: usize,
    is_paused: bool,
    /// Number of lines scrolled off the top.
    above: usize,
    /// Show only lines with this text.
    filter: String,
    /// Whether the user is typing the filter.
    is_writing: bool,
}

/// Action of a key.
#[derive(Debug, PartialEq, Eq)]
enum Act {
    Nothing,
    /// Another page, order or size: the lines must be rebuilt.
    Renew,
    End,
}

const BOLD: Style = Style::new().add_modifier(Modifier::BOLD);
const FAINT: Style = Style::new().add_modifier(Modifier::DIM);
const CHOSEN: Style = Style::new().add_modifier(Modifier::REVERSED);

impl Screen {
    pub(crate) fn new(title: String, pages: Vec<Page>) -> Self {
        let (vitals, filter) = Default::default();
        Self { title, vitals, pages, at: 0, is_paused: false, above: 0, filter, is_writing: false }
    }

    /// Reads the recording.
    pub(crate) fn look(&mut self, recording: &Recording) {
        self.vitals.look(recording);
        self.pages.iter_mut().for_each(|page| page.look(recording));
    }

    /// Shows the screen until the user quits or the program ends.
    ///
    /// # Errors
    /// When the terminal can't be used.
    pub(crate) fn show(&mut self, source: &mut Source<'_>) -> Result<(), Failure> {
        let failed = |error: io::Error| {
            Failure::new("cannot use the terminal", reason(&error), "'--once' shows the values once, as text")
        };
        let mut terminal = ratatui::try_init().map_err(failed)?;
        let shown = self.show_on(&mut terminal, source);
        ratatui::restore();
        shown.map_err(failed)
    }

    fn show_on(&mut self, terminal: &mut DefaultTerminal, source: &mut Source<'_>) -> io::Result<()> {
        let mut recording: Option<Recording> = None;
        terminal.draw(|frame| self.draw(frame))?;
        while source.goes_on() {
            let new = if self.is_paused { None } else { source.look() };
            let mut act = if new.is_some() { Act::Renew } else { Act::Nothing };
            if let Some(new) = new {
                self.look(&new);
                recording = Some(new);
            } else {
                // A paused screen has no next look.
                let wait = if self.is_paused { LOOK_EVERY } else { source.pause().min(LOOK_EVERY) };
                if !event::poll(wait)? {
                    continue;
                }
                act = match event::read()? {
                    Event::Key(key) if key.kind == KeyEventKind::Press => self.pressed(key),
                    Event::Resize(..) => Act::Renew,
                    _ => act,
                };
            }
            match (act, &recording) {
                (Act::End, _) => break,
                (Act::Renew, Some(known)) => {
                    self.pages[self.at].make_lines(known, usize::from(terminal.size()?.width));
                }
                _ => {}
            }
            terminal.draw(|frame| self.draw(frame))?;
        }
        Ok(())
    }

    /// Prints a block of lines for each look, until the user interrupts, the program ends or the
    /// output is closed.
    ///
    /// # Errors
    /// When they can't be written.
    pub(crate) fn print(&mut self, source: &mut Source<'_>) -> Result<(), Failure> {
        while source.goes_on() {
            let Some(recording) = source.look() else {
                thread::park_timeout(source.pause().min(LOOK_EVERY));
                continue;
            };
            self.look(&recording);
            if !self.print_once(&recording)? {
                return Ok(());
            }
        }
        Ok(())
    }

    /// Prints all pages; `false` if the output is closed.
    ///
    /// # Errors
    /// When they can't be written.
    pub(crate) fn print_once(&mut self, recording: &Recording) -> Result<bool, Failure> {
        let mut lines = vec![self.title.clone()];
        lines.extend(self.vitals.lines(100));
        for page in &mut self.pages {
            page.make_lines(recording, terminal::width());
            lines.push(String::new());
            lines.push(page.title.to_owned());
            lines.extend(page.lines().iter().take(LINES).cloned());
        }
        let text = lines.join("\n") + "\n\n";
        terminal::plain(|out| out.write_all(text.as_bytes())).map_err(|error| cannot_print(&error))
    }

    fn pressed(&mut self, key: KeyEvent) -> Act {
        // In raw mode the terminal delivers Ctrl-C as a key.
        if key.modifiers.contains(KeyModifiers::CONTROL) {
            return if key.code == KeyCode::Char('c') { Act::End } else { Act::Nothing };
        }
        if self.is_writing {
            return self.written(key.code);
        }
        match key.code {
            KeyCode::Char('q') => return Act::End,
            KeyCode::Char('p') => self.is_paused = !self.is_paused,
            KeyCode::Char('/') => self.is_writing = true,
            KeyCode::Char('s') => {
                self.pages[self.at].sort_next();
                return Act::Renew;
            }
            KeyCode::Char(digit @ '1'..='9') => return self.go_to(digit as usize - '1' as usize),
            KeyCode::Tab | KeyCode::Right => return self.go_to((self.at + 1) % self.pages.len()),
            KeyCode::BackTab | KeyCode::Left => return self.go_to((self.at + self.pages.len() - 1) % self.pages.len()),
            KeyCode::Down => self.above += 1,
            KeyCode::Up => self.above = self.above.saturating_sub(1),
            KeyCode::PageDown => self.above += 10,
            KeyCode::PageUp => self.above = self.above.saturating_sub(10),
            KeyCode::Home => self.above = 0,
            KeyCode::Esc => self.filter.clear(),
            _ => return Act::Nothing,
        }
        Act::Nothing
    }

    fn written(&mut self, code: KeyCode) -> Act {
        match code {
            KeyCode::Char(letter) => self.filter.push(letter),
            KeyCode::Backspace => _ = self.filter.pop(),
            KeyCode::Enter => self.is_writing = false,
            KeyCode::Esc => {
                self.filter.clear();
                self.is_writing = false;
            }
            _ => {}
        }
        self.above = 0;
        Act::Nothing
    }

    fn go_to(&mut self, page: usize) -> Act {
        if page >= self.pages.len() {
            return Act::Nothing;
        }
        (self.at, self.above) = (page, 0);
        Act::Renew
    }

    fn draw(&mut self, frame: &mut Frame<'_>) {
        let vitals = self.vitals.lines(usize::from(frame.area().width));
        let rows = [1, vitals.len() as u16 + 1, 1].map(Constraint::Length);
        let [title, head, tabs] = rows;
        let areas: [_; 5] =
            Layout::vertical([title, head, tabs, Constraint::Min(1), Constraint::Length(1)]).areas(frame.area());
        let state = if self.is_paused { " (paused)" } else { "" };
        frame.render_widget(Line::styled(format!("{}{state}", self.title), BOLD), areas[0]);
        let vitals: Vec<Line<'_>> = vitals.into_iter().map(Line::raw).collect();
        frame.render_widget(Paragraph::new(vitals), areas[1]);
        frame.render_widget(self.tabs(), areas[2]);
        let body = self.body(usize::from(areas[3].height));
        frame.render_widget(Paragraph::new(body), areas[3]);
        frame.render_widget(Line::styled(self.keys(), FAINT), areas[4]);
    }

    fn tabs(&self) -> Line<'_> {
        let tab = |(number, page): (usize, &Page)| {
            let style = if number == self.at { CHOSEN } else { Style::new() };
            [Span::styled(format!(" {} {} ", number + 1, page.title), style), Span::raw(" ")]
        };
        self.pages.iter().enumerate().flat_map(tab).collect()
    }

    /// The visible lines; the line with the names of the columns always stays.
    fn body(&mut self, height: usize) -> Vec<Line<'static>> {
        let Some((head, rest)) = self.pages[self.at].lines().split_first() else {
            return vec![Line::styled("waiting for the first values", FAINT)];
        };
        let wanted = self.filter.to_lowercase();
        let rows: Vec<&String> = rest.iter().filter(|line| line.to_lowercase().contains(&wanted)).collect();
        self.above = self.above.min(rows.len().saturating_sub(height.saturating_sub(1)));
        let shown = rows.into_iter().skip(self.above).take(height.saturating_sub(1));
        let rows = shown.map(|line| Line::raw(line.clone()));
        std::iter::once(Line::styled(head.clone(), BOLD)).chain(rows).collect()
    }

    fn keys(&self) -> String {
        if self.is_writing {
            return format!("lines with: {}_ (Enter keeps, Esc shows all)", self.filter);
        }
        let filter =
            if self.filter.is_empty() { "/ filter".to_owned() } else { format!("/ {} (Esc: all)", self.filter) };
        let sort =
            self.pages[self.at].sort().map_or_else(|| "s sort".to_owned(), |sort| format!("s by {}", sort_name(sort)));
        let pages = if self.pages.len() > 1 { format!("1-{} page  ", self.pages.len()) } else { String::new() };
        format!("q quit  p pause  {pages}{sort}  {filter}  ↑↓ scroll")
    }
}

/// Name of a sort key.
fn sort_name(sort: Sort) -> &'static str {
    Sort::ALL.iter().find(|(_, known)| *known == sort).map_or("", |(name, _)| name)
}
