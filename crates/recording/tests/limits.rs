//! A limit on the size of files, which the system enforces by a deadly signal. Alone in its
//! process.

use clrscope_recording::pack::{PackError, pack};
use clrscope_recording::testing::synthetic::{Shape, write_directory};
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

#[test]
fn a_file_larger_than_the_limit_is_an_error_and_leaves_nothing_behind() {
    let folder = tempfile::tempdir().expect("a folder");
    let name = folder.path().join("x.clrs.d");
    write_directory(&name, &Shape { tree_bytes: 256 << 10, ..Shape::default() }).expect("a directory");
    let before = getrlimit(Resource::Fsize);
    setrlimit(Resource::Fsize, Rlimit { current: Some(64 << 10), ..before }).expect("a lower limit");
    let refused = pack(&name, &folder.path().join("x.clrs"), &mut |_| ());
    setrlimit(Resource::Fsize, before).expect("the limit as it was");
    assert!(matches!(&refused, Err(PackError::Write(_, error)) if error.kind() == std::io::ErrorKind::FileTooLarge));
    assert_eq!(std::fs::read_dir(folder.path()).expect("a folder").count(), 1);
    assert_eq!(clrscope_recording::open(&folder.path().join("x.clrs")).expect("the directory").problems, []);
}
