//! Readable names of closures: a word for the kind of code, and marks that distinguish the closures
//! of one method.
//!
//! A lambda has no name: the compiler numbers it. The recording names it after the method that it
//! was written in, with `(lambda)` at the end of the signature. So several lambdas of one method
//! would have the same name. They are distinguished by their source lines, or by numbers if the
//! lines are not known.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use clrscope_contract::request::split_marker;
use clrscope_recording::model::{Function, Process, Recording, SourceKind};

/// Looks up a source line. The arguments are the module's path and the metadata token, the result
/// is the file's path and the line.
pub type FindLine<'l> = dyn FnMut(&str, u32) -> Option<(String, u32)> + 'l;

/// Splits a signature into the part before the marker, and the marker without its parentheses, such
/// as `async lambda`. The marker is `None` if the function is the source method itself.
pub(crate) fn split(function: &Function) -> (&str, Option<&str>) {
    let word = match function.source {
        SourceKind::Plain => return (&function.signature, None),
        SourceKind::Async => "async",
        SourceKind::Iterator => "iterator",
        SourceKind::Lambda => "lambda",
        SourceKind::LocalFunction => "local function",
    };
    let (plain, marker) = split_marker(&function.signature);
    (plain, marker.or(Some(word)))
}

/// Adds a line or number to the signatures of lambdas and local functions if several in a method of
/// a process have the same name. If the line is known, `(lambda)` becomes
/// `(lambda, Program.cs:17)`, except in modules of the framework. Signatures that are still equal
/// are numbered by their position in the method: `(lambda 2)`.
pub fn tell_closures_apart(recording: &mut Recording, line: &mut FindLine<'_>) {
    for process in &mut recording.processes {
        let closures: Vec<usize> =
            (0..process.functions.len()).filter(|&at| is_closure(&process.functions[at])).collect();
        shared(process, &closures).into_iter().flatten().for_each(|at| add_line(process, at, line));
        for group in shared(process, &closures) {
            number(process, &group);
        }
    }
}

/// A marker without the number and line that distinguish closures: `lambda` for
/// `lambda 2, Program.cs:17`.
pub(crate) fn unnumbered_marker(marker: &str) -> &str {
    let words = marker.split_once(", ").map_or(marker, |(words, _)| words);
    match words.rsplit_once(' ') {
        Some((plain, number)) if number.bytes().all(|b| b.is_ascii_digit()) => plain,
        _ => words,
    }
}

fn marker(function: &Function) -> &str {
    split(function).1.unwrap_or_default()
}

fn is_lambda(function: &Function) -> bool {
    marker(function).ends_with("lambda")
}

fn is_closure(function: &Function) -> bool {
    is_lambda(function) || marker(function).contains("local function ")
}

/// Groups of functions among `closures` that have the same name but are different methods.
fn shared(process: &Process, closures: &[usize]) -> Vec<Vec<usize>> {
    let mut groups: BTreeMap<_, Vec<usize>> = BTreeMap::new();
    for &at in closures {
        let function = &process.functions[at];
        groups.entry((function.module, &function.name, &function.signature)).or_default().push(at);
    }
    let differ = |group: &Vec<usize>| {
        let all: BTreeSet<_> = group.iter().map(|&at| identity(&process.functions[at])).collect();
        all.len() > 1
    };
    groups.into_values().filter(differ).collect()
}

/// Identity of a method, shared by all its instantiations and by no other method.
fn identity(function: &Function) -> (u32, &str) {
    (function.token, &function.raw_name)
}

fn add_line(process: &mut Process, at: usize, line: &mut FindLine<'_>) {
    let function = &process.functions[at];
    let Some(module) = process.modules.get(function.module as usize).filter(|module| !module.framework) else { return };
    let Some((file, number)) = line(&module.path, function.token) else { return };
    // Compilers on Windows write backslashes.
    let name = Path::new(&file).file_name().map_or(file.as_str().into(), |name| name.to_string_lossy());
    let name = name.rsplit('\\').next().unwrap_or_default();
    change(&mut process.functions[at], |marker| format!("{marker}, {name}:{number}"));
}

fn number(process: &mut Process, group: &[usize]) {
    let ordinals: BTreeMap<_, _> = group
        .iter()
        .map(|&at| {
            let (token, raw) = identity(&process.functions[at]);
            ((token, raw.to_owned()), ordinal(raw))
        })
        .collect();
    let distinct: BTreeSet<_> = ordinals.values().flatten().collect();
    let is_known = distinct.len() == ordinals.len();
    for &at in group {
        let (token, raw) = identity(&process.functions[at]);
        let identity = (token, raw.to_owned());
        let rank = || ordinals.keys().position(|known| *known == identity).unwrap_or(0) as u64;
        let number = ordinals[&identity].filter(|_| is_known).unwrap_or_else(rank) + 1;
        change(&mut process.functions[at], |marker| match marker.split_once(", ") {
            Some((words, place)) => format!("{words} {number}, {place}"),
            None => format!("{marker} {number}"),
        });
    }
}

/// Position of a closure among the closures of its method, from 0, taken from the compiler's name:
/// 3 for `<Main>$>b__0_3`, for `<Main>g__Round|0_3` and for Visual Basic's `_Lambda$__0-3`.
pub(crate) fn ordinal(raw_name: &str) -> Option<u64> {
    let behind = |mark: &str| raw_name.rfind(mark).map(|at| at + mark.len());
    let from = ["b__", "|", "_Lambda$__"].into_iter().filter_map(behind).max()?;
    let numbers = raw_name[from..].split(|c: char| !c.is_ascii_digit() && !"_-R".contains(c)).next()?;
    numbers.rsplit(['_', '-', 'R']).next()?.parse().ok()
}

fn change(function: &mut Function, to: impl FnOnce(&str) -> String) {
    let (plain, marker) = split(function);
    let changed = format!("{plain} ({})", to(marker.unwrap_or_default()));
    function.signature = changed;
}

#[cfg(test)]
mod tests {
    use clrscope_recording::model::Module;

    use super::*;

    fn closure(raw: &str, token: u32, signature: &str, module: u32) -> Function {
        Function {
            name: "App.Program::Main".into(),
            signature: signature.into(),
            raw_name: raw.into(),
            module,
            token,
            source: if signature.contains("async") { SourceKind::Async } else { SourceKind::Lambda },
            ..Function::default()
        }
    }

    fn told_apart(functions: Vec<Function>) -> Vec<String> {
        let own = Module { path: "/app/App.dll".into(), ..Module::default() };
        let framework = Module { framework: true, ..own.clone() };
        let process = Process { functions, modules: vec![Module::default(), own, framework], ..Process::default() };
        let mut recording = Recording { processes: vec![process], ..Recording::default() };
        // Tokens below 100 have a line, two of them the same.
        tell_closures_apart(&mut recording, &mut |path, token| {
            assert_eq!(path, "/app/App.dll");
            (token < 100).then(|| ("C:\\src\\Program.cs".to_owned(), token / 10))
        });
        recording.processes[0].functions.iter().map(|function| function.signature.clone()).collect()
    }

    #[test]
    fn lambdas_of_one_method_have_lines_else_numbers() {
        let signatures = told_apart(vec![
            closure("App.Program+<>c::<Main>b__0_0", 10, "App.Program.Main(string[]) (lambda)", 1),
            closure("App.Program+<>c::<Main>b__0_1", 20, "App.Program.Main(string[]) (lambda)", 1),
            closure("App.Program+<>c::<Main>b__0_2", 21, "App.Program.Main(string[]) (lambda)", 1),
            closure("App.Program+<>c+<<Main>b__0_3>d::MoveNext", 40, "App.Program.Main(string[]) (async lambda)", 1),
            closure("App.Program+<>c::<Main>b__0_4", 100, "App.Program.Main(string[]) (lambda)", 1),
            closure("App.Program+<>c::<Main>b__0_6", 101, "App.Program.Main(string[]) (lambda)", 1),
        ]);
        assert_eq!(
            signatures,
            [
                "App.Program.Main(string[]) (lambda, Program.cs:1)",
                "App.Program.Main(string[]) (lambda 2, Program.cs:2)",
                "App.Program.Main(string[]) (lambda 3, Program.cs:2)",
                "App.Program.Main(string[]) (async lambda)",
                "App.Program.Main(string[]) (lambda 5)",
                "App.Program.Main(string[]) (lambda 7)",
            ]
        );
    }

    #[test]
    fn one_lambda_of_the_framework_needs_no_number_and_instantiations_are_one() {
        let raw = "App.Program+<>c::<Main>b__0_4";
        let signatures = told_apart(vec![
            closure(raw, 10, "App.Program.Main<int>() (lambda)", 2),
            closure(raw, 10, "App.Program.Main<string>() (lambda)", 2),
            closure(raw, 10, "App.Program.Main<string>() (lambda)", 2),
        ]);
        let expected = ["int", "string", "string"].map(|of| format!("App.Program.Main<{of}>() (lambda)"));
        assert_eq!(signatures, expected);
    }

    #[test]
    fn compilers_number_closures() {
        assert_eq!(ordinal("P+<>c::<<Main>$>b__0_13"), Some(13));
        assert_eq!(ordinal("P+<>c__DisplayClass0_0::<Main>b__2"), Some(2));
        assert_eq!(ordinal("P::<Main>g__Round|0_3"), Some(3));
        assert_eq!(ordinal("P+_Closure$__::_Lambda$__R5-1"), Some(1));
        assert_eq!(ordinal("P+<>c+<<Main>b__0_3>d::MoveNext"), Some(3));
        assert_eq!(ordinal("P::Main"), None);
    }

    #[test]
    fn a_signature_loses_its_marker_and_nothing_else() {
        let of = |source, signature: &str| Function { source, signature: signature.into(), ..Function::default() };
        let split = |source, signature: &str| {
            let function = of(source, signature);
            let (plain, marker) = super::split(&function);
            (plain.to_owned(), marker.map(str::to_owned))
        };
        let pay = || "Shop.Pay((int, int) (x))".to_owned();
        assert_eq!(split(SourceKind::Plain, &pay()), (pay(), None));
        assert_eq!(
            split(SourceKind::Async, &format!("{} (async lambda)", pay())),
            (pay(), Some("async lambda".into()))
        );
        assert_eq!(split(SourceKind::Iterator, &pay()), (pay(), Some("iterator".into())));
    }
}
