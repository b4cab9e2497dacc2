//! Checks the agent's own variable in the environment, because a program can't report errors in it.

use std::env;
use std::fs::File;
use std::path::{Path, PathBuf};

use clrscope_contract::instruments::check_all;
use clrscope_contract::request::{AGENT_VARIABLE, Programs, Request};
use clrscope_contract::trust;

use super::place::Agent;
use super::{Check, Status};
use crate::errors::{one_line, reason, shown};
use crate::launch::listed_agent;
use crate::programs;

const NAME: &str = AGENT_VARIABLE;
const NAMED_AGENT: &str = "named agent";
/// The variables that name the library, in the order in which the runtime reads them.
pub(super) const PATH_VARIABLES: [&str; 2] = ["CORECLR_PROFILER_PATH_64", "CORECLR_PROFILER_PATH"];

/// Checks whether the agent can parse the variable, and which programs it selects; `None` if it is
/// not set.
pub(super) fn check() -> Option<Check> {
    let given = env::var(AGENT_VARIABLE).ok().filter(|given| !given.is_empty())?;
    let request = match Request::parse(&given) {
        Ok(request) => request,
        Err(error) => return Some(bad(&error.0, "set it to what 'clrscope env' prints".to_owned())),
    };
    if let Err(refusal) = check_all(&request) {
        return Some(bad(&refusal.why, refusal.hint));
    }
    Some(chosen(&request.programs, request.trust_writable))
}

/// The folder for recordings that the variable names.
pub(super) fn recording_folder() -> Option<PathBuf> {
    Some(PathBuf::from(Request::parse(&env::var(AGENT_VARIABLE).ok()?).ok()?.out?))
}

/// Checks whether the agent that the environment names can be loaded, and would accept to load;
/// `None` if none is named.
pub(super) fn agent() -> Option<Agent> {
    let given = env::var(AGENT_VARIABLE).ok().filter(|given| !given.is_empty())?;
    let of_main = || {
        let name = PATH_VARIABLES.into_iter().find(|name| env::var_os(name).is_some())?;
        Some((name, PathBuf::from(env::var_os(name)?)))
    };
    let (name, path) = listed_agent(|name| env::var_os(name)).or_else(of_main)?;
    let failed = |why: String, cure: &str| {
        Some(Agent { check: Check::bad(Status::Failed, NAMED_AGENT, one_line(why), cure), path: None })
    };
    if let Err(error) = File::open(&path) {
        let why = format!("{name} names {}, which can't be opened: {}", shown(&path), reason(&error));
        return failed(why, "set the variables to what 'clrscope env' prints for this user, see --user and --install");
    }
    let trusts = Request::parse(&given).is_ok_and(|request| request.trust_writable);
    match trust::check_with_folders(&path) {
        Err(weakness) if !trusts => {
            let why = format!("the agent will refuse to work: {} {}", shown(&weakness.path), weakness.who);
            failed(why, "chmod go-w it, or 'clrscope env --install DIR' with a folder of root's")
        }
        _ => {
            let check = Check::ok(NAMED_AGENT, one_line(format!("{} can be loaded", shown(&path))));
            Some(Agent { check, path: Some(path) })
        }
    }
}

fn chosen(wanted: &Programs, trust_writable: bool) -> Check {
    if !wanted.are_limited() {
        return Check::ok(NAME, "asks for every .NET program that is started with these variables");
    }
    match wanted.patterns(trust_writable) {
        Ok(patterns) if patterns.is_empty() => {
            bad("its files have no pattern, so no program is profiled", "add one, such as 'MyApp*'".to_owned())
        }
        Ok(patterns) => {
            let patterns: Vec<&str> = patterns.iter().map(|pattern| pattern.as_str()).collect();
            Check::ok(NAME, one_line(format!("asks for programs that match {}", patterns.join(" or "))))
        }
        Err(error) => {
            let unusable = |file: &&String| {
                let one = Programs { only: Vec::new(), only_from: vec![(*file).clone()] };
                one.patterns(trust_writable).is_err()
            };
            let file = wanted.only_from.iter().find(unusable).map_or("", String::as_str);
            bad(&format!("no program is profiled: {}", error.0), programs::cure(Path::new(file)))
        }
    }
}

fn bad(found: &str, cure: String) -> Check {
    Check::bad(Status::Failed, NAME, one_line(found), cure)
}
