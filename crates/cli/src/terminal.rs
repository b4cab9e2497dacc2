//! The terminal: its width, and the only functions that write to it.

use std::env;
use std::io::{self, IsTerminal, Write};
use std::os::fd::AsFd;

use clrscope_report::{Guard, UNLIMITED};

/// Columns of a terminal that does not report its width.
const DEFAULT_WIDTH: usize = 100;
/// Minimum width of a table.
const LEAST_WIDTH: usize = 40;

/// Columns for results: `COLUMNS`, else the width of the terminal at stdout. If stdout is not a
/// terminal there is no limit, so that files and pipes get complete lines.
pub(crate) fn width() -> usize {
    width_at(&io::stdout())
}

/// Columns for messages: as [`width`], for stderr.
pub(crate) fn message_width() -> usize {
    width_at(&io::stderr())
}

fn width_at(output: &(impl IsTerminal + AsFd)) -> usize {
    let given = env::var("COLUMNS").ok().and_then(|text| text.trim().parse().ok()).filter(|&columns| columns > 0);
    let found = given.or_else(|| match output.is_terminal() {
        true => terminal_width(output).or(Some(DEFAULT_WIDTH)),
        false => None,
    });
    found.map_or(UNLIMITED, |columns| columns.max(LEAST_WIDTH))
}

fn terminal_width(output: impl AsFd) -> Option<usize> {
    rustix::termios::tcgetwinsize(output).ok().map(|size| usize::from(size.ws_col)).filter(|&columns| columns > 0)
}

/// Whether stdout, which gets results, is a terminal.
pub(crate) fn results_on_terminal() -> bool {
    io::stdout().is_terminal()
}

/// Whether stderr, which gets messages, is a terminal.
pub(crate) fn messages_on_terminal() -> bool {
    io::stderr().is_terminal()
}

/// Prints a message to the user on stderr, with control characters escaped. Write errors are
/// ignored.
pub(crate) fn say(message: &str) {
    let _ = Guard::new(anstream::stderr()).write_all(format!("{message}\n").as_bytes());
}

/// Status lines on the terminal at stderr; each update replaces the lines before.
#[derive(Debug, Default)]
pub(crate) struct Status {
    /// Number of lines on the screen below the first.
    below: usize,
}

impl Status {
    /// Replaces the lines on the screen, as far as the terminal has room.
    pub(crate) fn show(&mut self, lines: &[String]) {
        let most = rustix::termios::tcgetwinsize(io::stderr()).map_or(usize::MAX, |size| usize::from(size.ws_row));
        let lines = &lines[..lines.len().min(if most == 0 { usize::MAX } else { most })];
        let columns = message_width().saturating_sub(1);
        let fitting = |line: &String| line.chars().filter(|c| !c.is_control()).take(columns).collect::<String>();
        let text: Vec<String> = lines.iter().map(|line| format!("\r{}\x1b[K", fitting(line))).collect();
        let rest = if self.below > 0 { "\x1b[J" } else { "" };
        let _ = write!(io::stderr(), "{}{rest}{}", self.up(), text.join("\n"));
        self.below = lines.len().saturating_sub(1);
    }

    /// Removes the lines.
    pub(crate) fn clear(&mut self) {
        let rest = if self.below > 0 { "\x1b[J" } else { "\x1b[K" };
        let _ = write!(io::stderr(), "{}\r{rest}", self.up());
        self.below = 0;
    }

    /// Escape sequence that moves back to the first line.
    fn up(&self) -> String {
        if self.below > 0 { format!("\x1b[{}A", self.below) } else { String::new() }
    }
}

/// Prints a result on stdout, without styles if they are not wanted (`NO_COLOR`, pipes).
///
/// # Errors
/// Write errors, except that the reader closed the pipe (`| head`).
pub(crate) fn print(text: &str) -> io::Result<()> {
    let mut out = anstream::stdout().lock();
    enough(out.write_all(text.as_bytes()).and_then(|()| out.flush()))
}

/// Lets `write` write a result to stdout unchanged. Returns whether the result was read to its end.
///
/// # Errors
/// As [`print`].
pub(crate) fn plain(write: impl FnOnce(&mut dyn Write) -> io::Result<()>) -> io::Result<bool> {
    stream(io::stdout().lock(), write)
}

/// Lets `write` write a result to stdout, without styles if they are not wanted. Returns whether
/// the result was read to its end.
///
/// # Errors
/// As [`print`].
pub(crate) fn styled(write: impl FnOnce(&mut dyn Write) -> io::Result<()>) -> io::Result<bool> {
    stream(anstream::stdout().lock(), write)
}

fn stream(out: impl Write, write: impl FnOnce(&mut dyn Write) -> io::Result<()>) -> io::Result<bool> {
    let mut out = io::BufWriter::new(out);
    match write(&mut out).and_then(|()| out.flush()) {
        Ok(()) => Ok(true),
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(false),
        Err(error) => Err(error),
    }
}

fn enough(result: io::Result<()>) -> io::Result<()> {
    match result {
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(()),
        other => other,
    }
}
