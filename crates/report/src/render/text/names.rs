//! Names of functions, shortened to the available room.

use rustc_hash::FxHashMap;
use unicode_width::{UnicodeWidthChar, UnicodeWidthStr};

use super::one_line;

/// Number of columns that a text takes.
pub(super) fn columns(text: &str) -> usize {
    text.width()
}

/// Shortens a text in the middle, because the end of a name is the most informative part, followed
/// by the beginning.
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

/// Shortens the name or the signature of a function so that the method's own name stays. It drops,
/// in this order: namespaces of parameters, namespaces of the method, the parameters, type
/// arguments, the type.
pub(super) fn shortened_function(text: &str, room: usize) -> String {
    let text = one_line(text);
    if columns(&text) <= room {
        return text;
    }
    let parts = Parts::parse(&text);
    parts.forms().find(|form| columns(form) <= room).unwrap_or_else(|| {
        let method = room.saturating_sub(columns(parts.after));
        shortened(parts.method, if method < LEAST_METHOD { room } else { method })
            + if method < LEAST_METHOD { "" } else { parts.after }
    })
}

/// The kind of thing that a name belongs to: it decides which parts of the name are dropped first.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NameKind {
    /// Functions.
    Function,
    /// Types.
    Type,
    /// Counters, with provider, tags and unit.
    Counter,
}

impl NameKind {
    /// The name; shortened to at most `room` columns of a terminal if it is wider.
    #[must_use]
    pub fn shortened(self, text: &str, room: usize) -> String {
        match self {
            Self::Function => shortened_function(text, room),
            Self::Type => first_that_fits(type_forms, text, room),
            Self::Counter => first_that_fits(counter_forms, text, room),
        }
    }
}

fn first_that_fits<F: Iterator<Item = String>>(forms: fn(String) -> F, text: &str, room: usize) -> String {
    let text = one_line(text);
    if columns(&text) <= room {
        return text;
    }
    forms(text.clone()).find(|form| columns(form) <= room).unwrap_or_else(|| shortened(&text, room))
}

/// Ever shorter forms of a type's name: without the namespaces in type arguments, then without the
/// type's own namespaces, and without type arguments.
fn type_forms(name: String) -> impl Iterator<Item = String> {
    let inner = without_inner_namespaces(&name);
    let cut = |name: &str| -> Vec<String> {
        std::iter::once(name.to_owned())
            .chain(cuts(name).into_iter().map(|cut| format!("...{}", &name[cut..])))
            .collect()
    };
    let mut forms = cut(&inner);
    forms.extend(cut(&inner).iter().map(|form| without_type_arguments(form)));
    forms.into_iter()
}

/// Ever shorter forms of `provider/name{tag=value,...} (unit)`: without the provider, with the
/// values of tags alone, and with the end of the name. The values tell rows of one counter apart.
fn counter_forms(text: String) -> impl Iterator<Item = String> {
    let (name, tags) = match text.split_once('{') {
        Some((name, tags)) => (name, Some(tags)),
        None => (&*text, None),
    };
    let name = name.rsplit_once('/').map_or(name, |(_, name)| name);
    let values = |tags: &str| {
        let (tags, unit) = tags.rsplit_once('}').unwrap_or((tags, ""));
        let values: Vec<&str> =
            tags.split(',').map(|tag| tag.split_once('=').map_or(tag, |(_, value)| value)).collect();
        format!("{{{}}}{unit}", values.join(","))
    };
    let whole = tags.map(|tags| format!("{name}{{{tags}"));
    let rest = tags.map(values).unwrap_or_default();
    let ends = cuts(name).into_iter().map(|cut| format!("...{}", &name[cut..]));
    let short: Vec<String> = std::iter::once(name.to_owned()).chain(ends).map(|name| name + &rest).collect();
    whole.into_iter().chain(short)
}

/// Names longer than this lose their inner namespaces, even if there is room.
const LONGEST_NAME: usize = 160;
/// A method's name is not made shorter than this to make room for the text after it.
const LEAST_METHOD: usize = 12;

/// The parts of a function's name or signature.
#[derive(Debug, PartialEq, Eq)]
struct Parts<'t> {
    /// Namespace and type, including the separator before the method.
    qualifier: &'t str,
    method: &'t str,
    /// Parameters, including the parentheses.
    parameters: &'t str,
    /// Marker after the signature: ` (lambda)`.
    after: &'t str,
}

impl<'t> Parts<'t> {
    fn parse(text: &'t str) -> Self {
        let (mut rest, mut parameters) = (text, "");
        while let Some(at) = last_group(rest) {
            if !rest[..at].ends_with(' ') {
                (rest, parameters) = rest.split_at(at);
                break;
            }
            rest = &rest[..at - 1];
        }
        let after = &text[rest.len() + parameters.len()..];
        let (qualifier, method) = rest.split_at(method_start(rest));
        Self { qualifier, method, parameters, after }
    }

    /// Ever shorter forms.
    fn forms(&self) -> impl Iterator<Item = String> {
        let Self { qualifier, method, parameters, after } = self;
        let short = without_inner_namespaces(parameters);
        let dots = if parameters.is_empty() { "" } else { "(...)" };
        // Where the qualifier can be cut, the type's own name kept.
        let inner = qualifier.trim_end_matches([':', '.']).len();
        let cuts = cuts(&qualifier[..inner]);
        let from = |cut: usize| if cut == 0 { (*qualifier).to_owned() } else { format!("...{}", &qualifier[cut..]) };
        let kept: Vec<String> = std::iter::once(0).chain(cuts).map(from).collect();
        let last = kept.last().cloned().unwrap_or_default();
        let tuple = method.starts_with('(').then(|| without_inner_namespaces(method) + &short + after);
        let mut forms: Vec<String> = tuple.into_iter().collect();
        forms.extend(kept.iter().map(|kept| format!("{kept}{method}{short}{after}")));
        forms.extend(kept.iter().map(|kept| format!("{kept}{method}{dots}{after}")));
        let bare = without_type_arguments(method);
        let plain = without_type_arguments(&last) + &bare;
        let separator = if qualifier.ends_with("::") { "::" } else { "" };
        forms.extend([format!("{plain}{dots}{after}"), format!("...{separator}{bare}{dots}{after}")]);
        forms.push(format!("...{separator}{bare}{after}"));
        forms.extend(positions(after).map(|position| format!("...{separator}{bare}{position}")));
        forms.push(format!("...{separator}{bare}"));
        forms.into_iter()
    }
}

/// Ever shorter forms of a marker that keep the line number: ` (lambda, Program.cs:17)` is
/// shortened to ` (Program.cs:17)` and to ` (:17)`.
fn positions(marker: &str) -> impl Iterator<Item = String> {
    let place = marker.split_once(", ").map(|(_, place)| place).filter(|place| place.contains(':'));
    let line = place.and_then(|place| place.rsplit_once(':'));
    [place.map(|place| format!(" ({place}")), line.map(|(_, line)| format!(" (:{line}"))].into_iter().flatten()
}

/// Start of the group in parentheses with which a text ends.
fn last_group(text: &str) -> Option<usize> {
    if !text.ends_with(')') {
        return None;
    }
    let mut open = 0_u32;
    for (at, byte) in text.bytes().enumerate().rev() {
        match byte {
            b')' => open += 1,
            b'(' if open == 1 => return Some(at),
            b'(' => open -= 1,
            _ => {}
        }
    }
    None
}

/// Start of the method in `Namespace.Type::Method`, or in `Namespace.Type.Method<T>`.
fn method_start(name: &str) -> usize {
    if let Some(at) = name.rfind("::") {
        return at + 2;
    }
    let mut open = 0_u32;
    for (at, byte) in name.bytes().enumerate().rev() {
        match byte {
            b'>' | b')' => open += 1,
            b'<' | b'(' => open = open.saturating_sub(1),
            b'.' if open == 0 => return at + 1,
            _ => {}
        }
    }
    0
}

/// Ends of namespaces and outer types, outside type arguments.
fn cuts(qualifier: &str) -> Vec<usize> {
    let mut open = 0_u32;
    let mut found = Vec::new();
    for (at, byte) in qualifier.bytes().enumerate() {
        match byte {
            b'<' | b'(' => open += 1,
            b'>' | b')' => open = open.saturating_sub(1),
            b'.' | b'+' if open == 0 => found.push(at + 1),
            _ => {}
        }
    }
    found
}

/// The name or signature. If it is very long, the namespaces in its type arguments and parameters
/// are removed. Such names come from state machines, whose names repeat their types.
pub(super) fn readable(text: String) -> String {
    if columns(&text) <= LONGEST_NAME { text } else { without_inner_namespaces(&text) }
}

/// `A.B<C.D>.E(System.String, int)` as `A.B<D>.E(String, int)`.
fn without_inner_namespaces(text: &str) -> String {
    let is_name = |c: char| c.is_alphanumeric() || matches!(c, '_' | '.' | '+' | '`');
    let mut short = String::with_capacity(text.len());
    let (mut open, mut rest) = (0_u32, text);
    while let Some(first) = rest.chars().next() {
        let end = if is_name(first) { rest.find(|c| !is_name(c)).unwrap_or(rest.len()) } else { first.len_utf8() };
        let (word, behind) = rest.split_at(end);
        rest = behind;
        match first {
            '<' | '(' => open += 1,
            '>' | ')' => open = open.saturating_sub(1),
            _ => {}
        }
        // A nested type of a generic type has a dot before its name; compiler-generated names have
        // a dot after it.
        let namespace = word.trim_end_matches('.').rfind('.').filter(|_| open > 0 && !word.starts_with('.'));
        short.push_str(&word[namespace.map_or(0, |at| at + 1)..]);
    }
    short
}

/// `List<int>` as `List<...>`.
fn without_type_arguments(name: &str) -> String {
    let Some((before, rest)) = name.split_once('<') else { return name.to_owned() };
    match rest.rsplit_once('>') {
        Some((_, after)) if !before.is_empty() => format!("{before}<...>{after}"),
        _ => name.to_owned(),
    }
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

/// Shows functions by name, and also by signature if two rows would look the same.
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
    /// Collects the functions of a table, each a name and a signature.
    pub(super) fn from_functions(functions: impl IntoIterator<Item = (&'a str, &'a str)>) -> Self {
        let mut names = Self::default();
        for (name, signature) in functions {
            let entry = names.seen.entry(name).or_insert(Signatures::One(signature));
            if matches!(entry, Signatures::One(known) if *known != signature) {
                *entry = Signatures::Several;
            }
        }
        names
    }

    /// Name of a function as its table shows it.
    pub(super) fn shown<'f>(&self, name: &'f str, signature: &'f str) -> &'f str {
        match self.seen.get(name) {
            Some(Signatures::Several) => signature,
            _ => name,
        }
    }
}

/// The parameter types at the end of a signature: `(int, string)`.
pub(super) fn parameters(signature: &str) -> &str {
    let mut open = 0_u32;
    for (at, byte) in signature.bytes().enumerate().rev() {
        match byte {
            b')' => open += 1,
            b'(' if open == 1 => return &signature[at..],
            b'(' => open = open.saturating_sub(1),
            _ if open == 0 => break,
            _ => {}
        }
    }
    ""
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn types_lose_their_namespaces_first() {
        let name = "System.Collections.Generic.Dictionary<System.Threading.Thread, Shop.Cart+Line>";
        let short = |room| NameKind::Type.shortened(name, room);
        assert_eq!(short(80), name);
        assert_eq!(short(70), "System.Collections.Generic.Dictionary<Thread, Cart+Line>");
        assert_eq!(short(32), "...Dictionary<Thread, Cart+Line>");
        assert_eq!(short(20), "...Dictionary<...>");
        assert!((1..100).all(|room| columns(&short(room)) <= room));
        assert_eq!(NameKind::Type.shortened("System.InvalidOperationException", 30), "...InvalidOperationException");
    }

    #[test]
    fn counters_keep_the_values_of_their_tags() {
        let name =
            "Microsoft.AspNetCore.Hosting/http.server.request.duration{http.request.method=GET,http.route=/cart} (s)";
        let short = |room| NameKind::Counter.shortened(name, room);
        assert_eq!(short(200), name);
        assert_eq!(short(75), "http.server.request.duration{http.request.method=GET,http.route=/cart} (s)");
        assert_eq!(short(50), "http.server.request.duration{GET,/cart} (s)");
        assert_eq!(short(30), "...duration{GET,/cart} (s)");
        assert!((1..120).all(|room| columns(&short(room)) <= room));
        assert_eq!(
            NameKind::Counter.shortened("System.Runtime/threadpool-queue-length", 24),
            "threadpool-queue-length"
        );
    }

    #[test]
    fn parameters_are_the_end_of_a_signature() {
        assert_eq!(parameters("Shop.Order.Id.get()"), "()");
        assert_eq!(parameters("Shop.Cart<(int, long)>.Add((int, long), string)"), "((int, long), string)");
        assert_eq!(parameters("Shop.Program.Main(string[])"), "(string[])");
        assert_eq!(parameters("Shop.Cart.Pay(...)"), "(...)");
        assert_eq!(parameters("libc!qsort"), "");
        assert_eq!(parameters(")"), "");
    }

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
    fn names_that_hold_state_machines_lose_the_namespaces_within() {
        let machine =
            "Microsoft.AspNetCore.Server.Kestrel.Core.Internal.Http.HttpProtocol.<ProcessRequests>d__237<__Canon>";
        let of = |machine: &str| format!("System.Runtime.AsyncTaskMethodBuilder.Start<{machine}>(ref {machine})");
        assert_eq!(readable(of(machine)), of("HttpProtocol.<ProcessRequests>d__237<__Canon>"));
        assert_eq!(
            without_inner_namespaces("A.Builder<B.Result>.Box<C.D<E.F>.G>.MoveNext(System.Threading.Thread, int)"),
            "A.Builder<Result>.Box<D<F>.G>.MoveNext(Thread, int)"
        );
        let short = "Shop.Cart.Total(System.Collections.Generic.List<Shop.Item>)";
        assert_eq!(readable(short.to_owned()), short);
    }

    #[test]
    fn names_are_not_cut_inside_tuples() {
        let name = "(System.Action<object>, System.Tuple<Shop.Cart>)[]";
        assert_eq!(shortened_function(name, 36), "(Action<object>, Tuple<Cart>)[]");
        let name = "Shop.Till.Sums.For(System.Collections.Generic.List<(Shop.Cart, Shop.Line)>)";
        assert_eq!(shortened_function(name, 50), "Shop.Till.Sums.For(List<(Cart, Line)>)");
        let method = "Shop.Till.Sums::Of<(Shop.Cart, Shop.Line)>";
        assert_eq!(shortened_function(method, 40), "...Till.Sums::Of<(Shop.Cart, Shop.Line)>");
    }

    #[test]
    fn names_of_functions_keep_the_method_as_long_as_there_is_room() {
        let forms = |name: &str, least: usize| {
            let mut forms: Vec<String> = (least..100).rev().map(|room| shortened_function(name, room)).collect();
            forms.dedup();
            forms
        };
        assert_eq!(
            forms("System.Text.RegularExpressions.RegexInterpreter::TryMatchAtCurrentPosition (lambda)", 31),
            [
                "System.Text.RegularExpressions.RegexInterpreter::TryMatchAtCurrentPosition (lambda)",
                "...Text.RegularExpressions.RegexInterpreter::TryMatchAtCurrentPosition (lambda)",
                "...RegularExpressions.RegexInterpreter::TryMatchAtCurrentPosition (lambda)",
                "...RegexInterpreter::TryMatchAtCurrentPosition (lambda)",
                "...::TryMatchAtCurrentPosition (lambda)",
                "...::TryMatchAtCurrentPosition",
            ]
        );
        assert_eq!(
            forms("System.Runtime.Foo<System.Int32>.Bar<T>(System.ObjectHandleOnStack, int) (async)", 19),
            [
                "System.Runtime.Foo<System.Int32>.Bar<T>(System.ObjectHandleOnStack, int) (async)",
                "System.Runtime.Foo<System.Int32>.Bar<T>(ObjectHandleOnStack, int) (async)",
                "...Runtime.Foo<System.Int32>.Bar<T>(ObjectHandleOnStack, int) (async)",
                "...Foo<System.Int32>.Bar<T>(ObjectHandleOnStack, int) (async)",
                "System.Runtime.Foo<System.Int32>.Bar<T>(...) (async)",
                "...Runtime.Foo<System.Int32>.Bar<T>(...) (async)",
                "...Foo<System.Int32>.Bar<T>(...) (async)",
                "...Foo<...>.Bar<...>(...) (async)",
                "...Bar<...>(...) (async)",
                "...Bar<...> (async)",
            ]
        );
        assert_eq!(
            forms("Shop.Startup::<Main>$ (async lambda, Program.cs:17)", 17),
            [
                "Shop.Startup::<Main>$ (async lambda, Program.cs:17)",
                "...Startup::<Main>$ (async lambda, Program.cs:17)",
                "...::<Main>$ (async lambda, Program.cs:17)",
                "...::<Main>$ (Program.cs:17)",
                "...::<Main>$ (:17)",
                "...::<Main>$",
            ]
        );
        for room in 0..90 {
            for name in ["A.B.C::D", "Program::<Main>$ (lambda, Program.cs:17)", "[libc]qsort", "A.op_Implicit(A.B)"] {
                assert!(columns(&shortened_function(name, room)) <= room);
            }
        }
    }

    #[test]
    fn control_characters_never_reach_the_terminal() {
        assert_eq!(shortened("a\x1b[31mb\n", 40), "a\\u{1b}[31mb\\n");
    }
}
