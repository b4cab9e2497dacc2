//! Sees what runtimes do with a library from outside, where the library itself says nothing.

use std::collections::BTreeSet;
use std::fs;
use std::io;
use std::mem::MaybeUninit;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::Duration;

use rustix::fs::inotify::{self, CreateFlags, Reader, WatchFlags};

/// A runtime that has opened a library has decided about it long before this.
const DECIDED: Duration = Duration::from_millis(150);
/// A mapping of the runtime itself.
const RUNTIME: &str = "/libcoreclr.so";

/// Watches one library from before the program starts.
pub(crate) struct Watch {
    opened: OwnedFd,
    let_go: Arc<Mutex<BTreeSet<u32>>>,
}

/// What was seen.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Seen {
    /// No process opened the file.
    NeverOpened,
    /// It was opened; these processes run .NET, were told to load it, and do not have it.
    Opened(BTreeSet<u32>),
}

impl Watch {
    /// Begins. `library` is the path as the programs are told.
    ///
    /// # Errors
    /// When the system has no watch left.
    pub(crate) fn on(library: &Path) -> io::Result<Self> {
        let opened = inotify::init(CreateFlags::CLOEXEC | CreateFlags::NONBLOCK)?;
        inotify::add_watch(&opened, library, WatchFlags::OPEN)?;
        let waiting = inotify::init(CreateFlags::CLOEXEC)?;
        inotify::add_watch(&waiting, library, WatchFlags::OPEN)?;
        let let_go = Arc::<Mutex<BTreeSet<u32>>>::default();
        let (found, library) = (Arc::clone(&let_go), library.to_owned());
        thread::Builder::new()
            .name("watch".to_owned())
            .spawn(move || look_after_opening(&waiting, &library, &found))?;
        Ok(Self { opened, let_go })
    }

    /// What was seen until now.
    pub(crate) fn seen(&self) -> Seen {
        let mut buffer = [MaybeUninit::uninit(); 512];
        match Reader::new(&self.opened, &mut buffer).next() {
            Ok(_) => Seen::Opened(self.let_go.lock().unwrap_or_else(PoisonError::into_inner).clone()),
            Err(_) => Seen::NeverOpened,
        }
    }
}

/// Until this process ends.
fn look_after_opening(waiting: &OwnedFd, library: &Path, found: &Mutex<BTreeSet<u32>>) {
    let mut buffer = [MaybeUninit::uninit(); 512];
    let mut reader = Reader::new(waiting, &mut buffer);
    while reader.next().is_ok() {
        // Twice, since a runtime that is just starting is without it, too.
        thread::sleep(DECIDED);
        let first = without(library);
        thread::sleep(DECIDED);
        let both: Vec<u32> = without(library).intersection(&first).copied().collect();
        found.lock().unwrap_or_else(PoisonError::into_inner).extend(both);
    }
}

/// Processes that run .NET and were told to load the library, but do not have it.
fn without(library: &Path) -> BTreeSet<u32> {
    let processes = fs::read_dir("/proc").into_iter().flatten().flatten();
    let numbers = processes.filter_map(|entry| entry.file_name().to_str()?.parse().ok());
    numbers.filter(|&pid| is_without(pid, library).unwrap_or(false)).collect()
}

fn is_without(pid: u32, library: &Path) -> io::Result<bool> {
    let place = PathBuf::from(format!("/proc/{pid}"));
    let path = library.as_os_str().as_encoded_bytes();
    let environment = fs::read(place.join("environ"))?;
    let told =
        environment.split(|&byte| byte == 0).any(|entry| entry.strip_prefix(b"CORECLR_PROFILER_PATH=") == Some(path));
    let maps = if told { fs::read(place.join("maps"))? } else { Vec::new() };
    let has = |name: &[u8]| maps.split(|&byte| byte == b'\n').any(|line| line.ends_with(name));
    // A library that was found under another name by a link would have this file's own.
    let own = fs::canonicalize(library)?;
    Ok(told && has(RUNTIME.as_bytes()) && !has(own.as_os_str().as_encoded_bytes()))
}
