//! Finds the places of lines in an assembly's code, from its PDB. Makes suggestions for lines
//! without a place.

use std::collections::BTreeSet;
use std::path::Path;
use std::sync::{Mutex, PoisonError};

use clr_metadata::{Assembly, Files, Pdb, SequencePoint};
use clr_profiler::Token;
use clr_profiler::il::{self, Body};
use clrscope_contract::request::{LineHint, SourceLine, file_name};
use clrscope_contract::words::nearest;
use clrscope_coverage::{CounterPlace, has_values};

/// Number of the table of methods, in the upper byte of tokens.
const METHODS: u32 = 0x0600_0000;

/// A place in a method at which a line begins.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct LinePlace {
    pub(super) method: Token,
    /// Path of the source file.
    pub(super) file: String,
    pub(super) line: u32,
    /// Instructions at which the place begins.
    pub(super) starts: Vec<Start>,
}

/// An instruction at which a place begins.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Start {
    /// Offset in the method's own code.
    pub(super) offset: u32,
    /// Whether the method has values on its evaluation stack there.
    pub(super) has_values: bool,
}

/// Reads symbols. Remembers the files in single-file programs.
#[derive(Default)]
pub(super) struct LineSearch(Mutex<Files>);

/// Lines of an assembly.
pub(super) struct ModuleLines {
    assembly: Assembly,
    pdb: Pdb,
    /// Paths of the source files; the first has the row 1.
    files: Vec<String>,
}

impl LineSearch {
    /// The lines of the assembly at a path.
    ///
    /// # Errors
    /// A hint that says why the assembly's lines are not known, with the cure.
    pub(super) fn open(&self, path: &Path) -> Result<ModuleLines, LineHint> {
        let mut files = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let unknown = |why: &str| LineHint::Unknown(format!("{}: {why}", file_name(&path.to_string_lossy())));
        let image = files.read(path).ok_or_else(|| unknown("its file can't be read"))?;
        let assembly = Assembly::read(image).map_err(|_| unknown("its file is not an assembly"))?;
        let pdb = files.pdb_of(&assembly, path);
        let pdb = pdb.map_err(|why| unknown(&format!("{why}. {}", why.cure())))?;
        let files = (1..=pdb.documents()).map(|row| pdb.document(row).unwrap_or_default()).collect();
        Ok(ModuleLines { assembly, pdb, files })
    }
}

impl ModuleLines {
    /// The places at which lines begin. If several pieces of a method begin in a line, the first
    /// one is the place, as for breakpoints.
    pub(super) fn places(&self, lines: &[SourceLine]) -> Vec<LinePlace> {
        let is_wanted = |point: &SequencePoint| {
            let file = self.file(point);
            lines.iter().any(|line| line.is_meant(file, point.start_line))
        };
        let of_method = |row: u32| {
            let mut points = self.pdb.sequence_points(row);
            points.retain(|point| !point.is_hidden() && is_wanted(point));
            points.sort_by_key(|point| (point.document, point.start_line, point.start_column, point.il_offset));
            let pieces = points.chunk_by(|a, b| (a.document, a.start_line) == (b.document, b.start_line));
            pieces.map(|points| self.line_place(row, points)).collect::<Vec<_>>()
        };
        if !self.files.iter().any(|file| lines.iter().any(|line| line.is_of(file))) {
            return Vec::new();
        }
        (1..=self.pdb.methods()).flat_map(of_method).collect()
    }

    /// Returns the place at which the first of some pieces of one line begins.
    fn line_place(&self, row: u32, points: &[SequencePoint]) -> LinePlace {
        let first = points[0];
        let same = points.iter().take_while(|point| point.start_column == first.start_column);
        LinePlace {
            method: Token::new(METHODS | row),
            file: self.file(&first).to_owned(),
            line: first.start_line,
            starts: self.starts(row, &same.map(|point| point.il_offset).collect::<Vec<_>>()),
        }
    }

    fn starts(&self, row: u32, offsets: &[u32]) -> Vec<Start> {
        let places: Vec<CounterPlace> = offsets.iter().map(|offset| CounterPlace::Before(*offset)).collect();
        let code = self.assembly.code_from(row);
        let body = code.and_then(|code| Body::read(code.get(..il::length(code).ok()?)?).ok());
        let values = body.map(|body| has_values(&places, &body, &self.assembly)).unwrap_or_default();
        let values = values.into_iter().chain(std::iter::repeat(false));
        offsets.iter().zip(values).map(|(offset, has_values)| Start { offset: *offset, has_values }).collect()
    }

    fn file(&self, point: &SequencePoint) -> &str {
        self.files.get((point.document as usize).wrapping_sub(1)).map_or("", String::as_str)
    }

    /// Suggestions for a line without a place: the nearest lines before and after it that have a
    /// place, otherwise files with a similar name.
    pub(super) fn hints(&self, missed: &SourceLine) -> Vec<LineHint> {
        if !self.files.iter().any(|file| missed.is_of(file)) {
            return self.files_like(missed);
        }
        let points = (1..=self.pdb.methods()).flat_map(|row| self.pdb.sequence_points(row));
        let of_file = points.filter(|point| !point.is_hidden() && missed.is_of(self.file(point)));
        let lines: BTreeSet<u32> = of_file.map(|point| point.start_line).collect();
        let sides = [lines.range(..missed.line).next_back(), lines.range(missed.line..).next()];
        sides.into_iter().flatten().map(|line| LineHint::Line(*line)).collect()
    }

    /// The files with the same name in another folder or letter case, otherwise the files with the
    /// most similar names.
    fn files_like(&self, missed: &SourceLine) -> Vec<LineHint> {
        let name = |path: &str| file_name(path).to_lowercase();
        let wanted = name(&missed.file);
        let names: Vec<String> = self.files.iter().map(|file| name(file)).collect();
        let Some(near) = nearest(&wanted, names.iter().map(String::as_str)) else { return Vec::new() };
        let like = self.files.iter().filter(|file| name(file) == near);
        like.map(|file| LineHint::File(file.clone())).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn covered() -> ModuleLines {
        let found = LineSearch::default().open(&clrscope_testkit::fixture("Covered"));
        found.unwrap_or_else(|hint| panic!("{hint}"))
    }

    /// Line of the fixture that holds a text.
    fn line_with(text: &str) -> u32 {
        let source = clrscope_testkit::workspace_root().join("dotnet/fixtures/Covered/Covered.cs");
        let source = std::fs::read_to_string(source).expect("the source");
        let at = source.lines().position(|line| line.contains(text)).expect("a line");
        at as u32 + 1
    }

    #[test]
    fn a_line_has_a_place_in_each_method_that_begins_there() {
        let (lines, line) = (covered(), line_with("if (number < 0)"));
        let wanted = |file: &str| [SourceLine { file: file.to_owned(), line }];
        let places = lines.places(&wanted("Covered.cs"));
        assert_eq!(places.len(), 1, "{places:?}");
        assert!(places[0].file.ends_with("/Covered/Covered.cs") && places[0].line == line, "{places:?}");
        assert_eq!(places[0].starts.len(), 1, "{places:?}");
        assert_eq!(lines.places(&wanted("Covered/Covered.cs")), places);
        assert_eq!(lines.places(&wanted("Other.cs")), []);
    }

    #[test]
    fn lines_without_code_have_neighbours_and_files_that_are_none_have_likes() {
        let (lines, line) = (covered(), line_with("if (number < 0)"));
        let hints = |file: &str, line: u32| lines.hints(&SourceLine { file: file.to_owned(), line });
        assert_eq!(hints("Covered.cs", line + 1), [LineHint::Line(line), LineHint::Line(line + 2)], "a brace");
        assert!(matches!(hints("Covered.cs", 1).as_slice(), [LineHint::Line(_)]), "above all code");
        for like in ["covered.cs", "Coverd.cs", "elsewhere/Covered.cs"] {
            let [LineHint::File(file)] = &hints(like, line)[..] else { panic!("{like}") };
            assert!(file.ends_with("/Covered/Covered.cs"), "{file}");
        }
        assert_eq!(hints("Basket.cs", line), []);
    }
}
