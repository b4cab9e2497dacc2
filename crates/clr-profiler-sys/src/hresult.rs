//! Result codes and their names (corerror.h, winerror.h).

use windows_core::HRESULT;

named_hresults! {
    /// Name of a result code, `None` for an unknown code.
    fn name;
    /// Success.
    S_OK = 0x0000_0000;
    /// Success, with a negative or partial answer.
    S_FALSE = 0x0000_0001;
    /// Not implemented.
    E_NOTIMPL = 0x8000_4001;
    /// The object lacks the interface.
    E_NOINTERFACE = 0x8000_4002;
    /// A null pointer (`COR_E_NULLREFERENCE`).
    E_POINTER = 0x8000_4003;
    /// Aborted.
    E_ABORT = 0x8000_4004;
    /// Failed, without a reason.
    E_FAIL = 0x8000_4005;
    /// Unexpected state.
    E_UNEXPECTED = 0x8000_FFFF;
    /// Not ready.
    E_PENDING = 0x8000_000A;
    /// Out of bounds.
    E_BOUNDS = 0x8000_000B;
    /// The class cannot be part of another object.
    CLASS_E_NOAGGREGATION = 0x8004_0110;
    /// The library has no such class.
    CLASS_E_CLASSNOTAVAILABLE = 0x8004_0111;
    /// Access denied.
    E_ACCESSDENIED = 0x8007_0005;
    /// Not a valid handle.
    E_HANDLE = 0x8007_0006;
    /// The image is malformed (`BadImageFormatException`).
    COR_E_BADIMAGEFORMAT = 0x8007_000B;
    /// Out of memory.
    E_OUTOFMEMORY = 0x8007_000E;
    /// An argument is not valid (`ArgumentException`).
    E_INVALIDARG = 0x8007_0057;
    /// The buffer is too small.
    E_INSUFFICIENT_BUFFER = 0x8007_007A;
    /// File not found.
    COR_E_FILENOTFOUND = 0x8007_0002;
    /// `ArithmeticException`.
    COR_E_ARITHMETIC = 0x8007_0216;
    /// Stack overflow.
    COR_E_STACKOVERFLOW = 0x8007_03E9;
    /// `DivideByZeroException`.
    COR_E_DIVIDEBYZERO = 0x8002_0012;
    /// The function has no compiled code (yet).
    CORPROF_E_FUNCTION_NOT_COMPILED = 0x8013_1350;
    /// The answer is not known at this moment; retry later or from another callback.
    CORPROF_E_DATAINCOMPLETE = 0x8013_1351;
    /// The function has no IL.
    CORPROF_E_FUNCTION_NOT_IL = 0x8013_1354;
    /// The thread never ran managed code.
    CORPROF_E_NOT_MANAGED_THREAD = 0x8013_1355;
    /// Only allowed in `Initialize`.
    CORPROF_E_CALL_ONLY_FROM_INIT = 0x8013_1356;
    /// Not available at this stage.
    CORPROF_E_NOT_YET_AVAILABLE = 0x8013_135B;
    /// The type is generic; type arguments are needed.
    CORPROF_E_TYPE_IS_PARAMETERIZED = 0x8013_135C;
    /// The function is generic; type arguments are needed.
    CORPROF_E_FUNCTION_IS_PARAMETERIZED = 0x8013_135D;
    /// The target thread of a stack snapshot is not valid.
    CORPROF_E_STACKSNAPSHOT_INVALID_TGT_THREAD = 0x8013_135E;
    /// The target thread runs native code and no frame was found to start from.
    CORPROF_E_STACKSNAPSHOT_UNMANAGED_CTX = 0x8013_135F;
    /// A stack snapshot is not safe now; try later.
    CORPROF_E_STACKSNAPSHOT_UNSAFE = 0x8013_1360;
    /// The snapshot callback stopped the walk.
    CORPROF_E_STACKSNAPSHOT_ABORTED = 0x8013_1361;
    /// Constants have no address.
    CORPROF_E_LITERALS_HAVE_NO_ADDRESS = 0x8013_1362;
    /// Not allowed from this callback or thread.
    CORPROF_E_UNSUPPORTED_CALL_SEQUENCE = 0x8013_1363;
    /// Not safe to call asynchronously now.
    CORPROF_E_ASYNCHRONOUS_UNSAFE = 0x8013_1364;
    /// The class is an array.
    CORPROF_E_CLASSID_IS_ARRAY = 0x8013_1365;
    /// The class is a composite other than an array.
    CORPROF_E_CLASSID_IS_COMPOSITE = 0x8013_1366;
    /// The profiler is being detached; every call fails.
    CORPROF_E_PROFILER_DETACHING = 0x8013_1367;
    /// The profiler does not support attaching.
    CORPROF_E_PROFILER_NOT_ATTACHABLE = 0x8013_1368;
    /// The attach message has an unknown format.
    CORPROF_E_UNRECOGNIZED_PIPE_MSG_FORMAT = 0x8013_1369;
    /// Another main profiler is loaded.
    CORPROF_E_PROFILER_ALREADY_ACTIVE = 0x8013_136A;
    /// The runtime is not compatible with the attacher.
    CORPROF_E_PROFILEE_INCOMPATIBLE_WITH_TRIGGER = 0x8013_136B;
    /// The attach channel failed.
    CORPROF_E_IPC_FAILED = 0x8013_136C;
    /// The process to attach to was not found.
    CORPROF_E_PROFILEE_PROCESS_NOT_FOUND = 0x8013_136D;
    /// The profiler lacks `ICorProfilerCallback3`.
    CORPROF_E_CALLBACK3_REQUIRED = 0x8013_136E;
    /// Not allowed for an attached profiler.
    CORPROF_E_UNSUPPORTED_FOR_ATTACHING_PROFILER = 0x8013_136F;
    /// Detach is not possible: code was changed irreversibly.
    CORPROF_E_IRREVERSIBLE_INSTRUMENTATION_PRESENT = 0x8013_1370;
    /// The runtime is not initialised yet.
    CORPROF_E_RUNTIME_UNINITIALIZED = 0x8013_1371;
    /// Detach is not possible: immutable flags are set.
    CORPROF_E_IMMUTABLE_FLAGS_SET = 0x8013_1372;
    /// The profiler is not initialised yet.
    CORPROF_E_PROFILER_NOT_YET_INITIALIZED = 0x8013_1373;
    /// Not compatible with the current event mask.
    CORPROF_E_INCONSISTENT_WITH_FLAGS = 0x8013_1374;
    /// The profiler cancels its own activation; the runtime does not report a failure.
    CORPROF_E_PROFILER_CANCEL_ACTIVATION = 0x8013_1375;
    /// Background GC is on and cannot be switched off now.
    CORPROF_E_CONCURRENT_GC_NOT_PROFILABLE = 0x8013_1376;
    /// Debugging is disabled.
    CORPROF_E_DEBUGGING_DISABLED = 0x8013_1378;
    /// A background GC did not end in time.
    CORPROF_E_TIMEOUT_WAITING_FOR_CONCURRENT_GC = 0x8013_1379;
    /// Not allowed for a dynamic module.
    CORPROF_E_MODULE_IS_DYNAMIC = 0x8013_137A;
    /// The profiler lacks `ICorProfilerCallback4`.
    CORPROF_E_CALLBACK4_REQUIRED = 0x8013_137B;
    /// `COR_PRF_ENABLE_REJIT` is not set.
    CORPROF_E_REJIT_NOT_ENABLED = 0x8013_137C;
    /// Not allowed for a collectible function.
    CORPROF_E_FUNCTION_IS_COLLECTIBLE = 0x8013_137E;
    /// The profiler lacks `ICorProfilerCallback6`.
    CORPROF_E_CALLBACK6_REQUIRED = 0x8013_1380;
    /// The profiler lacks `ICorProfilerCallback7`.
    CORPROF_E_CALLBACK7_REQUIRED = 0x8013_1382;
    /// ReJIT with inliners is not possible.
    CORPROF_E_REJIT_INLINING_DISABLED = 0x8013_1383;
    /// A suspension is already in progress.
    CORPROF_E_SUSPENSION_IN_PROGRESS = 0x8013_1388;
    /// The object is not on the GC heap.
    CORPROF_E_NOT_GC_OBJECT = 0x8013_1389;
    /// Not allowed for a module under edit and continue.
    CORPROF_E_MODULE_IS_ENC = 0x8013_138A;
    /// Diagnostics IPC: malformed message.
    CORDIAGIPC_E_BAD_ENCODING = 0x8013_1384;
    /// Diagnostics IPC: unknown command.
    CORDIAGIPC_E_UNKNOWN_COMMAND = 0x8013_1385;
    /// Diagnostics IPC: unknown protocol.
    CORDIAGIPC_E_UNKNOWN_MAGIC = 0x8013_1386;
    /// Diagnostics IPC: unknown error.
    CORDIAGIPC_E_UNKNOWN_ERROR = 0x8013_1387;
    /// The name was truncated to the buffer.
    CLDB_S_TRUNCATION = 0x0013_1106;
    /// The definition existed already.
    META_S_DUPLICATE = 0x0013_1197;
    /// The metadata could not be read.
    CLDB_E_FILE_BADREAD = 0x8013_1100;
    /// The metadata has an old version.
    CLDB_E_FILE_OLDVER = 0x8013_1107;
    /// There is no data.
    CLDB_E_NO_DATA = 0x8013_110B;
    /// The metadata is incompatible.
    CLDB_E_INCOMPATIBLE = 0x8013_110D;
    /// The metadata is damaged.
    CLDB_E_FILE_CORRUPT = 0x8013_110E;
    /// There is no such row.
    CLDB_E_INDEX_NOTFOUND = 0x8013_1124;
    /// No match: the usual "not found" code of look-ups.
    CLDB_E_RECORD_NOTFOUND = 0x8013_1130;
    /// A heap or table is too big.
    CLDB_E_TOO_BIG = 0x8013_1154;
    /// The token is of the wrong kind.
    META_E_INVALID_TOKEN_TYPE = 0x8013_115F;
    /// The metadata is malformed.
    META_E_BADMETADATA = 0x8013_118A;
    /// The signature is malformed.
    META_E_BAD_SIGNATURE = 0x8013_1192;
    /// A parameter is malformed.
    META_E_BAD_INPUT_PARAMETER = 0x8013_1193;
    /// The reference cannot be resolved.
    META_E_CANNOTRESOLVETYPEREF = 0x8013_1196;
    /// No room for strings.
    META_E_STRINGSPACE_FULL = 0x8013_1198;
    /// `TypeUnloadedException`.
    COR_E_TYPEUNLOADED = 0x8013_1013;
    /// `AppDomainUnloadedException`.
    COR_E_APPDOMAINUNLOADED = 0x8013_1014;
    /// `CannotUnloadAppDomainException`.
    COR_E_CANNOTUNLOADAPPDOMAIN = 0x8013_1015;
    /// `BadImageFormatException`: an assembly was expected.
    COR_E_ASSEMBLYEXPECTED = 0x8013_1018;
    /// `BadImageFormatException`: built for a newer runtime.
    COR_E_NEWER_RUNTIME = 0x8013_101B;
    /// `AmbiguousImplementationException`.
    COR_E_AMBIGUOUSIMPLEMENTATION = 0x8013_106A;
    /// `Exception`.
    COR_E_EXCEPTION = 0x8013_1500;
    /// `SystemException`.
    COR_E_SYSTEM = 0x8013_1501;
    /// `ArgumentOutOfRangeException`.
    COR_E_ARGUMENTOUTOFRANGE = 0x8013_1502;
    /// `ArrayTypeMismatchException`.
    COR_E_ARRAYTYPEMISMATCH = 0x8013_1503;
    /// `ContextMarshalException`.
    COR_E_CONTEXTMARSHAL = 0x8013_1504;
    /// `TimeoutException`.
    COR_E_TIMEOUT = 0x8013_1505;
    /// `ExecutionEngineException`.
    COR_E_EXECUTIONENGINE = 0x8013_1506;
    /// `FieldAccessException`.
    COR_E_FIELDACCESS = 0x8013_1507;
    /// `IndexOutOfRangeException`.
    COR_E_INDEXOUTOFRANGE = 0x8013_1508;
    /// `InvalidOperationException`.
    COR_E_INVALIDOPERATION = 0x8013_1509;
    /// `SecurityException`.
    COR_E_SECURITY = 0x8013_150A;
    /// `SerializationException`.
    COR_E_SERIALIZATION = 0x8013_150C;
    /// `VerificationException`.
    COR_E_VERIFICATION = 0x8013_150D;
    /// `MethodAccessException`.
    COR_E_METHODACCESS = 0x8013_1510;
    /// `MissingFieldException`.
    COR_E_MISSINGFIELD = 0x8013_1511;
    /// `MissingMemberException`.
    COR_E_MISSINGMEMBER = 0x8013_1512;
    /// `MissingMethodException`.
    COR_E_MISSINGMETHOD = 0x8013_1513;
    /// `MulticastNotSupportedException`.
    COR_E_MULTICASTNOTSUPPORTED = 0x8013_1514;
    /// `NotSupportedException`.
    COR_E_NOTSUPPORTED = 0x8013_1515;
    /// `OverflowException`.
    COR_E_OVERFLOW = 0x8013_1516;
    /// `RankException`.
    COR_E_RANK = 0x8013_1517;
    /// `SynchronizationLockException`.
    COR_E_SYNCHRONIZATIONLOCK = 0x8013_1518;
    /// `ThreadInterruptedException`.
    COR_E_THREADINTERRUPTED = 0x8013_1519;
    /// `MemberAccessException`.
    COR_E_MEMBERACCESS = 0x8013_151A;
    /// `ThreadStateException`.
    COR_E_THREADSTATE = 0x8013_1520;
    /// A thread was stopped.
    COR_E_THREADSTOP = 0x8013_1521;
    /// `TypeLoadException`.
    COR_E_TYPELOAD = 0x8013_1522;
    /// `EntryPointNotFoundException`.
    COR_E_ENTRYPOINTNOTFOUND = 0x8013_1523;
    /// `DllNotFoundException`.
    COR_E_DLLNOTFOUND = 0x8013_1524;
    /// `ThreadStartException`.
    COR_E_THREADSTART = 0x8013_1525;
    /// `InvalidComObjectException`.
    COR_E_INVALIDCOMOBJECT = 0x8013_1527;
    /// `NotFiniteNumberException`.
    COR_E_NOTFINITENUMBER = 0x8013_1528;
    /// `DuplicateWaitObjectException`.
    COR_E_DUPLICATEWAITOBJECT = 0x8013_1529;
    /// `SemaphoreFullException`.
    COR_E_SEMAPHOREFULL = 0x8013_152B;
    /// `WaitHandleCannotBeOpenedException`.
    COR_E_WAITHANDLECANNOTBEOPENED = 0x8013_152C;
    /// `AbandonedMutexException`.
    COR_E_ABANDONEDMUTEX = 0x8013_152D;
    /// `ThreadAbortException`.
    COR_E_THREADABORTED = 0x8013_1530;
    /// `InvalidOleVariantTypeException`.
    COR_E_INVALIDOLEVARIANTTYPE = 0x8013_1531;
    /// `MissingManifestResourceException`.
    COR_E_MISSINGMANIFESTRESOURCE = 0x8013_1532;
    /// `SafeArrayTypeMismatchException`.
    COR_E_SAFEARRAYTYPEMISMATCH = 0x8013_1533;
    /// `TypeInitializationException`.
    COR_E_TYPEINITIALIZATION = 0x8013_1534;
    /// `MarshalDirectiveException`.
    COR_E_MARSHALDIRECTIVE = 0x8013_1535;
    /// `MissingSatelliteAssemblyException`.
    COR_E_MISSINGSATELLITEASSEMBLY = 0x8013_1536;
    /// `FormatException`.
    COR_E_FORMAT = 0x8013_1537;
    /// `SafeArrayRankMismatchException`.
    COR_E_SAFEARRAYRANKMISMATCH = 0x8013_1538;
    /// `PlatformNotSupportedException`.
    COR_E_PLATFORMNOTSUPPORTED = 0x8013_1539;
    /// `InvalidProgramException`.
    COR_E_INVALIDPROGRAM = 0x8013_153A;
    /// `OperationCanceledException`.
    COR_E_OPERATIONCANCELED = 0x8013_153B;
    /// `InsufficientMemoryException`.
    COR_E_INSUFFICIENTMEMORY = 0x8013_153D;
    /// `RuntimeWrappedException`.
    COR_E_RUNTIMEWRAPPED = 0x8013_153E;
    /// `DataMisalignedException`.
    COR_E_DATAMISALIGNED = 0x8013_1541;
    /// `TypeAccessException`.
    COR_E_TYPEACCESS = 0x8013_1543;
    /// `KeyNotFoundException`.
    COR_E_KEYNOTFOUND = 0x8013_1577;
    /// `InsufficientExecutionStackException`.
    COR_E_INSUFFICIENTEXECUTIONSTACK = 0x8013_1578;
    /// `ApplicationException`.
    COR_E_APPLICATION = 0x8013_1600;
    /// `InvalidFilterCriteriaException`.
    COR_E_INVALIDFILTERCRITERIA = 0x8013_1601;
    /// `ReflectionTypeLoadException`.
    COR_E_REFLECTIONTYPELOAD = 0x8013_1602;
    /// `TargetException`.
    COR_E_TARGET = 0x8013_1603;
    /// `TargetInvocationException`.
    COR_E_TARGETINVOCATION = 0x8013_1604;
    /// `CustomAttributeFormatException`.
    COR_E_CUSTOMATTRIBUTEFORMAT = 0x8013_1605;
    /// `IOException`.
    COR_E_IO = 0x8013_1620;
    /// `FileLoadException`.
    COR_E_FILELOAD = 0x8013_1621;
    /// `ObjectDisposedException`.
    COR_E_OBJECTDISPOSED = 0x8013_1622;
    /// `Environment.FailFast` ended the process.
    COR_E_FAILFAST = 0x8013_1623;
    /// `HostProtectionException`.
    COR_E_HOSTPROTECTION = 0x8013_1640;
    /// Illegal reentrancy.
    COR_E_ILLEGAL_REENTRANCY = 0x8013_1641;
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn codes_have_the_values_and_names_of_the_headers() {
        assert_eq!(CORPROF_E_DATAINCOMPLETE.0 as u32, 0x8013_1351);
        assert_eq!(name(HRESULT(0x8013_1351_u32 as i32)), Some("CORPROF_E_DATAINCOMPLETE"));
        assert_eq!(name(HRESULT(0)), Some("S_OK"));
        assert_eq!(name(HRESULT(0x8007_000E_u32 as i32)), Some("E_OUTOFMEMORY"));
        assert_eq!(name(HRESULT(0x8013_1352_u32 as i32)), None);
        assert!(CLDB_S_TRUNCATION.is_ok());
    }
}
