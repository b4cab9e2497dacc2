//! The event mask: the events that a profiler receives, and changes of the runtime's behaviour
//! (corprof.idl).
//!
//! `ICorProfilerInfo5::SetEventMask2` takes two words. A flag in an *immutable* set can only be set
//! in `Initialize`. An attached profiler can set only flags in the *allowable after attach* set
//! (otherwise `CORPROF_E_UNSUPPORTED_FOR_ATTACHING_PROFILER`). A notification-only profiler can set
//! only flags in the *notification* set.

/// No events (low word).
pub const COR_PRF_MONITOR_NONE: u32 = 0;

named_flags! {
    /// Every single flag of the low word with its name, by value. The two remoting flags below also
    /// include the bit of `COR_PRF_MONITOR_REMOTING`.
    MONITOR_NAMES {
        /// Unloads of functions; never raised by CoreCLR.
        COR_PRF_MONITOR_FUNCTION_UNLOADS = 0x0000_0001;
        /// Loads and unloads of classes.
        COR_PRF_MONITOR_CLASS_LOADS = 0x0000_0002;
        /// Loads and unloads of modules.
        COR_PRF_MONITOR_MODULE_LOADS = 0x0000_0004;
        /// Loads and unloads of assemblies.
        COR_PRF_MONITOR_ASSEMBLY_LOADS = 0x0000_0008;
        /// Creation and end of application domains.
        COR_PRF_MONITOR_APPDOMAIN_LOADS = 0x0000_0010;
        /// Compilations, and inlining decisions.
        COR_PRF_MONITOR_JIT_COMPILATION = 0x0000_0020;
        /// Exceptions: throw, search, unwind, catch.
        COR_PRF_MONITOR_EXCEPTIONS = 0x0000_0040;
        /// Garbage collections with moves, survivors, references and roots. Disables background GC.
        COR_PRF_MONITOR_GC = 0x0000_0080;
        /// Each allocation. Needs `COR_PRF_ENABLE_OBJECT_ALLOCATED`.
        COR_PRF_MONITOR_OBJECT_ALLOCATED = 0x0000_0100;
        /// Threads: creation, end, operating-system thread, name.
        COR_PRF_MONITOR_THREADS = 0x0000_0200;
        /// Remoting; no effect on CoreCLR.
        COR_PRF_MONITOR_REMOTING = 0x0000_0400;
        /// Calls and returns between managed and native code. Makes cheap P/Invokes tens of times
        /// slower.
        COR_PRF_MONITOR_CODE_TRANSITIONS = 0x0000_0800;
        /// Enter, leave and tail-call hooks. Not in the immutable set, but cannot be cleared once
        /// hooks are set in `Initialize`.
        COR_PRF_MONITOR_ENTERLEAVE = 0x0000_1000;
        /// COM-callable wrappers; Windows only.
        COR_PRF_MONITOR_CCW = 0x0000_2000;
        /// Remoting with cookies; no effect on CoreCLR.
        COR_PRF_MONITOR_REMOTING_COOKIE = 0x0000_4400;
        /// Asynchronous remoting; no effect on CoreCLR.
        COR_PRF_MONITOR_REMOTING_ASYNC = 0x0000_8400;
        /// Suspension and resumption of the runtime and of threads.
        COR_PRF_MONITOR_SUSPENDS = 0x0001_0000;
        /// Searches for precompiled code, which the profiler may refuse.
        COR_PRF_MONITOR_CACHE_SEARCHES = 0x0002_0000;
        /// Allows recompilation (ReJIT).
        COR_PRF_ENABLE_REJIT = 0x0004_0000;
        /// In-process debugging; no effect on CoreCLR.
        COR_PRF_ENABLE_INPROC_DEBUGGING = 0x0008_0000;
        /// IL to native maps; always on.
        COR_PRF_ENABLE_JIT_MAPS = 0x0010_0000;
        /// Nothing is inlined anywhere.
        COR_PRF_DISABLE_INLINING = 0x0020_0000;
        /// Nothing is optimised.
        COR_PRF_DISABLE_OPTIMIZATIONS = 0x0040_0000;
        /// Enables allocation events. Slows down every allocation for the life of the process.
        COR_PRF_ENABLE_OBJECT_ALLOCATED = 0x0080_0000;
        /// Exceptions that the runtime itself catches.
        COR_PRF_MONITOR_CLR_EXCEPTIONS = 0x0100_0000;
        /// Hooks get arguments (slow hooks only).
        COR_PRF_ENABLE_FUNCTION_ARGS = 0x0200_0000;
        /// Hooks get results (slow hooks only).
        COR_PRF_ENABLE_FUNCTION_RETVAL = 0x0400_0000;
        /// Hooks get frames, for exact type arguments (slow hooks only).
        COR_PRF_ENABLE_FRAME_INFO = 0x0800_0000;
        /// Allows stack snapshots.
        COR_PRF_ENABLE_STACK_SNAPSHOT = 0x1000_0000;
        /// Only precompiled images made for profiling are used.
        COR_PRF_USE_PROFILE_IMAGES = 0x2000_0000;
        /// No transparency checks; no effect on CoreCLR.
        COR_PRF_DISABLE_TRANSPARENCY_CHECKS_UNDER_FULL_TRUST = 0x4000_0000;
        /// No precompiled code at all.
        COR_PRF_DISABLE_ALL_NGEN_IMAGES = 0x8000_0000;
    }
}

/// All events (low word), as corprof.idl defines them; some flags are missing.
pub const COR_PRF_MONITOR_ALL: u32 = 0x0107_FFFF;
/// All events and services (low word), as corprof.idl defines them; some flags are missing.
pub const COR_PRF_ALL: u32 = 0x8FFF_FFFF;
/// Flags that keep the runtime from using ordinary precompiled code.
pub const COR_PRF_REQUIRE_PROFILE_IMAGE: u32 =
    COR_PRF_USE_PROFILE_IMAGES | COR_PRF_MONITOR_CODE_TRANSITIONS | COR_PRF_MONITOR_ENTERLEAVE;

/// Flags of the low word that an attached profiler may set.
pub const COR_PRF_ALLOWABLE_AFTER_ATTACH: u32 = COR_PRF_MONITOR_THREADS
    | COR_PRF_MONITOR_MODULE_LOADS
    | COR_PRF_MONITOR_ASSEMBLY_LOADS
    | COR_PRF_MONITOR_APPDOMAIN_LOADS
    | COR_PRF_ENABLE_STACK_SNAPSHOT
    | COR_PRF_MONITOR_GC
    | COR_PRF_MONITOR_SUSPENDS
    | COR_PRF_MONITOR_CLASS_LOADS
    | COR_PRF_MONITOR_EXCEPTIONS
    | COR_PRF_MONITOR_JIT_COMPILATION
    | COR_PRF_ENABLE_REJIT;

/// Flags of the low word that a notification-only profiler may set.
pub const COR_PRF_ALLOWABLE_NOTIFICATION_PROFILER: u32 = COR_PRF_MONITOR_FUNCTION_UNLOADS
    | COR_PRF_MONITOR_CLASS_LOADS
    | COR_PRF_MONITOR_MODULE_LOADS
    | COR_PRF_MONITOR_ASSEMBLY_LOADS
    | COR_PRF_MONITOR_APPDOMAIN_LOADS
    | COR_PRF_MONITOR_JIT_COMPILATION
    | COR_PRF_MONITOR_EXCEPTIONS
    | COR_PRF_MONITOR_OBJECT_ALLOCATED
    | COR_PRF_MONITOR_THREADS
    | COR_PRF_MONITOR_CODE_TRANSITIONS
    | COR_PRF_MONITOR_CCW
    | COR_PRF_MONITOR_SUSPENDS
    | COR_PRF_MONITOR_CACHE_SEARCHES
    | COR_PRF_DISABLE_INLINING
    | COR_PRF_DISABLE_OPTIMIZATIONS
    | COR_PRF_ENABLE_OBJECT_ALLOCATED
    | COR_PRF_MONITOR_CLR_EXCEPTIONS
    | COR_PRF_ENABLE_STACK_SNAPSHOT
    | COR_PRF_USE_PROFILE_IMAGES
    | COR_PRF_DISABLE_ALL_NGEN_IMAGES;

/// Flags of the low word that can only be chosen in `Initialize`.
pub const COR_PRF_MONITOR_IMMUTABLE: u32 = COR_PRF_MONITOR_CODE_TRANSITIONS
    | COR_PRF_MONITOR_REMOTING
    | COR_PRF_MONITOR_REMOTING_COOKIE
    | COR_PRF_MONITOR_REMOTING_ASYNC
    | COR_PRF_ENABLE_INPROC_DEBUGGING
    | COR_PRF_ENABLE_JIT_MAPS
    | COR_PRF_DISABLE_OPTIMIZATIONS
    | COR_PRF_DISABLE_INLINING
    | COR_PRF_ENABLE_OBJECT_ALLOCATED
    | COR_PRF_ENABLE_FUNCTION_ARGS
    | COR_PRF_ENABLE_FUNCTION_RETVAL
    | COR_PRF_ENABLE_FRAME_INFO
    | COR_PRF_USE_PROFILE_IMAGES
    | COR_PRF_DISABLE_TRANSPARENCY_CHECKS_UNDER_FULL_TRUST
    | COR_PRF_DISABLE_ALL_NGEN_IMAGES;

/// No events (high word).
pub const COR_PRF_HIGH_MONITOR_NONE: u32 = 0;

named_flags! {
    /// Every single flag of the high word with its name, by value.
    HIGH_MONITOR_NAMES {
        /// Extra assembly references; no longer checked.
        COR_PRF_HIGH_ADD_ASSEMBLY_REFERENCES = 0x001;
        /// Changes of in-memory symbols.
        COR_PRF_HIGH_IN_MEMORY_SYMBOLS_UPDATED = 0x002;
        /// Collections of dynamic methods.
        COR_PRF_HIGH_MONITOR_DYNAMIC_FUNCTION_UNLOADS = 0x004;
        /// No tiers: methods are optimised immediately.
        COR_PRF_HIGH_DISABLE_TIERED_COMPILATION = 0x008;
        /// Start and end of garbage collections only; background GC stays on.
        COR_PRF_HIGH_BASIC_GC = 0x010;
        /// Moved ranges of compacting collections.
        COR_PRF_HIGH_MONITOR_GC_MOVED_OBJECTS = 0x020;
        /// Allocations on the large object heap.
        COR_PRF_HIGH_MONITOR_LARGEOBJECT_ALLOCATED = 0x040;
        /// EventPipe events and providers.
        COR_PRF_HIGH_MONITOR_EVENT_PIPE = 0x080;
        /// Allocations on the pinned object heap.
        COR_PRF_HIGH_MONITOR_PINNEDOBJECT_ALLOCATED = 0x100;
    }
}

/// Flags of the high word that keep the runtime from using ordinary precompiled code: none.
pub const COR_PRF_HIGH_REQUIRE_PROFILE_IMAGE: u32 = 0;

/// Flags of the high word that an attached profiler may set.
pub const COR_PRF_HIGH_ALLOWABLE_AFTER_ATTACH: u32 = COR_PRF_HIGH_IN_MEMORY_SYMBOLS_UPDATED
    | COR_PRF_HIGH_MONITOR_DYNAMIC_FUNCTION_UNLOADS
    | COR_PRF_HIGH_BASIC_GC
    | COR_PRF_HIGH_MONITOR_GC_MOVED_OBJECTS
    | COR_PRF_HIGH_MONITOR_LARGEOBJECT_ALLOCATED
    | COR_PRF_HIGH_MONITOR_EVENT_PIPE;

/// Flags of the high word that a notification-only profiler may set.
pub const COR_PRF_HIGH_ALLOWABLE_NOTIFICATION_PROFILER: u32 =
    COR_PRF_HIGH_ALLOWABLE_AFTER_ATTACH | COR_PRF_HIGH_DISABLE_TIERED_COMPILATION;

/// Flags of the high word that can only be chosen in `Initialize`.
pub const COR_PRF_HIGH_MONITOR_IMMUTABLE: u32 = COR_PRF_HIGH_DISABLE_TIERED_COMPILATION;

#[cfg(test)]
mod tests {
    use super::*;

    /// The values of the sets, computed from the tables of the reference, not from the constants
    /// above.
    #[test]
    fn sets_have_the_bits_of_the_reference() {
        assert_eq!(COR_PRF_ALLOWABLE_AFTER_ATTACH, 0x1005_02FE);
        assert_eq!(COR_PRF_ALLOWABLE_NOTIFICATION_PROFILER, 0xB1E3_2B7F);
        assert_eq!(COR_PRF_MONITOR_IMMUTABLE, 0xEEF8_CC00);
        assert_eq!(COR_PRF_REQUIRE_PROFILE_IMAGE, 0x2000_1800);
        assert_eq!(COR_PRF_HIGH_ALLOWABLE_AFTER_ATTACH, 0xF6);
        assert_eq!(COR_PRF_HIGH_ALLOWABLE_NOTIFICATION_PROFILER, 0xFE);
    }

    #[test]
    fn every_bit_of_the_low_word_has_one_name() {
        let mut rest = MONITOR_NAMES;
        let mut seen = 0;
        while let [(value, name), tail @ ..] = rest {
            assert_ne!(value & !seen, 0, "{name} adds no bit");
            seen |= value;
            rest = tail;
        }
        assert_eq!(seen, u32::MAX);
        assert_eq!(HIGH_MONITOR_NAMES.len(), 9);
    }
}
