//! `cargo xtask soak triage`: runs `clrscope triage` on the 36 programs of `dotnet/triage`, three
//! for each of twelve kinds of problem. Some look alike from outside. At most two verdicts may be
//! wrong, and none of these may be stated as certain.

use std::path::Path;
use std::time::Duration;

use clrscope_testkit::compile::compile_folder;
use clrscope_testkit::{Runtime, Sdk, Service, cli, pause, run_within, runtimes, scratch, workspace_root};
use serde_json::Value;

use crate::verdict::{say, verdict};

/// Verdicts that may be wrong.
const WRONG: usize = 2;
/// Longer than a look takes, on a busy machine.
const PATIENCE: Duration = Duration::from_secs(120);
/// Until a program is compiled and does what it does.
const WARM: Duration = Duration::from_secs(3);
/// Variable that leads the program to its slow services.
const SERVICE: &str = "PLIGHTS_SERVICE";

/// A program, and what is right to say of it.
struct Plight {
    name: String,
    /// Kinds of the first verdict.
    kinds: Vec<String>,
    /// Method that must be named.
    method: Option<String>,
}

/// A verdict that was wrong.
struct Wrong {
    is_certain: bool,
    why: String,
}

/// Tests the named programs, or all of them.
pub(crate) fn run(names: &[&str]) -> Result<(), String> {
    let sdk = Sdk::find().ok_or("there is no SDK to compile the programs with")?;
    let folder = workspace_root().join("dotnet/triage/Plights");
    let all = plights(&std::fs::read_to_string(folder.join("Plights.cs")).map_err(|error| error.to_string())?);
    if let Some(unknown) = names.iter().find(|name| all.iter().all(|plight| plight.name != **name)) {
        return Err(format!("there is no program '{unknown}'"));
    }
    cli();
    let place = scratch();
    let program = place.path().join("Plights.dll");
    compile_folder(&sdk, &folder, &program)?;
    let mut wrong = Vec::new();
    for (at, plight) in all.iter().enumerate() {
        if names.is_empty() || names.contains(&plight.name.as_str()) {
            // A third of each kind on each runtime.
            let runtime = &runtimes()[at % runtimes().len()];
            wrong.extend(look_at(plight, runtime, &program, &folder));
        }
    }
    let certain = wrong.iter().filter(|one| one.is_certain).count();
    if wrong.len() <= WRONG && certain == 0 {
        return Ok(());
    }
    verdict(&wrong.into_iter().map(|one| one.why).collect::<Vec<_>>())
}

/// The programs, by the comments of the source.
fn plights(source: &str) -> Vec<Plight> {
    let of_line = |line: &str| {
        let (name, rest) = line.trim().strip_prefix("case \"")?.split_once('"')?;
        let (_, words) = rest.split_once("// ")?;
        let is_method = |word: &&str| word.starts_with(char::is_uppercase);
        let (methods, kinds): (Vec<&str>, Vec<&str>) = words.split_whitespace().partition(is_method);
        let method = methods.first().map(|name| format!("Plights.Program::{name}"));
        Some(Plight { name: name.to_owned(), kinds: kinds.into_iter().map(str::to_owned).collect(), method })
    };
    source.lines().filter_map(of_line).collect()
}

fn look_at(plight: &Plight, runtime: &Runtime, program: &Path, folder: &Path) -> Option<Wrong> {
    let what = format!("{} on {}", plight.name, runtime.version);
    let found = verdicts(plight, runtime, program, folder);
    let first = found.as_ref().map(|found| found["verdicts"][0].clone()).unwrap_or_default();
    let is_certain = first["confidence"] == "certain";
    let went = found.and_then(|found| judge(plight, &found));
    say((what, went)).map(|why| Wrong { is_certain, why })
}

/// What `clrscope triage` says of a program that runs.
fn verdicts(plight: &Plight, runtime: &Runtime, program: &Path, folder: &Path) -> Result<Value, String> {
    let mut command = runtime.command(program);
    command.arg(&plight.name).env(SERVICE, folder.join("service.py"));
    let running = Service::start(command);
    pause(WARM);
    let mut look = std::process::Command::new(cli());
    look.args(["triage", &running.id().to_string(), "--format", "json"]);
    let looked = run_within(look, PATIENCE);
    drop(running);
    serde_json::from_slice(&looked.stdout).map_err(|_| String::from_utf8_lossy(&looked.stderr).into_owned())
}

fn judge(plight: &Plight, found: &Value) -> Result<String, String> {
    let first = &found["verdicts"][0];
    let kind = first["kind"].as_str().unwrap_or_default();
    let named = first["function"].as_str();
    let said = format!("{kind}, {}, {}", first["confidence"], named.unwrap_or("no method"));
    let is_kind = plight.kinds.iter().any(|known| known == kind);
    let is_named = plight.method.as_deref().is_none_or(|method| named == Some(method));
    if is_kind && is_named {
        Ok(said)
    } else {
        Err(format!("{said}; {:?} {:?} is right: {found:#}", plight.kinds, plight.method))
    }
}
