//! Markers for closures and state machines at the end of a signature: `(async)`, `(lambda,
//! Program.cs:17)`.

/// How markers begin.
const BEGINNINGS: [&str; 4] = ["(async", "(iterator", "(lambda", "(local function"];
/// Words in front of the name of a local function.
const LOCAL_FUNCTION: &str = "local function ";

/// Splits a name or signature from the marker at its end, without the parentheses: `async lambda`.
/// In a pattern the marker may follow a star.
#[must_use]
pub fn split_marker(text: &str) -> (&str, Option<&str>) {
    let is_begin = |&at: &usize| at == 0 || text[..at].ends_with([' ', '*']);
    let begin = BEGINNINGS.iter().filter_map(|beginning| text.rfind(beginning).filter(is_begin)).max();
    let split = begin.and_then(|at| Some((&text[..at], text[at..].strip_suffix(')')?.get(1..)?)));
    split.map_or((text, None), |(plain, marker)| (plain.strip_suffix(' ').unwrap_or(plain), Some(marker)))
}

/// A marker: words, and a number or a line that distinguishes code with the same words.
#[derive(Debug, Clone, Copy)]
pub(super) struct Marker<'m>(pub(super) &'m str);

impl<'m> Marker<'m> {
    /// The words, the number and the line.
    fn parts(self) -> (&'m str, Option<&'m str>, Option<&'m str>) {
        let (front, line) = self.0.split_once(", ").map_or((self.0, None), |(front, line)| (front, Some(line)));
        match front.rsplit_once(' ') {
            Some((words, number)) if number.bytes().all(|b| b.is_ascii_digit()) => (words, Some(number), line),
            _ => (front, None, line),
        }
    }

    /// The name of the local function, if the code is one.
    pub(super) fn local_function(self) -> Option<&'m str> {
        let (words, ..) = self.parts();
        words.split_once(LOCAL_FUNCTION).map(|(_, name)| name)
    }

    /// Whether this marker of a pattern means the code with the marker `code`: the words are equal,
    /// and so are the number and the line if both markers have them.
    pub(super) fn is_of(self, code: Marker<'_>) -> bool {
        let (wanted, code) = (self.parts(), code.parts());
        let agree = |a: Option<&str>, b: Option<&str>| a.is_none() || b.is_none() || a == b;
        wanted.0 == code.0 && agree(wanted.1, code.1) && agree(wanted.2, code.2)
    }
}
