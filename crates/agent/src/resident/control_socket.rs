//! The control socket of a dormant agent. It lies next to the socket of the runtime's diagnostics,
//! and only the user of the process may use it.
//!
//! [`control_socket`] describes the protocol. The waiting thread blocks in a system call.

use std::fs::{self, Permissions};
use std::hash::{BuildHasher, Hasher, RandomState};
use std::io::{self, Read, Write};
use std::os::fd::AsRawFd;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::time::Duration;

use clrscope_agent_base::developer_log::{Level, log};
use clrscope_agent_base::os::process::start_of;
use clrscope_agent_base::os::sockets::{effective_user, user_behind};
use clrscope_contract::control_socket::{self, Answer};

/// Time limit of a conversation with a client that has connected.
const READ_TIMEOUT: Duration = Duration::from_secs(5);

/// The listening socket. The caller must remove its file, at [`path`](Self::path).
pub(super) struct ControlSocket {
    listener: UnixListener,
    path: PathBuf,
    /// Inode of the socket: programs may close descriptors that are not theirs, and open others
    /// with the same number.
    inode: u64,
}

impl ControlSocket {
    /// Opens the socket.
    ///
    /// # Errors
    /// Errors of the system: for the folder for temporary files, and if the name is too long.
    pub(super) fn open() -> io::Result<Self> {
        let folder = std::env::var_os("TMPDIR").filter(|folder| folder.as_encoded_bytes().starts_with(b"/"));
        Self::open_in(&folder.map_or_else(|| PathBuf::from("/tmp"), PathBuf::from))
    }

    /// Opens the socket in a folder. If another user has taken the usual name, whose file can't be
    /// removed from a sticky folder, the socket gets another name.
    fn open_in(folder: &Path) -> io::Result<Self> {
        let pid = std::process::id();
        let started = start_of(pid).unwrap_or(0);
        let usual = Self::open_at(&folder.join(control_socket::socket_name(pid, started)));
        match usual {
            Err(error) if error.kind() == io::ErrorKind::AddrInUse => {
                // The keys of the standard library's hashers are random.
                let word = format!("{:016x}", RandomState::new().build_hasher().finish());
                Self::open_at(&folder.join(control_socket::fallback_socket_name(pid, started, &word)))
            }
            usual => usual,
        }
    }

    fn open_at(path: &Path) -> io::Result<Self> {
        // Removes the file of an earlier dormant agent.
        let _ = fs::remove_file(path);
        let listener = UnixListener::bind(path)?;
        let made = fs::set_permissions(path, Permissions::from_mode(0o600)).and_then(|()| inode_of(&listener));
        let inode = made.inspect_err(|_| _ = fs::remove_file(path))?;
        Ok(Self { listener, path: path.to_owned(), inode })
    }

    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    /// Waits until a client sends a request that `wake` can begin. Then calls `woken`, before the
    /// client gets its answer. Returns early if the socket is gone.
    pub(super) fn wait_for_wake_request(self, wake: impl Fn(&str) -> Answer, woken: impl FnOnce()) {
        while inode_of(&self.listener).is_ok_and(|inode| inode == self.inode) {
            let Ok((mut stream, _)) = self.listener.accept() else { return };
            let answer = match question(&mut stream) {
                Ok(question) => control_socket::request_of(&question).map_or_else(|answer| answer, &wake),
                Err(error) => {
                    log(Level::Warn, || format!("somebody who would not say what he wants: {error}"));
                    continue;
                }
            };
            let is_awake = answer == Answer::Awake;
            if is_awake {
                drop(self.listener);
                woken();
                tell(&mut stream, &answer);
                return;
            }
            tell(&mut stream, &answer);
        }
    }
}

/// Reads the question of a client that is allowed to ask.
fn question(stream: &mut UnixStream) -> io::Result<Vec<u8>> {
    let user = user_behind(stream)?;
    if user != effective_user() && user != 0 {
        return Err(io::Error::other(format!("user {user} may not wake the agent")));
    }
    stream.set_read_timeout(Some(READ_TIMEOUT))?;
    stream.set_write_timeout(Some(READ_TIMEOUT))?;
    let mut question = Vec::new();
    stream.take(control_socket::MAX_QUESTION_BYTES).read_to_end(&mut question)?;
    Ok(question)
}

/// Sends the answer. A client that does not wait for it needs none.
fn tell(stream: &mut UnixStream, answer: &Answer) {
    let _ = stream.write_all(answer.to_string().as_bytes());
}

fn inode_of(listener: &UnixListener) -> io::Result<u64> {
    Ok(fs::metadata(format!("/proc/self/fd/{}", listener.as_raw_fd()))?.ino())
}

#[cfg(test)]
mod tests {
    use std::net::Shutdown;
    use std::sync::Arc;
    use std::sync::atomic::{AtomicU32, Ordering};

    use super::*;

    /// Asks, and returns the answer; `None` if the other side did not read the whole question.
    fn ask(path: &Path, said: &[u8]) -> Option<Answer> {
        let mut stream = UnixStream::connect(path).expect("somebody listens");
        stream.write_all(said).and_then(|()| stream.shutdown(Shutdown::Write)).ok()?;
        let mut answer = String::new();
        stream.read_to_string(&mut answer).ok()?;
        Answer::parse(&answer)
    }

    /// Another user's file of that name in a sticky folder used to stop the agent from going
    /// dormant with a socket.
    #[test]
    fn where_the_name_is_taken_the_door_has_another_one() {
        let folder = tempfile::tempdir().expect("a folder");
        let pid = std::process::id();
        let usual = folder.path().join(control_socket::socket_name(pid, start_of(pid).expect("a start")));
        // Its contents keep the folder from being removed, like other users' files in a sticky
        // folder.
        fs::create_dir_all(usual.join("taken")).expect("a folder");
        let sockets = [(); 2].map(|()| ControlSocket::open_in(folder.path()).expect("a socket"));
        let [first, second] = [0, 1].map(|at| sockets[at].path().to_owned());
        assert!(first != usual && first != second, "{} {}", first.display(), second.display());
        let beginning = usual.display().to_string().replace("-socket", "-");
        assert!(first.display().to_string().starts_with(&beginning), "{}", first.display());
        assert!(UnixStream::connect(&first).is_ok() && UnixStream::connect(&second).is_ok());
    }

    #[test]
    fn a_request_that_is_refused_leaves_the_door_open_for_the_next() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("socket");
        fs::write(&path, "left behind").expect("a file");
        let socket = ControlSocket::open_at(&path).expect("a socket");
        assert_eq!(fs::metadata(&path).expect("it is there").mode() & 0o777, 0o600);
        let (wakes, woken) = (Arc::new(AtomicU32::new(0)), |wakes: &AtomicU32| wakes.load(Ordering::SeqCst));
        let counted = Arc::clone(&wakes);
        let wake = |request: &str| match request {
            "cpu" => Answer::Awake,
            other => Answer::Refused(format!("no {other}")),
        };
        let waiting = std::thread::spawn(move || {
            socket.wait_for_wake_request(wake, || _ = counted.fetch_add(1, Ordering::SeqCst));
        });
        assert_eq!(
            ask(&path, control_socket::question("calls").as_bytes()),
            Some(Answer::Refused("no calls".to_owned()))
        );
        assert!(matches!(ask(&path, b"clrscope wake 0.0.0\ncpu"), Some(Answer::OtherVersion(_))));
        assert!(matches!(ask(&path, &[0xff; 70_000]), Some(Answer::Refused(_)) | None));
        assert_eq!(woken(&wakes), 0);
        assert_eq!(ask(&path, control_socket::question("cpu").as_bytes()), Some(Answer::Awake));
        assert_eq!(woken(&wakes), 1, "before anybody is told");
        waiting.join().expect("it ends");
        assert!(UnixStream::connect(&path).is_err(), "nobody listens any more");
    }
}
