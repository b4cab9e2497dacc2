//! Callbacks that the types follow: modules, classes, and when classes that were met may be looked into.

use clr_profiler::callback_args::DynamicIl;
use clr_profiler::{AssemblyId, Callbacks, ClassId, FunctionId, ModuleId, Result};

use super::types::Types;

impl Callbacks for Types {
    fn module_attached_to_assembly(&self, module: ModuleId, _assembly: AssemblyId) {
        self.module_loaded(module);
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

    /// Values that name classes that were met last are readable to the end.
    fn shutdown(&self) {
        self.look_into_pending();
    }

    fn jit_compilation_started(&self, _function: FunctionId, _is_safe_to_block: bool) {
        self.look_into_pending();
    }

    fn dynamic_method_jit_compilation_started(
        &self,
        _function: FunctionId,
        _is_safe_to_block: bool,
        _il: DynamicIl<'_>,
    ) {
        self.look_into_pending();
    }
}
