//! Events that a profiler requests from the runtime: typed flags over the two words of the event
//! mask.

use std::fmt;
use std::ops::{BitOr, BitOrAssign, Sub};

use crate::{Error, Result};

/// A set of events and switches: both words of the runtime's event mask.
///
/// ```
/// use clr_profiler::Events;
/// let events = Events::EXCEPTIONS | Events::THREADS;
/// assert!(events.contains(Events::THREADS));
/// assert_eq!((events - Events::THREADS).to_string(), "EXCEPTIONS");
/// // What can be switched on and off while the program runs, by `ProfilerInfo::set_events`:
/// assert!(!events.intersects(Events::IMMUTABLE));
/// ```
///
/// `|` combines sets, `-` removes flags. The two words have the layout of the runtime, so
/// [`bits`](Self::bits) can be compared with Microsoft's documentation.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct Events {
    low: u32,
    high: u32,
}

macro_rules! flags {
    ($($(#[$doc:meta])* $name:ident = $low:literal, $high:literal;)*) => {
        impl Events {
            $($(#[$doc])* pub const $name: Self = Self { low: $low, high: $high };)*

            /// Each flag with its name, in the order of the bits.
            pub const ALL: &'static [(&'static str, Self)] = &[$((stringify!($name), Self::$name),)*];
        }
    };
}

flags! {
    /// Class loads and unloads.
    CLASS_LOADS = 0x2, 0;
    /// Module loads and unloads.
    MODULE_LOADS = 0x4, 0;
    /// Assembly loads and unloads.
    ASSEMBLY_LOADS = 0x8, 0;
    /// Application domain creation and shutdown.
    APP_DOMAIN_LOADS = 0x10, 0;
    /// Compilation of methods and dynamic methods, inlining decisions.
    JIT_COMPILATION = 0x20, 0;
    /// Exceptions: throw, search, filters, unwind, finally, catch. On .NET 9 and 10 the program
    /// crashes if a collection moves an exception while the runtime reports its filter
    /// (dotnet/runtime#132462). To prevent this, a profiler can hold the exception by a pinned
    /// handle from `exception_thrown` until the exception is handled.
    EXCEPTIONS = 0x40, 0;
    /// All events about collections. Disables concurrent collection while it is set.
    GC = 0x80, 0;
    /// Each allocated object; needs [`ENABLE_OBJECT_ALLOCATED`](Self::ENABLE_OBJECT_ALLOCATED).
    OBJECT_ALLOCATED = 0x100, 0;
    /// Managed threads: created, destroyed, assigned to an operating-system thread, named.
    THREADS = 0x200, 0;
    /// Transitions between managed and native code. Makes a cheap P/Invoke 40 to 70 times slower.
    CODE_TRANSITIONS = 0x800, 0;
    /// Enter and leave hooks. Set by the framework when a [`Setup`](crate::Setup) has hooks.
    ENTER_LEAVE = 0x1000, 0;
    /// COM interfaces that the runtime creates for .NET classes. On Windows only.
    COM_WRAPPERS = 0x2000, 0;
    /// Suspensions of the runtime and of each thread.
    SUSPENSIONS = 0x1_0000, 0;
    /// Searches for precompiled code.
    CACHE_SEARCHES = 0x2_0000, 0;
    /// Allows methods to be compiled again with changed IL.
    ENABLE_REJIT = 0x4_0000, 0;
    /// No method is inlined into another.
    DISABLE_INLINING = 0x20_0000, 0;
    /// Code is compiled as for debugging.
    DISABLE_OPTIMIZATIONS = 0x40_0000, 0;
    /// Makes the runtime use slow allocation helpers for the life of the process, so that it can
    /// report allocations.
    ENABLE_OBJECT_ALLOCATED = 0x80_0000, 0;
    /// Exceptions that the runtime itself catches.
    CLR_EXCEPTIONS = 0x100_0000, 0;
    /// Hooks may ask for arguments (slow hooks only).
    ENABLE_FUNCTION_ARGS = 0x200_0000, 0;
    /// Hooks may ask for the return value (slow hooks only).
    ENABLE_FUNCTION_RETVAL = 0x400_0000, 0;
    /// Hooks may ask for exact type arguments (slow hooks only).
    ENABLE_FRAME_INFO = 0x800_0000, 0;
    /// Allows stack walks by the runtime.
    ENABLE_STACK_SNAPSHOT = 0x1000_0000, 0;
    /// Loads only precompiled code that was built for profiling. No such code exists any more.
    USE_PROFILE_IMAGES = 0x2000_0000, 0;
    /// Refuses all precompiled code.
    DISABLE_ALL_NGEN_IMAGES = 0x8000_0000, 0;
    /// Symbols of modules in memory have changed.
    IN_MEMORY_SYMBOLS_UPDATED = 0, 0x2;
    /// Dynamic methods that were freed.
    DYNAMIC_FUNCTION_UNLOADS = 0, 0x4;
    /// No tiers: each method is compiled once, optimised.
    DISABLE_TIERED_COMPILATION = 0, 0x8;
    /// Begin and end of collections only. Does not disable concurrent collection.
    BASIC_GC = 0, 0x10;
    /// Objects moved by compacting collections.
    GC_MOVED_OBJECTS = 0, 0x20;
    /// Allocations on the large object heap; cheap.
    LARGE_OBJECT_ALLOCATED = 0, 0x40;
    /// EventPipe sessions of the profiler.
    EVENT_PIPE = 0, 0x80;
    /// Allocations on the pinned object heap.
    PINNED_OBJECT_ALLOCATED = 0, 0x100;
}

impl Events {
    /// Nothing.
    pub const NONE: Self = Self { low: 0, high: 0 };

    /// All events that have callbacks. Meant for logs and tests: the program runs many times
    /// slower, without concurrent collections, and the runtime reports each object at each
    /// collection. ReJIT and EventPipe callbacks do not depend on these events; profilers get them
    /// when they request ReJIT or start a session. [`CACHE_SEARCHES`](Self::CACHE_SEARCHES) reports
    /// nothing in this set, because reporting transitions makes the runtime refuse precompiled
    /// code.
    pub const NOTIFICATIONS: Self = Self::CLASS_LOADS
        .union(Self::MODULE_LOADS)
        .union(Self::ASSEMBLY_LOADS)
        .union(Self::APP_DOMAIN_LOADS)
        .union(Self::JIT_COMPILATION)
        .union(Self::EXCEPTIONS)
        .union(Self::CLR_EXCEPTIONS)
        .union(Self::GC)
        .union(Self::OBJECT_ALLOCATED)
        .union(Self::ENABLE_OBJECT_ALLOCATED)
        .union(Self::THREADS)
        .union(Self::CODE_TRANSITIONS)
        .union(Self::COM_WRAPPERS)
        .union(Self::SUSPENSIONS)
        .union(Self::CACHE_SEARCHES)
        .union(Self::IN_MEMORY_SYMBOLS_UPDATED)
        .union(Self::DYNAMIC_FUNCTION_UNLOADS);

    /// Flags that can only be set while the profiler initializes. .NET 10 nevertheless allows later
    /// changes of [`DISABLE_INLINING`](Self::DISABLE_INLINING) and
    /// [`DISABLE_OPTIMIZATIONS`](Self::DISABLE_OPTIMIZATIONS) (seen on 10.0.12).
    pub const IMMUTABLE: Self = Self { low: 0xeef8_cc00, high: 0x8 };

    /// Flags that can be added only while the profiler initializes: [`IMMUTABLE`](Self::IMMUTABLE),
    /// which can't be removed later either, and [`GC`](Self::GC), because concurrent collection is
    /// enabled after initialization.
    pub const ONLY_AT_START: Self = Self::IMMUTABLE.union(Self::GC);

    /// Flags that an attached profiler may have.
    pub const ALLOWED_AFTER_ATTACH: Self = Self { low: 0x1005_02fe, high: 0xf6 };

    /// Flags that a notification-only profiler may have
    /// ([`Profiler::load_as_notification_only`](crate::Profiler::load_as_notification_only)).
    pub const ALLOWED_FOR_NOTIFICATION: Self = Self { low: 0xb1e3_2b7f, high: 0xfe };

    /// Flags that make the runtime refuse precompiled code.
    pub const REFUSE_PRECOMPILED_CODE: Self = Self { low: 0xa000_1800, high: 0 };

    /// Flags that only the slow hooks can use, [`Hooks::with_info`](crate::Hooks::with_info).
    pub const SLOW_HOOKS: Self = Self { low: 0x0e00_0000, high: 0 };

    /// Both words of the runtime's event mask.
    #[must_use]
    pub const fn bits(self) -> (u32, u32) {
        (self.low, self.high)
    }

    /// The set with these two words.
    #[must_use]
    pub const fn from_bits(low: u32, high: u32) -> Self {
        Self { low, high }
    }

    /// Whether this set contains all flags of `other`.
    #[must_use]
    pub const fn contains(self, other: Self) -> bool {
        self.low & other.low == other.low && self.high & other.high == other.high
    }

    /// Whether this set contains any flag of `other`.
    #[must_use]
    pub const fn intersects(self, other: Self) -> bool {
        self.low & other.low != 0 || self.high & other.high != 0
    }

    /// Whether this set is empty.
    #[must_use]
    pub const fn is_empty(self) -> bool {
        self.low == 0 && self.high == 0
    }

    /// Intersection.
    #[must_use]
    pub const fn intersection(self, other: Self) -> Self {
        Self { low: self.low & other.low, high: self.high & other.high }
    }

    /// Union.
    #[must_use]
    pub const fn union(self, other: Self) -> Self {
        Self { low: self.low | other.low, high: self.high | other.high }
    }

    /// Difference: this set without `other`.
    #[must_use]
    pub const fn difference(self, other: Self) -> Self {
        Self { low: self.low & !other.low, high: self.high & !other.high }
    }

    /// Union of the events of several parts of one profiler, without flags that the runtime does
    /// not accept together.
    ///
    /// [`GC`](Self::GC) reports begin and end of collections as [`BASIC_GC`](Self::BASIC_GC) does,
    /// and the runtime accepts only one of the two. If any part wants `GC`, the union leaves out
    /// `BASIC_GC`.
    ///
    /// ```
    /// use clr_profiler::Events;
    /// let both = Events::of_parts([Events::BASIC_GC | Events::THREADS, Events::GC]);
    /// assert_eq!(both, Events::GC | Events::THREADS);
    /// ```
    #[must_use]
    pub fn of_parts(parts: impl IntoIterator<Item = Self>) -> Self {
        let all = parts.into_iter().fold(Self::NONE, Self::union);
        if all.contains(Self::GC) { all - Self::BASIC_GC } else { all }
    }

    /// Checks that the events in this set can be combined, and that each one has the further events
    /// that it needs.
    ///
    /// # Errors
    /// A refusal of `method` with a sentence that names the conflict or the missing event.
    pub(crate) fn check_alone(self, method: &'static str) -> Result<()> {
        let refuse = |reason: String| Err(Error::refused(method, reason));
        if self.contains(Self::OBJECT_ALLOCATED) && !self.contains(Self::ENABLE_OBJECT_ALLOCATED) {
            return refuse("OBJECT_ALLOCATED reports nothing without ENABLE_OBJECT_ALLOCATED".into());
        }
        if self.contains(Self::GC.union(Self::BASIC_GC)) {
            return refuse(
                "GC and BASIC_GC exclude each other: GC switches concurrent collection off, BASIC_GC keeps it on"
                    .into(),
            );
        }
        Ok(())
    }

    /// The names of the flags in this set.
    pub fn names(self) -> impl Iterator<Item = &'static str> {
        Self::ALL.iter().filter(move |(_, flag)| self.contains(*flag)).map(|(name, _)| *name)
    }
}

impl BitOr for Events {
    type Output = Self;
    fn bitor(self, other: Self) -> Self {
        self.union(other)
    }
}

impl BitOrAssign for Events {
    fn bitor_assign(&mut self, other: Self) {
        *self = self.union(other);
    }
}

impl Sub for Events {
    type Output = Self;
    fn sub(self, other: Self) -> Self {
        self.difference(other)
    }
}

impl fmt::Display for Events {
    /// The names joined by ` | `, `NONE` for the empty set.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.is_empty() {
            return f.write_str("NONE");
        }
        for (n, name) in self.names().enumerate() {
            if n > 0 {
                f.write_str(" | ")?;
            }
            f.write_str(name)?;
        }
        Ok(())
    }
}

impl fmt::Debug for Events {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use clr_profiler_sys::flags;

    #[test]
    fn sets_agree_with_the_header() {
        assert_eq!(Events::IMMUTABLE.bits(), (flags::COR_PRF_MONITOR_IMMUTABLE, flags::COR_PRF_HIGH_MONITOR_IMMUTABLE));
        let attach = (flags::COR_PRF_ALLOWABLE_AFTER_ATTACH, flags::COR_PRF_HIGH_ALLOWABLE_AFTER_ATTACH);
        assert_eq!(Events::ALLOWED_AFTER_ATTACH.bits(), attach);
        let notification =
            (flags::COR_PRF_ALLOWABLE_NOTIFICATION_PROFILER, flags::COR_PRF_HIGH_ALLOWABLE_NOTIFICATION_PROFILER);
        assert_eq!(Events::ALLOWED_FOR_NOTIFICATION.bits(), notification);
    }

    #[test]
    fn flags_have_names() {
        let events = Events::EXCEPTIONS | Events::BASIC_GC;
        assert_eq!(events.to_string(), "EXCEPTIONS | BASIC_GC");
        assert_eq!((events - Events::EXCEPTIONS).to_string(), "BASIC_GC");
        assert_eq!(Events::NONE.to_string(), "NONE");
        assert!(Events::ALL.iter().all(|(_, flag)| !flag.is_empty()));
    }
}
