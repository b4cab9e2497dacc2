//! `diff --before LABELS --after LABELS FOLDER`: recordings of a real program with labels, whose
//! counts the program's argument says.

mod common;

use std::fs;

use clrscope_testkit::{self as testkit, each_runtime, fixture};
use common::{TestFolder, sample, write_packed};
use serde_json::Value;

/// Records `Throws COUNT`, which calls two methods and throws COUNT times, in the folder `all`.
fn record(place: &TestFolder, runtime: &testkit::Runtime, version: &str, host: &str, count: u64) {
    let file = format!("all/{version}-{host}-{count}.clrs");
    let labels = [format!("service.version={version}"), format!("host.name={host}")];
    let words = [
        "run",
        "--quiet",
        "-o",
        &file,
        "-i",
        "calls",
        "-i",
        "exceptions",
        "--label",
        &labels[0],
        "--label",
        &labels[1],
        "--",
    ];
    let mut words: Vec<std::ffi::OsString> = words.map(Into::into).into();
    words.extend(runtime.words(&fixture("Throws")));
    words.push(count.to_string().into());
    let mut command = place.clrscope(words);
    runtime.prepare(&mut command);
    testkit::run(command).expect_success();
}

fn json(place: &TestFolder, line: &str) -> (Value, String) {
    let output = place.run(&format!("diff --format json {line}"));
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(output.status.success(), "{line}: {said}");
    (serde_json::from_slice(&output.stdout).expect("JSON"), said)
}

fn row<'v>(document: &'v Value, name: &str) -> &'v Value {
    let rows = document["rows"].as_array().expect("rows");
    rows.iter().find(|row| row["name"] == name).unwrap_or_else(|| panic!("{name} in {rows:?}"))
}

#[test]
fn recordings_of_a_folder_are_chosen_by_labels_and_merged() {
    each_runtime(|runtime| {
        let place = TestFolder::new();
        fs::create_dir(place.file("all")).expect("a folder");
        for (version, host, count) in
            [("v1", "a", 9), ("v2", "a", 30), ("v2", "b", 34), ("v3", "a", 50), ("v3", "c", 60)]
        {
            record(&place, runtime, version, host, count);
        }
        // A third one on the other side: numbers of recordings differ.
        record(&place, runtime, "v3", "b", 40);
        let sides = "--before version=v2 --after version=v3 all";
        let (each, said) = json(&place, &format!("{sides} --per recording --metric calls"));
        assert_eq!((said.as_str(), &each["schema"]), ("", &"clrscope.diff-functions/1".into()));
        let catch = row(&each, "Throws.Program::Catch");
        assert_eq!((&catch["before"], &catch["after"], &catch["difference"]), (&32.into(), &50.into(), &18.into()));
        assert_eq!(row(&each, "Throws.Program::Main")["change"], "same", "once in each recording");
        // Sums per hour: what the program counted, over the time that was recorded.
        let (hourly, _) = json(&place, &format!("{sides} --metric calls"));
        let of = |side: usize, key: &str| hourly["sides"][side][key].clone();
        assert_eq!((of(0, "labels"), of(1, "labels")), ("version=v2".into(), "version=v3".into()));
        assert_eq!([of(0, "recordings"), of(1, "recordings")], [2, 3].map(Value::from));
        assert_eq!([of(0, "hosts"), of(1, "hosts")], [2, 3].map(Value::from));
        assert_eq!(of(0, "per"), "hour");
        for (side, key, count) in [(0, "before", 64.0), (1, "after", 150.0)] {
            let hours = of(side, "recorded_ns").as_f64().expect("a time") / 3.6e12;
            let found = row(&hourly, "Throws.Program::Catch")[key].as_f64().expect("a number");
            assert!((found - count / hours).abs() <= 1.0, "{found} {count} {hours}");
        }
        // Durations of the recordings themselves.
        let durations = hourly["recordings"].as_array().expect("recordings").iter();
        let before = durations.filter(|one| one["side"] == "before").filter_map(|one| one["duration_ns"].as_u64());
        assert_eq!(of(0, "recorded_ns"), before.sum::<u64>());
        // Exceptions, by two labels.
        let line =
            "--before version=v2,host=a --after service.version=v3,host=[bc] all --view exceptions --per recording";
        let failed = place.run(&format!("diff {line}"));
        assert_eq!(failed.status.code(), Some(1), "brackets are no wildcards");
        let line = line.replace("host=[bc]", "host=?").replace("version=v2,host=a", "version=v?,host=a,service=Thr*");
        assert_eq!(place.run(&format!("diff {line}")).status.code(), Some(2), "both sides have host a of v3");
        let line = "--before version=v2,host=a --after version=v3,host=b all --view exceptions --per recording";
        let (thrown, _) = json(&place, line);
        let thrown = row(&thrown, "Throws.Program::Throw");
        assert_eq!((&thrown["before"], &thrown["after"]), (&30.into(), &40.into()));
        // The head has three lines; a share is of the whole of its side.
        let output = place.run(&format!("diff {sides} --metric calls --per recording"));
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        let heads: Vec<&str> = text.lines().take_while(|line| !line.starts_with("Functions")).collect();
        let begins: Vec<&str> = heads.iter().filter_map(|line| line.split_whitespace().next()).collect();
        assert!(
            heads[0].contains("2 recordings of 2 hosts (") && text.contains("with 3 recordings of 3 hosts ("),
            "{text}"
        );
        assert!(begins.contains(&"compared") && begins.contains(&"calls") && begins.contains(&"most"), "{text}");
        assert!(!begins.contains(&"recorded"), "other labels are no other instruments: {text}");
        assert!(text.contains("per recording: ") && text.contains("Functions by calls per recording"), "{text}");
        // Gates.
        let gate = |limit: &str| place.run(&format!("diff {sides} --per recording --fail-on *::Catch:calls>{limit}"));
        assert_eq!(gate("+1000").status.code(), Some(0));
        assert_eq!(place.run("diff --before version=v2,host=a --after version=v3,host=b all --per recording --fail-on *::Catch:calls>+9").status.code(), Some(3));
        // A copy counts once, what is broken is named, and the others are compared.
        fs::copy(place.file("all/v2-a-30.clrs"), place.file("all/copy.clrs")).expect("a copy");
        fs::write(place.file("all/broken.clrs"), "no recording").expect("a file");
        let (again, said) = json(&place, &format!("{sides} --per recording --metric calls"));
        assert_eq!(row(&again, "Throws.Program::Catch")["before"], 32);
        assert_eq!(said.lines().count(), 2, "{said}");
        assert!(
            said.contains("'all/broken.clrs' is left out: ") && said.contains("are one recording, and count once"),
            "{said}"
        );
        let facts = again["facts"].to_string();
        assert!(facts.contains("1 recording, which can't be read: all/broken.clrs"), "{facts}");
    });
}

#[test]
fn what_chooses_nothing_is_refused_in_three_lines() {
    let place = TestFolder::new().with_sample();
    fs::create_dir(place.file("all")).expect("a folder");
    fs::create_dir(place.file("empty")).expect("a folder");
    let mut labelled = sample();
    let label = |key: &str, value: &str| clrscope_contract::labels::Label { key: key.into(), value: value.into() };
    for (file, version) in [("a.clrs", "v2"), ("b.clrs", "v3")] {
        labelled.processes[0].identity.labels = vec![label("service.version", version), label("team", "carts")];
        write_packed(&labelled, &place.file("all").join(file));
    }
    for (line, code, why) in [
        ("--before version=v2 --after version=v3", 2, "RECORDING"),
        ("--before version=v2 all", 2, "--after"),
        ("--per hour sample.clrs all/a.clrs", 2, "--before"),
        ("--before v2 --after version=v3 all", 2, "'v2' has no '='"),
        ("--before version=v2 --after version=v3 all sample.clrs", 2, "one folder, and 2 were named"),
        ("--before version=v2 --after version=v3 all -- all", 2, "one folder, and 2 were named"),
        ("--before version=v2 --after version=v3 missing", 1, "there is no such folder"),
        ("--before version=v2 --after version=v3 sample.clrs", 1, "it is not a folder"),
        ("--before version=v2 --after version=v3 empty", 1, "it has no recordings"),
        ("--before version=v9 --after version=v3 all", 1, "the 2 recordings there have version v2, v3"),
        ("--before version=v2 --after tier=web all", 1, "have no such label, but service, team, version"),
        ("--before version=v2 --after team=carts all", 2, "'all/a.clrs' is on both sides"),
    ] {
        let output = place.run(&format!("diff {line}"));
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!((output.status.code(), said.lines().count()), (Some(code), 3), "{line}: {said}");
        assert!(output.stdout.is_empty() && said.contains(why), "{line}: {said}");
    }
}
