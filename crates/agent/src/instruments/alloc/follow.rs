//! Follows objects with weak handles until they are collected. Weak handles keep nothing alive and
//! do not disable background collections.

use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use clr_profiler::callback_args::Generations;
use clr_profiler::{HandleKind, ObjectHandle, ProfilerInfo};
use clrscope_recording::model::{Allocation, AllocationKind};
use clrscope_recording::writer::{AllocationCell, ThreadRecord};

use super::limits::BYTES_OF_AN_OBJECT;
use super::sums::Sums;

/// Generations that objects come into, one after another.
const GENERATIONS: usize = 3;
// The limit assumes the size of an entry, and 8 bytes for its handle.
const _: () =
    assert!(size_of::<FollowedObject>() + 8 <= BYTES_OF_AN_OBJECT, "an object takes more than is counted with");

/// The objects that are followed.
pub(super) struct Follow {
    info: ProfilerInfo,
    /// Most objects that are followed at a time.
    most: usize,
    /// The objects by the number of collections that they are known to have survived, at most two.
    objects: Mutex<[Vec<FollowedObject>; GENERATIONS]>,
    /// Number of the last object.
    last: AtomicU32,
    /// Collections that have ended.
    collections: AtomicU64,
    /// The oldest generation that is being collected, and the oldest generation collected since the
    /// last check, each plus one.
    collecting: AtomicU32,
    collected: AtomicU32,
    /// No object is followed any more.
    is_over: AtomicBool,
}

struct FollowedObject {
    number: u32,
    handle: ObjectHandle,
}

impl Follow {
    /// Starts without objects. At most `most` objects are followed at a time.
    pub(super) fn new(info: &ProfilerInfo, most: usize) -> Self {
        Self {
            info: info.clone(),
            most,
            objects: Mutex::default(),
            last: AtomicU32::new(0),
            collections: AtomicU64::new(0),
            collecting: AtomicU32::new(0),
            collected: AtomicU32::new(0),
            is_over: AtomicBool::new(false),
        }
    }

    fn objects(&self) -> MutexGuard<'_, [Vec<FollowedObject>; GENERATIONS]> {
        self.objects.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Begins to follow the object at an address. Call it in the callback that reports the object.
    /// `seen` is the object's record; the result is its place in the recording. Objects that can't
    /// be followed are counted as lost.
    pub(super) fn begin(
        &self,
        sums: &Sums,
        thread: ThreadRecord,
        seen: &Allocation,
        address: usize,
    ) -> Option<AllocationCell> {
        if self.is_over.load(Ordering::Acquire) {
            return None;
        }
        // SAFETY: the runtime has just allocated the object at this address, and waits for this
        // callback to return.
        let handle = unsafe { self.info.create_handle_at(address, HandleKind::Weak) };
        let Ok(handle) = handle else {
            sums.lose(1);
            return None;
        };
        let number = self.last.fetch_add(1, Ordering::Relaxed) + 1;
        let collections = self.collections.load(Ordering::Acquire);
        let record = Allocation { kind: AllocationKind::Followed, object: number, collections, ..*seen };
        // Without a record the handle could not be matched to its object.
        let cell = sums.append(thread, &record)?;
        let mut objects = self.objects();
        if objects.iter().map(Vec::len).sum::<usize>() < self.most {
            objects[0].push(FollowedObject { number, handle });
        } else {
            drop(objects);
            sums.lose(1);
        }
        Some(cell)
    }

    /// Call it when a collection starts.
    pub(super) fn collection_starts(&self, generations: Generations<'_>) {
        self.collecting.store(generations.oldest().map_or(0, |oldest| oldest as u32 + 1), Ordering::Release);
    }

    /// Call it when a collection has ended.
    pub(super) fn collection_ends(&self) {
        self.collected.fetch_max(self.collecting.load(Ordering::Acquire).max(1), Ordering::AcqRel);
        self.collections.fetch_add(1, Ordering::AcqRel);
    }

    /// Finds out which objects the last collections freed. To be called on the agent's own thread.
    pub(super) fn look(&self, sums: &Sums) {
        let collected = self.collected.swap(0, Ordering::AcqRel) as usize;
        if collected == 0 {
            return;
        }
        let collections = self.collections.load(Ordering::Acquire);
        let mut gone = Vec::new();
        {
            let mut objects = self.objects();
            for age in (0..collected.min(GENERATIONS)).rev() {
                let (old, alive) =
                    std::mem::take(&mut objects[age]).into_iter().partition(|one: &FollowedObject| !one.is_alive());
                gone.extend::<Vec<FollowedObject>>(old);
                objects[(age + 1).min(GENERATIONS - 1)].extend::<Vec<FollowedObject>>(alive);
            }
        }
        for one in &gone {
            let kind = AllocationKind::Gone;
            sums.append_for_nobody(&Allocation { kind, object: one.number, collections, ..Allocation::default() });
        }
        let kind = AllocationKind::Collections;
        sums.append_for_nobody(&Allocation { kind, collections, ..Allocation::default() });
    }
}

impl Follow {
    /// `true` stops following all objects, which then count as alive; `false` allows new objects to
    /// be followed.
    pub(super) fn set_over(&self, is_over: bool) {
        self.is_over.store(is_over, Ordering::Release);
    }

    /// Stops following all objects if [`set_over`](Self::set_over) asked for that. To be called on
    /// the agent's own thread.
    pub(super) fn let_go_if_over(&self) {
        if self.is_over.load(Ordering::Acquire) {
            let objects = std::mem::take(&mut *self.objects());
            drop(objects);
        }
    }

    /// Bytes of memory for the followed objects, including their handles.
    pub(super) fn own_bytes(&self) -> u64 {
        let of = |objects: &Vec<FollowedObject>| objects.capacity() * size_of::<FollowedObject>() + objects.len() * 8;
        self.objects().iter().map(of).sum::<usize>() as u64
    }

    /// Whether no object is followed.
    pub(super) fn is_empty(&self) -> bool {
        self.objects().iter().all(Vec::is_empty)
    }
}

impl FollowedObject {
    /// An error does not mean that the object is dead.
    fn is_alive(&self) -> bool {
        self.handle.is_alive().unwrap_or(true)
    }
}
