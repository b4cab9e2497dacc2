//! Where the new crate takes the framework from.

use std::env;
use std::fmt;
use std::fs;
use std::path::{Path, PathBuf};

use crate::errors::{Failure, shown};

/// The crate inside a checkout.
const INSIDE: &str = "crates/clr-profiler";

/// A dependency on `clr-profiler`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Framework {
    /// The sources in this folder.
    Folder(PathBuf),
    /// A published version.
    Version(String),
}

impl Framework {
    /// `given`, a checkout or the crate's folder; else the checkout around the current folder or this program; else the
    /// version that belongs to this program.
    ///
    /// # Errors
    /// When what was given is neither.
    pub(super) fn choose(given: Option<&Path>) -> Result<Self, Failure> {
        if let Some(given) = given {
            return in_folder(given).map(Self::Folder).ok_or_else(|| {
                let hint = "give the folder of a checkout of clrscope, or leave --framework out";
                Failure::new(
                    format!("{} has no clr-profiler", shown(given)),
                    format!("neither there nor in {INSIDE} below is its Cargo.toml"),
                    hint,
                )
            });
        }
        let places = [env::current_dir(), env::current_exe().and_then(fs::canonicalize)];
        let around = places.iter().flatten().find_map(|place| place.ancestors().find_map(in_folder));
        Ok(around.map_or_else(|| Self::Version(env!("CARGO_PKG_VERSION").to_owned()), Self::Folder))
    }

    /// The right side of a dependency, with more keys of the table.
    pub(super) fn dependency(&self, more: &str) -> String {
        match self {
            Self::Folder(folder) => format!("{{ path = {}{more} }}", quoted(&folder.to_string_lossy())),
            Self::Version(version) => format!("{{ version = \"{version}\"{more} }}"),
        }
    }
}

impl fmt::Display for Framework {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Folder(folder) => write!(f, "from {}", shown(folder)),
            Self::Version(version) => write!(f, "{version} by version (--framework DIR takes a checkout)"),
        }
    }
}

/// The crate's folder, if `folder` is it or a checkout that has it.
fn in_folder(folder: &Path) -> Option<PathBuf> {
    let is_it = |folder: &Path| {
        let manifest = fs::read_to_string(folder.join("Cargo.toml")).unwrap_or_default();
        manifest.lines().any(|line| line.trim() == "name = \"clr-profiler\"")
    };
    let found = [folder.to_owned(), folder.join(INSIDE)].into_iter().find(|folder| is_it(folder))?;
    fs::canonicalize(found).ok()
}

/// A basic string of TOML.
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
            assert_eq!(Framework::choose(Some(given)), Ok(Framework::Folder(crate_folder.clone())));
        }
        assert!(Framework::choose(Some(here)).is_err());
    }

    #[test]
    fn dependencies_are_toml() {
        let odd = Framework::Folder(PathBuf::from("/a \"b\"\\c\n"));
        assert_eq!(odd.dependency(""), "{ path = \"/a \\\"b\\\"\\\\c\\u000A\" }");
        let version = Framework::Version("1.2.3".to_owned());
        assert_eq!(version.dependency(", x = 1"), "{ version = \"1.2.3\", x = 1 }");
    }
}
