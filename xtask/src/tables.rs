//! Tables in Markdown.

pub(crate) fn section(heading: &str, about: &str, head: &[&str], rows: impl Iterator<Item = Vec<String>>) -> String {
    let line = |cells: Vec<String>| format!("| {} |\n", cells.join(" | "));
    let rows: String = rows.map(|row| line(row.iter().map(|cell| cell.replace('|', "\\|")).collect())).collect();
    if rows.is_empty() {
        return format!("{heading}\n\nNo options.\n");
    }
    let about = if about.is_empty() { String::new() } else { format!("{about}\n") };
    let head = line(head.iter().map(|cell| (*cell).to_owned()).collect()) + "|" + &"---|".repeat(head.len());
    format!("{heading}\n\n{about}{head}\n{rows}")
}

/// Breaks a paragraph into lines of at most 100 characters.
pub(crate) fn wrapped(text: &str) -> String {
    let mut lines = vec![String::new()];
    for word in text.split(' ') {
        let line = lines.last_mut().expect("there is one");
        if line.is_empty() {
            line.push_str(word);
        } else if line.chars().count() + 1 + word.chars().count() <= 100 {
            line.push(' ');
            line.push_str(word);
        } else {
            lines.push(word.to_owned());
        }
    }
    lines.join("\n")
}

pub(crate) fn code(text: &str) -> String {
    format!("`{text}`")
}

pub(crate) fn codes(words: impl IntoIterator<Item = impl AsRef<str>>) -> String {
    words.into_iter().map(|word| code(word.as_ref())).collect::<Vec<_>>().join(", ")
}
