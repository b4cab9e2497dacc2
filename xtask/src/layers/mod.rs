//! `cargo xtask layers`: checks that crates and modules use only lower ones, as `layers.toml`
//! defines.
//!
//! The file lists the crates, lowest first, with the crates that each may use, and the levels of a
//! crate's modules, lowest first. Modules of one level may use each other in one direction; circles
//! are errors everywhere, deeper down as well. What only tests use doesn't count. Public items of
//! the framework, which is made for others, have one public path each.

mod exports;
mod modules;
mod source;

use std::collections::{BTreeMap, BTreeSet};
use std::env;
use std::fs;
use std::path::Path;
use std::process::Command;

use clrscope_testkit::workspace_root;
use serde::Deserialize;
use serde_json::Value;

use modules::{Modules, Uses, circles, levels as levels_of};

/// The file's name in the root of the repository.
const FILE: &str = "layers.toml";
/// The crates whose public items others are to name.
const FRAMEWORK: [&str; 3] = ["clr-profiler", "clr-profiler-fake", "clr-profiler-sys"];

/// Contents of `layers.toml`.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Layers {
    /// The crates, lowest first.
    #[serde(rename = "crate")]
    crates: Vec<Crate>,
}

/// A crate of `layers.toml`.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
struct Crate {
    name: String,
    folder: String,
    /// Names of our own crates that it uses.
    uses: BTreeSet<String>,
    /// Levels of its modules, lowest first; none where only circles are looked for.
    layers: Option<Vec<Vec<String>>>,
}

/// Compares `layers.toml` with the code, and prints the levels of each crate's modules.
///
/// # Errors
/// All differences, one per line.
#[expect(clippy::print_stdout, reason = "a command line tool")]
pub(crate) fn run() -> Result<(), String> {
    let declared =
        parse(&fs::read_to_string(workspace_root().join(FILE)).map_err(|error| format!("{FILE}: {error}"))?)?;
    let mut wrong = wrong_crates(&declared, &dependencies()?);
    for one in &declared {
        let modules = Modules::read(&workspace_root().join(&one.folder).join("src"))?;
        if FRAMEWORK.contains(&one.name.as_str()) {
            wrong.extend(exports::twice(&modules).iter().map(|item| format!("{}: {item}", one.name)));
        }
        for (parent, uses) in modules.uses() {
            let within = [std::slice::from_ref(&one.name), &parent[..]].concat().join("::");
            wrong.extend(circles(&uses).iter().map(|circle| described(&within, circle, &uses)));
            if parent.is_empty() {
                wrong.extend(one.layers.iter().flat_map(|levels| wrong_levels(&one.name, levels, &uses)));
                let found: Vec<String> = levels_of(&uses).iter().map(|level| level.join(" ")).collect();
                println!("{}: {}", one.name, found.join("; "));
            }
        }
    }
    if wrong.is_empty() { Ok(()) } else { Err(wrong.join("\n")) }
}

fn parse(text: &str) -> Result<Vec<Crate>, String> {
    toml::from_str::<Layers>(text).map(|layers| layers.crates).map_err(|error| format!("{FILE}: {error}"))
}

/// A circle with one place for each of its steps.
fn described(within: &str, circle: &[String], uses: &Uses) -> String {
    let steps = circle.iter().flat_map(|from| {
        let to = uses.get(from).into_iter().flatten().filter(|(to, _)| circle.contains(to));
        to.map(move |(to, places)| format!("\n    {from} -> {to}: {}", places.first().map_or("", String::as_str)))
    });
    format!("{within}: {} use each other{}", circle.join(", "), steps.collect::<String>())
}

fn wrong_crates(declared: &[Crate], found: &BTreeMap<String, BTreeSet<String>>) -> Vec<String> {
    let mut wrong = Vec::new();
    let names: BTreeSet<&str> = declared.iter().map(|one| one.name.as_str()).collect();
    let missing = found.keys().filter(|name| !names.contains(name.as_str()));
    wrong.extend(missing.map(|name| format!("{name} is missing from {FILE}")));
    let mut below = BTreeSet::new();
    for one in declared {
        match found.get(&one.name) {
            None => wrong.push(format!("{FILE} has the crate {}, which does not exist", one.name)),
            Some(uses) if *uses != one.uses => {
                wrong.push(format!("{} uses {uses:?}, and by {FILE} {:?}", one.name, one.uses));
            }
            Some(uses) => {
                let above = uses.iter().filter(|used| !below.contains(*used));
                wrong.extend(
                    above.map(|used| format!("{} uses {used}, which does not come before it in {FILE}", one.name)),
                );
            }
        }
        below.insert(one.name.clone());
    }
    wrong
}

fn wrong_levels(within: &str, levels: &[Vec<String>], uses: &Uses) -> Vec<String> {
    let mut wrong = Vec::new();
    let level = |name: &str| levels.iter().position(|level| level.iter().any(|known| known == name));
    for (name, used) in uses {
        let Some(own) = level(name) else {
            wrong.push(format!("{within}: `{name}` has no level in {FILE}"));
            continue;
        };
        for (other, places) in used.iter().filter(|(other, _)| level(other).is_some_and(|above| above > own)) {
            let place = places.first().map_or("", String::as_str);
            wrong.push(format!("{within}: `{name}` uses `{other}`, which stands above it: {place}"));
        }
    }
    let gone = levels.iter().flatten().filter(|name| !uses.contains_key(*name));
    wrong.extend(gone.map(|name| format!("{within}: {FILE} has `{name}`, which is no module")));
    wrong
}

/// Our own crates that are built into the tool, its tests and xtask, with those that each uses, its
/// tests left out.
fn dependencies() -> Result<BTreeMap<String, BTreeSet<String>>, String> {
    let cargo = env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let mut command = Command::new(cargo);
    command.current_dir(workspace_root()).args(["metadata", "--locked", "--no-deps", "--format-version=1"]);
    let output = command.output().map_err(|error| format!("cargo: {error}"))?;
    let metadata: Value = serde_json::from_slice(&output.stdout).map_err(|error| error.to_string())?;
    let packages = metadata["packages"].as_array().ok_or("cargo lists no packages")?;
    let is_listed = |package: &&Value| {
        let manifest = package["manifest_path"].as_str().unwrap_or_default();
        let folder = Path::new(manifest).parent().and_then(|folder| folder.strip_prefix(workspace_root()).ok());
        folder.is_some_and(|folder| folder.starts_with("crates") || folder == Path::new("xtask"))
    };
    let name = |one: &Value| one["name"].as_str().unwrap_or_default().to_owned();
    let uses = |package: &Value| -> BTreeSet<String> {
        let all = package["dependencies"].as_array().into_iter().flatten();
        all.filter(|one| !one["path"].is_null() && one["kind"] != "dev").map(name).collect()
    };
    Ok(packages.iter().filter(is_listed).map(|package| (name(package), uses(package))).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn crates_and_modules_use_only_what_is_below_them() {
        run().unwrap_or_else(|wrong| panic!("{FILE} and the code differ:\n{wrong}"));
    }

    /// A crate that is missing there is changed, and the tool goes on with the agent as it was.
    #[test]
    fn the_tool_is_built_again_when_a_crate_of_the_agent_changes() {
        let declared = parse(&fs::read_to_string(workspace_root().join(FILE)).expect("a file")).expect("layers");
        let mut crates = set(&["clrscope-agent"]);
        // Lowest first, so that from the end on each comes after all that use it.
        for one in declared.iter().rev().filter(|one| one.folder.starts_with("crates/")) {
            if crates.contains(&one.name) {
                crates.extend(one.uses.iter().cloned());
            }
        }
        let folders = declared.iter().filter(|one| crates.contains(&one.name));
        let used: BTreeSet<&str> = folders.filter_map(|one| one.folder.strip_prefix("crates/")).collect();
        let script = fs::read_to_string(workspace_root().join("crates/cli/build.rs")).expect("a file");
        let (_, list) = script.split_once("const CRATES").and_then(|(_, rest)| rest.split_once('=')).expect("the list");
        let list = list.split_once(';').expect("its end").0;
        let watched: BTreeSet<&str> = list.split('"').skip(1).step_by(2).collect();
        assert_eq!(watched, used);
    }

    const TEXT: &str = r#"
[[crate]]
name = "low"
folder = "crates/low"
uses = []

[[crate]]
name = "high"
folder = "crates/high"
uses = ["low"]
layers = [
    ["words", "numbers"],
    ["text"], # made of both
]
"#;

    fn set(names: &[&str]) -> BTreeSet<String> {
        names.iter().map(|name| (*name).to_owned()).collect()
    }

    #[test]
    fn a_crate_that_uses_another_than_the_file_says_is_told() {
        let declared = parse(TEXT).expect("the file");
        let found = |low: &[&str], high: &[&str]| {
            BTreeMap::from([("low".to_owned(), set(low)), ("high".to_owned(), set(high))])
        };
        assert_eq!(wrong_crates(&declared, &found(&[], &["low"])), [""; 0]);
        assert_eq!(wrong_crates(&declared, &found(&["high"], &["low"])).len(), 1);
        assert_eq!(wrong_crates(&declared, &found(&[], &[])).len(), 1);
        assert_eq!(wrong_crates(&declared[..1], &found(&[], &["low"])), ["high is missing from layers.toml"]);
        let upward = [Crate { uses: set(&["high"]), ..declared[0].clone() }];
        let wrong = wrong_crates(&upward, &BTreeMap::from([("low".to_owned(), set(&["high"]))]));
        assert_eq!(wrong, ["low uses high, which does not come before it in layers.toml"]);
    }

    #[test]
    fn a_misspelt_key_is_told() {
        let wrong = parse(&TEXT.replace("layers =", "layer =")).expect_err("an unknown key");
        assert!(wrong.contains("unknown field `layer`"), "{wrong}");
    }

    #[test]
    fn a_module_that_uses_one_above_it_is_told() {
        let levels = parse(TEXT).expect("the file")[1].layers.clone().expect("levels");
        let uses = |text: &str, words: &str| {
            let mut modules = Modules::default();
            for (name, source) in [("text", text), ("words", words), ("numbers", "")] {
                modules.add(vec![name.to_owned()], source);
            }
            modules.uses().remove(&Vec::new()).expect("modules")
        };
        assert_eq!(wrong_levels("high", &levels, &uses("use crate::words;", "use crate::numbers;")), [""; 0]);
        let upward = wrong_levels("high", &levels, &uses("", "use crate::text;"));
        assert_eq!(upward, ["high: `words` uses `text`, which stands above it: words names crate::text"]);
        let more = [levels.clone(), vec![vec!["gone".to_owned()]]].concat();
        assert_eq!(wrong_levels("high", &more, &uses("", "")), ["high: layers.toml has `gone`, which is no module"]);
        assert_eq!(wrong_levels("high", &levels[..1], &uses("", "")), ["high: `text` has no level in layers.toml"]);
    }
}
