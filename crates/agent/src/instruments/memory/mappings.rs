//! Mappings of the process, with the resident part of each.

use clrscope_agent_base::os::process;

/// A mapping of the process.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(super) struct Mapping {
    pub(super) start: u64,
    pub(super) end: u64,
    pub(super) is_usable: bool,
    pub(super) is_code: bool,
    /// Path of the mapped file, or the system's name in brackets; empty for memory that has
    /// neither.
    pub(super) path: String,
    pub(super) resident: u64,
    pub(super) swapped: u64,
}

impl Mapping {
    pub(super) fn bytes(&self) -> u64 {
        self.end.saturating_sub(self.start)
    }

    pub(super) fn contains(&self, address: u64) -> bool {
        (self.start..self.end).contains(&address)
    }

    /// Whether the mapping is plain memory: it has no file and no name, and is not executable.
    pub(super) fn is_anonymous(&self) -> bool {
        self.path.is_empty() && !self.is_code
    }
}

/// Reads the system's list: for each mapping a line with range, rights, offset, device, inode and
/// path, then lines `Name: value` about it (proc_pid_smaps(5)).
pub(super) fn parse(smaps: &str) -> Vec<Mapping> {
    let mut mappings: Vec<Mapping> = Vec::new();
    for line in smaps.lines() {
        let kilobytes = |rest: &str| rest.split_ascii_whitespace().next()?.parse::<u64>().ok()?.checked_mul(1024);
        if let Some(mapping) = parse_head(line) {
            mappings.push(mapping);
        } else if let Some(last) = mappings.last_mut() {
            match line.split_once(':') {
                Some(("Rss", rest)) => last.resident = kilobytes(rest).unwrap_or(0),
                Some(("Swap", rest)) => last.swapped = kilobytes(rest).unwrap_or(0),
                _ => {}
            }
        }
    }
    mappings
}

fn parse_head(line: &str) -> Option<Mapping> {
    let head = process::Mapping::parse(line)?;
    Some(Mapping {
        start: head.addresses.start as u64,
        end: head.addresses.end as u64,
        is_usable: head.rights.contains(['r', 'w', 'x']),
        is_code: head.can_run(),
        path: head.path.trim().to_owned(),
        resident: 0,
        swapped: 0,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn mappings_are_read_as_the_system_writes_them() {
        let text = "7f00-7f80 rw-p 00000000 00:00 0 \nSize: 1 kB\nRss:    64 kB\nSwap:  8 kB\nVmFlags: rd wr\n\
                    8000-9000 r-xp 00001000 fd:00 123                        /opt/a b.so (deleted)\nRss: 4 kB\n\
                    a000-b000 ---p 00000000 00:00 0 \nRss: 0 kB\n";
        let all = parse(text);
        let first = Mapping {
            start: 0x7f00,
            end: 0x7f80,
            is_usable: true,
            resident: 64 << 10,
            swapped: 8 << 10,
            ..Mapping::default()
        };
        assert_eq!(all[0], first);
        assert_eq!((all[1].path.as_str(), all[1].is_code, all[1].resident), ("/opt/a b.so (deleted)", true, 4096));
        assert!(all[0].is_anonymous() && !all[1].is_anonymous() && !all[2].is_usable);
        assert_eq!(
            (all.len(), all[2].bytes(), all[1].contains(0x8fff), all[1].contains(0x9000)),
            (3, 0x1000, true, false)
        );
    }

    #[test]
    fn any_text_is_read() {
        let whole = "7f00-7f80 rw-p 00000000 00:00 0 \nRss: 64 kB\n8000-9000 r-xp 00001000 fd:00 123 /a.so\nRss: x\n";
        for length in 0..whole.len() {
            assert!(parse(&whole[..length]).len() <= 2);
        }
        assert_eq!(parse("Rss: 99999999999999999999 kB\nzz-yy rw-p\n: : :\n"), []);
    }

    #[test]
    fn the_system_s_list_adds_up_to_what_it_says_of_the_process() {
        let all = parse(&clrscope_agent_base::os::process::resident_mappings());
        let sum: u64 = all.iter().map(|mapping| mapping.resident).sum();
        let said = clrscope_agent_base::os::process::resident().bytes;
        assert!(sum.abs_diff(said) < 8 << 20, "{sum} and {said}");
        let own = all.iter().find(|mapping| mapping.contains(parse as *const () as u64));
        assert!(own.is_some_and(|own| own.is_code && own.resident > 0 && !own.path.is_empty()));
    }
}
