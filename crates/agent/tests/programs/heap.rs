//! Snapshots of a heap of known objects: how many there are, what they refer to, and what holds
//! them.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Stdio};
use std::time::Duration;

use crate::support::{is_notification_only, record_command, record_with, under_agent};
use clrscope_analysis::{HeapQuery, Heaps, WasteKind, WasteRow, heap_waste};
use clrscope_recording::heap::{HeapChunk, HeapData, HeapRoot};
use clrscope_recording::model::{
    HeapGeneration, HeapSnapshot, HeapType, LossReason, Process, Recording, RootKind, SnapshotReason, SnapshotState,
};
use clrscope_recording::writer::{Answer, Command, command};
use clrscope_testkit::{Runtime, confine, each_runtime, fixture, run, scratch, wait_for, wait_until};

/// A program under the agent that says when it is ready, and goes on until it may end.
struct RunningProgram {
    program: Child,
    out: PathBuf,
    end: PathBuf,
    _folder: tempfile::TempDir,
}

impl RunningProgram {
    fn start(runtime: &Runtime, request: &str, mode: &str, environment: &[(&str, &str)]) -> Self {
        let mut program = runtime.command(&fixture("Holders"));
        program.arg(mode).envs(environment.iter().copied());
        Self::spawn(program, request, true)
    }

    /// With so many links in a chain, until it is killed.
    fn large(runtime: &Runtime, request: &str, links: usize) -> Self {
        let mut program = runtime.command(&fixture("Holders"));
        program.args(["large", &links.to_string()]).stdin(Stdio::piped());
        Self::spawn(program, request, false)
    }

    fn spawn(mut program: std::process::Command, request: &str, ends_by_file: bool) -> Self {
        let folder = scratch();
        let (out, end) = (folder.path().join("run.clrs.d"), folder.path().join("end"));
        program.args(ends_by_file.then_some(&end)).stdout(Stdio::piped());
        under_agent(&mut program, request, &out);
        let mut program = program.spawn().expect("the program starts");
        let mut line = String::new();
        BufReader::new(program.stdout.as_mut().expect("a pipe")).read_line(&mut line).expect("it writes");
        assert_eq!(line, "ready\n");
        Self { program, out, end, _folder: folder }
    }

    /// The folder of the process in the recording.
    fn process(&self) -> PathBuf {
        wait_for("the process's folder", || {
            let entries = std::fs::read_dir(&self.out).ok()?.flatten();
            entries.map(|entry| entry.path()).find(|path| path.join("state.seg").is_file())
        })
    }

    fn snapshot(&self, name: &str) -> Answer {
        give(&self.process(), name, || is_there(self.program.id()))
    }

    fn finish(mut self) -> Recording {
        std::fs::write(&self.end, "").expect("a file");
        assert!(self.program.wait().expect("it ends").success());
        let recording = clrscope_recording::open(&self.out).expect("a recording");
        let losses = recording.processes.iter().flat_map(|process| &process.losses);
        let gaps: Vec<_> = losses.filter(|loss| loss.reason == LossReason::HeapUnread).collect();
        assert!(gaps.is_empty(), "all of the heap is understood: {gaps:?}");
        recording
    }
}

impl Drop for RunningProgram {
    /// A test that fails leaves no program behind, which would go on for good.
    fn drop(&mut self) {
        drop(self.program.kill());
        drop(self.program.wait());
    }
}

fn give(process: &Path, name: &str, is_alive: impl Fn() -> bool) -> Answer {
    command(process, &Command::Snapshot(name.to_owned()), Duration::from_secs(120), is_alive).expect("an answer")
}

/// Whether a child has not ended.
fn is_there(child: u32) -> bool {
    let text = std::fs::read_to_string(format!("/proc/{child}/stat")).unwrap_or_default();
    text.rsplit(')').next().is_some_and(|rest| !rest.is_empty() && !rest.starts_with(" Z"))
}

/// Holds a child (`STOP`) or lets it go on (`CONT`).
fn signal(child: u32, name: &str) {
    let line = format!("kill -{name} {child}");
    assert!(std::process::Command::new("sh").args(["-c", &line]).status().expect("a shell").success(), "{line}");
}

/// Facts that a snapshot has of one object.
#[derive(Debug, Clone, Default)]
struct ObjectFacts {
    type_number: u32,
    bytes: u64,
    generation: HeapGeneration,
    length: Option<u64>,
    content: Option<u64>,
    references: Vec<(u64, u64)>,
}

/// A whole snapshot in memory.
struct Heap {
    types: Vec<HeapType>,
    objects: BTreeMap<u64, ObjectFacts>,
    roots: Vec<HeapRoot>,
    pairs: Vec<(u64, u64)>,
    /// Name and kind of what static fields hold, with the thread's serial number.
    statics: Vec<(String, RootKind, u32, u64)>,
}

impl Heap {
    /// A snapshot in which all types have names.
    fn read(process: &Process, number: u32) -> Self {
        let heap = Self::with_any_types(process, number);
        assert!(heap.types[1..].iter().all(|found| !found.name.is_empty()), "a type has no name");
        heap
    }

    fn with_any_types(process: &Process, number: u32) -> Self {
        let data = process.heap(number).unwrap_or_else(|| panic!("{:?}", process.snapshots));
        assert_eq!(data.missing_chunks(), 0);
        let types = data.types();
        let mut heap = Self { types, objects: BTreeMap::new(), roots: vec![], pairs: vec![], statics: vec![] };
        for chunk in data.chunks() {
            let bytes = chunk.bytes.load();
            match data.chunk(&bytes) {
                HeapChunk::Objects(row) => row
                    .visit(&heap.types, |object| {
                        let seen = heap.objects.entry(object.address).or_default();
                        assert!(object.goes_on || seen.bytes == 0, "two objects at one address");
                        (seen.type_number, seen.bytes) = (object.type_number, object.bytes);
                        (seen.generation, seen.length) = (object.generation, object.length);
                        seen.content = object.content;
                        seen.references.extend(object.references.iter().map(|found| (found.slot, found.target)));
                    })
                    .expect("a chunk that makes sense"),
                HeapChunk::Roots(rows) => heap.roots.extend(rows),
                HeapChunk::Dependents(rows) => heap.pairs.extend(rows),
                _ => {}
            }
        }
        heap.name_statics(&data);
        heap.check(&data);
        heap
    }

    fn name_statics(&mut self, data: &HeapData<'_>) {
        for place in data.places() {
            let Some((address, holder)) = self.objects.range(..=place.address).next_back() else { continue };
            let Some(slot) = (place.address - address).checked_sub(16).map(|bytes| bytes / 8) else { continue };
            let found = holder.references.iter().find(|(at, _)| *at == slot);
            if let (Some((_, target)), true) = (found, place.address < address + holder.bytes) {
                self.statics.push((place.name, place.kind, place.thread, *target));
            }
        }
    }

    /// Each reference leads to an object, and the sums are those of the objects.
    fn check(&self, data: &HeapData<'_>) {
        let (mut references, mut bytes) = (0, 0);
        for (address, object) in &self.objects {
            bytes += object.bytes;
            references += object.references.len() as u64;
            for (slot, target) in &object.references {
                let name = &self.types[object.type_number as usize].name;
                assert!(
                    self.objects.contains_key(target),
                    "slot {slot} of {name} at {address:#x} leads to {target:#x}"
                );
            }
        }
        let snapshot = data.snapshot();
        assert_eq!(
            (snapshot.objects, snapshot.bytes, snapshot.references),
            (self.objects.len() as u64, bytes, references)
        );
        assert!(snapshot.pause_ns >= snapshot.walk_ns && snapshot.walk_ns > 0);
        for root in &self.roots {
            assert!(self.objects.contains_key(&root.object), "{root:?} leads nowhere");
        }
    }

    fn name(&self, address: u64) -> &str {
        &self.types[self.objects[&address].type_number as usize].name
    }

    fn all<'h>(&'h self, name: &'h str) -> impl Iterator<Item = (u64, &'h ObjectFacts)> {
        let found = self.objects.iter().map(|(address, seen)| (*address, seen));
        found.filter(move |(_, seen)| *self.types[seen.type_number as usize].name == *name)
    }

    fn count(&self, name: &str) -> usize {
        self.all(name).count()
    }

    /// Fields that refer from objects of one type to objects of another, with how often.
    fn fields(&self, from: &str, to: &str) -> BTreeMap<String, usize> {
        let mut fields = BTreeMap::new();
        for (_, seen) in self.all(from) {
            let kind = &self.types[seen.type_number as usize];
            for (slot, _) in seen.references.iter().filter(|(_, target)| self.name(*target) == to) {
                let (element, field) = kind.slot(*slot);
                let name = if element.is_some() { format!("[].{field}") } else { field.to_owned() };
                *fields.entry(name).or_default() += 1;
            }
        }
        fields
    }

    /// Roots of objects of a type, by their kind.
    fn held(&self, name: &str) -> BTreeMap<&'static str, usize> {
        let mut kinds = BTreeMap::new();
        for root in self.roots.iter().filter(|root| self.name(root.object) == name) {
            *kinds.entry(root.kind.name()).or_default() += 1;
        }
        kinds
    }

    fn is_static(&self, name: &str, held: &str) -> bool {
        self.statics.iter().any(|found| found.0 == name && found.1 == RootKind::Static && self.name(found.3) == held)
    }
}

fn one(pairs: &[(&str, usize)]) -> BTreeMap<String, usize> {
    pairs.iter().map(|(name, count)| ((*name).to_owned(), *count)).collect()
}

/// Checks the heap of the fixture.
fn check(process: &Process, number: u32, place: &str, with_threads: bool) {
    let heap = Heap::read(process, number);
    let counts = [
        ("Holders.Subscriber", 60),
        ("Holders.Order", 500),
        ("Holders.Stored", 3),
        // One is that of all empty ones.
        ("Holders.Pair[]", 2),
        ("Holders.Element", 40 + 20 + 10),
        ("Holders.Key", 30),
        ("Holders.Attached", 30),
        ("Holders.Fleeting", 0),
        ("Holders.Watched", 1),
        ("Holders.Handled", 1),
        ("Holders.Mortal", 12),
        ("Holders.Owner", 1),
        ("Holders.Dependent", 1),
        ("Holders.Remark", 3),
        ("Emitted.Made", 7),
        ("Plugin.Item<string>", 1),
        ("int[,]", 1),
    ];
    for (name, count) in counts {
        assert_eq!(heap.count(name), count, "{name} on {place}");
    }
    // Fields, also within the elements of an array of values.
    assert_eq!(heap.fields("Holders.Order", "Holders.Order"), one(&[("Previous", 499)]), "{place}");
    assert_eq!(
        heap.fields("Holders.Pair[]", "Holders.Element"),
        one(&[("[].First", 40), ("[].Second", 20)]),
        "{place}"
    );
    assert_eq!(heap.fields("Holders.Element[]", "Holders.Element"), one(&[("[].", 10)]), "{place}");
    assert_eq!(heap.fields("System.EventHandler", "Holders.Subscriber"), one(&[("_target", 60)]), "{place}");
    assert_eq!(heap.fields("Emitted.Made", "object[]"), one(&[("Held", 7)]), "{place}");
    let matrix = heap.all("int[,]").next().expect("an array").1;
    assert_eq!((matrix.length, matrix.bytes), (Some(63), 40 + 63 * 4 + 4), "{place}");
    // Static fields, also of a generic class.
    for (name, held) in [
        ("Holders.Store<Holders.Stored>.Kept", "Holders.Stored[]"),
        ("Holders.Publisher.Changed", "System.EventHandler"),
        ("Holders.Cache.Items", "System.Collections.Generic.Dictionary<int, Holders.Order>"),
        ("Holders.Program.pairs", "Holders.Pair[]"),
        ("Holders.Program.watched", "Holders.Watched"),
        ("Holders.Program.unmoved", "byte[]"),
        ("Holders.Program.owner", "Holders.Owner"),
        ("Holders.Program.plugged", "Plugin.Item<string>"),
    ] {
        let found: Vec<_> = heap.statics.iter().filter(|found| found.0.contains("Holders.")).collect();
        assert!(heap.is_static(name, held), "{name} on {place}: {found:?}");
    }
    // Pairs, handles, and the queue of finalizers.
    let pairs = heap.pairs.iter().filter(|(key, _)| heap.name(*key) == "Holders.Key");
    let values: BTreeSet<_> = pairs.map(|(_, value)| (heap.name(*value), *value)).collect();
    assert!(values.len() == 30 && values.iter().all(|(name, _)| *name == "Holders.Attached"), "{place}");
    let depend = heap.pairs.iter().filter(|(key, _)| heap.name(*key) == "Holders.Owner");
    assert_eq!(depend.map(|(_, value)| heap.name(*value)).collect::<Vec<_>>(), ["Holders.Dependent"], "{place}");
    let mut of_length = heap.all("byte[]").filter(|(_, seen)| seen.length == Some(777));
    assert!(of_length.all(|(_, seen)| seen.generation == HeapGeneration::Pinned), "{place}");
    // What keeps types of contexts that are unloaded, and of assemblies that can be.
    for name in ["Plugin.Item<string>", "Emitted.Made"] {
        let (_, seen) = heap.all(name).next().expect("one");
        let loader = heap.types[seen.type_number as usize].loader;
        assert_eq!(heap.name(loader), "System.Reflection.LoaderAllocator", "{name} on {place}");
    }
    assert_eq!(heap.held("Holders.Handled"), BTreeMap::from([("handle", 1)]), "{place}");
    assert_eq!(heap.held("Holders.Watched"), BTreeMap::from([("weak handle", 1)]), "{place}");
    let mortal = heap.held("Holders.Mortal");
    let waiting = mortal.get("finalizer queue").copied().unwrap_or(0);
    assert!((10..=12).contains(&waiting), "{mortal:?} on {place}");
    let pinned = heap.roots.iter().find(|root| {
        root.kind == RootKind::PinnedHandle && heap.objects[&root.object].length == Some(1000) && root.is_pinning
    });
    assert!(pinned.is_some_and(|root| heap.name(root.object) == "int[]"), "{place}");
    // Contents.
    let mut boxes = HashMap::<u64, usize>::new();
    heap.all("System.Guid").for_each(|(_, seen)| *boxes.entry(seen.content.expect("a box")).or_default() += 1);
    // Some runtimes keep the static field of the empty one in a box, too.
    let most = boxes.values().max().copied().unwrap_or(0);
    assert!(boxes.len() > 50 && (150..=151).contains(&most), "{boxes:?} on {place}");
    let mut texts = HashMap::<(u64, u64), usize>::new();
    for (_, seen) in heap.all("string") {
        *texts.entry((seen.length.expect("a length"), seen.content.expect("a text"))).or_default() += 1;
    }
    assert!(texts.iter().any(|((length, _), count)| (*length, *count) == (33, 70)), "{place}");
    assert!(heap.objects.values().any(|seen| seen.generation == HeapGeneration::Frozen), "literals, on {place}");
    if with_threads {
        check_threads(process, &heap, place);
    }
}

fn check_threads(process: &Process, heap: &Heap, place: &str) {
    let name =
        |serial: u32| process.threads.iter().find(|thread| thread.id == serial).map(|thread| thread.name.as_str());
    let names = BTreeSet::from([Some("holder-0"), Some("holder-1"), Some("holder-2")]);
    for (field, held) in
        [("Holders.Program.note", "Holders.Note"), ("Holders.Slot<Holders.Remark>.Value", "Holders.Remark")]
    {
        let found = heap.statics.iter().filter(|found| found.0 == field);
        let found: Vec<_> = found.filter(|found| heap.name(found.3) == held).collect();
        assert!(found.iter().all(|found| found.1 == RootKind::ThreadStatic), "{field} on {place}");
        assert_eq!(found.iter().map(|found| name(found.2)).collect::<BTreeSet<_>>(), names, "{field} on {place}");
    }
    let held = holders(process, heap);
    let expected = ["holder-0", "holder-1", "holder-2"].map(|name| (name, "Holders.Program::Hold"));
    assert_eq!(held, BTreeSet::from(expected), "{place}");
}

/// Threads and methods whose variables hold the objects that each thread has of its own.
fn holders<'p>(process: &'p Process, heap: &Heap) -> BTreeSet<(&'p str, &'p str)> {
    let is_one = |root: &&HeapRoot| root.kind == RootKind::Stack && heap.name(root.object) == "Holders.Local";
    let locals = heap.roots.iter().filter(is_one).filter_map(|root| {
        let thread = process.threads.iter().find(|thread| thread.id == root.thread)?;
        Some((thread.name.as_str(), process.functions[root.function as usize].name.as_str()))
    });
    locals.collect()
}

#[test]
fn a_snapshot_has_known_objects_with_what_holds_them() {
    each_runtime(|runtime| {
        for collector in ["0", "1"] {
            let place = format!("{}, server's collector {collector}", runtime.version);
            let kept = RunningProgram::start(runtime, "heap:at=command", "keep", &[("DOTNET_gcServer", collector)]);
            assert_eq!(kept.snapshot("first"), Answer::Done, "{place}");
            // Threads that run at that moment hold their variables in unknown places, as long as
            // they spin.
            let last = wait_for("a snapshot of threads that wait", || {
                assert_eq!(kept.snapshot(""), Answer::Done, "{place}");
                let recording = clrscope_recording::open(&kept.out).expect("a recording");
                let process = &recording.processes[0];
                let last = process.snapshots.len() as u32;
                (holders(process, &Heap::read(process, last)).len() == 3).then_some(last)
            });
            let recording = kept.finish();
            assert_eq!(recording.problems, [], "{place}");
            let process = &recording.processes[0];
            let first = &process.snapshots[0];
            assert_eq!((first.number, first.reason, &*first.name), (1, SnapshotReason::Command, "first"), "{place}");
            assert_eq!(process.snapshots.len(), last as usize, "{place}");
            let [remark] = &process.remarks[..] else { panic!("{:?}, {place}", process.remarks) };
            let said = match is_notification_only() {
                false => "no collection runs in the background",
                true => "notification-only: the agent left the runtime's main slot to ",
            };
            assert!(remark.text.contains(said), "{remark:?}, {place}");
            check(process, 1, &place, false);
            check(process, last, &place, true);
        }
    });
}

#[test]
fn a_snapshot_at_the_end_has_what_is_held_then() {
    each_runtime(|runtime| {
        let run = record_with(runtime, "Holders", "heap", &["end"]);
        assert!(run.finished.status.success(), "{}", run.finished.stderr_text());
        let process = &run.recording.processes[0];
        let [snapshot] = &process.snapshots[..] else { panic!("{:?}", process.snapshots) };
        assert_eq!((snapshot.state, snapshot.reason), (SnapshotState::Complete, SnapshotReason::End), "{snapshot:?}");
        let heap = Heap::read(process, 1);
        assert_eq!(heap.count("Holders.Subscriber"), 60, "{}", runtime.version);
        assert_eq!(heap.count("Holders.Local"), 0, "{}", runtime.version);
    });
}

/// Memory that a program keeps for nothing, by the sizes of the runtime: a string of 41 characters
/// takes 104 bytes, an array 24 and its elements.
#[test]
fn equal_strings_and_boxes_lists_and_arrays_with_nothing_in_them_are_told_as_waste() {
    const ORDERS: &str = "System.Collections.Generic.List<Holders.Order>";
    let expected = [
        (WasteKind::DuplicateStrings, "string", Some(41), (300, 300 * 104, 299 * 104)),
        (WasteKind::DuplicateBoxes, "Holders.Price", None, (250, 250 * 32, 249 * 32)),
        (WasteKind::SparseCollections, ORDERS, None, (20, 20 * (24 + 50 * 8), 20 * 47 * 8)),
        (WasteKind::EmptyCollections, ORDERS, None, (15, 15 * (24 + 10 * 8), 15 * (24 + 10 * 8))),
        (WasteKind::SparseArrays, "Holders.Owner[]", None, (10, 10 * (24 + 60 * 8), 10 * 60 * 8)),
        (WasteKind::EmptyArrays, "Holders.Handled[]", None, (12, 12 * 24, 12 * 24)),
    ];
    each_runtime(|runtime| {
        let run = record_with(runtime, "Holders", "heap", &["waste"]);
        assert_eq!(run.finished.stdout_text(), "697\n", "{}", runtime.version);
        let waste = heap_waste(&Heaps::new(&run.recording), &HeapQuery::default()).expect("a snapshot");
        for (kind, name, length, amounts) in expected {
            let is_it = |row: &&WasteRow<'_>| (row.kind, &*row.type_name) == (kind, name) && row.length == length;
            let of: Vec<_> = waste.rows.iter().filter(is_it).collect();
            let [row] = of[..] else { panic!("{kind:?} of {name} on {}: {of:#?}", runtime.version) };
            let found = (row.objects, row.bytes, row.wasted_bytes);
            assert_eq!(found, amounts, "{kind:?} of {name} on {}", runtime.version);
        }
        let of_prices = |row: &&WasteRow<'_>| &*row.type_name == "Holders.Price";
        assert_eq!(waste.rows.iter().filter(of_prices).count(), 1, "those that differ are no waste");
    });
}

#[test]
fn snapshots_are_whole_while_four_threads_allocate() {
    each_runtime(|runtime| {
        let kept = RunningProgram::start(runtime, "heap:at=100ms", "churn", &[]);
        wait_until("several snapshots, of many objects, and the timed one", || {
            assert_eq!(kept.snapshot(""), Answer::Done, "{}", runtime.version);
            let recording = clrscope_recording::open(&kept.out).expect("a recording");
            let process = &recording.processes[0];
            let complete = || process.snapshots.iter().filter(|found| found.is_complete());
            let is_timed = complete().any(|found| found.reason == SnapshotReason::Time);
            let last = complete().next_back().expect("one that was just taken").number;
            let links = Heap::read(process, last).count("Holders.Link");
            process.snapshots.len() > 3 && is_timed && links > 1_000
        });
        let recording = kept.finish();
        let process = &recording.processes[0];
        assert!(process.snapshots.iter().all(HeapSnapshot::is_complete), "{:?}", process.snapshots);
        process.snapshots.iter().for_each(|found| drop(Heap::read(process, found.number)));
    });
}

#[test]
fn snapshots_are_whole_while_contexts_unload() {
    each_runtime(|runtime| {
        let kept = RunningProgram::start(runtime, "heap:at=command", "contexts", &[]);
        // Unloads that the snapshot's own collection brings wait until its types have names.
        for last in 1..=8 {
            assert_eq!(kept.snapshot(""), Answer::Done, "{}", runtime.version);
            let recording = clrscope_recording::open(&kept.out).expect("a recording");
            let heap = Heap::with_any_types(&recording.processes[0], last);
            assert!(heap.count("Plugin.Item<string>") > 0, "{}, snapshot {last}", runtime.version);
        }
        let recording = kept.finish();
        let process = &recording.processes[0];
        assert!(process.snapshots.iter().all(HeapSnapshot::is_complete), "{:?}", process.snapshots);
    });
}

/// Number of links that are there of a snapshot.
fn links(data: &HeapData<'_>) -> usize {
    let types = data.types();
    let is_link = |number: u32| &*types[number as usize].name == "Holders.Link";
    let mut links = 0;
    for chunk in data.chunks() {
        if let HeapChunk::Objects(row) = data.chunk(&chunk.bytes.load()) {
            row.visit(&types, |object| links += usize::from(is_link(object.type_number)))
                .expect("types that are known");
        }
    }
    links
}

#[test]
fn a_snapshot_of_the_heap_as_it_is_has_the_garbage_and_what_is_held() {
    each_runtime(|runtime| {
        let kept = RunningProgram::start(runtime, "heap:at=command,collect=off", "keep", &[]);
        assert_eq!(kept.snapshot(""), Answer::Done, "{}", runtime.version);
        let recording = kept.finish();
        let process = &recording.processes[0];
        assert!(!process.snapshots[0].collected, "{:?}", process.snapshots);
        check(process, 1, &format!("{}, as it is", runtime.version), false);
        // Objects that the collection moves afterwards: roots and references lead to where they
        // were.
        let kept = RunningProgram::start(runtime, "heap:at=command,collect=off", "churn", &[]);
        let most_held = 4 * 20_001;
        wait_until("a snapshot with garbage", || {
            assert_eq!(kept.snapshot(""), Answer::Done, "{}", runtime.version);
            let recording = clrscope_recording::open(&kept.out).expect("a recording");
            let process = &recording.processes[0];
            let last = process.snapshots.len() as u32;
            let has_garbage = links(&process.heap(last).expect("a snapshot")) > most_held;
            // Each reference and each root leads to an object.
            has_garbage.then(|| Heap::read(process, last)).is_some()
        });
        kept.finish();
    });
}

/// The snapshots of a recording that may go on, by number.
fn states(out: &Path) -> Vec<SnapshotState> {
    let recording = clrscope_recording::open(out).expect("a recording");
    recording.processes[0].snapshots.iter().map(|found| found.state).collect()
}

#[test]
fn a_kill_in_the_middle_of_a_snapshot_costs_no_other() {
    each_runtime(|runtime| {
        let mut kept = RunningProgram::start(runtime, "heap:at=command", "keep", &[]);
        assert_eq!(kept.snapshot(""), Answer::Done, "{}", runtime.version);
        let process = kept.process();
        let asked = std::thread::spawn(move || {
            command(&process, &Command::Snapshot(String::new()), Duration::from_secs(120), || true)
        });
        wait_for("the second snapshot", || (states(&kept.out).len() == 2).then_some(()));
        kept.program.kill().expect("it lives");
        kept.program.wait().expect("it ends");
        let recording = clrscope_recording::open(&kept.out).expect("a recording");
        let process = &recording.processes[0];
        check(process, 1, &format!("{}, killed", runtime.version), false);
        let second = &process.snapshots[1];
        assert_eq!(process.heap(2).is_some(), second.is_complete(), "{second:?}");
        assert!(matches!(second.state, SnapshotState::Begun | SnapshotState::Complete), "{second:?}");
        // A request to a dead program gets no answer.
        drop(asked);
    });
}

#[test]
fn a_snapshot_without_room_says_so_and_costs_no_other() {
    each_runtime(|runtime| {
        let folder = scratch();
        let out = folder.path().join("run.clrs.d");
        let mut program = runtime.command(&fixture("Holders"));
        program.args(["large", "3000000"]);
        // The runtime maps memory for code by a file as well.
        program.env("DOTNET_EnableWriteXorExecute", "0");
        under_agent(&mut program, "heap:at=command", &out);
        let mut program = confine::with_file_size_limit(&program, 3 << 10);
        program.stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut program = program.spawn().expect("the program starts");
        let mut line = String::new();
        BufReader::new(program.stdout.as_mut().expect("a pipe")).read_line(&mut line).expect("it writes");
        assert_eq!(line, "ready\n");
        let process = wait_for("the process's folder", || {
            let entries = std::fs::read_dir(&out).ok()?.flatten();
            entries.map(|entry| entry.path()).find(|path| path.join("state.seg").is_file())
        });
        let child = program.id();
        let ask = Command::Snapshot(String::new());
        let answer = command(&process, &ask, Duration::from_secs(120), || is_there(child));
        assert!(matches!(answer, Ok(Answer::Failed)), "{answer:?} on {}", runtime.version);
        drop(program.stdin.take());
        assert!(program.wait().expect("it ends").success(), "{}", runtime.version);
        let recording = clrscope_recording::open(&out).expect("a recording");
        let [snapshot] = &recording.processes[0].snapshots[..] else { panic!("one snapshot") };
        assert_eq!(snapshot.state, SnapshotState::NoRoom, "{snapshot:?} on {}", runtime.version);
        assert!(snapshot.why.contains("File too large"), "{snapshot:?}");
        // What was written is there all the same, with the type's name.
        let links = links(&recording.processes[0].cut_heap(1).expect("a part of it"));
        assert!(links > 1_000, "{links} links on {}", runtime.version);
    });
}

/// Snapshots while a thousand threads allocate, and of a program whose memory runs out.
#[test]
fn snapshots_of_a_thousand_threads_and_of_memory_that_runs_out_are_whole() {
    each_runtime(|runtime| {
        for (arguments, said, limit) in
            [(&["many", "1000"][..], "done\n", None), (&["exhaust"], "exhausted\n", Some("0x2000000"))]
        {
            let place = format!("{} on {}", arguments[0], runtime.version);
            let mut command = runtime.command(&fixture("Allocated"));
            command.args(arguments).envs(limit.map(|limit| ("DOTNET_GCHeapHardLimit", limit)));
            let run = record_command(runtime, "Allocated", "heap:at=100ms+200ms+end", command);
            assert_eq!(run.finished.stdout_text(), said, "{place}: {}", run.finished.stderr_text());
            let process = &run.recording.processes[0];
            let at_end = process.snapshots.iter().filter(|found| found.reason == SnapshotReason::End);
            assert_eq!(at_end.count(), 1, "{place}: {:?}", process.snapshots);
            for snapshot in &process.snapshots {
                assert!(snapshot.is_complete(), "{place}: {snapshot:?}");
                Heap::read(process, snapshot.number);
            }
        }
    });
}

#[test]
fn a_snapshot_on_a_full_disk_says_so_and_leaves_the_program_alone() {
    each_runtime(|runtime| {
        let (folder, kept) = (scratch(), scratch());
        let mut program = runtime.command(&fixture("Holders"));
        program.args(["large", "2000000"]);
        under_agent(&mut program, "heap", &folder.path().join("run.clrs.d"));
        let Some(mut program) = confine::with_small_disk(&program, folder.path(), "3m", kept.path()) else { return };
        program.stdin(Stdio::null());
        let finished = run(program);
        assert_eq!((finished.stdout_text(), finished.stderr_text()), ("ready\n".to_owned(), String::new()));
        let recording = clrscope_recording::open(&kept.path().join("run.clrs.d")).expect("a recording");
        let process = &recording.processes[0];
        let [snapshot] = &process.snapshots[..] else { panic!("{:?} on {}", process.snapshots, runtime.version) };
        assert_eq!(snapshot.state, SnapshotState::NoRoom, "{snapshot:?} on {}", runtime.version);
        assert!(snapshot.why.contains("No space left"), "{snapshot:?} on {}", runtime.version);
        let links = links(&process.cut_heap(1).expect("a part of it"));
        assert!(links > 1_000, "{links} links on {}", runtime.version);
    });
}

/// Links that are there of the first snapshot while it is being taken; `None` before there are any.
fn links_so_far(out: &Path) -> Option<usize> {
    let recording = clrscope_recording::open(out).ok()?;
    let process = recording.processes.first()?;
    process.cut_heap(1).map(|data| links(&data)).filter(|links| *links > 0)
}

#[test]
fn a_kill_in_the_middle_of_a_large_snapshot_leaves_what_was_written() {
    const LINKS: usize = 2_000_000;
    each_runtime(|runtime| {
        // One that was complete before it could be killed says nothing: then once more.
        wait_until("a snapshot that was killed", || {
            let mut kept = RunningProgram::large(runtime, "heap:at=command", LINKS);
            let (process, program) = (kept.process(), kept.program.id());
            let asked = std::thread::spawn(move || {
                command(&process, &Command::Snapshot(String::new()), Duration::from_secs(120), || is_there(program))
            });
            // Held while it is looked at: on a busy machine a snapshot is quicker than who looks.
            let before = wait_for("links", || {
                signal(program, "STOP");
                let is_complete = states(&kept.out).first() == Some(&SnapshotState::Complete);
                let found = links_so_far(&kept.out).or(is_complete.then_some(0));
                found.is_none().then(|| signal(program, "CONT"));
                found
            });
            kept.program.kill().expect("it lives");
            kept.program.wait().expect("it ends");
            let answer = asked.join().expect("no panic");
            let recording = clrscope_recording::open(&kept.out).expect("a recording");
            assert_eq!(recording.problems, [], "{}", runtime.version);
            let [snapshot] = &recording.processes[0].snapshots[..] else { panic!("one snapshot") };
            if snapshot.is_complete() {
                return false;
            }
            assert_eq!(snapshot.state, SnapshotState::Begun, "{snapshot:?} on {}", runtime.version);
            assert!(answer.is_err(), "{answer:?} on {}", runtime.version);
            let after = links_so_far(&kept.out).expect("a part of it");
            assert!((before..=LINKS).contains(&after), "{before} links before, {after} after, on {}", runtime.version);
            true
        });
    });
}

/// The program has more than 350 MiB in memory for three seconds of its time, and never 90 GiB.
#[test]
fn a_snapshot_is_taken_once_so_much_is_in_memory() {
    each_runtime(|runtime| {
        let folder = scratch();
        let mut program = runtime.command(&fixture("Memory"));
        program.arg(folder.path().join("mapped"));
        let run = record_command(runtime, "Memory", "heap:at=350MiB+360MiB+90GiB", program);
        let output = run.finished.clone().expect_success().stdout_text();
        let peak = output.lines().find_map(|line| line.strip_prefix("PEAK ")).expect("a peak");
        let [bytes, from, to] = peak.split(' ').map(|word| word.parse().expect("a number")).collect::<Vec<u64>>()[..]
        else {
            panic!("{output}")
        };
        assert!(bytes > 360 << 20, "{output}");
        let snapshots = &run.recording.processes[0].snapshots;
        let sizes: Vec<_> = snapshots.iter().filter(|snapshot| snapshot.reason == SnapshotReason::Size).collect();
        assert!((1..=2).contains(&sizes.len()) && snapshots.len() == sizes.len(), "{snapshots:?}");
        for snapshot in sizes {
            assert_eq!(snapshot.state, SnapshotState::Complete, "{snapshot:?}");
            let at = run.start_ns() + snapshot.time_ns;
            assert!((from..to).contains(&at), "{at}: {output}");
        }
    });
}
