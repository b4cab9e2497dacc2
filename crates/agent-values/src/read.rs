//! Reads values in a hook. The thread is in cooperative mode, so objects do not move.

use clrscope_recording::layout::value;

use super::completion::AwaitedTask;
use super::delegates;
use super::evidence::{Evidence, Verdict, judge};
use super::kinds::{Class, Field, Form, Kind, Shown, Task};
use super::memory::{At, Ground, MemoryReader};
use super::types::table::{class_of, is_of_values, is_told, number_of};

/// Characters of a string that are kept.
const CHARACTERS: usize = 256;
/// Elements of an array that are kept.
const ELEMENTS: u32 = 16;
/// Tasks whose results are tasks are opened this deep.
const NESTED_TASKS: u32 = 2;
/// Value types nested deeper than this are left out.
const NESTED: u32 = 4;
/// Alignment of objects.
const ALIGNED: usize = 8;

/// Writes values one after another into a buffer of fixed size. Leaves out values that do not fit,
/// and marks that at the end of the buffer.
pub struct Writer<'b> {
    buffer: &'b mut [u8],
    used: usize,
    /// Whether a value did not fit. Nothing more is written then, so that the written values stay
    /// in place.
    full: bool,
    /// Only types, no values.
    types_only: bool,
    /// Number of nested tasks that are being opened.
    tasks: u32,
    pub(super) memory: MemoryReader,
}

impl<'b> Writer<'b> {
    /// Creates a writer that fills `buffer`. `types_only`: writes the types without the values.
    pub fn new(buffer: &'b mut [u8], types_only: bool) -> Self {
        Self { buffer, used: 0, full: false, types_only, tasks: 0, memory: MemoryReader::new() }
    }

    /// Whether the value at a location of a plan is certainly of the plan's kind. Checks the value
    /// itself if nothing else proves that.
    pub fn proves(&mut self, evidence: &Evidence, place: usize, kind: Kind, at: At) -> bool {
        if !evidence.holds(place) && judge(&mut self.memory, kind, at) == Verdict::Right {
            evidence.found(place);
        }
        evidence.holds(place)
    }

    /// Number of bytes written so far.
    pub fn used(&self) -> usize {
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

    /// Appends bytes to the value that was written last.
    #[inline]
    fn append<const N: usize>(&mut self, bytes: [u8; N]) {
        let end = self.used + N;
        match self.buffer.get_mut(self.used..end) {
            Some(place) if !self.full => {
                place.copy_from_slice(&bytes);
                self.used = end;
            }
            _ => self.full = true,
        }
    }

    /// Writes a value that has no content, only this code (`tag`).
    pub fn word(&mut self, tag: u8) {
        self.tagged(tag, []);
    }

    fn room(&self) -> usize {
        self.buffer.len() - self.used
    }

    /// Reads the value at `at`; objects are opened down to `depth`. A value that can't be read is
    /// written as unknown.
    pub fn value(&mut self, kind: Kind, at: At, depth: u32) {
        match kind {
            Kind::Redacted => self.word(value::REDACTED),
            Kind::Opaque(_) => self.word(value::UNKNOWN),
            Kind::Reference(declared) => self.reference(at, declared, depth),
            Kind::String => self.string_reference(at, depth),
            Kind::Struct(class) => self.structure(class, at, depth, NESTED),
            _ if self.types_only => self.word(value::HIDDEN),
            Kind::Bool => self.read(at, |writer, byte: [u8; 1]| writer.tagged(value::BOOL, [u8::from(byte[0] != 0)])),
            Kind::Char => self.read(at, |writer, unit: [u8; 2]| writer.tagged(value::CHAR, unit)),
            Kind::Float => self.read(at, |writer, bits: [u8; 4]| writer.tagged(value::FLOAT, bits)),
            Kind::Double => self.read(at, |writer, bits: [u8; 8]| writer.tagged(value::DOUBLE, bits)),
            Kind::Pointer => self.read(at, |writer, bits: [u8; 8]| writer.tagged(value::POINTER, bits)),
            Kind::Int(bytes) => self.integer(at, bytes, true, |writer, n| writer.tagged(value::INT, n.to_le_bytes())),
            Kind::UInt(bytes) => {
                self.integer(at, bytes, false, |writer, n| writer.tagged(value::UINT, n.to_le_bytes()))
            }
        }
    }

    /// Reads the target of the typed reference at `at`. A typed reference holds the target's
    /// address, then its class: a value type, or the declared class of a reference. `is_alive`: the
    /// runtime keeps the target alive as long as the typed reference; otherwise any memory may be
    /// at the address.
    pub fn typed(&mut self, at: At, is_alive: bool, depth: u32) {
        let (Some(address), Some(id)) = (self.memory.word(at), self.memory.word(at.behind(8))) else {
            return self.word(value::UNKNOWN);
        };
        if address == 0 {
            return self.word(value::NULL);
        }
        let target = |bytes: u32| match is_alive {
            // SAFETY: the caller says that the target is as alive as the typed reference.
            true => unsafe { At::on(Ground::Alive, std::ptr::with_exposed_provenance(address)) },
            false => At::somewhere(address, bytes as usize),
        };
        match class_of(id) {
            Some(class) if class.is_of_values() => {
                let size = class.shape().size;
                self.structure(class, target(size), depth, NESTED);
            }
            Some(_) => self.reference(target(8), None, depth),
            None => {
                // An unknown class: its shape is found later, where queries are allowed.
                number_of(id);
                match is_of_values(id) {
                    Some(false) => self.reference(target(8), None, depth),
                    _ => self.word(value::UNKNOWN),
                }
            }
        }
    }

    /// Reads bytes and passes them to `write`; writes an unknown value where they can't be read.
    #[inline]
    fn read<const N: usize>(&mut self, at: At, write: impl FnOnce(&mut Self, [u8; N])) {
        match self.memory.read(at) {
            Some(bytes) => write(self, bytes),
            None => self.word(value::UNKNOWN),
        }
    }

    /// Reads an integer of `bytes` bytes; `has_sign`: the integer is signed.
    #[inline]
    fn integer(&mut self, at: At, bytes: u8, has_sign: bool, write: impl FnOnce(&mut Self, i64)) {
        let raw = match bytes {
            1 => self.memory.read(at).map(|[byte]| u64::from(byte)),
            2 => self.memory.read(at).map(|raw| u16::from_ne_bytes(raw).into()),
            4 => self.memory.read(at).map(|raw| u32::from_ne_bytes(raw).into()),
            _ => self.memory.read(at).map(u64::from_ne_bytes),
        };
        let unused = 64 - u32::from(bytes.clamp(1, 8)) * 8;
        match raw {
            Some(raw) if has_sign => write(self, ((raw << unused) as i64) >> unused),
            Some(raw) => write(self, raw as i64),
            None => self.word(value::UNKNOWN),
        }
    }

    /// Target of the reference at `at`, with the guarantee that follows from the reference. `None`:
    /// the reference is null or unreadable, which has been written.
    fn followed(&mut self, at: At) -> Option<At> {
        match self.memory.word(at) {
            Some(0) => self.word(value::NULL),
            // SAFETY: a reference in a live object leads to a live object.
            Some(object) if at.ground() == Ground::Alive => unsafe {
                return Some(At::on(Ground::Alive, std::ptr::with_exposed_provenance(object)));
            },
            Some(object) if object % ALIGNED == 0 => return Some(At::unknown(object)),
            _ => self.word(value::UNKNOWN),
        }
        None
    }

    /// Writes an object. `declared` is used where the object's own class is not known.
    fn reference(&mut self, at: At, declared: Option<&'static Class>, depth: u32) {
        let Some(object) = self.followed(at) else { return };
        let Some(id) = self.memory.word(object) else { return self.word(value::UNKNOWN) };
        match class_of(id) {
            Some(class) => self.object_of(ReadClass { class, index: class.index }, object, depth),
            None if object.ground() == Ground::Alive || is_told(id) => {
                let index = number_of(id);
                match declared {
                    // The inherited fields come first in its own layout. Unsafe code may have
                    // stored an object of another class.
                    Some(class) => self.object_of(ReadClass { class, index }, At::unknown(object.address()), depth),
                    None => self.object_head(index, object, 0, 0),
                }
            }
            // The runtime has not announced such a class: this may be anything.
            None => self.word(value::UNKNOWN),
        }
    }

    /// An object.
    fn object_of(&mut self, seen: ReadClass, object: At, depth: u32) {
        let shape = seen.class.shape();
        let content = object.behind(8);
        match shape.form {
            Form::String | Form::Enum { .. } if self.types_only => self.of_class(seen.index),
            Form::String => self.string(object),
            Form::Primitive(kind) => {
                self.tagged(value::BOXED, seen.index.to_le_bytes());
                self.value(kind, content, depth);
            }
            Form::Enum { bytes, signed } => self.enumeration(seen.class, content, bytes, signed),
            Form::Array { element, rank } => self.array(seen, object, element, rank, depth),
            Form::Task(task) => self.task(seen, object, task, depth),
            Form::Type { handle } => self.type_of(seen, object, handle),
            Form::Delegate { pointer, method } => self.delegate(seen, object, pointer, method, depth),
            _ if shape.is_value => self.structure(seen.class, content, depth, NESTED),
            Form::Fields | Form::Nullable | Form::Span { .. } | Form::ValueTask { .. } => {
                self.object(seen, object, depth);
            }
        }
    }

    /// Writes a delegate as an object; the address of its method is described elsewhere.
    fn delegate(&mut self, seen: ReadClass, object: At, pointer: u32, method: u32, depth: u32) {
        if depth > 0 && !self.types_only {
            let called = self.memory.word(object.behind(method as usize)).filter(|address| *address != 0);
            let called = called.or_else(|| self.memory.word(object.behind(pointer as usize)));
            called.into_iter().for_each(delegates::met);
        }
        self.object(seen, object, depth);
    }

    /// Writes an object that represents a type; the class is found through the object's handle.
    fn type_of(&mut self, seen: ReadClass, object: At, handle: u32) {
        if self.types_only {
            return self.of_class(seen.index);
        }
        let of = self.memory.word(object.behind(handle as usize)).filter(|id| is_told(*id)).map_or(0, number_of);
        if of == 0 {
            return self.object_head(seen.index, object, seen.bytes(), 0);
        }
        let mut head = [0; 16];
        head[..4].copy_from_slice(&seen.index.to_le_bytes());
        head[4..12].copy_from_slice(&(object.address() as u64).to_le_bytes());
        head[12..].copy_from_slice(&of.to_le_bytes());
        self.tagged(value::TYPE, head);
    }

    /// Writes only the class.
    fn of_class(&mut self, index: u32) {
        self.tagged(value::OF_CLASS, index.to_le_bytes());
    }

    fn object_head(&mut self, class: u32, object: At, size: u32, fields: u16) {
        if self.types_only {
            return self.of_class(class);
        }
        let mut head = [0; 18];
        head[..4].copy_from_slice(&class.to_le_bytes());
        head[4..12].copy_from_slice(&(object.address() as u64).to_le_bytes());
        head[12..16].copy_from_slice(&size.to_le_bytes());
        head[16..].copy_from_slice(&fields.to_le_bytes());
        self.tagged(value::OBJECT, head);
    }

    fn object(&mut self, seen: ReadClass, object: At, depth: u32) {
        let shape = seen.class.shape();
        if depth == 0 || self.types_only {
            return self.object_head(seen.index, object, seen.bytes(), 0);
        }
        // Each field takes at least a byte: a value that can't fit is not begun.
        let fields = shape.fields.len().min(self.room().saturating_sub(24));
        self.object_head(seen.index, object, seen.bytes(), fields as u16);
        for field in &shape.fields[..fields] {
            let depth = if field.shown == Shown::Content { depth } else { depth - 1 };
            self.field(field, object, depth);
        }
    }

    fn task(&mut self, seen: ReadClass, object: At, task: Task, depth: u32) {
        let size = seen.bytes();
        let is_closed = depth == 0 || self.types_only || self.tasks == NESTED_TASKS;
        let Some(status) = (!is_closed).then(|| self.status_of(object, task)).flatten() else {
            return self.object_head(seen.index, object, size, 0);
        };
        let result = task.result.filter(|_| status == Task::COMPLETED);
        self.object_head(seen.index, object, size, 1 + u16::from(result.is_some()));
        self.constant(task.status, status);
        if let Some(result) = result {
            // A task is only a wrapper; but one may be its own result.
            self.tasks += 1;
            self.field(&result, object, depth);
            self.tasks -= 1;
        }
    }

    fn status_of(&mut self, object: At, task: Task) -> Option<i64> {
        let flags = self.memory.read(object.behind(task.flags as usize))?;
        Some(Task::status_of(u32::from_ne_bytes(flags)))
    }

    /// A `ValueTask`: holds a result, or refers to the source of a later result.
    fn value_task(&mut self, class: &'static Class, at: At, depth: u32) {
        let Form::ValueTask { object, status, result } = class.shape().form else { return };
        let source = at.behind(object as usize);
        if self.memory.word(source) == Some(0) {
            self.structure_head(class, 1 + u16::from(result.is_some()));
            self.constant(status, Task::COMPLETED);
            if let Some(result) = result {
                self.field(&result, at, depth);
            }
            return;
        }
        let Some((inner, task, state)) = self.task_behind(source) else {
            // Some other source of a result; only the value task can ask it.
            return self.structure_head(class, 0);
        };
        let result = task.result.filter(|_| state == Task::COMPLETED && self.tasks < NESTED_TASKS);
        self.structure_head(class, 1 + u16::from(result.is_some()));
        self.constant(status, state);
        if let Some(result) = result {
            self.tasks += 1;
            self.field(&result, inner, depth);
            self.tasks -= 1;
        }
    }

    /// The task that a reference leads to, with its state.
    fn task_behind(&mut self, reference: At) -> Option<(At, Task, i64)> {
        let address = self.memory.word(reference)?;
        let object = match reference.ground() {
            // SAFETY: a reference in a live object leads to a live object; it is not null, the
            // caller has looked.
            Ground::Alive => unsafe { At::on(Ground::Alive, std::ptr::with_exposed_provenance(address)) },
            Ground::Held | Ground::Unknown => At::unknown(address),
        };
        let Form::Task(task) = class_of(self.memory.word(object)?)?.shape().form else { return None };
        Some((object, task, self.status_of(object, task)?))
    }

    /// Writes the state of a task that is only shown. If `has_result`, the result must be written
    /// next.
    pub fn task_in_state(&mut self, awaited: AwaitedTask, state: i64, has_result: bool) {
        self.structure_head(awaited.class, 1 + u16::from(has_result));
        self.constant(awaited.status, state);
    }

    fn structure_head(&mut self, class: &'static Class, fields: u16) {
        if self.types_only {
            return self.of_class(class.index);
        }
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

    /// Writes a field of the object or value at `of`, unless its name hides it.
    fn field(&mut self, field: &Field, of: At, depth: u32) {
        let kind = if field.is_hidden() { Kind::Redacted } else { field.kind };
        self.value(kind, of.behind(field.offset as usize), depth);
    }

    fn structure(&mut self, class: &'static Class, at: At, depth: u32, nested: u32) {
        let shape = class.shape();
        match shape.form {
            Form::Enum { bytes, signed } => return self.enumeration(class, at, bytes, signed),
            Form::Primitive(kind) => return self.value(kind, at, depth),
            Form::Nullable => return self.nullable(shape.fields.as_slice(), at, depth),
            Form::ValueTask { .. } if !self.types_only => return self.value_task(class, at, depth),
            Form::Span { element } if !self.types_only => return self.span(class, at, element, depth),
            _ => {}
        }
        let fields = if nested == 0 || self.types_only { 0 } else { shape.fields.len().min(self.room() / 2) };
        self.structure_head(class, fields as u16);
        for field in &shape.fields[..fields] {
            match field.kind {
                Kind::Struct(class) if !field.is_hidden() => {
                    self.structure(class, at.behind(field.offset as usize), depth, nested - 1);
                }
                _ => self.field(field, at, depth),
            }
        }
    }

    /// A nullable value with these two fields.
    fn nullable(&mut self, fields: &[Field], at: At, depth: u32) {
        let [has, inner] = fields else { return self.word(value::UNKNOWN) };
        match self.memory.read(at.behind(has.offset as usize)) {
            None => self.word(value::UNKNOWN),
            Some([0]) => self.word(if self.types_only { value::HIDDEN } else { value::NULL }),
            Some([_]) => self.field(inner, at, depth),
        }
    }

    fn enumeration(&mut self, class: &'static Class, at: At, bytes: u8, has_sign: bool) {
        if self.types_only {
            return self.word(value::HIDDEN);
        }
        self.integer(at, bytes, has_sign, |writer, number| writer.constant(class, number));
    }

    /// Value declared as a string. Only unsafe code stores a reference to anything else there.
    fn string_reference(&mut self, at: At, depth: u32) {
        if !self.types_only {
            return self.reference(at, None, depth);
        }
        let tag =
            self.memory.word(at).map_or(value::UNKNOWN, |word| if word == 0 { value::NULL } else { value::HIDDEN });
        self.word(tag);
    }

    /// A string: its class, its length in characters, and its first characters.
    fn string(&mut self, object: At) {
        if self.types_only {
            return self.word(value::HIDDEN);
        }
        let Some(length) = self.memory.read(object.behind(8)) else { return self.word(value::UNKNOWN) };
        let kept = (u32::from_ne_bytes(length) as usize).min(CHARACTERS).min(self.room().saturating_sub(16) / 2);
        let start = self.used;
        let mut head = [0; 6];
        head[..4].copy_from_slice(&length);
        head[4..].copy_from_slice(&(kept as u16).to_le_bytes());
        self.tagged(value::STRING, head);
        let end = self.used + kept * 2;
        match self.buffer.get_mut(self.used..end) {
            Some(place) if !self.full => {
                if self.memory.copy(object.behind(12), place) {
                    self.used = end;
                } else {
                    self.used = start;
                    self.word(value::UNKNOWN);
                }
            }
            _ => self.full = true,
        }
    }

    /// An array: its class, its length, and its elements. Arrays other than vectors also have the
    /// size and lower bound of each dimension.
    fn array(&mut self, seen: ReadClass, object: At, element: Kind, rank: u32, depth: u32) {
        if self.types_only {
            return self.of_class(seen.index);
        }
        let Some(length) = self.memory.read(object.behind(8)) else { return self.word(value::UNKNOWN) };
        let length = u32::from_ne_bytes(length);
        let bounds = object.behind(16);
        if rank <= 1 {
            self.array_head(value::ARRAY, seen.index, object.address() as u64, length);
            return self.items(bounds, length, element, depth);
        }
        self.array_head(value::MATRIX, seen.index, object.address() as u64, length);
        self.append([rank as u8]);
        for dimension in 0..rank as usize {
            let size = self.memory.read::<4>(bounds.behind(dimension * 4)).unwrap_or_default();
            self.append(size);
        }
        self.items(bounds.behind(rank as usize * 8), length, element, depth);
    }

    /// A span: the address and number of its elements. The elements may lie anywhere, and may be
    /// gone.
    fn span(&mut self, class: &'static Class, at: At, element: Kind, depth: u32) {
        let (Some(data), Some(length)) = (self.memory.word(at), self.memory.read(at.behind(8))) else {
            return self.word(value::UNKNOWN);
        };
        let length = u32::from_ne_bytes(length);
        let bytes = length.min(ELEMENTS) as usize * element.size() as usize;
        self.array_head(value::ARRAY, class.index, 0, length);
        self.items(At::somewhere(data, bytes), length, element, depth);
    }

    fn array_head(&mut self, tag: u8, class: u32, address: u64, length: u32) {
        let mut head = [0; 16];
        head[..4].copy_from_slice(&class.to_le_bytes());
        head[4..12].copy_from_slice(&address.to_le_bytes());
        head[12..].copy_from_slice(&length.to_le_bytes());
        self.tagged(tag, head);
    }

    /// Writes the number of elements, then `length` elements from `data`.
    fn items(&mut self, data: At, length: u32, element: Kind, depth: u32) {
        let kept = if depth == 0 { 0 } else { length.min(ELEMENTS) };
        let kept = (kept as usize).min(self.room().saturating_sub(24) / 2) as u16;
        self.append(kept.to_le_bytes());
        for index in 0..usize::from(kept) {
            self.value(element, data.behind(index * element.size() as usize), depth.saturating_sub(1));
        }
    }
}

/// An object's class, as far as it is known.
#[derive(Clone, Copy)]
struct ReadClass {
    /// The class, or a class that it is derived from.
    class: &'static Class,
    /// Number of the class in the recording.
    index: u32,
}

impl ReadClass {
    /// Bytes of the object; 0 if only a base class is known.
    fn bytes(self) -> u32 {
        if self.index == self.class.index { self.class.object_bytes() } else { 0 }
    }
}
