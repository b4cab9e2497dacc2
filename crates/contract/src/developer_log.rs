//! The agent's log for its developers: enabled by [`VARIABLE`], written into the recording
//! directory.
//!
//! The variable is not part of the request. Child processes of the program inherit it, so each
//! agent of a recording writes its own log. A process to which the agent attaches has its own
//! environment, so in this case the request contains the level.

/// The environment variable that enables the log; its value is one of [`LEVELS`].
pub const VARIABLE: &str = "CLRSCOPE_LOG";
/// The levels, from the least to the most detailed. Each level includes the levels before it.
pub const LEVELS: [&str; 4] = ["error", "warn", "info", "debug"];

const START: &str = "agent-";
const END: &str = ".log";

/// The name of the log of process `pid` in the recording directory. `number` distinguishes
/// processes with equal ids, which can exist in containers that share a folder.
#[must_use]
pub fn file_name(pid: u32, number: u32) -> String {
    match number {
        0 => format!("{START}{pid}{END}"),
        _ => format!("{START}{pid}-{number}{END}"),
    }
}

/// Whether a file of the recording directory is a developer log.
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
