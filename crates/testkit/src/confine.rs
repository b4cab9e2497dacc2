//! Runs programs with restrictions: without root's capabilities, on a small disk, with small files.

use std::ffi::OsString;
use std::path::Path;
use std::process::Command;

use crate::not_run;

/// Whether tests run as root, and so can switch to any user.
pub fn is_root() -> bool {
    rustix::process::geteuid().is_root()
}

/// The command as a user without capabilities would run it, so that file permissions apply. The
/// user stays root but loses its capabilities.
///
/// # Panics
/// When tests run as root and `setpriv` is missing.
pub fn without_powers(command: &Command) -> Command {
    match is_root() {
        true => wrapped(&["setpriv", "--bounding-set=-all", "--inh-caps=-all", "--no-new-privs"], command),
        false => wrapped(&["env"], command),
    }
}

/// The command, run with `id` as user and group id, and in no other group. Only for root.
pub fn as_user(id: u32, command: &Command) -> Command {
    let (user, group) = (format!("--reuid={id}"), format!("--regid={id}"));
    wrapped(&["setpriv", &user, &group, "--clear-groups"], command)
}

/// The command in a mount namespace where the folder `from` also appears at `to`, so that users who
/// can't enter the parent folders of `from` can read it there. `None`, with a message, if tests do
/// not run as root or may not mount.
pub fn with_folder_at(command: &Command, from: &Path, to: &Path) -> Option<Command> {
    const SCRIPT: &str = r#"mount --bind "$1" "$2" || exit 125; shift 2; exec "$@""#;
    let (from, to) = (from.to_str().expect("UTF-8"), to.to_str().expect("UTF-8"));
    let words = ["unshare", "--mount", "sh", "-c", SCRIPT, "sh", from, to];
    if !is_root() || !wrapped(&words, &Command::new("true")).status().is_ok_and(|status| status.success()) {
        not_run("tests are not root here, or may not mount folders");
        return None;
    }
    Some(wrapped(&words, command))
}

/// The command with a limit on the size of every file it writes, in KiB.
pub fn with_file_size_limit(command: &Command, kib: u64) -> Command {
    wrapped(&["bash", "-c", &format!("ulimit -f {kib}; exec \"$@\""), "bash"], command)
}

/// The command with an in-memory file system of `size` (`3m`) mounted over `folder`. After the
/// command, its files are copied to `kept`, because the file system disappears with the command.
/// `None`, with a message, where mounting is not allowed.
pub fn with_small_disk(command: &Command, folder: &Path, size: &str, kept: &Path) -> Option<Command> {
    const SCRIPT: &str = "mount -t tmpfs -o size=$1 small \"$2\" || exit 125\n\
                          folder=$2 kept=$3; shift 3; cd \"$folder\"; \"$@\"; code=$?; cd /\n\
                          cp -r --sparse=always \"$folder/.\" \"$kept\"; exit $code";
    let space: &[&str] = match is_root() {
        true => &["unshare", "--mount"],
        false => &["unshare", "--user", "--map-root-user", "--mount"],
    };
    let trial = Command::new(space[0]).args(&space[1..]).args(["mount", "-t", "tmpfs", "trial", "/mnt"]).output();
    if !trial.is_ok_and(|output| output.status.success()) {
        not_run("this machine does not allow mounting a small disk");
        return None;
    }
    let (folder, kept) = (folder.to_str().expect("UTF-8"), kept.to_str().expect("UTF-8"));
    let words = [space, &["sh", "-c", SCRIPT, "sh", size, folder, kept]].concat();
    Some(wrapped(&words, command))
}

/// The command with a filter that refuses `process_vm_readv`, like the system call filters of
/// containers. Python sets the filter. `None`, with a message, where Python is missing or no filter
/// may be set.
pub fn without_copies(command: &Command) -> Option<Command> {
    without_system_calls(command, &[310])
}

/// As [`without_copies`], for the system calls with these numbers.
pub fn without_system_calls(command: &Command, numbers: &[u32]) -> Option<Command> {
    const SCRIPT: &str = "import ctypes, os, struct, sys\n\
        refused = [int(number) for number in sys.argv.pop(1).split(',')]\n\
        steps = [(0x20, 0, 0, 0)]\n\
        for number in refused: steps += [(0x15, 0, 1, number), (6, 0, 0, 0x00050001)]\n\
        steps += [(6, 0, 0, 0x7FFF0000)]\n\
        code = ctypes.create_string_buffer(b''.join(struct.pack('HBBI', *step) for step in steps))\n\
        program = ctypes.create_string_buffer(struct.pack('HP', len(steps), ctypes.addressof(code)))\n\
        prctl = ctypes.CDLL(None).prctl\n\
        assert prctl(38, 1, 0, 0, 0) == 0 and prctl(22, 2, program) == 0\n\
        os.execvp(sys.argv[1], sys.argv[1:])";
    let numbers = numbers.iter().map(u32::to_string).collect::<Vec<_>>().join(",");
    let words = ["python3", "-c", SCRIPT, &numbers];
    if !wrapped(&words, &Command::new("true")).status().is_ok_and(|status| status.success()) {
        not_run("there is no python3 here, or no filter of system calls may be set");
        return None;
    }
    Some(wrapped(&words, command))
}

/// `command` with `words` in front, in the same environment and folder.
pub fn wrapped(words: &[&str], command: &Command) -> Command {
    let mut outer = Command::new(words[0]);
    let all = words[1..].iter().map(OsString::from).chain([command.get_program().to_owned()]);
    outer.args(all).args(command.get_args());
    for (name, value) in command.get_envs() {
        match value {
            Some(value) => outer.env(name, value),
            None => outer.env_remove(name),
        };
    }
    if let Some(folder) = command.get_current_dir() {
        outer.current_dir(folder);
    }
    outer
}
