//! Texts with `*` and `?`.

use std::fmt;

/// A plain text with `*` and `?`, for things that are not functions: modules, threads, processes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Glob(String);

impl Glob {
    /// Any text is a glob; without `*` and `?` it matches only itself.
    #[must_use]
    pub fn new(text: &str) -> Self {
        Self(text.trim().to_owned())
    }

    /// Whether the glob matches all of `text`, case-sensitively.
    #[must_use]
    pub fn matches(&self, text: &str) -> bool {
        glob(&self.0, text)
    }

    /// Whether any of the globs matches `text`; true if there are no globs.
    #[must_use]
    pub fn any_matches(globs: &[Self], text: &str) -> bool {
        globs.is_empty() || globs.iter().any(|glob| glob.matches(text))
    }

    /// The text of the glob.
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

/// Whether `pattern` matches the whole of `text`: `*` matches any run of characters, `?` any single
/// character, and every other character only itself.
pub(super) fn glob(pattern: &str, text: &str) -> bool {
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
            // Let the last star match one character more.
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

/// `?` matches a whole character, not one byte of it.
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

    #[test]
    fn globs_match_whole_texts() {
        assert!(Glob::new("Shop.*").matches("Shop.Core"));
        assert!(!Glob::new("Shop").matches("Shop.Core"));
        assert!(Glob::new(" worker ? ").matches("worker 7"));
    }
}
