//! Gets the roots of a collection from the runtime's own events. This is needed if another profiler
//! may have the main slot, as the runtime calls only the main profiler back about roots.
//!
//! The runtime reports the same roots by the events `GCBulkRootEdge` and
//! `GCBulkRootConditionalWeakTableElementEdge` while a session asks for a heap dump. It does so in
//! the same walk, after a full collection that a diagnostics tool requested; `ForceGC` counts as
//! such a request (`ScanRootsHelper` in `vm/proftoeeinterfaceimpl.cpp`, fields in
//! `vm/ClrEtwAll.man`). The session is open all the time; the program's own collections raise no
//! such events. When the program ends, the runtime has already closed all sessions.

use clr_profiler::FunctionId;
use std::thread;
use std::time::{Duration, Instant};

use clr_profiler::callback_args::{EventPipeEvent, RootFlags, RootKind};
use clrscope_agent_base::event_pipe::{EventPipe, Fields, RUNTIME, level};

use super::shot::{Exposure, RootReference};
use crate::services::context::Context;

/// Longest wait for a session, which begins within milliseconds of an attach.
const LONGEST_WAIT: Duration = Duration::from_secs(5);
const PAUSE: Duration = Duration::from_millis(2);
/// Keyword of the events that describe the heap after a collection.
const HEAP_DUMP: u64 = 0x10_0000;
/// Number of the event `GCBulkRootEdge`.
const ROOTS: u32 = 16;
/// Number of the event `GCBulkRootConditionalWeakTableElementEdge`.
const DEPENDENTS: u32 = 17;

/// The session that delivers roots.
pub(super) struct RootEvents(&'static EventPipe);

impl RootEvents {
    pub(super) fn new(context: &Context) -> Self {
        let pipe = context.event_pipe();
        pipe.want(RUNTIME, HEAP_DUMP, level::INFORMATIONAL);
        Self(pipe)
    }

    /// Begins the session.
    pub(super) fn begin(&self) {
        self.0.begin();
    }

    /// Waits for the session to begin. Returns whether there is a session. To be called on a thread
    /// of the agent's own.
    pub(super) fn wait_until_open(&self) -> bool {
        let began = Instant::now();
        while !self.0.is_open() && began.elapsed() < LONGEST_WAIT {
            thread::park_timeout(PAUSE);
        }
        self.0.is_open()
    }

    /// Takes the roots out of an event. Call it in the callback about the event, during the
    /// collection.
    pub(super) fn deliver(&self, event: &EventPipeEvent<'_>, exposure: &Exposure) {
        if !matches!(event.event_id, ROOTS | DEPENDENTS) {
            return;
        }
        let Some(event) = self.0.of_runtime(event) else { return };
        match event.id {
            ROOTS => exposure.add_roots(roots(event.fields)),
            _ => exposure.add_dependents(dependents(event.fields)),
        }
    }
}

/// The rows of an event, as far as it has bytes.
fn rows<R>(mut fields: Fields<'_>, read: impl Fn(&mut Fields<'_>) -> Option<R>) -> impl Iterator<Item = R> {
    // Number of the event, of its rows, and of the runtime in the process.
    let head = (fields.u32(), fields.u32(), fields.u16());
    let count = head.1.filter(|_| head.2.is_some()).unwrap_or(0);
    (0..count).map_while(move |_| read(&mut fields))
}

fn roots(fields: Fields<'_>) -> impl Iterator<Item = RootReference> {
    rows(fields, |fields| {
        let object = fields.u64()?;
        let kind = match fields.read_bytes(1)?[0] {
            0 => RootKind::Stack,
            1 => RootKind::Finalizer,
            2 => RootKind::Handle,
            _ => RootKind::Other,
        };
        let (flags, id) = (RootFlags::from_raw(fields.u32()?), fields.u64()?);
        // SAFETY: for a variable on a stack the runtime gives the method, by the address that
        // callbacks use as its identifier; nothing else is taken for a method.
        let function = unsafe { FunctionId::from_raw(id as usize) };
        let function = Some(function).filter(|_| kind == RootKind::Stack && id != 0);
        Some(RootReference { object, kind, flags, function })
    })
}

fn dependents(fields: Fields<'_>) -> impl Iterator<Item = (u64, u64)> {
    rows(fields, |fields| {
        let pair = (fields.u64()?, fields.u64()?);
        fields.u64()?;
        Some(pair)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn event(rows: &[&[u8]], count: u32) -> Vec<u8> {
        let head = [&7_u32.to_le_bytes()[..], &count.to_le_bytes(), &9_u16.to_le_bytes()];
        [head.concat(), rows.concat()].concat()
    }

    fn root(object: u64, kind: u8, flags: u32, id: u64) -> Vec<u8> {
        [&object.to_le_bytes()[..], &[kind], &flags.to_le_bytes(), &id.to_le_bytes()].concat()
    }

    #[test]
    fn roots_are_read_as_far_as_an_event_reaches() {
        let (stack, handle) = (root(0x1000, 0, 4, 0x5000), root(0x2000, 2, 1, 0x6000));
        let bytes = event(&[&stack, &handle], 2);
        let found: Vec<_> = roots(Fields::new(&bytes)).collect();
        let facts: Vec<_> = found
            .iter()
            .map(|root| (root.object, root.kind, root.flags.as_raw(), root.function.map(|id| id.as_raw())))
            .collect();
        let expected = [(0x1000, RootKind::Stack, 4, Some(0x5000)), (0x2000, RootKind::Handle, 1, None)];
        assert_eq!(facts, expected);
        // A number of rows that exceeds the event's bytes.
        assert_eq!(roots(Fields::new(&event(&[&stack], u32::MAX))).count(), 1);
        for length in 0..bytes.len() {
            assert!(roots(Fields::new(&bytes[..length])).count() < 2, "{length}");
        }
    }

    #[test]
    fn pairs_are_read() {
        let pair = [1_u64, 2, 3].map(u64::to_le_bytes).concat();
        assert_eq!(dependents(Fields::new(&event(&[&pair], 1))).collect::<Vec<_>>(), [(1, 2)]);
    }
}
