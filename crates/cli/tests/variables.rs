//! Variables that `env` prints for Dockerfiles and systemd units are read back there as they were
//! meant.

mod common;

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::process::Command;

use clrscope_testkit as testkit;
use common::TestFolder;
use serde_json::Value;

/// A place, filters and settings with everything that is special anywhere.
const OPTIONS: [&str; 8] = [
    "-o",
    "it's 100% \"so\" $HOME `x` \\n 大きさ.clrs.d",
    "-i",
    "calls:clock=tsc,noinline",
    "--include",
    "[Shop]*::Get*",
    "--exclude",
    "System.*",
];

fn printed(place: &TestFolder, form: &str) -> String {
    let output = place.clrscope([&["env", form], &OPTIONS[..]].concat()).output().expect("the tool starts");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).expect("UTF-8")
}

/// Variables as they were meant.
fn meant(place: &TestFolder) -> BTreeMap<String, String> {
    let document: Value = serde_json::from_str(&printed(place, "--json")).expect("JSON");
    let variables = document.as_object().expect("names and values");
    assert!(variables.contains_key("CORECLR_ENABLE_PROFILING") && variables.contains_key("CLRSCOPE_AGENT"));
    variables.iter().map(|(name, value)| (name.clone(), value.as_str().expect("a text").to_owned())).collect()
}

/// A double-quoted word and what follows it, `special` being what a backslash takes its meaning
/// from.
fn unquoted(word: &str, special: &str) -> String {
    let inner = word.strip_prefix('"').and_then(|rest| rest.strip_suffix('"')).expect("in double quotes");
    let (mut text, mut letters) = (String::new(), inner.chars());
    while let Some(letter) = letters.next() {
        match letter {
            '\\' => text.push(letters.next().filter(|next| special.contains(*next)).expect("something to escape")),
            other => {
                assert!(!special.contains(other), "{other} stands bare in {word}");
                text.push(other);
            }
        }
    }
    text
}

#[test]
fn a_dockerfile_reads_back_what_was_meant() {
    let place = TestFolder::new();
    let read = |line: &str| {
        let (name, word) = line.strip_prefix("ENV ").and_then(|rest| rest.split_once('=')).expect("ENV NAME=VALUE");
        (name.to_owned(), unquoted(word, "\"\\$"))
    };
    assert_eq!(printed(&place, "--dockerfile").lines().map(read).collect::<BTreeMap<_, _>>(), meant(&place));
}

#[test]
fn a_systemd_unit_reads_back_what_was_meant() {
    let place = TestFolder::new();
    let lines = printed(&place, "--systemd");
    let read = |line: &str| {
        let word = unquoted(line.strip_prefix("Environment=").expect("an assignment"), "\"\\");
        assert!(!word.replace("%%", "").contains('%'), "{word} has something that systemd expands");
        let (name, value) = word.split_once('=').expect("NAME=VALUE");
        (name.to_owned(), value.replace("%%", "%"))
    };
    assert_eq!(lines.lines().map(read).collect::<BTreeMap<_, _>>(), meant(&place));

    // systemd itself complains of what it does not understand, on stderr and with exit code 0.
    let unit = place.file("shop.service");
    let verified = |lines: &str| {
        fs::write(&unit, format!("[Service]\nExecStart=/bin/true\n{lines}")).expect("a file");
        let output = Command::new("systemd-analyze").args(["verify", "--man=no"]).arg(&unit).output().ok()?;
        Some(String::from_utf8_lossy(&output.stderr).into_owned())
    };
    let Some(said) = verified(&lines) else {
        return testkit::not_run("systemd-analyze is not installed");
    };
    assert!(!said.contains("shop.service:"), "{said}");
    assert!(
        verified("Environment=\"A=open\n").is_some_and(|said| said.contains("shop.service:3")),
        "it complains of none"
    );
}

#[test]
fn a_shell_reads_back_what_was_meant() {
    let place = TestFolder::new();
    let script = format!("{}env -0", printed(&place, "--shell"));
    let output = Command::new("sh").args(["-c", &script]).output().expect("a shell");
    let text = String::from_utf8(output.stdout).expect("UTF-8");
    let set: BTreeMap<&str, &str> = text.split('\0').filter_map(|line| line.split_once('=')).collect();
    for (name, value) in meant(&place) {
        assert_eq!(set.get(name.as_str()), Some(&value.as_str()));
    }
}

#[test]
fn an_agent_that_the_service_cannot_load_is_refused_and_an_installed_one_can_be_read_by_all() {
    let place = TestFolder::new();
    let env = |words: &[&str]| place.clrscope([&["env"], words].concat()).output().expect("the tool starts");
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    // The cache is closed to all others.
    let refused = env(&["--systemd", "--user", "4000000001"]);
    assert_eq!(refused.status.code(), Some(1), "{}", text(&refused.stderr));
    assert!(
        text(&refused.stderr).contains("is closed to that user\nhint: as root, add --install"),
        "{}",
        text(&refused.stderr)
    );
    let installed = env(&["--json", "--install", "lib"]);
    assert!(installed.status.success(), "{}", text(&installed.stderr));
    let variables: Value = serde_json::from_slice(&installed.stdout).expect("JSON");
    let file = place.file("lib/libclrscope_agent.so");
    let named = variables["CORECLR_PROFILER_PATH"].as_str().expect("a path");
    assert_eq!(fs::canonicalize(named).expect("the agent"), fs::canonicalize(&file).expect("the agent"));
    assert_eq!(fs::metadata(&file).expect("the agent").permissions().mode() & 0o777, 0o555);
    let docker = text(&env(&["--dockerfile", "--install", "lib"]).stdout);
    let inside = "/usr/local/lib/clrscope/libclrscope_agent.so";
    assert!(
        docker.starts_with(&format!("COPY --chmod=0555 [\"lib/libclrscope_agent.so\",\"{inside}\"]\n")),
        "{docker}"
    );
    assert!(docker.contains(&format!("CORECLR_PROFILER_PATH=\"{inside}\"")), "{docker}");
}

/// A program with such variables went unrecorded, and nothing said so.
#[test]
fn a_folder_that_cannot_be_written_is_refused() {
    let place = TestFolder::new();
    fs::write(place.file("file"), "").expect("a file");
    let output = place.clrscope(["env", "-o", "file/a"]).output().expect("the tool starts");
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(1), "{said}");
    assert!(said.contains("/file' is not a folder\nhint: ") && output.stdout.is_empty(), "{said}");
    let output = place.clrscope(["env", "-o", "/root/a", "--user", "4000000001"]).output().expect("the tool starts");
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(said.contains("user '4000000001' can't write to '/"), "{said}");
}
