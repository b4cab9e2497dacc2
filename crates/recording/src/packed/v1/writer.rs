//! Writes a packed recording from first byte to last: without seeking, with little memory.

use std::io::{self, Write};

use super::section::{EVENTS_PREFIX, Head, LAST_PART, kind, pack};
use super::{MAGIC, TRAILER_MAGIC, checksum::checksum, records, tree};
use crate::layout::stack;
use crate::model::{CallTree, Part, Problem, Process, Recording, StackNode, Stacks};

/// Dictionary sections hold about this many bytes, so that damage costs little.
const DICTIONARY_BYTES: usize = 256 << 10;
/// Nodes of the stack table per section, bounded for the same reason.
const STACK_NODES: usize = DICTIONARY_BYTES / stack::BYTES;

/// Progress of writing.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Written {
    pub(crate) threads: u64,
    pub(crate) nodes: u64,
    pub(crate) bytes: u64,
    pub(crate) sections: u64,
}

/// Writes `recording`. `progress` is called after each section.
pub(crate) fn write(
    recording: &Recording,
    out: &mut dyn Write,
    level: i32,
    progress: &mut dyn FnMut(Written),
) -> io::Result<Written> {
    let mut writer = Writer {
        out,
        compressor: zstd::bulk::Compressor::new(level)?,
        index: Vec::new(),
        entries: 0,
        written: Written::default(),
        progress,
    };
    writer.start()?;
    // All dictionaries precede all trees, so that a truncated file still has names and threads.
    writer.run(recording)?;
    for (number, process) in (0..).zip(&recording.processes) {
        writer.process(number, process)?;
    }
    for (number, process) in (0..).zip(&recording.processes) {
        for (item, thread) in (0..).zip(&process.threads) {
            writer.tree(number, item, &thread.tree.load())?;
            writer.written.threads += 1;
        }
    }
    for (number, process) in (0..).zip(&recording.processes) {
        // Thread by thread, because the trees of a thread in all parts differ only in their gains.
        for thread in 0..process.threads.len() as u32 {
            for (item, part) in (0..).zip(&process.parts) {
                writer.part_tree(number, (item, thread), part)?;
            }
        }
    }
    for (number, process) in (0..).zip(&recording.processes) {
        writer.events(number, process)?;
    }
    writer.problems(&recording.late_problems().cloned().collect::<Vec<_>>())?;
    writer.finish()
}

struct Writer<'a> {
    out: &'a mut dyn Write,
    compressor: zstd::bulk::Compressor<'static>,
    index: Vec<u8>,
    entries: u32,
    written: Written,
    progress: &'a mut dyn FnMut(Written),
}

impl Writer<'_> {
    fn bytes(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.out.write_all(bytes)?;
        self.written.bytes += bytes.len() as u64;
        Ok(())
    }

    fn start(&mut self) -> io::Result<()> {
        self.bytes(&MAGIC)?;
        self.bytes(&super::VERSION.to_le_bytes())?;
        self.bytes(&[0; 4])
    }

    fn section(&mut self, head: Head, content: &[u8]) -> io::Result<()> {
        self.section_with(head, &[], content)
    }

    fn section_with(&mut self, mut head: Head, prefix: &[u8], content: &[u8]) -> io::Result<()> {
        let stored = pack(&mut head, prefix, content, &mut self.compressor);
        let encoded = head.encode();
        if head.kind != kind::INDEX {
            self.index.extend_from_slice(&self.written.bytes.to_le_bytes());
            self.index.extend_from_slice(&encoded);
            self.entries = self.entries.saturating_add(1);
        }
        self.bytes(&encoded)?;
        self.bytes(&stored)?;
        self.bytes(&[0; 8][..stored.len().next_multiple_of(8) - stored.len()])?;
        self.written.sections += 1;
        (self.progress)(self.written);
        Ok(())
    }

    /// Writes a table as one or several sections; writes nothing for an empty table.
    fn table<T>(&mut self, head: Head, items: &[T], put: impl Fn(&mut Vec<u8>, &T)) -> io::Result<()> {
        let mut content = Vec::new();
        let mut first = 0;
        for (at, item) in items.iter().enumerate() {
            put(&mut content, item);
            if content.len() >= DICTIONARY_BYTES || at + 1 == items.len() {
                let (item, count) = (first as u32, (at + 1 - first) as u32);
                self.section(Head { item, count, ..head }, &content)?;
                content.clear();
                first = at + 1;
            }
        }
        Ok(())
    }

    fn run(&mut self, recording: &Recording) -> io::Result<()> {
        let mut content = Vec::new();
        records::put(&mut content, &recording.run);
        self.section(Head { kind: kind::RUN, count: 1, ..Head::default() }, &content)?;
        self.problems(&recording.problems)
    }

    fn problems(&mut self, problems: &[Problem]) -> io::Result<()> {
        let head = Head { kind: kind::PROBLEMS, ..Head::default() };
        self.table(head, problems, records::put)
    }

    fn process(&mut self, number: u32, process: &Process) -> io::Result<()> {
        let mut content = Vec::new();
        records::put_process(&mut content, process);
        let head = Head { process: number, ..Head::default() };
        self.section(Head { kind: kind::PROCESS, count: 1, ..head }, &content)?;
        self.table(Head { kind: kind::MODULES, ..head }, &process.modules, records::put)?;
        self.table(Head { kind: kind::FUNCTIONS, ..head }, &process.functions, records::put)?;
        self.table(Head { kind: kind::OBJECT_TYPES, ..head }, &process.types, records::put)?;
        self.table(Head { kind: kind::THREADS, ..head }, &process.threads, records::put)?;
        self.table(Head { kind: kind::REMARKS, ..head }, &process.remarks, records::put)?;
        self.table(Head { kind: kind::NATIVE_SYMBOLS, ..head }, &process.native_symbols, records::put)?;
        self.table(Head { kind: kind::COVERAGE_PLANS, ..head }, &process.coverage_plans, records::put)?;
        self.stacks(Head { kind: kind::STACKS, ..head }, &process.stacks)
    }

    fn stacks(&mut self, head: Head, stacks: &Stacks) -> io::Result<()> {
        for (item, nodes) in stacks.pieces(STACK_NODES) {
            let content: Vec<u8> = nodes.iter().flat_map(StackNode::words).flat_map(u32::to_le_bytes).collect();
            self.section(Head { item, count: nodes.len() as u32, ..head }, &content)?;
        }
        Ok(())
    }

    /// Writes a thread's tree of one part of the recording; writes nothing if the tree gained
    /// nothing in that part.
    fn part_tree(&mut self, process: u32, (item, thread): (u32, u32), of: &Part) -> io::Result<()> {
        let tree = of.trees.of_thread(thread).map(|tree| tree.load()).filter(|tree| !tree.is_empty());
        let Some(tree) = tree else { return Ok(()) };
        let mut part = 0;
        tree::encode(&tree, |content, count, last| {
            let mark = if last { LAST_PART } else { 0 };
            let head = Head { kind: kind::PART_TREE, process, item, part: part | mark, count, ..Head::default() };
            part += 1;
            self.section_with(head, &thread.to_le_bytes(), content)
        })
    }

    fn tree(&mut self, process: u32, item: u32, tree: &CallTree) -> io::Result<()> {
        let mut part = 0;
        tree::encode(tree, |content, count, last| {
            let mark = if last { LAST_PART } else { 0 };
            let head = Head { kind: kind::TREE, process, item, part: part | mark, count, ..Head::default() };
            part += 1;
            self.written.nodes += u64::from(count);
            self.section(head, content)
        })
    }

    fn events(&mut self, process: u32, from: &Process) -> io::Result<()> {
        for (item, arena) in (0..).zip(&from.events) {
            for (part, chunk) in (0..).zip(&arena.chunks) {
                let mut prefix = [0; EVENTS_PREFIX];
                prefix[..4].copy_from_slice(&chunk.thread.to_le_bytes());
                prefix[4..].copy_from_slice(&chunk.sequence.to_le_bytes());
                let head = Head { kind: kind::EVENTS, process, item, part, count: 1, ..Head::default() };
                self.section_with(head, &prefix, &chunk.bytes.load())?;
            }
        }
        Ok(())
    }

    fn finish(mut self) -> io::Result<Written> {
        let at = self.written.bytes;
        let index = std::mem::take(&mut self.index);
        self.section(Head { kind: kind::INDEX, count: self.entries, ..Head::default() }, &index)?;
        let mut trailer = at.to_le_bytes().to_vec();
        trailer.extend_from_slice(&(self.written.bytes - at).to_le_bytes());
        trailer.extend_from_slice(&checksum(&trailer).to_le_bytes());
        trailer.extend_from_slice(&TRAILER_MAGIC);
        self.bytes(&trailer)?;
        self.out.flush()?;
        Ok(self.written)
    }
}
