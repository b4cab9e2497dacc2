//! `cargo xtask layers`: crates and modules use what stands below them and nothing above, as ARCHITECTURE.md says.
//!
//! Two tables of ARCHITECTURE.md are read: that of the crates, ordered from below, with what each uses of the others;
//! and under "Layers" that of the modules of a crate, levels separated by semicolons, the lowest first. Modules of one
//! level may use each other in one direction; circles are errors everywhere, deeper down as well. What only tests use
//! doesn't count. Public items of the framework, which is made for others, have one public path each.

mod exports;
mod modules;
mod source;

use std::collections::{BTreeMap, BTreeSet};
use std::env;
use std::fs;
use std::path::Path;
use std::process::Command;

use clrscope_testkit::workspace_root;
use serde_json::Value;

use modules::{Modules, Uses, circles, levels as levels_of};

/// The crates whose public items others are to name.
const FRAMEWORK: [&str; 2] = ["clr-profiler", "clr-profiler-sys"];

/// A row of the table of crates.
#[derive(Debug, PartialEq, Eq)]
struct Crate {
    name: String,
    folder: String,
    /// Names of our own crates that it uses.
    uses: BTreeSet<String>,
}

/// Compares ARCHITECTURE.md with the code, and prints the levels in which each crate's modules stand.
///
/// # Errors
/// All that differs, a line each.
#[expect(clippy::print_stdout, reason = "a command line tool")]
pub(crate) fn run() -> Result<(), String> {
    let text = fs::read_to_string(workspace_root().join("ARCHITECTURE.md")).map_err(|error| error.to_string())?;
    let mut wrong = wrong_crates(&crates(&text)?, &dependencies()?);
    let levels = levels(&text)?;
    for one in crates(&text)? {
        let modules = Modules::read(&workspace_root().join(&one.folder).join("src"))?;
        if FRAMEWORK.contains(&one.name.as_str()) {
            wrong.extend(exports::twice(&modules).iter().map(|item| format!("{}: {item}", one.name)));
        }
        let folder = Path::new(&one.folder).file_name().unwrap_or_default().to_string_lossy().into_owned();
        for (parent, uses) in modules.uses() {
            if parent.is_empty()
                && let Some(levels) = levels.get(&folder)
            {
                wrong.extend(wrong_levels(&folder, levels, &uses));
            }
            let within = [std::slice::from_ref(&folder), &parent[..]].concat().join("::");
            wrong.extend(circles(&uses).iter().map(|circle| described(&within, circle, &uses)));
            if parent.is_empty() {
                println!(
                    "{folder}: {}",
                    levels_of(&uses).iter().map(|level| level.join(" ")).collect::<Vec<_>>().join("; ")
                );
            }
        }
    }
    if let Some(unknown) = levels.keys().find(|name| !workspace_root().join("crates").join(name).exists()) {
        wrong.push(format!("the table of layers has `{unknown}`, which is no folder in crates/"));
    }
    if wrong.is_empty() { Ok(()) } else { Err(wrong.join("\n")) }
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
    wrong.extend(missing.map(|name| format!("{name} is missing from the table of crates")));
    let mut below = BTreeSet::new();
    for one in declared {
        match found.get(&one.name) {
            None => wrong.push(format!("{} stands in the table of crates and nowhere else", one.name)),
            Some(uses) if *uses != one.uses => {
                wrong.push(format!("{} uses {uses:?}, and by the table of crates {:?}", one.name, one.uses));
            }
            Some(uses) => {
                let above = uses.iter().filter(|used| !below.contains(*used));
                wrong.extend(
                    above.map(|used| format!("{} uses {used}, which does not stand above it in the table", one.name)),
                );
            }
        }
        below.insert(one.name.clone());
    }
    wrong
}

fn wrong_levels(folder: &str, levels: &[Vec<String>], uses: &Uses) -> Vec<String> {
    let mut wrong = Vec::new();
    let level = |name: &str| levels.iter().position(|level| level.iter().any(|known| known == name));
    for (name, used) in uses {
        let Some(own) = level(name) else {
            wrong.push(format!("{folder}: `{name}` has no place in the table of layers"));
            continue;
        };
        for (other, places) in used.iter().filter(|(other, _)| level(other).is_some_and(|above| above > own)) {
            let place = places.first().map_or("", String::as_str);
            wrong.push(format!("{folder}: `{name}` uses `{other}`, which stands above it: {place}"));
        }
    }
    let gone = levels.iter().flatten().filter(|name| !uses.contains_key(*name));
    wrong.extend(gone.map(|name| format!("{folder}: `{name}` stands in the table of layers and is no module")));
    wrong
}

/// The rows of the table whose head begins with these cells, split into cells.
fn table<'t>(text: &'t str, head: &[&str]) -> Result<Vec<Vec<&'t str>>, String> {
    let cells = |line: &'t str| -> Vec<&'t str> { line.trim().trim_matches('|').split('|').map(str::trim).collect() };
    let mut lines = text.lines().skip_while(|line| !line.starts_with('|') || !cells(line).starts_with(head));
    lines.next().ok_or_else(|| format!("ARCHITECTURE.md has no table with the columns {head:?}"))?;
    Ok(lines.skip(1).take_while(|line| line.starts_with('|')).map(cells).collect())
}

/// The words in backticks.
fn quoted(text: &str) -> impl Iterator<Item = String> {
    text.split('`').skip(1).step_by(2).map(str::to_owned)
}

fn crates(text: &str) -> Result<Vec<Crate>, String> {
    let rows = table(text, &["Crate", "Folder", "Uses"])?;
    let row = |cells: Vec<&str>| match cells[..] {
        [name, folder, uses, ..] => Ok(Crate {
            name: quoted(name).next().ok_or("a crate without a name")?,
            folder: quoted(folder).next().ok_or("a crate without a folder")?,
            uses: quoted(uses).collect(),
        }),
        _ => Err(format!("{cells:?} is no row of the table of crates")),
    };
    rows.into_iter().map(row).collect()
}

/// The levels of each crate of the second table, by the crate's folder.
fn levels(text: &str) -> Result<BTreeMap<String, Vec<Vec<String>>>, String> {
    let rows = table(text, &["Crate", "From below"])?;
    let row = |cells: Vec<&str>| {
        let name = quoted(cells[0]).next().ok_or("a row without a crate")?;
        let levels = cells.get(1).into_iter().flat_map(|cell| cell.split(';')).map(|level| quoted(level).collect());
        Ok((name, levels.collect()))
    };
    rows.into_iter().map(row).collect()
}

/// Our own crates that are built into the tool, its tests and xtask, with those that each uses, its tests left out.
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
    fn crates_and_modules_use_what_stands_below_them_as_the_architecture_says() {
        run().unwrap_or_else(|wrong| panic!("ARCHITECTURE.md and the code differ:\n{wrong}"));
    }

    const TEXT: &str = "\
| Crate | Folder | Uses | Role |
|---|---|---|---|
| `low` | `crates/low` | | the ground |
| `high` | `crates/high` | `low` | the house |

| Crate | From below |
|---|---|
| `high` | `words` and `numbers`; then `text` (of both) |
";

    fn set(names: &[&str]) -> BTreeSet<String> {
        names.iter().map(|name| (*name).to_owned()).collect()
    }

    #[test]
    fn a_crate_that_uses_another_than_the_table_says_is_told() {
        let declared = crates(TEXT).expect("a table");
        let found = |low: &[&str], high: &[&str]| {
            BTreeMap::from([("low".to_owned(), set(low)), ("high".to_owned(), set(high))])
        };
        assert_eq!(wrong_crates(&declared, &found(&[], &["low"])), [""; 0]);
        assert_eq!(wrong_crates(&declared, &found(&["high"], &["low"])).len(), 1);
        assert_eq!(wrong_crates(&declared, &found(&[], &[])).len(), 1);
        assert_eq!(wrong_crates(&declared[..1], &found(&[], &["low"])), ["high is missing from the table of crates"]);
        let upward = [Crate { name: "low".into(), folder: String::new(), uses: set(&["high"]) }];
        let wrong = wrong_crates(&upward, &BTreeMap::from([("low".to_owned(), set(&["high"]))]));
        assert_eq!(wrong, ["low uses high, which does not stand above it in the table"]);
        assert!(crates("no table").is_err());
    }

    #[test]
    fn a_module_that_uses_one_above_it_is_told() {
        let levels = &levels(TEXT).expect("a table")["high"];
        assert_eq!(levels.iter().map(Vec::len).collect::<Vec<_>>(), [2, 1]);
        let uses = |text: &str, words: &str| {
            let mut modules = Modules::default();
            for (name, source) in [("text", text), ("words", words), ("numbers", "")] {
                modules.add(vec![name.to_owned()], source);
            }
            modules.uses().remove(&Vec::new()).expect("modules")
        };
        assert_eq!(wrong_levels("high", levels, &uses("use crate::words;", "use crate::numbers;")), [""; 0]);
        let upward = wrong_levels("high", levels, &uses("", "use crate::text;"));
        assert_eq!(upward, ["high: `words` uses `text`, which stands above it: words names crate::text"]);
        let more = [levels.clone(), vec![vec!["gone".to_owned()]]].concat();
        assert_eq!(
            wrong_levels("high", &more, &uses("", "")),
            ["high: `gone` stands in the table of layers and is no module"]
        );
        assert_eq!(
            wrong_levels("high", &levels[..1], &uses("", "")),
            ["high: `text` has no place in the table of layers"]
        );
    }
}
