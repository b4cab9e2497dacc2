//! Files and lines of managed code, from portable PDBs: embedded in the module, or next to it.
//! Names of native code, from the symbols of libraries and of the kernel. Versions of the C library
//! that a file needs or provides.
//!
//! ```no_run
//! use clrscope_symbols::Lines;
//!
//! let mut lines = Lines::default();
//! if let Some(place) = lines.find("/app/Shop.dll", 0x0600_0001, 0) {
//!     println!("{}:{}", place.file, place.line);
//! }
//! ```
//!
//! The crate reads modules and PDBs on the machine where it looks up lines, at most
//! [`MOST_BYTES`](clr_metadata::MOST_BYTES) of each. It looks for a module at its path, or in a
//! single-file program in that folder. It looks for the PDB in the module, next to it, in the
//! program, or where the compiler wrote it. It skips a PDB that was not built together with the
//! module, because its lines would be wrong. Damaged, missing or too large files give no lines and
//! no error: a line is an extra, and callers show the method without it. [`Lines::obstacle`] tells
//! why a module has no lines.

mod calls;
mod native;
mod sources;
mod statics;

use std::collections::HashMap;
use std::path::{Path, PathBuf};

use clr_metadata::{Assembly, Files, Pdb, SequencePoint};

use calls::Calls;
pub use clr_metadata::Obstacle;
pub use native::{
    CLibrary, GlibcSymbol, GlibcVersion, NativeNames, NativeRange, SymbolFolder, kernel_symbols, library_symbols,
    program_loader,
};
pub use sources::Sources;

/// Maximum bytes of code that are skipped before the first line of a method.
const MOST_BEFORE: u32 = 256;

/// A line in a source file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SourceLine {
    /// Path of the file, as given to the compiler.
    pub file: String,
    /// The line, from 1.
    pub line: u32,
}

/// The position of an instruction in a method, as precisely as known.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct Spot<'c> {
    /// Offset in the IL; `None` if the instruction may be anywhere in the method.
    pub il_offset: Option<u32>,
    /// Length in bytes of the IL range that may contain the instruction, from `il_offset` on. 0 if
    /// the offset is exact, `u16::MAX` for the rest of the method.
    pub il_span: u16,
    /// Whether the code was not optimised. Its IL map is then exact.
    pub is_unoptimised: bool,
    /// The method that the instruction calls, as `Namespace.Type::Method` with the assembly's own
    /// name for it; `None` if the instruction is no call, or the callee is unknown.
    pub callee: Option<&'c str>,
}

impl Spot<'_> {
    /// End of the range of possible offsets, exclusive.
    fn end(&self) -> u32 {
        match self.il_span {
            u16::MAX => u32::MAX,
            span => self.il_offset.unwrap_or(0).saturating_add(u32::from(span).max(1)),
        }
    }

    /// Whether an offset is in the range of possible offsets.
    fn holds(&self, offset: u32) -> bool {
        self.il_offset.is_none_or(|start| (start..self.end()).contains(&offset))
    }
}

/// A position's line, and how it was found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SpotLine {
    /// The line that the maps of compiler and runtime give.
    Line(SourceLine),
    /// The line that calls the recorded callee; no other possible line does.
    ByCall(SourceLine),
    /// Several lines are possible. The method has lines in this file.
    Unknown(String),
    /// The symbols of the method are not available, or the method has no lines, as is the case for
    /// compiler-generated code.
    NoSource,
}

impl SpotLine {
    /// The line, if known.
    #[must_use]
    pub fn line(self) -> Option<SourceLine> {
        match self {
            Self::Line(line) | Self::ByCall(line) => Some(line),
            Self::Unknown(_) | Self::NoSource => None,
        }
    }
}

/// Finds lines. Reads each module and its PDB once, at the first request for a line of the module.
#[derive(Debug, Default)]
pub struct Lines {
    /// The symbols by the module's path, or the obstacle where the module has none.
    modules: HashMap<PathBuf, Result<Symbols, Obstacle>>,
    /// The modules whose code was searched; `None` for a module that can't be read.
    assemblies: HashMap<PathBuf, Option<Assembly>>,
    /// Call sites by module and method.
    calls: HashMap<(PathBuf, u32), Calls>,
    files: Files,
}

/// The PDB of a module.
#[derive(Debug)]
struct Symbols {
    pdb: Pdb,
    /// Sequence points with lines of the requested methods, by row.
    points: HashMap<u32, Vec<SequencePoint>>,
}

impl Symbols {
    /// Sequence points of a method that have lines, in the order of their offsets.
    fn points(&mut self, row: u32) -> &[SequencePoint] {
        let read = || self.pdb.sequence_points(row).into_iter().filter(|point| !point.is_hidden()).collect();
        self.points.entry(row).or_insert_with(read)
    }

    /// Possible documents and lines, without duplicates.
    fn lines_among(&mut self, row: u32, spot: &Spot<'_>) -> Vec<(u32, u32)> {
        let points = self.points(row);
        let range = match spot.il_offset {
            Some(start) => {
                let first = points.partition_point(|point| point.il_offset <= start).saturating_sub(1);
                first..points.partition_point(|point| point.il_offset < spot.end()).max(first)
            }
            None => 0..points.len(),
        };
        let mut lines: Vec<_> = points[range].iter().map(|point| (point.document, point.start_line)).collect();
        lines.sort_unstable();
        lines.dedup();
        lines
    }

    /// Document and line of the instructions at these offsets, if they are all on one line.
    fn one_line(&mut self, row: u32, offsets: &[u32]) -> Option<(u32, u32)> {
        let points = self.points(row);
        let mut lines = offsets.iter().map(|offset| {
            let behind = points.partition_point(|point| point.il_offset <= *offset);
            points.get(behind.checked_sub(1)?).map(|point| (point.document, point.start_line))
        });
        let first = lines.next()??;
        lines.all(|line| line == Some(first)).then_some(first)
    }

    /// Line of the sequence point that `choice` selects from the points of a method.
    fn line(&mut self, row: u32, choice: impl Fn(&[SequencePoint]) -> Option<&SequencePoint>) -> Option<SourceLine> {
        let SequencePoint { document, start_line, .. } = *choice(self.points(row))?;
        Some(SourceLine { file: self.pdb.document(document)?, line: start_line })
    }
}

impl Lines {
    /// The first line of the method with the metadata token `method`, in the module at the path
    /// `module`. Skips compiler-generated code before the first line, as in state machines. `None`
    /// in the same cases as [`find`](Self::find).
    pub fn first(&mut self, module: impl AsRef<Path>, method: u32) -> Option<SourceLine> {
        let (symbols, row) = self.method(module.as_ref(), method)?;
        symbols.line(row, |points| points.first().filter(|point| point.il_offset < MOST_BEFORE))
    }

    /// The line of the instruction at `il_offset` of the method with the metadata token `method`,
    /// in the module at the path `module`. `None` if there is no PDB, or if the PDB has no line for
    /// the instruction. Also `None` for an empty path or a token of row 0, as dynamic methods have.
    pub fn find(&mut self, module: impl AsRef<Path>, method: u32, il_offset: u32) -> Option<SourceLine> {
        let (symbols, row) = self.method(module.as_ref(), method)?;
        // Code without a line of its own belongs to the line before.
        symbols.line(row, |points| {
            points.get(points.partition_point(|point| point.il_offset <= il_offset).checked_sub(1)?)
        })
    }

    /// The line of an instruction of the method with the metadata token `method`, in the module at
    /// the path `module`. If the runtime's map is ambiguous, or names a statement without a call of
    /// the recorded callee, the result is the only possible line that calls a method of that name.
    pub fn locate(&mut self, module: impl AsRef<Path>, method: u32, spot: &Spot<'_>) -> SpotLine {
        let module = module.as_ref();
        let Some((symbols, row)) = self.method(module, method) else { return SpotLine::NoSource };
        let among = symbols.lines_among(row, spot);
        let Some(first) = symbols.points(row).first().copied() else { return SpotLine::NoSource };
        let line =
            |symbols: &Symbols, (document, line)| Some(SourceLine { file: symbols.pdb.document(document)?, line });
        let only = if let [only] = among[..] { line(symbols, only) } else { None };
        let Some(file) = symbols.pdb.document(first.document) else { return SpotLine::NoSource };
        if spot.is_unoptimised
            && let Some(only) = only
        {
            return SpotLine::Line(only);
        }
        let mut calling = spot.callee.map_or_else(Vec::new, |callee| self.calls(module, method).to(callee));
        let is_called_there = calling.iter().any(|offset| spot.holds(*offset));
        match only {
            Some(only) if is_called_there || calling.is_empty() => return SpotLine::Line(only),
            // Blocks were moved behind this line's code, as nothing there calls that.
            Some(_) => {}
            None => calling.retain(|offset| spot.holds(*offset)),
        }
        let Some((symbols, row)) = self.method(module, method) else { return SpotLine::NoSource };
        let found = symbols.one_line(row, &calling).and_then(|found| line(symbols, found));
        found.map_or(SpotLine::Unknown(file), SpotLine::ByCall)
    }

    /// Call sites in the code of a method.
    fn calls(&mut self, module: &Path, method: u32) -> &Calls {
        let key = (module.to_owned(), method & 0x00FF_FFFF);
        if !self.calls.contains_key(&key) {
            let found = self.assembly(module).map(|assembly| Calls::of_method(assembly, key.1)).unwrap_or_default();
            self.calls.insert(key.clone(), found);
        }
        &self.calls[&key]
    }

    /// A module for searching its code; `None` if it can't be read.
    fn assembly(&mut self, module: &Path) -> Option<&Assembly> {
        if !self.assemblies.contains_key(module) {
            let read = self.files.read(module).and_then(|image| Assembly::read(image).ok());
            self.assemblies.insert(module.to_owned(), read);
        }
        self.assemblies.get(module)?.as_ref()
    }

    /// The symbols of a module, and the row of one of its methods.
    fn method(&mut self, module: &Path, method: u32) -> Option<(&mut Symbols, u32)> {
        // The top byte of a method's token names the table, the rest is the row.
        let row = method & 0x00FF_FFFF;
        if module.as_os_str().is_empty() || row == 0 {
            return None;
        }
        if !self.modules.contains_key(module) {
            let symbols = self.symbols(module);
            self.modules.insert(module.to_owned(), symbols);
        }
        Some((self.modules.get_mut(module)?.as_mut().ok()?, row))
    }

    /// The line that assigns a static field, in the module at the path `module` that declares the
    /// field: the line of its declaration if it has an initializer, otherwise the first line that
    /// sets the field or adds a handler to the event. `field` is its name in C# notation,
    /// `Shop.Cache<string>.items`. `None` if the module has no such field, or no such line.
    pub fn static_field(&mut self, module: impl AsRef<Path>, field: &str) -> Option<SourceLine> {
        let module = module.as_ref();
        let places = statics::places(self.assembly(module)?, field);
        places.into_iter().find_map(|(method, offset)| self.find(module, method, offset))
    }

    /// The reason why the module at the path `module` has no lines; `None` if it has lines, or none
    /// were requested.
    #[must_use]
    pub fn obstacle(&self, module: impl AsRef<Path>) -> Option<&Obstacle> {
        self.modules.get(module.as_ref())?.as_ref().err()
    }

    /// Sources embedded into the PDBs of the modules with lines, by file path. Output of source
    /// generators exists nowhere else.
    #[must_use]
    pub fn embedded_sources(&self) -> HashMap<String, String> {
        self.modules.values().flatten().flat_map(|symbols| sources::embedded(&symbols.pdb)).collect()
    }

    fn symbols(&mut self, module: &Path) -> Result<Symbols, Obstacle> {
        let image = self.files.read(module).ok_or(Obstacle::NoModule)?;
        let assembly = Assembly::read(image).map_err(|_| Obstacle::NoPdbNamed)?;
        Ok(Symbols { pdb: self.files.pdb_of(&assembly, module)?, points: HashMap::new() })
    }
}

#[cfg(test)]
mod tests {
    use clrscope_testkit::single_file;

    use super::*;

    /// The PDB that is embedded in an image.
    fn embedded(image: &[u8]) -> Option<Vec<u8>> {
        Assembly::read(image.to_vec()).expect("an assembly").embedded_pdb(clr_metadata::MOST_BYTES)
    }

    /// The first method of a module that has a line.
    fn first_line(module: &Path) -> Option<SourceLine> {
        let mut lines = Lines::default();
        (1..200).find_map(|row| lines.find(module, 0x0600_0000 | row, 0))
    }

    #[test]
    fn the_embedded_pdb_of_a_fixture_is_found_and_read() {
        let module = clrscope_testkit::fixture("Exceptions");
        let image = std::fs::read(&module).expect("the fixture");
        assert!(embedded(&image).is_some());
        let main = first_line(&module).expect("a method with lines");
        assert!(main.file.ends_with(".cs") && main.line > 0, "{main:?}");
    }

    /// Extracts the embedded PDB of a fixture, puts it next to a module whose own PDB is damaged,
    /// and finds the lines there.
    #[test]
    fn a_pdb_beside_its_module_is_found_and_one_of_another_module_is_not() {
        let image = std::fs::read(clrscope_testkit::fixture("Exceptions")).expect("the fixture");
        let pdb = embedded(&image).expect("an embedded PDB");
        let other = std::fs::read(clrscope_testkit::fixture("Throws")).expect("the other fixture");
        let other = embedded(&other).expect("an embedded PDB");
        let folder = tempfile::tempdir().expect("a folder");
        let module = folder.path().join("Beside.dll");
        std::fs::write(&module, without_embedded(&image)).expect("written");
        assert_eq!(first_line(&module), None, "nothing is beside it");
        let mut lines = Lines::default();
        assert_eq!((lines.find(&module, 0x0600_0001, 0), lines.obstacle("/other")), (None, None));
        let words = lines.obstacle(&module).expect("an obstacle").to_string();
        assert!(words.contains(&format!("no PDB at {}", module.with_extension("pdb").display())), "{words}");
        std::fs::write(folder.path().join("Beside.pdb"), &pdb).expect("written");
        assert_eq!(first_line(&module), first_line(&clrscope_testkit::fixture("Exceptions")));
        std::fs::write(folder.path().join("Beside.pdb"), &other).expect("written");
        assert_eq!(first_line(&module), None, "the PDB of another module");
        assert_eq!(lines.find(&module, 0x0600_0001, 0), None);
        let mut lines = Lines::default();
        assert_eq!(lines.find(&module, 0x0600_0001, 0), None);
        let words = lines.obstacle(&module).expect("an obstacle").to_string();
        assert!(words.contains("is of another build"), "{words}");
    }

    /// Number of the line in a fixture's source that contains `text`, from 1.
    fn line_with(source: &str, text: &str) -> u32 {
        let at = source.lines().position(|line| line.contains(text));
        at.unwrap_or_else(|| panic!("no line with {text:?}")) as u32 + 1
    }

    /// Finds the expected lines by their text in the source. An event is a field that no code with
    /// lines assigns, so its line is that of code that adds a handler.
    #[test]
    fn static_fields_have_the_lines_that_give_them_what_they_hold() {
        let module = clrscope_testkit::fixture("Holders");
        let place = clrscope_testkit::workspace_root().join("dotnet/fixtures/Holders/Holders.cs");
        let source = std::fs::read_to_string(place).expect("the source");
        let mut lines = Lines::default();
        for (field, text) in [
            ("Holders.Program.Handles", "List<GCHandle> Handles = new()"),
            ("Holders.Cache.Items", "Items { get; } = new()"),
            ("Holders.Store<Holders.Order>.Kept", "Kept = [new()"),
            ("Holders.Program.pairs", "private static Pair[] pairs = []"),
            ("Holders.Publisher.Changed", "Publisher.Changed +="),
        ] {
            let found = lines.static_field(&module, field).unwrap_or_else(|| panic!("no line of {field}"));
            assert!(found.file.ends_with("Holders.cs"), "{field}: {found:?}");
            assert_eq!(found.line, line_with(&source, text), "{field}");
        }
        for nothing in ["Holders.Program.Nothing", "Holders.Nobody.Items", "Items", ""] {
            assert_eq!(lines.static_field(&module, nothing), None, "{nothing}");
        }
        assert_eq!(lines.static_field("/nonexistent/Holders.dll", "Holders.Cache.Items"), None);
    }

    /// Tests a place with several possible lines, and a place whose code does not call the recorded
    /// callee.
    #[test]
    fn what_is_called_tells_lines_apart_that_the_map_does_not() {
        let module = clrscope_testkit::fixture("Lines");
        let assembly = Assembly::read(std::fs::read(&module).expect("the fixture")).expect("an assembly");
        let rows = 1..=assembly.count(clr_metadata::Table::METHOD_DEF);
        let build = rows.into_iter().find(|row| assembly.method_name(*row) == "Build").expect("the method");
        let method = clr_metadata::Table::METHOD_DEF.token(build);
        let place = clrscope_testkit::workspace_root().join("dotnet/fixtures/Lines/Lines.cs");
        let source = std::fs::read_to_string(place).expect("the source");
        let [each, joins] = ["foreach (var item in Items)", "// joins"].map(|text| line_with(&source, text));
        let mut lines = Lines::default();
        let joining = (0..99).find(|at| lines.find(&module, method, *at).is_some_and(|found| found.line == joins));
        let joining = joining.expect("its offset");
        let mut said = |spot: Spot<'_>| match lines.locate(&module, method, &spot) {
            SpotLine::Line(SourceLine { line, .. }) => format!("line {line}"),
            SpotLine::ByCall(SourceLine { line, .. }) => format!("by call {line}"),
            SpotLine::Unknown(file) => format!("unknown, {}", file.rsplit('/').next().unwrap_or_default()),
            SpotLine::NoSource => "no source".to_owned(),
        };
        let concat = Some("System.String::Concat");
        let all = Spot::default();
        let both = Spot { il_offset: Some(joining - 8), il_span: 64, ..all };
        let before = Spot { il_offset: Some(joining - 8), il_span: 8, ..all };
        let unknown = "unknown, Lines.cs";
        assert_eq!(said(all), unknown, "all of the method is in question");
        assert_eq!(said(Spot { callee: concat, ..all }), format!("by call {joins}"));
        assert_eq!(said(Spot { callee: Some("System.Number::UInt32ToDecStr"), ..all }), unknown, "nothing calls that");
        assert_eq!(said(both), unknown);
        assert_eq!(said(Spot { callee: concat, ..both }), format!("by call {joins}"));
        assert_eq!(said(Spot { il_span: u16::MAX, callee: concat, ..both }), format!("by call {joins}"));
        assert_eq!(said(before), format!("line {each}"));
        assert_eq!(
            said(Spot { callee: Some("System.Collections.Generic.List+Enumerator::get_Current"), ..before }),
            format!("line {each}")
        );
        assert_eq!(said(Spot { callee: concat, ..before }), format!("by call {joins}"), "that line does not join");
        assert_eq!(said(Spot { callee: concat, is_unoptimised: true, ..before }), format!("line {each}"));
        assert_eq!(said(Spot { il_offset: Some(joining), ..all }), format!("line {joins}"));
        assert_eq!(lines.locate("/nonexistent.dll", method, &all), SpotLine::NoSource);
        assert_eq!(lines.locate(&module, 0, &all), SpotLine::NoSource);
    }

    /// A single-file program has its modules after the host's code, and its PDB there or next to
    /// the program.
    #[test]
    fn lines_of_a_single_file_program_are_found() {
        let image = std::fs::read(clrscope_testkit::fixture("Exceptions")).expect("the fixture");
        let pdb = embedded(&image).expect("an embedded PDB");
        let without = without_embedded(&image);
        let expected = first_line(&clrscope_testkit::fixture("Exceptions"));
        let folder = tempfile::tempdir().expect("a folder");
        let (module, program) = (folder.path().join("Alone.dll"), folder.path().join("Alone"));
        assert_eq!(first_line(&module), None, "there is no module");
        let put = |files: &[(&str, &[u8], bool)]| single_file(&program, 6, files);
        put(&[("Alone.dll", &image, true)]);
        assert_eq!(first_line(&module), expected, "embedded in the module");
        put(&[("Alone.dll", &without, false), ("Alone.pdb", &pdb, true)]);
        assert_eq!(first_line(&module), expected, "in the program");
        put(&[("Alone.dll", &without, false)]);
        assert_eq!(first_line(&module), None, "nowhere");
        std::fs::write(folder.path().join("Alone.pdb"), &pdb).expect("written");
        assert_eq!(first_line(&module), expected, "beside the program");
    }

    /// The image with a damaged signature of its embedded PDB, so that it has no embedded PDB.
    fn without_embedded(image: &[u8]) -> Vec<u8> {
        let mut image = image.to_vec();
        let places: Vec<usize> = (0..image.len() - 4).filter(|&at| &image[at..at + 4] == b"MPDB").collect();
        places.iter().for_each(|&at| image[at] = b'X');
        assert!(embedded(&image).is_none());
        image
    }

    /// A compiler deflates long sources and stores short ones uncompressed.
    #[test]
    fn sources_in_a_pdb_are_those_that_were_compiled() {
        let Some(sdk) = clrscope_testkit::Sdk::find() else {
            return clrscope_testkit::not_run("no .NET SDK is at hand");
        };
        let folder = tempfile::tempdir().expect("a folder");
        let long = format!("public class Long {{ void M() {{ }} }} //{}\n", " and so on".repeat(200));
        let sources = [("short.cs", "class Short { void M() { } }"), ("long.cs", &long)];
        let sources = sources.map(|(name, text)| (folder.path().join(name), text));
        sources.iter().for_each(|(path, text)| std::fs::write(path, text).expect("written"));
        let module = folder.path().join("Both.dll");
        let mut compiler = sdk.compiler_to(&module);
        compiler.args(["-target:library", "-debug:embedded", "-embed"]).args(sources.iter().map(|(path, _)| path));
        clrscope_testkit::run(compiler).expect_success();
        let mut lines = Lines::default();
        assert!((1..9).any(|row| lines.first(&module, 0x0600_0000 | row).is_some()));
        let found = lines.embedded_sources();
        for (path, text) in sources {
            assert_eq!(found.get(path.to_str().expect("a path")).map(String::as_str), Some(text));
        }
    }

    #[test]
    fn damaged_modules_have_no_lines() {
        let image = std::fs::read(clrscope_testkit::fixture("Exceptions")).expect("the fixture");
        let whole = first_line(&clrscope_testkit::fixture("Exceptions"));
        let folder = tempfile::tempdir().expect("a folder");
        let module = folder.path().join("Cut.dll");
        for length in (0..image.len()).step_by(997) {
            std::fs::write(&module, &image[..length]).expect("written");
            let found = first_line(&module);
            assert!(found.is_none() || found == whole, "cut at {length}: {found:?}");
        }
        assert_eq!(first_line(Path::new("/nonexistent/module.dll")), None);
    }
}
