//! The tarball: tool, agent, licences and documents, in one folder.

use std::fs;

use clrscope_testkit::workspace_root;

use super::binaries::{Files, LIBRARY, Platform};
use super::entries::{Entry, gzip, tar};
use super::{VERSION, read};

/// Files in the root of the workspace that every package contains.
pub(super) const NOTICES: [&str; 4] = ["LICENSE-APACHE", "LICENSE-MIT", "THIRD-PARTY-NOTICES.txt", "CHANGELOG.md"];

/// The file name without its extension; the folder in the tarball has the same name.
pub(crate) fn name(platform: Platform) -> String {
    format!("clrscope-{VERSION}-{}", platform.name())
}

/// Returns the file name and the bytes of the tarball.
pub(super) fn make(files: &Files) -> Result<(String, Vec<u8>), String> {
    let name = name(files.platform);
    let at = |path: &str| format!("{name}/{path}");
    let mut entries = vec![
        Entry::program(at("bin/clrscope"), files.tool.clone()),
        Entry::file(at(&format!("lib/{LIBRARY}")), files.agent.clone()),
    ];
    for file in NOTICES.into_iter().chain(["README.md"]) {
        entries.push(Entry::file(at(file), read(file)?));
    }
    for document in documents()? {
        entries.push(Entry::file(at(&document), read(&document)?));
    }
    Ok((format!("{name}.tar.gz"), gzip(&tar(entries)?)?))
}

/// The documents that README leads to.
fn documents() -> Result<Vec<String>, String> {
    let folder = workspace_root().join("docs");
    let listed = fs::read_dir(&folder).map_err(|error| format!("{}: {error}", folder.display()))?;
    let files = listed.flatten().filter(|entry| entry.path().is_file());
    Ok(files.map(|entry| format!("docs/{}", entry.file_name().to_string_lossy())).collect())
}
