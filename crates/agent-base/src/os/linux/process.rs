//! Information on processes from `/proc`.

use std::fs;
use std::io::Read;
use std::ops::Range;
use std::path::PathBuf;
use std::str::FromStr;

/// Largest environment that is read. No system starts a program with a larger one.
const LARGEST_ENVIRONMENT: u64 = 8 << 20;

/// The command line of this process, word by word.
pub fn command_line() -> Vec<String> {
    let bytes = fs::read("/proc/self/cmdline").unwrap_or_default();
    let text = bytes.strip_suffix(b"\0").unwrap_or(&bytes);
    text.split(|&b| b == 0).map(|word| String::from_utf8_lossy(word).into_owned()).collect()
}

/// The executable of this process; empty if the system doesn't say.
pub fn executable() -> PathBuf {
    fs::read_link("/proc/self/exe").unwrap_or_default()
}

/// Values of variables in the environment at the start of this process; `None` for missing ones.
/// Reads the system's copy, not the C library's list: the copy stays unchanged while code of the
/// program sets variables on other threads.
pub fn variables_at_start<const N: usize>(names: [&str; N]) -> [Option<String>; N] {
    let mut bytes = Vec::new();
    let read =
        fs::File::open("/proc/self/environ").and_then(|file| file.take(LARGEST_ENVIRONMENT).read_to_end(&mut bytes));
    if read.is_err() {
        return [const { None }; N];
    }
    names.map(|name| variable(&bytes, name))
}

/// The first entry of a variable counts, as in the C library.
fn variable(environment: &[u8], name: &str) -> Option<String> {
    let mut entries = environment.split(|&byte| byte == 0);
    let value = entries.find_map(|entry| entry.strip_prefix(name.as_bytes())?.strip_prefix(b"="))?;
    Some(String::from_utf8_lossy(value).into_owned())
}

/// Name of the host, as this process sees it; empty if the system doesn't say.
pub fn host_name() -> String {
    fs::read_to_string("/proc/sys/kernel/hostname").unwrap_or_default().trim_end().to_owned()
}

/// Identifier of the container of this process; empty if there is none, or the system doesn't say.
pub fn container_id() -> String {
    let read = |file: &str| String::from_utf8_lossy(&fs::read(file).unwrap_or_default()).into_owned();
    let found = container_in_groups(&read("/proc/self/cgroup")).map(str::to_owned);
    found.or_else(|| container_in_mounts(&read("/proc/self/mountinfo")).map(str::to_owned)).unwrap_or_default()
}

/// The container, from the name of a control group: `/docker/ID`, `docker-ID.scope`,
/// `cri-containerd-ID.scope`, `...:crio:ID`. In a container with a control group namespace of its
/// own, the name is `/`.
fn container_in_groups(groups: &str) -> Option<&str> {
    let paths = groups.lines().filter_map(|line| line.splitn(3, ':').nth(2));
    let names = paths.flat_map(|path| path.rsplit('/'));
    names.map(|name| name.strip_suffix(".scope").unwrap_or(name)).find_map(|name| {
        let id = name.rsplit(['-', ':']).next()?;
        is_container_id(id).then_some(id)
    })
}

/// The container, from the folder of files that its engine mounts: Docker keeps `/etc/hostname` and
/// similar files in `.../containers/ID/`, Podman in `.../overlay-containers/ID/`. Kubernetes takes
/// them from the pod's sandbox, which is another container.
fn container_in_mounts(mounts: &str) -> Option<&str> {
    mounts.lines().find_map(|line| {
        let mut fields = line.split(' ').skip(3);
        let (root, place) = (fields.next()?, fields.next()?);
        if !matches!(place, "/etc/hostname" | "/etc/hosts" | "/etc/resolv.conf") {
            return None;
        }
        let folders = root.split('/').zip(root.split('/').skip(1));
        let is_of_one =
            |folder: &str, id: &str| matches!(folder, "containers" | "overlay-containers") && is_container_id(id);
        folders.into_iter().find_map(|(folder, id)| is_of_one(folder, id).then_some(id))
    })
}

fn is_container_id(text: &str) -> bool {
    text.len() == 64 && text.bytes().all(|byte| byte.is_ascii_hexdigit())
}

/// The memory mappings of this process, one per line; empty if the system doesn't say.
pub fn mappings() -> String {
    let bytes = fs::read("/proc/self/maps").unwrap_or_default();
    String::from_utf8(bytes).unwrap_or_else(|error| String::from_utf8_lossy(error.as_bytes()).into_owned())
}

/// A line of [`mappings`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Mapping<'a> {
    /// Addresses of the mapping.
    pub addresses: Range<usize>,
    /// Permissions: `r`, `w`, `x` or `-` for each, then `p` or `s`.
    pub rights: &'a str,
    /// Offset of the mapping in the file, in bytes.
    pub offset: usize,
    /// Path of the file; a name in brackets for memory of the system; otherwise empty.
    pub path: &'a str,
}

impl<'a> Mapping<'a> {
    /// Reads a line of the form `start-end permissions offset device inode path`; `None` for
    /// anything else.
    pub fn parse(line: &'a str) -> Option<Self> {
        let mut words = line.splitn(6, ' ');
        let (start, end) = words.next()?.split_once('-')?;
        let hexadecimal = |word: &str| usize::from_str_radix(word, 16).ok();
        let rights = words.next()?;
        let offset = hexadecimal(words.next()?)?;
        let path = words.nth(2).unwrap_or_default().trim_start();
        Some(Self { addresses: hexadecimal(start)?..hexadecimal(end)?, rights, offset, path })
    }

    /// Whether the memory is executable.
    pub fn can_run(&self) -> bool {
        self.rights.contains('x')
    }

    /// Whether a file is mapped. The runtime maps compiled code twice from memory without a file;
    /// images of assemblies are mapped from their files.
    pub fn is_file(&self) -> bool {
        self.path.starts_with('/') && !self.path.starts_with("/memfd:")
    }
}

/// The memory mappings of this process with their resident memory, in the form of
/// `/proc/PID/smaps`; empty if the system doesn't say. Takes some milliseconds for each 100 MB,
/// during which other threads can't change mappings.
pub fn resident_mappings() -> String {
    let bytes = fs::read("/proc/self/smaps").unwrap_or_default();
    String::from_utf8(bytes).unwrap_or_else(|error| String::from_utf8_lossy(error.as_bytes()).into_owned())
}

/// Resident memory of this process, now and at its highest.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Resident {
    /// Resident memory now, in bytes.
    pub bytes: u64,
    /// The peak since the process began, as the system reports it.
    pub most_bytes: u64,
}

/// Resident memory of this process; zeros if the system doesn't say.
pub fn resident() -> Resident {
    parse_resident(&fs::read_to_string("/proc/self/status").unwrap_or_default())
}

fn parse_resident(status: &str) -> Resident {
    let bytes = |name: &str| {
        let line = status.lines().find_map(|line| line.strip_prefix(name))?;
        line.split_ascii_whitespace().next()?.parse::<u64>().ok()?.checked_mul(1024)
    };
    Resident { bytes: bytes("VmRSS:").unwrap_or(0), most_bytes: bytes("VmHWM:").unwrap_or(0) }
}

/// Number of running and ready threads of the machine, divided by the number of processors; 1 where
/// the system doesn't say.
pub fn runnable_per_processor() -> u32 {
    let text = fs::read_to_string("/proc/loadavg").unwrap_or_default();
    runnable(&text).unwrap_or(1).div_ceil(processors()).max(1)
}

/// Number of processors that this process may use, by its affinity and its control group; 1 where
/// the system doesn't say.
pub fn processors() -> u32 {
    std::thread::available_parallelism().map_or(1, |processors| processors.get() as u32)
}

/// The fourth word of the load averages is `runnable/all`.
fn runnable(loads: &str) -> Option<u32> {
    loads.split(' ').nth(3)?.split('/').next()?.parse().ok()
}

/// Start time of a process, in ticks since the machine started. Process id and start time together
/// identify a process uniquely.
pub fn start_of(pid: u32) -> Option<u64> {
    field(&fs::read_to_string(format!("/proc/{pid}/stat")).ok()?, 22)
}

/// Niceness of this process, -20 to 19; 0 if the system doesn't say.
pub fn niceness() -> i32 {
    fs::read_to_string("/proc/self/stat").ok().and_then(|status| field(&status, 19)).unwrap_or(0)
}

/// The field with this number, counted from 1 as in the manual, of a process's status.
fn field<T: FromStr>(status: &str, number: usize) -> Option<T> {
    // The second field, the name, may contain anything, including brackets and spaces.
    let after_name = status.rsplit_once(") ")?.1;
    after_name.split(' ').nth(number.checked_sub(3)?)?.parse().ok()
}

/// Number of times that threads of this process were taken off a processor so far. The call takes
/// longer the more threads there are.
pub fn thread_switches() -> Option<u64> {
    // SAFETY: zeroes are valid numbers.
    let mut usage: libc::rusage = unsafe { std::mem::zeroed() };
    // SAFETY: fills in one record of numbers.
    let failed = unsafe { libc::getrusage(libc::RUSAGE_SELF, &mut usage) } != 0;
    (!failed).then(|| usage.ru_nvcsw.unsigned_abs() + usage.ru_nivcsw.unsigned_abs())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_of_the_list_are_understood() {
        let line = Mapping::parse("7f00-7f80 r-xp 00002000 fd:01 77    /a dir/lib x.so").expect("a line");
        assert_eq!(
            (line.addresses.clone(), line.can_run(), line.offset, line.path),
            (0x7f00..0x7f80, true, 0x2000, "/a dir/lib x.so")
        );
        let line = Mapping::parse("7f00-7f80 rw-p 00000000 00:00 0").expect("a line");
        assert!(!line.can_run() && line.path.is_empty());
        assert!(Mapping::parse("nonsense").is_none());
    }

    #[test]
    fn fields_of_a_status_stand_behind_a_name_of_any_kind() {
        let status = "7 (a) b (c) S 1 7 7 0 -1 4194304 1 2 3 4 5 6 7 8 20 -5 12 0 4711 9";
        assert_eq!((field::<i32>(status, 19), field::<u64>(status, 22)), (Some(-5), Some(4711)));
        assert_eq!((field::<u64>(status, 90), field::<u64>("", 3)), (None, None));
        assert!((-20..=19).contains(&niceness()) && start_of(std::process::id()).is_some());
    }

    #[test]
    fn variables_are_those_of_the_start() {
        let environment = b"PATH=/bin\0XA=1\0A=b=c\0A=later\0EMPTY=\0\xff=x\0";
        assert_eq!(variable(environment, "A").as_deref(), Some("b=c"));
        assert_eq!(variable(environment, "EMPTY").as_deref(), Some(""));
        assert_eq!((variable(environment, "B"), variable(b"", "A")), (None, None));
        let [path, none] = variables_at_start(["PATH", "CLRSCOPE_NO_SUCH_VARIABLE"]);
        assert_eq!((path, none), (std::env::var("PATH").ok(), None));
    }

    #[test]
    fn containers_are_known_by_control_groups_and_by_mounts() {
        let id = "0123456789abcdef".repeat(4);
        for path in [
            format!("/docker/{id}"),
            format!("/system.slice/docker-{id}.scope"),
            format!("/kubepods.slice/kubepods-burstable.slice/kubepods-pod1.slice/cri-containerd-{id}.scope"),
            format!("/kubepods/besteffort/pod1b2c/{id}"),
            format!("/system.slice/containerd.service/kubepods-pod1.slice:cri-containerd:{id}"),
            format!("/machine.slice/libpod-{id}.scope/container"),
        ] {
            let groups = format!("12:cpu:/\n0::{path}\n");
            assert_eq!(container_in_groups(&groups), Some(id.as_str()), "{path}");
        }
        for none in ["0::/\n", "0::/user.slice/user-1000.slice/session-2.scope\n", "", "x", "0::/docker/0123\n"] {
            assert_eq!(container_in_groups(none), None, "{none}");
        }
        let mount = |root: &str, place: &str| {
            format!("36 35 98:0 / / rw - overlay x rw\n712 700 8:1 {root} {place} rw - ext4 /dev/sda1 rw\n")
        };
        let docker = mount(&format!("/var/lib/docker/containers/{id}/hostname"), "/etc/hostname");
        assert_eq!(container_in_mounts(&docker), Some(id.as_str()));
        let podman = mount(&format!("/containers/overlay-containers/{id}/userdata/hosts"), "/etc/hosts");
        assert_eq!(container_in_mounts(&podman), Some(id.as_str()));
        let pod = mount(&format!("/var/lib/containerd/sandboxes/{id}/hostname"), "/etc/hostname");
        assert_eq!((container_in_mounts(&pod), container_in_mounts("1 2\n")), (None, None));
        assert!(!host_name().is_empty());
    }

    #[test]
    fn resident_bytes_are_read_from_the_status() {
        let status = "Name:\tVmRSS:\nVmHWM:\t    2048 kB\nVmRSS:\t     512 kB\n";
        assert_eq!(parse_resident(status), Resident { bytes: 512 << 10, most_bytes: 2 << 20 });
        assert_eq!(parse_resident("VmRSS:\tmany kB\n"), Resident::default());
        assert!(resident().bytes > 0 && resident().most_bytes >= 1 << 20);
    }

    #[test]
    fn what_runs_is_the_fourth_of_the_loads() {
        assert_eq!(runnable("51.20 18.01 8.40 1203/4711 99\n"), Some(1203));
        assert_eq!((runnable(""), runnable("1 2 3 x/4")), (None, None));
        assert!(runnable_per_processor() >= 1);
    }
}
