//! `clrscope doctor`: checks what works on this machine, and why something does not.

use anstyle::{AnsiColor, Style};
use serde_json::{Value, json};

use crate::doctor::{Check, Status, checks, checks_of, doctor_as};
use crate::errors::{EXIT_FAILED, Failure, one_line};

/// Options of `doctor`.
#[derive(Debug)]
pub(crate) struct DoctorOptions {
    /// Whether to print one JSON document instead of text.
    pub(crate) json: bool,
    /// User as whom to run all checks; `None` for the current user.
    pub(crate) user: Option<String>,
    /// The process to check; `None` to check this machine.
    pub(crate) pid: Option<u32>,
}

/// Runs the checks and prints the results. The exit code is 1 if something prevents recording.
///
/// # Errors
/// When the result can't be written, or the checks can't run as the requested user.
pub(crate) fn perform(options: &DoctorOptions) -> Result<u8, Failure> {
    if let Some(user) = &options.user {
        let pid = options.pid.map(|pid| pid.to_string());
        let words: Vec<&str> =
            ["doctor"].into_iter().chain(options.json.then_some("--json")).chain(pid.as_deref()).collect();
        if let Some(code) = doctor_as(user, &words)? {
            return Ok(code);
        }
    }
    let checks = options.pid.map_or_else(checks, checks_of);
    let text = if options.json { format!("{:#}\n", as_json(&checks)) } else { as_text(&checks) };
    super::print(&text)?;
    Ok(if works(&checks) { 0 } else { EXIT_FAILED })
}

fn works(checks: &[Check]) -> bool {
    checks.iter().all(|check| check.status != Status::Failed)
}

fn as_json(checks: &[Check]) -> Value {
    let row = |check: &Check| {
        json!({
            "name": check.name, "status": check.status.name(), "found": check.found, "cure": check.cure,
        })
    };
    json!({ "schema": "clrscope.doctor/1", "ok": works(checks), "rows": checks.iter().map(row).collect::<Vec<_>>() })
}

fn as_text(checks: &[Check]) -> String {
    let mut text = String::new();
    for check in checks {
        let style = style(check.status);
        let status = check.status.name();
        text.push_str(&format!("{style}{status:<8}{style:#} {:<12} {}\n", check.name, one_line(check.found.as_str())));
        if let Some(cure) = &check.cure {
            text.push_str(&format!("{:<21} hint: {}\n", "", one_line(cure.as_str())));
        }
    }
    text
}

fn style(status: Status) -> Style {
    match status {
        Status::Ok => AnsiColor::Green.on_default(),
        Status::Note => AnsiColor::Cyan.on_default(),
        Status::Warning => AnsiColor::Yellow.on_default(),
        Status::Failed => AnsiColor::Red.on_default().bold(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(status: Status, cure: Option<&str>) -> Check {
        Check { name: "limits", status, found: "a\nb".to_owned(), cure: cure.map(str::to_owned) }
    }

    #[test]
    fn only_failures_decide_the_exit_code() {
        assert!(works(&[check(Status::Ok, None), check(Status::Warning, Some("x"))]));
        assert!(!works(&[check(Status::Ok, None), check(Status::Failed, Some("x"))]));
    }

    #[test]
    fn each_check_is_a_line_and_its_cure_another() {
        let text = anstream::adapter::strip_str(&as_text(&[check(Status::Warning, Some("do it"))])).to_string();
        assert_eq!(text, "warning  limits       a\\nb\n                      hint: do it\n");
    }
}
