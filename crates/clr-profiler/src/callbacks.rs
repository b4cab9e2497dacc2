//! All callbacks alike, for profilers that treat every notification in the same way, such as a log.
//!
//! [`for_each_callback!`](crate::for_each_callback) hands the methods of [`Profiler`](crate::Profiler) to a macro of the
//! profiler's own, which writes them in one go; [`Argument`] says any of their arguments in words. The example `logging`
//! is made of the two.

use clr_profiler_sys::GUID;

use crate::notice::{
    DynamicIl, EventPipeEvent, FunctionControl, GcReason, Generations, JitCache, MovedRanges, ObjectsOfClass, Roots,
    SurvivingRanges, SuspendReason, TransitionReason, WeakTableElements,
};
use crate::{
    AppDomainId, AssemblyId, ClassId, EventPipeProviderId, FunctionId, GcHandleId, ModuleId, NameCache, ObjectId,
    ProfilerInfo, ReJitId, Result, ThreadId, Token,
};

/// Calls a macro with all methods of [`Profiler`](crate::Profiler), in the order of the trait, except those a profiler answers
/// before it runs (`initialize`, `initialize_for_attach`, `setup_refused`, `load_as_notification_only`) and the second form of
/// `exception_thrown`, `exception_thrown_in`.
///
/// An entry is `MODE NAME(ARGUMENT: TYPE, ...);` or `MODE NAME(...) -> TYPE = DEFAULT;`. The mode says what may be done
/// about names: `asks`: the runtime may be asked for them; `knows`: it may not, because a collection runs or the thing is
/// half there; `unloads`: as `knows`, and the argument's names must be [forgotten], since the
/// runtime will use its identifier again.
///
/// ```
/// use std::sync::Mutex;
/// use clr_profiler::callbacks::Argument;
/// use clr_profiler::{Events, Profiler, ProfilerInfo, Result, Setup};
///
/// #[derive(Default)]
/// struct Names(Mutex<Vec<&'static str>>);
///
/// macro_rules! remember {
///     ($($mode:ident $name:ident($($argument:ident: $type:ty),*) $(-> $answer:ty = $default:expr)?;)*) => {$(
///         fn $name(&self $(, $argument: $type)*) $(-> $answer)? {
///             let _arguments: &[(&str, &dyn Argument)] = &[$((stringify!($argument), &$argument)),*];
///             self.0.lock().unwrap().push(stringify!($name));
///             $($default)?
///         }
///     )*};
/// }
///
/// impl Profiler for Names {
///     fn initialize(&self, _info: &ProfilerInfo) -> Result<Setup> {
///         Ok(Setup::new(Events::CLASS_LOADS))
///     }
///     clr_profiler::for_each_callback!(remember);
/// }
/// ```
///
/// [forgotten]: crate::callbacks::Argument::forget
#[macro_export]
macro_rules! for_each_callback {
    ($macro:ident) => {
        $macro! {
            asks profiler_attach_complete();
            asks profiler_detach_succeeded();
            asks shutdown();
            knows app_domain_creation_started(app_domain: $crate::AppDomainId);
            asks app_domain_creation_finished(app_domain: $crate::AppDomainId, status: $crate::Result<()>);
            asks app_domain_shutdown_started(app_domain: $crate::AppDomainId);
            knows app_domain_shutdown_finished(app_domain: $crate::AppDomainId, status: $crate::Result<()>);
            knows assembly_load_started(assembly: $crate::AssemblyId);
            asks assembly_load_finished(assembly: $crate::AssemblyId, status: $crate::Result<()>);
            knows assembly_unload_started(assembly: $crate::AssemblyId);
            knows assembly_unload_finished(assembly: $crate::AssemblyId, status: $crate::Result<()>);
            knows module_load_started(module: $crate::ModuleId);
            asks module_load_finished(module: $crate::ModuleId, status: $crate::Result<()>);
            unloads module_unload_started(module: $crate::ModuleId);
            knows module_unload_finished(module: $crate::ModuleId, status: $crate::Result<()>);
            asks module_attached_to_assembly(module: $crate::ModuleId, assembly: $crate::AssemblyId);
            knows class_load_started(class: $crate::ClassId);
            asks class_load_finished(class: $crate::ClassId, status: $crate::Result<()>);
            knows class_unload_started(class: $crate::ClassId);
            knows class_unload_finished(class: $crate::ClassId, status: $crate::Result<()>);
            knows function_unload_started(function: $crate::FunctionId);
            asks jit_compilation_started(function: $crate::FunctionId, is_safe_to_block: bool);
            asks jit_compilation_finished(function: $crate::FunctionId, status: $crate::Result<()>, is_safe_to_block: bool);
            asks jit_cached_function_search_started(function: $crate::FunctionId) -> bool = true;
            asks jit_cached_function_search_finished(function: $crate::FunctionId, result: $crate::notice::JitCache);
            knows jit_function_pitched(function: $crate::FunctionId);
            asks jit_inlining(caller: $crate::FunctionId, callee: $crate::FunctionId) -> $crate::Inlining = $crate::Inlining::Allow;
            asks dynamic_method_jit_compilation_started(function: $crate::FunctionId, is_safe_to_block: bool, il: $crate::notice::DynamicIl<'_>);
            asks dynamic_method_jit_compilation_finished(function: $crate::FunctionId, status: $crate::Result<()>, is_safe_to_block: bool);
            unloads dynamic_method_unloaded(function: $crate::FunctionId);
            asks rejit_compilation_started(function: $crate::FunctionId, rejit: $crate::ReJitId, is_safe_to_block: bool);
            asks get_rejit_parameters(module: $crate::ModuleId, method: $crate::Token, control: &$crate::notice::FunctionControl<'_>) -> $crate::Result<()> = Ok(());
            asks rejit_compilation_finished(function: $crate::FunctionId, rejit: $crate::ReJitId, status: $crate::Result<()>, is_safe_to_block: bool);
            asks rejit_error(module: $crate::ModuleId, method: $crate::Token, function: $crate::FunctionId, status: $crate::Result<()>);
            knows thread_created(thread: $crate::ThreadId);
            knows thread_destroyed(thread: $crate::ThreadId);
            knows thread_assigned_to_os_thread(thread: $crate::ThreadId, os_thread: u32);
            knows thread_name_changed(thread: $crate::ThreadId, name: &str);
            asks unmanaged_to_managed_transition(function: Option<$crate::FunctionId>, reason: $crate::notice::TransitionReason);
            asks managed_to_unmanaged_transition(function: Option<$crate::FunctionId>, reason: $crate::notice::TransitionReason);
            knows runtime_suspend_started(reason: $crate::notice::SuspendReason);
            knows runtime_suspend_finished();
            knows runtime_suspend_aborted();
            knows runtime_resume_started();
            knows runtime_resume_finished();
            knows runtime_thread_suspended(thread: $crate::ThreadId);
            knows runtime_thread_resumed(thread: $crate::ThreadId);
            knows garbage_collection_started(generations: $crate::notice::Generations<'_>, reason: $crate::notice::GcReason);
            knows garbage_collection_finished();
            knows moved_references(ranges: $crate::notice::MovedRanges<'_>);
            knows surviving_references(ranges: $crate::notice::SurvivingRanges<'_>);
            knows object_allocated(object: $crate::ObjectId<'_>, class: $crate::ClassId);
            knows objects_allocated_by_class(objects: $crate::notice::ObjectsOfClass<'_>);
            knows object_references(object: $crate::ObjectId<'_>, class: $crate::ClassId, references: &[$crate::ObjectId<'_>]) -> $crate::Result<()> = Ok(());
            knows root_references(roots: &[$crate::ObjectId<'_>]);
            knows root_references2(roots: $crate::notice::Roots<'_>);
            knows conditional_weak_table_element_references(elements: $crate::notice::WeakTableElements<'_>);
            knows finalizable_object_queued(object: $crate::ObjectId<'_>, critical: bool);
            knows handle_created(handle: $crate::GcHandleId, object: $crate::ObjectId<'_>);
            knows handle_destroyed(handle: $crate::GcHandleId);
            asks exception_thrown(exception: $crate::ObjectId<'_>);
            asks exception_search_function_enter(function: $crate::FunctionId);
            knows exception_search_function_leave();
            asks exception_search_filter_enter(function: $crate::FunctionId);
            knows exception_search_filter_leave();
            asks exception_search_catcher_found(function: $crate::FunctionId);
            knows exception_os_handler_enter();
            knows exception_os_handler_leave();
            asks exception_unwind_function_enter(function: $crate::FunctionId);
            knows exception_unwind_function_leave();
            asks exception_unwind_finally_enter(function: $crate::FunctionId);
            knows exception_unwind_finally_leave();
            asks exception_catcher_enter(function: $crate::FunctionId, exception: $crate::ObjectId<'_>);
            knows exception_catcher_leave();
            knows exception_clr_catcher_found();
            knows exception_clr_catcher_execute();
            knows com_classic_vtable_created(class: $crate::ClassId, interface: &$crate::sys::GUID, vtable: usize, slots: u32);
            knows com_classic_vtable_destroyed(class: $crate::ClassId, interface: &$crate::sys::GUID, vtable: usize);
            knows remoting_client_invocation_started();
            knows remoting_client_sending_message(cookie: &$crate::sys::GUID, is_async: bool);
            knows remoting_client_receiving_reply(cookie: &$crate::sys::GUID, is_async: bool);
            knows remoting_client_invocation_finished();
            knows remoting_server_receiving_message(cookie: &$crate::sys::GUID, is_async: bool);
            knows remoting_server_invocation_started();
            knows remoting_server_invocation_returned();
            knows remoting_server_sending_reply(cookie: &$crate::sys::GUID, is_async: bool);
            knows get_assembly_references(assembly_path: &str);
            knows module_in_memory_symbols_updated(module: $crate::ModuleId);
            knows event_pipe_event_delivered(event: &$crate::notice::EventPipeEvent<'_>);
            knows event_pipe_provider_created(provider: $crate::EventPipeProviderId);
        }
    };
}

/// An argument of a callback, in words.
pub trait Argument {
    /// Its name as far as `names` knows it, otherwise its number. Asks nobody: good in every callback.
    fn known(&self, names: &NameCache) -> String;

    /// Its name, which the runtime is asked for; its number where it has none yet. For callbacks of the mode `asks`.
    fn ask(&self, info: &ProfilerInfo, names: &NameCache) -> String {
        let _ = info;
        self.known(names)
    }

    /// Makes `names` forget what will soon mean something else. For callbacks of the mode `unloads`.
    fn forget(&self, names: &NameCache) {
        let _ = names;
    }
}

/// `name`, or the number where there is none.
fn or_number(name: Option<impl Into<String>>, number: usize) -> String {
    name.map_or_else(|| format!("{number:#x}"), Into::into)
}

impl Argument for FunctionId {
    fn known(&self, names: &NameCache) -> String {
        or_number(names.known_function(*self).map(|name| name.signature.clone()), self.0)
    }

    fn ask(&self, info: &ProfilerInfo, names: &NameCache) -> String {
        names.function(info, *self).signature.clone()
    }

    fn forget(&self, names: &NameCache) {
        names.function_unloaded(*self);
    }
}

impl Argument for Option<FunctionId> {
    fn known(&self, names: &NameCache) -> String {
        self.map_or_else(|| "none".into(), |function| function.known(names))
    }

    fn ask(&self, info: &ProfilerInfo, names: &NameCache) -> String {
        self.map_or_else(|| "none".into(), |function| function.ask(info, names))
    }
}

impl Argument for ClassId {
    fn known(&self, names: &NameCache) -> String {
        or_number(names.known_class(*self).map(|name| name.to_string()), self.0)
    }

    fn ask(&self, info: &ProfilerInfo, names: &NameCache) -> String {
        or_number(Some(names.class(info, *self).to_string()).filter(|name| name != "?"), self.0)
    }
}

impl Argument for ModuleId {
    fn known(&self, _names: &NameCache) -> String {
        or_number(None::<String>, self.0)
    }

    fn ask(&self, info: &ProfilerInfo, _names: &NameCache) -> String {
        or_number(info.module_info(*self).ok().map(|module| module.path), self.0)
    }

    fn forget(&self, names: &NameCache) {
        names.module_unloaded(*self);
    }
}

impl Argument for AssemblyId {
    fn known(&self, _names: &NameCache) -> String {
        or_number(None::<String>, self.0)
    }

    fn ask(&self, info: &ProfilerInfo, _names: &NameCache) -> String {
        or_number(info.assembly_info(*self).ok().map(|assembly| assembly.name), self.0)
    }
}

impl Argument for AppDomainId {
    fn known(&self, _names: &NameCache) -> String {
        or_number(None::<String>, self.0)
    }

    fn ask(&self, info: &ProfilerInfo, _names: &NameCache) -> String {
        or_number(info.app_domain_info(*self).ok().map(|domain| domain.name), self.0)
    }
}

/// An object has no name; where the runtime may be asked, it is told by its class.
impl Argument for ObjectId<'_> {
    fn known(&self, _names: &NameCache) -> String {
        or_number(None::<String>, self.address())
    }

    fn ask(&self, info: &ProfilerInfo, names: &NameCache) -> String {
        let class = info.class_of_object(*self).ok().map(|class| class.ask(info, names));
        or_number(class, self.address())
    }
}

impl Argument for Result<()> {
    fn known(&self, _names: &NameCache) -> String {
        self.as_ref().map_or_else(|error| format!("failed: {error}"), |()| "ok".into())
    }
}

/// Things that one expression says.
macro_rules! said {
    ($($type:ty: |$it:ident| $words:expr;)*) => {
        $(impl Argument for $type {
            fn known(&self, _names: &NameCache) -> String {
                let $it = self;
                $words
            }
        })*
    };
}

said! {
    bool: |it| it.to_string();
    u32: |it| it.to_string();
    usize: |it| format!("{it:#x}");
    &GUID: |it| format!("{{{it:?}}}");
    &str: |it| (*it).to_owned();
    Token: |it| format!("{:#010x}", it.0);
    ThreadId: |it| format!("{:#x}", it.0);
    ReJitId: |it| it.0.to_string();
    GcHandleId: |it| format!("{:#x}", it.0);
    EventPipeProviderId: |it| format!("{:#x}", it.0);
    JitCache: |it| it.to_string();
    SuspendReason: |it| it.to_string();
    TransitionReason: |it| it.to_string();
    GcReason: |it| it.to_string();
    Generations<'_>: |it| list(it.iter());
    DynamicIl<'_>: |it| format!("{} bytes", it.bytes().len());
    &FunctionControl<'_>: |_it| "unchanged".to_owned();
    &EventPipeEvent<'_>: |it| format!("{} of {:#x}, {} bytes", it.event_id, it.provider.0, it.data.len());
    &[ObjectId<'_>]: |it| list(it.iter().map(|object| format!("{:#x}", object.address())));
    MovedRanges<'_>: |it| list(it.iter().map(|r| format!("{:#x}->{:#x}+{}", r.old_start, r.new_start, r.bytes)));
    SurvivingRanges<'_>: |it| list(it.iter().map(|(start, bytes)| format!("{start:#x}+{bytes}")));
    Roots<'_>: |it| list(it.iter().map(|root| format!("{:#x} ({})", root.object.address(), root.kind)));
    WeakTableElements<'_>: |it| list(it.iter().map(|(key, value, _)| format!("{:#x}->{:#x}", key.address(), value.address())));
}

impl Argument for ObjectsOfClass<'_> {
    fn known(&self, names: &NameCache) -> String {
        list(self.iter().map(|(class, count)| format!("{count} {}", class.known(names))))
    }
}

fn list(items: impl Iterator<Item = impl ToString>) -> String {
    let words: Vec<String> = items.map(|item| item.to_string()).collect();
    if words.is_empty() { "none".into() } else { words.join(", ") }
}

#[cfg(test)]
mod tests {
    /// The method names of the trait, from its source.
    fn methods_of_the_trait() -> Vec<&'static str> {
        let source = include_str!("profiler.rs");
        let (_, body) = source.split_once("pub trait Profiler").unwrap();
        body.lines().filter_map(|line| line.strip_prefix("    fn ")?.split('(').next()).collect()
    }

    macro_rules! names {
        ($($mode:ident $name:ident($($argument:ident: $type:ty),*) $(-> $answer:ty = $default:expr)?;)*) => {
            [$(stringify!($name)),*]
        };
    }

    #[test]
    fn every_method_of_the_trait_is_listed_in_its_order() {
        let at_the_start = ["initialize", "setup_refused", "initialize_for_attach", "load_as_notification_only"];
        let mut expected = methods_of_the_trait();
        // The other form of `exception_thrown`, which it calls by default.
        expected.retain(|name| !at_the_start.contains(name) && *name != "exception_thrown_in");
        assert_eq!(for_each_callback!(names)[..], expected);
        assert!(expected.len() > 70, "{expected:?}");
    }
}
