//! `lcov`: the text format of the tool LCOV, with a record for each file of each assembly.
//!
//! A method's hits are the hits of its first line. A condition is a block, and its possible
//! outcomes are branches. Branches on lines that never ran have `-` instead of hits.

use std::io::{self, Write};

use clrscope_analysis::{Coverage, CoverageSums, FileCoverage, coverage, is_printable};
use clrscope_recording::model::Recording;

use super::conditions;
use crate::{ExportError, ExportOptions, Exporter};

/// The format `lcov`; its module describes the output.
pub(crate) struct Lcov;

impl Exporter for Lcov {
    fn name(&self) -> &'static str {
        "lcov"
    }

    fn description(&self) -> &'static str {
        "coverage as lcov's text, for editors and genhtml (needs -i coverage)"
    }

    fn extension(&self) -> &'static str {
        "info"
    }

    fn write(&self, recording: &Recording, options: &ExportOptions, out: &mut dyn Write) -> Result<(), ExportError> {
        let coverage = coverage(recording, &options.query)?;
        coverage.files().iter().try_for_each(|file| write_file(out, &coverage, file))?;
        Ok(())
    }
}

/// Text on one line.
fn plain(text: &str) -> String {
    text.replace(|c| !is_printable(c), " ")
}

fn write_file(out: &mut dyn Write, coverage: &Coverage, file: &FileCoverage) -> io::Result<()> {
    writeln!(out, "SF:{}", plain(&file.file))?;
    let methods = coverage.methods.iter().filter(|of| (&of.module, &of.file) == (&file.module, &file.file));
    let (mut found, mut hit) = (0, 0);
    for method in methods {
        let hits = method.lines.values().next().map_or(0, |line| line.hits);
        let name = plain(&format!("{}.{}{}", method.class, method.name, method.parameters));
        writeln!(out, "FN:{},{name}\nFNDA:{hits},{name}", method.first_line())?;
        found += 1;
        hit += u64::from(hits > 0);
    }
    writeln!(out, "FNF:{found}\nFNH:{hit}")?;
    for (number, line) in &file.lines {
        for (block, ways) in conditions(line).iter().enumerate() {
            for (branch, way) in ways.iter().enumerate() {
                let hits = if line.hits == 0 { "-".to_owned() } else { way.hits.to_string() };
                writeln!(out, "BRDA:{number},{block},{branch},{hits}")?;
            }
        }
    }
    let sums = CoverageSums::from_lines(&file.lines);
    writeln!(out, "BRF:{}\nBRH:{}", sums.branches, sums.branches_covered)?;
    for (number, line) in &file.lines {
        writeln!(out, "DA:{number},{}", line.hits)?;
    }
    writeln!(out, "LF:{}\nLH:{}\nend_of_record", sums.lines, sums.lines_covered)
}
