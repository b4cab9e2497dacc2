//! The `dotnet tool` package: the tool, and a small .NET program that replaces itself with the
//! tool.
//!
//! The package is written here and not by the SDK, because the SDK's packages contain the time of
//! the build.

use std::fs;

use clrscope_testkit::compile::compile_program;
use clrscope_testkit::{Sdk, scratch, workspace_root};

use super::binaries::{Binaries, Platform};
use super::entries::{Entry, zip};
use super::tarball::NOTICES;
use super::{VERSION, read};

/// The folder of a tool for every system within a package; .NET 8 is the oldest that is recorded.
const TOOL: &str = "tools/net8.0/any";

/// Types of files in the package, which the format wants named (Open Packaging Conventions).
const CONTENT_TYPES: &str = r#"<?xml version="1.0" encoding="utf-8"?>
<Types xmlns="http://schemas.openxmlformats.org/package/2006/content-types">
  <Default Extension="rels" ContentType="application/vnd.openxmlformats-package.relationships+xml" />
  <Default Extension="nuspec" ContentType="application/octet" />
  <Default Extension="dll" ContentType="application/octet" />
  <Default Extension="json" ContentType="application/octet" />
  <Default Extension="xml" ContentType="application/octet" />
  <Default Extension="md" ContentType="application/octet" />
  <Default Extension="txt" ContentType="application/octet" />
  PARTS
</Types>
"#;
/// Where the package is described.
const RELATIONS: &str = r#"<?xml version="1.0" encoding="utf-8"?>
<Relationships xmlns="http://schemas.openxmlformats.org/package/2006/relationships">
  <Relationship Type="http://schemas.microsoft.com/packaging/2010/07/manifest" Target="/clrscope.nuspec" Id="R1" />
</Relationships>
"#;
/// Name of the command and the program behind it.
const SETTINGS: &str = r#"<?xml version="1.0" encoding="utf-8"?>
<DotNetCliTool Version="1">
  <Commands>
    <Command Name="clrscope" EntryPoint="clrscope.dll" Runner="dotnet" />
  </Commands>
</DotNetCliTool>
"#;

/// Returns the file name and the bytes of the package.
pub(super) fn make(binaries: &Binaries) -> Result<(String, Vec<u8>), String> {
    let mut entries = vec![
        Entry::file("_rels/.rels", RELATIONS),
        Entry::file("clrscope.nuspec", description()),
        Entry::file("README.md", read("packaging/dotnet-tool/README.md")?),
    ];
    for file in NOTICES {
        entries.push(Entry::file(file, read(file)?));
    }
    let place = scratch();
    let sdk = Sdk::find().ok_or("there is no .NET SDK to compile the command of the `dotnet tool` package with")?;
    let program = place.path().join("clrscope.dll");
    compile_program(&sdk, &workspace_root().join("packaging/dotnet-tool/Shim.cs"), &program)?;
    for file in ["clrscope.dll", "clrscope.runtimeconfig.json"] {
        let bytes = fs::read(place.path().join(file)).map_err(|error| format!("{file}: {error}"))?;
        entries.push(Entry::file(format!("{TOOL}/{file}"), bytes));
    }
    entries.push(Entry::file(format!("{TOOL}/DotnetToolSettings.xml"), SETTINGS));
    for (folder, platform) in [("linux-x64", Platform::Gnu), ("linux-musl-x64", Platform::Musl)] {
        let tool = binaries.of(platform).tool.clone();
        entries.push(Entry::program(format!("{TOOL}/{folder}/clrscope"), tool));
    }
    entries.insert(0, Entry::file("[Content_Types].xml", content_types(&entries)));
    Ok((format!("clrscope.{VERSION}.nupkg"), zip(&entries)?))
}

/// [`CONTENT_TYPES`], with the files that have no ending.
fn content_types(entries: &[Entry]) -> String {
    let has_ending = |path: &str| path.rsplit('/').next().is_some_and(|name| name.contains('.'));
    let part = |entry: &Entry| format!(r#"<Override PartName="/{}" ContentType="application/octet" />"#, entry.path);
    let parts: Vec<String> = entries.iter().filter(|entry| !has_ending(&entry.path)).map(part).collect();
    CONTENT_TYPES.replace("PARTS", &parts.join("\n  "))
}

fn description() -> String {
    format!(
        r#"<?xml version="1.0" encoding="utf-8"?>
<package xmlns="http://schemas.microsoft.com/packaging/2012/06/nuspec.xsd">
  <metadata>
    <id>clrscope</id>
    <version>{VERSION}</version>
    <authors>The authors of clrscope</authors>
    <license type="expression">{}</license>
    <readme>README.md</readme>
    <description>A profiler for .NET programs on Linux x64: where time and memory go.</description>
    <tags>profiler performance diagnostics</tags>
    <repository type="git" url="{}" />
    <packageTypes>
      <packageType name="DotnetTool" />
    </packageTypes>
  </metadata>
</package>
"#,
        env!("CARGO_PKG_LICENSE"),
        env!("CARGO_PKG_REPOSITORY"),
    )
}
