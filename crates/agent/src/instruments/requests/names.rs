//! Names of requests: `GET /orders/{id}`, `GET /files/* (no endpoint)`, `GET example.org:8080`.
//!
//! Nearly all requests have a name that was met before: then the table is read without a lock.
//! Programs may be asked for a million paths, so there are only so many names; what comes later is
//! `(others)`. Of paths without a template only the first segment is kept, and nothing of queries.

use std::hash::{BuildHasher as _, Hash as _, Hasher as _, RandomState};
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};

/// Names of a recording.
const MOST_NAMES: u32 = 2_000;
/// Places of the table, a power of two that is a few times that.
const PLACES: usize = 1 << 13;
/// Characters of a name's parts.
const MOST_CHARACTERS: usize = 200;
/// Name of what is in none of the others.
const OTHERS: &str = "(others)";
/// Name of requests of which the server's objects say nothing that is known.
const NOT_KNOWN: &str = "(not known)";

/// Whether a request is served or made.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) enum Direction {
    /// The program answers it.
    Served = 0,
    /// The program asks.
    Made = 1,
}

/// What a request is about. Texts are those of the program.
#[derive(Debug, Clone, Copy)]
pub(super) enum Subject<'t> {
    /// The template of a route, as it is written.
    Template(&'t [u16]),
    /// A path for which there is no template, and whether an endpoint serves it.
    Path(&'t [u16], bool),
    /// A host, with a port that is not the scheme's own; 0 for none.
    Host(&'t [u16], u32),
    /// Nothing is known.
    Unknown,
}

impl Subject<'_> {
    /// The characters that count, and what else tells the subject from others.
    fn parts(&self) -> (&[u16], u32, u8) {
        match *self {
            Self::Template(template) => (cut(template), 0, 0),
            Self::Path(path, has_endpoint) => {
                let (first, has_more) = first_segment(path);
                (cut(first), has_more.into(), 1 + u8::from(has_endpoint))
            }
            Self::Host(host, port) => (cut(host), port, 3),
            Self::Unknown => (&[], 0, 4),
        }
    }

    fn text(&self) -> String {
        let (characters, number, _) = self.parts();
        let text = String::from_utf16_lossy(characters);
        match self {
            Self::Template(_) if text.starts_with('/') => text,
            Self::Template(_) => format!("/{text}"),
            Self::Path(_, has_endpoint) => {
                let rest = if number != 0 { "/*" } else { "" };
                let remark = if *has_endpoint { "" } else { " (no endpoint)" };
                format!("{text}{rest}{remark}")
            }
            Self::Host(..) if number != 0 => format!("{text}:{number}"),
            Self::Host(..) => text,
            Self::Unknown => NOT_KNOWN.to_owned(),
        }
    }
}

fn cut(text: &[u16]) -> &[u16] {
    &text[..text.len().min(MOST_CHARACTERS)]
}

/// The first segment of a path with its slash, and whether more follows.
fn first_segment(path: &[u16]) -> (&[u16], bool) {
    let slash = u16::from(b'/');
    match path.iter().skip(1).position(|character| *character == slash) {
        Some(at) => (&path[..=at], true),
        None => (path, false),
    }
}

/// The names of a recording.
pub(super) struct Names {
    /// Mixes with a secret: paths come from outside, and could be chosen to be alike.
    mixer: RandomState,
    /// Mixed names, each with its number at the same place; 0 where there is none.
    mixed: Box<[AtomicU64]>,
    numbers: Box<[AtomicU32]>,
    /// Names so far. Whoever adds one holds the lock.
    count: AtomicU32,
    adding: Mutex<()>,
}

impl Names {
    pub(super) fn new() -> Self {
        Self {
            mixer: RandomState::new(),
            mixed: (0..PLACES).map(|_| AtomicU64::new(0)).collect(),
            numbers: (0..PLACES).map(|_| AtomicU32::new(0)).collect(),
            count: AtomicU32::new(0),
            adding: Mutex::new(()),
        }
    }

    /// The number of a name. `tell` is told of a new one, once.
    pub(super) fn number(
        &self,
        direction: Direction,
        method: &[u16],
        subject: Subject<'_>,
        tell: impl Fn(u32, &str),
    ) -> u32 {
        let mixed = self.mix(direction, method, subject);
        match self.find(mixed) {
            Ok(number) => number,
            Err(_) if self.count.load(Ordering::Relaxed) >= MOST_NAMES => self.others(direction, tell),
            Err(_) => {
                let method = String::from_utf16_lossy(cut(method));
                let between = if method.is_empty() { "" } else { " " };
                self.add(mixed, || format!("{method}{between}{}", subject.text()), tell)
            }
        }
    }

    fn others(&self, direction: Direction, tell: impl Fn(u32, &str)) -> u32 {
        let mixed = self.mixer.hash_one((OTHERS, direction)) | 1;
        self.find(mixed).unwrap_or_else(|_| self.add(mixed, || OTHERS.to_owned(), tell))
    }

    fn mix(&self, direction: Direction, method: &[u16], subject: Subject<'_>) -> u64 {
        let (characters, number, kind) = subject.parts();
        let mut mixer = self.mixer.build_hasher();
        mixer.write_u64(u64::from(number) << 32 | u64::from(kind) << 8 | direction as u64);
        (cut(method), characters).hash(&mut mixer);
        mixer.finish() | 1
    }

    /// The number of a mixed name, or the place where it would stand.
    fn find(&self, mixed: u64) -> Result<u32, usize> {
        let mut at = (mixed >> 32) as usize % PLACES;
        loop {
            match self.mixed[at].load(Ordering::Acquire) {
                0 => return Err(at),
                found if found == mixed => return Ok(self.numbers[at].load(Ordering::Relaxed)),
                // There are fewer names than places.
                _ => at = (at + 1) % PLACES,
            }
        }
    }

    #[cold]
    fn add(&self, mixed: u64, name: impl Fn() -> String, tell: impl Fn(u32, &str)) -> u32 {
        let _alone = self.adding.lock().unwrap_or_else(PoisonError::into_inner);
        self.find(mixed).unwrap_or_else(|place| {
            let number = self.count.fetch_add(1, Ordering::Relaxed) + 1;
            tell(number, &name());
            self.numbers[place].store(number, Ordering::Relaxed);
            self.mixed[place].store(mixed, Ordering::Release);
            number
        })
    }
}

#[cfg(test)]
mod tests {
    use std::cell::RefCell;
    use std::collections::HashSet;

    use super::*;

    fn wide(text: &str) -> Vec<u16> {
        text.encode_utf16().collect()
    }

    /// Names, and those that they have told of, in the order of their numbers.
    struct Told {
        names: Names,
        told: RefCell<Vec<String>>,
    }

    impl Told {
        fn new() -> Self {
            Self { names: Names::new(), told: RefCell::new(Vec::new()) }
        }

        fn number(&self, direction: Direction, method: &str, subject: Subject<'_>) -> u32 {
            self.names.number(direction, &wide(method), subject, |_, name| self.told.borrow_mut().push(name.to_owned()))
        }

        fn name(&self, direction: Direction, method: &str, subject: Subject<'_>) -> String {
            let number = self.number(direction, method, subject);
            self.told.borrow()[number as usize - 1].clone()
        }

        fn served(&self, subject: Subject<'_>) -> String {
            self.name(Direction::Served, "GET", subject)
        }
    }

    #[test]
    fn requests_are_named_by_template_or_first_segment_or_host() {
        let told = Told::new();
        assert_eq!(told.served(Subject::Template(&wide("/orders/{id:int}"))), "GET /orders/{id:int}");
        assert_eq!(told.served(Subject::Template(&wide("{controller=Home}"))), "GET /{controller=Home}");
        assert_eq!(told.served(Subject::Path(&wide("/files/a/b"), false)), "GET /files/* (no endpoint)");
        assert_eq!(told.served(Subject::Path(&wide("/files/c"), false)), "GET /files/* (no endpoint)");
        assert_eq!(told.served(Subject::Path(&wide("/files"), false)), "GET /files (no endpoint)");
        assert_eq!(told.served(Subject::Path(&wide("/"), true)), "GET /");
        let made = |host: &str, port| told.name(Direction::Made, "POST", Subject::Host(&wide(host), port));
        assert_eq!([made("a.example", 8080), made("a.example", 0)], ["POST a.example:8080", "POST a.example"]);
        assert_eq!(told.name(Direction::Served, "", Subject::Unknown), NOT_KNOWN);
        assert_eq!(told.told.borrow().len(), 8, "one of the nine was met twice");
    }

    #[test]
    fn many_paths_have_a_bounded_number_of_names() {
        let told = Told::new();
        let number =
            |path: u32| told.number(Direction::Served, "GET", Subject::Path(&wide(&format!("/{path}")), false));
        let numbers: HashSet<u32> = (0..100_000).map(number).collect();
        let names = told.told.borrow();
        assert_eq!((numbers.len(), names.len()), (MOST_NAMES as usize + 1, MOST_NAMES as usize + 1));
        assert_eq!(names.last().map(String::as_str), Some(OTHERS));
    }
}
