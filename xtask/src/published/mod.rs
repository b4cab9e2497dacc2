//! `cargo xtask soak dist`: tests the published files on the systems for which they are made.
//!
//! - Packages that are made twice have the same bytes, and their checksums are right.
//! - The `dotnet tool` package installs without a network, and its command is the tool.
//! - In a root of Debian 11, which has an old C library, `run` and `attach` record what the
//!   programs themselves count and clock.
//! - [`musl`] does the same in a system with musl.

mod musl;
mod musl_system;

use std::collections::BTreeMap;
use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use clrscope_recording::model::{Process, Sample};
use clrscope_symbols::GlibcVersion;
use clrscope_testkit::{
    BurningSamples, Expectations, Runtime, Sdk, confine, methods, not_run, pause, run_within, runtimes, samples,
    scratch, target_folder, wait_until, workspace_root,
};
use serde_json::Value;

use crate::dist::{self, Binaries, Platform, SUMS, VERSION};
use crate::verdict::{caught, say, verdict};

/// Longest time of a program.
const PATIENCE: Duration = Duration::from_secs(300);
/// The old system: its name at Debian, and its C library.
const OLD: (&str, GlibcVersion) = ("bullseye", GlibcVersion { major: 2, minor: 31 });
/// How far sampled times may be from what the program's threads clock: all together, and of a
/// method.
const NEAR: (f64, f64) = (0.05, 0.15);

/// Builds the packages and tests them.
pub(crate) fn run() -> Result<(), String> {
    let binaries = Binaries::build(&target_folder().join("dist-build"))?;
    let place = scratch();
    let mut wrong = Vec::new();
    wrong.extend(say(("the same bytes".to_owned(), caught(|| the_same_bytes(&binaries, place.path())))));
    let packages = place.path().join("first");
    wrong.extend(say(("dotnet tool".to_owned(), caught(|| dotnet_tool(&packages)))));
    match Root::prepare(&packages) {
        Ok(root) => {
            for runtime in runtimes() {
                let on = |what: &str| format!("{what} in Debian 11 on {}", runtime.version);
                wrong.extend(say((on("run -i calls"), caught(|| root.calls(runtime)))));
                wrong.extend(say((on("run -i cpu"), caught(|| root.samples(runtime)))));
                wrong.extend(say((on("attach -i requests"), caught(|| root.attach(runtime)))));
            }
        }
        Err(why) => wrong.extend(say(("Debian 11".to_owned(), Err(why)))),
    }
    wrong.extend(musl::run(&binaries));
    verdict(&wrong)
}

/// Tests the files of an earlier build in a system with musl.
pub(crate) fn run_with_musl() -> Result<(), String> {
    match Binaries::built(&target_folder().join("dist-build")) {
        Some(binaries) => verdict(&musl::run(&binaries)),
        None => {
            not_run("what is published for musl: nothing is built; 'cargo xtask dist' builds it");
            Ok(())
        }
    }
}

/// Packs twice, and has the system's program check the sums.
fn the_same_bytes(binaries: &Binaries, place: &Path) -> Result<String, String> {
    let [first, second] = ["first", "second"].map(|name| dist::pack(binaries, &place.join(name)));
    let (first, second) = (first?, second?);
    let sums = |packages: &[dist::Package]| packages.iter().map(|package| package.sum.clone()).collect::<Vec<_>>();
    if sums(&first) != sums(&second) {
        return Err(format!("{first:?} and {second:?}"));
    }
    let mut check = Command::new("sha256sum");
    check.current_dir(place.join("first")).args(["--check", "--strict", SUMS]);
    let said = finish(check)?;
    let sizes = first.iter().map(|package| {
        format!("{} {} bytes", package.path.file_name().unwrap_or_default().to_string_lossy(), package.bytes)
    });
    Ok(format!("{}; {} sums", sizes.collect::<Vec<_>>().join(", "), said.lines().count()))
}

/// Installs the package into a folder, from the folder where it lies, and runs the command.
fn dotnet_tool(packages: &Path) -> Result<String, String> {
    let sdk = Sdk::find().ok_or("there is no SDK to install it with")?;
    let place = scratch();
    let at = |name: &str| place.path().join(name);
    let config = format!(
        "<configuration><packageSources><clear/><add key=\"here\" value=\"{}\"/></packageSources></configuration>",
        packages.display()
    );
    fs::write(at("nuget.config"), config).map_err(|error| error.to_string())?;
    let bin = at("bin");
    let mut install = sdk.dotnet(place.path(), &["tool", "install", "clrscope", "--version", VERSION, "--tool-path"]);
    install.arg(&bin).current_dir(place.path()).env("NUGET_PACKAGES", at("packages"));
    finish(install)?;
    let command = || {
        let mut command = Command::new(bin.join("clrscope"));
        sdk.lend_runtime(&mut command);
        command.current_dir(place.path()).env("DOTNET_SYSTEM_GLOBALIZATION_INVARIANT", "1");
        command
    };
    let mut version = command();
    version.arg("--version");
    let said = finish(version)?;
    if said.trim() != format!("clrscope {VERSION}") {
        return Err(format!("--version says {said:?}"));
    }
    // What a program is born with: signals that are ignored or blocked.
    let program = find(&bin, "clrscope").ok_or("the package has no program")?;
    let inherited = |mut command: Command| -> Result<Vec<String>, String> {
        command.current_dir(place.path()).args([
            "run",
            "-q",
            "--",
            "grep",
            "-E",
            "^Sig(Blk|Ign):",
            "/proc/self/status",
        ]);
        Ok(finish(command)?.lines().map(str::to_owned).collect())
    };
    let (bare, by_command) = (inherited(Command::new(program))?, inherited(command())?);
    if bare.len() != 2 || bare != by_command {
        return Err(format!("its programs have {by_command:?} and not {bare:?}"));
    }
    let runtime = runtimes().last().ok_or("no runtime")?;
    let mut run = command();
    run.args(["run", "-q", "-i", "calls", "-o", "rec.clrs", "--"]);
    run.args(runtime.words(&clrscope_testkit::fixture("Recursion")));
    let printed = finish(run)?;
    let mut report = command();
    report.args(["report", "rec.clrs", "--view", "functions", "--format", "json"]);
    let checked = same_calls(&printed, &finish(report)?)?;
    let mut failed = command();
    failed.args(["run", "--", "/nowhere"]);
    let code = failed.output().map_err(|error| error.to_string())?.status.code();
    if code != Some(127) {
        return Err(format!("exit code {code:?} of a program that is not there"));
    }
    Ok(format!("{checked}; version, exit code and signals as without it"))
}

/// The file of this name that is no program of .NET's: the one in the folder of the platform.
fn find(folder: &Path, name: &str) -> Option<PathBuf> {
    let entries: Vec<PathBuf> = fs::read_dir(folder).ok()?.flatten().map(|entry| entry.path()).collect();
    let here = entries.iter().find(|path| path.ends_with(format!("linux-x64/{name}"))).cloned();
    here.or_else(|| entries.iter().filter(|path| path.is_dir()).find_map(|path| find(path, name)))
}

/// Compares the calls that a program prints with those of a report's rows.
fn same_calls(printed: &str, report: &str) -> Result<String, String> {
    let expected = Expectations::parse(printed).calls;
    let mut found = BTreeMap::new();
    for row in rows(report)? {
        let name = row["name"].as_str().unwrap_or_default().to_owned();
        *found.entry(name).or_insert(0) += row["calls"].as_u64().unwrap_or_default();
    }
    let wrong: Vec<_> = expected.iter().filter(|(name, calls)| found.get(*name) != Some(calls)).collect();
    if !wrong.is_empty() {
        return Err(format!("{wrong:?} are not in {found:?}"));
    }
    Ok(format!("{} calls of {} functions exact", expected.values().sum::<u64>(), expected.len()))
}

/// Compares the samples of four methods with the time that the program's threads clock around them.
fn clocked_and_sampled(process: &Process, printed: &str) -> Result<String, String> {
    let clocked = BurningSamples::read(process, printed).clocked;
    let of_method = |number: usize| {
        let name = format!("Burning.Program::Work{number}");
        let is_below = |sample: &Sample| methods(process, sample.stack).contains(&name.as_str());
        samples(process, "cpu").filter(is_below).map(|sample| sample.weight_ns as f64).sum::<f64>()
    };
    let sampled: Vec<f64> = (0..clocked.len()).map(of_method).collect();
    let is_near = |(found, clocked): (f64, f64), within| (found - clocked).abs() <= clocked * within;
    let all = (sampled.iter().sum::<f64>(), clocked.iter().sum::<f64>());
    let each = sampled.iter().copied().zip(clocked.iter().copied());
    let in_ms = |times: &[f64]| times.iter().map(|ns| (ns / 1e6).round()).collect::<Vec<_>>();
    let said = format!("{:?} ms sampled, {:?} ms clocked", in_ms(&sampled), in_ms(&clocked));
    let is_right = clocked.len() == 4 && is_near(all, NEAR.0) && each.into_iter().all(|one| is_near(one, NEAR.1));
    if is_right { Ok(said) } else { Err(said) }
}

/// Compares the commands to databases that a program counts with the rows of a report.
fn same_commands(printed: &str, rows: &[Value]) -> Result<String, String> {
    let mut all = 0;
    let counted: Vec<&str> = printed.lines().filter_map(|line| line.strip_prefix("MADE ")).collect();
    for line in &counted {
        let parts: Vec<&str> = line.split('|').collect();
        let number = |at: usize| parts.get(at).and_then(|part| part.parse::<u64>().ok());
        let row = rows.iter().find(|row| row["route"] == parts[0]);
        let found = row.map(|row| [row["count"].as_u64(), row["failed"].as_u64()]);
        if found != Some([number(1), number(2)]) {
            return Err(format!("{line}, and not {row:?}"));
        }
        all += number(1).unwrap_or_default();
    }
    if counted.len() != 10 {
        Err(printed.to_owned())
    } else {
        Ok(format!("{all} commands of {} names exact", counted.len()))
    }
}

/// Writes a program.
fn program_file(file: &Path, bytes: &[u8]) -> Result<(), String> {
    let written = fs::write(file, bytes).and_then(|()| fs::set_permissions(file, fs::Permissions::from_mode(0o755)));
    written.map_err(|error| format!("{}: {error}", file.display()))
}

fn rows(report: &str) -> Result<Vec<Value>, String> {
    let report: Value = serde_json::from_str(report).map_err(|error| error.to_string())?;
    report["rows"].as_array().cloned().ok_or_else(|| "a report without rows".to_owned())
}

/// Runs a command to its end and returns what it printed; an error where its exit code is not 0.
fn finish(command: Command) -> Result<String, String> {
    let what = format!("{command:?}");
    let finished = run_within(command, PATIENCE);
    if finished.code() == 0 {
        return Ok(finished.stdout_text());
    }
    Err(format!("{what}: {}: {}{}", finished.status, finished.stdout_text(), finished.stderr_text()))
}

/// The root of an old system with what was unpacked of the tarball, in a mount namespace for each
/// program.
struct Root {
    folder: PathBuf,
    work: tempfile::TempDir,
}

impl Root {
    /// Folders in the root.
    const FOLDERS: [&str; 4] = ["dotnet", "fixtures", "work", "opt/clrscope"];
    /// Mounts what programs need, and goes into the root.
    const ENTER: &str = r#"root=$1 dotnet=$2 fixtures=$3 work=$4; shift 4
        mount --bind "$dotnet" "$root/dotnet" && mount --bind "$fixtures" "$root/fixtures" &&
        mount --bind "$work" "$root/work" && mount -t proc proc "$root/proc" &&
        mount -t tmpfs tmpfs "$root/tmp" && exec chroot "$root" "$@""#;

    fn prepare(packages: &Path) -> Result<Self, String> {
        if !confine::is_root() {
            return Err("only root can go into another root".to_owned());
        }
        let folder = target_folder().join("roots").join(OLD.0);
        let complete = folder.join("complete");
        if !complete.exists() {
            fs::remove_dir_all(&folder)
                .or_else(|error| if folder.exists() { Err(error) } else { Ok(()) })
                .and_then(|()| fs::create_dir_all(&folder))
                .map_err(|error| error.to_string())?;
            let mut debootstrap = Command::new("debootstrap");
            debootstrap.args(["--variant=minbase", OLD.0]).arg(&folder);
            let made = debootstrap.output().map_err(|error| format!("debootstrap: {error}; install that package"))?;
            if !made.status.success() {
                return Err(format!("debootstrap: {}", String::from_utf8_lossy(&made.stdout)));
            }
            fs::write(&complete, "").map_err(|error| error.to_string())?;
        }
        let library = GlibcVersion::provided_by(&folder.join("lib/x86_64-linux-gnu/libc.so.6"));
        if library != Some(OLD.1) {
            return Err(format!("its C library is {library:?}"));
        }
        for inner in Self::FOLDERS {
            fs::create_dir_all(folder.join(inner)).map_err(|error| error.to_string())?;
        }
        let mut unpack = Command::new("tar");
        unpack.arg("-xzf").arg(packages.join(format!("{}.tar.gz", dist::tarball_name(Platform::Gnu))));
        unpack.arg("--strip-components=1").arg("-C").arg(folder.join("opt/clrscope"));
        finish(unpack)?;
        Ok(Self { folder, work: scratch() })
    }

    /// A command in the root, with the runtime at hand.
    fn command(&self, runtime: &Runtime, words: &[&str]) -> Command {
        let mut command = Command::new("unshare");
        command.args(["--mount", "sh", "-c", Self::ENTER, "sh"]).arg(&self.folder).arg(&runtime.root);
        command.arg(workspace_root().join("dotnet/fixtures/bin")).arg(self.work.path());
        command.args(["env", "-C", "/work"]).args(words);
        Self::clean(&mut command);
        command
    }

    /// The variables of a program there.
    fn clean(command: &mut Command) {
        command.env_clear().env("PATH", "/usr/sbin:/usr/bin:/sbin:/bin:/opt/clrscope/bin").env("HOME", "/root");
        command.envs([("DOTNET_ROOT", "/dotnet"), ("DOTNET_SYSTEM_GLOBALIZATION_INVARIANT", "1"), ("LC_ALL", "C")]);
    }

    /// Words that start a fixture there.
    fn program(runtime: &Runtime, fixture: &str) -> [String; 4] {
        let dll = format!("/fixtures/{fixture}.dll");
        ["/dotnet/dotnet".to_owned(), "--fx-version".to_owned(), runtime.version.to_string(), dll]
    }

    /// Runs a fixture under the tool, and returns what it printed.
    fn run(&self, runtime: &Runtime, options: &str, fixture: &str, arguments: &[&str]) -> Result<String, String> {
        let program = Self::program(runtime, fixture);
        let mut words: Vec<&str> = ["clrscope", "run", "-q", "--force"].into_iter().chain(options.split(' ')).collect();
        words.push("--");
        words.extend(program.iter().map(String::as_str));
        words.extend(arguments);
        finish(self.command(runtime, &words))
    }

    fn report(&self, runtime: &Runtime, recording: &str, view: &str) -> Result<String, String> {
        finish(self.command(runtime, &["clrscope", "report", recording, "--view", view, "--format", "json"]))
    }

    /// Calls are those that the program counts.
    fn calls(&self, runtime: &Runtime) -> Result<String, String> {
        let printed = self.run(runtime, "-i calls -o calls.clrs", "Recursion", &[])?;
        same_calls(&printed, &self.report(runtime, "calls.clrs", "functions")?)
    }

    /// Samples of four methods stand for the time that the program's threads clock around them.
    fn samples(&self, runtime: &Runtime) -> Result<String, String> {
        let printed = self.run(runtime, "-i cpu:rate=1000 -o cpu.clrs", "Burning", &["4", "60"])?;
        let recording = clrscope_recording::open(&self.work.path().join("cpu.clrs"));
        let recording = recording.map_err(|error| error.to_string())?;
        let process = recording.processes.first().ok_or("no process was recorded")?;
        clocked_and_sampled(process, &printed)
    }

    /// Commands to databases of a program that runs already are those that it counts.
    fn attach(&self, runtime: &Runtime) -> Result<String, String> {
        let program = Self::program(runtime, "Commands");
        let words: Vec<&str> = program.iter().map(String::as_str).chain(["5", "wait", "listens"]).collect();
        let mut command = self.command(runtime, &words);
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
        let mut attach = Command::new("nsenter");
        attach.args(["--target", &pid, "--mount", "--root", "env", "-C", "/work", "clrscope", "attach", &pid]);
        attach.args(["-q", "--force", "-i", "requests", "-o", "attached.clrs"]);
        Self::clean(&mut attach);
        let recorder = attach.stderr(Stdio::piped()).spawn().map_err(|error| error.to_string())?;
        let mut recorder = Killed(recorder);
        let growing = self.work.path().join("attached.clrs.d");
        let is_following = || {
            let processes = fs::read_dir(&growing).into_iter().flatten().flatten();
            processes.into_iter().any(|process| process.path().join("process.log").is_file())
        };
        let mut ended = None;
        wait_until("the recording", || {
            ended = recorder.0.try_wait().ok().flatten();
            ended.is_some() || is_following()
        });
        if let Some(status) = ended {
            let mut said = String::new();
            let read = recorder.0.stderr.take().map(|mut errors| errors.read_to_string(&mut said));
            return Err(format!("attach: {status}: {said}{read:?}"));
        }
        // The methods that are asked for are changed soon after.
        pause(Duration::from_secs(1));
        let input = program.0.stdin.as_mut().ok_or("a pipe")?;
        input.write_all(b"\n").map_err(|error| error.to_string())?;
        let mut printed = String::new();
        output.read_to_string(&mut printed).map_err(|error| error.to_string())?;
        let status = recorder.0.wait().map_err(|error| error.to_string())?;
        if !status.success() {
            return Err(format!("attach: {status}"));
        }
        let rows = rows(&self.report(runtime, "attached.clrs", "requests")?)?;
        same_commands(&printed, &rows)
    }
}

/// A program that does not outlive the value.
struct Killed(Child);

impl Drop for Killed {
    fn drop(&mut self) {
        drop(self.0.kill());
        drop(self.0.wait());
    }
}
