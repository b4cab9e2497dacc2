//! Flame graphs as text: a line for each depth, the outermost functions on top, frames as wide as
//! their share of the whole.

use anstyle::{Ansi256Color, AnsiColor, Color, Style as Ansi};

use super::names::{columns, shortened_function};
use super::styled;
use super::units::share;
use crate::cell::Cell;
use crate::render::{Entry, Section};

/// Width in columns of a picture, if the width is not limited.
const WIDTH: usize = 100;
/// Frames narrower than this are folded, because they would consist of their edges only.
const LEAST: usize = 2;
/// Minimum columns of a label for the share to follow it.
const LEAST_WITH_SHARE: usize = 24;

/// Colours by kind of code, as numbers of the 256 terminal colours. They are the colours of the
/// page for browsers, which people can distinguish without seeing red and green.
const COLOURS: [(&[&str], &str, u8); 10] = [
    (&["own"], "own code", 214),
    (&["framework"], "framework", 117),
    (&["jit", "type_loading", "runtime", "exceptions", "suspension"], "runtime, compiler", 79),
    (&["gc"], "garbage collection", 173),
    (&["native"], "native", 182),
    (&["kernel"], "kernel", 251),
    (&["waiting"], "waiting", 228),
    (&["type"], "allocated type", 180),
    // Time of awaits, in which no thread ran, whatever the code.
    (&[AWAITED], "awaited", 147),
    (&["profiler", "unknown"], "unknown", 254),
];

/// Used in place of the kind of code for awaited time, in which no thread ran or was blocked.
const AWAITED: &str = "awaited";

/// A frame of a flame graph.
#[derive(Debug, Clone)]
pub(super) struct Frame {
    /// Depth of the frame; 0 for the outermost.
    pub(super) depth: u32,
    /// Amount of the metric, including callees.
    pub(super) total: u64,
    /// Name of the function.
    pub(super) label: String,
    /// Kind of code.
    pub(super) code: String,
}

impl Frame {
    /// Returns the frame of a node. The section must have the text columns total, name and kind of
    /// code.
    pub(super) fn from_entry(section: &Section, entry: &dyn Entry) -> Self {
        let mut cells = section.text.iter().map(|shown| entry.cell(shown.column));
        let total = cells.next().map_or(0, |cell| amount(&cell));
        let label = match cells.next() {
            Some(Cell::Function(named)) => format!("{}{}{}", named.before, named.name, named.after),
            _ => String::new(),
        };
        let is_awaited =
            section.text.first().is_some_and(|total| section.columns[total.column].key == "total_awaited_ns");
        let code = match cells.next() {
            Some(_) if is_awaited => AWAITED.to_owned(),
            Some(Cell::Text(code)) => code.into_owned(),
            _ => String::new(),
        };
        Self { depth: entry.depth(), total, label, code }
    }
}

fn amount(cell: &Cell<'_>) -> u64 {
    match cell {
        Cell::Time(amount) | Cell::Count(amount) | Cell::Bytes(amount) => *amount,
        Cell::Said(cell, _) => amount(cell),
        _ => 0,
    }
}

/// Adds the own amounts of all frames below to the amount of each frame.
pub(super) fn add_up(frames: &mut [Frame]) {
    // Sums of the children of the frames that come next, by their depths.
    let mut below: Vec<u64> = Vec::new();
    for frame in frames.iter_mut().rev() {
        let depth = frame.depth as usize;
        let children = below.get(depth + 1).copied().unwrap_or(0);
        frame.total = frame.total.saturating_add(children);
        below.resize(depth + 1, 0);
        below[depth] = below[depth].saturating_add(frame.total);
    }
}

/// A drawn flame graph.
#[derive(Debug, Default)]
pub(super) struct Picture {
    /// Lines, each with a line break, and a legend if there are colours.
    pub(super) text: String,
    /// Number of frames that were too narrow to be drawn.
    pub(super) folded: usize,
}

/// A part of a line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Part {
    from: usize,
    to: usize,
    /// Index of the frame in the list; `None` for a group of frames that are too narrow.
    frame: Option<usize>,
}

/// Characters for the edges of frames, and the mark of frames that are too narrow.
struct Signs {
    left: char,
    right: char,
    folded: char,
}

const ASCII: Signs = Signs { left: '[', right: ']', folded: '.' };
const BOXES: Signs = Signs { left: '\u{258f}', right: '\u{2595}', folded: '\u{00b7}' };

/// Draws frames, given in preorder, in `width` columns: with box characters and colours for a
/// terminal, in ASCII for other outputs.
pub(super) fn draw(frames: &[Frame], width: usize, on_terminal: bool) -> Picture {
    let width = if width == super::UNLIMITED { WIDTH } else { width };
    let (lines, folded) = laid_out(frames, width);
    let whole = whole(frames);
    let mut text = String::new();
    for line in &lines {
        let mut at = 0;
        for part in line {
            text.extend(std::iter::repeat_n(' ', part.from - at));
            at = part.to;
            let signs = if on_terminal { &BOXES } else { &ASCII };
            match part.frame {
                Some(frame) => text.push_str(&boxed(&frames[frame], whole, part.to - part.from, signs, on_terminal)),
                None => text.extend(std::iter::repeat_n(signs.folded, part.to - part.from)),
            }
        }
        text.truncate(text.trim_end_matches(' ').len());
        text.push('\n');
    }
    if on_terminal {
        text.push_str(&legend(frames));
    }
    Picture { text, folded }
}

fn whole(frames: &[Frame]) -> u64 {
    let outermost = frames.iter().filter(|frame| frame.depth == 0);
    outermost.fold(0_u64, |sum, frame| sum.saturating_add(frame.total))
}

/// The parts of each line, and the number of frames that are in no line.
fn laid_out(frames: &[Frame], width: usize) -> (Vec<Vec<Part>>, usize) {
    let whole = whole(frames).max(1);
    let column = |amount: u64| (u128::from(amount) * width as u128 / u128::from(whole)) as usize;
    let mut lines: Vec<Vec<Part>> = Vec::new();
    // Of the frames on the path where the next child begins, and where they end.
    let mut path: Vec<(u64, u64)> = vec![(0, whole)];
    let (mut folded, mut hidden_from) = (0, u32::MAX);
    for (number, frame) in frames.iter().enumerate() {
        let depth = frame.depth as usize;
        path.truncate(depth + 1);
        let Some((next, end)) = path.last_mut() else { continue };
        let start = *next;
        let stop = start.saturating_add(frame.total).min(*end);
        *next = stop;
        path.push((start, stop));
        if frame.depth > hidden_from {
            folded += 1;
            continue;
        }
        hidden_from = u32::MAX;
        let (from, to) = (column(start), column(stop));
        let is_folded = to - from < LEAST;
        if is_folded {
            folded += 1;
            hidden_from = frame.depth;
        }
        if to == from {
            continue;
        }
        if lines.len() <= depth {
            lines.resize_with(depth + 1, Vec::new);
        }
        let line = &mut lines[depth];
        match line.last_mut() {
            Some(before) if is_folded && before.frame.is_none() && before.to == from => before.to = to,
            _ => line.push(Part { from, to, frame: (!is_folded).then_some(number) }),
        }
    }
    (lines, folded)
}

fn boxed(frame: &Frame, whole: u64, width: usize, signs: &Signs, on_terminal: bool) -> String {
    let room = width.saturating_sub(2);
    let part = share(frame.total as f64 / whole.max(1) as f64);
    let mut label = shortened_function(&frame.label, room);
    if !on_terminal && !label.is_ascii() {
        label = label.chars().map(|c| if c.is_ascii() { c } else { '?' }).collect();
    }
    if room >= LEAST_WITH_SHARE && columns(&label) + 1 + part.len() <= room {
        label = format!("{label} {part}");
    }
    let blank = " ".repeat(room.saturating_sub(columns(&label)));
    let text = format!("{}{label}{blank}{}", signs.left, signs.right);
    if on_terminal { styled(style_of(&frame.code), &text) } else { text }
}

fn style_of(code: &str) -> Ansi {
    let found = COLOURS.iter().find(|(codes, ..)| codes.contains(&code)).or(COLOURS.last());
    let colour = found.map_or(254, |(.., colour)| *colour);
    Ansi::new().bg_color(Some(Color::Ansi256(Ansi256Color(colour)))).fg_color(Some(Color::Ansi(AnsiColor::Black)))
}

/// The colours of the frames, each with its meaning.
fn legend(frames: &[Frame]) -> String {
    let is_met = |codes: &[&str]| frames.iter().any(|frame| codes.contains(&frame.code.as_str()));
    let met = COLOURS.iter().filter(|(codes, ..)| is_met(codes));
    let each: Vec<String> = met.map(|(codes, name, _)| styled(style_of(codes[0]), &format!(" {name} "))).collect();
    if each.is_empty() { String::new() } else { format!("{}\n", each.join(" ")) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn frames(lines: &[(u32, u64, &str)]) -> Vec<Frame> {
        let frame = |&(depth, total, label): &(u32, u64, &str)| Frame {
            depth,
            total,
            label: label.to_owned(),
            code: if label.starts_with("App") { "own" } else { "framework" }.to_owned(),
        };
        lines.iter().map(frame).collect()
    }

    fn shop() -> Vec<Frame> {
        frames(&[
            (0, 100, "App::Main"),
            (1, 60, "App.Cart::Total"),
            (2, 30, "System.String::Concat"),
            (2, 1, "App::Tiny"),
            (3, 1, "App::Tinier"),
            (2, 1, "App::Tiny2"),
            (1, 25, "App.Mail::Send"),
        ])
    }

    #[test]
    fn frames_are_as_wide_as_their_part_of_the_whole() {
        let picture = draw(&shop(), 50, false);
        let expected = "\
[App::Main 100.0 %                               ]
[App.Cart::Total 60.0 %      ][...::Send ]
[...::Concat  ].
";
        assert_eq!((picture.text.as_str(), picture.folded), (expected, 3));
    }

    #[test]
    fn amounts_of_frames_alone_are_added_up() {
        let mut calls = frames(&[(0, 1, "Main"), (1, 10, "A"), (2, 5, "B"), (2, 3, "C"), (1, 2, "B"), (0, 4, "D")]);
        add_up(&mut calls);
        let totals: Vec<u64> = calls.iter().map(|frame| frame.total).collect();
        assert_eq!(totals, [21, 18, 5, 3, 2, 4]);
    }

    #[test]
    fn pipes_get_ascii_and_terminals_boxes_in_colours_that_are_explained() {
        let mut all = shop();
        all[1].label = "App.Caf\u{e9}::\u{540d}".to_owned();
        assert!(draw(&all, super::super::UNLIMITED, false).text.is_ascii());
        let shown = draw(&all, 50, true).text;
        assert!(shown.contains("\u{258f}App.Caf\u{e9}::\u{540d}") && shown.contains("48;5;214m"), "{shown:?}");
        assert!(shown.contains(" own code ") && shown.contains(" framework ") && !shown.contains(" kernel "));
    }

    #[test]
    fn what_a_recording_claims_does_not_leave_the_picture() {
        let odd = frames(&[(0, u64::MAX, "A"), (1, u64::MAX, "B"), (1, 5, "C"), (0, u64::MAX, "D"), (7, 3, "E")]);
        for width in [1, 2, 40, 200] {
            let picture = draw(&odd, width, false);
            assert!(picture.text.lines().all(|line| columns(line) <= width), "{width}: {}", picture.text);
        }
        assert_eq!(draw(&[], 80, true).text, "");
        assert_eq!(draw(&frames(&[(0, 0, "A")]), 80, false).text, "");
    }
}
