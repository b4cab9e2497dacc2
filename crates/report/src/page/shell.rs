//! The page without its data: head, script and style, and their content security policy.

use std::io::{self, Write};

use serde_json::Value;

use crate::render::page::escaped;

/// Script of the page.
pub(super) const SCRIPT: &str = include_str!("built/page.js");
/// Style of the page.
pub(super) const STYLE: &str = include_str!("built/page.css");
/// Hashes of script and style, and of the sources from which they were built.
pub(super) const SEAL: &str = include_str!("built/seal.json");

/// Content security policy of a page. `connect` says to which hosts the page may connect: `'none'`
/// or `'self'`.
pub(super) fn policy(connect: &str) -> String {
    let seal: Value = serde_json::from_str(SEAL).unwrap_or_default();
    let hash = |of: &str| seal[of].as_str().unwrap_or_default().to_owned();
    let (script, style) = (hash("script"), hash("style"));
    let connect = if connect == "'none'" { String::new() } else { format!("connect-src {connect}; ") };
    format!(
        "default-src 'none'; script-src '{script}'; style-src '{style}'; {connect}base-uri 'none'; form-action 'none'"
    )
}

/// Writes a page: its title, the content before its script runs, and the attributes and text of its
/// data.
pub(super) fn write(
    out: &mut dyn Write,
    policy: &str,
    title: &str,
    plain: &str,
    attributes: &str,
    data: &str,
) -> io::Result<()> {
    writeln!(out, "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">")?;
    writeln!(out, "<meta http-equiv=\"Content-Security-Policy\" content=\"{policy}\">")?;
    writeln!(out, "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">")?;
    writeln!(out, "<meta name=\"referrer\" content=\"no-referrer\">")?;
    writeln!(out, "<title>{} - clrscope</title>\n<style>{STYLE}</style>\n</head>\n<body>", escaped(title))?;
    writeln!(out, "<div id=\"page\"><main class=\"plain\">\n{plain}</main></div>")?;
    writeln!(out, "<script type=\"application/octet-stream\" id=\"data\"{attributes}>{data}</script>")?;
    writeln!(out, "<script>{SCRIPT}</script>\n</body>\n</html>")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_program_holds_nothing_that_would_end_its_element() {
        for part in [SCRIPT, STYLE] {
            let lower = part.to_lowercase();
            assert!(!lower.contains("</script") && !lower.contains("<!--") && !lower.contains("</style"));
        }
    }
}
