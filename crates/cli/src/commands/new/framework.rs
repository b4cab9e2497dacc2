//! Finds the framework that the new crate depends on.

use std::env;
use std::fs;
use std::path::{Path, PathBuf};

use crate::errors::{Failure, shown};

/// The crate inside a checkout.
const INSIDE: &str = "crates/clr-profiler";
/// The crates that a profiler and its tests depend on. The second lies next to the first.
pub(super) const FRAMEWORK: [&str; 2] = ["clr-profiler", "clr-profiler-fake"];

/// Path of the folder of the crate `clr-profiler`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Framework(PathBuf);

impl Framework {
    /// Uses `given`, which may be a checkout or the crate's folder. If `None`, searches for a
    /// checkout around the current folder and around this program.
    ///
    /// # Errors
    /// When `given` is neither, and when no checkout is found: the crate is not published yet.
    pub(super) fn choose(given: Option<&Path>) -> Result<Self, Failure> {
        if let Some(given) = given {
            return in_folder(given).map(Self).ok_or_else(|| {
                let hint = "give the folder of a checkout of clrscope";
                Failure::new(
                    format!("{} has no clr-profiler", shown(given)),
                    format!("its Cargo.toml is neither there nor in {INSIDE} below"),
                    hint,
                )
            });
        }
        let places = [env::current_dir(), env::current_exe().and_then(fs::canonicalize)];
        let around = places.iter().flatten().find_map(|place| place.ancestors().find_map(in_folder));
        around.map(Self).ok_or_else(|| {
            let why = "it is not published yet, and neither this folder nor this program is in a checkout of clrscope";
            Failure::new("cannot find clr-profiler", why, "name a checkout: --framework DIR")
        })
    }

    /// Path of the folder.
    pub(super) fn folder(&self) -> &Path {
        &self.0
    }

    /// Returns the dependency of the crate in `crate_folder` on one of [`FRAMEWORK`]: the published
    /// version and, as long as none is published, also the path in a checkout. The path is relative
    /// if the crate lies in that checkout.
    pub(super) fn dependency(&self, package: &str, crate_folder: &Path) -> String {
        let published = env!("CARGO_PKG_VERSION");
        let Self(folder) = self;
        let path = within(folder, crate_folder).unwrap_or_else(|| folder.clone());
        let path = if package == FRAMEWORK[0] { path } else { path.with_file_name(package) };
        let path = format!("path = {}", quoted(&path.to_string_lossy()));
        // Cargo refuses a path whose crate has another version.
        if has_version(folder, published) { format!("version = \"{published}\", {path}") } else { path }
    }
}

/// The relative path from a crate in a checkout to the framework in it.
fn within(framework: &Path, crate_folder: &Path) -> Option<PathBuf> {
    let root = framework.ancestors().nth(Path::new(INSIDE).components().count())?;
    // The folder of the new crate does not exist yet.
    let parent =
        crate_folder.ancestors().skip(1).find_map(|above| fs::canonicalize(above).ok().map(|real| (above, real)));
    let (above, real) = parent?;
    let inside = real.strip_prefix(root).ok()?.join(crate_folder.strip_prefix(above).ok()?);
    let up: PathBuf = inside.components().map(|_| "..").collect();
    Some(up.join(INSIDE))
}

/// Whether the checkout of the framework has this version.
fn has_version(framework: &Path, version: &str) -> bool {
    let says = format!("version = \"{version}\"");
    let workspace = framework.ancestors().nth(Path::new(INSIDE).components().count());
    let manifests = [Some(framework), workspace].into_iter().flatten().map(|folder| folder.join("Cargo.toml"));
    manifests.filter_map(|path| fs::read_to_string(path).ok()).any(|text| text.lines().any(|line| line.trim() == says))
}

/// The crate's folder, if `folder` is that folder or a checkout.
fn in_folder(folder: &Path) -> Option<PathBuf> {
    let is_it = |folder: &Path| {
        let manifest = fs::read_to_string(folder.join("Cargo.toml")).unwrap_or_default();
        manifest.lines().any(|line| line.trim() == "name = \"clr-profiler\"")
    };
    let found = [folder.to_owned(), folder.join(INSIDE)].into_iter().find(|folder| is_it(folder))?;
    fs::canonicalize(found).ok()
}

/// Quotes a text as a basic string of TOML.
fn quoted(text: &str) -> String {
    let mut quoted = String::from("\"");
    for c in text.chars() {
        match c {
            '"' | '\\' => quoted.extend(['\\', c]),
            c if c.is_control() => quoted.push_str(&format!("\\u{:04X}", u32::from(c))),
            c => quoted.push(c),
        }
    }
    quoted + "\""
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_checkout_and_the_crate_itself_are_found_and_other_folders_are_not() {
        let here = Path::new(env!("CARGO_MANIFEST_DIR"));
        let root = here.ancestors().nth(2).expect("the repository");
        let crate_folder = fs::canonicalize(root.join(INSIDE)).expect("the crate");
        for given in [root, &root.join(INSIDE)] {
            assert_eq!(Framework::choose(Some(given)), Ok(Framework(crate_folder.clone())));
        }
        assert!(Framework::choose(Some(here)).is_err());
    }

    #[test]
    fn dependencies_are_toml() {
        let odd = Framework(PathBuf::from("/a \"b\"\\c\n"));
        let path = odd.dependency("clr-profiler", Path::new("/x"));
        assert_eq!(path, "path = \"/a \\\"b\\\"\\\\c\\u000A\"");
    }

    #[test]
    fn a_crate_in_the_checkout_names_the_framework_by_a_relative_path_and_others_by_the_whole() {
        let root = fs::canonicalize(Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")).expect("the repository");
        let framework = Framework(root.join(INSIDE));
        let version = format!("version = \"{}\", ", env!("CARGO_PKG_VERSION"));
        let inside = framework.dependency("clr-profiler", &root.join("examples/not-there/mine"));
        assert_eq!(inside, format!("{version}path = \"../../../crates/clr-profiler\""));
        let outside = framework.dependency("clr-profiler-fake", Path::new("/not-there/mine"));
        assert_eq!(outside, format!("{version}path = {:?}", root.join("crates/clr-profiler-fake")));
    }
}
