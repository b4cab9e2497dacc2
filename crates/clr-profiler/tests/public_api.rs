//! The public signatures name types of this crate and of the standard library only: another crate's
//! would tie its version to ours. `sys` and `il` are the exceptions: `sys` is what lies underneath;
//! `il` is code of methods, and the framework hands on what that crate makes.

use std::path::{Path, PathBuf};

/// Words that stand for types of other crates.
const FOREIGN: [&str; 9] =
    ["windows_core", "clr_profiler_sys", "libc", "GUID", "HRESULT", "BOOL", "IUnknown", "Interface", "HSTRING"];

/// Folders and files whose public items can't be named outside the crate.
const INNER: [&str; 3] = ["src/com/", "src/os/", "src/arch/"];

/// The signatures of public items in a source: what stands between `pub` and the body, and all of a
/// public trait's head and methods. Items of `pub(crate)` and the like are none.
fn signatures(source: &str) -> Vec<String> {
    let code = source.split("#[cfg(test)]\nmod").next().unwrap_or_default();
    let mut found: Vec<String> = Vec::new();
    // A signature that goes on in the next line, and whether the lines are those of a public trait.
    let (mut open, mut in_trait) = (None::<String>, false);
    for line in code.lines().filter(|line| !line.trim_start().starts_with("//")) {
        let text = line.trim_start();
        let is_item = text.starts_with("pub ") || (in_trait && !line.starts_with("        ") && text.contains("fn "));
        let mut signature = match open.take() {
            Some(begun) => format!("{begun} {text}"),
            None if is_item => text.to_owned(),
            None => {
                in_trait &= line != "}";
                continue;
            }
        };
        in_trait |= line.starts_with("pub trait ") || line.starts_with("pub unsafe trait ");
        let end = signature.find(['{', ';']).or_else(|| is_field(&signature).then_some(signature.len()));
        match end {
            // A list of names that are exported has braces of its own.
            Some(_) if signature.starts_with("pub use") && !signature.contains(';') => open = Some(signature),
            Some(end) if !signature.starts_with("pub use") => {
                signature.truncate(end);
                found.push(signature);
            }
            Some(_) => found.push(signature),
            None => open = Some(signature),
        }
    }
    found
}

/// A field of a struct, in one line.
fn is_field(signature: &str) -> bool {
    let name = signature.trim_start_matches("pub ");
    name.ends_with(',')
        && name.split_once(':').is_some_and(|(name, _)| name.chars().all(|c| c.is_alphanumeric() || c == '_'))
}

/// The foreign word of a signature, if there is one. Fields of a tuple struct that are not public
/// don't count.
fn foreign(signature: &str) -> Option<&'static str> {
    let is_word = |c: char| c.is_alphanumeric() || c == '_';
    let shown = signature.split("pub(crate)").next().unwrap_or_default();
    if shown.starts_with("pub use clr_profiler_sys as sys") || shown.contains("struct") && shown.contains("(&'cb [") {
        return None;
    }
    let mut words = shown.split(|c| !is_word(c));
    words.find_map(|word| FOREIGN.into_iter().find(|foreign| *foreign == word))
}

fn sources(folder: &Path, into: &mut Vec<PathBuf>) {
    for entry in std::fs::read_dir(folder).expect("a folder").flatten() {
        let path = entry.path();
        if path.is_dir() {
            sources(&path, into);
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            into.push(path);
        }
    }
}

#[test]
fn no_type_of_another_crate_stands_in_a_public_signature() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut files = Vec::new();
    sources(&root.join("src"), &mut files);
    let (mut seen, mut wrong) = (0, Vec::new());
    for file in files {
        let name = file.strip_prefix(root).expect("below the crate").display().to_string();
        if INNER.iter().any(|inner| name.starts_with(inner)) {
            continue;
        }
        let source = std::fs::read_to_string(&file).expect("a source");
        for signature in signatures(&source) {
            seen += 1;
            if let Some(word) = foreign(&signature) {
                wrong.push(format!("{name}: {word} in `{signature}`"));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    assert!(seen > 400, "{seen} signatures were found");
}

#[test]
fn macros_name_no_type_of_another_crate() {
    for file in ["callbacks/table.rs", "callbacks/compose.rs", "com/export.rs"] {
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("src").join(file);
        let source = std::fs::read_to_string(path).expect("a source");
        let expanded = source.lines().filter(|line| line.contains("$crate::"));
        let wrong: Vec<_> = expanded.filter(|line| line.contains("$crate::sys")).collect();
        assert!(wrong.is_empty(), "{file}: {wrong:?}");
    }
}

#[test]
fn foreign_types_are_found_where_they_stand() {
    let source = "pub fn plain(&self) -> u32 {\n    GUID\n}\n\
                  pub(crate) fn inner() -> HRESULT {\n}\n\
                  pub fn long(\n    &self,\n    code: windows_core::HRESULT,\n) -> u32 {\n}\n\
                  pub struct Event {\n    /// About.\n    pub activity: Option<GUID>,\n    raw: GUID,\n}\n\
                  pub trait Told {\n    /// Text.\n    fn told(&self, interface: &GUID) {}\n}\n\
                  fn private() -> BOOL {}\n";
    let wrong: Vec<_> = signatures(source).iter().filter_map(|signature| foreign(signature)).collect();
    assert_eq!(wrong, ["windows_core", "GUID", "GUID"]);
}
