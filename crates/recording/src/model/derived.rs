//! Values that readers derive from a process: computed once, and stored with the process.

use std::any::{Any, TypeId};
use std::collections::HashMap;
use std::fmt;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

/// A value of any type; empty until first requested.
type Slot = Arc<OnceLock<Arc<dyn Any + Send + Sync>>>;

/// Cached values computed from a process, by name and type. A copy of a process starts without any.
/// After the first one is computed, the process must not change: change a copy instead.
#[derive(Default)]
pub struct Derived {
    values: Mutex<HashMap<(String, TypeId), Slot>>,
    /// The one value that can be borrowed for as long as the process lives.
    borrowed: OnceLock<Box<dyn Any + Send + Sync>>,
}

impl Derived {
    /// The value with this name; the first call computes it with `make`, and other callers wait for
    /// it. `make` may request other names.
    pub fn get<T: Any + Send + Sync>(&self, name: &str, make: impl FnOnce() -> T) -> Arc<T> {
        let slot = {
            let mut known = self.values.lock().unwrap_or_else(PoisonError::into_inner);
            Slot::clone(known.entry((name.to_owned(), TypeId::of::<T>())).or_default())
        };
        let value = Arc::clone(slot.get_or_init(|| Arc::new(make())));
        value.downcast().expect("the type is part of the name")
    }

    /// Whether the value with this name exists, so that `get` returns at once.
    pub fn has<T: Any + Send + Sync>(&self, name: &str) -> bool {
        let known = self.values.lock().unwrap_or_else(PoisonError::into_inner);
        known.get(&(name.to_owned(), TypeId::of::<T>())).is_some_and(|slot| slot.get().is_some())
    }

    /// The one value that can be borrowed as long as the process lives; the first call makes it.
    ///
    /// # Panics
    /// When calls ask for values of different types.
    pub(super) fn borrowed<T: Any + Send + Sync>(&self, make: impl FnOnce() -> T) -> &T {
        self.borrowed.get_or_init(|| Box::new(make())).downcast_ref().expect("one type alone")
    }
}

impl Clone for Derived {
    fn clone(&self) -> Self {
        Self::default()
    }
}

impl fmt::Debug for Derived {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Derived")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_value_is_made_once_and_a_copy_has_none() {
        let derived = Derived::default();
        let asked = |of: &Derived, value: u32| *of.get("length", || derived_from(of, value));
        fn derived_from(of: &Derived, value: u32) -> u32 {
            *of.get("half", || value / 2) * 2
        }
        assert_eq!((asked(&derived, 6), asked(&derived, 8)), (6, 6));
        assert!(derived.has::<u32>("length") && !derived.has::<u64>("length") && !derived.clone().has::<u32>("length"));
        assert_eq!(asked(&derived.clone(), 8), 8);
        assert_eq!(*derived.get("half", || "text"), "text", "another type is another value");
    }
}
