//! The tables of known paths.

use std::collections::BTreeMap;

use clrscope_testkit::Runtime;

use super::sampled::Shapes;
use super::{CONDITIONS, LEAST, Series};
use crate::accuracy::page::Page;

/// Examples of wrong stacks that are shown of each runtime.
const EXAMPLES: usize = 12;

/// Prints all results: sums, then each shape by runtime and engine, then examples.
pub(super) fn print(all: &[Series], shapes: &Shapes, page: &mut Page) {
    sums(all, page);
    for runtime in clrscope_testkit::runtimes() {
        let of_it: Vec<&Series> = all
            .iter()
            .filter(|series| series.runtime == runtime && series.condition.name == CONDITIONS[0].name)
            .collect();
        by_shape(runtime, &of_it, shapes, page);
        let of_it: Vec<&Series> = all.iter().filter(|series| series.runtime == runtime).collect();
        examples(&of_it, shapes, page);
    }
}

fn sums(all: &[Series], page: &mut Page) {
    page.line(format_args!(
        "\n                           {:12} samples   equal   not equal, called whole   between: astray     CPU time   99.9 %",
        ""
    ));
    for condition in &CONDITIONS {
        let fewer: Vec<_> = condition.engines.iter().filter(|(_, least)| *least < LEAST).collect();
        let fewer = fewer.iter().map(|(engine, least)| format!("; {}: {least} samples are asked for", engine.name()));
        page.line(format_args!("{}{}", condition.name, fewer.collect::<String>()));
        for series in all.iter().filter(|series| series.condition.name == condition.name) {
            let tally = &series.tally;
            let verdict = match (series.is_ours(), series.is_met()) {
                (false, _) => "-",
                (true, true) => "met",
                (true, false) => "MISSED",
            };
            let covered = series.covered.map_or("-".to_owned(), |covered| format!("{covered:.1} %"));
            page.line(format_args!(
                "  .NET {:8}  {:12} {:>10} {:>6.2} % {:>16} {:>14} {:>6} {:>12}   {verdict}",
                series.runtime.version.to_string(),
                series.engine.name(),
                tally.samples,
                tally.equal_percent(),
                tally.silent,
                tally.between,
                tally.astray,
                covered,
            ));
            for broken in &series.broken {
                page.line(format_args!("      the program {broken}"));
            }
        }
    }
}

fn by_shape(runtime: &Runtime, of_it: &[&Series], shapes: &Shapes, page: &mut Page) {
    page.line(format_args!("\n.NET {}, {}", runtime.version, CONDITIONS[0].name));
    let head: String = of_it.iter().map(|series| format!("   {:^31}", series.engine.name())).collect();
    page.line(format_args!("{:36}{head}", ""));
    let columns = "   samples   equal missing   extra".repeat(of_it.len());
    page.line(format_args!("{:36}{columns}", "step, leaf"));
    for (index, name) in shapes.0.iter().enumerate() {
        let cells: String = of_it
            .iter()
            .map(|series| {
                let none = Default::default();
                let sum = series.tally.by_shape.get(&index).unwrap_or(&none);
                format!("{:>10} {:>5.1} % {:>7} {:>7}", sum.samples, sum.equal_percent(), sum.missing, sum.extra)
            })
            .collect();
        page.line(format_args!("{name:36}{cells}"));
    }
}

fn examples(of_it: &[&Series], shapes: &Shapes, page: &mut Page) {
    // The most frequent faults first, each shape once.
    let mut wrong: BTreeMap<usize, (u64, String)> = BTreeMap::new();
    for series in of_it {
        for (&shape, sum) in &series.tally.by_shape {
            if let Some(first) = &sum.first_wrong {
                let one = wrong
                    .entry(shape)
                    .or_insert_with(|| (0, format!("{}, {}: {first}", series.engine.name(), series.condition.name)));
                one.0 += sum.samples - sum.equal;
            }
        }
    }
    let mut wrong: Vec<_> = wrong.into_iter().collect();
    wrong.sort_by_key(|(_, (count, _))| std::cmp::Reverse(*count));
    for (shape, (_, text)) in wrong.iter().take(EXAMPLES) {
        page.line(format_args!("  {}: {text}", shapes.0[*shape]));
    }
    if let Some((series, first)) = of_it.iter().find_map(|series| Some((series, series.tally.first_astray.as_ref()?))) {
        page.line(format_args!("  between two leaves, {}, {}: {first}", series.engine.name(), series.condition.name));
    }
}
