//! The ways in which a program is run: bare, under the agent, under minimal profilers (floors), and
//! under other tools (peers).

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use clrscope_contract::request::{AGENT_CLSID, AGENT_VARIABLE};
use clrscope_testkit::{Runtime, agent, cli, let_children_hear, load_profiler, workspace_root};

/// Path of a committed program of `dotnet/bench`.
///
/// # Errors
/// A sentence, when it is not there.
pub(crate) fn program(name: &str) -> Result<PathBuf, String> {
    let dll = workspace_root().join(format!("dotnet/bench/bin/{name}.dll"));
    if dll.is_file() { Ok(dll) } else { Err(format!("{} is missing; `cargo xtask fixtures` builds it", dll.display())) }
}

/// Makes the program that `command` starts load the agent, which records into `out`.
pub(crate) fn under_agent(command: &mut Command, request: &str, out: &Path) {
    load_profiler(command, agent(), AGENT_CLSID);
    // The recordings lie in a temporary folder, which others may write in.
    command.env(AGENT_VARIABLE, format!("{request};trust-writable;out={}", out.display()));
}

/// The command that attaches the tool to a process with these instruments, for `duration`, and
/// overwrites `out`.
pub(crate) fn attach(pid: u32, instruments: &[&str], duration: &str, out: &Path) -> Command {
    let_children_hear();
    let mut command = Command::new(cli());
    command.args(["attach", &pid.to_string(), "--quiet", "--force", "--trust-writable", "--duration", duration]);
    command.args(instruments.iter().flat_map(|instrument| ["-i", instrument])).arg("-o").arg(out);
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::piped());
    command
}

/// The newest available runtime.
///
/// # Errors
/// A sentence, when there is none.
pub(crate) fn newest_runtime() -> Result<&'static Runtime, String> {
    clrscope_testkit::runtimes().last().ok_or_else(|| "no .NET runtime at hand".to_owned())
}
