//! The terminal: how wide it is, and the only places that write to it.

use std::env;
use std::io::{self, IsTerminal, Write};
use std::os::fd::AsFd;

use clrscope_report::{Guard, UNLIMITED};

/// Columns of a terminal that does not say how many it has.
const DEFAULT_WIDTH: usize = 100;
/// Narrower than this no table can be.
const LEAST_WIDTH: usize = 40;

/// Columns for results: `COLUMNS`, else those of the terminal at stdout; no limit where stdout is none, so that nothing is
/// missing in files and for the next program.
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

/// A message to the user, on stderr, with control characters written out. A failure to write it is ignored.
pub(crate) fn say(message: &str) {
    let _ = Guard::new(anstream::stderr()).write_all(format!("{message}\n").as_bytes());
}

/// A line on the terminal at stderr that the next one replaces.
pub(crate) fn status(line: &str) {
    let line: String = line.chars().filter(|c| !c.is_control()).take(message_width().saturating_sub(1)).collect();
    let _ = write!(io::stderr(), "\r{line}\x1b[K");
}

/// Takes the line of [`status`] away.
pub(crate) fn clear_status() {
    let _ = write!(io::stderr(), "\r\x1b[K");
}

/// A result, on stdout; styles are left out where they are not wanted (`NO_COLOR`, pipes).
///
/// # Errors
/// Errors of writing, except that a reader who has seen enough (`| head`) is no error.
pub(crate) fn print(text: &str) -> io::Result<()> {
    let mut out = anstream::stdout().lock();
    enough(out.write_all(text.as_bytes()).and_then(|()| out.flush()))
}

/// Lets `write` write a result to stdout as it is; whether somebody read it to its end.
///
/// # Errors
/// As [`print`].
pub(crate) fn plain(write: impl FnOnce(&mut dyn Write) -> io::Result<()>) -> io::Result<bool> {
    stream(io::stdout().lock(), write)
}

/// Lets `write` write a result to stdout, without styles where they are not wanted; whether somebody read it to its end.
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
