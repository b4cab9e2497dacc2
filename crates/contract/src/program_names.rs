//! The names of a program, by which users choose programs (`--only`).

use std::fs;
use std::path::{self, Path};

use crate::command::entry_assembly;
use crate::request::Glob;

/// All names of a program that a pattern can match.
#[derive(Debug, PartialEq, Eq)]
pub struct ProgramNames(Vec<String>);

impl ProgramNames {
    /// Names of a process with this executable, command line and working folder, from the system
    /// alone, not from the process's runtime. Links are resolved in the calling process's view.
    #[must_use]
    pub fn new(executable: &Path, command_line: &[String], folder: &Path) -> Self {
        let mut names = Self(Vec::new());
        names.add(folder, executable);
        match (executable.file_name().is_some_and(|name| name == "dotnet"), entry_assembly(command_line)) {
            (true, Some(index)) => names.add_assembly(folder, Path::new(&command_line[index])),
            // A command of the SDK, such as `dotnet build`: its assembly has the name of the
            // executable.
            (true, None) => {}
            (false, _) => names.add_assembly(folder, &with_extension(executable)),
        }
        names
    }

    /// Whether one of the patterns matches one of the names.
    #[must_use]
    pub fn match_any(&self, patterns: &[Glob]) -> bool {
        patterns.iter().any(|pattern| self.0.iter().any(|name| pattern.matches(name)))
    }

    /// Adds a path as given, the path with links resolved, and its last part.
    fn add(&mut self, folder: &Path, file: &Path) {
        let file = folder.join(file);
        let absolute = path::absolute(&file).unwrap_or_else(|_| file.clone());
        let target = fs::canonicalize(&absolute).unwrap_or_else(|_| absolute.clone());
        let last = file.file_name().map(Path::new);
        for name in [Some(absolute.as_path()), Some(target.as_path()), last].into_iter().flatten() {
            let name = name.to_string_lossy().into_owned();
            if !self.0.contains(&name) {
                self.0.push(name);
            }
        }
    }

    /// Adds the names of an assembly's file, and the assembly's name: the file name without `.dll`.
    fn add_assembly(&mut self, folder: &Path, file: &Path) {
        self.add(folder, file);
        let name = file.file_stem().unwrap_or_default().to_string_lossy().into_owned();
        if !self.0.contains(&name) {
            self.0.push(name);
        }
    }
}

/// Simple name of the assembly with which a process of this executable and command line starts;
/// `dotnet` for the SDK's commands.
#[must_use]
pub fn entry_assembly_name(executable: &Path, command_line: &[String]) -> String {
    let name = executable.file_name().unwrap_or_default().to_string_lossy().into_owned();
    let hosted = entry_assembly(command_line).filter(|_| name == "dotnet");
    let stem = |index: usize| Some(Path::new(&command_line[index]).file_stem()?.to_string_lossy().into_owned());
    hosted.and_then(stem).unwrap_or(name)
}

/// The assembly that an executable made for one program starts: the file of the same name next to
/// it.
fn with_extension(executable: &Path) -> std::path::PathBuf {
    let mut path = executable.as_os_str().to_owned();
    path.push(".dll");
    path.into()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(executable: &str, command_line: &str) -> ProgramNames {
        let words: Vec<String> = command_line.split(' ').map(str::to_owned).collect();
        ProgramNames::new(Path::new(executable), &words, Path::new(""))
    }

    #[test]
    fn the_entry_assembly_is_that_of_the_host_or_of_the_executable() {
        for (executable, command_line, name) in [
            ("/usr/bin/dotnet", "dotnet /srv/Shop.Web.dll --port 1", "Shop.Web"),
            ("/usr/bin/dotnet", "dotnet exec --depsfile a.json App", "App"),
            ("/usr/bin/dotnet", "dotnet build x.csproj", "dotnet"),
            ("/srv/Shop.Web", "./Shop.Web other.dll", "Shop.Web"),
        ] {
            let words: Vec<String> = command_line.split(' ').map(str::to_owned).collect();
            assert_eq!(entry_assembly_name(Path::new(executable), &words), name, "{command_line}");
        }
    }

    fn matched(names: &ProgramNames, pattern: &str) -> bool {
        names.match_any(&[Glob::new("nothing"), Glob::new(pattern)])
    }

    #[test]
    fn an_application_under_dotnet_has_both_names() {
        for line in [
            "dotnet /no/My.App.dll --fx-version other.dll",
            "dotnet exec /no/My.App.dll",
            "dotnet --fx-version 9.0.1 --roll-forward Major /no/My.App.dll",
            "dotnet exec --depsfile x.dll --runtimeconfig y.dll /no/My.App.dll",
        ] {
            let names = names("/no/dotnet", line);
            for pattern in ["My.App", "My*", "My.App.dll", "/no/My.App.dll", "/no/*", "dotnet", "/no/dotnet"] {
                assert!(matched(&names, pattern), "{line}: {pattern}");
            }
            for pattern in ["App", "My", "other*", "*9.0*", "x*", "my.app"] {
                assert!(!matched(&names, pattern), "{line}: {pattern}");
            }
        }
    }

    #[test]
    fn arguments_of_the_sdk_are_not_programs() {
        for line in ["dotnet build My.App.csproj", "dotnet run --project My.App app.dll", "dotnet", "dotnet --info"] {
            let names = names("/no/dotnet", line);
            assert!(matched(&names, "dotnet") && !matched(&names, "*App*") && !matched(&names, "app*"), "{line}");
        }
        assert!(matched(&names("/no/dotnet", "dotnet /sdk/MSBuild.dll -nodemode:1"), "MSBuild"));
        assert!(matched(&names("/no/dotnet", "dotnet exec odd.name"), "odd.name"));
    }

    #[test]
    fn an_executable_stands_for_the_assembly_beside_it() {
        let names = names("/no/My.App", "My.App other.dll");
        for pattern in ["My.App", "My.App.dll", "/no/My.App", "/no/My.App.dll"] {
            assert!(matched(&names, pattern), "{pattern}");
        }
        assert!(!matched(&names, "other*") && !matched(&names, "My"));
    }

    #[test]
    fn relative_paths_and_links_are_followed() {
        let folder = tempfile::tempdir().expect("a folder");
        let (real, link) = (folder.path().join("Real.dll"), folder.path().join("Link.dll"));
        fs::write(&real, "").expect("a file");
        std::os::unix::fs::symlink(&real, &link).expect("a link");
        let words = ["dotnet".to_owned(), link.display().to_string()];
        let names = ProgramNames::new(Path::new("/no/dotnet"), &words, Path::new(""));
        assert!(matched(&names, "*/Real.dll") && matched(&names, "*/Link.dll") && matched(&names, "Link"));
        let words = ["dotnet".to_owned(), "a/b.dll".to_owned()];
        let here = ProgramNames::new(Path::new("/no/dotnet"), &words, Path::new(""));
        assert!(matched(&here, "/*/a/b.dll"));
        let there = ProgramNames::new(Path::new("/no/dotnet"), &words, Path::new("/srv/shop"));
        assert!(matched(&there, "/srv/shop/a/b.dll"));
    }
}
