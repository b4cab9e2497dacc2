//! Functions of a picture: the functions of all processes. Each is listed once.

use clrscope_recording::model::FunctionKind;
use rustc_hash::FxHashMap;

use crate::catalog::Catalog;
use crate::function::FunctionRef;
use crate::samples::kind_of_code;

/// A function, or an entry for all code of a library without symbols.
#[derive(Debug, Clone)]
pub struct PictureFunction<'a> {
    /// The function; `None` for the entry of a library.
    pub function: Option<FunctionRef<'a>>,
    /// Name of the library.
    pub library_name: String,
    /// Name of the assembly or native library.
    pub module: &'a str,
    /// Kind of code, which determines the colour of the function's frames.
    pub code: &'static str,
    /// Number of the library's entry into which a function without a symbol is folded; `None` for
    /// other functions.
    pub library: Option<u32>,
}

/// Functions of a picture by number.
#[derive(Debug, Default)]
pub struct PictureFunctions<'a> {
    list: Vec<PictureFunction<'a>>,
    /// Numbers by name, signature and module.
    known: FxHashMap<(String, String, &'a str), u32>,
    /// Rank of each function in the order of names.
    ranks: Vec<u32>,
}

impl<'a> PictureFunctions<'a> {
    /// All functions. A function's index is its number.
    #[must_use]
    pub fn list(&self) -> &[PictureFunction<'a>] {
        &self.list
    }

    /// Adds a process's functions and returns their numbers, by slot.
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

    /// Computes the order of names: no function may be added any more.
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

    /// Functions by the 53-bit ids that identify them in page addresses, as pairs of id and number.
    /// `idOf` in `ui/src/model/functions.ts` computes the ids from name, signature and module.
    pub fn ids(&self) -> impl Iterator<Item = (u64, u32)> {
        self.known.iter().map(|((name, signature, module), number)| (id_of([name, signature, module]), *number))
    }
}

/// An almost unique number for names, computed from the JSON of their list.
fn id_of(names: [&str; 3]) -> u64 {
    let mut id = Id { high: 0xdead_beef, low: 0x41c6_ce57 };
    for (at, name) in names.into_iter().enumerate() {
        id.text(if at == 0 { "[\"" } else { ",\"" });
        name.chars().for_each(|letter| id.letter(letter));
        id.text("\"");
    }
    id.text("]");
    id.finish()
}

/// The hash while it is computed.
struct Id {
    high: u32,
    low: u32,
}

impl Id {
    fn unit(&mut self, unit: u16) {
        self.high = (self.high ^ u32::from(unit)).wrapping_mul(2_654_435_761);
        self.low = (self.low ^ u32::from(unit)).wrapping_mul(1_597_334_677);
    }

    fn text(&mut self, text: &str) {
        text.encode_utf16().for_each(|unit| self.unit(unit));
    }

    /// Adds a character of a JSON string.
    fn letter(&mut self, letter: char) {
        match letter {
            '"' => self.text("\\\""),
            '\\' => self.text("\\\\"),
            '\u{8}' => self.text("\\b"),
            '\u{c}' => self.text("\\f"),
            '\n' => self.text("\\n"),
            '\r' => self.text("\\r"),
            '\t' => self.text("\\t"),
            control if control < ' ' => self.text(&format!("\\u{:04x}", u32::from(control))),
            letter => letter.encode_utf16(&mut [0; 2]).iter().for_each(|unit| self.unit(*unit)),
        }
    }

    fn finish(self) -> u64 {
        let mix =
            |a: u32, b: u32| (a ^ (a >> 16)).wrapping_mul(2_246_822_507) ^ (b ^ (b >> 13)).wrapping_mul(3_266_489_909);
        let high = mix(self.high, self.low);
        let low = mix(self.low, high);
        (u64::from(low & 0x1f_ffff) << 32) | u64::from(high)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_name_functions_as_the_page_does() {
        // What `idOf` in ui/src/model/functions.ts gives for these.
        assert_eq!(id_of(["App::Main", "App.Main()", "App"]), 2_337_541_351_840_056);
        assert_eq!(id_of(["S\u{e9}\u{1f600}\"\\\u{1}::x", "", "a\nb"]), 2_306_031_366_468_787);
    }
}
