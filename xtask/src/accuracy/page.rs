//! Results, on the terminal and in `docs/accuracy.md`. Each part has its own section, so that parts
//! can be measured one at a time.

use std::fmt::{Arguments, Write as _};
use std::path::PathBuf;

use clrscope_testkit::workspace_root;

use crate::machine;

/// The lines of the part that is being measured.
#[derive(Default)]
pub(super) struct Page(String);

impl Page {
    /// Prints a line and keeps it.
    #[expect(clippy::print_stdout, reason = "a command line tool")]
    pub(super) fn line(&mut self, text: Arguments<'_>) {
        println!("{text}");
        let _ = writeln!(self.0, "{text}");
    }

    /// Prints a text about the progress on the terminal only: a run takes seconds, or minutes on a
    /// busy machine.
    #[expect(clippy::print_stderr, reason = "a command line tool")]
    pub(super) fn progress(text: Arguments<'_>) {
        eprintln!("{text}");
    }

    /// Begins another part: forgets the lines of the previous one.
    pub(super) fn begin(&mut self) {
        self.0.clear();
    }

    /// Writes `about` and the lines into the file, as the section below `heading`. All other
    /// sections stay as they are.
    pub(super) fn write(&self, sections: &[&str], heading: &str, about: &str) -> Result<(), String> {
        let path = path();
        let before = std::fs::read_to_string(&path).unwrap_or_default();
        let lines = self.0.trim_start_matches('\n');
        let conditions = format!("{};\nprograms that wanted a core: {:.1}.", machine::describe(), machine::load());
        let section = format!("{about}\n\n{conditions}\n\n```text\n{lines}```\n");
        let text = with_section(&before, sections, heading, &section);
        std::fs::write(&path, text).map_err(|error| format!("{}: {error}", path.display()))
    }
}

fn path() -> PathBuf {
    workspace_root().join("docs/accuracy.md")
}

/// The page `before` with this text as the section below `heading`.
fn with_section(before: &str, sections: &[&str], heading: &str, text: &str) -> String {
    let mut page = "# Accuracy

How accurate the times are. `cargo xtask accuracy` writes this page, one section for each part
(`--only`), and notes the machine and its other load during the measurement; do not edit.
"
    .to_owned();
    for other in sections {
        let kept = section(before, sections, other).unwrap_or_default();
        let text = if *other == heading { text } else { kept };
        if !text.is_empty() {
            let _ = write!(page, "{}\n{}\n", line_of(other), text.trim());
        }
    }
    page
}

/// Text of the section below `heading`.
fn section<'page>(page: &'page str, sections: &[&str], heading: &str) -> Option<&'page str> {
    let (_, from) = page.split_once(&line_of(heading))?;
    let end = sections.iter().filter_map(|other| from.find(&line_of(other))).min();
    Some(&from[..end.unwrap_or(from.len())])
}

fn line_of(heading: &str) -> String {
    format!("\n## {heading}\n")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::accuracy::parts::headings;

    /// A run of one part alone could not be written down, and a run of the whole was needed for any
    /// of it.
    #[test]
    fn a_part_that_is_measured_alone_leaves_the_others_on_the_page() {
        let sections = ["One", "Two", "Three"];
        let set = |page: &str, heading, text| with_section(page, &sections, heading, text);
        let page = set("", "Three", "slept\n");
        let page = set(&page, "One", "first\n\n```text\n## no heading of ours\n```\n");
        assert_eq!(section(&page, &sections, "Two"), None);
        let page = set(&page, "Two", "bytes\n");
        assert_eq!(section(&page, &sections, "Three").map(str::trim), Some("slept"));
        let again = set(&page, "Two", "other bytes\n");
        assert_eq!(section(&again, &sections, "Two").map(str::trim), Some("other bytes"));
        assert_eq!(again.replace("other bytes", "bytes"), page, "nothing else changes, however often");
        assert!(sections.map(|heading| again.find(heading)).is_sorted(), "{again}");
    }

    #[test]
    fn the_page_as_it_is_has_sections_and_nothing_else() {
        let page = std::fs::read_to_string(path()).expect("docs/accuracy.md");
        let all = headings();
        let there = all.iter().find_map(|heading| Some((heading, section(&page, &all, heading)?)));
        let (heading, text) = there.expect("a section");
        assert_eq!(with_section(&page, &all, heading, text), page, "what is on it stays when a part is measured again");
    }
}
