//! `clrscope view`: the page of a recording in a browser, served by this process.

use std::path::PathBuf;
use std::sync::Arc;

use clrscope_report::Request;

use crate::errors::{Failure, reason};
use crate::growing::Growing;
use crate::launch::Signals;
use crate::recording_file::newest_here;
use crate::terminal::say;
use crate::viewer::{Source, Viewer, ViewerOptions, Waiting};

/// Options of `view`.
#[derive(Debug)]
pub(crate) struct ViewOptions {
    /// The recording; the newest in the current folder when `None`.
    pub(crate) recording: Option<PathBuf>,
    /// Filters of everything that the page shows.
    pub(crate) request: Request,
    /// Port to listen on; any that is free when 0.
    pub(crate) port: u16,
    /// Open a browser at the page.
    pub(crate) browser: bool,
}

/// Serves the page until it is interrupted.
///
/// # Errors
/// When the recording can't be opened, or nobody can listen on the port.
pub(crate) fn perform(options: ViewOptions) -> Result<(), Failure> {
    let path = match options.recording {
        Some(path) => path,
        None => newest_here()?,
    };
    let waiting = Waiting::here();
    let ended = waiting.clone();
    let _signals = Signals::without_program(move || ended.end())
        .map_err(|error| Failure::new("cannot handle signals", reason(&error), "run 'clrscope doctor'"))?;
    // Parts are known once they have ended.
    let is_still = path.is_file() || !options.request.query.parts.is_empty();
    let source = if is_still { Source::Still(path) } else { Source::Growing(Arc::new(Growing::new(&path))) };
    let (port, browser) = (options.port, options.browser);
    let _viewer = Viewer::open(ViewerOptions { source, asked: options.request, port, browser })?;
    say("clrscope: Ctrl-C ends it");
    waiting.wait();
    Ok(())
}
