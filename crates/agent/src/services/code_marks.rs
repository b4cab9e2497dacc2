//! Parts of a recording that the program's own code begins and ends, by events of an event source
//! named [`clrscope`](MARKS): `Start` and `Stop`, each with a name. Tests of xUnit are parts, too,
//! by the events of [its own source](XUNIT).
//!
//! No session exists until the program creates one of these sources. The session begins while the
//! runtime creates the source, on the same thread, so that not even the first event is missed.
//! Events are delivered on the thread that raises them. Where something is counted up to a
//! boundary, the thread waits for the count ([`HelperHandle::draw`]).

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use clr_profiler::callback_args::EventPipeEvent;
use clr_profiler::{Callbacks, EventPipeProviderId, Events, ProfilerInfo};
use clrscope_agent_base::event_pipe::{EventPipe, Fields, MARKS, XUNIT, level};
use clrscope_agent_base::helper::{HelperHandle, Task};
use clrscope_agent_base::hooks::is_stopped;
use clrscope_agent_base::recording_lifetime::keep;
use clrscope_recording::model::{BoundaryKind, LossReason};
use clrscope_recording::writer::{Command, ProcessWriter, monotonic_ns};

use super::context::Beginning;

/// Sources, each with the names of its events that begin and end a part.
const SOURCES: [(&str, [&str; 2]); 2] = [(MARKS, ["Start", "Stop"]), (XUNIT, ["TestStart", "TestStop"])];

/// Bytes of the longest name: the name of a test includes its arguments.
const LONGEST_NAME: usize = 256;
/// Parts that may be open at once.
const MOST_OPEN: usize = 1_024;
/// Boundaries in a recording at most. Each costs a record and, with `calls`, a pass over all trees.
const MOST_BOUNDARIES: usize = 1 << 15;

/// Types of fields that are a string, and of fields that are an object (`System.TypeCode`).
const TEXT: u32 = 18;
const OBJECT: u32 = 1;
/// Nested objects that are searched for the first field at most.
const MOST_OBJECTS: usize = 8;

/// Follows the parts that the program's code marks.
pub(crate) struct CodeMarks(&'static Marks);

struct Marks {
    info: ProfilerInfo,
    writer: &'static ProcessWriter,
    helper: HelperHandle,
    pipe: &'static EventPipe,
    /// Whether a source may be there.
    is_wanted: AtomicBool,
    open: Mutex<OpenParts>,
}

#[derive(Default)]
struct OpenParts {
    /// For each part, how many more times it was begun than ended.
    times: HashMap<String, u32>,
    boundaries: usize,
    /// Reasons that the recording already has, a bit each.
    told: u32,
}

/// Reason why a mark has no effect.
#[derive(Debug, Clone, Copy)]
enum Ignored {
    Fields,
    Name(&'static str),
    NotOpen,
    TooManyOpen,
    TooMany,
    Late,
}

impl Ignored {
    fn bit(self) -> u32 {
        match self {
            Self::Fields => 1,
            Self::Name(_) => 2,
            Self::NotOpen => 4,
            Self::TooManyOpen => 8,
            Self::TooMany => 16,
            Self::Late => 32,
        }
    }

    /// A line of text for a part of this name.
    fn text(self, name: &str) -> String {
        match self {
            Self::Fields => format!("the first field of an event '{name}' is not a text: a mark needs a name"),
            Self::Name(why) => format!("the name '{name}' of a part: {why}"),
            Self::NotOpen => format!("part '{name}' ended, and has not begun"),
            Self::TooManyOpen => format!("part '{name}' began while {MOST_OPEN} others were open"),
            Self::TooMany => format!("part '{name}' began behind {MOST_BOUNDARIES} beginnings and ends"),
            Self::Late => {
                format!("part '{name}' began or ended late, as the machine was busy; its calls are uncertain")
            }
        }
    }
}

impl CodeMarks {
    pub(crate) fn new(info: &ProfilerInfo, writer: &'static ProcessWriter, helper: &HelperHandle) -> Self {
        let pipe = keep(EventPipe::new(info, writer));
        SOURCES.iter().for_each(|(name, _)| pipe.want(name, u64::MAX, level::VERBOSE));
        let (info, helper) = (info.clone(), helper.clone());
        Self(keep(Marks { info, writer, helper, pipe, is_wanted: AtomicBool::new(false), open: Mutex::default() }))
    }

    /// The events that this needs from the runtime.
    pub(crate) fn events(&self) -> Events {
        self.0.pipe.events()
    }

    /// Call it when the agent runs. After an attach it is unknown which of the sources the program
    /// has created already.
    pub(crate) fn begin(&self, beginning: Beginning) {
        if beginning == Beginning::Attach {
            self.0.is_wanted.store(true, Ordering::Release);
            self.0.pipe.begin();
        }
    }

    /// Task of the helper thread for these events.
    pub(crate) fn task(&self) -> Box<dyn Task> {
        Box::new(Switch { marks: self.0, session: self.0.pipe.task() })
    }
}

impl Callbacks for CodeMarks {
    fn event_pipe_provider_created(&self, provider: EventPipeProviderId) {
        let Ok(name) = self.0.info.event_pipe_provider_name(provider) else { return };
        if !SOURCES.iter().any(|(source, _)| *source == name) {
            return;
        }
        self.0.is_wanted.store(true, Ordering::Release);
        if self.0.helper.takes_marks() {
            self.0.pipe.begin_here();
            if !self.0.helper.takes_marks() {
                // The recording has ended meanwhile, and its end may have missed the session.
                self.0.pipe.end_soon();
            }
        }
    }

    fn event_pipe_event_delivered(&self, event: &EventPipeEvent<'_>) {
        // Sessions of other tools may deliver other events.
        if !self.0.pipe.is_open() || is_stopped() {
            return;
        }
        let mut sources = SOURCES.iter();
        if let Some((_, names)) = sources.find(|(source, _)| self.0.pipe.of_provider(source, event).is_some()) {
            self.0.event(*names, event.metadata, event.data);
        }
    }
}

impl Marks {
    fn open(&self) -> MutexGuard<'_, OpenParts> {
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn event(&self, names: [&str; 2], metadata: &[u8], data: &[u8]) {
        let Some(about) = EventFields::of(metadata) else { return };
        let Some(which) = names.iter().position(|name| about.is_named(name)) else { return };
        let name = about.begins_with_text.then(|| Fields::new(data).text()).flatten();
        match name {
            None => self.ignored(&mut self.open(), Ignored::Fields, names[which]),
            Some(name) => self.mark([BoundaryKind::Begin, BoundaryKind::End][which], &clean(name)),
        }
    }

    /// Begins or ends a part, on the program's thread that raised the event.
    fn mark(&self, kind: BoundaryKind, name: &str) {
        if !self.helper.takes_marks() {
            return;
        }
        let mut open = self.open();
        let drawn = match open.change(kind, name) {
            // After a boundary that another thread may just have begun.
            Ok(false) => self.helper.last_drawn(),
            Ok(true) => self.helper.draw(self.writer, kind, name),
            Err(why) => return self.ignored(&mut open, why, name),
        };
        drop(open);
        if !self.helper.wait_for_boundary(drawn) && self.helper.takes_marks() {
            self.ignored(&mut self.open(), Ignored::Late, name);
        }
    }

    fn ignored(&self, open: &mut OpenParts, why: Ignored, name: &str) {
        self.writer.state().lose(LossReason::MarkIgnored, 1, monotonic_ns());
        if open.told & why.bit() == 0 {
            open.told |= why.bit();
            self.writer.loss_detail(LossReason::MarkIgnored, &why.text(name));
        }
    }
}

impl OpenParts {
    /// Notes the begin or end of a part. Returns whether it is a boundary: whether the set of open
    /// parts changes.
    fn change(&mut self, kind: BoundaryKind, name: &str) -> Result<bool, Ignored> {
        if let Some(why) = Command::names_no_part(name) {
            return Err(Ignored::Name(why));
        }
        let times = self.times.get_mut(name);
        let is_boundary = match (kind, times) {
            (BoundaryKind::Begin, Some(times)) => {
                *times = times.saturating_add(1);
                false
            }
            (BoundaryKind::Begin, None) => {
                if self.times.len() >= MOST_OPEN {
                    return Err(Ignored::TooManyOpen);
                }
                // A part that has begun may end despite the limit.
                if self.boundaries + self.times.len() + 2 > MOST_BOUNDARIES {
                    return Err(Ignored::TooMany);
                }
                self.times.insert(name.to_owned(), 1);
                true
            }
            (_, None) => return Err(Ignored::NotOpen),
            (_, Some(1)) => {
                self.times.remove(name);
                true
            }
            (_, Some(times)) => {
                *times -= 1;
                false
            }
        };
        self.boundaries += usize::from(is_boundary);
        Ok(is_boundary)
    }
}

/// At the end of the recording, ends the session and the open parts.
struct Switch {
    marks: &'static Marks,
    session: Box<dyn Task>,
}

impl Task for Switch {
    fn stop(&mut self) -> bool {
        self.marks.open().times.clear();
        self.session.stop()
    }

    fn start_again(&mut self, now_ns: u64) {
        if self.marks.is_wanted.load(Ordering::Acquire) {
            self.session.start_again(now_ns);
        }
    }
}

/// The runtime's description of an event's fields (`EventPipeMetadataGenerator` of
/// System.Private.CoreLib): number, name, keywords, version, level, number of fields, then each
/// field, its type first.
struct EventFields<'a> {
    name: Fields<'a>,
    begins_with_text: bool,
}

impl<'a> EventFields<'a> {
    fn of(metadata: &'a [u8]) -> Option<Self> {
        let mut fields = Fields::new(metadata);
        fields.u32()?;
        let name = fields;
        let _name = fields.text()?;
        let (_keywords, _version, _level) = (fields.u64()?, fields.u32()?, fields.u32()?);
        Some(Self { name, begins_with_text: begins_with_text(fields) })
    }

    fn is_named(&self, name: &str) -> bool {
        let mut fields = self.name;
        fields.text().is_some_and(|units| units.eq(name.encode_utf16()))
    }
}

/// Whether the first of these fields is a string. Self-describing events have one object, whose
/// fields follow its type.
fn begins_with_text(mut fields: Fields<'_>) -> bool {
    for _ in 0..MOST_OBJECTS {
        match (fields.u32(), fields.u32()) {
            (Some(1..), Some(OBJECT)) => {}
            (Some(1..), kind) => return kind == Some(TEXT),
            _ => return false,
        }
    }
    false
}

/// The name of a part, cut at the longest length, with visible characters in place of control
/// characters and broken text.
fn clean(units: impl Iterator<Item = u16>) -> String {
    let mut name = String::new();
    for c in char::decode_utf16(units) {
        let c = c.ok().filter(|c| !c.is_control()).unwrap_or(char::REPLACEMENT_CHARACTER);
        if name.len() + c.len_utf8() > LONGEST_NAME {
            break;
        }
        name.push(c);
    }
    name
}

#[cfg(test)]
mod tests {
    use super::*;

    const BEGIN: BoundaryKind = BoundaryKind::Begin;
    const END: BoundaryKind = BoundaryKind::End;

    #[test]
    fn a_part_is_open_until_it_has_ended_as_often_as_it_has_begun() {
        let mut open = OpenParts::default();
        let mut change = |kind, name| open.change(kind, name).ok();
        assert_eq!([change(BEGIN, "a"), change(BEGIN, "a"), change(BEGIN, "b")], [Some(true), Some(false), Some(true)]);
        assert_eq!([change(END, "a"), change(END, "a"), change(END, "a")], [Some(false), Some(true), None]);
        assert_eq!([change(END, "c"), change(BEGIN, ""), change(BEGIN, "12")], [None; 3]);
        assert_eq!(open.boundaries, 3);
    }

    #[test]
    fn what_has_begun_can_end_however_many_there_are() {
        let mut open = OpenParts::default();
        let begun = (0..100_000).filter(|number| open.change(BEGIN, &format!("p{number}")).is_ok()).count();
        assert_eq!(begun, MOST_OPEN);
        assert!((0..begun).all(|number| open.change(END, &format!("p{number}")).is_ok()));
        let mut drawn = 0;
        for number in 0..100_000 {
            let name = format!("q{number}");
            drawn += usize::from(open.change(BEGIN, &name).is_ok()) + usize::from(open.change(END, &name).is_ok());
        }
        assert_eq!((2 * begun + drawn, open.boundaries, open.times.len()), (MOST_BOUNDARIES, MOST_BOUNDARIES, 0));
    }

    #[test]
    fn names_are_short_and_without_control_characters() {
        assert_eq!(clean("a\tb\n".encode_utf16()), "a\u{fffd}b\u{fffd}");
        assert_eq!(clean("é".repeat(1_000).encode_utf16()), "é".repeat(LONGEST_NAME / 2));
        assert_eq!(clean([0xd800, 0x41].into_iter()), "\u{fffd}A");
    }

    /// The description of an event `Start` with fields of these types.
    fn metadata(types: &[u32]) -> Vec<u8> {
        let mut bytes = 1_u32.to_le_bytes().to_vec();
        bytes.extend("Start".encode_utf16().chain([0]).flat_map(u16::to_le_bytes));
        bytes.extend([0; 16]);
        bytes.extend((types.len() as u32).to_le_bytes());
        bytes.extend(types.iter().flat_map(|number| number.to_le_bytes()));
        bytes
    }

    #[test]
    fn events_that_describe_themselves_have_their_fields_in_an_object() {
        let begins = |words: &[u32]| {
            let bytes: Vec<u8> = words.iter().flat_map(|word| word.to_le_bytes()).collect();
            begins_with_text(Fields::new(&bytes))
        };
        assert!(begins(&[1, OBJECT, 1, TEXT]) && begins(&[1, OBJECT, 1, OBJECT, 2, TEXT, 9]));
        let others = [&[1, OBJECT, 0][..], &[1, OBJECT], &[1, OBJECT, 1, 9], &[1, OBJECT].repeat(1_000)];
        assert!(!others.into_iter().any(begins));
    }

    #[test]
    fn events_are_told_by_their_names_and_their_first_field() {
        let text = metadata(&[TEXT, 9]);
        let about = EventFields::of(&text).expect("an event");
        assert!(
            about.is_named("Start") && !about.is_named("Star") && !about.is_named("Stop") && about.begins_with_text
        );
        for types in [&[][..], &[9], &[9, TEXT]] {
            assert!(!EventFields::of(&metadata(types)).expect("an event").begins_with_text, "{types:?}");
        }
        for length in 0..text.len() {
            // Whatever is said, nothing is read behind the end.
            let _ = EventFields::of(&text[..length]).is_some_and(|about| about.is_named("Start"));
        }
    }
}
