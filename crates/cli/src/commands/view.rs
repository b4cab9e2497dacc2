//! `clrscope view`: serves the page of a recording to a browser.

use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use clrscope_analysis::RequestFilter;
use clrscope_export::{ExportError, ExportOptions, exporter};
use clrscope_report::Request;

use super::export;
use crate::errors::{Failure, reason, shell_word, shown};
use crate::growing::Growing;
use crate::launch::Signals;
use crate::progress::Shown;
use crate::recording_file::{Here, newest_of, open_for, recordings_here, resolved};
use crate::terminal::say;
use crate::viewer::{MOST_OF_SPEEDSCOPE, Source, Viewer, ViewerOptions, Waiting};

/// Page on which a recording is shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum With {
    /// The page of clrscope itself.
    Page,
    /// The page of speedscope.
    Speedscope,
}

/// Options of `view`.
#[derive(Debug)]
pub(crate) struct ViewOptions {
    /// The recording; the newest in the current folder when `None`.
    pub(crate) recording: Option<PathBuf>,
    /// Page that is served.
    pub(crate) with: With,
    /// Filters of all data on the page.
    pub(crate) request: Request,
    /// Port to listen on; 0 for any free port.
    pub(crate) port: u16,
    /// Whether to open the page in a browser.
    pub(crate) browser: bool,
}

/// Serves the page until it is interrupted.
///
/// # Errors
/// When the recording can't be opened, or the port can't be listened on.
pub(crate) fn perform(options: ViewOptions) -> Result<(), Failure> {
    let path = match options.recording {
        Some(path) => path,
        None => {
            let here = recordings_here();
            let newest = newest_of(&here)?;
            others_here(&here).iter().for_each(|line| say(line));
            newest
        }
    };
    let waiting = Waiting::here();
    let ended = waiting.clone();
    let _signals = Signals::without_program(move || ended.end())
        .map_err(|error| Failure::new("cannot handle signals", reason(&error), "run 'clrscope doctor'"))?;
    let _viewer = match options.with {
        With::Page => {
            // Parts and requests are known only once they have ended.
            let query = &options.request.query;
            let is_reduced = !query.parts.is_empty() || query.requests != RequestFilter::default();
            let is_still = path.is_file() || is_reduced;
            let source = if is_still { Source::Still(path) } else { Source::Growing(Arc::new(Growing::new(&path))) };
            let (port, browser) = (options.port, options.browser);
            Viewer::open(ViewerOptions { source, asked: options.request, port, browser })?
        }
        With::Speedscope => {
            let profile = speedscope_profile(&path, &options.request)?;
            Viewer::speedscope(profile, options.port, options.browser)?
        }
    };
    say("clrscope: Ctrl-C ends it");
    waiting.wait();
    Ok(())
}

/// Recordings that are listed at most.
const MOST_LISTED: usize = 20;

/// The recordings after the first, each as the command that shows it.
fn others_here(all: &[Here]) -> Vec<String> {
    let others = all.get(1..).unwrap_or_default();
    if others.is_empty() {
        return Vec::new();
    }
    let head = "clrscope: to see another recording of this folder, the newest first:".to_owned();
    let commands = others.iter().take(MOST_LISTED).map(|one| {
        let ago =
            one.changed.elapsed().map_or_else(|_| String::new(), |passed| format!("  ({})", ago(passed.as_secs())));
        format!("    clrscope view {}{ago}", shell_word(&one.name))
    });
    let more = others.len().saturating_sub(MOST_LISTED);
    let more = (more > 0).then(|| format!("    and {more} older"));
    std::iter::once(head).chain(commands).chain(more).collect()
}

/// How long ago something was, in its largest unit.
fn ago(seconds: u64) -> String {
    let units = [("day", 86_400), ("hour", 3_600), ("minute", 60), ("second", 1)];
    let (unit, size) = units.into_iter().find(|(_, size)| seconds >= *size).unwrap_or(("second", 1));
    let number = seconds / size;
    format!("{number} {unit}{} ago", if number == 1 { "" } else { "s" })
}

/// The recording in speedscope's format.
fn speedscope_profile(path: &Path, request: &Request) -> Result<Vec<u8>, Failure> {
    const FORMAT: &str = "speedscope";
    let reading = Shown::work("reading the recording");
    let recording = open_for(path, &request.query)?;
    drop(reading);
    let options = ExportOptions { query: resolved(&recording, &request.query)?, ..ExportOptions::default() };
    let _writing = Shown::work("writing the profile");
    let format = exporter(FORMAT).map_err(|error| {
        Failure::usage("cannot write the profile", error.to_string(), "see 'clrscope export --help'")
    })?;
    let mut profile = BoundedMemory { bytes: Vec::new(), most: MOST_OF_SPEEDSCOPE };
    match format.write(&recording, &options, &mut profile) {
        Ok(()) => Ok(profile.bytes),
        Err(ExportError::Io(_)) => {
            let why =
                format!("its profile has more than {} MB, which crashes a browser's tab", MOST_OF_SPEEDSCOPE >> 20);
            let hint = "show less of it with --thread, --since or --until, or leave --with out";
            Err(Failure::new(format!("cannot show {} in speedscope", shown(path)), why, hint))
        }
        Err(error) => Err(export::failure(path, FORMAT, &error)),
    }
}

/// A writer into memory that fails beyond a number of bytes.
struct BoundedMemory {
    bytes: Vec<u8>,
    most: usize,
}

impl Write for BoundedMemory {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if self.bytes.len() + bytes.len() > self.most {
            return Err(io::ErrorKind::FileTooLarge.into());
        }
        self.bytes.extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::time::SystemTime;

    use super::*;

    #[test]
    fn other_recordings_are_listed_with_the_command_that_shows_them() {
        let here = |name: &str| Here { changed: SystemTime::now(), name: name.to_owned() };
        assert!(others_here(&[]).is_empty() && others_here(&[here("only.clrs")]).is_empty());
        let told = others_here(&[here("new.clrs"), here("old one.clrs")]).join("\n");
        assert!(told.contains("clrscope view 'old one.clrs'  (0 seconds ago)") && !told.contains("new.clrs"), "{told}");
        let many: Vec<Here> = (0..30).map(|number| here(&format!("{number}.clrs"))).collect();
        assert_eq!(others_here(&many).last().map(String::as_str), Some("    and 9 older"));
        assert_eq!(
            [0, 1, 61, 7_200, 200_000].map(ago),
            ["0 seconds", "1 second", "1 minute", "2 hours", "2 days"].map(|words| format!("{words} ago"))
        );
    }

    #[test]
    fn memory_for_a_profile_has_an_end() {
        let mut memory = BoundedMemory { bytes: Vec::new(), most: 5 };
        assert!(memory.write_all(b"four").is_ok());
        assert!(memory.write_all(b"!").is_ok());
        assert_eq!(memory.write_all(b"!").map_err(|error| error.kind()), Err(io::ErrorKind::FileTooLarge));
        assert_eq!(memory.bytes, b"four!");
    }
}
