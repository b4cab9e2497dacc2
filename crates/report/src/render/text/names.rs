//! Names of functions, as long as there is room for.

use rustc_hash::FxHashMap;
use unicode_width::{UnicodeWidthChar, UnicodeWidthStr};

use super::one_line;

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
    seen: FxHashMap<&'a str, Signatures<'a>>,
}

#[derive(Debug)]
enum Signatures<'a> {
    One(&'a str),
    Several,
}

impl<'a> Names<'a> {
    /// Looks at the functions of a table, each a name and a signature.
    pub(super) fn of(functions: impl IntoIterator<Item = (&'a str, &'a str)>) -> Self {
        let mut names = Self::default();
        for (name, signature) in functions {
            let entry = names.seen.entry(name).or_insert(Signatures::One(signature));
            if matches!(entry, Signatures::One(known) if *known != signature) {
                *entry = Signatures::Several;
            }
        }
        names
    }

    /// What a table shows for one of them.
    pub(super) fn shown<'f>(&self, name: &'f str, signature: &'f str) -> &'f str {
        match self.seen.get(name) {
            Some(Signatures::Several) => signature,
            _ => name,
        }
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
