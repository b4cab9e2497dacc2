//! Callbacks that keep the types up to date: about modules, classes and collections. Other
//! callbacks are used as moments at which the runtime may be queried about addresses that hooks
//! have seen.

use clr_profiler::callback_args::{DynamicIl, GcReason, Generations};
use clr_profiler::{AssemblyId, Callbacks, ClassId, FunctionId, ModuleFlags, ModuleId, ProfilerInfo, Result};

use super::types::Types;
use super::{collections, delegates, known_pages};

impl Callbacks for Types {
    /// Registers the modules that are already loaded. A module that is loaded in the meantime may
    /// be reported twice.
    fn profiler_attach_complete(&self) {
        self.info().modules().unwrap_or_default().into_iter().for_each(|module| module_is_there(self, module));
    }

    fn module_attached_to_assembly(&self, module: ModuleId, _assembly: AssemblyId) {
        module_is_there(self, module);
    }

    fn class_load_finished(&self, class: ClassId, status: Result<()>) {
        if status.is_ok() {
            self.class_loaded(class);
        }
    }

    fn module_unload_started(&self, module: ModuleId) {
        self.module_unloads(module);
    }

    fn module_unload_finished(&self, module: ModuleId, _status: Result<()>) {
        self.module_unloaded(module);
    }

    /// Describes the classes that were seen last, so that recorded values that name them stay
    /// readable.
    fn shutdown(&self) {
        self.look_into_pending();
        self.name_delegates();
    }

    fn garbage_collection_started(&self, _generations: Generations<'_>, _reason: GcReason) {
        collections::started();
    }

    fn garbage_collection_finished(&self) {
        collections::finished();
        look_at_heap(self.info());
    }

    fn jit_compilation_started(&self, _function: FunctionId, _is_safe_to_block: bool) {
        self.look_into_pending();
        if delegates::is_time() {
            self.name_delegates();
        }
        look_at_grown_heap(self.info());
    }

    fn dynamic_method_jit_compilation_started(
        &self,
        _function: FunctionId,
        _is_safe_to_block: bool,
        _il: DynamicIl<'_>,
    ) {
        self.look_into_pending();
        if delegates::is_time() {
            self.name_delegates();
        }
        look_at_grown_heap(self.info());
    }

    fn profiler_detach_succeeded(&self) {
        self.forget_names();
    }
}

fn module_is_there(types: &Types, module: ModuleId) {
    types.module_loaded(module);
    let info = types.info().module_info(module);
    let stays = |flags: ModuleFlags| !flags.is_collectible() && !flags.is_dynamic() && !flags.is_flat();
    if let Some(info) = info.ok().filter(|info| stays(info.flags)) {
        known_pages::image_stays(info.base_address);
    }
}

/// Learns the location of the heap.
fn look_at_heap(info: &ProfilerInfo) {
    let Some(epoch) = collections::epoch() else { return };
    if let Ok(ranges) = info.generation_bounds() {
        known_pages::heap_is(&ranges, epoch);
    }
}

/// Learns the location of the heap if hooks may have seen a new part of it. Not during a
/// collection, as other threads may hold the lock of the objects that are never collected.
fn look_at_grown_heap(info: &ProfilerInfo) {
    if known_pages::is_behind() {
        look_at_heap(info);
        // .NET 8 and later have such objects.
        if let Ok(ranges) = info.non_gc_heap_bounds() {
            known_pages::stay(&ranges);
        }
    }
}
