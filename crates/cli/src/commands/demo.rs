//! `clrscope demo`: runs the built-in program under the agent and prints the report.

use std::io;
use std::path::{Path, PathBuf};

use clrscope_contract::instruments::first_view;
use clrscope_contract::request::Request;
use clrscope_report::{Format, Request as ReportRequest, view};

use crate::dotnet::{self, Install};
use crate::embedded;
use crate::errors::{Failure, reason};
use crate::launch::{Program, Slot, Stdout};
use crate::recording_file::{open, query_failure};
use crate::result_file;
use crate::session::{FinishedRecording, Plan, record};
use crate::summary;
use crate::terminal::{messages_on_terminal, say};

/// The demo is compiled for this version of .NET and runs on later ones.
const OLDEST: u32 = 8;

/// Options of `demo`.
#[derive(Debug)]
pub(crate) struct DemoOptions {
    /// The recording request, without a path.
    pub(crate) request: Request,
    /// The instruments as the user gave them.
    pub(crate) instruments_given: String,
    /// Path for the recording; `None` removes it afterwards.
    pub(crate) output: Option<PathBuf>,
    /// Whether to overwrite existing files.
    pub(crate) force: bool,
}

/// Runs the demo and prints its report. Returns the exit code of the program.
///
/// # Errors
/// When there is no .NET and none can be fetched, or the program could not be started.
pub(crate) fn perform(options: DemoOptions) -> Result<u8, Failure> {
    let new_enough = |install: &Install| install.runtimes.iter().any(|version| version.major >= OLDEST);
    let install = match dotnet::find::installs().into_iter().find(new_enough) {
        Some(install) => install,
        None => dotnet::fetch::fetch()?,
    };
    let temporary = tempfile::Builder::new().prefix("clrscope-demo-").tempdir().map_err(|e| no_folder(&e))?;
    let library = embedded::DEMO.write_into(temporary.path()).map_err(|e| no_folder(&e))?;
    let (kept, force) = (options.output.is_some(), options.force);
    let beside = options.output.as_deref().map(page_beside);
    if let (Some(page), Some(recording)) = (&beside, &options.output) {
        result_file::check(page, recording, force)?;
    }
    let output = options.output.unwrap_or_else(|| temporary.path().join("demo.clrs"));
    say(&format!("clrscope: profiling the demo on .NET in {} ({})", install.root.display(), install.origin.in_words()));
    let first = first_view(&options.request.instruments).unwrap_or("summary");
    let recorded = run(&install, &library, output, force, (options.request, &options.instruments_given))?;
    let Some(path) = &recorded.path else {
        summary::after_run(&recorded, false);
        return Err(Failure::new("the demo was not recorded", "its runtime loaded no agent", "run 'clrscope doctor'"));
    };
    let recording = open(path)?;
    let overview = view(first).expect("the views of instruments are in the list of views");
    let report =
        overview.open(&recording, &overview.for_people(&ReportRequest::default())).map_err(|p| query_failure(&p))?;
    super::report::print(&report, Format::Text)?;
    let page = beside.map_or_else(temporary_page, Ok)?;
    super::report::write_page(&report, &page, path, true)?;
    say(&format!("clrscope: the whole report as a page for your browser: {}", page.display()));
    say(&match kept {
        true => format!("clrscope: next: clrscope report {} --view tree", path.display()),
        false => {
            "clrscope: next: clrscope run -- dotnet YOUR.dll (or 'clrscope demo -i calls' for every call and its path, \
                  'clrscope demo -o demo.clrs' to keep the recording)"
                .to_owned()
        }
    });
    Ok(recorded.ended.code())
}

/// The file of the page next to a recording that is kept.
fn page_beside(recording: &Path) -> PathBuf {
    let page = recording.with_extension("html");
    if page == recording { recording.with_extension("html.html") } else { page }
}

/// A temporary file for the page of a recording that is not kept.
fn temporary_page() -> Result<PathBuf, Failure> {
    let named = tempfile::Builder::new().prefix("clrscope-demo-").suffix(".html").tempfile();
    let kept = named.and_then(|file| file.keep().map_err(|error| error.error));
    kept.map(|(_, path)| path).map_err(|error| no_folder(&error))
}

fn run(
    install: &Install,
    library: &Path,
    output: PathBuf,
    force: bool,
    (request, instruments_given): (Request, &str),
) -> Result<FinishedRecording, Failure> {
    record(Plan {
        program: &Program {
            executable: install.host().into_os_string(),
            arguments: vec![library.as_os_str().to_owned()],
            name: "demo".to_owned(),
        },
        command: &["dotnet".into(), "Demo.dll".into()],
        request,
        // The demo takes the main slot from no program of the user.
        slot: Slot::Main,
        periods: None,
        instruments_given,
        output: Some(output),
        force,
        progress: messages_on_terminal(),
        live: false,
        announce: false,
        stdout: Stdout::OurStderr,
        debugger: None,
        view: false,
    })
}

fn no_folder(error: &io::Error) -> Failure {
    Failure::new("cannot unpack the demo", reason(error), "set TMPDIR to a folder with space")
}
