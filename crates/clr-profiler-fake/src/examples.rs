//! An example of every callback.

use clr_profiler::HResult;
use clr_profiler::callback_args::{
    GcReason, JitCache, MovedRange, RootFlags, RootKind, SuspendReason, TransitionReason,
};

use super::Event::*;
use super::{Event, FakeRuntime};
use crate::ids;

impl FakeRuntime {
    /// Returns one event of each callback, in the order of the trait, for profilers that treat all
    /// callbacks alike. The events refer to a module `Example` with a class `Example.Thing`, which
    /// this method adds to the program.
    #[must_use]
    pub fn one_of_each(self) -> (Self, Vec<Event>) {
        let mut runtime = self.module("Example").class("Example.Thing").method("Add").method("Sum");
        let (module, assembly) = (runtime.module_id("Example"), runtime.assembly_id("Example"));
        let (class, object) = (runtime.class_id("Example.Thing"), runtime.object("Example.Thing", 24));
        let (add, sum) = (runtime.function("Example.Thing::Add"), runtime.function("Example.Thing::Sum"));
        let (thread, domain, rejit) = (runtime.thread(1), ids::app_domain(1), ids::rejit(1));
        let (handle, provider, ok) = (ids::gc_handle(1), ids::provider(1), HResult::OK);
        let events = vec![
            ProfilerAttachComplete(),
            ProfilerDetachSucceeded(),
            Shutdown(),
            AppDomainCreationStarted(domain),
            AppDomainCreationFinished(domain, ok),
            AppDomainShutdownStarted(domain),
            AppDomainShutdownFinished(domain, ok),
            AssemblyLoadStarted(assembly),
            AssemblyLoadFinished(assembly, ok),
            AssemblyUnloadStarted(assembly),
            AssemblyUnloadFinished(assembly, ok),
            ModuleLoadStarted(module),
            ModuleLoadFinished(module, ok),
            ModuleUnloadStarted(module),
            ModuleUnloadFinished(module, ok),
            ModuleAttachedToAssembly(module, assembly),
            ClassLoadStarted(class),
            ClassLoadFinished(class, ok),
            ClassUnloadStarted(class),
            ClassUnloadFinished(class, ok),
            FunctionUnloadStarted(add),
            JITCompilationStarted(add),
            JITCompilationFinished(add, ok),
            JITCachedFunctionSearchStarted(add),
            JITCachedFunctionSearchFinished(add, JitCache::Found),
            JITFunctionPitched(add),
            JITInlining(add, sum),
            DynamicMethodJITCompilationStarted(add, vec![0x2a]),
            DynamicMethodJITCompilationFinished(add, ok),
            DynamicMethodUnloaded(add),
            ReJITCompilationStarted(add, rejit),
            GetReJITParameters(module, 0x0600_0001),
            ReJITCompilationFinished(add, rejit, ok),
            ReJITError(module, 0x0600_0001, add, HResult::FAIL),
            ThreadCreated(thread),
            ThreadAssignedToOSThread(thread, 7),
            ThreadNameChanged(thread, "example".into()),
            ThreadDestroyed(thread),
            UnmanagedToManagedTransition(add, TransitionReason::Call),
            ManagedToUnmanagedTransition(add, TransitionReason::Return),
            RuntimeSuspendStarted(SuspendReason::Gc),
            RuntimeSuspendFinished(),
            RuntimeSuspendAborted(),
            RuntimeResumeStarted(),
            RuntimeResumeFinished(),
            RuntimeThreadSuspended(thread),
            RuntimeThreadResumed(thread),
            GarbageCollectionStarted(vec![0], GcReason::Induced),
            GarbageCollectionFinished(),
            MovedReferences(vec![MovedRange::new(8, 16, 8)]),
            SurvivingReferences(vec![(8, 8)]),
            ObjectAllocated(object, class),
            ObjectsAllocatedByClass(vec![(class, 1)]),
            ObjectReferences(object, class, vec![object]),
            RootReferences(vec![object]),
            RootReferences2(vec![(object, RootKind::Stack, RootFlags::from_raw(1), 7)]),
            ConditionalWeakTableElementReferences(vec![(object, object, handle)]),
            FinalizeableObjectQueued(object),
            HandleCreated(handle, object),
            HandleDestroyed(handle),
            ExceptionThrown(object),
            ExceptionSearchFunctionEnter(add),
            ExceptionSearchFunctionLeave(),
            ExceptionSearchFilterEnter(add),
            ExceptionSearchFilterLeave(),
            ExceptionSearchCatcherFound(add),
            ExceptionOSHandlerEnter(),
            ExceptionOSHandlerLeave(),
            ExceptionUnwindFunctionEnter(add),
            ExceptionUnwindFunctionLeave(),
            ExceptionUnwindFinallyEnter(add),
            ExceptionUnwindFinallyLeave(),
            ExceptionCatcherEnter(add, object),
            ExceptionCatcherLeave(),
            ExceptionCLRCatcherFound(),
            ExceptionCLRCatcherExecute(),
            COMClassicVTableCreated(class, 1, 8, 2),
            COMClassicVTableDestroyed(class, 1, 8),
            RemotingClientInvocationStarted(),
            RemotingClientSendingMessage(1),
            RemotingClientReceivingReply(1),
            RemotingClientInvocationFinished(),
            RemotingServerReceivingMessage(1),
            RemotingServerInvocationStarted(),
            RemotingServerInvocationReturned(),
            RemotingServerSendingReply(1),
            GetAssemblyReferences("/example/Example.dll".into()),
            ModuleInMemorySymbolsUpdated(module),
            EventPipeEventDelivered(provider, 1, vec![1]),
            EventPipeProviderCreated(provider),
        ];
        (runtime, events)
    }
}
