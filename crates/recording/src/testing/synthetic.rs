//! Recording directories of any size, as a long run of a made-up program would leave them.
//!
//! Blocks are filled as hooks fill them: threads take turns, walk up and down a call graph, and
//! allocate a new block when they take a path for the first time. So a tree's blocks lie in the
//! order of first calls, scattered between those of other threads.

use std::collections::HashMap;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use crate::layout::{HEADER_BYTES, MAGIC, VERSION, block, function, header, kind, thread, time};
use crate::model::{
    BoundaryKind, CallsInfo, Clock, Exit, Function, HookCost, LossReason, Module, PairCost, PartBoundary, Sampler,
    SamplingEngine, ThreadRole,
};
use crate::writer::{ProcessRecord, ProcessWriter, RunWriter, monotonic_ns};

/// Options of `new`.
#[derive(Debug, Clone, Copy)]
pub struct Shape {
    /// Bytes of tree blocks, below 4 GiB.
    pub tree_bytes: usize,
    /// Threads.
    pub threads: usize,
    /// Functions of the program.
    pub functions: u32,
    /// The clock, which decides the size of a block.
    pub clock: Clock,
    /// Steps of the program between two samples.
    pub steps_per_look: u32,
}

impl Default for Shape {
    fn default() -> Self {
        Self { tree_bytes: 1 << 20, threads: 20, functions: 20_000, clock: Clock::Sampled, steps_per_look: 40 }
    }
}

/// Makes the recording directory `folder`, which must not exist.
///
/// # Errors
/// Errors of writing files.
pub fn write_directory(folder: &Path, shape: &Shape) -> io::Result<()> {
    write_with(folder, shape, |_| ())
}

/// Like [`write_directory`], but the recording consists of three periods.
///
/// # Errors
/// Errors of writing files.
pub fn write_directory_in_periods(folder: &Path, shape: &Shape) -> io::Result<()> {
    write_with(folder, shape, |writer| {
        let mut gains = writer.gains();
        for number in 1..=3 {
            for slot in 0..4 {
                gains.calls(block::edge_id(64, slot), number, number + slot);
                gains.times(block::edge_id(64, slot), 10, 5);
            }
            let (name, mono_ns) = (number.to_string(), monotonic_ns());
            let number = gains.end_boundary();
            writer.part_boundary(&PartBoundary { mono_ns, kind: BoundaryKind::Cut, name, number });
            gains.begin_another();
        }
    })
}

fn write_with(folder: &Path, shape: &Shape, write_more: impl FnOnce(&ProcessWriter)) -> io::Result<()> {
    let run = RunWriter::create(folder, &["synthetic".to_owned()], "calls", 1_000_000_000)?;
    let process = ProcessRecord { pid: 7, mono_ns: monotonic_ns(), unix_ns: 1, ..ProcessRecord::default() };
    let writer = ProcessWriter::create(folder, &process)?;
    writer.calls(&CallsInfo { clock: shape.clock, interval_ns: 1_000_000, ..CallsInfo::default() });
    writer.module(1, Module { name: "App".to_owned(), ..Module::default() });
    for index in 0..shape.functions {
        let name = format!("Made.Up.Namespace{}.Class{}::Method{index}", index % 50, index % 2_000);
        let signature = format!("{name}(System.Int32, System.Collections.Generic.List<System.String>)");
        let made = Function { raw_name: name.clone(), name, signature, module: 1, ..Function::default() };
        writer.function(function::FIRST + index, made);
    }
    write_remarks(&writer, shape);
    let mut program = Program::new(shape);
    program.run(shape.tree_bytes);
    program.store(&writer)?;
    super::instruments::write_events(&writer)?;
    super::instruments::write_stacks(&writer)?;
    super::instruments::write_types(&writer);
    write_more(&writer);
    writer.state().alive(monotonic_ns(), 1 << 40, 5);
    writer.state().ended();
    run.ended(7, Exit::Code(0));
    Ok(())
}

/// A log record of each kind that is not a module or a function.
fn write_remarks(writer: &ProcessWriter, shape: &Shape) {
    let cost = HookCost { enter_ns: 1.0, leave_ns: 1.5, pair_low_ns: 2.0, pair_high_ns: 4.5 };
    writer.instruments("calls", "calls:clock=sampled");
    writer.hook_cost(&cost);
    for number in (0..shape.functions.min(4)).rev() {
        let (caller, callee) = (function::FIRST + number, function::FIRST);
        writer.pair_cost(&PairCost { caller, callee, cost });
    }
    writer.thread_name(1, "main", Some(ThreadRole::Main));
    writer.thread_name(2, "a worker", None);
    writer.note(monotonic_ns(), "something worth knowing");
    let engine = SamplingEngine::Timer;
    writer.sampler(&Sampler { instrument: "cpu".to_owned(), engine, interval_ns: 1_000_000, ..Sampler::default() });
    writer.pattern_matched("include=App.*");
    writer.near_name("exclude=Mtehod", "App::Method");
    writer.function_unloaded(function::FIRST);
    writer.carry_in_hook(block::edge_id(64, 0));
    for reason in [LossReason::NameUnknown, LossReason::EventDropped, LossReason::Stopped] {
        writer.state().lose(reason, 3, monotonic_ns());
    }
}

/// Truncates every segment after the last written byte, so that the files are small.
///
/// # Errors
/// Errors of reading and cutting files.
pub fn trim(folder: &Path) -> io::Result<()> {
    for path in segments(folder)? {
        let bytes = fs::read(&path)?;
        let used = bytes.iter().rposition(|&byte| byte != 0).map_or(0, |last| last + 1);
        // The last record may end in zeros of its own.
        let kept = (used.max(HEADER_BYTES).next_multiple_of(64) + 64).min(bytes.len());
        let file = fs::File::options().write(true).open(&path)?;
        file.set_len(kept as u64)?;
        let committed = (kept - HEADER_BYTES) as u64;
        std::os::unix::fs::FileExt::write_all_at(&file, &committed.to_le_bytes(), header::COMMITTED as u64)?;
    }
    Ok(())
}

/// All files of a recording directory, in the order of their names.
///
/// # Errors
/// Errors of reading folders.
pub fn segments(folder: &Path) -> io::Result<Vec<PathBuf>> {
    let mut found = Vec::new();
    for entry in fs::read_dir(folder)? {
        let path = entry?.path();
        if path.is_dir() {
            found.extend(segments(&path)?);
        } else {
            found.push(path);
        }
    }
    found.sort();
    Ok(found)
}

/// A small pseudo-random number generator: one seed always gives the same numbers.
#[derive(Debug, Clone)]
pub struct Numbers(u64);

impl Numbers {
    /// Numbers that depend only on `seed`.
    #[must_use]
    pub fn new(seed: u64) -> Self {
        Self(seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1)
    }

    /// The next number.
    #[expect(clippy::should_implement_trait, reason = "numbers without end are no iterator to loop over")]
    pub fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0.wrapping_mul(0x2545_F491_4F6C_DD1D)
    }

    /// A number below `below`; 0 if `below` is 0.
    pub fn below(&mut self, below: usize) -> usize {
        (self.next() % below.max(1) as u64) as usize
    }

    /// A number below `below`, small ones more often.
    fn skewed(&mut self, below: u64) -> u64 {
        let (a, b) = (self.next() >> 32, self.next() >> 32);
        (((a * b) >> 32) * below) >> 32
    }
}

struct Walker {
    root: u32,
    blocks: u32,
    free: u32,
    end: u32,
    piece: u32,
    /// Block and slot of each edge on the stack, and its function.
    stack: Vec<(u32, usize, u32)>,
}

struct Program {
    arena: Vec<u8>,
    stride: usize,
    functions: u64,
    numbers: Numbers,
    walkers: Vec<Walker>,
    times: HashMap<u32, u64>,
    steps_per_look: u32,
}

const DEEPEST: usize = 70;
const FIRST_PIECE: u32 = 4 << 10;
const LARGEST_PIECE: u32 = 256 << 10;
const TURN: usize = 5_000;

impl Program {
    fn new(shape: &Shape) -> Self {
        let tsc = shape.clock == Clock::Tsc;
        let stride = if tsc { block::STRIDE_TSC } else { block::STRIDE_SAMPLED };
        let mut program = Self {
            arena: vec![0; FIRST_PIECE as usize],
            stride,
            functions: u64::from(shape.functions.max(1)),
            numbers: Numbers::new(1),
            walkers: Vec::new(),
            times: HashMap::new(),
            steps_per_look: if tsc { u32::MAX } else { shape.steps_per_look.max(1) },
        };
        for _ in 0..shape.threads.max(1) {
            program.walkers.push(Walker { root: 0, blocks: 0, free: 0, end: 0, piece: 0, stack: Vec::new() });
            let at = program.walkers.len() - 1;
            let root = program.new_block(at);
            program.put(root, block::KEYS, block::ROOT_KEY);
            program.walkers[at].root = root;
            program.walkers[at].stack.push((root, 0, 0));
        }
        program
    }

    fn run(&mut self, bytes: usize) {
        let bytes = bytes.min((4 << 30) - (LARGEST_PIECE as usize) * 2);
        self.arena.reserve_exact(bytes + LARGEST_PIECE as usize);
        let mut turn = 0;
        while self.arena.len() < bytes {
            let walker = turn % self.walkers.len();
            for step in 0..TURN {
                self.step(walker, step as u32);
                if self.arena.len() >= bytes {
                    break;
                }
            }
            turn += 1;
        }
    }

    fn step(&mut self, walker: usize, step: u32) {
        let stack = &mut self.walkers[walker].stack;
        let depth = stack.len();
        // The deeper, the more likely a return.
        if depth > 1 && (self.numbers.next() % DEEPEST as u64) < depth as u64 / 2 + 12 || depth >= DEEPEST {
            stack.pop();
            return;
        }
        let &(at, slot, caller) = &stack[depth - 1];
        // Each function has up to 24 callees, some called far more often than others.
        let many = 2 + u64::from(caller.wrapping_mul(2_654_435_761) >> 27) % 23;
        let which = self.numbers.skewed(many);
        let callee = (u64::from(caller) * 31 + which * 7_919 + which * which * 104_729) % self.functions;
        let callee = function::FIRST + callee as u32;
        let (at, slot) = self.enter(walker, at, slot, callee);
        self.walkers[walker].stack.push((at, slot, callee));
        if self.stride == block::STRIDE_TSC {
            let ticks = self.numbers.next() >> 54;
            let field = at as usize + block::TICKS + slot * 8;
            let before = crate::layout::u64_at(&self.arena, field);
            self.arena[field..field + 8].copy_from_slice(&(before + ticks).to_le_bytes());
        } else if step.is_multiple_of(self.steps_per_look) {
            *self.times.entry(block::edge_id(at, slot as u32)).or_default() += 1_000_000 + (self.numbers.next() >> 46);
        }
    }

    /// Counts one more call on the edge from the edge at `at`, `slot` to `callee`, and returns the
    /// edge's place.
    fn enter(&mut self, walker: usize, at: u32, slot: usize, callee: u32) -> (u32, usize) {
        let mut block_at = self.get(at, block::CHILDREN + slot * 4);
        if block_at == 0 {
            block_at = self.new_block(walker);
            self.put(at, block::CHILDREN + slot * 4, block_at);
        }
        loop {
            for slot in 0..block::EDGES {
                let key = self.get(block_at, block::KEYS + slot * 4);
                if key == callee || key == 0 {
                    let mark = u32::from(key == 0 && callee.is_multiple_of(19)) << slot;
                    let next = self.get(block_at, block::NEXT);
                    self.put(block_at, block::NEXT, next | mark);
                    self.put(block_at, block::KEYS + slot * 4, callee);
                    let count = self.get(block_at, block::COUNTS + slot * 4);
                    self.put(block_at, block::COUNTS + slot * 4, count + 1);
                    return (block_at, slot);
                }
            }
            let next = self.get(block_at, block::NEXT);
            if next & block::OFFSET != 0 {
                block_at = next & block::OFFSET;
            } else {
                let new = self.new_block(walker);
                self.put(block_at, block::NEXT, next | new);
                block_at = new;
            }
        }
    }

    fn new_block(&mut self, walker: usize) -> u32 {
        let walker = &mut self.walkers[walker];
        if walker.free == walker.end {
            walker.piece = (walker.piece * 2).clamp(FIRST_PIECE, LARGEST_PIECE);
            walker.free = self.arena.len() as u32;
            walker.end = walker.free + walker.piece;
            self.arena.resize(walker.end as usize, 0);
        }
        walker.free += self.stride as u32;
        walker.blocks += 1;
        walker.free - self.stride as u32
    }

    fn get(&self, at: u32, field: usize) -> u32 {
        crate::layout::u32_at(&self.arena, at as usize + field)
    }

    fn put(&mut self, at: u32, field: usize, value: u32) {
        let from = at as usize + field;
        self.arena[from..from + 4].copy_from_slice(&value.to_le_bytes());
    }

    fn store(&self, writer: &ProcessWriter) -> io::Result<()> {
        use std::sync::atomic::Ordering::Relaxed;
        write_segment(&writer.folder().join("tree.seg"), kind::TREE, &self.arena)?;
        let mut records = Vec::with_capacity(self.times.len() * time::BYTES);
        let mut times: Vec<_> = self.times.iter().collect();
        // Records stand in the order of first visits, which is no order of edges.
        times.sort_by_key(|(edge, _)| edge.wrapping_mul(2_654_435_761));
        for (&edge, &wall) in times {
            records.extend_from_slice(&edge.to_le_bytes());
            records.extend_from_slice(&1_u32.to_le_bytes());
            for value in [wall, wall / 2, 1] {
                records.extend_from_slice(&value.to_le_bytes());
            }
        }
        write_segment(&writer.folder().join("times.seg"), kind::TIMES, &records)?;
        for walker in &self.walkers {
            writer.threads().keep_ahead();
            let Some(record) = writer.threads().allocate_record(monotonic_ns()) else {
                return Err(io::ErrorKind::OutOfMemory.into());
            };
            record.u32(thread::ROOT).store(walker.root, Relaxed);
            record.u32(thread::BLOCKS).store(walker.blocks, Relaxed);
            record.u64(thread::CREATED).store(monotonic_ns(), Relaxed);
        }
        Ok(())
    }
}

/// Writes a segment that no process has mapped.
fn write_segment(path: &Path, kind: u32, content: &[u8]) -> io::Result<()> {
    let mut file = fs::File::create(path)?;
    io::Write::write_all(&mut file, &segment_header(kind, content.len()))?;
    io::Write::write_all(&mut file, content)
}

/// Header of a segment with `content` bytes.
pub(super) fn segment_header(kind: u32, content: usize) -> Vec<u8> {
    let mut head = vec![0; HEADER_BYTES];
    head[..MAGIC.len()].copy_from_slice(&MAGIC);
    head[header::KIND..header::KIND + 4].copy_from_slice(&kind.to_le_bytes());
    head[header::VERSION..header::VERSION + 4].copy_from_slice(&VERSION.to_le_bytes());
    head[header::COMMITTED..header::COMMITTED + 8].copy_from_slice(&(content as u64).to_le_bytes());
    head
}
