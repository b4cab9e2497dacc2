//! Opens recordings, and explains failures to open them and queries without a match.

use std::fs;
use std::ops::Deref;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use clrscope_analysis::{
    PathKind, Query, QueryProblem, keep_parts, keep_requests, leave_inlined_out, make_paths_logical, resolve_names,
};
use clrscope_contract::instruments::{Spec, find};
use clrscope_contract::labels::Label;
use clrscope_finish::{LibraryWithoutSymbols, MachineFacts};
use clrscope_recording::OpenError;
use clrscope_recording::model::{Process, Recording};

use crate::errors::{Failure, quoted, reason, shown};
use crate::terminal::say;

/// Most unreadable parts that are named; further ones are only counted.
const MOST_NAMED: usize = 5;
/// Most libraries without symbol files that are named.
const MOST_LIBRARIES: usize = 2;

/// A recording that is open during a command. At the end, stderr names the parts that could not be
/// read. Trees and events are read from disk only when needed, so a result can't list these
/// problems at its start.
#[derive(Debug)]
pub(crate) struct OpenRecording(Recording);

impl Deref for OpenRecording {
    type Target = Recording;

    fn deref(&self) -> &Recording {
        &self.0
    }
}

impl Drop for OpenRecording {
    fn drop(&mut self) {
        late_words(&self.0).iter().for_each(|line| say(line));
    }
}

fn late_words(recording: &Recording) -> Vec<String> {
    let named = recording.late_problems().take(MOST_NAMED);
    let mut lines: Vec<String> =
        named.map(|problem| format!("clrscope: unreadable: {}: {}", problem.place, problem.what)).collect();
    let more = recording.late_problems().skip(MOST_NAMED).count();
    if more > 0 {
        lines.push(format!("clrscope: unreadable: and {more} more"));
    }
    lines
}

/// Opens `NAME.clrs`, `NAME.clrs.d`, or `NAME.clrs` where only the directory exists. Closures of
/// one method are distinguished by their source lines, where this machine has the source.
///
/// # Errors
/// When nothing can be read. A damaged recording is no error: its problems are listed in it, or
/// reported at the end.
pub(crate) fn open(path: &Path) -> Result<OpenRecording, Failure> {
    clrscope_finish::open(path).map(OpenRecording).map_err(|error| open_failure(path, error))
}

/// As [`open`], with names of native functions from a folder with symbol files. Tells the user if
/// the folder has none for the recording.
///
/// # Errors
/// Errors of [`open`], and where there is no such folder.
fn open_with_symbols(path: &Path, symbols: &Path) -> Result<OpenRecording, Failure> {
    if let Err(error) = fs::read_dir(symbols) {
        let what = format!("cannot read the folder {} of symbol files", shown(symbols));
        return Err(Failure::new(what, reason(&error), "give '--symbols' the folder that has them"));
    }
    let opened = clrscope_finish::open_with_symbols(path, symbols.to_owned());
    let (recording, without) = opened.map_err(|error| open_failure(path, error))?;
    if !without.is_empty() {
        say(&format!("clrscope: {}", without_symbols(symbols, &without)));
    }
    Ok(OpenRecording(recording))
}

/// Text about a folder that has symbol files for none of the libraries.
fn without_symbols(folder: &Path, libraries: &[LibraryWithoutSymbols]) -> String {
    let named = libraries.iter().take(MOST_LIBRARIES).map(|library| match &library.build_id[..] {
        "" => format!("{} (build id not recorded)", library.name),
        id => format!("{} (build id {id})", library.name),
    });
    let mut named = named.collect::<Vec<_>>().join(", ");
    if libraries.len() > MOST_LIBRARIES {
        named += &format!(" and {} more", libraries.len() - MOST_LIBRARIES);
    }
    format!("{} has no symbol file for {named}", shown(folder))
}

/// As [`open`], reduced to the parts and frames that a query selects.
///
/// # Errors
/// Errors of [`open`], and where the recording has no such part.
pub(crate) fn open_for(path: &Path, query: &Query) -> Result<OpenRecording, Failure> {
    let recording = match &query.symbols {
        Some(symbols) => open_with_symbols(path, symbols)?,
        None => open(path)?,
    };
    recording.narrowed_for(query)
}

/// As [`open_for`] for a growing recording, without messages about unreadable parts; `None` if
/// nothing can be read yet. `facts` remembers what does not change between two readings.
pub(crate) fn open_growing(folder: &Path, query: &Query, facts: &mut MachineFacts) -> Option<Recording> {
    let mut recording = facts.open(folder).ok()?;
    if query.paths.unwrap_or_default() == PathKind::Logical {
        make_paths_logical(&mut recording);
    }
    Some(recording)
}

impl OpenRecording {
    /// The recording with these labels, which replace those with the same keys.
    pub(crate) fn labelled(mut self, labels: &[Label]) -> Self {
        for process in &mut self.0.processes {
            let own = &mut process.identity.labels;
            own.retain(|label| !labels.iter().any(|new| new.key == label.key));
            own.extend_from_slice(labels);
        }
        self
    }

    /// The recording, reduced to the processes that `is_wanted`.
    pub(crate) fn with_processes(mut self, is_wanted: impl Fn(&Recording, &Process) -> bool) -> Self {
        let wanted: Vec<bool> = self.0.processes.iter().map(|process| is_wanted(&self.0, process)).collect();
        let mut wanted = wanted.into_iter();
        self.0.processes.retain(|_| wanted.next().unwrap_or(false));
        self
    }

    /// The recording, reduced to the parts and frames that a query selects.
    ///
    /// # Errors
    /// When the recording has no such part or request.
    pub(crate) fn narrowed_for(mut self, query: &Query) -> Result<Self, Failure> {
        keep_parts(&mut self.0, &query.parts).map_err(|problem| query_failure(&problem))?;
        keep_requests(&mut self.0, &query.requests).map_err(|problem| query_failure(&problem))?;
        Ok(self.with_frames_for(query))
    }

    /// The recording, reduced to the frames that a query selects.
    pub(crate) fn with_frames_for(mut self, query: &Query) -> Self {
        if query.no_inlined {
            leave_inlined_out(&mut self.0);
        }
        if query.paths.unwrap_or_default() == PathKind::Logical {
            make_paths_logical(&mut self.0);
        }
        self
    }
}

/// As [`open`], for several recordings as one: the processes of all, with the header of the first.
///
/// # Errors
/// Errors of [`open`] for any of them.
pub(crate) fn open_together(paths: &[PathBuf]) -> Result<OpenRecording, Failure> {
    let mut all = OpenRecording(Recording::default());
    for (number, path) in paths.iter().enumerate() {
        let mut next = open(path)?;
        if number == 0 {
            std::mem::swap(&mut all.0, &mut next.0);
        } else {
            all.0.processes.append(&mut next.0.processes);
            all.0.problems.append(&mut next.0.problems);
        }
    }
    Ok(all)
}

/// The newest recording in the current folder, by its last change. Prints its name on stderr.
///
/// # Errors
/// When there is none.
pub(crate) fn newest_here() -> Result<PathBuf, Failure> {
    newest_of(&recordings_here())
}

/// As [`newest_here`], of recordings that are listed already.
///
/// # Errors
/// When there is none.
pub(crate) fn newest_of(here: &[Here]) -> Result<PathBuf, Failure> {
    let Some(Here { name, .. }) = here.first() else {
        let why = "REC is not given, and this folder has no recording (NAME.clrs or NAME.clrs.d)";
        return Err(Failure::usage("no recording to report on", why, "clrscope report NAME.clrs"));
    };
    say(&format!("clrscope: the newest recording here is {}", quoted(name)));
    Ok(PathBuf::from(name))
}

/// A recording in the current folder.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Here {
    /// Time of its last change.
    pub(crate) changed: SystemTime,
    /// Name of its file or folder.
    pub(crate) name: String,
}

/// Recordings in the current folder, the last changed first.
pub(crate) fn recordings_here() -> Vec<Here> {
    let entries = fs::read_dir(".").into_iter().flatten().flatten();
    let here = |entry: fs::DirEntry| {
        let name = entry.file_name().into_string().ok()?;
        let is_folder = entry.file_type().ok()?.is_dir();
        // While a program runs, its recording is a folder whose files change.
        let is_recording = if is_folder { name.ends_with(".clrs.d") } else { name.ends_with(".clrs") };
        let changed = if is_folder { newest_within(&entry.path()) } else { entry.metadata().ok()?.modified().ok() };
        Some(Here { changed: changed?, name }).filter(|_| is_recording)
    };
    let mut all: Vec<Here> = entries.filter_map(here).collect();
    all.sort_by(|a, b| b.cmp(a));
    all
}

/// Time of the last change of a folder or of its direct entries.
fn newest_within(folder: &Path) -> Option<SystemTime> {
    let changed = |entry: fs::DirEntry| entry.metadata().ok()?.modified().ok();
    let own = fs::metadata(folder).ok()?.modified().ok();
    fs::read_dir(folder).ok()?.flatten().filter_map(changed).chain(own).max()
}

/// Reason why `path` could not be opened, as three lines.
pub(crate) fn open_failure(path: &Path, error: OpenError) -> Failure {
    let made_by = "name a recording made by 'clrscope run': NAME.clrs or NAME.clrs.d";
    let (why, hint) = match error {
        OpenError::NotFound(_) => ("there is no such file or directory".to_owned(), made_by),
        OpenError::Io(_, error) => (reason(&error), "check who may read it"),
        OpenError::NotARecording(_, why) => (why.to_owned(), made_by),
        OpenError::Unreadable(_, problem) => (
            match problem.place.as_str() {
                // The message has named the file itself already.
                "file" => format!("nothing of it can be read: {}", problem.what),
                place => format!("nothing of it can be read: {place}: {}", problem.what),
            },
            "its first bytes are damaged: copy it from its source again, or make a new recording",
        ),
        OpenError::Version { found, newest, .. } => {
            let (reads, hint) = if found > newest {
                ("reads up to", "use the clrscope that made it, or a newer one")
            } else {
                ("reads", "use the clrscope that made it, or record again")
            };
            (format!("it has version {found} of the format, and this clrscope {reads} {newest}"), hint)
        }
        other => (other.to_string(), made_by),
    };
    Failure::new(format!("cannot open the recording {}", shown(path)), why, hint)
}

/// A query that can't be answered, as three lines.
pub(crate) fn query_failure(problem: &QueryProblem) -> Failure {
    let why = problem.to_string();
    match problem {
        QueryProblem::NotAvailable { option, view, .. } => {
            let hint = match *option {
                "--since" | "--until" => {
                    "leave the option out; it works in the views events, exceptions and flow, and with samples \
                     (-i cpu) in all views"
                }
                _ => "leave the option out",
            };
            Failure::usage(format!("cannot show the view '{view}' with these options"), why, hint)
        }
        QueryProblem::FunctionNeeded { view } => {
            let hint = format!("--view {view} --function 'Namespace.Type::Method'");
            Failure::usage(format!("cannot show the view '{view}'"), why, hint)
        }
        QueryProblem::NoProcess { .. } => nothing(why, "leave --pid and --process out, or name one of these"),
        QueryProblem::NoThread { .. } => nothing(why, "'clrscope report REC --view threads' lists the threads"),
        QueryProblem::NotRecorded { view, instrument } => {
            // Probes need method names, and call arguments need an option in addition to the option
            // for calls.
            let hint = match *instrument {
                "probes" => "record it: clrscope run --probe 'Shop.Cart::*' -- PROGRAM".to_owned(),
                "probes:each" => "record each call: clrscope run --probe 'Shop.Cart::*' -i probes:each -- PROGRAM, or with arguments and results: \
                                  -i probes:args"
                    .to_owned(),
                "probes:callers" => {
                    "record them: clrscope run --probe 'Shop.Cart::*' -i probes:callers -- PROGRAM".to_owned()
                }
                _ => record_it(instrument),
            };
            Failure::new(format!("cannot show the view '{view}'"), why, hint)
        }
        QueryProblem::MetricNotRecorded { metric } => {
            let hint = record_it(metric.instrument);
            Failure::new(format!("cannot show the metric '{metric}'"), why, hint)
        }
        QueryProblem::MetricOfOthers { metric, .. } => {
            let hint = "compare recordings made with the same -i, or choose another --metric";
            Failure::new(format!("cannot compare the metric '{metric}'"), why, hint)
        }
        QueryProblem::CallsNotCounted { .. } => {
            let hint = "record every call: clrscope run -i calls:noinline -- PROGRAM";
            Failure::new("cannot check a number of calls", why, hint)
        }
        QueryProblem::NoCommonMetric { .. } => {
            let hint = "compare recordings made with the same -i, such as: clrscope run -i calls -- PROGRAM";
            Failure::new("cannot compare these recordings", why, hint)
        }
        QueryProblem::ColumnNotRecorded { column, instruments } => {
            let first = instruments.first().copied().unwrap_or_default();
            let hint = format!("leave the column out, or {}", record_it(first));
            Failure::new(format!("cannot show the column '{column}'"), why, hint)
        }
        QueryProblem::NoPart { known, .. } if known.is_empty() => {
            nothing(why, "while the program runs, 'clrscope record PID mark NAME' begins a part")
        }
        QueryProblem::NoPart { .. } => nothing(why, "name one of these with --part"),
        QueryProblem::RequestsNotRecorded => {
            let hint = "record them with the rest, such as: clrscope run -i cpu,requests -- PROGRAM";
            Failure::new("cannot choose by request", why, hint)
        }
        QueryProblem::NoRequest { .. } => nothing(why, "'clrscope report REC --view requests' lists the requests"),
        QueryProblem::NoSnapshot { .. } => nothing(why, "choose one of these with --snapshot"),
        QueryProblem::SnapshotCut { .. } => {
            nothing(why, "choose another with --snapshot, or take a new one: clrscope heap PID")
        }
        QueryProblem::NoFunction { nearest, .. } => {
            nothing(why, &with_nearest(nearest, "'clrscope report REC --view functions' lists the functions"))
        }
        QueryProblem::NoModule { nearest, lists, .. } => {
            let hint = format!("'clrscope report REC --view {lists}' lists the assemblies");
            nothing(why, &with_nearest(nearest.as_slice(), &hint))
        }
        _ => nothing(why, "'clrscope report --help' explains the filters"),
    }
}

/// The hint, preceded by the names that a misspelt name most likely meant.
fn with_nearest(nearest: &[String], hint: &str) -> String {
    let names: Vec<String> = nearest.iter().map(|name| quoted(name)).collect();
    if names.is_empty() { hint.to_owned() } else { format!("did you mean {}? {hint}", names.join(" or ")) }
}

/// The query with its names checked against the recording; see [`resolve_names`].
///
/// # Errors
/// When the recording has no such name.
pub(crate) fn resolved(recording: &Recording, query: &Query) -> Result<Query, Failure> {
    resolve_names(recording, query).map_err(|problem| query_failure(&problem))
}

fn nothing(why: String, hint: &str) -> Failure {
    Failure::new("the filters leave nothing to show", why, hint)
}

/// How to record an instrument: when the program starts, or in one that runs, where that is
/// possible.
pub(crate) fn record_it(instrument: &str) -> String {
    let name = instrument.split(':').next().unwrap_or_default();
    let may_attach = find(name).is_some_and(Spec::may_attach);
    let attach = if may_attach { format!(", or clrscope attach PID -i {instrument}") } else { String::new() };
    format!("record it: clrscope run -i {instrument} -- PROGRAM{attach}")
}

#[cfg(test)]
mod tests {
    use clrscope_recording::model::{EventArena, EventChunk, Process};

    use super::*;

    #[test]
    fn other_versions_are_refused_with_what_helps() {
        let path = Path::new("x.clrs");
        let refused = |found| open_failure(path, OpenError::Version { path: path.to_owned(), found, newest: 2 });
        let (why, hint) = ("this clrscope reads 2", "use the clrscope that made it, or record again");
        let expected = format!("it has version 1 of the format, and {why}");
        assert_eq!(refused(1), Failure::new("cannot open the recording 'x.clrs'", expected, hint));
        let (why, hint) = ("this clrscope reads up to 2", "use the clrscope that made it, or a newer one");
        let expected = format!("it has version 3 of the format, and {why}");
        assert_eq!(refused(3), Failure::new("cannot open the recording 'x.clrs'", expected, hint));
    }

    #[test]
    fn what_can_no_longer_be_read_is_named_up_to_a_limit() {
        let chunks = |sequence| EventChunk { thread: 0, sequence, bytes: vec![7; 9_000].into() };
        let arena = EventArena { instrument: "flow".into(), chunks: (1..=7).map(chunks).collect() };
        let process = Process { pid: 7, events: vec![arena], ..Process::default() };
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("x.clrs");
        let mut file = std::fs::File::create(&path).expect("a file");
        let recording = Recording { processes: vec![process], ..Recording::default() };
        clrscope_recording::pack::write(&recording, &mut file).expect("a packed file");
        let opened = open(&path).expect("a recording");
        file.set_len(100).expect("a shorter file");
        assert_eq!(late_words(&opened), [""; 0], "nobody has looked");
        assert!(opened.processes[0].events[0].chunks.iter().all(|chunk| chunk.bytes.load().is_empty()));
        let lines = late_words(&opened);
        assert_eq!(lines.len(), 6, "{lines:?}");
        assert!(
            lines[0].starts_with("clrscope: unreadable: process 0, events of instrument 0, chunk 0: "),
            "{lines:?}"
        );
        assert_eq!(lines[5], "clrscope: unreadable: and 2 more");
    }
}
