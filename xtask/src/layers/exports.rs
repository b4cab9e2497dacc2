//! Checks that each public item has one public path.

use std::collections::{BTreeMap, BTreeSet};

use super::modules::{Module, Modules, absolute};

/// A name that a module exports, and the path of what it stands for.
struct Export {
    from: Module,
    name: String,
    to: Module,
}

/// Items with two public paths: an item of a public module that another module exports too, or an
/// item that two modules export.
pub(super) fn twice(modules: &Modules) -> Vec<String> {
    let exports: Vec<Export> = modules.exports().collect();
    let public = public_modules(&exports);
    let mut ways: BTreeMap<Module, BTreeSet<Module>> = BTreeMap::new();
    for export in exports.iter().filter(|export| public.contains(&export.from) && !export.to.is_empty()) {
        let to = origin(&exports, &public, &export.to);
        let own = (to.len() > 1 && public.contains(&to[..to.len() - 1])).then(|| to.clone());
        let way = [&export.from[..], std::slice::from_ref(&export.name)].concat();
        ways.entry(to).or_default().extend(own.into_iter().chain([way]));
    }
    let twice = ways.into_iter().filter(|(_, ways)| ways.len() > 1);
    twice.map(|(item, ways)| format!("{} has the public paths {}", written(&item), list(&ways))).collect()
}

/// The crate's root, and the modules that `pub mod` leads to from there.
fn public_modules(exports: &[Export]) -> BTreeSet<Module> {
    let mut public = BTreeSet::from([Module::new()]);
    loop {
        let found: Vec<Module> = exports
            .iter()
            .filter(|export| export.to.is_empty() && public.contains(&export.from))
            .map(|export| [&export.from[..], std::slice::from_ref(&export.name)].concat())
            .collect();
        let before = public.len();
        public.extend(found);
        if public.len() == before {
            return public;
        }
    }
}

/// The item behind a path: exports of private modules are followed.
fn origin(exports: &[Export], public: &BTreeSet<Module>, path: &Module) -> Module {
    let Some((name, module)) = path.split_last() else { return path.clone() };
    let is_it = |export: &&Export| export.from == module && export.name == *name && !export.to.is_empty();
    match exports.iter().find(is_it).filter(|_| !public.contains(module)) {
        Some(export) if export.to != *path => origin(exports, public, &export.to),
        _ => path.clone(),
    }
}

fn written(path: &Module) -> String {
    path.join("::")
}

fn list(paths: &BTreeSet<Module>) -> String {
    paths.iter().map(written).collect::<Vec<_>>().join(" and ")
}

impl Modules {
    /// Exports of the modules of this crate, of things of this crate. All of a module's names have
    /// the name `*`.
    fn exports(&self) -> impl Iterator<Item = Export> {
        self.sources().flat_map(move |(module, source)| {
            source.exports.iter().filter_map(move |(inline, name, path)| {
                let from: Module = module.iter().chain(inline).cloned().collect();
                if path.is_empty() {
                    return Some(Export { from, name: name.clone(), to: Module::new() });
                }
                let mut to = absolute(&from, path).filter(|to| self.is_known(to))?;
                if name == "*" {
                    to.push(name.clone());
                }
                Some(Export { from, name: name.clone(), to })
            })
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn told(sources: &[(&str, &str)]) -> Vec<String> {
        let mut modules = Modules::default();
        for (path, text) in sources {
            modules.add(path.split("::").filter(|name| !name.is_empty()).map(str::to_owned).collect(), text);
        }
        twice(&modules)
    }

    #[test]
    fn an_item_of_a_public_module_that_the_root_exports_too_is_told() {
        let wrong = told(&[("", "pub mod a; pub use a::Thing; pub use std::fmt;"), ("a", "pub struct Thing;")]);
        assert_eq!(wrong, ["a::Thing has the public paths Thing and a::Thing"]);
        let all = told(&[("", "pub mod a; pub use a::*;"), ("a", "pub struct Thing;")]);
        assert_eq!(all, ["a::* has the public paths * and a::*"]);
    }

    #[test]
    fn an_item_that_two_modules_export_is_told() {
        let inner = ("b::c", "pub struct Thing;");
        let wrong = told(&[
            ("", "mod b; pub mod d { pub use crate::b::c::Thing; } pub use b::Thing;"),
            ("b", "mod c; pub use c::Thing;"),
            inner,
        ]);
        assert_eq!(wrong, ["b::c::Thing has the public paths Thing and d::Thing"]);
    }

    #[test]
    fn one_path_is_no_fault_however_long_the_way() {
        let sources = [
            ("", "mod b; pub mod e; pub use b::Thing; pub(crate) use e::Other;"),
            ("b", "mod c; pub use c::Thing; pub use super::e::Other;"),
            ("b::c", "pub struct Thing;"),
            ("e", "pub struct Other;"),
        ];
        assert_eq!(told(&sources), [""; 0]);
    }
}
