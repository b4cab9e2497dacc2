//! `opencover`: the XML format of the tool OpenCover, which several services read.
//!
//! A sequence point represents a line, as in the output of other .NET tools; branch points have the
//! offsets of the code.

use std::collections::BTreeMap;
use std::io::{self, Write};

use clrscope_analysis::{CoverageSums, MethodCoverage, coverage};
use clrscope_recording::model::Recording;

use super::xml::Xml;
use super::{Class, Package, complexity, packages};
use crate::{ExportError, ExportOptions, Exporter};

/// The format `opencover`; its module describes the output.
pub(crate) struct OpenCover;

impl Exporter for OpenCover {
    fn name(&self) -> &'static str {
        "opencover"
    }

    fn description(&self) -> &'static str {
        "coverage as OpenCover's XML (needs -i coverage)"
    }

    fn extension(&self) -> &'static str {
        "xml"
    }

    fn write(&self, recording: &Recording, options: &ExportOptions, out: &mut dyn Write) -> Result<(), ExportError> {
        let coverage = coverage(recording, &options.query)?;
        let packages = packages(&coverage);
        let mut xml = Xml::begin(out)?;
        xml.open("CoverageSession", &[("xmlns:xsi", &"http://www.w3.org/2001/XMLSchema-instance")])?;
        let methods = || packages.iter().flat_map(|package| &package.classes);
        write_summary(&mut xml, &coverage.sums(), methods())?;
        xml.open("Modules", &[])?;
        let mut next = 1;
        packages.iter().try_for_each(|package| write_module(&mut xml, package, &mut next))?;
        xml.close()?;
        xml.close()?;
        Ok(())
    }
}

fn percent(share: f64) -> String {
    format!("{:.2}", share * 100.0)
}

fn is_visited(method: &MethodCoverage) -> bool {
    method.lines.values().any(|line| line.hits > 0)
}

fn write_summary<'c>(
    xml: &mut Xml<'_>,
    sums: &CoverageSums,
    classes: impl Iterator<Item = &'c Class<'c>> + Clone,
) -> io::Result<()> {
    let methods = || classes.clone().flat_map(|class| &class.methods);
    let complexities = || methods().map(|method| complexity(&CoverageSums::from_lines(&method.lines)));
    xml.empty(
        "Summary",
        &[
            ("numSequencePoints", &sums.lines),
            ("visitedSequencePoints", &sums.lines_covered),
            ("numBranchPoints", &sums.branches),
            ("visitedBranchPoints", &sums.branches_covered),
            ("sequenceCoverage", &percent(sums.line_share())),
            ("branchCoverage", &percent(sums.branch_share())),
            ("maxCyclomaticComplexity", &complexities().max().unwrap_or(0)),
            ("minCyclomaticComplexity", &complexities().min().unwrap_or(0)),
            ("visitedClasses", &classes.clone().filter(|class| class.methods.iter().any(|m| is_visited(m))).count()),
            ("numClasses", &classes.clone().count()),
            ("visitedMethods", &methods().filter(|method| is_visited(method)).count()),
            ("numMethods", &methods().count()),
        ],
    )
}

fn write_module(xml: &mut Xml<'_>, package: &Package<'_>, next: &mut u32) -> io::Result<()> {
    let mut files: BTreeMap<&str, u32> = BTreeMap::new();
    for class in &package.classes {
        files.entry(class.file).or_insert_with(|| std::mem::replace(next, *next + 1));
    }
    xml.open("Module", &[("hash", &package.name)])?;
    xml.text("ModulePath", package.name)?;
    xml.text("ModuleName", package.name)?;
    xml.open("Files", &[])?;
    files.iter().try_for_each(|(path, number)| xml.empty("File", &[("uid", number), ("fullPath", path)]))?;
    xml.close()?;
    xml.open("Classes", &[])?;
    package
        .classes
        .iter()
        .try_for_each(|class| write_class(xml, class, files.get(class.file).copied().unwrap_or(0)))?;
    xml.close()?;
    xml.close()
}

fn write_class(xml: &mut Xml<'_>, class: &Class<'_>, file: u32) -> io::Result<()> {
    xml.open("Class", &[])?;
    write_summary(xml, &CoverageSums::from_lines(&class.lines()), std::iter::once(class))?;
    xml.text("FullName", class.name)?;
    xml.open("Methods", &[])?;
    class.methods.iter().try_for_each(|method| write_method(xml, method, file))?;
    xml.close()?;
    xml.close()
}

fn write_method(xml: &mut Xml<'_>, method: &MethodCoverage, file: u32) -> io::Result<()> {
    let sums = CoverageSums::from_lines(&method.lines);
    let name = method.name.as_str();
    let word = |is: bool| if is { "true" } else { "false" };
    xml.open(
        "Method",
        &[
            ("visited", &word(is_visited(method))),
            ("cyclomaticComplexity", &complexity(&sums)),
            ("sequenceCoverage", &percent(sums.line_share())),
            ("branchCoverage", &percent(sums.branch_share())),
            ("isConstructor", &word(matches!(name, ".ctor" | ".cctor"))),
            ("isGetter", &word(name.starts_with("get_"))),
            ("isSetter", &word(name.starts_with("set_"))),
        ],
    )?;
    let alone = Class { name: "", file: "", methods: vec![method] };
    write_summary(xml, &sums, std::iter::once(&alone))?;
    xml.text("Name", &format!("{}::{name}{}", method.class, method.parameters))?;
    xml.empty("FileRef", &[("uid", &file)])?;
    xml.open("SequencePoints", &[])?;
    for (ordinal, (number, line)) in method.lines.iter().enumerate() {
        xml.empty(
            "SequencePoint",
            &[
                ("vc", &line.hits),
                ("uspid", number),
                ("ordinal", &ordinal),
                ("sl", number),
                ("sc", &1),
                ("el", number),
                ("ec", &2),
                ("bec", &line.branches.len()),
                ("bev", &line.branches_covered()),
                ("fileid", &file),
            ],
        )?;
    }
    xml.close()?;
    xml.open("BranchPoints", &[])?;
    let branches = method.lines.iter().flat_map(|(number, line)| line.branches.iter().map(move |way| (number, way)));
    for (ordinal, (number, way)) in branches.enumerate() {
        xml.empty(
            "BranchPoint",
            &[
                ("vc", &way.hits),
                ("uspid", number),
                ("ordinal", &ordinal),
                ("path", &way.path),
                ("offset", &way.il_offset),
                ("offsetend", &way.target_offset),
                ("sl", number),
                ("fileid", &file),
            ],
        )?;
    }
    xml.close()?;
    xml.close()
}
