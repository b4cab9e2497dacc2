//! Perf events: the kernel interrupts threads by their CPU time and writes samples into rings, one
//! for each processor.
//!
//! The calling thread opens the events on itself, and threads that it starts later inherit them.
//! Nothing is opened per thread.

use std::fs;
use std::io::{self, BufRead as _, BufReader};
use std::ops::RangeInclusive;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd, RawFd};
use std::ptr::NonNull;
use std::sync::atomic::{AtomicU64, Ordering};

use clrscope_agent_base::os::memory::PAGE;

use crate::sampling::arch::{PERF_REGISTERS, of_perf};
use crate::sampling::raw::RawSample;

/// `perf_event_attr` as of its version 8 (linux/perf_event.h).
#[repr(C)]
#[derive(Default)]
struct Attributes {
    kind: u32,
    size: u32,
    config: u64,
    period: u64,
    sample: u64,
    read_format: u64,
    flags: u64,
    wakeup: u32,
    breakpoint: u32,
    config1: u64,
    config2: u64,
    branches: u64,
    user_registers: u64,
    user_stack: u32,
    clock: i32,
    interrupt_registers: u64,
    aux_watermark: u32,
    most_frames: u16,
    _reserved: u16,
    aux_sample: u32,
    _reserved_too: u32,
    signal_data: u64,
    config3: u64,
}

const SOFTWARE: u32 = 1;
const CPU_CLOCK: u64 = 0;
/// Instruction, thread, time, call chain, registers and stack of user mode.
const SAMPLE: u64 = 1 | 2 | 4 | 0x20 | 0x1000 | 0x2000;
const DISABLED: u64 = 1;
const INHERIT: u64 = 1 << 1;
const EXCLUDE_KERNEL: u64 = 1 << 5;
const EXCLUDE_HYPERVISOR: u64 = 1 << 6;
const EXCLUDE_CHAIN_IN_KERNEL: u64 = 1 << 21;
const USE_CLOCK: u64 = 1 << 25;
const INHERIT_THREADS_ONLY: u64 = 1 << 35;
const CLOSE_ON_EXEC: u64 = 8;
const ENABLE: u64 = 0x2400;
const DISABLE: u64 = 0x2401;

/// Kinds of records.
const LOST: u32 = 2;
const SAMPLED: u32 = 9;
const LOST_SAMPLES: u32 = 13;
/// Bits of a record's head with the processor's mode, and their values for the kernel and user
/// mode.
const MODE: u16 = 7;
const MODE_KERNEL: u16 = 1;
/// Marks in a call chain: the following addresses are of the kernel, or of user mode.
const CHAIN_KERNEL: u64 = (-128_i64) as u64;
const CHAIN_USER: u64 = (-512_i64) as u64;
const CHAIN_MARKS: u64 = (-4095_i64) as u64;

/// Most bytes of the stack in each sample, tried from the largest, as far as there is memory; the
/// kernel copies only as much as there is. If a thread has run on, the part of the stack that its
/// sample lacks is lost. Continuations of async methods, the compiler, and visitors of trees
/// recurse deeply, and the runtime's own frames between a catch block and its method take up to 20
/// KiB. Records have at most 64 KiB.
const STACK_BYTES: [u32; 4] = [60 << 10, 32 << 10, 16 << 10, 8 << 10];
/// Pages of a ring in addition to its head, tried from the largest: users may lock half a MiB per
/// processor.
const RING_PAGES: [usize; 7] = [4096, 2048, USUAL_PAGES, 512, 256, 128, 32];
/// Most pages of a ring, unless the samples need more.
const USUAL_PAGES: usize = 1024;
/// Pages of the smallest ring.
const LEAST_PAGES: usize = 32;
/// Time that a ring holds the samples of its processor.
const DRAINED_NS: u64 = 100_000_000;
/// Usual bytes of a sample in addition to the stack.
const RECORD_BYTES: u64 = 512;
/// Most pages of all rings together.
const MOST_PAGES: usize = 8192;

/// The requested settings of perf events.
#[derive(Debug, Clone, Copy)]
pub(crate) struct EventSettings {
    pub interval_ns: u64,
    pub kernel: bool,
}

/// The open perf events of this process.
pub(crate) struct PerfEvents {
    rings: Vec<PerfRing>,
    period_ns: u64,
    /// Whether samples include frames of the kernel.
    pub kernel: bool,
    /// Id of this process.
    process: u32,
}

/// Settings of an event.
#[derive(Debug, Clone, Copy)]
struct EventAttributes {
    period_ns: u64,
    kernel: bool,
    /// Bytes of the stack in each sample.
    stack: u32,
}

struct PerfRing {
    event: OwnedFd,
    start: NonNull<u8>,
    pages: usize,
}

// SAFETY: the mapping belongs to the ring, and the ring's owner uses it.
unsafe impl Send for PerfRing {}

impl PerfEvents {
    /// Opens the events, disabled, for the calling thread and the threads that it starts.
    ///
    /// # Errors
    /// The system's error for the first event that could not be opened.
    pub(crate) fn open(wanted: EventSettings) -> io::Result<Self> {
        let period_ns = odd_period(wanted.interval_ns);
        let open = |kernel: bool| -> io::Result<Self> {
            let processors = processors()?;
            let most = MOST_PAGES / processors.len().max(1);
            let ring = |processor| {
                let open =
                    |stack, pages| PerfRing::open(EventAttributes { period_ns, kernel, stack }, processor, pages);
                let pages = |stack| pages_for(wanted.interval_ns, stack);
                let [deep @ .., least] = STACK_BYTES;
                // Deeper stacks if a ring then holds the samples of at least half of that time.
                let found = deep.into_iter().find_map(|stack| {
                    let needed = pages(stack) / 2;
                    open(stack, needed..=pages(stack).min(most).min(needed.max(USUAL_PAGES))).ok()
                });
                found.map_or_else(|| open(least, 1..=pages(least).min(most).clamp(LEAST_PAGES, USUAL_PAGES)), Ok)
            };
            let rings = processors.into_iter().map(ring);
            Ok(Self { rings: rings.collect::<io::Result<_>>()?, period_ns, kernel, process: std::process::id() })
        };
        match wanted.kernel {
            true => open(true).or_else(|_| open(false)),
            false => open(false),
        }
    }

    /// Starts or stops sampling, in all threads that inherited the events.
    pub(crate) fn enable(&self, is_on: bool) {
        for ring in &self.rings {
            let request = if is_on { ENABLE } else { DISABLE };
            // SAFETY: takes no argument that is an address.
            unsafe { libc::ioctl(ring.event.as_raw_fd(), request as libc::Ioctl, 0) };
        }
    }

    /// File descriptors of the events.
    pub(crate) fn descriptors(&self) -> Vec<RawFd> {
        self.rings.iter().map(|ring| ring.event.as_raw_fd()).collect()
    }

    /// Gives every available sample to `take`. Returns the number of samples that the kernel had to
    /// drop.
    pub(crate) fn drain(&mut self, sample: &mut RawSample, mut take: impl FnMut(&mut RawSample)) -> u64 {
        let (period_ns, process, mut lost) = (self.period_ns, self.process, 0);
        for ring in &mut self.rings {
            ring.drain(|kind, misc, mut words| match kind {
                SAMPLED => {
                    sample.clear();
                    sample.weight_ns = period_ns;
                    if parse(words, misc, process, sample).is_some() {
                        take(sample);
                    }
                }
                LOST => lost += words.nth(1).unwrap_or(0),
                LOST_SAMPLES => lost += words.next().unwrap_or(0),
                _ => {}
            });
        }
        lost
    }
}

/// Pages of a ring for the samples of the time for which a busy machine may delay the draining
/// thread, with this many bytes of the stack in each sample. Not more, as the system zeroes all
/// pages at once, which costs short programs time.
fn pages_for(interval_ns: u64, stack: u32) -> usize {
    let samples = DRAINED_NS / interval_ns.max(1) + 1;
    let bytes = samples.saturating_mul(u64::from(stack) + RECORD_BYTES);
    usize::try_from(bytes).unwrap_or(usize::MAX).div_ceil(PAGE).checked_next_power_of_two().unwrap_or(usize::MAX)
}

/// A period that no program has. With a round period, a loop that repeats every millisecond would
/// always be hit at the same place.
fn odd_period(interval_ns: u64) -> u64 {
    (interval_ns + interval_ns * 100 / 2_618).max(10_000) | 1
}

/// The processors that are online.
///
/// # Errors
/// The system does not list the processors. The samples of a processor without an event would be
/// missing silently.
fn processors() -> io::Result<Vec<i32>> {
    let online = fs::read_to_string("/sys/devices/system/cpu/online").map(|list| processors_in_list(&list));
    // Roots without `/sys` are usual in sandboxes. The kernel's counters also have a line for each
    // processor.
    let found = online.or_else(|_| fs::read_to_string("/proc/stat").map(|stat| processors_in_counters(&stat)))?;
    if found.is_empty() { Err(io::Error::other("the system lists no processors")) } else { Ok(found) }
}

/// The numbers in `0-3,6`.
fn processors_in_list(list: &str) -> Vec<i32> {
    let ranges = list.trim().split(',').filter_map(|range| {
        let (first, last) = range.split_once('-').unwrap_or((range, range));
        Some(first.parse::<i32>().ok()?..=last.parse::<i32>().ok()?)
    });
    ranges.flatten().collect()
}

/// The numbers of the lines `cpu0 ...`; a line `cpu ...` has their sum.
fn processors_in_counters(stat: &str) -> Vec<i32> {
    stat.lines().filter_map(|line| line.strip_prefix("cpu")?.split(' ').next()?.parse().ok()).collect()
}

impl EventAttributes {
    fn open(self, processor: i32) -> io::Result<OwnedFd> {
        let Self { period_ns, kernel, stack } = self;
        let attributes = |threads_only: u64| Attributes {
            kind: SOFTWARE,
            size: size_of::<Attributes>() as u32 - 8,
            config: CPU_CLOCK,
            period: period_ns,
            sample: SAMPLE,
            flags: DISABLED
                | INHERIT
                | EXCLUDE_HYPERVISOR
                | USE_CLOCK
                | threads_only
                | if kernel { 0 } else { EXCLUDE_KERNEL | EXCLUDE_CHAIN_IN_KERNEL },
            user_registers: PERF_REGISTERS,
            user_stack: stack,
            clock: libc::CLOCK_MONOTONIC,
            ..Attributes::default()
        };
        let open = |attributes: &Attributes| {
            let attributes: *const Attributes = attributes;
            // SAFETY: reads as many bytes of the attributes as they say.
            let event =
                unsafe { libc::syscall(libc::SYS_perf_event_open, attributes, 0, processor, -1, CLOSE_ON_EXEC) };
            // SAFETY: a new descriptor that nothing else owns.
            (event >= 0).then(|| unsafe { OwnedFd::from_raw_fd(event as i32) }).ok_or_else(io::Error::last_os_error)
        };
        // Kernels before 5.13 can't exclude child processes; their samples are skipped then.
        open(&attributes(INHERIT_THREADS_ONLY)).or_else(|_| open(&attributes(0)))
    }
}

impl PerfRing {
    /// Opens an event on a processor, with the largest ring in the range of pages that there is
    /// memory for.
    fn open(asked: EventAttributes, processor: i32, pages: RangeInclusive<usize>) -> io::Result<Self> {
        let event = asked.open(processor)?;
        let (start, pages) = RING_PAGES
            .into_iter()
            .filter(|count| pages.contains(count))
            .find_map(|pages| Some((map(&event, pages)?, pages)))
            .ok_or_else(io::Error::last_os_error)?;
        Ok(Self { event, start, pages })
    }

    fn head(&self, at: usize) -> &AtomicU64 {
        // SAFETY: a word of the ring's first page (`perf_event_mmap_page`), which the kernel shares
        // with us.
        unsafe { self.start.byte_add(at).cast().as_ref() }
    }

    /// Gives each available record to `record`: its kind, the other bits of its head, and its
    /// words. The kernel overwrites no record before all are taken.
    fn drain(&mut self, mut record: impl FnMut(u32, u16, Words<'_>)) {
        const DATA_HEAD: usize = 1024;
        const DATA_TAIL: usize = 1032;
        let head = self.head(DATA_HEAD).load(Ordering::Acquire);
        let mut tail = self.head(DATA_TAIL).load(Ordering::Relaxed);
        let size = self.pages * PAGE;
        while tail < head {
            let [a, b, c, d, e, f, g, h] = self.word(tail).to_le_bytes();
            let (kind, misc, bytes) =
                (u32::from_le_bytes([a, b, c, d]), u16::from_le_bytes([e, f]), usize::from(u16::from_le_bytes([g, h])));
            if bytes < 8 || bytes > size || (head - tail) < bytes as u64 {
                break;
            }
            let end = tail + (bytes as u64 & !7);
            record(kind, misc, Words { ring: self, at: tail + 8, end });
            tail += bytes as u64;
        }
        self.head(DATA_TAIL).store(head, Ordering::Release);
    }

    fn word(&self, at: u64) -> u64 {
        let size = self.pages * PAGE;
        let place = at as usize & (size - 1) & !7;
        // SAFETY: records consist of words, so no word crosses the end. The address is within the
        // ring's pages behind its head, and was written before the kernel moved its end past it.
        unsafe { self.start.byte_add(PAGE + place).cast::<u64>().read() }
    }

    /// Words of the ring, which may wrap around its end: the first part, and the rest.
    fn words(&self, from: u64, count: usize) -> [&[u64]; 2] {
        let size = self.pages * PAGE / 8;
        let at = (from as usize / 8) & (size - 1);
        let (count, first) = (count.min(size), count.min(size - at));
        [(at, first), (0, count - first)].map(|(at, count)| {
            // SAFETY: aligned, and within the ring's pages behind its head; the kernel wrote these
            // words before it moved its end past them, and writes none of them again before we have
            // moved ours.
            unsafe { std::slice::from_raw_parts(self.start.byte_add(PAGE + 8 * at).cast::<u64>().as_ptr(), count) }
        })
    }
}

impl Drop for PerfRing {
    fn drop(&mut self) {
        // SAFETY: the whole mapping, to which no reference is left.
        unsafe { libc::munmap(self.start.as_ptr().cast(), (1 + self.pages) * PAGE) };
    }
}

fn map(event: &OwnedFd, pages: usize) -> Option<NonNull<u8>> {
    let bytes = (1 + pages) * PAGE;
    let access = libc::PROT_READ | libc::PROT_WRITE;
    // SAFETY: a new mapping at an address that the kernel chooses.
    let start = unsafe { libc::mmap(std::ptr::null_mut(), bytes, access, libc::MAP_SHARED, event.as_raw_fd(), 0) };
    NonNull::new(start.cast()).filter(|_| start != libc::MAP_FAILED)
}

/// The words of a record in the ring.
#[derive(Clone, Copy)]
struct Words<'a> {
    ring: &'a PerfRing,
    at: u64,
    end: u64,
}

impl Iterator for Words<'_> {
    type Item = u64;

    fn next(&mut self) -> Option<u64> {
        let word = (self.at < self.end).then(|| self.ring.word(self.at))?;
        self.at += 8;
        Some(word)
    }
}

impl<'a> Words<'a> {
    /// The filled part of the stack area. Before the area is a word with its size, and behind it a
    /// word with the filled length.
    fn filled(self, room: u64) -> Option<[&'a [u64]; 2]> {
        let last = self.end.checked_sub(8).filter(|last| *last >= self.at)?;
        let bytes = self.ring.word(last).min(room).min(last - self.at);
        Some(self.ring.words(self.at, (bytes / 8) as usize))
    }
}

/// Reads the fields of a sample in the order of [`SAMPLE`]; `None` for samples of another process
/// and for truncated ones.
fn parse(mut words: Words<'_>, misc: u16, process: u32, sample: &mut RawSample) -> Option<()> {
    let _instruction = words.next()?;
    let who = words.next()?;
    if who as u32 != process {
        return None;
    }
    sample.os_id = (who >> 32) as u32;
    sample.time_ns = words.next()?;
    sample.in_kernel = misc & MODE == MODE_KERNEL;
    let mut in_kernel = true;
    for _ in 0..words.next()? {
        match words.next()? {
            CHAIN_KERNEL => in_kernel = true,
            CHAIN_USER => in_kernel = false,
            mark if mark >= CHAIN_MARKS => {}
            address if in_kernel => sample.kernel.push(address as usize),
            address => sample.chain.push(address as usize),
        }
    }
    let has_registers = words.next()? != 0;
    if has_registers {
        sample.registers = of_perf([words.next()?, words.next()?, words.next()?]);
    }
    let room = words.next()?;
    if room > 0 {
        words.filled(room)?.into_iter().for_each(|part| sample.stack.extend_from_slice(part));
    }
    Some(())
}

/// The address of the start of the kernel's code; `None` if the kernel hides its symbols, without
/// which addresses mean nothing.
pub(crate) fn kernel_start() -> Option<usize> {
    // The symbol is among the first ones; the whole list has several megabytes.
    let symbols = BufReader::new(fs::File::open("/proc/kallsyms").ok()?);
    let line = symbols.lines().take(1000).map_while(Result::ok).find(|line| line.ends_with(" _text"))?;
    usize::from_str_radix(line.split(' ').next()?, 16).ok().filter(|&start| start != 0)
}

/// How strictly the system restricts events for users (`kernel.perf_event_paranoid`).
pub(crate) fn paranoid() -> Option<i32> {
    fs::read_to_string("/proc/sys/kernel/perf_event_paranoid").ok()?.trim().parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_layout_is_the_kernel_s() {
        assert_eq!(size_of::<Attributes>(), 136);
        assert_eq!(std::mem::offset_of!(Attributes, user_registers), 80);
        assert_eq!(std::mem::offset_of!(Attributes, most_frames), 108);
        assert!(odd_period(1_000_000) % 2 == 1 && (1_030_000..1_045_000).contains(&odd_period(1_000_000)));
        // All phases of a loop as long as the interval are hit in turn within the first 27 samples.
        let drift = odd_period(1_000_000) - 1_000_000;
        assert!(drift * 27 > 1_000_000, "{drift}");
        assert_eq!([10_000_000, 1_000_000, 50_000].map(|interval| pages_for(interval, 8 << 10)), [32, 256, 8192]);
        assert!((USUAL_PAGES..=2 * USUAL_PAGES).contains(&pages_for(1_000_000, STACK_BYTES[0])));
        assert_eq!(RING_PAGES[6], LEAST_PAGES);
        // At ten thousand samples a second, 32 KiB of the stack fit with two processors.
        assert_eq!(pages_for(100_000, 32 << 10) / 2, MOST_PAGES / 2);
    }

    /// In a root without `/sys` only the first processor had an event: most samples were missing
    /// without a message.
    #[test]
    fn processors_are_known_without_sys() {
        let read = |path| fs::read_to_string(path).expect("a file of the system");
        let found = processors().expect("the system lists them");
        assert_eq!(processors_in_list(&read("/sys/devices/system/cpu/online")), found);
        assert_eq!(processors_in_counters(&read("/proc/stat")), found);
        assert!(found.len() >= std::thread::available_parallelism().map_or(1, std::num::NonZero::get));
        assert_eq!(processors_in_list("0-2,6\n"), [0, 1, 2, 6]);
        assert_eq!(processors_in_counters("cpu  9 9\ncpu0 4 4\ncpu12 5 5\nintr 7\n"), [0, 12]);
        assert_eq!([processors_in_list(""), processors_in_counters("intr 7\n")], [[]; 2].map(Vec::<i32>::from));
    }

    #[test]
    fn a_thread_that_works_is_sampled_where_it_works() {
        let sample = |wanted| {
            let mut events = PerfEvents::open(wanted)?;
            events.enable(true);
            let started = clrscope_agent_base::os::clock::own_cpu_ns().expect("a clock");
            let mut sum = 0_u64;
            while clrscope_agent_base::os::clock::own_cpu_ns().expect("a clock") < started + 60_000_000 {
                sum = (0..10_000).fold(sum, |sum, number| std::hint::black_box(sum ^ number));
            }
            events.enable(false);
            let (mut samples, mut raw) = (Vec::new(), RawSample::default());
            let lost =
                events.drain(&mut raw, |sample| samples.push((sample.os_id, sample.registers, sample.stack.len())));
            io::Result::Ok((samples, lost))
        };
        let me = clrscope_agent_base::os::threads::thread_id();
        match sample(EventSettings { interval_ns: 1_000_000, kernel: false }) {
            Ok((samples, lost)) => {
                assert!(samples.len() > 20 && lost == 0, "{} samples, {lost} lost", samples.len());
                assert!(
                    samples.iter().all(|(os_id, registers, stack)| *os_id == me && registers.ip != 0 && *stack > 0)
                );
            }
            Err(error) => clrscope_testkit::not_run(&format!("perf events are not to be had here: {error}")),
        }
    }
}
