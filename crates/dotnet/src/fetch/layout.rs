//! Assembles a .NET root folder from two packages, one with the runtime and one with the host.

use std::collections::BTreeMap;
use std::fmt;
use std::fs::{self, File, Permissions};
use std::io::{self, BufReader};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use serde_json::{Map, Value, json};
use zip::ZipArchive;
use zip::result::ZipError;

use crate::Version;
use crate::find::FRAMEWORK;

/// Path of the runtime in its package, inside a self-contained program.
const PROGRAM: &str = "artifacts_keyring/plugins/plugins/netcore/CredentialProvider.Microsoft";
const DEPENDENCIES: &str = "CredentialProvider.Microsoft.deps.json";
const PLATFORM: &str = ".NETCoreApp,Version=v8.0/linux-x64";

/// Files of the host's package: source and target path.
const HOST_FILES: [(&str, &str); 3] = [
    ("dotnetcore2/bin/dotnet", "dotnet"),
    ("dotnetcore2/bin/LICENSE.txt", "LICENSE.txt"),
    ("dotnetcore2/bin/ThirdPartyNotices.txt", "ThirdPartyNotices.txt"),
];

/// Reason why the packages could not be laid out.
#[derive(Debug)]
pub(super) enum LayoutError {
    /// A package is no zip file or lacks a file.
    Zip(String, ZipError),
    /// The list of the runtime's files does not read as expected.
    Dependencies(String),
    /// A file cannot be written.
    Io(PathBuf, io::Error),
}

impl fmt::Display for LayoutError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Zip(file, error) => write!(f, "{file}: {error}"),
            Self::Dependencies(problem) => write!(f, "{DEPENDENCIES}: {problem}"),
            Self::Io(path, error) => write!(f, "{}: {error}", path.display()),
        }
    }
}

type Wheel = ZipArchive<BufReader<File>>;

/// Writes `root` so that it works as `DOTNET_ROOT`.
pub(super) fn lay_out(
    root: &Path,
    runtime_wheel: &Path,
    host_wheel: &Path,
    version: &Version,
) -> Result<(), LayoutError> {
    let mut runtime = open(runtime_wheel)?;
    let mut pack = RuntimePack::read(&text(&mut runtime, &format!("{PROGRAM}/{DEPENDENCIES}"))?, version)?;
    pack.keep(|name| runtime.index_for_name(&format!("{PROGRAM}/{name}")).is_some());
    let shared = root.join("shared").join(FRAMEWORK).join(version.to_string());
    for name in pack.files() {
        extract(&mut runtime, &format!("{PROGRAM}/{name}"), &shared.join(name))?;
    }
    write(&shared.join(format!("{FRAMEWORK}.deps.json")), &pack.dependencies(version))?;
    let resolver = root.join("host/fxr").join(version.to_string()).join("libhostfxr.so");
    extract(&mut runtime, &format!("{PROGRAM}/libhostfxr.so"), &resolver)?;
    let mut host = open(host_wheel)?;
    for (from, to) in HOST_FILES {
        extract(&mut host, from, &root.join(to))?;
    }
    make_executable(&root.join("dotnet"))?;
    make_executable(&shared.join("createdump"))
}

/// The runtime's entry in the file list of a self-contained program.
struct RuntimePack {
    runtime: Map<String, Value>,
    native: Map<String, Value>,
}

impl RuntimePack {
    fn read(text: &str, version: &Version) -> Result<Self, LayoutError> {
        let problem = |what: &str| LayoutError::Dependencies(what.to_owned());
        let list: Value = serde_json::from_str(text).map_err(|error| problem(&error.to_string()))?;
        let name = format!("runtimepack.{FRAMEWORK}.Runtime.linux-x64/{version}");
        let pack = &list["targets"][PLATFORM][&name];
        let part =
            |key: &str| pack[key].as_object().cloned().ok_or_else(|| problem(&format!("no {key} files of {name}")));
        let pack = Self { runtime: part("runtime")?, native: part("native")? };
        let odd = pack.files().find(|file| !is_plain_name(file)).map(str::to_owned);
        odd.map_or(Ok(pack), |file| Err(problem(&format!("{file} is not a file name"))))
    }

    fn files(&self) -> impl Iterator<Item = &str> {
        self.runtime.keys().chain(self.native.keys()).map(String::as_str)
    }

    /// Keeps only the files that the package contains: its makers left out a tracing library that
    /// the list still names.
    fn keep(&mut self, is_there: impl Fn(&str) -> bool) {
        self.runtime.retain(|name, _| is_there(name));
        self.native.retain(|name, _| is_there(name));
    }

    /// `Microsoft.NETCore.App.deps.json` in the form that an installed runtime has.
    fn dependencies(&self, version: &Version) -> String {
        let name = format!("{FRAMEWORK}.Runtime.linux-x64/{version}");
        let pack = json!({ "runtime": self.runtime, "native": self.native });
        let library = json!({ "type": "package", "serviceable": true, "sha512": "" });
        let targets = BTreeMap::from([(".NETCoreApp,Version=v8.0", json!({})), (PLATFORM, json!({ &name: pack }))]);
        let list = json!({
            "runtimeTarget": { "name": PLATFORM, "signature": "" },
            "compilationOptions": {},
            "targets": targets,
            "libraries": { &name: library },
        });
        format!("{list:#}\n")
    }
}

/// A single path component, so that extracted files can't leave their folder.
fn is_plain_name(name: &str) -> bool {
    !name.is_empty() && name != "." && name != ".." && !name.contains(['/', '\\', '\0'])
}

fn open(path: &Path) -> Result<Wheel, LayoutError> {
    let file = File::open(path).map_err(|error| LayoutError::Io(path.to_path_buf(), error))?;
    ZipArchive::new(BufReader::new(file)).map_err(|error| LayoutError::Zip(path.display().to_string(), error))
}

fn text(wheel: &mut Wheel, name: &str) -> Result<String, LayoutError> {
    let entry = wheel.by_name(name).map_err(|error| LayoutError::Zip(name.to_owned(), error))?;
    io::read_to_string(entry).map_err(|error| LayoutError::Zip(name.to_owned(), error.into()))
}

fn extract(wheel: &mut Wheel, name: &str, to: &Path) -> Result<(), LayoutError> {
    let mut entry = wheel.by_name(name).map_err(|error| LayoutError::Zip(name.to_owned(), error))?;
    make_parent(to)?;
    let copied = File::create(to).and_then(|mut file| io::copy(&mut entry, &mut file));
    copied.map(drop).map_err(|error| LayoutError::Io(to.to_path_buf(), error))
}

fn write(path: &Path, text: &str) -> Result<(), LayoutError> {
    make_parent(path)?;
    fs::write(path, text).map_err(|error| LayoutError::Io(path.to_path_buf(), error))
}

fn make_parent(path: &Path) -> Result<(), LayoutError> {
    let parent = path.parent().unwrap_or(path);
    fs::create_dir_all(parent).map_err(|error| LayoutError::Io(parent.to_path_buf(), error))
}

fn make_executable(path: &Path) -> Result<(), LayoutError> {
    fs::set_permissions(path, Permissions::from_mode(0o755)).map_err(|error| LayoutError::Io(path.to_path_buf(), error))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fetch::VERSION;
    use crate::find::{Install, Origin};
    use std::io::Write;
    use zip::ZipWriter;
    use zip::write::SimpleFileOptions;

    fn make_wheel(path: &Path, files: &[(&str, &str)]) {
        let mut zip = ZipWriter::new(File::create(path).expect("create"));
        for (name, text) in files {
            zip.start_file(*name, SimpleFileOptions::default()).expect("start");
            zip.write_all(text.as_bytes()).expect("write");
        }
        zip.finish().expect("finish");
    }

    fn list(extra_native: &str) -> String {
        format!(
            r#"{{"targets": {{"{PLATFORM}": {{
                "runtimepack.Microsoft.NETCore.App.Runtime.linux-x64/8.0.15": {{
                    "runtime": {{"System.Runtime.dll": {{"assemblyVersion": "8.0.0.0"}}}},
                    "native": {{"libcoreclr.so": {{"fileVersion": "0.0.0.0"}}, "createdump": {{}}, "libtrace.so": {{}}{extra_native}}}
                }},
                "Other.Package/1.0.0": {{"runtime": {{"lib/Other.dll": {{}}}}}}
            }}}}}}"#
        )
    }

    fn wheels(folder: &Path, list: &str) -> (PathBuf, PathBuf) {
        let inside = |name: &str| format!("{PROGRAM}/{name}");
        let names = [DEPENDENCIES, "System.Runtime.dll", "libcoreclr.so", "createdump", "libhostfxr.so", "Other.dll"]
            .map(inside);
        let texts = [list, "runtime", "coreclr", "dump", "hostfxr", "other"];
        let files: Vec<(&str, &str)> = names.iter().map(String::as_str).zip(texts).collect();
        make_wheel(&folder.join("runtime.whl"), &files);
        make_wheel(&folder.join("host.whl"), &HOST_FILES.map(|(from, to)| (from, to)));
        (folder.join("runtime.whl"), folder.join("host.whl"))
    }

    #[test]
    fn makes_a_root_that_is_found_as_an_installation() {
        let temp = tempfile::tempdir().expect("temp dir");
        let (runtime, host) = wheels(temp.path(), &list(""));
        let root = temp.path().join("root");
        lay_out(&root, &runtime, &host, &VERSION).expect("laid out");

        let install = Install::in_folder(&root, Origin::Cache).expect("an installation");
        assert_eq!(install.runtimes, [VERSION]);
        let shared = install.runtime_folder(&VERSION);
        assert!(!shared.join("Other.dll").exists(), "only the runtime's own files");
        assert!(root.join("host/fxr/8.0.15/libhostfxr.so").is_file());
        let text = fs::read_to_string(shared.join("Microsoft.NETCore.App.deps.json")).expect("written");
        let written: Value = serde_json::from_str(&text).expect("JSON");
        let pack = &written["targets"][PLATFORM]["Microsoft.NETCore.App.Runtime.linux-x64/8.0.15"];
        assert_eq!(pack["runtime"]["System.Runtime.dll"]["assemblyVersion"], "8.0.0.0");
        assert_eq!(pack["native"]["libcoreclr.so"]["fileVersion"], "0.0.0.0");
        assert_eq!(pack["native"].get("libtrace.so"), None, "listed, but not in the package");
    }

    #[test]
    fn a_list_that_names_paths_is_refused() {
        let temp = tempfile::tempdir().expect("temp dir");
        let (runtime, host) = wheels(temp.path(), &list(r#", "../../evil": {}"#));
        let error = lay_out(&temp.path().join("root"), &runtime, &host, &VERSION).expect_err("refused");
        assert!(error.to_string().contains("is not a file name"), "{error}");
        assert!(!temp.path().join("root").exists());
    }

    #[test]
    fn a_list_without_the_runtime_is_refused() {
        let temp = tempfile::tempdir().expect("temp dir");
        let (runtime, host) = wheels(temp.path(), "{}");
        let error = lay_out(&temp.path().join("root"), &runtime, &host, &VERSION).expect_err("refused");
        assert!(error.to_string().contains("no runtime files"), "{error}");
    }
}
