//! Opening recordings, and what to say when that fails or a query finds nothing.

use std::path::Path;

use clrscope_analysis::QueryProblem;
use clrscope_recording::OpenError;
use clrscope_recording::model::Recording;

use crate::errors::{Failure, reason, shown};

/// Opens `NAME.clrs`, `NAME.clrs.d`, or `NAME.clrs` where only the directory exists.
///
/// # Errors
/// When nothing of it can be read. A damaged recording is no error: its problems are in it.
pub(crate) fn open(path: &Path) -> Result<Recording, Failure> {
    clrscope_recording::open(path).map_err(|error| open_failure(path, error))
}

/// Why `path` could not be opened, as three lines.
pub(crate) fn open_failure(path: &Path, error: OpenError) -> Failure {
    let made_by = "name a recording made by 'clrscope run': NAME.clrs or NAME.clrs.d";
    let (why, hint) = match error {
        OpenError::NotFound(_) => ("there is no such file or directory".to_owned(), made_by),
        OpenError::Io(_, error) => (reason(&error), "check who may read it"),
        OpenError::NotARecording(_, why) => (why.to_owned(), made_by),
        OpenError::Unreadable(_, problem) => (
            match problem.place.as_str() {
                // Of the file itself its name is said already.
                "file" => format!("nothing of it can be read: {}", problem.what),
                place => format!("nothing of it can be read: {place}: {}", problem.what),
            },
            "it is damaged from its beginning on: take a copy of it, or record again",
        ),
        OpenError::Version { found, newest, .. } => (
            format!("it has version {found} of the format, and this clrscope reads up to {newest}"),
            if found > newest {
                "use the clrscope that made it, or a newer one"
            } else {
                "use the clrscope that made it"
            },
        ),
        other => (other.to_string(), made_by),
    };
    Failure::new(format!("cannot open the recording {}", shown(path)), why, hint)
}

/// A query that can't be answered, as three lines.
pub(crate) fn query_failure(problem: &QueryProblem) -> Failure {
    let why = problem.to_string();
    match problem {
        QueryProblem::NotAvailable { view, .. } => {
            Failure::usage(format!("cannot show the view '{view}' like that"), why, "leave the option out")
        }
        QueryProblem::FunctionNeeded { view } => {
            let hint = format!("--view {view} --function 'Namespace.Type::Method'");
            Failure::usage(format!("cannot show the view '{view}'"), why, hint)
        }
        QueryProblem::NoProcess { .. } => nothing(why, "leave --pid and --process out, or name one of these"),
        QueryProblem::NoThread { .. } => nothing(why, "'clrscope report REC --view threads' lists the threads"),
        QueryProblem::NotRecorded { view, instrument } => {
            let hint = format!("record it: clrscope run -i {instrument} -- PROGRAM");
            Failure::new(format!("cannot show the view '{view}'"), why, hint)
        }
        QueryProblem::NoFunction { .. } => nothing(why, "'clrscope report REC --view functions' lists the functions"),
        _ => nothing(why, "'clrscope report --help' explains the filters"),
    }
}

fn nothing(why: String, hint: &str) -> Failure {
    Failure::new("the filters leave nothing to show", why, hint)
}
