//! `clrscope env`: the variables that load the agent without the launcher.

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStrExt;
use std::path::{self, PathBuf};

use clrscope_contract::request::Request;

use crate::agent_file;
use crate::errors::{Failure, reason, shell_word, shown};
use crate::launch::agent_variables;
use crate::programs;

/// How the variables are written.
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

/// What the variables shall say.
#[derive(Debug)]
pub(crate) struct EnvOptions {
    /// How they are written.
    pub(crate) form: Form,
    /// Request, without a place.
    pub(crate) request: Request,
    /// The recording directory.
    pub(crate) output: Option<PathBuf>,
    /// Where the agent lies where the program runs.
    pub(crate) agent: Option<PathBuf>,
}

/// Prints the variables.
///
/// # Errors
/// When the agent can't be put into the cache or a path can't be written in that form.
pub(crate) fn perform(options: EnvOptions) -> Result<(), Failure> {
    let mut request = options.request;
    if let Some(folder) = options.output {
        let absolute = path::absolute(&folder).map_err(|e| unusable(&folder, &reason(&e)))?;
        let text = absolute.to_str().ok_or_else(|| unusable(&folder, "the path is not UTF-8"))?;
        request.out = Some(text.to_owned());
    }
    let agent = match options.agent {
        // The files lie where the agent does, and that is elsewhere.
        Some(agent) => agent,
        None => {
            programs::check(&request.programs, request.trust_writable)?;
            agent_file::install_for_ever(request.trust_writable)?
        }
    };
    let variables = agent_variables(&agent, &request);
    let text = match options.form {
        Form::Shell => lines(&variables, |name, value| format!("export {name}={}", shell_word(value))),
        Form::Dockerfile => lines(&variables, |name, value| format!("ENV {name}={}", docker_word(value))),
        Form::Systemd => lines(&variables, |name, value| format!("Environment={}", systemd_word(name, value))),
        Form::Json => json(&variables),
    };
    super::print(&text)
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

/// In double quotes a Dockerfile expands variables and knows the backslash.
fn docker_word(value: &str) -> String {
    escaped(value, &['"', '\\', '$'], '\\')
}

/// systemd expands `%` everywhere and `$` nowhere in `Environment=`.
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
