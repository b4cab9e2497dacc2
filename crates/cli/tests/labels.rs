//! Labels of a recording: what users give, what the program's environment says, and what is found,
//! compared with what the program says of itself.

mod common;

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader};
use std::process::{Command, Stdio};

use clrscope_testkit::{self as testkit, Runtime};
use common::TestFolder;
use serde_json::{Value, json};

const SERVICE_NAME: &str = "OTEL_SERVICE_NAME";
const ATTRIBUTES: &str = "OTEL_RESOURCE_ATTRIBUTES";

/// What the program says of itself.
fn own_words(stdout: &str) -> BTreeMap<String, String> {
    let pairs = stdout.lines().filter_map(|line| line.split_once('='));
    pairs.map(|(key, value)| (key.to_owned(), value.to_owned())).collect()
}

/// The command that runs the fixture, behind words of the tool.
fn run_fixture(place: &TestFolder, runtime: &Runtime, words: &[&str], arguments: &[&str]) -> Command {
    let program = runtime.command(&testkit::fixture("Labelled"));
    let mut command = place.clrscope(words);
    command.arg("--").arg(program.get_program()).args(program.get_args()).args(arguments);
    for (name, value) in program.get_envs() {
        value.into_iter().for_each(|value| _ = command.env(name, value));
    }
    for name in [SERVICE_NAME, ATTRIBUTES] {
        command.env_remove(name);
    }
    command
}

/// The object `recording` of a view.
fn head(place: &TestFolder, recording: &str) -> Value {
    place.json(&format!("report {recording} --view functions"))["recording"].clone()
}

/// What was found is what the program says of itself.
fn assert_found(resource: &Value, own: &BTreeMap<String, String>, service: &str) {
    assert_eq!(resource["service.name"], service, "{resource:#}");
    assert_eq!(resource["service.version"], own["version"], "{resource:#}");
    assert_eq!(resource["host.name"], own["host"], "{resource:#}");
    assert_eq!(resource["process.pid"].to_string(), own["pid"], "{resource:#}");
    assert_eq!(resource["clrscope.processors"].to_string(), own["processors"], "{resource:#}");
    assert_eq!(resource["process.runtime.name"], ".NET");
}

#[test]
fn a_recording_has_labels_and_what_the_program_says_of_itself() {
    testkit::each_runtime(|runtime| {
        let place = TestFolder::new();
        let run = |name: &str, words: &[&str], environment: &[(&str, &str)]| {
            let words = [&["run", "-o", name], words].concat();
            let output = run_fixture(&place, runtime, &words, &[]).envs(environment.iter().copied()).output();
            let output = output.expect("the tool starts");
            assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
            let own = own_words(&String::from_utf8_lossy(&output.stdout));
            let shown = ["", " --view conditions"].map(|view| place.run(&format!("report {name}{view}")));
            let shown = shown.map(|output| String::from_utf8_lossy(&output.stdout).into_owned());
            (own, head(&place, name), shown)
        };
        // Nothing is said: the name is that of the assembly.
        let (own, plain, _) = run("plain.clrs", &[], &[]);
        assert_eq!(own["version"], "1.4.2+8a3f12c");
        let process = &plain["processes"][0];
        assert_found(&process["resource"], &own, "Labelled");
        assert_eq!(process["resource"]["process.runtime.version"], runtime.version.to_string());
        assert_eq!(process["sampling"][0]["instrument"], "cpu");
        assert_eq!(process["sampling"][0]["period_ns"], 1_000_000, "--rate is 1000 a second");
        // Environment and command line.
        let environment = [
            (SERVICE_NAME, "from the variable"),
            (ATTRIBUTES, "service.name=from attributes,deployment.environment.name=pr%20od,team=none,process.pid=1"),
        ];
        let labels = ["--label", "team=carts, 100%", "--label", "tier=web", "--rate", "500"];
        let (own, both, [report, conditions]) = run("both.clrs", &labels, &environment);
        let resource = &both["processes"][0]["resource"];
        assert_found(resource, &own, "from the variable");
        assert_eq!(resource["deployment.environment.name"], "pr od");
        assert_eq!((&resource["team"], &resource["tier"]), (&json!("carts, 100%"), &json!("web")));
        assert_eq!(both["processes"][0]["sampling"][0]["period_ns"], 2_000_000);
        assert!(conditions.contains("labels") && conditions.contains("tier=web"), "{conditions} {report}");
        // An identifier of its own.
        let [first, second] = [&plain, &both].map(|head| head["id"].as_str().expect("an id").to_owned());
        assert!(first.len() == 36 && first != second, "{first} {second}");
        assert_eq!(resource["clrscope.recording.id"], second);
        // A given name wins; attributes that are not well formed are thrown away with a note.
        let environment = [(SERVICE_NAME, ""), (ATTRIBUTES, "team=none,broken")];
        let (own, given, [_, said]) = run("given.clrs", &["--label", "service.name=shop"], &environment);
        let resource = &given["processes"][0]["resource"];
        assert_found(resource, &own, "shop");
        assert_eq!(resource["team"], Value::Null);
        assert!(said.contains("OTEL_RESOURCE_ATTRIBUTES is not used: a pair has no '='"), "{said}");
        assert!(conditions.contains("from the variable, version 1.4.2+8a3f12c, on "), "{conditions}");
        assert!(conditions.contains("tier=web") && conditions.contains(&second), "{conditions}");
    });
}

#[test]
fn an_attached_program_has_the_labels_of_the_environment_that_it_was_started_with() {
    testkit::each_runtime(|runtime| {
        let place = TestFolder::new();
        let mut command = runtime.command(&testkit::fixture("Labelled"));
        command.arg("serve").env(SERVICE_NAME, "at start").env(ATTRIBUTES, "region=eu");
        testkit::let_children_hear();
        let mut child = command.stdout(Stdio::piped()).spawn().expect("the program starts");
        let lines = BufReader::new(child.stdout.take().expect("a pipe")).lines().map(|line| line.expect("text"));
        let mut lines = lines;
        // Here it has changed the variable for itself.
        let said: Vec<String> = lines.by_ref().take_while(|line| line != "True").collect();
        let own = own_words(&said.join("\n"));
        let words = ["attach", &child.id().to_string(), "--label", "canary=yes", "--duration", "300ms", "-o", "a.clrs"];
        // The launcher's own variables are not meant.
        let output = place.clrscope(words).env(SERVICE_NAME, "of the launcher").output().expect("the tool starts");
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        let head = head(&place, "a.clrs");
        let resource = &head["processes"][0]["resource"];
        assert_found(resource, &own, "at start");
        assert_eq!((&resource["region"], &resource["canary"]), (&json!("eu"), &json!("yes")));
        Command::new("kill").arg(child.id().to_string()).status().expect("kill");
        assert_eq!(lines.collect::<Vec<_>>(), ["stopped"]);
        assert!(child.wait().expect("it ends").success());
    });
}

#[test]
fn labels_of_env_reach_a_program_without_the_launcher() {
    let runtime = testkit::runtimes().first().expect("a runtime");
    let place = TestFolder::new();
    let words = ["env", "--json", "--trust-writable", "-o", "web.clrs.d", "--label", "team=a;b, c", "--label", "x="];
    let output = place.clrscope(words).output().expect("the tool starts");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let variables: BTreeMap<String, String> = serde_json::from_slice(&output.stdout).expect("JSON");
    let mut program = runtime.command(&testkit::fixture("Labelled"));
    program.envs(variables).env_remove(SERVICE_NAME).env_remove(ATTRIBUTES);
    let done = testkit::run(program);
    let own = own_words(&done.stdout_text());
    let head = head(&place, "web.clrs.d");
    let resource = &head["processes"][0]["resource"];
    assert_found(resource, &own, "Labelled");
    assert_eq!((&resource["team"], &resource["x"]), (&json!("a;b, c"), &json!("")));
    assert_eq!(head["id"], resource["clrscope.recording.id"]);
    assert_eq!(head["id"].as_str().map(str::len), Some(36));
}

#[test]
fn bad_labels_are_refused_in_three_lines() {
    let place = TestFolder::new();
    let long = format!("k={}", "v".repeat(3_000));
    let many: Vec<String> = (0..31).map(|number| format!("k{number}=v")).collect();
    let many: Vec<&str> = many.iter().flat_map(|label| ["--label", label]).collect();
    for (labels, why) in [
        (&["--label", "team"][..], "it has no '='"),
        (&["--label", "=carts"], "the key is empty"),
        (&["--label", "a=b\tc"], "control character"),
        (&["--label", &long], "more than 2048 bytes"),
        (&["--label", "a=1", "--label", "a=1"], "given twice"),
        (&["--label", "process.pid=7"], "clrscope sets keys with"),
        (&many, "31 labels"),
    ] {
        for (command, code) in [(&["run"][..], 125), (&["attach"], 2), (&["env"], 2)] {
            let last = if command == ["env"] { &[][..] } else { &["1"][..] };
            let words = [command, labels, last].concat();
            let output = place.clrscope(words).output().expect("the tool starts");
            let said = String::from_utf8_lossy(&output.stderr).into_owned();
            assert_eq!((output.status.code(), said.lines().count()), (Some(code), 3), "{said}");
            assert!(said.contains(why) && said.contains("hint: write --label KEY=VALUE"), "{said}");
            assert!(said.lines().all(|line| line.len() < 160), "{said}");
        }
    }
}
