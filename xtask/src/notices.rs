//! `cargo xtask notices`: writes `THIRD-PARTY-NOTICES.txt`, the licences of everything that is
//! linked into the tool and into the agent inside it.
//!
//! Notices must be distributed with the program. If a crate offers several licences, the MIT text
//! is used. Code that is not linked (procedural macros, build tools, tests) is not distributed, but
//! its licence and its origin are checked too.

use std::collections::{BTreeMap, BTreeSet};
use std::env;
use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use clrscope_testkit::workspace_root;
use serde_json::Value;

/// The file's name in the root of the repository.
const NAME: &str = "THIRD-PARTY-NOTICES.txt";
/// Crates that are handed out: the tool, and the agent that it carries.
const ROOTS: [&str; 2] = ["clrscope", "clrscope-agent"];
/// The one place that crates of others come from.
const REGISTRY: &str = "registry+https://github.com/rust-lang/crates.io-index";
/// The platform that it is made for.
const PLATFORM: &str = "x86_64-unknown-linux-gnu";
/// Libraries within the page for browsers, with their licences, as the page's build leaves them.
const OF_PAGES: &str = "crates/report/src/page/built/licences.json";
/// Licences that ask for no more than to be handed on, the one that is taken first where there is a
/// choice in front.
const ALLOWED: [&str; 10] =
    ["MIT", "ISC", "BSD-3-Clause", "BSD-2-Clause", "Zlib", "0BSD", "Unlicense", "Apache-2.0", "Unicode-3.0", "OFL-1.1"];
/// Crates under a licence that asks for more, and that get it: their sources are named, and a
/// feature leaves them out.
const EXCEPTIONS: [(&str, &str); 1] = [("inferno", "CDDL-1.0")];

const HEAD: &str = "\
Third-party notices

clrscope itself is licensed under MIT or Apache-2.0, at your choice (LICENSE-MIT, LICENSE-APACHE). The program `clrscope`
and the agent inside it link the libraries below, each under the licence that follows. Their sources are at
https://crates.io/crates/NAME/VERSION, those of the libraries within the page for browsers (named `npm:NAME`) at
https://www.npmjs.com/package/NAME/v/VERSION; `npm:speedscope` is the page that `clrscope view --with speedscope` serves.
`inferno`, under the Common Development and Distribution License 1.0, draws flame graphs; it is linked as it was published, and
a build with `--no-default-features` leaves it out.

Written by `cargo xtask notices`; a test fails when it is stale.
";

/// A linked crate.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
struct Linked {
    name: String,
    version: String,
    licence: String,
    authors: String,
    folder: PathBuf,
}

/// Writes the file.
///
/// # Errors
/// A sentence, when cargo does not say what is linked, or a crate is under a licence that was not
/// agreed to.
#[expect(clippy::print_stdout, reason = "a command line tool")]
pub(crate) fn run() -> Result<(), String> {
    let metadata = metadata()?;
    let objections = objections(&metadata);
    if !objections.is_empty() {
        return Err(objections.join("\n"));
    }
    let (linked, path) = (linked(&metadata), workspace_root().join(NAME));
    fs::write(&path, notices(&linked)?).map_err(|error| format!("{}: {error}", path.display()))?;
    println!("{} crates", linked.len());
    Ok(())
}

/// Cargo's metadata of the workspace and of all that it depends on.
fn metadata() -> Result<Value, String> {
    let cargo = env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let mut command = Command::new(cargo);
    command.current_dir(workspace_root()).args([
        "metadata",
        "--locked",
        "--format-version=1",
        "--filter-platform",
        PLATFORM,
    ]);
    let output = command.output().map_err(|error| format!("cargo: {error}"))?;
    if !output.status.success() {
        return Err(String::from_utf8_lossy(&output.stderr).into_owned());
    }
    serde_json::from_slice(&output.stdout).map_err(|error| error.to_string())
}

/// Objections to crates of others, linked or not: a licence that was not agreed to, another place
/// than the registry.
fn objections(metadata: &Value) -> Vec<String> {
    let packages = metadata["packages"].as_array().into_iter().flatten();
    let of_others = packages.filter(|package| !package["source"].is_null());
    let objection = |package: &Value| {
        let one = Linked::from_package(package);
        let why = match (one.is_agreed_to(), text(&package["source"])) {
            (false, _) => format!("is under '{}', which is not among the licences agreed to", one.licence),
            (true, source) if source != REGISTRY => format!("comes from {source}"),
            _ => return None,
        };
        Some(format!("{} {} {why}", one.name, one.version))
    };
    of_others.filter_map(objection).collect()
}

/// All that is linked into what is handed out, but for our own crates, by name.
fn linked(metadata: &Value) -> Vec<Linked> {
    let by_id = |list: &Value| -> BTreeMap<String, Value> {
        list.as_array().into_iter().flatten().map(|one| (text(&one["id"]), one.clone())).collect()
    };
    let (packages, nodes) = (by_id(&metadata["packages"]), by_id(&metadata["resolve"]["nodes"]));
    let is_root = |package: &Value| ROOTS.iter().any(|root| package["name"] == *root) && package["source"].is_null();
    let mut open: Vec<String> =
        packages.iter().filter(|(_, package)| is_root(package)).map(|(id, _)| id.clone()).collect();
    let mut seen = BTreeSet::new();
    while let Some(id) = open.pop() {
        if !is_proc_macro(&packages[&id]) && seen.insert(id.clone()) {
            open.extend(
                nodes[&id]["deps"]
                    .as_array()
                    .into_iter()
                    .flatten()
                    .filter(|dep| is_normal(dep))
                    .map(|dep| text(&dep["pkg"])),
            );
        }
    }
    let of_others = seen.iter().map(|id| &packages[id]).filter(|package| !package["source"].is_null());
    let mut all: Vec<Linked> = of_others.map(Linked::from_package).collect();
    all.sort();
    all
}

fn text(value: &Value) -> String {
    value.as_str().unwrap_or_default().to_owned()
}

/// Whether a dependency is more than a tool of the build or of tests.
fn is_normal(dependency: &Value) -> bool {
    dependency["dep_kinds"].as_array().into_iter().flatten().any(|kind| kind["kind"].is_null())
}

/// The compiler loads it; nothing of it is linked.
fn is_proc_macro(package: &Value) -> bool {
    let kinds = package["targets"].as_array().into_iter().flatten().flat_map(|target| target["kind"].as_array());
    kinds.flatten().any(|kind| kind == "proc-macro")
}

impl Linked {
    fn from_package(package: &Value) -> Self {
        let manifest = PathBuf::from(text(&package["manifest_path"]));
        Self {
            name: text(&package["name"]),
            version: text(&package["version"]),
            licence: text(&package["license"]),
            authors: package["authors"].as_array().into_iter().flatten().map(text).collect::<Vec<_>>().join(", "),
            folder: manifest.parent().unwrap_or(Path::new("")).to_owned(),
        }
    }

    /// Whether each part of the licence offers one that was agreed to.
    fn is_agreed_to(&self) -> bool {
        let is_allowed = |one: &str| ALLOWED.contains(&one.trim());
        let offers_one = |part: &str| {
            let part = part.trim().trim_start_matches('(').trim_end_matches(')');
            part.split(" OR ").flat_map(|one| one.split('/')).any(is_allowed)
        };
        self.licence.split(" AND ").all(offers_one) || self.exception().is_some()
    }

    /// The licence that was agreed to for this crate alone.
    fn exception(&self) -> Option<&'static str> {
        let excepted = EXCEPTIONS.iter().find(|(name, licence)| *name == self.name && *licence == self.licence);
        excepted.map(|(_, licence)| *licence)
    }

    /// The licence it is used under.
    fn taken(&self) -> Result<&str, String> {
        let alternatives = || self.licence.split(" OR ").flat_map(|part| part.split('/')).map(str::trim);
        let allowed = ALLOWED.iter().find(|wanted| alternatives().any(|one| one == **wanted)).copied();
        // Several licences for several parts are taken together.
        let together = || self.licence.split(" AND ").all(|part| ALLOWED.contains(&part));
        allowed.or(self.exception()).or_else(|| together().then_some(self.licence.as_str())).ok_or_else(|| {
            format!(
                "{} {} is under '{}', which is not among the licences agreed to",
                self.name, self.version, self.licence
            )
        })
    }

    /// The texts that come with it under the licence that is taken, those of libraries within it
    /// included.
    fn texts(&self) -> Result<Vec<String>, String> {
        let taken = self.taken()?;
        let mut files = licence_files(&self.folder);
        let named_so = |path: &PathBuf| {
            file_name(path).contains(taken.split('-').next().unwrap_or(taken).to_ascii_uppercase().as_str())
        };
        if files.iter().any(named_so) {
            files.retain(|path| named_so(path) || file_name(path).starts_with("NOTICE"));
        }
        // Of a library in another language that offers two, the one that is called so is the one
        // that is taken.
        let within = fs::read_dir(&self.folder).into_iter().flatten().flatten().map(|entry| entry.path());
        let of_library = within.filter(|path| path.is_dir()).flat_map(|folder| licence_files(&folder));
        files.extend(of_library.filter(|path| !file_name(path).starts_with("COPYING")));
        files
            .iter()
            .map(|file| fs::read_to_string(file).map_err(|error| format!("{}: {error}", file.display())))
            .collect()
    }
}

fn file_name(path: &Path) -> String {
    path.file_name().unwrap_or_default().to_string_lossy().to_ascii_uppercase()
}

/// Files that by their name are licences or notices, in the order of their names.
fn licence_files(folder: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten().map(|entry| entry.path());
    let is_one = |path: &PathBuf| {
        ["LICENSE", "LICENCE", "COPYING", "UNLICENSE", "NOTICE"].iter().any(|start| file_name(path).starts_with(start))
    };
    let mut files: Vec<_> = entries.filter(|path| path.is_file() && is_one(path)).collect();
    files.sort();
    files
}

/// The libraries within the page for browsers.
fn of_pages() -> Result<Vec<Value>, String> {
    let path = workspace_root().join(OF_PAGES);
    let found = fs::read(&path).map_err(|error| format!("{}: {error}", path.display()))?;
    serde_json::from_slice(&found).map_err(|error| error.to_string())
}

/// The page: a list of the crates, then each text once, under the names of those that have it.
fn notices(linked: &[Linked]) -> Result<String, String> {
    let mut page = HEAD.to_owned();
    let mut texts: BTreeMap<String, Vec<String>> = BTreeMap::new();
    page.push('\n');
    for one in linked {
        let (named, taken) = (format!("{} {}", one.name, one.version), one.taken()?);
        let _ = writeln!(page, "  {named:<32} {taken}");
        let found = one.texts()?;
        if found.is_empty() {
            let text = format!("Copyright {}\n\n(The package has no text of its licence, {taken}.)", one.authors);
            texts.entry(text).or_default().push(named.clone());
        }
        for text in found {
            let text: Vec<&str> = text.lines().map(str::trim_end).collect();
            texts.entry(text.join("\n").trim_matches('\n').to_owned()).or_default().push(named.clone());
        }
    }
    for one in of_pages()? {
        let [name, version, licence, text] = ["name", "version", "licence", "text"].map(|key| text(&one[key]));
        if !ALLOWED.contains(&licence.as_str()) {
            return Err(format!("{name} {version} is under '{licence}', which is not among the licences agreed to"));
        }
        let named = format!("npm:{name} {version}");
        let _ = writeln!(page, "  {named:<32} {licence}");
        let lines: Vec<&str> = text.lines().map(str::trim_end).collect();
        texts.entry(lines.join("\n").trim_matches('\n').to_owned()).or_default().push(named);
    }
    let mut texts: Vec<_> = texts.into_iter().map(|(text, names)| (names.join(", "), text)).collect();
    texts.sort();
    for (names, text) in texts {
        let _ = write!(page, "\n{}\n{names}\n\n{text}\n", "=".repeat(80));
    }
    Ok(page)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_notices_are_those_of_what_is_linked() {
        let committed = fs::read_to_string(workspace_root().join(NAME)).unwrap_or_default();
        let now = notices(&linked(&metadata().expect("cargo tells"))).expect("licences that are agreed to");
        assert!(committed == now, "run `cargo xtask notices`");
    }

    #[test]
    fn every_crate_of_others_is_under_a_licence_agreed_to_and_comes_from_the_registry() {
        assert_eq!(objections(&metadata().expect("cargo tells")), [""; 0]);
    }

    #[test]
    fn a_strange_licence_and_a_strange_place_are_objected_to() {
        let one = |licence: &str, source: &str| {
            let package = serde_json::json!({
                "name": "some", "version": "1.0.0", "license": licence, "source": source, "manifest_path": "/Cargo.toml",
            });
            objections(&serde_json::json!({ "packages": [package] })).concat()
        };
        for agreed in ["MIT", "Apache-2.0 / MIT", "(MIT OR Apache-2.0) AND Unicode-3.0", "GPL-3.0 OR MIT"] {
            assert_eq!(one(agreed, REGISTRY), "", "{agreed}");
        }
        for strange in ["GPL-3.0", "", "MIT AND GPL-3.0", "(MIT OR Apache-2.0) AND OpenSSL", "CDDL-1.0"] {
            assert!(one(strange, REGISTRY).contains("licences agreed to"), "{strange}");
        }
        let place = "git+https://example.org/some";
        assert_eq!(one("MIT", place), format!("some 1.0.0 comes from {place}"));
    }

    #[test]
    fn a_licence_that_nobody_agreed_to_is_refused() {
        let under = |licence: &str| Linked {
            name: "some".into(),
            version: "1.0.0".into(),
            licence: licence.into(),
            authors: String::new(),
            folder: PathBuf::new(),
        };
        assert_eq!(under("Apache-2.0 OR MIT").taken(), Ok("MIT"));
        assert_eq!(under("Apache-2.0/MIT").taken(), Ok("MIT"));
        assert_eq!(under("Apache-2.0 WITH LLVM-exception OR Apache-2.0").taken(), Ok("Apache-2.0"));
        for strange in ["GPL-3.0", "CDDL-1.0", "", "MIT AND GPL-3.0"] {
            assert!(under(strange).taken().is_err(), "{strange}");
        }
    }
}
