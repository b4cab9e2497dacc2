//! The new crate's files: those of `examples/template`, with other names.

use super::framework::Framework;
use super::name::CrateName;

const LIBRARY: &str = include_str!("../../../../../examples/template/src/lib.rs");
const TESTS: &str = include_str!("../../../../../examples/template/src/tests.rs");
const README: &str = include_str!("../../../../../examples/template/README.md");
/// How the sources are laid out: `cargo fmt` leaves them as they are.
const LAYOUT: &str = include_str!("../../../../../rustfmt.toml");
/// The template's own class.
const CLASS_ID: &str = "{6F0E8E6B-2C8E-4B6B-9A55-5D1E3B1F7C01}";
/// What in the README concerns the repository alone.
const LEFT_OUT: (&str, &str) = ("<!-- only in the repository -->\n", "<!-- end -->\n");

/// Paths in the crate's folder, and what is in them. `apart` keeps the crate out of a workspace around it.
pub(super) fn files(
    name: &CrateName,
    class_id: &str,
    framework: &Framework,
    apart: bool,
) -> [(&'static str, String); 6] {
    let code = name.in_code();
    let variable = format!("{}_OUTPUT", code.to_uppercase());
    let renamed = |text: &str| text.replace(CLASS_ID, class_id).replace("TEMPLATE_PROFILER_OUTPUT", &variable);
    let readme = renamed(&without_the_repository(README))
        .replace("# template:", &format!("# {}:", name.as_str()))
        .replace(" -p template", "")
        .replace("libtemplate.so", &format!("lib{code}.so"))
        .replace("dotnet/fixtures/bin/Recursion.dll", "YOUR.dll")
        .replace("; for `clrscope` see the end", "");
    [
        ("Cargo.toml", manifest(name, framework, apart)),
        ("README.md", readme),
        ("rustfmt.toml", LAYOUT.to_owned()),
        (".gitignore", "/target\n".to_owned()),
        ("src/lib.rs", renamed(LIBRARY)),
        ("src/tests.rs", renamed(TESTS)),
    ]
}

fn manifest(name: &CrateName, framework: &Framework, apart: bool) -> String {
    let mut text = format!(
        "[package]
name = \"{}\"
description = \"A profiler for .NET programs\"
version = \"0.1.0\"
edition = \"2024\"
rust-version = \"{}\"
publish = false

[lib]
crate-type = [\"cdylib\"]

[dependencies]
clr-profiler = {}

[dev-dependencies]
clr-profiler = {}
",
        name.as_str(),
        env!("CARGO_PKG_RUST_VERSION"),
        framework.dependency(""),
        framework.dependency(", features = [\"testing\"]"),
    );
    if apart {
        text.push_str("\n# Not a member of the workspace around it.\n[workspace]\n");
    }
    text
}

fn without_the_repository(text: &str) -> String {
    let mut parts = text.split(LEFT_OUT.0);
    let first = parts.next().unwrap_or_default().to_owned();
    parts.fold(first, |text, part| text + part.split_once(LEFT_OUT.1).map_or(part, |(_, rest)| rest))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_of_the_template_is_left() {
        let name = CrateName::parse("shop-watch").expect("a name");
        let framework = Framework::Version("0.1.0".to_owned());
        let class_id = "{00000000-0000-4000-8000-000000000000}";
        let files = files(&name, class_id, &framework, false);
        for (path, text) in &files {
            let lower = text.to_lowercase();
            for word in ["template", "6f0e8e6b", "fixtures", "<!--", "repository", "-p template"] {
                assert!(!lower.contains(word), "{path} has {word}:\n{text}");
            }
        }
        assert_eq!(files[4].1.matches(class_id).count(), 1);
        assert!(
            files[1].1.contains("SHOP_WATCH_OUTPUT=calls.txt") && files[1].1.contains("libshop_watch.so"),
            "{}",
            files[1].1
        );
    }
}
