//! `clrscope report --view events|flow --per-thread -o DIR`: writes a log as one file per thread.

use std::fs::{self, File, OpenOptions};
use std::io::{self, BufWriter, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use anstream::adapter::strip_str;
use clrscope_recording::model::Recording;
use clrscope_report::{About, Guard, LogEntry, LogGroup, Renderer, Report, Rows, Section};

use crate::errors::{Failure, reason, shown};
use crate::terminal::say;

/// Writes the entries of a log into a file per thread: a heading, then the lines.
pub(crate) struct ThreadFiles<'f> {
    folder: &'f Path,
    /// Whether file names contain the process as well.
    processes: bool,
    open: Option<(LogGroup, Guard<BufWriter<File>>)>,
    /// The current file, for error messages.
    path: PathBuf,
    /// Mode of the files.
    mode: u32,
}

impl<'f> ThreadFiles<'f> {
    /// Writes one file per thread into `folder`, each with the permission bits `mode`.
    ///
    /// # Errors
    /// When the folder or a file can't be written.
    pub(crate) fn write(
        folder: &'f Path,
        recording: &Recording,
        mode: u32,
        report: &Report<'_>,
    ) -> Result<(), Failure> {
        let failed = |path: &Path, error: &io::Error| {
            let what = format!("cannot write {}", shown(path));
            Failure::new(what, reason(error), "name a writable folder with -o")
        };
        fs::create_dir_all(folder).map_err(|error| failed(folder, &error))?;
        let processes = recording.processes.len() > 1;
        let mut files = Self { folder, processes, open: None, path: folder.to_owned(), mode };
        let written = report.render(&mut files);
        written.map_err(|error| failed(&files.path, &error))
    }

    fn entry(&mut self, row: &dyn LogEntry) -> io::Result<()> {
        if self.open.as_ref().is_none_or(|(group, _)| *group != row.group()) {
            self.close()?;
            let ((pid, thread), _) = row.order_key();
            self.path = self.folder.join(match self.processes {
                true => format!("process-{pid}-thread-{thread}.log"),
                false => format!("thread-{thread}.log"),
            });
            let mut out = Guard::new(BufWriter::new(self.create()?));
            write_plain(&mut out, &row.heading())?;
            self.open = Some((row.group(), out));
        }
        match &mut self.open {
            Some((_, out)) => write_plain(out, &row.line()),
            None => Ok(()),
        }
    }

    /// Creates the current file. An existing file keeps its mode.
    fn create(&self) -> io::Result<File> {
        OpenOptions::new().write(true).create(true).truncate(true).mode(self.mode).open(&self.path)
    }

    fn close(&mut self) -> io::Result<()> {
        self.open.take().map_or(Ok(()), |(_, mut out)| out.flush())
    }
}

/// Writes text without its colours, which are for terminals.
fn write_plain(out: &mut dyn Write, text: &str) -> io::Result<()> {
    out.write_all(strip_str(text).to_string().as_bytes())
}

impl Renderer for ThreadFiles<'_> {
    fn begin(&mut self, _about: &About<'_>) -> io::Result<()> {
        Ok(())
    }

    fn section(&mut self, section: &Section, rows: &mut Rows<'_>) -> io::Result<()> {
        if !section.is_main {
            return Ok(());
        }
        let mut is_empty = true;
        rows(&mut |entry| {
            is_empty = false;
            entry.log().map_or(Ok(()), |row| self.entry(row))
        })?;
        if is_empty {
            say(&format!("clrscope: no file was written. {}", section.nothing));
        }
        Ok(())
    }

    fn end(&mut self) -> io::Result<()> {
        self.close()
    }
}
