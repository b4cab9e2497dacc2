//! Callbacks whose record follows from the table of callbacks. The callback's name gives the kind
//! of the record, and each argument gives a field.

use clr_profiler::Guid;
use clr_profiler::{AppDomainId, AssemblyId, ClassId, FunctionId, GcHandleId, ModuleId, ObjectId, ReJitId, ThreadId};
use clrscope_recording::events::{Kind, Tag, Value};

use super::{Events, outcome};
use crate::services::dictionary::Resolve;

/// The fields of a record, in order.
#[derive(Default)]
pub(super) struct Fields {
    fields: [Option<(Tag, Value<'static>)>; Self::MOST],
    count: usize,
}

impl Fields {
    /// Most fields of a callback: function, number, status and the name of the status.
    const MOST: usize = 4;

    fn put(&mut self, tag: Tag, value: impl Into<Value<'static>>) {
        self.fields[self.count] = Some((tag, value.into()));
        self.count += 1;
    }
}

/// An argument of a callback that can be turned into fields.
pub(super) trait LoggedArgument {
    /// Adds the argument to `fields`. `asks`: the runtime may be queried for the argument's name.
    fn log(self, events: &Events, asks: bool, fields: &mut Fields);
}

/// Identifiers of loaded entities.
macro_rules! loaded {
    ($($type:ident = $tag:ident),*) => {
        $(impl LoggedArgument for $type {
            fn log(self, events: &Events, asks: bool, fields: &mut Fields) {
                let entity = if asks { events.loaded(Tag::$tag, self.as_raw()) } else { events.bare(Tag::$tag, self.as_raw()) };
                fields.put(Tag::$tag, entity);
            }
        })*
    };
}

loaded!(AppDomainId = APP_DOMAIN, AssemblyId = ASSEMBLY, ModuleId = MODULE, ClassId = CLASS);

impl LoggedArgument for FunctionId {
    fn log(self, events: &Events, asks: bool, fields: &mut Fields) {
        let function = if asks { events.function(self) } else { events.names.function(self, Resolve::Deferred) };
        fields.put(Tag::FUNCTION, function);
    }
}

impl LoggedArgument for ThreadId {
    fn log(self, events: &Events, _asks: bool, fields: &mut Fields) {
        fields.put(Tag::THREAD, events.thread(self));
    }
}

impl LoggedArgument for ReJitId {
    fn log(self, _events: &Events, _asks: bool, fields: &mut Fields) {
        fields.put(Tag::REJIT, self.as_raw());
    }
}

impl LoggedArgument for GcHandleId {
    fn log(self, _events: &Events, _asks: bool, fields: &mut Fields) {
        fields.put(Tag::HANDLE, self.as_raw());
    }
}

impl LoggedArgument for ObjectId<'_> {
    fn log(self, _events: &Events, _asks: bool, fields: &mut Fields) {
        fields.put(Tag::OBJECT, self.address());
    }
}

/// A status is its number and, for a failure, its name.
impl LoggedArgument for clr_profiler::Result<()> {
    fn log(self, _events: &Events, _asks: bool, fields: &mut Fields) {
        outcome(&self).into_iter().for_each(|(tag, value)| fields.put(tag, value));
    }
}

/// Whether a callback may block is not recorded.
impl LoggedArgument for bool {
    fn log(self, _events: &Events, _asks: bool, _fields: &mut Fields) {}
}

/// Identifiers of calls between processes are not recorded.
impl LoggedArgument for &Guid {
    fn log(self, _events: &Events, _asks: bool, _fields: &mut Fields) {}
}

impl Events {
    /// Writes a record if its kind is wanted. The fields are computed only then.
    #[inline]
    pub(super) fn log(&self, kind: Kind, fill: impl FnOnce(&mut Fields)) {
        if !self.wants(kind) {
            return;
        }
        let mut fields = Fields::default();
        fill(&mut fields);
        let filled = fields.fields.map(|field| field.unwrap_or((Tag::COUNT, Value::Number(0))));
        self.write(kind, &filled[..fields.count]);
    }
}

/// Makes the macro `log_one!`, which writes one method of the trait.
macro_rules! define_log {
    ($($mode:ident $runtime_name:ident as $name:ident($($argument:ident: $type:ty),*) $(-> $answer:ty = $default:expr)?;)*) => {
        macro_rules! log_one {
            $(($name) => {
                fn $name(&self $(, $argument: $type)*) $(-> $answer)? {
                    const KIND: clrscope_recording::events::Kind =
                        clrscope_recording::events::Kind::named(stringify!($runtime_name)).expect("a kind of this name");
                    self.log(KIND, |_fields| {
                        let _asks = stringify!($mode) == "asks";
                        $($crate::instruments::events::from_table::LoggedArgument::log($argument, self, _asks, _fields);)*
                    });
                    $($default)?
                }
            };)*
        }
    };
}

clr_profiler::for_each_callback!(define_log);

/// Writes several methods of the trait.
macro_rules! log_all {
    ($($name:ident)*) => { $(log_one!($name);)* };
}
