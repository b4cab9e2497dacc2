//! Snapshots of the managed heap: the record of each snapshot, and those records in its chunks that
//! are not rows of numbers.

use std::sync::Arc;

use crate::codec::{Field, record};
use crate::payload::{PayloadReader, PayloadWriter};

by_number! {
    /// Reason why a snapshot was taken.
    SnapshotReason {
        /// A command requested it while the program ran.
        #[default]
        Command = 0 "command",
        /// The program or its recording ended.
        End = 1 "end",
        /// The time set in the request was reached.
        Time = 2 "time",
        /// The process's resident memory reached the size set in the request.
        Size = 3 "size",
    }
}

by_number! {
    /// State of a snapshot.
    SnapshotState {
        /// The snapshot was begun but not completed: the program ended during it.
        #[default]
        Begun = 0 "begun",
        /// All of the heap was recorded.
        Complete = 1 "complete",
        /// The disk was full, or the recording had reached its maximum size.
        NoRoom = 2 "no-room",
        /// The runtime refused a request.
        Refused = 3 "refused",
    }
}

by_number! {
    /// Kind of a root.
    RootKind {
        /// None of the other kinds.
        #[default]
        Other = 0 "other",
        /// A variable of a running method.
        Stack = 1 "stack",
        /// A strong handle.
        Handle = 2 "handle",
        /// A handle that keeps its object alive and pinned.
        PinnedHandle = 3 "pinned handle",
        /// A handle that does not keep its object alive.
        WeakHandle = 4 "weak handle",
        /// A handle that keeps its object alive while a count is not zero.
        RefCountedHandle = 5 "ref-counted handle",
        /// The queue of objects whose finalizers are to run.
        Finalizer = 6 "finalizer queue",
        /// A static field.
        Static = 7 "static",
        /// A thread-static field.
        ThreadStatic = 8 "thread static",
        /// The object is never collected: a string literal, for instance.
        Frozen = 9 "frozen",
    }
}

impl RootKind {
    /// Whether a root of this kind keeps its object alive.
    #[must_use]
    pub const fn holds(self) -> bool {
        !matches!(self, Self::WeakHandle)
    }
}

by_number! {
    /// Heap area that contains an object.
    HeapGeneration {
        /// The youngest objects.
        #[default]
        Gen0 = 0 "0",
        /// Objects that survived one collection.
        Gen1 = 1 "1",
        /// Objects that survived several collections.
        Gen2 = 2 "2",
        /// The heap for large objects.
        Large = 3 "large",
        /// The heap for objects that were allocated as pinned.
        Pinned = 4 "pinned",
        /// Objects that are never collected.
        Frozen = 5 "frozen",
    }
}

macro_rules! as_number {
    ($($name:ident),*) => {$(
        impl Field for $name {
            fn put(&self, payload: &mut PayloadWriter) {
                payload.u32(*self as u32);
            }

            fn read(payload: &mut PayloadReader<'_>) -> Option<Self> {
                Some(Self::from_number(payload.u32()))
            }
        }
    )*};
}

as_number!(SnapshotReason, SnapshotState, RootKind);

record! {
    /// One snapshot of the heap of a process. If several records have the same number, the last one
    /// is valid: one is written when the snapshot begins, another when it is complete or can't
    /// continue.
    #[derive(Debug, Clone, Default, PartialEq, Eq)]
    pub struct HeapSnapshot {
        /// Number of the snapshot within its process, from 1.
        pub number: u32,
        /// Nanoseconds from the start of the process's recording to the snapshot.
        pub time_ns: u64,
        /// Reason why the snapshot was taken.
        pub reason: SnapshotReason,
        /// Name given with the command; empty for none.
        pub name: String,
        /// Whether a full collection ran first, so that only survivors are included. If not, the
        /// snapshot includes garbage.
        pub collected: bool,
        /// State of the snapshot.
        pub state: SnapshotState,
        /// Reason why the snapshot is incomplete, in words; empty if it is complete.
        pub why: String,
        /// Time in nanoseconds that the program was suspended, for the collection and the snapshot
        /// together.
        pub pause_ns: u64,
        /// The part of [`pause_ns`](Self::pause_ns) spent on reading and writing the heap.
        pub walk_ns: u64,
        /// Number of objects.
        pub objects: u64,
        /// Bytes of the objects.
        pub bytes: u64,
        /// Number of references that the objects hold, without null references.
        pub references: u64,
        /// Number of roots, weak ones included.
        pub roots: u64,
        /// Sequence number of the snapshot's first chunk in the arena `heap`; 0 if there is none.
        pub first_chunk: u64,
        /// Sequence number of the snapshot's last chunk in the arena `heap`; 0 if there is none.
        pub last_chunk: u64,
        /// Sequence number of the first chunk written after the program resumed: earlier chunks
        /// have objects and roots, later ones types, static fields and roots.
        pub tail_chunk: u64,
    }
}

impl HeapSnapshot {
    /// Whether all of the heap is recorded.
    #[must_use]
    pub fn is_complete(&self) -> bool {
        self.state == SnapshotState::Complete
    }
}

record! {
    /// A type of objects in one snapshot: the size of its objects, and where they hold references.
    ///
    /// References are in slots: first the fixed slots in ascending order of their offsets, then, in
    /// arrays, the slots of each element.
    #[derive(Debug, Clone, Default, PartialEq, Eq)]
    pub struct HeapType {
        /// Number of the type in this snapshot, from 1, which its objects hold.
        pub number: u32,
        /// Index into [`Process::types`](super::Process::types), 0 if unknown.
        pub object_type: u32,
        /// Bytes of an object without its elements.
        pub base_bytes: u32,
        /// Bytes of each element of an array, or of each character of a string; 0 for all other
        /// types.
        pub element_bytes: u32,
        /// Names of the fields at the fixed slots; empty if the runtime does not provide them.
        pub fields: Vec<String>,
        /// Names of the fields at the slots of each element; one empty name for an array of
        /// references.
        pub element_fields: Vec<String>,
        /// Kind of the content hash that is stored with each object.
        pub content: u32,
        /// Address of the object that keeps the type loaded: each object of the type keeps that
        /// object alive. 0 for types that are never unloaded.
        pub loader: u64,
    }
    beside {
        /// Name of the [`object_type`](Self::object_type) in C# form.
        pub name: Arc<str>,
        /// Index into [`Process::modules`](super::Process::modules) of the module of the
        /// [`object_type`](Self::object_type).
        pub module: u32,
    }
}

impl HeapType {
    /// Value of [`content`](Self::content): no hash is stored.
    pub const NO_CONTENT: u32 = 0;
    /// Value of [`content`](Self::content): a hash of the characters of a string.
    pub const STRING: u32 = 1;
    /// Value of [`content`](Self::content): a hash of the value in a box.
    pub const BOX: u32 = 2;

    /// Bytes of an object with `length` elements.
    #[must_use]
    pub fn bytes_of(&self, length: u64) -> u64 {
        let elements = u64::from(self.element_bytes).saturating_mul(length);
        elements.saturating_add(u64::from(self.base_bytes)).checked_next_multiple_of(8).unwrap_or(u64::MAX)
    }

    /// Number of slots of an object with `length` elements.
    #[must_use]
    pub fn slots_of(&self, length: u64) -> u64 {
        length.saturating_mul(self.element_fields.len() as u64).saturating_add(self.fields.len() as u64)
    }

    /// The element (for an array) and the field at a slot. The field's name is empty if the element
    /// is a reference, or if the name is unknown.
    #[must_use]
    pub fn slot(&self, slot: u64) -> (Option<u64>, &str) {
        match slot.checked_sub(self.fields.len() as u64) {
            None => (None, self.fields[slot as usize].as_str()),
            Some(behind) => {
                let each = (self.element_fields.len() as u64).max(1);
                let field = self.element_fields.get((behind % each) as usize);
                (Some(behind / each), field.map_or("", String::as_str))
            }
        }
    }
}

record! {
    /// A reference that implements a static field, in an object that belongs to the runtime: the
    /// field's value is the referenced object.
    #[derive(Debug, Clone, Default, PartialEq, Eq)]
    pub struct HeapPlace {
        /// Address of the reference.
        pub address: u64,
        /// [`RootKind::Static`] or [`RootKind::ThreadStatic`].
        pub kind: RootKind,
        /// Name of the field, for instance `Shop.Cache.items`.
        pub name: String,
        /// Serial number of the thread that the field belongs to, 0 for none.
        pub thread: u32,
    }
}

record! {
    /// Boxes of an async method that wait at one of its awaits. The same await may be in several
    /// records.
    #[derive(Debug, Clone, Default, PartialEq, Eq)]
    pub struct HeapAwait {
        /// Index into [`Process::modules`](super::Process::modules) of the module with the method's
        /// code.
        pub module: u32,
        /// Metadata token of the state machine's `MoveNext`.
        pub token: u32,
        /// IL offset of the await.
        pub il_offset: u32,
        /// Addresses of the boxes.
        pub boxes: Vec<u64>,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slots_are_fields_first_and_then_those_of_each_element() {
        let name = |name: &str| name.to_owned();
        let table = HeapType {
            base_bytes: 24,
            element_bytes: 16,
            fields: vec![name("Next")],
            element_fields: vec![name("Key"), name("Value")],
            ..HeapType::default()
        };
        assert_eq!((table.bytes_of(3), table.slots_of(3)), (72, 7));
        assert_eq!((table.slot(0), table.slot(1)), ((None, "Next"), (Some(0), "Key")));
        assert_eq!((table.slot(4), table.slot(6)), ((Some(1), "Value"), (Some(2), "Value")));
        let text = HeapType { base_bytes: 22, element_bytes: 2, ..HeapType::default() };
        assert_eq!((text.bytes_of(1), text.bytes_of(2), text.slot(5)), (24, 32, (Some(5), "")));
        assert_eq!((text.bytes_of(u64::MAX), table.slots_of(u64::MAX)), (u64::MAX, u64::MAX));
    }
}
