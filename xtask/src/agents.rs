//! The ways a program is run: bare, under the agent, under floors and peers.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use clrscope_contract::request::{AGENT_CLSID, AGENT_VARIABLE};
use clrscope_testkit::{Runtime, agent, cli, let_children_hear, load_profiler, workspace_root};

/// A committed program of `dotnet/bench`.
///
/// # Errors
/// A sentence, when it is not there.
pub(crate) fn program(name: &str) -> Result<PathBuf, String> {
    let dll = workspace_root().join(format!("dotnet/bench/bin/{name}.dll"));
    if dll.is_file() { Ok(dll) } else { Err(format!("{} is missing; `cargo xtask fixtures` builds it", dll.display())) }
}

/// Loads the agent into what `command` starts; the recording goes to `out`.
pub(crate) fn under_agent(command: &mut Command, request: &str, out: &Path) {
    load_profiler(command, agent(), AGENT_CLSID);
    // The recordings lie in a temporary folder, which others may write in.
    command.env(AGENT_VARIABLE, format!("{request};trust-writable;out={}", out.display()));
}

/// The command that attaches the tool to a process for these instruments, for so long, and
/// overwrites `out`.
pub(crate) fn attach(pid: u32, instruments: &[&str], duration: &str, out: &Path) -> Command {
    let_children_hear();
    let mut command = Command::new(cli());
    command.args(["attach", &pid.to_string(), "--quiet", "--force", "--trust-writable", "--duration", duration]);
    command.args(instruments.iter().flat_map(|instrument| ["-i", instrument])).arg("-o").arg(out);
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::piped());
    command
}

/// The newest runtime at hand.
///
/// # Errors
/// A sentence, when there is none.
pub(crate) fn newest_runtime() -> Result<&'static Runtime, String> {
    clrscope_testkit::runtimes().last().ok_or_else(|| "no .NET runtime at hand".to_owned())
}
