//! Functions of a picture: those of all processes, each once.

use clrscope_recording::model::FunctionKind;
use rustc_hash::FxHashMap;

use crate::catalog::Catalog;
use crate::function::FunctionRef;
use crate::samples::kind_of_code;

/// A function, or what stands for all nameless code of a library.
#[derive(Debug, Clone)]
pub struct PictureFunction<'a> {
    /// The function; `None` of a library.
    pub function: Option<FunctionRef<'a>>,
    /// Name of a library.
    pub library_name: String,
    /// Assembly or native library.
    pub module: &'a str,
    /// Kind of code, by which frames are coloured.
    pub code: &'static str,
    /// Number of the library that a nameless function is folded into.
    pub library: Option<u32>,
}

/// Functions of a picture by number.
#[derive(Debug, Default)]
pub struct PictureFunctions<'a> {
    list: Vec<PictureFunction<'a>>,
    /// By name, signature and module.
    known: FxHashMap<(String, String, &'a str), u32>,
    /// Place of each in the order of names.
    ranks: Vec<u32>,
}

impl<'a> PictureFunctions<'a> {
    /// All functions; their places are their numbers.
    #[must_use]
    pub fn list(&self) -> &[PictureFunction<'a>] {
        &self.list
    }

    /// Numbers of a process's functions, by slot.
    pub(super) fn add(&mut self, catalog: &Catalog<'a>) -> Vec<u32> {
        (0..catalog.len() as u32).map(|slot| self.number(&catalog.function(slot))).collect()
    }

    /// Number of a function.
    pub(super) fn number(&mut self, function: &FunctionRef<'a>) -> u32 {
        let (module, code) = (function.module(), kind_of_code(function));
        let key = (function.name().to_owned(), function.signature().to_owned(), module);
        if let Some(number) = self.known.get(&key) {
            return *number;
        }
        let is_native = function.kind() == FunctionKind::Native;
        let library = function.folded_into().filter(|_| is_native).map(|name| self.library(name, module, code));
        self.put(key, PictureFunction { function: Some(*function), library_name: String::new(), module, code, library })
    }

    fn library(&mut self, name: String, module: &'a str, code: &'static str) -> u32 {
        let key = (name.clone(), name.clone(), module);
        if let Some(number) = self.known.get(&key) {
            return *number;
        }
        self.put(key, PictureFunction { function: None, library_name: name, module, code, library: None })
    }

    fn put(&mut self, key: (String, String, &'a str), function: PictureFunction<'a>) -> u32 {
        let number = self.list.len() as u32;
        self.list.push(function);
        self.known.insert(key, number);
        number
    }

    /// Orders names: no function is added any more.
    pub(super) fn finish(&mut self) {
        let mut order: Vec<(&(String, String, &'a str), u32)> = self.known.iter().map(|(key, at)| (key, *at)).collect();
        order.sort_unstable();
        self.ranks = vec![0; self.list.len()];
        for (rank, (_, number)) in (0..).zip(order) {
            self.ranks[number as usize] = rank;
        }
    }

    pub(super) fn rank(&self, number: u32) -> u32 {
        self.ranks.get(number as usize).copied().unwrap_or(0)
    }

    /// Name, signature and module, by which pages know a function.
    pub fn names(&self) -> impl Iterator<Item = (u32, &str, &str, &str)> {
        self.known
            .iter()
            .map(|((name, signature, module), number)| (*number, name.as_str(), signature.as_str(), *module))
    }
}
