//! `doctor` where something is wrong: it says what, and how to cure it.

mod common;

use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::PathBuf;
use std::process::Command;

use clrscope_testkit as testkit;
use common::TestFolder;
use serde_json::Value;
use testkit::confine::{with_small_disk, without_powers, wrapped};
use testkit::{Finished, Runtime};

/// The doctor in a place without .NET, unless the machine has one in a usual place: quick.
fn doctor(place: &TestFolder) -> Command {
    let mut command = place.clrscope(["doctor", "--json"]);
    command.env_remove("DOTNET_ROOT").env("PATH", "/usr/bin:/bin").env("HOME", place.path());
    command
}

/// The doctor with one runtime to try.
fn doctor_with(place: &TestFolder, runtime: &Runtime) -> Command {
    let mut command = doctor(place);
    runtime.prepare(&mut command);
    command
}

/// Output of `doctor` under limits: words of `ulimit`.
fn limited(command: &Command, limit: &str) -> Command {
    wrapped(&["bash", "-c", &format!("ulimit {limit}; exec \"$@\""), "bash"], command)
}

/// All rows; those that need a cure have one, and the exit code says whether any failed.
fn rows(command: Command) -> Vec<Value> {
    let finished: Finished = testkit::run(command);
    let document: Value = serde_json::from_slice(&finished.stdout).expect("JSON");
    let rows = document["rows"].as_array().expect("rows").clone();
    let failed = rows.iter().any(|row| row["status"] == "failed");
    assert_eq!((finished.code(), document["ok"].as_bool()), (i32::from(failed), Some(!failed)), "{document:#}");
    for row in &rows {
        assert!((row["status"] == "ok") == row["cure"].is_null(), "{row:#}");
    }
    rows
}

/// There is a row of this name and status whose text and cure hold these words.
fn assert_row(rows: &[Value], name: &str, status: &str, found: &str, cure: &str) {
    let holds = |value: &Value, words: &str| value.as_str().unwrap_or("").contains(words);
    let is_it = |row: &&Value| {
        row["name"] == name && row["status"] == status && holds(&row["found"], found) && holds(&row["cure"], cure)
    };
    assert!(rows.iter().any(|row| is_it(&row)), "no {status} {name} with {found:?} and {cure:?} in {rows:#?}");
}

fn newest() -> &'static Runtime {
    testkit::runtimes().last().expect("a runtime")
}

#[test]
fn every_subject_has_a_line() {
    let place = TestFolder::new();
    let rows = rows(doctor_with(&place, newest()));
    for name in ["agent", ".NET", "libicu", "profilers", "output", "space", "limits", "perf events"] {
        assert!(rows.iter().any(|row| row["name"] == name), "{name} in {rows:#?}");
    }
    assert_row(&rows, ".NET", "ok", &newest().version.to_string(), "");
    // The text has the same lines, with each cure below.
    let output = place.clrscope(["doctor"]).output().expect("the tool starts");
    let text = String::from_utf8_lossy(&output.stdout);
    assert!(text.lines().all(|line| line.len() > 22 && !line.contains('\u{1b}')), "{text}");
}

#[test]
fn a_machine_without_dotnet_is_told_how_to_get_it() {
    let rows = rows(doctor(&TestFolder::new()));
    // Some machines have .NET in a usual place.
    if !rows.iter().any(|row| row["name"] == ".NET" && row["status"] == "ok") {
        assert_row(&rows, ".NET", "note", "no .NET was found", "install .NET or set DOTNET_ROOT");
    }
}

#[test]
fn a_folder_without_permission_is_a_failure() {
    let place = TestFolder::new();
    let closed = place.file("closed");
    fs::create_dir(&closed).expect("a folder");
    fs::set_permissions(&closed, fs::Permissions::from_mode(0o555)).expect("its mode");
    let mut command = doctor(&place);
    command.current_dir(&closed);
    let rows = rows(without_powers(&command));
    assert_row(&rows, "output", "failed", "permission denied", "clrscope run -o FOLDER/NAME.clrs");
}

#[test]
fn a_disk_without_space_is_named() {
    for (size, name, status, found, cure) in [
        ("16k", "output", "failed", "no space left on device", "record elsewhere: clrscope run -o"),
        ("4m", "space", "warning", "0.0 GiB are free", "-i calls:max=256MiB"),
    ] {
        let place = TestFolder::new();
        let folders = ["disk", "kept"].map(|name| place.file(name));
        folders.iter().for_each(|folder| fs::create_dir(folder).expect("a folder"));
        let Some(command) = with_small_disk(&doctor(&place), &folders[0], size, &folders[1]) else { return };
        assert_row(&rows(command), name, status, found, cure);
    }
}

#[test]
fn an_open_cache_is_a_failure() {
    let place = TestFolder::new();
    let open = place.file("open");
    fs::create_dir(&open).expect("a folder");
    fs::set_permissions(&open, fs::Permissions::from_mode(0o777)).expect("its mode");
    let mut command = doctor(&place);
    command.env("XDG_CACHE_HOME", &open);
    assert_row(&rows(command), "agent", "failed", "can be written by others", "chmod go-w");
}

#[test]
fn low_limits_are_warnings() {
    let place = TestFolder::new();
    let with = |limit| rows(limited(&doctor(&place), limit));
    assert_row(&with("-n 100"), "limits", "warning", "only 100 files", "ulimit -n");
    assert_row(&with("-f 100000"), "limits", "warning", "may have only 97 MiB", "ulimit -f unlimited");
    assert_row(&with("-v 8000000"), "limits", "warning", "7812 MiB of address space", "ulimit -v unlimited");
}

const PERF_LEVEL: &str = "/proc/sys/kernel/perf_event_paranoid";

/// The command without powers, where a file of the system holds something else; `None`, said aloud,
/// where that is not allowed.
fn seeing(command: &Command, file: &str, text: &str) -> Option<Command> {
    const SCRIPT: &str = r#"file=$1 text=$2; shift 2
        case $file in
            /sys/*) mount -t tmpfs layer "${file%/*}" && echo "$text" > "$file" ;;
            *) echo "$text" > seen && mount --bind seen "$file" ;;
        esac || exit 99
        exec "$@""#;
    let words = ["unshare", "--mount", "sh", "-c", SCRIPT, "sh", file, text];
    let mut trial = Command::new("true");
    trial.current_dir(command.get_current_dir().expect("a folder"));
    if !testkit::run(wrapped(&words, &trial)).status.success() {
        testkit::not_run("this machine does not allow mounting over files");
        return None;
    }
    Some(wrapped(&words, &without_powers(command)))
}

#[test]
fn what_the_kernel_lets_users_measure_is_told_with_what_would_allow_more() {
    if !fs::read_to_string("/proc/self/status").expect("Linux").contains("Seccomp:\t0") {
        return testkit::not_run("system calls are filtered here");
    }
    for (level, status, found, cure) in [
        ("4", "note", "not allowed (perf_event_paranoid is 4)", "kernel.perf_event_paranoid=1, or in a container"),
        ("2", "note", "allowed without the kernel's frames", "sysctl kernel.perf_event_paranoid=1"),
        ("1", "ok", "allowed with the kernel's frames", ""),
    ] {
        let place = TestFolder::new();
        let Some(command) = seeing(&doctor(&place), PERF_LEVEL, level) else { return };
        assert_row(&rows(command), "perf events", status, found, cure);
    }
}

#[test]
fn a_control_group_with_little_memory_is_a_warning() {
    let place = TestFolder::new();
    let Some(command) = seeing(&doctor(&place), "/sys/fs/cgroup/memory.max", "536870912") else { return };
    assert_row(&rows(command), "limits", "warning", "may use 512 MiB of memory", "-i calls:max=256MiB");
}

#[test]
fn containers_and_filtered_system_calls_get_a_hint() {
    let place = TestFolder::new();
    let mut command = doctor(&place);
    command.env("KUBERNETES_SERVICE_HOST", "10.0.0.1");
    assert_row(&rows(command), "container", "note", "recordings inside it vanish with it", "clrscope env --dockerfile");

    let command = wrapped(&["python3", "-c", FILTERED], &doctor(&place));
    let Some(command) = seeing(&command, PERF_LEVEL, "1") else { return };
    let rows = rows(command);
    assert_row(&rows, "seccomp", "note", "system calls are filtered", "seccomp=unconfined");
    assert_row(&rows, "perf events", "note", "but system calls are filtered here", "--cap-add PERFMON");
}

/// Becomes the program in its arguments, under a filter of system calls that lets all of them
/// through.
const FILTERED: &str = r#"
import ctypes, os, struct, sys
code = ctypes.create_string_buffer(struct.pack("HBBI", 6, 0, 0, 0x7FFF0000))
program = ctypes.create_string_buffer(struct.pack("HP", 1, ctypes.addressof(code)))
prctl = ctypes.CDLL(None).prctl
assert prctl(38, 1, 0, 0, 0) == 0 and prctl(22, 2, program) == 0
os.execv(sys.argv[1], sys.argv[1:])
"#;

#[test]
fn limits_that_dotnet_itself_dies_of_are_named_with_it() {
    let (place, runtime) = (TestFolder::new(), newest());
    let version = runtime.version.to_string();
    // The agent's file has to be there before.
    assert!(place.clrscope(["env"]).env("HOME", place.path()).output().expect("the tool starts").status.success());
    for (limit, cure) in [("-f 1000", "ulimit -f unlimited"), ("-v 4000000", "ulimit -v unlimited")] {
        let rows = rows(limited(&doctor_with(&place, runtime), limit));
        assert_row(&rows, ".NET", "failed", &version, cure);
        assert_row(&rows, ".NET", "failed", "without clrscope, too", cure);
    }
}

#[test]
fn switched_off_diagnostics_are_a_failure_in_both_places() {
    let (place, runtime) = (TestFolder::new(), newest());
    for name in ["DOTNET_EnableDiagnostics", "DOTNET_EnableDiagnostics_Profiler"] {
        let mut command = doctor_with(&place, runtime);
        command.env(name, "0");
        let rows = rows(command);
        let cure = format!("unset {name}");
        assert_row(&rows, ".NET", "failed", "it ran, but no agent was loaded", &cure);
        assert_row(&rows, "profilers", "failed", &format!("{name}=0 disables every profiler"), &cure);
    }
}

#[test]
fn other_profilers_are_named() {
    let place = TestFolder::new();
    let mut command = doctor(&place);
    command.env("CORECLR_ENABLE_PROFILING", "1").env("CORECLR_PROFILER", "{1}");
    command.env("CORECLR_PROFILER_PATH", "/opt/apm.so").env("CORECLR_NOTIFICATION_PROFILERS", "/opt/ear.so={2}");
    command.env("CORECLR_ENABLE_NOTIFICATION_PROFILERS", "1");
    let rows = rows(command);
    let found = "main slot, '/opt/apm.so'; next to it, clrscope can record: events, exceptions, cpu, wall, gc, locks, ";
    assert_row(&rows, "profilers", "note", found, "unset CORECLR_ENABLE_PROFILING");
    assert_row(&rows, "profilers", "note", "/opt/ear.so={2}", "unset CORECLR_NOTIFICATION_PROFILERS");
}

#[test]
fn known_profilers_are_called_by_their_names() {
    let place = TestFolder::new();
    let mut command = doctor(&place);
    command.env("CORECLR_ENABLE_PROFILING", "1").env("CORECLR_PROFILER", "{918728DD-259F-4A6A-AC2B-B85E1B658318}");
    command.env("CORECLR_PROFILER_PATH", "/opt/otel/linux-x64/OpenTelemetry.AutoInstrumentation.Native.so");
    let rows = rows(command);
    assert_row(&rows, "profilers", "note", "main slot, OpenTelemetry ('/opt/otel/", "unset CORECLR_ENABLE_PROFILING");
}

/// An installation with this runtime whose `libcoreclr.so` is no library.
fn damaged(place: &TestFolder, runtime: &Runtime) -> PathBuf {
    let root = place.file("damaged");
    let of_version = format!("shared/Microsoft.NETCore.App/{}", runtime.version);
    fs::create_dir_all(root.join(&of_version)).expect("a folder");
    // The host looks next to its own file, so a link to it would lead back.
    fs::copy(runtime.root.join("dotnet"), root.join("dotnet")).expect("a copy");
    symlink(runtime.root.join("host"), root.join("host")).expect("a link");
    for entry in fs::read_dir(runtime.root.join(&of_version)).expect("a runtime").flatten() {
        let link = root.join(&of_version).join(entry.file_name());
        match entry.file_name().to_str() {
            Some("libcoreclr.so") => fs::write(link, "no library").expect("a file"),
            _ => symlink(entry.path(), link).expect("a link"),
        }
    }
    root
}

#[test]
fn a_damaged_runtime_and_a_variable_that_leads_nowhere_are_named() {
    let (place, runtime) = (TestFolder::new(), newest());
    let mut command = doctor(&place);
    command.env("DOTNET_ROOT", damaged(&place, runtime));
    let found = rows(command);
    assert_row(&found, ".NET", "failed", "without clrscope, too", "reinstall this runtime");
    assert_row(&found, ".NET", "failed", &runtime.version.to_string(), "");
    let mut command = doctor(&place);
    command.env("DOTNET_ROOT", place.path());
    assert_row(&rows(command), ".NET", "warning", "where no .NET is", "unset DOTNET_ROOT");
}

/// Hides the libraries from everything that is started in there.
const WITHOUT_ICU: &str = r#"
    layer=$1; shift; mount -t tmpfs layer "$layer" || exit 99
    : > "$layer/cache"; mount --bind "$layer/cache" /etc/ld.so.cache || exit 99
    for folder in /lib /lib64 /usr/lib /usr/lib64 /usr/local/lib /usr/lib/x86_64-linux-gnu; do
        ls "$folder"/libicuuc.so* > /dev/null 2>&1 || continue
        number=$((number + 1)); mkdir "$layer/$number" "$layer/$number.work" || exit 99
        for library in "$folder"/libicu*; do mknod "$layer/$number/${library##*/}" c 0 0 || exit 99; done
        mount -t overlay -o "lowerdir=$folder,upperdir=$layer/$number,workdir=$layer/$number.work" icu "$folder" || exit 99
    done
    exec "$@""#;

#[test]
fn a_machine_without_libicu_is_told_how_to_do_without() {
    let place = TestFolder::new();
    let layer = place.file("layer");
    fs::create_dir(&layer).expect("a folder");
    let words = ["unshare", "--mount", "sh", "-c", WITHOUT_ICU, "sh", layer.to_str().expect("UTF-8")];
    let hidden = |command: &Command| wrapped(&words, command);
    let mut command = doctor(&place);
    command.env_remove("DOTNET_SYSTEM_GLOBALIZATION_INVARIANT");
    let trial = testkit::run(hidden(&Command::new("true")));
    if !trial.status.success() {
        return testkit::not_run("this machine does not allow hiding libraries");
    }
    assert_row(&rows(hidden(&command)), "libicu", "warning", "is missing", "install libicu, or set DOTNET_SYSTEM");
    command.env("DOTNET_SYSTEM_GLOBALIZATION_INVARIANT", "1");
    assert_row(&rows(hidden(&command)), "libicu", "ok", "is missing, but", "");
}
