//! The fixture `KnownPaths`: reads its notes about its own stacks, and judges samples by them.
//!
//! A path is a number that its methods pass down the call chain. The leaf notes the path and the
//! time interval in which the leaf was on the stack. So a sample of the thread in that interval
//! must have the frames of the path, in order, and no other frames of the program.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::fs;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::path::Path;
use std::sync::OnceLock;

/// A step of a path, or its leaf.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Shape {
    /// Name for tables.
    pub name: String,
    /// Methods that the shape puts on the stack, outermost first.
    frames: Vec<String>,
    /// Methods that the shape may call in addition to the path.
    beside: Vec<String>,
}

/// Note of an interval in which a leaf was on the stack.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Note {
    path: u64,
    /// Start of the interval, in monotonic nanoseconds.
    from: u64,
    until: u64,
}

/// What a thread did at a moment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Moment {
    /// The leaf at the end of this path was on the stack.
    On(u64),
    /// The thread was between two leaves: on its way from the leaf of the first path to the leaf of
    /// the second.
    Between(u64, u64),
    /// Unknown: before the thread's first leaf or after its last.
    Outside,
}

/// Longest time between two leaves. A thread that takes longer waits for something unknown, for
/// instance the end of the program.
const LONGEST_WAY_NS: u64 = 1_000_000_000;
/// Maximum age of the last sample of a thread's stack when the thread blocks, or begins to wait for
/// a processor: on a busy machine the sampler waits, too.
const SEEN_BEFORE_NS: u64 = 2_000_000_000;
/// Maximum time from a moment when the thread was between two leaves until it blocks, or begins to
/// wait for a processor. A longer time would accept any stack.
const ON_THE_WAY_NS: u64 = 30_000_000;
/// Maximum number of frames above a leaf's own frames.
const MOST_ABOVE: usize = 3;
/// Bits per step in a path number, see `KnownPaths.cs`.
const STEP_BITS: u32 = 6;

/// The fixture's account of one run.
#[derive(Debug)]
pub struct KnownPaths {
    before: Vec<String>,
    /// Methods that are native functions; frames with these names are ignored.
    stubs: HashSet<String>,
    steps: Vec<Shape>,
    leaves: Vec<Shape>,
    /// Methods that occur on paths.
    on_paths: HashSet<String>,
    /// Notes by thread.
    notes: Vec<Notes>,
    /// Thread and index of notes, by the own frames of their paths.
    by_frames: OnceLock<HashMap<u64, Vec<(usize, usize)>>>,
}

/// The notes of a thread.
#[derive(Debug)]
struct Notes {
    /// The system's number of the thread.
    os_id: u64,
    all: Vec<Note>,
}

/// A frame of a path, with the index of its shape: steps are counted first, then leaves. `None` for
/// the frames outside the first step.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Expected<'known> {
    name: &'known str,
    shape: Option<usize>,
}

/// Differences between a sampled stack and the true one.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Judgement {
    /// Missing frames, each with its shape.
    pub missing: Vec<(Option<usize>, String)>,
    /// Wrong additional frames, each with the shape of the last correct frame before it.
    pub extra: Vec<(Option<usize>, String)>,
}

impl Judgement {
    /// Whether the stack is the true one.
    pub fn is_equal(&self) -> bool {
        self.missing.is_empty() && self.extra.is_empty()
    }
}

impl KnownPaths {
    /// Reads the file that the fixture wrote.
    ///
    /// # Panics
    /// When the file is not in the fixture's format.
    pub fn read(file: &Path) -> Self {
        let bytes = fs::read(file).unwrap_or_else(|error| panic!("{}: {error}", file.display()));
        Self::parse(&bytes).unwrap_or_else(|| panic!("{} is no account of paths", file.display()))
    }

    fn parse(bytes: &[u8]) -> Option<Self> {
        const END: &[u8] = b"NOTES\n";
        let end = bytes.windows(END.len()).position(|window| window == END)?;
        let text = std::str::from_utf8(&bytes[..end]).ok()?;
        let with = |start: &'static str| text.lines().filter_map(move |line| line.strip_prefix(start));
        let shapes = |start| with(start).map(Shape::parse).collect::<Option<Vec<_>>>();
        let (steps, leaves) = (shapes("STEP ")?, shapes("LEAF ")?);
        let on_paths = steps.iter().chain(&leaves).flat_map(|shape| shape.frames.iter().cloned()).collect();
        Some(Self {
            before: list(with("BEFORE ").next()?),
            stubs: list(with("STUBS ").next()?).into_iter().collect(),
            steps,
            leaves,
            on_paths,
            notes: notes(&bytes[end + END.len()..])?,
            by_frames: OnceLock::new(),
        })
    }

    /// All steps, then all leaves; judgements refer to them by index.
    pub fn shapes(&self) -> impl Iterator<Item = &Shape> {
        self.steps.iter().chain(&self.leaves)
    }

    fn notes_of(&self, walker: usize) -> &[Note] {
        self.notes.get(walker).map_or(&[][..], |notes| &notes.all)
    }

    /// The number N of the thread `walker N` that has this OS thread id.
    pub fn walker(&self, os_id: u64) -> Option<usize> {
        self.notes.iter().position(|notes| notes.os_id == os_id)
    }

    /// What the thread `walker N` did at a time of the monotonic clock.
    pub fn moment(&self, walker: usize, time_ns: u64) -> Moment {
        let notes = self.notes_of(walker);
        let after = notes.partition_point(|note| note.from <= time_ns);
        let Some(note) = after.checked_sub(1).map(|at| notes[at]) else { return Moment::Outside };
        if time_ns <= note.until {
            return Moment::On(note.path);
        }
        match notes.get(after) {
            Some(next) if next.from - note.until < LONGEST_WAY_NS => Moment::Between(note.path, next.path),
            _ => Moment::Outside,
        }
    }

    /// What the thread `walker N` did in an interval: the leaves on its stack, and the ways between
    /// them, in order.
    pub fn moments(&self, walker: usize, from_ns: u64, until_ns: u64) -> Vec<Moment> {
        let notes = self.notes_of(walker);
        let first = notes.partition_point(|note| note.until < from_ns);
        let last = notes.partition_point(|note| note.from <= until_ns);
        let leaves = notes[first.min(last)..last].iter().map(|note| Moment::On(note.path));
        // On the way to the first of them, and from the last, where that has begun.
        let around = &notes[first.min(last).saturating_sub(1)..notes.len().min(last + 1)];
        let short = |pair: &&[Note]| pair[1].from - pair[0].until < LONGEST_WAY_NS && pair[0].until <= until_ns;
        let ways = around.windows(2).filter(short).map(|pair| Moment::Between(pair[0].path, pair[1].path));
        leaves.chain(ways).collect()
    }

    /// The path with this stack whose leaf was on the stack of `walker N` in an interval, if any.
    fn seen(&self, walker: usize, (from_ns, until_ns): (u64, u64), names: &[&str]) -> Option<u64> {
        let by_frames = self.by_frames.get_or_init(|| self.notes_by_frames());
        let found = self.own(names);
        (0..=MOST_ABOVE.min(found.len())).find_map(|above| {
            let frames = hash(found[..found.len() - above].iter().map(String::as_str));
            let notes = by_frames.get(&frames)?.iter().filter(|(thread, _)| *thread == walker);
            let mut notes = notes.map(|&(thread, at)| self.notes[thread].all[at]);
            let note = notes.find(|note| note.from <= until_ns && note.until >= from_ns)?;
            self.judge(note.path, names).is_equal().then_some(note.path)
        })
    }

    fn notes_by_frames(&self) -> HashMap<u64, Vec<(usize, usize)>> {
        let mut all: HashMap<u64, Vec<(usize, usize)>> = HashMap::new();
        for (thread, notes) in self.notes.iter().enumerate() {
            for (at, note) in notes.all.iter().enumerate() {
                let frames = hash(self.truth(note.path).into_iter().map(|expected| expected.name));
                all.entry(frames).or_default().push((thread, at));
            }
        }
        all
    }

    /// Number of leaves noted by all threads.
    pub fn leaves_noted(&self) -> usize {
        self.notes.iter().map(|notes| notes.all.len()).sum()
    }

    /// Indexes of the shapes of a path.
    pub fn shapes_of(&self, path: u64) -> impl Iterator<Item = usize> {
        let steps = (0..(path >> 56 & 15) as u32).map(move |at| (path >> (STEP_BITS * at) & 63) as usize);
        steps.chain([self.steps.len() + (path >> 48 & 63) as usize])
    }

    /// The path's own frames, the outermost first.
    fn truth(&self, path: u64) -> Vec<Expected<'_>> {
        let between = self.before.last().map(String::as_str).unwrap_or_default();
        let mut all: Vec<_> = self.before.iter().map(|name| Expected { name, shape: None }).collect();
        for index in self.shapes_of(path) {
            let shape = self.shapes().nth(index);
            all.extend(shape.iter().flat_map(|shape| &shape.frames).map(|name| Expected { name, shape: Some(index) }));
            all.extend((index < self.steps.len()).then_some(Expected { name: between, shape: Some(index) }));
        }
        all
    }

    /// Judges a stack that was sampled while the path's leaf was on it. `names` are the recorded
    /// names of all methods of the stack, outermost first.
    pub fn judge(&self, path: u64, names: &[&str]) -> Judgement {
        let mut found = self.own(names);
        let leaf = self.shapes_of(path).last().and_then(|leaf| self.shapes().nth(leaf));
        while found.last().is_some_and(|last| leaf.is_some_and(|leaf| self.may_be_above(leaf, last))) {
            found.pop();
        }
        compare(&self.truth(path), &found)
    }

    /// Whether a method may be above the frames of a leaf: a method that the leaf calls, or one
    /// that is on no path, such as a constructor.
    fn may_be_above(&self, leaf: &Shape, name: &str) -> bool {
        leaf.beside.iter().any(|beside| beside == name)
            || !self.on_paths.contains(name) && !self.before.iter().any(|one| one == name)
    }

    /// Whether a stack is possible while a thread moves from one path's leaf to another's: with
    /// outer frames of either path, and methods that these may call.
    pub fn is_on_the_way(&self, from: u64, to: u64, names: &[&str]) -> bool {
        let found = self.own(names);
        [from, to].into_iter().any(|path| {
            let truth = self.truth(path);
            let same = truth.iter().zip(&found).take_while(|(expected, name)| expected.name == **name).count();
            let shapes = || self.shapes_of(path).filter_map(|index| self.shapes().nth(index));
            let beside = |name: &str| shapes().any(|shape| self.may_be_above(shape, name));
            same > 0 && found[same..].iter().all(|name| beside(name))
        })
    }

    /// The program's own methods among these, in the fixture's notation.
    fn own(&self, names: &[&str]) -> Vec<String> {
        let own = |name: &&str| {
            if let Some(own) = name.strip_prefix("KnownPaths.") {
                return (!self.stubs.contains(own)).then(|| own.to_owned());
            }
            let made = name.strip_prefix("DynamicClass::")?;
            let made = if made.starts_with("lambda_method") { "lambda_method" } else { made };
            let made = format!("Dynamic::{made}");
            self.on_paths.contains(&made).then_some(made)
        };
        names.iter().filter_map(own).collect()
    }

    /// A judgement in words: found frames and true frames, each from just before the first
    /// difference on.
    pub fn explain(&self, path: u64, names: &[&str]) -> String {
        const SHOWN: usize = 6;
        let (truth, found) = (self.truth(path), self.own(names));
        let same = truth.iter().zip(&found).take_while(|(expected, name)| expected.name == **name).count();
        let from = same.saturating_sub(2);
        let shown = |all: Vec<&str>| {
            let more = if all.len() > from + SHOWN { " ..." } else { "" };
            format!("{}{more}", all.into_iter().skip(from).take(SHOWN).collect::<Vec<_>>().join(" > "))
        };
        let found = shown(found.iter().map(String::as_str).collect());
        format!("{found} instead of {}", shown(truth.iter().map(|expected| expected.name).collect()))
    }
}

impl Shape {
    /// Parses `NAME: FRAME, FRAME; BESIDE, BESIDE`.
    fn parse(line: &str) -> Option<Self> {
        let (rest, beside) = line.rsplit_once("; ")?;
        let (name, frames) = rest.rsplit_once(": ")?;
        Some(Self { name: name.to_owned(), frames: list(frames), beside: list(beside) })
    }
}

fn hash<'a>(names: impl Iterator<Item = &'a str>) -> u64 {
    let mut hasher = DefaultHasher::new();
    names.for_each(|name| name.hash(&mut hasher));
    hasher.finish()
}

fn list(text: &str) -> Vec<String> {
    text.split(", ").map(str::trim).filter(|word| !word.is_empty()).map(str::to_owned).collect()
}

/// Parses the notes of all threads: for each thread its number, the number of its notes, then the
/// words of the notes.
fn notes(mut bytes: &[u8]) -> Option<Vec<Notes>> {
    let mut all = Vec::new();
    while !bytes.is_empty() {
        let (os_id, count) = (word(bytes, 0)?, usize::try_from(word(bytes, 1)?).ok()?);
        let own = (0..count).map(|at| {
            let [path, from, until] = [0, 1, 2].map(|field| word(bytes, 2 + 3 * at + field));
            // The leaf stores the number as it received it, including the number of completed
            // steps.
            Some(Note { path: path? & !(15 << 60), from: from?, until: until? })
        });
        all.push(Notes { os_id, all: own.collect::<Option<Vec<_>>>()? });
        bytes = bytes.get(8 * (2 + 3 * count)..)?;
    }
    Some(all)
}

fn word(bytes: &[u8], at: usize) -> Option<u64> {
    Some(u64::from_le_bytes(bytes.get(8 * at..8 * at + 8)?.try_into().ok()?))
}

/// Differences by a longest common subsequence, so that as few frames as possible count as wrong.
fn compare(truth: &[Expected<'_>], found: &[String]) -> Judgement {
    let same = |at: usize, other: usize| truth[at].name == found[other];
    // Longest common subsequence of what begins at each pair of places.
    let mut longest = vec![vec![0_u32; found.len() + 1]; truth.len() + 1];
    for at in (0..truth.len()).rev() {
        for other in (0..found.len()).rev() {
            longest[at][other] = if same(at, other) {
                longest[at + 1][other + 1] + 1
            } else {
                longest[at + 1][other].max(longest[at][other + 1])
            };
        }
    }
    let (mut at, mut other, mut judgement) = (0, 0, Judgement::default());
    while at < truth.len() || other < found.len() {
        if at < truth.len() && other < found.len() && same(at, other) {
            (at, other) = (at + 1, other + 1);
        } else if other == found.len() || at < truth.len() && longest[at + 1][other] >= longest[at][other + 1] {
            judgement.missing.push((truth[at].shape, truth[at].name.to_owned()));
            at += 1;
        } else {
            let before = at.checked_sub(1).and_then(|before| truth[before].shape);
            judgement.extra.push((before, found[other].clone()));
            other += 1;
        }
    }
    judgement
}

/// Sums of judgements.
#[derive(Debug, Clone, Default)]
pub struct Tally {
    /// Samples whose true stack is known.
    pub samples: u64,
    /// Samples whose own frames equal the true ones, in order.
    pub equal: u64,
    /// Samples that differ from the true stack although they are marked as complete.
    pub silent: u64,
    /// Samples between two leaves.
    pub between: u64,
    /// Samples between two leaves whose stack is not possible there.
    pub astray: u64,
    /// Sums by shape.
    pub by_shape: BTreeMap<usize, ShapeTally>,
    /// The found frames of the first sample that counts as astray.
    pub first_astray: Option<String>,
}

/// Sums for one shape.
#[derive(Debug, Clone, Default)]
pub struct ShapeTally {
    /// Samples with the shape on their paths.
    pub samples: u64,
    /// Samples without an error in this shape.
    pub equal: u64,
    /// Frames of the shape that were not found.
    pub missing: u64,
    /// Frames found beyond an expected frame, but not on the expected path.
    pub extra: u64,
    /// First sample with an error in this shape, in words.
    pub first_wrong: Option<String>,
}

impl Tally {
    /// Adds a sample. `moment` is what the thread did at that time, `names` the methods of the
    /// stack, outermost first, `whole` whether the stack is marked as complete, and `count` the
    /// number of samples that this one represents.
    pub fn add(&mut self, known: &KnownPaths, moment: Moment, names: &[&str], whole: bool, count: u64) {
        match moment {
            Moment::On(path) => self.add_known(known, path, names, whole, count),
            Moment::Between(from, to) => {
                self.between += count;
                if !known.is_on_the_way(from, to, names) {
                    self.astray += count;
                    self.first_astray.get_or_insert_with(|| known.own(names).join(" > "));
                }
            }
            Moment::Outside => {}
        }
    }

    /// Adds a record of `walker N`, which was blocked or waited for a processor in an interval. The
    /// thread must have had the stack in the interval, or when it was last sampled before.
    pub fn add_still(
        &mut self,
        known: &KnownPaths,
        (walker, from_ns, until_ns): (usize, u64, u64),
        names: &[&str],
        whole: bool,
        count: u64,
    ) {
        let seen = known.seen(walker, (from_ns.saturating_sub(SEEN_BEFORE_NS), until_ns), names).map(Moment::On);
        let moments = known.moments(walker, from_ns.saturating_sub(ON_THE_WAY_NS), until_ns);
        let is =
            |moment: &&Moment| matches!(**moment, Moment::Between(from, to) if known.is_on_the_way(from, to, names));
        // Of a stack that the thread never had, any difference is as good as another.
        let last = moments.iter().rfind(|moment| matches!(moment, Moment::On(_))).or(moments.last());
        let moment = seen.or_else(|| moments.iter().find(is).or(last).copied());
        if let Some(moment) = moment {
            self.add(known, moment, names, whole, count);
        }
    }

    fn add_known(&mut self, known: &KnownPaths, path: u64, names: &[&str], whole: bool, count: u64) {
        let judgement = known.judge(path, names);
        self.samples += count;
        self.equal += if judgement.is_equal() { count } else { 0 };
        self.silent += if whole && !judgement.is_equal() { count } else { 0 };
        let mut shapes: Vec<usize> = known.shapes_of(path).collect();
        shapes.sort_unstable();
        shapes.dedup();
        for shape in shapes {
            let of = |faults: &[(Option<usize>, String)]| {
                faults.iter().filter(|fault| fault.0 == Some(shape)).count() as u64
            };
            let (missing, extra) = (of(&judgement.missing), of(&judgement.extra));
            let sum = self.by_shape.entry(shape).or_default();
            sum.samples += count;
            sum.missing += count * missing;
            sum.extra += count * extra;
            if missing + extra == 0 {
                sum.equal += count;
            } else if sum.first_wrong.is_none() {
                sum.first_wrong = Some(known.explain(path, names));
            }
        }
    }

    /// Adds samples that were taken but not recorded; they count as not equal.
    pub fn add_lost(&mut self, count: u64) {
        self.samples += count;
    }

    /// Adds another tally to this one.
    pub fn join(&mut self, other: Self) {
        self.samples += other.samples;
        self.equal += other.equal;
        self.silent += other.silent;
        self.between += other.between;
        self.astray += other.astray;
        self.first_astray = self.first_astray.take().or(other.first_astray);
        for (shape, more) in other.by_shape {
            let sum = self.by_shape.entry(shape).or_default();
            sum.samples += more.samples;
            sum.equal += more.equal;
            sum.missing += more.missing;
            sum.extra += more.extra;
            sum.first_wrong = sum.first_wrong.take().or(more.first_wrong);
        }
    }

    /// Share of the samples that are equal, in percent.
    pub fn equal_percent(&self) -> f64 {
        percent(self.equal, self.samples)
    }
}

impl ShapeTally {
    /// Share of the samples that are equal, in percent.
    pub fn equal_percent(&self) -> f64 {
        percent(self.equal, self.samples)
    }
}

fn percent(part: u64, whole: u64) -> f64 {
    if whole == 0 { 0.0 } else { 100.0 * part as f64 / whole as f64 }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = "BEFORE Program::Start, Steps::Next
STUBS Natives::Find
STEP framed: Plain::Framed; Plain::Nothing
STEP three: Plain::First, Plain::Second; 
LEAF computes: Leaves::Reach, Leaves::Compute; 
LEAF calls, and more: Leaves::Reach, Leaves::Forwarders; Leaves::Forward, Leaves::Divide
NOTES
";

    /// A path of these steps with this leaf.
    fn path(steps: &[u64], leaf: u64) -> u64 {
        let digits: u64 = steps.iter().enumerate().map(|(at, step)| step << (6 * at)).sum();
        (steps.len() as u64) << 56 | leaf << 48 | digits
    }

    fn known(threads: &[&[Note]]) -> KnownPaths {
        let mut bytes = TEXT.as_bytes().to_vec();
        for (at, notes) in threads.iter().enumerate() {
            let words = notes.iter().flat_map(|note| [note.path | 2 << 60, note.from, note.until]);
            let words: Vec<u8> =
                [70 + at as u64, notes.len() as u64].into_iter().chain(words).flat_map(u64::to_le_bytes).collect();
            bytes.extend(words);
        }
        KnownPaths::parse(&bytes).expect("an account")
    }

    #[test]
    fn a_moment_is_that_of_the_leaf_on_the_stack_or_lies_between_two() {
        let (first, second) = (path(&[0], 0), path(&[1, 0], 1));
        let notes = [Note { path: first, from: 100, until: 200 }, Note { path: second, from: 250, until: 300 }];
        let known = known(&[&[], &notes]);
        let at = |time| known.moment(1, time);
        assert_eq!([at(99), at(100), at(200)], [Moment::Outside, Moment::On(first), Moment::On(first)]);
        assert_eq!([at(201), at(275)], [Moment::Between(first, second), Moment::On(second)]);
        assert_eq!([at(301), known.moment(0, 150), known.moment(9, 150)], [Moment::Outside; 3]);
        assert_eq!((known.leaves_noted(), known.walker(71), known.walker(1)), (2, Some(1), None));
        let all = [Moment::On(first), Moment::On(second), Moment::Between(first, second)];
        assert_eq!(known.moments(1, 150, 260), all);
        assert_eq!(known.moments(1, 210, 220), all[2..], "no leaf was on the stack");
        assert_eq!(known.moments(0, 0, u64::MAX), []);
    }

    #[test]
    fn a_missing_frame_is_its_shapes_fault_and_one_too_many_that_of_the_one_before() {
        let known = known(&[]);
        let path = path(&[1, 0], 1);
        let frame = |name: &str| format!("KnownPaths.{name}");
        let whole: Vec<String> = "Program::Start Steps::Next Plain::First Plain::Second Steps::Next Plain::Framed Steps::Next Leaves::Reach \
             Leaves::Forwarders Leaves::Forward Leaves::Divide"
            .split(' ')
            .map(frame)
            .collect();
        let judge = |names: &[String]| {
            let mut names: Vec<&str> = names.iter().map(String::as_str).collect();
            // Frames of other code and of native functions are ignored.
            names.insert(names.len().min(3), "System.Threading.Tasks.Task::Wait");
            names.insert(names.len().min(1), "KnownPaths.Natives::Find");
            known.judge(path, &names)
        };
        assert!(judge(&whole).is_equal() && judge(&whole[..9]).is_equal(), "{:?}", judge(&whole));
        let without = |gone: usize| judge(&[&whole[..gone], &whole[gone + 1..]].concat());
        assert_eq!(without(3).missing, [(Some(1), "Plain::Second".to_owned())]);
        assert_eq!(without(0).missing, [(None, "Program::Start".to_owned())]);
        assert_eq!(judge(&whole[..8]).missing, [(Some(3), "Leaves::Forwarders".to_owned())], "a leaf is no ornament");
        let mut more = whole.clone();
        more.insert(6, frame("Plain::Second"));
        assert_eq!(judge(&more).extra, [(Some(0), "Plain::Second".to_owned())]);
        assert!(!judge(&[]).is_equal() && judge(&[]).missing.len() == 9);
    }

    #[test]
    fn between_leaves_a_stack_is_the_beginning_of_either_path() {
        let known = known(&[]);
        let (from, to) = (path(&[0], 0), path(&[1], 1));
        let is = |names: &str| {
            let names: Vec<String> = names.split(' ').map(|name| format!("KnownPaths.{name}")).collect();
            known.is_on_the_way(from, to, &names.iter().map(String::as_str).collect::<Vec<_>>())
        };
        assert!(is("Program::Start") && is("Program::Start Steps::Next Plain::Framed Plain::Nothing"));
        assert!(is("Program::Start Steps::Next Plain::First Other::.ctor"));
        assert!(!is("Steps::Next Plain::First") && !is("Program::Start Steps::Next Plain::Second"));
        assert!(!is("Program::Start Plain::Framed Steps::Next"));
    }

    #[test]
    fn a_thread_that_stands_still_has_a_stack_that_it_had_when_it_was_seen_last() {
        let (first, second, far) = (path(&[0], 0), path(&[1], 1), 3 * SEEN_BEFORE_NS);
        let note = |path, from| Note { path, from, until: from + 100 };
        let known = known(&[&[note(first, 1_000), note(second, far), note(first, far + 200)]]);
        let frames =
            |path| -> Vec<String> { known.truth(path).iter().map(|one| format!("KnownPaths.{}", one.name)).collect() };
        let add = |path, time: u64| {
            let mut tally = Tally::default();
            let frames = frames(path);
            let mut names: Vec<&str> = frames.iter().map(String::as_str).collect();
            names.push("KnownPaths.Node::.ctor");
            tally.add_still(&known, (0, time, time + 10), &names, true, 1);
            [tally.samples, tally.equal]
        };
        assert_eq!([add(second, far + 150), add(first, far + 250)], [[1, 1]; 2]);
        assert_eq!(add(first, far + 50), [1, 0], "not for that long");
        assert_eq!(add(path(&[0, 1], 0), far + 250), [1, 0], "never");
    }

    /// For a thread that was stopped between leaves, nine of ten stacks used to count as wrong,
    /// because they were compared with the previous leaf.
    #[test]
    fn a_thread_that_stands_still_between_leaves_is_on_the_way_to_the_next() {
        let (first, second) = (path(&[0], 0), path(&[1], 1));
        let note = |path, from| Note { path, from, until: from + 100 };
        let known = known(&[&[note(first, 1_000), note(second, 500_000_000)]]);
        let add = |names: &[&str]| {
            let names: Vec<String> = names.iter().map(|name| format!("KnownPaths.{name}")).collect();
            let names: Vec<&str> = names.iter().map(String::as_str).collect();
            let mut tally = Tally::default();
            tally.add_still(&known, (0, 200_000_000, 237_000_000), &names, true, 1);
            [tally.samples, tally.between, tally.astray]
        };
        assert_eq!(add(&["Program::Start", "Steps::Next", "Plain::First"]), [0, 1, 0]);
        assert_eq!(add(&["Program::Start", "Plain::First"]), [0, 1, 1]);
    }

    #[test]
    fn tallies_count_faults_where_they_are_and_lost_samples_as_not_equal() {
        let known = known(&[]);
        let path = path(&[0], 0);
        let names =
            ["Program::Start", "Steps::Next", "Plain::Framed", "Steps::Next", "Leaves::Reach", "Leaves::Compute"]
                .map(|name| format!("KnownPaths.{name}"));
        let names: Vec<&str> = names.iter().map(String::as_str).collect();
        let mut tally = Tally::default();
        tally.add(&known, Moment::On(path), &names, true, 3);
        tally.add(&known, Moment::On(path), &names[..5], true, 1);
        tally.add(&known, Moment::Outside, &names, true, 1);
        tally.add(&known, Moment::Between(path, path), &names[2..], true, 1);
        tally.add_lost(1);
        assert_eq!([tally.samples, tally.equal, tally.silent, tally.between, tally.astray], [5, 3, 1, 1, 1]);
        let (step, leaf) = (&tally.by_shape[&0], &tally.by_shape[&2]);
        assert_eq!([step.samples, step.equal, leaf.samples, leaf.equal, leaf.missing], [4, 4, 4, 3, 1]);
        assert!(leaf.first_wrong.as_deref().is_some_and(|text| text.contains("instead of")), "{leaf:?}");
        let mut twice = tally.clone();
        twice.join(tally.clone());
        assert_eq!(twice.equal_percent(), 60.0);
        assert_eq!(twice.by_shape[&2].missing, 2);
    }
}
