//! Trace and span ids of requests, from .NET's own activities (`System.Diagnostics`), if the
//! program has any.
//!
//! They are read from the activity's fields, since its properties would allocate texts. A program
//! may bring its own copy of the library besides the runtime's, so there may be several classes of
//! activities.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};

use clr_profiler::{ModuleId, NameCache, ProfilerInfo};

use super::members::Members;
use super::objects::KnownField;

/// The library, the class and its fields: texts of hexadecimal digits.
const LIBRARY: &str = "System.Diagnostics.DiagnosticSource";
pub(super) const ACTIVITY: &str = "System.Diagnostics.Activity";
const TRACE: &str = "_traceId";
const SPAN: &str = "_spanId";
/// Most libraries of activities in a process.
const MOST: usize = 4;

/// Ids of trace and span: the trace's higher half, its lower half, and the span. 0 for none.
pub(super) type TraceNumbers = [u64; 3];

#[derive(Debug)]
struct ActivityClass {
    trace: KnownField,
    span: KnownField,
}

/// The classes of activities of the process.
#[derive(Debug)]
pub(super) struct Activities {
    classes: [ActivityClass; MOST],
    count: AtomicUsize,
    /// Modules that were examined.
    modules: Mutex<Vec<ModuleId>>,
}

/// The activities of the process. Inserted code uses this value.
pub(super) static ACTIVITIES: Activities = Activities {
    classes: [const { ActivityClass { trace: KnownField::unknown(), span: KnownField::unknown() } }; MOST],
    count: AtomicUsize::new(0),
    modules: Mutex::new(Vec::new()),
};

impl Activities {
    /// Finds the fields with the numbers of activities. Call it in the callbacks about the
    /// compilation of a method that uses activities, as the types are loaded then.
    pub(super) fn look_into(&self, info: &ProfilerInfo, names: &NameCache) {
        let is_library = |module: &ModuleId| names.assembly(info, *module).is_ok_and(|name| &*name == LIBRARY);
        for module in info.modules().unwrap_or_default().into_iter().filter(is_library) {
            let Some((class, [trace, span])) = self.claim(module).then(|| fields(info, module, names)).flatten() else {
                continue;
            };
            if let Some(known) = self.classes.get(self.count.fetch_add(1, Ordering::Relaxed)) {
                known.trace.know(class, trace);
                known.span.know(class, span);
            }
        }
    }

    /// Whether the module is examined for the first time.
    fn claim(&self, module: ModuleId) -> bool {
        let mut modules = self.modules.lock().unwrap_or_else(PoisonError::into_inner);
        let is_new = modules.len() < MOST && !modules.contains(&module);
        is_new.then(|| modules.push(module)).is_some()
    }

    /// Ids of trace and span of an activity; all 0 if there are none.
    ///
    /// # Safety
    /// The address must be null or that of a live object, which does not move meanwhile.
    pub(super) unsafe fn numbers(&self, activity: usize) -> TraceNumbers {
        // SAFETY: the caller's promise.
        let texts = self.classes.iter().map(|class| unsafe { (class.trace.text(activity), class.span.text(activity)) });
        let mut numbers = texts.filter_map(|(trace, span)| {
            let (high, low) = trace.split_at_checked(16)?;
            Some([hexadecimal(high)?, hexadecimal(low)?, hexadecimal(span)?])
        });
        numbers.next().unwrap_or_default()
    }
}

/// The class of a library's activities, and the offsets of its fields.
fn fields(info: &ProfilerInfo, module: ModuleId, names: &NameCache) -> Option<(usize, [u32; 2])> {
    let metadata = names.metadata(info, module).ok()?;
    let members = Members(&metadata);
    members.offsets(info, module, members.own_type(ACTIVITY, None).ok()?, [TRACE, SPAN])
}

/// The number with these 16 hexadecimal digits.
fn hexadecimal(digits: &[u16]) -> Option<u64> {
    let digit = |unit: &u16| char::from_u32(u32::from(*unit))?.to_digit(16).map(u64::from);
    let add = |number, unit| Some(number << 4 | digit(unit)?);
    digits.iter().try_fold(0_u64, add).filter(|_| digits.len() == 16)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_read_from_their_digits() {
        let units = |text: &str| text.encode_utf16().collect::<Vec<u16>>();
        assert_eq!(hexadecimal(&units("00f067aa0ba902b7")), Some(0x00f0_67aa_0ba9_02b7));
        assert_eq!(["", "00f067aa0ba902b", "00f067aa0ba902bx"].map(|text| hexadecimal(&units(text))), [None; 3]);
    }
}
