//! `dot`: the call graph for Graphviz.
//!
//! Each function is a node with its shares of the metric. Each pair of caller and callee is an edge
//! with its number of calls, or, for metrics other than those of `calls`, with its part of the
//! metric. Functions and edges below half a per cent are left out, and the graph says how many.

use std::io::{self, Write};

use clrscope_analysis::{Amount, CallGraph, FunctionRow, GraphEdge, Times, WALL, call_graph, is_printable, one_line};
use clrscope_recording::model::{FunctionKind, Recording};

use crate::{ExportError, ExportOptions, Exporter};

const MIN_SHARE: f64 = 0.005;

/// The format `dot`; its module describes the output.
pub(crate) struct Dot;

impl Exporter for Dot {
    fn name(&self) -> &'static str {
        "dot"
    }

    fn description(&self) -> &'static str {
        "call graph for Graphviz, functions with shares, edges with calls"
    }

    fn extension(&self) -> &'static str {
        "dot"
    }

    fn takes_min_share(&self) -> bool {
        true
    }

    fn shows_native_code(&self) -> bool {
        true
    }

    fn write(&self, recording: &Recording, options: &ExportOptions, out: &mut dyn Write) -> Result<(), ExportError> {
        let graph = call_graph(recording, &options.query)?;
        let min_share = options.min_share.unwrap_or(MIN_SHARE);
        Drawing::new(&graph, min_share).write(recording, out)?;
        Ok(())
    }
}

/// A graph and the parts of it that are drawn.
struct Drawing<'g, 'a> {
    graph: &'g CallGraph<'a>,
    min_share: f64,
    drawn: Vec<bool>,
}

impl<'g, 'a> Drawing<'g, 'a> {
    fn new(graph: &'g CallGraph<'a>, min_share: f64) -> Self {
        let mut drawing = Self { graph, min_share, drawn: Vec::new() };
        drawing.drawn = graph.functions.iter().map(|f| drawing.is_large(&f.times, f.amount)).collect();
        drawing
    }

    fn is_large(&self, times: &Times, amount: Amount) -> bool {
        self.graph.conditions.size(times, amount) >= self.min_share
    }

    fn write(&self, recording: &Recording, out: &mut dyn Write) -> io::Result<()> {
        writeln!(out, "digraph calls {{")?;
        writeln!(out, "  label={};", quoted(&self.caption(recording)))?;
        writeln!(out, "  labelloc=b;")?;
        writeln!(out, "  node [shape=box, style=filled, fontname=\"sans-serif\"];")?;
        writeln!(out, "  edge [fontname=\"sans-serif\"];")?;
        self.write_nodes(out)?;
        for edge in self.graph.edges.iter().filter(|e| self.is_drawn(e)) {
            self.write_edge(out, edge)?;
        }
        writeln!(out, "}}")
    }

    fn is_drawn(&self, edge: &GraphEdge) -> bool {
        self.drawn[edge.caller] && self.drawn[edge.callee] && self.is_large(&edge.times, edge.amount)
    }

    fn caption(&self, recording: &Recording) -> String {
        let run = &recording.run.command;
        let command = if run.is_empty() { recording.processes.first().map(|p| &p.command) } else { Some(run) };
        let mut caption = command.map_or(String::new(), |c| one_line(c.join(" ")));
        let hidden = self.drawn.iter().filter(|drawn| !**drawn).count() + self.graph.left_out;
        let edges = self.graph.edges.iter().filter(|e| !self.is_drawn(e)).count();
        if hidden + edges > 0 {
            let percent = (self.min_share * 10_000.0).round() / 100.0;
            let metric = self.graph.conditions.metric.sizes();
            let what = if *metric == WALL { "time" } else { metric.title };
            caption += &format!("\nleft out below {percent} % of the {what} or past the limit: ");
            caption += &format!("functions {hidden}, edges {edges}");
        }
        caption
    }

    /// Nodes process by process, each in its own box if there are several.
    fn write_nodes(&self, out: &mut dyn Write) -> io::Result<()> {
        let processes = &self.graph.conditions.processes;
        for (number, process) in processes.iter().enumerate() {
            let several = processes.len() > 1;
            if several {
                let label = format!("{} {}", process.process.pid, one_line(process.process.command.join(" ")));
                writeln!(out, "  subgraph cluster_{number} {{\n  label={};", quoted(&label))?;
            }
            let drawn = self.graph.functions.iter().enumerate().filter(|(at, _)| self.drawn[*at]);
            for (at, function) in drawn.filter(|(_, f)| f.function.pid == process.process.pid) {
                self.write_node(out, at, function)?;
            }
            if several {
                writeln!(out, "  }}")?;
            }
        }
        Ok(())
    }

    fn write_node(&self, out: &mut dyn Write, at: usize, row: &FunctionRow<'_>) -> io::Result<()> {
        let conditions = &self.graph.conditions;
        let (own, all) = (conditions.share(row.amount.own), conditions.share(row.amount.total));
        let in_all = if conditions.metric.exclusive { String::new() } else { format!(", {:.1} % in all", all * 100.0) };
        let label = format!("{}\n{:.1} % own{in_all}", one_line(row.function.label()), own * 100.0);
        let hue = match row.function.kind() {
            FunctionKind::Managed => 0.33,
            FunctionKind::Native | FunctionKind::Stub => 0.1,
            FunctionKind::Kernel => 0.05,
            FunctionKind::Runtime | FunctionKind::Suspended | FunctionKind::Type => 0.0,
        };
        let (label, tooltip) = (quoted(&label), quoted(&one_line(row.function.signature())));
        let saturation = 0.1 + 0.7 * own.sqrt();
        writeln!(out, "  n{at} [label={label}, tooltip={tooltip}, fillcolor=\"{hue:.3} {saturation:.3} 0.950\"];")
    }

    fn write_edge(&self, out: &mut dyn Write, edge: &GraphEdge) -> io::Result<()> {
        let conditions = &self.graph.conditions;
        let width = 1.0 + 4.0 * conditions.share(edge.amount.total);
        let number = if conditions.metric.is_of_calls() { edge.times.calls } else { edge.amount.total };
        let (caller, callee) = (edge.caller, edge.callee);
        writeln!(out, "  n{caller} -> n{callee} [label=\"{number}\", penwidth={width:.2}];")
    }
}

/// A quoted string of the DOT language; line breaks become line breaks of the label.
fn quoted(text: &str) -> String {
    let mut out = String::from("\"");
    for c in text.chars() {
        match c {
            '"' => out.push_str("\\\""),
            '\\' => out.push_str("\\\\"),
            '\n' => out.push_str("\\n"),
            c if !is_printable(c) => out.push(' '),
            c => out.push(c),
        }
    }
    out.push('"');
    out
}
