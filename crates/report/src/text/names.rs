//! Names of functions, as long as there is room for.

use clrscope_analysis::FunctionRef;
use clrscope_recording::model::SourceKind;
use rustc_hash::FxHashMap;
use unicode_width::{UnicodeWidthChar, UnicodeWidthStr};

use crate::one_line;

/// How many columns a text takes.
pub(super) fn columns(text: &str) -> usize {
    text.width()
}

/// Shortens a text in the middle: of a name, the end says most and the beginning more than the rest.
pub(super) fn shortened(text: &str, room: usize) -> String {
    let text = one_line(text);
    if columns(&text) <= room {
        return text;
    }
    let kept = room.saturating_sub(3);
    let head: String = taken(text.chars(), kept / 3);
    let tail: String = taken(text.chars().rev(), kept - columns(&head)).chars().rev().collect();
    let dots = &"..."[..room.min(3)];
    format!("{head}{dots}{tail}")
}

fn taken(chars: impl Iterator<Item = char>, room: usize) -> String {
    let mut used = 0;
    chars
        .take_while(|c| {
            used += c.width().unwrap_or(0);
            used <= room
        })
        .collect()
}

/// Shows functions by name, and by signature where two rows would look the same.
#[derive(Debug, Default)]
pub(super) struct Names<'a> {
    seen: FxHashMap<&'a str, Seen<'a>>,
}

#[derive(Debug)]
enum Seen<'a> {
    One(&'a str),
    Several,
}

impl<'a> Names<'a> {
    /// Looks at the functions of a table.
    pub(super) fn of(functions: impl IntoIterator<Item = FunctionRef<'a>>) -> Self {
        let mut names = Self::default();
        for function in functions {
            let entry = names.seen.entry(function.name()).or_insert(Seen::One(function.signature()));
            if matches!(entry, Seen::One(signature) if *signature != function.signature()) {
                *entry = Seen::Several;
            }
        }
        names
    }

    /// What a table shows for one of them.
    pub(super) fn shown(&self, function: &FunctionRef<'_>) -> String {
        let name = match self.seen.get(function.name()) {
            Some(Seen::Several) => function.signature(),
            _ => function.name(),
        };
        format!("{name}{}", code_of(function))
    }
}

/// Which code of the method that names it a function is, where that is not the method's own: ` (async)`, ` (lambda)`.
pub(super) fn code_of(function: &FunctionRef<'_>) -> String {
    made_from(function.function.source).map_or_else(String::new, |source| format!(" ({source})"))
}

/// What the compiler made of the source method that names the function.
fn made_from(source: SourceKind) -> Option<&'static str> {
    match source {
        SourceKind::Plain => None,
        SourceKind::Async => Some("async"),
        SourceKind::Iterator => Some("iterator"),
        SourceKind::Lambda => Some("lambda"),
        SourceKind::LocalFunction => Some("local function"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_lose_their_middle() {
        let name = "Microsoft.Extensions.DependencyInjection.ServiceProvider::GetService";
        assert_eq!(shortened(name, 100), name);
        let short = shortened(name, 40);
        assert_eq!(columns(&short), 40);
        assert!(short.starts_with("Microsoft.Ex...") && short.ends_with("::GetService"), "{short}");
        assert_eq!(shortened(name, 2), "..");
        assert_eq!(shortened("\u{540d}\u{524d}\u{540d}\u{524d}", 6).as_str(), "...\u{524d}");
    }

    #[test]
    fn control_characters_never_reach_the_terminal() {
        assert_eq!(shortened("a\x1b[31mb\n", 40), "a\\u{1b}[31mb\\n");
    }
}
