//! Takes snapshots on a thread of the agent's own: the work before, during and after the collection
//! of each snapshot.

use std::collections::{HashMap, HashSet};
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use clr_profiler::{ClassId, ModuleId, ProfilerInfo, ThreadId};
use clrscope_agent_base::developer_log::{Level, log};
use clrscope_agent_base::functions::Functions;
use clrscope_agent_base::os::memory::copy_if_there;
use clrscope_agent_base::threads;
use clrscope_agent_base::unloads::{Seen, Unloads};
use clrscope_agent_stacks::awaiters::{BoxLayout, task_class};
use clrscope_recording::model::{
    HeapAwait, HeapPlace, HeapSnapshot, HeapType, LossReason, RootKind, SnapshotReason, SnapshotState,
};
use clrscope_recording::writer::{EventStore, HeapRootRecord, ProcessWriter, monotonic_ns};

use super::generics::{self, Room, ThreadField, ValuesOfClass};
use super::root_events::RootEvents;
use super::shot::{Exposure, Shot, Wanted};
use super::statics::{Fields, StaticFields};
use super::thread_values::ThreadValues;
use super::types::HeapClass;
use crate::services::context::Context;
use crate::services::object_types::ObjectTypes;

/// Bytes of the heap for each byte that is backed before the program is stopped.
const HEAP_PER_BYTE: usize = 10;
/// Most bytes that are backed before the program is stopped.
const MOST_BACKED: usize = 512 << 20;
/// Most collections that are requested until one is seen from its beginning to its end.
const MOST_COLLECTIONS: u32 = 8;
/// Types that are written at once.
const TYPES_AT_ONCE: usize = 256;
/// Boxes of async methods that are written at once.
const BOXES_AT_ONCE: usize = 4096;

/// Takes snapshots of the heap.
pub(super) struct Taker {
    pub(super) info: ProfilerInfo,
    pub(super) writer: &'static ProcessWriter,
    pub(super) store: &'static EventStore,
    pub(super) functions: Arc<Functions>,
    pub(super) object_types: Arc<ObjectTypes>,
    pub(super) start_ns: u64,
    /// Whether snapshots show the heap after a collection, rather than before it.
    collects: bool,
    pub(super) exposure: Exposure,
    /// The roots from events; needed if another profiler receives the callbacks about roots.
    pub(super) root_events: Option<RootEvents>,
    pub(super) unloads: Unloads,
    /// Held by the thread that takes a snapshot; no callback takes this lock.
    turn: Mutex<()>,
    statics: Mutex<StaticFields>,
    /// Modules that were unloaded since static fields were looked up last.
    gone: Mutex<Vec<ModuleId>>,
    /// Classes whose loading was seen.
    loaded: Mutex<HashSet<ClassId>>,
    /// Whether classes that were loaded before the attach have not been looked up yet.
    is_late: AtomicBool,
    last: AtomicU32,
}

impl Taker {
    pub(super) fn new(context: &Context, store: &'static EventStore, collects: bool) -> Self {
        Self {
            info: context.info.clone(),
            writer: context.writer,
            store,
            functions: Arc::clone(&context.functions),
            object_types: Arc::clone(&context.object_types),
            start_ns: context.start_ns,
            collects,
            exposure: Exposure::default(),
            root_events: context.info.is_notification_only().then(|| RootEvents::new(context)),
            unloads: Unloads::default(),
            turn: Mutex::default(),
            statics: Mutex::default(),
            gone: Mutex::default(),
            loaded: Mutex::default(),
            is_late: AtomicBool::new(false),
            last: AtomicU32::new(0),
        }
    }

    /// Static fields as far as they were looked up, without fields of unloaded modules. No callback
    /// takes this lock.
    fn statics(&self) -> MutexGuard<'_, StaticFields> {
        let mut statics = self.statics.lock().unwrap_or_else(PoisonError::into_inner);
        let gone = std::mem::take(&mut *self.gone());
        gone.into_iter().for_each(|module| statics.module_unloaded(module));
        statics
    }

    fn gone(&self) -> MutexGuard<'_, Vec<ModuleId>> {
        self.gone.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn loaded(&self) -> MutexGuard<'_, HashSet<ClassId>> {
        self.loaded.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Call it when a class has been loaded.
    pub(super) fn class_loaded(&self, class: ClassId) {
        self.loaded().insert(class);
    }

    /// Call it when a class is about to unload.
    pub(super) fn class_unloads(&self, class: ClassId) {
        self.loaded().remove(&class);
    }

    /// Call it when a module is about to unload: nothing in it is queried until it is unloaded.
    pub(super) fn module_unloads(&self) {
        self.unloads.begins();
    }

    /// Call it when a module has been unloaded, as its identifier may be used again.
    pub(super) fn module_unloaded(&self, module: ModuleId) {
        self.gone().push(module);
        // The runtime does not report the unload of instantiations and arrays.
        self.loaded().retain(|class| !class.is_gone());
        self.unloads.ends();
    }

    /// Takes a snapshot, and returns whether it is complete. To be called only on a thread of the
    /// agent's own that runs no managed code, and only one call at a time.
    pub(super) fn take_snapshot(&self, reason: SnapshotReason, name: &str) -> bool {
        let _turn = self.turn.lock().unwrap_or_else(PoisonError::into_inner);
        let number = self.last.fetch_add(1, Ordering::Relaxed) + 1;
        let time_ns = monotonic_ns().saturating_sub(self.start_ns);
        let (name, collected) = (name.to_owned(), self.collects);
        let begun = HeapSnapshot { number, time_ns, reason, name, collected, ..HeapSnapshot::default() };
        self.writer.snapshot(&begun);
        let snapshot = self.expose(begun);
        log(Level::Info, || format!("snapshot: {snapshot:?}"));
        self.writer.snapshot(&snapshot);
        snapshot.is_complete()
    }

    fn expose(&self, begun: HeapSnapshot) -> HeapSnapshot {
        if !can_copy() {
            let why = "the system refuses process_vm_readv here, by which classes are looked at".to_owned();
            return HeapSnapshot { state: SnapshotState::Refused, why, ..begun };
        }
        let (mut seen, names) = (Fields::default(), self.functions.names());
        let known = self.known_classes();
        // Names that are known in advance are readable even in an incomplete snapshot.
        known.iter().for_each(|class| _ = self.object_types.noted(*class));
        let fields = self.statics().add(&self.info, names, known, &mut seen);
        let heap: usize = self.info.generation_bounds().unwrap_or_default().iter().map(|range| range.bytes).sum();
        // A lack of room shows when the data are written.
        let _ = self.store.back((heap / HEAP_PER_BYTE).clamp(1 << 20, MOST_BACKED));
        let _release = Release(&self.unloads);
        match self.collect(begun.number) {
            Ok((shot, of_shot)) => self.finish(&begun, *shot, (fields, seen), of_shot),
            Err(why) => HeapSnapshot { state: SnapshotState::Refused, why, ..begun },
        }
    }

    /// Requests a full collection, in which the heap is read. Also returns how its types may be
    /// queried. Repeats the request if necessary: if another requested collection is already
    /// running, the runtime takes it for ours.
    fn collect(&self, number: u32) -> Result<(Box<Shot>, Seen), String> {
        if self.root_events.as_ref().is_some_and(|events| !events.wait_until_open()) {
            return Err("the runtime delivers no events, by which a notification-only profiler gets roots".to_owned());
        }
        let task = task_class(&self.info, &self.functions);
        for _ in 0..MOST_COLLECTIONS {
            let unloads = self.unloads.count();
            let wanted = Wanted { collects: self.collects, needs_roots: self.root_events.is_some() };
            self.exposure.arm(self.store, number, wanted, &self.object_types, task);
            let forced = self.info.force_gc();
            match (self.exposure.finish(), forced) {
                (Some(shot), _) => return Ok((shot, self.unloads.kept().unwrap_or(Seen::After(unloads)))),
                (None, Err(error)) => return Err(error.to_string()),
                (None, Ok(())) => {}
            }
        }
        Err("the runtime reported no full collection".to_owned())
    }

    /// To be called if the agent was attached to a running program. Classes that were loaded before
    /// are then looked up when they are needed.
    pub(super) fn comes_late(&self) {
        self.is_late.store(true, Ordering::Release);
    }

    /// Classes that are known to be loaded: classes whose loading was seen and, after an attach,
    /// classes that were loaded before.
    fn known_classes(&self) -> HashSet<ClassId> {
        if self.is_late.swap(false, Ordering::AcqRel) {
            let found = self.statics().loaded(&self.info, self.functions.names());
            self.loaded().extend(found.into_iter().filter(|class| !class.is_gone()));
        }
        self.loaded().clone()
    }

    /// Asks for the names of types and roots, after the program has resumed.
    fn finish(&self, begun: &HeapSnapshot, mut shot: Shot, fields: (Fields, Fields), seen: Seen) -> HeapSnapshot {
        // First, since these objects may move in the next collection.
        self.places(&mut shot, fields, seen);
        let types = self.types(&mut shot, seen);
        self.stack_roots(&mut shot, seen);
        self.awaits(&mut shot, seen);
        shot.writer.flush_all();
        self.count_gaps(&shot, &types);
        let (first_chunk, last_chunk) = shot.writer.chunks();
        let (state, why) = match shot.refused.take() {
            Some(why) => (SnapshotState::Refused, why),
            None if !shot.writer.has_room() => {
                let why = clrscope_recording::writer::first_refusal();
                (
                    SnapshotState::NoRoom,
                    why.map_or_else(|| "the recording could not grow".to_owned(), |why| why.to_string()),
                )
            }
            None => (SnapshotState::Complete, String::new()),
        };
        HeapSnapshot {
            state,
            why,
            pause_ns: shot.pause_ns,
            walk_ns: shot.walk_ns,
            objects: shot.sums.objects,
            bytes: shot.sums.bytes,
            references: shot.sums.references,
            roots: shot.roots,
            first_chunk,
            last_chunk,
            tail_chunk: shot.tail_chunk,
            ..begun.clone()
        }
    }

    /// Writes the places of static fields.
    fn places(&self, shot: &mut Shot, (fields, mut looked_up): (Fields, Fields), seen: Seen) {
        let serial = |thread| self.info.os_thread(thread).map_or(0, serial_of);
        let (info, names) = (&self.info, self.functions.names());
        let mut places = fields.places(info, names, serial);
        // Classes with objects are loaded, too. Unloadable classes are queried only where that was
        // noted. SAFETY: as in `describe`, of classes that stay as long as the process.
        let stay = shot
            .classes
            .all()
            .iter()
            .filter(|class| class.loader == 0)
            .map(|class| unsafe { ClassId::from_raw(class.id) });
        places.extend(self.statics().add(info, names, stay, &mut looked_up).places(info, names, serial));
        let generic = generics::find(info, shot.classes.all().iter().map(|class| class.id), &shot.room);
        let name_of = |class: usize, token| {
            // SAFETY: the runtime's tables say that the class is there: forever, or until the
            // runtime reports its unload, and `Unloads` delays the unload.
            let class = unsafe { ClassId::from_raw(class) };
            self.unloads.ask_of_module(seen, || self.statics().name(info, names, class, token)).flatten()
        };
        // First the places that may move.
        places.extend(self.of_threads(&generic.of_threads, serial, name_of));
        for field in generic.of_program {
            let place = |name| HeapPlace { address: field.address as u64, kind: RootKind::Static, name, thread: 0 };
            places.extend(name_of(field.class, field.token).map(place));
        }
        places.iter_mut().for_each(|place| place.address = shot.moves.before(place.address));
        shot.writer.places(&places);
    }

    /// The values of thread-static fields of generic classes.
    fn of_threads(
        &self,
        fields: &[ThreadField],
        serial: impl Fn(ThreadId) -> u32,
        name: impl Fn(usize, u32) -> Option<String>,
    ) -> Vec<HeapPlace> {
        let info = &self.info;
        let threads = info.threads().unwrap_or_default();
        let raw: Vec<usize> = threads.iter().map(|thread| thread.as_raw()).collect();
        // From .NET 9 on these addresses are useless.
        let of_modules = fields.iter().any(|field| matches!(field.values, ValuesOfClass::OfModule { .. }));
        let modules = if of_modules { info.modules().unwrap_or_default() } else { Vec::new() };
        let modules: Vec<usize> = modules.iter().map(|module| module.as_raw()).collect();
        let heap = info.generation_bounds().unwrap_or_default();
        let heap = Room(heap.iter().map(|range| (range.start, range.start + range.reserved_bytes)).collect());
        let Some(values) = ThreadValues::find(fields, &raw, &modules, heap) else { return Vec::new() };
        let serials: Vec<u32> = threads.into_iter().map(serial).collect();
        let of_field = |field: &ThreadField| -> Vec<(usize, u32)> {
            let each = raw.iter().zip(&serials);
            each.filter_map(|(thread, serial)| Some((values.address(*thread, field)?, *serial))).collect()
        };
        // All of them first, since they may move.
        let found: Vec<Vec<(usize, u32)>> = fields.iter().map(of_field).collect();
        let mut places = Vec::new();
        for (field, found) in fields.iter().zip(found).filter(|(_, found)| !found.is_empty()) {
            let Some(name) = name(field.class, field.token) else { continue };
            places.extend(found.into_iter().map(|(address, thread)| HeapPlace {
                address: address as u64,
                kind: RootKind::ThreadStatic,
                name: name.clone(),
                thread,
            }));
        }
        places
    }

    /// Writes the types with their names, some at a time: written types are readable even if the
    /// program is killed meanwhile.
    fn types(&self, shot: &mut Shot, seen: Seen) -> Vec<HeapType> {
        let classes = shot.classes.all();
        let mut types: Vec<(usize, HeapType)> = Vec::with_capacity(classes.len());
        // Unloadable types first.
        let mut order: Vec<usize> = (0..classes.len()).collect();
        order.sort_by_key(|&at| classes[at].loader == 0);
        for at in order {
            let class = &classes[at];
            let number = at as u32 + 1;
            let described = match class.loader {
                0 => Some(self.describe(number, class)),
                _ => self.unloads.ask_of_module(seen, || self.describe(number, class)),
            };
            types.push((at, described.unwrap_or_else(|| class.without_names(number))));
            if types.len().is_multiple_of(TYPES_AT_ONCE) {
                let last = &types[types.len() - TYPES_AT_ONCE..];
                shot.writer.types(last.iter().map(|(_, described)| described));
            }
        }
        let rest = types.len() / TYPES_AT_ONCE * TYPES_AT_ONCE;
        shot.writer.types(types[rest..].iter().map(|(_, described)| described));
        types.sort_by_key(|(at, _)| *at);
        types.into_iter().map(|(_, described)| described).collect()
    }

    fn describe(&self, number: u32, class: &HeapClass) -> HeapType {
        // SAFETY: the first word of a live object is its class, which stays while its module does:
        // forever, or until the runtime reports its unload, and `Unloads` delays the unload.
        let id = unsafe { ClassId::from_raw(class.id) };
        let (info, names) = (&self.info, self.functions.names());
        let member = |word: u32| names.member(info, id, word as usize * 8).unwrap_or_default();
        let shape = &class.shape;
        let element = |&word: &u32| {
            let name = member(shape.element_first + word);
            name.strip_prefix("[0]").unwrap_or_default().trim_start_matches('.').to_owned()
        };
        HeapType {
            object_type: self.object_types.noted(id),
            name: (*names.class(info, id)).into(),
            fields: shape.fixed.iter().map(|&word| member(word)).collect(),
            element_fields: shape.element.iter().map(element).collect(),
            ..class.without_names(number)
        }
    }

    /// Writes the objects that stacks hold, with thread and method.
    fn stack_roots(&self, shot: &mut Shot, seen: Seen) {
        for root in std::mem::take(&mut shot.stack_roots) {
            let index = |function| {
                let known = self.functions.known(function).map(|known| known.index);
                let ask = || self.functions.noted(function).index;
                // Noted again where the function was only known by number: reports need its name.
                self.unloads.ask_of_function(seen, ask).or(known)
            };
            shot.writer.root(HeapRootRecord {
                kind: RootKind::Stack,
                flags: root.flags,
                object: shot.moves.before(root.object),
                thread: shot.holders.next_of(root.object).map_or(0, serial_of),
                function: root.function.and_then(index).unwrap_or(0),
            });
        }
    }

    /// Writes at which awaits the boxes of async methods wait.
    fn awaits(&self, shot: &mut Shot, seen: Seen) {
        let (info, names) = (&self.info, self.functions.names());
        let found = |class: &HeapClass| {
            let find = || {
                // SAFETY: as in `describe`.
                let layout = BoxLayout::find(info, names, unsafe { ClassId::from_raw(class.id) })?;
                let module = self.functions.module_index(layout.module);
                Some((layout, module))
            };
            if class.loader == 0 { find() } else { self.unloads.ask_of_module(seen, find).flatten() }
        };
        let (mut boxes, mut modules) = (HashMap::new(), HashMap::new());
        for number in shot.kept.classes() {
            let class = shot.classes.class(number);
            if let (Some(kept), Some((layout, module))) = (class.kept.clone(), found(class)) {
                modules.insert(number, module);
                boxes.insert(number, (kept, layout));
            }
        }
        let of_await = |((class, il_offset), found): ((u32, u32), Vec<u64>)| {
            let (module, token) = (modules[&class], boxes[&class].1.token.as_raw());
            let some = |boxes: &[u64]| HeapAwait { module, token, il_offset, boxes: boxes.to_vec() };
            found.chunks(BOXES_AT_ONCE).map(some).collect::<Vec<_>>()
        };
        let awaits: Vec<HeapAwait> = shot.kept.by_await(&boxes).into_iter().flat_map(of_await).collect();
        shot.writer.awaits(&awaits);
    }

    /// Counts omitted data and describes them.
    fn count_gaps(&self, shot: &Shot, types: &[HeapType]) {
        let classes = shot.classes.all().iter().zip(types);
        let unlike: Vec<&str> =
            classes.filter(|(class, _)| class.is_unlike).map(|(_, described)| &*described.name).collect();
        let lose = |count: usize, text: &str| {
            self.writer.state().lose(LossReason::HeapUnread, count as u64, monotonic_ns());
            self.writer.loss_detail(LossReason::HeapUnread, text);
        };
        if let Some(first) = unlike.first() {
            let text = format!(
                "references of {} types, which this runtime lays out otherwise than others do, {first} for one",
                unlike.len()
            );
            lose(unlike.len(), &text);
        }
        if shot.kept.left_out > 0 {
            let text = format!(
                "the awaits of {} objects that may be async methods, for which there was no room",
                shot.kept.left_out
            );
            lose(shot.kept.left_out as usize, &text);
        }
        if let Some(text) = shot.sums.gap().filter(|_| shot.writer.has_room()) {
            lose(shot.sums.unread_pieces, &text);
        }
    }
}

/// Lets unloads continue when it is dropped.
struct Release<'a>(&'a Unloads);

impl Drop for Release<'_> {
    fn drop(&mut self) {
        self.0.release();
    }
}

/// Whether possibly unmapped memory can be copied.
fn can_copy() -> bool {
    let (word, mut copy) = (0x5EED_u64.to_ne_bytes(), [0; 8]);
    copy_if_there(word.as_ptr().expose_provenance(), &mut copy) && copy == word
}

/// Serial number in the recording of the thread with this system number; 0 if there is no room for
/// one.
fn serial_of(os_id: u32) -> u32 {
    threads::seen(os_id).map_or(0, |record| record.serial())
}
