//! Source methods of code: the lines of a lambda, a local function or a state machine belong to the
//! method around them.

use clr_metadata::{Assembly, Pdb, Table};

/// Largest nesting depth of state machines, lambdas and local functions.
const DEPTH: usize = 16;

/// The source method of some code.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Source {
    /// Metadata token.
    pub token: u32,
    /// Type that declares the method, in C# notation: `Shop.Cache<T>.Entry`.
    pub class: String,
    /// Name in C# notation.
    pub name: String,
    /// Types of the parameters, in C# notation: `(int, string)`.
    pub parameters: String,
}

/// Row of the source method of a method's code; the method's own row if it is a source method
/// itself.
pub(crate) fn source_row(assembly: &Assembly, pdb: &Pdb, method: u32) -> u32 {
    outward(assembly, pdb, method).last().unwrap_or(method)
}

/// The method itself, then the methods around it from the inside out, as far as names and the PDB
/// tell. After a state machine comes the method that it runs; after a lambda or local function
/// comes the enclosing method, at any nesting depth.
pub(crate) fn outward<'m>(assembly: &'m Assembly, pdb: &'m Pdb, method: u32) -> impl Iterator<Item = u32> + use<'m> {
    let outer = |row: &u32| {
        let row = *row;
        let outer = pdb.kickoff(row).or_else(|| iterator(assembly, pdb, row)).or_else(|| around(assembly, pdb, row));
        outer.filter(|outer| *outer != row)
    };
    std::iter::successors(Some(method), outer).take(DEPTH + 1)
}

pub(crate) fn source(assembly: &Assembly, row: u32) -> Source {
    Source {
        token: Table::METHOD_DEF.token(row),
        class: assembly.type_of_method(row).map(|owner| assembly.display_type(owner)).unwrap_or_default(),
        name: assembly.display_method(row),
        parameters: assembly.display_parameters(row),
    }
}

/// The iterator that a `finally` block belongs to. The compiler turns such blocks into methods of
/// the iterator's state machine (`<>m__Finally1`); the PDB names only the machine method that runs
/// the iterator.
fn iterator(assembly: &Assembly, pdb: &Pdb, row: u32) -> Option<u32> {
    assembly.method_name(row).strip_prefix("<>m__Finally")?;
    assembly.methods_of(assembly.type_of_method(row)?).find_map(|method| pdb.kickoff(method))
}

/// The method around a lambda or local function, found by its compiler-generated name.
fn around(assembly: &Assembly, pdb: &Pdb, row: u32) -> Option<u32> {
    let wanted = written_in(assembly.method_name(row))?;
    let owner = assembly.type_of_method(row)?;
    let is_written = |owner: &u32| !is_made(assembly, *owner);
    let class = assembly.with_enclosing(owner).find(is_written)?;
    let named = || assembly.methods_of(class).filter(|method| assembly.method_name(*method) == wanted);
    let (document, line) = start(pdb, row)?;
    // Of several methods with that name, take the last one that begins before this one.
    let before = named().filter_map(|method| {
        let (its_document, its_line) = start(pdb, method)?;
        (its_document == document && its_line <= line).then_some((its_line, method))
    });
    before.max().map(|(_, method)| method).or_else(|| named().next())
}

/// Document and line of the first visible point of a method, or of the state machine that runs it:
/// `async` methods and iterators, including lambdas of these kinds, have no points of their own.
fn start(pdb: &Pdb, method: u32) -> Option<(u32, u32)> {
    let visible = |row| pdb.sequence_points(row).into_iter().find(|point| !point.is_hidden());
    let point = visible(method).or_else(|| visible(machine_of(pdb, method)?))?;
    Some((point.document, point.start_line))
}

/// Position in the source of a lambda or local function.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Place {
    /// Row of the source method.
    source: u32,
    document: u32,
    /// Line and column of its start, and of its end.
    start: (u32, u32),
    end: (u32, u32),
}

impl Place {
    /// Returns the position of a method's visible sequence points; if a state machine runs the
    /// method, of the machine's points. `None` if there are no points.
    pub(crate) fn of_method(assembly: &Assembly, pdb: &Pdb, method: u32) -> Option<Self> {
        let visible = |row| pdb.sequence_points(row).into_iter().filter(|point| !point.is_hidden());
        let mut points: Vec<_> = visible(method).collect();
        points.extend(machine_of(pdb, method).into_iter().flat_map(visible));
        let document = points.first()?.document;
        let points = || points.iter().filter(|point| point.document == document);
        Some(Self {
            source: source_row(assembly, pdb, method),
            document,
            start: points().map(|point| (point.start_line, point.start_column)).min()?,
            end: points().map(|point| (point.end_line, point.end_column)).max()?,
        })
    }

    /// Whether `other` lies within this position, in the same method.
    pub(crate) fn holds(&self, other: &Self) -> bool {
        let is_of_same = (self.source, self.document) == (other.source, other.document);
        is_of_same && self.start <= other.start && other.end <= self.end
    }
}

/// Whether a method is a lambda or local function.
pub(crate) fn is_closure(assembly: &Assembly, method: u32) -> bool {
    written_in(assembly.method_name(method)).is_some()
}

/// The method of the state machine that runs a given method.
fn machine_of(pdb: &Pdb, method: u32) -> Option<u32> {
    pdb.state_machines().find(|(_, kickoff)| *kickoff == method).map(|(machine, _)| machine)
}

/// Name of the enclosing method in the compiler's name of a lambda (`<Pay>b__0_1`) or local
/// function (`<Pay>g__Check|0_0`).
fn written_in(name: &str) -> Option<&str> {
    let name = name.strip_prefix('<')?;
    let end = [">b__", ">g__"].into_iter().filter_map(|mark| name.rfind(mark)).max()?;
    Some(&name[..end])
}

/// Whether the compiler generated a type for closures or a state machine.
fn is_made(assembly: &Assembly, type_row: u32) -> bool {
    let name = assembly.type_name(Table::TYPE_DEF.token(type_row));
    name.rsplit(['/', '.']).next().is_some_and(|own| own.starts_with('<')) && !name.ends_with("<Module>")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_lambdas_and_local_functions_hold_their_methods() {
        assert_eq!(written_in("<Pay>b__0_1"), Some("Pay"));
        assert_eq!(written_in("<Pay>g__Check|0_0"), Some("Pay"));
        assert_eq!(written_in("<<Main>$>g__Add|0_0"), Some("<Main>$"));
        assert_eq!(written_in("<.ctor>b__1_0"), Some(".ctor"));
        assert_eq!(written_in("Pay"), None);
        assert_eq!(written_in("<Name>k__BackingField"), None);
    }
}
