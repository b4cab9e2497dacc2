//! Options of `events`.

use std::fmt;

use clr_profiler::Events;
use clrscope_contract::request::{InstrumentRequest, parse_limit};
use clrscope_recording::events::{Group, Kind};

/// Groups that cost little and change nothing about how the program runs.
///
/// The others are asked for by name: `transitions` throws precompiled code away and makes cheap calls of
/// native code 40 to 70 times slower; `objects`, `heap` and `handles` switch concurrent collections off
/// and walk the whole heap at each one; `com` never comes outside Windows; `pipe` tells of providers that
/// nobody asked about.
const CHEAP: [Group; 7] =
    [Group::Runtime, Group::Loads, Group::Jit, Group::Threads, Group::Suspend, Group::Gc, Group::Exceptions];

/// `events:GROUP,...` or `events:groups=GROUP+GROUP,allocations=on|off,max=SIZE`
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Options {
    /// In the order of [`Group::ALL`].
    pub(crate) groups: Vec<Group>,
    /// Each allocated object too.
    pub(crate) allocations: bool,
    pub(crate) max_bytes: u64,
}

impl crate::instrument::Options for Options {
    fn parse(request: &InstrumentRequest) -> Result<Self, String> {
        let mut options = Self { groups: Vec::new(), allocations: false, max_bytes: 1 << 30 };
        for (key, value) in &request.options {
            match (key.as_str(), value.as_deref()) {
                ("groups", Some(names)) => names.split('+').try_for_each(|name| options.add(name))?,
                ("max", value) => {
                    options.max_bytes = parse_limit(value.unwrap_or_default()).map_err(|error| error.0)?;
                }
                ("allocations", Some("on")) => options.allocations = true,
                ("allocations", Some("off")) => options.allocations = false,
                (name, None) => options.add(name)?,
                (key, Some(value)) => {
                    return Err(format!("events has no option '{key}={value}'; known: groups, allocations, max"));
                }
            }
        }
        if options.groups.is_empty() {
            options.groups = CHEAP.to_vec();
        }
        options.groups.sort();
        options.groups.dedup();
        if options.allocations && !options.has(Group::Objects) {
            return Err("events:allocations needs the group 'objects'".to_owned());
        }
        Ok(options)
    }
}

impl Options {
    fn add(&mut self, name: &str) -> Result<(), String> {
        if name == "all" {
            self.groups.extend(Group::ALL.map(|(_, group)| group));
            return Ok(());
        }
        let group = Group::parse(name).ok_or_else(|| {
            let known: Vec<_> = Group::ALL.iter().map(|(name, _)| *name).collect();
            format!("events has no group '{name}'; known: {}, all", known.join(", "))
        })?;
        self.groups.push(group);
        Ok(())
    }

    /// Whether the group was asked for.
    pub(crate) fn has(&self, group: Group) -> bool {
        self.groups.contains(&group)
    }

    /// Which kinds are recorded, by number.
    pub(crate) fn kinds(&self) -> [bool; 256] {
        let mut wanted = [false; 256];
        for kind in Kind::all() {
            wanted[usize::from(kind.0)] = kind.group().is_some_and(|group| self.has(group));
        }
        wanted
    }

    /// What the runtime is asked to tell.
    pub(crate) fn mask(&self) -> Events {
        let mut mask = self.groups.iter().fold(Events::NONE, |mask, group| mask | mask_of(*group));
        if self.allocations {
            mask |= Events::ENABLE_OBJECT_ALLOCATED | Events::OBJECT_ALLOCATED;
        }
        mask
    }

    /// What is to be said about groups that can't do what their name promises.
    pub(crate) fn remarks(&self) -> impl Iterator<Item = &'static str> {
        let remarks = [
            (
                Group::Com,
                "events: nothing of the group com can come here: COM is for Windows, remoting for .NET Framework",
            ),
            (
                Group::Pipe,
                "events: the group pipe tells of providers only; events are delivered to whoever opened a session",
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
        // Begin and end only: concurrent collections stay on.
        Group::Gc => Events::BASIC_GC,
        Group::Objects => Events::GC | Events::LARGE_OBJECT_ALLOCATED | Events::PINNED_OBJECT_ALLOCATED,
        Group::Heap | Group::Handles => Events::GC,
        Group::Exceptions => Events::EXCEPTIONS | Events::CLR_EXCEPTIONS,
        Group::Pipe => Events::EVENT_PIPE,
    }
}

impl fmt::Display for Options {
    /// The options with every default filled in, in the grammar that [`Options::parse`] reads.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut groups: Vec<_> = self.groups.iter().map(|group| group.name()).collect();
        if groups.len() == Group::ALL.len() {
            groups = vec!["all"];
        }
        let allocations = if self.allocations { "on" } else { "off" };
        write!(f, "events:groups={},allocations={allocations},max={}", groups.join("+"), self.max_bytes)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::instrument::Options as _;

    fn parse(text: &str) -> Result<Options, String> {
        Options::parse(&InstrumentRequest::parse(text).expect("the grammar"))
    }

    #[test]
    fn groups_are_given_one_by_one_or_together() {
        assert_eq!(parse("events:jit,gc"), parse("events:groups=gc+jit"));
        assert_eq!(parse("events").expect("options").groups, CHEAP);
        assert_eq!(parse("events:all").expect("options").groups.len(), Group::ALL.len());
    }

    #[test]
    fn what_is_printed_is_what_is_meant() {
        for text in ["events", "events:all", "events:objects,allocations=on,max=64MiB", "events:groups=com+pipe"] {
            let options = parse(text).expect("options");
            assert_eq!(parse(&options.to_string()), Ok(options));
        }
    }

    #[test]
    fn unknown_groups_list_the_known_ones() {
        let refused = parse("events:jitter").expect_err("unknown");
        assert!(refused.contains("'jitter'") && refused.contains("suspend, gc, objects"), "{refused}");
        assert!(parse("events:depth=3").expect_err("unknown").contains("known: groups"));
        assert!(parse("events:jit,allocations=on").expect_err("senseless").contains("'objects'"));
    }

    #[test]
    fn the_cheap_groups_change_nothing_about_collections_and_code() {
        let mask = parse("events").expect("options").mask();
        assert!(!mask.intersects(Events::GC | Events::REFUSE_PRECOMPILED_CODE | Events::ENABLE_OBJECT_ALLOCATED));
    }

    #[test]
    fn only_kinds_of_the_groups_are_recorded() {
        let kinds = parse("events:jit").expect("options").kinds();
        let wanted = |kind: Kind| kinds[usize::from(kind.0)];
        assert!(wanted(Kind::JIT_INLINING) && wanted(Kind::REJIT_ERROR));
        assert!(!wanted(Kind::THREAD_CREATED) && !wanted(Kind::NAME));
    }
}
