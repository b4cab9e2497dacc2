//! Finds processes by the name of their program.

use std::time::Duration;

use clr_diagnostics::{Process, processes};
use clrscope_contract::request::Glob;

use crate::errors::{Failure, quoted};

/// Longest time for a runtime to answer with its process information.
const PATIENCE: Duration = Duration::from_secs(3);
/// Most processes that a message names.
const MOST_NAMED: usize = 5;

/// Finds the process that a command line names, by its id or by the name of its entry assembly,
/// which may be a pattern.
///
/// # Errors
/// When no program has the name, or more than one does.
pub(crate) fn process_named(text: &str) -> Result<u32, Failure> {
    if let Ok(pid) = text.trim().parse() {
        return Ok(pid);
    }
    if text.trim().is_empty() {
        return Err(Failure::usage("no process is named", "the name is empty", LIST));
    }
    let running: Vec<(u32, String)> =
        processes().iter().filter_map(|one| Some((one.pid(), program_of(one)?))).collect();
    let name = Glob::new(text);
    let meant: Vec<&(u32, String)> = running.iter().filter(|(_, program)| name.matches(program)).collect();
    match meant.as_slice() {
        [(pid, _)] => Ok(*pid),
        [] => Err(Failure::new(
            format!("no process runs a program called {}", quoted(text)),
            match running.as_slice() {
                [] => "there is no .NET process that this user can see".to_owned(),
                running => format!("there are {}", list(&running.iter().collect::<Vec<_>>())),
            },
            LIST,
        )),
        several => Err(Failure::new(
            format!("{} is not one process", quoted(text)),
            format!("there are {}", list(several)),
            "name one by its number",
        )),
    }
}

const LIST: &str = "'clrscope ps' lists them; name one by its number or its program";

/// Name of the program that a process runs.
fn program_of(process: &Process) -> Option<String> {
    let info = process.port().and_then(|port| port.with_limit(PATIENCE).info()).ok()?;
    Some(info.entry_assembly).filter(|name| !name.is_empty())
}

fn list(processes: &[&(u32, String)]) -> String {
    let named =
        processes.iter().take(MOST_NAMED).map(|(pid, program)| format!("{} ({pid})", crate::errors::one_line(program)));
    let more = processes.len().saturating_sub(MOST_NAMED);
    let more = (more > 0).then(|| format!("{more} more"));
    named.chain(more).collect::<Vec<_>>().join(", ")
}
