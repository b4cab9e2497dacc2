//! Entry points for fuzzing, and a runner for machines without a nightly compiler.
//!
//! A target takes any bytes and must neither panic, nor hang, nor take much memory. `fuzz/` runs
//! the targets under libFuzzer. [`soak`] feeds them randomly mutated seed inputs, the same inputs
//! each time for the same seed number.

use std::fs;
use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use super::heap::HandmadeHeap;
use super::instruments::event_records as records_of;
use super::mutate::{lie, mutate};
use super::samples::HandSampled;
use super::synthetic::{Numbers, Shape, segment_header, segments, trim, write_directory};
use crate::events::{Encoder, EntityRef, Kind, Records, Value};
use crate::layout::{HEADER_BYTES, kind};
use crate::model::{Clock, HeapGeneration, HeapType, MethodHits, Recording, RootKind, Sample, ThreadRole, ThreadState};
use crate::packed::from_bytes as read_packed;
use clrscope_contract::request::Request;

/// The part of the readers that a fuzz target runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Target {
    /// [`open_packed`].
    OpenPacked,
    /// [`open_directory`]: the reader and the packer.
    OpenDirectory,
    /// [`request`].
    Request,
    /// [`event_records`].
    EventRecords,
}

impl Target {
    /// All targets.
    pub const ALL: [Self; 4] = [Self::OpenPacked, Self::OpenDirectory, Self::Request, Self::EventRecords];

    /// Name of the fuzz target.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::OpenPacked => "open_packed",
            Self::OpenDirectory => "open_directory",
            Self::Request => "request",
            Self::EventRecords => "event_records",
        }
    }

    /// Runs the target once.
    pub fn run(self, bytes: &[u8]) {
        match self {
            Self::OpenPacked => open_packed(bytes),
            Self::OpenDirectory => open_directory(bytes),
            Self::Request => request(bytes),
            Self::EventRecords => event_records(bytes),
        }
    }
}

/// Reads all contents of a packed recording.
pub fn open_packed(bytes: &[u8]) {
    if let Ok(recording) = read_packed(Path::new("fuzzed.clrs"), bytes) {
        load_all(&recording);
    }
}

/// Reads a recording directory whose files are made from `bytes` (see [`directory_to_bytes`]) and
/// packs the recording. The packed file must have the same contents.
pub fn open_directory(bytes: &[u8]) {
    let Ok(folder) = Scratch::new() else { return };
    if write_files(&folder.0, bytes).is_ok()
        && let Ok(recording) = crate::open(&folder.0)
    {
        let nodes = load_all(&recording);
        let mut packed = Vec::new();
        let report = crate::pack::write(&recording, &mut packed).ok();
        assert_eq!(report.map(|report| report.nodes), Some(nodes as u64), "memory takes everything");
        let again = read_packed(Path::new("packed.clrs"), &packed);
        assert_eq!(format!("{:?}", again.ok()), format!("{:?}", Some(recording)), "nothing is lost by packing");
        open_periods(&folder.0);
    }
}

/// Reads all contents of some periods of a recording directory.
pub fn open_periods(folder: &Path) {
    let so_far = crate::written_periods(folder);
    for number in [1, so_far.last_written().number, so_far.ended.number, u32::MAX] {
        let end = crate::EndOfPeriod { number, mono_ns: u64::MAX };
        let period = crate::Period::new(end, &so_far.written, &|_| true);
        if let Ok(recording) = crate::open_period(folder, &period) {
            load_all(&recording);
        }
    }
}

/// Parses a request; if it is valid, also parses its full form.
pub fn request(bytes: &[u8]) {
    let text = String::from_utf8_lossy(bytes);
    if let Ok(request) = Request::parse(&text) {
        assert_eq!(Request::parse(&request.to_string()), Ok(request), "a request that is written out reads the same");
    }
}

/// Reads a chunk of `events` or `exceptions`. Each record must read the same after it is written
/// again.
pub fn event_records(bytes: &[u8]) {
    let mut buffer = vec![0; Encoder::MOST];
    for record in Records::new(bytes) {
        let fields: Vec<_> = record.fields().collect();
        std::hint::black_box((record.phase(), record.kind.name()));
        let mut encoder = Encoder::new(&mut buffer, record.kind, record.time_ns);
        fields.iter().for_each(|field| _ = encoder.put(*field));
        let (written, is_whole) = encoder.finish();
        if is_whole {
            let again = Records::new(written).next().map(|again| (again.kind, again.time_ns));
            assert_eq!(again, Some((record.kind, record.time_ns)));
            let read: Vec<_> = Records::new(written).flat_map(|again| again.fields().collect::<Vec<_>>()).collect();
            // Fields that say nothing are left out.
            let says_nothing = |value| matches!(value, Value::Text("") | Value::Entity(EntityRef { id: 0, index: 0 }));
            let said: Vec<_> = fields.into_iter().filter(|field| !says_nothing(field.value)).collect();
            assert_eq!(read, said, "a record that is written out reads the same");
        }
    }
}

/// Loads all events, stacks and trees. Returns the number of nodes of all trees.
pub fn load_all(recording: &Recording) -> usize {
    let chunks = recording.processes.iter().flat_map(|process| &process.events).flat_map(|arena| &arena.chunks);
    chunks.for_each(|chunk| {
        let bytes = chunk.bytes.load();
        std::hint::black_box((Sample::all(&bytes).count(), MethodHits::all(&bytes).count()));
    });
    for process in &recording.processes {
        for number in 0..=process.stacks.len() as u32 {
            std::hint::black_box((process.stacks.frames(number).count(), process.stacks.is_cut(number)));
        }
    }
    let threads = recording.processes.iter().flat_map(|process| &process.threads);
    threads.map(|thread| thread.tree.load().len()).sum()
}

/// A private folder that is removed when dropped.
struct Scratch(std::path::PathBuf);

impl Scratch {
    fn new() -> io::Result<Self> {
        static NEXT: AtomicU64 = AtomicU64::new(0);
        let shared = Path::new("/dev/shm");
        let base = if shared.is_dir() { shared.to_owned() } else { std::env::temp_dir() };
        let name = format!("clrscope-fuzz-{}-{}", std::process::id(), NEXT.fetch_add(1, Ordering::Relaxed));
        let folder = base.join(name);
        fs::create_dir(&folder)?;
        Ok(Self(folder))
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        // A folder that can't be removed stays: the failure can't be reported here.
        let _ = fs::remove_dir_all(&self.0);
    }
}

/// The files of a directory that can be fuzzed, by number.
const FILES: [(&str, u32); 18] = [
    ("run.log", kind::LOG),
    ("p7-1/process.log", kind::LOG),
    ("p7-1/state.seg", kind::STATE),
    ("p7-1/threads.seg", kind::THREADS),
    ("p7-1/tree.seg", kind::TREE),
    ("p7-1/times.seg", kind::TIMES),
    ("p7-1/events-flow.seg", kind::EVENTS),
    ("refused-9.txt", kind::LOG),
    ("p7-1/events-flow-types.seg", kind::EVENTS),
    ("p7-1/events-events.seg", kind::EVENTS),
    ("p7-1/events-exceptions.seg", kind::EVENTS),
    ("p7-1/stacks.seg", kind::STACKS),
    ("p7-1/events-cpu.seg", kind::EVENTS),
    ("p7-1/events-wall.seg", kind::EVENTS),
    ("p7-1/events-coverage.seg", kind::EVENTS),
    ("p7-1/events-probes.seg", kind::EVENTS),
    ("p7-1/events-probe-lines.seg", kind::EVENTS),
    ("p7-1/events-probe-callers.seg", kind::EVENTS),
];

/// A process's recording directory as bytes for [`open_directory`]. Each file has its file number
/// (a byte), a `u32` length and the content. If 128 is added to the number, the content includes
/// the file's first page; otherwise the fuzz target makes a valid one.
///
/// # Errors
/// Errors of reading files.
pub fn directory_to_bytes(folder: &Path) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    for path in segments(folder)? {
        let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        let Some(number) = FILES.iter().position(|(file, _)| file.ends_with(&name)) else { continue };
        let content = fs::read(&path)?;
        let content = content.get(HEADER_BYTES..).unwrap_or(&[]);
        bytes.push(number as u8);
        bytes.extend_from_slice(&(content.len() as u32).to_le_bytes());
        bytes.extend_from_slice(content);
    }
    Ok(bytes)
}

fn write_files(folder: &Path, mut bytes: &[u8]) -> io::Result<()> {
    fs::create_dir(folder.join("p7-1"))?;
    while let Some((&[which, a, b, c, d], rest)) = bytes.split_first_chunk() {
        let length = (u32::from_le_bytes([a, b, c, d]) as usize).min(rest.len());
        let (content, rest) = rest.split_at(length);
        bytes = rest;
        let (name, kind) = FILES[usize::from(which & 127) % FILES.len()];
        let mut file = if which < 128 { segment_header(kind, content.len()) } else { Vec::new() };
        file.extend_from_slice(content);
        fs::write(folder.join(name), file)?;
    }
    Ok(())
}

/// Valid inputs as seeds.
///
/// # Errors
/// Errors of writing files.
pub fn seeds(target: Target) -> io::Result<Vec<Vec<u8>>> {
    if target == Target::Request {
        let texts = [
            "calls",
            "calls:clock=tsc,noinline,native=on,helpers=on,trivial=off,max=512MiB",
            "calls:clock=sampled;flow:args=types;events",
            "calls;rate=500;include=[App]Shop.*::Pay;exclude=System.*;out=/tmp/x y.clrs.d;duration=1m30s",
        ];
        return Ok(texts.map(|text| text.as_bytes().to_vec()).to_vec());
    }
    if target == Target::EventRecords {
        let few = [Kind::NAME, Kind(250)];
        return Ok(vec![records_of(Kind::all()), records_of(few.into_iter())]);
    }
    let mut found = Vec::new();
    for clock in [Clock::Sampled, Clock::Tsc] {
        let folder = Scratch::new()?;
        let name = folder.0.join("seed.clrs.d");
        let shape = Shape { tree_bytes: 24 << 10, threads: 3, functions: 30, clock, steps_per_look: 5 };
        write_directory(&name, &shape)?;
        trim(&name)?;
        if target == Target::OpenDirectory {
            found.push(directory_to_bytes(&name)?);
        } else {
            let recording = crate::open(&name).map_err(|error| io::Error::other(error.to_string()))?;
            let mut packed = Vec::new();
            crate::pack::write(&recording, &mut packed)?;
            found.push(packed);
        }
    }
    Ok(found)
}

/// A packed recording with samples and a heap snapshot that has all kinds of objects, roots and
/// references. It is too small for tests that bound memory by the size of the file.
///
/// # Errors
/// Errors of writing.
pub fn heap_seed() -> io::Result<Vec<u8>> {
    let mut packed = Vec::new();
    crate::pack::write(&heap_and_samples(), &mut packed)?;
    Ok(packed)
}

fn heap_and_samples() -> Recording {
    let mut sampled = HandSampled::default();
    let main = sampled.thread("main", ThreadRole::Main);
    for step in 0..40 {
        sampled.cpu(main, step, "App::Main > App.Cart::Total > System.String::Concat > libc.so!memcpy");
        sampled.wall(main, 50 + step, "App::Main > System.Threading.Thread::Sleep").state = ThreadState::Sleeping;
    }
    let mut recording = sampled.recording();
    let mut heap = HandmadeHeap::default();
    let statics = heap.array("object[]", 8, &[""]);
    let list = heap.class("System.Collections.Generic.List<Shop.Order>", 32, &["_items"]);
    let array = heap.array("Shop.Order[]", 8, &[""]);
    let order = heap.class("Shop.Order", 400, &["Previous"]);
    let text = heap.with_content("string", HeapType::STRING);
    let (of_statics, of_list, of_array) = (heap.object(statics, 1), heap.object(list, 0), heap.object(array, 20));
    heap.root(RootKind::PinnedHandle, of_statics, 0, 0);
    heap.static_field(of_statics, 0, "Shop.Program.orders", 0);
    heap.refer(of_statics, 0, of_list);
    heap.refer(of_list, 0, of_array);
    for at in 0..20 {
        let (one, name) = (heap.object(order, 0), heap.object_with(text, 5, at % 3));
        heap.refer(of_array, at, one);
        heap.refer(one, 0, name);
    }
    heap.awaits_at(of_list, 0, 0x600_0001, 7);
    heap.row(HeapGeneration::Large);
    let (key, value) = (heap.object(order, 0), heap.object(order, 0));
    heap.root(RootKind::Stack, key, main, 1);
    heap.dependent(key, value);
    heap.add_to(&mut recording.processes[0]);
    recording
}

/// Results of a soak.
#[derive(Debug, Clone)]
pub struct SoakResults {
    /// Inputs tried.
    pub inputs: u64,
    /// The longest time that an input took.
    pub slowest: Duration,
    /// The input on which `run` panicked; `None` if it did not. The number of this input is
    /// `inputs`, also in another run with the same seed.
    pub failure: Option<Vec<u8>>,
}

/// Hands mutated seeds of a target to `run` for `time`, or until it panics.
///
/// # Errors
/// Errors of making the seeds.
pub fn soak(target: Target, seed: u64, time: Duration, run: impl Fn(&[u8])) -> io::Result<SoakResults> {
    let change = |input: &mut Vec<u8>, numbers: &mut Numbers| {
        if target == Target::OpenPacked && numbers.below(2) == 0 {
            *input = lie(input, numbers);
        }
    };
    Ok(soak_seeds(&seeds(target)?, change, seed, time, run))
}

/// Like [`soak`], with the caller's own valid inputs as `seeds`. `change` may alter each input
/// before its bytes are mutated.
///
/// # Panics
/// When there is no seed, or a seed is empty.
pub fn soak_seeds(
    seeds: &[Vec<u8>],
    change: impl Fn(&mut Vec<u8>, &mut Numbers),
    seed: u64,
    time: Duration,
    run: impl Fn(&[u8]),
) -> SoakResults {
    let mut numbers = Numbers::new(seed);
    let started = Instant::now();
    let mut soaked = SoakResults { inputs: 0, slowest: Duration::ZERO, failure: None };
    while started.elapsed() < time {
        let mut input = seeds[numbers.below(seeds.len())].clone();
        change(&mut input, &mut numbers);
        if numbers.below(4) > 0 {
            mutate(&mut input, &mut numbers);
        }
        soaked.inputs += 1;
        let begun = Instant::now();
        if catch_unwind(AssertUnwindSafe(|| run(&input))).is_err() {
            soaked.failure = Some(input);
            return soaked;
        }
        soaked.slowest = soaked.slowest.max(begun.elapsed());
    }
    soaked
}
