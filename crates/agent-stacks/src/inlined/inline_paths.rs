//! The path from a compiled method to a call in it, through inlined methods.
//!
//! The runtime reports the candidates that the compiler considered in a compilation, each with the
//! method that calls it. It does not report which candidates were inlined, nor where their code
//! lies. But each call instruction of the compiled code represents one call in the IL of the method
//! or of a candidate. If only one of these methods has a call that fits the instruction, then the
//! candidates that lead there were inlined, or the instruction would not be there. If two methods
//! have such a call, there is no answer.

use std::collections::HashSet;
use std::hash::Hash;
use std::sync::Arc;

use clr_profiler::FunctionId;

/// Most steps of a search before it is given up.
const MOST_STEPS: usize = 4096;
/// Most methods on a path. The compiler inlines no deeper than 20.
const DEEPEST: usize = 32;

/// A candidate for inlining, as caller and callee.
pub(super) type Candidate<Id = FunctionId> = (Id, Id);

/// A call in the IL of a method.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct IlCall {
    /// Offset of the call in the method's IL; `None` if unknown.
    pub(super) offset: Option<u32>,
    pub(super) callee: Callee,
}

/// Which methods a call may call.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Callee {
    /// A method with this name and form.
    Named(MethodName),
    /// The method of a delegate with this number of arguments. The method may take its object as an
    /// additional argument, or one of the arguments as its object.
    Delegate(u32),
    /// Any method.
    Any,
}

/// What a method has in common with its overrides: the simple name, the number of parameters, and
/// whether it is an instance method.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct MethodName {
    pub(super) name: Arc<str>,
    pub(super) parameters: u32,
    pub(super) has_this: bool,
}

impl MethodName {
    /// Whether both may be the same method. Methods of interfaces have their simple names behind a
    /// dot.
    fn may_be(&self, other: &Self) -> bool {
        (self.parameters, self.has_this) == (other.parameters, other.has_this)
            && last_part(&self.name) == last_part(&other.name)
    }

    /// Whether a delegate with this number of arguments may call the method. A delegate of a static
    /// method may supply the first argument itself, and a delegate of an instance method may get
    /// the object as an argument.
    fn may_be_behind(&self, arguments: u32) -> bool {
        arguments == self.parameters
            || (self.has_this && arguments == self.parameters + 1)
            || (!self.has_this && arguments + 1 == self.parameters)
    }
}

impl IlCall {
    /// Whether this may be a call of a method that has one of these names.
    pub(super) fn may_be_of(&self, names: &[MethodName]) -> bool {
        match &self.callee {
            Callee::Named(own) => names.iter().any(|name| own.may_be(name)),
            Callee::Delegate(arguments) => names.iter().any(|name| name.may_be_behind(*arguments)),
            Callee::Any => true,
        }
    }
}

/// The name behind the last dot, except for constructors.
fn last_part(name: &str) -> &str {
    match name {
        ".ctor" | ".cctor" => name,
        _ => name.rsplit('.').next().unwrap_or(name),
    }
}

/// A jump in the IL of a method.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Jump {
    /// IL offset of the jump instruction; `None` if an exception leads to the target, a handler.
    pub(super) from: Option<u32>,
    pub(super) to: u32,
}

/// The facts about methods that a search needs.
pub(super) trait Methods {
    /// Identifier of a method.
    type Id: Copy + Eq + Hash;
    /// The calls in a method's IL; `None` if the IL can't be read.
    fn calls(&mut self, method: Self::Id) -> Option<Arc<[IlCall]>>;
    /// The jumps in a method's IL; `None` if the IL can't be read.
    fn jumps(&mut self, method: Self::Id) -> Option<Arc<[Jump]>>;
    /// The names by which a method may be called.
    fn names(&mut self, method: Self::Id) -> Option<Arc<[MethodName]>>;
}

/// A method on a path to a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct PathMethod<Id = FunctionId> {
    pub(super) method: Id,
    /// IL offset of the call of the next method, if only one call in this method is possible.
    pub(super) offset: Option<u32>,
}

/// Returns the only path from `root` to a call of a method with the names `target`, outermost
/// first; `None` if there are several paths or none, or if the code of a method on the way can't be
/// read.
pub(super) fn only_path<M: Methods>(
    root: M::Id,
    candidates: &[Candidate<M::Id>],
    target: &[MethodName],
    methods: &mut M,
) -> Option<Vec<PathMethod<M::Id>>> {
    let leading = leading(root, candidates, target, methods)?;
    let mut search = Search { leading, target, methods, path: Vec::new(), found: None, steps: 0 };
    search.visit(root).ok()?;
    search.found
}

/// The candidates on paths from `root` to a call of a method with the names `target`; `None` if the
/// code of a method on such a path can't be read.
fn leading<M: Methods>(
    root: M::Id,
    candidates: &[Candidate<M::Id>],
    target: &[MethodName],
    methods: &mut M,
) -> Option<Vec<Candidate<M::Id>>> {
    let (mut met, mut next, mut leads) = (HashSet::from([root]), vec![root], HashSet::new());
    while let Some(method) = next.pop() {
        if only(&methods.calls(method)?, target).is_some() {
            leads.insert(method);
        }
        let callees = candidates.iter().filter(|(caller, _)| *caller == method).map(|(_, callee)| *callee);
        next.extend(callees.filter(|callee| met.insert(*callee)));
    }
    loop {
        let on_the_way = |(caller, callee): &&Candidate<M::Id>| met.contains(caller) && leads.contains(callee);
        let more: Vec<M::Id> = candidates.iter().filter(on_the_way).map(|(caller, _)| *caller).collect();
        let known = leads.len();
        leads.extend(more);
        if leads.len() == known {
            break;
        }
    }
    Some(candidates.iter().filter(|(caller, callee)| met.contains(caller) && leads.contains(callee)).copied().collect())
}

/// The error of a search that finds no path, or several.
struct NoUniquePath;

struct Search<'a, M: Methods> {
    /// Candidates that lead to such a call.
    leading: Vec<Candidate<M::Id>>,
    target: &'a [MethodName],
    methods: &'a mut M,
    path: Vec<PathMethod<M::Id>>,
    found: Option<Vec<PathMethod<M::Id>>>,
    steps: usize,
}

impl<M: Methods> Search<'_, M> {
    fn visit(&mut self, method: M::Id) -> Result<(), NoUniquePath> {
        self.steps += 1;
        if self.steps > MOST_STEPS || self.path.len() >= DEEPEST {
            return Err(NoUniquePath);
        }
        let calls = self.methods.calls(method).ok_or(NoUniquePath)?;
        if let Some(offset) = only(&calls, self.target) {
            if self.found.is_some() {
                return Err(NoUniquePath);
            }
            let mut way = self.path.clone();
            way.push(PathMethod { method, offset });
            self.found = Some(way);
        }
        let callees: Vec<M::Id> =
            self.leading.iter().filter(|(caller, _)| *caller == method).map(|(_, callee)| *callee).collect();
        for callee in callees {
            // Code of a method inlined into itself can't be distinguished from that of another
            // level.
            if callee == method || self.path.iter().any(|station| station.method == callee) {
                return Err(NoUniquePath);
            }
            let names = self.methods.names(callee).ok_or(NoUniquePath)?;
            // From .NET 10 on, a candidate that the compiler considers late, after inlining others,
            // is reported as one of the root.
            let offset = only(&calls, &names).ok_or(NoUniquePath)?;
            self.path.push(PathMethod { method, offset });
            self.visit(callee)?;
            self.path.pop();
        }
        Ok(())
    }
}

/// Whether any of the calls may be of a method with those names, and the offset if it is the only
/// one.
fn only(calls: &[IlCall], names: &[MethodName]) -> Option<Option<u32>> {
    let mut fitting = calls.iter().filter(|call| call.may_be_of(names));
    let first = fitting.next()?;
    Some(first.offset.filter(|_| fitting.next().is_none()))
}

#[cfg(test)]
mod tests {
    use std::collections::HashMap;

    use super::*;

    /// Methods by number, each with its name (and others that it implements, behind `/`) and its
    /// calls, at offsets 0, 5, 10 and so on. `*` is a call of anything, `*2` one of a delegate with
    /// two arguments.
    struct TestMethods(HashMap<usize, (&'static str, Option<&'static str>)>);

    impl TestMethods {
        fn new(all: &[(&'static str, &'static str)]) -> Self {
            Self((1..).zip(all).map(|(number, (name, calls))| (number, (*name, Some(*calls)))).collect())
        }
    }

    impl Methods for TestMethods {
        type Id = usize;

        fn calls(&mut self, method: usize) -> Option<Arc<[IlCall]>> {
            let words = self.0.get(&method)?.1?.split_whitespace();
            let call = |(index, word): (u32, &str)| IlCall {
                offset: Some(5 * index),
                callee: match word.strip_prefix('*') {
                    Some("") => Callee::Any,
                    Some(arguments) => Callee::Delegate(arguments.parse().expect("a number")),
                    None => Callee::Named(named(word)),
                },
            };
            Some((0..).zip(words).map(call).collect())
        }

        fn jumps(&mut self, _method: usize) -> Option<Arc<[Jump]>> {
            None
        }

        fn names(&mut self, method: usize) -> Option<Arc<[MethodName]>> {
            self.0.get(&method).map(|(names, _)| names.split('/').map(named).collect())
        }
    }

    /// A name, with the number of parameters behind `:`, by default 0.
    fn named(word: &str) -> MethodName {
        let (name, parameters) = word.split_once(':').unwrap_or((word, "0"));
        MethodName { name: name.into(), parameters: parameters.parse().expect("a number"), has_this: false }
    }

    /// The path from method 1, as `method@offset`.
    fn way(known: &mut TestMethods, candidates: &[(usize, usize)], target: &str) -> Option<String> {
        let target: Vec<MethodName> = target.split('/').map(named).collect();
        let way = only_path(1, candidates, &target, known)?;
        let station = |PathMethod { method, offset }: &PathMethod<usize>| {
            let name = known.0[method].0;
            offset.map_or(format!("{name}@?"), |offset| format!("{name}@{offset}"))
        };
        Some(way.iter().map(station).collect::<Vec<_>>().join(" "))
    }

    #[test]
    fn the_call_of_one_method_alone_tells_the_way() {
        let mut known =
            TestMethods::new(&[("Root", "Log Outer"), ("Outer", "Inner"), ("Inner", "Add Leaf"), ("Log", "Write")]);
        let all = [(1, 4), (1, 2), (2, 3)];
        assert_eq!(way(&mut known, &all, "Leaf").as_deref(), Some("Root@5 Outer@0 Inner@5"));
        assert_eq!(way(&mut known, &all, "Write").as_deref(), Some("Root@0 Log@0"));
        assert_eq!(way(&mut known, &all, "Inner").as_deref(), Some("Root@5 Outer@0"), "a candidate that was refused");
        assert_eq!(way(&mut known, &all, "Outer").as_deref(), Some("Root@5"));
        assert_eq!(way(&mut known, &all, "Other"), None);
    }

    #[test]
    fn two_methods_with_such_a_call_tell_nothing() {
        let all = [(1, 2), (1, 3)];
        let mut both = TestMethods::new(&[("Root", "One Two"), ("One", "Leaf"), ("Two", "Leaf")]);
        assert_eq!(way(&mut both, &all, "Leaf"), None);
        let mut own = TestMethods::new(&[("Root", "One Leaf"), ("One", "Leaf"), ("Two", "")]);
        assert_eq!(way(&mut own, &all, "Leaf"), None);
        let mut delegates = TestMethods::new(&[("Root", "One *"), ("One", "Leaf"), ("Two", "")]);
        assert_eq!(way(&mut delegates, &all, "Leaf"), None, "a pointer may be of anything");
        let mut delegates = TestMethods::new(&[("Root", "One *1"), ("One", "Leaf:2 Leaf:3"), ("Two", "")]);
        assert_eq!(way(&mut delegates, &all, "Leaf:2"), None, "a delegate may bring the first argument");
        assert_eq!(way(&mut delegates, &all, "Leaf:3").as_deref(), Some("Root@0 One@5"));
        let mut unread = TestMethods::new(&[("Root", "One Two"), ("One", "Leaf"), ("Two", "")]);
        unread.0.insert(3, ("Two", None));
        assert_eq!(way(&mut unread, &all, "Leaf"), None);
        let mut twice = TestMethods::new(&[("Root", "One Two"), ("One", "Inner"), ("Two", "Inner"), ("Inner", "Leaf")]);
        assert_eq!(way(&mut twice, &[(1, 2), (1, 3), (2, 4), (3, 4)], "Leaf"), None, "one method by two ways");
    }

    #[test]
    fn calls_at_two_places_of_a_method_have_no_offset() {
        let mut known = TestMethods::new(&[("Root", "One One"), ("One", "Leaf Leaf Leaf")]);
        assert_eq!(way(&mut known, &[(1, 2)], "Leaf").as_deref(), Some("Root@? One@?"));
    }

    #[test]
    fn overrides_and_methods_of_interfaces_go_by_their_simple_names() {
        let mut known = TestMethods::new(&[("Root", "Run"), ("Shop.IJob<Shop.Order>.Run", ".ctor"), ("X", "")]);
        assert_eq!(way(&mut known, &[(1, 2)], ".ctor").as_deref(), Some("Root@0 Shop.IJob<Shop.Order>.Run@0"));
        assert_eq!(way(&mut known, &[(1, 2)], "ctor"), None);
    }

    #[test]
    fn a_method_that_implements_another_name_is_called_by_either() {
        let mut known = TestMethods::new(&[("Root", "Run Careful"), ("Careful", "Fast"), ("Fast/Run", "Leaf")]);
        assert_eq!(way(&mut known, &[(1, 2)], "Fast").as_deref(), Some("Root@5 Careful@0"));
        assert_eq!(
            way(&mut known, &[(1, 2)], "Fast/Run"),
            None,
            "the interface's method may be the one that is called"
        );
        assert_eq!(way(&mut known, &[(1, 3)], "Leaf").as_deref(), Some("Root@0 Fast/Run@0"));
    }

    /// A handler waits for a task: the waiting method calls another one of the same name with more
    /// parameters.
    #[test]
    fn methods_of_one_name_are_told_by_the_number_of_their_parameters() {
        let mut known = TestMethods::new(&[("Root", "Handler"), ("Handler", "Slow Wait"), ("Wait", "Wait:2")]);
        let all = [(1, 2), (2, 3)];
        assert_eq!(way(&mut known, &all, "Wait:2").as_deref(), Some("Root@0 Handler@5 Wait@0"));
        assert_eq!(way(&mut known, &all, "Wait").as_deref(), Some("Root@0 Handler@5"));
    }

    #[test]
    fn a_candidate_that_its_caller_has_no_call_of_proves_nothing() {
        let mut known = TestMethods::new(&[("Root", "One"), ("One", "Late"), ("Late", "Leaf")]);
        assert_eq!(way(&mut known, &[(1, 2), (1, 3)], "Leaf"), None);
        assert_eq!(way(&mut known, &[(1, 2), (2, 3)], "Leaf").as_deref(), Some("Root@0 One@0 Late@0"));
    }

    #[test]
    fn methods_within_themselves_and_endless_searches_are_given_up() {
        let mut known = TestMethods::new(&[("Root", "One"), ("One", "One Leaf")]);
        assert_eq!(way(&mut known, &[(1, 2), (2, 2)], "Leaf"), None);
        let mut beside = TestMethods::new(&[("Root", "One Two"), ("One", "One Other"), ("Two", "Leaf")]);
        assert_eq!(way(&mut beside, &[(1, 2), (2, 2), (1, 3)], "Leaf").as_deref(), Some("Root@5 Two@0"));
        let mut wide = TestMethods(HashMap::new());
        wide.0.extend((1..40).map(|number| (number, ("M", Some("M")))));
        let all: Vec<_> = (1..39).flat_map(|one| (one + 1..40).map(move |other| (one, other))).collect();
        assert_eq!(way(&mut wide, &all, "Leaf"), None);
    }
}
