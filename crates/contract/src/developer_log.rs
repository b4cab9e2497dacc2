//! The agent's log for its developers: asked for by [`VARIABLE`], written into the recording
//! directory.
//!
//! The variable is no part of the request: the program's children inherit it, and so all agents of
//! a recording write a log each. A process that is attached to has its own environment: there the
//! request carries the level.

/// The variable that asks for the log; its value is one of [`LEVELS`].
pub const VARIABLE: &str = "CLRSCOPE_LOG";
/// The levels, from the one that says least. Each says what those before it say, too.
pub const LEVELS: [&str; 4] = ["error", "warn", "info", "debug"];

const START: &str = "agent-";
const END: &str = ".log";

/// The name of the log of process `pid` in the recording directory. `number` keeps processes with
/// equal ids apart, as there may be in containers that share a folder.
#[must_use]
pub fn file_name(pid: u32, number: u32) -> String {
    match number {
        0 => format!("{START}{pid}{END}"),
        _ => format!("{START}{pid}-{number}{END}"),
    }
}

/// Whether a file of the recording directory is such a log.
#[must_use]
pub fn is_file_name(name: &str) -> bool {
    let digits = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    let middle = name.strip_prefix(START).and_then(|rest| rest.strip_suffix(END));
    middle.is_some_and(|middle| middle.splitn(2, '-').all(digits))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_log_is_known_by_its_name() {
        assert!(is_file_name(&file_name(12, 0)) && is_file_name(&file_name(12, 3)));
        for other in ["agent-.log", "agent-1-.log", "agent-1-2-3.log", "agent-x.log", "process.log", "agent-1.txt"] {
            assert!(!is_file_name(other), "{other}");
        }
    }
}
