//! Enumerations of corprof.idl, as transparent structs with constants.

named_enum! {
    /// Outcome of a search for precompiled code.
    COR_PRF_JIT_CACHE {
        /// Precompiled code was found and will be used.
        COR_PRF_CACHED_FUNCTION_FOUND = 0;
        /// No precompiled code was found, or it was refused.
        COR_PRF_CACHED_FUNCTION_NOT_FOUND = 1;
    }
}

named_enum! {
    /// Direction of a transition callback.
    COR_PRF_TRANSITION_REASON {
        /// A call crosses between managed and native code.
        COR_PRF_TRANSITION_CALL = 0;
        /// A call returns.
        COR_PRF_TRANSITION_RETURN = 1;
    }
}

named_enum! {
    /// Reason why the runtime suspends all managed threads.
    COR_PRF_SUSPEND_REASON {
        /// Another reason.
        COR_PRF_SUSPEND_OTHER = 0;
        /// A garbage collection.
        COR_PRF_SUSPEND_FOR_GC = 1;
        /// Unload of an application domain.
        COR_PRF_SUSPEND_FOR_APPDOMAIN_SHUTDOWN = 2;
        /// Removal of compiled code.
        COR_PRF_SUSPEND_FOR_CODE_PITCHING = 3;
        /// End of the runtime.
        COR_PRF_SUSPEND_FOR_SHUTDOWN = 4;
        /// In-process debugging.
        COR_PRF_SUSPEND_FOR_INPROC_DEBUGGER = 6;
        /// Preparation of a garbage collection.
        COR_PRF_SUSPEND_FOR_GC_PREP = 7;
        /// Recompilation.
        COR_PRF_SUSPEND_FOR_REJIT = 8;
        /// `ICorProfilerInfo10::SuspendRuntime`.
        COR_PRF_SUSPEND_FOR_PROFILER = 9;
    }
}

named_enum! {
    /// Reason why a garbage collection happens.
    COR_PRF_GC_REASON {
        /// Any other reason.
        COR_PRF_GC_OTHER = 0;
        /// Requested by the program or a profiler.
        COR_PRF_GC_INDUCED = 1;
    }
}

named_enum! {
    /// Kind of root that keeps an object alive.
    COR_PRF_GC_ROOT_KIND {
        /// Another kind.
        COR_PRF_GC_ROOT_OTHER = 0;
        /// A variable on a stack.
        COR_PRF_GC_ROOT_STACK = 1;
        /// The finalizer queue.
        COR_PRF_GC_ROOT_FINALIZER = 2;
        /// A GC handle.
        COR_PRF_GC_ROOT_HANDLE = 3;
    }
}

named_enum! {
    /// Properties of a root; flags can be combined.
    COR_PRF_GC_ROOT_FLAGS {
        /// The root prevents the object from moving.
        COR_PRF_GC_ROOT_PINNING = 0x1;
        /// The root doesn't keep the object alive.
        COR_PRF_GC_ROOT_WEAKREF = 0x2;
        /// The root points into the object.
        COR_PRF_GC_ROOT_INTERIOR = 0x4;
        /// The root keeps the object alive while its reference count isn't 0.
        COR_PRF_GC_ROOT_REFCOUNTED = 0x8;
    }
}

named_enum! {
    /// Properties of an object queued for its finalizer; flags can be combined.
    COR_PRF_FINALIZER_FLAGS {
        /// The finalizer is a critical one.
        COR_PRF_FINALIZER_CRITICAL = 0x1;
    }
}

named_enum! {
    /// A generation of the GC heap.
    COR_PRF_GC_GENERATION {
        /// Generation 0.
        COR_PRF_GC_GEN_0 = 0;
        /// Generation 1.
        COR_PRF_GC_GEN_1 = 1;
        /// Generation 2.
        COR_PRF_GC_GEN_2 = 2;
        /// Large objects.
        COR_PRF_GC_LARGE_OBJECT_HEAP = 3;
        /// Objects allocated as pinned.
        COR_PRF_GC_PINNED_OBJECT_HEAP = 4;
    }
}

named_enum! {
    /// Kind of an exception clause.
    COR_PRF_CLAUSE_TYPE {
        /// No clause.
        COR_PRF_CLAUSE_NONE = 0;
        /// A filter.
        COR_PRF_CLAUSE_FILTER = 1;
        /// A catch block.
        COR_PRF_CLAUSE_CATCH = 2;
        /// A finally or fault block.
        COR_PRF_CLAUSE_FINALLY = 3;
    }
}

named_enum! {
    /// Properties of a module; flags can be combined.
    COR_PRF_MODULE_FLAGS {
        /// Loaded from a file.
        COR_PRF_MODULE_DISK = 0x01;
        /// Has precompiled code.
        COR_PRF_MODULE_NGEN = 0x02;
        /// Created at run time by reflection emit.
        COR_PRF_MODULE_DYNAMIC = 0x04;
        /// Can be unloaded by the GC.
        COR_PRF_MODULE_COLLECTIBLE = 0x08;
        /// A resource, without metadata.
        COR_PRF_MODULE_RESOURCE = 0x10;
        /// Laid out in memory as in the file.
        COR_PRF_MODULE_FLAT_LAYOUT = 0x20;
        /// Windows Runtime metadata.
        COR_PRF_MODULE_WINDOWS_RUNTIME = 0x40;
    }
}

named_enum! {
    /// Kind of a static field; flags can be combined.
    COR_PRF_STATIC_TYPE {
        /// Not a static field.
        COR_PRF_FIELD_NOT_A_STATIC = 0x0;
        /// One value per application domain.
        COR_PRF_FIELD_APP_DOMAIN_STATIC = 0x1;
        /// One value per thread.
        COR_PRF_FIELD_THREAD_STATIC = 0x2;
        /// One value per remoting context.
        COR_PRF_FIELD_CONTEXT_STATIC = 0x4;
        /// Data in the image.
        COR_PRF_FIELD_RVA_STATIC = 0x8;
    }
}

named_enum! {
    /// Information that a stack snapshot gives with each frame.
    COR_PRF_SNAPSHOT_INFO {
        /// Function, address and frame.
        COR_PRF_SNAPSHOT_DEFAULT = 0x0;
        /// Also the registers of each frame.
        COR_PRF_SNAPSHOT_REGISTER_CONTEXT = 0x1;
        /// A faster walk on x86.
        COR_PRF_SNAPSHOT_X86_OPTIMIZED = 0x2;
    }
}

named_enum! {
    /// Kind of runtime.
    COR_PRF_RUNTIME_TYPE {
        /// .NET Framework.
        COR_PRF_DESKTOP_CLR = 0x1;
        /// CoreCLR.
        COR_PRF_CORE_CLR = 0x2;
    }
}

named_enum! {
    /// How `RequestReJITWithInliners` treats inlining; flags can be combined.
    COR_PRF_REJIT_FLAGS {
        /// The methods are not inlined any more.
        COR_PRF_REJIT_BLOCK_INLINING = 0x1;
        /// Inlining callbacks are raised for the methods.
        COR_PRF_REJIT_INLINING_CALLBACKS = 0x2;
    }
}

named_enum! {
    /// Options for recompiled code; flags can be combined.
    COR_PRF_CODEGEN_FLAGS {
        /// Nothing is inlined into the recompiled code.
        COR_PRF_CODEGEN_DISABLE_INLINING = 0x1;
        /// No optimisation.
        COR_PRF_CODEGEN_DISABLE_ALL_OPTIMIZATIONS = 0x2;
        /// Debug information is kept.
        COR_PRF_CODEGEN_DEBUG_INFO = 0x3;
    }
}

named_enum! {
    /// Kind of a handle made by a profiler.
    COR_PRF_HANDLE_TYPE {
        /// Doesn't keep the object alive.
        COR_PRF_HANDLE_TYPE_WEAK = 0x1;
        /// Keeps the object alive.
        COR_PRF_HANDLE_TYPE_STRONG = 0x2;
        /// Keeps the object alive and in place.
        COR_PRF_HANDLE_TYPE_PINNED = 0x3;
    }
}

named_enum! {
    /// Type of a field of an EventPipe event.
    COR_PRF_EVENTPIPE_PARAM_TYPE {
        /// An object.
        COR_PRF_EVENTPIPE_OBJECT = 1;
        /// A boolean of 32 bits.
        COR_PRF_EVENTPIPE_BOOLEAN = 3;
        /// A UTF-16 unit.
        COR_PRF_EVENTPIPE_CHAR = 4;
        /// A signed byte.
        COR_PRF_EVENTPIPE_SBYTE = 5;
        /// A byte.
        COR_PRF_EVENTPIPE_BYTE = 6;
        /// A signed 16-bit integer.
        COR_PRF_EVENTPIPE_INT16 = 7;
        /// An unsigned 16-bit integer.
        COR_PRF_EVENTPIPE_UINT16 = 8;
        /// A signed 32-bit integer.
        COR_PRF_EVENTPIPE_INT32 = 9;
        /// An unsigned 32-bit integer.
        COR_PRF_EVENTPIPE_UINT32 = 10;
        /// A signed 64-bit integer.
        COR_PRF_EVENTPIPE_INT64 = 11;
        /// An unsigned 64-bit integer.
        COR_PRF_EVENTPIPE_UINT64 = 12;
        /// A 32-bit float.
        COR_PRF_EVENTPIPE_SINGLE = 13;
        /// A 64-bit float.
        COR_PRF_EVENTPIPE_DOUBLE = 14;
        /// A decimal.
        COR_PRF_EVENTPIPE_DECIMAL = 15;
        /// A date and time.
        COR_PRF_EVENTPIPE_DATETIME = 16;
        /// A GUID.
        COR_PRF_EVENTPIPE_GUID = 17;
        /// A terminated UTF-16 string.
        COR_PRF_EVENTPIPE_STRING = 18;
        /// An array; another field gives the element type.
        COR_PRF_EVENTPIPE_ARRAY = 19;
    }
}

named_enum! {
    /// Level of an EventPipe event.
    COR_PRF_EVENTPIPE_LEVEL {
        /// Written at every level.
        COR_PRF_EVENTPIPE_LOGALWAYS = 0;
        /// Critical.
        COR_PRF_EVENTPIPE_CRITICAL = 1;
        /// Error.
        COR_PRF_EVENTPIPE_ERROR = 2;
        /// Warning.
        COR_PRF_EVENTPIPE_WARNING = 3;
        /// Informational.
        COR_PRF_EVENTPIPE_INFORMATIONAL = 4;
        /// Verbose.
        COR_PRF_EVENTPIPE_VERBOSE = 5;
    }
}

named_enum! {
    /// Special values of `il_offset` in an IL to native map.
    CorDebugIlToNativeMappingTypes {
        /// Native code that belongs to no IL.
        NO_MAPPING = -1_i32 as u32;
        /// The prolog.
        PROLOG = -2_i32 as u32;
        /// An epilog.
        EPILOG = -3_i32 as u32;
    }
}

/// Unknown parent, in `ModuleLoadFinished` and similar callbacks (`COR_PRF_MISC`).
pub const PROFILER_PARENT_UNKNOWN: usize = 0xFFFF_FFFD;
/// The class of global functions (`COR_PRF_MISC`).
pub const PROFILER_GLOBAL_CLASS: usize = 0xFFFF_FFFE;
/// The module of global functions (`COR_PRF_MISC`).
pub const PROFILER_GLOBAL_MODULE: usize = 0xFFFF_FFFF;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn known_values_have_names_and_unknown_ones_do_not() {
        assert_eq!(COR_PRF_SUSPEND_REASON(7).name(), Some("COR_PRF_SUSPEND_FOR_GC_PREP"));
        assert_eq!(COR_PRF_SUSPEND_REASON(5).name(), None);
        assert_eq!(format!("{:?}", COR_PRF_SUSPEND_REASON(5)), "COR_PRF_SUSPEND_REASON(0x5)");
        assert_eq!(format!("{EPILOG:?}"), "EPILOG");
    }
}
