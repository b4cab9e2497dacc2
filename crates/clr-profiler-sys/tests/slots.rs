//! Every interface's id and every method's slot, against the table in `interfaces.txt`, and that
//! table against the project's runtime reference where it is at hand.

use std::collections::BTreeMap;
use std::path::Path;

use clr_profiler_sys::windows_core::Interface;
use clr_profiler_sys::{callback::*, control::*, enumerators::*, info::*, metadata::*};

const POINTER: usize = size_of::<usize>();

/// One interface: what the text says or what the compiled table shows.
#[derive(Debug, PartialEq, Eq)]
struct Row {
    iid: String,
    first: usize,
    last: usize,
    methods: Vec<String>,
}

/// Reads `interfaces.txt`: a head line per interface, method names on indented lines below.
fn expected() -> BTreeMap<String, Row> {
    let mut rows = BTreeMap::new();
    let mut current = String::new();
    for line in include_str!("interfaces.txt").lines() {
        if line.starts_with('#') {
            continue;
        }
        if line.starts_with(' ') {
            let row: &mut Row = rows.get_mut(&current).expect("methods follow a head line");
            row.methods.extend(line.split_whitespace().map(str::to_owned));
            continue;
        }
        let [name, iid, first, last] = line.split(' ').collect::<Vec<_>>()[..] else {
            panic!("not a head line: {line}");
        };
        let row = Row {
            iid: iid.to_owned(),
            first: first.parse().expect("first slot"),
            last: last.parse().expect("last slot"),
            methods: Vec::new(),
        };
        current = name.to_owned();
        assert!(rows.insert(current.clone(), row).is_none(), "{name} twice");
    }
    rows
}

/// Adds what the compiler made of an interface. A method's slot is its offset in the table; `last`
/// comes from the table's size, so a method that the declaration has and the list below lacks is
/// seen.
macro_rules! compiled {
    ($rows:ident; $( $interface:ident $vtbl:ident: $($method:ident)*; )*) => { $({
        let slots = [ $( core::mem::offset_of!($vtbl, $method) / POINTER, )* ];
        let first = slots[0];
        for (index, slot) in slots.iter().enumerate() {
            let names = [ $( stringify!($method), )* ];
            assert_eq!(*slot, first + index, "slot of {}::{}", stringify!($interface), names[index]);
        }
        $rows.insert(stringify!($interface).to_owned(), Row {
            iid: format!("{:?}", $interface::IID),
            first,
            last: size_of::<$vtbl>() / POINTER - 1,
            methods: vec![ $( stringify!($method).to_owned(), )* ],
        });
    })* };
}

fn compiled() -> BTreeMap<String, Row> {
    let mut rows = BTreeMap::new();
    compiled! { rows;
        ICorProfilerCallback ICorProfilerCallback_Vtbl:
            Initialize Shutdown AppDomainCreationStarted AppDomainCreationFinished AppDomainShutdownStarted
            AppDomainShutdownFinished AssemblyLoadStarted AssemblyLoadFinished AssemblyUnloadStarted
            AssemblyUnloadFinished ModuleLoadStarted ModuleLoadFinished ModuleUnloadStarted ModuleUnloadFinished
            ModuleAttachedToAssembly ClassLoadStarted ClassLoadFinished ClassUnloadStarted ClassUnloadFinished
            FunctionUnloadStarted JITCompilationStarted JITCompilationFinished JITCachedFunctionSearchStarted
            JITCachedFunctionSearchFinished JITFunctionPitched JITInlining ThreadCreated ThreadDestroyed
            ThreadAssignedToOSThread RemotingClientInvocationStarted RemotingClientSendingMessage
            RemotingClientReceivingReply RemotingClientInvocationFinished RemotingServerReceivingMessage
            RemotingServerInvocationStarted RemotingServerInvocationReturned RemotingServerSendingReply
            UnmanagedToManagedTransition ManagedToUnmanagedTransition RuntimeSuspendStarted RuntimeSuspendFinished
            RuntimeSuspendAborted RuntimeResumeStarted RuntimeResumeFinished RuntimeThreadSuspended
            RuntimeThreadResumed MovedReferences ObjectAllocated ObjectsAllocatedByClass ObjectReferences
            RootReferences ExceptionThrown ExceptionSearchFunctionEnter ExceptionSearchFunctionLeave
            ExceptionSearchFilterEnter ExceptionSearchFilterLeave ExceptionSearchCatcherFound ExceptionOSHandlerEnter
            ExceptionOSHandlerLeave ExceptionUnwindFunctionEnter ExceptionUnwindFunctionLeave
            ExceptionUnwindFinallyEnter ExceptionUnwindFinallyLeave ExceptionCatcherEnter ExceptionCatcherLeave
            COMClassicVTableCreated COMClassicVTableDestroyed ExceptionCLRCatcherFound ExceptionCLRCatcherExecute;
        ICorProfilerCallback2 ICorProfilerCallback2_Vtbl:
            ThreadNameChanged GarbageCollectionStarted SurvivingReferences GarbageCollectionFinished
            FinalizeableObjectQueued RootReferences2 HandleCreated HandleDestroyed;
        ICorProfilerCallback3 ICorProfilerCallback3_Vtbl:
            InitializeForAttach ProfilerAttachComplete ProfilerDetachSucceeded;
        ICorProfilerCallback4 ICorProfilerCallback4_Vtbl:
            ReJITCompilationStarted GetReJITParameters ReJITCompilationFinished ReJITError MovedReferences2
            SurvivingReferences2;
        ICorProfilerCallback5 ICorProfilerCallback5_Vtbl:
            ConditionalWeakTableElementReferences;
        ICorProfilerCallback6 ICorProfilerCallback6_Vtbl:
            GetAssemblyReferences;
        ICorProfilerCallback7 ICorProfilerCallback7_Vtbl:
            ModuleInMemorySymbolsUpdated;
        ICorProfilerCallback8 ICorProfilerCallback8_Vtbl:
            DynamicMethodJITCompilationStarted DynamicMethodJITCompilationFinished;
        ICorProfilerCallback9 ICorProfilerCallback9_Vtbl:
            DynamicMethodUnloaded;
        ICorProfilerCallback10 ICorProfilerCallback10_Vtbl:
            EventPipeEventDelivered EventPipeProviderCreated;
        ICorProfilerCallback11 ICorProfilerCallback11_Vtbl:
            LoadAsNotificationOnly;
        ICorProfilerInfo ICorProfilerInfo_Vtbl:
            GetClassFromObject GetClassFromToken GetCodeInfo GetEventMask GetFunctionFromIP GetFunctionFromToken
            GetHandleFromThread GetObjectSize IsArrayClass GetThreadInfo GetCurrentThreadID GetClassIDInfo
            GetFunctionInfo SetEventMask SetEnterLeaveFunctionHooks SetFunctionIDMapper
            GetTokenAndMetaDataFromFunction GetModuleInfo GetModuleMetaData GetILFunctionBody
            GetILFunctionBodyAllocator SetILFunctionBody GetAppDomainInfo GetAssemblyInfo SetFunctionReJIT ForceGC
            SetILInstrumentedCodeMap GetInprocInspectionInterface GetInprocInspectionIThisThread GetThreadContext
            BeginInprocDebugging EndInprocDebugging GetILToNativeMapping;
        ICorProfilerInfo2 ICorProfilerInfo2_Vtbl:
            DoStackSnapshot SetEnterLeaveFunctionHooks2 GetFunctionInfo2 GetStringLayout GetClassLayout
            GetClassIDInfo2 GetCodeInfo2 GetClassFromTokenAndTypeArgs GetFunctionFromTokenAndTypeArgs
            EnumModuleFrozenObjects GetArrayObjectInfo GetBoxClassLayout GetThreadAppDomain GetRVAStaticAddress
            GetAppDomainStaticAddress GetThreadStaticAddress GetContextStaticAddress GetStaticFieldInfo
            GetGenerationBounds GetObjectGeneration GetNotifiedExceptionClauseInfo;
        ICorProfilerInfo3 ICorProfilerInfo3_Vtbl:
            EnumJITedFunctions RequestProfilerDetach SetFunctionIDMapper2 GetStringLayout2 SetEnterLeaveFunctionHooks3
            SetEnterLeaveFunctionHooks3WithInfo GetFunctionEnter3Info GetFunctionLeave3Info GetFunctionTailcall3Info
            EnumModules GetRuntimeInformation GetThreadStaticAddress2 GetAppDomainsContainingModule GetModuleInfo2;
        ICorProfilerInfo4 ICorProfilerInfo4_Vtbl:
            EnumThreads InitializeCurrentThread RequestReJIT RequestRevert GetCodeInfo3 GetFunctionFromIP2 GetReJITIDs
            GetILToNativeMapping2 EnumJITedFunctions2 GetObjectSize2;
        ICorProfilerInfo5 ICorProfilerInfo5_Vtbl:
            GetEventMask2 SetEventMask2;
        ICorProfilerInfo6 ICorProfilerInfo6_Vtbl:
            EnumNgenModuleMethodsInliningThisMethod;
        ICorProfilerInfo7 ICorProfilerInfo7_Vtbl:
            ApplyMetaData GetInMemorySymbolsLength ReadInMemorySymbols;
        ICorProfilerInfo8 ICorProfilerInfo8_Vtbl:
            IsFunctionDynamic GetFunctionFromIP3 GetDynamicFunctionInfo;
        ICorProfilerInfo9 ICorProfilerInfo9_Vtbl:
            GetNativeCodeStartAddresses GetILToNativeMapping3 GetCodeInfo4;
        ICorProfilerInfo10 ICorProfilerInfo10_Vtbl:
            EnumerateObjectReferences IsFrozenObject GetLOHObjectSizeThreshold RequestReJITWithInliners SuspendRuntime
            ResumeRuntime;
        ICorProfilerInfo11 ICorProfilerInfo11_Vtbl:
            GetEnvironmentVariable SetEnvironmentVariable;
        ICorProfilerInfo12 ICorProfilerInfo12_Vtbl:
            EventPipeStartSession EventPipeAddProviderToSession EventPipeStopSession EventPipeCreateProvider
            EventPipeGetProviderInfo EventPipeDefineEvent EventPipeWriteEvent;
        ICorProfilerInfo13 ICorProfilerInfo13_Vtbl:
            CreateHandle DestroyHandle GetObjectIDFromHandle;
        ICorProfilerInfo14 ICorProfilerInfo14_Vtbl:
            EnumerateNonGCObjects GetNonGCHeapBounds EventPipeCreateProvider2;
        ICorProfilerInfo15 ICorProfilerInfo15_Vtbl:
            EnumerateGCHeapObjects;
        IMethodMalloc IMethodMalloc_Vtbl:
            Alloc;
        ICorProfilerFunctionControl ICorProfilerFunctionControl_Vtbl:
            SetCodegenFlags SetILFunctionBody SetILInstrumentedCodeMap;
        ICorProfilerAssemblyReferenceProvider ICorProfilerAssemblyReferenceProvider_Vtbl:
            AddAssemblyReference;
        ICorProfilerObjectEnum ICorProfilerObjectEnum_Vtbl:
            Skip Reset Clone GetCount Next;
        ICorProfilerFunctionEnum ICorProfilerFunctionEnum_Vtbl:
            Skip Reset Clone GetCount Next;
        ICorProfilerModuleEnum ICorProfilerModuleEnum_Vtbl:
            Skip Reset Clone GetCount Next;
        ICorProfilerThreadEnum ICorProfilerThreadEnum_Vtbl:
            Skip Reset Clone GetCount Next;
        ICorProfilerMethodEnum ICorProfilerMethodEnum_Vtbl:
            Skip Reset Clone GetCount Next;
        IMetaDataImport IMetaDataImport_Vtbl:
            CloseEnum CountEnum ResetEnum EnumTypeDefs EnumInterfaceImpls EnumTypeRefs FindTypeDefByName GetScopeProps
            GetModuleFromScope GetTypeDefProps GetInterfaceImplProps GetTypeRefProps ResolveTypeRef EnumMembers
            EnumMembersWithName EnumMethods EnumMethodsWithName EnumFields EnumFieldsWithName EnumParams
            EnumMemberRefs EnumMethodImpls EnumPermissionSets FindMember FindMethod FindField FindMemberRef
            GetMethodProps GetMemberRefProps EnumProperties EnumEvents GetEventProps EnumMethodSemantics
            GetMethodSemantics GetClassLayout GetFieldMarshal GetRVA GetPermissionSetProps GetSigFromToken
            GetModuleRefProps EnumModuleRefs GetTypeSpecFromToken GetNameFromToken EnumUnresolvedMethods GetUserString
            GetPinvokeMap EnumSignatures EnumTypeSpecs EnumUserStrings GetParamForMethodIndex EnumCustomAttributes
            GetCustomAttributeProps FindTypeRef GetMemberProps GetFieldProps GetPropertyProps GetParamProps
            GetCustomAttributeByName IsValidToken GetNestedClassProps GetNativeCallConvFromSig IsGlobal;
        IMetaDataImport2 IMetaDataImport2_Vtbl:
            EnumGenericParams GetGenericParamProps GetMethodSpecProps EnumGenericParamConstraints
            GetGenericParamConstraintProps GetPEKind GetVersionString EnumMethodSpecs;
        IMetaDataEmit IMetaDataEmit_Vtbl:
            SetModuleProps Save SaveToStream GetSaveSize DefineTypeDef DefineNestedType SetHandler DefineMethod
            DefineMethodImpl DefineTypeRefByName DefineImportType DefineMemberRef DefineImportMember DefineEvent
            SetClassLayout DeleteClassLayout SetFieldMarshal DeleteFieldMarshal DefinePermissionSet SetRVA
            GetTokenFromSig DefineModuleRef SetParent GetTokenFromTypeSpec SaveToMemory DefineUserString DeleteToken
            SetMethodProps SetTypeDefProps SetEventProps SetPermissionSetProps DefinePinvokeMap SetPinvokeMap
            DeletePinvokeMap DefineCustomAttribute SetCustomAttributeValue DefineField DefineProperty DefineParam
            SetFieldProps SetPropertyProps SetParamProps DefineSecurityAttributeSet ApplyEditAndContinue
            TranslateSigWithScope SetMethodImplFlags SetFieldRVA Merge MergeEnd;
        IMetaDataEmit2 IMetaDataEmit2_Vtbl:
            DefineMethodSpec GetDeltaSaveSize SaveDelta SaveDeltaToStream SaveDeltaToMemory DefineGenericParam
            SetGenericParamProps ResetENCLog;
        IMetaDataAssemblyImport IMetaDataAssemblyImport_Vtbl:
            GetAssemblyProps GetAssemblyRefProps GetFileProps GetExportedTypeProps GetManifestResourceProps
            EnumAssemblyRefs EnumFiles EnumExportedTypes EnumManifestResources GetAssemblyFromScope
            FindExportedTypeByName FindManifestResourceByName CloseEnum FindAssembliesByName;
        IMetaDataAssemblyEmit IMetaDataAssemblyEmit_Vtbl:
            DefineAssembly DefineAssemblyRef DefineFile DefineExportedType DefineManifestResource SetAssemblyProps
            SetAssemblyRefProps SetFileProps SetExportedTypeProps SetManifestResourceProps;
        IMetaDataDispenser IMetaDataDispenser_Vtbl:
            DefineScope OpenScope OpenScopeOnMemory;
        IMetaDataDispenserEx IMetaDataDispenserEx_Vtbl:
            SetOption GetOption OpenScopeOnITypeInfo GetCORSystemDirectory FindAssembly FindAssemblyModule;
        IMetaDataTables IMetaDataTables_Vtbl:
            GetStringHeapSize GetBlobHeapSize GetGuidHeapSize GetUserStringHeapSize GetNumTables GetTableIndex
            GetTableInfo GetColumnInfo GetCodedTokenInfo GetRow GetColumn GetString GetBlob GetGuid GetUserString
            GetNextString GetNextBlob GetNextGuid GetNextUserString;
        IMetaDataTables2 IMetaDataTables2_Vtbl:
            GetMetaDataStorage GetMetaDataStreamInfo;
    }
    rows
}

#[test]
fn ids_and_slots_are_those_of_the_table() {
    let expected = expected();
    let compiled = compiled();
    for (name, row) in &expected {
        assert_eq!(Some(row), compiled.get(name), "{name}");
    }
    assert_eq!(expected.len(), 44);
    assert_eq!(compiled.len(), expected.len());
}

/// Rows of the interface tables: name and id in backquotes, the slot range with a dash, names with
/// an optional return type.
fn reference(text: &str) -> BTreeMap<String, Row> {
    let mut rows = BTreeMap::new();
    for line in text.lines() {
        let cells: Vec<&str> = line.split('|').map(str::trim).collect();
        let [_, name, iid, slots, methods, _] = cells[..] else { continue };
        let (Some(name), Some((first, last))) = (quoted(name), slots.split_once('–')) else {
            continue;
        };
        let (Some(iid), Ok(first), Ok(last)) = (quoted(iid), first.parse(), last.parse()) else {
            continue;
        };
        let methods = methods.split(',').map(|method| method.trim());
        let methods = methods.map(|method| method.split(':').next().unwrap_or(method).to_owned());
        let row = Row { iid: iid.to_owned(), first, last, methods: methods.collect() };
        rows.insert(name.to_owned(), row);
    }
    rows
}

fn quoted(cell: &str) -> Option<&str> {
    cell.strip_prefix('`')?.strip_suffix('`')
}

#[test]
#[expect(clippy::print_stdout, reason = "the test says when it had nothing to compare with")]
fn the_table_is_that_of_the_reference() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared/reference/clr-profiling.md");
    if !path.exists() {
        println!("not compared: the reference is not beside this copy of the repository");
        return;
    }
    let text = std::fs::read_to_string(path).expect("the reference is readable");
    assert_eq!(reference(&text), expected());
}

#[test]
fn a_reference_row_is_read_whole() {
    let text = "| `IMetaDataX` | `7DAC8207-D3AE-4C75-9B67-92801A497D44` | 3–4 | CloseEnum:void, CountEnum |\nprose | with | bars\n";
    let rows = reference(text);
    let row = &rows["IMetaDataX"];
    assert_eq!((row.first, row.last), (3, 4));
    assert_eq!(row.methods, ["CloseEnum", "CountEnum"]);
    assert_eq!(rows.len(), 1);
}

/// The three methods that return something else than an `HRESULT`; a compile error when they don't.
#[test]
fn odd_results_have_their_types() {
    use clr_profiler_sys::windows_core::BOOL;
    use core::ffi::c_void;

    type Close = unsafe extern "system" fn(*mut c_void, *mut c_void);
    let _: fn(&IMetaDataImport_Vtbl) -> Close = |table| table.CloseEnum;
    let _: fn(&IMetaDataAssemblyImport_Vtbl) -> Close = |table| table.CloseEnum;
    type Valid = unsafe extern "system" fn(*mut c_void, u32) -> BOOL;
    let _: fn(&IMetaDataImport_Vtbl) -> Valid = |table| table.IsValidToken;
    type Alloc = unsafe extern "system" fn(*mut c_void, u32) -> *mut c_void;
    let _: fn(&IMethodMalloc_Vtbl) -> Alloc = |table| table.Alloc;
}
