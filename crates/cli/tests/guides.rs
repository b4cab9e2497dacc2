//! README and the guides in `docs/guide`: each command that starts with `clrscope` is run, from the
//! top of the document to its end in one folder, and ends with the exit code that stands behind it
//! (`# exit code 3`), or else with 0.

mod common;

use std::ffi::OsString;
use std::fs::{self, File};
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};

use clrscope_testkit::{self as testkit, Runtime, at_a_time, attempted, fixture, not_run, say, workspace_root};
use common::TestFolder;

/// What `app.dll` and `PID` stand for in a document: a program, its arguments, and those with which
/// it runs until it is killed.
const PROGRAMS: [(&str, &str, &str, &str); 9] = [
    ("README.md", "Serves", "2", "1 wait"),
    ("slow-cpu.md", "Troubles", "cpu 1000", "cpu 600000"),
    ("slow-idle.md", "Troubles", "convoy 1000", "convoy 600000"),
    ("hangs.md", "Pending", "", "7"),
    ("memory.md", "Troubles", "growing 500", "growing 600000"),
    ("exceptions.md", "Troubles", "exceptions 500", "exceptions 600000"),
    ("coverage.md", "Covered", "", ""),
    ("ci.md", "Recursion", "", ""),
    ("production.md", "Serves", "2", "1 wait"),
];

/// Documents that have no commands.
const WITHOUT_COMMANDS: [&str; 1] = ["README.md of docs/guide"];

/// Recordings that a document may name without a command that writes them.
const RECORDINGS: [&str; 3] = ["app.clrs", "before.clrs", "after.clrs"];

/// Beginnings of commands that are not run, and why.
const NOT_RUN: [(&str, &str); 6] = [
    ("cargo demo", "builds the tool"),
    ("cargo test", "these are the tests"),
    ("cd shop-watch && cargo test", "crates/cli/tests/new.rs runs it"),
    ("SHOP_WATCH_OUTPUT=calls.txt clrscope run", "crates/cli/tests/new.rs runs it"),
    ("sudo clrscope env --systemd", "writes below /etc; crates/cli/tests/services.rs runs units"),
    ("sudo systemctl", "changes the services of the machine"),
];

/// What outputs say, as the documents show it: the document, the command, the text.
const SAYS: [(&str, &str, &str); 12] = [
    ("slow-cpu.md", "clrscope report app.clrs", "Troubles.Program::Price"),
    ("slow-idle.md", "clrscope triage PID", "1. a lock convoy: threads wait for one another"),
    ("slow-idle.md", "clrscope report locks.clrs --view locks", "Troubles.Program::Book (Troubles.cs:89)"),
    ("slow-idle.md", "clrscope report web.clrs --view requests", "GET /wait/{ms:int}"),
    ("hangs.md", "clrscope stacks PID", "blocks on Pending.Shop::Blocks (Pending.cs:157)"),
    ("hangs.md", "clrscope triage PID", "1. waiting"),
    ("memory.md", "clrscope triage PID", "1. the heap grows: a leak, or a cache that fills"),
    ("memory.md", "clrscope report after.clrs --view roots --type 'byte[]'", "static field Troubles.Program.Kept"),
    ("exceptions.md", "clrscope triage PID", "1. an exception storm"),
    (
        "coverage.md",
        "clrscope report app.clrs --view coverage",
        "82.9 %   97    117       75.0 %     33        44  Covered",
    ),
    (
        "coverage.md",
        "clrscope cover --include '[Covered]*' --fail-under 95 -o gate.clrs app.dll",
        "--fail-under asks for 95 %",
    ),
    (
        "ci.md",
        "clrscope diff base.clrs head.clrs --fail-on 'Recursion.Program::Fib:calls>100000'",
        "Fib:calls>100000 failed",
    ),
];

/// A command of a document.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Line {
    text: String,
    exit_code: i32,
}

/// Commands in the blocks of a document that are marked as `sh`.
fn commands(document: &str) -> Vec<Line> {
    let (mut all, mut is_shell, mut begun) = (Vec::new(), false, String::new());
    for line in document.lines().map(str::trim) {
        if line.starts_with("```") {
            is_shell = line == "```sh";
        } else if is_shell && !line.is_empty() && !line.starts_with('#') {
            if let Some(part) = line.strip_suffix('\\') {
                begun.push_str(part);
                continue;
            }
            let whole = std::mem::take(&mut begun) + line;
            let (text, remark) = whole.split_once(" # ").unwrap_or((&whole, ""));
            let code = remark.split_once("exit code ").and_then(|(_, rest)| rest.split(' ').next()?.parse().ok());
            all.push(Line { text: text.trim_end().to_owned(), exit_code: code.unwrap_or(0) });
        }
    }
    all
}

#[test]
fn commands_are_found_with_their_exit_codes() {
    let document =
        "```sh\na b   # why\n# c\nd \\\n  e   # exit code 3\n```\n```text\nf\n```\n  ```sh\n  g '#'\n  ```\n";
    let line = |text: &str, exit_code| Line { text: text.to_owned(), exit_code };
    assert_eq!(commands(document), [line("a b", 0), line("d e", 3), line("g '#'", 0)]);
}

/// The documents by name, with their texts.
fn documents() -> Vec<(String, String)> {
    let read = |path: &Path| fs::read_to_string(path).expect("a document");
    let guides = fs::read_dir(workspace_root().join("docs/guide")).expect("the guides").flatten();
    let mut all: Vec<_> =
        guides.map(|entry| (entry.file_name().to_string_lossy().into_owned(), entry.path())).collect();
    for (name, _) in &mut all {
        if name == "README.md" {
            name.push_str(" of docs/guide");
        }
    }
    all.push(("README.md".to_owned(), workspace_root().join("README.md")));
    all.sort();
    all.into_iter().map(|(name, path)| (name, read(&path))).collect()
}

/// A program that runs until it is dropped.
struct Running(Child);

impl Running {
    fn start(mut command: Command) -> Self {
        let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().expect("it starts");
        let mut lines = BufReader::new(child.stdout.as_mut().expect("a pipe")).lines();
        assert!(lines.any(|line| line.expect("text").starts_with("READY")), "the program ended");
        Self(child)
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        drop(self.0.kill());
        drop(self.0.wait());
    }
}

/// A folder in which the commands of one document are run.
struct Walk<'a> {
    name: &'a str,
    runtime: &'a Runtime,
    place: TestFolder,
    program: &'static (&'static str, &'static str, &'static str, &'static str),
    running: Option<Running>,
}

impl Walk<'_> {
    fn pid(&mut self) -> u32 {
        let &(_, program, _, arguments) = self.program;
        let runtime = self.runtime;
        let start = || {
            let mut command = runtime.command(&fixture(program));
            command.args(arguments.split_whitespace());
            Running::start(command)
        };
        self.running.get_or_insert_with(start).0.id()
    }

    /// The words that start a program, for a shell.
    fn program(&self, name: &str, arguments: &str) -> String {
        let words = self.runtime.words(&fixture(name));
        let quoted = words.iter().map(|word| format!("'{}'", word.to_string_lossy()));
        quoted.chain(arguments.split_whitespace().map(str::to_owned)).collect::<Vec<_>>().join(" ")
    }

    /// The command with what its names stand for.
    fn meant(&mut self, text: &str) -> String {
        let &(_, program, arguments, _) = self.program;
        let app = self.program(program, arguments);
        // Tests are a program, too.
        let mut text = text.replace("-- dotnet test", "-- app.dll");
        text = match text.split(' ').nth(1) {
            Some("triage") => text + " --duration 3s",
            Some("view") => text + " --no-browser",
            Some("new") => format!("{text} --framework '{}'", workspace_root().display()),
            _ => text,
        };
        let mut meant = Vec::new();
        for word in text.split(' ') {
            meant.push(match word {
                "app.dll" => app.clone(),
                "web.dll" => self.program("Serves", "5"),
                "PID" => self.pid().to_string(),
                "30s" => "1s".to_owned(),
                // Those of the program are fast.
                "200ms" => "1ms".to_owned(),
                word => word.to_owned(),
            });
        }
        meant.join(" ")
    }

    /// A shell that becomes the tool, with its output in files.
    fn shell(&self, text: &str) -> Command {
        let tool = Path::new(env!("CARGO_BIN_EXE_clrscope")).parent().expect("a folder");
        let mut path = OsString::from(tool);
        path.push(":");
        path.push(std::env::var_os("PATH").unwrap_or_default());
        let mut command = Command::new("sh");
        self.runtime.prepare(&mut command);
        command.args(["-c", &format!("exec {text}")]).env("PATH", path).env("COLUMNS", "100");
        let file = |name: &str| File::create(self.place.file(name)).expect("a file");
        command.current_dir(self.place.path()).stdin(Stdio::null()).stdout(file("said")).stderr(file("said.too"));
        command
    }

    fn said(&self) -> String {
        let read = |name: &str| fs::read(self.place.file(name)).expect("the output");
        String::from_utf8_lossy(&[read("said"), read("said.too")].concat()).into_owned()
    }

    /// Makes recordings that the command reads and that no command before it has written.
    fn prepare(&mut self, text: &str) {
        let words: Vec<&str> = text.split(' ').collect();
        for (at, name) in words.iter().enumerate() {
            let is_read = RECORDINGS.contains(name) && words[at - 1] != "-o";
            if is_read && !self.place.file(name).exists() {
                let text = self.meant(&format!("clrscope run -q -i cpu -i exceptions -o {name} app.dll"));
                assert!(self.shell(&text).status().expect("a shell").success(), "{}", self.said());
            }
        }
    }

    /// Whether the command goes on until Ctrl-C.
    fn goes_on(text: &str) -> bool {
        ["clrscope top", "clrscope view"].iter().any(|begin| text.starts_with(begin))
            || text.starts_with("clrscope attach") && !text.contains("--duration")
    }

    /// Recordings in the making, in the folder and in those within it.
    fn unfinished(&self) -> Vec<PathBuf> {
        let entries = |folder: &Path| fs::read_dir(folder).into_iter().flatten().flatten().map(|entry| entry.path());
        let here: Vec<PathBuf> = entries(self.place.path()).collect();
        let within = here.iter().flat_map(|path| entries(path)).collect::<Vec<_>>();
        let is_one = |path: &PathBuf| path.to_string_lossy().ends_with(".clrs.d");
        here.into_iter().chain(within).filter(is_one).collect()
    }

    /// Starts a command that goes on, waits until it is at work, and ends it with Ctrl-C.
    fn interrupted(&self, text: &str) -> ExitStatus {
        let mut child = self.shell(text).spawn().expect("a shell");
        let mut ended = None;
        testkit::wait_until(text, || {
            ended = child.try_wait().expect("a child can be waited for");
            let is_at_work = match text.split(' ').nth(1) {
                Some("attach") => !self.unfinished().is_empty(),
                Some("view") => self.said().contains("the page is at"),
                _ => !self.said().is_empty(),
            };
            is_at_work || ended.is_some()
        });
        if let Some(status) = ended {
            return status;
        }
        let sent = Command::new("kill").args(["-INT", &child.id().to_string()]).status().expect("kill starts");
        assert!(sent.success());
        child.wait().expect("a child can be waited for")
    }

    /// Runs a command. Says what is wrong with its end and its output.
    fn run(&mut self, line: &Line) -> Result<(), String> {
        self.prepare(&line.text);
        let text = self.meant(&line.text);
        let status = if Self::goes_on(&line.text) {
            self.interrupted(&text)
        } else {
            self.shell(&text).status().expect("a shell")
        };
        let said = self.said();
        if status.code() != Some(line.exit_code) {
            return Err(format!("{}: {}: {status}, not {}\n{said}", self.name, line.text, line.exit_code));
        }
        let mut expected = SAYS.iter().filter(|(name, command, _)| *name == self.name && *command == line.text);
        match expected.find(|(_, _, says)| !said.contains(says)) {
            Some((_, _, says)) => Err(format!("{}: {}: says nothing of '{says}'\n{said}", self.name, line.text)),
            None => Ok(()),
        }
    }
}

#[test]
fn every_command_of_readme_and_guides_does_what_they_say() {
    let documents = documents();
    let runtime = testkit::runtimes().iter().max_by_key(|runtime| runtime.version.clone()).expect("a runtime");
    say(&format!("the commands of README and guides on .NET {}", runtime.version));
    let wrong = at_a_time(9, &documents, |(name, text)| {
        let lines = commands(text);
        if WITHOUT_COMMANDS.contains(&name.as_str()) {
            assert_eq!(lines, [], "{name} has commands: it needs a program");
            return Vec::new();
        }
        let program = PROGRAMS.iter().find(|program| program.0 == name);
        let program = program.unwrap_or_else(|| panic!("{name} needs a program in PROGRAMS"));
        let mut walk = Walk { name, runtime, place: TestFolder::new(), program, running: None };
        let mut wrong = Vec::new();
        for line in lines {
            if NOT_RUN.iter().any(|(begin, _)| line.text.starts_with(begin)) {
                continue;
            }
            assert!(line.text.starts_with("clrscope "), "{name}: is '{}' to be run, or in NOT_RUN?", line.text);
            let needs_web = program.1 == "Serves" || line.text.contains("web.");
            if needs_web && !runtime.has_web() {
                not_run(&format!("{name}: {}: no ASP.NET", line.text));
                continue;
            }
            // A busy machine can hide a program's trouble.
            let outcome = match line.text.starts_with("clrscope triage") {
                true => attempted(|| walk.run(&line)),
                false => walk.run(&line),
            };
            wrong.extend(outcome.err());
        }
        wrong
    });
    let wrong = wrong.concat();
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn lists_of_this_test_have_only_what_documents_have() {
    let documents = documents();
    let lines: Vec<Line> = documents.iter().flat_map(|(_, text)| commands(text)).collect();
    for (begin, why) in NOT_RUN {
        assert!(lines.iter().any(|line| line.text.starts_with(begin)), "no document has '{begin}' ({why})");
    }
    for (name, command, says) in SAYS {
        let (_, text) = documents.iter().find(|(of, _)| of == name).expect("a document");
        assert!(text.contains(says), "{name} does not say '{says}'");
        assert!(commands(text).iter().any(|line| line.text == command), "{name} has no '{command}'");
    }
    for name in PROGRAMS.iter().map(|program| program.0).chain(WITHOUT_COMMANDS) {
        assert!(documents.iter().any(|(of, _)| of == name), "there is no {name}");
    }
    for name in RECORDINGS {
        assert!(lines.iter().any(|line| line.text.contains(name)), "no document has {name}");
    }
}
