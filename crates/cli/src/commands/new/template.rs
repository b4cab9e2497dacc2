//! The new crate's files: the files of an example, with other names.

use super::name::CrateName;

/// A profiler to start from: an example of the repository.
#[derive(Debug)]
pub(crate) struct Template {
    /// Name on the command line.
    pub(crate) name: &'static str,
    /// Purpose of the new profiler, for help.
    pub(crate) about: &'static str,
    /// Name of the example.
    package: &'static str,
    library: &'static str,
    tests: &'static str,
    readme: &'static str,
    /// The example's own class.
    class_id: &'static str,
    /// Program that the README's commands run.
    program: &'static str,
}

/// Reads the files of an example.
macro_rules! template {
    ($name:literal from $package:literal, $class_id:literal, $program:literal: $about:literal) => {
        Template {
            name: $name,
            about: $about,
            package: $package,
            library: include_str!(concat!("../../../../../examples/", $package, "/src/lib.rs")),
            tests: include_str!(concat!("../../../../../examples/", $package, "/src/tests.rs")),
            readme: include_str!(concat!("../../../../../examples/", $package, "/README.md")),
            class_id: $class_id,
            program: $program,
        }
    };
}

/// The first is the default.
pub(crate) static TEMPLATES: [Template; 4] = [
    template! { "counter" from "template", "{6F0E8E6B-2C8E-4B6B-9A55-5D1E3B1F7C01}", "Recursion.dll":
    "counts the calls of each function" },
    template! { "allocations" from "allocations", "{4B7D2E91-6C1F-4A58-9E37-2D0A8C5F1B66}", "Amounts.dll allocate":
    "sums objects and bytes by class" },
    template! { "exceptions" from "exceptions", "{0C8B5F0A-5B8B-4C57-9E0B-5C6E4C0B8A21}", "Exceptions.dll":
    "reports each exception with its stack, filters and catcher" },
    template! { "sampler" from "sampler", "{9A36C0D4-57E8-4F1B-8B02-61D7E94A3C5D}", "Amounts.dll compute 3000":
    "samples the stacks of all threads a hundred times a second" },
];

impl Template {
    /// The template of this name.
    pub(crate) fn named(name: &str) -> Option<&'static Self> {
        TEMPLATES.iter().find(|template| template.name == name)
    }
}

/// Format options of the sources, so that `cargo fmt` changes nothing.
const LAYOUT: &str = include_str!("../../../../../rustfmt.toml");
/// Marks around the part of the README that concerns the repository alone.
const LEFT_OUT: (&str, &str) = ("<!-- only in the repository -->\n", "<!-- end -->\n");

/// Paths of the files in the crate's folder, each with its contents. `framework` has the
/// dependencies of library and tests; `apart` keeps the crate out of an enclosing workspace.
pub(super) fn files(
    template: &Template,
    name: &CrateName,
    class_id: &str,
    framework: &[(&str, String); 2],
    apart: bool,
) -> [(&'static str, String); 6] {
    let (code, package) = (name.in_code(), template.package);
    let theirs = format!("{}_PROFILER_OUTPUT", package.to_uppercase());
    let variable = format!("{}_OUTPUT", code.to_uppercase());
    let renamed = |text: &str| text.replace(template.class_id, class_id).replace(&theirs, &variable);
    let readme = renamed(&without_the_repository(template.readme))
        .replace(&format!("# {package}:"), &format!("# {}:", name.as_str()))
        .replace(&format!(" -p {package}\n"), "\n")
        .replace(&format!("lib{package}.so"), &format!("lib{code}.so"))
        .replace(&format!("dotnet/fixtures/bin/{}", template.program), "YOUR.dll")
        .replace("; for `clrscope` see the end", "")
        .replace("; `clrscope` comes by `cargo install --path crates/cli`", "");
    [
        ("Cargo.toml", manifest(name, framework, apart)),
        ("README.md", readme),
        ("rustfmt.toml", LAYOUT.to_owned()),
        (".gitignore", "/target\n".to_owned()),
        ("src/lib.rs", renamed(template.library)),
        ("src/tests.rs", renamed(template.tests)),
    ]
}

/// The crate's `Cargo.toml`. A dependency has a version, a path or both.
fn manifest(name: &CrateName, framework: &[(&str, String); 2], apart: bool) -> String {
    let [(library, for_library), (tests, for_tests)] = framework;
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
{library} = {{ {for_library} }}

[dev-dependencies]
{tests} = {{ {for_tests} }}
",
        name.as_str(),
        env!("CARGO_PKG_RUST_VERSION"),
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
    fn nothing_of_an_example_is_left() {
        let name = CrateName::parse("shop-watch").expect("a name");
        let class_id = "{00000000-0000-4000-8000-000000000000}";
        let framework =
            ["clr-profiler", "clr-profiler-fake"].map(|package| (package, "version = \"0.1.0\"".to_owned()));
        for template in &TEMPLATES {
            let files = files(template, &name, class_id, &framework, false);
            let (package, class) = (template.package, template.class_id[1..9].to_lowercase());
            let words = [class, format!("lib{package}"), format!("-p {package}"), format!("{package}_profiler_output")];
            for (path, text) in &files {
                let lower = text.to_lowercase();
                for word in ["template", "fixtures", "<!--", "repository", "crates/cli"]
                    .into_iter()
                    .chain(words.iter().map(String::as_str))
                {
                    assert!(!lower.contains(word), "{}: {path} has {word}:\n{text}", template.name);
                }
            }
            assert_eq!(files[4].1.matches(class_id).count(), 1, "{}", template.name);
            let readme = &files[1].1;
            assert!(readme.contains("SHOP_WATCH_OUTPUT=") && readme.contains("libshop_watch.so"), "{readme}");
            assert!(readme.starts_with("# shop-watch: ") && readme.contains("-- YOUR.dll\n"), "{readme}");
        }
    }
}
