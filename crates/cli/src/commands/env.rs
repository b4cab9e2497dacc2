//! `clrscope env`: the variables that load the agent without the launcher.

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStrExt;
use std::path::{self, Path, PathBuf};

use clrscope_contract::request::Request;
use clrscope_symbols::CLibrary;
use rustix::fs::{Access, access};
use rustix::process::geteuid;

use crate::access::{Obstacle, User};
use crate::agent_file;
use crate::c_library;
use crate::errors::{Failure, one_line, quoted, reason, shell_word, shown};
use crate::launch::{Slot, alternative, needs_main_slot};
use crate::programs;
use crate::terminal::say;

/// Syntax in which the variables are written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Form {
    /// `export` commands of a POSIX shell.
    Shell,
    /// `ENV` lines of a Dockerfile.
    Dockerfile,
    /// `Environment=` lines of a systemd unit.
    Systemd,
    /// One JSON object.
    Json,
}

/// Options of `env`.
#[derive(Debug)]
pub(crate) struct EnvOptions {
    /// Syntax of the variables.
    pub(crate) form: Form,
    /// The recording request, without a path.
    pub(crate) request: Request,
    /// The recording directory, if given.
    pub(crate) output: Option<PathBuf>,
    /// Path that the agent has where the program runs, if given.
    pub(crate) agent: Option<PathBuf>,
    /// Folder into which to put the agent, if given.
    pub(crate) install: Option<PathBuf>,
    /// Whether to load the agent as a notification-only profiler.
    pub(crate) notification_only: bool,
    /// The user that the program runs as, if given.
    pub(crate) user: Option<String>,
    /// The C library of the programs; this machine's when `None`.
    pub(crate) c_library: Option<CLibrary>,
}

/// Path of the agent in a container whose image copies it.
const AGENT_IN_IMAGE: &str = "/usr/local/lib/clrscope/libclrscope_agent.so";

/// Prints the variables.
///
/// # Errors
/// When the agent can't be put into the cache or a path can't be written in that form.
pub(crate) fn perform(options: EnvOptions) -> Result<(), Failure> {
    let mut request = options.request;
    let slot = slot(options.form, options.notification_only, &request)?;
    if let Some(folder) = options.output {
        let absolute = path::absolute(&folder).map_err(|e| unusable(&folder, &reason(&e)))?;
        let text = absolute.to_str().ok_or_else(|| unusable(&folder, "the path is not UTF-8"))?;
        request.out = Some(text.to_owned());
    }
    let user = options.user.as_deref().map(User::find).transpose()?;
    // If the agent is in an image or at a given path, the folder is there, too, and can't be
    // checked here.
    let is_elsewhere = options.form == Form::Dockerfile || options.agent.is_some();
    let library = options.c_library.unwrap_or_else(c_library::of_machine);
    if !is_elsewhere {
        check_place(user.as_ref().zip(options.user.as_deref()), request.out.as_deref())?;
    }
    let mut copied = String::new();
    let is_cached = options.agent.is_none() && options.install.is_none();
    let agent = match (options.agent, options.install) {
        // The files lie next to the agent, which is elsewhere.
        (Some(agent), _) => agent,
        (None, Some(folder)) if options.form == Form::Dockerfile => {
            let agent = c_library::agent_elsewhere(library)?;
            let file = agent_file::install_for_all(agent, &folder, true)?;
            copied = copy_line(&folder, &file);
            PathBuf::from(AGENT_IN_IMAGE)
        }
        (None, install) => {
            let agent = match is_elsewhere {
                true => c_library::agent_elsewhere(library)?,
                false => c_library::agent_of_machine(library)?,
            };
            programs::check(&request.programs, request.trust_writable)?;
            match install {
                Some(folder) => agent_file::install_for_all(agent, &folder, request.trust_writable)?,
                None => agent_file::install_for_ever(agent, request.trust_writable)?,
            }
        }
    };
    match (user, &options.user) {
        (Some(user), Some(name)) => check_user(&user, name, &agent)?,
        _ if is_cached => warn_of_cache(options.form, &agent),
        _ => {}
    }
    if let Some(sentence) = is_elsewhere.then(|| c_library::said_of_other_places(library)).flatten() {
        say(&format!("clrscope: {sentence}"));
    }
    let variables = slot.variables(&agent, &request)?;
    let text = match options.form {
        Form::Shell => lines(&variables, |name, value| format!("export {name}={}", shell_word(value))),
        Form::Dockerfile => lines(&variables, |name, value| format!("ENV {name}={}", docker_word(value))),
        Form::Systemd => lines(&variables, |name, value| format!("Environment={}", systemd_word(name, value))),
        Form::Json => json(&variables),
    };
    super::print(&(copied + &text))
}

/// Returns the slot for the agent. It is a notification-only slot if that is requested, or, for
/// shell output, if this environment names another profiler. The other forms are for programs with
/// other environments.
fn slot(form: Form, notification_only: bool, request: &Request) -> Result<Slot, Failure> {
    if notification_only {
        return match needs_main_slot(request, false) {
            None => Ok(Slot::NotificationOnly),
            Some(refusal) => Err(Failure::new(
                "the agent can't do that as a notification-only profiler",
                &refusal.why,
                format!("leave --notification-only out, or {}", alternative(&refusal)),
            )),
        };
    }
    match form {
        Form::Shell => Slot::choose(request).map(|(slot, other)| {
            super::run::say_slot(other.as_ref());
            slot
        }),
        Form::Dockerfile | Form::Systemd | Form::Json => Ok(Slot::Main),
    }
}

/// The line that copies the agent from the build context into the image.
fn copy_line(folder: &Path, file: &Path) -> String {
    let name = file.file_name().unwrap_or_default();
    let source = if folder.is_absolute() { PathBuf::from(name) } else { folder.join(name) };
    let words = serde_json::json!([source.to_string_lossy(), AGENT_IN_IMAGE]);
    format!("COPY --chmod=0555 {words}\n")
}

/// Warns on stderr if variables for other users or images name an agent that only the current user
/// can load. The variables are printed anyway.
fn warn_of_cache(form: Form, agent: &Path) {
    let (who, hint) = match form {
        Form::Dockerfile => (
            "the image has no agent there",
            "--install . puts the agent into the build context and prints the COPY line; or name the image's with --agent",
        ),
        Form::Systemd if geteuid().is_root() && User::stranger().obstacle(agent).is_some() => (
            "services of users other than root can't load the agent, and silently record nothing",
            "if the unit has User=NAME, add --user NAME --install /usr/local/lib/clrscope",
        ),
        _ => return,
    };
    say(&one_line(format!("clrscope: {} is in this user's cache: {who}", shown(agent))));
    say(&format!("hint: {hint}"));
}

/// Refuses an agent that the user can't open, because the runtime reports nothing about such a
/// profiler.
fn check_user(user: &User, name: &str, agent: &Path) -> Result<(), Failure> {
    let agent = path::absolute(agent).unwrap_or_else(|_| agent.to_owned());
    let why = match user.obstacle(&agent) {
        None => return Ok(()),
        Some(Obstacle::Closed(place)) => format!("{} is closed to that user", shown(&place)),
        Some(Obstacle::Foreign(place)) => format!("{} belongs to neither that user nor root", shown(&place)),
    };
    let what = format!("user {} can't load the agent {}", quoted(name), shown(&agent));
    Err(Failure::new(what, why, "as root, add --install /usr/local/lib/clrscope"))
}

/// Refuses a folder that the user can't write, because the agent reports nothing about it in the
/// program. Without `user` the current user counts.
fn check_place(user: Option<(&User, &str)>, folder: Option<&str>) -> Result<(), Failure> {
    let Some(folder) = folder.map(Path::new) else { return Ok(()) };
    let (obstacle, who) = match user {
        Some((user, name)) => (user.obstacle_to_writing(folder), format!("user {}", quoted(name))),
        None => {
            let there = folder.ancestors().find(|place| place.exists());
            let may_write =
                |place: &&Path| place.is_dir() && access(*place, Access::WRITE_OK | Access::EXEC_OK).is_ok();
            (there.filter(|place| !may_write(place)).map(Path::to_owned), "you".to_owned())
        }
    };
    let Some(place) = obstacle else { return Ok(()) };
    let why = if place.is_dir() {
        format!("{who} can't write to {}", shown(&place))
    } else {
        format!("{} is not a folder", shown(&place))
    };
    let hint = "choose another folder with -o, or name the user that the program runs as with --user";
    Err(Failure::new(format!("cannot record into {}", shown(folder)), why, hint))
}

fn unusable(folder: &std::path::Path, why: &str) -> Failure {
    Failure::new(format!("cannot record into {}", shown(folder)), why, "choose another folder with -o")
}

fn lines(variables: &[(String, OsString)], line: impl Fn(&str, &str) -> String) -> String {
    variables.iter().map(|(name, value)| line(name, &text(value)) + "\n").collect()
}

fn json(variables: &[(String, OsString)]) -> String {
    let object: serde_json::Map<_, _> =
        variables.iter().map(|(name, value)| (name.clone(), serde_json::Value::String(text(value)))).collect();
    format!("{:#}\n", serde_json::Value::Object(object))
}

fn text(value: &OsStr) -> String {
    String::from_utf8_lossy(value.as_bytes()).into_owned()
}

/// Quotes a value for a Dockerfile, which expands variables and backslashes in double quotes.
fn docker_word(value: &str) -> String {
    escaped(value, &['"', '\\', '$'], '\\')
}

/// Quotes a variable for systemd, which expands `%` everywhere and `$` nowhere in `Environment=`.
fn systemd_word(name: &str, value: &str) -> String {
    escaped(&format!("{name}={value}").replace('%', "%%"), &['"', '\\'], '\\')
}

fn escaped(value: &str, special: &[char], escape: char) -> String {
    let mut word = String::from("\"");
    for c in value.chars() {
        if special.contains(&c) {
            word.push(escape);
        }
        word.push(c);
    }
    word.push('"');
    word
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_form_keeps_the_value() {
        assert_eq!(shell_word("/plain/path"), "/plain/path");
        assert_eq!(shell_word("calls;out=/a b"), "'calls;out=/a b'");
        assert_eq!(shell_word("it's"), "'it'\\''s'");
        assert_eq!(docker_word("a$b\"c"), "\"a\\$b\\\"c\"");
        assert_eq!(systemd_word("A", "x%3By\\z"), "\"A=x%%3By\\\\z\"");
    }

    #[test]
    fn a_shell_reads_back_what_was_meant() {
        let value = "calls:clock=tsc;include=[A]*;out=/tmp/it's $HOME \"x\" `y`";
        let script = format!("export V={}; printf %s \"$V\"", shell_word(value));
        let output = std::process::Command::new("sh").args(["-c", &script]).output().expect("a shell");
        assert_eq!(String::from_utf8_lossy(&output.stdout), value);
    }
}
