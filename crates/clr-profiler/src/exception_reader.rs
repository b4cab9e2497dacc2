//! Contents of exception objects, read in the callback that received the object.

use std::collections::HashMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, OnceLock, PoisonError};

use crate::{ClassId, NameCache, ObjectId, ProfilerInfo, StringLayout, Utf16Text};

/// Maximum number of base types of an exception class.
const DEPTH: usize = 64;

/// Contents of an exception object.
#[derive(Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub struct ExceptionContent<'cb> {
    /// Class of the exception.
    pub class: ClassId,
    /// The message given to the exception's constructor, cut to the limit that was passed to
    /// [`read`](ExceptionReader::read). `None` for the default message of the type.
    pub message: Option<Utf16Text<'cb>>,
    /// The inner exception.
    pub inner: Option<ObjectId<'cb>>,
    /// The exception's `HResult` property.
    pub code: i32,
    /// Whether the object carries the stack trace of an earlier throw. At `throw e;` the runtime
    /// removes this stack trace before it reports the throw. So an object without a stack trace may
    /// have been thrown before, too.
    pub is_traced: bool,
}

/// Reads exception objects. Queries their layout once.
///
/// ```
/// use clr_profiler::{ExceptionReader, NameCache, ObjectId, ProfilerInfo};
///
/// /// The message, in `exception_thrown`; at most 200 UTF-16 units of it.
/// fn in_a_callback(
///     reader: &ExceptionReader,
///     info: &ProfilerInfo,
///     names: &NameCache,
///     exception: ObjectId<'_>,
/// ) -> Option<String> {
///     reader.read(info, names, exception, 200)?.message.map(|message| message.to_string())
/// }
/// ```
#[derive(Default)]
pub struct ExceptionReader {
    layout: OnceLock<Option<Layout>>,
    /// Whether a class derives from `System.Exception`.
    classes: Mutex<HashMap<ClassId, bool>>,
    /// Classes that derive from `System.Exception` and were seen last, each in the slot of its
    /// address.
    recent: Recent,
}

/// The classes seen last, in a table without a lock.
#[derive(Default)]
struct Recent([AtomicUsize; 32]);

impl Recent {
    /// Returns the slot of a class. Method tables lie at least 64 bytes apart.
    fn slot_of_class(&self, class: ClassId) -> &AtomicUsize {
        &self.0[(class.0 >> 6) % self.0.len()]
    }

    fn forget(&self) {
        self.0.iter().for_each(|place| place.store(0, Ordering::Relaxed));
    }
}

#[derive(Clone, Copy)]
struct Layout {
    message: usize,
    inner: usize,
    code: usize,
    stack_trace: usize,
    string: StringLayout,
}

impl ExceptionReader {
    /// A reader that has not queried the layout yet.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Contents of `exception`, with the message cut to `most` UTF-16 units. Call it in an
    /// exception callback, with the object that the callback received. `None` if the object is not
    /// an exception or can't be read.
    pub fn read<'cb>(
        &self,
        info: &ProfilerInfo,
        names: &NameCache,
        exception: ObjectId<'cb>,
        most: usize,
    ) -> Option<ExceptionContent<'cb>> {
        let class = self.exception_class(info, names, exception)?;
        let layout = (*self.layout.get()?)?;
        // SAFETY: the object is alive during the callback and its class derives from
        // `System.Exception`, whose fields lie at these offsets.
        unsafe {
            let message = reference(exception, layout.message);
            Some(ExceptionContent {
                class,
                message: message.map(|message| text(message, layout.string, most)),
                inner: reference(exception, layout.inner),
                code: field::<i32>(exception, layout.code),
                is_traced: reference(exception, layout.stack_trace).is_some(),
            })
        }
    }

    /// Forgets all classes, because the runtime may reuse their identifiers after the unload of a
    /// module.
    pub fn module_unloaded(&self) {
        self.classes.lock().unwrap_or_else(PoisonError::into_inner).clear();
        self.recent.forget();
    }

    /// The class of an object if the object is an exception.
    fn exception_class(&self, info: &ProfilerInfo, names: &NameCache, object: ObjectId<'_>) -> Option<ClassId> {
        if let Some(class) = self.seen_before(object) {
            return Some(class);
        }
        let class = info.class_of_object(object).ok()?;
        if !self.looked_up(info, names, class) {
            return None;
        }
        // An object of the class is alive here, so the class can't be unloaded before its
        // identifier is stored.
        if self.first_word(object) == Some(class.0) {
            self.recent.slot_of_class(class).store(class.0, Ordering::Relaxed);
        }
        Some(class)
    }

    /// The first word of an object is the address of its method table. Most class identifiers are
    /// the same address. Only classes whose identifier is known to equal this address are kept.
    fn seen_before(&self, object: ObjectId<'_>) -> Option<ClassId> {
        let class = ClassId::received(self.first_word(object)?);
        (self.recent.slot_of_class(class).load(Ordering::Relaxed) == class.0).then_some(class)
    }

    /// The first word of an object; `None` before the first exception was read.
    fn first_word(&self, object: ObjectId<'_>) -> Option<usize> {
        let known = self.layout.get().is_some() && !object.is_null();
        // SAFETY: the object is alive during the callback, and every object begins with a word.
        known.then(|| unsafe { field(object, 0) })
    }

    fn looked_up(&self, info: &ProfilerInfo, names: &NameCache, class: ClassId) -> bool {
        let known = self.classes.lock().unwrap_or_else(PoisonError::into_inner).get(&class).copied();
        known.unwrap_or_else(|| {
            let base = base_of(info, names, class);
            if let Some(base) = base {
                self.layout.get_or_init(|| layout(info, base));
            }
            self.classes.lock().unwrap_or_else(PoisonError::into_inner).insert(class, base.is_some());
            base.is_some()
        })
    }
}

/// Searches the base types of `class` for `System.Exception`.
fn base_of(info: &ProfilerInfo, names: &NameCache, class: ClassId) -> Option<ClassId> {
    let mut at = class;
    for _ in 0..DEPTH {
        if *names.class(info, at) == *"System.Exception" {
            return Some(at);
        }
        at = info.class_info(at).ok()?.parent?;
    }
    None
}

fn layout(info: &ProfilerInfo, class: ClassId) -> Option<Layout> {
    let module = info.class_info(class).ok()?.module;
    let metadata = info.module_metadata(module).ok()?;
    let fields = info.class_layout(class).ok()?.fields;
    let offset = |name: &str| {
        let found = fields.iter().find(|(token, _)| metadata.field(*token).is_ok_and(|field| field.name == name));
        found.map(|(_, offset)| *offset as usize).filter(|&offset| offset < 4096)
    };
    Some(Layout {
        message: offset("_message")?,
        inner: offset("_innerException")?,
        code: offset("_HResult")?,
        stack_trace: offset("_stackTrace")?,
        string: info.string_layout().ok()?,
    })
}

/// # Safety
/// The object is alive and has a field of this type at `offset`.
unsafe fn field<T: Copy>(object: ObjectId<'_>, offset: usize) -> T {
    // SAFETY: the caller's promise.
    unsafe { (object.address() as *const u8).add(offset).cast::<T>().read_unaligned() }
}

/// # Safety
/// The object is alive and has a reference at `offset`.
unsafe fn reference<'cb>(object: ObjectId<'cb>, offset: usize) -> Option<ObjectId<'cb>> {
    // SAFETY: the caller's promise; an object that a live object refers to is alive, and no object
    // moves during the callback.
    let found = ObjectId::new(unsafe { field::<usize>(object, offset) });
    (!found.is_null()).then_some(found)
}

/// # Safety
/// The object is a live string.
unsafe fn text<'cb>(object: ObjectId<'cb>, layout: StringLayout, most: usize) -> Utf16Text<'cb> {
    // SAFETY: the caller's promise: the object has a length and that many units, and no object
    // moves during the callback.
    unsafe {
        let length = field::<u32>(object, layout.length) as usize;
        let start = (object.address() as *const u8).add(layout.buffer).cast::<u16>();
        Utf16Text(std::slice::from_raw_parts(start, length.min(most)))
    }
}
