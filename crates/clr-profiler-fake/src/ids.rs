//! Identifiers that the fake runtime hands out.
//!
//! They are numbers of its own, which it looks up before it uses them: none is ever taken for an
//! address, whatever a test or a profiler makes of it.

use clr_profiler::{
    AppDomainId, AssemblyId, ClassId, EventPipeProviderId, FunctionId, GcHandleId, ModuleId, ReJitId, ThreadId,
};

macro_rules! ids {
    ($($name:ident: $id:ident;)*) => {$(
        pub(crate) const fn $name(number: usize) -> $id {
            // SAFETY: an identifier of the fake runtime, which looks it up.
            unsafe { $id::from_raw(number) }
        }
    )*};
}

ids! {
    app_domain: AppDomainId;
    assembly: AssemblyId;
    class: ClassId;
    function: FunctionId;
    gc_handle: GcHandleId;
    module: ModuleId;
    provider: EventPipeProviderId;
    rejit: ReJitId;
    thread: ThreadId;
}
