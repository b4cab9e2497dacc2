//! Differential flame graph of two sides: red for an increase, blue for a decrease, grey for no
//! change beyond chance.

use std::io::Write;

use clrscope_analysis::{Metric, one_line};
use inferno::flamegraph::color::{Color, PaletteMap};
use inferno::flamegraph::{Options, from_lines};

use crate::ExportError;
use crate::flamegraph::unit;
use crate::stacks::push_frame;

/// Stacks of two sides, to be drawn as one SVG.
#[derive(Default)]
pub struct DifferentialFlameGraph {
    lines: Vec<String>,
    palette: PaletteMap,
}

impl std::fmt::Debug for DifferentialFlameGraph {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("DifferentialFlameGraph").field("stacks", &self.lines.len()).finish_non_exhaustive()
    }
}

impl DifferentialFlameGraph {
    /// Adds a stack. `frames` are its frames from the outermost on, each with its growth (0 if
    /// there is none beyond chance); `weight` is the width of the stack's own part.
    pub fn add<'f>(&mut self, frames: impl Iterator<Item = (&'f str, f64)>, weight: u64) {
        let mut text = String::new();
        for (name, growth) in frames {
            let name_at = text.len();
            push_frame(&mut text, name);
            self.palette.insert(text[name_at..].trim_start_matches(';'), colour_of(growth));
        }
        self.lines.push(format!("{text} {weight}"));
    }

    /// Draws the graph.
    ///
    /// # Errors
    /// When there is nothing to draw, or `out` can't be written.
    pub fn write(mut self, title: &str, metric: &Metric, out: &mut dyn Write) -> Result<(), ExportError> {
        if self.lines.is_empty() {
            return Err(ExportError::Empty("nothing was recorded that a flame graph could show"));
        }
        let (unit, factor) = unit(metric);
        let mut drawing = Options::default();
        drawing.title = "clrscope diff".to_owned();
        drawing.subtitle = Some(format!("{}: {}", metric.title, one_line(title)));
        drawing.notes =
            "Red: more than before, or new. Blue: less, or gone. Grey: no change beyond chance. Frames are as wide as \
             the larger of both sides."
                .to_owned();
        drawing.count_name = unit.to_owned();
        drawing.factor = factor;
        drawing.name_type = "Function:".to_owned();
        drawing.deterministic = true;
        drawing.palette_map = Some(&mut self.palette);
        from_lines(&mut drawing, self.lines.iter().map(String::as_str), out)?;
        Ok(())
    }
}

/// Red for an increase, blue for a decrease; a larger change has a stronger colour.
fn colour_of(growth: f64) -> Color {
    let pale = |part: f64| (205.0 - 150.0 * part.clamp(0.0, 1.0)) as u8;
    let [r, g, b] = match growth {
        more if more > 0.0 => [240, pale(more), pale(more)],
        less if less < 0.0 => [pale(-less), pale(-less), 240],
        _ => [205, 205, 205],
    };
    Color { r, g, b }
}

#[cfg(test)]
mod tests {
    use clrscope_analysis::CALLS;

    use super::*;

    fn drawn(stacks: &[(&[(&str, f64)], u64)]) -> String {
        let (mut graph, mut out) = (DifferentialFlameGraph::default(), Vec::new());
        stacks.iter().for_each(|(frames, weight)| graph.add(frames.iter().copied(), *weight));
        graph.write("a <b>", &CALLS, &mut out).expect("a graph");
        String::from_utf8(out).expect("UTF-8")
    }

    #[test]
    fn more_is_red_less_is_blue_and_the_rest_grey() {
        let main = ("Main", 0.0);
        let svg = drawn(&[
            (&[main, ("Slow (+100.0 %)", 1.0)], 70),
            (&[main, ("Old (gone)", -1.0)], 20),
            (&[main, ("Now (new)", f64::INFINITY)], 10),
        ]);
        let fill = |name: &str| {
            let from = svg.find(&format!("<title>{name}")).unwrap_or_else(|| panic!("{name} in {svg}"));
            let fill = svg[from..].split("fill=\"").nth(1).expect("a colour");
            fill.split('"').next().expect("an end").to_owned()
        };
        assert_eq!(fill("Main"), "rgb(205,205,205)");
        assert_eq!(fill("Slow (+100.0 %)"), "rgb(240,55,55)");
        assert_eq!(fill("Old (gone)"), "rgb(55,55,240)");
        assert_eq!(fill("Now (new)"), "rgb(240,55,55)");
        assert!(svg.contains("a &lt;b&gt;"), "the title is text");
    }

    #[test]
    fn nothing_is_an_error() {
        let nothing = DifferentialFlameGraph::default().write("", &CALLS, &mut Vec::new());
        assert!(matches!(nothing, Err(ExportError::Empty(_))));
    }
}
