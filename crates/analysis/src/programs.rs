//! Programs: what each process runs, and which processes are the user's own.

use clrscope_contract::command::entry_assembly;
use clrscope_recording::model::{Process, Recording};

/// Program that runs in a process, without its host.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Program<'a> {
    /// Path of the managed assembly if `dotnet` runs one, else of the executable.
    pub path: &'a str,
    /// Arguments of the program, without the host's arguments.
    pub arguments: &'a [String],
    /// Whether the program belongs to the .NET SDK, such as the build, the compiler server or the
    /// test runner.
    pub of_sdk: bool,
}

impl<'a> Program<'a> {
    /// Returns the program of a process.
    #[must_use]
    pub fn from_process(process: &'a Process) -> Self {
        let command = process.command.as_slice();
        let first = command.first().map_or("", String::as_str);
        let hosted = file_name(first) == "dotnet";
        let entry = if hosted { entry_assembly(command) } else { None };
        let index = entry.unwrap_or(0);
        let path = command.get(index).map_or("", String::as_str);
        let of_sdk = (hosted && entry.is_none()) || lies_in_sdk(path);
        Self { path, arguments: command.get(index + 1..).unwrap_or_default(), of_sdk }
    }

    /// The last part of the program's path.
    #[must_use]
    pub fn file_name(&self) -> &'a str {
        file_name(self.path)
    }

    /// Name of the program, as `--process` accepts it: the file name, for an assembly without
    /// `.dll`.
    #[must_use]
    pub fn name(&self) -> &'a str {
        let name = self.file_name();
        name.strip_suffix(".dll").unwrap_or(name)
    }
}

/// The processes that run the user's own programs, if tools of the SDK were recorded as well. Under
/// `dotnet run` this is the program, under `dotnet test` the test host. Empty if no tools of the
/// SDK were recorded.
#[must_use]
pub fn own_programs(recording: &Recording) -> Vec<&Process> {
    let known = recording.processes.iter().filter(|process| !process.command.is_empty());
    let (tools, own): (Vec<_>, Vec<_>) = known.partition(|process| Program::from_process(process).of_sdk);
    if tools.is_empty() { Vec::new() } else { own }
}

fn file_name(path: &str) -> &str {
    path.rsplit(['/', '\\']).next().unwrap_or("")
}

/// `.../sdk/10.0.401/...`
fn lies_in_sdk(path: &str) -> bool {
    let mut folders = path.split('/').skip_while(|folder| *folder != "sdk").skip(1);
    folders.next().is_some_and(|version| version.starts_with(|c: char| c.is_ascii_digit()) && version.contains('.'))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn process(pid: u32, command: &str) -> Process {
        Process { pid, command: command.split(' ').map(str::to_owned).collect(), ..Process::default() }
    }

    #[test]
    fn the_program_is_what_the_host_was_told_to_run() {
        for (command, name, arguments, of_sdk) in [
            ("/usr/bin/dotnet run -- a", "dotnet", 3, true),
            ("dotnet exec /n/sdk/10.0.401/vstest.console.dll /x/t.dll", "vstest.console", 1, true),
            ("dotnet exec --runtimeconfig /x/t.json --depsfile /x/t /p/testhost.dll --port 1", "testhost", 2, false),
            ("/n/sdk/10.0.401/Roslyn/bincore/VBCSCompiler -pipe", "VBCSCompiler", 1, true),
            ("/src/sdk/bin/app a b", "app", 2, false),
            ("dotnet app.dll", "app", 0, false),
        ] {
            let process = process(1, command);
            let program = Program::from_process(&process);
            assert_eq!(
                (program.name(), program.arguments.len(), program.of_sdk),
                (name, arguments, of_sdk),
                "{command}"
            );
        }
        assert_eq!(Program::from_process(&Process::default()).name(), "");
    }

    #[test]
    fn only_beside_tools_is_there_something_to_tell_apart() {
        let own = |commands: &[&str]| {
            let processes = commands.iter().enumerate().map(|(at, command)| process(at as u32, command)).collect();
            let recording = Recording { processes, ..Recording::default() };
            own_programs(&recording).iter().map(|process| process.pid).collect::<Vec<_>>()
        };
        assert_eq!(own(&["dotnet run", "/x/app"]), [1]);
        assert_eq!(own(&["/x/app", "/x/app child"]), []);
        assert_eq!(own(&["dotnet build"]), []);
    }
}
