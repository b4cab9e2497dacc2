//! `clrscope env --systemd --watch`: the unit of a service that watches a host.

use std::path::{Path, PathBuf};

use crate::errors::{Failure, reason, shown};

/// The folder below which systemd makes a folder for a service.
const STATE: &str = "/var/lib";

/// Options of the unit.
#[derive(Debug)]
pub(crate) struct UnitOptions {
    /// The options of the unit's `clrscope watch`.
    pub(crate) words: Vec<String>,
    /// The folder of the watch's recordings.
    pub(crate) folder: PathBuf,
    /// The user of the service; root when `None`.
    pub(crate) user: Option<String>,
}

/// Prints the unit.
///
/// # Errors
/// When a path can't be written in it.
pub(crate) fn perform(options: &UnitOptions) -> Result<(), Failure> {
    let tool = std::env::current_exe().map_err(|error| {
        Failure::new("cannot name this program in a unit", reason(&error), "check that /proc is there")
    })?;
    super::print(&unit(&tool, options)?)
}

fn unit(tool: &Path, options: &UnitOptions) -> Result<String, Failure> {
    let folder = &options.folder;
    if !folder.is_absolute() {
        let why = "a service does not run in your working folder";
        let what = format!("a service can't record into {}", shown(folder));
        return Err(Failure::usage(what, why, "write an absolute path, such as -o /var/lib/clrscope"));
    }
    let tool = tool.to_str().ok_or_else(|| {
        Failure::new(
            format!("a unit can't name {}", shown(tool)),
            "it is not UTF-8",
            "put clrscope into /usr/local/bin",
        )
    })?;
    let words = [tool, "watch"].into_iter().chain(options.words.iter().map(String::as_str));
    let command = words.map(word).collect::<Vec<_>>().join(" ");
    let user = options.user.as_ref().map_or_else(String::new, |user| format!("User={}\n", user.replace('%', "%%")));
    let state =
        state(folder).map_or_else(String::new, |name| format!("StateDirectory={name}\nStateDirectoryMode=0700\n"));
    Ok(format!(
        "[Unit]
Description=clrscope watch: records the .NET programs of this host

[Service]
Type=exec
{user}ExecStart={command}
{state}KillMode=mixed
TimeoutStopSec=2min
Restart=on-failure
RestartPreventExitStatus=2 6

[Install]
WantedBy=multi-user.target
"
    ))
}

/// The part of the path below `/var/lib`, where systemd makes the folder.
fn state(folder: &Path) -> Option<&str> {
    let name = folder.strip_prefix(STATE).ok()?.to_str()?;
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "/._-".contains(c);
    (!name.is_empty() && name.chars().all(is_plain)).then_some(name)
}

/// Quotes a word of a command line for systemd, which expands `%`, `$` and backslashes also within
/// quotes.
fn word(text: &str) -> String {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "/._-+:@,=".contains(c);
    if !text.is_empty() && text.chars().all(is_plain) {
        return text.to_owned();
    }
    let escaped = text.replace('\\', "\\\\").replace('"', "\\\"").replace('%', "%%").replace('$', "$$");
    format!("\"{}\"", escaped.replace('\n', "\\n"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_keep_their_meaning() {
        assert_eq!(word("/usr/bin/clrscope"), "/usr/bin/clrscope");
        assert_eq!(word("Shop*"), "\"Shop*\"");
        assert_eq!(word("2%,512MiB"), "\"2%%,512MiB\"");
        assert_eq!(word("a b\"c\\d$e"), "\"a b\\\"c\\\\d$$e\"");
        assert_eq!(word(""), "\"\"");
    }

    #[test]
    fn the_folder_is_made_by_systemd_where_it_can() {
        assert_eq!(state(Path::new("/var/lib/clrscope")), Some("clrscope"));
        assert_eq!(state(Path::new("/var/lib/clrscope/shop")), Some("clrscope/shop"));
        assert_eq!(state(Path::new("/srv/recordings")), None);
        assert_eq!(state(Path::new("/var/lib")), None);
        assert_eq!(state(Path::new("/var/lib/a b")), None);
    }
}
