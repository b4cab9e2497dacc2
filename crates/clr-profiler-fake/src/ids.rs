//! Identifiers that the fake runtime hands out.
//!
//! Identifiers are numbers that the fake runtime looks up before use. It never treats one as an
//! address, so an invalid identifier from a test or profiler is safe.

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
