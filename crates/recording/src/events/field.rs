//! Fields of a record: a tag that gives the meaning, and a value.

/// Meaning of a field; the number determines the form of the value.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Tag(pub u8);

// 11, 13, 16 and 136 had another meaning before the first release.
impl Tag {
    /// Address of an object.
    pub const OBJECT: Self = Self(1);
    /// An HRESULT.
    pub const RESULT: Self = Self(2);
    /// The operating system's thread id.
    pub const OS_THREAD: Self = Self(3);
    /// A count; the record's kind determines of what.
    pub const COUNT: Self = Self(4);
    /// A number of bytes; the record's kind determines of what.
    pub const BYTES: Self = Self(5);
    /// A GC handle.
    pub const HANDLE: Self = Self(6);
    /// The ReJIT version of a method.
    pub const REJIT: Self = Self(7);
    /// The collected generations: one bit per generation.
    pub const GENERATIONS: Self = Self(8);
    /// A metadata token.
    pub const TOKEN: Self = Self(9);
    /// 1 for yes, 0 for no.
    pub const ANSWER: Self = Self(10);
    /// Address of the inner exception.
    pub const INNER_OBJECT: Self = Self(12);
    /// 1 when a call begins, 0 when it returns.
    pub const CALL: Self = Self(14);
    /// An exception's HResult property.
    pub const EXCEPTION_CODE: Self = Self(15);
    /// Index of the frame in the stack, from 0 for the innermost.
    pub const POSITION: Self = Self(17);
    /// The number of a stack in the stack table of the process.
    pub const STACK_NODE: Self = Self(18);
    /// 1 if the executed catch block belongs to a clause with a filter, otherwise 0.
    pub const HAS_FILTER: Self = Self(19);
    /// Number of a collection in the runtime's count.
    pub const NUMBER: Self = Self(32);
    /// A generation: 0, 1, 2, 3 for large objects, 4 for pinned ones.
    pub const GENERATION: Self = Self(33);
    /// Reason, as the runtime's number.
    pub const REASON_CODE: Self = Self(34);
    /// Type of a collection: 0 blocking, 1 background, 2 blocking during a background collection.
    pub const GC_TYPE: Self = Self(35);
    /// Number of a heap; server GC has several.
    pub const HEAP: Self = Self(36);
    /// Size of the generation in bytes before a collection.
    pub const BEFORE: Self = Self(37);
    /// Size of the generation in bytes after a collection.
    pub const AFTER: Self = Self(38);
    /// Free bytes in the generation before a collection.
    pub const FREE_BEFORE: Self = Self(39);
    /// Free bytes in the generation after a collection.
    pub const FREE_AFTER: Self = Self(40);
    /// Bytes that survived in the generation of the preceding field.
    pub const PROMOTED: Self = Self(41);
    /// Number of pinned objects.
    pub const PINNED: Self = Self(42);
    /// Number of handles.
    pub const HANDLES: Self = Self(43);
    /// Bits for how a collection worked: 1 concurrently with the program, 2 compacting, 4
    /// promoting, 8 demoting.
    pub const MECHANISMS: Self = Self(44);
    /// Percentage of the machine's memory in use.
    pub const MEMORY_LOAD: Self = Self(45);
    /// Step of a suspension, as the id of the runtime's event.
    pub const STEP: Self = Self(46);
    /// Number of objects moved.
    pub const MOVED: Self = Self(47);
    /// Number of objects that died.
    pub const DIED: Self = Self(48);
    /// The runtime's number of a lock, valid while threads wait for it.
    pub const LOCK: Self = Self(49);
    /// The runtime's number of the thread that holds a lock.
    pub const HOLDER: Self = Self(50);
    /// Duration in nanoseconds.
    pub const DURATION: Self = Self(51);
    /// Outcome of an await: 0 a result, 1 an exception, 2 a cancellation. Outcome of a request: 0 a
    /// response, 1 an exception or no response, 2 the client disconnected.
    pub const OUTCOME: Self = Self(52);
    /// Number of a request name.
    pub const ROUTE: Self = Self(53);
    /// Status of the response to a request; absent without a response.
    pub const STATUS: Self = Self(54);
    /// Whether a request was served (0) or made by the program (1).
    pub const DIRECTION: Self = Self(55);
    /// Id of a request in its process.
    pub const REQUEST: Self = Self(56);
    /// Number of a counter in its process.
    pub const COUNTER: Self = Self(57);
    /// Meaning of a counter's values: 0 each value is a state, 1 an increment, 2 an increment or
    /// decrement, 3 a set of measurements.
    pub const COUNTER_KIND: Self = Self(58);
    /// Value of a counter, as the bits of a 64-bit floating-point number: the state, the increment
    /// in the interval, or the sum of the measurements.
    pub const VALUE: Self = Self(59);
    /// Sum of a counter since the program began, stored like [`VALUE`](Self::VALUE).
    pub const TOTAL: Self = Self(60);
    /// Number of a request that was running when the recording was copied; the record of its end
    /// has the same number.
    pub const COPIED: Self = Self(61);
    /// Place of memory, in the numbering of [`MemoryPlace`](crate::model::MemoryPlace).
    pub const PLACE: Self = Self(62);
    /// Bytes mapped for reading or writing.
    pub const COMMITTED: Self = Self(63);
    /// Bytes that the system has swapped out.
    pub const SWAPPED: Self = Self(31);
    /// The maximum number of bytes so far.
    pub const MOST: Self = Self(30);
    /// Reason as a text.
    pub const REASON: Self = Self(64);
    /// A name.
    pub const NAME: Self = Self(65);
    /// An HRESULT's name.
    pub const RESULT_NAME: Self = Self(66);
    /// An exception's message.
    pub const MESSAGE: Self = Self(67);
    /// Provider of a counter: an event source or a meter.
    pub const SOURCE: Self = Self(68);
    /// Unit of a counter, in the program's own notation.
    pub const UNIT: Self = Self(69);
    /// Labels of a counter: `name=value,name=value`.
    pub const LABELS: Self = Self(70);
    /// Quantiles of the measurements: `0.5=12;0.95=40;0.99=55`.
    pub const QUANTILES: Self = Self(71);
    /// Arguments of a call, encoded as in `flow`.
    pub const ARGUMENTS: Self = Self(112);
    /// Trace (16 bytes) and span (8 bytes) of a request, as in trace headers.
    pub const TRACE: Self = Self(113);
    /// A function.
    pub const FUNCTION: Self = Self(128);
    /// A class.
    pub const CLASS: Self = Self(129);
    /// A module.
    pub const MODULE: Self = Self(130);
    /// An assembly.
    pub const ASSEMBLY: Self = Self(131);
    /// An application domain.
    pub const APP_DOMAIN: Self = Self(132);
    /// A managed thread.
    pub const THREAD: Self = Self(133);
    /// A called function.
    pub const CALLEE: Self = Self(134);
    /// An EventPipe provider.
    pub const PROVIDER: Self = Self(135);
    /// The class of an inner exception.
    pub const INNER_CLASS: Self = Self(137);
}

/// A reference to an entity of the runtime: a function, class, module, thread and so on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct EntityRef {
    /// The runtime's identifier. The runtime may reuse it for another entity later.
    pub id: u64,
    /// clrscope's number of the entity; 0 for none.
    pub index: u32,
}

/// A field's value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Value<'a> {
    /// A number.
    Number(u64),
    /// A text.
    Text(&'a str),
    /// Bytes whose meaning is defined elsewhere.
    Bytes(&'a [u8]),
    /// A reference to an entity of the runtime.
    Entity(EntityRef),
}

impl From<u64> for Value<'_> {
    fn from(number: u64) -> Self {
        Self::Number(number)
    }
}

impl From<usize> for Value<'_> {
    fn from(number: usize) -> Self {
        Self::Number(number as u64)
    }
}

impl From<u32> for Value<'_> {
    fn from(number: u32) -> Self {
        Self::Number(number.into())
    }
}

impl From<bool> for Value<'_> {
    fn from(answer: bool) -> Self {
        Self::Number(answer.into())
    }
}

impl<'a> From<&'a str> for Value<'a> {
    fn from(text: &'a str) -> Self {
        Self::Text(text)
    }
}

impl From<EntityRef> for Value<'_> {
    fn from(entity: EntityRef) -> Self {
        Self::Entity(entity)
    }
}

/// A field of a record.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Field<'a> {
    /// Meaning of the field.
    pub tag: Tag,
    /// The value.
    pub value: Value<'a>,
}
