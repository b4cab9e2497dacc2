//! A system with musl, as an Alpine container has it, and programs for it.
//!
//! Its files come from packages by name: the C library from Debian 13, the libraries of the C++
//! compiler from a wheel of PyPI, and a runtime from a package of npm, which is a program in a
//! single file. The program's host, with the runtime in it, gets the fixture and the framework of
//! the same major version as its files instead of its own: the SDK's bundler would do the same with
//! the host for musl, which is in no package here.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::Command;

use clrscope_testkit::{Runtime, debian_package, runtimes, target_folder};
use serde_json::{Map, Value, json};

use super::finish;

/// Debian's suite with musl 1.2.5.
const SUITE: &str = "trixie";
/// A wheel with the libraries of the C++ compiler.
const WHEEL: &str = "greenlet==3.5.6";
/// A program in a single file, .NET 9.
const PROGRAM: &str = "@vscode/vsce-sign-alpine-x64@2.0.6";
/// Major version of the runtime in it.
const MAJOR: u32 = 9;
/// Where files begin in a bundle, as the bundler lays out modules of x64.
const ALIGNED: usize = 4096;
/// The mark in the host's code; the offset of the list of files stands before it.
const MARK: [u8; 32] = [
    0x8b, 0x12, 0x02, 0xb9, 0x6a, 0x61, 0x20, 0x38, 0x72, 0x7b, 0x93, 0x02, 0x14, 0xd7, 0xa0, 0x32, 0x13, 0xf5, 0xb9,
    0xe6, 0xef, 0xae, 0x33, 0x18, 0xee, 0x3b, 0x2d, 0xce, 0x24, 0xb3, 0x6a, 0xae,
];

/// The root folder of the system.
pub(super) struct MuslSystem {
    pub(super) folder: PathBuf,
    framework: &'static Runtime,
    host: Vec<u8>,
    /// Name of the program that the host is for.
    named: Vec<u8>,
}

impl MuslSystem {
    /// Fetches the missing files and fills the root.
    pub(super) fn prepare() -> Result<Self, String> {
        let framework = runtimes().iter().find(|runtime| runtime.major() == MAJOR);
        let framework = framework.ok_or_else(|| format!("there is no framework of .NET {MAJOR} here"))?;
        let parts = target_folder().join("roots/musl-parts");
        let folder = target_folder().join("roots/musl");
        fs::create_dir_all(&parts).map_err(|error| error.to_string())?;
        let library = debian_package("musl", Some(SUITE), &parts)?.join("usr/lib/x86_64-linux-musl/libc.so");
        let wheel = wheel(&parts)?;
        let program = npm_program(&parts)?;
        for inner in ["lib", "usr/lib", "bin", "proc", "tmp", "dev", "work", "opt/clrscope", "programs"] {
            fs::create_dir_all(folder.join(inner)).map_err(|error| error.to_string())?;
        }
        let put = |from: &Path, to: &str| {
            let to = folder.join(to);
            drop(fs::remove_file(&to));
            fs::copy(from, &to).map_err(|error| format!("{}: {error}", from.display()))
        };
        put(&library, "lib/ld-musl-x86_64.so.1")?;
        for file in fs::read_dir(&wheel).map_err(|error| error.to_string())?.flatten() {
            let name = file.file_name().to_string_lossy().into_owned();
            // The wheel's libraries have the hash of their bytes in their names.
            let plain = ["libstdc++.so.6", "libgcc_s.so.1"];
            let Some(plain) = plain.iter().find(|plain| name.starts_with(plain.split('.').next().unwrap_or_default()))
            else {
                continue;
            };
            put(&file.path(), &format!("usr/lib/{plain}"))?;
            let hashed = folder.join("usr/lib").join(&name);
            drop(fs::remove_file(&hashed));
            symlink(plain, &hashed).map_err(|error| error.to_string())?;
        }
        let bytes = fs::read(&program).map_err(|error| error.to_string())?;
        let list = Bundled::of(&bytes).ok_or_else(|| format!("{PROGRAM} is no program in a single file"))?;
        let named = list.program.clone().ok_or_else(|| format!("{PROGRAM} has no runtime configuration"))?;
        Ok(Self { folder, framework, host: bytes[..list.first].to_vec(), named })
    }

    /// Writes a fixture as a single-file program. Returns the program's path in the system.
    pub(super) fn program(&self, fixture: &str) -> Result<String, String> {
        let inside = format!("programs/{fixture}");
        let program = self.folder.join(&inside);
        let version = self.framework.version.to_string();
        let shared = self.framework.root.join("shared/Microsoft.NETCore.App").join(&version);
        let mut files = vec![(format!("{fixture}.dll"), clrscope_testkit::fixture(fixture))];
        let listed = fs::read_dir(&shared).map_err(|error| format!("{}: {error}", shared.display()))?;
        let modules =
            listed.flatten().map(|entry| entry.path()).filter(|path| path.extension().is_some_and(|e| e == "dll"));
        files.extend(
            modules.map(|path| (path.file_name().unwrap_or_default().to_string_lossy().into_owned(), path.clone())),
        );
        files[1..].sort();
        let mut bytes = self.host.clone();
        // The host looks for the program of the name that it was made with.
        let name = format!("{fixture}.dll\0");
        let mut is_named = false;
        for at in 0..bytes.len().saturating_sub(self.named.len()) {
            if bytes[at..].starts_with(&self.named) && bytes.get(at + self.named.len()) == Some(&0) {
                let room = bytes[at..].iter().position(|&byte| byte == 0).unwrap_or_default();
                bytes[at..at + room].fill(0);
                bytes[at..at + name.len()].copy_from_slice(name.as_bytes());
                is_named = true;
            }
        }
        if !is_named {
            return Err(format!("the host does not name {}", String::from_utf8_lossy(&self.named)));
        }
        let mut list = Vec::new();
        let mut add = |bytes: &mut Vec<u8>, name: &str, kind: u8, content: &[u8]| {
            bytes.resize(bytes.len().next_multiple_of(ALIGNED), 0);
            let place = (bytes.len() as u64, content.len() as u64);
            bytes.extend_from_slice(content);
            list.extend(place.0.to_le_bytes());
            list.extend(place.1.to_le_bytes());
            list.extend(0_u64.to_le_bytes());
            list.push(kind);
            list.extend(text(name));
            place
        };
        for (name, path) in &files {
            let content = fs::read(path).map_err(|error| format!("{}: {error}", path.display()))?;
            add(&mut bytes, name, 1, &content);
        }
        let names: Vec<&str> = files.iter().map(|(name, _)| name.as_str()).collect();
        let deps = add(&mut bytes, &format!("{fixture}.deps.json"), 3, &dependencies(fixture, &version, &names[1..]));
        let config = add(&mut bytes, &format!("{fixture}.runtimeconfig.json"), 4, &configuration(&version));
        let head = bytes.len() as u64;
        for number in [6_u32, 0, files.len() as u32 + 2] {
            bytes.extend(number.to_le_bytes());
        }
        bytes.extend(text("clrscope-fixture"));
        for (offset, size) in [deps, config] {
            bytes.extend(offset.to_le_bytes());
            bytes.extend(size.to_le_bytes());
        }
        bytes.extend(0_u64.to_le_bytes());
        bytes.extend(list);
        let mark = bytes.windows(MARK.len()).position(|window| window == MARK).ok_or("no mark")?;
        bytes[mark - 8..mark].copy_from_slice(&head.to_le_bytes());
        drop(fs::remove_file(&program));
        super::program_file(&program, &bytes)?;
        Ok(format!("/{inside}"))
    }

    /// Copies the tool into the system.
    pub(super) fn install(&self, tool: &[u8]) -> Result<(), String> {
        let file = self.folder.join("bin/clrscope");
        drop(fs::remove_file(&file));
        super::program_file(&file, tool)
    }
}

/// What is in a program in a single file.
struct Bundled {
    /// Where the first file begins.
    first: usize,
    /// Name of the module that the program starts with.
    program: Option<Vec<u8>>,
}

impl Bundled {
    fn of(bytes: &[u8]) -> Option<Self> {
        let mark = bytes.windows(MARK.len()).position(|window| window == MARK)?;
        let number = |at: usize| Some(u64::from_le_bytes(bytes.get(at..at + 8)?.try_into().ok()?) as usize);
        let mut at = number(mark.checked_sub(8)?)?;
        let count = u32::from_le_bytes(bytes.get(at + 8..at + 12)?.try_into().ok()?);
        at += 12;
        at += 1 + usize::from(*bytes.get(at)?) + 40;
        let (mut first, mut program) = (usize::MAX, None);
        for _ in 0..count {
            first = first.min(number(at)?);
            at += 25;
            let length = usize::from(*bytes.get(at)?);
            let name = bytes.get(at + 1..at + 1 + length)?;
            if let Some(stem) = name.strip_suffix(b".runtimeconfig.json") {
                program = Some([stem, b".dll"].concat());
            }
            at += 1 + length;
        }
        Some(Self { first, program })
    }
}

/// A text as .NET's `BinaryWriter` writes short ones.
fn text(text: &str) -> Vec<u8> {
    assert!(text.len() < 128, "{text}");
    [&[text.len() as u8], text.as_bytes()].concat()
}

/// The list of a program's modules, as the SDK writes it for programs that bring their framework.
fn dependencies(fixture: &str, version: &str, framework: &[&str]) -> Vec<u8> {
    let pack = "runtimepack.Microsoft.NETCore.App.Runtime.linux-musl-x64";
    let target = format!(".NETCoreApp,Version=v{MAJOR}.0");
    let module = |name: &str| {
        (name.to_owned(), json!({ "assemblyVersion": format!("{MAJOR}.0.0.0"), "fileVersion": "9.0.0.0" }))
    };
    let modules: Map<String, Value> = framework.iter().map(|name| module(name)).collect();
    let document = json!({
        "runtimeTarget": { "name": format!("{target}/linux-musl-x64"), "signature": "" },
        "compilationOptions": {},
        "targets": {
            target.clone(): {},
            format!("{target}/linux-musl-x64"): {
                format!("{fixture}/1.0.0"): {
                    "dependencies": { pack: version },
                    "runtime": { format!("{fixture}.dll"): {} },
                },
                format!("{pack}/{version}"): { "runtime": modules },
            },
        },
        "libraries": {
            format!("{fixture}/1.0.0"): { "type": "project", "serviceable": false, "sha512": "" },
            format!("{pack}/{version}"): { "type": "runtimepack", "serviceable": false, "sha512": "" },
        },
    });
    document.to_string().into_bytes()
}

fn configuration(version: &str) -> Vec<u8> {
    let document = json!({ "runtimeOptions": {
        "tfm": format!("net{MAJOR}.0"),
        "includedFrameworks": [{ "name": "Microsoft.NETCore.App", "version": version }],
        "configProperties": { "System.Globalization.Invariant": true },
    } });
    document.to_string().into_bytes()
}

/// The folder of the libraries in the wheel.
fn wheel(parts: &Path) -> Result<PathBuf, String> {
    let folder = parts.join("wheel");
    let libraries = folder.join("greenlet.libs");
    if libraries.is_dir() {
        return Ok(libraries);
    }
    let download = parts.join("wheel-download");
    let mut pip = Command::new("python3");
    pip.args(["-m", "pip", "download", "--quiet", "--no-deps", "--only-binary=:all:", "--disable-pip-version-check"]);
    pip.args(["--platform", "musllinux_1_2_x86_64", "--python-version", "3.12", WHEEL, "--dest"]).arg(&download);
    finish(pip)?;
    let file = fs::read_dir(&download).map_err(|error| error.to_string())?.flatten().next();
    let mut unpack = Command::new("python3");
    unpack.args(["-m", "zipfile", "-e"]).arg(file.ok_or("pip downloaded nothing")?.path()).arg(&folder);
    finish(unpack)?;
    libraries.is_dir().then_some(libraries).ok_or_else(|| format!("{WHEEL} has no libraries in it"))
}

/// The program from npm.
fn npm_program(parts: &Path) -> Result<PathBuf, String> {
    let folder = parts.join("npm");
    let program = folder.join("package/bin/vsce-sign");
    if program.is_file() {
        return Ok(program);
    }
    fs::create_dir_all(&folder).map_err(|error| error.to_string())?;
    let mut pack = Command::new("npm");
    pack.args(["pack", "--silent", PROGRAM]).current_dir(&folder);
    let name = finish(pack)?;
    let mut unpack = Command::new("tar");
    unpack.arg("-xzf").arg(name.trim()).current_dir(&folder);
    finish(unpack)?;
    program.is_file().then_some(program).ok_or_else(|| format!("{PROGRAM} has no program where it was"))
}
