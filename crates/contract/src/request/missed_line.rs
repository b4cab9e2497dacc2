//! A source line without code, and hints at what the user could have meant.

use std::fmt;

use super::source_line::SourceLine;

/// Hint at what the user could have meant by a line without code. Recordings store the hint as
/// text, which [`parse`](Self::parse) reads back.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum LineHint {
    /// Number of a nearby line that has code, in a file that the request matches.
    Line(u32),
    /// A source file with a name similar to the given one.
    File(String),
    /// An assembly without known lines: the reason, and what to do about it.
    Unknown(String),
}

impl LineHint {
    /// Parses the output of [`Display`](fmt::Display).
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        let (kind, rest) = text.split_once(' ')?;
        match kind {
            "line" => rest.parse().ok().map(Self::Line),
            "file" => Some(Self::File(rest.to_owned())),
            "unknown" => Some(Self::Unknown(rest.to_owned())),
            _ => None,
        }
    }
}

impl fmt::Display for LineHint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Line(line) => write!(f, "line {line}"),
            Self::File(file) => write!(f, "file {file}"),
            Self::Unknown(why) => write!(f, "unknown {why}"),
        }
    }
}

/// A requested line at which no loaded assembly has code.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MissedLine {
    /// The requested line, as given by the user.
    pub line: String,
    /// Hints, without duplicates.
    pub hints: Vec<LineHint>,
}

impl MissedLine {
    /// Maximum number of hints of each kind in a message.
    pub const MOST_HINTS: usize = 3;

    /// The line with its hints. Messages use the best kind of hint that is present.
    #[must_use]
    pub fn new(line: impl Into<String>, hints: impl IntoIterator<Item = LineHint>) -> Self {
        let mut hints: Vec<LineHint> = hints.into_iter().collect();
        hints.sort();
        hints.dedup();
        Self { line: line.into(), hints }
    }

    /// Reason why nothing is counted at the line.
    #[must_use]
    pub fn why(&self) -> String {
        match self.line.parse::<SourceLine>() {
            Ok(SourceLine { file, line }) if self.has_file() => format!("{file} has no code at line {line}"),
            Ok(SourceLine { file, .. }) => {
                format!("no loaded assembly with symbols has a source file whose path ends with '{file}'")
            }
            Err(_) => format!("'{}' is not a line", self.line),
        }
    }

    /// What the user could have meant instead; `None` if that is not known.
    #[must_use]
    pub fn hint(&self) -> Option<String> {
        let lines: Vec<String> = self.hint_texts(|hint| match hint {
            LineHint::Line(line) => Some(line.to_string()),
            _ => None,
        });
        if !lines.is_empty() {
            let lines: Vec<_> = self.nearest(lines);
            return Some(format!("nearest: {}", lines.join(", ")));
        }
        let files = self.hint_texts(|hint| match hint {
            LineHint::File(file) => Some(format!("'{file}'")),
            _ => None,
        });
        if !files.is_empty() {
            return Some(format!("did you mean {}?", files.join(" or ")));
        }
        let unknown = self.hint_texts(|hint| match hint {
            LineHint::Unknown(why) => Some(why.clone()),
            _ => None,
        });
        (!unknown.is_empty()).then(|| format!("no line information for {}", unknown.join("; for ")))
    }

    fn has_file(&self) -> bool {
        self.hints.iter().any(|hint| matches!(hint, LineHint::Line(_)))
    }

    fn hint_texts(&self, what: impl Fn(&LineHint) -> Option<String>) -> Vec<String> {
        let most = if self.has_file() { usize::MAX } else { Self::MOST_HINTS };
        self.hints.iter().filter_map(what).take(most).collect()
    }

    /// The nearest line on each side: files of the same name may have contributed more.
    fn nearest(&self, lines: Vec<String>) -> Vec<String> {
        let wanted = self.line.parse::<SourceLine>().map_or(0, |line| line.line);
        let mut lines: Vec<u32> = lines.iter().filter_map(|line| line.parse().ok()).collect();
        lines.sort_by_key(|line| line.abs_diff(wanted));
        lines.truncate(Self::MOST_HINTS);
        lines.sort_unstable();
        lines.iter().map(u32::to_string).collect()
    }
}

impl fmt::Display for MissedLine {
    /// Reason and cure in one line.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.why())?;
        match self.hint() {
            Some(hint) => write!(f, "; {hint}"),
            None => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_best_hint_is_said() {
        let said = |hints: &[LineHint]| MissedLine::new("Cart.cs:43", hints.to_vec()).to_string();
        let file = || LineHint::File("/src/Card.cs".to_owned());
        let unknown = || LineHint::Unknown("Shop: it was compiled without symbols. Build it again.".to_owned());
        let lines = [9, 45, 42, 70, 42].map(LineHint::Line);
        assert_eq!(said(&[&lines[..], &[file()]].concat()), "Cart.cs has no code at line 43; nearest: 42, 45, 70");
        let no_file = "no loaded assembly with symbols has a source file whose path ends with 'Cart.cs'";
        assert_eq!(said(&[unknown(), file()]), format!("{no_file}; did you mean '/src/Card.cs'?"));
        assert_eq!(
            said(&[unknown()]),
            format!("{no_file}; no line information for Shop: it was compiled without symbols. Build it again.")
        );
        assert_eq!(said(&[]), no_file);
    }

    #[test]
    fn hints_come_back_from_their_texts() {
        for hint in [LineHint::Line(7), LineHint::File("a b.cs".into()), LineHint::Unknown("Shop: no".into())] {
            assert_eq!(LineHint::parse(&hint.to_string()), Some(hint));
        }
        assert_eq!((LineHint::parse("line x"), LineHint::parse("page 7"), LineHint::parse("")), (None, None, None));
    }
}
