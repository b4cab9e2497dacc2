//! Arguments of callbacks: reasons, and the runtime's arrays as slices that are valid during the
//! callback.
//!
//! Reasons are enums with a variant for unknown numbers. They are displayed in words:
//!
//! ```
//! use clr_profiler::callback_args::SuspendReason;
//! assert_eq!(SuspendReason::GcPreparation.to_string(), "GC preparation");
//! assert_eq!(SuspendReason::Unknown(42).to_string(), "unknown (42)");
//! ```

use std::fmt;
use std::marker::PhantomData;

use crate::body_size::body_size;
use crate::current_stack::NativeFrame;
use crate::error::check;
use crate::il_map::{IlMove, il_map_for_runtime};
use crate::{ClassId, EventPipeProviderId, FunctionId, GcHandleId, Guid, ObjectId, Result, ThreadId};

/// The profiler's decision whether the compiler may inline a call.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
#[expect(clippy::exhaustive_enums, reason = "an answer of yes or no")]
pub enum Inlining {
    /// The compiler decides.
    #[default]
    Allow,
    /// The call is not inlined.
    Forbid,
}

macro_rules! reasons {
    ($(#[$doc:meta])* $name:ident { $($(#[$case_doc:meta])* $case:ident = $value:literal => $word:literal,)* }) => {
        $(#[$doc])*
        #[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
        #[non_exhaustive]
        pub enum $name {
            $($(#[$case_doc])* $case,)*
            /// A value this crate does not know.
            Unknown(u32),
        }

        impl $name {
            /// The value for the runtime's number.
            #[must_use]
            pub const fn from_raw(value: u32) -> Self {
                match value {
                    $($value => Self::$case,)*
                    other => Self::Unknown(other),
                }
            }

            /// The number the runtime uses.
            #[must_use]
            pub const fn as_raw(self) -> u32 {
                match self {
                    $(Self::$case => $value,)*
                    Self::Unknown(other) => other,
                }
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                match self {
                    $(Self::$case => f.write_str($word),)*
                    Self::Unknown(other) => write!(f, "unknown ({other})"),
                }
            }
        }
    };
}

reasons! {
    /// Reason why the runtime suspends its threads.
    SuspendReason {
        /// None of the other values.
        Other = 0 => "other",
        /// A collection.
        Gc = 1 => "GC",
        /// An application domain is unloaded.
        AppDomainShutdown = 2 => "application domain shutdown",
        /// Compiled code is discarded.
        CodePitching = 3 => "code pitching",
        /// The runtime ends.
        Shutdown = 4 => "shutdown",
        /// An in-process debugger.
        InprocDebugger = 6 => "in-process debugger",
        /// Preparation of a collection.
        GcPreparation = 7 => "GC preparation",
        /// A method is recompiled.
        ReJit = 8 => "ReJIT",
        /// The profiler requested it.
        Profiler = 9 => "profiler",
    }
}

reasons! {
    /// Reason why a transition between managed and native code happens.
    TransitionReason {
        /// A call begins.
        Call = 0 => "call",
        /// A call returns.
        Return = 1 => "return",
    }
}

reasons! {
    /// Reason why a collection began.
    GcReason {
        /// The runtime decided to collect.
        Other = 0 => "other",
        /// The program or a profiler requested it.
        Induced = 1 => "induced",
    }
}

reasons! {
    /// Outcome of a search for precompiled code.
    JitCache {
        /// Code was found and will be used.
        Found = 0 => "found",
        /// Code was not found or not allowed: the method will be compiled.
        NotFound = 1 => "not found",
    }
}

reasons! {
    /// Kind of root that holds an object.
    RootKind {
        /// None of the other values.
        Other = 0 => "other",
        /// A variable on a stack.
        Stack = 1 => "stack",
        /// The queue of finalizers.
        Finalizer = 2 => "finalizer",
        /// A handle.
        Handle = 3 => "handle",
    }
}

reasons! {
    /// The part of the heap that holds an object.
    Generation {
        /// The youngest.
        Gen0 = 0 => "generation 0",
        /// Survived one collection.
        Gen1 = 1 => "generation 1",
        /// Survived more.
        Gen2 = 2 => "generation 2",
        /// The heap for large objects.
        LargeObjects = 3 => "large object heap",
        /// The heap for objects allocated as pinned.
        PinnedObjects = 4 => "pinned object heap",
        /// Never collected: string literals and the like, from .NET 8 on.
        NonGc = 0x7fff_ffff => "not collected",
    }
}

/// Flags of the reference from a root to its object.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct RootFlags(pub(crate) u32);

impl RootFlags {
    /// The bits, in the runtime's encoding.
    #[must_use]
    pub const fn as_raw(self) -> u32 {
        self.0
    }

    /// The flags of these bits, for tests that send roots to a profiler.
    #[must_use]
    pub const fn from_raw(bits: u32) -> Self {
        Self(bits)
    }

    /// The object must not be moved (pinned).
    #[must_use]
    pub const fn is_pinning(self) -> bool {
        self.0 & 1 != 0
    }
    /// The root does not keep the object alive.
    #[must_use]
    pub const fn is_weak(self) -> bool {
        self.0 & 2 != 0
    }
    /// The root points into the object.
    #[must_use]
    pub const fn is_interior(self) -> bool {
        self.0 & 4 != 0
    }
    /// The root keeps the object alive while a reference count is not 0.
    #[must_use]
    pub const fn is_ref_counted(self) -> bool {
        self.0 & 8 != 0
    }
}

/// Generations that are collected: 0, 1, 2, 3 for large and 4 for pinned objects.
#[derive(Clone, Copy)]
pub struct Generations<'cb>(pub(crate) &'cb [windows_core::BOOL]);

impl Generations<'_> {
    /// Whether this generation is collected.
    #[must_use]
    pub fn contains(&self, generation: usize) -> bool {
        self.0.get(generation).is_some_and(|collected| collected.as_bool())
    }

    /// The oldest collected generation of 0 to 2.
    #[must_use]
    pub fn oldest(&self) -> Option<usize> {
        (0..3).rev().find(|generation| self.contains(*generation))
    }

    /// The numbers of all collected generations.
    pub fn iter(&self) -> impl Iterator<Item = usize> {
        (0..self.0.len()).filter(|generation| self.contains(*generation))
    }
}

/// Objects that were moved, as ranges. Each range moved as a block.
#[derive(Clone, Copy)]
pub struct MovedRanges<'cb> {
    pub(crate) old: &'cb [usize],
    pub(crate) new: &'cb [usize],
    pub(crate) bytes: &'cb [usize],
}

/// A range of objects that moved as a block. The addresses are only numbers: don't read memory
/// through them.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub struct MovedRange {
    /// Start of the range before the collection.
    pub old_start: usize,
    /// Start of the range after the collection.
    pub new_start: usize,
    /// Length in bytes.
    pub bytes: usize,
}

impl MovedRange {
    /// Creates a range, for tests that send a collection to a profiler.
    #[must_use]
    pub const fn new(old_start: usize, new_start: usize, bytes: usize) -> Self {
        Self { old_start, new_start, bytes }
    }
}

impl MovedRanges<'_> {
    /// The ranges.
    pub fn iter(&self) -> impl Iterator<Item = MovedRange> {
        let starts = self.old.iter().zip(self.new);
        starts.zip(self.bytes).map(|((old, new), bytes)| MovedRange { old_start: *old, new_start: *new, bytes: *bytes })
    }
}

/// Objects that survived without being moved.
#[derive(Clone, Copy)]
pub struct SurvivingRanges<'cb> {
    pub(crate) starts: &'cb [usize],
    pub(crate) bytes: &'cb [usize],
}

impl SurvivingRanges<'_> {
    /// Start and length in bytes of each range.
    pub fn iter(&self) -> impl Iterator<Item = (usize, usize)> {
        self.starts.iter().copied().zip(self.bytes.iter().copied())
    }
}

/// Numbers of objects per class.
#[derive(Clone, Copy)]
pub struct ObjectsOfClass<'cb> {
    pub(crate) classes: &'cb [usize],
    pub(crate) counts: &'cb [u32],
}

impl ObjectsOfClass<'_> {
    /// Class and number of objects.
    pub fn iter(&self) -> impl Iterator<Item = (ClassId, u32)> {
        self.classes.iter().map(|class| ClassId::received(*class)).zip(self.counts.iter().copied())
    }
}

/// Roots of the live objects.
#[derive(Clone, Copy)]
pub struct Roots<'cb> {
    pub(crate) objects: &'cb [usize],
    pub(crate) kinds: &'cb [u32],
    pub(crate) flags: &'cb [u32],
    pub(crate) ids: &'cb [usize],
}

/// One root.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub struct Root<'cb> {
    /// Object that the root holds; may be null.
    pub object: ObjectId<'cb>,
    /// Kind of root.
    pub kind: RootKind,
    /// Flags of the root's reference.
    pub flags: RootFlags,
    /// The function for a stack root (0 for the runtime's own frames), the handle for a handle
    /// root, and an opaque value for other roots.
    pub id: usize,
}

impl Root<'_> {
    /// The function whose stack frame holds the object. Only for a root of kind [`RootKind::Stack`]
    /// that is not in the runtime's own frames.
    #[must_use]
    pub fn function(&self) -> Option<FunctionId> {
        FunctionId(self.id).non_null().filter(|_| self.kind == RootKind::Stack)
    }
}

impl<'cb> Roots<'cb> {
    /// The roots.
    pub fn iter(&self) -> impl Iterator<Item = Root<'cb>> {
        let this = *self;
        (0..this.objects.len().min(this.kinds.len()).min(this.flags.len()).min(this.ids.len())).map(move |n| Root {
            object: ObjectId::new(this.objects[n]),
            kind: RootKind::from_raw(this.kinds[n]),
            flags: RootFlags(this.flags[n]),
            id: this.ids[n],
        })
    }
}

/// Entries of conditional weak tables.
#[derive(Clone, Copy)]
pub struct WeakTableElements<'cb> {
    pub(crate) keys: &'cb [usize],
    pub(crate) values: &'cb [usize],
    pub(crate) handles: &'cb [usize],
}

impl<'cb> WeakTableElements<'cb> {
    /// Key, value that lives as long as the key, and handle.
    pub fn iter(&self) -> impl Iterator<Item = (ObjectId<'cb>, ObjectId<'cb>, GcHandleId)> {
        let pairs = self.keys.iter().zip(self.values).zip(self.handles);
        pairs.map(|((key, value), handle)| (ObjectId::new(*key), ObjectId::new(*value), GcHandleId(*handle)))
    }
}

/// The IL of a method without metadata: header and body.
#[derive(Clone, Copy)]
pub struct DynamicIl<'cb>(pub(crate) &'cb [u8]);

impl<'cb> DynamicIl<'cb> {
    /// The bytes; empty if the runtime has none.
    #[must_use]
    pub fn bytes(&self) -> &'cb [u8] {
        self.0
    }
}

/// Options for the recompilation of a method, which can be combined.
///
/// ```
/// use clr_profiler::callback_args::CodegenFlags;
/// let debug = CodegenFlags::DISABLE_INLINING | CodegenFlags::DISABLE_OPTIMIZATIONS;
/// assert_eq!(debug.as_raw(), 3);
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub struct CodegenFlags(u32);

impl CodegenFlags {
    /// No options.
    pub const NONE: Self = Self(0);
    /// Nothing is inlined into the method.
    pub const DISABLE_INLINING: Self = Self(1);
    /// Code is not optimised, as for debugging.
    pub const DISABLE_OPTIMIZATIONS: Self = Self(2);

    /// The bits, in the runtime's encoding.
    #[must_use]
    pub const fn as_raw(self) -> u32 {
        self.0
    }

    /// Flags from these bits, including unknown ones.
    #[must_use]
    pub const fn from_raw(bits: u32) -> Self {
        Self(bits)
    }
}

impl std::ops::BitOr for CodegenFlags {
    type Output = Self;
    fn bitor(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }
}

/// Sets the IL and flags for the recompilation of a method.
pub struct FunctionControl<'cb> {
    pub(crate) control: &'cb clr_profiler_sys::control::ICorProfilerFunctionControl,
    pub(crate) callback: PhantomData<&'cb ()>,
}

impl FunctionControl<'_> {
    /// Sets the options for the compilation of the method.
    ///
    /// # Errors
    /// The runtime's error.
    pub fn set_codegen_flags(&self, flags: CodegenFlags) -> Result<()> {
        // SAFETY: the interface is alive during the callback.
        check(unsafe { self.control.SetCodegenFlags(flags.0) }, "SetCodegenFlags")
    }

    /// Sets new IL, header and body. The runtime copies it.
    ///
    /// # Errors
    /// `E_INVALIDARG` with a sentence if the bytes are not a complete body; the runtime's error.
    ///
    /// # Safety
    /// As for [`ProfilerInfo::set_il_function_body`](crate::ProfilerInfo::set_il_function_body):
    /// the runtime does not verify the code.
    pub unsafe fn set_il_function_body(&self, body: &[u8]) -> Result<()> {
        let method = "SetILFunctionBody";
        let size = body_size(method, body)?;
        // SAFETY: the interface is alive during the callback, `body` during the call; the caller
        // guarantees that the code is valid.
        check(unsafe { self.control.SetILFunctionBody(size, body.as_ptr()) }, method)
    }

    /// Sets the new offsets of the original instructions in the [new
    /// body](Self::set_il_function_body), for debuggers and stack traces.
    ///
    /// # Errors
    /// The runtime's error; `E_OUTOFMEMORY` when there is no memory for the map.
    pub fn set_il_map(&self, map: &[IlMove]) -> Result<()> {
        let method = "SetILInstrumentedCodeMap";
        let (count, entries) = il_map_for_runtime(method, map)?;
        // SAFETY: the interface is alive during the callback; as many entries as said, in memory
        // that the profiler never frees, whichever side owns it in the runtime's view.
        check(unsafe { self.control.SetILInstrumentedCodeMap(count, entries) }, method)
    }
}

/// An event of an EventPipe session, as passed by the runtime.
#[non_exhaustive]
pub struct EventPipeEvent<'cb> {
    /// Provider that raised the event.
    pub provider: EventPipeProviderId,
    /// Number of the event at its provider.
    pub event_id: u32,
    /// Version of the event.
    pub event_version: u32,
    /// Description of the event's fields.
    pub metadata: &'cb [u8],
    /// Values of the fields, packed.
    pub data: &'cb [u8],
    /// The activity that the event belongs to.
    pub activity: Option<&'cb Guid>,
    /// The activity that caused the event's activity.
    pub related_activity: Option<&'cb Guid>,
    /// The managed thread that the event is about, if it is not the thread of this callback. This
    /// occurs for events of `Microsoft-DotNETCore-SampleProfiler`. All other events are delivered
    /// on the thread that raised them, see [`current_thread`](crate::ProfilerInfo::current_thread).
    pub thread: Option<ThreadId>,
    /// Instruction pointers of that thread's stack, innermost first. Empty if
    /// [`thread`](Self::thread) is `None`; then [`stack_here`](crate::ProfilerInfo::stack_here)
    /// walks the stack.
    pub stack: &'cb [usize],
    /// The runtime's frame that delivers the event, for profilers that walk the stack themselves.
    pub frame: NativeFrame,
}
