//! Patterns for functions: `[assembly]Namespace.Type::Method` with `*` and `?`, each part optional,
//! or a name in the form that reports print.
//!
//! # What a pattern without `::` means
//!
//! - `System.Text.*`, `Shop.Cart`, `Cart`: all methods of the types with that name. A name without
//!   a dot matches types in any namespace; a name with dots begins at the outermost namespace.
//! - `CountSimilar`, `*Similar`: methods with that name in any type, and local functions.
//! - `Importer.IsDuplicate`: the methods `IsDuplicate` of all types called `Importer`. A `*` after
//!   the last dot is not a method name.
//! - `Shop.Cart.Add(Shop.Item, int)`: the method with this signature. A marker in parentheses at
//!   the end of a name, such as `(async)` or `(lambda, Program.cs:17)`, restricts the pattern to
//!   that code of the method. Line and number are compared only if they are known: they are known
//!   in reports, but not while a program runs.
//!
//! The launcher, the agent and the readers all use [`Pattern::matches`], so that `--include`
//! records the same functions that `--function` shows.

use std::fmt;

use super::glob::glob;
use super::marker::{Marker, split_marker};
use crate::words::{NearNames, Part};

/// Grammar of patterns, for help texts.
pub const PATTERN_HELP: &str = "[assembly]Namespace.Type::Method with * and ?, each part optional; without '::' a type, a method \
                                or Type.Method; or a name as reports print it";

/// One pattern. Missing parts match everything.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Pattern {
    text: String,
    assembly: String,
    name: NamePattern,
    /// Code within the method, such as a lambda; `None` for all code.
    code: Option<String>,
    ignores_case: bool,
}

/// Name part of a pattern: the function's name in its assembly.
#[derive(Debug, Clone, PartialEq, Eq)]
enum NamePattern {
    /// `Type::Method`.
    Member { type_name: String, method: String },
    /// Without `::`: a type, a method, or both.
    Word(String),
    /// With parameters.
    Signature(String),
    /// A name that was too long for a table; a star replaces its middle.
    Shortened(String),
}

/// Reason why a text is not a pattern.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PatternError {
    /// The text.
    pub text: String,
    /// Reason why it is not a pattern.
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
    /// When the text is empty, the assembly's bracket is not closed, or a part occurs twice.
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
        let (rest, code) = split_marker(rest);
        Ok(Self {
            text: trimmed.to_owned(),
            assembly: or_any(assembly),
            name: NamePattern::parse(rest).map_err(fail)?,
            code: code.map(str::to_owned),
            ignores_case: false,
        })
    }

    /// The text of the pattern.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.text
    }

    /// Whether the pattern names assemblies.
    #[must_use]
    pub fn names_assembly(&self) -> bool {
        self.assembly != "*"
    }

    /// Whether the pattern can match functions of the assembly with this name.
    #[must_use]
    pub fn is_about(&self, assembly: &str) -> bool {
        glob(&self.assembly, assembly)
    }

    /// The same pattern, ignoring letter case.
    #[must_use]
    pub fn ignoring_case(&self) -> Self {
        let lower = |text: &String| text.to_lowercase();
        let name = match &self.name {
            NamePattern::Member { type_name, method } => {
                NamePattern::Member { type_name: lower(type_name), method: lower(method) }
            }
            NamePattern::Word(word) => NamePattern::Word(lower(word)),
            NamePattern::Signature(signature) => NamePattern::Signature(lower(signature)),
            NamePattern::Shortened(name) => NamePattern::Shortened(lower(name)),
        };
        let (assembly, code) = (lower(&self.assembly), self.code.as_ref().map(lower));
        Self { text: self.text.clone(), assembly, name, code, ignores_case: true }
    }

    /// Whether the function called `name` (`Namespace.Type::Method`) of `assembly` matches.
    /// `signature` is written as in C#, with the marker for code within the method; it is empty if
    /// unknown. Names without a type, such as `[JIT]` and `[libc]qsort`, are matched only by their
    /// name.
    #[must_use]
    pub fn matches(&self, assembly: &str, name: &str, signature: &str) -> bool {
        if self.ignores_case {
            let [assembly, name, signature] = [assembly, name, signature].map(str::to_lowercase);
            return self.matches_exactly(&assembly, &name, &signature);
        }
        self.matches_exactly(assembly, name, signature)
    }

    /// Whether the function matches, or an enclosing type: excluding a type also excludes its
    /// nested types. For `name` and `signature` see [`matches`](Self::matches).
    #[must_use]
    pub fn leaves_out(&self, assembly: &str, name: &str, signature: &str) -> bool {
        let around = || {
            let type_name = name.split_once("::").map_or("", |(type_name, _)| type_name);
            let mut types = type_name.match_indices('+').map(|(at, _)| &type_name[..at]);
            types.any(|type_name| self.names_type(assembly, type_name))
        };
        self.matches(assembly, name, signature) || around()
    }

    /// Whether all methods of a type (`Namespace.Outer+Inner`) match, because the pattern names the
    /// type.
    fn names_type(&self, assembly: &str, type_name: &str) -> bool {
        let wanted = match &self.name {
            NamePattern::Member { type_name, method } if method == "*" => type_name,
            NamePattern::Word(word) => word,
            _ => return false,
        };
        let is_type = match self.ignores_case {
            true => is_type(wanted, &type_name.to_lowercase()),
            false => is_type(wanted, type_name),
        };
        is_type && self.code.is_none() && self.is_about(assembly)
    }

    fn matches_exactly(&self, assembly: &str, name: &str, signature: &str) -> bool {
        let (plain, code) = split_marker(signature);
        if self.code.as_ref().is_some_and(|wanted| !code.is_some_and(|code| Marker(wanted).is_of(Marker(code)))) {
            return false;
        }
        match name.split_once("::") {
            Some((type_name, method)) => {
                let local = code.and_then(|code| Marker(code).local_function());
                let is_local = || local.is_some_and(|local| self.name.matches_local(type_name, local));
                (self.name.matches(type_name, method, plain) || is_local()) && glob(&self.assembly, assembly)
            }
            None => self.text == name || self.matches_bare(assembly, name),
        }
    }

    /// Names without a type: `[JIT]`, and `[libc]qsort`, which has its library in the name itself.
    fn matches_bare(&self, assembly: &str, name: &str) -> bool {
        let in_library =
            name.strip_prefix('[').and_then(|rest| rest.split_once(']')).filter(|(_, rest)| !rest.is_empty());
        let (assembly, function) = in_library.unwrap_or((assembly, name));
        glob(self.name.bare(), function) && glob(&self.assembly, assembly)
    }

    /// Prepares a search for names similar to this pattern, for use if the pattern matched nothing.
    #[must_use]
    pub fn near_names(&self) -> NearNames {
        let part = match &self.name {
            NamePattern::Member { method, .. } if method == "*" => Part::Type,
            NamePattern::Member { .. } | NamePattern::Signature(_) => Part::Method,
            NamePattern::Word(_) | NamePattern::Shortened(_) => Part::Either,
        };
        NearNames::new(&self.core(), part)
    }

    /// The part of the pattern that is to be compared with names: the method, otherwise the whole.
    fn core(&self) -> String {
        let whole = match &self.name {
            NamePattern::Member { type_name, method } if method == "*" => type_name,
            NamePattern::Member { method, .. } => method,
            NamePattern::Word(word) | NamePattern::Shortened(word) => word,
            NamePattern::Signature(signature) => signature.split(['(', '<']).next().unwrap_or_default(),
        };
        let stars = |c: char| c == '*' || c == '?';
        let trimmed = whole.trim_matches(stars).trim_end_matches('.');
        trimmed.rsplit('.').next().unwrap_or_default().trim_matches(stars).to_owned()
    }
}

fn or_any(part: &str) -> String {
    if part.is_empty() { "*".to_owned() } else { part.to_owned() }
}

impl NamePattern {
    fn parse(text: &str) -> Result<Self, &'static str> {
        // `(...)` means that the parameters are not known.
        if text.contains("...") && !text.ends_with("(...)") {
            return Ok(Self::Shortened(text.replace("...", "*")));
        }
        if text.contains('(') {
            return Ok(Self::Signature(text.to_owned()));
        }
        let Some((type_name, method)) = text.split_once("::") else { return Ok(Self::Word(or_any(text))) };
        if method.contains("::") {
            return Err("'::' appears twice");
        }
        Ok(Self::Member { type_name: or_any(type_name), method: or_any(method) })
    }

    fn matches(&self, type_name: &str, method: &str, signature: &str) -> bool {
        match self {
            Self::Member { type_name: ty, method: wanted } => glob(wanted, method) && is_type(ty, type_name),
            Self::Word(word) => {
                is_type(word, type_name) || is_method(word, method) || is_member(word, type_name, method, signature)
            }
            Self::Shortened(name) => glob(name, &format!("{type_name}::{method}")) || glob(name, signature),
            Self::Signature(wanted) => {
                let with_name = wanted.split_once('(').filter(|_| wanted.contains("::"));
                match with_name {
                    // The name and the parameters, in the form that `flow` prints.
                    Some((name, parameters)) => {
                        let end = signature.find('(').map_or("", |at| &signature[at + 1..]);
                        glob(name, &format!("{type_name}::{method}")) && glob(parameters, end)
                    }
                    None => glob(wanted, signature),
                }
            }
        }
    }

    /// Whether the pattern means the local function of that name in a method of the type.
    fn matches_local(&self, type_name: &str, local: &str) -> bool {
        match self {
            Self::Member { type_name: ty, method } => glob(method, local) && is_type(ty, type_name),
            Self::Word(word) => is_method(word, local),
            Self::Signature(_) | Self::Shortened(_) => false,
        }
    }

    /// Name that the pattern requires of a function without a type.
    fn bare(&self) -> &str {
        match self {
            Self::Member { type_name, method } if method == "*" => type_name,
            Self::Member { method: wanted, .. } | Self::Word(wanted) | Self::Shortened(wanted) => wanted,
            Self::Signature(signature) => signature.strip_suffix("()").unwrap_or(signature),
        }
    }
}

/// Whether `pattern` names the type `Namespace.Outer+Inner`: by the whole name or, without a dot,
/// by the type's own name in any namespace.
fn is_type(pattern: &str, type_name: &str) -> bool {
    if glob(pattern, type_name) {
        return true;
    }
    if pattern.contains('.') {
        // C# writes nested types with a dot.
        return !pattern.contains('*') && type_name.contains('+') && glob(pattern, &type_name.replace('+', "."));
    }
    let in_any_namespace = type_name.rsplit('.').next().unwrap_or(type_name);
    let own = in_any_namespace.rsplit('+').next().unwrap_or(in_any_namespace);
    glob(pattern, in_any_namespace) || glob(pattern, own)
}

/// Whether a pattern without `::` names the method: by a name without dots, or by the full name of
/// an explicitly implemented interface method.
fn is_method(pattern: &str, method: &str) -> bool {
    if pattern.contains('.') {
        return pattern == method;
    }
    glob(pattern, method.rsplit('.').next().unwrap_or(method))
}

/// Whether a pattern without `::` names a type and a method, separated by a dot.
fn is_member(pattern: &str, type_name: &str, method: &str, signature: &str) -> bool {
    let as_printed = signature.strip_prefix(pattern).is_some_and(|rest| rest.starts_with(['(', '<']));
    let is_split_at = |at: usize| {
        let (ty, wanted) = (&pattern[..at], &pattern[at + 1..]);
        let is_named = !wanted.is_empty() && wanted.bytes().any(|b| b != b'*');
        is_named && glob(wanted, method) && is_type(ty, type_name)
    };
    pattern.contains('.') && (as_printed || pattern.match_indices('.').any(|(at, _)| is_split_at(at)))
}

impl fmt::Display for Pattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

/// Includes and excludes together: a function passes if an include matches it (or there are no
/// includes) and no exclude matches it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Filter {
    /// Patterns of functions to include; if empty, all functions are included.
    pub include: Vec<Pattern>,
    /// Patterns to exclude; they win over `include`.
    pub exclude: Vec<Pattern>,
}

impl Filter {
    /// Whether a function passes the filter.
    #[must_use]
    pub fn passes(&self, assembly: &str, name: &str, signature: &str) -> bool {
        (self.include.is_empty() || self.includes(assembly, name, signature))
            && !self.exclude.iter().any(|p| p.leaves_out(assembly, name, signature))
    }

    /// Whether an include matches the function.
    #[must_use]
    pub fn includes(&self, assembly: &str, name: &str, signature: &str) -> bool {
        self.include.iter().any(|p| p.matches(assembly, name, signature))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn matches(pattern: &str, assembly: &str, name: &str) -> bool {
        Pattern::parse(pattern).expect("a pattern").matches(assembly, name, "")
    }

    /// Whether the pattern matches a function of the assembly `Shop` with this name and signature.
    fn names(pattern: &str, name: &str, signature: &str) -> bool {
        Pattern::parse(pattern).expect("a pattern").matches("Shop", name, signature)
    }

    #[test]
    fn a_word_is_a_type_or_a_method_in_any_namespace() {
        let similar = (
            "Shop.Services.RecommendationService::CountSimilar",
            "Shop.Services.RecommendationService.CountSimilar(int)",
        );
        for pattern in [
            "CountSimilar",
            "*CountSimilar*",
            "*Similar",
            "RecommendationService",
            "RecommendationService::CountSimilar",
            "RecommendationService.CountSimilar",
            "Recommendation*.Count*",
            "Shop.Services.RecommendationService.CountSimilar",
            "[Shop]*Similar",
            "[Shop]CountSimilar",
            "RecommendationService*",
        ] {
            assert!(names(pattern, similar.0, similar.1), "{pattern}");
        }
        for pattern in [
            "Similar",
            "Services",
            "Services.RecommendationService",
            "Shop.CountSimilar",
            "[Other]CountSimilar",
            "countsimilar",
        ] {
            assert!(!names(pattern, similar.0, similar.1), "{pattern}");
        }
        assert!(
            Pattern::parse("countsimilar").expect("a pattern").ignoring_case().matches("Shop", similar.0, similar.1)
        );
        assert!(names("Dispose", "Shop.Bag::System.IDisposable.Dispose", ""));
        assert!(names("Shop.Cart.Line", "Shop.Cart+Line::Add", ""));
        assert!(names("Line::Add", "Shop.Cart+Line::Add", "") && names("Cart+Line::Add", "Shop.Cart+Line::Add", ""));
        assert!(names("[JIT]", "[JIT]", ""));
    }

    /// Regression: reports printed local functions that no pattern written by a user matched.
    #[test]
    fn local_functions_are_named_by_their_own_names_and_as_reports_print_them() {
        let busy = ("Program::<Main>$", "Program.<Main>$(string[]) (local function Busy)");
        for pattern in [
            "Busy",
            "*Busy*",
            "*::*Busy*",
            "Program::Busy",
            "*(local function Busy)",
            "(local function Busy)",
            "Program.<Main>$(string[]) (local function Busy)",
            "Program::<Main>$ (local function Busy)",
        ] {
            assert!(names(pattern, busy.0, busy.1), "{pattern}");
        }
        for pattern in
            ["Bus", "Other::Busy", "*(local function Bus)", "*(lambda)", "Program.<Main>$(int) (local function Busy)"]
        {
            assert!(!names(pattern, busy.0, busy.1), "{pattern}");
        }
        assert!(!names("Busy", "Program::<Main>$", "Program.<Main>$(string[])"));
        assert!(names("*(lambda)", "Shop.Cart::Pay", "Shop.Cart.Pay() (lambda, Cart.cs:7)"));
        assert!(!names("Pay(asynchronous)", "Shop.Cart::Pay", "Shop.Cart.Pay(int)"));
    }

    #[test]
    fn a_namespace_is_what_it_was() {
        for other in [
            "Contoso.System.Text.Json::Read",
            "System.Textual::Read",
            "System::Text",
            "Shop.Cart::System.Text.IReader.Read",
        ] {
            assert!(!names("System.Text.*", other, ""), "{other}");
        }
        assert!(!names("Shop.*", "Contoso.Shop::Add", "Contoso.Shop.Add()"));
        assert!(!names("System.*Reader", "System.Text::GetReader", ""));
    }

    #[test]
    fn names_as_reports_print_them_are_patterns() {
        let (add, signature) = ("Shop.Importer::IsDuplicate", "Shop.Importer.IsDuplicate(Shop.Entry, int[])");
        for pattern in [
            "Shop.Importer.IsDuplicate(Shop.Entry, int[])",
            "Shop.Importer::IsDuplicate(Shop.Entry, int[])",
            "Shop.Impor...icate",
        ] {
            assert!(names(pattern, add, signature), "{pattern}");
        }
        assert!(!names("Shop.Importer.IsDuplicate(Shop.Entry)", add, signature));
        assert!(names("Shop.Cart.Cart(int)", "Shop.Cart::.ctor", "Shop.Cart.Cart(int)"));
        assert!(names("Shop.Cart<int>.Add", "Shop.Cart::Add", "Shop.Cart<int>.Add(int)"));
        let async_code = "Shop.Importer.IsDuplicate(Shop.Entry, int[]) (async)";
        assert!(names("Shop.Importer::IsDuplicate (async)", add, async_code) && names(async_code, add, async_code));
        assert!(!names("Shop.Importer::IsDuplicate (async)", add, signature));
        assert!(names("Shop.Importer::IsDuplicate", add, async_code));
    }

    #[test]
    fn lines_of_lambdas_are_compared_where_they_are_known() {
        let name = "App.Program::Main";
        let lambda = |marker: &str| format!("App.Program.Main(string[]) ({marker})");
        let pattern = "Main (lambda, Program.cs:17)";
        assert!(names(pattern, name, &lambda("lambda, Program.cs:17")));
        assert!(!names(pattern, name, &lambda("lambda, Program.cs:18")));
        assert!(!names(pattern, name, &lambda("async lambda, Program.cs:17")));
        assert!(names(pattern, name, &lambda("lambda")), "the agent knows no lines");
        assert!(names("Main (lambda)", name, &lambda("lambda 2, Program.cs:18")));
        assert!(!names("Main (lambda)", name, "App.Program.Main(string[])"));
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
    fn excludes_win() {
        let filter = Filter {
            include: vec![Pattern::parse("[A]*").expect("a pattern")],
            exclude: vec![Pattern::parse("*::Skip").expect("a pattern")],
        };
        assert!(filter.passes("A", "T::Run", ""));
        assert!(!filter.passes("A", "T::Skip", ""));
        assert!(!filter.passes("B", "T::Run", ""));
        let excluding =
            |pattern: &str| Filter { include: Vec::new(), exclude: vec![Pattern::parse(pattern).expect("a pattern")] };
        let name = "Shop.Cart+Line+Part::Add";
        for pattern in ["Cart", "Shop.Cart", "[A]Shop.Cart", "*Cart", "*Line", "Cart::*", "Cart+Line", "Shop.Cart.Line"]
        {
            assert!(!excluding(pattern).passes("A", name, ""), "{pattern}");
        }
        for pattern in ["[B]Cart", "Shop", "Car", "Cart::Add*", "Cart::Add", "Shop.Cart.Add", "Cart(int)"] {
            assert!(excluding(pattern).passes("A", name, ""), "{pattern}");
        }
        assert!(!excluding("Cart::A?d").passes("A", "Shop.Cart::Add", ""));
        let including = Filter { include: vec![Pattern::parse("Cart").expect("a pattern")], exclude: Vec::new() };
        assert!(!including.passes("A", name, ""), "what is wanted is named");
    }
}
