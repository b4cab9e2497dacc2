//! Events about contended locks, as the runtime's provider packs them (`ContentionStart_V2` and
//! `ContentionStop_V1` in `vm/ClrEtwAll.man`).

use clrscope_agent_base::event_pipe::{Fields, RuntimeEvent};

/// The provider's keyword for events about contended locks.
pub(super) const CONTENTION_KEYWORD: u64 = 0x4000;
/// The provider's keyword for events about waits for handles and conditions, and the first version
/// of .NET that has the keyword.
pub(super) const WAIT_KEYWORD: u64 = 0x400_0000_0000;
pub(super) const WAITS_SINCE: u16 = 9;
/// Flag of the runtime's own locks.
const NATIVE: u8 = 1;
/// A monitor is identified by the address of its native lock, a `System.Threading.Lock` by the
/// handle that its threads wait for. Handles are small numbers on Linux (`HandleIndexToHandle` in
/// `pal/src/include/pal/handlemgr.hpp`).
const LEAST_ADDRESS: u64 = 1 << 32;

/// An event about a contended lock.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Contention {
    /// The calling thread begins to wait for a lock.
    Started(ContendedLock),
    /// The calling thread got the lock, or gave up.
    Ended,
    /// The calling thread begins to wait for a handle or a condition.
    Blocks,
    /// The calling thread has stopped waiting for a handle or a condition.
    Unblocks,
}

/// A lock that a thread waits for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct ContendedLock {
    /// The runtime's id of the lock.
    pub(super) lock: u64,
    /// Address of the object that is locked.
    pub(super) object: usize,
    /// The runtime's id of the thread that holds the lock.
    pub(super) holder: u64,
}

impl ContendedLock {
    /// Whether the lock is a monitor rather than a `System.Threading.Lock`.
    pub(super) fn is_monitor(&self) -> bool {
        self.lock >= LEAST_ADDRESS
    }
}

impl Contention {
    /// Decodes the event; `None` for other events, and for events that are too short.
    pub(super) fn read(event: RuntimeEvent<'_>) -> Option<Self> {
        let mut fields = event.fields;
        match event.id {
            81 if event.version >= 2 => started(&mut fields),
            // `WaitHandleWaitStart` and `WaitHandleWaitStop`, raised on the native side.
            301 => Some(Self::Blocks),
            302 => Some(Self::Unblocks),
            91 => is_managed(&mut fields)?.then_some(Self::Ended),
            _ => None,
        }
    }
}

fn is_managed(fields: &mut Fields<'_>) -> Option<bool> {
    let flags = fields.read_bytes(1)?[0];
    let _runtime = fields.u16()?;
    Some(flags & NATIVE == 0)
}

fn started(fields: &mut Fields<'_>) -> Option<Contention> {
    let is_managed = is_managed(fields)?;
    let [lock, object, holder] = [fields.u64()?, fields.u64()?, fields.u64()?];
    is_managed.then_some(Contention::Started(ContendedLock { lock, object: object as usize, holder }))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn event(id: u32, version: u32, bytes: &[u8]) -> Option<Contention> {
        Contention::read(RuntimeEvent { id, version, fields: Fields::new(bytes) })
    }

    fn start_bytes(flags: u8, words: [u64; 3]) -> Vec<u8> {
        [&[flags, 9, 0][..], &words.map(u64::to_le_bytes).concat()].concat()
    }

    #[test]
    fn events_are_read_as_the_runtime_packs_them() {
        let monitor = ContendedLock { lock: 0x7f00_1000_0000, object: 0x7e00_2000_0000, holder: 7 };
        assert_eq!(
            event(81, 2, &start_bytes(0, [0x7f00_1000_0000, 0x7e00_2000_0000, 7])),
            Some(Contention::Started(monitor))
        );
        assert!(monitor.is_monitor() && !ContendedLock { lock: 0x124, ..monitor }.is_monitor());
        assert_eq!(event(81, 1, &start_bytes(0, [1, 2, 3])), None, "the version without lock and holder");
        assert_eq!(event(81, 2, &start_bytes(1, [1, 2, 3])), None, "a lock of the runtime's own");
        let end = [&[0, 9, 0][..], &2_000.0_f64.to_le_bytes()].concat();
        assert_eq!(event(91, 1, &end), Some(Contention::Ended));
        assert_eq!(event(92, 1, &end), None);
        let waits = [event(301, 0, &[0; 11]), event(302, 0, &[9, 0])];
        assert_eq!(waits, [Some(Contention::Blocks), Some(Contention::Unblocks)]);
    }

    #[test]
    fn cut_events_are_none() {
        let whole = start_bytes(0, [1, 2, 3]);
        for cut in 0..whole.len() {
            assert_eq!(event(81, 2, &whole[..cut]), None);
        }
        assert_eq!(event(91, 1, &[0, 9]), None);
    }
}
