//! The table in which hooks find classes by the first word of an object. No lock here is held
//! across a call to the runtime.
//!
//! A hook may see an object before the memory layout of its class was found. The hook then writes a
//! new number for the class, and the class is described under that number later, where queries are
//! allowed.

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, AtomicPtr, AtomicU32, AtomicUsize, Ordering};
use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError, RwLock};

use clr_profiler::ModuleId;
use clrscope_agent_base::class_parents::parent_of;
use clrscope_agent_base::os::memory::word_if_there;
use clrscope_agent_base::recording_lifetime::keep;

use crate::kinds::Class;

/// Most classes that hooks have met and whose shapes are still to be found.
const MOST_PENDING: usize = 256;

static TABLE: RwLock<Option<HashMap<usize, KnownClass>>> = RwLock::new(None);
/// Lock order: before the lock of the table.
static PENDING: Mutex<Vec<Met>> = Mutex::new(Vec::new());
/// Classes that were looked up recently, each at the place that its first word hashes to.
static RECENT: [AtomicPtr<Class>; 1024] = [const { AtomicPtr::new(std::ptr::null_mut()) }; 1024];
/// Number of the next class in the recording.
static NEXT: AtomicU32 = AtomicU32::new(1);

struct KnownClass {
    class: &'static Class,
    /// The class unloads with any of these modules.
    modules: Vec<ModuleId>,
}

/// A class that hooks have met.
#[derive(Clone, Copy)]
struct Met {
    id: usize,
    /// Number that the class will have in the recording.
    index: u32,
}

/// First words of objects whose classes the runtime announced as loaded, with the modules they
/// unload with.
static ANNOUNCED: RwLock<Option<HashMap<usize, Vec<ModuleId>>>> = RwLock::new(None);
/// The base class of all arrays, since the runtime does not announce array classes. 0 while it is
/// not known where a class stores its base class.
static ARRAYS: AtomicUsize = AtomicUsize::new(0);

/// Whether the place that we read in a class really says whether it is a value type.
static SAYS_VALUES: AtomicBool = AtomicBool::new(false);
/// Bits of a class's first word that give its category, and the category of value types, as in all
/// runtimes seen. They are checked before use.
const CATEGORY: usize = 0x000C_0000;
const OF_VALUES: usize = 0x0004_0000;

/// Makes an empty table. Called before any hook.
pub(crate) fn prepare() {
    *TABLE.write().unwrap_or_else(PoisonError::into_inner) = Some(HashMap::new());
    *ANNOUNCED.write().unwrap_or_else(PoisonError::into_inner) = Some(HashMap::new());
    let mut pending = lock_pending();
    pending.clear();
    pending.reserve(MOST_PENDING);
    drop(pending);
    // Classes known to an earlier recording of the process have the numbers of that recording.
    forget_recent();
}

/// Drops the classes when the recording is over.
pub(super) fn let_go() {
    *TABLE.write().unwrap_or_else(PoisonError::into_inner) = None;
    *ANNOUNCED.write().unwrap_or_else(PoisonError::into_inner) = None;
    lock_pending().clear();
    forget_recent();
}

/// Takes the number of a new class in the recording.
pub(super) fn new_number() -> u32 {
    NEXT.fetch_add(1, Ordering::Relaxed)
}

/// Notes that the runtime announced a class, and the modules that the class unloads with.
pub(crate) fn announce(id: usize, modules: Vec<ModuleId>) {
    if let Some(announced) = ANNOUNCED.write().unwrap_or_else(PoisonError::into_inner).as_mut() {
        announced.insert(id, modules);
    }
}

/// Remembers `System.Array` as the base class of all arrays, if the place that we read in a class
/// really holds its base class: `System.Object` for both `System.String` and `System.Array`.
pub(super) fn know_arrays(arrays: usize, string: usize, object: usize) {
    if parent_of(string) == Some(object) && parent_of(arrays) == Some(object) {
        ARRAYS.store(arrays, Ordering::Relaxed);
    }
}

/// Whether the runtime announced a class whose objects begin with this word. Any word may be given.
/// For hooks.
pub(crate) fn is_told(id: usize) -> bool {
    ANNOUNCED
        .read()
        .unwrap_or_else(PoisonError::into_inner)
        .as_ref()
        .is_some_and(|announced| announced.contains_key(&id))
        || is_array(id)
}

fn is_array(id: usize) -> bool {
    let arrays = ARRAYS.load(Ordering::Relaxed);
    arrays != 0 && id.is_multiple_of(8) && parent_of(id) == Some(arrays)
}

/// Starts to use the bits in a class that tell its category, if they are right for these value
/// types and these other classes.
pub(super) fn know_values(of_values: &[usize], others: &[usize]) {
    let says = |id: &usize| category_of(*id).map(|category| category == OF_VALUES);
    let is_right = of_values.iter().all(|id| says(id) == Some(true)) && others.iter().all(|id| says(id) == Some(false));
    SAYS_VALUES.store(is_right, Ordering::Relaxed);
}

/// Whether a class is a value type; `None` if that can't be told. `id` must be a class. For hooks.
pub(crate) fn is_of_values(id: usize) -> Option<bool> {
    let category = category_of(id).filter(|_| SAYS_VALUES.load(Ordering::Relaxed))?;
    Some(category == OF_VALUES)
}

fn category_of(id: usize) -> Option<usize> {
    word_if_there(id).map(|word| word & CATEGORY)
}

/// The class of an object by its first word, if it is known. For hooks.
pub fn class_of(id: usize) -> Option<&'static Class> {
    // The first words are addresses of aligned structures.
    let slot = &RECENT[(id >> 3 ^ id >> 13) % RECENT.len()];
    // SAFETY: null, or a class, which lives until `let_go` has emptied the slots.
    let recent: Option<&'static Class> = unsafe { slot.load(Ordering::Acquire).as_ref() };
    if let Some(class) = recent.filter(|class| class.id == id) {
        return Some(class);
    }
    let found = known(id);
    if let Some(class) = found {
        slot.store(std::ptr::from_ref(class).cast_mut(), Ordering::Release);
    }
    found
}

/// The class with this id, if it is known.
pub(super) fn known(id: usize) -> Option<&'static Class> {
    TABLE.read().unwrap_or_else(PoisonError::into_inner).as_ref()?.get(&id).map(|known| known.class)
}

/// Number of a class that may not be known yet; 0 if too many classes wait. The layout of an
/// unknown class is found later, where queries are allowed. `id` must be a class: the first word of
/// a live object, or announced. For hooks.
pub fn number_of(id: usize) -> u32 {
    let mut pending = lock_pending();
    if let Some(met) = pending.iter().find(|met| met.id == id) {
        return met.index;
    }
    if let Some(class) = known(id) {
        return class.index;
    }
    // The memory was reserved when the table was made.
    if pending.len() >= MOST_PENDING.min(pending.capacity()) {
        return 0;
    }
    let index = new_number();
    pending.push(Met { id, index });
    index
}

fn lock_pending() -> MutexGuard<'static, Vec<Met>> {
    PENDING.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Classes that hooks have seen and whose memory layouts are still to be found.
pub(super) fn pending() -> Vec<usize> {
    lock_pending().iter().map(|met| met.id).collect()
}

/// Whether there are [`pending`] classes.
pub(super) fn has_pending() -> bool {
    !lock_pending().is_empty()
}

/// Removes a class from the pending ones: its layout was found, or can't be found.
pub(super) fn no_longer_pending(id: usize) {
    lock_pending().retain(|met| met.id != id);
}

/// Result of putting a class into the table.
pub(crate) enum Insertion {
    /// The class is new in the table, without a memory layout yet.
    New(&'static Class),
    /// The class was in the table already.
    Known(&'static Class),
}

/// Puts a class into the table. If hooks have given it a number, it keeps that number.
pub(crate) fn insert(id: usize, modules: Vec<ModuleId>) -> Option<Insertion> {
    let pending = lock_pending();
    let mut table = TABLE.write().unwrap_or_else(PoisonError::into_inner);
    let table = table.as_mut()?;
    if let Some(known) = table.get(&id) {
        return Some(Insertion::Known(known.class));
    }
    let index = pending.iter().find(|met| met.id == id).map_or_else(new_number, |met| met.index);
    let class = keep(Class { index, id, shape: OnceLock::new() });
    table.insert(id, KnownClass { class, modules });
    Some(Insertion::New(class))
}

/// Forgets the classes of a module that is about to unload: none of their objects is left.
pub(super) fn forget(module: ModuleId) {
    if let Some(announced) = ANNOUNCED.write().unwrap_or_else(PoisonError::into_inner).as_mut() {
        announced.retain(|_, from| !from.contains(&module));
    }
    if let Some(table) = TABLE.write().unwrap_or_else(PoisonError::into_inner).as_mut() {
        table.retain(|_, known| !known.modules.contains(&module));
    }
    lock_pending().clear();
}

/// Forgets recent lookups: a module has been unloaded, and its classes' ids may be used again.
pub(super) fn forget_recent() {
    RECENT.iter().for_each(|slot| slot.store(std::ptr::null_mut(), Ordering::Release));
}
