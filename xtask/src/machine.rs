//! Describes the machine on which figures were measured: everything that matters for the figures,
//! but nothing that identifies the owner.

use std::fs;
use std::thread::available_parallelism;

/// CPU model, number of cores, kernel.
pub(crate) fn describe() -> String {
    let cpu = fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let model =
        cpu.lines().find_map(|line| line.strip_prefix("model name")?.split_once(": ")).map_or("unknown CPU", |m| m.1);
    let cores = available_parallelism().map_or(1, std::num::NonZero::get);
    let release = fs::read_to_string("/proc/sys/kernel/osrelease").unwrap_or_default();
    format!("{model}, {cores} cores{}, Linux {}", virtual_machine(&cpu), kernel(&release))
}

fn virtual_machine(cpu: &str) -> &'static str {
    if cpu.contains(" hypervisor") { " of a virtual machine" } else { "" }
}

/// `6.18.44-host-7` is `6.18.44`: what follows may name the machine.
fn kernel(release: &str) -> &str {
    release.split(|c: char| c != '.' && !c.is_ascii_digit()).next().unwrap_or_default()
}

/// Average number of programs that wanted a processor in the last minute. Figures of a busy machine
/// are less reliable.
pub(crate) fn load() -> f64 {
    let text = fs::read_to_string("/proc/loadavg").unwrap_or_default();
    text.split(' ').next().and_then(|first| first.parse().ok()).unwrap_or(0.0)
}

#[cfg(test)]
mod tests {
    #[test]
    fn only_the_numbers_of_a_kernel_are_told() {
        assert_eq!(super::kernel("6.18.44-host-7\n"), "6.18.44");
        assert!(super::describe().contains("cores"));
    }
}
