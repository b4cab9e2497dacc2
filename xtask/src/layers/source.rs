//! The tokens of a Rust source file, and the paths that its code names.

/// One word: an identifier, `::`, or a single other character.
type Word = String;

/// References of a module's code to other modules, without those in tests.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Source {
    /// Paths that begin with `crate`, `self` or `super`, each with the inline module that contains
    /// it.
    pub(super) paths: Vec<(Vec<Word>, Vec<Word>)>,
    /// Imports by `use`: the name in this module, and the path; the name `*` stands for all names
    /// of a module.
    pub(super) imports: Vec<(Word, Vec<Word>)>,
    /// Names of the items that this module defines.
    pub(super) defines: Vec<Word>,
    /// Exports by `pub use` and `pub mod`: the inline module, the name, and the path. The path is
    /// empty for a submodule.
    pub(super) exports: Vec<(Vec<Word>, Word, Vec<Word>)>,
}

impl Source {
    pub(super) fn parse(text: &str) -> Self {
        let words = without_tests(words(text));
        let mut source = Self::default();
        // Inline modules that are open, each with the depth of braces at which it ends.
        let mut open: Vec<(Word, usize)> = Vec::new();
        let (mut at, mut depth) = (0, 0usize);
        while at < words.len() {
            let next = |ahead: usize| words.get(at + ahead).map_or("", String::as_str);
            // `pub(crate)` ends with another word.
            let is_public = at > 0 && words[at - 1] == "pub";
            let inline = || open.iter().map(|(name, _)| name.clone()).collect::<Vec<Word>>();
            let mut step = 1;
            if is_public && words[at] == "mod" {
                source.exports.push((inline(), next(1).to_owned(), Vec::new()));
            }
            match words[at].as_str() {
                "{" => depth += 1,
                "}" => {
                    depth = depth.saturating_sub(1);
                    open.pop_if(|(_, end)| *end == depth);
                }
                "mod" if next(2) == "{" => {
                    open.push((words[at + 1].clone(), depth));
                    source.defines.push(words[at + 1].clone());
                }
                "use" => {
                    let mut found = Vec::new();
                    step = 1 + tree(&words[at + 1..], &[], &mut found);
                    let inline = inline();
                    for (name, path) in found {
                        if is_public {
                            source.exports.push((inline.clone(), name.clone(), path.clone()));
                        }
                        if path.first().is_some_and(|first| is_relative(first)) {
                            source.paths.push((inline.clone(), path.clone()));
                        }
                        if inline.is_empty() {
                            source.imports.push((name, path));
                        }
                    }
                }
                "fn" | "struct" | "enum" | "trait" | "type" | "const" | "static" | "union" => {
                    source.defines.push(next(1).to_owned());
                }
                "macro_rules" => source.defines.push(next(2).to_owned()),
                word if is_relative(word) && next(1) == "::" => {
                    let path: Vec<Word> =
                        words[at..].chunks(2).take_while(|two| is_name(&two[0])).map_while_joined().collect();
                    step = path.len() * 2 - 1;
                    source.paths.push((inline(), path));
                }
                _ => {}
            }
            at += step;
        }
        source
    }
}

fn is_relative(word: &str) -> bool {
    matches!(word, "crate" | "self" | "super")
}

fn is_name(word: &str) -> bool {
    word.starts_with(|c: char| c.is_alphabetic() || c == '_')
}

/// Pairs of a name and what follows it, as long as `::` joins them.
trait Joined<'w>: Iterator<Item = &'w [Word]> + Sized {
    fn map_while_joined(self) -> impl Iterator<Item = Word> {
        let mut joined = true;
        self.map_while(move |two| {
            let name = joined.then(|| two[0].clone());
            joined = two.get(1).is_some_and(|word| word == "::");
            name
        })
    }
}

impl<'w, I: Iterator<Item = &'w [Word]>> Joined<'w> for I {}

/// Reads the tree of a `use` behind `before`, and returns how many words it took.
fn tree(words: &[Word], before: &[Word], found: &mut Vec<(Word, Vec<Word>)>) -> usize {
    let mut path = before.to_vec();
    let mut at = 0;
    while let Some(word) = words.get(at) {
        match word.as_str() {
            "::" => at += 1,
            "{" => {
                at += 1;
                while words.get(at).is_some_and(|word| word != "}") {
                    at += tree(&words[at..], &path, found);
                    at += usize::from(words.get(at).is_some_and(|word| word == ","));
                }
                return at + 1;
            }
            "*" => {
                found.push(("*".to_owned(), path));
                return at + 1;
            }
            "as" => {
                found.push((words.get(at + 1).cloned().unwrap_or_default(), path));
                return at + 2;
            }
            // `use a::{self, b}`: the module itself.
            "self" if !path.is_empty() => at += 1,
            name if is_name(name) => {
                path.push(name.to_owned());
                at += 1;
            }
            _ => break,
        }
    }
    if let Some(name) = path.last() {
        found.push((name.clone(), path.clone()));
    }
    // A word that fits nowhere must not be met again and again.
    at.max(usize::from(!matches!(words.first().map(String::as_str), Some("," | "}" | ";"))))
}

/// Leaves out items behind `#[cfg(test)]`: tests may use everything.
fn without_tests(words: Vec<Word>) -> Vec<Word> {
    const TEST: [&str; 7] = ["#", "[", "cfg", "(", "test", ")", "]"];
    let mut kept = Vec::with_capacity(words.len());
    let mut at = 0;
    while at < words.len() {
        if !words[at..].iter().take(TEST.len()).eq(TEST) {
            kept.push(words[at].clone());
            at += 1;
            continue;
        }
        at += TEST.len();
        let mut depth = 0usize;
        while at < words.len() {
            match words[at].as_str() {
                "{" => depth += 1,
                "}" => depth = depth.saturating_sub(1),
                _ => {}
            }
            at += 1;
            if depth == 0 && matches!(words[at - 1].as_str(), ";" | "}") {
                break;
            }
        }
    }
    kept
}

/// Splits a source into words; comments, strings and characters are none.
fn words(text: &str) -> Vec<Word> {
    let chars: Vec<char> = text.chars().collect();
    let mut words = Vec::new();
    let mut at = 0;
    while at < chars.len() {
        let next = |ahead: usize| chars.get(at + ahead).copied().unwrap_or('\n');
        match chars[at] {
            '/' if next(1) == '/' => at += chars[at..].iter().take_while(|&&c| c != '\n').count(),
            '/' if next(1) == '*' => at = block_end(&chars, at),
            '"' => at = string_end(&chars, at),
            // r"..", r#".."#, br"..": only where no name goes before.
            'r' if raw_string_end(&chars, at).is_some() => at = raw_string_end(&chars, at).unwrap_or(chars.len()),
            '\'' if next(1) == '\\' || next(2) == '\'' => {
                let from = at + if next(1) == '\\' { 3 } else { 2 };
                at = from + chars[from.min(chars.len())..].iter().take_while(|&&c| c != '\'').count() + 1;
            }
            c if c.is_alphabetic() || c == '_' => {
                let word: String = chars[at..].iter().take_while(|c| c.is_alphanumeric() || **c == '_').collect();
                at += word.chars().count();
                words.push(word);
            }
            ':' if next(1) == ':' => {
                words.push("::".to_owned());
                at += 2;
            }
            c if c.is_whitespace() => at += 1,
            c => {
                words.push(c.to_string());
                at += 1;
            }
        }
    }
    words
}

fn block_end(chars: &[char], mut at: usize) -> usize {
    let mut depth = 0usize;
    while at < chars.len() {
        match (chars[at], chars.get(at + 1)) {
            ('/', Some('*')) => (depth, at) = (depth + 1, at + 2),
            ('*', Some('/')) => (depth, at) = (depth - 1, at + 2),
            _ => at += 1,
        }
        if depth == 0 {
            break;
        }
    }
    at
}

fn string_end(chars: &[char], start: usize) -> usize {
    let mut at = start + 1;
    while at < chars.len() && chars[at] != '"' {
        at += if chars[at] == '\\' { 2 } else { 1 };
    }
    at + 1
}

/// The end of the raw string that begins here with `r`, if one does.
fn raw_string_end(chars: &[char], at: usize) -> Option<usize> {
    let hashes = chars[at + 1..].iter().take_while(|&&c| c == '#').count();
    if chars.get(at + 1 + hashes) != Some(&'"') {
        return None;
    }
    let mut end = at + 2 + hashes;
    while end < chars.len() {
        if chars[end] == '"' && chars[end + 1..].iter().take(hashes).filter(|&&c| c == '#').count() == hashes {
            return Some(end + 1 + hashes);
        }
        end += 1;
    }
    Some(chars.len())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn paths(text: &str) -> Vec<String> {
        Source::parse(text)
            .paths
            .iter()
            .map(|(inline, path)| format!("{}|{}", inline.join("::"), path.join("::")))
            .collect()
    }

    #[test]
    fn paths_of_code_are_found_and_those_of_comments_strings_and_tests_are_not() {
        let text = r##"
            //! crate::comment
            use crate::{a, b::{self, c as d}, e::*};
            use std::fmt;
            /* crate::block /* crate::inner */ */
            const TEXT: (&str, &str, char) = ("crate::text \" crate::still", r#"crate::raw " "#, '"');
            fn f<'a>(x: &'a super::sibling::Type) -> crate::g::Result<'a> { self::own(x, '\'') }
            mod inline { fn h() { super::k::l(); } }
            fn after() { crate::m!() }
            #[cfg(test)]
            use crate::only_tests;
            #[cfg(test)]
            mod tests { use crate::more_tests; fn t() { { crate::n() } } }
            fn last() { crate::o }
        "##;
        let expected = [
            "|crate::a",
            "|crate::b",
            "|crate::b::c",
            "|crate::e",
            "|super::sibling::Type",
            "|crate::g::Result",
            "|self::own",
            "inline|super::k::l",
            "|crate::m",
            "|crate::o",
        ];
        assert_eq!(paths(text), expected);
    }

    #[test]
    fn exports_are_what_is_public() {
        let text =
            "pub use a::{B as C, d::*}; use e::F; pub(crate) use g::H; pub mod i; mod j; pub mod k { pub use l::M; }";
        let exports: Vec<String> = Source::parse(text)
            .exports
            .iter()
            .map(|(inline, name, path)| format!("{}|{name}={}", inline.join("::"), path.join("::")))
            .collect();
        assert_eq!(exports, ["|C=a::B", "|*=a::d", "|i=", "|k=", "k|M=l::M"]);
    }

    #[test]
    fn imports_have_the_name_that_they_are_known_by() {
        let source =
            Source::parse("pub use a::B as C; use d::{e, F}; pub use g::*; struct H; macro_rules! i { () => {} }");
        let imports: Vec<String> =
            source.imports.iter().map(|(name, path)| format!("{name}={}", path.join("::"))).collect();
        assert_eq!(imports, ["C=a::B", "e=d::e", "F=d::F", "*=g"]);
        assert_eq!(source.defines, ["H", "i"]);
    }
}
