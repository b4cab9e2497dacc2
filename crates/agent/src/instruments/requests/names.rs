//! Names of requests: `GET /orders/{id}`, `GET /files/* (no endpoint)`, `GET example.org:8080`,
//! `SELECT shop@db.example.org`.
//!
//! Nearly all requests have a known name, which is found in the table without a lock. Clients may
//! ask a program for a million paths, so the number of names is limited; further requests are named
//! `(others)`. Paths without a template keep only the first segment, and queries are dropped,
//! unless whole URLs are asked for.

use std::hash::{BuildHasher as _, Hash as _, Hasher as _, RandomState};
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};

/// Most names of a recording.
const MOST_NAMES: u32 = 2_000;
/// Places of the table: a power of two, a few times the number of names.
const PLACES: usize = 1 << 13;
/// Most characters of a name's parts, and of the parts of a whole URL: all fit into a record.
const MOST_CHARACTERS: usize = 200;
const MOST_OF_URL: usize = 2_000;
/// Name of requests beyond the limit of names.
const OTHERS: &str = "(others)";
/// Name of requests about which nothing could be read from the server's objects.
const NOT_KNOWN: &str = "(not known)";

/// Whether a request is served or made.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) enum Direction {
    /// The program serves the request.
    Served = 0,
    /// The program makes the request.
    Made = 1,
}

/// What a request is for. The texts are the program's own.
#[derive(Debug, Clone, Copy)]
pub(super) enum Subject<'t> {
    /// The template of a route, as written in the source.
    Template(&'t [u16]),
    /// A path without a template. The flag says whether an endpoint serves it.
    Path(&'t [u16], bool),
    /// A path and its query, without a template. The flag says whether an endpoint serves the path.
    /// Used if names contain whole URLs.
    Url(&'t [u16], &'t [u16], bool),
    /// A host, with its port (0 for the scheme's default). If names contain whole URLs, also path
    /// and query.
    Host(&'t [u16], u32, &'t [u16]),
    /// A database and its server.
    Database(&'t [u16], &'t [u16]),
    /// Nothing is known.
    Unknown,
}

impl Subject<'_> {
    /// The characters that count, and further values that distinguish subjects.
    fn parts(&self) -> ([&[u16]; 2], u32, u8) {
        match *self {
            Self::Template(template) => ([cut(template), &[]], 0, 0),
            Self::Path(path, has_endpoint) => {
                let (first, has_more) = first_segment(path);
                ([cut(first), &[]], has_more.into(), 1 + u8::from(has_endpoint))
            }
            Self::Host(host, port, path) => ([cut(host), cut_to(path, MOST_OF_URL)], port, 3),
            Self::Unknown => ([&[], &[]], 0, 4),
            Self::Database(database, server) => ([cut(database), cut(server)], 0, 5),
            Self::Url(path, query, has_endpoint) => {
                ([path, query].map(|part| cut_to(part, MOST_OF_URL)), 0, 6 + u8::from(has_endpoint))
            }
        }
    }

    fn text(&self) -> String {
        let (characters, number, _) = self.parts();
        let [text, second] = characters.map(String::from_utf16_lossy);
        match self {
            Self::Template(_) if text.starts_with('/') => text,
            Self::Template(_) => format!("/{text}"),
            Self::Path(_, has_endpoint) => {
                let rest = if number != 0 { "/*" } else { "" };
                format!("{text}{rest}{}", remark(*has_endpoint))
            }
            Self::Url(_, _, has_endpoint) => format!("{text}{second}{}", remark(*has_endpoint)),
            Self::Host(..) if number != 0 => format!("{text}:{number}{second}"),
            Self::Host(..) => format!("{text}{second}"),
            Self::Database(..) => match (text.is_empty(), second.is_empty()) {
                (true, true) => NOT_KNOWN.to_owned(),
                (false, true) => text,
                (true, false) => format!("@{second}"),
                (false, false) => format!("{text}@{second}"),
            },
            Self::Unknown => NOT_KNOWN.to_owned(),
        }
    }
}

fn cut(text: &[u16]) -> &[u16] {
    cut_to(text, MOST_CHARACTERS)
}

fn cut_to(text: &[u16], most: usize) -> &[u16] {
    &text[..text.len().min(most)]
}

fn remark(has_endpoint: bool) -> &'static str {
    if has_endpoint { "" } else { " (no endpoint)" }
}

/// The first segment of a path with its slash, and whether more segments follow.
fn first_segment(path: &[u16]) -> (&[u16], bool) {
    let slash = u16::from(b'/');
    match path.iter().skip(1).position(|character| *character == slash) {
        Some(at) => (&path[..=at], true),
        None => (path, false),
    }
}

/// The names of a recording.
pub(super) struct Names {
    /// Hashes with a secret: paths come from outside, and could be chosen to collide.
    mixer: RandomState,
    /// Hashes of names, each with the name's number at the same place; 0 for a free place.
    mixed: Box<[AtomicU64]>,
    numbers: Box<[AtomicU32]>,
    /// Number of names so far. A thread that adds a name holds the lock.
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

    /// The number of a name. Calls `tell` once for each new name.
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

    /// The number of a hashed name, or its free place.
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

    /// Names, and the new names that were reported, in the order of their numbers.
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
        let made = |host: &str, port| told.name(Direction::Made, "POST", Subject::Host(&wide(host), port, &[]));
        assert_eq!([made("a.example", 8080), made("a.example", 0)], ["POST a.example:8080", "POST a.example"]);
        assert_eq!(told.name(Direction::Served, "", Subject::Unknown), NOT_KNOWN);
        let sent = |database: &str, server: &str| {
            told.name(Direction::Made, "SELECT", Subject::Database(&wide(database), &wide(server)))
        };
        let sent = [sent("shop", "db.example"), sent("shop", ""), sent("", "shop"), sent("", "")];
        assert_eq!(sent, ["SELECT shop@db.example", "SELECT shop", "SELECT @shop", "SELECT (not known)"]);
        let url = |query: &str, has_endpoint| told.served(Subject::Url(&wide("/files/a"), &wide(query), has_endpoint));
        assert_eq!([url("?b=1", true), url("", false)], ["GET /files/a?b=1", "GET /files/a (no endpoint)"]);
        let made = told.name(Direction::Made, "GET", Subject::Host(&wide("a.example"), 8080, &wide("/b?c=1")));
        assert_eq!(made, "GET a.example:8080/b?c=1");
        assert_eq!(told.told.borrow().len(), 15, "one was met twice");
    }

    #[test]
    fn a_million_paths_have_a_bounded_number_of_names() {
        let told = Told::new();
        let number = |path: u32| {
            let path = wide(&format!("/{path}"));
            let short = told.number(Direction::Served, "GET", Subject::Path(&path, false));
            [short, told.number(Direction::Served, "GET", Subject::Url(&path, &path, false))]
        };
        let numbers: HashSet<u32> = (0..1_000_000).flat_map(number).collect();
        let names = told.told.borrow();
        assert_eq!((numbers.len(), names.len()), (MOST_NAMES as usize + 1, MOST_NAMES as usize + 1));
        assert_eq!(names.last().map(String::as_str), Some(OTHERS));
    }

    /// Escaping is left to the code that shows the names; here they are only cut to valid texts.
    #[test]
    fn long_texts_are_cut_and_halves_of_characters_become_text() {
        let told = Told::new();
        let long = wide(&"/x".repeat(50_000));
        let name = |method: &str, subject| told.name(Direction::Served, method, subject).chars().count();
        let lengths = [
            name("GET", Subject::Template(&long)),
            name("GET", Subject::Path(&long[1..], false)),
            name("GET", Subject::Host(&long, 80, &long)),
            name("GET", Subject::Url(&long, &long, true)),
            name("GET", Subject::Database(&long, &long)),
            name(&"G".repeat(100_000), Subject::Path(&wide("/"), true)),
        ];
        let (part, url) = (MOST_CHARACTERS, MOST_OF_URL);
        assert_eq!(
            lengths,
            [4 + part, 4 + " x/* (no endpoint)".len() - 1, 7 + part + url, 4 + 2 * url, 5 + 2 * part, part + 2]
        );
        let halves = [0xD800, u16::from(b'/'), 0xDC00, 0x202E, 0x1B, 0];
        assert_eq!(told.served(Subject::Template(&halves)), "GET /\u{fffd}/\u{fffd}\u{202e}\u{1b}\0");
        // Cut in the middle of a character.
        let wide_ones = wide(&"\u{1F600}".repeat(MOST_CHARACTERS));
        let name = told.served(Subject::Template(&[&wide("/")[..], &wide_ones].concat()));
        assert!(name.ends_with("\u{1F600}\u{fffd}"), "{name}");
    }
}
