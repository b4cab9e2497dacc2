//! Typed identifiers for the machine words by which the runtime identifies things.
//!
//! The runtime reuses an identifier as soon as the named thing is gone (a collectible module, a
//! dynamic method, a thread), so never keep an identifier as a key beyond that point. Safe code
//! can't make an identifier: each one comes from the runtime, and the conversion from a number,
//! `from_raw`, is unsafe. Safe code can keep an identifier for too long, and the runtime does not
//! detect this; the front page of this crate says where it matters. [`ObjectId`] has a lifetime
//! because objects move: it is valid only inside the callback that received it.

use std::fmt;
use std::marker::PhantomData;
use std::num::NonZeroUsize;

macro_rules! ids {
    ($($(#[$doc:meta])* $name:ident;)*) => {$(
        $(#[$doc])*
        #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
        #[repr(transparent)]
        pub struct $name(pub(crate) usize);

        impl $name {
            /// The null identifier: nothing, or unknown.
            pub const NULL: Self = Self(0);

            /// Makes an identifier from a number that [`as_raw`](Self::as_raw) returned, for
            /// example from a stored record.
            ///
            /// # Safety
            /// The number must be 0, or the runtime must have handed it out as an identifier of
            /// this kind, and its object must still exist. The runtime uses identifiers as
            /// addresses of its own structures: a query with a wrong identifier crashes the program
            /// or reads unrelated memory.
            #[inline]
            #[must_use]
            pub const unsafe fn from_raw(raw: usize) -> Self {
                Self(raw)
            }

            /// The number, for a record or a key; [`from_raw`](Self::from_raw) converts it back.
            #[inline]
            #[must_use]
            pub const fn as_raw(self) -> usize {
                self.0
            }

            /// Whether this is the null identifier, which the runtime uses for "nothing" or
            /// "unknown".
            #[inline]
            #[must_use]
            pub const fn is_null(self) -> bool {
                self.0 == 0
            }

            /// `None` for the null identifier.
            #[inline]
            #[must_use]
            pub const fn non_null(self) -> Option<Self> {
                if self.0 == 0 { None } else { Some(self) }
            }
        }

        impl fmt::Debug for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                write!(f, concat!(stringify!($name), "({:#x})"), self.0)
            }
        }
    )*};
}

ids! {
    /// A method body in the runtime: one for each method, or for each instantiation of a method
    /// that has its own code. Instantiations over reference types share one body.
    ///
    /// Like all identifiers it comes from the runtime; safe code can't make one:
    ///
    /// ```compile_fail,E0423
    /// let function = clr_profiler::FunctionId(0x1234);
    /// ```
    FunctionId;
    /// A loaded type, with its type arguments.
    ClassId;
    /// A loaded module (in practice: an assembly's one file).
    ModuleId;
    /// A loaded assembly.
    AssemblyId;
    /// An application domain. .NET has one for the program and, in older versions, a shared one.
    AppDomainId;
    /// A managed thread: the address of the runtime's own thread object, reused after the thread is
    /// gone.
    ThreadId;
    /// A GC handle.
    GcHandleId;
    /// One version of a method that was compiled again with changed IL; 0 is the original.
    ReJitId;
    /// The process, as the runtime identifies it.
    ProcessId;
    /// An EventPipe provider.
    EventPipeProviderId;
    /// An event of one of the profiler's own EventPipe providers.
    EventPipeEventId;
    /// An EventPipe session.
    EventPipeSessionId;
}

/// An object on the managed heap: its address at this moment.
///
/// The lifetime is that of the callback that received the object. Afterwards a collection may move
/// or free the object, so the identifier can't be kept:
///
/// ```compile_fail,E0521
/// use std::sync::Mutex;
/// use clr_profiler::{Callbacks, Events, ObjectId, Profiler, ProfilerInfo, Result, Setup};
///
/// #[derive(Default)]
/// struct Last(Mutex<Option<ObjectId<'static>>>);
///
/// impl Profiler for Last {
///     fn initialize(_info: &ProfilerInfo) -> Result<(Self, Setup)> {
///         Ok((Self::default(), Setup::new(Events::EXCEPTIONS)))
///     }
/// }
///
/// impl Callbacks for Last {
///     fn exception_thrown(&self, exception: ObjectId<'_>) {
///         // "borrowed data escapes outside of method"
///         *self.0.lock().unwrap() = Some(exception);
///     }
/// }
/// ```
///
/// To find an object again later, use an [`ObjectHandle`](crate::ObjectHandle), or an
/// [`ObjectTracker`](crate::ObjectTracker) for many objects.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(transparent)]
pub struct ObjectId<'cb> {
    address: usize,
    callback: PhantomData<&'cb ()>,
}

impl<'cb> ObjectId<'cb> {
    /// Makes an identifier from the address of an object. The caller guarantees that `'cb` ends
    /// before the runtime may move the object. A query with a wrong address makes the runtime read
    /// unrelated memory.
    ///
    /// # Safety
    /// `address` must be that of a live managed object, or 0, for all of `'cb`.
    #[must_use]
    pub const unsafe fn from_address(address: usize) -> Self {
        Self { address, callback: PhantomData }
    }

    #[inline]
    pub(crate) const fn new(address: usize) -> Self {
        Self { address, callback: PhantomData }
    }

    /// The address, as a number. It is valid as a key until the next collection; do not read from
    /// it after the callback.
    #[inline]
    #[must_use]
    pub const fn address(self) -> usize {
        self.address
    }

    /// Whether this is the null reference.
    #[must_use]
    pub const fn is_null(self) -> bool {
        self.address == 0
    }
}

impl fmt::Debug for ObjectId<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "ObjectId({:#x})", self.address)
    }
}

/// A metadata token: the table in the top byte, the row in the lower bytes.
///
/// Safe code may make a token from any number: the runtime and the metadata look up a token before
/// they use it, and return an error if there is no such row.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
#[repr(transparent)]
pub struct Token(pub(crate) u32);

impl Token {
    /// The token with this number, in the metadata's encoding.
    #[must_use]
    pub const fn new(raw: u32) -> Self {
        Self(raw)
    }

    /// The number, in the metadata's encoding.
    #[must_use]
    pub const fn as_raw(self) -> u32 {
        self.0
    }

    /// The table number, e.g. [`Token::METHOD_DEF`].
    #[must_use]
    pub const fn table(self) -> u8 {
        (self.0 >> 24) as u8
    }

    /// The row in its table, counted from 1; 0 is the nil token.
    #[must_use]
    pub const fn row(self) -> u32 {
        self.0 & 0x00ff_ffff
    }

    /// Whether this is a nil token.
    #[must_use]
    pub const fn is_nil(self) -> bool {
        self.row() == 0
    }

    /// Table of references to types of other modules.
    pub const TYPE_REF: u8 = 0x01;
    /// Table of the module's own types.
    pub const TYPE_DEF: u8 = 0x02;
    /// Table of the module's own fields.
    pub const FIELD_DEF: u8 = 0x04;
    /// Table of the module's own methods.
    pub const METHOD_DEF: u8 = 0x06;
    /// Table of references to members of other types.
    pub const MEMBER_REF: u8 = 0x0a;
    /// Table of references to other modules (native libraries too).
    pub const MODULE_REF: u8 = 0x1a;
    /// Table of constructed types.
    pub const TYPE_SPEC: u8 = 0x1b;
    /// Table of references to other assemblies.
    pub const ASSEMBLY_REF: u8 = 0x23;
    /// Table of instantiated methods.
    pub const METHOD_SPEC: u8 = 0x2b;
}

impl fmt::Debug for Token {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Token({:#010x})", self.0)
    }
}

/// Number that a [`FunctionMapper`](crate::FunctionMapper) assigns to a function and that the hooks
/// of this function receive: any number but 0, for instance an index into a table
/// ([`ClientTable`](crate::ClientTable)) or the address of a record that is never freed. The
/// framework does not use it as an address.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
#[repr(transparent)]
pub struct ClientId(NonZeroUsize);

impl ClientId {
    /// `None` for 0, which the runtime would replace by the function's own identifier.
    #[must_use]
    pub const fn new(value: usize) -> Option<Self> {
        match NonZeroUsize::new(value) {
            Some(value) => Some(Self(value)),
            None => None,
        }
    }

    /// The number itself.
    #[must_use]
    pub const fn get(self) -> usize {
        self.0.get()
    }
}

impl From<NonZeroUsize> for ClientId {
    fn from(value: NonZeroUsize) -> Self {
        Self(value)
    }
}

/// The stack pointer of a function's caller before the caller pushed the return address. It is the
/// same at enter, leave and tail call of one activation, and unique among the live activations of
/// one thread. Callers have higher values than callees. The framework only compares these numbers
/// and reads no memory through them.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(transparent)]
pub struct CallerSp(pub(crate) usize);

impl CallerSp {
    /// The stack pointer with this address.
    #[must_use]
    pub const fn new(address: usize) -> Self {
        Self(address)
    }

    /// The address.
    #[must_use]
    pub const fn address(self) -> usize {
        self.0
    }
}

impl fmt::Debug for CallerSp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "CallerSp({:#x})", self.0)
    }
}
