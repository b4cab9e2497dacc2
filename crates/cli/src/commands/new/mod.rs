//! `clrscope new`: creates a profiler crate from one of the repository's examples.

mod framework;
mod name;
mod template;

use std::fs;
use std::io::{self, Read};
use std::path::{self, Path, PathBuf};

pub(crate) use name::CrateName;
pub(crate) use template::{TEMPLATES, Template};

use crate::errors::{Failure, reason, shown};
use crate::terminal::say;
use framework::{FRAMEWORK, Framework};

/// Options of `new`.
#[derive(Debug)]
pub(crate) struct NewOptions {
    /// Name of the crate.
    pub(crate) name: CrateName,
    /// Template that the crate is made from.
    pub(crate) template: &'static Template,
    /// Folder of the crate; must not exist.
    pub(crate) folder: PathBuf,
    /// Folder of the framework; `None` searches around the current folder and this program.
    pub(crate) framework: Option<PathBuf>,
}

/// Creates the crate.
///
/// # Errors
/// When the folder exists or can't be written, or the framework is not at the given place.
pub(crate) fn perform(options: &NewOptions) -> Result<(), Failure> {
    let folder = path::absolute(&options.folder).map_err(|error| cannot(&options.folder, &error))?;
    if folder.symlink_metadata().is_ok() {
        let hint = "choose another name, or another folder with --path";
        return Err(Failure::new(format!("cannot make {}", shown(&options.folder)), "it exists", hint));
    }
    let framework = Framework::choose(options.framework.as_deref())?;
    let class_id = fresh_class_id().map_err(|error| cannot(&options.folder, &error))?;
    let files = template::files(
        options.template,
        &options.name,
        &class_id,
        &FRAMEWORK.map(|package| (package, framework.dependency(package, &folder))),
        stands_in_a_package(&folder),
    );
    write(&folder, &files).map_err(|error| {
        // An incomplete crate would only block the next try.
        let _ = fs::remove_dir_all(&folder);
        cannot(&options.folder, &error)
    })?;
    say(&format!(
        "clrscope: made {}, class {class_id}, with clr-profiler from {}",
        shown(&options.folder),
        shown(framework.folder())
    ));
    say(&format!("clrscope: next: cd {}; cargo test (README.md says how to run it)", shown(&options.folder)));
    Ok(())
}

fn cannot(folder: &Path, error: &io::Error) -> Failure {
    Failure::new(format!("cannot make {}", shown(folder)), reason(error), "choose another folder with --path")
}

fn write(folder: &Path, files: &[(&str, String)]) -> io::Result<()> {
    fs::create_dir_all(folder.join("src"))?;
    files.iter().try_for_each(|(name, text)| fs::write(folder.join(name), text))
}

/// Whether a package encloses the folder: it would claim the new crate for its workspace.
fn stands_in_a_package(folder: &Path) -> bool {
    folder.ancestors().skip(1).any(|above| above.join("Cargo.toml").is_file())
}

/// Returns a random class id (UUID version 4), because every profiler needs its own.
fn fresh_class_id() -> io::Result<String> {
    let mut bytes = [0_u8; 16];
    fs::File::open("/dev/urandom")?.read_exact(&mut bytes)?;
    bytes[6] = bytes[6] & 0x0f | 0x40;
    bytes[8] = bytes[8] & 0x3f | 0x80;
    let hex = |range: std::ops::Range<usize>| bytes[range].iter().map(|byte| format!("{byte:02X}")).collect::<String>();
    Ok(format!("{{{}-{}-{}-{}-{}}}", hex(0..4), hex(4..6), hex(6..8), hex(8..10), hex(10..16)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn class_ids_are_fresh_and_well_formed() {
        let [one, other] = [(); 2].map(|()| fresh_class_id().expect("random bytes"));
        assert_ne!(one, other);
        assert_eq!(crate::launch::parse_class_id(&one), Some(one.clone()));
        assert_eq!(&one[15..16], "4", "{one}");
    }
}
