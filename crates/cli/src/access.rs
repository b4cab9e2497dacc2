//! Determines which files another user of the machine can access, from modes and owners, without
//! switching to that user.

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use rustix::process::{Gid, Uid};

use crate::errors::{Failure, quoted};

/// A user of this machine.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct User {
    uid: u32,
    /// The user's primary group; `groups` has the other groups.
    gid: u32,
    groups: Vec<u32>,
    home: PathBuf,
}

/// Reason why a user can't read a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Obstacle {
    /// A folder that the user can't enter, or a file that the user can't read.
    Closed(PathBuf),
    /// A folder or file whose owner is neither the user nor root: the agent refuses it.
    Foreign(PathBuf),
}

impl User {
    /// Finds the user with this name or id in `/etc/passwd` and `/etc/group`.
    ///
    /// # Errors
    /// When there is no such user.
    pub(crate) fn find(name: &str) -> Result<Self, Failure> {
        let read = |path| fs::read_to_string(path).unwrap_or_default();
        Self::among(&read("/etc/passwd"), &read("/etc/group"), name).ok_or_else(|| {
            let what = format!("'--user' does not take {}", quoted(name));
            Failure::usage(what, "/etc/passwd has no such user", "give the name or the number of a user")
        })
    }

    fn among(users: &str, groups: &str, name: &str) -> Option<Self> {
        let user = users
            .lines()
            .map(|line| line.split(':').collect::<Vec<_>>())
            .find(|user| user.len() > 3 && (user[0] == name || user[2] == name));
        let Some(user) = user else {
            // A container's user may have no name and no group of its own; then its group is
            // root's.
            return name.parse().ok().map(|uid| Self { uid, ..Self::default() });
        };
        let is_member = |group: &&Vec<&str>| group.len() > 3 && group[3].split(',').any(|member| member == user[0]);
        let all: Vec<Vec<&str>> = groups.lines().map(|line| line.split(':').collect()).collect();
        let others = all.iter().filter(is_member).filter_map(|group| group[2].parse().ok());
        let (uid, gid) = (user[2].parse().ok()?, user[3].parse().ok()?);
        let home = user.get(5).map(PathBuf::from).unwrap_or_default();
        Some(Self { uid, gid, groups: std::iter::once(gid).chain(others).collect(), home })
    }

    /// A user without groups who is neither root nor the current user.
    pub(crate) fn stranger() -> Self {
        Self { uid: u32::MAX - 1, ..Self::default() }
    }

    pub(crate) fn uid(&self) -> Uid {
        Uid::from_raw(self.uid)
    }

    pub(crate) fn gid(&self) -> Gid {
        Gid::from_raw(self.gid)
    }

    pub(crate) fn groups(&self) -> Vec<Gid> {
        self.groups.iter().copied().map(Gid::from_raw).collect()
    }

    /// The home folder that `/etc/passwd` names; empty if it names none.
    pub(crate) fn home(&self) -> &Path {
        &self.home
    }

    /// Reason why the user can't load the library at this absolute path; `None` if the user can
    /// load it.
    pub(crate) fn obstacle(&self, file: &Path) -> Option<Obstacle> {
        let places: Vec<&Path> = file.ancestors().collect();
        let closed = places.iter().rev().find(|place| {
            let needed = if **place == file { 0o4 } else { 0o1 };
            !fs::metadata(place).is_ok_and(|about| self.may(&about, needed))
        });
        if let Some(place) = closed {
            return Some(Obstacle::Closed(place.to_path_buf()));
        }
        let is_foreign =
            |place: &&&Path| fs::metadata(place).is_ok_and(|about| about.uid() != 0 && about.uid() != self.uid);
        places.iter().rev().find(is_foreign).map(|place| Obstacle::Foreign(place.to_path_buf()))
    }

    /// Folder or file that prevents the user from creating this folder or from writing files into
    /// it; `None` if nothing does.
    pub(crate) fn obstacle_to_writing(&self, folder: &Path) -> Option<PathBuf> {
        let there: Vec<&Path> = folder.ancestors().filter(|place| place.exists()).collect();
        let last = there.first()?;
        let needed = |place: &Path| if place == *last { 0o3 } else { 0o1 };
        let may =
            |place: &Path| fs::metadata(place).is_ok_and(|about| about.is_dir() && self.may(&about, needed(place)));
        there.iter().rev().find(|place| !may(place)).map(|place| place.to_path_buf())
    }

    /// Whether the user has all of these permission bits. As in the kernel, the bits of the owner
    /// apply first, else those of the group, else those of others.
    fn may(&self, about: &fs::Metadata, needed: u32) -> bool {
        let mode = about.mode();
        let bits = match () {
            () if self.uid == 0 => 0o7,
            () if about.uid() == self.uid => mode >> 6,
            () if self.gid == about.gid() || self.groups.contains(&about.gid()) => mode >> 3,
            () => mode,
        };
        bits & needed == needed
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    #[test]
    fn users_are_found_by_name_and_number_with_their_groups() {
        let users = "root:x:0:0::/:/bin/sh\nweb:x:33:34::/:/bin/false\n";
        let groups = "web:x:34:\nlogs:x:50:mail,web\n";
        let web = User { uid: 33, gid: 34, groups: vec![34, 50], home: "/".into() };
        assert_eq!(User::among(users, groups, "web"), Some(web.clone()));
        assert_eq!(User::among(users, groups, "33"), Some(web));
        assert_eq!(User::among(users, groups, "1654"), Some(User { uid: 1654, ..User::default() }));
        assert_eq!(User::among(users, groups, "nobody"), None);
    }

    #[test]
    fn a_folder_that_the_user_cannot_enter_is_named() {
        let temp = tempfile::tempdir().expect("a folder");
        let root = fs::canonicalize(temp.path()).expect("the folder");
        let file = root.join("inner/agent.so");
        fs::create_dir(root.join("inner")).expect("a folder");
        fs::write(&file, "").expect("a file");
        let mode = |path: &Path, mode| fs::set_permissions(path, fs::Permissions::from_mode(mode)).expect("a mode");
        let stranger = User::stranger();
        mode(&root, 0o755);
        mode(&root.join("inner"), 0o700);
        mode(&file, 0o644);
        assert_eq!(stranger.obstacle(&file), Some(Obstacle::Closed(root.join("inner"))));
        mode(&root.join("inner"), 0o755);
        mode(&file, 0o600);
        assert_eq!(stranger.obstacle(&file), Some(Obstacle::Closed(file.clone())));
        mode(&file, 0o444);
        let mine = fs::metadata(&file).expect("the file").uid();
        let expected = (mine != 0).then(|| Obstacle::Foreign(root.clone()));
        assert_eq!(stranger.obstacle(&file), expected);
    }

    #[test]
    fn what_keeps_a_user_from_writing_is_named() {
        let temp = tempfile::tempdir().expect("a folder");
        let root = fs::canonicalize(temp.path()).expect("the folder");
        let mode = |path: &Path, mode| fs::set_permissions(path, fs::Permissions::from_mode(mode)).expect("a mode");
        let stranger = User::stranger();
        mode(&root, 0o755);
        assert_eq!(stranger.obstacle_to_writing(&root.join("a/b.clrs.d")), Some(root.clone()));
        mode(&root, 0o777);
        assert_eq!(stranger.obstacle_to_writing(&root.join("a/b.clrs.d")), None);
        fs::write(root.join("file"), "").expect("a file");
        assert_eq!(stranger.obstacle_to_writing(&root.join("file/b")), Some(root.join("file")));
        mode(&root, 0o700);
        assert_eq!(stranger.obstacle_to_writing(&root), Some(root.clone()));
    }
}
