//! `flamegraph`: an SVG that can be searched and zoomed in a browser.
//!
//! The width of a frame is its value of the metric, by default the wall time of `calls`. The colour
//! distinguishes user code, framework, unmanaged code and the runtime, with a shade per module.

use std::io::Write;

use clrscope_analysis::{FunctionRef, Metric, TreeNode, Unit};
use clrscope_recording::model::{FunctionKind, Recording};
use inferno::flamegraph::color::{Color, PaletteMap};
use inferno::flamegraph::{Options, from_lines};

use crate::fnv::{EMPTY, fnv1a};
use crate::stacks::stacks;
use crate::threads::command;
use crate::{ExportError, ExportOptions, Exporter};

/// Narrower frames would take a fraction of a pixel; their time remains in the frame below.
const MIN_SHARE: f64 = 0.0002;

/// The format `flamegraph`; its module describes the output.
pub(crate) struct FlameGraph;

impl Exporter for FlameGraph {
    fn name(&self) -> &'static str {
        "flamegraph"
    }

    fn description(&self) -> &'static str {
        "flame graph of all call paths, one SVG file"
    }

    fn extension(&self) -> &'static str {
        "svg"
    }

    fn takes_min_share(&self) -> bool {
        true
    }

    fn shows_native_code(&self) -> bool {
        true
    }

    fn write(&self, recording: &Recording, options: &ExportOptions, out: &mut dyn Write) -> Result<(), ExportError> {
        let mut palette = PaletteMap::default();
        let mut lines = Vec::new();
        let colour = |node: &TreeNode<'_>, frame: &str| {
            palette.insert(frame, colour_of(&node.function));
        };
        let metric = stacks(recording, options, options.min_share.unwrap_or(MIN_SHARE), colour, |stack, weight| {
            lines.push(format!("{stack} {weight}"));
            Ok(())
        })?;
        if lines.is_empty() {
            return Err(ExportError::Empty("nothing was recorded that a flame graph could show"));
        }
        let (unit, factor) = unit(metric);
        let mut drawing = Options::default();
        drawing.title = "clrscope".to_owned();
        drawing.subtitle = Some(subtitle(recording, metric));
        drawing.notes = "The width of a frame is its share of the total, callees included.".to_owned();
        drawing.count_name = unit.to_owned();
        drawing.factor = factor;
        drawing.name_type = "Function:".to_owned();
        drawing.deterministic = true;
        drawing.palette_map = Some(&mut palette);
        from_lines(&mut drawing, lines.iter().map(String::as_str), out)?;
        Ok(())
    }
}

/// Unit in which a metric's values are shown, and the conversion factor.
pub(crate) const fn unit(metric: &Metric) -> (&'static str, f64) {
    match metric.unit {
        Unit::Nanoseconds => ("\u{b5}s", 1e-3),
        Unit::Count | Unit::Bytes => (metric.title, 1.0),
    }
}

fn subtitle(recording: &Recording, metric: &Metric) -> String {
    format!("{}: {}", metric.title, command(recording))
}

fn colour_of(function: &FunctionRef<'_>) -> Color {
    let shade = (shade_of(function.module()) % 50) as u8;
    let [r, g, b] = match function.kind() {
        FunctionKind::Managed if function.module.framework => [100 + shade, 150 + shade, 220],
        FunctionKind::Managed => [110 + shade, 200 - shade / 2, 100 + shade / 2],
        FunctionKind::Native | FunctionKind::Stub => [230, 160 + shade, 80],
        FunctionKind::Kernel => [200, 90 + shade, 60],
        FunctionKind::Runtime => [225, 110 + shade / 2, 100 + shade / 2],
        FunctionKind::Type => [200 + shade / 2, 175 + shade / 2, 135 + shade / 2],
        FunctionKind::Suspended => [170 + shade / 2, 170 + shade / 2, 170 + shade / 2],
    };
    Color { r, g, b }
}

/// Shade of a name, equal on every machine.
fn shade_of(name: &str) -> u64 {
    fnv1a(EMPTY, name.as_bytes())
}
