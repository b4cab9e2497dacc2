//! Programs of another user than the one who types: root drops its powers, and the agent is loaded
//! or it is said why not.

mod common;

use std::fs::{self, Permissions};
use std::io::{BufRead, BufReader, Write};
use std::os::unix::fs::{PermissionsExt, chown};
use std::path::Path;
use std::process::{Command, Output, Stdio};

use clrscope_testkit as testkit;
use common::TestFolder;
use serde_json::Value;
use testkit::confine::{as_user, is_root, with_folder_at};
use testkit::{Runtime, fixture};

/// The user of the service, without an entry anywhere.
const SERVICE: u32 = 4_000_000_001;

/// A folder that everybody can enter, with a folder `data` that belongs to the service, and a place
/// for .NET.
fn machine() -> TestFolder {
    let place = TestFolder::new();
    fs::set_permissions(place.path(), Permissions::from_mode(0o755)).expect("a mode");
    ["data", "dotnet"].iter().for_each(|name| fs::create_dir(place.file(name)).expect("a folder"));
    if is_root() {
        chown(place.file("data"), Some(SERVICE), Some(SERVICE)).expect("an owner");
    }
    place
}

/// The command where the runtime's folder can be read by all.
fn with_dotnet(place: &TestFolder, runtime: &Runtime, command: &mut Command) -> Option<Command> {
    command.env("DOTNET_ROOT", place.file("dotnet")).env("PATH", "/usr/bin:/bin").env("HOME", place.file("data"));
    with_folder_at(command, &runtime.root, &place.file("dotnet"))
}

fn newest() -> &'static Runtime {
    testkit::runtimes().last().expect("a runtime")
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// The variables that `env` prints.
fn variables(place: &TestFolder, words: &[&str]) -> Vec<(String, String)> {
    let words = [&["env", "--json", "-o", "data/web.clrs.d"], words].concat();
    let output = place.clrscope(words).output().expect("the tool starts");
    let document: Value = serde_json::from_slice(&output.stdout).unwrap_or_else(|_| panic!("{}", text(&output.stderr)));
    let values = document.as_object().expect("an object").iter();
    values.map(|(name, value)| (name.clone(), value.as_str().expect("a text").to_owned())).collect()
}

/// Judgement of `doctor --user` on an agent, where the environment names it.
fn doctor_of_service(place: &TestFolder, variables: Vec<(String, String)>) -> Option<(Option<i32>, Vec<Value>)> {
    let mut command = place.clrscope(["doctor", "--json", "--user", &SERVICE.to_string()]);
    command.envs(variables);
    let output = with_dotnet(place, newest(), &mut command)?.output().expect("the tool starts");
    let document: Value = serde_json::from_slice(&output.stdout).unwrap_or_else(|_| panic!("{}", text(&output.stderr)));
    Some((output.status.code(), document["rows"].as_array().expect("rows").clone()))
}

fn has_row(rows: &[Value], name: &str, status: &str, found: &str) -> bool {
    rows.iter().any(|row| {
        row["name"] == name && row["status"] == status && row["found"].as_str().is_some_and(|text| text.contains(found))
    })
}

#[test]
fn the_doctor_tries_an_installed_agent_as_the_user_of_the_service() {
    let place = machine();
    let named = variables(&place, &["--install", "lib"]);
    let Some((code, rows)) = doctor_of_service(&place, named) else { return };
    assert!(has_row(&rows, "named agent", "ok", "lib/libclrscope_agent.so' can be loaded"), "{rows:#?}");
    assert!(has_row(&rows, ".NET", "ok", "the agent loads; hello world made"), "{rows:#?}");
    assert!(has_row(&rows, "output", "ok", "can be written to"), "{rows:#?}");
    assert_eq!(code, Some(0), "{rows:#?}");
}

#[test]
fn the_doctor_says_that_the_user_of_the_service_cannot_load_the_agent_in_roots_cache() {
    let place = machine();
    // As a cache is: closed to all others.
    fs::create_dir(place.file("closed")).expect("a folder");
    let named = variables(&place, &["--install", "closed"]);
    fs::set_permissions(place.file("closed"), Permissions::from_mode(0o700)).expect("a mode");
    let Some((code, rows)) = doctor_of_service(&place, named) else { return };
    assert!(has_row(&rows, "named agent", "failed", "can't be opened: permission denied"), "{rows:#?}");
    assert_eq!(code, Some(1), "{rows:#?}");
}

#[test]
fn only_root_can_try_as_another_user() {
    let place = TestFolder::new();
    let mut command = place.clrscope(["doctor", "--user", &SERVICE.to_string()]);
    if is_root() {
        fs::set_permissions(place.path(), Permissions::from_mode(0o755)).expect("a mode");
        command = as_user(SERVICE - 1, &command);
    }
    // A tool that lies where that user can't enter is not what is asked for here.
    let Ok(output) = command.output() else { return testkit::not_run("another user can't run the tool where it lies") };
    if text(&output.stderr).starts_with("setpriv: failed to execute") {
        return testkit::not_run("another user can't run the tool where it lies");
    }
    assert_eq!(
        (output.status.code(), text(&output.stderr).as_str()),
        (
            Some(1),
            "error: cannot run the checks as user '4000000001'\nwhy: only root can become another user\nhint: run it \
             with sudo, or as \
             that user\n"
        )
    );
}

#[test]
fn root_is_told_that_units_and_images_do_not_reach_its_cache() {
    let place = TestFolder::new();
    let env = |words: &[&str]| place.clrscope([&["env"], words].concat()).output().expect("the tool starts");
    let said = |output: Output| text(&output.stderr);
    let docker = said(env(&["--dockerfile"]));
    assert!(docker.contains("the image has no agent there\nhint: --install ."), "{docker}");
    let systemd = said(env(&["--systemd"]));
    assert_eq!(
        systemd.contains("silently record nothing\nhint: if the unit has User=NAME, add --user NAME --install"),
        is_root(),
        "{systemd}"
    );
    let silent: [&[&str]; 2] = [&["--systemd", "--install", "lib"], &["--shell"]];
    silent.iter().for_each(|words| assert_eq!(said(env(words)), "", "{words:?}"));
    // What runs elsewhere may have an older C library, in which a runtime can't load the agent and
    // says nothing.
    let elsewhere: [&[&str]; 3] = [
        &["--dockerfile", "--install", "lib"],
        &["--dockerfile", "--agent", "/opt/agent.so"],
        &["--shell", "--agent", "/opt/agent.so"],
    ];
    for words in elsewhere {
        let said = said(env(words));
        assert!(said.starts_with("clrscope: the program must run in an image with glibc 2."), "{said}");
        assert_eq!(said.lines().count(), 1, "{said}");
    }
}

/// Does what an image builder does with the lines of a Dockerfile: copies as `COPY` says, and gives
/// the variables of `ENV`.
fn built(lines: &str, context: &Path, image: &Path) -> Vec<(String, String)> {
    let mut variables = Vec::new();
    for line in lines.lines() {
        if let Some(words) = line.strip_prefix("COPY --chmod=0555 ") {
            let [from, to]: [String; 2] = serde_json::from_str(words).expect("two words");
            let to = image.join(to.trim_start_matches('/'));
            let folder = to.parent().expect("a folder");
            fs::create_dir_all(folder).expect("a folder");
            fs::copy(context.join(from), &to).expect("a copy");
            fs::set_permissions(&to, Permissions::from_mode(0o555)).expect("a mode");
        } else {
            let (name, word) = line.strip_prefix("ENV ").and_then(|rest| rest.split_once('=')).expect("ENV NAME=VALUE");
            variables.push((name.to_owned(), word.trim_matches('"').to_owned()));
        }
    }
    variables
}

/// A fixture as the service runs it, with these variables; `None` where this machine can't.
fn service(place: &TestFolder, name: &str, arguments: &[&str], variables: Vec<(String, String)>) -> Option<Command> {
    for file in [format!("{name}.dll"), format!("{name}.runtimeconfig.json")] {
        fs::copy(fixture(name).with_file_name(&file), place.file(&file)).expect("a copy");
    }
    let runtime = newest();
    let mut program = Command::new(place.file("dotnet/dotnet"));
    program
        .args(["--fx-version", &runtime.version.to_string()])
        .arg(place.file(&format!("{name}.dll")))
        .args(arguments);
    runtime.prepare(&mut program);
    program.envs(variables).current_dir(place.file("data"));
    with_dotnet(place, runtime, &mut as_user(SERVICE, &program))
}

#[test]
fn an_image_with_the_copied_agent_records_as_another_user() {
    let place = machine();
    let words = ["env", "--dockerfile", "--install", "lib", "-o", "data/web.clrs.d"];
    let output = place.clrscope(words).output().expect("the tool starts");
    let image = place.file("image");
    let mut variables = built(&text(&output.stdout), place.path(), &image);
    // An image has a root of its own; here that is a folder.
    for (_, path) in variables.iter_mut().filter(|(name, _)| name.contains("_PROFILER_PATH")) {
        *path = image.join(path.trim_start_matches('/')).to_string_lossy().into_owned();
    }
    let Some(program) = service(&place, "Hello", &[], variables) else { return };
    testkit::run(program).expect_success();
    let recording = clrscope_recording::open(&place.file("data/web.clrs.d")).expect("a recording");
    let process = recording.processes.first().expect("a process");
    assert!(process.refusal().is_none() && !process.functions.is_empty(), "{:?}", process.refusal());
}

#[test]
fn root_switches_the_recording_of_a_service_and_another_user_may_not() {
    let place = machine();
    let named = variables(&place, &["--install", "lib"]);
    let Some(mut program) = service(&place, "Counter", &["-", "10"], named) else { return };
    let mut program = program.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().expect("it starts");
    let mut input = program.stdin.take().expect("its input");
    let mut counts = BufReader::new(program.stdout.take().expect("its output")).lines();
    let mut count = || {
        writeln!(input, "go").expect("it reads");
        counts.next().expect("it answers").expect("a line")
    };
    assert_eq!(count(), "count 10");
    let pid = program.id().to_string();
    let tool = place.copied_tool();
    let mut mark = Command::new(&tool);
    mark.args(["record", &pid, "mark", "warm"]).current_dir(place.path());
    let refused = as_user(SERVICE - 1, &mark).output().expect("the tool starts");
    assert_eq!(
        text(&refused.stderr),
        format!(
            "error: cannot mark the recording of process {pid}\nwhy: it belongs to another user\n\
             hint: give the command as that user, or as root\n"
        )
    );
    let marked = mark.output().expect("the tool starts");
    assert!(marked.status.success(), "{}", text(&marked.stderr));
    assert_eq!(count(), "count 20");
    drop(input);
    assert!(program.wait().expect("it ends").success());
    let recording = clrscope_recording::open(&place.file("data/web.clrs.d")).expect("a recording");
    let parts: Vec<_> = recording.processes[0].parts.iter().map(|part| part.name.as_str()).collect();
    assert_eq!(parts, ["1", "warm"]);
}
