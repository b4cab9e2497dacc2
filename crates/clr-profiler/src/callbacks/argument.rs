//! Arguments of callbacks as text.

use crate::callback_args::{
    DynamicIl, EventPipeEvent, FunctionControl, GcReason, Generations, JitCache, MovedRanges, ObjectsOfClass, Roots,
    SurvivingRanges, SuspendReason, TransitionReason, WeakTableElements,
};
use crate::{
    AppDomainId, AssemblyId, ClassId, EventPipeProviderId, FunctionId, GcHandleId, Guid, ModuleId, NameCache, ObjectId,
    ProfilerInfo, ReJitId, Result, ThreadId, Token,
};

/// An argument of a callback as text.
pub trait Argument {
    /// The name if `names` has it, otherwise the number. Makes no queries, so every callback may
    /// call it.
    fn known(&self, names: &NameCache) -> String;

    /// Queries the runtime for the name; returns the number if there is no name yet. Only for
    /// callbacks of the mode `asks`.
    fn ask(&self, info: &ProfilerInfo, names: &NameCache) -> String {
        let _ = info;
        self.known(names)
    }

    /// Removes the name of this identifier from `names`, because the runtime will reuse the
    /// identifier. Only for callbacks of the mode `unloads`.
    fn forget(&self, names: &NameCache) {
        let _ = names;
    }
}

/// `name`, or the number if there is no name.
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

/// An object has no name. Where the runtime may be queried, the text is the name of its class.
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

/// Argument types that one expression formats.
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
    &Guid: |it| format!("{{{it:?}}}");
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
