//! Text lists with aligned columns, for output that is not a report.

/// Side to which the cells of a column are aligned.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Side {
    Left,
    Right,
}

/// Returns lines of aligned cells, each with a line break, of at most `width` characters.
pub(crate) fn aligned<const N: usize>(lines: &[[String; N]], sides: [Side; N], width: usize) -> String {
    let widest = |column: usize| lines.iter().map(|line| line[column].chars().count()).max().unwrap_or(0);
    let widths: [usize; N] = std::array::from_fn(widest);
    let cell = |line: &[String; N], at: usize| match sides[at] {
        Side::Left => format!("{:<1$}", line[at], widths[at]),
        Side::Right => format!("{:>1$}", line[at], widths[at]),
    };
    let mut text = String::new();
    for line in lines {
        let cells: Vec<String> = (0..N).map(|at| cell(line, at)).collect();
        text.extend(cells.join("  ").trim_end().chars().take(width));
        text.push('\n');
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_are_as_wide_as_their_widest_cell_and_lines_are_cut() {
        let lines = [["1", "a", "x y"], ["22", "bbb", ""]].map(|line| line.map(str::to_owned));
        let sides = [Side::Right, Side::Left, Side::Left];
        assert_eq!(aligned(&lines, sides, 80), " 1  a    x y\n22  bbb\n");
        assert_eq!(aligned(&lines, sides, 5), " 1  a\n22  b\n");
    }
}
