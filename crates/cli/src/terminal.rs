//! The terminal: how wide it is, and the only places that write to it.

use std::env;
use std::io::{self, IsTerminal, Write};
use std::os::fd::AsFd;

use clrscope_report::{Guard, UNLIMITED};

/// Columns of a terminal that does not say how many it has.
const DEFAULT_WIDTH: usize = 100;
/// Narrower than this no table can be.
const LEAST_WIDTH: usize = 40;

/// Columns for results: `COLUMNS`, else those of the terminal at stdout; no limit where stdout is
/// none, so that nothing is missing in files and for the next program.
pub(crate) fn width() -> usize {
    width_at(&io::stdout())
}

/// Columns for messages: as [`width`], at stderr.
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

/// Whether results go to a person.
pub(crate) fn results_on_terminal() -> bool {
    io::stdout().is_terminal()
}

/// Whether messages go to a person.
pub(crate) fn messages_on_terminal() -> bool {
    io::stderr().is_terminal()
}

/// A message to the user, on stderr, with control characters written out. A failure to write it is
/// ignored.
pub(crate) fn say(message: &str) {
    let _ = Guard::new(anstream::stderr()).write_all(format!("{message}\n").as_bytes());
}

/// Lines on the terminal at stderr that the next ones replace.
#[derive(Debug, Default)]
pub(crate) struct Status {
    /// Lines that stand there, below the first.
    below: usize,
}

impl Status {
    /// Shows lines in place of those before, as far as the terminal has room.
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

    /// Takes them away.
    pub(crate) fn clear(&mut self) {
        let rest = if self.below > 0 { "\x1b[J" } else { "\x1b[K" };
        let _ = write!(io::stderr(), "{}\r{rest}", self.up());
        self.below = 0;
    }

    /// Back to the first line.
    fn up(&self) -> String {
        if self.below > 0 { format!("\x1b[{}A", self.below) } else { String::new() }
    }
}

/// A result, on stdout; styles are left out where they are not wanted (`NO_COLOR`, pipes).
///
/// # Errors
/// Errors of writing, except that a reader who has seen enough (`| head`) is no error.
pub(crate) fn print(text: &str) -> io::Result<()> {
    let mut out = anstream::stdout().lock();
    enough(out.write_all(text.as_bytes()).and_then(|()| out.flush()))
}

/// Lets `write` write a result to stdout as it is; whether it was read to its end.
///
/// # Errors
/// As [`print`].
pub(crate) fn plain(write: impl FnOnce(&mut dyn Write) -> io::Result<()>) -> io::Result<bool> {
    stream(io::stdout().lock(), write)
}

/// Lets `write` write a result to stdout, without styles where they are not wanted; whether it was
/// read to its end.
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
