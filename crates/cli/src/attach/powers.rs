//! Capabilities that this process lacks to access another process: in containers root has only a
//! few capabilities.

use clr_diagnostics::Process;

/// Capabilities for attaching to a process of another user: to inspect it, to connect to its
/// socket, and to give it the agent's file. The numbers are from `capabilities(7)`.
const NEEDED: [(&str, u32); 3] = [("SYS_PTRACE", 19), ("DAC_OVERRIDE", 1), ("CHOWN", 0)];

/// Reason and hint if the system denied access to a process.
pub(super) fn not_permitted(pid: u32) -> (String, String) {
    let process = Process::open(pid);
    let why = match &process {
        Ok(process) if process.uid() != own_user() => format!("it belongs to another user (id {})", process.uid()),
        Ok(process) if process.gid() != own_group() => format!("it belongs to another group (id {})", process.gid()),
        _ => "the system does not let clrscope inspect it".to_owned(),
    };
    let whom = process.ok().and_then(|process| as_whom(&process));
    let otherwise = || "attach as root; start a container with --cap-add SYS_PTRACE".to_owned();
    (why, whom.unwrap_or_else(otherwise))
}

/// The user or the capabilities needed to attach to a process of another user or group; `None` if
/// this process may attach.
pub(super) fn as_whom(process: &Process) -> Option<String> {
    let differs = process.uid() != own_user() || process.gid() != own_group();
    let missing = missing(effective_capabilities());
    if !differs || missing.is_empty() {
        return None;
    }
    let user = match process.gid() == own_group() || process.uid() != own_user() {
        true => "that user".to_owned(),
        false => format!("user {} and group {}", process.uid(), process.gid()),
    };
    Some(match own_user() {
        0 => format!("attach as {user}, or add the capabilities that root lacks here: {}", missing.join(", ")),
        _ => format!("attach as {user}, or as root"),
    })
}

fn own_user() -> u32 {
    rustix::process::geteuid().as_raw()
}

fn own_group() -> u32 {
    rustix::process::getegid().as_raw()
}

fn missing(effective: u64) -> Vec<&'static str> {
    NEEDED.iter().filter(|(_, bit)| effective >> bit & 1 == 0).map(|(name, _)| *name).collect()
}

/// The effective capabilities of this process; all if the system does not tell them, because then
/// none is known to be missing.
fn effective_capabilities() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let mask = status.lines().find_map(|line| line.strip_prefix("CapEff:"));
    mask.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn capabilities_that_are_missing_are_named() {
        assert_eq!(missing(u64::MAX), [""; 0]);
        assert_eq!(missing(0), ["SYS_PTRACE", "DAC_OVERRIDE", "CHOWN"]);
        // Default capabilities of root in container engines.
        assert_eq!(missing(0x0000_0000_a804_25fb), ["SYS_PTRACE"]);
    }
}
