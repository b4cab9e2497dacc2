//! Assembles a recording from sections.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::batch;
use super::index::{Section, find};
use super::section::{EVENTS_PREFIX, LAST_PART, kind};
use super::tree::{Decoder, LEAST_NODE};
use crate::codec::{Field, decode};
use crate::layout::{u32_at, u64_at};
use crate::log_records::LogRecords;
use crate::model::{
    AllocationSampling, ByteSource, CallTree, CallsInfo, CoveragePlan, EntryAssembly, EventArena, EventBytes,
    EventChunk, Function, FunctionKind, HeapSnapshot, Identity, Loss, LossReason, Module, NativeSymbol, ObjectType,
    OwnMemory, Part, PartTrees, Problem, Process, Recording, Remark, RemarkKind, Run, Sampler, Thread, TreeSource,
};
use crate::packed::Source;
use crate::parallel::both;
use crate::payload::PayloadReader;
use crate::records::{Arena, InFile, MatchedPatterns};

/// Maximum number of listed problems of one kind; further ones are only counted.
const MOST_PROBLEMS: usize = 1_000;

/// Reads all readable data. Dictionaries are decoded; trees are checked but not decoded.
pub(crate) fn read(source: Arc<Source>) -> Recording {
    let found = find(&source);
    let mut assembly = Assembly { source, ..Assembly::default() };
    for what in found.problems {
        assembly.problem("file", what);
    }
    let source = Arc::clone(&assembly.source);
    let read = |sections: &[Section]| batch::examined(sections, |section| Body::read(&source, section));
    let are_many = batch::are_many(&found.sections);
    let (mut together, mut rest) = batch::first(&found.sections);
    let mut bodies = read(together);
    while !together.is_empty() {
        let (next, behind) = batch::first(rest);
        let take = || together.iter().zip(bodies).for_each(|(section, body)| assembly.add_section(section, body));
        bodies = if are_many {
            both(|| read(next), take).0
        } else {
            take();
            read(next)
        };
        (together, rest) = (next, behind);
    }
    assembly.finish()
}

/// The part of a section that is read when a recording is opened.
enum Body {
    /// The whole content.
    Content(Vec<u8>),
    /// The bytes before the content; the content is not read.
    Prefix([u8; EVENTS_PREFIX]),
}

impl Body {
    /// Reads a section and verifies its checksum.
    fn read(source: &Source, section: &Section) -> Result<Self, String> {
        let head = &section.head;
        let mut stored = Vec::new();
        source.read(section.body(), head.stored, &mut stored).map_err(|error| format!("can't be read: {error}"))?;
        if !head.vouches_for(&stored) {
            return Err("is damaged: its checksum is wrong".to_owned());
        }
        if matches!(head.kind, kind::TREE | kind::PART_TREE | kind::EVENTS) {
            let mut prefix = [0; EVENTS_PREFIX];
            let known = stored.get(..head.prefix()).ok_or("is too short")?;
            prefix[..known.len()].copy_from_slice(known);
            return Ok(Self::Prefix(prefix));
        }
        Ok(Self::Content(head.unpack(&stored)?))
    }
}

#[derive(Default)]
struct Assembly {
    source: Arc<Source>,
    recording: Recording,
    processes: BTreeMap<u32, Parts>,
    /// Problems of this file, as opposed to the problems that it lists.
    problems: Vec<Problem>,
    unlisted: usize,
}

/// The parts of a process found so far.
#[derive(Default)]
struct Parts {
    process: Process,
    /// Ends of the last sections of functions, modules, threads and types: they limit how many
    /// entries may be missing.
    ends: [u64; 4],
    trees: BTreeMap<u32, Vec<Section>>,
    tree_sections: usize,
    /// Sections of the trees of parts, by part of the recording and thread.
    part_trees: BTreeMap<(u32, u32), Vec<Section>>,
    /// Whether the first remark was written before remarks had kinds.
    first_without_kind: bool,
    lost: u64,
}

impl Assembly {
    fn problem(&mut self, place: &str, what: String) {
        if self.problems.len() < MOST_PROBLEMS {
            self.problems.push(Problem { place: place.to_owned(), what });
        } else {
            self.unlisted += 1;
        }
    }

    fn add_section(&mut self, section: &Section, body: Result<Body, String>) {
        let head = &section.head;
        let outcome = match body {
            Err(what) => Err(what),
            Ok(Body::Prefix(_)) if head.kind == kind::TREE => self.take_tree(section),
            Ok(Body::Prefix(prefix)) if head.kind == kind::PART_TREE => {
                self.take_part_tree(section, u32_at(&prefix, 0))
            }
            Ok(Body::Prefix(prefix)) => self.take_events(section, &prefix),
            Ok(Body::Content(content)) => self.take_content(section, &content),
        };
        if let Err(what) = outcome {
            self.problem(&section_label(section), format!("{what}; it was left out"));
            if of_a_process(head.kind) {
                self.processes.entry(head.process).or_default().lost += 1;
            }
        }
    }

    fn parts(&mut self, section: &Section) -> &mut Parts {
        self.processes.entry(section.head.process).or_default()
    }

    fn take_tree(&mut self, section: &Section) -> Result<(), String> {
        let head = &section.head;
        let nodes = head.count as usize;
        if nodes.saturating_mul(LEAST_NODE) > head.content()? {
            return Err("claims more nodes than its size allows".to_owned());
        }
        let parts = self.parts(section);
        parts.trees.entry(head.item).or_default().push(*section);
        parts.tree_sections += 1;
        Ok(())
    }

    fn take_part_tree(&mut self, section: &Section, thread: u32) -> Result<(), String> {
        let head = &section.head;
        if (head.count as usize).saturating_mul(LEAST_NODE) > head.content()? {
            return Err("claims more nodes than its size allows".to_owned());
        }
        let parts = self.parts(section);
        if head.item as usize >= parts.process.parts.len() || thread as usize >= parts.process.threads.len() {
            return Err("belongs to a part or a thread that can't be read".to_owned());
        }
        parts.part_trees.entry((head.item, thread)).or_default().push(*section);
        Ok(())
    }

    fn take_events(&mut self, section: &Section, prefix: &[u8]) -> Result<(), String> {
        section.head.content()?;
        let (thread, sequence) = (u32_at(prefix, 0), u64_at(prefix, 4));
        let bytes = EventBytes::new(Chunk { source: Arc::clone(&self.source), section: *section });
        let arena = self.parts(section).process.events.get_mut(section.head.item as usize);
        let arena = arena.ok_or("belongs to an instrument that can't be read")?;
        arena.chunks.push(EventChunk { thread, sequence, bytes });
        Ok(())
    }

    fn take_content(&mut self, section: &Section, content: &[u8]) -> Result<(), String> {
        let mut log = LogRecords::new(content);
        match section.head.kind {
            kind::RUN => {
                self.recording.run = all::<Run>(&mut log).last().unwrap_or_default();
            }
            kind::PROBLEMS => {
                self.recording.problems.extend(all::<Problem>(&mut log));
            }
            kind::PROCESS
            | kind::FUNCTIONS
            | kind::MODULES
            | kind::THREADS
            | kind::OBJECT_TYPES
            | kind::REMARKS
            | kind::NATIVE_SYMBOLS
            | kind::COVERAGE_PLANS => {
                self.parts(section).take_records(section, &mut log)?;
            }
            kind::STACKS => return self.take_stacks(section, content),
            // A kind from a later version of clrscope.
            _ => return Ok(()),
        }
        if log.was_cut() { Err("ends in the middle of a record".to_owned()) } else { Ok(()) }
    }

    fn take_stacks(&mut self, section: &Section, content: &[u8]) -> Result<(), String> {
        let wrong = Arc::make_mut(&mut self.parts(section).process.stacks).add(section.head.item, content)?;
        if wrong > 0 {
            let what = format!("has {wrong} frames with callers that can't be; their stacks end there");
            self.problem(&section_label(section), what);
        }
        Ok(())
    }

    fn finish(mut self) -> Recording {
        let source = Arc::clone(&self.source);
        for (number, parts) in std::mem::take(&mut self.processes) {
            let (process, problems) = parts.finish(&source);
            self.recording.processes.push(process);
            for what in problems {
                self.problem(&format!("process {number}"), what);
            }
        }
        if self.unlisted > 0 {
            let what = format!("{} more problems of this kind", self.unlisted);
            self.problems.push(Problem { place: "file".to_owned(), what });
        }
        self.recording.problems.append(&mut self.problems);
        self.recording
    }
}

impl Parts {
    fn take_records(&mut self, section: &Section, log: &mut LogRecords<'_>) -> Result<(), String> {
        match section.head.kind {
            kind::PROCESS => log.by_ref().for_each(|(kind, payload)| _ = self.take_process_record(kind, payload)),
            kind::FUNCTIONS => {
                make_room(&mut self.process.functions, section, &mut self.ends[0], lost_function)?;
                self.process.functions.extend(all::<Function>(log));
            }
            kind::MODULES => {
                make_room(&mut self.process.modules, section, &mut self.ends[1], |_| Default::default())?;
                self.process.modules.extend(all::<Module>(log));
            }
            kind::THREADS => {
                make_room(&mut self.process.threads, section, &mut self.ends[2], lost_thread)?;
                self.process.threads.extend(all::<Thread>(log));
            }
            kind::OBJECT_TYPES => {
                make_room(&mut self.process.types, section, &mut self.ends[3], |_| Default::default())?;
                self.process.types.extend(all::<ObjectType>(log));
            }
            kind::NATIVE_SYMBOLS => {
                self.process.native_symbols.extend(all::<NativeSymbol>(log));
                // The writer sorts them, but another program may have written the file.
                self.process.native_symbols.sort_by_key(NativeSymbol::module_and_offset);
            }
            kind::COVERAGE_PLANS => self.process.coverage_plans.extend(all::<CoveragePlan>(log)),
            _ => {
                for (_, payload) in log.by_ref().filter(|(kind, _)| *kind == Remark::FILE) {
                    self.first_without_kind |= self.process.remarks.is_empty() && is_without_kind(payload);
                    self.process.remarks.extend(decode::<Remark>(payload));
                }
            }
        }
        Ok(())
    }

    /// Adds a record; `None` if this version can't represent it.
    fn take_process_record(&mut self, kind: u16, payload: PayloadReader<'_>) -> Option<()> {
        let process = &mut self.process;
        match kind {
            Process::FILE => process.replace_record(decode(payload)?),
            Identity::FILE => process.identity = decode(payload)?,
            EntryAssembly::FILE => process.entry_assembly = decode(payload)?,
            CallsInfo::FILE => process.calls = Some(one_cost_per_caller(decode(payload)?)),
            Loss::FILE => process.losses.push(decode(payload)?),
            Sampler::FILE => process.samplers.push(decode(payload)?),
            AllocationSampling::FILE => process.allocation_sampling = Some(decode(payload)?),
            OwnMemory::FILE => process.own_memory.push(decode(payload)?),
            HeapSnapshot::FILE => process.snapshots.push(decode(payload)?),
            Part::FILE => process.parts.push(decode(payload)?),
            MatchedPatterns::FILE => {
                let MatchedPatterns { patterns, near } = decode(payload)?;
                (process.matched_patterns, process.near_names) = (patterns, near);
            }
            Arena::FILE => {
                let Arena { instrument } = decode(payload)?;
                process.events.push(EventArena { instrument, chunks: Vec::new() });
            }
            _ => {}
        }
        Some(())
    }

    /// The process, with trees that are decoded on request, and the problems with them.
    fn finish(mut self, source: &Arc<Source>) -> (Process, Vec<String>) {
        let mut problems = Vec::new();
        self.finish_part_trees(source, &mut problems);
        for (item, mut parts) in self.trees {
            let item = item as usize;
            // Each thread has a tree section, so there can't be more threads than these.
            if item >= self.process.threads.len().max(self.tree_sections) {
                problems.push(format!("a tree belongs to thread number {item}, which does not exist; it was left out"));
                self.lost += 1;
                continue;
            }
            while self.process.threads.len() <= item {
                self.process.threads.push(lost_thread(self.process.threads.len()));
            }
            parts.sort_by_key(|section| section.head.part & !LAST_PART);
            if let Some(what) = gaps(&parts) {
                problems.push(format!("the tree of thread {} {what}", self.process.threads[item].id));
                self.lost += 1;
            }
            let source = Arc::clone(source);
            self.process.threads[item].tree = TreeSource::fallible(move || decode_tree(&source, &parts));
        }
        if self.first_without_kind {
            mark_refusal(&mut self.process);
        }
        if self.lost > 0 {
            let loss = Loss::new(LossReason::Unreadable, self.lost, 0, 0);
            self.process.losses.push(loss);
        }
        (self.process, problems)
    }
}

impl Parts {
    fn finish_part_trees(&mut self, source: &Arc<Source>, problems: &mut Vec<String>) {
        let mut trees: BTreeMap<u32, BTreeMap<u32, TreeSource>> = BTreeMap::new();
        for ((item, thread), mut sections) in std::mem::take(&mut self.part_trees) {
            let name = self.process.parts.get(item as usize).map_or("", |part| part.name.as_str());
            sections.sort_by_key(|section| section.head.part & !LAST_PART);
            if let Some(what) = gaps(&sections) {
                problems.push(format!("the tree of thread number {thread} in part '{name}' {what}"));
                self.lost += 1;
            }
            let source = Arc::clone(source);
            let tree = TreeSource::fallible(move || decode_tree(&source, &sections));
            trees.entry(item).or_default().insert(thread, tree);
        }
        for (item, trees) in trees {
            if let Some(part) = self.process.parts.get_mut(item as usize) {
                part.trees = PartTrees::new(trees);
            }
        }
    }
}

/// Turns the first remark of a refused process into its refusal, in a file that was written before
/// remarks had kinds. In such a file the loss marks a refused process, and the first remark gives
/// the reason.
fn mark_refusal(process: &mut Process) {
    let refused = process.has_lost(LossReason::ProcessRefused);
    if let Some(first) = process.remarks.first_mut().filter(|_| refused) {
        first.kind = RemarkKind::Refusal;
    }
}

/// The records of one kind.
fn all<R: InFile>(log: &mut LogRecords<'_>) -> impl Iterator<Item = R> {
    log.by_ref().filter(|(kind, _)| *kind == R::FILE).filter_map(|(_, payload)| decode(payload))
}

/// Whether the remark was written before remarks had kinds.
fn is_without_kind(mut payload: PayloadReader<'_>) -> bool {
    let _ = (payload.u64(), payload.text());
    payload.is_at_end()
}

/// Sorts the costs by caller and keeps one per caller, in case the file does not.
fn one_cost_per_caller(mut calls: CallsInfo) -> CallsInfo {
    calls.pair_costs.sort_by_key(|measured| measured.caller);
    calls.pair_costs.dedup_by_key(|measured| measured.caller);
    calls
}

/// Whether a missing section of this kind means missing data of a process.
fn of_a_process(kind: u16) -> bool {
    !matches!(kind, kind::RUN | kind::PROBLEMS)
}

/// Extends the table up to the start of the section. The entries between are lost; their number is
/// limited by the bytes between the sections, since even lost records take space in a file.
fn make_room<T>(
    table: &mut Vec<T>,
    section: &Section,
    end: &mut u64,
    lost: impl Fn(usize) -> T,
) -> Result<(), &'static str> {
    let first = section.head.item as usize;
    let bytes = section.at.saturating_sub(*end);
    if first < table.len() || (first - table.len()) as u64 > bytes / 2 {
        return Err("claims a place that can't be its own");
    }
    (table.len()..first).for_each(|at| table.push(lost(at)));
    *end = section.body().saturating_add(section.head.stored);
    Ok(())
}

fn lost_function(at: usize) -> Function {
    let name = format!("(unreadable {at})");
    Function {
        signature: name.clone(),
        raw_name: name.clone(),
        name,
        kind: FunctionKind::Managed,
        ..Function::default()
    }
}

fn lost_thread(at: usize) -> Thread {
    Thread { id: u32::try_from(at).unwrap_or(u32::MAX).saturating_add(1), ..Thread::default() }
}

/// Parts of a tree that are missing, as the second half of a sentence.
fn gaps(parts: &[Section]) -> Option<&'static str> {
    let in_order = (0..).zip(parts).all(|(number, part)| part.head.part & !LAST_PART == number);
    let ends = parts.last().is_some_and(|part| part.head.part & LAST_PART != 0);
    match (in_order, ends) {
        (true, true) => None,
        (true, false) => Some("ends early; what stood before is here"),
        (false, _) => Some("lacks some parts; the others are here"),
    }
}

/// The bytes of a chunk of events in the file.
struct Chunk {
    source: Arc<Source>,
    section: Section,
}

impl ByteSource for Chunk {
    fn at_hand(&self) -> Option<&[u8]> {
        None
    }

    fn read(&self) -> Result<Vec<u8>, Problem> {
        content(&self.source, &self.section, &mut Vec::new())
    }
}

/// Content of a section that was intact when the recording was opened.
fn content(source: &Source, section: &Section, buffer: &mut Vec<u8>) -> Result<Vec<u8>, Problem> {
    let problem = |what| Problem { place: section_label(section), what };
    source
        .read(section.body(), section.head.stored, buffer)
        .map_err(|error| problem(format!("can't be read any more: {error}")))?;
    section.head.unpack(buffer).map_err(|what| problem(what.to_owned()))
}

/// The readable part of the tree, and the first problem.
fn decode_tree(source: &Source, parts: &[Section]) -> (CallTree, Option<Problem>) {
    let nodes: u64 = parts.iter().map(|part| u64::from(part.head.count)).sum();
    let mut decoder = Decoder::new(usize::try_from(nodes).unwrap_or(0));
    let (mut buffer, mut problem) = (Vec::new(), None);
    for part in parts {
        let added = content(source, part, &mut buffer).and_then(|content| {
            let what = || Problem {
                place: section_label(part),
                what: "ends early or holds no tree; what stood before is here".to_owned(),
            };
            decoder.add(&content, part.head.count).then_some(()).ok_or_else(what)
        });
        problem = problem.or(added.err());
    }
    (decoder.finish(), problem)
}

fn section_label(section: &Section) -> String {
    let head = &section.head;
    let (process, item) = (head.process, head.item);
    match head.kind {
        kind::RUN => "run".to_owned(),
        kind::PROCESS => format!("process {process}"),
        kind::FUNCTIONS => format!("process {process}, functions from {item}"),
        kind::MODULES => format!("process {process}, modules from {item}"),
        kind::THREADS => format!("process {process}, threads from {item}"),
        kind::OBJECT_TYPES => format!("process {process}, types from {item}"),
        kind::REMARKS => format!("process {process}, remarks from {item}"),
        kind::NATIVE_SYMBOLS => format!("process {process}, native symbols from {item}"),
        kind::COVERAGE_PLANS => format!("process {process}, plans of coverage from {item}"),
        kind::STACKS => format!("process {process}, stacks from {item}"),
        kind::TREE => format!("process {process}, tree of thread {item}, part {}", head.part & !LAST_PART),
        kind::PART_TREE => format!("process {process}, tree in part {item}, part {}", head.part & !LAST_PART),
        kind::EVENTS => format!("process {process}, events of instrument {item}, chunk {}", head.part),
        kind::PROBLEMS => "problems".to_owned(),
        _ => format!("section at byte {}", section.at),
    }
}

#[cfg(test)]
mod tests {
    use super::super::section::Head;
    use super::*;
    use crate::payload::PayloadWriter;

    fn read_remarks(reason: LossReason, put: impl Fn(&mut PayloadWriter)) -> Process {
        let loss = Loss::new(reason, 1, 0, 0);
        let process = Process { losses: vec![loss], ..Process::default() };
        let mut parts = Parts { process, ..Parts::default() };
        let mut payload = PayloadWriter::default();
        put(&mut payload);
        let mut bytes = Vec::new();
        crate::packed::v1::records::put_payload(&mut bytes, Remark::FILE, payload.bytes());
        let section = Section { at: 0, head: Head { kind: kind::REMARKS, count: 1, ..Head::default() } };
        parts.take_records(&section, &mut LogRecords::new(&bytes)).expect("remarks");
        parts.finish(&Arc::default()).0
    }

    #[test]
    fn remarks_written_before_they_had_kinds_still_say_who_was_refused() {
        let without_kind = |p: &mut PayloadWriter| {
            p.u64(7).text("why");
        };
        assert_eq!(read_remarks(LossReason::ProcessRefused, without_kind).refusal(), Some("why"));
        assert_eq!(read_remarks(LossReason::TreeFull, without_kind).refusal(), None);
        let note = |p: &mut PayloadWriter| {
            p.u64(7).text("why").u32(0).texts(&[]);
        };
        assert_eq!(read_remarks(LossReason::ProcessRefused, note).refusal(), None);
    }
}
