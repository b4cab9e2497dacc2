//! Tests of the comments in Rust code: their width, and words that readers had to read twice.

use std::fs;

use clrscope_testkit::workspace_root;

use crate::documents::files;

/// The greatest width of a line with a comment alone, in characters.
const WIDTH: usize = 100;
/// Words with which sentences tend to be riddles.
const RIDDLES: [&str; 7] = ["anew", "beside", "whoever", "nobody", "somebody", "as one that", "of which"];
/// Comment lines for each one that may have such a word.
const LINES_FOR_ONE: usize = 1_000;

/// A line of Rust code that is a comment alone.
struct Comment {
    /// File and line.
    place: String,
    line: String,
}

impl Comment {
    fn text(&self) -> &str {
        self.line.trim_start().trim_start_matches('/').trim_start_matches('!').trim()
    }

    /// Rows of tables can't be broken, nor can links.
    fn can_be_broken(&self) -> bool {
        !self.text().starts_with('|') && self.text().contains(' ')
    }

    fn is_riddle(&self) -> bool {
        let text = format!(" {} ", self.text().to_lowercase());
        let words = text.replace(|c: char| !c.is_alphanumeric(), " ");
        RIDDLES.iter().any(|riddle| words.contains(&format!(" {riddle} ")))
    }
}

fn comments() -> Vec<Comment> {
    let sources = files().into_iter().filter(|path| path.ends_with(".rs"));
    sources
        .flat_map(|path| {
            let text = fs::read_to_string(workspace_root().join(&path)).expect("a source");
            let is_comment = |line: &str| line.trim_start().starts_with("//");
            let comment =
                |(at, line): (usize, &str)| Comment { place: format!("{path}:{}", at + 1), line: line.to_owned() };
            let lines = text.lines().enumerate().filter(|(_, line)| is_comment(line)).map(comment);
            outside_of_examples(lines)
        })
        .collect()
}

/// Comments without the code that they show.
fn outside_of_examples(lines: impl Iterator<Item = Comment>) -> Vec<Comment> {
    let mut in_example = false;
    lines
        .filter(|comment| {
            let is_fence = comment.text().starts_with("```");
            in_example ^= is_fence;
            !in_example && !is_fence
        })
        .collect()
}

#[test]
fn comments_are_at_most_100_wide() {
    let comments = comments();
    let is_wide = |comment: &&Comment| comment.line.chars().count() > WIDTH && comment.can_be_broken();
    let wide: Vec<&str> = comments.iter().filter(is_wide).map(|comment| comment.place.as_str()).collect();
    assert_eq!(wide, Vec::<&str>::new(), "comments wider than {WIDTH} characters");
}

#[test]
fn comments_are_no_riddles() {
    let comments = comments();
    let riddles: Vec<&str> = comments.iter().filter(|one| one.is_riddle()).map(|one| one.place.as_str()).collect();
    let most = comments.len() / LINES_FOR_ONE;
    assert!(riddles.len() <= most, "{} of {} lines, {most} at most: {riddles:?}", riddles.len(), comments.len());
}
