//! The agent's own variable, where the environment has it: a program can't say what is wrong with it.

use std::env;
use std::path::Path;

use clrscope_contract::instruments::check_all;
use clrscope_contract::request::{AGENT_VARIABLE, Programs, Request};

use super::{Check, Status};
use crate::errors::one_line;
use crate::programs;

const NAME: &str = AGENT_VARIABLE;

/// Whether the agent will understand it and which programs it chooses; nothing where it is not set.
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
