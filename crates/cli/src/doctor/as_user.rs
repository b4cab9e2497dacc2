//! Runs the doctor as another user: only that user's permissions show whether the user's programs
//! can be recorded.

use std::io;
use std::process::{Child, Command};
use std::thread;

use rustix::process::geteuid;
use rustix::thread::{set_thread_groups, set_thread_res_gid, set_thread_res_uid};

use crate::access::User;
use crate::errors::{Failure, quoted, reason};

/// Variables with folders of the user who starts the doctor.
const OF_A_HOME: [&str; 4] = ["XDG_CACHE_HOME", "XDG_CONFIG_HOME", "XDG_DATA_HOME", "XDG_RUNTIME_DIR"];

/// Runs the doctor with these arguments as the given user. Returns the exit code, or `None` if the
/// given user is the current user.
///
/// # Errors
/// When there is no such user, when the current user is not root, or when the given user can't run
/// the tool.
pub(crate) fn doctor_as(name: &str, words: &[&str]) -> Result<Option<u8>, Failure> {
    let user = User::find(name)?;
    if geteuid() == user.uid() {
        return Ok(None);
    }
    let failed =
        |why: String, hint: &str| Failure::new(format!("cannot run the checks as user {}", quoted(name)), why, hint);
    if !geteuid().is_root() {
        return Err(failed("only root can become another user".to_owned(), "run it with sudo, or as that user"));
    }
    let mut command = Command::new("/proc/self/exe");
    command.args(words).env("HOME", user.home()).env("USER", name).env("LOGNAME", name);
    OF_A_HOME.iter().for_each(|variable| _ = command.env_remove(variable));
    let status = spawn_as(&user, command).and_then(|mut child| child.wait());
    let status = status.map_err(|error| failed(reason(&error), "install clrscope where that user can run it"))?;
    Ok(Some(status.code().and_then(|code| u8::try_from(code).ok()).unwrap_or(crate::errors::EXIT_FAILED)))
}

/// Starts the command from a thread that has switched to the user: a child process inherits the
/// user and groups of the thread.
fn spawn_as(user: &User, mut command: Command) -> io::Result<Child> {
    let (uid, gid, groups) = (user.uid(), user.gid(), user.groups());
    let become_and_spawn = move || {
        set_thread_groups(&groups)?;
        set_thread_res_gid(gid, gid, gid)?;
        set_thread_res_uid(uid, uid, uid)?;
        command.spawn()
    };
    thread::spawn(become_and_spawn).join().unwrap_or_else(|_| Err(io::Error::other("it can't be started")))
}
