//! Containers, made of namespaces: a root of their own that is read-only, few capabilities, other
//! users. The agent records in them, and the tool attaches to programs in them from a sidecar, from
//! an ephemeral container and from the host.

mod common;

use std::fs::{self, Permissions};
use std::io::{BufRead, BufReader, Write};
use std::os::unix::fs::{PermissionsExt, chown};
use std::path::Path;
use std::process::{Child, ChildStdin, ChildStdout, Command, Output, Stdio};

use clrscope_testkit as testkit;
use common::TestFolder;
use serde_json::Value;
use testkit::confine::is_root;
use testkit::{Expectations, Runtime, fixture, not_run, wait_until};

/// The user of a service, without an entry anywhere.
const SERVICE: u32 = 4_000_000_001;
/// What container engines leave to root.
const DEFAULT: &str = "-all,+chown,+dac_override,+fowner,+fsetid,+kill,+setgid,+setuid,+setpcap,\
                       +net_bind_service,+net_raw,+sys_chroot,+mknod,+audit_write,+setfcap";
/// Goes into a root of its own, which becomes read-only: the system's programs and libraries, a
/// folder for temporary files, and volumes, which are pairs of words until `--`.
const ENTER: &str = r#"set -e
    PATH=$PATH:/usr/sbin:/sbin root=$1 tmp=$2 user=$3 group=$4 capabilities=$5; shift 5
    mount -t tmpfs -o mode=755 root "$root"
    cd "$root"
    mkdir usr proc dev tmp old
    mount --rbind /usr usr
    for name in bin sbin lib lib64; do
        if [ -L /$name ]; then cp -P /$name .; else mkdir $name; mount --rbind /$name $name; fi
    done
    mount -t tmpfs -o "$tmp" tmp tmp
    while [ "$1" != -- ]; do
        if [ -d "$1" ]; then mkdir -p ".$2"; else mkdir -p ".${2%/*}"; : > ".$2"; fi
        mount --bind "$1" ".$2"
        shift 2
    done
    shift
    mount -t proc proc proc
    pivot_root . old
    cd /
    umount -l old
    mount -o remount,bind,ro /
    exec setpriv --reuid="$user" --regid="$group" --clear-groups --inh-caps=-all --bounding-set="$capabilities" "$@""#;
/// The first process of a pod whose containers see each other's processes: the program is another
/// one.
const POD: [&str; 4] = ["sh", "-c", r#"exec 3<&0; "$@" <&3 & exec 3<&-; wait $!"#, "pod"];

/// User, group and capabilities of a container, and how its folder for temporary files is mounted.
#[derive(Clone, Copy)]
struct Rights<'a> {
    user: u32,
    group: u32,
    capabilities: &'a str,
    temporary: &'a str,
}

impl<'a> Rights<'a> {
    fn new(user: u32, capabilities: &'a str) -> Self {
        Self { user, group: user, capabilities, temporary: "mode=1777" }
    }

    fn with_temporary(self, temporary: &'a str) -> Self {
        Self { temporary, ..self }
    }
}

/// A folder of the host with what containers mount of it.
struct Host {
    place: TestFolder,
}

impl Host {
    /// `None`, said aloud, where containers can't be made.
    fn new() -> Option<Self> {
        let words = ["--mount", "--pid", "--uts", "--fork", "--kill-child", "mount", "-t", "tmpfs", "trial", "/mnt"];
        if !is_root() || !Command::new("unshare").args(words).output().is_ok_and(|output| output.status.success()) {
            not_run("tests are not root here, or may not make namespaces and mount");
            return None;
        }
        let host = Self { place: TestFolder::new() };
        for (name, mode) in [("agent", 0o755), ("volume", 0o777), ("out", 0o1777), ("roots", 0o755), ("pods", 0o755)] {
            fs::create_dir(host.place.file(name)).expect("a folder");
            fs::set_permissions(host.place.file(name), Permissions::from_mode(mode)).expect("a mode");
        }
        fs::set_permissions(host.place.path(), Permissions::from_mode(0o755)).expect("a mode");
        Some(host)
    }

    /// Words that go into a root of these rights with these volumes.
    fn enter(&self, root: &str, rights: Rights, volumes: &[(&Path, &str)]) -> Vec<String> {
        let root = self.place.file(root).display().to_string();
        let mut words = ["sh", "-c", ENTER, "sh", &root, rights.temporary].map(str::to_owned).to_vec();
        words.extend([rights.user.to_string(), rights.group.to_string(), rights.capabilities.to_owned()]);
        let devices = ["/dev/null", "/dev/urandom"].map(|name| (Path::new(name), name));
        for (from, to) in devices.iter().chain(volumes) {
            words.extend([from.display().to_string(), (*to).to_owned()]);
        }
        words.push("--".to_owned());
        words
    }

    /// A container that runs words.
    fn container(&self, runtime: &Runtime, rights: Rights, words: &[&str]) -> Command {
        let bin = fixture("Hello");
        let (bin, agent, volume) =
            (bin.parent().expect("a folder"), self.place.file("agent"), self.place.file("volume"));
        let volumes: [(&Path, &str); 4] =
            [(&runtime.root, "/dotnet"), (bin, "/app"), (&agent, "/clrscope"), (&volume, "/recordings")];
        let mut command = Command::new("unshare");
        command.args(["--mount", "--pid", "--uts", "--fork", "--kill-child"]);
        command.args(self.enter("pods", rights, &volumes)).args(words);
        runtime.prepare(&mut command);
        command.env("DOTNET_ROOT", "/dotnet").env("HOME", "/nowhere").env_remove("TMPDIR");
        command
    }

    /// A container with the tool, which shares the processes of another one and nothing else.
    fn sidecar(&self, target: u32, rights: Rights, words: &[&str]) -> Command {
        let (tool, out) = (Path::new(env!("CARGO_BIN_EXE_clrscope")), self.place.file("out"));
        let mut command = Command::new("nsenter");
        command.args(["--target", &target.to_string(), "--pid", "unshare", "--mount"]);
        command.args(self.enter("roots", rights, &[(tool, "/tool/clrscope"), (&out, "/out")]));
        command.args(["env", "-C", "/out", "/tool/clrscope"]).args(words);
        command.env("HOME", "/out").env_remove("TMPDIR").stdin(Stdio::null());
        command
    }

    /// Makes a folder in the volume as an init container of this user does.
    fn prepare_volume(&self, name: &str, user: u32) {
        let folder = self.place.file(&format!("volume/{name}"));
        fs::create_dir(&folder).expect("a folder");
        chown(&folder, Some(user), Some(user)).expect("an owner");
    }

    /// The variables that `env` prints for an agent in `/clrscope`, where it is put.
    fn variables(&self, more: &[&str]) -> Vec<(String, String)> {
        if !self.place.file("agent/libclrscope_agent.so").exists() {
            assert!(self.place.run("env --install agent").status.success());
        }
        let words = [&["env", "--json", "--agent", "/clrscope/libclrscope_agent.so"], more].concat();
        let output = self.place.clrscope(words).output().expect("the tool starts");
        let document: Value = serde_json::from_slice(&output.stdout).unwrap_or_else(|_| panic!("{}", said(&output)));
        let values = document.as_object().expect("an object").iter();
        values.map(|(name, value)| (name.clone(), value.as_str().expect("a text").to_owned())).collect()
    }

    /// Starts a program that collects garbage when it is asked to.
    fn start(&self, runtime: &Runtime, rights: Rights, before: &[&str]) -> Program {
        let version = runtime.version.to_string();
        let dotnet = ["/dotnet/dotnet", "--fx-version", &version, "/app/Counter.dll", "-", "10"];
        let mut command = self.container(runtime, rights, &[before, &dotnet].concat());
        testkit::let_children_hear();
        let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().expect("it starts");
        let input = child.stdin.take().expect("a pipe");
        let output = BufReader::new(child.stdout.take().expect("a pipe"));
        let mut program = Program { pid: 0, inner: 0, child, input: Some(input), output, count: 0 };
        program.ask("go");
        program.pid = last_descendant(program.child.id());
        program.inner = inner_pid(program.pid);
        program
    }
}

/// A program in a container.
struct Program {
    /// Its number on the host.
    pid: u32,
    /// Its number in the container.
    inner: u32,
    child: Child,
    input: Option<ChildStdin>,
    output: BufReader<ChildStdout>,
    count: u64,
}

impl Program {
    /// Ten calls, which it counts; and a collection after the line `gc`.
    fn ask(&mut self, line: &str) {
        let mut answer = String::new();
        writeln!(self.input.as_mut().expect("a pipe"), "{line}").expect("it reads");
        self.output.read_line(&mut answer).expect("it answers");
        self.count += 10;
        assert_eq!(answer, format!("count {}\n", self.count));
    }

    /// Has the recorder, once it records, see so many collections, and ends its recording by
    /// Ctrl-C.
    fn recorded_by(&mut self, host: &Host, mut recorder: Command, collections: u64) -> Output {
        let mut recorder = recorder.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("it starts");
        let mark = format!("record {} mark begun", self.pid);
        let mut has_ended = false;
        wait_until("the recording", || {
            has_ended = recorder.try_wait().expect("a child").is_some();
            has_ended || host.place.run(&mark).status.success()
        });
        if !has_ended {
            (0..collections).for_each(|_| self.ask("gc"));
            let tool = last_descendant(recorder.id());
            assert!(Command::new("kill").args(["-INT", &tool.to_string()]).status().expect("kill").success());
        }
        recorder.wait_with_output().expect("it ends")
    }

    /// Ends in order.
    fn end(mut self) {
        drop(self.input.take());
        wait_until("its end", || self.child.try_wait().expect("a child").is_some());
        assert!(self.child.wait().expect("a status").success());
    }
}

impl Drop for Program {
    fn drop(&mut self) {
        drop(self.child.kill());
        drop(self.child.wait());
    }
}

/// Follows the only child of each process to the last one.
fn last_descendant(pid: u32) -> u32 {
    let children = fs::read_to_string(format!("/proc/{pid}/task/{pid}/children")).expect("it lives");
    match children.split_whitespace().next() {
        Some(child) => last_descendant(child.parse().expect("a number")),
        None => pid,
    }
}

fn inner_pid(pid: u32) -> u32 {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).expect("it lives");
    let line = status.lines().find(|line| line.starts_with("NSpid:")).expect("a line");
    line.split_whitespace().last().and_then(|number| number.parse().ok()).expect("a number")
}

fn said(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

/// The rows of a view.
fn rows(host: &Host, recording: &str, view: &str) -> Vec<Value> {
    let report = host.place.json(&format!("report {recording} --view {view}"));
    report["rows"].as_array().expect("rows").clone()
}

/// Collections that the program asked for: all of the oldest generation.
fn collections(host: &Host, recording: &str) -> u64 {
    rows(host, recording, "gc").iter().filter(|row| row["generation"] == 2).count() as u64
}

/// Attaches from a container or from the host, which must work: collections are those that the
/// program was asked for.
fn assert_records(host: &Host, program: &mut Program, recorder: Command, name: &str) {
    let asked = 7;
    let output = program.recorded_by(host, recorder, asked);
    assert!(output.status.success(), "{name}: {}", said(&output));
    assert_eq!(collections(host, &format!("out/{name}.clrs")), asked, "{name}: {}", said(&output));
}

/// The three lines of a refusal have these words.
fn assert_refused(output: &Output, words: &[&str]) {
    let said = said(output);
    let lines: Vec<&str> = said.lines().map(|line| line.split(' ').next().unwrap_or_default()).collect();
    assert_eq!((output.status.code(), lines.as_slice()), (Some(1), ["error:", "why:", "hint:"].as_slice()), "{said}");
    words.iter().for_each(|word| assert!(said.contains(word), "no {word:?} in {said}"));
}

/// Ctrl-C ends it long before the time is over.
fn attach<'a>(pid: &'a str, file: &'a str) -> [&'a str; 8] {
    ["attach", pid, "-i", "gc", "--duration", "1m", "-o", file]
}

#[test]
fn a_read_only_container_records_exact_calls_as_root_and_as_another_user() {
    testkit::each_runtime(|runtime| {
        let Some(host) = Host::new() else { return };
        for user in [0, SERVICE] {
            let (rights, name) = (Rights::new(user, DEFAULT), format!("of-{user}"));
            let touch = host.container(runtime, rights, &["touch", "/file"]).output().expect("it starts");
            assert!(said(&touch).contains("Read-only file system"), "{}", said(&touch));
            host.prepare_volume(&name, user);
            let version = runtime.version.to_string();
            let dotnet = ["/dotnet/dotnet", "--fx-version", &version, "/app/Recursion.dll"];
            let mut command = host.container(runtime, rights, &dotnet);
            let out = format!("/recordings/{name}/web.clrs.d");
            command.envs(host.variables(&["-i", "calls", "-o", &out]));
            let printed = testkit::run(command).expect_success().stdout_text();
            let rows = rows(&host, &format!("volume/{name}/web.clrs.d"), "functions");
            let expected = Expectations::parse(&printed).calls;
            assert!(expected.len() > 5, "{printed}");
            for (function, calls) in expected {
                let found: u64 =
                    rows.iter().filter(|row| row["name"] == function).filter_map(|row| row["calls"].as_u64()).sum();
                assert_eq!(found, calls, "{function} as {user} on {version}");
            }
        }
    });
}

/// A volume that all may write is no place for a recording, unless there is a folder in it that
/// belongs to the program's user.
#[test]
fn a_recording_at_the_top_of_a_shared_volume_is_refused_in_words() {
    let Some(host) = Host::new() else { return };
    let runtime = testkit::runtimes().last().expect("a runtime");
    let version = runtime.version.to_string();
    let dotnet = ["/dotnet/dotnet", "--fx-version", &version, "/app/Hello.dll"];
    let mut command = host.container(runtime, Rights::new(SERVICE, DEFAULT), &dotnet);
    command.envs(host.variables(&["-i", "calls", "--trust-writable", "-o", "/recordings/web.clrs.d"]));
    assert_eq!(testkit::run(command).expect_success().stdout_text(), "Hello, World!\n");
    let output = host.place.run("report volume/web.clrs.d");
    let text = format!("{}{}", String::from_utf8_lossy(&output.stdout), said(&output));
    assert!(text.contains("/recordings can be written by others"), "{text}");
}

#[test]
fn sidecars_attach_to_programs_in_other_containers_of_the_pod() {
    testkit::each_runtime(|runtime| {
        let Some(host) = Host::new() else { return };
        let with_ptrace = format!("{DEFAULT},+sys_ptrace");
        for (name, user, rights) in [
            ("root", 0, Rights::new(0, DEFAULT)),
            ("same", SERVICE, Rights::new(SERVICE, "-all")),
            ("ptrace", SERVICE, Rights::new(0, &with_ptrace)),
        ] {
            let mut program = host.start(runtime, Rights::new(user, DEFAULT), &POD);
            let (pid, file) = (program.inner.to_string(), format!("{name}.clrs"));
            assert_ne!(program.inner, 1);
            let judged = host.sidecar(program.pid, rights, &["doctor", "--json", &pid]).output().expect("it starts");
            let document: Value = serde_json::from_slice(&judged.stdout).expect("JSON");
            let checks = document["rows"].as_array().expect("rows");
            let is_seen = checks.iter().any(|row| row["name"] == "process" && row["status"] == "ok");
            assert!(is_seen && judged.status.success(), "{document:#}");
            let recorder = host.sidecar(program.pid, rights, &attach(&pid, &file));
            assert_records(&host, &mut program, recorder, name);
            program.end();
        }
    });
}

#[test]
fn ephemeral_containers_and_the_host_attach_to_the_first_process_of_a_container() {
    testkit::each_runtime(|runtime| {
        let Some(host) = Host::new() else { return };
        for user in [0, SERVICE] {
            let mut program = host.start(runtime, Rights::new(user, DEFAULT), &[]);
            assert_eq!(program.inner, 1);
            let (inside, outside) = (format!("inside-{user}"), format!("outside-{user}"));
            let file = format!("{inside}.clrs");
            let recorder = host.sidecar(program.pid, Rights::new(0, "+all"), &attach("1", &file));
            assert_records(&host, &mut program, recorder, &inside);
            let (pid, file) = (program.pid.to_string(), format!("out/{outside}.clrs"));
            assert_records(&host, &mut program, host.place.clrscope(attach(&pid, &file)), &outside);
            program.end();
        }
        // Its temporary files are in a volume, and those of the host elsewhere.
        host.prepare_volume("temporary", SERVICE);
        let rights = Rights::new(SERVICE, DEFAULT).with_temporary("ro");
        let mut program = host.start(runtime, rights, &["env", "TMPDIR=/recordings/temporary"]);
        let pid = program.pid.to_string();
        let mut recorder = host.place.clrscope([&attach(&pid, "out/volume.clrs")[..], &["--trust-writable"]].concat());
        recorder.env("TMPDIR", host.place.file("out"));
        assert_records(&host, &mut program, recorder, "volume");
        program.end();
    });
}

#[test]
fn what_keeps_a_sidecar_out_is_said_with_what_helps() {
    let Some(host) = Host::new() else { return };
    let runtime = testkit::runtimes().last().expect("a runtime");
    let service = Rights::new(SERVICE, DEFAULT);
    let refused = |program: &mut Program, rights: Rights, words: &[&str]| {
        let pid = program.inner.to_string();
        let recorder = host.sidecar(program.pid, rights, &attach(&pid, "refused.clrs"));
        assert_refused(&program.recorded_by(&host, recorder, 0), words);
    };
    let mut program = host.start(runtime, service, &POD);
    let other = "why: it belongs to another user (id 4000000001)";
    refused(
        &mut program,
        Rights::new(0, DEFAULT),
        &[other, "hint: attach as that user, or add the capabilities that root lacks here: SYS_PTRACE\n"],
    );
    refused(&mut program, Rights::new(0, "-all,+sys_ptrace"), &[other, "root lacks here: DAC_OVERRIDE, CHOWN\n"]);
    refused(
        &mut program,
        Rights::new(0, "-all,+sys_ptrace,+dac_override"),
        &["/tmp: operation not permitted", "hint: attach as that user, or add", "root lacks here: CHOWN\n"],
    );
    refused(&mut program, Rights::new(SERVICE - 1, "-all"), &[other, "hint: attach as that user, or as root\n"]);
    refused(
        &mut program,
        Rights { group: 0, ..Rights::new(SERVICE, "-all") },
        &["to another group (id 4000000001)", "hint: attach as user 4000000001 and group 4000000001, or as root\n"],
    );
    program.end();
    let sidecar = Rights::new(SERVICE, "-all");
    for (temporary, words) in [
        ("ro", ["its folder for temporary files, /tmp, is read-only", "hint: start it with a folder for temporary"]),
        ("noexec,mode=1777", ["/tmp: mounted noexec", "hint: give the process a writable folder"]),
        ("mode=777", ["/tmp can be written by others", "--trust-writable"]),
    ] {
        let mut program = host.start(runtime, service.with_temporary(temporary), &POD);
        refused(&mut program, sidecar, &words);
        if temporary == "mode=777" {
            let pid = program.inner.to_string();
            let words = [&attach(&pid, "trusted.clrs")[..], &["--trust-writable"]].concat();
            let recorder = host.sidecar(program.pid, sidecar, &words);
            assert_records(&host, &mut program, recorder, "trusted");
        }
        program.end();
    }
}
