//! Options of `events`.

use clr_profiler::Events;
use clrscope_contract::instruments::events::{self, ALLOCATIONS, GROUPS, MAX};
use clrscope_contract::instruments::{CheckedInstrument, Spec};
use clrscope_recording::events::{Group, Kind};

/// The options in the form that this instrument uses.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct EventsOptions {
    /// The requested groups, in the order of [`Group::ALL`].
    pub(crate) groups: Vec<Group>,
    /// Whether each allocated object is recorded, too.
    pub(crate) allocations: bool,
    pub(crate) max_bytes: u64,
}

impl crate::instrument::InstrumentOptions for EventsOptions {
    const SPEC: &Spec = events::SPEC;

    fn from_request(request: &CheckedInstrument) -> Self {
        Self {
            groups: request.members(GROUPS).iter().filter_map(|name| Group::parse(name)).collect(),
            allocations: request.is_on(ALLOCATIONS),
            max_bytes: request.number(MAX),
        }
    }
}

impl EventsOptions {
    /// Whether the group was requested.
    pub(crate) fn has(&self, group: Group) -> bool {
        self.groups.contains(&group)
    }

    /// Whether each kind of record is wanted, indexed by the kind's number.
    pub(crate) fn kinds(&self) -> [bool; 256] {
        let mut wanted = [false; 256];
        for kind in Kind::all() {
            wanted[usize::from(kind.0)] = kind.group().is_some_and(|group| self.has(group));
        }
        wanted
    }

    /// The events that the instrument needs from the runtime.
    pub(crate) fn mask(&self) -> Events {
        let mut mask = self.groups.iter().fold(Events::NONE, |mask, group| mask | mask_of(*group));
        if self.allocations {
            mask |= Events::ENABLE_OBJECT_ALLOCATED | Events::OBJECT_ALLOCATED;
        }
        mask
    }

    /// Remarks about groups that record less than their name suggests.
    pub(crate) fn remarks(&self) -> impl Iterator<Item = &'static str> {
        let remarks = [
            (
                Group::Com,
                "events: the group com records nothing here: COM is for Windows, remoting for .NET Framework",
            ),
            (
                Group::Pipe,
                "events: the group pipe records providers only; events are delivered to the profiler that opened a session",
            ),
        ];
        remarks.into_iter().filter(|(group, _)| self.has(*group)).map(|(_, remark)| remark)
    }
}

fn mask_of(group: Group) -> Events {
    match group {
        Group::Runtime | Group::Com => Events::NONE,
        Group::Loads => {
            Events::APP_DOMAIN_LOADS
                | Events::ASSEMBLY_LOADS
                | Events::MODULE_LOADS
                | Events::CLASS_LOADS
                | Events::IN_MEMORY_SYMBOLS_UPDATED
        }
        Group::Jit => Events::JIT_COMPILATION | Events::CACHE_SEARCHES | Events::DYNAMIC_FUNCTION_UNLOADS,
        Group::Threads => Events::THREADS,
        Group::Transitions => Events::CODE_TRANSITIONS,
        Group::Suspend => Events::SUSPENSIONS,
        // Only begin and end, so that concurrent collections stay enabled.
        Group::Gc => Events::BASIC_GC,
        Group::Objects => Events::GC | Events::LARGE_OBJECT_ALLOCATED | Events::PINNED_OBJECT_ALLOCATED,
        Group::Heap | Group::Handles => Events::GC,
        Group::Exceptions => Events::EXCEPTIONS | Events::CLR_EXCEPTIONS,
        Group::Pipe => Events::EVENT_PIPE,
    }
}

#[cfg(test)]
mod tests {
    use crate::instrument::tests::checked;
    use super::*;
    use crate::instrument::InstrumentOptions as _;

    fn options(text: &str) -> EventsOptions {
        EventsOptions::from_request(&checked(text))
    }

    #[test]
    fn every_option_arrives() {
        assert_eq!(options("events:jit,gc"), options("events:groups=gc+jit"));
        assert_eq!(options("events:jit,gc").groups, [Group::Jit, Group::Gc]);
        assert_eq!(options("events:all").groups.len(), Group::ALL.len());
        let all = options("events:objects,allocations=on,max=64MiB");
        assert_eq!(all, EventsOptions { groups: vec![Group::Objects], allocations: true, max_bytes: 64 << 20 });
    }

    #[test]
    fn the_cheap_groups_change_nothing_about_collections_and_code() {
        let mask = options("events").mask();
        assert!(!mask.intersects(Events::GC | Events::REFUSE_PRECOMPILED_CODE | Events::ENABLE_OBJECT_ALLOCATED));
    }

    #[test]
    fn only_kinds_of_the_groups_are_recorded() {
        let kinds = options("events:jit").kinds();
        let wanted = |kind: Kind| kinds[usize::from(kind.0)];
        assert!(wanted(Kind::JIT_INLINING) && wanted(Kind::REJIT_ERROR));
        assert!(!wanted(Kind::THREAD_CREATED) && !wanted(Kind::NAME));
    }
}
