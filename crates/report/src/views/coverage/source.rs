//! The source of covered files, line by line, with the state of each line.

use std::collections::HashMap;
use std::io;

use clrscope_analysis::{FileCoverage, LineCoverage};
use clrscope_recording::model::Recording;
use clrscope_symbols::{Lines, Sources};

use super::OpenView;
use crate::cell::{Cell, Kind};
use crate::column::{Column, Row, RowKind, Sheet};
use crate::render::{Renderer, Section, Style, Tail, Title};
use crate::views::sources::{file_name, not_found};

/// Extensions of source files. A recording names the files to read, so only files with these
/// extensions are read from this machine.
const ENDINGS: [&str; 10] = ["cs", "csx", "vb", "fs", "fsi", "fsx", "razor", "cshtml", "xaml", "il"];
/// Maximum number of lines in text.
const MOST_LINES: usize = 400;
/// Source lines per row of the limit, because source lines are short.
const LINES_FOR_A_ROW: usize = 10;

/// A line of a source file.
struct SourceLine<'a> {
    file: &'a FileCoverage,
    /// Whether this is the first shown line of the file.
    is_first: bool,
    number: u32,
    text: String,
    /// Coverage of the line; `None` for lines without code.
    line: Option<&'a LineCoverage>,
}

impl Row for SourceLine<'_> {}

struct SourceLines;

impl RowKind for SourceLines {
    type Row<'a> = SourceLine<'a>;
}

/// The state of a line, as a word for programs and one for people: executed, executed on some of
/// its branches only, not executed, no code.
fn state(line: Option<&LineCoverage>) -> (&'static str, &'static str) {
    match line {
        None => ("none", ""),
        Some(line) if line.hits == 0 => ("not_covered", "not run"),
        Some(line) if line.branches_covered() < line.branches.len() as u64 => ("partly", "partly"),
        Some(_) => ("covered", "run"),
    }
}

fn sheet<'c>() -> Sheet<'c, SourceLines> {
    let number = |key, title, of: fn(&LineCoverage) -> u64| {
        Column::new(key, title, Kind::Count, move |row: &SourceLine<'_>| match row.line {
            Some(line) => Cell::Count(of(line)),
            None => Cell::Absent,
        })
    };
    Sheet::new([
        Column::new("file", "file", Kind::Text, |row: &SourceLine<'_>| {
            Cell::text(&row.file.file).said(if row.is_first { file_name(&row.file.file) } else { "" })
        }),
        Column::new("module", "assembly", Kind::Text, |row: &SourceLine<'_>| Cell::text(&row.file.module)),
        Column::new("state", "state", Kind::Text, |row: &SourceLine<'_>| {
            let (name, said) = state(row.line);
            Cell::text(name).said(said)
        }),
        number("hits", "hits", |line| line.hits),
        number("branches", "branches", |line| line.branches.len() as u64),
        number("branches_covered", "taken", LineCoverage::branches_covered),
        Column::new("line", "line", Kind::Number, |row: &SourceLine<'_>| Cell::Number(row.number.into())),
        Column::new("source", "source", Kind::Text, |row: &SourceLine<'_>| Cell::text(&row.text)),
    ])
}

/// Sources that compilers embedded into the PDBs of covered assemblies.
fn embedded(recording: &Recording) -> HashMap<String, String> {
    let mut lines = Lines::default();
    for process in &recording.processes {
        for plan in &process.coverage_plans {
            let module = process.modules.get(plan.module as usize);
            if let (Some(module), Some(method)) = (module, plan.methods.first()) {
                // Opens the PDB.
                let _ = lines.find(&module.path, method.token, 0);
            }
        }
    }
    lines.embedded_sources()
}

/// Facts about the sources of some files.
struct SourceFacts<'a> {
    lines: Vec<SourceLine<'a>>,
    /// Files that this machine does not have.
    missing: Vec<String>,
    /// Files that differ from the compiled ones.
    others: Vec<&'a str>,
}

fn found<'a>(files: &'a [FileCoverage], started_unix_ns: u64, sources: &mut Sources) -> SourceFacts<'a> {
    let mut found = SourceFacts { lines: Vec::new(), missing: Vec::new(), others: Vec::new() };
    for file in files {
        let is_source = file.file.rsplit_once('.').is_some_and(|(_, ending)| ENDINGS.contains(&ending));
        let Some(text) = is_source.then(|| sources.text(&file.file)).flatten() else {
            found.missing.push(file.file.clone());
            continue;
        };
        let mut count = 0;
        for (number, text) in (1..).zip(text.lines()) {
            count = number;
            let line = file.lines.get(&number);
            found.lines.push(SourceLine {
                file,
                is_first: number == 1,
                number,
                text: text.replace('\t', "    "),
                line,
            });
        }
        let is_shorter = file.lines.keys().next_back().is_some_and(|last| *last > count);
        if is_shorter || Sources::is_newer(&file.file, started_unix_ns) {
            found.others.push(&file.file);
        }
    }
    found
}

/// A sentence about files that differ from the compiled ones.
fn changed(others: &[&str]) -> Option<String> {
    let (first, rest) = others.split_first()?;
    let more = match rest.len() {
        0 => String::new(),
        1 => " and one more file".to_owned(),
        more => format!(" and {more} more files"),
    };
    Some(format!("Changed since the run, so marks may be on the wrong lines: {first}{more}."))
}

/// Passes the source of all files to a renderer.
pub(super) fn section(opened: &OpenView<'_>, renderer: &mut dyn Renderer) -> io::Result<()> {
    let OpenView { files, request, recording, .. } = opened;
    let mut sources = Sources::new(embedded(recording), request.source_root.clone());
    let SourceFacts { lines, missing, others } = found(files, recording.run.started_unix_ns, &mut sources);
    let said = [not_found(&missing, request.source_root.as_deref()), changed(&others)];
    let note = said.into_iter().flatten().reduce(|all, next| format!("{all} {next}"));
    let sheet = sheet();
    let text =
        [("state", 0), ("hits", 2), ("branches", 4), ("branches_covered", 4), ("file", 3), ("line", 0), ("source", 0)];
    let section = Section {
        title: Title::Bold("The source, with the lines that were run".to_owned()),
        nothing: note.clone().unwrap_or_default(),
        what: "lines of source",
        text_rows: Some(MOST_LINES),
        ..sheet.section("source", Style::Table, &text)
    };
    let shown = request.query.limit.map_or(lines.len(), |limit| limit.saturating_mul(LINES_FOR_A_ROW).min(lines.len()));
    renderer.section(&section, &mut |visit| {
        lines[..shown].iter().try_for_each(|line| visit(&sheet.entry(line)))?;
        Ok(Tail { left_out: (lines.len() - shown) as u64, note: note.clone() })
    })
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use clrscope_analysis::BranchCoverage;

    use super::*;

    fn line(hits: u64, branches: &[u64]) -> LineCoverage {
        let branch = |hits: &u64| BranchCoverage { hits: *hits, ..BranchCoverage::default() };
        LineCoverage { hits, branches: branches.iter().map(branch).collect() }
    }

    fn file(path: &str, lines: &[(u32, LineCoverage)]) -> FileCoverage {
        let lines: BTreeMap<u32, LineCoverage> = lines.iter().cloned().collect();
        FileCoverage { module: "App".to_owned(), file: path.to_owned(), lines }
    }

    #[test]
    fn every_line_of_a_source_has_its_state() {
        let known = HashMap::from([("/_/a.cs".to_owned(), "if (x)\n{\n\tgo();\n\tstop();\n}\n".to_owned())]);
        let files = [
            file("/_/a.cs", &[(1, line(3, &[3, 0])), (3, line(3, &[])), (4, line(0, &[0]))]),
            file("/_/gone.cs", &[(1, line(1, &[]))]),
        ];
        let found = found(&files, 0, &mut Sources::new(known, None));
        let states: Vec<_> =
            found.lines.iter().map(|line| (line.number, state(line.line).0, line.text.as_str())).collect();
        let expected = [
            (1, "partly", "if (x)"),
            (2, "none", "{"),
            (3, "covered", "    go();"),
            (4, "not_covered", "    stop();"),
            (5, "none", "}"),
        ];
        assert_eq!(states, expected);
        assert_eq!((found.missing, found.others.is_empty()), (vec!["/_/gone.cs".to_owned()], true));
    }

    #[test]
    fn files_that_are_no_sources_are_not_read_and_shorter_ones_are_said_to_be_others() {
        let text = |text: &str| text.to_owned();
        let known = HashMap::from([(text("/home/key.pem"), text("secret")), (text("/_/a.cs"), text("short\n"))]);
        let files = [file("/home/key.pem", &[(1, line(1, &[]))]), file("/_/a.cs", &[(2, line(1, &[]))])];
        let found = found(&files, 0, &mut Sources::new(known, None));
        assert_eq!(found.missing, ["/home/key.pem"]);
        assert_eq!(found.others, ["/_/a.cs"]);
        assert!(found.lines.iter().all(|line| line.text == "short"));
        assert!(changed(&found.others).expect("a sentence").contains("/_/a.cs"));
    }
}
