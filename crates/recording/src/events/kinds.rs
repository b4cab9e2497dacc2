//! Kinds of events: the callbacks of the profiling interface, numbered by their slot in its table,
//! and clrscope's own kinds.

use clrscope_contract::instruments::events::Group;

/// Whether an event begins something, ends it, or does neither.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Phase {
    /// Begins something.
    Start,
    /// Ends what an event of this kind began.
    End(Kind),
    /// Neither begins nor ends something.
    Single,
}

impl Phase {
    /// The name in JSON.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Start => "start",
            Self::End(_) => "end",
            Self::Single => "single",
        }
    }
}

/// Kind of an event. Numbers up to 97 are slots in the table of `ICorProfilerCallback11`; they are
/// part of the format.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Kind(pub u8);

struct Entry {
    kind: Kind,
    name: &'static str,
    group: Group,
    phase: Phase,
}

macro_rules! kinds {
    ($($number:literal $constant:ident $name:ident $group:ident $phase:ident $(($start:ident))?,)*) => {
        impl Kind {
            $(
                #[doc = concat!("`", stringify!($name), "`.")]
                pub const $constant: Self = Self($number);
            )*
        }

        const ENTRIES: &[Entry] = &[$(Entry {
            kind: Kind::$constant,
            name: stringify!($name),
            group: Group::$group,
            phase: Phase::$phase $((Kind::$start))?,
        },)*];
    };
}

kinds! {
    3 INITIALIZE Initialize Runtime Single,
    4 SHUTDOWN Shutdown Runtime Single,
    5 APP_DOMAIN_CREATION_STARTED AppDomainCreationStarted Loads Start,
    6 APP_DOMAIN_CREATION_FINISHED AppDomainCreationFinished Loads End(APP_DOMAIN_CREATION_STARTED),
    7 APP_DOMAIN_SHUTDOWN_STARTED AppDomainShutdownStarted Loads Start,
    8 APP_DOMAIN_SHUTDOWN_FINISHED AppDomainShutdownFinished Loads End(APP_DOMAIN_SHUTDOWN_STARTED),
    9 ASSEMBLY_LOAD_STARTED AssemblyLoadStarted Loads Start,
    10 ASSEMBLY_LOAD_FINISHED AssemblyLoadFinished Loads End(ASSEMBLY_LOAD_STARTED),
    11 ASSEMBLY_UNLOAD_STARTED AssemblyUnloadStarted Loads Start,
    12 ASSEMBLY_UNLOAD_FINISHED AssemblyUnloadFinished Loads End(ASSEMBLY_UNLOAD_STARTED),
    13 MODULE_LOAD_STARTED ModuleLoadStarted Loads Start,
    14 MODULE_LOAD_FINISHED ModuleLoadFinished Loads End(MODULE_LOAD_STARTED),
    15 MODULE_UNLOAD_STARTED ModuleUnloadStarted Loads Start,
    16 MODULE_UNLOAD_FINISHED ModuleUnloadFinished Loads End(MODULE_UNLOAD_STARTED),
    17 MODULE_ATTACHED_TO_ASSEMBLY ModuleAttachedToAssembly Loads Single,
    18 CLASS_LOAD_STARTED ClassLoadStarted Loads Start,
    19 CLASS_LOAD_FINISHED ClassLoadFinished Loads End(CLASS_LOAD_STARTED),
    20 CLASS_UNLOAD_STARTED ClassUnloadStarted Loads Start,
    21 CLASS_UNLOAD_FINISHED ClassUnloadFinished Loads End(CLASS_UNLOAD_STARTED),
    22 FUNCTION_UNLOAD_STARTED FunctionUnloadStarted Loads Single,
    23 JIT_COMPILATION_STARTED JITCompilationStarted Jit Start,
    24 JIT_COMPILATION_FINISHED JITCompilationFinished Jit End(JIT_COMPILATION_STARTED),
    25 JIT_CACHED_FUNCTION_SEARCH_STARTED JITCachedFunctionSearchStarted Jit Start,
    26 JIT_CACHED_FUNCTION_SEARCH_FINISHED JITCachedFunctionSearchFinished Jit End(JIT_CACHED_FUNCTION_SEARCH_STARTED),
    27 JIT_FUNCTION_PITCHED JITFunctionPitched Jit Single,
    28 JIT_INLINING JITInlining Jit Single,
    29 THREAD_CREATED ThreadCreated Threads Single,
    30 THREAD_DESTROYED ThreadDestroyed Threads Single,
    31 THREAD_ASSIGNED_TO_OS_THREAD ThreadAssignedToOSThread Threads Single,
    32 REMOTING_CLIENT_INVOCATION_STARTED RemotingClientInvocationStarted Com Start,
    33 REMOTING_CLIENT_SENDING_MESSAGE RemotingClientSendingMessage Com Single,
    34 REMOTING_CLIENT_RECEIVING_REPLY RemotingClientReceivingReply Com Single,
    35 REMOTING_CLIENT_INVOCATION_FINISHED RemotingClientInvocationFinished Com End(REMOTING_CLIENT_INVOCATION_STARTED),
    36 REMOTING_SERVER_RECEIVING_MESSAGE RemotingServerReceivingMessage Com Single,
    37 REMOTING_SERVER_INVOCATION_STARTED RemotingServerInvocationStarted Com Start,
    38 REMOTING_SERVER_INVOCATION_RETURNED RemotingServerInvocationReturned Com End(REMOTING_SERVER_INVOCATION_STARTED),
    39 REMOTING_SERVER_SENDING_REPLY RemotingServerSendingReply Com Single,
    40 UNMANAGED_TO_MANAGED_TRANSITION UnmanagedToManagedTransition Transitions Single,
    41 MANAGED_TO_UNMANAGED_TRANSITION ManagedToUnmanagedTransition Transitions Single,
    42 RUNTIME_SUSPEND_STARTED RuntimeSuspendStarted Suspend Start,
    43 RUNTIME_SUSPEND_FINISHED RuntimeSuspendFinished Suspend End(RUNTIME_SUSPEND_STARTED),
    44 RUNTIME_SUSPEND_ABORTED RuntimeSuspendAborted Suspend End(RUNTIME_SUSPEND_STARTED),
    45 RUNTIME_RESUME_STARTED RuntimeResumeStarted Suspend Start,
    46 RUNTIME_RESUME_FINISHED RuntimeResumeFinished Suspend End(RUNTIME_RESUME_STARTED),
    47 RUNTIME_THREAD_SUSPENDED RuntimeThreadSuspended Suspend Start,
    48 RUNTIME_THREAD_RESUMED RuntimeThreadResumed Suspend End(RUNTIME_THREAD_SUSPENDED),
    49 MOVED_REFERENCES MovedReferences Heap Single,
    50 OBJECT_ALLOCATED ObjectAllocated Objects Single,
    51 OBJECTS_ALLOCATED_BY_CLASS ObjectsAllocatedByClass Objects Single,
    52 OBJECT_REFERENCES ObjectReferences Heap Single,
    53 ROOT_REFERENCES RootReferences Heap Single,
    54 EXCEPTION_THROWN ExceptionThrown Exceptions Single,
    55 EXCEPTION_SEARCH_FUNCTION_ENTER ExceptionSearchFunctionEnter Exceptions Start,
    56 EXCEPTION_SEARCH_FUNCTION_LEAVE ExceptionSearchFunctionLeave Exceptions End(EXCEPTION_SEARCH_FUNCTION_ENTER),
    57 EXCEPTION_SEARCH_FILTER_ENTER ExceptionSearchFilterEnter Exceptions Start,
    58 EXCEPTION_SEARCH_FILTER_LEAVE ExceptionSearchFilterLeave Exceptions End(EXCEPTION_SEARCH_FILTER_ENTER),
    59 EXCEPTION_SEARCH_CATCHER_FOUND ExceptionSearchCatcherFound Exceptions Single,
    60 EXCEPTION_OS_HANDLER_ENTER ExceptionOSHandlerEnter Exceptions Start,
    61 EXCEPTION_OS_HANDLER_LEAVE ExceptionOSHandlerLeave Exceptions End(EXCEPTION_OS_HANDLER_ENTER),
    62 EXCEPTION_UNWIND_FUNCTION_ENTER ExceptionUnwindFunctionEnter Exceptions Start,
    63 EXCEPTION_UNWIND_FUNCTION_LEAVE ExceptionUnwindFunctionLeave Exceptions End(EXCEPTION_UNWIND_FUNCTION_ENTER),
    64 EXCEPTION_UNWIND_FINALLY_ENTER ExceptionUnwindFinallyEnter Exceptions Start,
    65 EXCEPTION_UNWIND_FINALLY_LEAVE ExceptionUnwindFinallyLeave Exceptions End(EXCEPTION_UNWIND_FINALLY_ENTER),
    66 EXCEPTION_CATCHER_ENTER ExceptionCatcherEnter Exceptions Start,
    67 EXCEPTION_CATCHER_LEAVE ExceptionCatcherLeave Exceptions End(EXCEPTION_CATCHER_ENTER),
    68 COM_CLASSIC_VTABLE_CREATED COMClassicVTableCreated Com Single,
    69 COM_CLASSIC_VTABLE_DESTROYED COMClassicVTableDestroyed Com Single,
    70 EXCEPTION_CLR_CATCHER_FOUND ExceptionCLRCatcherFound Exceptions Single,
    71 EXCEPTION_CLR_CATCHER_EXECUTE ExceptionCLRCatcherExecute Exceptions Single,
    72 THREAD_NAME_CHANGED ThreadNameChanged Threads Single,
    73 GARBAGE_COLLECTION_STARTED GarbageCollectionStarted Gc Start,
    74 SURVIVING_REFERENCES SurvivingReferences Heap Single,
    75 GARBAGE_COLLECTION_FINISHED GarbageCollectionFinished Gc End(GARBAGE_COLLECTION_STARTED),
    76 FINALIZEABLE_OBJECT_QUEUED FinalizeableObjectQueued Objects Single,
    77 ROOT_REFERENCES2 RootReferences2 Heap Single,
    78 HANDLE_CREATED HandleCreated Handles Single,
    79 HANDLE_DESTROYED HandleDestroyed Handles Single,
    80 INITIALIZE_FOR_ATTACH InitializeForAttach Runtime Single,
    81 PROFILER_ATTACH_COMPLETE ProfilerAttachComplete Runtime Single,
    82 PROFILER_DETACH_SUCCEEDED ProfilerDetachSucceeded Runtime Single,
    83 REJIT_COMPILATION_STARTED ReJITCompilationStarted Jit Start,
    84 GET_REJIT_PARAMETERS GetReJITParameters Jit Single,
    85 REJIT_COMPILATION_FINISHED ReJITCompilationFinished Jit End(REJIT_COMPILATION_STARTED),
    86 REJIT_ERROR ReJITError Jit Single,
    87 MOVED_REFERENCES2 MovedReferences2 Heap Single,
    88 SURVIVING_REFERENCES2 SurvivingReferences2 Heap Single,
    89 CONDITIONAL_WEAK_TABLE_ELEMENT_REFERENCES ConditionalWeakTableElementReferences Heap Single,
    90 GET_ASSEMBLY_REFERENCES GetAssemblyReferences Loads Single,
    91 MODULE_IN_MEMORY_SYMBOLS_UPDATED ModuleInMemorySymbolsUpdated Loads Single,
    92 DYNAMIC_METHOD_JIT_COMPILATION_STARTED DynamicMethodJITCompilationStarted Jit Start,
    93 DYNAMIC_METHOD_JIT_COMPILATION_FINISHED DynamicMethodJITCompilationFinished Jit End(DYNAMIC_METHOD_JIT_COMPILATION_STARTED),
    94 DYNAMIC_METHOD_UNLOADED DynamicMethodUnloaded Jit Single,
    95 EVENT_PIPE_EVENT_DELIVERED EventPipeEventDelivered Pipe Single,
    96 EVENT_PIPE_PROVIDER_CREATED EventPipeProviderCreated Pipe Single,
    97 LOAD_AS_NOTIFICATION_ONLY LoadAsNotificationOnly Runtime Single,
    128 LIVE_OBJECTS_BY_CLASS LiveObjectsByClass Objects Single,
}

impl Kind {
    /// A dictionary entry: the name of an entity that events refer to.
    pub const NAME: Self = Self(200);
    // 201 had another meaning before the first release.
    /// The arguments of one call on the stack of the thread's next throw: the call's index in the
    /// stack, its function, and the values, which the dictionary of types describes.
    pub const EXCEPTION_ARGUMENTS: Self = Self(202);
    /// A thread requests a collection: the reason, and its stack, unless that is in the record of
    /// the preceding suspension. `gc` records this kind, the kinds below, and callbacks about
    /// suspensions and collections.
    pub const GC_TRIGGERED: Self = Self(210);
    /// A collection begins, according to the runtime's own events: number, generation, reason,
    /// type.
    pub const GC_STARTED: Self = Self(211);
    /// A collection ends: number, generation.
    pub const GC_ENDED: Self = Self(212);
    /// Sizes of one heap before and after a collection: the heap's number, then for each generation
    /// its number and sizes.
    pub const GC_HEAP: Self = Self(213);
    /// How a collection worked.
    pub const GC_MECHANISMS: Self = Self(214);
    /// State of all heaps after a collection: promoted bytes of each generation, pinned objects,
    /// handles.
    pub const GC_STATISTICS: Self = Self(215);
    /// A step of a suspension, according to the runtime's own events: the step and the reason.
    pub const GC_SUSPENSION: Self = Self(216);
    /// Finalizers have run: their number.
    pub const GC_FINALIZERS: Self = Self(217);
    /// Objects of a class that were in a generation before a collection: the number and bytes of
    /// the survivors, how many survivors were moved, and how many objects died.
    pub const GC_SURVIVORS: Self = Self(218);
    /// The thread begins to wait for a lock: the lock, its holder, the object's type if the lock is
    /// a monitor, and the thread's stack if it was taken. `locks` records this kind and the next
    /// one.
    pub const CONTENTION_STARTED: Self = Self(220);
    /// The thread has acquired the lock that it waited for, or has given up.
    pub const CONTENTION_ENDED: Self = Self(221);
    /// The thread begins to wait for a handle or a condition: its stack, if it was taken. `locks`
    /// records this kind and the next one for waits other than locks.
    pub const BLOCKING_STARTED: Self = Self(225);
    /// The thread no longer waits for a handle or a condition.
    pub const BLOCKING_ENDED: Self = Self(226);
    /// An await in an async method: a stack with only this method, and a description of the awaited
    /// operation. `awaits` records this kind and the next two.
    pub const AWAIT_PLACE: Self = Self(222);
    /// A method resumes after an await: its stack with its awaiters, the waiting time, and the
    /// outcome unless it is a result.
    pub const AWAIT_ENDED: Self = Self(223);
    /// A method was still waiting when recording ended: a stack with only this method, and the
    /// waiting time so far.
    pub const AWAIT_PENDING: Self = Self(224);
    /// A name of requests: its number, its text, and whether the requests are served or made.
    /// `requests` records this kind and the next two.
    pub const REQUEST_NAME: Self = Self(227);
    /// A request has ended: the number of its name, its duration, status and outcome. Without a
    /// duration, it began before the recording.
    pub const REQUEST_ENDED: Self = Self(228);
    /// A request was running when recording ended or was copied: the number of its name, and the
    /// duration so far if it began within the recording.
    pub const REQUEST_PENDING: Self = Self(229);
    /// The thread works for another request from now on: the request's id, absent for no request.
    pub const REQUEST_ON_THREAD: Self = Self(230);
    /// A counter: its number, provider, name, unit, labels, and the meaning of its values.
    /// `counters` records this kind and the next one.
    pub const COUNTER_NAME: Self = Self(231);
    /// A counter's reading at the end of an interval.
    pub const COUNTER_VALUE: Self = Self(232);
    /// A measurement of the process's memory: its number, the resident bytes, the maximum so far by
    /// the system's count, and how many records with the same number follow. `memory` records this
    /// kind and the next two.
    pub const MEMORY_LOOK: Self = Self(233);
    /// Memory of one kind, or of one of its files: resident, swapped and mapped bytes, and the
    /// number of mappings.
    pub const MEMORY_PLACE: Self = Self(234);
    /// Sizes of one generation after the last collection before a measurement.
    pub const MEMORY_GENERATION: Self = Self(235);

    /// Whether an event of this kind is a dictionary entry: any later record may refer to the
    /// entry.
    #[must_use]
    pub const fn is_dictionary(self) -> bool {
        matches!(self, Self::NAME | Self::AWAIT_PLACE | Self::REQUEST_NAME | Self::COUNTER_NAME)
    }

    /// The kind of the runtime's callback with this name.
    #[must_use]
    pub const fn named(name: &str) -> Option<Self> {
        let mut at = 0;
        while at < ENTRIES.len() {
            if is_same(ENTRIES[at].name, name) {
                return Some(ENTRIES[at].kind);
            }
            at += 1;
        }
        None
    }

    fn entry(self) -> Option<&'static Entry> {
        ENTRIES.binary_search_by_key(&self, |entry| entry.kind).ok().map(|at| &ENTRIES[at])
    }

    /// The callback's name; `None` for dictionary entries and kinds of a later version.
    #[must_use]
    pub fn name(self) -> Option<&'static str> {
        self.entry().map(|entry| entry.name)
    }

    /// Group of the kind, if it has one.
    #[must_use]
    pub fn group(self) -> Option<Group> {
        self.entry().map(|entry| entry.group)
    }

    /// Whether an event of this kind begins or ends something. For transitions this depends on
    /// their reason: see [`Record::phase`](super::Record::phase).
    #[must_use]
    pub fn phase(self) -> Phase {
        self.entry().map_or(Phase::Single, |entry| entry.phase)
    }

    /// Every kind with a name, in the order of their numbers.
    pub fn all() -> impl Iterator<Item = Self> {
        ENTRIES.iter().map(|entry| entry.kind)
    }
}

/// Whether two texts are equal; usable at compile time.
const fn is_same(one: &str, other: &str) -> bool {
    let (one, other) = (one.as_bytes(), other.as_bytes());
    let mut at = 0;
    while at < one.len() && at < other.len() && one[at] == other[at] {
        at += 1;
    }
    at == one.len() && at == other.len()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kinds_stand_at_their_places_in_the_interface() {
        assert_eq!(Kind::INITIALIZE.0, 3);
        assert_eq!((Kind::THREAD_NAME_CHANGED.0, Kind::LOAD_AS_NOTIFICATION_ONLY.0), (72, 97));
        let numbers: Vec<u8> = Kind::all().map(|kind| kind.0).collect();
        assert!(numbers.is_sorted() && numbers[..95].iter().copied().eq(3..=97));
        assert!(Kind::all().all(|kind| kind.name().and_then(Kind::named) == Some(kind)));
        assert_eq!(Kind::named("ExceptionThrow"), None);
        for kind in Kind::all() {
            if let Phase::End(start) = kind.phase() {
                assert_eq!(start.phase(), Phase::Start, "{:?}", kind.name());
            }
        }
    }
}
