//! The .NET SDK with which the committed programs are built, where one is available.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use clrscope_dotnet::Version;
use clrscope_dotnet::find::{self, versions_in};

use crate::program::{clean_environment, run, run_within};
use crate::workspace::{fixture, kit, target_folder, workspace_root};

/// Time limit: longer than it takes to publish a program on a busy machine.
const PATIENCE: Duration = Duration::from_secs(300);

/// A C# compiler and the reference assemblies of .NET 8.
#[derive(Debug, Clone)]
pub struct Sdk {
    /// The installation: `DOTNET_ROOT`.
    pub root: PathBuf,
    /// The SDK's version.
    pub version: Version,
    /// The version of `Microsoft.NETCore.App.Ref` and `Microsoft.AspNetCore.App.Ref`.
    pub references: Version,
}

impl Sdk {
    /// An SDK that can build for .NET 8: the test kit's own, or one found on this machine.
    pub fn find() -> Option<Self> {
        let found = find::installs().into_iter().map(|install| install.root);
        kit().map(Path::to_path_buf).into_iter().chain(found).find_map(|root| Self::in_folder(&root))
    }

    fn in_folder(root: &Path) -> Option<Self> {
        let version = versions_in(&root.join("sdk"), "Roslyn/bincore/csc.dll").pop()?;
        let packs = versions_in(&root.join("packs/Microsoft.NETCore.App.Ref"), "ref/net8.0/System.Runtime.dll");
        let references = packs.into_iter().rev().find(|version| version.major == 8)?;
        let web = root.join(format!("packs/Microsoft.AspNetCore.App.Ref/{references}/ref/net8.0"));
        if !web.is_dir() {
            return None;
        }
        Some(Self { root: root.to_path_buf(), version, references })
    }

    /// The versions of the SDK and of the references, as `SDK/REFERENCES`. Two builds give the same
    /// bytes only if these versions are the same.
    pub fn identity(&self) -> String {
        format!("csc of SDK {}, references {}", self.version, self.references)
    }

    /// The command that starts the compiler.
    pub fn compiler(&self) -> Command {
        let mut command = self.host();
        command.arg(self.root.join(format!("sdk/{}/Roslyn/bincore/csc.dll", self.version)));
        command
    }

    /// The command that compiles into `assembly`, with the reference assemblies and without a
    /// banner. The caller adds sources and options.
    pub fn compiler_to(&self, assembly: &Path) -> Command {
        let mut command = self.compiler();
        command.arg("-nologo").arg(format!("-out:{}", assembly.display()));
        command.args(self.reference_assemblies().iter().map(|path| format!("-r:{}", path.display())));
        command
    }

    /// Compiles the single-file fixture of this name into a folder, without optimisation.
    ///
    /// # Panics
    /// When it does not compile.
    pub fn compile_without_optimisation(&self, name: &str, folder: &Path) -> PathBuf {
        let program = folder.join(name).with_extension("dll");
        let mut compiler = self.compiler_to(&program);
        compiler.args(["-target:exe", "-debug:embedded", "-optimize-", "-nullable:enable"]);
        compiler.arg(workspace_root().join("dotnet/fixtures").join(name).join(name).with_extension("cs"));
        run(compiler).expect_success();
        let config = fixture(name).with_extension("runtimeconfig.json");
        fs::copy(config, program.with_extension("runtimeconfig.json")).expect("copied");
        program
    }

    /// The command that starts `dotnet`.
    pub(crate) fn host(&self) -> Command {
        let mut command = Command::new(self.root.join("dotnet"));
        self.lend_runtime(&mut command);
        command
    }

    /// `dotnet WORDS` with the home folder `home`, without servers that outlive the command.
    pub fn dotnet(&self, home: &Path, words: &[&str]) -> Command {
        let mut command = self.host();
        command.args(words).env("DOTNET_CLI_HOME", home).env("NUGET_PACKAGES", target_folder().join("nuget-packages"));
        command.envs([
            ("DOTNET_SYSTEM_GLOBALIZATION_INVARIANT", "1"),
            ("DOTNET_CLI_TELEMETRY_OPTOUT", "1"),
            ("DOTNET_NOLOGO", "1"),
            ("DOTNET_GENERATE_ASPNET_CERTIFICATE", "false"),
            ("MSBUILDDISABLENODEREUSE", "1"),
            ("UseSharedCompilation", "false"),
            ("DOTNET_CLI_USE_MSBUILD_SERVER", "0"),
            ("MSBUILDTERMINALLOGGER", "off"),
        ]);
        command
    }

    /// Publishes a program of one source file as a single file, for the SDK's own runtime;
    /// `name.csproj` and the source lie in the folder `app` of `place`, the program and its PDB in
    /// `out`. Nothing is fetched.
    ///
    /// # Panics
    /// With the SDK's messages, when the build fails.
    pub fn publish_single_file(&self, place: &Path, name: &str, source: &str) -> PathBuf {
        self.publish_single_file_with(place, name, source, "")
    }

    /// As [`publish_single_file`](Self::publish_single_file), with properties of the project:
    /// `<DebugType>embedded</DebugType>`.
    ///
    /// # Panics
    /// With the SDK's messages, when the build fails.
    pub fn publish_single_file_with(&self, place: &Path, name: &str, source: &str, properties: &str) -> PathBuf {
        let framework = self.version.major;
        for (path, text) in [
            ("nuget.config".to_owned(), "<configuration><packageSources><clear/></packageSources></configuration>"),
            (format!("app/{name}.csproj"), &single_file_project(framework, properties)),
            ("app/Program.cs".to_owned(), source),
        ] {
            let path = place.join(path);
            path.parent().map(fs::create_dir_all).transpose().expect("a folder can be made");
            fs::write(path, text).expect("a file can be written");
        }
        let mut publish = self.dotnet(place, &["publish", "-o", "../out"]);
        publish.current_dir(place.join("app"));
        let published = run_within(publish, PATIENCE);
        assert_eq!(published.code(), 0, "{}", published.stdout_text());
        assert!(!place.join(format!("out/{name}.dll")).exists(), "the assembly is in the program");
        place.join("out").join(name)
    }

    /// Sets a command's environment so that it finds the SDK's runtime and no profiler.
    pub fn lend_runtime(&self, command: &mut Command) {
        clean_environment(command);
        command.env("DOTNET_ROOT", &self.root);
    }

    /// The reference assemblies, sorted by name.
    pub fn reference_assemblies(&self) -> Vec<PathBuf> {
        self.references_of("Microsoft.NETCore.App.Ref")
    }

    /// Additional reference assemblies of a web program, sorted by name.
    pub fn web_reference_assemblies(&self) -> Vec<PathBuf> {
        self.references_of("Microsoft.AspNetCore.App.Ref")
    }

    fn references_of(&self, pack: &str) -> Vec<PathBuf> {
        let folder = self.root.join(format!("packs/{pack}/{}/ref/net8.0", self.references));
        let entries = fs::read_dir(&folder).unwrap_or_else(|error| panic!("{}: {error}", folder.display()));
        let mut all: Vec<PathBuf> = entries
            .flatten()
            .map(|entry| entry.path())
            .filter(|path| path.extension().is_some_and(|end| end == "dll"))
            .collect();
        all.sort();
        all
    }
}

/// A project that needs no downloads: the program does not include the runtime, and the single-file
/// analyzer is off.
fn single_file_project(framework: u32, properties: &str) -> String {
    format!(
        "<Project Sdk=\"Microsoft.NET.Sdk\"><PropertyGroup><OutputType>Exe</OutputType>\
         <TargetFramework>net{framework}.0</TargetFramework><RuntimeIdentifier>linux-x64</RuntimeIdentifier>\
         <PublishSingleFile>true</PublishSingleFile><SelfContained>false</SelfContained>\
         <EnableSingleFileAnalyzer>false</EnableSingleFileAnalyzer><InvariantGlobalization>true</InvariantGlobalization>\
         {properties}</PropertyGroup></Project>"
    )
}
