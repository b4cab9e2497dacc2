//! Identity of functions and types across builds: by module, name and signature.
//!
//! Compilers number entities that have no name of their own, and the numbers differ between builds:
//! the number of a method within its type, of a closure's class, of an anonymous type. Identities
//! leave these numbers out. State machines already carry the name of their source method. Lambdas
//! are distinguished by their position among the lambdas of their method, and this position does
//! not depend on code outside of the method.

use rustc_hash::FxHashMap;

use crate::closures::{ordinal, unnumbered_marker};
use crate::function::FunctionRef;

/// Identity of a function on both sides.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
struct Identity {
    name: String,
    signature: String,
    module: String,
    /// Kind of the function's code within its source method: `async`, `lambda 2`.
    code: String,
}

/// Assigns numbers to functions. Equal functions have the same number.
#[derive(Debug, Default)]
pub(super) struct Identities {
    numbers: FxHashMap<Identity, u32>,
    /// Numbers by a function's address, so that each identity is computed once.
    known: FxHashMap<usize, u32>,
}

impl Identities {
    /// Returns the number of a function: dense, from 0.
    pub(super) fn number_of_function(&mut self, function: &FunctionRef<'_>) -> u32 {
        let place = std::ptr::from_ref(function.function).addr();
        if let Some(number) = self.known.get(&place) {
            return *number;
        }
        let next = self.numbers.len() as u32;
        let number = *self.numbers.entry(identity(function)).or_insert(next);
        self.known.insert(place, number);
        number
    }
}

fn identity(function: &FunctionRef<'_>) -> Identity {
    let code = function.marker().map_or_else(String::new, |marker| {
        let words = unnumbered_marker(marker);
        let is_lambda = words.ends_with("lambda");
        match ordinal(&function.function.raw_name).filter(|_| is_lambda) {
            Some(place) => format!("{words} {place}"),
            None => words.to_owned(),
        }
    });
    Identity {
        name: unnumbered(function.name()),
        signature: unnumbered(function.plain_signature()),
        module: function.module().to_owned(),
        code,
    }
}

/// Words of compilers and of the runtime that precede a generated number.
const NUMBERED: [&str; 6] = ["<>c__DisplayClass", "<>f__AnonymousType", ">d__", ">b__", "|", "::lambda_method"];

/// A name without compiler-generated numbers.
pub(super) fn unnumbered(name: &str) -> String {
    let mut text = String::with_capacity(name.len());
    let mut rest = name;
    while let Some(end) = NUMBERED.iter().filter_map(|word| rest.find(word).map(|at| at + word.len())).min() {
        text.push_str(&rest[..end]);
        rest = rest[end..].trim_start_matches(|c: char| c.is_ascii_digit() || c == '_');
    }
    text.push_str(rest);
    text
}

#[cfg(test)]
mod tests {
    use clrscope_recording::model::{Function, Module, SourceKind};

    use super::*;

    fn number(identities: &mut Identities, function: &Function) -> u32 {
        let module = Module { name: "App".to_owned(), ..Module::default() };
        identities.number_of_function(&FunctionRef { pid: 1, function, module: &module })
    }

    fn closure(raw: &str, marker: &str) -> Function {
        Function {
            name: "App.Program::Main".into(),
            signature: format!("App.Program.Main(string[]) ({marker})"),
            raw_name: raw.into(),
            source: if marker.starts_with("async") { SourceKind::Async } else { SourceKind::Lambda },
            ..Function::default()
        }
    }

    #[test]
    fn numbers_of_compilers_are_no_part_of_a_name() {
        let cases = [
            ("App.P+<>c__DisplayClass3_0::.ctor", "App.P+<>c__DisplayClass::.ctor"),
            ("App.P+<Run>d__12::SetStateMachine", "App.P+<Run>d__::SetStateMachine"),
            ("<>f__AnonymousType1<int, string>::.ctor", "<>f__AnonymousType<int, string>::.ctor"),
            ("DynamicClass::lambda_method17", "DynamicClass::lambda_method"),
            ("App.P::<Main>g__Round|0_3", "App.P::<Main>g__Round|"),
            ("System.Int32::Parse", "System.Int32::Parse"),
        ];
        for (name, expected) in cases {
            assert_eq!(unnumbered(name), expected);
        }
    }

    #[test]
    fn a_lambda_is_the_one_of_its_place_in_whichever_method_of_whichever_line() {
        let mut all = Identities::default();
        let first = closure("App.Program+<>c::<Main>b__0_0", "lambda, Program.cs:10");
        let second = closure("App.Program+<>c::<Main>b__0_1", "lambda 2, Program.cs:10");
        // A method was written above: other numbers of the method, other lines.
        let first_later = closure("App.Program+<>c::<Main>b__4_0", "lambda, Program.cs:31");
        let second_later = closure("App.Program+<>c__DisplayClass4_0::<Main>b__1", "lambda 2, Program.cs:31");
        let numbers = [&first, &second, &first_later, &second_later].map(|function| number(&mut all, function));
        assert_eq!(numbers, [0, 1, 0, 1]);
        let machine = closure("App.Program+<Main>d__0::MoveNext", "async");
        let machine_later = closure("App.Program+<Main>d__7::MoveNext", "async");
        assert_eq!([&machine, &machine_later].map(|function| number(&mut all, function)), [2, 2]);
        let nested = closure("App.Program+<>c+<<Main>b__0_3>d::MoveNext", "async lambda");
        let nested_later = closure("App.Program+<>c+<<Main>b__2_3>d::MoveNext", "async lambda, Program.cs:9");
        assert_eq!([&nested, &nested_later].map(|function| number(&mut all, function)), [3, 3]);
    }

    #[test]
    fn overloads_and_instantiations_are_functions_of_their_own() {
        let mut all = Identities::default();
        let of = |signature: &str| Function {
            name: "Shop.Cart::Add".into(),
            signature: signature.into(),
            ..Function::default()
        };
        let functions = [of("Shop.Cart.Add(int)"), of("Shop.Cart.Add(long)"), of("Shop.Cart.Add<int>(T)")];
        assert_eq!(functions.each_ref().map(|function| number(&mut all, function)), [0, 1, 2]);
        let again = of("Shop.Cart.Add(long)");
        assert_eq!(number(&mut all, &again), 1);
    }
}
