//! Reading values, in a hook: the thread is in cooperative mode, objects stand still and are alive.

use clrscope_recording::layout::value;

use super::completion::Awaited;
use super::kinds::{Class, Form, Kind, Task};
use super::types::class_of;

/// Characters of a string that are kept.
const CHARACTERS: usize = 256;
/// Elements of an array that are kept.
const ELEMENTS: u32 = 16;
/// Tasks whose results are tasks are opened this deep.
const NESTED_TASKS: u32 = 2;
/// Value types nested deeper than this are left out.
const NESTED: u32 = 4;

/// Writes values one after another into a buffer of fixed size. What does not fit is left out, and the
/// last value then says so.
pub(crate) struct Writer<'b> {
    buffer: &'b mut [u8],
    used: usize,
    /// Something did not fit: nothing more is written, so that what is there stays in its place.
    full: bool,
    /// Only types, no values.
    types_only: bool,
    /// Tasks that are being opened one in another.
    tasks: u32,
}

impl<'b> Writer<'b> {
    pub(crate) fn new(buffer: &'b mut [u8], types_only: bool) -> Self {
        Self { buffer, used: 0, full: false, types_only, tasks: 0 }
    }

    /// Bytes written.
    pub(crate) fn used(&self) -> usize {
        self.used
    }

    #[inline]
    fn tagged<const N: usize>(&mut self, tag: u8, bytes: [u8; N]) {
        let end = self.used + 1 + N;
        match self.buffer.get_mut(self.used..end) {
            Some(place) if !self.full => {
                place[0] = tag;
                place[1..].copy_from_slice(&bytes);
                self.used = end;
            }
            _ => self.full = true,
        }
    }

    /// A value without content.
    pub(crate) fn word(&mut self, tag: u8) {
        self.tagged(tag, []);
    }

    fn room(&self) -> usize {
        self.buffer.len() - self.used
    }

    /// Reads the value at `at`; objects are opened down to `depth`.
    ///
    /// # Safety
    /// `at` must point to a live value of that kind.
    pub(crate) unsafe fn value(&mut self, kind: Kind, at: *const u8, depth: u32) {
        // SAFETY: the caller's promise, in every arm: a value of that size lies there.
        unsafe {
            match kind {
                Kind::Redacted => self.word(value::REDACTED),
                Kind::Opaque(_) => self.word(value::UNKNOWN),
                Kind::Reference(declared) => self.reference(at.cast::<*const u8>().read_unaligned(), declared, depth),
                Kind::String => self.string(at.cast::<*const u8>().read_unaligned()),
                Kind::Struct(class) => self.structure(class, at, depth, NESTED),
                _ if self.types_only => self.word(value::HIDDEN),
                Kind::Bool => self.tagged(value::BOOL, [u8::from(at.read() != 0)]),
                Kind::Char => self.tagged(value::CHAR, at.cast::<[u8; 2]>().read_unaligned()),
                Kind::Float => self.tagged(value::FLOAT, at.cast::<[u8; 4]>().read_unaligned()),
                Kind::Double => self.tagged(value::DOUBLE, at.cast::<[u8; 8]>().read_unaligned()),
                Kind::Pointer => self.tagged(value::POINTER, at.cast::<[u8; 8]>().read_unaligned()),
                Kind::Int(bytes) => self.tagged(value::INT, signed(at, bytes).to_le_bytes()),
                Kind::UInt(bytes) => self.tagged(value::UINT, unsigned(at, bytes).to_le_bytes()),
            }
        }
    }

    /// An object by its address. `declared` is used where the object's own class is not known.
    ///
    /// # Safety
    /// `object` must be null or a live object.
    unsafe fn reference(&mut self, object: *const u8, declared: Option<&'static Class>, depth: u32) {
        if object.is_null() {
            return self.word(value::NULL);
        }
        // SAFETY: an object begins with the address of its class.
        let id = unsafe { object.cast::<usize>().read() };
        let Some(class) = class_of(id).or(declared) else {
            return self.object_head(0, object, 8, 0);
        };
        let shape = class.shape();
        // SAFETY: a live object of that class.
        unsafe {
            match shape.form {
                Form::String => self.string(object),
                Form::Primitive(kind) => self.value(kind, object.add(8), depth),
                Form::Enum { bytes, signed } => self.enumeration(class, object.add(8), bytes, signed),
                Form::Array { element, rank } => self.array(class, object, element, rank, depth),
                Form::Task(task) => self.task(class, object, task, depth),
                _ if shape.is_value => self.structure(class, object.add(8), depth, NESTED),
                Form::Fields | Form::Nullable | Form::Span { .. } | Form::ValueTask { .. } => {
                    self.object(class, object, depth);
                }
            }
        }
    }

    fn object_head(&mut self, class: u32, object: *const u8, size: u32, fields: u16) {
        let address = if self.types_only { 0 } else { object.addr() as u64 };
        let mut head = [0; 18];
        head[..4].copy_from_slice(&class.to_le_bytes());
        head[4..12].copy_from_slice(&address.to_le_bytes());
        head[12..16].copy_from_slice(&size.to_le_bytes());
        head[16..].copy_from_slice(&fields.to_le_bytes());
        self.tagged(value::OBJECT, head);
    }

    /// # Safety
    /// `object` must be a live object of that class.
    unsafe fn object(&mut self, class: &'static Class, object: *const u8, depth: u32) {
        let shape = class.shape();
        if depth == 0 || self.types_only {
            return self.object_head(class.index, object, shape.size, 0);
        }
        // Each field takes at least a byte: what can't fit is not begun.
        let fields = shape.fields.len().min(self.room().saturating_sub(24));
        self.object_head(class.index, object, shape.size, fields as u16);
        for field in &shape.fields[..fields] {
            // SAFETY: fields lie within the object.
            unsafe { self.value(field.kind, object.add(field.offset as usize), depth - 1) };
        }
    }

    /// # Safety
    /// `object` must be a live task.
    unsafe fn task(&mut self, class: &'static Class, object: *const u8, task: Task, depth: u32) {
        let size = class.shape().size;
        if depth == 0 || self.types_only || self.tasks == NESTED_TASKS {
            return self.object_head(class.index, object, size, 0);
        }
        // SAFETY: a live task has this field.
        let status = Task::status_of(unsafe { object.add(task.flags as usize).cast::<u32>().read() });
        let result = task.result.filter(|_| status == Task::COMPLETED);
        self.object_head(class.index, object, size, 1 + u16::from(result.is_some()));
        self.constant(task.status, status);
        if let Some(result) = result {
            // A task is only a wrapper; but one may be its own result.
            self.tasks += 1;
            // SAFETY: its result is there, and stays.
            unsafe { self.value(result.kind, object.add(result.offset as usize), depth) };
            self.tasks -= 1;
        }
    }

    /// # Safety
    /// `at` must point to a live value of that class, which is a task of that form.
    unsafe fn value_task(&mut self, class: &'static Class, at: *const u8, depth: u32) {
        let Form::ValueTask { object, status, result } = class.shape().form else { return };
        // SAFETY: the caller's promise; what it refers to is alive too.
        unsafe {
            let inner = at.add(object as usize).cast::<*const u8>().read_unaligned();
            if inner.is_null() {
                self.structure_head(class, 1 + u16::from(result.is_some()));
                self.constant(status, Task::COMPLETED);
                if let Some(result) = result {
                    self.value(result.kind, at.add(result.offset as usize), depth);
                }
                return;
            }
            let Some(Form::Task(task)) = class_of(inner.cast::<usize>().read()).map(|class| class.shape().form) else {
                // Some other source of a result, which only it can ask.
                return self.structure_head(class, 0);
            };
            let state = Task::status_of(inner.add(task.flags as usize).cast::<u32>().read());
            let result = task.result.filter(|_| state == Task::COMPLETED && self.tasks < NESTED_TASKS);
            self.structure_head(class, 1 + u16::from(result.is_some()));
            self.constant(status, state);
            if let Some(result) = result {
                self.tasks += 1;
                self.value(result.kind, inner.add(result.offset as usize), depth);
                self.tasks -= 1;
            }
        }
    }

    /// The head of a task that is only shown; its result follows where it `has_result`.
    pub(crate) fn task_in_state(&mut self, awaited: Awaited, state: i64, has_result: bool) {
        self.structure_head(awaited.class, 1 + u16::from(has_result));
        self.constant(awaited.status, state);
    }

    fn structure_head(&mut self, class: &'static Class, fields: u16) {
        let mut head = [0; 6];
        head[..4].copy_from_slice(&class.index.to_le_bytes());
        head[4..].copy_from_slice(&fields.to_le_bytes());
        self.tagged(value::STRUCT, head);
    }

    fn constant(&mut self, class: &'static Class, number: i64) {
        let mut content = [0; 12];
        content[..4].copy_from_slice(&class.index.to_le_bytes());
        content[4..].copy_from_slice(&number.to_le_bytes());
        self.tagged(value::ENUM, content);
    }

    /// # Safety
    /// `at` must point to a live value of that class.
    unsafe fn structure(&mut self, class: &'static Class, at: *const u8, depth: u32, nested: u32) {
        let shape = class.shape();
        // SAFETY: the caller's promise; fields lie within the value.
        unsafe {
            match shape.form {
                Form::Enum { bytes, signed } => return self.enumeration(class, at, bytes, signed),
                Form::Primitive(kind) => return self.value(kind, at, depth),
                Form::Nullable => return self.nullable(shape.fields.as_slice(), at, depth),
                Form::ValueTask { .. } if !self.types_only => return self.value_task(class, at, depth),
                Form::Span { element } if !self.types_only => {
                    let length = at.add(8).cast::<u32>().read_unaligned();
                    let data = at.cast::<*const u8>().read_unaligned();
                    return self.items(class, 0, data, length, element, depth);
                }
                _ => {}
            }
        }
        let fields = if nested == 0 || self.types_only { 0 } else { shape.fields.len().min(self.room() / 2) };
        self.structure_head(class, fields as u16);
        for field in &shape.fields[..fields] {
            // SAFETY: as above.
            unsafe {
                let at = at.add(field.offset as usize);
                match field.kind {
                    Kind::Struct(class) => self.structure(class, at, depth, nested - 1),
                    kind => self.value(kind, at, depth),
                }
            }
        }
    }

    /// # Safety
    /// `at` must point to a live nullable value with these two fields.
    unsafe fn nullable(&mut self, fields: &[super::kinds::Field], at: *const u8, depth: u32) {
        let [has, inner] = fields else { return self.word(value::UNKNOWN) };
        // SAFETY: the caller's promise.
        unsafe {
            if at.add(has.offset as usize).read() == 0 {
                return self.word(if self.types_only { value::HIDDEN } else { value::NULL });
            }
            self.value(inner.kind, at.add(inner.offset as usize), depth);
        }
    }

    /// # Safety
    /// `at` must point to that many bytes.
    unsafe fn enumeration(&mut self, class: &'static Class, at: *const u8, bytes: u8, has_sign: bool) {
        if self.types_only {
            return self.word(value::HIDDEN);
        }
        // SAFETY: the caller's promise.
        let number = unsafe { if has_sign { signed(at, bytes) } else { unsigned(at, bytes) as i64 } };
        self.constant(class, number);
    }

    /// # Safety
    /// `object` must be null or a live string.
    unsafe fn string(&mut self, object: *const u8) {
        if object.is_null() {
            return self.word(value::NULL);
        }
        if self.types_only {
            return self.word(value::HIDDEN);
        }
        // SAFETY: a string is its class, its length in characters, and as many of them.
        unsafe {
            let length = object.add(8).cast::<u32>().read();
            let kept = (length as usize).min(CHARACTERS).min(self.room().saturating_sub(16) / 2);
            let mut head = [0; 6];
            head[..4].copy_from_slice(&length.to_le_bytes());
            head[4..].copy_from_slice(&(kept as u16).to_le_bytes());
            self.tagged(value::STRING, head);
            let end = self.used + kept * 2;
            match self.buffer.get_mut(self.used..end) {
                Some(place) if !self.full => {
                    place.copy_from_slice(std::slice::from_raw_parts(object.add(12), kept * 2));
                    self.used = end;
                }
                _ => self.full = true,
            }
        }
    }

    /// # Safety
    /// `object` must be a live array of such elements.
    unsafe fn array(&mut self, class: &'static Class, object: *const u8, element: Kind, rank: u32, depth: u32) {
        // SAFETY: an array is its class, its length, for other arrays than vectors sizes and lower
        // bounds of each dimension, and its elements.
        unsafe {
            let length = object.add(8).cast::<u32>().read();
            let bounds = if rank > 1 { rank as usize * 8 } else { 0 };
            self.items(class, object.addr() as u64, object.add(16 + bounds), length, element, depth);
        }
    }

    /// # Safety
    /// `length` elements must lie at `data`.
    unsafe fn items(
        &mut self,
        class: &'static Class,
        address: u64,
        data: *const u8,
        length: u32,
        element: Kind,
        depth: u32,
    ) {
        let kept = if depth == 0 || self.types_only { 0 } else { length.min(ELEMENTS) };
        let kept = (kept as usize).min(self.room().saturating_sub(24) / 2) as u16;
        let mut head = [0; 18];
        head[..4].copy_from_slice(&class.index.to_le_bytes());
        let (address, length) = if self.types_only { (0, 0) } else { (address, length) };
        head[4..12].copy_from_slice(&address.to_le_bytes());
        head[12..16].copy_from_slice(&length.to_le_bytes());
        head[16..].copy_from_slice(&kept.to_le_bytes());
        self.tagged(value::ARRAY, head);
        for index in 0..usize::from(kept) {
            // SAFETY: the caller's promise.
            unsafe { self.value(element, data.add(index * element.size() as usize), depth.saturating_sub(1)) };
        }
    }
}

/// # Safety
/// `at` must point to that many bytes.
#[inline]
unsafe fn unsigned(at: *const u8, bytes: u8) -> u64 {
    // SAFETY: the caller's promise.
    unsafe {
        match bytes {
            1 => u64::from(at.read()),
            2 => u64::from(at.cast::<u16>().read_unaligned()),
            4 => u64::from(at.cast::<u32>().read_unaligned()),
            _ => at.cast::<u64>().read_unaligned(),
        }
    }
}

/// # Safety
/// `at` must point to that many bytes.
#[inline]
unsafe fn signed(at: *const u8, bytes: u8) -> i64 {
    // SAFETY: the caller's promise.
    let raw = unsafe { unsigned(at, bytes) };
    let unused = 64 - u32::from(bytes.clamp(1, 8)) * 8;
    ((raw << unused) as i64) >> unused
}
