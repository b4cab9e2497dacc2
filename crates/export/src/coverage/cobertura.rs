//! `cobertura`: an XML format that build servers and editors read to show coverage.
//!
//! A package is an assembly, and a class is a type in one file. Paths are relative to the common
//! folder of all files, which the element `source` names. `condition-coverage` of a line covers all
//! branches of the line; each condition of the line has a number.

use std::io::{self, Write};

use clrscope_analysis::{CoverageSums, LineCoverage, coverage};
use clrscope_recording::model::Recording;

use super::xml::Xml;
use super::{Class, Lines, Package, complexity, conditions, packages};
use crate::{ExportError, ExportOptions, Exporter};

/// The format `cobertura`; its module describes the output.
pub(crate) struct Cobertura;

impl Exporter for Cobertura {
    fn name(&self) -> &'static str {
        "cobertura"
    }

    fn description(&self) -> &'static str {
        "coverage as Cobertura's XML, for build servers (needs -i coverage)"
    }

    fn extension(&self) -> &'static str {
        "xml"
    }

    fn write(&self, recording: &Recording, options: &ExportOptions, out: &mut dyn Write) -> Result<(), ExportError> {
        let coverage = coverage(recording, &options.query)?;
        let packages = packages(&coverage);
        let files = packages.iter().flat_map(|package| &package.classes).map(|class| class.file);
        let root = common_folder(files);
        let sums = coverage.sums();
        let mut xml = Xml::begin(out)?;
        xml.open(
            "coverage",
            &[
                ("line-rate", &rate(sums.line_share())),
                ("branch-rate", &rate(sums.branch_share())),
                ("version", &"1.9"),
                ("timestamp", &(recording.run.started_unix_ns / 1_000_000_000)),
                ("lines-covered", &sums.lines_covered),
                ("lines-valid", &sums.lines),
                ("branches-covered", &sums.branches_covered),
                ("branches-valid", &sums.branches),
            ],
        )?;
        xml.open("sources", &[])?;
        xml.text("source", root)?;
        xml.close()?;
        xml.open("packages", &[])?;
        packages.iter().try_for_each(|package| write_package(&mut xml, package, root))?;
        xml.close()?;
        xml.close()?;
        Ok(())
    }
}

/// The longest common folder path of all files, with the separator at its end; empty if there is
/// none.
fn common_folder<'a>(mut files: impl Iterator<Item = &'a str>) -> &'a str {
    let folder = |path: &'a str| path.rfind(['/', '\\']).map_or("", |end| &path[..=end]);
    let Some(first) = files.next() else { return "" };
    files.fold(folder(first), |common, file| {
        let same = common.char_indices().zip(file.chars()).take_while(|((_, a), b)| a == b).last();
        let end = same.map_or(0, |((at, c), _)| at + c.len_utf8());
        folder(&common[..end])
    })
}

/// A share with up to four decimal places, as other tools write it.
fn rate(share: f64) -> String {
    let rounded = format!("{share:.4}");
    let short = rounded.trim_end_matches('0').trim_end_matches('.');
    short.to_owned()
}

fn write_package(xml: &mut Xml<'_>, package: &Package<'_>, root: &str) -> io::Result<()> {
    open_with_sums(xml, "package", &[("name", package.name)], &package.sums())?;
    xml.open("classes", &[])?;
    package.classes.iter().try_for_each(|class| write_class(xml, class, root))?;
    xml.close()?;
    xml.close()
}

fn write_class(xml: &mut Xml<'_>, class: &Class<'_>, root: &str) -> io::Result<()> {
    let lines = class.lines();
    let file = class.file.strip_prefix(root).unwrap_or(class.file);
    open_with_sums(xml, "class", &[("name", class.name), ("filename", file)], &CoverageSums::from_lines(&lines))?;
    xml.open("methods", &[])?;
    for method in &class.methods {
        let names = [("name", method.name.as_str()), ("signature", method.parameters.as_str())];
        open_with_sums(xml, "method", &names, &CoverageSums::from_lines(&method.lines))?;
        write_lines(xml, &method.lines)?;
        xml.close()?;
    }
    xml.close()?;
    write_lines(xml, &lines)?;
    xml.close()
}

fn open_with_sums(
    xml: &mut Xml<'_>,
    element: &'static str,
    names: &[(&'static str, &str)],
    sums: &CoverageSums,
) -> io::Result<()> {
    let [line, branch] = [sums.line_share(), sums.branch_share()].map(rate);
    let complexity = complexity(sums);
    let mut attributes: Vec<(&str, &dyn std::fmt::Display)> = Vec::new();
    attributes.extend(names.iter().map(|(key, name)| (*key, name as &dyn std::fmt::Display)));
    attributes.extend([("line-rate", &line as &dyn std::fmt::Display), ("branch-rate", &branch)]);
    attributes.push(("complexity", &complexity));
    xml.open(element, &attributes)
}

fn write_lines(xml: &mut Xml<'_>, lines: &Lines) -> io::Result<()> {
    xml.open("lines", &[])?;
    for (number, line) in lines {
        if line.branches.is_empty() {
            xml.empty("line", &[("number", number), ("hits", &line.hits), ("branch", &"False")])?;
        } else {
            write_conditions(xml, *number, line)?;
        }
    }
    xml.close()
}

fn write_conditions(xml: &mut Xml<'_>, number: u32, line: &LineCoverage) -> io::Result<()> {
    let (gone, all) = (line.branches_covered(), line.branches.len() as u64);
    let coverage = format!("{}% ({gone}/{all})", gone * 100 / all);
    xml.open(
        "line",
        &[("number", &number), ("hits", &line.hits), ("branch", &"True"), ("condition-coverage", &coverage)],
    )?;
    xml.open("conditions", &[])?;
    for (number, ways) in conditions(line).iter().enumerate() {
        let gone = ways.iter().filter(|way| way.hits > 0).count();
        let coverage = format!("{}%", gone * 100 / ways.len());
        let kind = if ways.len() > 2 { "switch" } else { "jump" };
        xml.empty("condition", &[("number", &number), ("type", &kind), ("coverage", &coverage)])?;
    }
    xml.close()?;
    xml.close()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_lie_in_a_common_folder() {
        assert_eq!(common_folder(["/a/shop/x.cs", "/a/shop/in/y.cs", "/a/shopping/z.cs"].into_iter()), "/a/");
        assert_eq!(common_folder(["/a/x.cs"].into_iter()), "/a/");
        assert_eq!(common_folder(["C:\\a\\x.cs", "D:\\a\\x.cs"].into_iter()), "");
        assert_eq!(common_folder(["/ä/x.cs", "/ö/x.cs"].into_iter()), "/");
        assert_eq!(common_folder(std::iter::empty()), "");
    }

    #[test]
    fn rates_are_short() {
        assert_eq!([0.0, 0.5, 2.0 / 3.0, 1.0].map(rate), ["0", "0.5", "0.6667", "1"]);
    }
}
