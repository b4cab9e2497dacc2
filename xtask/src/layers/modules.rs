//! The modules of one crate, and which module uses which.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;

use super::source::Source;

/// The path of a module in its crate; empty for the crate's root.
pub(super) type Module = Vec<String>;

/// The modules of one folder. Each has the siblings that it uses, with the places of these uses.
pub(super) type Uses = BTreeMap<String, BTreeMap<String, BTreeSet<String>>>;

/// Names are followed through so many re-exports.
const MOST_STEPS: usize = 8;

/// The modules of a crate.
#[derive(Debug, Default)]
pub(super) struct Modules {
    sources: BTreeMap<Module, Source>,
}

impl Modules {
    /// Reads the sources in a crate's folder `src`. A `main.rs` next to a `lib.rs` is a crate of
    /// its own and left out, and so are modules called `tests`.
    ///
    /// # Errors
    /// A sentence when a file can't be read.
    pub(super) fn read(folder: &Path) -> Result<Self, String> {
        let mut modules = Self::default();
        modules.read_folder(folder, &Module::new())?;
        Ok(modules)
    }

    fn read_folder(&mut self, folder: &Path, module: &Module) -> Result<(), String> {
        let cannot = |error: std::io::Error| format!("{}: {error}", folder.display());
        let has_library = folder.join("lib.rs").exists();
        for entry in fs::read_dir(folder).map_err(cannot)? {
            let path = entry.map_err(cannot)?.path();
            let stem = path.file_stem().unwrap_or_default().to_string_lossy().into_owned();
            let below = || module.iter().cloned().chain([stem.clone()]).collect();
            if path.is_dir() && stem == "tests" {
                continue;
            } else if path.is_dir() {
                self.read_folder(&path, &below())?;
            } else if path.extension().is_some_and(|extension| extension == "rs") {
                let at = match stem.as_str() {
                    "main" if has_library => continue,
                    "tests" => continue,
                    "lib" | "main" | "mod" => module.clone(),
                    _ => below(),
                };
                self.add(at, &fs::read_to_string(&path).map_err(cannot)?);
            }
        }
        Ok(())
    }

    pub(super) fn add(&mut self, module: Module, text: &str) {
        self.sources.insert(module, Source::parse(text));
    }

    /// All modules, each with its parsed source.
    pub(super) fn sources(&self) -> impl Iterator<Item = (&Module, &Source)> {
        self.sources.iter()
    }

    /// For each module that has submodules (the crate's root has the empty path): which submodule
    /// uses which.
    pub(super) fn uses(&self) -> BTreeMap<Module, Uses> {
        let mut all: BTreeMap<Module, Uses> = BTreeMap::new();
        for module in self.sources.keys().filter(|module| !module.is_empty()) {
            let (name, parent) = (module[module.len() - 1].clone(), module[..module.len() - 1].to_vec());
            all.entry(parent).or_default().entry(name).or_default();
        }
        for (module, source) in &self.sources {
            for (inline, path) in &source.paths {
                let within: Module = module.iter().chain(inline).cloned().collect();
                let Some(used) = absolute(&within, path).and_then(|path| self.resolve(&path, MOST_STEPS)) else {
                    continue;
                };
                let shared = module.iter().zip(&used).take_while(|(a, b)| a == b).count();
                if let (Some(from), Some(to)) = (module.get(shared), used.get(shared)) {
                    let siblings = all.entry(module[..shared].to_vec()).or_default();
                    let places = siblings.entry(from.clone()).or_default().entry(to.clone()).or_default();
                    places.insert(format!("{} names {}", module.join("::"), path.join("::")));
                }
            }
        }
        all
    }

    /// The module in which the item at this path stands, re-exports followed.
    fn resolve(&self, path: &[String], steps: usize) -> Option<Module> {
        let length = (0..=path.len()).rev().find(|&length| self.sources.contains_key(&path[..length]))?;
        let module = path[..length].to_vec();
        let (Some(name), Some(source)) = (path.get(length), self.sources.get(&module)) else { return Some(module) };
        if steps == 0 || source.defines.contains(name) {
            return Some(module);
        }
        let behind = |import: &Vec<String>| {
            let to = absolute(&module, import).filter(|to| *to != path[..=length]);
            // Names from another crate stand nowhere in this one.
            to.filter(|to| !to.is_empty() && self.is_known(to))
        };
        let named =
            source.imports.iter().filter(|(known_as, _)| known_as == name).find_map(|(_, import)| behind(import));
        if let Some(mut to) = named {
            to.extend_from_slice(&path[length + 1..]);
            return self.resolve(&to, steps - 1);
        }
        let all =
            source.imports.iter().filter(|(known_as, _)| known_as == "*").filter_map(|(_, import)| behind(import));
        let from = all.filter_map(|to| {
            let found = self.resolve(&[to, vec![name.clone()]].concat(), steps - 1)?;
            self.sources.get(&found)?.defines.contains(name).then_some(found)
        });
        Some(from.into_iter().next().unwrap_or(module))
    }

    /// Whether the path begins with a module of this crate, or ends at its root.
    pub(super) fn is_known(&self, path: &[String]) -> bool {
        path.len() == 1 || self.sources.contains_key(&path[..1])
    }
}

/// Converts a path as written in a module to a path from the crate's root.
pub(super) fn absolute(module: &[String], path: &[String]) -> Option<Module> {
    let mut at = match path.first()?.as_str() {
        "crate" => Module::new(),
        _ => module.to_vec(),
    };
    for name in path {
        match name.as_str() {
            "crate" | "self" => {}
            "super" => {
                at.pop()?;
            }
            _ => at.push(name.clone()),
        }
    }
    Some(at)
}

/// Circles of modules that use each other. Each circle is listed once and begins with its smallest
/// name.
pub(super) fn circles(uses: &Uses) -> Vec<Vec<String>> {
    let reaches = |from: &str| {
        let mut seen = BTreeSet::new();
        let mut left = vec![from.to_owned()];
        while let Some(at) = left.pop() {
            for next in uses.get(&at).into_iter().flat_map(BTreeMap::keys) {
                if seen.insert(next.clone()) {
                    left.push(next.clone());
                }
            }
        }
        seen
    };
    let reached: BTreeMap<&String, BTreeSet<String>> = uses.keys().map(|name| (name, reaches(name))).collect();
    let mut found: Vec<Vec<String>> = Vec::new();
    for (name, others) in reached.iter().filter(|(name, others)| others.contains(**name)) {
        if found.iter().flatten().any(|known| known == *name) {
            continue;
        }
        let back = |other: &&String| reached.get(other).is_some_and(|reached| reached.contains(*name));
        found.push(others.iter().filter(back).cloned().collect());
    }
    found
}

/// The modules in levels, lowest first. A module uses only modules of lower levels, and those of
/// its own level that also use it.
pub(super) fn levels(uses: &Uses) -> Vec<Vec<String>> {
    let circles = circles(uses);
    let together =
        |a: &str, b: &str| circles.iter().any(|circle| [a, b].iter().all(|name| circle.iter().any(|c| c == name)));
    let mut levels: Vec<Vec<String>> = Vec::new();
    let mut placed: BTreeSet<String> = BTreeSet::new();
    while placed.len() < uses.len() {
        let stands = |name: &str| {
            let is_ready = |to: &String| placed.contains(to) || to == name || together(name, to);
            uses.get(name).is_none_or(|used| used.keys().all(is_ready))
        };
        let ready = |name: &&String| {
            uses.keys().filter(|other| *other == *name || together(name, other)).all(|one| stands(one))
        };
        let level: Vec<String> = uses.keys().filter(|name| !placed.contains(*name)).filter(ready).cloned().collect();
        placed.extend(level.iter().cloned());
        levels.push(level);
    }
    levels
}

#[cfg(test)]
mod tests {
    use super::*;

    fn modules(sources: &[(&str, &str)]) -> Modules {
        let mut modules = Modules::default();
        for (path, text) in sources {
            modules.add(path.split("::").filter(|name| !name.is_empty()).map(str::to_owned).collect(), text);
        }
        modules
    }

    fn edges(modules: &Modules) -> Vec<String> {
        let all = modules.uses();
        let each = all.iter().flat_map(|(parent, uses)| uses.iter().map(move |(from, to)| (parent, from, to)));
        each.flat_map(|(parent, from, to)| to.keys().map(move |to| format!("{}: {from} -> {to}", parent.join("::"))))
            .collect()
    }

    #[test]
    fn uses_are_found_between_neighbours_however_they_are_written() {
        let modules = modules(&[
            ("", "mod a; mod b; mod c; pub use c::{Thing, deep::Other}; pub use b::*; use std::fmt;"),
            ("a", "mod x; mod y; use crate::Thing; use crate::fmt; fn f() -> crate::Free { crate::own() }"),
            ("a::x", "use super::y; use super::super::b::g;"),
            ("a::y", "fn f(_: super::Thing) {}"),
            ("b", "pub struct Free; use crate::Other;"),
            ("c", "pub mod deep; pub struct Thing;"),
            ("c::deep", "pub struct Other;"),
        ]);
        assert_eq!(edges(&modules), [": a -> b", ": a -> c", ": b -> c", "a: x -> y"]);
    }

    #[test]
    fn circles_are_found_and_ways_are_none() {
        let modules = modules(&[
            ("", "mod a; mod b; mod c; mod d;"),
            ("a", "use crate::b::B;"),
            ("b", "pub struct B; use crate::c::C;"),
            ("c", "pub struct C; use crate::a::x;"),
            ("d", "use crate::a;"),
        ]);
        let uses = &modules.uses()[&Module::new()];
        assert_eq!(circles(uses), [["a", "b", "c"]]);
        assert_eq!(levels(uses), [vec!["a", "b", "c"], vec!["d"]]);
    }
}
