//! Patterns for functions: `[assembly]Namespace.Type::Method` with `*` and `?`, each part optional.

use std::fmt;

/// One pattern. Missing parts match everything.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Pattern {
    text: String,
    assembly: String,
    type_name: String,
    method: String,
}

/// Why a text is not a pattern.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PatternError {
    /// The text.
    pub text: String,
    /// What is wrong with it.
    pub why: &'static str,
}

impl fmt::Display for PatternError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "'{}' is not a pattern: {}", self.text, self.why)
    }
}

impl std::error::Error for PatternError {}

impl Pattern {
    /// Reads a pattern.
    ///
    /// # Errors
    /// When it is empty, the assembly's bracket is not closed, or a part stands twice.
    pub fn parse(text: &str) -> Result<Self, PatternError> {
        let fail = |why| PatternError { text: text.to_owned(), why };
        let trimmed = text.trim();
        if trimmed.is_empty() {
            return Err(fail("it is empty"));
        }
        let (assembly, rest) = match trimmed.strip_prefix('[') {
            Some(inner) => inner.split_once(']').ok_or(fail("the bracket '[' is not closed"))?,
            None => ("*", trimmed),
        };
        let (type_name, method) = rest.split_once("::").unwrap_or((rest, "*"));
        if method.contains("::") {
            return Err(fail("'::' appears twice"));
        }
        let or_any = |part: &str| if part.is_empty() { "*".to_owned() } else { part.to_owned() };
        Ok(Self {
            text: trimmed.to_owned(),
            assembly: or_any(assembly),
            type_name: or_any(type_name),
            method: or_any(method),
        })
    }

    /// The pattern as it was written.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.text
    }

    /// Whether the function called `name` (`Namespace.Type::Method`) of `assembly` matches.
    /// Names without a type, such as `[JIT]` and `[libc]qsort`, match by the name alone.
    #[must_use]
    pub fn matches(&self, assembly: &str, name: &str) -> bool {
        match name.split_once("::") {
            Some((type_name, method)) => {
                glob(&self.method, method) && glob(&self.type_name, type_name) && glob(&self.assembly, assembly)
            }
            None => self.matches_bare(assembly, name),
        }
    }

    /// Names without a type: `[JIT]`, and `[libc]qsort`, whose library stands in the name itself.
    fn matches_bare(&self, assembly: &str, name: &str) -> bool {
        let in_library =
            name.strip_prefix('[').and_then(|rest| rest.split_once(']')).filter(|(_, rest)| !rest.is_empty());
        let (assembly, function) = in_library.unwrap_or((assembly, name));
        // A pattern without `::` names a type; here it can only mean the function.
        let wanted = if self.method == "*" { &self.type_name } else { &self.method };
        glob(wanted, function) && glob(&self.assembly, assembly)
    }

    /// Whether some function of `assembly` could match: lets a whole assembly be passed over early.
    #[must_use]
    pub fn may_match_assembly(&self, assembly: &str) -> bool {
        glob(&self.assembly, assembly)
    }
}

impl fmt::Display for Pattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

/// Includes and excludes together: a function passes when an include matches it (or there is none)
/// and no exclude does.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Filter {
    /// What is wanted; empty means everything.
    pub include: Vec<Pattern>,
    /// What is not wanted; wins over `include`.
    pub exclude: Vec<Pattern>,
}

impl Filter {
    /// Whether a function passes.
    #[must_use]
    pub fn passes(&self, assembly: &str, name: &str) -> bool {
        (self.include.is_empty() || self.includes(assembly, name))
            && !self.exclude.iter().any(|p| p.matches(assembly, name))
    }

    /// Whether a function is named by an include.
    #[must_use]
    pub fn includes(&self, assembly: &str, name: &str) -> bool {
        self.include.iter().any(|p| p.matches(assembly, name))
    }
}

/// A plain text with `*` and `?`, for things that are not functions: modules, threads, processes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Glob(String);

impl Glob {
    /// Any text is a glob; without `*` and `?` it matches itself alone.
    #[must_use]
    pub fn new(text: &str) -> Self {
        Self(text.trim().to_owned())
    }

    /// Whether the whole of `text` matches, letter case included.
    #[must_use]
    pub fn matches(&self, text: &str) -> bool {
        glob(&self.0, text)
    }

    /// The glob as it was written.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for Glob {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// `*` matches any run of characters, `?` any single one; everything else itself.
fn glob(pattern: &str, text: &str) -> bool {
    if pattern == "*" {
        return true;
    }
    let (pattern, text) = (pattern.as_bytes(), text.as_bytes());
    let (mut p, mut t) = (0, 0);
    let mut retry: Option<(usize, usize)> = None;
    while t < text.len() {
        match pattern.get(p) {
            Some(b'*') => {
                retry = Some((p, t));
                p += 1;
            }
            Some(b'?') => {
                p += 1;
                t = next_character(text, t);
            }
            Some(&c) if c == text[t] => {
                p += 1;
                t += 1;
            }
            // The last star takes one character more.
            _ => match retry {
                Some((star, from)) => {
                    p = star + 1;
                    t = from + 1;
                    retry = Some((star, t));
                }
                None => return false,
            },
        }
    }
    pattern[p..].iter().all(|&c| c == b'*')
}

/// `?` stands for a character, not for a byte of one.
fn next_character(text: &[u8], at: usize) -> usize {
    let mut next = at + 1;
    while text.get(next).is_some_and(|b| b & 0xC0 == 0x80) {
        next += 1;
    }
    next
}

#[cfg(test)]
mod tests {
    use super::*;

    fn matches(pattern: &str, assembly: &str, name: &str) -> bool {
        Pattern::parse(pattern).expect("a pattern").matches(assembly, name)
    }

    #[test]
    fn every_part_is_optional() {
        assert!(matches("[MyApp]*", "MyApp", "A.B::C"));
        assert!(!matches("[MyApp]*", "MyApp.Core", "A.B::C"));
        assert!(matches("*::Get*", "X", "A.B::GetAll"));
        assert!(!matches("*::Get*", "X", "A.Get::All"));
        assert!(matches("System.Text.*", "X", "System.Text.Json.Reader::Read"));
        assert!(!matches("System.Text.*", "X", "System.Textual::Read"));
        assert!(matches("[A]N.T::M", "A", "N.T::M"));
        assert!(!matches("[A]N.T::M", "A", "N.T::M2"));
        assert!(matches("::M?in", "A", "N.T::Main"));
    }

    #[test]
    fn unmanaged_functions_and_parts_of_the_runtime_can_be_named() {
        assert!(matches("[libc]qsort", "", "[libc]qsort"));
        assert!(matches("*qsort*", "", "[libc]qsort"));
        assert!(matches("*::qsort", "", "[libc]qsort"));
        assert!(!matches("[libm]*", "", "[libc]qsort"));
        assert!(matches("[libc]*", "", "[libc]qsort"));
        assert!(matches("*JIT*", "", "[JIT]"));
        assert!(!matches("[MyApp]*", "", "[JIT]"));
    }

    #[test]
    fn question_mark_takes_one_character_even_beyond_ascii() {
        assert!(matches("::M?in", "A", "T::M\u{e4}in"));
        assert!(!matches("::M?in", "A", "T::Min"));
    }

    #[test]
    fn stars_find_the_right_place_to_retry() {
        assert!(matches("*ab*ab", "x", "abcab::m"));
        assert!(matches("a*b*c", "x", "aXbXbXc::m"));
        assert!(!matches("a*b*c", "x", "aXbXb::m"));
    }

    #[test]
    fn bad_patterns_say_why() {
        for bad in ["", "  ", "[App", "a::b::c"] {
            let error = Pattern::parse(bad).expect_err("not a pattern");
            assert!(error.to_string().contains("is not a pattern"), "{error}");
        }
    }

    #[test]
    fn globs_match_whole_texts() {
        assert!(Glob::new("Shop.*").matches("Shop.Core"));
        assert!(!Glob::new("Shop").matches("Shop.Core"));
        assert!(Glob::new(" worker ? ").matches("worker 7"));
    }

    #[test]
    fn excludes_win() {
        let filter = Filter {
            include: vec![Pattern::parse("[A]*").expect("a pattern")],
            exclude: vec![Pattern::parse("*::Skip").expect("a pattern")],
        };
        assert!(filter.passes("A", "T::Run"));
        assert!(!filter.passes("A", "T::Skip"));
        assert!(!filter.passes("B", "T::Run"));
    }
}
