//! Methods of other assemblies that do not return. They are searched for in the files next to the
//! calling assembly and in the framework.

use std::collections::{BTreeSet, HashMap, HashSet};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use clr_metadata::{Assembly, Files, MethodKey, Table};

use crate::options::PlanOptions;

/// Maximum number of assemblies that forward a type in turn.
const MOST_FORWARDS: usize = 8;

/// Facts about a referenced assembly.
#[derive(Debug, Default)]
struct Library {
    /// Methods that do not return.
    no_return: HashSet<MethodKey>,
    /// Names of forwarded types, and the assemblies that they are forwarded to.
    forwards: HashMap<String, String>,
}

impl Library {
    fn read(assembly: &Assembly, options: &PlanOptions) -> Self {
        let forwards = assembly.forwarded_types().map(|(name, to)| (name, to.to_owned())).collect();
        Self {
            no_return: no_return(assembly, options).filter_map(|token| assembly.method_key(token)).collect(),
            forwards,
        }
    }
}

/// Tokens of an assembly's own methods that do not return.
fn no_return(assembly: &Assembly, options: &PlanOptions) -> impl Iterator<Item = u32> {
    let marked = assembly.with_attributes(|attribute| options.is_of_no_return(attribute));
    marked.into_iter().filter(|token| Table((token >> 24) as u8) == Table::METHOD_DEF)
}

/// The assemblies read so far, by path.
#[derive(Debug, Default)]
pub(crate) struct Libraries {
    read: HashMap<PathBuf, Option<Arc<Library>>>,
}

impl Libraries {
    /// Tokens by which the assembly in `folder` refers to methods that do not return.
    pub(crate) fn no_return(
        &mut self,
        assembly: &Assembly,
        options: &PlanOptions,
        folders: &[PathBuf],
        files: &mut Files,
    ) -> HashSet<u32> {
        if !options.needs_framework() {
            return HashSet::new();
        }
        let own = Arc::new(Library::read(assembly, options));
        let mut found: HashSet<u32> = no_return(assembly, options).collect();
        for row in 1..=assembly.count(Table::MEMBER_REF) {
            let token = Table::MEMBER_REF.token(row);
            let library = match assembly.assembly_of_member(token) {
                Some((name, of_type)) => self.having(name, &of_type, options, folders, files),
                None => Some(Arc::clone(&own)),
            };
            let Some(library) = library.filter(|library| !library.no_return.is_empty()) else { continue };
            if assembly.method_key(token).is_some_and(|key| library.no_return.contains(&key)) {
                found.insert(token);
            }
        }
        found
    }

    /// The assembly that defines a type; others may forward it.
    fn having(
        &mut self,
        name: &str,
        of_type: &str,
        options: &PlanOptions,
        folders: &[PathBuf],
        files: &mut Files,
    ) -> Option<Arc<Library>> {
        let mut library = self.library(name, options, folders, files)?;
        for _ in 0..MOST_FORWARDS {
            let Some(next) = library.forwards.get(of_type) else { return Some(library) };
            library = self.library(next, options, folders, files)?;
        }
        None
    }

    /// The first assembly with this name in these folders.
    fn library(
        &mut self,
        name: &str,
        options: &PlanOptions,
        folders: &[PathBuf],
        files: &mut Files,
    ) -> Option<Arc<Library>> {
        // A name that leads to another folder is invalid.
        if name.contains(['/', '\0']) {
            return None;
        }
        folders.iter().find_map(|folder| {
            let path = folder.join(format!("{name}.dll"));
            let read = || {
                let assembly = Assembly::read(files.read(&path)?).ok()?;
                Some(Arc::new(Library::read(&assembly, options)))
            };
            self.read.entry(path.clone()).or_insert_with(read).clone()
        })
    }
}

/// Folders of the shared frameworks, found from the file of the core library: its own folder, and
/// those of the same version next to it.
pub(crate) fn framework_folders(core: &Path) -> Vec<PathBuf> {
    let Some(own) = core.parent() else { return Vec::new() };
    let shared = own.parent().and_then(Path::parent).filter(|shared| shared.ends_with("shared"));
    let (Some(shared), Some(version)) = (shared, own.file_name()) else { return vec![own.to_owned()] };
    let entries = std::fs::read_dir(shared).into_iter().flatten().flatten();
    let others: BTreeSet<PathBuf> =
        entries.map(|entry| entry.path().join(version)).filter(|path| path != own).collect();
    std::iter::once(own.to_owned()).chain(others).collect()
}
