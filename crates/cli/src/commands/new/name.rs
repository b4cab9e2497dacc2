//! Names that cargo accepts for a crate.

/// Keywords of Rust, and names that cargo or the crate's own dependencies need.
const TAKEN: [&str; 61] = [
    "abstract",
    "alloc",
    "as",
    "async",
    "await",
    "become",
    "box",
    "break",
    "build",
    "clr-profiler",
    "clr_profiler",
    "const",
    "continue",
    "core",
    "crate",
    "deps",
    "do",
    "dyn",
    "else",
    "enum",
    "examples",
    "extern",
    "false",
    "final",
    "fn",
    "for",
    "gen",
    "if",
    "impl",
    "in",
    "incremental",
    "let",
    "loop",
    "macro",
    "match",
    "mod",
    "move",
    "mut",
    "override",
    "priv",
    "proc_macro",
    "pub",
    "ref",
    "return",
    "self",
    "static",
    "std",
    "struct",
    "super",
    "test",
    "trait",
    "true",
    "try",
    "type",
    "typeof",
    "unsafe",
    "use",
    "virtual",
    "where",
    "while",
    "yield",
];
/// Longest name, as on the public registry.
const LONGEST: usize = 64;

/// A crate name that cargo accepts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct CrateName(String);

impl CrateName {
    /// # Errors
    /// Why cargo would refuse the name.
    pub(crate) fn parse(text: &str) -> Result<Self, String> {
        let Some(first) = text.chars().next() else { return Err("it is empty".to_owned()) };
        if let Some(bad) = text.chars().find(|c| !c.is_ascii_alphanumeric() && !"-_".contains(*c)) {
            return Err(format!("it has the character {bad:?}"));
        }
        if let Some(capital) = text.chars().find(char::is_ascii_uppercase) {
            // Cargo accepts capitals, but warns at each build.
            return Err(format!("it has the capital {capital:?}"));
        }
        if !first.is_ascii_alphabetic() {
            return Err("it does not begin with a letter".to_owned());
        }
        if text.len() > LONGEST {
            return Err(format!("it is longer than {LONGEST} characters"));
        }
        if TAKEN.contains(&text) {
            return Err("it is a reserved word of Rust or cargo".to_owned());
        }
        Ok(Self(text.to_owned()))
    }

    /// The name as it was written.
    pub(super) fn as_str(&self) -> &str {
        &self.0
    }

    /// The name in code and in the file name of the library: `shop_watch`.
    pub(super) fn in_code(&self) -> String {
        self.0.replace('-', "_")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_cargo_takes_is_a_name() {
        for good in ["watch", "shop-watch", "shop_2", "a"] {
            assert!(CrateName::parse(good).is_ok(), "{good}");
        }
        for bad in [
            "",
            "2nd",
            "Shop",
            "-x",
            "_",
            "a b",
            "a/b",
            "..",
            "caf\u{e9}",
            "fn",
            "test",
            "clr-profiler",
            &"x".repeat(65),
        ] {
            assert!(CrateName::parse(bad).is_err(), "{bad}");
        }
    }
}
