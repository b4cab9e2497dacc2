//! Sockets between processes of this machine.

use std::io;
use std::os::fd::AsRawFd;
use std::os::unix::net::UnixStream;

/// The user of the process at the other end, as of the time when it connected.
pub fn user_behind(stream: &UnixStream) -> io::Result<u32> {
    let mut other = libc::ucred { pid: 0, uid: u32::MAX, gid: u32::MAX };
    let mut length = size_of::<libc::ucred>() as libc::socklen_t;
    // SAFETY: writes one record of numbers, of the length that is given.
    let failed = unsafe {
        let into = (&raw mut other).cast();
        libc::getsockopt(stream.as_raw_fd(), libc::SOL_SOCKET, libc::SO_PEERCRED, into, &mut length)
    };
    if failed == 0 { Ok(other.uid) } else { Err(io::Error::last_os_error()) }
}

/// The effective user of this process, which applies when it opens files.
pub fn effective_user() -> u32 {
    // SAFETY: takes nothing and cannot fail.
    unsafe { libc::geteuid() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn this_process_is_behind_its_own_sockets() {
        let (one, _other) = UnixStream::pair().expect("two sockets");
        assert_eq!(user_behind(&one).expect("a user"), effective_user());
    }
}
