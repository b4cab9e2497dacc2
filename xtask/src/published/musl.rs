//! Tests the files for musl, in a system with musl and on this machine's own system.

use std::collections::BTreeMap;
use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

use clrscope_analysis::{Query, collections};
use clrscope_recording::model::{Allocation, AllocationKind, Process, Recording, Sample, StackFrame};
use clrscope_testkit::{confine, pause, run_within, scratch, wait_until};

use super::musl_system::MuslSystem;
use super::{Killed, PATIENCE, clocked_and_sampled, finish, rows, same_calls, same_commands};
use crate::dist::{Binaries, Platform};
use crate::verdict::{caught, say};

/// Goes into the system; nothing of this machine but its processes and devices is in it.
const ENTER: &str = r#"root=$1 work=$2; shift 2
    mount --bind "$work" "$root/work" && mount -t proc proc "$root/proc" && mount --rbind /dev "$root/dev" &&
    mount -t tmpfs tmpfs "$root/tmp" && exec chroot "$root" "$@""#;
/// Exceptions that are thrown.
const THROWN: u64 = 2_000;
/// Calls until a program ends in the midst of its work.
const CALLS: u64 = 1_000;
/// Threads and rounds of allocations.
const ALLOCATED: (u64, u64) = (4, 1_000);

/// Runs all tests. Returns descriptions of what is wrong.
pub(super) fn run(binaries: &Binaries) -> Vec<String> {
    let system = match Musl::prepare(binaries) {
        Ok(system) => system,
        Err(why) => return say(("a system with musl".to_owned(), Err(why))).into_iter().collect(),
    };
    type Check = (&'static str, fn(&Musl) -> Result<String, String>);
    let checks: [Check; 11] = [
        ("run -i calls", Musl::calls),
        ("run -i calls of a program that is killed", Musl::killed),
        ("run -i exceptions", Musl::exceptions),
        ("run -i cpu:engine=timer", |musl| musl.samples("timer")),
        ("run -i cpu:engine=perf", |musl| musl.samples("perf")),
        ("run -i alloc:exact", Musl::allocations),
        ("run -i gc", Musl::collections),
        ("attach -i requests", |musl| musl.attach(Platform::Musl)),
        ("attach -i requests by the tool for glibc, from outside", |musl| musl.attach(Platform::Gnu)),
        ("doctor", Musl::doctor),
        ("the tool for musl outside", Musl::outside),
    ];
    let tried = checks.into_iter().map(|(what, check)| (format!("{what} with musl"), caught(|| check(&system))));
    tried.filter_map(say).collect()
}

struct Musl {
    system: MuslSystem,
    work: tempfile::TempDir,
    /// The tools as files of this machine.
    tools: tempfile::TempDir,
}

impl Musl {
    fn prepare(binaries: &Binaries) -> Result<Self, String> {
        if !confine::is_root() {
            return Err("only root can go into another root".to_owned());
        }
        let system = MuslSystem::prepare()?;
        system.install(&binaries.of(Platform::Musl).tool)?;
        let tools = scratch();
        for platform in Platform::ALL {
            super::program_file(&Self::tool_in(tools.path(), platform), &binaries.of(platform).tool)?;
        }
        Ok(Self { system, work: scratch(), tools })
    }

    fn tool_in(folder: &Path, platform: Platform) -> std::path::PathBuf {
        folder.join(match platform {
            Platform::Gnu => "clrscope-gnu",
            Platform::Musl => "clrscope-musl",
        })
    }

    /// A command in the system.
    fn command(&self, words: &[&str]) -> Command {
        let mut command = Command::new("unshare");
        command.args(["--mount", "sh", "-c", ENTER, "sh"]).arg(&self.system.folder).arg(self.work.path()).args(words);
        Self::clean(&mut command);
        command
    }

    fn clean(command: &mut Command) {
        command.env_clear().env("PATH", "/usr/sbin:/usr/bin:/sbin:/bin").env("HOME", "/work").env("LC_ALL", "C");
    }

    /// The command that runs a fixture under the tool.
    fn recorded(&self, instruments: &str, fixture: &str, arguments: &[&str]) -> Result<Command, String> {
        let program = self.system.program(fixture)?;
        let words =
            ["/bin/clrscope", "run", "-q", "--force", "-i", instruments, "-o", "/work/rec.clrs", "--", &program];
        Ok(self.command(&[&words, arguments].concat()))
    }

    fn run(&self, instruments: &str, fixture: &str, arguments: &[&str]) -> Result<String, String> {
        finish(self.recorded(instruments, fixture, arguments)?)
    }

    fn report(&self, view: &str) -> Result<String, String> {
        finish(self.command(&["/bin/clrscope", "report", "/work/rec.clrs", "--view", view, "--format", "json"]))
    }

    fn recording(&self) -> Result<Recording, String> {
        let recording =
            clrscope_recording::open(&self.work.path().join("rec.clrs")).map_err(|error| error.to_string())?;
        match &recording.processes[..] {
            [process] if process.losses.is_empty() => Ok(recording),
            [process] => Err(format!("losses: {:?}", process.losses)),
            all => Err(format!("{} processes were recorded", all.len())),
        }
    }

    /// Calls are those that the program counts, and its output is that of a bare run.
    fn calls(&self) -> Result<String, String> {
        let printed = self.run("calls", "Recursion", &[])?;
        let program = self.system.program("Recursion")?;
        let bare = finish(self.command(&[&program]))?;
        if bare != printed {
            return Err(format!("bare it prints {bare}, recorded {printed}"));
        }
        same_calls(&printed, &self.report("functions")?)
    }

    /// A program that ends itself by SIGKILL loses no call.
    fn killed(&self) -> Result<String, String> {
        let finished = run_within(self.recorded("calls", "Ends", &["signal", "9"])?, PATIENCE);
        if finished.code() != 128 + 9 {
            return Err(format!("{}: {}", finished.status, finished.stderr_text()));
        }
        let rows = rows(&self.report("functions")?)?;
        let calls = |name: &str| {
            let row = rows.iter().find(|row| row["name"] == name);
            row.and_then(|row| row["calls"].as_u64())
        };
        match (calls("Ends.Program::Work"), calls("Ends.Program::End")) {
            (Some(CALLS), Some(1)) => Ok(format!("{CALLS} calls before the end exact")),
            other => Err(format!("{other:?} in {rows:?}")),
        }
    }

    fn exceptions(&self) -> Result<String, String> {
        let printed = self.run("exceptions", "Throws", &[&THROWN.to_string()])?;
        let rows = rows(&self.report("exceptions")?)?;
        let count: u64 = rows.iter().filter_map(|row| row["exceptions"].as_u64()).sum();
        if count != THROWN || printed.trim() != format!("caught {THROWN}") {
            return Err(format!("{count} of {THROWN}; the program printed {printed:?}; {rows:?}"));
        }
        Ok(format!("{THROWN} exceptions exact"))
    }

    /// Samples of four methods stand for the time that the program's threads clock around them.
    fn samples(&self, engine: &str) -> Result<String, String> {
        let printed = self.run(&format!("cpu:engine={engine}"), "Burning", &["4", "60"])?;
        let recording = self.recording()?;
        let process = &recording.processes[0];
        let used = process.samplers.iter().map(|sampler| format!("{:?}", sampler.engine)).collect::<Vec<_>>();
        if !used.iter().all(|used| used.to_lowercase().starts_with(engine)) || used.is_empty() {
            return Err(format!("samples were taken by {used:?}"));
        }
        let all: Vec<Sample> = clrscope_testkit::samples(process, "cpu").collect();
        let said = clocked_and_sampled(process, &printed)?;
        Ok(format!("{said}; {} samples by {}", all.len(), used.join(", ")))
    }

    /// Objects and bytes are those that the program makes and the runtime counts.
    fn allocations(&self) -> Result<String, String> {
        let (threads, rounds) = ALLOCATED;
        let printed = self.run("alloc:exact", "Allocated", &["exact", &threads.to_string(), &rounds.to_string()])?;
        let recording = self.recording()?;
        let process = &recording.processes[0];
        let mut found: BTreeMap<&str, (u64, u64)> = BTreeMap::new();
        for record in allocations(process).filter(|record| is_below(process, record.stack, "Allocated.Program::Work")) {
            let name = process.types.get(record.object_type as usize).map_or("", |of| of.name.as_str());
            let sum = found.entry(name).or_default();
            *sum = (sum.0 + record.objects, sum.1 + record.bytes);
        }
        let bytes: u64 = found.values().map(|(_, bytes)| bytes).sum();
        let counted = printed.lines().find_map(|line| line.strip_prefix("bytes ")?.parse::<u64>().ok());
        if counted != Some(bytes) {
            return Err(format!("{bytes} bytes, and the runtime counts {counted:?}: {found:?}"));
        }
        let each = threads * rounds;
        for (name, size) in [("int", 24), ("Allocated.Money", 32), ("string[]", 48), ("System.Func<int>", 64)] {
            if found.get(name) != Some(&(each, size * each)) {
                return Err(format!("{name} is not {each} objects: {found:?}"));
            }
        }
        Ok(format!("{bytes} bytes of {} types exact", found.len()))
    }

    /// Collections are those that the runtime counts.
    fn collections(&self) -> Result<String, String> {
        let printed = self.run("gc", "Collections", &["known"])?;
        let recording = self.recording()?;
        let rows = collections(&recording, &Query::default()).map_err(|error| error.to_string())?;
        let mut counts = [0_u64; 3];
        rows.iter().for_each(|row| counts[(row.generation as usize).min(2)] += 1);
        let counted = printed.lines().find_map(|line| line.strip_prefix("COLLECTIONS "));
        let found = counts.map(|count| count.to_string()).join(" ");
        if counted == Some(found.as_str()) {
            Ok(format!("{found} by generation exact"))
        } else {
            Err(format!("{found} and not {printed}"))
        }
    }

    /// Commands to databases of a program that runs already, by the tool inside or the one outside.
    fn attach(&self, platform: Platform) -> Result<String, String> {
        let program = self.system.program("Commands")?;
        let mut command = self.command(&[&program, "5", "wait", "listens"]);
        let child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().map_err(|error| error.to_string())?;
        let mut program = Killed(child);
        let mut output = BufReader::new(program.0.stdout.take().ok_or("a pipe")?);
        let mut line = String::new();
        while line.trim() != "READY" {
            line.clear();
            if output.read_line(&mut line).map_err(|error| error.to_string())? == 0 {
                return Err("it ended before it was ready".to_owned());
            }
        }
        let pid = program.0.id().to_string();
        let (mut attach, recording) = match platform {
            Platform::Musl => {
                let mut attach = Command::new("nsenter");
                attach.args(["--target", &pid, "--mount", "--root", "/bin/clrscope"]);
                (attach, "/work/rec.clrs".to_owned())
            }
            Platform::Gnu => {
                let tool = Self::tool_in(self.tools.path(), platform);
                (Command::new(tool), self.work.path().join("rec.clrs").display().to_string())
            }
        };
        attach.args(["attach", &pid, "-q", "--force", "-i", "requests", "-o", &recording]);
        Self::clean(&mut attach);
        let recorder = attach.stderr(Stdio::piped()).spawn().map_err(|error| error.to_string())?;
        let mut recorder = Killed(recorder);
        let maps = format!("/proc/{pid}/maps");
        let mut ended = None;
        wait_until("the agent", || {
            ended = recorder.0.try_wait().ok().flatten();
            ended.is_some() || fs::read_to_string(&maps).is_ok_and(|maps| maps.contains("libclrscope_agent.so"))
        });
        if let Some(status) = ended {
            let mut said = String::new();
            let read = recorder.0.stderr.take().map(|mut errors| errors.read_to_string(&mut said));
            return Err(format!("attach: {status}: {said}{read:?}"));
        }
        // The methods that are asked for are changed soon after.
        pause(Duration::from_secs(2));
        let input = program.0.stdin.as_mut().ok_or("a pipe")?;
        input.write_all(b"\n").map_err(|error| error.to_string())?;
        let mut printed = String::new();
        output.read_to_string(&mut printed).map_err(|error| error.to_string())?;
        let status = recorder.0.wait().map_err(|error| error.to_string())?;
        if !status.success() {
            return Err(format!("attach: {status}"));
        }
        same_commands(&printed, &rows(&self.report("requests")?)?)
    }

    /// `doctor` names the C library and the agents.
    fn doctor(&self) -> Result<String, String> {
        let said = run_within(self.command(&["/bin/clrscope", "doctor", "--json"]), PATIENCE).stdout_text();
        let words = "is musl; agents exist for glibc and musl";
        if said.contains(words) { Ok(words.to_owned()) } else { Err(said) }
    }

    /// The tool for musl records a program of this machine, which runs on glibc.
    fn outside(&self) -> Result<String, String> {
        let runtime = clrscope_testkit::runtimes().last().ok_or("no runtime")?;
        let recording = self.work.path().join("outside.clrs");
        let mut run = Command::new(Self::tool_in(self.tools.path(), Platform::Musl));
        run.args(["run", "-q", "--force", "-i", "calls", "-o"]).arg(&recording).arg("--");
        run.args(runtime.words(&clrscope_testkit::fixture("Recursion")));
        runtime.prepare(&mut run);
        let printed = finish(run)?;
        let mut report = Command::new(Self::tool_in(self.tools.path(), Platform::Musl));
        report.arg("report").arg(&recording).args(["--view", "functions", "--format", "json"]);
        Ok(format!("{} on .NET {} with glibc", same_calls(&printed, &finish(report)?)?, runtime.version))
    }
}

fn allocations(process: &Process) -> impl Iterator<Item = Allocation> {
    let chunks = process.arenas("alloc").flat_map(|arena| &arena.chunks);
    let all = chunks.flat_map(|chunk| Allocation::all(&chunk.bytes.load()).collect::<Vec<_>>());
    all.filter(|record| record.kind == AllocationKind::Allocated)
}

fn is_below(process: &Process, stack: u32, method: &str) -> bool {
    process.stacks.frames(stack).any(|frame| match frame {
        StackFrame::Method { function, .. } => {
            process.functions.get(function as usize).is_some_and(|function| function.name == method)
        }
        _ => false,
    })
}
